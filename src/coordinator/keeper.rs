//! The keeper: the one thread that changes the campaign and writes the ledger.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::books::{self, JobInfo};
use super::clock::SteadyClock;
use super::metrics::Metrics;
use super::news::{Crier, Kind, News};
use super::now_ms;
use super::pace::Pace;
use super::plan::Planned;
use super::referee::{self, Dispute, Ruling};
use super::requests::{About, Handle, Reply, Request, StateError, Submitted, Synced, Unavailable};
use crate::campaign::{Campaign, Completion, Event, JobState, Settings, SyncRequest, UnitId, Verdict};
use crate::ledger::{CampaignFile, Entry, LedgerError, WorkerSeen};
use crate::preplacement::JobHash;

/// How many requests may wait.
const MOST_WAITING: usize = 4096;
/// How many are dealt with between two writes.
const MOST_AT_ONCE: usize = 1024;

/// A keeper that runs.
pub(super) struct Running {
    pub(super) handle: Handle,
    pub(super) thread: std::thread::JoinHandle<()>,
    /// Ready once the thread has ended, for whatever reason.
    pub(super) ended: oneshot::Receiver<()>,
}

/// Starts the keeper of the ledger at `path`. It ends when it is told to, or all handles are dropped.
///
/// # Errors
/// The ledger cannot be opened, or the system gives no thread.
pub(super) fn start(
    path: PathBuf,
    settings: Settings,
    metrics: Arc<Metrics>,
    crier: Crier,
) -> Result<Running, StartError> {
    let (handle, requests) = mpsc::channel(MOST_WAITING);
    // The referee must not keep the keeper alive.
    let weak = handle.downgrade();
    let rule = move |ruling| {
        if let Some(handle) = weak.upgrade() {
            let _ = handle.blocking_send(Request::Ruling(ruling));
        }
    };
    let referee = referee::start(rule).map_err(StartError::Thread)?;
    let mut keeper = Keeper::open(path, settings, (metrics, crier), referee)?;
    let (alive, ended) = oneshot::channel::<()>();
    let work = move || {
        // Dropped with the thread, also by a panic.
        let _alive = alive;
        keeper.work(requests);
    };
    let thread = std::thread::Builder::new().name("keeper".into()).spawn(work).map_err(StartError::Thread)?;
    Ok(Running { handle, thread, ended })
}

/// Why the keeper does not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the system gives no thread: {0}")]
    Thread(std::io::Error),
}

/// Why entries are not in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejected {
    /// One of them may not follow what is there.
    Refused,
    /// The disk does not take them.
    Unwritten,
}

/// What is to be written and then answered.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    events: Vec<Event>,
    /// Units that the events are about: a second result for one waits until they are applied.
    units: HashSet<UnitId>,
    /// Told whether the disk has it.
    then: Vec<Box<dyn FnOnce(bool)>>,
}

impl Batch {
    fn add(&mut self, events: Vec<Event>, at_ms: u64) {
        self.entries.extend(events.iter().filter_map(|event| books::entry(event, at_ms)));
        self.events.extend(events);
    }
}

pub(super) struct Keeper {
    path: PathBuf,
    pub(super) settings: Settings,
    /// For the campaign. What is kept has the time of the wall's clock.
    pub(super) clock: SteadyClock,
    /// None while it must be opened again.
    file: Option<CampaignFile>,
    pub(super) campaign: Campaign,
    pub(super) jobs: BTreeMap<JobHash, JobInfo>,
    pub(super) about: HashMap<String, About>,
    paces: HashMap<JobHash, Pace>,
    /// New workers, to be written with the next tick: for people, and no call waits for it.
    seen: Vec<Entry>,
    /// The unit that the referee has. It gets one at a time: a ruling may settle others.
    in_court: Option<UnitId>,
    /// Units that the referee could not decide, and why.
    pub(super) undecided: BTreeMap<UnitId, String>,
    referee: std_mpsc::Sender<Dispute>,
    metrics: Arc<Metrics>,
    crier: Crier,
    /// What is wrong, for people.
    pub(super) trouble: Option<String>,
    /// Jobs whose every unit is done, and which cannot be finished all the same.
    pub(super) doubts: BTreeMap<JobHash, String>,
}

