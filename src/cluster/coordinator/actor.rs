//! The campaign actor: the only thread that changes the campaign and writes the ledger.

mod ledger_check;
mod replay;
mod requests;
mod snapshots;
mod start;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::Instant;

use tokio::sync::mpsc;

use super::arbiter::{self, Assigned};
use super::calls::WaitingCalls;
use super::clock::MonotonicClock;
use super::commands::{ReplySender, Request, Unavailable};
use super::contributions::Contributions;
use super::disputes::{Disputes, describe_dispute};
use super::event_log::PastEvents;
use super::job_info::Jobs;
use super::ledger_handle::LedgerHandle;
use super::now_ms;
use super::observers::Observers;
use super::options::{ActorOptions, ServeError};
use super::secret::campaign_key;
use super::timelines::Timelines;
use super::worker_directory::WorkerDirectory;
use crate::cluster::campaign::{
    Campaign, CampaignEvent, CampaignKey, JobState, ResultVerdict, Settings, UnitId, UnitResult,
};
use crate::cluster::ledger::{Entry, LedgerError};
use crate::cluster::storage::SnapshotFile;
use crate::decomposition::{Decomposition, JobHash};

pub(super) use start::{RunningActor, start};

/// The maximum number of requests that are processed per commit.
const MOST_AT_ONCE: usize = 1024;

/// The reason that entries are not in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejected {
    /// An entry may not follow those that are already in the ledger.
    Invalid,
    /// The entries were not written.
    Unwritten,
}

/// Entries to commit, and the callers to answer afterwards.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    /// The units that the entries concern. A second result for one of them waits until the entries
    /// are applied.
    units: HashSet<UnitId>,
    /// Callbacks that receive whether the commit is durable.
    answers: Vec<Box<dyn FnOnce(bool)>>,
}

impl Batch {
    fn add(&mut self, events: Vec<CampaignEvent>, at_ms: u64) {
        self.entries.extend(events.into_iter().map(|event| Entry::new(event, at_ms)));
    }
}

/// The campaign with its ledger, and everything that is known about its jobs and workers.
pub(super) struct CampaignActor {
    pub(super) settings: Settings,
    /// The key that authenticates the leases of the campaign.
    key: CampaignKey,
    /// The clock of the campaign. Ledger entries use wall-clock time instead.
    pub(super) clock: MonotonicClock,
    pub(super) ledger: LedgerHandle,
    /// The time at which the ledger was read, in ms since 1970.
    pub(super) opened_ms: u64,
    pub(super) campaign: Campaign,
    pub(super) jobs: Jobs,
    pub(super) timelines: Timelines,
    pub(super) contributions: Contributions,
    pub(super) workers: WorkerDirectory,
    /// The time of the next scan of all workers, in ms.
    scan_workers_ms: u64,
    pub(super) disputes: Disputes,
    /// The latest operator events that follow from the ledger.
    past: PastEvents,
    /// The snapshot from which the next start continues, if there is one.
    snapshot: Option<Arc<SnapshotFile>>,
    /// The number of entries when it was written, or when that was last tried.
    snapshot_entries: u64,
    /// The number of entries after which a snapshot is written; 0 for none.
    snapshot_every: u64,
    /// True if no more snapshots are written until the ledger is read again.
    has_abandoned_snapshots: bool,
    /// The pending long-poll calls.
    calls: Arc<WaitingCalls>,
    observers: Observers,
}

