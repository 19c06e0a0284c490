//! Certificates and random changes of them. The tests of the program `nqueens` use this file too.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use nqueens_proof::beautiful::{self, record};
use nqueens_proof::board::{Norm, Piece, Square, is_solution};
use nqueens_proof::bytes::{Reader, Writer};
use nqueens_proof::{Beauty, Kind, Meter, ProvedStatement, check_within, first, open, seal};

/// The first bytes of every certificate.
const MAGIC: &[u8] = b"NQPROOF\n";

/// A certificate that takes more steps than this is only changed without a new checksum.
const MOST_STEPS: u64 = 5_000;

/// Boards up to this size are searched exhaustively to decide whether a statement is true.
const LARGEST_SEARCHED: usize = 10;

/// A valid certificate.
#[derive(Clone)]
pub struct Certificate {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Returns the certificates that the repository keeps, sorted by name.
pub fn kept() -> Vec<Certificate> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.filter(|folder| folder.join("tests/certificates").is_dir()).last();
    let root = root.expect("the repository keeps certificates");
    let mut found = Vec::new();
    collect(&root.join("tests"), &mut found);
    collect(&root.join("crates/proof/tests/data"), &mut found);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 30, "there are only {} certificates", found.len());
    found
}

/// Adds the certificates below `folder`.
fn collect(folder: &Path, found: &mut Vec<Certificate>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(&path, found);
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.starts_with(MAGIC)
        {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let parent = folder.file_name().expect("a name").to_string_lossy().into_owned();
            found.push(Certificate { name: format!("{parent}-{name}"), bytes });
        }
    }
}

/// Refutations with every kind of step, which refute any prefix that has no completion.
const STEPS: [fn(usize, &mut Rng) -> first::Refutation; 8] = [
    |_, _| first::Refutation::search(),
    |n, random| {
        let blocks = [vec![random.usize(0..n)], vec![random.usize(0..n), random.usize(0..n)]];
        first::Refutation::search_by_weight(&blocks, &[])
    },
    |n, random| {
        let weights: Vec<u32> = (0..2 * n).map(|_| random.u32(0..9)).collect();
        first::Refutation::search_by_weight(&[], &weights)
    },
    |n, random| {
        let weights: Vec<u32> = (0..2 * n).map(|_| random.u32(0..9)).collect();
        let block: Vec<usize> = (0..n).filter(|_| random.bool()).collect();
        first::Refutation::search_with_memory(&[block], &weights)
    },
    |n, random| {
        let search = first::Refutation::search();
        let plain = first::Refutation::dual_bound(&multipliers(n, random), false, &search);
        first::Refutation::dual_bound(&multipliers(n, random), true, &plain)
    },
    |n, random| {
        let last = n - 1;
        let all: Vec<_> =
            (0..n).map(|column| (last * n + column, first::Refutation::search())).collect();
        let branch = first::Refutation::branch(n, first::Line::Row(last), &all);
        first::Refutation::elimination(&multipliers(n, random), &[], &branch)
    },
    |_, _| first::Refutation::listed_sets(&first::Refutation::search()),
    |n, random| {
        let search = first::Refutation::search();
        let bound = first::Refutation::dual_bound(&multipliers(n, random), true, &search);
        let block: Vec<usize> = (0..n).filter(|_| random.bool()).collect();
        let memory = first::Refutation::search_with_memory(&[block], &vec![0; 2 * n]);
        let inner = first::Refutation::cases(n, any_diagonal(n, random), &bound, &memory);
        let cases = first::Refutation::cases(n, any_diagonal(n, random), &inner, &search);
        first::Refutation::listed_sets(&cases)
    },
];

/// Returns a random diagonal or antidiagonal.
fn any_diagonal(n: usize, random: &mut Rng) -> first::Line {
    let diagonal = random.usize(0..2 * n - 1);
    match random.bool() {
        true => first::Line::Diagonal(diagonal),
        false => first::Line::Antidiagonal(diagonal),
    }
}

