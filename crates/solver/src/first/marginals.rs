//! Marginals of the remaining cells: about how often completions use each of them.
//!
//! They are the distribution of greatest entropy with a queen in each open row and column and on
//! each mandatory diagonal, and at most one on every other diagonal. Each cell has the product of
//! four factors, one for each of its lines, and the factors are fitted line by line in turn
//! (iterative proportional fitting: Deming and Stephan, 1940). A diagonal that may stay unused has
//! one more cell with the factor 1, which stands for that.

use super::residual::Residual;
use super::width::Width;
use crate::bitset::BitSet;

/// Maximum number of rows or columns, and of diagonals of one direction.
const LINES: usize = 128;
const DIAGONALS: usize = 2 * LINES;

/// Sums below this are not divided by.
const TINY: f32 = 1e-20;

/// The factors of the lines of a board.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    rows: [f32; LINES],
    columns: [f32; LINES],
    falling: [f32; DIAGONALS],
    rising: [f32; DIAGONALS],
}

impl Factors {
    /// Creates equal factors.
    pub(super) const fn new() -> Self {
        Self {
            rows: [1.0; LINES],
            columns: [1.0; LINES],
            falling: [1.0; DIAGONALS],
            rising: [1.0; DIAGONALS],
        }
    }

    /// Fits all lines of `board` so many times. `cells` is overwritten with the remaining cells.
    pub(super) fn fit<W: Width>(
        &mut self,
        board: &Residual<'_, W>,
        times: usize,
        cells: &mut Vec<(u8, u8)>,
    ) {
        cells.clear();
        for row in board.rows().iter() {
            cells.extend(board.remaining(row).iter().map(|column| (row as u8, column as u8)));
        }
        let mandatory = board.mandatory_diagonals();
        let height = board.height();
        let falling = |row: usize, column: usize| column + height - 1 - row;
        for _ in 0..times {
            let mut sums = [0.0; DIAGONALS];
            for (row, column) in indices(cells) {
                sums[row + column] +=
                    self.rows[row] * self.columns[column] * self.falling[falling(row, column)];
            }
            fit_diagonals(&mut self.rising, &sums, mandatory[1]);
            let mut sums = [0.0; DIAGONALS];
            for (row, column) in indices(cells) {
                sums[falling(row, column)] +=
                    self.rows[row] * self.columns[column] * self.rising[row + column];
            }
            fit_diagonals(&mut self.falling, &sums, mandatory[0]);
            let mut sums = [0.0; LINES];
            for (row, column) in indices(cells) {
                sums[column] +=
                    self.rows[row] * self.falling[falling(row, column)] * self.rising[row + column];
            }
            fit_lines(&mut self.columns, &sums);
            let mut sums = [0.0; LINES];
            for (row, column) in indices(cells) {
                sums[row] += self.columns[column]
                    * self.falling[falling(row, column)]
                    * self.rising[row + column];
            }
            fit_lines(&mut self.rows, &sums);
        }
    }

    /// Returns the marginal of a cell of a board of this height.
    #[inline]
    pub(super) fn marginal(&self, height: usize, row: usize, column: usize) -> f64 {
        let lines = self.rows[row] * self.columns[column];
        f64::from(lines * self.falling[column + height - 1 - row] * self.rising[row + column])
    }
}

fn indices(cells: &[(u8, u8)]) -> impl Iterator<Item = (usize, usize)> {
    cells.iter().map(|&(row, column)| (row.into(), column.into()))
}

/// Makes the sum of each row or column 1, given the sums without their factors.
fn fit_lines(factors: &mut [f32; LINES], sums: &[f32; LINES]) {
    for (factor, &sum) in factors.iter_mut().zip(sums) {
        if sum > TINY {
            *factor = 1.0 / sum;
        }
    }
}

/// Makes the sum of each mandatory diagonal 1, and that of every other one with its unused cell.
fn fit_diagonals<S: BitSet>(factors: &mut [f32; DIAGONALS], sums: &[f32; DIAGONALS], mandatory: S) {
    for (factor, &sum) in factors.iter_mut().zip(sums) {
        *factor = 1.0 / (1.0 + sum);
    }
    for line in mandatory.iter() {
        factors[line] = if sums[line] > TINY { 1.0 / sums[line] } else { 1.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first::width::Width64x64;

    #[test]
    fn marginals_of_the_rows_and_columns_sum_to_one() {
        let n = 12;
        let board = Residual::<Width64x64>::new(n, &[]);
        let mut factors = Factors::new();
        factors.fit(&board, 200, &mut Vec::new());
        let marginal = |row, column| factors.marginal(n, row, column);
        for line in 0..n {
            let row: f64 = (0..n).map(|column| marginal(line, column)).sum();
            let column: f64 = (0..n).map(|row| marginal(row, line)).sum();
            assert!((row - 1.0).abs() < 1e-3, "row {line}: {row}");
            assert!((column - 1.0).abs() < 1e-3, "column {line}: {column}");
        }
        for line in 0..2 * n - 1 {
            let cells = (0..n).filter(|row| (row..&(row + n)).contains(&&line));
            let diagonal: f64 = cells.map(|row| marginal(row, line - row)).sum();
            assert!(diagonal < 1.0, "antidiagonal {line}: {diagonal}");
        }
        // Queens avoid the long diagonals, so the corners.
        assert!(marginal(0, n / 2) > marginal(0, 0));
    }
}
