//! The batch engine: a search that keeps its lanes full.
//!
//! A *level* is the number of open rows left. Each level has a stack of states (structure of
//! arrays), and two groups of lanes that hold the parents being expanded. One step gives every lane
//! its next child: children that pass the look-ahead are compressed onto the stack of the level
//! below; lanes that ran out of children are refilled from their own level's stack. The only
//! data-dependent branch is "the stack below is full", which switches to that level until it has
//! fewer states than two groups of lanes. Two groups hide the latency of the refill.
//!
//! A state is three words while the rows go upward: `free` columns, and the columns of the current
//! row attacked along diagonals that move `left` or `right` as rows are filled. Below the block it
//! has two more: the columns of the first row above the block that the queens so far attack.
//!
//! **Pooling.** Lanes drain only at the end of a range and where the rows above the block change:
//! the states of a symmetry case with the same upper rows and weight as its predecessor join the
//! predecessor's states there.
//!
//! **The last three rows** are closed in registers. A queen is placed in the first of them; both
//! columns left then attack as if they were occupied, which removes exactly the pairs that attack
//! each other; two mask tests then count 0, 1 or 2 solutions.
//!
//! **Bounds.** Solutions are counted twice. The sum adds population counts of masks to a u64. The
//! residues come from u32 counters, one a lane, which are folded and reset after every visit to the
//! last level: a visit expands at most `CAPACITY` states from the stack and 2 × `MOST_LANES` from
//! the lanes, each with at most 3 children of at most 2 solutions, so a lane counts to at most 6 ×
//! 1,120 < 2^13 before it is reset. A u64 that grows by less than 2^13 a visit, at no more than
//! 10^7 visits a second, cannot wrap in 7 years; the addition is checked nevertheless.
//!
//! Cost with AVX-512, read from the machine code: 82 instructions for 32 children, 89 where it
//! looks two rows ahead, 107 in the last level.

use super::group::Row;
use super::lanes::Lanes;
use super::level::{CLOSING, Found, Level, Outcome};
use crate::decomposition::{MAX_COUNT_SIZE, Prefix, SymmetryCase, full_row};
use crate::kernel::Kernel;
use crate::kernel::scalar::Scalar;
use crate::tally::{Parts, TallyError};

/// The states that [`Engine::drain`] must process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// Leave states that do not fill the lanes.
    Nothing,
    /// Leave no states on the levels that still have rows below the block.
    Lower,
    /// Leave no states.
    Everything,
}

/// The kernel: an engine, and the function that runs it with the required instructions enabled.
pub(super) struct Batch<D> {
    engine: Engine,
    drain: D,
}

impl<D: FnMut(&mut Engine, Flush) + Send> Batch<D> {
    pub(super) fn new(drain: D) -> Self {
        Self { engine: Engine::new(), drain }
    }

    /// Runs the engine and moves its results to `parts`.
    fn drain(&mut self, flush: Flush, parts: &mut Parts) -> Result<(), TallyError> {
        let Some(weight) = self.engine.case.as_ref().map(SymmetryCase::weight) else {
            return Ok(());
        };
        (self.drain)(&mut self.engine, flush);
        let Found { solutions, shadow, nodes } = std::mem::take(&mut self.engine.found);
        parts.add(weight, solutions, shadow, nodes)
    }
}

impl<D: FnMut(&mut Engine, Flush) + Send> Kernel for Batch<D> {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        let Some(filled) = prefixes.first().map(Prefix::filled) else { return Ok(()) };
        if case.rows().len() - case.below() < CLOSING || case.rows().len() - filled <= CLOSING {
            return Scalar.count(case, prefixes, parts);
        }
        let top = case.rows().len() - filled;
        if self.engine.case.as_ref() != Some(case) || self.engine.top != top {
            let pools = self.engine.case.as_ref().is_some_and(|old| pool(old, case))
                && self.engine.top == top;
            self.drain(if pools { Flush::Lower } else { Flush::Everything }, parts)?;
            self.engine.case = Some(case.clone());
            self.engine.top = top;
        }
        for prefix in prefixes {
            if self.engine.push(prefix) {
                self.drain(Flush::Nothing, parts)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, parts: &mut Parts) -> Result<(), TallyError> {
        self.drain(Flush::Everything, parts)?;
        self.engine.case = None;
        Ok(())
    }
}

/// Returns whether states of the two symmetry cases are equivalent once the rows below the block
/// are filled.
fn pool(a: &SymmetryCase, b: &SymmetryCase) -> bool {
    a.weight() == b.weight()
        && a.below() == b.below()
        && a.rows() == b.rows()
        && a.allowed()[a.below()..] == b.allowed()[b.below()..]
}

/// The stacks and lanes of every level, and the symmetry case that the states belong to.
pub(super) struct Engine {
    levels: Vec<Level>,
    case: Option<SymmetryCase>,
    /// The level of the prefixes.
    top: usize,
    found: Found,
}

impl Engine {
    /// Creates an engine without states: 0.7 MB.
    fn new() -> Self {
        let levels = (0..=MAX_COUNT_SIZE).map(|_| Level::new()).collect();
        Self { levels, case: None, top: 0, found: Found::default() }
    }

