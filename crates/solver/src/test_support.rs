//! Support for unit tests: completions by the plain definition, random problems and sinks.

use std::ops::ControlFlow;

use nqueens_proof::board::{Piece, Problem, Square};

use crate::classical::AnswerSink;
use crate::ilp::completes;
use crate::progress::{Progress, ProgressSink};

/// Returns all completions of a problem in lexicographic order, by the plain definition, row by
/// row.
pub(crate) fn completions(problem: &Problem) -> Vec<Vec<usize>> {
    let (piece, n) = (problem.piece(), problem.n());
    let mut found = vec![Vec::new()];
    for row in 0..n {
        let longer = |above: &Vec<usize>| {
            let is_free = |&column: &usize| {
                let square = Square::new(row, column);
                let attacks = |(row, &column)| piece.attacks(n, Square::new(row, column), square);
                !above.iter().enumerate().any(attacks)
            };
            let free: Vec<usize> = (0..n).filter(is_free).collect();
            free.into_iter().map(|column| [&above[..], &[column]].concat()).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found.retain(|columns| {
        problem.placed().iter().all(|square| columns[square.row] == square.col)
            && problem.blocked().iter().all(|square| columns[square.row] != square.col)
    });
    assert!(found.iter().all(|columns| completes(problem, columns)));
    found
}

/// Returns all solutions for n queens in lexicographic order, by the plain definition.
pub(crate) fn solutions(n: usize) -> Vec<Vec<usize>> {
    completions(&Problem::empty(Piece::Queen, n))
}

/// Returns a random problem with up to `placed` placed and up to `blocked` blocked squares.
pub(crate) fn random_problem(
    random: &mut fastrand::Rng,
    piece: Piece,
    n: usize,
    (placed, blocked): (usize, usize),
) -> Problem {
    loop {
        let mut squares = |most: usize| -> Vec<Square> {
            let count = if n == 0 { 0 } else { random.usize(..=most) };
            (0..count).map(|_| Square::new(random.usize(..n), random.usize(..n))).collect()
        };
        if let Ok(problem) = Problem::new(piece, n, squares(placed), squares(blocked)) {
            return problem;
        }
    }
}

/// A sink that stops the run at its report with this number, counted from 1, and at all later ones.
pub(crate) struct StopAfter(pub(crate) u32);

impl ProgressSink for StopAfter {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A sink that keeps all answers.
#[derive(Default)]
pub(crate) struct AllAnswers(pub(crate) Vec<Vec<usize>>);

impl AnswerSink for AllAnswers {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.0.push(columns.to_vec());
        ControlFlow::Continue(())
    }

    fn report(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn solutions_by_the_plain_definition_are_as_many_as_published() {
    let numbers = (0..=8).map(|n| solutions(n).len());
    assert!(numbers.eq([1, 1, 0, 0, 2, 10, 4, 40, 92]));
}
