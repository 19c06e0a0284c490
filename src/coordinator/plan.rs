//! Jobs are planned here, once; workers plan them again from the text and get the same units.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::board::Problem;
use crate::engine::plan_for_campaign;
use crate::preplacement::{Decomposition, Job, JobError, JobHash};

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

/// The decompositions of a few jobs, so that they need not be made for each unit.
#[derive(Debug, Default)]
pub(super) struct Decompositions(Mutex<HashMap<JobHash, Arc<Decomposition>>>);

impl Decompositions {
    pub(super) fn get(&self, job: &Job) -> Arc<Decomposition> {
        const MOST: usize = 4;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decomposition) = known.get(&job.hash()) {
            return Arc::clone(decomposition);
        }
        if known.len() >= MOST {
            known.clear();
        }
        let decomposition = Arc::new(Decomposition::new(job.clone()));
        known.insert(job.hash(), Arc::clone(&decomposition));
        decomposition
    }
}
