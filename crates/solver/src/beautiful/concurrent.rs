//! Tasks of a trial on several threads, each on a copy of the engine.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::bounds::Bounds;
use super::engine::Engine;
use super::exact::{Query, Stage};
use super::lp_search::NodeLimits;
use super::lp_witnesses::{LpWitnesses, Point};
use super::orbit_lp::OrbitLp;
use super::orbits::Orbits;
use super::proof_log::ProofLog;
use crate::progress::{Progress, ProgressSink};
use crate::threads::StopOnPanic;
use crate::verdict::Unproven;

/// The longest time between two reports to the caller's sink.
pub(super) const MAX_REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// The state of the engine that its copies start with.
pub(super) struct Start<'a> {
    orbits: &'a Orbits,
    query: Query,
    bounds: Bounds,
    orbit_lp: OrbitLp<'a>,
    cliques: Vec<Vec<usize>>,
    witnesses: LpWitnesses,
    log: ProofLog,
    weights: Vec<f32>,
    cost: u64,
    quick: u64,
    wide: usize,
    limits: NodeLimits,
}

/// The knowledge that a copy has gained.
#[derive(Debug)]
pub(super) struct Learned {
    nodes: u64,
    lps_solved: u64,
    weights: Vec<f32>,
    /// The cliques that it added.
    cliques: Vec<Vec<usize>>,
    /// The feasible points of the LP that it found.
    points: Vec<Arc<Point>>,
}

/// A message from a thread.
enum Message<R> {
    /// The task with this number is done.
    Done(usize, Result<R, Unproven>),
    /// The thread has no more tasks.
    Finished(Learned),
}

/// The sink of a copy: stops it when a condition holds, and counts its nodes.
pub(super) struct TaskSink<'a> {
    is_stopped: &'a dyn Fn() -> bool,
    nodes: &'a AtomicU64,
    /// The nodes of the copy that were counted.
    counted: u64,
}

impl<'a> TaskSink<'a> {
    pub(super) const fn new(is_stopped: &'a dyn Fn() -> bool, nodes: &'a AtomicU64) -> Self {
        Self { is_stopped, nodes, counted: 0 }
    }
}