/// Returns certificates of first solutions of small boards, with every kind of step.
fn small() -> Vec<Certificate> {
    let mut random = Rng::with_seed(21);
    let mut found = Vec::new();
    for n in 0..=9 {
        let solution = solutions(n).into_iter().next();
        for (number, step) in STEPS.iter().enumerate() {
            let count = refutations_of(solution.as_deref());
            let refutations: Vec<_> = (0..count).map(|_| step(n.max(1), &mut random)).collect();
            let bytes = first::certificate(n, solution.as_deref(), &refutations);
            let bytes = bytes.unwrap_or_else(|error| panic!("n = {n}, step {number}: {error}"));
            found.push(Certificate { name: format!("small-first-{n}-{number}.proof"), bytes });
        }
    }
    found
}

/// Returns the number of refutations in a certificate of this solution: one for each free square
/// before it, or one if there is no solution.
fn refutations_of(solution: Option<&[usize]>) -> usize {
    let before = |(row, &column): (usize, &usize)| {
        let above = &solution.unwrap_or_default()[..row];
        (0..column).filter(|&column| is_free(above, column)).count()
    };
    solution.map_or(1, |columns| columns.iter().enumerate().map(before).sum())
}

fn multipliers(n: usize, random: &mut Rng) -> first::Multipliers {
    let mut values = |least: i64, count: usize| -> Vec<i64> {
        (0..count).map(|_| if random.bool() { 0 } else { random.i64(least..300) }).collect()
    };
    first::Multipliers {
        columns: values(-300, n),
        diagonals: values(0, 2 * n - 1),
        antidiagonals: values(0, 2 * n - 1),
    }
}

/// Returns whether a queen in the next row and this column attacks none of the queens above.
fn is_free(above: &[usize], column: usize) -> bool {
    let row = above.len();
    above
        .iter()
        .enumerate()
        .all(|(other, &taken)| taken != column && row - other != column.abs_diff(taken))
}

/// Returns all solutions of the board of size `n` in lexicographic order, by the plain definition.
fn solutions(n: usize) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new()];
    for _ in 0..n {
        found = found
            .into_iter()
            .flat_map(|above: Vec<usize>| {
                let free: Vec<usize> = (0..n).filter(|&column| is_free(&above, column)).collect();
                free.into_iter().map(move |column| [&above[..], &[column]].concat())
            })
            .collect();
    }
    found
}

/// A certificate after a random change.
pub struct Mutation {
    /// The number that determines the change.
    pub seed: u64,
    /// The name of the certificate that was changed.
    pub original: String,
    /// True if the checksum was computed again.
    pub is_sealed: bool,
    pub bytes: Vec<u8>,
}

impl std::fmt::Display for Mutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, original, .. } = self;
        write!(f, "{original}, changed under NQUEENS_SEED={seed}")
    }
}

/// The name of certificates that are composed of well-formed steps at random, for any claim.
const FORGED: &str = "forged";

/// A source of mutations.
pub struct Mutations {
    /// Certificates with their statements, the cheap ones first.
    certificates: Vec<(Certificate, ProvedStatement)>,
    /// The number of cheap ones.
    cheap: usize,
    /// The solutions of small boards by size.
    solutions: Vec<Vec<Vec<usize>>>,
}

impl Mutations {
    /// The steps that a check of a changed certificate needs at most, unless the change makes it
    /// search more.
    pub const LIMIT: u64 = 4 * MOST_STEPS;

    /// Creates a source of changes of all kept certificates, and of some small ones. The large ones
    /// are not checked first.
    pub fn new() -> Self {
        let mut certificates = Vec::new();
        let mut large = Vec::new();
        for certificate in small().into_iter().chain(kept()) {
            match check_within(&certificate.bytes, &mut Meter::new(Some(MOST_STEPS))) {
                Ok(proved) => certificates.push((certificate, proved)),
                Err(error) => {
                    assert!(error.is_undecided(), "{}: {error}", certificate.name);
                    let (kind, n, _) = open(&certificate.bytes).expect("a certificate");
                    let (beauty, solution, work) = (None, None, 0);
                    large.push((certificate, ProvedStatement { kind, beauty, n, solution, work }));
                }
            }
        }
        let cheap = certificates.len();
        certificates.extend(large);
        let solutions = (0..=LARGEST_SEARCHED).map(solutions).collect();
        Self { certificates, cheap, solutions }
    }

