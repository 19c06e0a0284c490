//! Schemes for particular kernels and pieces: the mirror of the textbook kernel, the translations
//! of the torus, and the whole board for rooks.

use std::sync::Arc;

use super::symmetry_case::SymmetryCase;
use crate::board::{Problem, Square};
use crate::tally::Thirds;

/// The weight of one solution, in thirds.
const SOLUTION: Thirds = 3;

/// Returns the cases of the textbook symmetry, from the top row down: a first queen in the left
/// half also represents its mirror image; with the first queen in the middle column of an odd
/// board, the second row is halved instead. Applies to problems that the mirror leaves unchanged;
/// other problems get a single case of weight one without a block.
pub(super) fn top_mirror(problem: &Arc<Problem>, mirrors: bool) -> Vec<SymmetryCase> {
    let n = problem.n();
    let case = |weight: Thirds, block: Vec<Square>| {
        let filled = block.len();
        SymmetryCase::new(problem, weight, block, 0..filled)
    };
    if !mirrors || n == 0 || problem.placed().iter().any(|s| s.row < 2) {
        return case(SOLUTION, Vec::new()).into_iter().collect();
    }
    if n == 1 {
        return case(SOLUTION, vec![Square::new(0, 0)]).into_iter().collect();
    }
    let half = 0..n / 2;
    let mut cases: Vec<SymmetryCase> =
        half.clone().filter_map(|col| case(2 * SOLUTION, vec![Square::new(0, col)])).collect();
    if n % 2 == 1 {
        let middle = Square::new(0, n / 2);
        cases.extend(half.filter_map(|col| case(2 * SOLUTION, vec![middle, Square::new(1, col)])));
    }
    cases
}

/// Returns the case for toroidal queens on a board without decided squares. Moving every queen one
/// column to the right (the last column to the first) maps solutions to solutions, and the n such
/// translations form an orbit of n. So the queen of the centre row is fixed in the first column,
/// with weight n. There is no solution unless n is coprime to 6 (Pólya, "Über die
/// 'doppelt-periodischen' Lösungen des n-Damen-Problems", 1918): otherwise no case is returned.
pub(super) fn translations(problem: &Arc<Problem>) -> Vec<SymmetryCase> {
    let n = problem.n();
    if n.is_multiple_of(2) || n.is_multiple_of(3) {
        return Vec::new();
    }
    // n ≤ 32.
    let weight = SOLUTION * n as Thirds;
    SymmetryCase::new(problem, weight, vec![Square::new(n / 2, 0)], n / 2..n / 2 + 1)
        .into_iter()
        .collect()
}

/// Returns one case with every row open, for kernels that process the board as a whole.
pub(super) fn whole(problem: &Arc<Problem>) -> Vec<SymmetryCase> {
    SymmetryCase::new(problem, SOLUTION, Vec::new(), 0..0).into_iter().collect()
}
