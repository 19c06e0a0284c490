//! Information about a job besides its units.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cluster::campaign::CampaignEvent;
use crate::cluster::ledger::Entry;
use crate::decomposition::{Decomposition, Job, JobHash};

/// The jobs of a coordinator.
pub(super) type Jobs = BTreeMap<JobHash, JobInfo>;

/// Information about a job besides its units.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobInfo {
    #[serde(serialize_with = "job_as_text", deserialize_with = "job_of_text")]
    pub(super) job: Job,
    pub(super) submitter: String,
    /// The time at which the state last changed, in ms since 1970.
    pub(super) state_ms: u64,
    /// The units, planned on first use.
    #[serde(skip)]
    decomposition: Option<Arc<Decomposition>>,
    /// The reasons that units are set aside.
    pub(super) poison: BTreeMap<u64, String>,
}

fn job_as_text<S: Serializer>(job: &Job, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(job)
}

fn job_of_text<'de, D: Deserializer<'de>>(from: D) -> Result<Job, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

impl JobInfo {
    pub(super) const fn new(job: Job, submitter: String, state_ms: u64) -> Self {
        Self { job, submitter, state_ms, decomposition: None, poison: BTreeMap::new() }
    }

    /// Sets the units, which are then not planned again.
    pub(super) fn set_decomposition(&mut self, decomposition: &Arc<Decomposition>) {
        self.decomposition = Some(Arc::clone(decomposition));
    }

    /// Returns the units, planned on first use.
    pub(super) fn decomposition(&mut self) -> Arc<Decomposition> {
        let job = &self.job;
        let units =
            self.decomposition.get_or_insert_with(|| Arc::new(Decomposition::new(job.clone())));
        Arc::clone(units)
    }
}

/// Updates the information about jobs after an entry was applied, which may have changed the state
/// of its job.
pub(super) fn update(jobs: &mut Jobs, entry: &Entry, state_changed: bool) {
    if let CampaignEvent::JobSubmitted { job: hash, text, submitter, .. } = &entry.event
        // The ledger accepts no text but that of the job.
        && let Ok(job) = text.parse()
    {
        jobs.insert(*hash, JobInfo::new(job, submitter.clone(), entry.at_ms));
    }
    let Some(info) = entry.event.job().and_then(|job| jobs.get_mut(&job)) else { return };
    if state_changed {
        info.state_ms = entry.at_ms;
    }
    match &entry.event {
        CampaignEvent::UnitPoisoned { unit, reason } => {
            info.poison.insert(unit.unit, reason.clone());
        }
        CampaignEvent::UnitRevived { unit } | CampaignEvent::UnitDone { unit, .. } => {
            info.poison.remove(&unit.unit);
        }
        _ => {}
    }
}
