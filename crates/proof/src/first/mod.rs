//! The lexicographically first solution: the statement, the format of its proof, and the checker.
//!
//! **The statement.** The given columns are a solution, and no solution comes before it: for each
//! row, and each smaller column that the queens of the rows above leave free, the board with these
//! queens and one there has no completion. Without columns, the empty board has no completion.
//!
//! **The format.** Numbers are encoded as in [`super::bytes`]. The first one is the work limit that
//! the certificate states: 1 for each queen, 500 for each dual bound, list of sets and case. (The
//! checker's own limit is that of its [`Meter`].) Then comes 1 and the n 0-based columns, or 0 if
//! there is no solution. The refutations follow: for each row from the top and each smaller free
//! column from the left, one tree; without a solution, one tree for the empty board. A tree is one
//! of
//!
//! | byte | followed by | meaning |
//! |---|---|---|
//! | 0 | | the checker searches exhaustively, branching over the line with the fewest candidates |
//! | 1 | multipliers, a tree | a dual bound, and the refutation of the position under it |
//! | 2 | multipliers, a tree | like 1, with the knapsacks |
//! | 3 | line, number of children, for each a square and a tree | a branching over all squares of a line |
//! | 4 | multipliers, number of squares, the squares, a tree | squares that are eliminated, and the refutation of the position without them |
//! | 5 | | the checker searches exhaustively, preferring rows that ran out of candidates before |
//! | 6 | number of blocks, for each the number of its rows and the rows | like 5, but completing these blocks of rows one after the other, then the other rows |
//! | 7 | as for 6 | like 6, but also preferring columns that ran out of candidates before |
//! | 8 | by row and column how often it ran out of candidates, then as for 7 | like 7, starting from these counts |
//! | 9 | as for 8 | like 8, remembering refuted positions (see `refuted_positions.rs`) |
//! | 10 | a tree | the sets of diagonals are listed (see `diagonal_sets.rs`) for the tree |
//! | 11 | line, two trees | a case distinction: the listed sets without a diagonal, and those with it |
//!
//! Lines are the rows from 0, the columns from n, the diagonals c - r + n - 1 from 2n, the
//! antidiagonals r + c from 4n - 1; the square of row r and column c is r n + c. Multipliers are
//! those of the columns (signed), diagonals and antidiagonals in this order; a 0 is followed by the
//! number of further zeros. `position/dual_bound.rs` defines their meaning.
//!
//! **The checker** keeps one position and traverses the tree. After each queen and each dual bound
//! it propagates on its own; if that refutes the position, the rest of the position's tree is
//! skipped. A branching must be over a line that every completion uses, and every candidate of the
//! line must be listed or be refuted at once by propagation. If propagation has already placed a
//! queen on the line, its square must be listed. For a square to be eliminated, the position with a
//! queen there must be refuted, unless the square is no candidate: by propagation, or by the dual
//! bound of the multipliers with the knapsacks. Where the sets of diagonals are listed, squares are
//! eliminated whose diagonals are in no set, and the sets take the place of the knapsacks; a case
//! distinction divides those of one direction. Multipliers cannot be invalid, since the checker
//! computes those of the rows such that the dual bound is valid (weak duality). Multipliers can
//! only be too weak, and then the tree refutes nothing.

mod checked_refutations;
mod checker;
mod concurrent;
mod diagonal_sets;
mod knapsack;
mod observer;
mod position;
mod refutation;
mod refuted_positions;
#[cfg(test)]
mod tests;

pub use checked_refutations::{CheckedRefutation, CheckedRefutationSet};
pub use diagonal_sets::{AssumedDiagonals, DiagonalSets, Diagonals, OpenBoard, TooManySets};
pub(crate) use knapsack::{Heaviest, Item, KnapsackOutcome, Tables, heaviest};
pub(crate) use observer::Observer;
pub(crate) use position::Position;
pub use refutation::{LARGEST_MULTIPLIER, Line, Multipliers, Refutation};

use super::bytes::{Reader, Writer};
use super::{Kind, Meter, ProofError, ProvedStatement, seal};
use crate::board::{Piece, Square, first_attack, is_solution};
use checker::Checker;
use concurrent::check_concurrently;

/// The largest board size.
pub const LARGEST: usize = 128;

const TOO_LARGE: ProofError = ProofError::Damaged("its board is larger than 128");

const TOO_LONG: ProofError = ProofError::Damaged("bytes follow the end of the proof");

