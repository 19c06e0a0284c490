//! The campaign actor: the only thread that changes the campaign and writes the ledger.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::arbiter::{self, Assigned};
use super::books::{self, JobInfo, LoadedLedger};
use super::calls::WaitingCalls;
use super::clock::MonotonicClock;
use super::commands::{About, Handle, Reply, Request, StateError, Submitted, Synced, Unavailable};
use super::event_log::{EventLog, OperatorEvent};
use super::history::{History, Point};
use super::metrics::Metrics;
use super::notifier::{Kind, Notification, Notifier};
use super::now_ms;
use super::pace::Pace;
use super::plan::Planned;
use super::secret::campaign_key;
use crate::cluster::campaign::{
    Campaign, CampaignKey, Event, JobState, Settings, Source, SyncRequest, UnitId, UnitResult,
    Verdict,
};
use crate::cluster::ledger::{CampaignFile, Entry, LedgerError, WorkerDrained, WorkerSeen};
use crate::cluster::protocol::v1::{Device, EventKind, EventLevel, TimeLeft};
use crate::decomposition::{Decomposition, JobHash};

/// The capacity of the request channel.
const MOST_WAITING: usize = 4096;
/// The maximum number of requests that are processed per commit.
const MOST_AT_ONCE: usize = 1024;

/// A running campaign actor.
pub(super) struct Running {
    pub(super) handle: Handle,
    pub(super) thread: std::thread::JoinHandle<()>,
    pub(super) calls: Arc<WaitingCalls>,
    /// Resolves once the thread has ended, for whatever reason.
    pub(super) ended: oneshot::Receiver<()>,
}

/// Starts the campaign actor of the ledger at `path`. It ends on a stop request, or when all
/// handles are dropped.
///
/// # Errors
/// Returns an error if the ledger cannot be opened or a thread cannot be spawned.
pub(super) fn start(
    path: PathBuf,
    settings: Settings,
    metrics: Arc<Metrics>,
    (notifier, event_log): (Notifier, EventLog),
) -> Result<Running, StartError> {
    let (handle, requests) = mpsc::channel(MOST_WAITING);
    // The arbiter must not keep the actor alive.
    let weak = handle.downgrade();
    let answer = move |answer| {
        if let Some(handle) = weak.upgrade() {
            let _ = handle.blocking_send(Request::Ruling(answer));
        }
    };
    let arbiter = arbiter::start(answer).map_err(StartError::Thread)?;
    let calls = Arc::new(WaitingCalls::default());
    let told = (arbiter, Arc::clone(&calls));
    let mut actor = CampaignActor::open(path, settings, (metrics, notifier, event_log), told)?;
    let (alive, ended) = oneshot::channel::<()>();
    let work = move || {
        // Dropped when the thread ends, also on a panic.
        let _alive = alive;
        actor.work(requests);
    };
    let thread = std::thread::Builder::new()
        .name("campaign".into())
        .spawn(work)
        .map_err(StartError::Thread)?;
    Ok(Running { handle, thread, calls, ended })
}

/// An error that prevents the campaign actor from starting.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("cannot create a thread: {0}")]
    Thread(std::io::Error),
    #[error("the system has no random bytes: {0}")]
    Random(std::io::Error),
}

/// The reason that entries are not in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejected {
    /// An entry may not follow those that are already in the ledger.
    Refused,
    /// The entries were not written.
    Unwritten,
}

/// Entries to commit, and the callers to answer afterwards.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    events: Vec<Event>,
    /// The units that the events concern. A second result for one of them waits until the events
    /// are applied.
    units: HashSet<UnitId>,
    /// Callbacks that are told whether the commit is durable.
    then: Vec<Box<dyn FnOnce(bool)>>,
}

impl Batch {
    fn add(&mut self, events: Vec<Event>, at_ms: u64) {
        self.entries.extend(events.iter().filter_map(|event| books::entry(event, at_ms)));
        self.events.extend(events);
    }
}

pub(super) struct CampaignActor {
    path: PathBuf,
    pub(super) settings: Settings,
    /// The clock of the campaign. Ledger entries use wall-clock time instead.
    pub(super) clock: MonotonicClock,
    /// `None` while the ledger must be reopened; read-only while it cannot be written.
    file: Option<CampaignFile>,
    /// The time of the next attempt to open the ledger for writing.
    try_at: Instant,
    pub(super) campaign: Campaign,
    pub(super) jobs: BTreeMap<JobHash, JobInfo>,
    pub(super) about: HashMap<String, About>,
    paces: HashMap<JobHash, Pace>,
    pub(super) histories: HashMap<JobHash, History>,
    /// The time at which the ledger was read, in ms since 1970.
    pub(super) opened_ms: u64,
    /// Known workers that are silent now.
    silent: HashSet<String>,
    /// Entries of new workers, written with the next tick. No call waits for them.
    seen: Vec<Entry>,
    /// The key that authenticates the leases of the campaign.
    key: CampaignKey,
    /// The unit assigned to the arbiter. It gets one at a time, because a ruling may settle others.
    at_arbiter: Option<UnitId>,
    /// Units that the arbiter could not decide, and the reasons.
    pub(super) undecided: BTreeMap<UnitId, String>,
    /// Disputed jobs that were already reported as exhausted.
    exhausted: HashSet<JobHash>,
    arbiter: std_mpsc::Sender<Assigned>,
    /// The pending long-poll calls.
    calls: Arc<WaitingCalls>,
    metrics: Arc<Metrics>,
    notifier: Notifier,
    pub(super) event_log: EventLog,
    /// The name of the person who requested the current operation.
    acting: Option<String>,
    /// The current problem with the ledger, for operators.
    pub(super) trouble: Option<String>,
}

