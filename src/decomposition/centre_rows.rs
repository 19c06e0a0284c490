//! The centre-rows scheme, for problems with less symmetry or none.
//!
//! The centre rows (two for even n, three for odd n) form a set that the half turn and the
//! horizontal and vertical mirrors leave unchanged. If such a symmetry also leaves the problem
//! unchanged, it permutes the possible placements of the queens in those rows, and placements in
//! one orbit have equally many completions. So each orbit gives one symmetry case, whose weight is
//! the size of the orbit. Ties need no special treatment, because the orbits are those of the
//! block, not of the solutions. Quarter turns and diagonal mirrors do not map rows to rows and are
//! not used here.

use std::sync::Arc;

use super::attack_state::columns_of;
use super::symmetry_case::{SymmetryCase, allowed_columns};
use crate::board::{Problem, Square};
use crate::symmetry::Group;
use crate::tally::Thirds;

/// The weight of one solution, in thirds.
const SOLUTION: Thirds = 3;

/// Returns the symmetry cases of any problem in which no two placed pieces attack each other.
pub(super) fn cases(problem: &Arc<Problem>) -> Vec<SymmetryCase> {
    let n = problem.n();
    let group = Group::of(problem).row_preserving();
    if n == 0 || group.order() == 1 {
        // No symmetry to exploit: one case without a block.
        return SymmetryCase::new(problem, SOLUTION, Vec::new(), n / 2..n / 2)
            .into_iter()
            .collect();
    }
    let centre_rows = if n % 2 == 1 {
        (n / 2).saturating_sub(1)..(n / 2 + 2).min(n)
    } else {
        n / 2 - 1..n / 2 + 1
    };
    let open: Vec<usize> =
        centre_rows.clone().filter(|&row| problem.placed().iter().all(|s| s.row != row)).collect();
    let mut cases = Vec::new();
    let mut block = Vec::new();
    for_each_block(problem, &open, &mut block, &mut |block| {
        if let Some(orbit) = orbit_if_first(problem.n(), group, block) {
            cases.extend(SymmetryCase::new(
                problem,
                SOLUTION * orbit,
                block.to_vec(),
                centre_rows.clone(),
            ));
        }
    });
    cases
}

fn for_each_block(
    problem: &Problem,
    rows: &[usize],
    block: &mut Vec<Square>,
    visit: &mut impl FnMut(&[Square]),
) {
    let Some((&row, rest)) = rows.split_first() else { return visit(block) };
    for col in columns_of(allowed_columns(problem, row)) {
        let square = Square::new(row, col);
        if block.iter().all(|&s| !problem.piece().attacks(problem.n(), s, square)) {
            block.push(square);
            for_each_block(problem, rest, block, visit);
            block.pop();
        }
    }
}

/// Returns the size of the orbit of `block` (sorted) under `group` if `block` comes first in it.
fn orbit_if_first(n: usize, group: Group, block: &[Square]) -> Option<u32> {
    let mut images: Vec<Vec<Square>> = group
        .elements()
        .map(|g| {
            let mut image: Vec<Square> = block.iter().map(|&s| g.apply(n, s)).collect();
            image.sort_unstable();
            image
        })
        .collect();
    images.sort_unstable();
    images.dedup();
    // At most 4 images.
    (images[0] == block).then_some(images.len() as u32)
}