/// Creates a certificate for `solution` (the 0-based column of each row; `None` if there is none),
/// with its refutations in order. It is checked before it is returned, without a limit, and states
/// the work of that check: 1 for each placed queen, 500 for each dual bound, list of sets and case.
///
/// # Errors
/// Returns an error if the certificate would not be accepted.
pub fn certificate(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[Refutation],
) -> Result<Vec<u8>, ProofError> {
    certificate_within(n, solution, refutations, 1, &mut Meter::new(None))
}

/// Creates a certificate like [`certificate`], checked under this meter by `threads` threads; 0 is
/// treated as 1.
///
/// # Errors
/// Returns an error if the certificate would not be accepted, or if the meter ends the check.
pub fn certificate_within(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[Refutation],
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<Vec<u8>, ProofError> {
    let none = CheckedRefutationSet::new(n);
    certificate_with_checked(n, solution, refutations, &none, threads, meter)
}

/// Creates a certificate like [`certificate_within`]. Refutations in `checked` are not checked
/// again: the meter does not count them, but the work that the certificate states includes theirs.
///
/// # Errors
/// As for [`certificate_within`].
pub fn certificate_with_checked(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[Refutation],
    checked: &CheckedRefutationSet,
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<Vec<u8>, ProofError> {
    let mut writer = Writer::new();
    writer.byte(u8::from(solution.is_some()));
    solution.into_iter().flatten().for_each(|&column| writer.size(column));
    let mut reader = Reader::new(writer.as_bytes());
    read_claim(n, &mut reader)?;
    if !reader.is_empty() {
        return Err(TOO_LONG);
    }
    refutations.iter().for_each(|refutation| writer.bytes(refutation.as_bytes()));
    let claim = writer.finish();
    let reader = Reader::new(&claim);
    let (_, work) = check_claim_with_threads(n, reader, u64::MAX, checked, threads, meter)?;
    let mut writer = Writer::new();
    writer.number(work);
    writer.bytes(&claim);
    Ok(seal(Kind::First, n, &writer.finish()))
}

/// Checks the proof of a certificate of [`Kind::First`] for a board of size `n`, with this number
/// of threads; 0 is treated as 1.
///
/// # Errors
/// Returns an error if the proof is damaged or proves nothing, or if the meter ends the check.
pub fn check_with_threads(
    n: usize,
    proof: &[u8],
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<ProvedStatement, ProofError> {
    let mut reader = Reader::new(proof);
    let limit = reader.number()?;
    let before = meter.work();
    let none = CheckedRefutationSet::new(n);
    let (solution, _) = check_claim_with_threads(n, reader, limit, &none, threads, meter)?;
    Ok(ProvedStatement {
        kind: Kind::First,
        beauty: None,
        n,
        solution,
        work: meter.work() - before,
    })
}

/// Checks one refutation: the queens in the first rows of the board of size `n`, from 1 to
/// [`LARGEST`], on the 0-based columns `prefix`, have no completion. Returns the work as stated in
/// certificates: 1 for each placed queen, 500 for each dual bound, list of sets and case.
///
/// # Errors
/// Returns an error if the queens are not on the board, or if the refutation refutes nothing or
/// takes more work than `limit` or more than [`MOST_WORK`](super::MOST_WORK) steps.
pub fn check_refutation(
    n: usize,
    prefix: &[usize],
    refutation: &Refutation,
    limit: u64,
) -> Result<u64, ProofError> {
    check_refutation_within(n, prefix, refutation, limit, &mut Meter::default())
}

/// Checks one refutation like [`check_refutation`], under this meter.
///
/// # Errors
/// Returns an error if the queens are not on the board, if the refutation refutes nothing or takes
/// more work than `limit`, or if the meter ends the check.
pub fn check_refutation_within(
    n: usize,
    prefix: &[usize],
    refutation: &Refutation,
    limit: u64,
    meter: &mut Meter<'_>,
) -> Result<u64, ProofError> {
    if n > LARGEST {
        return Err(TOO_LARGE);
    }
    if n == 0 || prefix.len() > n || prefix.iter().any(|&column| column >= n) {
        return Err(ProofError::Refused("its queens are not on the board".into()));
    }
    let (checked, work) = check_tree(n, prefix, refutation.as_bytes(), limit, meter);
    checked.map(|()| work)
}

/// Checks one tree like [`check_refutation_within`], for queens on the board. Also returns the work
/// that was done if the tree refutes nothing.
fn check_tree(
    n: usize,
    prefix: &[usize],
    tree: &[u8],
    limit: u64,
    meter: &mut Meter<'_>,
) -> (Result<(), ProofError>, u64) {
    let reader = Reader::new(tree);
    let mut unobserved = ();
    let mut checker = Checker::new(n, reader, limit, meter, &mut unobserved);
    let checked = checker.refute_prefix(prefix);
    let checked = checked.and_then(|()| if checker.is_at_end() { Ok(()) } else { Err(TOO_LONG) });
    (checked, checker.work())
}

/// Reads the solution that a proof claims.
pub(crate) fn read_solution(n: usize, proof: &[u8]) -> Result<Option<Vec<usize>>, ProofError> {
    let mut reader = Reader::new(proof);
    reader.number()?;
    read_claim(n, &mut reader)
}

/// Checks a proof like [`check_with_threads`], and reports its steps to an observer.
pub(crate) fn observe<O: Observer>(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
    observer: &mut O,
) -> Result<(), ProofError> {
    let mut reader = Reader::new(proof);
    let stated = reader.number()?;
    let limit = if O::TRANSLATES { u64::MAX } else { stated };
    check_claim(n, reader, limit, meter, observer).map(drop)
}

/// Reads the claim: the columns of the solution, if there is one.
fn read_claim(n: usize, reader: &mut Reader<'_>) -> Result<Option<Vec<usize>>, ProofError> {
    if n > LARGEST {
        return Err(TOO_LARGE);
    }
    match reader.byte()? {
        0 => Ok(None),
        1 => (0..n).map(|_| reader.size(LARGEST)).collect::<Result<_, _>>().map(Some),
        _ => Err(ProofError::Damaged("it claims neither a solution nor that there is no solution")),
    }
}

/// Checks a claim with its refutations by this number of threads; 0 is treated as 1. Refutations in
/// `checked` are not checked again. Returns the solution and the work as stated in
/// certificates.
fn check_claim_with_threads(
    n: usize,
    mut reader: Reader<'_>,
    limit: u64,
    checked: &CheckedRefutationSet,
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<(Option<Vec<usize>>, u64), ProofError> {
    if threads <= 1 && checked.is_empty() {
        return check_claim(n, reader, limit, meter, &mut ());
    }
    let solution = read_claim(n, &mut reader)?;
    let work = check_concurrently(n, solution.as_deref(), reader, limit, checked, threads, meter)?;
    Ok((solution, work))
}

/// Checks a claim with its refutations. Returns the solution and the work as stated in
/// certificates.
fn check_claim(
    n: usize,
    mut reader: Reader<'_>,
    limit: u64,
    meter: &mut Meter<'_>,
    observer: &mut impl Observer,
) -> Result<(Option<Vec<usize>>, u64), ProofError> {
    let solution = read_claim(n, &mut reader)?;
    let mut checker = Checker::new(n, reader, limit, meter, observer);
    for prefix in smaller_prefixes(n, solution.as_deref())? {
        checker.add_operations(100 * prefix.len() as u64)?;
        if is_free(n, &prefix) {
            checker.refute_prefix(&prefix)?;
        }
    }
    if !checker.is_at_end() {
        return Err(TOO_LONG);
    }
    Ok((solution, checker.work()))
}

/// Returns the prefixes before the solution: for each row, the columns of the queens above and a
/// smaller one, which may be attacked. Without a solution that is the prefix without queens.
fn smaller_prefixes(
    n: usize,
    solution: Option<&[usize]>,
) -> Result<impl Iterator<Item = Vec<usize>>, ProofError> {
    match solution {
        Some(columns) if !is_solution(Piece::Queen, columns) => {
            return Err(ProofError::Refused("its queens attack each other".into()));
        }
        None if n == 0 => {
            return Err(ProofError::Refused("the board without squares has a solution".into()));
        }
        _ => {}
    }
    let columns = solution.unwrap_or_default();
    let smaller = (0..columns.len()).flat_map(move |row| {
        (0..columns[row]).map(move |column| [&columns[..row], &[column]].concat())
    });
    Ok(smaller.chain(solution.is_none().then(Vec::new)))
}

/// Returns whether the last of these queens attacks none of the others, which do not attack each
/// other.
fn is_free(n: usize, prefix: &[usize]) -> bool {
    let squares: Vec<Square> =
        prefix.iter().enumerate().map(|(row, &col)| Square::new(row, col)).collect();
    first_attack(Piece::Queen, n, &squares).is_none()
}
