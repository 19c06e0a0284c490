//! Planning of submitted jobs. Workers derive the same units from the text of the job.

use std::sync::Arc;

use crate::board::Problem;
use crate::decomposition::{Decomposition, Job, JobError, Subproblems};
use crate::engine::{fastest_subproblems, plan_for_campaign};

/// The state of the campaign on which the plan of a problem depends.
#[derive(Clone, Debug)]
pub(super) struct PlanContext {
    /// The job of the same problem that was submitted before.
    pub(super) known: Option<Job>,
    /// True if a worker counts on a GPU.
    pub(super) has_gpu: bool,
}

/// Plans a problem: with the given subproblems, or as the job that is known, or with those that are
/// fastest on the devices of the workers. This takes seconds for large boards.
pub(super) fn plan(
    problem: &Problem,
    subproblems: Option<Subproblems>,
    context: PlanContext,
) -> Result<Arc<Decomposition>, JobError> {
    let subproblems = match (subproblems, context) {
        (Some(chosen), _) => chosen,
        (None, PlanContext { known: Some(job), .. }) => {
            return Ok(Arc::new(Decomposition::new(job)));
        }
        (None, PlanContext { has_gpu: true, .. }) => Subproblems::Prefixes,
        (None, _) => fastest_subproblems(problem),
    };
    Ok(Arc::new(plan_for_campaign(problem, subproblems)?))
}
