//! Certificates that a solution is most beautiful: no solution has a smaller fingerprint.
//!
//! # The argument
//! Suppose that another solution T has a smaller fingerprint than the given solution S. A *level*
//! is the set of squares of one cost; levels are ordered by decreasing cost. On the first level
//! where T and S have different numbers of queens, T has fewer. It is therefore enough to show,
//! level by level, that every solution with as many queens as S on all previous levels has at least
//! as many as S on this one. The certificate shows this in *records*. Each record rules out some of
//! the solutions in question: those with as many queens as S on the previous levels and, in a
//! *trial*, with fewer on this level than the bound to be shown.
//!
//! Such a set is invariant under the symmetries of the square. So if none of its solutions has a
//! queen on one square of an *orbit*, none has a queen on any square of that orbit: the orbit is
//! *eliminated*. A diagonal is *full* if every solution of the set has a queen on it; this is shown
//! for all diagonals at one distance from the main ones together.
//!
//! # The records
//! Numbers are encoded as in [`super::bytes`]; the number of a square is row · n + column, 0-based.
//!
//! | record | followed by | meaning and check |
//! |---|---|---|
//! | 1 | v | a trial begins: the solutions with at most v − 1 queens on this level. The next refutation ends it: squares eliminated in it are restored, diagonals filled in it are no longer full, and the level has at least v queens |
//! | 2 | tree | no solution is left: by a search |
//! | 3 | square, tree | its orbit is eliminated: by a search with a queen on the square |
//! | 4 | multipliers | no solution is left: base > 0 |
//! | 5 | multipliers, count, squares | their orbits are eliminated: base + r(o) > 0 |
//! | 6 | count, squares | a clique: the squares attack each other; multipliers may refer to it |
//! | 7 | | the next level begins; this level was shown to have as many queens as in S (if S has none there, nothing needs to be shown) |
//! | 8 | level, side, v | in a trial, an assumption begins: another level, counted from 0, has at most v − 1 queens (side 0), or at least v (side 1). The next refutation ends it: squares eliminated in it are restored, what it showed of levels and diagonals is discarded, and the level has at least v queens, or at most v − 1 |
//! | 9 | multipliers, count, distances | the diagonals at these distances are full: base − y(d) > 0; not under quarter turns |
//!
//! The proof is complete when the levels passed hold n queens. If there is no solution at all,
//! there are no levels, and the proof is a single refutation. No record is needed if only solutions
//! invariant under quarter turns are considered and n is not 0 or 1 modulo 4: such queens come in
//! fours, except for one in the centre.
//!
//! **Search.** Queens are placed one by one, with propagation. An attacked square is closed. A row
//! or column with one open square gets its queen there; with no open square it is a contradiction.
//! A level with more or fewer queens than it can have is a contradiction. A level that has all its
//! queens is closed, and a level that needs all its open squares gets queens on them. Full
//! diagonals are treated like rows and columns. If propagation finds no contradiction, the tree
//! names a row (0 to n − 1), a column (n to 2n − 1) or a full diagonal ([`prices::in_tree`])
//! without a queen. Each of its open squares is tried in ascending order, and a subtree follows for
//! each one where propagation finds no contradiction.
//!
//! Alternatively the tree may have [`prices`]: the number 2n + 1 (or 6n + 2 if they also fill
//! diagonals), a count, and for each price the number of its line or level and the price. The price
//! of an open square is the sum of the prices of its column, its diagonals and its level; prices of
//! diagonals that are not full are not negative. All remaining queens together pay at most the
//! prices of all columns and diagonals that have an open square plus, for each level, its price
//! times the greatest number of queens it can still have (if the price is negative: the least
//! number). They pay at least the sum of the cheapest open squares of all rows. If this lower bound
//! exceeds the upper one, it is a contradiction. Otherwise each square is closed whose price
//! exceeds the cheapest of its row by more than the difference of the bounds, and with 6n + 2 each
//! diagonal becomes full whose price exceeds it. If propagation then finds no contradiction,
//! another tree follows.
//!
//! **Multipliers.** Let q(o) be the number of queens of a solution on orbit o, from 0 to most(o),
//! and let A be the matrix of the constraints Aq = b or Aq ≤ b: all rows and columns at one
//! distance from the border together contain 4 queens (2 if they are the middle ones); the
//! diagonals at one distance from the main ones contain at most 4 (2 if they are the main ones); a
//! level contains as many as is known; the 8 images of a clique contain at most 8. For multipliers
//! y, of any sign for equations and at most 0 for upper bounds, and r = −yA, every solution
//! satisfies base = Σ y·b + Σ min(0, r)·most ≤ Σ y·(Aq) + Σ r·q = 0. With a queen on o even base +
//! r(o) ≤ 0 if r(o) > 0. If one of the diagonals at distance d is empty, b(d) is one less, so
//! base − y(d) ≤ 0. Constraints are numbered: ⌈n/2⌉ distances from the border, n from the main
//! diagonals, levels, cliques.

