//! Subtrees of a search that may be handed to other machines: their answers are checked here before
//! they count.
//!
//! A subtree consists of the premises, which describe the solutions in question, and of some
//! queens. Its answer is either one of those solutions that has these queens, or a tree as in the
//! records, which shows that there is none. The tree may have *holes*: a hole, encoded as
//! [`Premises::hole`] in place of a line, proves nothing, and the search has to visit the subtree
//! below it separately. There are at most n² holes: a depth-first search that stops leaves no more
//! than the squares of the lines on one path.

use std::sync::Arc;

use super::board::Board;
use super::refused;
use crate::board::{Norm, Piece, Placement, Problem, Square};
use crate::bytes::Reader;
use crate::{Beauty, Meter, ProofError};

/// The premises of a search: the constraints that are known of the solutions in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Premises {
    n: usize,
    beauty: Beauty,
    /// By orbit, in the order of their first squares: whether it may have a queen.
    candidates: Vec<bool>,
    /// The distances of full diagonals from the main ones, ascending.
    full: Vec<usize>,
    /// Levels, where 0 has the largest cost, each with the least and the greatest number of queens.
    ranges: Vec<(usize, usize, usize)>,
}

impl Premises {
    /// Creates premises for a board of size `n` from 1 to [`LARGEST`](super::LARGEST).
    ///
    /// `candidates` says for each orbit, in the order of their first squares, whether it may have a
    /// queen. `full` has the distances from the main diagonals, ascending, at which each diagonal
    /// must have a queen; it is empty under quarter turns. `ranges` has levels in ascending order,
    /// where 0 has the largest cost, each with the least and the greatest number of queens.
    ///
    /// # Errors
    /// Returns an error if there is no such board, orbit, diagonal or level, or if a range is
    /// empty.
    pub fn new(
        n: usize,
        beauty: Beauty,
        candidates: Vec<bool>,
        full: Vec<usize>,
        ranges: Vec<(usize, usize, usize)>,
    ) -> Result<Self, ProofError> {
        let board = (1..=super::LARGEST).contains(&n);
        if !board || candidates.len() != orbits(n) {
            return Err(refused("the orbits do not fit the board size"));
        }
        let has_full = full.iter().all(|&distance| distance < n && !beauty.turning);
        if !has_full || full.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(refused("the full diagonals do not fit the board size"));
        }
        let levels = levels(n, beauty.norm);
        let is_range = |&(level, least, most): &(usize, usize, usize)| {
            level < levels && least <= most && most <= n
        };
        let ascending = ranges.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascending || !ranges.iter().all(is_range) {
            return Err(refused("the ranges of the levels do not fit the board size"));
        }
        Ok(Self { n, beauty, candidates, full, ranges })
    }

    /// Returns the board size.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Returns the norm and the set of solutions considered.
    pub const fn beauty(&self) -> Beauty {
        self.beauty
    }

    /// Returns for each orbit, in the order of their first squares, whether it may have a queen.
    pub fn candidates(&self) -> &[bool] {
        &self.candidates
    }

    /// Returns the distances from the main diagonals, ascending, at which each diagonal must have a
    /// queen.
    pub fn full(&self) -> &[usize] {
        &self.full
    }

    /// Returns levels in ascending order, each with the least and the greatest number of queens.
    pub fn ranges(&self) -> &[(usize, usize, usize)] {
        &self.ranges
    }

    /// Returns the number that encodes a hole in a tree: the one after that of the last column.
    pub const fn hole(&self) -> usize {
        2 * self.n
    }
}

/// Returns the number of orbits of the squares of a board of size `n`: ⌈n/2⌉ · (⌈n/2⌉ + 1) / 2.
pub(in super::super) const fn orbits(n: usize) -> usize {
    let half = n.div_ceil(2);
    half * (half + 1) / 2
}

fn levels(n: usize, norm: Norm) -> usize {
    let squares = (0..n * n).map(|square| norm.cost(n, Square::new(square / n, square % n)));
    squares.collect::<std::collections::BTreeSet<u64>>().len()
}

