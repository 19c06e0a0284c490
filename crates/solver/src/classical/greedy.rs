//! Greedy queens on the board that is infinite to the right and downward: row by row, each queen is
//! in the leftmost column where no queen above attacks it. The columns are OEIS A065188: 1, 3, 5,
//! 2, 4, 9, 11, 13, 15, 6, …
//!
//! Two ranges of columns are skipped in every row: those left of the first free column, and those
//! on diagonals next to the main one that are all occupied. What remains is a few columns per row:
//! the queens stay near two lines through the corner, of slope φ and 1/φ (F. M. Dekking, J. Shallit
//! and N. J. A. Sloane, *Queens in exile: non-attacking queens on infinite chess boards*,
//! Electronic Journal of Combinatorics 27 (2020)). The code does not rely on that: only attacked
//! squares are skipped.

use nqueens_proof::board::Square;

/// An infinite iterator over the queens, from top to bottom.
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    row: usize,
    columns: OccupiedLines,
    /// By column + row.
    sums: OccupiedLines,
    /// The main diagonal and the diagonals right of it, by column - row.
    right: OccupiedLines,
    /// The diagonals left of it, by row - column - 1.
    left: OccupiedLines,
}

impl Iterator for Greedy {
    type Item = Square;

    fn next(&mut self) -> Option<Square> {
        let row = self.row;
        let leftmost = self.columns.first_free;
        // From here to the main diagonal, no column is on a free diagonal left of the main one.
        let middle = row.saturating_sub(self.left.first_free);
        let on_left = (leftmost..middle).find(|&col| self.is_free(row, col));
        let col = on_left.or_else(|| {
            let mut on_right = leftmost.max(row + self.right.first_free)..;
            on_right.find(|&col| self.is_free(row, col))
        })?;
        self.columns.take(col);
        self.sums.take(row + col);
        match row.checked_sub(col + 1) {
            Some(left) => self.left.take(left),
            None => self.right.take(col - row),
        }
        self.row += 1;
        Some(Square::new(row, col))
    }
}

impl Greedy {
    fn is_free(&self, row: usize, col: usize) -> bool {
        let diagonal = match row.checked_sub(col + 1) {
            Some(left) => self.left.is_free(left),
            None => self.right.is_free(col - row),
        };
        diagonal && self.columns.is_free(col) && self.sums.is_free(row + col)
    }
}

/// The set of occupied lines among 0, 1, 2, …
#[derive(Clone, Debug, Default)]
struct OccupiedLines {
    lines: Vec<bool>,
    /// The least line that is not occupied.
    first_free: usize,
}

impl OccupiedLines {
    fn is_free(&self, line: usize) -> bool {
        !self.lines.get(line).is_some_and(|&taken| taken)
    }

    fn take(&mut self, line: usize) {
        if line >= self.lines.len() {
            self.lines.resize(line + 1, false);
        }
        self.lines[line] = true;
        while !self.is_free(self.first_free) {
            self.first_free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::{OccupiedLines, Piece};

    #[test]
    fn the_first_terms_equal_the_published_ones() {
        let columns: Vec<usize> = Greedy::default().take(28).map(|queen| queen.col + 1).collect();
        assert_eq!(
            columns,
            [
                1, 3, 5, 2, 4, 9, 11, 13, 15, 6, 8, 19, 7, 22, 10, 25, 27, 29, 31, 12, 14, 35, 37,
                39, 41, 16, 18, 45
            ]
        );
    }

    #[test]
    fn each_queen_is_the_leftmost_that_no_queen_above_attacks() {
        let mut above: Vec<Square> = Vec::new();
        for queen in Greedy::default().take(600) {
            let safe = |col: &usize| {
                let square = Square::new(above.len(), *col);
                above.iter().all(|&other| !Piece::Queen.attacks(usize::MAX, other, square))
            };
            let leftmost = (0..).find(safe).expect("the board is infinite");
            assert_eq!(queen, Square::new(above.len(), leftmost));
            above.push(queen);
        }
    }

    #[test]
    fn a_hundred_thousand_queens_do_not_attack_each_other() {
        let mut lines = OccupiedLines::new(Piece::Queen, usize::MAX);
        for (row, queen) in Greedy::default().take(100_000).enumerate() {
            assert_eq!(queen.row, row);
            assert!(lines.add(queen), "{queen}");
        }
    }
}
