//! What people are told.

use super::books::JobInfo;
use super::history::Point;
use super::keeper::Keeper;
use super::now_ms;
use super::requests::StateError;
use crate::campaign::{JobProgress, JobState, SourceShare};
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
            lease_ms,
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
            left: (progress.state == JobState::Running)
                .then(|| self.left(&job, progress.done, progress.units - progress.done))
                .flatten(),
        }
    }

    /// The map of the job whose name begins with `digits`; without cells if the caller has this version.
    pub(super) fn unit_map(&self, digits: &str, version: u64) -> Result<v1::UnitMapResponse, StateError> {
        let job = self.find(digits)?;
        let map = self.campaign.map(&job).ok_or_else(|| StateError::NoSuchJob(digits.to_owned()))?;
        // Of another run, it would be another.
        let now = self.opened_ms.wrapping_mul(1 << 32).wrapping_add(map.changes()).max(1);
        let mut answer = v1::UnitMapResponse {
            job: job.to_bytes().into(),
            version: now,
            units: map.units(),
            units_per_cell: map.units_per_cell(),
            ..v1::UnitMapResponse::default()
        };
        if version != now {
            for (index, cell) in map.cells().iter().enumerate() {
                let share = |units: u32| share(units.into(), map.size(index));
                answer.done.push(share(cell.done));
                answer.verified.push(share(cell.verified));
                answer.leased.push(share(cell.leased));
                answer.poisoned.push(share(cell.poisoned));
            }
        }
        Ok(answer)
    }

    /// How far the job was whose name begins with `digits`, after a time.
    pub(super) fn history(&self, digits: &str, after_ms: u64) -> Result<v1::HistoryResponse, StateError> {
        let job = self.find(digits)?;
        let points = self.histories.get(&job).map(|history| history.after(after_ms)).unwrap_or_default();
        let point = |point: &Point| v1::HistoryPoint {
            at_ms: point.at_ms,
            done: point.done,
            verified: point.verified,
        };
        Ok(v1::HistoryResponse { job: job.to_bytes().into(), points: points.iter().map(point).collect() })
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
                units_per_s: worker.units_per_s.values().fold(0.0, |sum, rate| sum + rate),
            }
        });
        v1::WorkersResponse { workers: workers.collect() }
    }
}

/// So many of all: 0 for none, 255 for all, and in between only what is in between.
fn share(units: u64, all: u64) -> u8 {
    match units {
        0 => 0,
        _ if units >= all => 255,
        // Between 1 and 254.
        _ => (units * 255 / all).clamp(1, 254) as u8,
    }
}

/// More help nobody.
const MOST_NOTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_none_or_all_looks_like_no_other() {
        for all in [1, 2, 244, 255, 256, 1_000_000] {
            for units in [0, 1, all / 2, all - 1, all] {
                let share = share(units, all);
                assert_eq!((share == 0, share == 255), (units == 0, units == all), "{units} of {all}");
            }
        }
        assert_eq!(share(1, 2), 127);
    }
}
