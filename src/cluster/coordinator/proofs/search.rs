//! The search for one proof: the engine submits queries, workers answer them, and proved results
//! are saved to disk.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use super::super::lock;
use super::Proof;
use super::proof_store::Goal;
use super::refutation_checks::{EndChecks, RefutationChecks};
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
/// answer to one query often makes those about later prefixes irrelevant. Measured with three
/// workers of one thread, 64 solvers and 6: n = 97 more than 200 s and 60 s; for n = 62 to 91 the
/// difference is within the variation of the runs. Workers that leave do not reduce the number.
struct RemoteQuerySolvers<'a> {
    n: usize,
    queue: &'a TaskQueue,
    solver: &'a (dyn Fn() -> RemoteSolver + Sync),
    checks: &'a Arc<RefutationChecks>,
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
            let (solver, checks) = ((self.solver)(), Arc::clone(self.checks));
            Box::new(RemoteQuerySolver { n: self.n, solver, checks })
        };
        (before..*number).map(solver).collect()
    }

    fn wake(&self) {
        self.queue.wake();
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
        // This machine checked the data before, so there is no limit on the second check; but a
        // stop interrupts it.
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let mut meter = Meter::new(None).stopped_by(&is_stopped);
        let (mut refuted, unchecked) = self.store.refuted(n)?;
        let checks = RefutationChecks::new(n, &mut refuted, unchecked, &mut meter)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let checks = Arc::new(checks);
        self.refuted.store(refuted.len() as u64, Ordering::Relaxed);
        thread::scope(|scope| {
            // Also on a panic, or the scope would not end.
            let _guard = EndChecks(&checks);
            for _ in 0..check_threads() {
                scope.spawn(|| checks.run(&solver(), &is_stopped));
            }
            self.search_with_checks(n, refuted, (queue, solver), &checks)
        })
    }

    /// Searches, and begins again without the refutations that cannot be used until there are none.
    fn search_with_checks(
        &self,
        n: usize,
        refuted: Refutations,
        (queue, solver): (&TaskQueue, &(dyn Fn() -> RemoteSolver + Sync)),
        checks: &Arc<RefutationChecks>,
    ) -> io::Result<()> {
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let mut saver = Saver::new(self);
        let mut options = Options { refuted, ..Options::default() };
        loop {
            let solvers = RemoteQuerySolvers { n, queue, solver, checks, number: Mutex::new(0) };
            let sink = &mut SearchSink { proof: self, checks: Some(checks) };
            let mut found =
                first::first_solution_with(n, options, &solvers, sink, &mut |refuted| {
                    self.refuted.store(refuted.len() as u64, Ordering::Relaxed);
                    checks.forget_unused(refuted);
                    saver.save_if_due(|| self.store.write_refuted(n, checks.to_save(refuted)));
                });
            self.store.write_refuted(n, checks.to_save(&found.refuted))?;
            let is_proved = found.finished && checks.wait_for(&found.refuted, &is_stopped);
            if !is_proved && checks.remove_unusable(&mut found.refuted) && !is_stopped() {
                let (refuted, solution) = (found.refuted, checks.solution());
                options = Options { refuted, solution, ..Options::default() };
                continue;
            }
            if found.finished {
                self.store.write_refuted(n, checks.to_save(&found.refuted))?;
            }
            if is_proved {
                let mut meter = Meter::new(None).stopped_by(&is_stopped);
                let certificate = certificate(n, &found, &checks.take_checked(), &mut meter)?;
                self.finish(&certificate, found.solution)?;
            }
            return Ok(());
        }
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
        let exact = most_beautiful_with(
            query,
            solvers.collect(),
            begun,
            &mut SearchSink { proof: self, checks: None },
            &mut keep,
        );
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

/// A progress sink that stops the search with its proof or for its checks, and records the
/// progress.
struct SearchSink<'a> {
    proof: &'a Proof,
    checks: Option<&'a RefutationChecks>,
}

impl ProgressSink for SearchSink<'_> {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        let Self { proof, checks } = self;
        if matches!(proof.goal, Goal::First { .. }) {
            proof.row.store(progress.level as u32, Ordering::Relaxed);
        }
        if proof.stop.load(Ordering::Relaxed)
            || checks.is_some_and(RefutationChecks::interrupt_search)
        {
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

    #[test]
    fn slow_checkpoints_are_written_less_often() {
        assert_eq!(pause_after(Duration::ZERO), Duration::from_secs(2));
        assert_eq!(pause_after(Duration::from_millis(100)), Duration::from_secs(2));
        assert_eq!(pause_after(Duration::from_secs(3)), Duration::from_secs(60));
    }
}
