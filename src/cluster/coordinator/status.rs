//! Responses about jobs and workers. Their size is bounded, whatever workers report about
//! themselves.

use prost::Message;

use super::actor::CampaignActor;
use super::commands::StateError;
use super::disputes::{describe_dispute, dispute_stage};
use super::history::HistorySample;
use super::job_info::JobInfo;
use super::now_ms;
use crate::cluster::campaign::{DisputeStage, JobProgress, SourceShare, WorkerRecord, is_guest};
use crate::cluster::protocol::v1::{Device, WorkerStatus};
use crate::cluster::protocol::{BUILD, v1};
use crate::decomposition::JobHash;

impl CampaignActor {
    /// Returns the status of the jobs whose names begin with `digits`, in order of submission.
    pub(super) fn status(&self, digits: &str) -> v1::StatusResponse {
        let named: Vec<(JobHash, &JobInfo)> = self
            .jobs
            .iter()
            .map(|(&job, info)| (job, info))
            .filter(|(job, _)| job.to_string().starts_with(digits))
            .collect();
        let is_single = !digits.is_empty() && named.len() == 1;
        let most_sources = if is_single { MOST_SOURCES_OF_ONE } else { MOST_SOURCES_OF_EACH };
        let mut jobs: Vec<v1::JobStatus> = named
            .into_iter()
            .filter_map(|(job, info)| {
                Some(self.job_status(job, info, &self.campaign.progress(&job)?, most_sources))
            })
            .collect();
        jobs.sort_by(|a, b| (a.submitted_ms, &a.job).cmp(&(b.submitted_ms, &b.job)));
        let (steady_ms, lease_ms) = (self.clock.now_ms(), self.campaign.lease_ms());
        let workers = self
            .campaign
            .workers()
            .filter(|(_, worker)| worker.seen_ms + lease_ms > steady_ms)
            .count();
        v1::StatusResponse {
            jobs,
            now_ms: now_ms(),
            workers: u32::try_from(workers).unwrap_or(u32::MAX),
            trouble: self.ledger.trouble().unwrap_or_default().to_owned(),
            build: BUILD.to_owned(),
            proofs: Vec::new(),
            lease_ms,
        }
    }

    fn job_status(
        &self,
        job: JobHash,
        info: &JobInfo,
        progress: &JobProgress,
        most_sources: usize,
    ) -> v1::JobStatus {
        let totals = self.ledger.file().and_then(|file| file.totals(&job)).unwrap_or_default();
        let dispute = describe_dispute(&self.campaign, &self.jobs, &job);
        let mut notes: Vec<String> = Vec::new();
        notes.extend(Some(dispute.clone()).filter(|dispute| !dispute.is_empty()));
        if progress.disputes > 0 {
            notes.push(format!(
                "units with two different results: {}; the arbiter is counting them",
                progress.disputes
            ));
        }
        let undecided = self.disputes.undecided(job).take(MOST_NOTES);
        notes.extend(undecided.map(|(unit, why)| {
            format!("two results for unit {unit} differ, and the arbiter cannot decide: {why}")
        }));
        notes.extend(
            info.poison
                .iter()
                .take(MOST_NOTES)
                .map(|(unit, why)| format!("unit {unit} is set aside: {why}")),
        );
        let mut quarantined: Vec<_> = self.campaign.quarantined().iter().collect();
        // Strangers must not hide the others.
        quarantined.sort_by_key(|&(worker, _)| (is_guest(worker), worker));
        notes.extend(
            quarantined
                .iter()
                .take(MOST_NOTES)
                .map(|(worker, why)| format!("{worker} is in quarantine: {why}")),
        );
        notes.truncate(MOST_NOTES);
        notes.iter_mut().for_each(|note| truncate(note, MOST_NOTE_LETTERS));
        let steady_ms = self.clock.now_ms();
        let left = || self.timelines.left(&job, steady_ms, progress);
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
            units_per_s: self.timelines.units_per_s(&job, steady_ms, progress.done),
            counting_s: progress.counting_s,
            checking_s: progress.checking_s,
            spot_checked: progress.spot_checked,
            audited: progress.audited,
            self_checked: progress.self_checked,
            assurance: self.campaign.assurance(&job),
            audits_due: progress.audits_due,
            dispute,
            dispute_exhausted: dispute_stage(&self.campaign, &job) == Some(DisputeStage::Exhausted),
            sources: sources(self.campaign.shares(&job), most_sources),
            agreements: totals.recounts - totals.disagreements,
            disagreements: totals.disagreements,
            voided: totals.voided,
            notes,
            left: progress.state.is_counted().then(left).flatten(),
            guest_units: progress.guests.units,
            guest_units_rechecked: progress.guests.rechecked,
        }
    }

    /// Returns the map of the job whose name begins with `digits`; without cells if the caller has
    /// this version.
    pub(super) fn unit_map(
        &self,
        digits: &str,
        version: u64,
    ) -> Result<v1::UnitMapResponse, StateError> {
        let job = self.find(digits)?;
        let map =
            self.campaign.map(&job).ok_or_else(|| StateError::NoSuchJob(digits.to_owned()))?;
        // Versions differ between runs of the coordinator.
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

    /// Returns the progress, after a time in ms since 1970, of the job whose name begins with
    /// `digits`.
    pub(super) fn history(
        &self,
        digits: &str,
        after_ms: u64,
    ) -> Result<v1::HistoryResponse, StateError> {
        let job = self.find(digits)?;
        let points = self.timelines.history(&job, after_ms);
        let point = |point: &HistorySample| v1::HistoryPoint {
            at_ms: point.at_ms,
            done: point.done,
            verified: point.verified,
        };
        Ok(v1::HistoryResponse {
            job: job.to_bytes().into(),
            points: points.iter().map(point).collect(),
        })
    }

    /// Returns the workers seen since the start, by name. If there are too many, returns those that
    /// were seen last.
    pub(super) fn workers(&self) -> v1::WorkersResponse {
        let (held, records) = (self.campaign.held(), self.campaign.records());
        let (now_ms, steady_ms) = (now_ms(), self.clock.now_ms());
        let mut shown: Vec<_> = self.campaign.workers().collect();
        if shown.len() > MOST_WORKERS {
            shown.sort_by_key(|(_, worker)| std::cmp::Reverse(worker.seen_ms));
            shown.truncate(MOST_WORKERS);
            shown.sort_by_key(|&(name, _)| name);
        }
        let workers = shown.into_iter().map(|(name, worker)| {
            let details = self.workers.details(name);
            let WorkerRecord { units, confirmed, proven } =
                records.get(name).copied().unwrap_or_default();
            bounded(v1::WorkerStatus {
                name: name.clone(),
                build: details.build,
                capacity: worker.capacity,
                kernels: worker.kernels.clone(),
                devices: details.devices,
                seen_ms: now_ms.saturating_sub(steady_ms.saturating_sub(worker.seen_ms)),
                draining: worker.draining,
                units_done: worker.units_done,
                held: held.get(name).copied().unwrap_or(0),
                quarantined: self.campaign.quarantined().get(name).cloned().unwrap_or_default(),
                address: details.address,
                owner: worker.owner.clone(),
                units_per_s: worker.units_per_s.values().fold(0.0, |sum, rate| sum + rate),
                units,
                confirmed,
                proven,
            })
        });
        let workers = workers.collect();
        v1::WorkersResponse { workers, contributions: self.contributions.of_week(now_ms) }
    }
}

