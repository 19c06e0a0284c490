//! Proofs: first and most beautiful solutions that workers search for together.
//!
//! Each running proof has a thread. It asks the queries of [`crate::solver::first::first_by`], or
//! splits the long searches of [`crate::solver::beautiful::most_beautiful_by`] into subtree tasks.
//! Its remote solvers pass them to workers, which take tasks from the [`TaskQueue`] through the
//! protocol. Every answer is validated before it is accepted, so a proof is as good as one found by
//! this machine alone and needs no second opinion. Proved results are on disk a few seconds later,
//! and a restarted coordinator continues from there. It also checks the proofs that were finished
//! before, in the background; until that is done they are not reported as finished, and their
//! certificates are not handed out.
//!
//! | file | content |
//! |---|---|
//! | `search.rs` | the thread of a proof |
//! | `task_queue.rs` | the queue of tasks between solvers and workers |
//! | `remote_solver.rs` | remote solvers, and the validation of answers |
//! | `proof_store.rs` | the files of a proof |

mod proof_store;
mod remote_solver;
mod search;
mod task_queue;

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

pub(super) use self::proof_store::Goal;
use self::proof_store::{ProofRecord, ProofState, ProofStore};
use self::remote_solver::{AnswerObserver, AnswerVerdict, CheckPermits};
use self::task_queue::Answered;
pub(super) use self::task_queue::TaskQueue;
use super::books;
use super::commands::{StateError, Submitted};
use super::event_log::{EventLog, OperatorEvent};
use super::notifier::{Kind, Notification, Notifier};
use super::now_ms;
use crate::cluster::campaign::JobState;
use crate::cluster::protocol::v1::{self, EventKind};
use crate::cluster::protocol::{BUILD, TaskOutcome};
use crate::decomposition::JobHash;
use crate::proof::{self, Beauty, Meter, ProvedStatement};
use crate::solver::beautiful::Place;

/// A callback that gets the name of a worker whose answer was wrong, and the reason.
pub(super) type MisbehaviourHook = Box<dyn Fn(&str, &str) + Send + Sync>;

/// The observers of proofs.
struct Observers {
    misbehaviour_hook: MisbehaviourHook,
    notifier: Notifier,
    event_log: EventLog,
}

impl Goal {
    /// Returns the canonical text, from which the name of the job is derived.
    fn text(self) -> String {
        match self {
            Self::First { n } => format!("nqueens first {n}"),
            Self::Beautiful { n } => format!("nqueens beautiful {n}"),
        }
    }

    fn job(self) -> JobHash {
        let digest = Sha256::digest(self.text());
        let mut name = [0; 16];
        name.copy_from_slice(&digest[..16]);
        JobHash::from_bytes(name)
    }

    /// Returns whether the certificate proves this goal with this solution.
    fn is_proved(self, proved: &ProvedStatement, solution: Option<&[usize]>) -> bool {
        let (kind, beauty, n) = match self {
            Self::First { n } => (proof::Kind::First, None, n),
            Self::Beautiful { n } => (proof::Kind::Beautiful, Some(Beauty::default()), n),
        };
        (proved.kind, proved.beauty, proved.n, proved.solution.as_deref())
            == (kind, beauty, n, solution)
    }
}

impl From<ProofState> for JobState {
    fn from(stand: ProofState) -> Self {
        match stand {
            ProofState::Running => Self::Running,
            ProofState::Paused => Self::Paused,
            ProofState::Cancelled => Self::Cancelled,
            ProofState::Finished => Self::Finished,
        }
    }
}

/// The work of one worker for a proof.
#[derive(Clone, Copy, Debug, Default)]
struct Prover {
    answered: u64,
    given_up: u64,
    nodes: u64,
    programmes: u64,
    elapsed_s: f64,
}