/// A subtree of a search: all solutions in question that have certain queens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtree {
    premises: Arc<Premises>,
    queens: Vec<usize>,
}

impl Subtree {
    /// Creates the subtree with queens on these squares (row · n + column, 0-based) and, under
    /// quarter turns, on their images.
    ///
    /// # Errors
    /// Returns an error if there are more queens than rows, or if a square is not on the board.
    pub fn new(premises: Arc<Premises>, queens: Vec<usize>) -> Result<Self, ProofError> {
        let squares = premises.n * premises.n;
        if queens.len() > premises.n || queens.iter().any(|&square| square >= squares) {
            return Err(refused("the queens do not fit the board size"));
        }
        Ok(Self { premises, queens })
    }

    /// Returns the premises.
    pub const fn premises(&self) -> &Arc<Premises> {
        &self.premises
    }

    /// Returns the squares of the queens.
    pub fn queens(&self) -> &[usize] {
        &self.queens
    }
}

/// A tree that was checked, and the subtrees that it leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedTree {
    /// The squares of the queens at each hole, including those that follow from others.
    pub holes: Vec<Vec<usize>>,
    /// The number of nodes of the tree.
    pub nodes: u64,
}

/// A checker of answers for subtrees with the same premises.
pub struct SubtreeChecker {
    premises: Arc<Premises>,
    board: Board,
}

impl SubtreeChecker {
    /// Creates a checker for subtrees with these premises.
    pub fn new(premises: Arc<Premises>) -> Self {
        let mut board = Board::new(premises.n, premises.beauty.norm, premises.beauty.turning);
        let firsts = (0..board.squares()).filter(|&square| board.first_of[square] == square);
        let eliminated =
            firsts.zip(&premises.candidates).filter(|(_, is_candidate)| !**is_candidate);
        let eliminated: Vec<usize> = eliminated.flat_map(|(first, _)| board.orbit(first)).collect();
        for square in eliminated {
            board.close_for_good(square);
        }
        premises.full.iter().for_each(|&distance| board.set_full(distance, true));
        for &(level, least, most) in &premises.ranges {
            board.range[level] = (least, most);
        }
        Self { premises, board }
    }

    /// Returns the premises of the subtrees.
    pub const fn premises(&self) -> &Arc<Premises> {
        &self.premises
    }

    /// Checks a tree of at most `limit` nodes and n² holes for the subtree with these queens.
    ///
    /// # Errors
    /// Returns an error if the tree cannot be read, is wrong, or takes more than
    /// [`MOST_WORK`](crate::MOST_WORK) steps.
    pub fn check(
        &mut self,
        queens: &[usize],
        tree: &[u8],
        limit: u64,
    ) -> Result<CheckedTree, ProofError> {
        self.check_within(queens, tree, limit, &mut Meter::default())
    }

    /// Checks a tree like [`Self::check`], under this meter.
    ///
    /// # Errors
    /// Returns an error if the tree cannot be read or is wrong, or if the meter ends the check.
    pub fn check_within(
        &mut self,
        queens: &[usize],
        tree: &[u8],
        limit: u64,
        meter: &mut Meter<'_>,
    ) -> Result<CheckedTree, ProofError> {
        self.board.work = 0;
        self.board.limit = limit;
        self.board.holes = Some(Vec::new());
        let mut reader = Reader::new(tree);
        let searched = self.board.search_below(queens, &mut reader, meter, &mut ());
        let holes = self.board.holes.take().unwrap_or_default();
        searched?;
        if !reader.is_empty() {
            return Err(ProofError::Damaged("bytes follow the end of the tree"));
        }
        Ok(CheckedTree { holes, nodes: self.board.work })
    }

