//! CPU kernels with faults.

use std::sync::Arc;

use nqueens::decomposition::{Prefix, SymmetryCase};
use nqueens::kernel::Kernel;
use nqueens::tally::{Parts, Residues, TallyError};

/// The injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An assertion in the kernel fails.
    Panics,
    /// It reports that a sum is too large.
    Overflows,
    /// A bit of a counter flips, so that it disagrees with its residues.
    Contradicts,
    /// It finds too much, and its residues agree.
    Miscounts,
}

/// When a fault is injected.
pub trait Trigger: Fn(&SymmetryCase, &[Prefix]) -> Option<Fault> + Send + Sync {}

impl<T: Fn(&SymmetryCase, &[Prefix]) -> Option<Fault> + Send + Sync> Trigger for T {}

/// A sound kernel with injected faults.
pub struct Faulty {
    pub sound: Box<dyn Kernel>,
    pub trigger: Arc<dyn Trigger>,
}

impl Kernel for Faulty {
    fn count(
        &mut self,
        plan: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        match (self.trigger)(plan, prefixes) {
            None => self.sound.count(plan, prefixes, parts),
            Some(Fault::Panics) => panic!("on purpose"),
            Some(Fault::Overflows) => Err(TallyError::Overflow),
            Some(Fault::Contradicts) => {
                parts.add(plan.weight(), 1u32 << 20, Residues::default(), 0u32)?;
                self.sound.count(plan, prefixes, parts)
            }
            Some(Fault::Miscounts) => {
                parts.add(plan.weight(), 3u32, Residues::of(3), 0u32)?;
                self.sound.count(plan, prefixes, parts)
            }
        }
    }

    fn finish(&mut self, parts: &mut Parts) -> Result<(), TallyError> {
        self.sound.finish(parts)
    }
}
