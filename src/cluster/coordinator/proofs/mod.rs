//! Proofs: first and most beautiful solutions that workers search for together.
//!
//! Each running proof has a thread. It asks the queries of
//! [`crate::solver::first::first_solution_with`], or splits the long searches of
//! [`crate::solver::beautiful::most_beautiful_with`] into subtree tasks. Its remote solvers pass
//! them to workers, which take tasks from the [`TaskQueue`] through the protocol. Every answer that
//! a proof consists of is validated, so it is as good as one found by this machine alone and needs
//! no second opinion. Proved results are on disk a few seconds later, and a restarted coordinator
//! continues from there. It also checks the proofs that were finished before, in the background;
//! until that is done they are not reported as finished, and their certificates are not handed out.
//!
//! | file | content |
//! |---|---|
//! | `proof.rs` | a proof, its state and its thread |
//! | `search.rs` | the search of that thread |
//! | `refutation_checks.rs` | the refutations that a search uses, and their checks |
//! | `task_queue.rs` | the queue of tasks between solvers and workers |
//! | `remote_solver.rs` | remote solvers, and the validation of answers |
//! | `proof_store.rs` | the files of a proof |

mod proof;
mod proof_store;
mod refutation_checks;
mod remote_solver;
mod search;
mod task_queue;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

pub(super) use self::proof::MisbehaviourHook;
use self::proof::Proof;
pub(super) use self::proof_store::Goal;
use self::proof_store::{ProofRecord, ProofStore};
use self::remote_solver::CheckPermits;
pub(super) use self::task_queue::TaskQueue;
use super::commands::{StateError, SubmitReply};
use super::observers::Observers;
use super::{lock, now_ms};
use crate::cluster::campaign::JobState;
use crate::cluster::protocol::v1;
use crate::decomposition::JobHash;

