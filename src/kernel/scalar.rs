//! The scalar kernel: centre-cross symmetry cases, then a search that keeps the top of its stack in
//! registers.
//!
//! The rows below the block (about 5 % of the nodes) are filled by plain recursion over
//! [`SymmetryCase::available`]. Above it a state is three words (the free columns, and the two
//! diagonals shifted to the current row), each iteration generates one child, and a child is
//! entered only if its row *and the row after it* have a free square. About 80 instructions a node
//! on x86-64 (callgrind, n = 14, planning included).

use super::Kernel;
use crate::decomposition::{AttackState, Prefix, SymmetryCase, full_row};
use crate::tally::{Parts, Residues, TallyError};

/// The portable single-threaded kernel.
#[derive(Debug)]
pub struct Scalar;

impl Kernel for Scalar {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        let mut search = Search::new(case);
        for prefix in prefixes {
            let before = search.nodes;
            let completions = search.completions(prefix.filled(), prefix.state());
            parts.add(
                case.weight(),
                completions,
                Residues::of(completions.into()),
                search.nodes - before,
            )?;
        }
        Ok(())
    }
}

/// A search below the prefixes of one symmetry case. The counters are u64 that grow by one at a
/// time, so they cannot wrap within a century.
struct Search<'a> {
    case: &'a SymmetryCase,
    /// The position of the open row from which the rows go upward without masks and without gaps.
    plain_from: usize,
    nodes: u64,
}

impl<'a> Search<'a> {
    fn new(case: &'a SymmetryCase) -> Self {
        let rows = &case.rows()[case.below()..];
        let gapless = rows.windows(2).all(|pair| pair[0] == pair[1] + 1);
        let plain_from = if gapless { case.unmasked_from() } else { case.rows().len() };
        Self { case, plain_from, nodes: 0 }
    }

    fn completions(&mut self, k: usize, state: AttackState) -> u64 {
        if k == self.case.rows().len() {
            return 1;
        }
        if k >= self.plain_from {
            let row = self.case.rows()[k];
            let n = self.case.n();
            let free = full_row(n) & !state.columns;
            let (completions, nodes) =
                upward(free, state.antidiagonal_window(row), state.diagonal_window(n, row));
            self.nodes += nodes;
            return completions;
        }
        let mut available = self.case.available(k, state);
        let mut completions = 0;
        while available != 0 {
            let queen = available & available.wrapping_neg();
            available ^= queen;
            self.nodes += 1;
            completions += self.completions(k + 1, self.case.place(k, state, queen));
        }
        completions
    }
}

/// Returns the completions of a state, and the nodes below it, when the rows left go upward without
/// masks: `free` columns (as many as there are rows left, at least one), and the columns of the
/// current row attacked along diagonals that move left or right by one column a row.
fn upward(free: u32, left: u32, right: u32) -> (u64, u64) {
    /// At least the height of any board: at most one entry a row.
    const ROWS: usize = 32;
    let (mut free, mut left, mut right) = (free, left, right);
    let mut open = free & !(left | right);
    if open == 0 {
        return (0, 0);
    }
    if free & (free - 1) == 0 {
        return (1, 1);
    }
    let mut stack = [(0u32, 0u32, 0u32, 0u32); ROWS];
    let mut height = 0;
    let (mut completions, mut nodes) = (0, 0);
    loop {
        let queen = open & open.wrapping_neg();
        let rest = open ^ queen;
        nodes += 1;
        let (free2, left2, right2) = (free ^ queen, (left | queen) << 1, (right | queen) >> 1);
        let open2 = free2 & !(left2 | right2);
        let after_next = free2 & !(left2 << 1 | right2 >> 1);
        let several_left = free2 & (free2 - 1) != 0;
        if open2 != 0 && after_next != 0 && several_left {
            if rest != 0 {
                stack[height % ROWS] = (free, left, right, rest);
                height += 1;
            }
            (free, left, right, open) = (free2, left2, right2, open2);
        } else {
            completions += u64::from(!several_left && open2 != 0);
            open = rest;
            if open == 0 {
                if height == 0 {
                    return (completions, nodes);
                }
                height -= 1;
                (free, left, right, open) = stack[height % ROWS];
            }
        }
    }
}