impl CampaignActor {
    pub(super) fn open(
        path: PathBuf,
        settings: Settings,
        (metrics, notifier, event_log): (Arc<Metrics>, Notifier, EventLog),
        (arbiter, calls): (std_mpsc::Sender<Assigned>, Arc<WaitingCalls>),
    ) -> Result<Self, StartError> {
        let key = campaign_key(&path).map_err(StartError::Random)?;
        let mut actor = Self {
            path,
            settings,
            clock: MonotonicClock::start(),
            file: None,
            try_at: Instant::now(),
            campaign: Campaign::new(settings, 0, key.clone()),
            key,
            jobs: BTreeMap::new(),
            about: HashMap::new(),
            paces: HashMap::new(),
            histories: HashMap::new(),
            opened_ms: 0,
            silent: HashSet::new(),
            seen: Vec::new(),
            at_arbiter: None,
            undecided: BTreeMap::new(),
            exhausted: HashSet::new(),
            arbiter,
            calls,
            metrics,
            notifier,
            event_log,
            acting: None,
            trouble: None,
        };
        let happened = match actor.reopen() {
            Err(error) if error.is_of_the_system() => actor.read_only(error)?,
            opened => opened?,
        };
        for (at_ms, operator_event) in happened {
            actor.event_log.note_at(at_ms, operator_event);
        }
        actor
            .event_log
            .note(OperatorEvent::info(EventKind::Started, "the coordinator has started"));
        Ok(actor)
    }

    /// Reopens the ledger and reads everything from it. Returns the past operator events with their
    /// times.
    fn reopen(&mut self) -> Result<Vec<(u64, OperatorEvent)>, LedgerError> {
        // Close the old handle first, to release its lock. This includes a read-only handle:
        // closing it later would release the locks of another handle in this process.
        self.file = None;
        let file = CampaignFile::open(&self.path)?;
        self.adopt(file)
    }

    /// Reads everything from a ledger that cannot be opened for writing because of `error`.
    fn read_only(&mut self, error: LedgerError) -> Result<Vec<(u64, OperatorEvent)>, LedgerError> {
        let Ok(file) = CampaignFile::open_read_only(&self.path) else { return Err(error) };
        let happened = self.adopt(file)?;
        self.fail(&error);
        Ok(happened)
    }

    fn is_read_only(&self) -> bool {
        self.file.as_ref().is_some_and(CampaignFile::is_read_only)
    }

    /// Tries from time to time to reopen a read-only ledger for writing.
    fn try_to_write(&mut self) {
        const PAUSE: Duration = Duration::from_secs(5);
        if !self.is_read_only() || Instant::now() < self.try_at {
            return;
        }
        let began = Instant::now();
        // Probe first, because reopening reads the whole ledger.
        if has_room_beside(&self.path) {
            match self.reopen() {
                Ok(_) => self.written(),
                Err(error) => {
                    self.fail(&error);
                    // If the ledger cannot even be read now, the next write reopens it.
                    let _ = self.read_only(error);
                }
            }
        }
        self.try_at = Instant::now() + PAUSE.max(began.elapsed() * 20);
    }

    /// Notes that the ledger can be written.
    fn written(&mut self) {
        if self.trouble.take().is_some() {
            tracing::info!("the ledger can be written again");
            let well = OperatorEvent::info(EventKind::Trouble, "the ledger can be written again");
            self.event_log.note(well);
        }
    }

    fn adopt(&mut self, mut file: CampaignFile) -> Result<Vec<(u64, OperatorEvent)>, LedgerError> {
        // Lease numbers start above those of all earlier starts, as long as a start grants fewer
        // than 2^20 leases per millisecond.
        self.opened_ms = now_ms();
        self.campaign = Campaign::new(self.settings, self.opened_ms, self.key.clone());
        let LoadedLedger { jobs, histories, operator_events } =
            books::load(&mut file, &mut self.campaign)?;
        (self.jobs, self.histories) = (jobs, histories);
        self.at_arbiter = None;
        self.undecided.clear();
        self.file = Some(file);
        Ok(operator_events)
    }

    pub(super) const fn file(&self) -> Option<&CampaignFile> {
        self.file.as_ref()
    }