impl CampaignActor {
    pub(super) fn open(
        ActorOptions { path, snapshot_every, settings, .. }: ActorOptions,
        observers: Observers,
        (arbiter, calls): (std_mpsc::Sender<Assigned>, Arc<WaitingCalls>),
    ) -> Result<Self, ServeError> {
        let key = campaign_key(&path).map_err(ServeError::Random)?;
        let mut actor = Self {
            settings,
            clock: MonotonicClock::start(),
            ledger: LedgerHandle::new(path),
            opened_ms: 0,
            campaign: Campaign::new(settings, 0, key.clone()),
            key,
            jobs: Jobs::new(),
            timelines: Timelines::default(),
            contributions: Contributions::default(),
            workers: WorkerDirectory::default(),
            scan_workers_ms: 0,
            disputes: Disputes::new(arbiter),
            past: PastEvents::default(),
            snapshot: None,
            snapshot_entries: 0,
            snapshot_every,
            has_abandoned_snapshots: false,
            calls,
            observers,
        };
        match actor.resume() {
            Err(error) if error.is_io() => actor.reopen_read_only(error)?,
            opened => opened?,
        }
        actor.observers.started(&actor.past);
        Ok(actor)
    }

    /// Reads everything from a ledger that cannot be opened for writing because of `error`.
    fn reopen_read_only(&mut self, error: LedgerError) -> Result<(), LedgerError> {
        let Ok(file) = self.ledger.open_read_only() else { return Err(error) };
        self.load(file)?;
        self.report_failure(&error);
        Ok(())
    }

    /// Tries from time to time to reopen a read-only ledger for writing.
    fn retry_writing(&mut self) {
        if !self.ledger.is_retry_due() {
            return;
        }
        let began = Instant::now();
        // Probe first, because reopening reads the whole ledger.
        if self.ledger.can_write_beside() {
            match self.reopen() {
                Ok(()) => self.report_success(),
                Err(error) => {
                    self.report_failure(&error);
                    // If the ledger cannot even be read now, the next write reopens it.
                    let _ = self.reopen_read_only(error);
                }
            }
        }
        self.ledger.schedule_retry(began.elapsed());
    }

    /// Reports that the ledger can be written, if it could not before.
    fn report_success(&mut self) {
        if self.ledger.record_success() {
            self.observers.ledger_recovered();
        }
    }

    /// Reports an error of the ledger, unless it is the same as before.
    fn report_failure(&mut self, error: &LedgerError) -> Rejected {
        if let Some(trouble) = self.ledger.record_error(error) {
            self.observers.ledger_failed(trouble);
        }
        match error {
            LedgerError::InvalidEntry { .. } | LedgerError::UnequalTotals { .. } => {
                Rejected::Invalid
            }
            _ => Rejected::Unwritten,
        }
    }

