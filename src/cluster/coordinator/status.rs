//! Responses about jobs and workers. Their size is bounded, whatever workers report about
//! themselves.

use prost::Message;

use super::actor::CampaignActor;
use super::books::JobInfo;
use super::commands::StateError;
use super::history::Point;
use super::now_ms;
use crate::cluster::campaign::{DisputeStage, JobProgress, SourceShare};
use crate::cluster::protocol::v1::{Device, WorkerStatus};
use crate::cluster::protocol::{BUILD, v1};
use crate::decomposition::JobHash;
use crate::oeis;

impl CampaignActor {
    /// Returns the status of the jobs whose names begin with `digits`, in order of submission.
    pub(super) fn status(&self, digits: &str) -> v1::StatusResponse {
        let named: Vec<(JobHash, &JobInfo)> = self
            .jobs
            .iter()
            .map(|(&job, info)| (job, info))
            .filter(|(job, _)| job.to_string().starts_with(digits))
            .collect();
        let is_asked_for = !digits.is_empty() && named.len() == 1;
        let most_sources = if is_asked_for { MOST_SOURCES_OF_ONE } else { MOST_SOURCES_OF_EACH };
        let mut jobs: Vec<v1::JobStatus> = named
            .into_iter()
            .filter_map(|(job, info)| {
                Some(self.job_status(job, info, &self.campaign.progress(&job)?, most_sources))
            })
            .collect();
        jobs.sort_by(|a, b| (a.submitted_ms, &a.job).cmp(&(b.submitted_ms, &b.job)));
        let (steady_ms, lease_ms) = (self.clock.now_ms(), self.settings.lease_ms);
        let workers = self
            .campaign
            .workers()
            .filter(|(_, worker)| worker.seen_ms + lease_ms > steady_ms)
            .count();
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

    /// Describes what is wrong with the total of a job and what is being done about it. Returns an
    /// empty text if the job is not disputed.
    pub(super) fn dispute(&self, job: &JobHash) -> String {
        let known =
            self.dispute_stage(job).zip(self.jobs.get(job)).zip(self.campaign.progress(job));
        known.map(|((stage, info), progress)| dispute(stage, info, &progress)).unwrap_or_default()
    }

    /// Returns the stage of the dispute about the total of a job. A dispute is not exhausted while
    /// anything is still counted for it.
    fn dispute_stage(&self, job: &JobHash) -> Option<DisputeStage> {
        let (stage, progress) =
            self.campaign.dispute_stage(job).zip(self.campaign.progress(job))?;
        let is_counted =
            progress.done < progress.units || progress.checks_due + progress.disputes > 0;
        let is_over = stage == DisputeStage::Exhausted;
        Some(if is_over && is_counted { DisputeStage::Unconfirmed } else { stage })
    }

    /// Returns the disputed jobs for which nothing more can be recounted.
    pub(super) fn exhausted_disputes(&self) -> Vec<JobHash> {
        let is_exhausted = |job: &JobHash| self.dispute_stage(job) == Some(DisputeStage::Exhausted);
        self.campaign.jobs().filter(is_exhausted).collect()
    }

    fn job_status(
        &self,
        job: JobHash,
        info: &JobInfo,
        progress: &JobProgress,
        most_sources: usize,
    ) -> v1::JobStatus {
        let totals = self.file().and_then(|file| file.totals(&job)).unwrap_or_default();
        let dispute = self.dispute(&job);
        let mut notes: Vec<String> = Vec::new();
        notes.extend(Some(dispute.clone()).filter(|dispute| !dispute.is_empty()));
        if progress.disputes > 0 {
            notes.push(format!(
                "results of {} units differ; the arbiter counts them",
                progress.disputes
            ));
        }
        let undecided = self.undecided.iter().filter(|(unit, _)| unit.job == job);
        notes.extend(undecided.take(MOST_NOTES).map(|(unit, why)| {
            format!(
                "two results for unit {} differ, and the arbiter cannot decide: {why}",
                unit.unit
            )
        }));
        notes.extend(
            info.poison
                .iter()
                .take(MOST_NOTES)
                .map(|(unit, why)| format!("unit {unit} is set aside: {why}")),
        );
        let mut quarantined: Vec<_> = self.campaign.quarantined().iter().collect();
        quarantined.sort();
        notes.extend(
            quarantined
                .iter()
                .take(MOST_NOTES)
                .map(|(worker, why)| format!("{worker} is in quarantine: {why}")),
        );
        notes.truncate(MOST_NOTES);
        notes.iter_mut().for_each(|note| cut(note, MOST_NOTE_LETTERS));
        let left = || self.left(&job, progress.done, progress.units - progress.done);
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
            spot_checked: progress.spot_checked,
            audited: progress.audited,
            self_checked: progress.self_checked,
            assurance: self.campaign.assurance(&job),
            audits_due: progress.audits_due,
            dispute,
            dispute_exhausted: self.dispute_stage(&job) == Some(DisputeStage::Exhausted),
            sources: sources(self.campaign.shares(&job), most_sources),
            agreements: totals.recounts - totals.disagreements,
            disagreements: totals.disagreements,
            voided: totals.voided,
            notes,
            left: progress.state.is_counted().then(left).flatten(),
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
        let points =
            self.histories.get(&job).map(|history| history.after(after_ms)).unwrap_or_default();
        let point = |point: &Point| v1::HistoryPoint {
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
            let about = self.about.get(name).cloned().unwrap_or_default();
            let (units, confirmed) = records.get(name).copied().unwrap_or_default();
            bounded(v1::WorkerStatus {
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
                owner: worker.owner.clone(),
                units_per_s: worker.units_per_s.values().fold(0.0, |sum, rate| sum + rate),
                units,
                confirmed,
            })
        });
        v1::WorkersResponse { workers: workers.collect() }
    }
}

