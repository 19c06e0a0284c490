//! What people are told.

use super::books::JobInfo;
use super::keeper::Keeper;
use super::now_ms;
use crate::campaign::{JobProgress, SourceShare};
use crate::preplacement::JobHash;
use crate::wire::{BUILD, v1};

impl Keeper {
    /// How the jobs stand whose names begin with `digits`, in the order of their submission.
    pub(super) fn status(&self, digits: &str) -> v1::StatusResponse {
        let mut jobs: Vec<v1::JobStatus> = self
            .jobs
            .iter()
            .filter(|(job, _)| job.to_string().starts_with(digits))
            .filter_map(|(&job, info)| Some(self.job_status(job, info, &self.campaign.progress(&job)?)))
            .collect();
        jobs.sort_by(|a, b| (a.submitted_ms, &a.job).cmp(&(b.submitted_ms, &b.job)));
        let (steady_ms, lease_ms) = (self.clock.now_ms(), self.settings.lease_ms);
        let workers =
            self.campaign.workers().filter(|(_, worker)| worker.seen_ms + lease_ms > steady_ms).count();
        v1::StatusResponse {
            jobs,
            now_ms: now_ms(),
            workers: u32::try_from(workers).unwrap_or(u32::MAX),
            trouble: self.trouble.clone().unwrap_or_default(),
            build: BUILD.to_owned(),
            proofs: Vec::new(),
        }
    }

    fn job_status(&self, job: JobHash, info: &JobInfo, progress: &JobProgress) -> v1::JobStatus {
        let totals = self.file().and_then(|file| file.totals(&job)).unwrap_or_default();
        let sources = self.campaign.shares(&job).into_iter().map(|share| {
            let SourceShare { source, units, confirmed, confirmations } = share;
            v1::SourceStatus {
                worker: source.worker,
                kernel: source.kernel,
                device: source.device,
                build: source.build,
                units,
                confirmed,
                confirmations,
            }
        });
        let mut notes: Vec<String> = Vec::new();
        notes.extend(
            info.poison.iter().take(MOST_NOTES).map(|(unit, why)| format!("unit {unit} is set aside: {why}")),
        );
        notes.extend(self.doubts.get(&job).cloned());
        let undecided = self.undecided.iter().filter(|(unit, _)| unit.job == job);
        notes.extend(undecided.take(MOST_NOTES).map(|(unit, why)| {
            format!("two results for unit {} differ, and the referee cannot decide: {why}", unit.unit)
        }));
        if progress.disputes > 0 {
            notes.push(format!("results of {} units differ; the referee counts them", progress.disputes));
        }
        let mut quarantined: Vec<_> = self.campaign.quarantined().iter().collect();
        quarantined.sort();
        notes.extend(
            quarantined
                .iter()
                .take(MOST_NOTES)
                .map(|(worker, why)| format!("{worker} is in quarantine: {why}")),
        );
        v1::JobStatus {
            job: job.to_bytes().into(),
            text: info.job.to_string(),
            state: v1::JobState::from(progress.state).into(),
            priority: progress.priority,
            submitter: info.submitter.clone(),
            submitted_ms: progress.submitted_ms,
            state_ms: info.state_ms,
            units: progress.units,
            done: progress.done,
            checked: progress.checked,
            poisoned: progress.poisoned,
            open: progress.open,
            checks_due: progress.checks_due,
            disputes: progress.disputes,
            total: Some((&progress.total).into()),
            units_per_s: self.units_per_s(&job, progress.done),
            counting_s: progress.counting_s,
            checking_s: progress.checking_s,
            sources: sources.collect(),
            agreements: totals.recounts - totals.disagreements,
            disagreements: totals.disagreements,
            voided: totals.voided,
            notes,
        }
    }

    /// The workers that were heard of since the start, by name.
    pub(super) fn workers(&self) -> v1::WorkersResponse {
        let held = self.campaign.held();
        let (now_ms, steady_ms) = (now_ms(), self.clock.now_ms());
        let workers = self.campaign.workers().map(|(name, worker)| {
            let about = self.about.get(name).cloned().unwrap_or_default();
            v1::WorkerStatus {
                name: name.clone(),
                build: about.build,
                capacity: worker.capacity,
                kernels: worker.kernels.clone(),
                devices: about.devices,
                seen_ms: now_ms.saturating_sub(steady_ms.saturating_sub(worker.seen_ms)),
                draining: worker.draining,
                units_done: worker.units_done,
                held: held.get(name).copied().unwrap_or(0),
                quarantined: self.campaign.quarantined().get(name).cloned().unwrap_or_default(),
                address: about.address,
            }
        });
        v1::WorkersResponse { workers: workers.collect() }
    }
}

/// More help nobody.
const MOST_NOTES: usize = 20;
