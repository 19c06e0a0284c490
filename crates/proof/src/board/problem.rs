//! A counting problem: a piece, a board size, and the squares that are already decided.

use std::fmt;

use super::{OccupiedLines, Piece, Square};

/// The problem of counting the completions of a board: placements of one piece in each row and
/// column, no two of which attack each other.
///
/// A completion contains every placed square and no blocked one. The squares are kept sorted and
/// without duplicates, so equal problems compare equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    piece: Piece,
    n: usize,
    placed: Vec<Square>,
    blocked: Vec<Square>,
}

/// The reason why squares do not make a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemError {
    /// A square outside a board of this size.
    OffBoard(Square, usize),
    /// Any square on the board of size 0.
    NoSquares(Square),
    /// A square that is both placed and blocked.
    PlacedAndBlocked(Square),
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OffBoard(square, n) => {
                write!(
                    f,
                    "square {square} is off the board; rows and columns of this board go from 1 to {n}"
                )
            }
            Self::NoSquares(square) => {
                write!(f, "square {square} is off the board; the board of size 0 has no squares")
            }
            Self::PlacedAndBlocked(square) => {
                write!(f, "square {square} is both placed and blocked; it can be one of the two")
            }
        }
    }
}

impl std::error::Error for ProblemError {}

impl Problem {
    /// Creates the problem of the empty board, whose completions are all solutions.
    pub const fn empty(piece: Piece, n: usize) -> Self {
        Self { piece, n, placed: Vec::new(), blocked: Vec::new() }
    }

    /// Creates the problem of the board of size `n` with pieces on `placed` and none allowed on
    /// `blocked`. Duplicates are dropped. Placed pieces may attack each other: the problem then has
    /// no completion (see [`Self::conflict`]).
    ///
    /// # Errors
    /// Returns an error if a square is off the board, or both placed and blocked.
    pub fn new(
        piece: Piece,
        n: usize,
        mut placed: Vec<Square>,
        mut blocked: Vec<Square>,
    ) -> Result<Self, ProblemError> {
        for squares in [&mut placed, &mut blocked] {
            squares.sort_unstable();
            squares.dedup();
        }
        if let Some(&off) = placed.iter().chain(&blocked).find(|s| s.row >= n || s.col >= n) {
            return Err(if n == 0 {
                ProblemError::NoSquares(off)
            } else {
                ProblemError::OffBoard(off, n)
            });
        }
        if let Some(&both) = placed.iter().find(|s| blocked.binary_search(s).is_ok()) {
            return Err(ProblemError::PlacedAndBlocked(both));
        }
        Ok(Self { piece, n, placed, blocked })
    }

