//! The keeper: the one thread that changes the campaign and writes the ledger.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::books::{self, JobInfo, Told};
use super::chronicle::{Chronicle, Happening};
use super::clock::SteadyClock;
use super::history::{History, Point};
use super::metrics::Metrics;
use super::news::{Crier, Kind, News};
use super::now_ms;
use super::pace::Pace;
use super::plan::Planned;
use super::referee::{self, Dispute, Ruling};
use super::requests::{About, Handle, Reply, Request, StateError, Submitted, Synced, Unavailable};
use crate::campaign::{
    Campaign, Completion, Event, JobState, Settings, Source, SyncRequest, UnitId, Verdict,
};
use crate::ledger::{CampaignFile, Entry, LedgerError, WorkerSeen};
use crate::preplacement::JobHash;
use crate::wire::v1::{Device, EventKind, EventLevel, TimeLeft};

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
    (crier, chronicle): (Crier, Chronicle),
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
    let mut keeper = Keeper::open(path, settings, (metrics, crier, chronicle), referee)?;
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
    pub(super) histories: HashMap<JobHash, History>,
    /// When the ledger was read, in ms since 1970.
    pub(super) opened_ms: u64,
    /// Workers that were heard of, and are silent now.
    silent: HashSet<String>,
    /// New workers, to be written with the next tick: for people, and no call waits for it.
    seen: Vec<Entry>,
    /// The unit that the referee has. It gets one at a time: a ruling may settle others.
    in_court: Option<UnitId>,
    /// Units that the referee could not decide, and why.
    pub(super) undecided: BTreeMap<UnitId, String>,
    referee: std_mpsc::Sender<Dispute>,
    metrics: Arc<Metrics>,
    crier: Crier,
    pub(super) chronicle: Chronicle,
    /// Who wants what is being done.
    acting: Option<String>,
    /// What is wrong, for people.
    pub(super) trouble: Option<String>,
    /// Jobs whose every unit is done, and which cannot be finished all the same.
    pub(super) doubts: BTreeMap<JobHash, String>,
}

