//! The kernel of jobs in column sets.

use super::{Instructions, SetCounter};
use crate::decomposition::{ColumnSet, Prefix, SetFamily, SymmetryCase};
use crate::kernel::Kernel;
use crate::tally::{Parts, TallyError};

/// Counts column sets, some of them twice: the second time by another kernel, which shares nothing
/// with the first one but the definition of the set. So a list that is incomplete, doubled or cut
/// at the wrong place is detected, as are wrong planes and completions.
pub(in crate::kernel) struct SetKernel {
    counter: SetCounter,
    /// The kernel that counts sets for the second time, and prefixes.
    other: Box<dyn Kernel>,
}

impl SetKernel {
    /// Creates the kernel. Returns `None` if this processor lacks the instructions.
    pub(in crate::kernel) fn new(
        instructions: Instructions,
        other: Box<dyn Kernel>,
    ) -> Option<Self> {
        Some(Self { counter: SetCounter::new(instructions)?, other })
    }
}

impl Kernel for SetKernel {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        self.other.count(case, prefixes, parts)
    }

    fn prepare(&mut self, family: &SetFamily) {
        self.counter.prepare(family);
    }

    fn count_set(
        &mut self,
        family: &SetFamily,
        set: &ColumnSet,
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        let before = self.counter.counters();
        let (placements, residues) = self.counter.count(family, set);
        let after = self.counter.counters();
        let nodes = after.listed - before.listed + (after.states - before.states);
        parts.add(set.weight, placements, residues, nodes)?;
        if !is_sampled(set, SAMPLED_BITS) {
            return Ok(());
        }
        let mut again = Parts::default();
        self.other.count_set(family, set, &mut again)?;
        let again = again.total()?.thirds() / u128::from(set.weight);
        if again == placements {
            Ok(())
        } else {
            Err(TallyError::CountedTwice { first: placements, second: again })
        }
    }

    fn finish(&mut self, parts: &mut Parts) -> Result<(), TallyError> {
        self.other.finish(parts)
    }
}

/// One set of this power of two is counted twice.
const SAMPLED_BITS: u32 = 9;

/// Returns whether a set is one of the sample of sets that are counted twice: one of 2^`bits`, from
/// 1 on, always the same ones.
pub(in crate::kernel) const fn is_sampled(set: &ColumnSet, bits: u32) -> bool {
    // The high bits of the product with 2^64 / φ are evenly distributed.
    let [first, second] = set.first_rows;
    let distinct = (set.upper as u64) << 32 | (first ^ second) as u64;
    distinct.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits) == 0
}