    fn work(&mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            let mut batch = Batch::default();
            // The operations to run; `None` is a stop.
            let mut later = Vec::new();
            let mut next = Some(first);
            let mut taken = 0;
            // Results first, so that a sync in the same batch sees their effects.
            while let Some(request) = next {
                match request {
                    Request::Complete(results, reply) => self.complete(results, reply, &mut batch),
                    Request::Run(operation) => later.push(Some(operation)),
                    Request::Stop => later.push(None),
                }
                taken += 1;
                next = if taken < MOST_AT_ONCE { requests.try_recv().ok() } else { None };
            }
            self.commit(&mut batch);
            for operation in later {
                let Some(operation) = operation else { return self.stop() };
                operation(self);
            }
            // Conclude at once, so that callers need not wait for the next tick.
            let concluded = self.campaign.conclude();
            self.commit_each(concluded);
            for worker in self.campaign.take_newly_reserved() {
                // Skip the worker if it has received the check meanwhile.
                if self.campaign.has_reserved_spot_check(&worker) {
                    self.calls.wake(&worker);
                }
            }
        }
    }

    /// Validates results. The batch answers the caller when it is committed.
    fn complete(
        &mut self,
        results: Vec<UnitResult>,
        reply: ReplySender<Result<Vec<ResultVerdict>, Unavailable>>,
        batch: &mut Batch,
    ) {
        if results.first().is_some_and(|result| !self.campaign.has_synced(&result.source.worker)) {
            let _ = reply.send(Err(Unavailable::SyncFirst));
            return;
        }
        // The key with which the results are verified may be new.
        self.write_seen();
        let mut verdicts = Vec::with_capacity(results.len());
        let mut committed = true;
        for result in results {
            if batch.units.contains(&result.unit) {
                committed &= self.commit(batch);
            }
            let limits = self
                .decomposition(&result.unit.job)
                .map(|units| units.unit_limits(result.unit.unit));
            let validation = self.campaign.validate(&result, limits.as_ref());
            let convicts =
                |event: &CampaignEvent| matches!(event, CampaignEvent::WorkerQuarantined { .. });
            let disputes = !validation.events.is_empty();
            if validation.events.iter().any(convicts) {
                // A quarantine affects many units, and later validations depend on it, so it is
                // committed separately.
                self.observers.result_refused(&result.source.worker, result.unit);
                committed &= self.commit(batch);
                let validation = self.campaign.validate(&result, limits.as_ref());
                batch.add(validation.events, now_ms());
                committed &= self.commit(batch);
            } else {
                batch.units.insert(result.unit);
                batch.add(validation.events, now_ms());
            }
            // Log every dispute: there are only a few at a time.
            if validation.verdict == ResultVerdict::Conflict && disputes {
                self.observers.results_differ(&result.source.worker, result.unit);
            }
            verdicts.push(validation.verdict);
        }
        let count_verdicts = self.observers.verdict_counter();
        batch.answers.push(Box::new(move |written| {
            let answer = if written && committed { Ok(verdicts) } else { Err(Unavailable::Ledger) };
            if let Ok(verdicts) = &answer {
                count_verdicts(verdicts);
            }
            let _ = reply.send(answer);
        }));
    }

    /// Returns the units of a job, planned on first use.
    fn decomposition(&mut self, job: &JobHash) -> Option<Arc<Decomposition>> {
        Some(self.jobs.get_mut(job)?.decomposition())
    }

    /// Commits the batch, applies it and answers the waiting callers. Returns whether the commit is
    /// durable.
    fn commit(&mut self, batch: &mut Batch) -> bool {
        let Batch { entries, answers, .. } = std::mem::take(batch);
        let written = self.append_and_apply(&entries);
        if !entries.is_empty() {
            // Checks may be due, and units may be open again.
            self.calls.wake_all();
            self.assign_to_arbiter();
        }
        answers.into_iter().for_each(|answer| answer(written));
        written
    }

    /// Commits entries and applies them. Returns whether all of them are durable.
    fn append_and_apply(&mut self, entries: &[Entry]) -> bool {
        match self.append(entries) {
            Ok(()) => {
                for entry in entries {
                    self.apply(entry);
                    let shown = self.observers.applied(entry, &self.campaign, &self.jobs);
                    if let Some(shown) = shown {
                        self.past.add(entry.at_ms, shown);
                    }
                }
                self.observers.batch_applied(entries);
                true
            }
            // Retry one by one, so that a single invalid entry cannot block the rest.
            Err(Rejected::Invalid) if entries.len() > 1 => {
                let retry = |committed, entry| self.append_and_apply(entry) && committed;
                entries.chunks(1).fold(true, retry)
            }
            Err(_) => false,
        }
    }

    /// Makes entries durable.
    fn append(&mut self, entries: &[Entry]) -> Result<(), Rejected> {
        if entries.is_empty() {
            return Ok(());
        }
        // The next tick tries to reopen a ledger that is read-only.
        if self.ledger.is_refused() || self.ledger.is_read_only() {
            return Err(Rejected::Unwritten);
        }
        for entry in entries {
            if let CampaignEvent::JobState { job, state: JobState::Finished } = entry.event {
                self.check_totals(job).map_err(|error| self.report_failure(&error))?;
            }
        }
        match self.ledger.append(entries) {
            Some(Ok(took)) => {
                self.observers.entries_appended(entries.len(), took);
                self.report_success();
                Ok(())
            }
            Some(Err(error)) => Err(self.report_failure(&error)),
            None => {
                self.reopen().map_err(|error| self.report_failure(&error))?;
                // Events validated against the old state may not fit the reloaded ledger.
                Err(Rejected::Unwritten)
            }
        }
    }

    /// Commits events as a separate batch.
    fn record(&mut self, events: Vec<CampaignEvent>) -> Result<(), Unavailable> {
        let mut batch = Batch::default();
        batch.add(events, now_ms());
        if self.commit(&mut batch) { Ok(()) } else { Err(Unavailable::Ledger) }
    }

    /// Commits events one by one, as far as the ledger can be written.
    fn commit_each(&mut self, events: Vec<CampaignEvent>) {
        for event in events {
            // An event that cannot be written is generated again.
            self.append_and_apply(&[Entry::new(event, now_ms())]);
        }
    }

    /// Commits the consequences of the arbiter's answer, and assigns its next task.
    fn rule(&mut self, answer: arbiter::ArbiterAnswer) {
        let arbiter::ArbiterAnswer { task, ruling, source } = answer;
        self.campaign.arbiter_is_done();
        match ruling {
            Ok(ruling) => {
                let events = self.campaign.ruling_events(&ruling, &source);
                // If this cannot be written, the check stays due and goes to the arbiter again.
                let _ = self.record(events);
            }
            Err(reason) => {
                self.observers.arbiter_failed(task.unit, &reason);
                self.disputes.record_undecided(task.unit, reason);
            }
        }
        self.assign_to_arbiter();
    }

    /// Assigns the next task to the arbiter if it is idle.
    fn assign_to_arbiter(&mut self) {
        if self.campaign.is_arbiter_busy()
            || self.ledger.is_closed()
            || self.ledger.is_read_only()
            || self.ledger.is_refused()
        {
            return;
        }
        let steady_ms = self.clock.now_ms();
        let Some(task) = self.disputes.next_task(&mut self.campaign, steady_ms) else { return };
        let decomposition = self.decomposition(&task.unit.job);
        let assigned = decomposition
            .is_some_and(|decomposition| self.disputes.assign(Assigned { task, decomposition }));
        if !assigned {
            self.campaign.arbiter_is_done();
        }
    }

    /// Commits the entries of new workers and of their keys.
    fn write_seen(&mut self) {
        let seen = self.workers.take_unwritten();
        if !self.append_and_apply(&seen) {
            // Another write reports the problem.
            self.workers.keep_unwritten(seen);
        }
    }

    pub(super) fn tick(&mut self) {
        self.retry_writing();
        if self.snapshot_every > 0 {
            self.write_snapshot(self.snapshot_every);
        }
        self.write_seen();
        self.expire_and_finish();
        self.assign_to_arbiter();
        let steady_ms = self.clock.now_ms();
        let lease_ms = self.campaign.lease_ms();
        self.timelines.sample(&self.campaign, steady_ms);
        for job in self.disputes.newly_exhausted(&self.campaign) {
            let dispute = describe_dispute(&self.campaign, &self.jobs, &job);
            self.observers.dispute_exhausted(job, &dispute);
        }
        let has_trouble = self.ledger.trouble().is_some();
        self.observers.sample(&self.campaign, has_trouble);
        if steady_ms >= self.scan_workers_ms {
            self.scan_workers_ms = steady_ms + self.campaign.ms_between_scans();
            self.workers.forget_silent(&self.campaign);
            self.workers.report_silent(&self.campaign, (steady_ms, lease_ms), &self.observers);
            self.observers.sample_workers(&self.campaign, steady_ms, lease_ms);
        }
    }

    fn expire_and_finish(&mut self) {
        let events = self.campaign.tick(self.clock.now_ms());
        self.calls.wake_all();
        self.commit_each(events);
    }
}

#[cfg(test)]
pub(super) mod tests;
