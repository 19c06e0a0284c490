//! Variables that say whether a diagonal is used, and the constraints on lines that all proofs of a
//! board share.

use super::claim::{lines, lines_of};
use super::constraint::{Constraint, Variable};
use super::writer::{Id, ProofWriter, ReversePolish};
use crate::ProofError;

/// The constraints on the lines of a board, numbered as in [`lines`]: rows, columns, diagonals,
/// antidiagonals.
pub(super) struct BoardLines {
    pub(super) n: usize,
    /// By line: its squares.
    pub(super) squares: Vec<Vec<usize>>,
    /// By line: a row or column has at least one queen; a diagonal that is used has at least one.
    pub(super) at_least: Vec<Id>,
    /// By line: a row or column has at most one queen; a diagonal has at most one, and none unless
    /// it is used.
    pub(super) at_most: Vec<Id>,
    /// By line: it has at most one queen.
    pub(super) at_most_one: Vec<Id>,
}

impl BoardLines {
    /// Introduces a variable for each diagonal, by redundance-based strengthening, and derives the
    /// constraints. `identifiers` are those of the formula, which begins with the lines.
    pub(super) fn new(
        n: usize,
        identifiers: &[Id],
        writer: &mut ProofWriter<'_>,
    ) -> Result<Self, ProofError> {
        let squares = lines(n);
        let mut at_least: Vec<Id> = identifiers[..squares.len()].to_vec();
        let mut at_most_one = at_least.clone();
        at_most_one[..2 * n].iter_mut().for_each(|id| *id += 1);
        let mut at_most = at_most_one.clone();
        for line in 2 * n..squares.len() {
            let used = usage(n, line);
            let queens = squares[line].iter().map(|&square| Variable::queen(n, square));
            let length = squares[line].len();
            let literals = queens.clone().map(Variable::positive);
            let has_queen = Constraint::clause(std::iter::once(used.negative()).chain(literals));
            at_least[line] = writer.red(&has_queen, used, false)?;
            let literals = queens.map(Variable::negative);
            let mut empty = Constraint::at_least(length, literals);
            empty.terms.insert(0, (length as i128, used.positive()));
            at_most[line] = writer.red(&empty, used, true)?;
            if length > 1 {
                // (used · k + Σ ~x ≥ k) and k - 1 times (Σ ~x ≥ k - 1), divided by k.
                let mut sum = ReversePolish::default();
                sum.add(at_most[line], 1);
                sum.add(at_most_one[line], length as i128 - 1);
                sum.divide(length);
                at_most[line] = writer.pol(&sum)?;
            }
        }
        Ok(Self { n, squares, at_least, at_most, at_most_one })
    }

    /// Returns the lines of a square.
    pub(super) const fn lines_of(&self, square: usize) -> [usize; 4] {
        lines_of(self.n, square)
    }
}

/// Returns the variable that says whether a diagonal is used.
pub(super) const fn usage(n: usize, line: usize) -> Variable {
    if line < 4 * n - 1 {
        Variable::Diagonal((line - 2 * n) as u16)
    } else {
        Variable::Antidiagonal((line - (4 * n - 1)) as u16)
    }
}

/// Returns the number of a line that [`prices`](crate::beautiful::prices) numbers.
pub(super) const fn line_of_prices(n: usize, line: usize) -> usize {
    if line < 2 * n {
        line
    } else if line < 4 * n {
        line - 2 * n + 4 * n - 1 // r + c
    } else {
        2 * n + 2 * (n - 1) - (line - 4 * n) // r - c there, c - r here
    }
}