    /// Checks a solution for the subtree with these queens: the 0-based column of the queen in each
    /// row.
    ///
    /// # Errors
    /// Returns an error if it is not a solution, or not one of those in question.
    pub fn check_solution(&self, queens: &[usize], columns: &[usize]) -> Result<(), ProofError> {
        let Premises { n, beauty, ref ranges, .. } = *self.premises;
        Placement::check_solution(&Problem::empty(Piece::Queen, n), columns).map_err(refused)?;
        let squares: Vec<usize> =
            columns.iter().enumerate().map(|(row, column)| row * n + column).collect();
        let mut counts = vec![0; self.board.levels.len()];
        squares.iter().for_each(|&square| counts[self.board.level_of(square)] += 1);
        let turns = !beauty.turning || (0..n).all(|row| columns[columns[row]] == n - 1 - row);
        let within =
            |&(level, least, most): &(usize, usize, usize)| (least..=most).contains(&counts[level]);
        let is_in_question = turns
            && self.board.covers_mandatory_lines(&squares)
            && squares.iter().all(|&square| self.board.open[square])
            && queens.iter().all(|queen| squares.contains(queen))
            && ranges.iter().all(within);
        if is_in_question {
            Ok(())
        } else {
            Err(refused("it is not one of the solutions in question"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tree::tests::write_wide;
    use super::*;

    fn premises(n: usize, ranges: Vec<(usize, usize, usize)>) -> Arc<Premises> {
        let candidates = vec![true; orbits(n)];
        Arc::new(
            Premises::new(n, Beauty::default(), candidates, vec![], ranges)
                .expect("they fit the board"),
        )
    }

    #[test]
    fn orbits_and_levels_are_counted_correctly() {
        for n in 1..=20 {
            let board = Board::new(n, Norm::Euclidean, false);
            assert_eq!(
                orbits(n),
                (0..n * n).filter(|&square| board.first_of[square] == square).count()
            );
            assert_eq!(levels(n, Norm::Euclidean), board.levels.len());
        }
    }

    #[test]
    fn a_tree_is_checked_down_to_its_holes_exactly() {
        let mut checker = SubtreeChecker::new(premises(4, vec![]));
        let hole = 8;
        let open = checker.check(&[], &[hole], 9).expect("nothing is claimed");
        assert_eq!(open, CheckedTree { holes: vec![vec![]], nodes: 0 });
        // With a queen in the corner, both squares of the second row are contradictions.
        assert_eq!(checker.check(&[0], &[1], 9), Ok(CheckedTree { holes: vec![], nodes: 1 }));
        assert_eq!(checker.check(&[0, 1], &[], 9), Ok(CheckedTree { holes: vec![], nodes: 0 }));
        // With a queen in the middle of the first row there are solutions.
        let tree = [0, 1, hole, hole, 1];
        let row = checker.check(&[], &tree, 9).expect("its holes are where the solutions are");
        assert_eq!(
            row,
            CheckedTree { holes: vec![vec![1, 7, 8, 14], vec![2, 4, 11, 13]], nodes: 3 }
        );
        assert!(checker.check(&[], &tree[..4], 9).is_err(), "one is missing");
        assert!(checker.check(&[], &[0, 1, hole, hole, 1, hole], 9).is_err(), "one is too many");
        assert_eq!(checker.check(&[], &tree, 2), Err(ProofError::TooMuchWork(2)));
        // An empty list of prices before the tree: only certificates may have prices.
        let priced = [&[9, 0], &tree[..]].concat();
        assert_eq!(
            checker.check(&[], &priced, 9),
            Err(refused("the tree of a subtree has prices"))
        );
        assert!(checker.check(&[], &[10], 9).is_err(), "there is no such line");
    }

    #[test]
    fn a_breadth_first_tree_is_refused_before_it_has_too_many_holes() {
        let premises = premises(10, vec![]);
        let wide = |rows| {
            let mut tree = Vec::new();
            write_wide(&mut SubtreeChecker::new(Arc::clone(&premises)).board, rows, &mut tree);
            tree
        };
        let mut checker = SubtreeChecker::new(Arc::clone(&premises));
        // There are 72 ways to place queens in two rows.
        let two = checker.check(&[], &wide(2), 999).expect("72 holes on 100 squares");
        assert_eq!((two.holes.len(), two.nodes), (72, 11));
        let three = wide(3);
        assert!(three.iter().filter(|&&line| line == 20).count() > 100);
        assert!(matches!(checker.check(&[], &three, 999), Err(ProofError::Refused(_))));
        // All placed queens were removed again.
        assert_eq!(checker.check(&[], &wide(2), 999), Ok(two));
    }

    #[test]
    fn a_check_ends_at_the_limit_of_its_meter_and_the_checker_can_be_used_again() {
        let premises = premises(16, vec![]);
        let mut tree = Vec::new();
        write_wide(&mut SubtreeChecker::new(Arc::clone(&premises)).board, 2, &mut tree);
        let mut checker = SubtreeChecker::new(premises);
        let whole = checker.check(&[], &tree, 999).expect("a valid tree");
        let ended = checker.check_within(&[], &tree, u64::MAX, &mut Meter::new(Some(10)));
        assert_eq!(ended, Err(ProofError::LimitReached(10)));
        let stopped =
            checker.check_within(&[], &tree, 999, &mut Meter::new(None).stopped_by(&|| true));
        assert_eq!(stopped, Err(ProofError::Stopped));
        assert_eq!(checker.check(&[], &tree, 999), Ok(whole));
        // A number beyond all lines and markers belongs to a newer version.
        assert_eq!(checker.check(&[], &[127], 9), Err(ProofError::UnknownStep(127)));
    }

    #[test]
    fn only_solutions_that_satisfy_the_premises_are_accepted() {
        let free = SubtreeChecker::new(premises(4, vec![]));
        let columns = [1, 3, 0, 2];
        assert_eq!(free.check_solution(&[], &columns), Ok(()));
        assert_eq!(free.check_solution(&[1, 7], &columns), Ok(()));
        assert!(free.check_solution(&[2], &columns).is_err());
        assert!(free.check_solution(&[], &[0, 1, 2, 3]).is_err());
        assert!(free.check_solution(&[], &[1, 3, 0]).is_err());
        assert!(free.check_solution(&[], &[1, 3, 0, usize::MAX]).is_err());
        // Its queens stand on the squares of cost 10, which are level 1.
        let ranged = |least, most| SubtreeChecker::new(premises(4, vec![(1, least, most)]));
        assert_eq!(ranged(4, 4).check_solution(&[], &columns), Ok(()));
        assert!(ranged(0, 3).check_solution(&[], &columns).is_err());
        let premises = Premises::new(4, Beauty::default(), vec![true, false, true], vec![], vec![])
            .expect("they fit the board");
        assert!(SubtreeChecker::new(Arc::new(premises)).check_solution(&[], &columns).is_err());
    }

    #[test]
    fn premises_that_do_not_fit_the_board_are_refused() {
        let new = |n, orbits, ranges| {
            Premises::new(n, Beauty::default(), vec![true; orbits], vec![], ranges)
        };
        assert!(new(4, 3, vec![]).is_ok());
        for (n, orbits, ranges) in [
            (0, 0, vec![]),
            (4, 4, vec![]),
            (super::super::LARGEST + 1, super::orbits(super::super::LARGEST + 1), vec![]),
            (4, 3, vec![(3, 0, 0)]),
            (4, 3, vec![(0, 1, 0)]),
            (4, 3, vec![(0, 0, 5)]),
            (4, 3, vec![(1, 0, 1), (1, 0, 1)]),
        ] {
            assert!(new(n, orbits, ranges.clone()).is_err(), "{n} {orbits} {ranges:?}");
        }
        assert!(Subtree::new(premises(4, vec![]), vec![16]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_tree_or_refused(
            n in 1usize..=9,
            tree in proptest::collection::vec(0u8..24, 0..60),
            queens in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
            turning in any::<bool>(),
        ) {
            let beauty = Beauty { norm: Norm::Euclidean, turning };
            let premises = Premises::new(n, beauty, vec![true; orbits(n)], vec![], vec![]);
            let premises = premises.expect("they fit the board");
            let mut checker = SubtreeChecker::new(Arc::new(premises));
            let queens: Vec<usize> = queens.iter().map(|queen| queen.index(n * n)).collect();
            let once = checker.check(&queens, &tree, 40);
            // All placed queens were removed again.
            prop_assert_eq!(checker.check(&queens, &tree, 40), once);
        }
    }
}
