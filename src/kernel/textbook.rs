//! The performance baseline: textbook backtracking with bit masks (Richards 1997, Somers), with
//! mirror symmetry by way of [`Scheme::TopMirror`].
//!
//! One recursive call a placement, 48 instructions (callgrind, n = 14): columns, both diagonals
//! shifted by one a row, the lowest free bit first. It is kept as fast as its method allows,
//! because every other kernel is measured against it; therefore it counts no nodes.
//!
//! [`Scheme::TopMirror`]: crate::decomposition::Scheme::TopMirror

use super::Kernel;
use crate::decomposition::{Prefix, SymmetryCase, full_row};
use crate::tally::{Parts, Residues, TallyError};

/// The textbook kernel. Its symmetry cases fill the rows downward only.
#[derive(Debug)]
pub struct Textbook;

impl Kernel for Textbook {
    fn count(
        &mut self,
        plan: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        assert_eq!(plan.below(), plan.rows().len(), "the textbook kernel fills rows downward");
        let full = full_row(plan.n());
        let plain = plan.problem().is_empty();
        for prefix in prefixes {
            let (state, k) = (prefix.state(), prefix.filled());
            let completions = match plan.rows().get(k) {
                None => 1,
                Some(&row) => {
                    let left = state.diagonal_window(plan.n(), row);
                    let right = state.antidiagonal_window(row);
                    if plain {
                        descend(full, state.columns, left, right)
                    } else {
                        descend_masked(plan, k, state.columns, left, right)
                    }
                }
            };
            parts.add(plan.weight(), completions, Residues::of(completions.into()), 0u64)?;
        }
        Ok(())
    }
}

/// Returns the completions with `columns` used and the next row attacked along the diagonals in
/// `left` and `right`. A u64 that grows by one a solution cannot wrap: at 10^10 a second that takes
/// 58 years.
fn descend(full: u32, columns: u32, left: u32, right: u32) -> u64 {
    if columns == full {
        return 1;
    }
    let mut free = full & !(columns | left | right);
    let mut completions = 0;
    while free != 0 {
        let queen = free & free.wrapping_neg();
        free ^= queen;
        completions += descend(full, columns | queen, (left | queen) << 1, (right | queen) >> 1);
    }
    completions
}

/// Like [`descend`], on a board with placed and blocked squares: one mask a row, and rows that are
/// already filled.
fn descend_masked(plan: &SymmetryCase, k: usize, columns: u32, left: u32, right: u32) -> u64 {
    let mut free = plan.allowed()[k] & !(columns | left | right);
    let Some(&next) = plan.rows().get(k + 1) else {
        return free.count_ones().into();
    };
    let step = next - plan.rows()[k];
    let mut completions = 0;
    while free != 0 {
        let queen = free & free.wrapping_neg();
        free ^= queen;
        let (left, right) = ((left | queen) << step, (right | queen) >> step);
        completions += descend_masked(plan, k + 1, columns | queen, left, right);
    }
    completions
}