impl ProgressSink for TaskSink<'_> {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        let more = progress.nodes.saturating_sub(self.counted);
        self.counted += more;
        self.nodes.fetch_add(more, Ordering::Relaxed);
        if (self.is_stopped)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<'a> Engine<'a> {
    /// Does all tasks with `work`, in order, until `is_last` accepts a result. Returns the result
    /// of each task, or `None` if it was not done. If there are at least as many tasks as
    /// `threads`, each thread has a copy of the engine. Of the copies only the numbers of nodes and
    /// LPs, the weights, the cliques and the feasible points are kept: `work` must return
    /// everything else, and restore the bounds and the log.
    ///
    /// # Panics
    /// If `work` panics.
    pub(super) fn run_tasks<T: Sync, R: Send>(
        &mut self,
        threads: usize,
        tasks: &[T],
        work: impl Fn(&mut Engine<'_>, &T) -> Result<R, Unproven> + Sync,
        is_last: impl Fn(&R) -> bool,
    ) -> Result<Vec<Option<R>>, Unproven> {
        let mut results: Vec<Option<R>> = tasks.iter().map(|_| None).collect();
        if threads <= 1 || tasks.len() < threads {
            for (task, result) in tasks.iter().zip(&mut results) {
                let done = work(self, task)?;
                let is_last = is_last(&done);
                *result = Some(done);
                if is_last {
                    break;
                }
            }
            return Ok(results);
        }
        let start = self.start();
        let (stopped, next, nodes) =
            (AtomicBool::new(false), AtomicUsize::new(0), AtomicU64::new(0));
        let (mut all_learned, mut failed) = (Vec::new(), None);
        thread::scope(|scope| {
            let _guard = StopOnPanic(&stopped);
            let (sender, receiver) = mpsc::channel();
            for thread in 0..threads {
                let (start, stopped, next, nodes) = (&start, &stopped, &next, &nodes);
                let (work, search) = (&work, Arc::clone(&self.search));
                let (sender, seed) = (sender.clone(), self.rng.u64(..));
                scope.spawn(move || {
                    let _guard = StopOnPanic(stopped);
                    let is_stopped = || stopped.load(Ordering::Relaxed);
                    let mut sink = TaskSink::new(&is_stopped, nodes);
                    let mut checkpoint_sink = |_: &Stage<'_>| {};
                    let mut engine = start.engine(seed, &mut sink, &mut checkpoint_sink);
                    while !is_stopped() {
                        if thread >= search.threads() && next.load(Ordering::Relaxed) < tasks.len()
                        {
                            // A dive has the core of this thread.
                            thread::sleep(MAX_REPORT_INTERVAL);
                            continue;
                        }
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(number) else { break };
                        let done = work(&mut engine, task);
                        if sender.send(Message::Done(number, done)).is_err() {
                            break;
                        }
                    }
                    drop(sender.send(Message::Finished(start.learned(engine))));
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(MAX_REPORT_INTERVAL) {
                    Ok(Message::Done(number, Ok(result))) => {
                        if is_last(&result) {
                            stopped.store(true, Ordering::Relaxed);
                        }
                        results[number] = Some(result);
                    }
                    // Stopped by another thread, or on request.
                    Ok(Message::Done(_, Err(Unproven::Stopped))) => {}
                    Ok(Message::Done(_, Err(error))) => {
                        failed.get_or_insert(error);
                    }
                    Ok(Message::Finished(learned)) => all_learned.push(learned),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if let Err(error) = self.report_with(nodes.load(Ordering::Relaxed)) {
                    failed.get_or_insert(error);
                }
                if failed.is_some() {
                    stopped.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(longest) = all_learned.iter().max_by_key(|learned| learned.nodes) {
            self.weights.clone_from(&longest.weights);
        }
        self.adopt(all_learned);
        failed.map_or(Ok(results), Err)
    }

    /// Returns the state that copies start with.
    pub(super) fn start(&self) -> Start<'a> {
        let mut orbit_lp = self.orbit_lp.clone();
        orbit_lp.lps_solved = 0;
        Start {
            orbits: self.orbits,
            query: Query { threads: 1, ..self.query },
            bounds: self.bounds.clone(),
            orbit_lp,
            cliques: self.cliques.clone(),
            witnesses: self.witnesses.clone(),
            log: self.log.continuation(),
            weights: self.weights.clone(),
            cost: self.cost,
            quick: self.quick,
            wide: self.wide,
            limits: self.limits,
        }
    }

    /// Adopts the knowledge of copies, except for weights.
    pub(super) fn adopt(&mut self, all_learned: Vec<Learned>) {
        for learned in all_learned {
            self.nodes += learned.nodes;
            self.lps_solved += learned.lps_solved;
            learned.points.into_iter().for_each(|point| self.witnesses.add_point(point));
            for clique in learned.cliques {
                if !self.cliques.contains(&clique) {
                    self.orbit_lp.add_clique(self.cliques.len(), &clique);
                    self.cliques.push(clique);
                }
            }
        }
    }
}

impl Start<'_> {
    /// Creates a copy of the engine, with one thread and no remote solvers.
    pub(super) fn engine<'b>(
        &'b self,
        seed: u64,
        sink: &'b mut dyn ProgressSink,
        checkpoint_sink: &'b mut (dyn FnMut(&Stage<'_>) + 'b),
    ) -> Engine<'b> {
        let mut engine = Engine::with_bounds(
            self.orbits,
            self.query,
            sink,
            checkpoint_sink,
            (self.bounds.clone(), self.orbit_lp.clone()),
        );
        engine.cliques.clone_from(&self.cliques);
        engine.witnesses = self.witnesses.clone();
        engine.log = self.log.clone();
        engine.weights.clone_from(&self.weights);
        engine.rng = fastrand::Rng::with_seed(seed);
        engine.seed = seed;
        engine.cost = self.cost;
        (engine.quick, engine.wide, engine.limits) = (self.quick, self.wide, self.limits);
        engine
    }

    /// Returns the knowledge that a copy has gained.
    pub(super) fn learned(&self, engine: Engine<'_>) -> Learned {
        Learned {
            nodes: engine.nodes,
            lps_solved: engine.lps_solved + engine.orbit_lp.lps_solved,
            weights: engine.weights,
            cliques: engine.cliques[self.cliques.len()..].to_vec(),
            points: engine.witnesses.since(&self.witnesses),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::beautiful::{most_beautiful_exactly, resume};
    use crate::progress::Unobserved;
    use crate::test_support::StopAfter;
    use nqueens_proof::beautiful::{PartialProof, check};
    use nqueens_proof::board::Norm;

    /// The outcome of a run: the solution with the proof, without the seal, or the checkpoint.
    pub(in crate::beautiful) enum Run {
        Ended(Vec<usize>, Vec<u8>),
        Stopped(Option<Vec<u8>>),
    }

    /// Runs an engine that searches nothing before its trials are divided, with boards of more than
    /// `wide` squares as wide ones.
    pub(in crate::beautiful) fn run(
        query: Query,
        wide: usize,
        earlier: Option<PartialProof>,
        sink: &mut dyn ProgressSink,
    ) -> Run {
        let orbits = Orbits::new(query.n, query.norm);
        let mut checkpoint_sink = |_: &Stage<'_>| {};
        let mut engine = Engine::new(&orbits, query, Vec::new(), sink, &mut checkpoint_sink);
        (engine.quick, engine.wide) = (0, wide);
        match engine.run(earlier) {
            Ok(()) => {
                let proof = engine.proof();
                Run::Ended(engine.best.expect("a solution"), proof)
            }
            Err(Unproven::Stopped) => Run::Stopped(engine.checkpoint()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns a query that one thread answers within milliseconds.
    fn any_query(random: &mut fastrand::Rng, threads: usize) -> Query {
        let (n, norm, turning) = random
            .choice([
                (6, Norm::Euclidean, false),
                (9, Norm::Euclidean, false),
                (10, Norm::Manhattan, false),
                (9, Norm::Chebyshev, false),
                (13, Norm::Euclidean, false),
                (16, Norm::Euclidean, true),
                (18, Norm::Euclidean, false),
                (26, Norm::Euclidean, false),
            ])
            .expect("not empty");
        Query { n, norm, turning, threads }
    }

    pub(in crate::beautiful) fn assert_is_best(query: Query, best: &[usize], proof: &[u8]) {
        let alone = Query { threads: 1, ..query };
        let other = most_beautiful_exactly(alone, &mut Unobserved).answer.found;
        let fingerprint = |columns: &[usize]| query.norm.fingerprint(columns);
        assert_eq!(Some(fingerprint(best)), other.as_deref().map(fingerprint), "{query:?}");
        let checked = check(query.n, proof).expect("a valid proof");
        assert_eq!(checked.solution.as_deref(), Some(best), "{query:?}");
    }

    #[test]
    fn several_threads_prove_the_same_optimum_as_one() {
        let mut random = fastrand::Rng::with_seed(30);
        for wide in [0, usize::MAX] {
            for threads in [2, 3, 8] {
                for _ in 0..8 {
                    let query = any_query(&mut random, threads);
                    let Run::Ended(best, proof) = run(query, wide, None, &mut Unobserved) else {
                        panic!("{query:?} was stopped");
                    };
                    assert_is_best(query, &best, &proof);
                }
            }
        }
    }

    #[test]
    fn a_stopped_run_of_several_threads_is_resumed() {
        let mut random = fastrand::Rng::with_seed(31);
        let mut stopped = 0;
        for _ in 0..40 {
            let threads = random.usize(2..5);
            let query = any_query(&mut random, threads);
            let wide = random.choice([0, usize::MAX]).expect("not empty");
            let mut reports = 0;
            let mut earlier = None;
            let (best, proof) = loop {
                reports += random.u32(0..40);
                let mut sink = StopAfter(reports + 1);
                match run(query, wide, earlier.take(), &mut sink) {
                    Run::Ended(best, proof) => break (best, proof),
                    Run::Stopped(checkpoint) => {
                        stopped += 1;
                        earlier = checkpoint
                            .map(|bytes| resume::read(&query, &bytes).expect("a valid checkpoint"));
                    }
                }
            };
            assert_is_best(query, &best, &proof);
        }
        assert!(stopped > 40, "{stopped} runs were stopped");
    }

    /// A sink that panics after some reports.
    struct PanicAfter(StopAfter);

    impl ProgressSink for PanicAfter {
        fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
            assert!(self.0.report(progress).is_continue(), "injected");
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn a_panic_of_the_sink_ends_a_run_of_several_threads() {
        let query = Query { n: 26, norm: Norm::Euclidean, turning: false, threads: 4 };
        let mut panicked = 0;
        for reports in (0..300).step_by(23) {
            for wide in [0, usize::MAX] {
                let run = || run(query, wide, None, &mut PanicAfter(StopAfter(reports + 1)));
                panicked += u32::from(std::panic::catch_unwind(run).is_err());
            }
        }
        assert!(panicked > 10, "{panicked} runs panicked");
    }

    /// Runs tasks on an engine with three threads.
    fn run_numbered<R: Send>(
        work: impl Fn(&mut Engine<'_>, &usize) -> Result<R, Unproven> + Sync,
        is_last: impl Fn(&R) -> bool,
    ) -> Result<Vec<Option<R>>, Unproven> {
        let orbits = Orbits::new(8, Norm::Euclidean);
        let query = Query { n: 8, norm: Norm::Euclidean, turning: false, threads: 3 };
        let (mut sink, mut checkpoint_sink) = (Unobserved, |_: &Stage<'_>| {});
        let mut engine = Engine::new(&orbits, query, Vec::new(), &mut sink, &mut checkpoint_sink);
        engine.run_tasks(3, &(0..50).collect::<Vec<usize>>(), work, is_last)
    }

    #[test]
    fn each_task_has_its_own_result() {
        let done = run_numbered(|_, &task| Ok(task), |_| false).expect("not stopped");
        assert!(done.into_iter().eq((0..50).map(Some)));
        let done = run_numbered(|_, &task| Ok(task), |&task| task == 20).expect("not stopped");
        assert_eq!(done[20], Some(20));
        assert!(done.iter().zip(0..).all(|(done, task)| done.is_none_or(|done| done == task)));
        let failed = run_numbered(
            |_, &task| if task == 7 { Err(Unproven::SolverFailed("7".into())) } else { Ok(task) },
            |_| false,
        );
        assert!(matches!(failed, Err(Unproven::SolverFailed(why)) if why == "7"));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_in_a_task_ends_all() {
        drop(run_numbered(
            |_, &task| if task == 3 { panic!("injected") } else { Ok(()) },
            |()| false,
        ));
    }
}
