//! The checker of records.

use super::board::Board;
use super::claim::flag;
use super::observer::{LevelBound, Observer};
use super::{record, refused};
use crate::board::{Piece, Square};
use crate::bytes::Reader;
use crate::{Beauty, Meter, ProofError};

/// The largest number of nested suppositions that is accepted: a trial and its assumptions.
const MOST_SUPPOSITIONS: usize = 10_000;

/// The largest number of squares in all cliques together, which bounds the checker's memory.
const MOST_IN_CLIQUES: usize = 1 << 26;

/// A supposition that is to be refuted: a trial or an assumption.
pub(super) struct Supposition {
    pub(super) bound: LevelBound,
    /// The squares eliminated in it.
    pub(super) eliminated: Vec<usize>,
    /// The distances of the diagonals filled in it.
    pub(super) filled: Vec<usize>,
    /// The levels whose range changed in it, each with the previous range, in order of change.
    pub(super) ranges: Vec<(usize, (usize, usize))>,
}

/// A checker that applies one record after the other to a board.
pub(super) struct Checker {
    /// The number of queens of S on each level; `None` if there is no solution.
    claimed: Option<Vec<usize>>,
    /// The current level, and the number of queens shown on it so far.
    pub(super) level: usize,
    pub(super) shown: usize,
    /// The number of queens on the previous levels.
    passed: usize,
    /// The trial, if one has begun, followed by its nested assumptions.
    pub(super) suppositions: Vec<Supposition>,
    pub(super) cliques: Vec<Vec<usize>>,
    /// The number of squares in all cliques, plus 4 for each clique.
    clique_memory: usize,
    pub(super) board: Board,
    pub(super) refuted: bool,
}

impl Checker {
    pub(super) fn new(n: usize, beauty: Beauty, solution: Option<&[usize]>) -> Self {
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
            suppositions: Vec::new(),
            cliques: Vec::new(),
            clique_memory: 0,
            board,
            refuted: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        if self.claimed.is_some() { self.passed == self.board.n } else { self.refuted }
    }