impl Keeper {
    fn open(
        path: PathBuf,
        settings: Settings,
        (metrics, crier): (Arc<Metrics>, Crier),
        referee: std_mpsc::Sender<Dispute>,
    ) -> Result<Self, LedgerError> {
        let mut keeper = Self {
            path,
            settings,
            clock: SteadyClock::start(),
            file: None,
            campaign: Campaign::new(settings, 0, 0),
            jobs: BTreeMap::new(),
            about: HashMap::new(),
            paces: HashMap::new(),
            seen: Vec::new(),
            in_court: None,
            undecided: BTreeMap::new(),
            referee,
            metrics,
            crier,
            trouble: None,
            doubts: BTreeMap::new(),
        };
        keeper.reopen()?;
        Ok(keeper)
    }

    /// Reads everything from the ledger.
    fn reopen(&mut self) -> Result<(), LedgerError> {
        // Its lock must go first.
        self.file = None;
        let mut file = CampaignFile::open(&self.path)?;
        // No lease of before has a number as high: those of one start are fewer than 2^20 a millisecond.
        self.campaign = Campaign::new(self.settings, now_ms(), fastrand::u64(..));
        self.jobs = books::load(&mut file, &mut self.campaign)?;
        self.in_court = None;
        self.undecided.clear();
        self.doubts.clear();
        self.file = Some(file);
        Ok(())
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
            // Results first: whoever syncs in the same moment sees what they did.
            while let Some(request) = next {
                match request {
                    Request::Complete(completions, reply) => self.complete(completions, reply, &mut batch),
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
        }
    }

    fn complete(
        &mut self,
        completions: Vec<Completion>,
        reply: Reply<Result<Vec<Verdict>, Unavailable>>,
        batch: &mut Batch,
    ) {
        let mut verdicts = Vec::with_capacity(completions.len());
        let mut kept = true;
        for completion in completions {
            if batch.units.contains(&completion.unit) {
                kept &= self.commit(batch);
            }
            let judgement = self.campaign.judge(&completion);
            let convicts = |event: &Event| matches!(event, Event::WorkerQuarantined { .. });
            if judgement.events.iter().any(convicts) {
                // It touches many units, and what is judged next depends on it.
                tracing::error!(worker = completion.source.worker, unit = %completion.unit, "a result contradicts itself");
                kept &= self.commit(batch);
                let judgement = self.campaign.judge(&completion);
                batch.add(judgement.events, now_ms());
                kept &= self.commit(batch);
            } else {
                batch.units.insert(completion.unit);
                batch.add(judgement.events, now_ms());
            }
            if judgement.verdict == Verdict::Conflict {
                tracing::warn!(worker = completion.source.worker, unit = %completion.unit, "two results differ");
            }
            verdicts.push(judgement.verdict);
        }
        let metrics = Arc::clone(&self.metrics);
        batch.then.push(Box::new(move |written| {
            let answer = if written && kept { Ok(verdicts) } else { Err(Unavailable) };
            if let Ok(verdicts) = &answer {
                verdicts.iter().for_each(|&verdict| metrics.judged(verdict));
            }
            let _ = reply.send(answer);
        }));
    }

    /// Writes the batch, applies it, and tells those who wait. Whether the disk has it.
    fn commit(&mut self, batch: &mut Batch) -> bool {
        let Batch { entries, events, then, .. } = std::mem::take(batch);
        let written = self.keep(&entries, &events);
        then.into_iter().for_each(|tell| tell(written));
        written
    }

    /// Writes entries and applies the events that they are.
    fn keep(&mut self, entries: &[Entry], events: &[Event]) -> bool {
        match self.append(entries) {
            Ok(()) => {
                for event in events {
                    self.campaign.apply(event);
                    self.note(event);
                }
                true
            }
            // One that does not fit must not keep the others from the books.
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
        if self.file.is_none() {
            self.reopen().map_err(|error| self.fail(&error))?;
            // What was judged before may not fit to what the disk has.
            return Err(Rejected::Unwritten);
        }
        let Some(file) = &mut self.file else { return Err(Rejected::Unwritten) };
        let began = Instant::now();
        match file.append(entries) {
            Ok(()) => {
                self.metrics.appended(entries.len(), began.elapsed());
                if self.trouble.take().is_some() {
                    tracing::info!("the ledger can be written again");
                }
                Ok(())
            }
            Err(error) => {
                if matches!(error, LedgerError::FailedBefore(_) | LedgerError::ChangedUnderneath(_)) {
                    // What is on the disk is not known: it is read anew.
                    self.file = None;
                }
                Err(self.fail(&error))
            }
        }
    }

    fn fail(&mut self, error: &LedgerError) -> Rejected {
        let refused = matches!(error, LedgerError::Refused { .. });
        let trouble = if refused { error.to_string() } else { format!("nothing is acknowledged: {error}") };
        if self.trouble.as_ref() != Some(&trouble) {
            tracing::error!("{trouble}");
            self.tell(Kind::Trouble, None, None, trouble.clone());
        }
        self.trouble = Some(trouble);
        if refused { Rejected::Refused } else { Rejected::Unwritten }
    }

    fn tell(&self, kind: Kind, job: Option<JobHash>, worker: Option<&str>, text: String) {
        let (job, worker) = (job.map(|job| job.to_string()), worker.map(str::to_owned));
        self.crier.tell(News { kind, job, worker, text });
    }

    /// Remembers, logs and tells what people should know of an event.
    fn note(&mut self, event: &Event) {
        match event {
            Event::JobState { job, state } => {
                tracing::info!(%job, state = name(*state), "a job changes its state");
                if *state == JobState::Finished {
                    let what = self.jobs.get(job).map(|info| info.job.to_string()).unwrap_or_default();
                    self.tell(Kind::Finished, Some(*job), None, format!("job {job} is finished: {what}"));
                }
                if let Some(info) = self.jobs.get_mut(job) {
                    info.state_ms = now_ms();
                }
            }
            Event::UnitPoisoned { unit, reason } => {
                tracing::error!(%unit, reason, "a unit is set aside");
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
                self.doubts.remove(&unit.job);
                tracing::warn!(%unit, reason, "a result is taken back");
            }
            Event::WorkerQuarantined { worker, reason } => {
                tracing::error!(worker, reason, "a worker is put in quarantine");
                let text = format!("worker {worker} is in quarantine: {reason}");
                self.tell(Kind::Quarantined, None, Some(worker), text);
            }
            Event::WorkerReleased { worker } => tracing::info!(worker, "a worker is let out of quarantine"),
            Event::JobSubmitted { .. } | Event::UnitDone { .. } | Event::Recount { .. } => {}
        }
    }

    /// Writes and applies events of its own.
    fn record(&mut self, events: Vec<Event>) -> Result<(), Unavailable> {
        let mut batch = Batch::default();
        batch.add(events, now_ms());
        if self.commit(&mut batch) { Ok(()) } else { Err(Unavailable) }
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Complete(completions, reply) => {
                let mut batch = Batch::default();
                self.complete(completions, reply, &mut batch);
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
            Request::Fail { unit, attempt, worker, reason, reply, .. } => {
                tracing::warn!(worker, %unit, reason, "a worker could not count a unit");
                let events = self.campaign.fail(unit, attempt, &worker, &reason);
                let _ = reply.send(self.record(events.into_iter().collect()));
            }
            Request::Submit { planned, priority, submitter, reply } => {
                let _ = reply.send(self.submit(&planned, priority, &submitter));
            }
            Request::SetState { job, state, reply } => {
                let _ = reply.send(self.set_state(&job, state));
            }
            Request::Drain(worker, reply) => {
                let _ = reply.send(self.campaign.drain(&worker));
            }
            Request::Accuse { worker, reason } => {
                let events = self.campaign.quarantine(&worker, &reason);
                // If it cannot be written, what the worker says is checked all the same.
                let _ = self.record(events);
            }
            Request::Release(worker, reply) => {
                let known = self.campaign.quarantined().contains_key(&worker);
                let released =
                    if known { self.record(vec![Event::WorkerReleased { worker }]) } else { Ok(()) };
                let _ = reply.send(released.map(|()| known));
            }
            Request::Status(job, reply) => {
                let _ = reply.send(self.status(&job));
            }
            Request::Workers(reply) => {
                let _ = reply.send(self.workers());
            }
            Request::Ruling(ruling) => self.rule(ruling),
            Request::Tick => self.tick(),
            // Seen before.
            Request::Stop => {}
        }
    }

    fn sync(&mut self, request: &SyncRequest, about: About) -> Synced {
        if !self.about.contains_key(&request.worker) {
            tracing::info!(
                worker = request.worker,
                address = about.address,
                build = about.build,
                "a worker is here"
            );
            let owner =
                about.address.rsplit_once(':').map_or(&about.address[..], |(host, _)| host).to_owned();
            let seen = WorkerSeen { worker: request.worker.clone(), owner, at_ms: now_ms() };
            self.seen.push(Entry::WorkerSeen(seen));
        }
        self.about.insert(request.worker.clone(), about);
        let response = self.campaign.sync(request, self.clock.now_ms());
        let mut hashes: Vec<JobHash> = response.desired.iter().map(|lease| lease.job).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let jobs = hashes.iter().filter_map(|hash| Some(self.jobs.get(hash)?.job.clone())).collect();
        let running_jobs =
            self.campaign.jobs().filter(|job| self.campaign.state(job) == Some(JobState::Running)).count();
        Synced {
            response,
            jobs,
            running_jobs: u32::try_from(running_jobs).unwrap_or(u32::MAX),
            quarantined: self.campaign.quarantined().get(&request.worker).cloned(),
        }
    }

    fn submit(
        &mut self,
        planned: &Planned,
        priority: i32,
        submitter: &str,
    ) -> Result<Submitted, Unavailable> {
        let Planned { job, units } = planned;
        if let Some(progress) = self.campaign.progress(&job.hash()) {
            let mut state = progress.state;
            if state == JobState::Cancelled {
                // Whoever submits it again wants it.
                state = JobState::Running;
                self.record(vec![Event::JobState { job: job.hash(), state }])?;
            }
            return Ok(Submitted { known: true, state, priority: progress.priority });
        }
        let at_ms = now_ms();
        let (entry, event) = books::submission(job, *units, priority, submitter, at_ms);
        self.append(&[entry]).map_err(|_| Unavailable)?;
        self.campaign.apply(&event);
        tracing::info!(job = %job.hash(), units, priority, submitter, text = %job, "a job is submitted");
        let info = JobInfo {
            job: job.clone(),
            submitter: submitter.to_owned(),
            state_ms: at_ms,
            poison: BTreeMap::new(),
        };
        self.jobs.insert(job.hash(), info);
        Ok(Submitted { known: false, state: JobState::Running, priority })
    }

    /// The job whose name begins with some digits.
    fn find(&self, digits: &str) -> Result<JobHash, StateError> {
        let found: Vec<JobHash> =
            self.jobs.keys().copied().filter(|job| job.to_string().starts_with(digits)).collect();
        match found[..] {
            [job] => Ok(job),
            [] => Err(StateError::NoSuchJob(digits.to_owned())),
            _ => Err(StateError::Ambiguous(digits.to_owned(), found.len())),
        }
    }

    fn set_state(&mut self, digits: &str, state: JobState) -> Result<(JobHash, JobState), StateError> {
        let job = self.find(digits)?;
        let before = self.campaign.state(&job).unwrap_or(JobState::Cancelled);
        let over = matches!(before, JobState::Finished)
            || (before == JobState::Cancelled && state == JobState::Paused)
            || state == JobState::Finished;
        if over && before != state {
            return Err(StateError::over(job, before, state));
        }
        let mut events = Vec::new();
        if before != state {
            events.push(Event::JobState { job, state });
        }
        if state == JobState::Running {
            let aside = self.campaign.poisoned(&job);
            events.extend(aside.into_iter().map(|unit| Event::UnitRevived { unit: UnitId { job, unit } }));
        }
        self.record(events)?;
        Ok((job, before))
    }

    fn rule(&mut self, ruling: Ruling) {
        let Ruling { unit, truth, source, elapsed_s } = ruling;
        self.in_court = None;
        match truth {
            Ok(truth) => {
                let events = self.campaign.referee(unit, &truth, &source, elapsed_s);
                // If it cannot be written, the unit is in dispute still, and goes to the referee again.
                let _ = self.record(events);
            }
            Err(reason) => {
                tracing::error!(%unit, reason, "the referee cannot decide");
                self.undecided.insert(unit, reason);
            }
        }
    }

    /// Gives the referee a unit of which two results differ, if it has none.
    fn go_to_court(&mut self) {
        if self.in_court.is_some() {
            return;
        }
        let dispute = self.campaign.disputes().find_map(|unit| {
            let info = self.jobs.get(&unit.job).filter(|_| !self.undecided.contains_key(&unit))?;
            Some(Dispute { unit, job: info.job.clone() })
        });
        let Some(dispute) = dispute else { return };
        let unit = dispute.unit;
        match self.referee.send(dispute) {
            Ok(()) => self.in_court = Some(unit),
            Err(_) => {
                let reason = "the referee has ended; start the coordinator again".to_owned();
                self.undecided.insert(unit, reason);
            }
        }
    }

    fn tick(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        // If it cannot be written, something else will say so.
        let _ = self.append(&seen);
        self.expire_and_finish();
        self.go_to_court();
        let now_ms = self.clock.now_ms();
        let jobs: Vec<JobHash> = self.campaign.jobs().collect();
        for job in jobs {
            if let Some(progress) = self.campaign.progress(&job)
                && progress.state == JobState::Running
            {
                self.paces.entry(job).or_default().observe(now_ms, progress.done);
            }
        }
        self.metrics.observe(&self.campaign, self.trouble.is_some(), now_ms, self.settings.lease_ms);
    }

    fn expire_and_finish(&mut self) {
        let events = self.campaign.tick(self.clock.now_ms());
        for event in events {
            let finished = match event {
                Event::JobState { job, state: JobState::Finished } => Some(job),
                _ => None,
            };
            if finished.is_some_and(|job| self.doubts.contains_key(&job)) {
                continue;
            }
            let entries: Vec<Entry> = books::entry(&event, now_ms()).into_iter().collect();
            match (self.append(&entries), finished) {
                (Ok(()), _) => {
                    self.campaign.apply(&event);
                    self.note(&event);
                }
                (Err(Rejected::Refused), Some(job)) => {
                    // Some result is wrong: whatever nobody confirmed is counted again.
                    let trouble = self.trouble.take().unwrap_or_default();
                    self.doubts.insert(job, trouble);
                    self.campaign.recount_all(job);
                }
                // It comes again.
                (Err(_), _) => {}
            }
        }
    }

    /// Units of a job that were done a second, in the last minutes.
    pub(super) fn units_per_s(&self, job: &JobHash, done: u64) -> f64 {
        self.paces.get(job).map_or(0.0, |pace| pace.units_per_s(self.clock.now_ms(), done))
    }
}

/// A state in words.
pub(super) const fn name(state: JobState) -> &'static str {
    match state {
        JobState::Running => "running",
        JobState::Paused => "paused",
        JobState::Cancelled => "cancelled",
        JobState::Finished => "finished",
    }
}
