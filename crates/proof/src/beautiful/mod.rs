//! Certificates that a solution is most beautiful: no solution has a smaller fingerprint.
//!
//! # The argument
//! Suppose that another solution T has a smaller fingerprint than the given one, S. Let levels be the squares of equal
//! cost, the largest first. Then there is a first level on which T and S have different numbers of queens, and there T has
//! fewer. So it is enough to show, level by level: a solution with as many queens as S on all levels before has at
//! least as many as S on this one. The certificate does that in *records*, which rule out solutions of the set in
//! question: those with as many queens as S on the levels before, and in a *trial* with fewer on this level than what
//! is to be shown.
//!
//! No symmetry of the square changes such a set. So if no solution of it has a queen on one square of an *orbit*, none
//! has a queen on any square of that orbit: the orbit is *dead*. Diagonals that have a queen in each solution of it, which is
//! shown for all at one distance from the main ones together, are *full*.
//!
//! # The records
//! Numbers are those of [`super::bytes`]; squares are row · n + column, from 0.
//!
//! | record | what follows | what is checked |
//! |---|---|---|
//! | 1 | v | a trial begins: the solutions with at most v − 1 queens on this level. The next refutation ends it, what died in it lives again, diagonals that it filled may be empty again, and the level has at least v |
//! | 2 | tree | no solution is left: by a search |
//! | 3 | square, tree | its orbit is dead: by a search with a queen on it |
//! | 4 | multipliers | no solution is left: base > 0 |
//! | 5 | multipliers, count, squares | their orbits are dead: base + r(o) > 0 |
//! | 6 | count, squares | they attack each other: a clique, which multipliers may name |
//! | 7 | | as many queens as S has were shown on this level (if it has none, there is nothing to show): the next one comes |
//! | 8 | level, side, v | in a trial, an assumption begins: another level, counted from 0, has at most v − 1 queens (side 0), or at least v (side 1). The next refutation ends it, what died in it lives again, what it showed of levels and diagonals is forgotten, and the level has at least v, or at most v − 1 |
//! | 9 | multipliers, count, distances | the diagonals at these distances are full: base − y(d) > 0; not where solutions turn |
//!
//! All is proved when the levels that were passed hold n queens.
//! If there is no solution at all, there are no levels: one refutation is all that is asked for; and none where
//! solutions that do not change under quarter turns are asked for and n is not 0 or 1 modulo 4, since queens then come
//! in fours, but for one in the centre.
//!
//! **Search.** Queens are placed one by one, and what follows is followed: an attacked square is closed; a row or column
//! with one open square gets its queen there, and with none is a contradiction; so is a level with more or fewer queens
//! than it can have; a level that has all its queens is closed, and one that needs all its open squares gets them; and with a full
//! diagonal it is as with rows and columns. If no contradiction comes of it, the tree names a row (0 to n − 1), a column (n to
//! 2n − 1) or a full diagonal ([`prices::in_tree`]) without a queen; each of its open squares in ascending order is tried, and has
//! its own tree.
//!
//! Instead, the tree may have [`prices`]: the number 2n + 1, a count, and for each price what it is on and the price. Let
//! the price of an open square be the sum of those on its column, its diagonals and its level; those on diagonals that are not full
//! are not negative. All queens that are still
//! to come pay together at most the prices of all columns and diagonals that have an open square, and for each level its price as
//! often as it can still have a queen (if it is negative: as often as it must). They pay at least what the cheapest
//! open squares of all rows cost. If that is more, it is a contradiction. If not, each square that costs more
//! above the cheapest of its row than lies between is closed, what follows is followed, and if no contradiction comes of it
//! another tree goes on.
//!
//! **Multipliers.** For the number q(o) of queens of a solution on orbit o, from 0 to most(o), and a(o), how often
//! each of them is met:
//! rows and columns at one distance from the border are met 4 times in all (2 if they are the middle ones); diagonals at
//! one distance from the main ones at most 4 times (2 if they are the main ones); a level as often as is known; the 8
//! images of a clique at most 8 times. For multipliers y, any for equations, at most 0 for upper bounds, and r = −yA:
//! base = Σ y·b + Σ min(0, r)·most ≤ Σ y·(Aq) + Σ r·q = 0 for a solution. With a queen on o even base + r(o) ≤ 0 if
//! r(o) > 0; and base − y(d) ≤ 0 if one of the diagonals at distance d is empty, since b(d) is one less then. They are numbered: ⌈n/2⌉ distances from the border, n from the main diagonals, levels, cliques.

mod board;
mod part;

use board::Board;

use super::bytes::{Reader, Writer};
use super::{Beauty, Kind, Meter, ProofError, Proved};
use crate::board::{Norm, Piece, Placement, Problem, Square};