/// The mutable state of a proof.
#[derive(Debug)]
struct Standing {
    record: ProofRecord,
    /// The length in bytes and the SHA-256 digest of the certificate, once this process has checked
    /// it.
    certificate: Option<(u64, Vec<u8>)>,
    /// The stage of the search for a most beautiful solution, and the best solution so far.
    stage: Option<(Place, Vec<usize>)>,
    notes: Vec<String>,
    provers: BTreeMap<String, Prover>,
    checking: Duration,
}

/// A proof and its thread.
struct Proof {
    what: Goal,
    folder: ProofStore,
    standing: Mutex<Standing>,
    /// Tells the thread to end.
    stop: AtomicBool,
    /// The row that the current queries decide.
    row: AtomicU32,
    refuted: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while the record is written, which may take a while.
    writing: Mutex<()>,
    /// Held while the certificate is rechecked.
    rechecking: Mutex<()>,
    observers: Arc<Observers>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds one of these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AnswerObserver for Proof {
    fn validated(&self, answered: &Answered, verdict: &AnswerVerdict, took: Duration) {
        let Answered { worker, answer, .. } = answered;
        {
            let mut standing = lock(&self.standing);
            standing.checking += took;
            let unknown = matches!(verdict, AnswerVerdict::Unknown(_));
            let given_up = unknown || answer.outcome == TaskOutcome::GivenUp;
            if unknown || *verdict == AnswerVerdict::Good {
                let prover = standing.provers.entry(worker.clone()).or_default();
                prover.answered += 1;
                prover.given_up += u64::from(given_up);
                prover.nodes = prover.nodes.saturating_add(answer.nodes);
                prover.programmes = prover.programmes.saturating_add(answer.programmes);
                prover.elapsed_s += answer.elapsed_s;
            }
        }
        if let AnswerVerdict::Unknown(why) = verdict {
            tracing::warn!(worker, proof = self.what.text(), why, "an answer cannot be read");
            self.note(format!(
                "answers of {worker} cannot be read: {why}; it runs another version than this coordinator, whose is {BUILD}"
            ));
        }
        if let AnswerVerdict::Wrong(why) = verdict {
            let text = self.what.text();
            tracing::error!(worker, proof = text, why, "an answer is wrong");
            self.note(format!("{worker} is not believed any more: {why}"));
            (self.observers.misbehaviour_hook)(
                worker,
                &format!("its answer for {text} is wrong: {why}"),
            );
        }
    }
}

impl Proof {
    fn new(
        what: Goal,
        folder: ProofStore,
        record: ProofRecord,
        observers: &Arc<Observers>,
    ) -> Self {
        let standing = Standing {
            record,
            certificate: None,
            stage: None,
            notes: Vec::new(),
            provers: BTreeMap::new(),
            checking: Duration::ZERO,
        };
        Self {
            what,
            folder,
            standing: Mutex::new(standing),
            stop: AtomicBool::new(false),
            row: AtomicU32::new(0),
            refuted: AtomicU64::new(0),
            thread: Mutex::new(None),
            writing: Mutex::new(()),
            rechecking: Mutex::new(()),
            observers: Arc::clone(observers),
        }
    }

    fn note(&self, note: String) {
        /// The maximum number of notes.
        const MOST: usize = 20;
        let mut standing = lock(&self.standing);
        if standing.notes.len() < MOST && !standing.notes.contains(&note) {
            standing.notes.push(note);
        }
    }

    fn stand(&self) -> ProofState {
        lock(&self.standing).record.stand
    }

    /// Changes the state, on disk first.
    fn come_to(&self, stand: ProofState, solution: Option<Vec<usize>>) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        let before = lock(&self.standing).record.clone();
        let record = ProofRecord { stand, stand_ms: now_ms(), solution, ..before };
        self.folder.keep(&record)?;
        lock(&self.standing).record = record;
        Ok(())
    }