    fn work(&mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            let mut batch = Batch::default();
            let mut later = Vec::new();
            let mut next = Some(first);
            let mut taken = 0;
            // Results first, so that a sync in the same batch sees their effects.
            while let Some(request) = next {
                match request {
                    Request::Complete(results, reply) => self.complete(results, reply, &mut batch),
                    other => later.push(other),
                }
                taken += 1;
                next = if taken < MOST_AT_ONCE { requests.try_recv().ok() } else { None };
            }
            self.commit(&mut batch);
            for request in later {
                if matches!(request, Request::Stop) {
                    return;
                }
                self.handle(request);
            }
            // Conclude at once, so that callers need not wait for the next tick.
            let concluded = self.campaign.conclude();
            self.enter(concluded);
            for worker in self.campaign.take_newly_kept() {
                // Skip the worker if it has received the check meanwhile.
                if self.campaign.is_spot_check_kept(&worker) {
                    self.calls.wake(&worker);
                }
            }
        }
    }

    fn complete(
        &mut self,
        results: Vec<UnitResult>,
        reply: Reply<Result<Vec<Verdict>, Unavailable>>,
        batch: &mut Batch,
    ) {
        if results.first().is_some_and(|result| !self.campaign.knows(&result.source.worker)) {
            let _ = reply.send(Err(Unavailable::SyncFirst));
            return;
        }
        let mut verdicts = Vec::with_capacity(results.len());
        let mut kept = true;
        for result in results {
            if batch.units.contains(&result.unit) {
                kept &= self.commit(batch);
            }
            let limits = self
                .decomposition(&result.unit.job)
                .map(|units| units.unit_limits(result.unit.unit));
            let validation = self.campaign.validate(&result, limits.as_ref());
            let convicts = |event: &Event| matches!(event, Event::WorkerQuarantined { .. });
            let disputes = !validation.events.is_empty();
            if validation.events.iter().any(convicts) {
                // A quarantine affects many units, and later validations depend on it, so it is
                // committed separately.
                tracing::error!(worker = result.source.worker, unit = %result.unit, "a result is refused");
                kept &= self.commit(batch);
                let validation = self.campaign.validate(&result, limits.as_ref());
                batch.add(validation.events, now_ms());
                kept &= self.commit(batch);
            } else {
                batch.units.insert(result.unit);
                batch.add(validation.events, now_ms());
            }
            // Log every dispute: there are only a few at a time.
            if validation.verdict == Verdict::Conflict && disputes {
                tracing::warn!(worker = result.source.worker, unit = %result.unit, "two results differ");
                let Source { worker, .. } = &result.source;
                let text =
                    format!("{worker} has another result for {}; the arbiter decides", result.unit);
                let conflict = OperatorEvent::warning(EventKind::Conflict, text);
                self.event_log.note(conflict.of_job(result.unit.job).of_worker(worker));
            }
            verdicts.push(validation.verdict);
        }
        let metrics = Arc::clone(&self.metrics);
        batch.then.push(Box::new(move |written| {
            let answer = if written && kept { Ok(verdicts) } else { Err(Unavailable::Ledger) };
            if let Ok(verdicts) = &answer {
                verdicts.iter().for_each(|&verdict| metrics.judged(verdict));
            }
            let _ = reply.send(answer);
        }));
    }

    /// Returns the units of a job, planned on first use.
    fn decomposition(&mut self, job: &JobHash) -> Option<Arc<Decomposition>> {
        let info = self.jobs.get_mut(job)?;
        let units = info
            .decomposition
            .get_or_insert_with(|| Arc::new(Decomposition::new(info.job.clone())));
        Some(Arc::clone(units))
    }

    /// Wakes the calls that wait for work to lease.
    fn offer(&self) {
        self.calls.wake_all();
    }

    /// Commits the batch, applies it and answers the waiting callers. Returns whether the commit is
    /// durable.
    fn commit(&mut self, batch: &mut Batch) -> bool {
        let Batch { entries, events, then, .. } = std::mem::take(batch);
        let written = self.keep(&entries, &events);
        if !events.is_empty() {
            // Checks may be due, and units may be open again.
            self.offer();
            self.assign_to_arbiter();
        }
        then.into_iter().for_each(|tell| tell(written));
        written
    }

    /// Commits entries and applies their events. Returns whether all of them are durable.
    fn keep(&mut self, entries: &[Entry], events: &[Event]) -> bool {
        match self.append(entries) {
            Ok(()) => {
                for event in events {
                    self.campaign.apply(event);
                    self.note(event);
                }
                self.note_voided(events);
                true
            }
            // Retry one by one, so that a single invalid entry cannot block the rest.
            Err(Rejected::Refused) if entries.len() > 1 => {
                let each = entries.iter().zip(events);
                each.fold(true, |kept, (entry, event)| {
                    self.keep(std::slice::from_ref(entry), std::slice::from_ref(event)) && kept
                })
            }
            Err(_) => false,
        }
    }

    fn append(&mut self, entries: &[Entry]) -> Result<(), Rejected> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.is_read_only() {
            // The next tick tries to reopen it.
            return Err(Rejected::Unwritten);
        }
        if self.file.is_none() {
            self.reopen().map_err(|error| self.fail(&error))?;
            // Events validated against the old state may not fit the reloaded ledger.
            return Err(Rejected::Unwritten);
        }
        let Some(file) = &mut self.file else { return Err(Rejected::Unwritten) };
        let began = Instant::now();
        match file.append(entries) {
            Ok(()) => {
                self.metrics.appended(entries.len(), began.elapsed());
                self.written();
                Ok(())
            }
            Err(error) => {
                if matches!(error, LedgerError::FailedBefore(_) | LedgerError::ChangedUnderneath(_))
                {
                    // The state on disk is unknown, so the ledger is read again.
                    self.file = None;
                }
                Err(self.fail(&error))
            }
        }
    }

    fn fail(&mut self, error: &LedgerError) -> Rejected {
        let refused = matches!(error, LedgerError::Refused { .. });
        let trouble =
            if refused { error.to_string() } else { format!("nothing is acknowledged: {error}") };
        if self.trouble.as_ref() != Some(&trouble) {
            tracing::error!("{trouble}");
            self.tell(Kind::Trouble, None, None, trouble.clone());
            self.event_log.note(OperatorEvent::error(EventKind::Trouble, trouble.clone()));
        }
        self.trouble = Some(trouble);
        if refused { Rejected::Refused } else { Rejected::Unwritten }
    }

    fn tell(&self, kind: Kind, job: Option<JobHash>, worker: Option<&str>, text: String) {
        let (job, worker) = (job.map(|job| job.to_string()), worker.map(str::to_owned));
        self.notifier.tell(Notification { kind, job, worker, text });
    }

    /// Updates the information about a job, logs the event and notifies operators where needed.
    fn note(&mut self, event: &Event) {
        match event {
            Event::JobState { job, state } => {
                tracing::info!(%job, state = name(*state), "a job changes its state");
                let who = self.acting.take().unwrap_or_default();
                self.event_log.note(books::changed(*job, *state, &who));
                self.exhausted.remove(job);
                if *state == JobState::Disputed {
                    let text = format!("job {job} is disputed: {}", self.dispute(job));
                    tracing::error!("{text}");
                    self.tell(Kind::Disputed, Some(*job), None, text);
                }
                if *state == JobState::Finished {
                    let what =
                        self.jobs.get(job).map(|info| info.job.to_string()).unwrap_or_default();
                    self.tell(
                        Kind::Finished,
                        Some(*job),
                        None,
                        format!("job {job} is finished: {what}"),
                    );
                }
                if let Some(info) = self.jobs.get_mut(job) {
                    info.state_ms = now_ms();
                }
            }
            Event::UnitPoisoned { unit, reason } => {
                tracing::error!(%unit, reason, "a unit is set aside");
                self.event_log.note(books::poisoned(*unit, reason));
                let text = format!("unit {} of job {} is set aside: {reason}", unit.unit, unit.job);
                self.tell(Kind::Poisoned, Some(unit.job), None, text);
                if let Some(info) = self.jobs.get_mut(&unit.job) {
                    info.poison.insert(unit.unit, reason.clone());
                }
            }
            Event::UnitRevived { unit } => {
                if let Some(info) = self.jobs.get_mut(&unit.job) {
                    info.poison.remove(&unit.unit);
                }
            }
            Event::UnitVoided { unit, reason } => {
                tracing::warn!(%unit, reason, "a result is taken back");
            }
            Event::WorkerQuarantined { worker, reason, .. } => {
                tracing::error!(worker, reason, "a worker is put in quarantine");
                self.event_log.note(books::quarantined(worker, reason));
                let text = format!("worker {worker} is in quarantine: {reason}");
                self.tell(Kind::Quarantined, None, Some(worker), text);
            }
            Event::WorkerReleased { worker } => {
                tracing::info!(worker, "a worker is let out of quarantine");
                let who = self.acting.take().unwrap_or_default();
                self.event_log.note(books::released(worker, &who));
            }
            Event::JobSubmitted { .. }
            | Event::UnitDone { .. }
            | Event::Recount { .. }
            | Event::SpotCheck { .. } => {}
        }
    }

    /// Notes how many results were voided, with one operator event per job.
    fn note_voided(&self, events: &[Event]) {
        let mut voided: BTreeMap<JobHash, u64> = BTreeMap::new();
        for event in events {
            if let Event::UnitVoided { unit, .. } = event {
                *voided.entry(unit.job).or_default() += 1;
            }
        }
        for (job, results) in voided {
            let text =
                format!("results taken back, and to be counted again: {results} of job {job}");
            self.event_log.note(OperatorEvent::warning(EventKind::Voided, text).of_job(job));
        }
    }

    /// Commits events as a separate batch.
    fn record(&mut self, events: Vec<Event>) -> Result<(), Unavailable> {
        let mut batch = Batch::default();
        batch.add(events, now_ms());
        if self.commit(&mut batch) { Ok(()) } else { Err(Unavailable::Ledger) }
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Complete(results, reply) => {
                let mut batch = Batch::default();
                self.complete(results, reply, &mut batch);
                self.commit(&mut batch);
            }
            Request::Sync(request, about, reply) => {
                let _ = reply.send(self.sync(&request, about));
            }
            Request::Fail { unit, attempt, worker, unsuited: true, reply, .. } => {
                tracing::info!(worker, job = %unit.job, "a worker has no kernel for a job");
                self.campaign.unsuited(unit, attempt, &worker);
                let _ = reply.send(Ok(()));
            }
            // Ignore a worker that was never asked to count the unit.
            Request::Fail { unit, attempt, worker, reply, .. }
                if !self.campaign.was_asked(unit, attempt, &worker) =>
            {
                let _ = reply.send(Ok(()));
            }
            Request::Fail { unit, attempt, worker, reason, reply, .. } => {
                tracing::warn!(worker, %unit, reason, "a worker could not count a unit");
                let text = format!("worker {worker} could not count {unit}: {reason}");
                let failed = OperatorEvent::warning(EventKind::Failed, text);
                self.event_log.note(failed.of_job(unit.job).of_worker(&worker));
                let events = self.campaign.fail(unit, attempt, &worker, &reason);
                let _ = reply.send(self.record(events.into_iter().collect()));
            }
            Request::Submit { planned, priority, submitter, reply } => {
                let _ = reply.send(self.submit(&planned, priority, &submitter));
            }
            Request::SetState { job, state, by, reply } => {
                let _ = reply.send(self.by(by, |actor| actor.set_state(&job, state)));
            }
            Request::Drain { worker, by, reply } => {
                let _ = reply.send(self.drain(&worker, &by));
            }
            Request::ReportMisbehaviour { worker, reason } => {
                let events = self.campaign.quarantine(&worker, &reason, true);
                // If this cannot be written, the answers of the worker are still checked.
                let _ = self.record(events);
            }
            Request::Release { worker, by, reply } => {
                let known = self.campaign.quarantined().contains_key(&worker);
                let release =
                    |actor: &mut Self| actor.record(vec![Event::WorkerReleased { worker }]);
                let released = if known { self.by(by, release) } else { Ok(()) };
                let _ = reply.send(released.map(|()| known));
            }
            Request::Status(job, reply) => {
                let _ = reply.send(self.status(&job));
            }
            Request::UnitMap { job, version, reply } => {
                let _ = reply.send(self.unit_map(&job, version));
            }
            Request::History { job, after_ms, reply } => {
                let _ = reply.send(self.history(&job, after_ms));
            }
            Request::IsCheckKept(worker, reply) => {
                let _ = reply.send(self.campaign.is_spot_check_kept(&worker));
            }
            Request::Workers(reply) => {
                let _ = reply.send(self.workers());
            }
            Request::Ruling(answer) => self.rule(answer),
            Request::Tick => self.tick(),
            // Handled in `work`.
            Request::Stop => {}
        }
    }

    /// Runs an operation and names the person who requested it in the event log.
    fn by<T>(&mut self, who: String, act: impl FnOnce(&mut Self) -> T) -> T {
        self.acting = Some(who);
        let done = act(self);
        self.acting = None;
        done
    }

    fn sync(&mut self, request: &SyncRequest, about: About) -> Synced {
        self.note_worker(&request.worker, &about);
        if !self.about.contains_key(&request.worker) {
            tracing::info!(
                worker = request.worker,
                address = about.address,
                build = about.build,
                "a worker is here"
            );
            let owner = request.owner.clone();
            let seen = WorkerSeen { worker: request.worker.clone(), owner, at_ms: now_ms() };
            self.seen.push(Entry::WorkerSeen(seen));
        }
        self.about.insert(request.worker.clone(), about);
        let response = self.campaign.sync(request, self.clock.now_ms());
        let mut hashes: Vec<JobHash> = response.desired.iter().map(|lease| lease.job).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let jobs =
            hashes.iter().filter_map(|hash| Some(self.jobs.get(hash)?.job.clone())).collect();
        let running_jobs = self
            .campaign
            .jobs()
            .filter(|job| self.campaign.state(job).is_some_and(JobState::is_counted))
            .count();
        Synced {
            response,
            jobs,
            running_jobs: u32::try_from(running_jobs).unwrap_or(u32::MAX),
            quarantined: self.campaign.quarantined().get(&request.worker).cloned(),
            draining: self.campaign.is_draining(&request.worker),
        }
    }

    fn submit(
        &mut self,
        planned: &Planned,
        priority: i32,
        submitter: &str,
    ) -> Result<Submitted, Unavailable> {
        let Planned { decomposition } = planned;
        let (job, units) = (decomposition.job(), decomposition.units());
        if let Some(progress) = self.campaign.progress(&job.hash()) {
            let mut state = progress.state;
            if state == JobState::Cancelled {
                // Submitting a cancelled job again resumes it.
                state = JobState::Running;
                let again = vec![Event::JobState { job: job.hash(), state }];
                self.by(submitter.to_owned(), |actor| actor.record(again))?;
            }
            return Ok(Submitted { known: true, state, priority: progress.priority });
        }
        let at_ms = now_ms();
        let (entry, event) = books::submission(job, units, priority, submitter, at_ms);
        self.append(&[entry]).map_err(|_| Unavailable::Ledger)?;
        self.campaign.apply(&event);
        self.offer();
        tracing::info!(job = %job.hash(), units, priority, submitter, text = %job, "a job is submitted");
        let info = JobInfo {
            job: job.clone(),
            submitter: submitter.to_owned(),
            state_ms: at_ms,
            decomposition: Some(Arc::clone(decomposition)),
            poison: BTreeMap::new(),
        };
        self.jobs.insert(job.hash(), info);
        self.event_log.note(books::submitted(job.hash(), &job.to_string(), submitter));
        self.histories.insert(job.hash(), History::of_the_past(at_ms, Vec::new(), Vec::new()));
        Ok(Submitted { known: false, state: JobState::Running, priority })
    }

    /// Returns the job whose name begins with `digits`.
    pub(super) fn find(&self, digits: &str) -> Result<JobHash, StateError> {
        let found: Vec<JobHash> =
            self.jobs.keys().copied().filter(|job| job.to_string().starts_with(digits)).collect();
        match found[..] {
            [job] => Ok(job),
            [] => Err(StateError::NoSuchJob(digits.to_owned())),
            _ => Err(StateError::Ambiguous(digits.to_owned(), found.len())),
        }
    }

    fn set_state(
        &mut self,
        digits: &str,
        state: JobState,
    ) -> Result<(JobHash, JobState), StateError> {
        let job = self.find(digits)?;
        let before = self.campaign.state(&job).unwrap_or(JobState::Cancelled);
        let over = matches!(before, JobState::Finished)
            || (before == JobState::Cancelled && state == JobState::Paused)
            || matches!(state, JobState::Finished | JobState::Disputed);
        if over && before != state {
            return Err(StateError::over(job, before, state));
        }
        let mut events = Vec::new();
        if before != state {
            events.push(Event::JobState { job, state });
        }
        if state == JobState::Running {
            let aside = self.campaign.poisoned(&job);
            events.extend(
                aside.into_iter().map(|unit| Event::UnitRevived { unit: UnitId { job, unit } }),
            );
        }
        self.record(events)?;
        Ok((job, before))
    }

    /// Drains a worker: it gets no more work until it restarts, even if the coordinator restarts
    /// meanwhile. Returns false if the worker is not known.
    fn drain(&mut self, worker: &str, by: &str) -> Result<bool, Unavailable> {
        let found = self.campaign.workers().find(|(name, _)| *name == worker);
        let Some((boot, draining)) = found.map(|(_, state)| (state.boot, state.draining)) else {
            return Ok(false);
        };
        if !draining {
            let drained = WorkerDrained { worker: worker.to_owned(), boot, at_ms: now_ms() };
            self.append(&[Entry::WorkerDrained(drained)]).map_err(|_| Unavailable::Ledger)?;
            self.campaign.drain(worker);
        }
        self.event_log.note(books::draining(worker, by));
        Ok(true)
    }

    fn rule(&mut self, answer: arbiter::Answer) {
        let arbiter::Answer { task, ruling, source } = answer;
        self.at_arbiter = None;
        match ruling {
            Ok(ruling) => {
                let events = self.campaign.ruled(&ruling, &source);
                // If this cannot be written, the check stays due and goes to the arbiter again.
                let _ = self.record(events);
            }
            Err(reason) => {
                tracing::error!(unit = %task.unit, reason, "the arbiter cannot decide");
                self.undecided.insert(task.unit, reason);
            }
        }
        self.assign_to_arbiter();
    }

    /// Assigns the next task to the arbiter if it is idle.
    fn assign_to_arbiter(&mut self) {
        if self.at_arbiter.is_some() || self.file.is_none() || self.is_read_only() {
            return;
        }
        let now_ms = self.clock.now_ms();
        let undecided = &self.undecided;
        let task = self.campaign.next_for_arbiter(now_ms, |unit| undecided.contains_key(&unit));
        let Some(task) = task else { return };
        let Some(decomposition) = self.decomposition(&task.unit.job) else { return };
        match self.arbiter.send(Assigned { task, decomposition }) {
            Ok(()) => self.at_arbiter = Some(task.unit),
            Err(_) => {
                let reason = "the arbiter has ended; start the coordinator again".to_owned();
                self.undecided.insert(task.unit, reason);
            }
        }
    }

    fn tick(&mut self) {
        self.try_to_write();
        let seen = std::mem::take(&mut self.seen);
        // If this cannot be written, another write reports the problem.
        let _ = self.append(&seen);
        self.expire_and_finish();
        self.assign_to_arbiter();
        let now_ms = self.clock.now_ms();
        let jobs: Vec<JobHash> = self.campaign.jobs().collect();
        for job in jobs {
            let Some(progress) = self.campaign.progress(&job) else { continue };
            if progress.state.is_counted() {
                self.paces.entry(job).or_default().observe(now_ms, progress.done);
            }
            if matches!(progress.state, JobState::Running | JobState::Paused | JobState::Disputed) {
                let point = Point {
                    at_ms: super::now_ms(),
                    done: progress.done,
                    verified: progress.checked,
                };
                self.histories.entry(job).or_default().observe(point);
            }
        }
        self.note_silence(now_ms);
        self.note_exhausted();
        self.metrics.observe(
            &self.campaign,
            self.trouble.is_some(),
            now_ms,
            self.settings.lease_ms,
        );
    }

    fn expire_and_finish(&mut self) {
        let events = self.campaign.tick(self.clock.now_ms());
        self.offer();
        self.enter(events);
    }

    /// Commits events one by one, as far as the ledger can be written.
    fn enter(&mut self, events: Vec<Event>) {
        for event in events {
            let entries: Vec<Entry> = books::entry(&event, now_ms()).into_iter().collect();
            // An event that cannot be written is generated again.
            if self.append(&entries).is_ok() {
                self.campaign.apply(&event);
                self.note(&event);
            }
        }
    }

    /// Notes a worker that is new or has returned, and devices that failed since its last sync.
    fn note_worker(&mut self, worker: &str, about: &About) {
        let before = self.about.get(worker);
        let silent = self.silent.remove(worker);
        if before.is_none() || silent {
            let again = if silent { " again" } else { "" };
            let text = format!("worker {worker} is here{again}, from {}", about.address);
            self.event_log.note(OperatorEvent::info(EventKind::Joined, text).of_worker(worker));
        }
        let known = |device: &Device| {
            before.is_some_and(|before| {
                before.devices.iter().any(|old| old.id == device.id && old.fault == device.fault)
            })
        };
        for device in
            about.devices.iter().filter(|device| !device.fault.is_empty() && !known(device))
        {
            let text = format!("{} of worker {worker} is at fault: {}", device.id, device.fault);
            self.event_log.note(OperatorEvent::warning(EventKind::Failed, text).of_worker(worker));
        }
    }

    /// Notifies operators, once per dispute, when only they can settle it.
    fn note_exhausted(&mut self) {
        for job in self.exhausted_disputes() {
            if self.exhausted.insert(job) {
                let text = format!("job {job} stays disputed: {}", self.dispute(&job));
                tracing::error!("{text}");
                self.event_log
                    .note(OperatorEvent::error(EventKind::Disputed, text.clone()).of_job(job));
                self.tell(Kind::Disputed, Some(job), None, text);
            }
        }
    }

    /// Notes workers that have been silent for the duration of a lease.
    fn note_silence(&mut self, now_ms: u64) {
        for (name, worker) in self.campaign.workers() {
            if worker.seen_ms + self.settings.lease_ms <= now_ms && !self.silent.contains(name) {
                self.silent.insert(name.clone());
                let (level, text) = if worker.draining {
                    (EventLevel::Info, format!("worker {name} is gone"))
                } else {
                    (EventLevel::Warning, format!("worker {name} is silent"))
                };
                let silent =
                    OperatorEvent { level, ..OperatorEvent::info(EventKind::Silent, text) };
                self.event_log.note(silent.of_worker(name));
            }
        }
    }

    /// Estimates the time that `units` more units will take.
    pub(super) fn left(&self, job: &JobHash, done: u64, units: u64) -> Option<TimeLeft> {
        self.paces.get(job)?.left(self.clock.now_ms(), done, units)
    }

    /// Returns the average number of units of a job per second in the last minutes.
    pub(super) fn units_per_s(&self, job: &JobHash, done: u64) -> f64 {
        self.paces.get(job).map_or(0.0, |pace| pace.units_per_s(self.clock.now_ms(), done))
    }
}