pub use part::{Checked, Part, PartChecker, Premises};

/// Larger boards are refused.
pub const LARGEST: usize = 512;

/// More assumptions within each other are refused.
const MOST_OPEN: usize = 10_000;

/// As many squares are in all cliques together, at most: each takes room as long as the check goes on.
const MOST_IN_CLIQUES: usize = 1 << 26;

/// The first byte of each record.
pub mod record {
    /// A trial begins.
    pub const AT_LEAST: u8 = 1;
    /// No solution is left, by a search.
    pub const REFUTED: u8 = 2;
    /// An orbit is dead, by a search.
    pub const KILLED: u8 = 3;
    /// No solution is left, by multipliers.
    pub const REFUTED_BY_MULTIPLIERS: u8 = 4;
    /// Orbits are dead, by multipliers.
    pub const KILLED_BY_MULTIPLIERS: u8 = 5;
    /// A clique.
    pub const CLIQUE: u8 = 6;
    /// The next level.
    pub const NEXT: u8 = 7;
    /// In a trial, an assumption about another level begins.
    pub const ASSUME: u8 = 8;
    /// Diagonals are full, by multipliers.
    pub const FULL_BY_MULTIPLIERS: u8 = 9;
}

/// Prices in a tree, and what they are on, by number: 6n lines, then the levels.
pub mod prices {
    /// What stands in a tree before prices that only close squares: the second number behind that of the last column.
    pub const fn mark(n: usize) -> usize {
        2 * n + 1
    }

    /// What stands in a tree before prices that also fill diagonals: the number behind that of the last diagonal.
    pub const fn filling_mark(n: usize) -> usize {
        in_tree(6 * n)
    }

    /// The numbers of the lines of a square (row · n + column, from 0): row, column, diagonal, antidiagonal.
    pub const fn lines(n: usize, square: usize) -> [usize; 4] {
        let (row, column) = (square / n, square % n);
        [row, n + column, 2 * n + row + column, 4 * n + row + n - 1 - column]
    }

    /// The numbers of the diagonals and antidiagonals at a distance from the main ones, in both directions: those at distance
    /// 0 come twice.
    pub const fn diagonals(n: usize, distance: usize) -> [usize; 4] {
        let [one, other] = [3 * n - 1, 5 * n - 1];
        [one - distance, one + distance, other - distance, other + distance]
    }

    /// What stands in a tree for a diagonal, by its number: hole and prices come before.
    pub const fn in_tree(diagonal: usize) -> usize {
        diagonal + 2
    }

    /// The number of a level, counted from 0 at the largest cost.
    pub const fn level(n: usize, level: usize) -> usize {
        6 * n + level
    }

    /// How many numbers there are.
    pub const fn count(n: usize, levels: usize) -> usize {
        level(n, levels)
    }
}

/// What is claimed: the first bytes of a proof. `solution` is the 0-based column of the queen in each row, or none if
/// there is no solution; `turning`: among those solutions only that do not change under quarter turns.
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

/// Checks the proof for a board of size `n`, with at most [`MOST_WORK`](super::MOST_WORK) steps.
///
/// # Errors
/// It cannot be read, or proves nothing, or that takes too long.
pub fn check(n: usize, proof: &[u8]) -> Result<Proved, ProofError> {
    check_within(n, proof, &mut Meter::default())
}

/// The same under this meter.
///
/// # Errors
/// It cannot be read, or proves nothing, or the meter ends the check.
pub fn check_within(n: usize, proof: &[u8], meter: &mut Meter<'_>) -> Result<Proved, ProofError> {
    if n > LARGEST {
        return Err(refused(format!("the board is larger than {LARGEST}")));
    }
    let before = meter.work();
    let mut reader = Reader::new(proof);
    let Claim { beauty, solution } = read_claim(n, &mut reader)?;
    let mut checker = Checker::new(n, beauty, solution.as_deref());
    // Under quarter turns queens come in fours, but for one in the centre.
    checker.refuted = beauty.turning && n % 4 > 1;
    while !checker.is_done() {
        checker.record(&mut reader, meter)?;
    }
    if !reader.is_empty() {
        return Err(ProofError::Damaged("there is more than a proof"));
    }
    Ok(Proved { kind: Kind::Beautiful, beauty: Some(beauty), n, solution, work: meter.work() - before })
}

