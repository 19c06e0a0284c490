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
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        assert_eq!(case.below(), case.rows().len(), "the textbook kernel fills rows downward");
        let full = full_row(case.n());
        let plain = case.problem().is_empty();
        for prefix in prefixes {
            let (state, k) = (prefix.state(), prefix.filled());
            let completions = match case.rows().get(k) {
                None => 1,
                Some(&row) => {
                    let left = state.diagonal_window(case.n(), row);
                    let right = state.antidiagonal_window(row);
                    if plain {
                        descend(full, state.columns, left, right)
                    } else {
                        descend_masked(case, k, state.columns, left, right)
                    }
                }
            };
            parts.add(case.weight(), completions, Residues::of(completions.into()), 0u64)?;
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
fn descend_masked(case: &SymmetryCase, k: usize, columns: u32, left: u32, right: u32) -> u64 {
    let mut free = case.allowed()[k] & !(columns | left | right);
    let Some(&next) = case.rows().get(k + 1) else {
        return free.count_ones().into();
    };
    let step = next - case.rows()[k];
    let mut completions = 0;
    while free != 0 {
        let queen = free & free.wrapping_neg();
        free ^= queen;
        let (left, right) = ((left | queen) << step, (right | queen) >> step);
        completions += descend_masked(case, k + 1, columns | queen, left, right);
    }
    completions
}
