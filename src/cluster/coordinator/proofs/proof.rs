//! A proof, its state and its thread.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::super::observers::Observers;
use super::super::{lock, now_ms};
use super::proof_store::{Goal, ProofRecord, ProofStore};
use super::remote_solver::{AnswerObserver, AnswerVerdict, CheckPermits};
use super::task_queue::{Answered, TaskQueue};
use crate::cluster::campaign::JobState;
use crate::cluster::protocol::{BUILD, TaskOutcome, v1};
use crate::decomposition::JobHash;
use crate::proof::{self, Beauty, Meter, ProvedStatement};
use crate::report::proof_title;
use crate::solver::beautiful::Position;

/// A callback that gets the name of a worker whose answer was wrong, and the reason.
pub(in super::super) type MisbehaviourHook = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl Goal {
    /// Returns the canonical text, from which the name of the job is derived.
    pub(in super::super) fn text(self) -> String {
        match self {
            Self::First { n } => format!("nqueens first {n}"),
            Self::Beautiful { n } => format!("nqueens beautiful {n}"),
        }
    }

    /// Returns the goal in words: "first solution of 62 queens".
    pub(in super::super) fn title(self) -> String {
        let (what, n) = match self {
            Self::First { n } => ("first", n),
            Self::Beautiful { n } => ("beautiful", n),
        };
        proof_title(what, u32::try_from(n).unwrap_or(u32::MAX))
    }

    pub(in super::super) fn job(self) -> JobHash {
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

/// The mutable state of a proof.
#[derive(Debug)]
pub(super) struct ProofProgress {
    pub(super) record: ProofRecord,
    /// The length in bytes and the SHA-256 digest of the certificate, once this process has checked
    /// it.
    pub(super) certificate: Option<(u64, Vec<u8>)>,
    /// The stage of the search for a most beautiful solution, and the best solution so far.
    pub(super) stage: Option<(Position, Vec<usize>)>,
    notes: Vec<String>,
    /// The work of each worker, by name.
    provers: BTreeMap<String, v1::ProverStatus>,
    checking: Duration,
}

/// A proof and its thread.
pub(super) struct Proof {
    pub(super) goal: Goal,
    pub(super) store: ProofStore,
    pub(super) progress: Mutex<ProofProgress>,
    /// Set to end the thread.
    pub(super) stop: AtomicBool,
    /// The row that the current queries decide.
    pub(super) row: AtomicU32,
    pub(super) refuted: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while the record is written, which may take a while.
    writing: Mutex<()>,
    /// Held while the certificate is rechecked.
    rechecking: Mutex<()>,
    misbehaviour_hook: MisbehaviourHook,
    pub(super) observers: Observers,
    /// Notifies of changes of its state.
    state_changes: watch::Sender<()>,
}

impl AnswerObserver for Proof {
    fn validated(&self, answered: &Answered, verdict: &AnswerVerdict, took: Duration) {
        let Answered { worker, answer, .. } = answered;
        {
            let mut progress = lock(&self.progress);
            progress.checking += took;
            let unknown = matches!(verdict, AnswerVerdict::Unknown(_));
            let given_up = unknown || answer.outcome == TaskOutcome::GivenUp;
            if unknown || *verdict == AnswerVerdict::Good {
                let prover = progress.provers.entry(worker.clone()).or_default();
                prover.worker.clone_from(worker);
                prover.answered += 1;
                prover.given_up += u64::from(given_up);
                prover.nodes = prover.nodes.saturating_add(answer.nodes);
                prover.programmes = prover.programmes.saturating_add(answer.programmes);
                prover.elapsed_s += answer.elapsed_s;
            }
        }
        if let AnswerVerdict::Unknown(why) = verdict {
            self.observers.answer_unreadable(worker, &self.goal.text(), why);
            self.note(format!(
                "answers of {worker} cannot be read: {why}; it runs another version than this \
                 coordinator ({BUILD})"
            ));
        }
        if let AnswerVerdict::Wrong(why) = verdict {
            let text = self.goal.text();
            self.observers.answer_wrong(worker, &text, why);
            self.note(format!("{worker} is in quarantine: {why}"));
            (self.misbehaviour_hook)(worker, &format!("its answer for {text} is wrong: {why}"));
        }
    }
}

impl Proof {
    pub(super) fn new(
        goal: Goal,
        store: ProofStore,
        record: ProofRecord,
        misbehaviour_hook: MisbehaviourHook,
        observers: Observers,
        state_changes: watch::Sender<()>,
    ) -> Self {
        let progress = ProofProgress {
            record,
            certificate: None,
            stage: None,
            notes: Vec::new(),
            provers: BTreeMap::new(),
            checking: Duration::ZERO,
        };
        Self {
            goal,
            store,
            progress: Mutex::new(progress),
            stop: AtomicBool::new(false),
            row: AtomicU32::new(0),
            refuted: AtomicU64::new(0),
            thread: Mutex::new(None),
            writing: Mutex::new(()),
            rechecking: Mutex::new(()),
            misbehaviour_hook,
            observers,
            state_changes,
        }
    }

    pub(super) fn note(&self, note: String) {
        /// The maximum number of notes.
        const MOST: usize = 20;
        let mut progress = lock(&self.progress);
        if progress.notes.len() < MOST && !progress.notes.contains(&note) {
            progress.notes.push(note);
        }
    }

    /// Returns the state according to the record on disk.
    pub(super) fn stored_state(&self) -> JobState {
        lock(&self.progress).record.state
    }

    /// Returns the priority of its tasks.
    pub(super) fn priority(&self) -> i32 {
        lock(&self.progress).record.priority
    }

    /// Changes the state, on disk first.
    pub(super) fn set_state(
        &self,
        state: JobState,
        solution: Option<Vec<usize>>,
    ) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        let before = lock(&self.progress).record.clone();
        let record = ProofRecord { state, state_ms: now_ms(), solution, ..before };
        self.store.write_record(&record)?;
        lock(&self.progress).record = record;
        self.state_changes.send_replace(());
        Ok(())
    }

    /// Pauses the proof although its record cannot be written.
    fn pause_in_memory(&self) {
        lock(&self.progress).record.state = JobState::Paused;
        self.state_changes.send_replace(());
    }

    /// Stops the thread and waits until it has ended.
    pub(super) fn stop_and_join(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Starts the thread, after stopping an earlier one.
    pub(super) fn start(
        self: &Arc<Self>,
        queue: &Arc<TaskQueue>,
        permits: &Arc<CheckPermits>,
    ) -> io::Result<()> {
        self.stop_and_join();
        self.stop.store(false, Ordering::Relaxed);
        let (proof, queue, permits) = (Arc::clone(self), Arc::clone(queue), Arc::clone(permits));
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| proof.search(&queue, &permits)));
            let trouble = match outcome {
                Ok(Ok(())) => return,
                // A search that was stopped starts again when the proof is resumed.
                Ok(Err(error)) if proof.stop.load(Ordering::Relaxed) => {
                    tracing::debug!(proof = proof.goal.text(), "{error}");
                    return;
                }
                Ok(Err(error)) => {
                    format!("{} cannot be used: {error}", proof.store.path().display())
                }
                Err(_) => "its search failed with an internal error; please report it".to_owned(),
            };
            proof.observers.proof_failed(&proof.goal.text(), &trouble);
            proof.note(trouble);
            // The proof is paused until somebody resumes it.
            if proof.set_state(JobState::Paused, None).is_err() {
                proof.pause_in_memory();
            }
        };
        *lock(&self.thread) = Some(std::thread::Builder::new().name("proof".into()).spawn(work)?);
        Ok(())
    }

    /// Finishes the proof with a certificate that was checked.
    pub(super) fn finish(
        &self,
        certificate: &[u8],
        solution: Option<Vec<usize>>,
    ) -> io::Result<()> {
        self.store.write_certificate(certificate)?;
        self.remember_digest(certificate);
        self.set_state(JobState::Finished, solution)?;
        self.observers.proof_finished(self.goal, certificate.len());
        Ok(())
    }

    /// Remembers the digest of a checked certificate.
    fn remember_digest(&self, certificate: &[u8]) {
        let digest = Sha256::digest(certificate).to_vec();
        lock(&self.progress).certificate = Some((certificate.len() as u64, digest));
    }

    /// Checks that a certificate proves this solution.
    pub(super) fn check(
        &self,
        certificate: &[u8],
        solution: Option<&[usize]>,
    ) -> Result<(), String> {
        // This machine wrote it, so there is no limit on checking it; but a stop interrupts the
        // check.
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let mut meter = Meter::new(None).stopped_by(&is_stopped);
        let proved =
            proof::check_within(certificate, &mut meter).map_err(|error| error.to_string())?;
        if self.goal.is_proved(&proved, solution) {
            Ok(())
        } else {
            Err("the certificate proves something else".to_owned())
        }
    }

    /// Returns whether an earlier process finished the proof and its certificate has not been
    /// checked since.
    pub(super) fn is_unchecked(&self) -> bool {
        let progress = lock(&self.progress);
        progress.record.state == JobState::Finished && progress.certificate.is_none()
    }

    /// Rechecks a proof that an earlier process finished. If the check fails, pauses the proof, so
    /// that it is searched for again when it is resumed.
    pub(super) fn recheck(&self) {
        let _once = lock(&self.rechecking);
        if !self.is_unchecked() {
            return;
        }
        let solution = lock(&self.progress).record.solution.clone();
        let read = self.store.certificate().map_err(|error| error.to_string());
        let checked = read.and_then(|certificate| {
            self.check(&certificate, solution.as_deref())?;
            self.remember_digest(&certificate);
            self.state_changes.send_replace(());
            Ok(())
        });
        let Err(why) = checked else { return };
        if self.stop.load(Ordering::Relaxed) {
            // The next start checks it again.
            return;
        }
        self.note(format!(
            "its certificate fails its check: {why}; resume the proof to search for it again"
        ));
        if let Err(error) = self.set_state(JobState::Paused, None) {
            self.pause_in_memory();
            self.note(format!("{} cannot be written: {error}", self.store.path().display()));
        }
        let (job, text) = (self.goal.job(), self.goal.text());
        self.observers.certificate_invalid(job, &text, &why);
    }

    /// Returns the state as reported to callers: finished only once the certificate is checked.
    pub(super) fn state(&self) -> JobState {
        if self.is_unchecked() { JobState::Running } else { self.stored_state() }
    }

    pub(super) fn status(&self, queue: &TaskQueue) -> v1::ProofStatus {
        use v1::proof_status::What as Shown;
        let job = self.goal.job();
        let (open, leased) = queue.open(job);
        let unchecked = self.is_unchecked();
        let state = self.state();
        let progress = lock(&self.progress);
        let ProofProgress { record, certificate, stage, notes, provers, checking } = &*progress;
        let from_one =
            |columns: &[usize]| columns.iter().map(|&column| column as u32 + 1).collect();
        let proved = record.solution.as_deref().filter(|_| !unchecked);
        let (certificate_bytes, certificate_sha256) = certificate.clone().unwrap_or_default();
        let what = match self.goal {
            Goal::First { n } => Shown::First(v1::First { n: n as u32 }),
            Goal::Beautiful { n } => Shown::Beautiful(v1::Beautiful { n: n as u32 }),
        };
        let level = |&(Position { cost, least, most, squares, queens }, _): &(Position, _)| {
            v1::CostLevel { cost, least, most, squares: squares as u32, queens }
        };
        let searched = stage.as_ref().filter(|_| record.state != JobState::Finished);
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
            state_ms: record.state_ms,
            row: self.row.load(Ordering::Relaxed),
            open: open as u32,
            lent: leased as u32,
            refuted: self.refuted.load(Ordering::Relaxed),
            columns: proved.map(from_one).unwrap_or_default(),
            certificate_bytes,
            certificate_sha256,
            provers: provers.values().cloned().collect(),
            checking_s: checking.as_secs_f64(),
            notes,
            priority: record.priority,
        }
    }
}