mod board;
mod part;

use board::Board;

use super::bytes::{Reader, Writer};
use super::{Beauty, Kind, Meter, ProofError, Proved};
use crate::board::{Norm, Piece, Placement, Problem, Square};

pub use part::{Checked, Part, PartChecker, Premises};

/// The largest board size that is accepted.
pub const LARGEST: usize = 512;

/// The largest number of nested suppositions that is accepted: a trial and its assumptions.
const MOST_OPEN: usize = 10_000;

/// The largest number of squares in all cliques together, which bounds the checker's memory.
const MOST_IN_CLIQUES: usize = 1 << 26;

/// The first byte of each record.
pub mod record {
    /// A trial begins.
    pub const AT_LEAST: u8 = 1;
    /// No solution is left, shown by a search.
    pub const REFUTED: u8 = 2;
    /// An orbit is eliminated, shown by a search.
    pub const ELIMINATED: u8 = 3;
    /// No solution is left, shown by multipliers.
    pub const REFUTED_BY_MULTIPLIERS: u8 = 4;
    /// Orbits are eliminated, shown by multipliers.
    pub const KILLED_BY_MULTIPLIERS: u8 = 5;
    /// A clique.
    pub const CLIQUE: u8 = 6;
    /// The next level begins.
    pub const NEXT: u8 = 7;
    /// An assumption about another level begins, in a trial.
    pub const ASSUME: u8 = 8;
    /// Diagonals are full, shown by multipliers.
    pub const FULL_BY_MULTIPLIERS: u8 = 9;
}

/// Prices in a tree, numbered by line or level: 6n lines, then the levels.
pub mod prices {
    /// Returns the marker before prices that only close squares: the second number after that of
    /// the last column.
    pub const fn mark(n: usize) -> usize {
        2 * n + 1
    }

    /// Returns the marker before prices that also fill diagonals: the number after that of the last
    /// diagonal.
    pub const fn filling_mark(n: usize) -> usize {
        in_tree(6 * n)
    }

    /// Returns the line numbers of a square (row · n + column, 0-based): row, column, diagonal,
    /// antidiagonal. Here diagonals have equal row + column, antidiagonals equal row − column.
    pub const fn lines(n: usize, square: usize) -> [usize; 4] {
        let (row, column) = (square / n, square % n);
        [row, n + column, 2 * n + row + column, 4 * n + row + n - 1 - column]
    }

    /// Returns the numbers of the diagonals and antidiagonals at a distance from the main ones, on
    /// both sides; at distance 0 each number occurs twice.
    pub const fn diagonals(n: usize, distance: usize) -> [usize; 4] {
        let [one, other] = [3 * n - 1, 5 * n - 1];
        [one - distance, one + distance, other - distance, other + distance]
    }

    /// Returns the number that encodes a diagonal in a tree: shifted past the hole and the marker
    /// of prices.
    pub const fn in_tree(diagonal: usize) -> usize {
        diagonal + 2
    }

    /// Returns the number of a level, where level 0 has the largest cost.
    pub const fn level(n: usize, level: usize) -> usize {
        6 * n + level
    }

    /// Returns the number of lines and levels.
    pub const fn count(n: usize, levels: usize) -> usize {
        level(n, levels)
    }
}