/// Returns whether a file beside `path` can be created and can hold as much data as opening a
/// ledger writes.
fn has_room_beside(path: &Path) -> bool {
    let probe = path.with_extension("probe");
    let written = std::fs::File::create(&probe).and_then(|mut file| {
        file.write_all(&[0; 128 << 10])?;
        file.sync_all()
    });
    let _ = std::fs::remove_file(&probe);
    written.is_ok()
}

/// Returns the name of a state.
pub(super) const fn name(state: JobState) -> &'static str {
    match state {
        JobState::Running => "running",
        JobState::Paused => "paused",
        JobState::Cancelled => "cancelled",
        JobState::Finished => "finished",
        JobState::Disputed => "disputed",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::ops::Deref;

    use super::*;
    use crate::board::{Piece, Problem};
    use crate::cluster::campaign::COORDINATOR;
    use crate::decomposition::{Job, Scheme};
    use crate::tally::{Residues, Tally};

    /// A campaign actor without a thread. Dropping it removes its directory.
    pub(in crate::cluster::coordinator) struct Kept {
        pub(in crate::cluster::coordinator) actor: CampaignActor,
        pub(in crate::cluster::coordinator) notifications: std_mpsc::Receiver<Notification>,
        folder: PathBuf,
        _assigned: std_mpsc::Receiver<Assigned>,
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            self.actor.file = None;
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    impl Deref for Kept {
        type Target = CampaignActor;

        fn deref(&self) -> &CampaignActor {
            &self.actor
        }
    }

    pub(in crate::cluster::coordinator) fn actor(name: &str) -> Kept {
        let folder =
            std::env::temp_dir().join(format!("nqueens-campaign-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (notifier, notifications) = Notifier::heard();
        let (arbiter, assigned) = std_mpsc::channel();
        let told = (Arc::new(Metrics::new()), notifier, EventLog::start(now_ms()));
        let calls = Arc::default();
        let actor = CampaignActor::open(
            folder.join("ledger.db"),
            Settings::default(),
            told,
            (arbiter, calls),
        );
        Kept { actor: actor.expect("a new ledger"), notifications, folder, _assigned: assigned }
    }

    pub(in crate::cluster::coordinator) fn source(worker: &str) -> Source {
        Source {
            worker: worker.into(),
            owner: worker.into(),
            kernel: "scalar".into(),
            device: "cpu".into(),
            build: "0.1.0".into(),
        }
    }

    pub(in crate::cluster::coordinator) fn done(
        unit: UnitId,
        solutions: u128,
        source: Source,
    ) -> Event {
        let thirds = 3 * solutions;
        let tally = Tally::from_parts(thirds, Residues::of(thirds), 1);
        let (checks, sub_sums) = (Some(Default::default()), Vec::new());
        Event::UnitDone { unit, attempt: 1, tally, source, elapsed_s: 0.5, checks, sub_sums }
    }

    impl Kept {
        /// Submits the count of 8 queens as a job of `units` units.
        pub(in crate::cluster::coordinator) fn submit(&mut self, units: u64) -> JobHash {
            let job = Job::new(Problem::empty(Piece::Queen, 8), Scheme::CentreCross, None, 64)
                .expect("small");
            let (entry, event) = books::submission(&job, units, 0, "anna", now_ms());
            assert!(self.actor.keep(&[entry], &[event]), "{:?}", self.actor.trouble);
            let info = JobInfo {
                job: job.clone(),
                submitter: "anna".into(),
                state_ms: now_ms(),
                decomposition: None,
                poison: BTreeMap::new(),
            };
            self.actor.jobs.insert(job.hash(), info);
            job.hash()
        }

        /// Submits a job of two units and completes it with 93 solutions: one too many.
        pub(in crate::cluster::coordinator) fn dispute(&mut self) -> JobHash {
            let job = self.submit(2);
            for (unit, solutions) in [(0, 46), (1, 47)] {
                let result = done(UnitId { job, unit }, solutions, source("w1"));
                self.actor.record(vec![result]).expect("the disk has room");
            }
            self.actor.tick();
            assert_eq!(self.campaign.state(&job), Some(JobState::Disputed));
            job
        }

        /// Confirms both units of that job on behalf of the coordinator.
        pub(in crate::cluster::coordinator) fn confirm(&mut self, job: JobHash) {
            for (unit, solutions) in [(0, 46), (1, 47)] {
                let Event::UnitDone { unit, tally, elapsed_s, .. } =
                    done(UnitId { job, unit }, solutions, source("w1"))
                else {
                    unreachable!("it is one");
                };
                let source = source(COORDINATOR);
                let (mirrored, agrees) = (true, true);
                let recount = Event::Recount { unit, tally, source, mirrored, agrees, elapsed_s };
                self.actor.record(vec![recount]).expect("the disk has room");
            }
            (0..3).for_each(|_| self.actor.tick());
        }
    }

    #[test]
    fn people_are_told_of_a_dispute_and_once_when_it_is_theirs_to_settle() {
        let mut kept = actor("dispute");
        let job = kept.dispute();
        let notifications: Vec<Notification> = kept.notifications.try_iter().collect();
        assert_eq!(
            (notifications.len(), notifications[0].kind),
            (1, Kind::Disputed),
            "{notifications:?}"
        );
        assert!(
            notifications[0].text.contains("the total 93 contradicts the published value 92"),
            "{notifications:?}"
        );
        let errors = |kept: &Kept| {
            let disputed =
                |event: &crate::cluster::protocol::v1::Event| event.kind() == EventKind::Disputed;
            let events: Vec<_> = kept.event_log.after(0).into_iter().filter(disputed).collect();
            assert!(events.iter().all(|event| event.level() == EventLevel::Error), "{events:?}");
            events.len()
        };
        assert_eq!(errors(&kept), 1);
        kept.confirm(job);
        let notifications: Vec<Notification> = kept.notifications.try_iter().collect();
        assert_eq!(
            (notifications.len(), notifications[0].kind),
            (1, Kind::Disputed),
            "{notifications:?}"
        );
        assert!(
            notifications[0].text.contains("stays disputed")
                && notifications[0].text.contains("please report it"),
            "{notifications:?}"
        );
        assert_eq!(errors(&kept), 2);
        kept.actor.tick();
        assert_eq!(errors(&kept), 2);
    }

    #[test]
    fn a_disputed_job_can_be_paused_resumed_and_cancelled_but_not_declared_right() {
        let mut kept = actor("steered");
        let job = kept.dispute();
        let name = job.to_string();
        for state in [JobState::Finished, JobState::Disputed] {
            kept.actor.set_state(&name, JobState::Paused).expect("it can be paused");
            let refused = kept.actor.set_state(&name, state).expect_err("only a count says so");
            assert!(matches!(refused, StateError::Over(..)), "{refused}");
            kept.actor.tick();
            assert_eq!(kept.campaign.state(&job), Some(JobState::Paused));
            // It continues, and becomes disputed again without further requests.
            kept.actor.set_state(&name, JobState::Running).expect("it can be resumed");
            (0..2).for_each(|_| kept.actor.tick());
            assert_ne!(kept.campaign.state(&job), Some(JobState::Finished));
        }
        let (_, before) =
            kept.actor.set_state(&name, JobState::Cancelled).expect("it can be cancelled");
        assert!(matches!(before, JobState::Disputed | JobState::Running), "{before:?}");
        kept.actor.tick();
        assert_eq!(kept.campaign.state(&job), Some(JobState::Cancelled));
    }
}