    /// Pushes a prefix onto the top level; returns whether that is now full.
    fn push(&mut self, prefix: &Prefix) -> bool {
        let Some(case) = &self.case else { return false };
        let (k, state, n) = (prefix.filled(), prefix.state(), case.n());
        if case.available(k, state) == 0 {
            return false;
        }
        let row = case.rows()[k];
        let first_upper = case.rows()[case.below()];
        // Going up, antidiagonals move left; going down they move right.
        let upper = [state.antidiagonal_window(first_upper), state.diagonal_window(n, first_upper)];
        let [left, right] = if k < case.below() {
            [state.diagonal_window(n, row), state.antidiagonal_window(row)]
        } else {
            upper
        };
        self.levels[self.top].push([full_row(n) & !state.columns, left, right, upper[0], upper[1]])
    }

    /// Expands states until every level holds too few to fill its lanes, and none where `flush`
    /// requires it.
    #[inline(always)]
    pub(super) fn drain<L: Lanes>(&mut self, lanes: L, flush: Flush) {
        let Self { levels, case, top, found } = self;
        let Some(case) = case else { return };
        let upper_rows = case.rows().len() - case.below();
        let flush_to = match flush {
            Flush::Nothing => usize::MAX,
            Flush::Lower => upper_rows + 1,
            Flush::Everything => CLOSING,
        };
        // The highest level that may hold states; the levels above it have been flushed.
        let mut base = *top;
        let mut left = base;
        loop {
            let (below, from) = levels.split_at_mut(left);
            let (level, child) = (&mut from[0], &mut below[left - 1]);
            let flushing = left == base && base >= flush_to;
            let row = &Row::new(lanes, case, case.rows().len() - left);
            let outcome = if left == CLOSING {
                level.close(lanes, row, flushing, found)
            } else if left > upper_rows {
                level.expand::<L, true, false>(lanes, row, child, flushing, found)
            } else if left <= L::LOOK_AHEAD_ROWS {
                level.expand::<L, false, true>(lanes, row, child, flushing, found)
            } else {
                level.expand::<L, false, false>(lanes, row, child, flushing, found)
            };
            match outcome {
                Outcome::ChildFull => left -= 1,
                Outcome::Dry if left < base => left += 1,
                Outcome::Dry if base > flush_to => {
                    base -= 1;
                    left = base;
                }
                Outcome::Dry => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::testing::{decompose, queens};
    use crate::kernel::count_range;
    use crate::kernel::simd::lanes::assert_lanes_contract;
    use crate::kernel::simd::portable::{Portable, kernel};

    fn count(kernel: &mut dyn Kernel, n: usize) -> Result<u128, TallyError> {
        let decomposition = decompose(&queens(n, &[], &[]), Some(3), 1);
        count_range(kernel, &decomposition, 0..decomposition.prefixes())?.solutions()
    }

    #[test]
    fn the_batch_search_is_correct_with_plain_loops_of_any_width() {
        for (n, solutions) in [(8, 92), (9, 352), (10, 724), (11, 2680), (12, 14200), (13, 73712)] {
            assert_eq!(count(&mut *kernel::<16, 32>(), n), Ok(solutions), "16 lanes, n = {n}");
            assert_eq!(count(&mut *kernel::<8, 32>(), n), Ok(solutions), "8 lanes, n = {n}");
            assert_eq!(count(&mut *kernel::<1, 32>(), n), Ok(solutions), "1 lane, n = {n}");
        }
    }

    #[test]
    fn lane_counters_of_the_proven_width_never_wrap() {
        // 13 bits hold MOST_PER_VISIT even if a single lane found everything.
        assert_eq!(count(&mut *kernel::<1, 13>(), 14), Ok(365_596));
        assert_eq!(count(&mut *kernel::<16, 13>(), 14), Ok(365_596));
    }

    #[test]
    fn a_lane_counter_that_wraps_is_caught_by_the_residues() {
        let outcome = count(&mut *kernel::<16, 2>(), 13);
        assert!(matches!(outcome, Err(TallyError::Residues { .. })), "{outcome:?}");
    }

    #[test]
    fn the_plain_loops_satisfy_the_contract_of_lanes() {
        let words = [[0b1011; 16], std::array::from_fn(|i| i as u32), [4; 16]];
        assert_lanes_contract(Portable::<16, 32>, &words, 3, 0b1010_1100_0101_1010);
        assert_lanes_contract(Portable::<8, 32>, &words, 33, 0b1010_1100);
    }
}