/// Writes the claim: the first bytes of a proof. `solution` is the 0-based column of the queen in
/// each row, or `None` if there is no solution. With `turning`, only solutions invariant under
/// quarter turns are considered.
pub fn claim(norm: Norm, turning: bool, solution: Option<&[usize]>) -> Writer {
    let mut writer = Writer::new();
    writer.byte(match norm {
        Norm::Euclidean => 0,
        Norm::Manhattan => 1,
        Norm::Chebyshev => 2,
    });
    writer.byte(turning.into());
    writer.byte(solution.is_some().into());
    for &column in solution.unwrap_or_default() {
        writer.size(column);
    }
    writer
}

fn refused(why: impl ToString) -> ProofError {
    ProofError::Refused(why.to_string())
}

/// Checks a proof for a board of size `n` within [`MOST_WORK`](super::MOST_WORK) steps.
///
/// # Errors
/// Returns an error if the proof cannot be read, proves nothing, or exceeds the step limit.
pub fn check(n: usize, proof: &[u8]) -> Result<Proved, ProofError> {
    check_within(n, proof, &mut Meter::default())
}

/// Checks a proof like [`check`], under this meter.
///
/// # Errors
/// Returns an error if the proof cannot be read or proves nothing, or if the meter ends the check.
pub fn check_within(n: usize, proof: &[u8], meter: &mut Meter<'_>) -> Result<Proved, ProofError> {
    if n > LARGEST {
        return Err(refused(format!("the board is larger than {LARGEST}")));
    }
    let before = meter.work();
    let mut reader = Reader::new(proof);
    let Claim { beauty, solution } = read_claim(n, &mut reader)?;
    let mut checker = Checker::new(n, beauty, solution.as_deref());
    // Under quarter turns queens come in fours, except for one in the centre.
    checker.refuted = beauty.turning && n % 4 > 1;
    while !checker.is_done() {
        checker.record(&mut reader, meter)?;
    }
    if !reader.is_empty() {
        return Err(ProofError::Damaged("there is more than a proof"));
    }
    Ok(Proved {
        kind: Kind::Beautiful,
        beauty: Some(beauty),
        n,
        solution,
        work: meter.work() - before,
    })
}

/// The result of checking the first records of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialProof {
    /// The norm and the set of solutions considered.
    pub beauty: Beauty,
    /// The 0-based column of the queen in each row.
    pub solution: Vec<usize>,
    /// The records.
    pub records: Vec<u8>,
    /// The current level, where 0 has the largest cost; all previous levels are complete.
    pub level: usize,
    /// The number of queens shown on it so far.
    pub shown: usize,
    /// The numbers of the eliminated squares, including those of levels without queens, but not
    /// those eliminated in the trial.
    pub dead: Vec<usize>,
    /// The distances of full diagonals, except those filled in the trial.
    pub full: Vec<usize>,
    /// The squares of each clique.
    pub cliques: Vec<Vec<usize>>,
    /// The trial that has not ended yet.
    pub trial: Option<Trial>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The least number of queens on the level that the trial is to show.
    pub least: usize,
    /// The squares eliminated in it.
    pub died: Vec<usize>,
    /// The distances of the diagonals filled in it.
    pub filled: Vec<usize>,
    /// The levels whose range was narrowed in it, each with the least and the greatest number of
    /// queens.
    pub ranges: Vec<(usize, usize, usize)>,
    /// The length in bytes of the records before it.
    pub begin: usize,
    /// The number of cliques before it.
    pub cliques: usize,
}

/// Checks the first records of a proof for a board of size `n`, up to the end of the bytes.
///
/// # Errors
/// Returns an error if they cannot be read, if one of them proves nothing, or if the check exceeds
/// [`MOST_WORK`](super::MOST_WORK) steps.
pub fn check_begun(n: usize, proof: &[u8]) -> Result<PartialProof, ProofError> {
    check_begun_within(n, proof, &mut Meter::default())
}

