//! The search for one proof: the engine submits queries, workers answer them, and proved results
//! are saved to disk.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::proof_store::Goal;
use super::remote_solver::{
    AnswerObserver, CheckPermits, Checkers, RemoteQuerySolver, RemoteSolver, RemoteSubtreeSolver,
};
use super::task_queue::TaskQueue;
use super::{Proof, lock};
use crate::board::Norm;
use crate::proof::{self, Meter};
use crate::solver::beautiful::{self, Exact, Stage, SubtreeSolver, most_beautiful_with};
use crate::solver::first::{self, Found, Options, QuerySolver};
use crate::solver::{Progress, ProgressSink};

/// The maximum number of open queries of one proof.
const REMOTE_SOLVERS: usize = 64;

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
            Goal::First { n } => self.search_first(n, &solver),
            Goal::Beautiful { n } => self.search_most_beautiful(n, &solver),
        }
    }

    fn search_first(&self, n: usize, solver: &dyn Fn() -> RemoteSolver) -> io::Result<()> {
        // This machine wrote the data, so there is no limit on checking it; but a stop interrupts
        // the check.
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let refuted = self.store.refuted(n, &mut Meter::new(None).stopped_by(&is_stopped))?;
        self.refuted.store(refuted.len() as u64, Ordering::Relaxed);
        let solvers = (0..REMOTE_SOLVERS).map(|_| -> Box<dyn QuerySolver> {
            Box::new(RemoteQuerySolver { n, solver: solver() })
        });
        let options = Options { refuted, ..Options::default() };
        let mut saver = Saver::new(self);
        let found = first::first_solution_with(
            n,
            options,
            solvers.collect(),
            &mut StopSink(self),
            &mut |refuted| {
                self.refuted.store(refuted.len() as u64, Ordering::Relaxed);
                saver.save_if_due(|| self.store.write_refuted(n, refuted));
            },
        );
        self.store.write_refuted(n, &found.refuted)?;
        if found.finished {
            let certificate =
                certificate(n, &found, &mut Meter::new(None).stopped_by(&is_stopped))?;
            self.finish(&certificate, found.solution)?;
        }
        Ok(())
    }

    fn search_most_beautiful(&self, n: usize, solver: &dyn Fn() -> RemoteSolver) -> io::Result<()> {
        // Searches that are not handed out run here; one core is left for everything else.
        let threads = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        let threads = threads.max(1);
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

/// Returns the certificate of a first solution.
fn certificate(n: usize, found: &Found, meter: &mut Meter<'_>) -> io::Result<Vec<u8>> {
    let refutations = found.refutations(n);
    let refutations: Vec<_> = refutations.iter().collect();
    let certificate =
        proof::first::certificate_within(n, found.solution.as_deref(), &refutations, 1, meter);
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

    fn time_left(&self) -> Option<Duration> {
        None
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