/// What the first records of a proof have shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialProof {
    /// Which beauty.
    pub beauty: Beauty,
    /// The 0-based column of the queen in each row.
    pub solution: Vec<usize>,
    /// The records.
    pub records: Vec<u8>,
    /// The level in hand, counted from 0 at the largest cost; those before are done.
    pub level: usize,
    /// So many queens were shown on it.
    pub shown: usize,
    /// The dead squares, also those of levels without queens, by number; not those that died in the trial.
    pub dead: Vec<usize>,
    /// The distances of full diagonals, but for those that were filled in the trial.
    pub full: Vec<usize>,
    /// Each with its squares.
    pub cliques: Vec<Vec<usize>>,
    /// The trial that has begun and has not ended.
    pub trial: Option<Trial>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The level is to have so many queens at least.
    pub least: usize,
    /// The squares that died in it.
    pub died: Vec<usize>,
    /// The distances of the diagonals that were filled in it.
    pub filled: Vec<usize>,
    /// Levels of which it was shown in it how many queens they have, with the least and the greatest number.
    pub ranges: Vec<(usize, usize, usize)>,
    /// Bytes of the records before it.
    pub begin: usize,
    /// Cliques before it.
    pub cliques: usize,
}

/// Checks the first records of a proof for a board of size `n`, all that are there.
///
/// # Errors
/// They cannot be read, or one of them proves nothing, or that takes more than [`MOST_WORK`](super::MOST_WORK) steps.
pub fn check_begun(n: usize, proof: &[u8]) -> Result<PartialProof, ProofError> {
    check_begun_within(n, proof, &mut Meter::default())
}

/// The same under this meter.
///
/// # Errors
/// They cannot be read, or one of them proves nothing, or the meter ends the check.
pub fn check_begun_within(n: usize, proof: &[u8], meter: &mut Meter<'_>) -> Result<PartialProof, ProofError> {
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
        let ranges = ranges.into_iter().map(|(level, _)| (level, board.range[level].0, board.range[level].1));
        full.retain(|distance| !filled.contains(distance));
        Trial { least: shows.queens, died, filled, ranges: ranges.collect(), begin, cliques: before }
    });
    if !open.is_empty() {
        return Err(refused("the records end in an assumption"));
    }
    let died = |square: &usize| trial.as_ref().is_some_and(|trial| trial.died.contains(square));
    let dead = (0..board.squares()).filter(|square| !board.open[*square] && !died(square)).collect();
    Ok(PartialProof { beauty, solution, records: records.to_vec(), level, shown, dead, full, cliques, trial })
}

/// What is claimed.
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

/// What a refutation shows of a level.
#[derive(Clone, Copy)]
struct Shows {
    level: usize,
    /// At least this number, or that there are not so many.
    queens: usize,
    at_least: bool,
}

/// What was supposed and is to be refuted.
struct Supposed {
    shows: Shows,
    /// The squares that died in it.
    died: Vec<usize>,
    /// The distances of the diagonals that were filled in it.
    filled: Vec<usize>,
    /// The levels whose range changed in it, with what it was before, in order.
    ranges: Vec<(usize, (usize, usize))>,
}

struct Checker {
    /// How many queens S has on each level; none if there is no solution.
    claimed: Option<Vec<usize>>,
    /// The level in hand, and how many queens were shown on it.
    level: usize,
    shown: usize,
    /// Queens on the levels before.
    passed: usize,
    /// The trial, if one has begun, and the assumptions in it; each within those before.
    open: Vec<Supposed>,
    cliques: Vec<Vec<usize>>,
    /// Squares of all cliques, and some for each.
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