/// Checks the first records like [`check_begun`], under this meter.
///
/// # Errors
/// Returns an error if they cannot be read, if one of them proves nothing, or if the meter ends the
/// check.
pub fn check_begun_within(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
) -> Result<PartialProof, ProofError> {
    if n > LARGEST {
        return Err(refused(format!("the board is larger than {LARGEST}")));
    }
    let mut reader = Reader::new(proof);
    let Claim { beauty, solution } = read_claim(n, &mut reader)?;
    let solution = solution.ok_or_else(|| refused("it has no solution"))?;
    let mut checker = Checker::new(n, beauty, Some(&solution));
    let records = reader.rest();
    let mut trial = (0, 0);
    while !reader.is_empty() {
        if checker.is_done() {
            return Err(refused("records follow the last level"));
        }
        let before = (records.len() - reader.rest().len(), checker.cliques.len());
        let tried = !checker.open.is_empty();
        checker.record(&mut reader, meter)?;
        if !checker.open.is_empty() && !tried {
            trial = before;
        }
    }
    let Checker { level, shown, board, cliques, mut open, .. } = checker;
    let (begin, before) = trial;
    let mut full: Vec<usize> = (0..n).filter(|&distance| board.is_full(distance)).collect();
    let trial = open.pop().map(|Supposed { shows, died, filled, mut ranges }| {
        ranges.sort_unstable();
        ranges.dedup_by_key(|&mut (level, _)| level);
        let ranges = ranges
            .into_iter()
            .map(|(level, _)| (level, board.range[level].0, board.range[level].1));
        full.retain(|distance| !filled.contains(distance));
        Trial {
            least: shows.queens,
            died,
            filled,
            ranges: ranges.collect(),
            begin,
            cliques: before,
        }
    });
    if !open.is_empty() {
        return Err(refused("the records end in an assumption"));
    }
    let died = |square: &usize| trial.as_ref().is_some_and(|trial| trial.died.contains(square));
    let dead =
        (0..board.squares()).filter(|square| !board.open[*square] && !died(square)).collect();
    Ok(PartialProof {
        beauty,
        solution,
        records: records.to_vec(),
        level,
        shown,
        dead,
        full,
        cliques,
        trial,
    })
}

/// The statement that a proof claims.
struct Claim {
    beauty: Beauty,
    solution: Option<Vec<usize>>,
}

fn read_claim(n: usize, reader: &mut Reader<'_>) -> Result<Claim, ProofError> {
    let norm = match reader.byte()? {
        0 => Norm::Euclidean,
        1 => Norm::Manhattan,
        2 => Norm::Chebyshev,
        _ => return Err(ProofError::Damaged("it names an unknown norm")),
    };
    let turning = flag(reader)?;
    let solution = if flag(reader)? {
        let columns: Vec<usize> = (0..n).map(|_| reader.size(n)).collect::<Result<_, _>>()?;
        Placement::check_solution(&Problem::empty(Piece::Queen, n), &columns).map_err(refused)?;
        if turning && (0..n).any(|row| columns[columns[row]] != n - 1 - row) {
            return Err(refused("the solution changes under quarter turns"));
        }
        Some(columns)
    } else if n == 0 {
        return Err(refused("no queens on no board are a solution"));
    } else {
        None
    };
    Ok(Claim { beauty: Beauty { norm, turning }, solution })
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, ProofError> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ProofError::Damaged("a flag is neither 0 nor 1")),
    }
}

/// The bound on a level that a refutation establishes.
#[derive(Clone, Copy)]
struct Shows {
    level: usize,
    /// The level has at least this number of queens if `at_least` is set, otherwise fewer.
    queens: usize,
    at_least: bool,
}

/// A supposition that is to be refuted: a trial or an assumption.
struct Supposed {
    shows: Shows,
    /// The squares eliminated in it.
    died: Vec<usize>,
    /// The distances of the diagonals filled in it.
    filled: Vec<usize>,
    /// The levels whose range changed in it, each with the previous range, in order of change.
    ranges: Vec<(usize, (usize, usize))>,
}

struct Checker {
    /// The number of queens of S on each level; `None` if there is no solution.
    claimed: Option<Vec<usize>>,
    /// The current level, and the number of queens shown on it so far.
    level: usize,
    shown: usize,
    /// The number of queens on the previous levels.
    passed: usize,
    /// The trial, if one has begun, followed by its nested assumptions.
    open: Vec<Supposed>,
    cliques: Vec<Vec<usize>>,
    /// The number of squares in all cliques, plus 4 for each clique.
    in_cliques: usize,
    board: Board,
    refuted: bool,
}

