//! Schemes that other kernels bring along: the yardstick's mirror, the torus's translations, the rooks'
//! whole board.

use std::sync::Arc;

use super::symmetry_case::SymmetryCase;
use crate::board::{Problem, Square};
use crate::tally::Thirds;

/// A solution, in thirds.
const SOLUTION: Thirds = 3;

/// The textbook's symmetry, from the top row down: the first queen in the left half stands for its mirror
/// image too; with the first queen in the middle column of an odd board, the second one is mirrored.
/// For problems that the mirror leaves unchanged; others get the whole first row with weight one.
pub(super) fn top_mirror(problem: &Arc<Problem>, mirrors: bool) -> Vec<SymmetryCase> {
    let n = problem.n();
    let plan = |weight: Thirds, block: Vec<Square>| {
        let filled = block.len();
        SymmetryCase::new(problem, weight, block, 0..filled)
    };
    if !mirrors || n == 0 || problem.placed().iter().any(|s| s.row < 2) {
        return plan(SOLUTION, Vec::new()).into_iter().collect();
    }
    if n == 1 {
        return plan(SOLUTION, vec![Square::new(0, 0)]).into_iter().collect();
    }
    let half = 0..n / 2;
    let mut plans: Vec<SymmetryCase> =
        half.clone().filter_map(|col| plan(2 * SOLUTION, vec![Square::new(0, col)])).collect();
    if n % 2 == 1 {
        let middle = Square::new(0, n / 2);
        plans.extend(half.filter_map(|col| plan(2 * SOLUTION, vec![middle, Square::new(1, col)])));
    }
    plans
}

/// Toroidal queens on a board without decided squares: moving every queen one column to the right (the last
/// column to the first) maps solutions to solutions, and n such moves are an orbit of n. So the queen of the
/// centre row stands in column 1 with weight n. There is no solution at all unless n is prime to 6 (Pólya,
/// "Über die 'doppelt-periodischen' Lösungen des n-Damen-Problems", 1918): then there is no plan.
pub(super) fn translations(problem: &Arc<Problem>) -> Vec<SymmetryCase> {
    let n = problem.n();
    if n.is_multiple_of(2) || n.is_multiple_of(3) {
        return Vec::new();
    }
    // n ≤ 32.
    let weight = SOLUTION * n as Thirds;
    SymmetryCase::new(problem, weight, vec![Square::new(n / 2, 0)], n / 2..n / 2 + 1).into_iter().collect()
}

/// One plan, every row open: the kernel takes the board as a whole.
pub(super) fn whole(problem: &Arc<Problem>) -> Vec<SymmetryCase> {
    SymmetryCase::new(problem, SOLUTION, Vec::new(), 0..0).into_iter().collect()
}
