//! The state that follows from the entries of a ledger, and the rules for the next entry. Uses
//! neither disk nor clock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::in_force::InForce;
use super::invalid_entry::InvalidEntry;
use super::job_entries::JobEntries;
use crate::cluster::campaign::{CampaignEvent, JobState, WorkerName};
use crate::cluster::storage::{PagedMap, SnapshotError, SnapshotFile, SnapshotWriter};
use crate::decomposition::{Job, JobHash};
use crate::tally::Tally;

/// The running totals of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTotals {
    /// The sum of the results in force.
    pub tally: Tally,
    /// Units that have a result in force.
    pub done: u64,
    /// Units among them whose result in force was confirmed by a recount.
    pub verified: u64,
    /// Poisoned units.
    pub poisoned: u64,
    /// Recounts and spot checks of any result, voided ones included.
    pub recounts: u64,
    /// Recounts and spot checks that disagreed.
    pub disagreements: u64,
    /// Voided results.
    pub voided: u64,
}

/// The mutable part of a job, as stored in a row of totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobRow {
    /// The number of the entry that submitted the job.
    pub(super) submitted_by: u64,
    pub(super) state: JobState,
    pub(super) state_ms: u64,
    pub(super) totals: JobTotals,
}

/// The submission of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSubmission {
    /// The job: the hash of `text`.
    pub job: JobHash,
    /// The canonical text of the job.
    pub text: String,
    /// Units of the job.
    pub units: u64,
    /// Priority; jobs with a higher one come first.
    pub priority: i32,
    /// The submitter.
    pub submitter: String,
    /// Time of submission, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl JobSubmission {
    /// Returns the submission that an event is, if it is one.
    pub(super) fn of(event: &CampaignEvent) -> Option<Self> {
        let CampaignEvent::JobSubmitted { job, text, units, priority, submitter, at_ms, .. } =
            event
        else {
            return None;
        };
        let (text, submitter) = (text.clone(), submitter.clone());
        let (job, units, priority, at_ms) = (*job, *units, *priority, *at_ms);
        Some(Self { job, text, units, priority, submitter, at_ms })
    }
}

/// The inverse of one change.
#[derive(Debug)]
pub(super) enum Undo {
    Submitted(JobHash),
    Row(JobHash, JobRow),
    Done(JobHash, u64, Option<InForce>),
    Poisoned(JobHash, u64, bool),
    Owner(WorkerName, Option<String>),
}

/// The state of a campaign's ledger.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LedgerState {
    /// The folder for the units that are not in memory; `None` keeps all of them there.
    #[serde(skip)]
    folder: Option<PathBuf>,
    jobs: HashMap<JobHash, JobEntries>,
    /// The jobs in the order of submission.
    order: Vec<JobHash>,
    /// The owner of each worker, according to its last recorded call.
    owners: BTreeMap<WorkerName, String>,
}

impl LedgerState {
    /// Creates the state of an empty ledger. The units of its jobs need not all be in memory if
    /// there is a folder.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// Completes the state that was read from a snapshot.
    pub(super) fn complete(&mut self, folder: Option<PathBuf>, snapshot: &Arc<SnapshotFile>) {
        for job in self.jobs.values_mut() {
            job.done.set_folder(folder.clone());
        }
        self.folder = folder;
        self.continue_with(snapshot);
    }

    /// Writes the units that were changed since the last snapshot.
    pub(super) fn write_changed(
        &mut self,
        snapshot: &mut SnapshotWriter<'_>,
    ) -> Result<(), SnapshotError> {
        self.jobs.values_mut().try_for_each(|job| job.done.write_changed(snapshot))
    }

    /// Continues with a snapshot in which all units are now.
    pub(super) fn continue_with(&mut self, snapshot: &Arc<SnapshotFile>) {
        for job in self.jobs.values_mut() {
            job.done.continue_with(snapshot);
        }
    }