impl Checker {
    fn new(n: usize, beauty: Beauty, solution: Option<&[usize]>) -> Self {
        let board = Board::new(n, beauty.norm, beauty.turning);
        let claimed = solution.map(|columns| {
            let mut claimed = vec![0; board.levels.len()];
            for (row, column) in columns.iter().enumerate() {
                claimed[board.level_of(row * n + column)] += 1;
            }
            claimed
        });
        Self {
            claimed,
            level: 0,
            shown: 0,
            passed: 0,
            open: Vec::new(),
            cliques: Vec::new(),
            in_cliques: 0,
            board,
            refuted: false,
        }
    }

    fn is_done(&self) -> bool {
        if self.claimed.is_some() { self.passed == self.board.n } else { self.refuted }
    }

    /// Passes to the next level. This one was shown to have as many queens as in S.
    fn next(&mut self) -> Result<(), ProofError> {
        let claimed = self.claimed.as_ref().and_then(|claimed| claimed.get(self.level));
        if !self.open.is_empty() || claimed != Some(&self.shown) {
            return Err(refused("a level is passed before it is done"));
        }
        self.board.range[self.level] = (self.shown, self.shown);
        if self.shown == 0 {
            for square in self.board.levels[self.level].clone() {
                self.board.close_for_good(square);
            }
        }
        self.passed += self.shown;
        self.level += 1;
        self.shown = 0;
        Ok(())
    }

    fn record(&mut self, reader: &mut Reader<'_>, meter: &mut Meter<'_>) -> Result<(), ProofError> {
        self.board.spend(100);
        let done = self.record_itself(reader, meter);
        // The work counts even if the record is refused.
        self.board.report(meter).and(done)
    }

