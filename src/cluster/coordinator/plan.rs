//! Planning of submitted jobs. Workers derive the same units from the text of the job.

use std::sync::Arc;

use crate::board::Problem;
use crate::decomposition::{Decomposition, JobError};
use crate::engine::plan_for_campaign;

/// A job that can be submitted.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) decomposition: Arc<Decomposition>,
}

/// Plans a problem. This takes seconds for large boards.
pub(super) fn plan(problem: &Problem) -> Result<Planned, JobError> {
    Ok(Planned { decomposition: Arc::new(plan_for_campaign(problem)?) })
}
