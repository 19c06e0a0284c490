//! Brute force: tries each of the n^n configurations with one piece in each row, in lexicographic
//! order, and keeps the solutions. Placed and blocked squares do not reduce the number of
//! configurations.

use std::ops::ControlFlow;

use super::{AnswerSink, Counter, Outcome};
use nqueens_proof::board::{Problem, Square};

pub(super) fn run(problem: &Problem, sink: &mut dyn AnswerSink) -> Outcome {
    let mut counter = Counter::new(sink);
    let flow = try_all(problem, &mut counter);
    counter.outcome(flow)
}

fn try_all(problem: &Problem, counter: &mut Counter<'_>) -> ControlFlow<()> {
    let mut columns = vec![0; problem.n()];
    loop {
        counter.count()?;
        if is_valid(problem, &columns) {
            counter.sink.answer(&columns)?;
        }
        if !advance(&mut columns) {
            return ControlFlow::Continue(());
        }
    }
}

/// Advances to the next configuration in lexicographic order. Returns `false` after the last one.
fn advance(columns: &mut [usize]) -> bool {
    let n = columns.len();
    for column in columns.iter_mut().rev() {
        *column += 1;
        if *column < n {
            return true;
        }
        *column = 0;
    }
    false
}

/// Returns whether the configuration is a completion, by the definition.
fn is_valid(problem: &Problem, columns: &[usize]) -> bool {
    let (piece, n) = (problem.piece(), problem.n());
    let at = |row: usize| Square::new(row, columns[row]);
    (1..n).all(|row| (0..row).all(|above| !piece.attacks(n, at(above), at(row))))
        && problem.placed().iter().all(|&square| at(square.row) == square)
        && !problem.blocked().iter().any(|&square| at(square.row) == square)
}