    /// Returns the seeds of a test: that of `NQUEENS_SEED`, or as many as `NQUEENS_MUTATIONS` says,
    /// or `usual` ones.
    pub fn seeds(usual: u64) -> Vec<u64> {
        let variable = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
        match (variable("NQUEENS_SEED"), variable("NQUEENS_MUTATIONS")) {
            (Some(seed), _) => vec![seed],
            (None, count) => (0..count.unwrap_or(usual)).collect(),
        }
    }

    /// Returns the change that `seed` determines.
    pub fn get(&self, seed: u64) -> Mutation {
        let mut random = Rng::with_seed(seed);
        if random.u8(0..5) == 0 {
            let bytes = forged(&self.solutions, &mut random);
            return Mutation { seed, original: FORGED.to_owned(), is_sealed: true, bytes };
        }
        let is_sealed = random.u8(0..4) > 0;
        let count = if is_sealed { self.cheap } else { self.certificates.len() };
        let (certificate, proved) = &self.certificates[random.usize(0..count)];
        let original = certificate.name.clone();
        let mut bytes = certificate.bytes.clone();
        if is_sealed {
            let (mut kind, mut n, proof) = open(&bytes).expect("a certificate");
            let mut proof = proof.to_vec();
            match random.u8(0..16) {
                0 => kind = if kind == Kind::First { Kind::Beautiful } else { Kind::First },
                1 => n = (n + random.usize(0..5)).saturating_sub(2),
                2..=4 => change_solution(&mut proof, proved, &self.solutions, &mut random),
                _ => {}
            }
            for _ in 0..random.usize(0..4) {
                change(&mut proof, &mut random);
            }
            bytes = seal(kind, n, &proof);
        } else {
            for _ in 0..random.usize(1..4) {
                change(&mut bytes, &mut random);
            }
        }
        Mutation { seed, original, is_sealed, bytes }
    }

    /// Returns whether a statement that a changed certificate proves is true.
    ///
    /// It is true if it is the statement of the original certificate, which is valid. On small
    /// boards any statement is compared with an exhaustive search. On larger ones, another solution
    /// is most beautiful if it has the same fingerprint; and one that is most beautiful among all
    /// solutions is also most beautiful among those invariant under quarter turns, if it is one of
    /// them.
    pub fn is_true(&self, statement: &ProvedStatement, mutation: &Mutation) -> bool {
        let ProvedStatement { kind, beauty, n, ref solution, .. } = *statement;
        if !solution
            .as_ref()
            .is_none_or(|columns| columns.len() == n && is_solution(Piece::Queen, columns))
        {
            return false;
        }
        if let Some(solutions) = self.solutions.get(n) {
            return is_true(kind, beauty, solution.as_deref(), solutions);
        }
        if mutation.original == FORGED {
            return false;
        }
        if self.is_unchanged(mutation) || self.is_original(statement, mutation) {
            return true;
        }
        let (_, original) = self.original(mutation);
        let (Some(beauty), Some(before)) = (beauty, original.beauty) else { return false };
        let (Some(columns), Some(columns_before)) = (solution, &original.solution) else {
            return false;
        };
        let fingerprint = |columns: &[usize]| beauty.norm.fingerprint(columns);
        (kind, n, beauty.norm) == (original.kind, original.n, before.norm)
            && fingerprint(columns) == fingerprint(columns_before)
            && (beauty.turning == before.turning
                || beauty.turning && is_quarter_turn_symmetric(columns))
    }
}

impl Mutations {
    /// Returns the certificate that was changed, and its statement.
    fn original(&self, mutation: &Mutation) -> &(Certificate, ProvedStatement) {
        let named = |(certificate, _): &&(Certificate, ProvedStatement)| {
            certificate.name == mutation.original
        };
        self.certificates.iter().find(named).expect("it was chosen from these")
    }

    /// Returns whether a statement is that of the original certificate.
    pub fn is_original(&self, statement: &ProvedStatement, mutation: &Mutation) -> bool {
        if mutation.original == FORGED {
            return false;
        }
        let work = statement.work;
        *statement == ProvedStatement { work, ..self.original(mutation).1.clone() }
    }

    /// Returns whether the change left the certificate as it was.
    pub fn is_unchanged(&self, mutation: &Mutation) -> bool {
        mutation.bytes == self.original(mutation).0.bytes
    }
}

