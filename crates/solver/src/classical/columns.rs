//! The textbook recursion: the ways to fill k columns are the ways to fill k - 1 columns, each
//! extended by a piece in every safe row of column k. Columns are filled from left to right, rows
//! from top to bottom.
//!
//! The textbooks keep all solutions of k - 1 columns in memory. Here each one is extended as soon
//! as it is found, which yields the same solutions in the same order but holds only one at a time.
//!
//! Abelson and Sussman, *Structure and Interpretation of Computer Programs*, 2nd edition, exercise
//! 2.42.

use std::ops::ControlFlow;

use super::{AnswerSink, Counter, Outcome};
use nqueens_proof::board::{Problem, Square};

pub(super) fn run(problem: &Problem, sink: &mut dyn AnswerSink) -> Outcome {
    let mut counter = Counter::new(sink);
    let flow = filled(problem, problem.n(), &mut counter, &mut |counter, pieces| {
        let mut columns = vec![0; pieces.len()];
        for piece in pieces {
            columns[piece.row] = piece.col;
        }
        counter.sink.answer(&columns)
    });
    counter.outcome(flow)
}

/// Called with each way to fill the first columns: the pieces, one in each column, from left to
/// right. It must leave them unchanged.
type Visit<'a> = dyn FnMut(&mut Counter<'_>, &mut Vec<Square>) -> ControlFlow<()> + 'a;

/// Visits every way to fill the first `k` columns.
fn filled(
    problem: &Problem,
    k: usize,
    counter: &mut Counter<'_>,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let Some(last) = k.checked_sub(1) else {
        return visit(counter, &mut Vec::new());
    };
    filled(problem, last, counter, &mut |counter, pieces| {
        for row in 0..problem.n() {
            let square = Square::new(row, last);
            if is_safe(problem, pieces, square) {
                counter.count()?;
                pieces.push(square);
                visit(counter, pieces)?;
                pieces.pop();
            }
        }
        ControlFlow::Continue(())
    })
}

/// Returns whether a piece may stand on `square`: allowed by the problem, and attacked by none of
/// `pieces`.
fn is_safe(problem: &Problem, pieces: &[Square], square: Square) -> bool {
    let attacks = |&other: &Square| problem.piece().attacks(problem.n(), other, square);
    !pieces.iter().any(attacks) && problem.allows(square)
}
