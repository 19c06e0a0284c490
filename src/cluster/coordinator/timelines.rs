//! The progress of each job over time: its throughput in the last minutes, and its history.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::history::{History, HistorySample};
use super::now_ms;
use super::throughput::Throughput;
use crate::cluster::campaign::{Campaign, JobProgress, JobState};
use crate::cluster::ledger::Entry;
use crate::cluster::protocol::v1::TimeLeft;
use crate::decomposition::JobHash;

/// The progress of each job over time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Timelines {
    /// Of this run only.
    #[serde(skip)]
    throughputs: HashMap<JobHash, Throughput>,
    histories: HashMap<JobHash, History>,
}

impl Timelines {
    /// Replaces the histories, because the ledger is read again.
    pub(super) fn replace_histories(&mut self, of: Self) {
        self.histories = of.histories;
    }

    /// Starts the history of a job that was submitted at a time, in ms since 1970.
    pub(super) fn add_job(&mut self, job: JobHash, submitted_ms: u64) {
        self.histories.insert(job, History::new(submitted_ms));
    }

    /// Adds the points between the last entry of a job and the next one, which is not applied yet.
    pub(super) fn advance(&mut self, campaign: &Campaign, next: &Entry) {
        if let Some(job) = next.event.job()
            && let Some(history) = self.histories.get_mut(&job)
            && let Some((done, verified)) = campaign.done_and_checked(&job)
        {
            history.advance(HistorySample { at_ms: next.at_ms, done, verified });
        }
    }

    /// Adds the last point of each job, once all entries are applied.
    pub(super) fn end_histories(&mut self, campaign: &Campaign) {
        for (job, history) in &mut self.histories {
            if let Some((done, verified)) = campaign.done_and_checked(job) {
                history.end(done, verified);
            }
        }
    }

    /// Samples the progress of all jobs. `steady_ms` is the time of the campaign's clock.
    pub(super) fn sample(&mut self, campaign: &Campaign, steady_ms: u64) {
        for job in campaign.jobs() {
            let Some(progress) = campaign.progress(&job) else { continue };
            if progress.state.is_counted() {
                let throughput = self.throughputs.entry(job).or_default();
                throughput.observe(steady_ms, progress.done, progress.is_counted());
            }
            if matches!(progress.state, JobState::Running | JobState::Paused | JobState::Disputed) {
                let point = HistorySample {
                    at_ms: now_ms(),
                    done: progress.done,
                    verified: progress.checked,
                };
                if let Some(history) = self.histories.get_mut(&job) {
                    history.observe(point);
                }
            }
        }
    }

    /// Returns the points of a job after a time, in ms since 1970.
    pub(super) fn history(&self, job: &JobHash, after_ms: u64) -> &[HistorySample] {
        self.histories.get(job).map(|history| history.after(after_ms)).unwrap_or_default()
    }

    /// Estimates the time until all units of a job are counted.
    pub(super) fn left(
        &self,
        job: &JobHash,
        steady_ms: u64,
        progress: &JobProgress,
    ) -> Option<TimeLeft> {
        let JobProgress { done, units, .. } = *progress;
        self.throughputs.get(job)?.left(steady_ms, done, units - done, progress.is_counted())
    }

    /// Returns the average number of units of a job per second in the last minutes.
    pub(super) fn units_per_s(&self, job: &JobHash, steady_ms: u64, done: u64) -> f64 {
        self.throughputs.get(job).map_or(0.0, |rate| rate.units_per_s(steady_ms, done))
    }
}
