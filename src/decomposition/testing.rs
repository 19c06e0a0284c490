//! Boards and decompositions for tests.

use super::{Decomposition, Job, Scheme};
use crate::board::{Piece, Problem, Square};

/// Returns the board for n queens with these squares placed and blocked, each a row and a column.
pub(crate) fn queens(n: usize, placed: &[(usize, usize)], blocked: &[(usize, usize)]) -> Problem {
    let squares = |list: &[(usize, usize)]| list.iter().map(|s| Square::new(s.0, s.1)).collect();
    Problem::new(Piece::Queen, n, squares(placed), squares(blocked)).expect("on the board")
}

/// Decomposes a small board by the best scheme.
pub(crate) fn decompose(problem: &Problem, depth: Option<usize>, unit: u64) -> Decomposition {
    decompose_by(Scheme::best(problem), problem, depth, unit)
}

/// Decomposes a small board by this scheme.
pub(crate) fn decompose_by(
    scheme: Scheme,
    problem: &Problem,
    depth: Option<usize>,
    unit: u64,
) -> Decomposition {
    Decomposition::new(Job::new(problem.clone(), scheme, depth, unit).expect("a small board"))
}
