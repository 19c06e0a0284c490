//! The observers of a coordinator: the log, the event log, the notifier and the metrics. Everything
//! that operators learn about applied events is decided here, for counts and in `proofs.rs` for
//! proofs.

mod proofs;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::disputes::describe_dispute;
use super::event_log::{EventLog, OperatorEvent, PastEvents};
use super::job_info::Jobs;
use super::metrics::Metrics;
use super::notifier::{Notification, NotificationKind, Notifier};
use crate::cluster::campaign::{
    Campaign, CampaignEvent, JobState, ResultVerdict, UnitId, is_guest,
};
use crate::cluster::ledger::{Entry, LedgerError};
use crate::cluster::protocol::v1::{Device, EventKind, EventLevel};
use crate::decomposition::JobHash;
use crate::report::counted;

/// The observers of a coordinator. Clones share everything but the person of the current operation.
#[derive(Clone)]
pub(super) struct Observers {
    metrics: Arc<Metrics>,
    notifier: Notifier,
    event_log: EventLog,
    /// The name of the person who requested the current operation.
    requested_by: Option<String>,
}

impl Observers {
    pub(super) const fn new(
        metrics: Arc<Metrics>,
        notifier: Notifier,
        event_log: EventLog,
    ) -> Self {
        Self { metrics, notifier, event_log, requested_by: None }
    }

    fn notify(
        &self,
        kind: NotificationKind,
        job: Option<JobHash>,
        worker: Option<&str>,
        text: String,
    ) {
        let (job, worker) = (job.map(|job| job.to_string()), worker.map(str::to_owned));
        self.notifier.send(Notification { kind, job, worker, text });
    }

    /// Adds the events of earlier runs, with their times in ms since 1970, and the start of this
    /// one.
    pub(super) fn started(&self, past: &PastEvents) {
        for (at_ms, event) in past.iter() {
            self.event_log.add_at(*at_ms, event.clone());
        }
        self.event_log.add(OperatorEvent::info(EventKind::Started, "Coordinator started"));
    }

    /// Sets the name of the person who requested the operation that begins now, or `None` when it
    /// ends. The event log names this person.
    pub(super) fn set_requested_by(&mut self, name: Option<String>) {
        self.requested_by = name;
    }

    /// Observes an entry that was applied to the campaign. Returns what operators are told.
    pub(super) fn applied(
        &self,
        entry: &Entry,
        campaign: &Campaign,
        jobs: &Jobs,
    ) -> Option<OperatorEvent> {
        let event = &entry.event;
        log(event);
        let by = self.requested_by.as_deref().unwrap_or_default();
        let shown = OperatorEvent::of(event, campaign, jobs, by);
        if let Some(shown) = shown.clone() {
            self.event_log.add_at(entry.at_ms, shown);
        }
        match event {
            CampaignEvent::JobState { job, state: JobState::Disputed } => {
                let dispute = describe_dispute(campaign, jobs, job);
                let text = format!("job {job} is disputed: {dispute}");
                tracing::error!("{text}");
                self.notify(NotificationKind::Disputed, Some(*job), None, text);
            }
            CampaignEvent::JobState { job, state: JobState::Finished } => {
                let what = jobs.get(job).map(|info| info.job.to_string()).unwrap_or_default();
                let text = format!("job {job} is finished: {what}");
                self.notify(NotificationKind::Finished, Some(*job), None, text);
            }
            CampaignEvent::UnitPoisoned { unit, reason } => {
                let text = format!("unit {} of job {} is set aside: {reason}", unit.unit, unit.job);
                self.notify(NotificationKind::Poisoned, Some(unit.job), None, text);
            }
            // Strangers must not be able to flood anybody with notifications.
            CampaignEvent::WorkerQuarantined { worker, reason, .. } if !is_guest(worker) => {
                let text = format!("worker {worker} is in quarantine: {reason}");
                self.notify(NotificationKind::Quarantined, None, Some(worker), text);
            }
            _ => {}
        }
        shown
    }

    /// Observes all entries of a batch after they were applied: adds one operator event per job
    /// that says how many of its results were voided.
    pub(super) fn batch_applied(&self, entries: &[Entry]) {
        let mut voided: BTreeMap<JobHash, u64> = BTreeMap::new();
        for entry in entries {
            if let CampaignEvent::UnitVoided { unit, .. } = &entry.event {
                *voided.entry(unit.job).or_default() += 1;
            }
        }
        for (job, results) in voided {
            let text =
                format!("{} taken back: to be counted again", counted(results.into(), "result"));
            self.event_log.add(OperatorEvent::warning(EventKind::Voided, text).of_job(job));
        }
    }

    /// Observes a result that was rejected as inconsistent or impossible.
    pub(super) fn result_refused(&self, worker: &str, unit: UnitId) {
        tracing::error!(worker, %unit, "a result is rejected");
    }

    /// Observes a result that differs from the one in force.
    pub(super) fn results_differ(&self, worker: &str, unit: UnitId) {
        tracing::warn!(worker, %unit, "two results differ");
        let text = format!(
            "Worker {worker} reports another result for unit {}; the arbiter will decide",
            unit.unit
        );
        let conflict = OperatorEvent::warning(EventKind::Conflict, text);
        self.event_log.add(conflict.of_job(unit.job).of_worker(worker));
    }

    /// Observes that the arbiter cannot decide a unit.
    pub(super) fn arbiter_failed(&self, unit: UnitId, reason: &str) {
        tracing::error!(%unit, reason, "the arbiter cannot decide");
    }

