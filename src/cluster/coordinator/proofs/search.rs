//! The search for one proof: the engine submits queries, workers answer them, and proved results
//! are saved to disk.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fmt, io};

use super::super::lock;
use super::Proof;
use super::proof_store::Goal;
use super::remote_solver::{
    AnswerObserver, CheckPermits, Checkers, RemoteQuerySolver, RemoteSolver, RemoteSubtreeSolver,
    check_threads,
};
use super::task_queue::TaskQueue;
use crate::board::Norm;
use crate::proof::first::CheckedRefutationSet;
use crate::proof::{self, Meter};
use crate::solver::beautiful::{self, Exact, Stage, SubtreeSolver, most_beautiful_with};
use crate::solver::first::{self, Found, Options, QuerySolver, Refutations, SolverSource};
use crate::solver::{Progress, ProgressSink};

/// The maximum number of open tasks of one proof.
const REMOTE_SOLVERS: usize = 64;

/// The remote solvers of a proof of a first solution: as many as keep the workers busy, since the
/// answer to one query often makes those about later prefixes irrelevant. Measured with three workers
/// of one thread, 64 solvers and 6: n = 97 more than 200 s and 60 s; for n = 62 to 91 the difference
/// is within the variation of the runs. Workers that leave do not reduce the number.
struct RemoteQuerySolvers<'a> {
    n: usize,
    queue: &'a TaskQueue,
    solver: &'a (dyn Fn() -> RemoteSolver + Sync),
    checked: Arc<Mutex<CheckedRefutationSet>>,
    /// The number of solvers so far.
    number: Mutex<usize>,
}

impl fmt::Debug for RemoteQuerySolvers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, number, .. } = self;
        f.debug_struct("RemoteQuerySolvers")
            .field("n", n)
            .field("number", number)
            .finish_non_exhaustive()
    }
}

impl SolverSource for RemoteQuerySolvers<'_> {
    fn take_new(&self) -> Vec<Box<dyn QuerySolver>> {
        let mut number = lock(&self.number);
        let before = *number;
        *number = before.max(self.queue.wanted_tasks().clamp(2, REMOTE_SOLVERS));
        let solver = |_| -> Box<dyn QuerySolver> {
            let (solver, checked) = ((self.solver)(), Arc::clone(&self.checked));
            Box::new(RemoteQuerySolver { n: self.n, solver, checked })
        };
        (before..*number).map(solver).collect()
    }
}

/// Returns the time until the next save, after one that took `took`. The search waits during a
/// save.
fn pause_after(took: Duration) -> Duration {
    const LEAST: Duration = Duration::from_secs(2);
    LEAST.max(took.saturating_mul(20))
}

impl Proof {
    /// Searches until the goal is proved or the search is stopped.
    pub(super) fn search(
        self: &Arc<Self>,
        queue: &Arc<TaskQueue>,
        permits: &Arc<CheckPermits>,
    ) -> io::Result<()> {
        let solver = || RemoteSolver {
            job: self.goal.job(),
            priority: self.priority(),
            queue: Arc::clone(queue),
            permits: Arc::clone(permits),
            listener: Arc::clone(self) as Arc<dyn AnswerObserver>,
        };
        match self.goal {
            Goal::First { n } => self.search_first(n, queue, &solver),
            Goal::Beautiful { n } => self.search_most_beautiful(n, &solver),
        }
    }

    fn search_first(
        &self,
        n: usize,
        queue: &TaskQueue,
        solver: &(dyn Fn() -> RemoteSolver + Sync),
    ) -> io::Result<()> {
        // This machine wrote the data, so there is no limit on checking it; but a stop interrupts
        // the check.
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let refuted = self.store.refuted(n, &mut Meter::new(None).stopped_by(&is_stopped))?;
        self.refuted.store(refuted.len() as u64, Ordering::Relaxed);
        let checked = Arc::new(Mutex::new(CheckedRefutationSet::new(n)));
        let solvers = RemoteQuerySolvers {
            n,
            queue,
            solver,
            checked: Arc::clone(&checked),
            number: Mutex::new(0),
        };
        let options = Options { refuted, ..Options::default() };
        let mut saver = Saver::new(self);
        let found =
            first::first_solution_with(n, options, &solvers, &mut StopSink(self), &mut |refuted| {
                self.refuted.store(refuted.len() as u64, Ordering::Relaxed);
                forget_unused(&mut lock(&checked), refuted);
                saver.save_if_due(|| self.store.write_refuted(n, refuted));
            });
        self.store.write_refuted(n, &found.refuted)?;
        if found.finished {
            let mut meter = Meter::new(None).stopped_by(&is_stopped);
            let certificate = certificate(n, &found, &lock(&checked), &mut meter)?;
            self.finish(&certificate, found.solution)?;
        }
        Ok(())
    }

