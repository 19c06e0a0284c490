//! Jobs are planned here, once; workers plan them again from the text and get the same units.

use std::sync::Arc;

use crate::board::Problem;
use crate::decomposition::{Decomposition, JobError};
use crate::engine::plan_for_campaign;

/// A job that can be submitted.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) decomposition: Arc<Decomposition>,
}

/// Plans a problem. Takes seconds for large boards.
pub(super) fn plan(problem: &Problem) -> Result<Planned, JobError> {
    Ok(Planned { decomposition: Arc::new(plan_for_campaign(problem)?) })
}