    /// Returns the mirror image, with left and right exchanged. Its completions are the mirror
    /// images of the completions of this problem.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        let mirrored = |squares: &[Square]| {
            let mut squares: Vec<Square> = squares.iter().map(|s| s.mirrored(self.n)).collect();
            squares.sort_unstable();
            squares
        };
        Self { placed: mirrored(&self.placed), blocked: mirrored(&self.blocked), ..*self }
    }

    /// Returns the piece to place.
    pub const fn piece(&self) -> Piece {
        self.piece
    }

    /// Returns the board size: the number of rows, of columns, and of pieces in a completion.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Returns the squares that have a piece, in row order.
    pub fn placed(&self) -> &[Square] {
        &self.placed
    }

    /// Returns the squares that must not have a piece, in row order.
    pub fn blocked(&self) -> &[Square] {
        &self.blocked
    }

    /// Returns whether no square is decided yet.
    pub const fn is_empty(&self) -> bool {
        self.placed.is_empty() && self.blocked.is_empty()
    }

    /// Returns a pair of placed pieces that attack each other, if there is one; then there is no
    /// completion. Of several pairs it is the first in row order. Takes constant time per piece.
    pub fn conflict(&self) -> Option<(Square, Square)> {
        let mut lines = OccupiedLines::new(self.piece, self.n);
        let (end, &attacked) = self.placed.iter().enumerate().find(|(_, s)| !lines.add(**s))?;
        let mut before = self.placed[..end].iter();
        before.find(|&&a| self.piece.attacks(self.n, a, attacked)).map(|&a| (a, attacked))
    }

    /// Returns whether a piece may stand on `square`: it is a placed square, or it is neither
    /// blocked nor attacked by a placed piece.
    pub fn allows(&self, square: Square) -> bool {
        self.placed.binary_search(&square).is_ok()
            || (self.blocked.binary_search(&square).is_err()
                && !self.placed.iter().any(|&p| self.piece.attacks(self.n, p, square)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::first_attack;

    #[test]
    fn squares_off_the_board_or_contradictory_are_refused() {
        let at = Square::new;
        let problem = |placed, blocked| Problem::new(Piece::Queen, 5, placed, blocked);
        assert_eq!(problem(vec![at(5, 0)], vec![]), Err(ProblemError::OffBoard(at(5, 0), 5)));
        assert_eq!(problem(vec![], vec![at(0, 7)]), Err(ProblemError::OffBoard(at(0, 7), 5)));
        assert_eq!(
            problem(vec![at(1, 1)], vec![at(2, 2), at(1, 1)]),
            Err(ProblemError::PlacedAndBlocked(at(1, 1)))
        );
    }

    #[test]
    fn problems_compare_equal_whatever_the_order_of_their_squares() {
        let at = Square::new;
        let a = Problem::new(Piece::Queen, 8, vec![at(3, 1), at(0, 0), at(3, 1)], vec![]);
        let b = Problem::new(Piece::Queen, 8, vec![at(0, 0), at(3, 1)], vec![]);
        assert_eq!(a, b);
    }

    #[test]
    fn a_mirrored_problem_allows_the_mirrored_squares_to_every_piece() {
        let at = Square::new;
        for piece in Piece::ALL {
            for n in [5, 6] {
                let problem = Problem::new(
                    piece,
                    n,
                    vec![at(2, 4), at(0, 1)],
                    vec![at(3, 1), at(3, 0), at(4, 2)],
                )
                .expect("squares on the board");
                let mirrored = problem.mirrored();
                for square in (0..n * n).map(|i| at(i / n, i % n)) {
                    let image = at(square.row, n - 1 - square.col);
                    assert_eq!(
                        mirrored.allows(image),
                        problem.allows(square),
                        "{piece}, {square}, n = {n}"
                    );
                }
                assert_ne!(mirrored, problem);
                assert_eq!(mirrored.mirrored(), problem);
            }
        }
    }

    #[test]
    fn the_first_conflict_is_the_one_that_a_comparison_of_all_pairs_finds() {
        for piece in Piece::ALL {
            for set in 0u32..1 << 16 {
                let squares: Vec<Square> = (0..16)
                    .filter(|i| set >> i & 1 == 1)
                    .map(|i| Square::new(i / 4, i % 4))
                    .collect();
                let problem =
                    Problem::new(piece, 4, squares.clone(), vec![]).expect("squares on the board");
                assert_eq!(problem.conflict(), first_attack(piece, 4, &squares), "{squares:?}");
            }
        }
    }

    #[test]
    fn a_square_is_allowed_unless_blocked_or_attacked() {
        let at = Square::new;
        let problem = Problem::new(Piece::Queen, 4, vec![at(0, 1)], vec![at(1, 3)])
            .expect("squares on the board");
        let allowed: Vec<Square> =
            (0..16).map(|i| at(i / 4, i % 4)).filter(|&s| problem.allows(s)).collect();
        assert_eq!(allowed, [at(0, 1), at(2, 0), at(2, 2), at(3, 0), at(3, 2), at(3, 3)]);
        assert_eq!(problem.conflict(), None);
    }
}
