//! The lines that pieces occupy: a checker that takes constant time per piece, for boards of any
//! size, including the infinite one. It shares no code with the methods that it validates.

use super::{Piece, Square};

/// The columns and diagonals that already have a piece. Pieces are added from top to bottom.
#[derive(Clone, Debug)]
pub struct OccupiedLines {
    piece: Piece,
    n: usize,
    last: Option<Square>,
    before_last: Option<Square>,
    columns: Marks,
    diagonals: Marks,
    antidiagonals: Marks,
}

impl OccupiedLines {
    /// Creates an empty set of lines. The board size `n` matters only to toroidal queens, whose
    /// diagonals wrap around.
    pub const fn new(piece: Piece, n: usize) -> Self {
        let none = Marks(Vec::new());
        Self {
            piece,
            n,
            last: None,
            before_last: None,
            columns: none,
            diagonals: Marks(Vec::new()),
            antidiagonals: Marks(Vec::new()),
        }
    }

    /// Adds a piece. Returns whether it attacks none of the pieces added before. If it does attack
    /// one, the lines must not be used any further.
    ///
    /// # Panics
    /// Panics if the piece stands above one that was added before.
    #[must_use]
    pub fn add(&mut self, square: Square) -> bool {
        let Square { row, col } = square;
        assert!(
            self.last.is_none_or(|last| last.row <= row),
            "pieces are added from top to bottom"
        );
        // Diagonals have equal col - row, antidiagonals equal row + col.
        let difference = if col >= row { 2 * (col - row) } else { 2 * (row - col) - 1 };
        let diagonals_free = |lines: &mut Self| {
            let one = lines.diagonals.take(difference);
            lines.antidiagonals.take(row + col) && one
        };
        let free = self.last.is_none_or(|last| last.row != row)
            && self.columns.take(col)
            && match self.piece {
                Piece::Rook => true,
                Piece::Queen => diagonals_free(self),
                Piece::Superqueen => {
                    let leaps_to = |other: Option<Square>| {
                        other.is_some_and(|o| {
                            matches!((row - o.row, col.abs_diff(o.col)), (1, 2) | (2, 1))
                        })
                    };
                    !leaps_to(self.last) && !leaps_to(self.before_last) && diagonals_free(self)
                }
                Piece::Toroidal => {
                    let n = self.n;
                    let one = self.diagonals.take((col % n + n - row % n) % n);
                    self.antidiagonals.take((row % n + col % n) % n) && one
                }
            };
        self.before_last = self.last.replace(square);
        free
    }
}

/// For each of the lines 0, 1, 2 …, whether it is taken.
#[derive(Clone, Debug)]
struct Marks(Vec<bool>);

impl Marks {
    /// Takes a line. Returns whether it was free.
    fn take(&mut self, line: usize) -> bool {
        if line >= self.0.len() {
            self.0.resize(line + 1, false);
        }
        !std::mem::replace(&mut self.0[line], true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::first_attack;

    /// Asserts that the pieces on these squares are found to be apart as by comparing pairs.
    fn assert_agrees(piece: Piece, n: usize, squares: &[Square]) {
        let mut lines = OccupiedLines::new(piece, n);
        let apart = squares.iter().all(|&square| lines.add(square));
        assert_eq!(apart, first_attack(piece, n, squares).is_none(), "{piece}, {n}: {squares:?}");
    }

    #[test]
    fn every_placement_of_small_boards_is_checked_as_by_comparing_pairs() {
        for piece in Piece::ALL {
            for n in 1..=4usize {
                for set in 0u32..1 << (n * n) {
                    let squares =
                        (0..n * n).filter(|i| set >> i & 1 == 1).map(|i| Square::new(i / n, i % n));
                    let squares: Vec<Square> = squares.collect();
                    assert_agrees(piece, n, &squares);
                }
            }
        }
    }

    #[test]
    fn every_row_by_row_placement_of_larger_boards_is_checked_as_by_comparing_pairs() {
        for piece in Piece::ALL {
            for n in [5usize, 6] {
                for code in 0..n.pow(n as u32) {
                    let squares: Vec<Square> =
                        (0..n).map(|row| Square::new(row, code / n.pow(row as u32) % n)).collect();
                    assert_agrees(piece, n, &squares);
                }
            }
        }
    }
}
