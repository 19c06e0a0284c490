//! Any piece.

use super::Kernel;
use crate::preplacement::{Plan, Prefix};
use crate::tally::{Tally, TallyError};

/// The kernel for any piece.
#[derive(Debug)]
pub struct Generic;

impl Kernel for Generic {
    fn count(&mut self, plan: &Plan, prefixes: &[Prefix], tally: &mut Tally) -> Result<(), TallyError> {
        super::reference::Reference.count(plan, prefixes, tally)
    }
}