impl Keeper {
    fn open(
        path: PathBuf,
        settings: Settings,
        (metrics, crier, chronicle): (Arc<Metrics>, Crier, Chronicle),
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
            histories: HashMap::new(),
            opened_ms: 0,
            silent: HashSet::new(),
            seen: Vec::new(),
            in_court: None,
            undecided: BTreeMap::new(),
            referee,
            metrics,
            crier,
            chronicle,
            acting: None,
            trouble: None,
            doubts: BTreeMap::new(),
        };
        for (at_ms, happening) in keeper.reopen()? {
            keeper.chronicle.note_at(at_ms, happening);
        }
        keeper.chronicle.note(Happening::info(EventKind::Started, "the coordinator has started"));
        Ok(keeper)
    }

    /// Reads everything from the ledger; what has happened, and when.
    fn reopen(&mut self) -> Result<Vec<(u64, Happening)>, LedgerError> {
        // Its lock must go first.
        self.file = None;
        let mut file = CampaignFile::open(&self.path)?;
        // No lease of before has a number as high: those of one start are fewer than 2^20 a millisecond.
        self.opened_ms = now_ms();
        self.campaign = Campaign::new(self.settings, self.opened_ms, fastrand::u64(..));
        let Told { jobs, histories, happenings } = books::load(&mut file, &mut self.campaign)?;
        (self.jobs, self.histories) = (jobs, histories);
        self.in_court = None;
        self.undecided.clear();
        self.doubts.clear();
        self.file = Some(file);
        Ok(happenings)
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
                let Source { worker, .. } = &completion.source;
                let text =
                    format!("{worker} has another result for {}; the referee decides", completion.unit);
                let conflict = Happening::warning(EventKind::Conflict, text);
                self.chronicle.note(conflict.of_job(completion.unit.job).of_worker(worker));
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
                self.note_voided(events);
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
                    let well = Happening::info(EventKind::Trouble, "the ledger can be written again");
                    self.chronicle.note(well);
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
            self.chronicle.note(Happening::error(EventKind::Trouble, trouble.clone()));
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
                let who = self.acting.take().unwrap_or_default();
                self.chronicle.note(books::changed(*job, *state, &who));
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
                self.chronicle.note(books::poisoned(*unit, reason));
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
                self.chronicle.note(books::quarantined(worker, reason));
                let text = format!("worker {worker} is in quarantine: {reason}");
                self.tell(Kind::Quarantined, None, Some(worker), text);
            }
            Event::WorkerReleased { worker } => {
                tracing::info!(worker, "a worker is let out of quarantine");
                let who = self.acting.take().unwrap_or_default();
                self.chronicle.note(books::released(worker, &who));
            }
            Event::JobSubmitted { .. } | Event::UnitDone { .. } | Event::Recount { .. } => {}
        }
    }

    /// Notes how many results of each job were taken back: one line, however many there are.
    fn note_voided(&self, events: &[Event]) {
        let mut voided: BTreeMap<JobHash, u64> = BTreeMap::new();
        for event in events {
            if let Event::UnitVoided { unit, .. } = event {
                *voided.entry(unit.job).or_default() += 1;
            }
        }
        for (job, results) in voided {
            let text = format!("results taken back, and to be counted again: {results} of job {job}");
            self.chronicle.note(Happening::warning(EventKind::Voided, text).of_job(job));
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
                let text = format!("worker {worker} could not count {unit}: {reason}");
                let failed = Happening::warning(EventKind::Failed, text);
                self.chronicle.note(failed.of_job(unit.job).of_worker(&worker));
                let events = self.campaign.fail(unit, attempt, &worker, &reason);
                let _ = reply.send(self.record(events.into_iter().collect()));
            }
            Request::Submit { planned, priority, submitter, reply } => {
                let _ = reply.send(self.submit(&planned, priority, &submitter));
            }
            Request::SetState { job, state, by, reply } => {
                let _ = reply.send(self.by(by, |keeper| keeper.set_state(&job, state)));
            }
            Request::Drain { worker, by, reply } => {
                let known = self.campaign.drain(&worker);
                if known {
                    self.chronicle.note(books::draining(&worker, &by));
                }
                let _ = reply.send(known);
            }
            Request::Accuse { worker, reason } => {
                let events = self.campaign.quarantine(&worker, &reason);
                // If it cannot be written, what the worker says is checked all the same.
                let _ = self.record(events);
            }
            Request::Release { worker, by, reply } => {
                let known = self.campaign.quarantined().contains_key(&worker);
                let release = |keeper: &mut Self| keeper.record(vec![Event::WorkerReleased { worker }]);
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
            Request::Workers(reply) => {
                let _ = reply.send(self.workers());
            }
            Request::Ruling(ruling) => self.rule(ruling),
            Request::Tick => self.tick(),
            // Seen before.
            Request::Stop => {}
        }
    }

    /// Does something that somebody wants, who is named in the running log.
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
            draining: self.campaign.is_draining(&request.worker),
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
                let again = vec![Event::JobState { job: job.hash(), state }];
                self.by(submitter.to_owned(), |keeper| keeper.record(again))?;
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
        self.chronicle.note(books::submitted(job.hash(), &job.to_string(), submitter));
        self.histories.insert(job.hash(), History::of_the_past(at_ms, Vec::new(), Vec::new()));
        Ok(Submitted { known: false, state: JobState::Running, priority })
    }

    /// The job whose name begins with some digits.
    pub(super) fn find(&self, digits: &str) -> Result<JobHash, StateError> {
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
            let Some(progress) = self.campaign.progress(&job) else { continue };
            if progress.state == JobState::Running {
                self.paces.entry(job).or_default().observe(now_ms, progress.done);
            }
            if matches!(progress.state, JobState::Running | JobState::Paused) {
                let point = Point { at_ms: super::now_ms(), done: progress.done, verified: progress.checked };
                self.histories.entry(job).or_default().observe(point);
            }
        }
        self.note_silence(now_ms);
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

    /// Notes a worker that is new or here again, and what is at fault there since its last sync.
    fn note_worker(&mut self, worker: &str, about: &About) {
        let before = self.about.get(worker);
        let silent = self.silent.remove(worker);
        if before.is_none() || silent {
            let again = if silent { " again" } else { "" };
            let text = format!("worker {worker} is here{again}, from {}", about.address);
            self.chronicle.note(Happening::info(EventKind::Joined, text).of_worker(worker));
        }
        let known = |device: &Device| {
            before.is_some_and(|before| {
                before.devices.iter().any(|old| old.id == device.id && old.fault == device.fault)
            })
        };
        for device in about.devices.iter().filter(|device| !device.fault.is_empty() && !known(device)) {
            let text = format!("{} of worker {worker} is at fault: {}", device.id, device.fault);
            self.chronicle.note(Happening::warning(EventKind::Failed, text).of_worker(worker));
        }
    }

    /// Notes who was not heard of for the time of a lease.
    fn note_silence(&mut self, now_ms: u64) {
        for (name, worker) in self.campaign.workers() {
            if worker.seen_ms + self.settings.lease_ms <= now_ms && !self.silent.contains(name) {
                self.silent.insert(name.clone());
                let (level, text) = if worker.draining {
                    (EventLevel::Info, format!("worker {name} is gone"))
                } else {
                    (EventLevel::Warning, format!("worker {name} is silent"))
                };
                let silent = Happening { level, ..Happening::info(EventKind::Silent, text) };
                self.chronicle.note(silent.of_worker(name));
            }
        }
    }

    /// How long so many more units will take.
    pub(super) fn left(&self, job: &JobHash, done: u64, units: u64) -> Option<TimeLeft> {
        self.paces.get(job)?.left(self.clock.now_ms(), done, units)
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