/// Describes what is wrong with the total of a job and what is being done about it.
fn dispute(stage: DisputeStage, info: &JobInfo, progress: &JobProgress) -> String {
    let wrong = match (progress.total.solutions(), oeis::published(info.job.problem())) {
        _ if progress.done < progress.units => {
            "results were found to be wrong and taken back".to_owned()
        }
        (Err(error), _) => format!("the total cannot be right: {error}"),
        (Ok(found), Some(published)) => {
            format!("the total {found} contradicts the published value {published}")
        }
        (Ok(_), None) => "the total was disputed".to_owned(),
    };
    let done = match stage {
        DisputeStage::Unconfirmed => "units that nobody has confirmed are being counted again",
        DisputeStage::Confirmed => "the coordinator counts again what only workers have confirmed",
        DisputeStage::Exhausted => {
            "the coordinator itself has counted every unit again and confirmed it: the published value or this program \
             is wrong; please report it"
        }
    };
    format!("{wrong}; {done}")
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
            cut(&mut name, MOST_NAME_LETTERS);
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
    [name, build, address, owner].into_iter().for_each(|name| cut(name, MOST_NAME_LETTERS));
    kernels.iter_mut().for_each(|kernel| cut(kernel, MOST_NAME_LETTERS));
    for Device { id, name, kernel, fault, .. } in devices {
        [id, name, kernel, fault].into_iter().for_each(|name| cut(name, MOST_NAME_LETTERS));
    }
    cut(quarantined, MOST_NOTE_LETTERS);
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
fn cut(text: &mut String, most: usize) {
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
mod tests {
    use super::super::actor::tests::{actor, done, source};
    use super::super::commands::About;
    use super::*;
    use crate::cluster::campaign::{Event, JobState, Source, SyncRequest, UnitId};

    /// Returns a name of the maximum length, made of the characters that take the most bytes.
    fn long(number: u64) -> String {
        format!("{number:07}") + &"\u{10ffff}".repeat(62)
    }

    #[test]
    fn a_status_is_small_whatever_workers_call_themselves() {
        const SOURCES: u64 = 5_000;
        let mut kept = actor("many-sources");
        let job = kept.submit(SOURCES + 1);
        for unit in 0..=SOURCES {
            // One source has counted twice as many units as any other.
            let name = long(unit.min(SOURCES - 1));
            let source = Source {
                worker: name.clone(),
                owner: name.clone(),
                kernel: name.clone(),
                device: name.clone(),
                build: name,
            };
            kept.actor.campaign.apply(&done(UnitId { job, unit }, 1, source));
        }
        for number in 0..100 {
            let (worker, reason) = (long(number), "lied ".repeat(2_000));
            kept.actor.campaign.apply(&Event::WorkerQuarantined { worker, reason, widen: false });
            let info = kept.actor.jobs.get_mut(&job).expect("it was submitted");
            info.poison.insert(number, "failed ".repeat(2_000));
        }
        for (digits, most) in [(job.to_string(), 256), (String::new(), 16)] {
            let status = kept.status(&digits);
            assert!(status.encoded_len() < 1 << 20, "{} bytes", status.encoded_len());
            let [job] = &status.jobs[..] else { panic!("one job") };
            assert_eq!(job.sources.len(), most);
            // No unit is lost, and the largest source has a separate row.
            assert_eq!(job.sources.iter().map(|source| source.units).sum::<u64>(), SOURCES + 1);
            assert_eq!(job.sources.last().map(|last| &last.worker[..]), Some("(others)"));
            let largest = long(SOURCES - 1);
            assert!(job.sources.iter().any(|s| s.units == 2 && largest.starts_with(&s.worker)));
            assert!((1..=20).contains(&job.notes.len()), "{}", job.notes.len());
            assert!(job.notes.iter().all(|note| note.chars().count() <= 500));
        }
    }

    #[test]
    fn a_list_of_workers_is_small_whatever_they_say_of_themselves() {
        let device = Device {
            id: long(0),
            name: long(1),
            kernel: long(2),
            fault: long(3),
            ..Device::default()
        };
        let devices = vec![device; 64];
        let mut kept = actor("many-workers");
        for number in 0..4_200u64 {
            let request = SyncRequest {
                worker: long(number),
                owner: long(number),
                address: None,
                boot: 1,
                capacity: 1,
                kernels: (0..64).map(long).collect(),
                devices: Vec::new(),
                units_per_s: Vec::new(),
                held: Vec::new(),
                draining: false,
            };
            kept.actor.campaign.sync(&request, number);
        }
        for number in 4_100..4_200 {
            let about = About { build: long(9), address: long(9), devices: devices.clone() };
            kept.actor.about.insert(long(number), about);
        }
        let workers = kept.workers().workers;
        assert_eq!(workers.len(), 4_096);
        assert!(workers.is_sorted_by_key(|worker| &worker.name));
        // The workers that were seen last are among them.
        let last = workers.last().expect("there are many");
        assert!(long(4_199).starts_with(&last.name) && !last.devices.is_empty());
        assert!(workers.iter().all(|worker| worker.encoded_len() <= MOST_WORKER_BYTES));
    }

    #[test]
    fn a_list_says_how_much_of_whose_work_was_confirmed() {
        let mut kept = actor("records");
        let job = kept.dispute();
        kept.confirm(job);
        assert_eq!(kept.campaign.records().get(&"w1".to_owned()), Some(&(2, 2)));
    }

    #[test]
    fn a_dispute_says_what_is_wrong_and_what_is_being_done_and_when_nothing_more_can_be() {
        let mut kept = actor("stages");
        let job = kept.dispute();
        let status =
            |kept: &super::super::actor::tests::Kept| kept.status(&job.to_string()).jobs.remove(0);
        let begun = status(&kept);
        assert_eq!(begun.state(), v1::JobState::Disputed);
        assert!(
            begun.dispute.contains("93 contradicts the published value 92"),
            "{}",
            begun.dispute
        );
        assert!(
            begun.dispute.contains("being counted again") && !begun.dispute_exhausted,
            "{}",
            begun.dispute
        );
        assert!(begun.notes.contains(&begun.dispute));
        kept.confirm(job);
        let over = status(&kept);
        assert_eq!((over.state(), over.checked, over.audited), (v1::JobState::Disputed, 2, 2));
        assert!(
            over.dispute.contains("please report it") && over.dispute_exhausted,
            "{}",
            over.dispute
        );
        // A result that is voided and counted again reopens the dispute.
        let reason = "it is wrong".to_owned();
        kept.actor.campaign.apply(&Event::UnitVoided { unit: UnitId { job, unit: 1 }, reason });
        let again = status(&kept);
        assert!(
            !again.dispute_exhausted && again.dispute.contains("taken back"),
            "{}",
            again.dispute
        );
        kept.actor.campaign.apply(&done(UnitId { job, unit: 1 }, 46, source("w2")));
        (0..3).for_each(|_| {
            let events = kept.actor.campaign.tick(0);
            events.iter().for_each(|event| kept.actor.campaign.apply(event));
        });
        let right = status(&kept);
        assert_eq!((right.state(), &right.dispute[..]), (v1::JobState::Finished, ""));
        assert_eq!(kept.campaign.state(&job), Some(JobState::Finished));
    }

    #[test]
    fn a_share_of_none_or_all_looks_like_no_other() {
        for all in [1, 2, 244, 255, 256, 1_000_000] {
            for units in [0, 1, all / 2, all - 1, all] {
                let share = share(units, all);
                assert_eq!(
                    (share == 0, share == 255),
                    (units == 0, units == all),
                    "{units} of {all}"
                );
            }
        }
        assert_eq!(share(1, 2), 127);
    }
}