    fn record_itself(
        &mut self,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(), ProofError> {
        match reader.byte()? {
            record::AT_LEAST => self.begin(reader.size(self.board.n)?),
            record::REFUTED => {
                self.board.search(None, reader, meter)?;
                self.refute()
            }
            record::ELIMINATED => {
                let square = self.square(reader)?;
                self.board.search(Some(square), reader, meter)?;
                self.kill(square)
            }
            record::REFUTED_BY_MULTIPLIERS => {
                let (base, ..) = self.multipliers(reader, meter)?;
                if base <= 0 {
                    return Err(refused("multipliers leave solutions"));
                }
                self.refute()
            }
            record::KILLED_BY_MULTIPLIERS => {
                let (base, rest, _) = self.multipliers(reader, meter)?;
                let mut dead = Vec::new();
                for _ in 0..reader.size(self.board.squares())? {
                    let square = self.square(reader)?;
                    let with_queen = base.checked_add(rest[self.board.first_of[square]]);
                    if with_queen.is_none_or(|sum| sum <= 0) {
                        return Err(refused("multipliers leave an orbit alive"));
                    }
                    dead.push(square);
                }
                if dead.is_empty() {
                    return Err(refused("multipliers are there for nothing"));
                }
                dead.into_iter().try_for_each(|square| self.kill(square))
            }
            record::FULL_BY_MULTIPLIERS => {
                let (base, _, of_diagonal) = self.multipliers(reader, meter)?;
                let count = reader.size(self.board.n)?;
                for _ in 0..count {
                    let distance = reader.size(self.board.n - 1)?;
                    let with_one_empty = base.checked_sub(of_diagonal[distance]);
                    if with_one_empty.is_none_or(|sum| sum <= 0) {
                        return Err(refused("multipliers leave a diagonal empty"));
                    }
                    self.fill(distance)?;
                }
                if count == 0 { Err(refused("multipliers are there for nothing")) } else { Ok(()) }
            }
            record::CLIQUE => self.clique(reader),
            record::NEXT => self.next(),
            record::ASSUME => {
                let level = reader.size(self.board.levels.len().saturating_sub(1))?;
                let at_least = !flag(reader)?;
                self.assume(Shows { level, at_least, queens: reader.size(self.board.n)? })
            }
            other => Err(ProofError::UnknownStep(other.into())),
        }
    }

    fn square(&self, reader: &mut Reader<'_>) -> Result<usize, ProofError> {
        reader.size(self.board.squares().saturating_sub(1))
    }

    fn begin(&mut self, least: usize) -> Result<(), ProofError> {
        let claimed = self
            .claimed
            .as_ref()
            .ok_or_else(|| refused("there are no levels without a solution"))?;
        if !self.open.is_empty() || least <= self.shown || least > claimed[self.level] {
            return Err(refused("a trial begins that shows nothing"));
        }
        // Under quarter turns queens come in fours, except for one in the centre, which has its own
        // level.
        let step =
            if self.board.turning && self.board.levels[self.level].len() > 1 { 4 } else { 1 };
        self.board.range[self.level] = (self.shown, (least - 1) / step * step);
        let shows = Shows { level: self.level, queens: least, at_least: true };
        self.suppose(shows);
        Ok(())
    }

    fn suppose(&mut self, shows: Shows) {
        self.open.push(Supposed {
            shows,
            died: Vec::new(),
            filled: Vec::new(),
            ranges: Vec::new(),
        });
    }

    /// Begins an assumption: the contrary of what is to be shown of a level after the current one.
    fn assume(&mut self, shows: Shows) -> Result<(), ProofError> {
        let Shows { level, queens, at_least } = shows;
        if self.open.is_empty() || level <= self.level || queens == 0 {
            return Err(refused("an assumption is out of place"));
        }
        if self.open.len() == MOST_OPEN {
            return Err(ProofError::Damaged("too many assumptions are within each other"));
        }
        let (least, most) = self.board.range[level];
        self.suppose(shows);
        self.limit(
            level,
            if at_least { (least, most.min(queens - 1)) } else { (least.max(queens), most) },
        );
        Ok(())
    }

    /// Narrows the range of a level, within the innermost supposition.
    fn limit(&mut self, level: usize, range: (usize, usize)) {
        let before = std::mem::replace(&mut self.board.range[level], range);
        if let Some(supposed) = self.open.last_mut() {
            supposed.ranges.push((level, before));
        }
    }

    /// Ends the innermost supposition: none of the solutions in question exists.
    fn refute(&mut self) -> Result<(), ProofError> {
        let Some(Supposed { shows, died, filled, ranges }) = self.open.pop() else {
            if self.claimed.is_none() {
                self.refuted = true;
                return Ok(());
            }
            return Err(refused("it rules out the solution itself"));
        };
        for square in died {
            self.board.open_again(square);
        }
        for distance in filled {
            self.board.set_full(distance, false);
        }
        for (level, range) in ranges.into_iter().rev() {
            self.board.range[level] = range;
        }
        let Shows { level, queens, at_least } = shows;
        if self.open.is_empty() {
            self.shown = queens;
            self.board.range[level] = (queens, self.board.n);
        } else {
            let (least, most) = self.board.range[level];
            self.limit(
                level,
                if at_least { (least.max(queens), most) } else { (least, most.min(queens - 1)) },
            );
        }
        Ok(())
    }

    /// Eliminates the orbit of `square`.
    fn kill(&mut self, square: usize) -> Result<(), ProofError> {
        if !self.board.open[square] {
            return Err(refused("an orbit dies twice"));
        }
        for square in self.board.orbit(square) {
            self.board.close_for_good(square);
            if let Some(supposed) = self.open.last_mut() {
                supposed.died.push(square);
            }
        }
        Ok(())
    }

    /// Marks the diagonals at a distance from the main ones as full.
    fn fill(&mut self, distance: usize) -> Result<(), ProofError> {
        if self.board.is_full(distance) || self.board.turning {
            return Err(refused("diagonals are filled that need not or cannot be"));
        }
        self.board.set_full(distance, true);
        if let Some(supposed) = self.open.last_mut() {
            supposed.filled.push(distance);
        }
        Ok(())
    }

    fn clique(&mut self, reader: &mut Reader<'_>) -> Result<(), ProofError> {
        let n = self.board.n;
        let mut squares: Vec<usize> = Vec::new();
        for _ in 0..reader.size(2 * n)? {
            let square = self.square(reader)?;
            let at = |square: usize| Square::new(square / n, square % n);
            let attacked = |&other: &usize| Piece::Queen.attacks(n, at(other), at(square));
            if squares.contains(&square) || !squares.iter().all(attacked) {
                return Err(refused("the squares of a clique do not attack each other"));
            }
            squares.push(square);
            self.board.spend(20 + 10 * squares.len());
        }
        // An empty clique takes memory as well.
        self.in_cliques += squares.len() + 4;
        if self.in_cliques > MOST_IN_CLIQUES {
            return Err(ProofError::Damaged("it has too many cliques"));
        }
        self.cliques.push(squares);
        Ok(())
    }

    /// Reads multipliers. Returns base, r of each orbit at its first square, and y of the diagonals
    /// at each distance.
    fn multipliers(
        &self,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(i128, Vec<i128>, Vec<i128>), ProofError> {
        // About an eighth of the squares are first squares, for which the orbit is computed.
        meter.add(20 * self.board.squares() as u64)?;
        let board = &self.board;
        let n = board.n;
        let (ranks, levels) = (n.div_ceil(2), board.levels.len());
        let overflow = || refused("multipliers are too large");
        let mut of_rank = vec![0i128; ranks];
        let mut of_diagonal = vec![0i128; n];
        let mut of_level = vec![0i128; levels];
        let mut base = 0i128;
        let mut rest = vec![0i128; board.squares()];
        for _ in 0..reader.size(ranks + n + levels + self.cliques.len())? {
            let number = reader.size(ranks + n + levels + self.cliques.len())?;
            meter.add(20)?;
            let y = i128::from(reader.signed()?);
            let (bound, only_upper) = if number < ranks {
                of_rank[number] += y;
                (if 2 * number + 1 == n { 2 } else { 4 }, false)
            } else if number < ranks + n {
                of_diagonal[number - ranks] += y;
                (if number == ranks { 2 } else { 4 }, true)
            } else if number < ranks + n + levels {
                let level = number - ranks - n;
                of_level[level] += y;
                (if y > 0 { board.range[level].0 } else { board.range[level].1 }, false)
            } else {
                let clique = self.cliques.get(number - ranks - n - levels);
                let clique = clique.ok_or_else(|| refused("multipliers name an unknown clique"))?;
                meter.add(100 * clique.len() as u64)?;
                for &square in clique {
                    let first = board.first_of[square];
                    let share = y
                        .checked_mul((8 / board.orbit(square).len()) as i128)
                        .ok_or_else(overflow)?;
                    rest[first] = rest[first].checked_sub(share).ok_or_else(overflow)?;
                }
                (8, true)
            };
            if only_upper && y > 0 {
                return Err(refused("a multiplier has the wrong sign"));
            }
            let term = y.checked_mul(bound as i128).ok_or_else(overflow)?;
            base = base.checked_add(term).ok_or_else(overflow)?;
        }
        for first in (0..board.squares()).filter(|&square| board.first_of[square] == square) {
            if !board.open[first] {
                continue;
            }
            let (row, column) = (first / n, first % n);
            let r = [
                of_rank[row.min(n - 1 - row)],
                of_rank[column.min(n - 1 - column)],
                of_diagonal[row.abs_diff(column)],
                of_diagonal[(row + column).abs_diff(n - 1)],
                of_level[board.level_of(first)],
            ];
            let r = r.into_iter().try_fold(rest[first], i128::checked_sub).ok_or_else(overflow)?;
            rest[first] = r;
            let most = if board.orbit(first).len() == 8 { 4 } else { 1 };
            let term = r.min(0).checked_mul(most).ok_or_else(overflow)?;
            base = base.checked_add(term).ok_or_else(overflow)?;
        }
        Ok((base, rest, of_diagonal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a record with these numbered multipliers, followed by these numbers.
    fn by_multipliers(record: u8, multipliers: &[(usize, i64)], behind: &[usize]) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.byte(record);
        writer.size(multipliers.len());
        for &(number, y) in multipliers {
            writer.size(number);
            writer.signed(y);
        }
        behind.iter().for_each(|&number| writer.size(number));
        writer.finish()
    }

    #[test]
    fn diagonals_are_full_only_where_multipliers_prove_it_and_as_long_as_that_holds() {
        let n = 4;
        // Its queens stand on the squares next to the corners. Numbers: two distances from the
        // border, four of diagonals.
        let checker = || Checker::new(n, Beauty::default(), Some(&[1, 3, 0, 2]));
        let enter = |checker: &mut Checker, record: &[u8]| {
            checker.record(&mut Reader::new(record), &mut Meter::default())
        };
        // Every square outside the corners is next to one or in the middle; both kinds are on
        // diagonals at distance 1.
        let beside = [(0, 1), (1, 1), (3, -2)];
        let fills =
            |distances: &[usize]| by_multipliers(record::FULL_BY_MULTIPLIERS, &beside, distances);
        let empty = Err(refused("multipliers leave a diagonal empty"));
        // With the corners open this is just not enough.
        assert_eq!(enter(&mut checker(), &fills(&[1, 1])), empty);
        let mut board = checker();
        enter(&mut board, &[record::NEXT]).expect("no queens in the corners");
        for (distances, of) in [
            (vec![1, 2], &beside),
            (vec![1, 0], &beside),
            (vec![1, 1], &[(0, 1), (1, 1), (3, -4)]),
            (vec![1, 1], &[(0, 1), (1, 2), (3, -2)]),
        ] {
            let record = by_multipliers(record::FULL_BY_MULTIPLIERS, of, &distances);
            assert_eq!(enter(&mut board, &record), empty, "{distances:?} {of:?}");
        }
        let nothing = Err(refused("multipliers are there for nothing"));
        assert_eq!(enter(&mut board, &fills(&[0])), nothing);
        // In a trial the result holds until the trial ends, ...
        let too_few =
            by_multipliers(record::REFUTED_BY_MULTIPLIERS, &[(0, 1), (2 + n + 1, -1)], &[]);
        enter(&mut board, &[record::AT_LEAST, 4]).expect("a trial");
        enter(&mut board, &fills(&[1, 1])).expect("it is proved");
        assert!(board.board.is_full(1) && !board.board.is_full(2));
        enter(&mut board, &too_few).expect("three are not enough");
        assert!(!board.board.is_full(1));
        // ... outside a trial it holds for good, and is shown only once.
        enter(&mut board, &fills(&[1, 1])).expect("it is proved");
        assert!(board.board.is_full(1));
        assert_eq!(
            enter(&mut board, &fills(&[1, 1])),
            Err(refused("diagonals are filled that need not or cannot be"))
        );
        let turning = Beauty { turning: true, ..Beauty::default() };
        let mut turned = Checker::new(n, turning, Some(&[1, 3, 0, 2]));
        enter(&mut turned, &[record::NEXT]).expect("no queens in the corners");
        assert!(enter(&mut turned, &fills(&[1, 1])).is_err(), "its queens come in fours");
    }

    #[test]
    fn what_a_certificate_may_keep_is_bounded_and_unknown_records_are_told_from_false_ones() {
        let n = 4;
        let turning = Beauty::default();
        let mut checker = Checker::new(n, turning, Some(&[1, 3, 0, 2]));
        let mut enter =
            |record: &[u8]| checker.record(&mut Reader::new(record), &mut Meter::new(None));
        for unknown in [0, 10, 255] {
            assert_eq!(enter(&[unknown]), Err(ProofError::UnknownStep(unknown.into())));
        }
        enter(&[record::NEXT]).expect("no queens in the corners");
        enter(&[record::AT_LEAST, 4]).expect("a trial");
        // Nested assumptions that are never refuted.
        let ended = (0..2 * MOST_OPEN).find_map(|_| enter(&[record::ASSUME, 2, 0, 1]).err());
        assert!(matches!(ended, Some(ProofError::Damaged(_))), "{ended:?}");
        checker.in_cliques = MOST_IN_CLIQUES - 4;
        assert_eq!(
            checker.record(&mut Reader::new(&[record::CLIQUE, 0]), &mut Meter::default()),
            Ok(())
        );
        let more = checker.record(&mut Reader::new(&[record::CLIQUE, 0]), &mut Meter::default());
        assert!(matches!(more, Err(ProofError::Damaged(_))), "{more:?}");
    }
}
