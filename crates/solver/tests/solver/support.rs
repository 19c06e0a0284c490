//! Support for the tests: completions by the plain definition, and a sink that stops a run.

use std::ops::ControlFlow;

use nqueens_proof::board::{Piece, Problem, Square, first_attack};
use nqueens_solver::ilp::completes;
use nqueens_solver::{Progress, ProgressSink};

/// Returns all completions of a problem in lexicographic order, by the plain definition, row by
/// row.
pub(crate) fn completions(problem: &Problem) -> Vec<Vec<usize>> {
    fn extend(problem: &Problem, squares: &mut Vec<Square>, found: &mut Vec<Vec<usize>>) {
        let n = problem.n();
        if squares.len() == n {
            found.push(squares.iter().map(|square| square.col).collect());
            return;
        }
        for col in 0..n {
            squares.push(Square::new(squares.len(), col));
            if first_attack(problem.piece(), n, squares).is_none() {
                extend(problem, squares, found);
            }
            squares.pop();
        }
    }
    let mut found = Vec::new();
    extend(problem, &mut Vec::new(), &mut found);
    found.retain(|columns| completes(problem, columns));
    found
}

/// Returns all solutions for n queens in lexicographic order, by the plain definition.
pub(crate) fn solutions(n: usize) -> Vec<Vec<usize>> {
    completions(&Problem::empty(Piece::Queen, n))
}

/// A sink that stops the run at its report with this number, counted from 1, and at all later ones.
pub(crate) struct StopAfter(pub(crate) u32);

impl ProgressSink for StopAfter {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