    /// Passes a level on which as many queens were shown as S has.
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
        // Whatever else is to be said, what was done counts.
        self.board.report(meter).and(done)
    }

    fn record_itself(&mut self, reader: &mut Reader<'_>, meter: &mut Meter<'_>) -> Result<(), ProofError> {
        match reader.byte()? {
            record::AT_LEAST => self.begin(reader.size(self.board.n)?),
            record::REFUTED => {
                self.board.search(None, reader, meter)?;
                self.refute()
            }
            record::KILLED => {
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
        let claimed =
            self.claimed.as_ref().ok_or_else(|| refused("there are no levels without a solution"))?;
        if !self.open.is_empty() || least <= self.shown || least > claimed[self.level] {
            return Err(refused("a trial begins that shows nothing"));
        }
        // Under quarter turns queens come in fours, but for one in the centre, which has a level of its own.
        let step = if self.board.turning && self.board.levels[self.level].len() > 1 { 4 } else { 1 };
        self.board.range[self.level] = (self.shown, (least - 1) / step * step);
        let shows = Shows { level: self.level, queens: least, at_least: true };
        self.suppose(shows);
        Ok(())
    }

    fn suppose(&mut self, shows: Shows) {
        self.open.push(Supposed { shows, died: Vec::new(), filled: Vec::new(), ranges: Vec::new() });
    }

    /// Supposes the contrary of what is to be shown of a level that is not in hand.
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
        self.limit(level, if at_least { (least, most.min(queens - 1)) } else { (least.max(queens), most) });
        Ok(())
    }

    /// Notes how many queens a level has, within what is supposed.
    fn limit(&mut self, level: usize, range: (usize, usize)) {
        let before = std::mem::replace(&mut self.board.range[level], range);
        if let Some(supposed) = self.open.last_mut() {
            supposed.ranges.push((level, before));
        }
    }

    /// The solutions in question do not exist.
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

    /// The orbit of `square` is dead.
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

    /// The diagonals at a distance from the main ones have a queen each.
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
        // One without squares takes room as well.
        self.in_cliques += squares.len() + 4;
        if self.in_cliques > MOST_IN_CLIQUES {
            return Err(ProofError::Damaged("it has too many cliques"));
        }
        self.cliques.push(squares);
        Ok(())
    }

    /// Reads multipliers: base, r of each orbit at its first square, and y of the diagonals at each distance.
    fn multipliers(
        &self,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(i128, Vec<i128>, Vec<i128>), ProofError> {
        // An eighth of the squares or some more is asked for its orbit.
        meter.add(20 * self.board.squares() as u64)?;
        let board = &self.board;
        let n = board.n;
        let (ranks, levels) = (n.div_ceil(2), board.levels.len());
        let wild = || refused("multipliers are too large");
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
                    let share = y.checked_mul((8 / board.orbit(square).len()) as i128).ok_or_else(wild)?;
                    rest[first] = rest[first].checked_sub(share).ok_or_else(wild)?;
                }
                (8, true)
            };
            if only_upper && y > 0 {
                return Err(refused("a multiplier has the wrong sign"));
            }
            let term = y.checked_mul(bound as i128).ok_or_else(wild)?;
            base = base.checked_add(term).ok_or_else(wild)?;
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
            let r = r.into_iter().try_fold(rest[first], i128::checked_sub).ok_or_else(wild)?;
            rest[first] = r;
            let most = if board.orbit(first).len() == 8 { 4 } else { 1 };
            let term = r.min(0).checked_mul(most).ok_or_else(wild)?;
            base = base.checked_add(term).ok_or_else(wild)?;
        }
        Ok((base, rest, of_diagonal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with these multipliers, by number, and these numbers behind them.
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
        // Its queens are on the squares beside the corners. Numbers: two distances from the border, four of diagonals.
        let checker = || Checker::new(n, Beauty::default(), Some(&[1, 3, 0, 2]));
        let enter = |checker: &mut Checker, record: &[u8]| {
            checker.record(&mut Reader::new(record), &mut Meter::default())
        };
        // What is not in the corners is beside them or in the middle: both are on diagonals at distance 1.
        let beside = [(0, 1), (1, 1), (3, -2)];
        let fills = |distances: &[usize]| by_multipliers(record::FULL_BY_MULTIPLIERS, &beside, distances);
        let empty = Err(refused("multipliers leave a diagonal empty"));
        // With a corner that is just not enough.
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
        // In a trial it holds as long as that, ...
        let too_few = by_multipliers(record::REFUTED_BY_MULTIPLIERS, &[(0, 1), (2 + n + 1, -1)], &[]);
        enter(&mut board, &[record::AT_LEAST, 4]).expect("a trial");
        enter(&mut board, &fills(&[1, 1])).expect("it is proved");
        assert!(board.board.is_full(1) && !board.board.is_full(2));
        enter(&mut board, &too_few).expect("three are not enough");
        assert!(!board.board.is_full(1));
        // ... and then for good, once.
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
        let mut enter = |record: &[u8]| checker.record(&mut Reader::new(record), &mut Meter::new(None));
        for unknown in [0, 10, 255] {
            assert_eq!(enter(&[unknown]), Err(ProofError::UnknownStep(unknown.into())));
        }
        enter(&[record::NEXT]).expect("no queens in the corners");
        enter(&[record::AT_LEAST, 4]).expect("a trial");
        // Assumptions that are never refuted, one within the other.
        let ended = (0..2 * MOST_OPEN).find_map(|_| enter(&[record::ASSUME, 2, 0, 1]).err());
        assert!(matches!(ended, Some(ProofError::Damaged(_))), "{ended:?}");
        checker.in_cliques = MOST_IN_CLIQUES - 4;
        assert_eq!(checker.record(&mut Reader::new(&[record::CLIQUE, 0]), &mut Meter::default()), Ok(()));
        let more = checker.record(&mut Reader::new(&[record::CLIQUE, 0]), &mut Meter::default());
        assert!(matches!(more, Err(ProofError::Damaged(_))), "{more:?}");
    }
}
