//! The kernel of jobs in column sets.

use super::{Instructions, SetCounter};
use crate::decomposition::{ColumnSet, Prefix, SetFamily, SymmetryCase};
use crate::kernel::Kernel;
use crate::tally::{Parts, TallyError};

/// Counts column sets, some of them twice: the second time by another kernel, which shares nothing
/// with the first one but the definition of the set. So a list that is incomplete, doubled or cut
/// at the wrong place is detected, as are wrong planes and completions.
pub(in crate::kernel) struct SetKernel {
    instructions: Instructions,
    /// The counters of the families seen so far.
    counters: Vec<(SetFamily, SetCounter)>,
    /// The kernel that counts sets for the second time, and prefixes.
    other: Box<dyn Kernel>,
}

/// The most families with counters: those of the empty board and of its mirror image.
const MOST_FAMILIES: usize = 6;

impl SetKernel {
    /// Creates the kernel for instructions that this processor has.
    pub(in crate::kernel) fn new(instructions: Instructions, other: Box<dyn Kernel>) -> Self {
        Self { instructions, counters: Vec::new(), other }
    }

    /// Returns the counter of a family.
    fn counter(&mut self, family: &SetFamily) -> Option<&mut SetCounter> {
        let known = self.counters.iter().position(|(of, _)| of == family);
        let index = match known {
            Some(index) => index,
            None => {
                if self.counters.len() == MOST_FAMILIES {
                    // Another job.
                    self.counters.clear();
                }
                let counter = SetCounter::new(family, self.instructions)?;
                self.counters.push((family.clone(), counter));
                self.counters.len() - 1
            }
        };
        Some(&mut self.counters[index].1)
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
        // Without these instructions there are no tables.
        let _ = self.counter(family);
    }

    fn count_set(
        &mut self,
        family: &SetFamily,
        set: &ColumnSet,
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        let Some(counter) = self.counter(family) else {
            return self.other.count_set(family, set, parts);
        };
        let before = counter.counters();
        let (placements, residues) = counter.count(set);
        let after = counter.counters();
        let nodes = after.listed - before.listed + (after.states - before.states);
        parts.add(set.weight, placements, residues, nodes)?;
        if !is_counted_twice(set) {
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

/// Returns whether a set is counted twice: one set of 512, always the same ones.
const fn is_counted_twice(set: &ColumnSet) -> bool {
    // The high bits of the product with 2^32 / φ are evenly distributed. Parts differ in `first`.
    (set.upper ^ set.first.rotate_left(16)).wrapping_mul(0x9e37_79b9) >> (32 - 9) == 0
}