/// Returns whether a statement is true, given all solutions in lexicographic order.
fn is_true(
    kind: Kind,
    beauty: Option<Beauty>,
    claimed: Option<&[usize]>,
    solutions: &[Vec<usize>],
) -> bool {
    let Beauty { norm, turning } = beauty.unwrap_or_default();
    let mut considered =
        solutions.iter().filter(|columns| !turning || is_quarter_turn_symmetric(columns));
    let Some(claimed) = claimed else { return considered.next().is_none() };
    match kind {
        Kind::First => considered.next().is_some_and(|first| first == claimed),
        Kind::Beautiful => {
            let best = considered.clone().map(|columns| norm.fingerprint(columns)).min();
            considered.any(|columns| columns == claimed) && best == Some(norm.fingerprint(claimed))
        }
    }
}

/// Returns whether quarter turns leave a solution as it is.
fn is_quarter_turn_symmetric(columns: &[usize]) -> bool {
    let n = columns.len();
    (0..n).all(|row| columns[columns[row]] == n - 1 - row)
}

/// Returns a well-formed certificate for any solution of a small board, or for the claim that there
/// is none.
fn forged(solutions: &[Vec<Vec<usize>>], random: &mut Rng) -> Vec<u8> {
    let n = random.usize(3..8);
    let solution = random.choice(&solutions[n]).filter(|_| random.u8(0..8) > 0);
    let solution = solution.map(Vec::as_slice);
    if random.bool() {
        let mut writer = Writer::new();
        writer.number(u64::MAX);
        writer.byte(solution.is_some().into());
        solution.into_iter().flatten().for_each(|&column| writer.size(column));
        for _ in 0..refutations_of(solution) {
            writer.bytes(forged_refutation(n, 3, random).as_bytes());
        }
        seal(Kind::First, n, &writer.finish())
    } else {
        let norm = random.choice(Norm::ALL).unwrap_or_default();
        let mut writer = beautiful::claim(norm, random.u8(0..8) == 0, solution);
        let mut costs: Vec<u64> =
            (0..n * n).map(|at| norm.cost(n, Square::new(at / n, at % n))).collect();
        costs.sort_unstable();
        costs.dedup();
        let fingerprint = solution.map(|columns| norm.fingerprint(columns)).unwrap_or_default();
        let mut to_show = fingerprint.len();
        for cost in costs.into_iter().rev() {
            let queens = fingerprint.iter().filter(|&&other| other == cost).count();
            if queens > 0 || solution.is_none() {
                forged_level(n, queens, &mut writer, random);
            }
            to_show -= queens;
            if to_show == 0 {
                break;
            }
            writer.byte(record::NEXT);
        }
        if solution.is_some() {
            writer.byte(record::NEXT);
        }
        seal(Kind::Beautiful, n, &writer.finish())
    }
}

/// Returns a tree of any steps, which may refute nothing.
fn forged_refutation(n: usize, depth: usize, random: &mut Rng) -> first::Refutation {
    let kind = random.u8(0..if depth == 0 { 2 } else { 8 });
    if kind < 2 {
        return STEPS[random.usize(0..STEPS.len())](n, random);
    }
    let then = forged_refutation(n, depth - 1, random);
    match kind {
        2 => first::Refutation::dual_bound(&multipliers(n, random), random.bool(), &then),
        6 => first::Refutation::listed_sets(&then),
        7 => {
            let line = match random.usize(0..5) {
                0 => first::Line::Column(random.usize(0..n)),
                _ => any_diagonal(n, random),
            };
            first::Refutation::cases(n, line, &then, &then)
        }
        3 => {
            let squares: Vec<usize> =
                (0..random.usize(0..2 * n)).map(|_| random.usize(0..n * n)).collect();
            first::Refutation::elimination(&multipliers(n, random), &squares, &then)
        }
        _ => {
            // A branching over a row that may omit squares.
            let row = random.usize(0..n);
            let columns = (0..n).filter(|_| random.u8(0..8) > 0);
            let columns: Vec<usize> = columns.collect();
            let child = |column: usize| (row * n + column, then.clone());
            let children: Vec<_> = columns.into_iter().map(child).collect();
            first::Refutation::branch(n, first::Line::Row(row), &children)
        }
    }
}