    /// Observes a dispute that only operators can settle.
    pub(super) fn dispute_exhausted(&self, job: JobHash, dispute: &str) {
        let text = format!("job {job} stays disputed: {dispute}");
        tracing::error!("{text}");
        let disputed = format!("The total stays disputed: {dispute}");
        self.event_log.add(OperatorEvent::error(EventKind::Disputed, disputed).of_job(job));
        self.notify(NotificationKind::Disputed, Some(job), None, text);
    }

    /// Observes that a worker could not count a unit.
    pub(super) fn unit_failed(&self, worker: &str, unit: UnitId, reason: &str) {
        tracing::warn!(worker, %unit, reason, "a worker could not count a unit");
        let text = format!("Worker {worker} could not count unit {}: {reason}", unit.unit);
        let failed = OperatorEvent::warning(EventKind::Failed, text);
        self.event_log.add(failed.of_job(unit.job).of_worker(worker));
    }

    /// Observes that a worker has no kernel for a job.
    pub(super) fn worker_unsuited(&self, worker: &str, job: JobHash) {
        tracing::info!(worker, %job, "a worker has no kernel for a job");
    }

    /// Observes a worker that is new, or that has returned after it was silent.
    pub(super) fn worker_joined(&self, worker: &str, address: &str, again: bool) {
        let verb = if again { "returned" } else { "joined" };
        let text = format!("Worker {worker} {verb} from {address}");
        self.event_log.add(OperatorEvent::info(EventKind::Joined, text).of_worker(worker));
    }

    /// Observes a device that failed.
    pub(super) fn device_failed(&self, worker: &str, device: &Device) {
        let text = format!("Device {} of worker {worker} failed: {}", device.id, device.fault);
        self.event_log.add(OperatorEvent::warning(EventKind::Failed, text).of_worker(worker));
    }

    /// Observes a worker that has not synced for the lifetime of a lease.
    pub(super) fn worker_silent(&self, worker: &str, was_draining: bool) {
        let (level, text) = if was_draining {
            (EventLevel::Info, format!("Worker {worker} left"))
        } else {
            (EventLevel::Warning, format!("Worker {worker} is silent"))
        };
        let silent = OperatorEvent { level, ..OperatorEvent::info(EventKind::Silent, text) };
        self.event_log.add(silent.of_worker(worker));
    }

    /// Observes a problem with the ledger.
    pub(super) fn ledger_failed(&self, trouble: String) {
        tracing::error!("{trouble}");
        self.notify(NotificationKind::Trouble, None, None, trouble.clone());
        self.event_log.add(OperatorEvent::error(EventKind::Trouble, trouble));
    }

    /// Observes that the ledger can be written again.
    pub(super) fn ledger_recovered(&self) {
        const TEXT: &str = "The ledger can be written again";
        tracing::info!("{TEXT}");
        self.event_log.add(OperatorEvent::info(EventKind::Trouble, TEXT));
    }

    /// Observes that the check of the whole ledger after a start from a snapshot has found nothing.
    pub(super) fn ledger_sound(&self, entries: u64) {
        tracing::info!(entries, "the ledger was checked from its first entry on");
    }

    /// Observes that this check could not be made.
    pub(super) fn ledger_unchecked(&self, error: &LedgerError) {
        tracing::warn!("the ledger could not be checked from its first entry on: {error}");
    }

    /// Observes that a snapshot is not used.
    pub(super) fn snapshot_refused(&self, why: &str) {
        tracing::warn!("the snapshot cannot be used, so the whole ledger is to be read: {why}");
    }

    /// Observes that a snapshot could not be written or removed. Nothing depends on it but the time
    /// of the next start.
    pub(super) fn snapshot_failed(&self, error: &dyn std::error::Error) {
        tracing::warn!("cannot replace the snapshot: {error}");
    }

    /// Observes that entries became durable, and the time that this took.
    pub(super) fn entries_appended(&self, entries: usize, took: Duration) {
        self.metrics.appended(entries, took);
    }

    /// Returns a function that counts the verdicts about results once these are durable.
    pub(super) fn verdict_counter(&self) -> impl FnOnce(&[ResultVerdict]) + use<> {
        let metrics = Arc::clone(&self.metrics);
        move |verdicts| verdicts.iter().for_each(|&verdict| metrics.validated(verdict))
    }

    /// Updates the gauges of the ledger and of the jobs, and the number of quarantined workers.
    pub(super) fn sample(&self, campaign: &Campaign, has_trouble: bool) {
        self.metrics.sample(campaign, has_trouble);
    }

    /// Updates the gauges of the workers. Those that have been silent for `lease_ms` are removed.
    pub(super) fn sample_workers(&self, campaign: &Campaign, steady_ms: u64, lease_ms: u64) {
        self.metrics.sample_workers(campaign, steady_ms, lease_ms);
    }
}

/// Logs an event, unless it is too frequent.
fn log(event: &CampaignEvent) {
    match event {
        CampaignEvent::JobSubmitted { job, text, units, priority, submitter, .. } => {
            tracing::info!(%job, units, priority, submitter, text, "a job is submitted");
        }
        CampaignEvent::JobState { job, state } => {
            tracing::info!(%job, state = state.name(), "the state of a job has changed");
        }
        CampaignEvent::UnitPoisoned { unit, reason } => {
            tracing::error!(%unit, reason, "a unit is set aside");
        }
        CampaignEvent::UnitVoided { unit, reason } => {
            tracing::warn!(%unit, reason, "a result is taken back");
        }
        CampaignEvent::WorkerQuarantined { worker, reason, .. } => {
            tracing::error!(worker, reason, "a worker is put in quarantine");
        }
        CampaignEvent::WorkerReleased { worker } => {
            tracing::info!(worker, "a worker is released from quarantine");
        }
        CampaignEvent::WorkerDrained { worker, .. } => {
            tracing::info!(worker, "a worker is drained");
        }
        _ => {}
    }
}