/// All proofs of a coordinator.
pub(super) struct Proofs {
    /// The directory with one directory per proof.
    directory: PathBuf,
    pub(super) queue: Arc<TaskQueue>,
    permits: Arc<CheckPermits>,
    misbehaviour_hook: MisbehaviourHook,
    observers: Observers,
    proofs: Mutex<BTreeMap<JobHash, Arc<Proof>>>,
    /// Notifies of changes of their states.
    state_changes: watch::Sender<()>,
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
        observers: Observers,
    ) -> io::Result<Self> {
        let directory = data.join("proofs");
        let mut proofs = BTreeMap::new();
        let state_changes = watch::Sender::new(());
        for store in ProofStore::all(&directory)? {
            let named = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("{}: {error}", store.path().join("job.json").display()),
                )
            };
            let record = store.record().map_err(named)?;
            let goal = record.goal;
            let (hook, observers) = (Arc::clone(&misbehaviour_hook), observers.clone());
            let changes = state_changes.clone();
            let proof = Proof::new(goal, store.clone(), record, hook, observers, changes);
            proofs.insert(goal.job(), Arc::new(proof));
        }
        let queue = Arc::new(TaskQueue::new());
        let permits = Arc::new(CheckPermits::new());
        let opened = Self {
            directory,
            queue,
            permits,
            misbehaviour_hook,
            observers,
            proofs: Mutex::new(proofs),
            state_changes,
            changing: Mutex::new(()),
        };
        for proof in
            lock(&opened.proofs).values().filter(|proof| proof.stored_state() == JobState::Running)
        {
            proof.start(&opened.queue, &opened.permits)?;
        }
        opened.recheck()?;
        Ok(opened)
    }

    /// Starts a thread that rechecks the proofs finished by earlier processes, and does not wait
    /// for it.
    fn recheck(&self) -> io::Result<()> {
        let proofs = lock(&self.proofs);
        let finished: Vec<Arc<Proof>> =
            proofs.values().filter(|proof| proof.is_unchecked()).cloned().collect();
        if finished.is_empty() {
            return Ok(());
        }
        let check = move || {
            let wanted = |proof: &&Arc<Proof>| !proof.stop.load(Ordering::Relaxed);
            finished.iter().take_while(wanted).for_each(|proof| proof.recheck());
        };
        std::thread::Builder::new().name("proof-check".into()).spawn(check).map(drop)
    }

    /// Stops all threads. Running proofs continue when the coordinator starts again.
    pub(super) fn stop(&self) {
        let proofs: Vec<Arc<Proof>> = lock(&self.proofs).values().cloned().collect();
        proofs.iter().for_each(|proof| proof.stop.store(true, Ordering::Relaxed));
        proofs.iter().for_each(|proof| proof.stop_and_join());
    }

    /// Starts a proof, or returns the state of a known one. A cancelled proof starts again.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written or a thread cannot be spawned.
    pub(super) fn submit(
        &self,
        (goal, priority): (Goal, i32),
        submitter: &str,
    ) -> io::Result<(JobHash, SubmitReply)> {
        let job = goal.job();
        let _one_at_a_time = lock(&self.changing);
        let known = lock(&self.proofs).get(&job).cloned();
        if let Some(proof) = known {
            if proof.stored_state() == JobState::Cancelled {
                proof.set_state(JobState::Running, None)?;
                proof.start(&self.queue, &self.permits)?;
            }
            let (state, priority) = (proof.state(), proof.priority());
            return Ok((job, SubmitReply { known: true, state, priority }));
        }
        let store = ProofStore::new(self.directory.join(job.to_string()));
        let at_ms = now_ms();
        let (state, submitter) = (JobState::Running, submitter.to_owned());
        let record = ProofRecord {
            goal,
            state,
            priority,
            submitter,
            submitted_ms: at_ms,
            state_ms: at_ms,
            solution: None,
        };
        store.write_record(&record)?;
        self.observers.proof_submitted(goal, &record.submitter);
        let (hook, observers) = (Arc::clone(&self.misbehaviour_hook), self.observers.clone());
        let changes = self.state_changes.clone();
        let proof = Arc::new(Proof::new(goal, store, record, hook, observers, changes));
        proof.start(&self.queue, &self.permits)?;
        lock(&self.proofs).insert(job, proof);
        self.state_changes.send_replace(());
        Ok((job, SubmitReply { known: false, state: JobState::Running, priority }))
    }

    /// Returns the proofs whose names begin with `digits`.
    fn named(&self, digits: &str) -> Vec<(JobHash, Arc<Proof>)> {
        let proofs = lock(&self.proofs);
        let named = proofs.iter().filter(|(job, _)| job.to_string().starts_with(digits));
        named.map(|(&job, proof)| (job, Arc::clone(proof))).collect()
    }

    /// Returns the statuses of the proofs whose names begin with `digits`, in order of submission.
    pub(super) fn status(&self, digits: &str) -> Vec<v1::ProofStatus> {
        let named = self.named(digits);
        let mut all: Vec<v1::ProofStatus> =
            named.iter().map(|(_, proof)| proof.status(&self.queue)).collect();
        all.sort_by(|a, b| (a.submitted_ms, &a.job).cmp(&(b.submitted_ms, &b.job)));
        all
    }

    /// Returns a receiver that is notified of changes of the states of proofs.
    pub(super) fn state_changes(&self) -> watch::Receiver<()> {
        self.state_changes.subscribe()
    }

    /// Returns the number of running proofs.
    pub(super) fn running(&self) -> u32 {
        let running = lock(&self.proofs)
            .values()
            .filter(|proof| proof.stored_state() == JobState::Running)
            .count();
        u32::try_from(running).unwrap_or(u32::MAX)
    }

    fn find(&self, digits: &str) -> Result<(JobHash, Arc<Proof>), StateError> {
        let mut found = self.named(digits);
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
        requested: JobState,
        by: &str,
    ) -> Result<(JobHash, JobState), StateError> {
        let (job, proof) = self.find(digits)?;
        let _one_at_a_time = lock(&self.changing);
        let before = proof.stored_state();
        let state = match (before, requested) {
            (_, JobState::Running) if before != JobState::Finished => JobState::Running,
            (JobState::Running | JobState::Paused, JobState::Paused) => JobState::Paused,
            (_, JobState::Cancelled) if before != JobState::Finished => JobState::Cancelled,
            (JobState::Finished, JobState::Finished) => JobState::Finished,
            _ => return Err(StateError::over(job, before, requested)),
        };
        let unwritten = |error: io::Error| {
            tracing::error!(%job, "{error}");
            StateError::Unwritten(error.to_string())
        };
        if state != before {
            if before == JobState::Running {
                proof.stop_and_join();
                if proof.stored_state() == JobState::Finished {
                    // The search finished first.
                    return Err(StateError::over(job, JobState::Finished, requested));
                }
            }
            proof.set_state(state, None).map_err(unwritten)?;
            self.observers.proof_state_changed(proof.goal, requested, by);
            if state == JobState::Running {
                proof.start(&self.queue, &self.permits).map_err(unwritten)?;
            }
        }
        Ok((job, before))
    }

    /// Returns the certificate of a finished proof.
    ///
    /// # Errors
    /// Returns an error if there is no such proof, it is not finished, or its certificate cannot be
    /// read or differs from the one that was checked.
    pub(super) fn certificate(&self, digits: &str) -> Result<Vec<u8>, StateError> {
        let (job, proof) = self.find(digits)?;
        proof.recheck();
        let state = proof.stored_state();
        let checked =
            lock(&proof.progress).certificate.clone().filter(|_| state == JobState::Finished);
        let Some((_, digest)) = checked else {
            return Err(StateError::Unproved(job, state.name()));
        };
        let certificate =
            proof.store.certificate().map_err(|e| StateError::Unwritten(e.to_string()))?;
        if Sha256::digest(&certificate)[..] == digest[..] {
            Ok(certificate)
        } else {
            Err(StateError::Unwritten("the certificate is not the one that was checked".to_owned()))
        }
    }
}

impl Drop for Proofs {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_log::EventLog;
    use super::super::metrics::Metrics;
    use super::super::notifier::Notifier;
    use super::*;

    #[test]
    fn changes_of_states_are_announced_once_they_are_visible() {
        let folder = std::env::temp_dir().join(format!("nqueens-proofs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (notifier, _notifications) = Notifier::for_test();
        let event_log = EventLog::start(now_ms());
        let observers = Observers::new(Arc::new(Metrics::new()), notifier, event_log);
        let proofs = Proofs::open(&folder, Arc::new(|_, _| {}), observers).expect("no proofs");
        let mut changes = proofs.state_changes();
        // Without workers it does not end.
        let goal = Goal::First { n: 62 };
        let (job, _) = proofs.submit((goal, 0), "anna").expect("a new proof");
        assert!(changes.has_changed().expect("it is open"));
        assert_eq!(proofs.running(), 1);
        for (requested, running) in [(JobState::Paused, 0), (JobState::Running, 1)] {
            changes.mark_unchanged();
            proofs.set_state(&job.to_string(), requested, "anna").expect("a possible change");
            assert!(changes.has_changed().expect("it is open"));
            assert_eq!(proofs.running(), running);
        }
        drop(proofs);
        std::fs::remove_dir_all(&folder).expect("no thread uses it");
    }
}