    fn search_most_beautiful(&self, n: usize, solver: &dyn Fn() -> RemoteSolver) -> io::Result<()> {
        // Searches that are not handed out run here.
        let threads = check_threads();
        let query = beautiful::Query { n, norm: Norm::Euclidean, turning: false, threads };
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let begun = self.store.proved(&query, &mut Meter::new(None).stopped_by(&is_stopped))?;
        let checkers = Arc::new(Checkers::default());
        let solvers = (0..REMOTE_SOLVERS).map(|_| -> Box<dyn SubtreeSolver> {
            Box::new(RemoteSubtreeSolver { solver: solver(), checkers: Arc::clone(&checkers) })
        });
        let mut saver = Saver::new(self);
        let mut keep = |stage: &Stage<'_>| {
            lock(&self.progress).stage = Some((stage.position, stage.best.to_vec()));
            saver.save_if_due(|| self.store.write_proved(&stage.checkpoint()));
        };
        let exact =
            most_beautiful_with(query, solvers.collect(), begun, &mut StopSink(self), &mut keep);
        let Exact { answer, certificate, checkpoint } = exact;
        if let Some(state) = checkpoint {
            self.store.write_proved(&state)?;
        }
        match certificate {
            Some(certificate) => {
                self.check(&certificate, answer.found.as_deref()).map_err(io::Error::other)?;
                self.finish(&certificate, answer.found)
            }
            None if self.stop.load(Ordering::Relaxed) => Ok(()),
            None => Err(io::Error::other(format!(
                "the search ended without a proof: {:?}",
                answer.verdict
            ))),
        }
    }
}

/// The maximum number of checked refutations beyond twice the number of those that are needed.
const MOST_UNUSED: usize = 100;

/// Forgets the checked refutations that are no longer needed if there are too many.
fn forget_unused(checked: &mut CheckedRefutationSet, refuted: &Refutations) {
    if checked.len() > MOST_UNUSED + 2 * refuted.len() {
        checked.retain(|prefix| refuted.contains_key(prefix));
    }
}

/// Returns the certificate of a first solution. Refutations in `checked` are not checked again.
fn certificate(
    n: usize,
    found: &Found,
    checked: &CheckedRefutationSet,
    meter: &mut Meter<'_>,
) -> io::Result<Vec<u8>> {
    let (solution, refutations) = (found.solution.as_deref(), found.refutations(n));
    let threads = check_threads();
    let certificate =
        proof::first::certificate_with_checked(n, solution, &refutations, checked, threads, meter);
    certificate.map_err(|error| io::Error::other(error.to_string()))
}

/// A progress sink that stops the search with its proof and records the progress.
struct StopSink<'a>(&'a Proof);

impl ProgressSink for StopSink<'_> {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        if matches!(self.0.goal, Goal::First { .. }) {
            self.0.row.store(progress.level as u32, Ordering::Relaxed);
        }
        if self.0.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The periodic saving of proved results.
struct Saver<'a> {
    proof: &'a Proof,
    written: Instant,
    pause: Duration,
}

impl<'a> Saver<'a> {
    fn new(proof: &'a Proof) -> Self {
        Self { proof, written: Instant::now(), pause: pause_after(Duration::ZERO) }
    }

    fn save_if_due(&mut self, write: impl FnOnce() -> io::Result<()>) {
        if self.written.elapsed() < self.pause {
            return;
        }
        let began = Instant::now();
        if let Err(error) = write() {
            // A failure is harmless, except that a restart would repeat the search.
            self.proof.note(format!("proved results cannot be saved: {error}"));
        }
        self.written = Instant::now();
        self.pause = pause_after(self.written - began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Square, first_attack};
    use crate::proof::first::{CheckedRefutation, Refutation};

    #[test]
    fn checked_refutations_that_are_no_longer_needed_are_forgotten() {
        let n = 8;
        let mut checked = CheckedRefutationSet::new(n);
        let (mut refuted, mut inserted) = (Refutations::new(), 0);
        for number in 0..n.pow(5) {
            let prefix: Vec<usize> = (0..5).map(|row| number / n.pow(row) % n).collect();
            let squares: Vec<Square> =
                prefix.iter().enumerate().map(|(row, &col)| Square::new(row, col)).collect();
            if first_attack(Piece::Queen, n, &squares).is_some() {
                continue;
            }
            let (search, meter) = (Refutation::search(), &mut Meter::default());
            if let Ok(one) = CheckedRefutation::new(n, &prefix, search.clone(), u64::MAX, meter) {
                checked.insert(one);
                inserted += 1;
                if inserted % 10 == 0 {
                    refuted.insert(prefix, search);
                }
                forget_unused(&mut checked, &refuted);
                assert!(checked.len() <= MOST_UNUSED + 2 * refuted.len());
                assert!(checked.len() >= refuted.len());
            }
        }
        assert!(inserted > 3 * MOST_UNUSED, "{inserted}");
    }

    #[test]
    fn slow_checkpoints_are_written_less_often() {
        assert_eq!(pause_after(Duration::ZERO), Duration::from_secs(2));
        assert_eq!(pause_after(Duration::from_millis(100)), Duration::from_secs(2));
        assert_eq!(pause_after(Duration::from_secs(3)), Duration::from_secs(60));
    }
}
