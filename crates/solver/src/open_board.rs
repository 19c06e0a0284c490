//! The rest of a board with placed pieces: the open rows and columns, and the squares in them on
//! which a piece may still stand. Methods that work on it take no time for placed pieces.

use nqueens_proof::board::{Piece, Problem, Square};

/// The rows and columns without a placed piece, numbered from 0, and their allowed squares.
#[derive(Clone, Debug)]
pub(crate) struct OpenBoard {
    /// The board's number of each open row, ascending.
    rows: Vec<usize>,
    /// The board's number of each open column, ascending.
    columns: Vec<usize>,
    /// For each open row the open columns that are neither blocked nor attacked, ascending.
    allowed: Vec<Vec<usize>>,
}

/// Returns the number of rows without a placed piece.
pub(crate) fn open_rows(problem: &Problem) -> usize {
    problem.n() - problem.placed().chunk_by(|a, b| a.row == b.row).count()
}

impl OpenBoard {
    /// Creates the open board of a problem whose placed pieces do not attack each other.
    pub(crate) fn of(problem: &Problem) -> Self {
        let n = problem.n();
        let (mut row_is_open, mut column_is_open) = (vec![true; n], vec![true; n]);
        let mut diagonals = Diagonals::new(problem);
        for square in problem.placed() {
            row_is_open[square.row] = false;
            column_is_open[square.col] = false;
            diagonals.occupy(*square);
        }
        let open = |is_open: &[bool]| (0..n).filter(|&i| is_open[i]).collect::<Vec<_>>();
        let (rows, columns) = (open(&row_is_open), open(&column_is_open));
        let allowed_in = |&row: &usize| {
            let blocked = row_of(problem.blocked(), row);
            let is_allowed = |col: usize| {
                let square = Square::new(row, col);
                blocked.binary_search(&square).is_err()
                    && !diagonals.attack(square)
                    && !(problem.piece() == Piece::Superqueen && leapt_to(problem, square))
            };
            (0..columns.len()).filter(|&i| is_allowed(columns[i])).collect()
        };
        let allowed = rows.iter().map(allowed_in).collect();
        Self { rows, columns, allowed }
    }

    /// Returns the number of open rows, which is that of open columns.
    pub(crate) fn size(&self) -> usize {
        self.rows.len()
    }

    /// Returns the allowed open columns of an open row, ascending.
    pub(crate) fn allowed(&self, row: usize) -> &[usize] {
        &self.allowed[row]
    }

    /// Returns the number of allowed squares.
    pub(crate) fn squares(&self) -> usize {
        self.allowed.iter().map(Vec::len).sum()
    }

    /// Returns the board's number of an open row.
    pub(crate) fn row(&self, row: usize) -> usize {
        self.rows[row]
    }

    /// Returns the square of the whole board in an open row and an open column.
    pub(crate) fn square(&self, row: usize, column: usize) -> Square {
        Square::new(self.rows[row], self.columns[column])
    }

    /// Returns the number of each open column by its number on the whole board of size `n`.
    pub(crate) fn column_numbers(&self, n: usize) -> Vec<Option<u32>> {
        let mut numbers = vec![None; n];
        for (number, &column) in (0..).zip(&self.columns) {
            numbers[column] = Some(number);
        }
        numbers
    }

    /// Returns the column in each row of the whole board, given the open column in each open row.
    pub(crate) fn completed(
        &self,
        problem: &Problem,
        chosen: impl Iterator<Item = usize>,
    ) -> Vec<usize> {
        let mut columns = vec![0; problem.n()];
        for square in problem.placed() {
            columns[square.row] = square.col;
        }
        for (&row, column) in self.rows.iter().zip(chosen) {
            columns[row] = self.columns[column];
        }
        columns
    }
}

/// Returns those of the sorted `squares` that are in `row`.
pub(crate) fn row_of(squares: &[Square], row: usize) -> &[Square] {
    let start = squares.partition_point(|square| square.row < row);
    let length = squares[start..].partition_point(|square| square.row == row);
    &squares[start..start + length]
}

/// Returns whether a placed piece is a knight's move away.
fn leapt_to(problem: &Problem, square: Square) -> bool {
    let near = square.row.saturating_sub(2)..=square.row + 2;
    near.flat_map(|row| row_of(problem.placed(), row)).any(|placed| {
        matches!(
            (placed.row.abs_diff(square.row), placed.col.abs_diff(square.col)),
            (1, 2) | (2, 1)
        )
    })
}

/// The diagonals on which pieces stand.
#[derive(Clone, Debug)]
pub(crate) struct Diagonals {
    piece: Piece,
    n: usize,
    sums: Vec<bool>,
    differences: Vec<bool>,
}

impl Diagonals {
    /// Creates the diagonals of an empty board. Rooks have none.
    pub(crate) fn new(problem: &Problem) -> Self {
        let (piece, n) = (problem.piece(), problem.n());
        let lines = if piece == Piece::Rook { 0 } else { 2 * n };
        Self { piece, n, sums: vec![false; lines], differences: vec![false; lines] }
    }

    /// Returns the numbers of the two diagonals through a square; `None` for rooks.
    fn through(&self, square: Square) -> Option<(usize, usize)> {
        let (sum, difference) = (square.row + square.col, square.row + self.n - square.col);
        match self.piece {
            Piece::Rook => None,
            Piece::Queen | Piece::Superqueen => Some((sum, difference)),
            Piece::Toroidal => Some((sum % self.n, difference % self.n)),
        }
    }

    fn set(&mut self, square: Square, occupied: bool) {
        if let Some((sum, difference)) = self.through(square) {
            self.sums[sum] = occupied;
            self.differences[difference] = occupied;
        }
    }

    /// Adds a piece, none of whose diagonals is occupied.
    pub(crate) fn occupy(&mut self, square: Square) {
        self.set(square, true);
    }

    /// Removes a piece.
    pub(crate) fn free(&mut self, square: Square) {
        self.set(square, false);
    }

    /// Returns whether a piece stands on a diagonal through `square`.
    pub(crate) fn attack(&self, square: Square) -> bool {
        self.through(square)
            .is_some_and(|(sum, difference)| self.sums[sum] || self.differences[difference])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::random_problem;

    #[test]
    fn the_open_squares_are_those_that_the_problem_allows() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut compared = 0;
        while compared < 400 {
            let n = random.usize(1..=9);
            let piece = random.choice(Piece::ALL).expect("there are pieces");
            let problem = random_problem(&mut random, piece, n, (4, 20));
            if problem.conflict().is_some() {
                continue;
            }
            compared += 1;
            let board = OpenBoard::of(&problem);
            assert_eq!(board.size(), n - problem.placed().len());
            assert_eq!(board.size(), open_rows(&problem));
            let mut open: Vec<Square> = problem.placed().to_vec();
            for row in 0..board.size() {
                open.extend(board.allowed(row).iter().map(|&column| board.square(row, column)));
            }
            open.sort();
            let squares = (0..n * n).map(|i| Square::new(i / n, i % n));
            let expected: Vec<Square> = squares.filter(|&s| problem.allows(s)).collect();
            assert_eq!(open, expected, "{problem:?}");
        }
    }
}