/// Scales `units` of `all` to a byte. Returns 0 only for none and 255 only for all.
fn share(units: u64, all: u64) -> u8 {
    match units {
        0 => 0,
        _ if units >= all => 255,
        // The value is between 1 and 254.
        _ => (units * 255 / all).clamp(1, 254) as u8,
    }
}

/// Returns the share of each source, by name. If there are more than `most`, returns the largest
/// and the sum of the others.
fn sources(mut shares: Vec<SourceShare>, most: usize) -> Vec<v1::SourceStatus> {
    let mut others: Option<v1::SourceStatus> = None;
    if shares.len() > most {
        shares.sort_by(|a, b| {
            let size = |share: &SourceShare| (share.units, share.confirmations);
            size(b).cmp(&size(a)).then_with(|| a.source.cmp(&b.source))
        });
        let rest = shares.split_off(most.saturating_sub(1));
        let mut sum = v1::SourceStatus { worker: OTHERS.to_owned(), ..v1::SourceStatus::default() };
        for SourceShare { units, confirmed, confirmations, .. } in rest {
            sum.units += units;
            sum.confirmed += confirmed;
            sum.confirmations += confirmations;
        }
        others = Some(sum);
        shares.sort_by(|a, b| a.source.cmp(&b.source));
    }
    let row = |SourceShare { source, units, confirmed, confirmations }: SourceShare| {
        let name = |mut name: String| {
            truncate(&mut name, MOST_NAME_LETTERS);
            name
        };
        v1::SourceStatus {
            worker: name(source.worker),
            kernel: name(source.kernel),
            device: name(source.device),
            build: name(source.build),
            units,
            confirmed,
            confirmations,
            owner: name(source.owner),
        }
    };
    shares.into_iter().map(row).chain(others).collect()
}

/// Truncates what a worker reports about itself, so that every list of workers can be sent.
fn bounded(mut worker: v1::WorkerStatus) -> v1::WorkerStatus {
    let WorkerStatus { name, build, kernels, devices, quarantined, address, owner, .. } =
        &mut worker;
    [name, build, address, owner].into_iter().for_each(|name| truncate(name, MOST_NAME_LETTERS));
    kernels.iter_mut().for_each(|kernel| truncate(kernel, MOST_NAME_LETTERS));
    for Device { id, name, kernel, fault, .. } in devices {
        [id, name, kernel, fault].into_iter().for_each(|name| truncate(name, MOST_NAME_LETTERS));
    }
    truncate(quarantined, MOST_NOTE_LETTERS);
    while worker.encoded_len() > MOST_WORKER_BYTES
        && !(worker.devices.is_empty() && worker.kernels.is_empty())
    {
        // Shorten the longer list, so that neither crowds out the other.
        if worker.devices.len() >= worker.kernels.len() {
            worker.devices.pop();
        } else {
            worker.kernels.pop();
        }
    }
    worker
}

/// Truncates a text to `most` characters.
fn truncate(text: &mut String, most: usize) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
    }
}

/// The maximum number of notes of a job.
const MOST_NOTES: usize = 20;
const MOST_NOTE_LETTERS: usize = 500;
/// The maximum number of rows of sources: of the only job that is requested, and of each if there
/// are several.
const MOST_SOURCES_OF_ONE: usize = 256;
const MOST_SOURCES_OF_EACH: usize = 16;
/// The name of the row for all other sources.
const OTHERS: &str = "(others)";
const MOST_NAME_LETTERS: usize = 100;
const MOST_WORKERS: usize = 4096;
/// The maximum size of a worker in a list, in bytes. The longest list takes half of the largest
/// message that a client accepts.
const MOST_WORKER_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests;