    /// Returns the number of the entry with the result that `entry` refers to, if one is in force.
    /// The tally of that result must be passed to [`Self::apply`].
    pub(super) fn result_of(&self, entry: &Entry) -> Option<u64> {
        match &entry.event {
            CampaignEvent::Recount { unit, .. } | CampaignEvent::UnitVoided { unit, .. } => {
                Some(self.jobs.get(&unit.job)?.done.get(unit.unit)?.entry())
            }
            _ => None,
        }
    }

    /// Applies entry number `number`, counted from 1. `result` is the tally of the entry that
    /// [`Self::result_of`] returns. The inverse of each change is added to `undo`.
    ///
    /// # Errors
    /// Returns an error if the entry is not valid after its predecessors; nothing has changed then.
    pub(super) fn apply(
        &mut self,
        number: u64,
        entry: &Entry,
        result: Option<&Tally>,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        if let Some(submission) = JobSubmission::of(&entry.event) {
            return self.submit(number, submission, undo);
        }
        if let Some(hash) = entry.event.job() {
            let job = self.jobs.get_mut(&hash).ok_or(InvalidEntry::NoSuchJob(hash))?;
            return job.apply(number, entry, result, undo);
        }
        if let CampaignEvent::WorkerSeen { worker, owner, .. } = &entry.event {
            let before = self.owners.insert(worker.clone(), owner.clone());
            undo.push(Undo::Owner(worker.clone(), before));
        }
        Ok(())
    }

    fn submit(
        &mut self,
        number: u64,
        submission: JobSubmission,
        undo: &mut Vec<Undo>,
    ) -> Result<(), InvalidEntry> {
        let hash = submission.job;
        if submission.text.parse::<Job>().map(|job| job.hash()) != Ok(hash) {
            return Err(InvalidEntry::JobText(hash));
        }
        if self.jobs.contains_key(&hash) {
            return Err(InvalidEntry::DuplicateJob(hash));
        }
        let row = JobRow {
            submitted_by: number,
            state: JobState::Running,
            state_ms: submission.at_ms,
            totals: JobTotals::default(),
        };
        let (done, poisoned) =
            (PagedMap::new(format!("entries of {hash}"), self.folder.clone()), BTreeSet::new());
        self.jobs.insert(hash, JobEntries { submission, row, done, poisoned });
        self.order.push(hash);
        undo.push(Undo::Submitted(hash));
        Ok(())
    }

    /// Reverts the changes recorded in `undo`.
    pub(super) fn revert(&mut self, undo: Vec<Undo>) {
        for step in undo.into_iter().rev() {
            match step {
                Undo::Submitted(hash) => {
                    self.jobs.remove(&hash);
                    self.order.pop();
                }
                Undo::Row(hash, row) => self.with_job(hash, |job| job.row = row),
                Undo::Done(hash, unit, before) => self.with_job(hash, |job| {
                    job.done.set(unit, before);
                }),
                Undo::Poisoned(hash, unit, true) => self.with_job(hash, |job| {
                    job.poisoned.insert(unit);
                }),
                Undo::Poisoned(hash, unit, false) => self.with_job(hash, |job| {
                    job.poisoned.remove(&unit);
                }),
                Undo::Owner(worker, Some(before)) => drop(self.owners.insert(worker, before)),
                Undo::Owner(worker, None) => drop(self.owners.remove(&worker)),
            }
        }
    }

    fn with_job(&mut self, hash: JobHash, change: impl FnOnce(&mut JobEntries)) {
        if let Some(job) = self.jobs.get_mut(&hash) {
            change(job);
        }
    }

    /// Returns the jobs in the order of submission.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobEntries> {
        self.order.iter().filter_map(|hash| self.jobs.get(hash))
    }

    /// Returns a job.
    pub(super) fn job(&self, hash: &JobHash) -> Option<&JobEntries> {
        self.jobs.get(hash)
    }

    /// Returns the workers by name, each with its owner.
    pub(super) fn owners(&self) -> impl Iterator<Item = (&str, &str)> {
        self.owners.iter().map(|(worker, owner)| (&worker[..], &owner[..]))
    }
}
