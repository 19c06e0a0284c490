//! Jobs are planned here, once; workers plan them again from the text and get the same units.

use crate::board::Problem;
use crate::engine::plan_for_campaign;
use crate::preplacement::{Job, JobError};

/// A job that can be submitted.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) job: Job,
    pub(super) units: u64,
}

/// Plans a problem. Takes seconds for large boards.
pub(super) fn plan(problem: &Problem) -> Result<Planned, JobError> {
    let decomposition = plan_for_campaign(problem)?;
    Ok(Planned { units: decomposition.units(), job: decomposition.job().clone() })
}