/// Writes records that may show that a level has this number of queens.
fn forged_level(n: usize, queens: usize, writer: &mut Writer, random: &mut Rng) {
    if queens > 0 {
        writer.byte(record::AT_LEAST);
        writer.size(queens);
    }
    for _ in 0..random.usize(0..6).saturating_sub(3) {
        writer.byte(record::ELIMINATED_BY_MULTIPLIERS);
        forged_multipliers(n, writer, random);
        let squares = random.usize(1..3);
        writer.size(squares);
        (0..squares).for_each(|_| writer.size(random.usize(0..n * n)));
    }
    if random.u8(0..3) > 0 {
        writer.byte(record::REFUTED_BY_MULTIPLIERS);
        forged_multipliers(n, writer, random);
    } else {
        // A tree that ends where propagation finds contradictions.
        writer.byte(record::REFUTED);
        (0..random.usize(0..4)).for_each(|_| writer.size(random.usize(0..n)));
    }
}

fn forged_multipliers(n: usize, writer: &mut Writer, random: &mut Rng) {
    let numbers = n.div_ceil(2) + n;
    let (count, largest) = (random.usize(1..4), random.i64(0..4));
    writer.size(count);
    for _ in 0..count {
        let number = random.usize(0..numbers + 3);
        let is_diagonal = (n.div_ceil(2)..numbers).contains(&number);
        writer.size(number);
        writer.signed(random.i64(-largest..=if is_diagonal { 0 } else { largest }));
    }
}

/// Changes what a proof claims: the solution, its norm, or that there is one.
fn change_solution(
    proof: &mut Vec<u8>,
    proved: &ProvedStatement,
    solutions: &[Vec<Vec<usize>>],
    random: &mut Rng,
) {
    let n = proved.n;
    // Columns are below 128, so each takes one byte.
    let begin = if proved.kind == Kind::First {
        let mut reader = Reader::new(proof);
        let _ = reader.number();
        proof.len() - reader.rest().len()
    } else {
        proof[random.usize(0..2)] = random.u8(0..3);
        2
    };
    let Some(columns) = &proved.solution else { return };
    let mut other = columns.clone();
    match random.u8(0..5) {
        0 => other.iter_mut().for_each(|column| *column = n - 1 - *column),
        1 => other.reverse(),
        2 if n > 1 => other.swap(random.usize(0..n), random.usize(0..n)),
        3 => {
            // Claims that there is no solution.
            proof.splice(begin..=begin + n, [0]);
            return;
        }
        _ => {
            let all = solutions.get(n).map_or(&[][..], Vec::as_slice);
            if let Some(any) = random.choice(all) {
                other.clone_from(any);
            }
        }
    }
    proof.splice(begin + 1..=begin + n, other.iter().map(|&column| column as u8));
}

/// Changes some bytes.
fn change(bytes: &mut Vec<u8>, random: &mut Rng) {
    if bytes.is_empty() {
        bytes.push(random.u8(..));
        return;
    }
    let at = random.usize(0..bytes.len());
    let end = (at + random.usize(1..40)).min(bytes.len());
    match random.u8(0..10) {
        0 => bytes[at] ^= 1 << random.u8(0..8),
        1 => bytes[at] = random.u8(..),
        2 => drop(bytes.remove(at)),
        3 => bytes.insert(at, random.u8(..) >> random.u8(0..8)),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
        7 => {
            // Exchanges two ranges that follow each other.
            let middle = random.usize(at..end);
            bytes[at..end].rotate_left(middle - at);
        }
        8 => {
            let other = random.usize(0..bytes.len());
            bytes.swap(at, other);
        }
        _ => change_number(bytes, at, random),
    }
}

/// Changes the number that begins at a byte.
fn change_number(bytes: &mut Vec<u8>, at: usize, random: &mut Rng) {
    let mut reader = Reader::new(&bytes[at..]);
    let Ok(number) = reader.number() else { return };
    let end = bytes.len() - reader.rest().len();
    let mut writer = Writer::new();
    writer.number(match random.u8(0..5) {
        0 => number.wrapping_add(1),
        1 => number.wrapping_sub(1),
        2 => number.wrapping_add(2),
        3 => random.u64(0..300),
        _ => u64::MAX >> random.u8(0..64),
    });
    bytes.splice(at..end, writer.finish());
}

/// A temporary folder, which is removed when it is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("nqueens-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