    /// Stops the thread and waits until it has ended.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Starts the thread, after stopping an earlier one.
    fn begin(self: &Arc<Self>, pool: &Arc<TaskQueue>, room: &Arc<CheckPermits>) -> io::Result<()> {
        self.end();
        self.stop.store(false, Ordering::Relaxed);
        let (proof, pool, room) = (Arc::clone(self), Arc::clone(pool), Arc::clone(room));
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| proof.search(&pool, &room)));
            let trouble = match outcome {
                Ok(Ok(())) => return,
                // A search that was stopped starts again when the proof is resumed.
                Ok(Err(error)) if proof.stop.load(Ordering::Relaxed) => {
                    tracing::debug!(proof = proof.what.text(), "{error}");
                    return;
                }
                Ok(Err(error)) => {
                    format!("{} cannot be used: {error}", proof.folder.path().display())
                }
                Err(_) => "its search ended in an error of its own; please report it".to_owned(),
            };
            tracing::error!(proof = proof.what.text(), "{trouble}");
            proof.note(trouble);
            // The proof is paused until somebody resumes it.
            if proof.come_to(ProofState::Paused, None).is_err() {
                lock(&proof.standing).record.stand = ProofState::Paused;
            }
        };
        *lock(&self.thread) = Some(std::thread::Builder::new().name("proof".into()).spawn(work)?);
        Ok(())
    }

    /// Finishes the proof with a certificate that was checked as a whole.
    fn finish(&self, certificate: &[u8], solution: Option<Vec<usize>>) -> io::Result<()> {
        self.folder.keep_certificate(certificate)?;
        self.know(certificate);
        self.come_to(ProofState::Finished, solution)?;
        tracing::info!(proof = self.what.text(), bytes = certificate.len(), "proved");
        let said = format!("is finished: {} is proved", self.what.text());
        let text = format!("job {} {said}", self.what.job());
        let proved = OperatorEvent::info(EventKind::Finished, text);
        self.observers.event_log.note(proved.of_job(self.what.job()));
        self.tell(Kind::Finished, said);
        Ok(())
    }

    /// Remembers the digest of a checked certificate.
    fn know(&self, certificate: &[u8]) {
        let digest = Sha256::digest(certificate).to_vec();
        lock(&self.standing).certificate = Some((certificate.len() as u64, digest));
    }

    /// Checks that a certificate proves this solution.
    fn check(&self, certificate: &[u8], solution: Option<&[usize]>) -> Result<(), String> {
        // This machine wrote it, so there is no limit on checking it; but a stop interrupts the
        // check.
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let mut meter = Meter::new(None).stopped_by(&is_stopped);
        let proved =
            proof::check_within(certificate, &mut meter).map_err(|error| error.to_string())?;
        if self.what.is_proved(&proved, solution) {
            Ok(())
        } else {
            Err("the certificate proves something else".to_owned())
        }
    }

    /// Returns whether an earlier process finished the proof and its certificate has not been
    /// checked since.
    fn is_unchecked(&self) -> bool {
        let standing = lock(&self.standing);
        standing.record.stand == ProofState::Finished && standing.certificate.is_none()
    }

    /// Rechecks a proof that an earlier process finished. If the check fails, pauses the proof, so
    /// that it is searched for again when it is resumed.
    fn check_again(&self) {
        let _once = lock(&self.rechecking);
        if !self.is_unchecked() {
            return;
        }
        let solution = lock(&self.standing).record.solution.clone();
        let read = self.folder.certificate().map_err(|error| error.to_string());
        let checked = read.and_then(|certificate| {
            self.check(&certificate, solution.as_deref())?;
            self.know(&certificate);
            Ok(())
        });
        let Err(why) = checked else { return };
        if self.stop.load(Ordering::Relaxed) {
            // The next start checks it again.
            return;
        }
        let text = self.what.text();
        tracing::error!(proof = text, "a certificate is not what it was: {why}");
        self.note(format!(
            "its certificate is not what it was: {why}; when it is resumed, it is proved again"
        ));
        if let Err(error) = self.come_to(ProofState::Paused, None) {
            lock(&self.standing).record.stand = ProofState::Paused;
            self.note(format!("{} cannot be written: {error}", self.folder.path().display()));
        }
        self.tell(
            Kind::Trouble,
            format!("is paused: the certificate of {text} is not what it was: {why}"),
        );
    }

    /// Returns the state as reported to callers: finished only once the certificate is checked.
    fn state(&self) -> JobState {
        if self.is_unchecked() { JobState::Running } else { self.stand().into() }
    }

    fn tell(&self, kind: Kind, what: String) {
        let job = self.what.job().to_string();
        let text = format!("job {job} {what}");
        self.observers.notifier.tell(Notification { kind, job: Some(job), worker: None, text });
    }

    fn status(&self, pool: &TaskQueue) -> v1::ProofStatus {
        use v1::proof_status::What as Shown;
        let job = self.what.job();
        let (open, lent) = pool.open(job);
        let unchecked = self.is_unchecked();
        let state = self.state();
        let standing = lock(&self.standing);
        let Standing { record, certificate, stage, notes, provers, checking } = &*standing;
        let from_one =
            |columns: &[usize]| columns.iter().map(|&column| column as u32 + 1).collect();
        let proved = record.solution.as_deref().filter(|_| !unchecked);
        let prover = |(worker, prover): (&String, &Prover)| v1::ProverStatus {
            worker: worker.clone(),
            answered: prover.answered,
            given_up: prover.given_up,
            nodes: prover.nodes,
            programmes: prover.programmes,
            elapsed_s: prover.elapsed_s,
        };
        let (certificate_bytes, certificate_sha256) = certificate.clone().unwrap_or_default();
        let what = match self.what {
            Goal::First { n } => Shown::First(v1::First { n: n as u32 }),
            Goal::Beautiful { n } => Shown::Beautiful(v1::Beautiful { n: n as u32 }),
        };
        let level = |&(Place { cost, least, most, squares, queens }, _): &(Place, _)| {
            v1::CostLevel { cost, least, most, squares: squares as u32, queens }
        };
        let searched = stage.as_ref().filter(|_| record.stand != ProofState::Finished);
        let mut notes = notes.clone();
        if unchecked {
            notes.push("it was finished; its certificate is being checked again".to_owned());
        }
        v1::ProofStatus {
            job: job.to_bytes().into(),
            what: Some(what),
            level: searched.map(level),
            best: searched.map(|(_, best)| from_one(best)).unwrap_or_default(),
            state: v1::JobState::from(state).into(),
            submitter: record.submitter.clone(),
            submitted_ms: record.submitted_ms,
            state_ms: record.stand_ms,
            row: self.row.load(Ordering::Relaxed),
            open: open as u32,
            lent: lent as u32,
            refuted: self.refuted.load(Ordering::Relaxed),
            columns: proved.map(from_one).unwrap_or_default(),
            certificate_bytes,
            certificate_sha256,
            provers: provers.iter().map(prover).collect(),
            checking_s: checking.as_secs_f64(),
            notes,
        }
    }
}

