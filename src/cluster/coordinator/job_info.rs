//! Information about a job besides its units.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::now_ms;
use crate::cluster::campaign::CampaignEvent;
use crate::decomposition::{Decomposition, Job, JobHash};

/// The jobs of a coordinator.
pub(super) type Jobs = BTreeMap<JobHash, JobInfo>;

/// Information about a job besides its units.
#[derive(Clone, Debug)]
pub(super) struct JobInfo {
    pub(super) job: Job,
    pub(super) submitter: String,
    /// The time at which the state last changed, in ms since 1970.
    pub(super) state_ms: u64,
    /// The units, planned on first use.
    decomposition: Option<Arc<Decomposition>>,
    /// The reasons that units are set aside.
    pub(super) poison: BTreeMap<u64, String>,
}

impl JobInfo {
    pub(super) const fn new(job: Job, submitter: String, state_ms: u64) -> Self {
        Self { job, submitter, state_ms, decomposition: None, poison: BTreeMap::new() }
    }

    /// Sets the units, which are then not planned again.
    pub(super) fn with_decomposition(self, decomposition: &Arc<Decomposition>) -> Self {
        Self { decomposition: Some(Arc::clone(decomposition)), ..self }
    }

    /// Returns the units, planned on first use.
    pub(super) fn decomposition(&mut self) -> Arc<Decomposition> {
        let job = &self.job;
        let units =
            self.decomposition.get_or_insert_with(|| Arc::new(Decomposition::new(job.clone())));
        Arc::clone(units)
    }
}

/// Updates the information about jobs after an event was applied.
pub(super) fn update(jobs: &mut Jobs, event: &CampaignEvent) {
    match event {
        CampaignEvent::JobState { job, .. } => {
            if let Some(info) = jobs.get_mut(job) {
                info.state_ms = now_ms();
            }
        }
        CampaignEvent::UnitPoisoned { unit, reason } => {
            if let Some(info) = jobs.get_mut(&unit.job) {
                info.poison.insert(unit.unit, reason.clone());
            }
        }
        CampaignEvent::UnitRevived { unit } => {
            if let Some(info) = jobs.get_mut(&unit.job) {
                info.poison.remove(&unit.unit);
            }
        }
        _ => {}
    }
}