    /// Passes to the next level. This one was shown to have as many queens as in S.
    fn next_level(&mut self) -> Result<(), ProofError> {
        let claimed = self.claimed.as_ref().and_then(|claimed| claimed.get(self.level));
        if !self.suppositions.is_empty() || claimed != Some(&self.shown) {
            return Err(refused("a level ends before it was shown to have its queens"));
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

    pub(super) fn record(
        &mut self,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), ProofError> {
        self.board.spend(100);
        let done = self.read_record(reader, meter, observer);
        // The work counts even if the record is refused.
        self.board.report(meter).and(done)
    }

    fn read_record(
        &mut self,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), ProofError> {
        match reader.byte()? {
            record::AT_LEAST => {
                let bound = self.begin_trial(reader.size(self.board.n)?)?;
                observer.suppose(bound)
            }
            record::REFUTED => {
                self.board.search(None, reader, meter, observer)?;
                self.refute()?;
                observer.refute()
            }
            record::ELIMINATED => {
                let square = self.square(reader)?;
                self.board.search(Some(square), reader, meter, observer)?;
                self.eliminate(square)
            }
            record::REFUTED_BY_MULTIPLIERS => {
                let (base, ..) = self.multipliers(reader, meter, observer)?;
                if base <= 0 {
                    return Err(refused("the multipliers do not refute the solutions in question"));
                }
                self.refute()?;
                observer.refute()
            }
            record::ELIMINATED_BY_MULTIPLIERS => {
                let (base, rest, _) = self.multipliers(reader, meter, observer)?;
                let mut eliminated = Vec::new();
                for _ in 0..reader.size(self.board.squares())? {
                    let square = self.square(reader)?;
                    let with_queen = base.checked_add(rest[self.board.first_of[square]]);
                    if with_queen.is_none_or(|sum| sum <= 0) {
                        return Err(refused("the multipliers do not eliminate an orbit"));
                    }
                    eliminated.push(square);
                }
                if eliminated.is_empty() {
                    return Err(refused("a record of multipliers shows nothing"));
                }
                eliminated.into_iter().try_for_each(|square| self.eliminate(square))
            }
            record::FULL_BY_MULTIPLIERS => {
                let (base, _, of_diagonal) = self.multipliers(reader, meter, observer)?;
                let count = reader.size(self.board.n)?;
                for _ in 0..count {
                    let distance = reader.size(self.board.n - 1)?;
                    let with_one_empty = base.checked_sub(of_diagonal[distance]);
                    if with_one_empty.is_none_or(|sum| sum <= 0) {
                        return Err(refused("the multipliers do not show that a diagonal is full"));
                    }
                    self.fill(distance)?;
                }
                if count == 0 {
                    Err(refused("a record of multipliers shows nothing"))
                } else {
                    Ok(())
                }
            }
            record::CLIQUE => {
                self.clique(reader)?;
                observer.clique(&self.cliques[self.cliques.len() - 1]);
                Ok(())
            }
            record::NEXT => {
                self.next_level()?;
                observer.next_level(self.level - 1)
            }
            record::ASSUME => {
                let level = reader.size(self.board.levels.len().saturating_sub(1))?;
                let at_least = !flag(reader)?;
                let bound = LevelBound { level, at_least, queens: reader.size(self.board.n)? };
                self.assume(bound)?;
                observer.suppose(bound)
            }
            other => Err(ProofError::UnknownStep(other.into())),
        }
    }

    fn square(&self, reader: &mut Reader<'_>) -> Result<usize, ProofError> {
        reader.size(self.board.squares().saturating_sub(1))
    }

    fn begin_trial(&mut self, least: usize) -> Result<LevelBound, ProofError> {
        let claimed = self.claimed.as_ref().ok_or_else(|| {
            refused("a trial begins although there is no solution to compare with")
        })?;
        if !self.suppositions.is_empty() || least <= self.shown || least > claimed[self.level] {
            return Err(refused("a trial begins that can show nothing"));
        }
        // Under quarter turns queens come in fours, except for one in the centre, which has its own
        // level.
        let step =
            if self.board.turning && self.board.levels[self.level].len() > 1 { 4 } else { 1 };
        self.board.range[self.level] = (self.shown, (least - 1) / step * step);
        let bound = LevelBound { level: self.level, queens: least, at_least: true };
        self.suppose(bound);
        Ok(bound)
    }

    fn suppose(&mut self, bound: LevelBound) {
        self.suppositions.push(Supposition {
            bound,
            eliminated: Vec::new(),
            filled: Vec::new(),
            ranges: Vec::new(),
        });
    }

    /// Begins an assumption: the contrary of what is to be shown of a level after the current one.
    fn assume(&mut self, bound: LevelBound) -> Result<(), ProofError> {
        let LevelBound { level, queens, at_least } = bound;
        if self.suppositions.is_empty() || level <= self.level || queens == 0 {
            return Err(refused("an assumption is out of place"));
        }
        if self.suppositions.len() == MOST_SUPPOSITIONS {
            return Err(ProofError::Damaged("too many assumptions are nested"));
        }
        let (least, most) = self.board.range[level];
        self.suppose(bound);
        self.narrow(
            level,
            if at_least { (least, most.min(queens - 1)) } else { (least.max(queens), most) },
        );
        Ok(())
    }

    /// Narrows the range of a level, within the innermost supposition.
    fn narrow(&mut self, level: usize, range: (usize, usize)) {
        let before = std::mem::replace(&mut self.board.range[level], range);
        if let Some(supposition) = self.suppositions.last_mut() {
            supposition.ranges.push((level, before));
        }
    }

    /// Ends the innermost supposition: none of the solutions in question exists.
    fn refute(&mut self) -> Result<(), ProofError> {
        let Some(Supposition { bound, eliminated, filled, ranges }) = self.suppositions.pop()
        else {
            if self.claimed.is_none() {
                self.refuted = true;
                return Ok(());
            }
            return Err(refused("it rules out the solution itself"));
        };
        for square in eliminated {
            self.board.open_again(square);
        }
        for distance in filled {
            self.board.set_full(distance, false);
        }
        for (level, range) in ranges.into_iter().rev() {
            self.board.range[level] = range;
        }
        let LevelBound { level, queens, at_least } = bound;
        if self.suppositions.is_empty() {
            self.shown = queens;
            self.board.range[level] = (queens, self.board.n);
        } else {
            let (least, most) = self.board.range[level];
            self.narrow(
                level,
                if at_least { (least.max(queens), most) } else { (least, most.min(queens - 1)) },
            );
        }
        Ok(())
    }

    /// Eliminates the orbit of `square`.
    fn eliminate(&mut self, square: usize) -> Result<(), ProofError> {
        if !self.board.open[square] {
            return Err(refused("an orbit is eliminated twice"));
        }
        for square in self.board.orbit(square) {
            self.board.close_for_good(square);
            if let Some(supposition) = self.suppositions.last_mut() {
                supposition.eliminated.push(square);
            }
        }
        Ok(())
    }

    /// Marks the diagonals at a distance from the main ones as full.
    fn fill(&mut self, distance: usize) -> Result<(), ProofError> {
        if self.board.is_full(distance) || self.board.turning {
            return Err(refused("diagonals are filled that are full already or cannot be full"));
        }
        self.board.set_full(distance, true);
        if let Some(supposition) = self.suppositions.last_mut() {
            supposition.filled.push(distance);
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
        self.clique_memory += squares.len() + 4;
        if self.clique_memory > MOST_IN_CLIQUES {
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
        observer: &mut impl Observer,
    ) -> Result<(i128, Vec<i128>, Vec<i128>), ProofError> {
        // About an eighth of the squares are first squares, for which the orbit is computed.
        meter.add(20 * self.board.squares() as u64)?;
        let board = &self.board;
        let n = board.n;
        let (ranks, levels) = (n.div_ceil(2), board.levels.len());
        let overflow = || refused("the multipliers are too large");
        let mut of_rank = vec![0i128; ranks];
        let mut of_diagonal = vec![0i128; n];
        let mut of_level = vec![0i128; levels];
        let mut base = 0i128;
        let mut rest = vec![0i128; board.squares()];
        let mut read = Vec::new();
        for _ in 0..reader.size(ranks + n + levels + self.cliques.len())? {
            let number = reader.size(ranks + n + levels + self.cliques.len())?;
            meter.add(20)?;
            let y = reader.signed()?;
            read.push((number, y));
            let y = i128::from(y);
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
                let clique =
                    clique.ok_or_else(|| refused("the multipliers refer to an unknown clique"))?;
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
        observer.multipliers(board, &read)?;
        Ok((base, rest, of_diagonal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Writer;

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
    fn diagonals_are_full_only_while_multipliers_prove_it() {
        let n = 4;
        // Its queens stand on the squares next to the corners. Numbers: two distances from the
        // border, four of diagonals.
        let checker = || Checker::new(n, Beauty::default(), Some(&[1, 3, 0, 2]));
        let enter = |checker: &mut Checker, record: &[u8]| {
            checker.record(&mut Reader::new(record), &mut Meter::default(), &mut ())
        };
        // Every square outside the corners is next to one or in the middle; both kinds are on
        // diagonals at distance 1.
        let beside = [(0, 1), (1, 1), (3, -2)];
        let fills =
            |distances: &[usize]| by_multipliers(record::FULL_BY_MULTIPLIERS, &beside, distances);
        let empty = Err(refused("the multipliers do not show that a diagonal is full"));
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
        let nothing = Err(refused("a record of multipliers shows nothing"));
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
            Err(refused("diagonals are filled that are full already or cannot be full"))
        );
        let turning = Beauty { turning: true, ..Beauty::default() };
        let mut turned = Checker::new(n, turning, Some(&[1, 3, 0, 2]));
        enter(&mut turned, &[record::NEXT]).expect("no queens in the corners");
        assert!(enter(&mut turned, &fills(&[1, 1])).is_err(), "its queens come in fours");
    }

    #[test]
    fn the_memory_of_a_check_is_bounded_and_unknown_records_are_distinguished_from_false_ones() {
        let n = 4;
        let turning = Beauty::default();
        let mut checker = Checker::new(n, turning, Some(&[1, 3, 0, 2]));
        let mut enter = |record: &[u8]| {
            checker.record(&mut Reader::new(record), &mut Meter::new(None), &mut ())
        };
        for unknown in [0, 10, 255] {
            assert_eq!(enter(&[unknown]), Err(ProofError::UnknownStep(unknown.into())));
        }
        enter(&[record::NEXT]).expect("no queens in the corners");
        enter(&[record::AT_LEAST, 4]).expect("a trial");
        // Nested assumptions that are never refuted.
        let ended =
            (0..2 * MOST_SUPPOSITIONS).find_map(|_| enter(&[record::ASSUME, 2, 0, 1]).err());
        assert!(matches!(ended, Some(ProofError::Damaged(_))), "{ended:?}");
        checker.clique_memory = MOST_IN_CLIQUES - 4;
        assert_eq!(
            checker.record(&mut Reader::new(&[record::CLIQUE, 0]), &mut Meter::default(), &mut ()),
            Ok(())
        );
        let more =
            checker.record(&mut Reader::new(&[record::CLIQUE, 0]), &mut Meter::default(), &mut ());
        assert!(matches!(more, Err(ProofError::Damaged(_))), "{more:?}");
    }
}