impl Drop for Proofs {
    fn drop(&mut self) {
        self.stop();
    }
}

/// All proofs of a coordinator.
pub(super) struct Proofs {
    folder: PathBuf,
    pub(super) pool: Arc<TaskQueue>,
    room: Arc<CheckPermits>,
    observers: Arc<Observers>,
    proofs: Mutex<BTreeMap<JobHash, Arc<Proof>>>,
    /// Held while a proof is submitted or changes its state, which may take a while.
    changing: Mutex<()>,
}

impl Proofs {
    /// Opens the proofs in the directory `proofs` of `data`, and resumes those that were running.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read or a thread cannot be spawned.
    pub(super) fn open(
        data: &Path,
        misbehaviour_hook: MisbehaviourHook,
        (notifier, event_log): (Notifier, EventLog),
    ) -> io::Result<Self> {
        let folder = data.join("proofs");
        let observers = Arc::new(Observers { misbehaviour_hook, notifier, event_log });
        let mut proofs = BTreeMap::new();
        for folder in ProofStore::all(&folder)? {
            let named = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("{}: {error}", folder.path().join("job.json").display()),
                )
            };
            let record = folder.record().map_err(named)?;
            let what = record.what;
            proofs
                .insert(what.job(), Arc::new(Proof::new(what, folder.clone(), record, &observers)));
        }
        let pool = Arc::new(TaskQueue::new());
        let room = Arc::new(CheckPermits::new());
        let opened = Self {
            folder,
            pool,
            room,
            observers,
            proofs: Mutex::new(proofs),
            changing: Mutex::new(()),
        };
        for proof in
            lock(&opened.proofs).values().filter(|proof| proof.stand() == ProofState::Running)
        {
            proof.begin(&opened.pool, &opened.room)?;
        }
        opened.check_again()?;
        Ok(opened)
    }

    /// Starts a thread that rechecks the proofs finished by earlier processes, and does not wait
    /// for it.
    fn check_again(&self) -> io::Result<()> {
        let proofs = lock(&self.proofs);
        let finished: Vec<Arc<Proof>> =
            proofs.values().filter(|proof| proof.is_unchecked()).cloned().collect();
        if finished.is_empty() {
            return Ok(());
        }
        let check = move || {
            let wanted = |proof: &&Arc<Proof>| !proof.stop.load(Ordering::Relaxed);
            finished.iter().take_while(wanted).for_each(|proof| proof.check_again());
        };
        std::thread::Builder::new().name("proof-check".into()).spawn(check).map(drop)
    }

    /// Stops all threads. Running proofs continue when the coordinator starts again.
    pub(super) fn stop(&self) {
        let proofs: Vec<Arc<Proof>> = lock(&self.proofs).values().cloned().collect();
        proofs.iter().for_each(|proof| proof.stop.store(true, Ordering::Relaxed));
        proofs.iter().for_each(|proof| proof.end());
    }

    /// Starts a proof, or returns the state of a known one. A cancelled proof starts again.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written or a thread cannot be spawned.
    pub(super) fn submit(&self, what: Goal, submitter: &str) -> io::Result<(JobHash, Submitted)> {
        let job = what.job();
        let _one_at_a_time = lock(&self.changing);
        let known = lock(&self.proofs).get(&job).cloned();
        if let Some(proof) = known {
            if proof.stand() == ProofState::Cancelled {
                proof.come_to(ProofState::Running, None)?;
                proof.begin(&self.pool, &self.room)?;
            }
            return Ok((job, Submitted { known: true, state: proof.state(), priority: 0 }));
        }
        let folder = ProofStore::new(self.folder.join(job.to_string()));
        let at_ms = now_ms();
        let (stand, submitter) = (ProofState::Running, submitter.to_owned());
        let record = ProofRecord {
            what,
            stand,
            submitter,
            submitted_ms: at_ms,
            stand_ms: at_ms,
            solution: None,
        };
        folder.keep(&record)?;
        tracing::info!(%job, submitter = record.submitter, text = what.text(), "a proof is submitted");
        self.observers.event_log.note(books::submitted(job, &what.text(), &record.submitter));
        let proof = Arc::new(Proof::new(what, folder, record, &self.observers));
        proof.begin(&self.pool, &self.room)?;
        lock(&self.proofs).insert(job, proof);
        Ok((job, Submitted { known: false, state: JobState::Running, priority: 0 }))
    }

    fn beginning_with(&self, digits: &str) -> Vec<(JobHash, Arc<Proof>)> {
        let proofs = lock(&self.proofs);
        let named = proofs.iter().filter(|(job, _)| job.to_string().starts_with(digits));
        named.map(|(&job, proof)| (job, Arc::clone(proof))).collect()
    }

    /// Returns the statuses of the proofs whose names begin with `digits`, in order of submission.
    pub(super) fn status(&self, digits: &str) -> Vec<v1::ProofStatus> {
        let named = self.beginning_with(digits);
        let mut all: Vec<v1::ProofStatus> =
            named.iter().map(|(_, proof)| proof.status(&self.pool)).collect();
        all.sort_by(|a, b| (a.submitted_ms, &a.job).cmp(&(b.submitted_ms, &b.job)));
        all
    }

    /// Returns the number of running proofs.
    pub(super) fn running(&self) -> u32 {
        let running = lock(&self.proofs)
            .values()
            .filter(|proof| proof.stand() == ProofState::Running)
            .count();
        u32::try_from(running).unwrap_or(u32::MAX)
    }

    fn find(&self, digits: &str) -> Result<(JobHash, Arc<Proof>), StateError> {
        let mut found = self.beginning_with(digits);
        match (found.pop(), found.len()) {
            (Some(found), 0) => Ok(found),
            (Some(_), others) => Err(StateError::Ambiguous(digits.to_owned(), others + 1)),
            (None, _) => Err(StateError::NoSuchJob(digits.to_owned())),
        }
    }

    /// Pauses, resumes or cancels a proof, and waits for its thread. Returns its former state.
    ///
    /// # Errors
    /// Returns an error if there is no such proof, its state cannot change that way, or its files
    /// cannot be written.
    pub(super) fn set_state(
        &self,
        digits: &str,
        state: JobState,
        by: &str,
    ) -> Result<(JobHash, JobState), StateError> {
        let (job, proof) = self.find(digits)?;
        let _one_at_a_time = lock(&self.changing);
        let before = proof.stand();
        let stand = match (before, state) {
            (_, JobState::Running) if before != ProofState::Finished => ProofState::Running,
            (ProofState::Running | ProofState::Paused, JobState::Paused) => ProofState::Paused,
            (_, JobState::Cancelled) if before != ProofState::Finished => ProofState::Cancelled,
            (ProofState::Finished, JobState::Finished) => ProofState::Finished,
            _ => return Err(StateError::over(job, before.into(), state)),
        };
        let unwritten = |error: io::Error| {
            tracing::error!(%job, "{error}");
            StateError::Unwritten(error.to_string())
        };
        if stand != before {
            if before == ProofState::Running {
                proof.end();
                if proof.stand() == ProofState::Finished {
                    // The search finished first.
                    return Err(StateError::over(job, JobState::Finished, state));
                }
            }
            proof.come_to(stand, None).map_err(unwritten)?;
            tracing::info!(%job, state = super::actor::name(state), "a proof changes its state");
            self.observers.event_log.note(books::changed(job, state, by));
            if stand == ProofState::Running {
                proof.begin(&self.pool, &self.room).map_err(unwritten)?;
            }
        }
        Ok((job, before.into()))
    }

    /// Returns the certificate of a finished proof.
    ///
    /// # Errors
    /// Returns an error if there is no such proof, it is not finished, or its certificate cannot be
    /// read or differs from the one that was checked.
    pub(super) fn certificate(&self, digits: &str) -> Result<Vec<u8>, StateError> {
        let (job, proof) = self.find(digits)?;
        proof.check_again();
        let stand = proof.stand();
        let checked =
            lock(&proof.standing).certificate.clone().filter(|_| stand == ProofState::Finished);
        let Some((_, digest)) = checked else {
            return Err(StateError::Unproved(job, super::actor::name(stand.into())));
        };
        let certificate =
            proof.folder.certificate().map_err(|e| StateError::Unwritten(e.to_string()))?;
        if Sha256::digest(&certificate)[..] == digest[..] {
            Ok(certificate)
        } else {
            Err(StateError::Unwritten("the certificate is not the one that was checked".to_owned()))
        }
    }
}
