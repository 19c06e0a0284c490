//! The dives of a trial after the first one, on threads of their own, while others search.
//!
//! There are as many dives in each pass, with as many nodes, as on a single thread, which
//! alternates them with the searches. When a dive is exhausted, the other dives of its pass are
//! abandoned, and the next one waits for the next pass of the searches.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::concurrent::{Learned, MAX_REPORT_INTERVAL, Start, TaskSink};
use super::dive::DiveOutcome;
use super::exact::Stage;
use super::passes::{dive_nodes, dives_in_pass};
use crate::threads::{StopOnPanic, lock};
use crate::verdict::Unproven;

/// The state that the searches of a trial share with its dives.
#[derive(Debug, Default)]
pub(super) struct SearchControl {
    /// Set when the searches are to stop: a dive has found a solution, or has failed.
    is_over: AtomicBool,
    /// The nodes of the dives so far.
    nodes: AtomicU64,
    /// The number of threads that do not dive.
    threads: AtomicUsize,
}

impl SearchControl {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads: AtomicUsize::new(threads), ..Self::default() }
    }

    /// Returns whether the searches are to stop.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Returns the number of nodes of the dives so far.
    pub(super) fn dive_nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Returns the number of threads for the searches, at least 1.
    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed).max(1)
    }
}

/// The dives of a trial.
#[derive(Debug)]
pub(super) struct BackgroundDives {
    level: usize,
    /// Set if the board of the trial is wide.
    wide: bool,
    passes: usize,
    /// The number of threads in all.
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Set when the dives are to stop.
    stopped: AtomicBool,
    /// Dives with a lower number are to stop.
    first_wanted: AtomicU32,
    search: Arc<SearchControl>,
}

#[derive(Debug, Default)]
struct State {
    /// The pass of the next dive, from 1, and the number of dives left in it.
    pass: usize,
    left: usize,
    /// The number of dives that were started, with the first one; they are numbered from 0.
    started: u32,
    /// Set if the next dive waits for the next pass of the searches.
    exhausted: bool,
    /// Set if a dive was exhausted.
    was_exhausted: bool,
    /// The dives in progress.
    running: Vec<u32>,
    /// The first solution found.
    found: Option<Vec<usize>>,
    failed: Option<Unproven>,
    learned: Vec<Learned>,
}

impl BackgroundDives {
    /// Creates the dives below `level` of a trial with `passes` passes after its first dive, which
    /// may have been exhausted. Half of the `threads` are to [run](Self::run) them.
    pub(super) fn new(
        level: usize,
        passes: usize,
        threads: usize,
        wide: bool,
        is_exhausted: bool,
    ) -> Self {
        Self {
            level,
            wide,
            passes,
            threads,
            state: Mutex::new(State {
                pass: 1,
                left: dives_in_pass(1, wide, is_exhausted),
                started: 1,
                exhausted: is_exhausted,
                was_exhausted: is_exhausted,
                ..State::default()
            }),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            first_wanted: AtomicU32::new(0),
            search: Arc::new(SearchControl::new(threads)),
        }
    }

    /// Returns the control of the searches.
    pub(super) fn search(&self) -> &Arc<SearchControl> {
        &self.search
    }

    /// Dives on a copy of the engine until no more dives are wanted from this thread.
    pub(super) fn run(&self, start: &Start<'_>, seed: u64) {
        let _guard = StopOnPanic(&self.search.is_over);
        let number = AtomicU32::new(0);
        let is_stopped = || {
            self.stopped.load(Ordering::Relaxed)
                || number.load(Ordering::Relaxed) < self.first_wanted.load(Ordering::Relaxed)
        };
        let mut sink = TaskSink::new(&is_stopped, &self.search.nodes);
        let mut checkpoint_sink = |_: &Stage<'_>| {};
        let mut engine = start.engine(seed, &mut sink, &mut checkpoint_sink);
        while let Some((dive, nodes)) = self.next() {
            number.store(dive, Ordering::Relaxed);
            engine.dives = dive;
            let outcome = engine.dive(self.level, nodes);
            self.record(dive, outcome);
        }
        lock(&self.state).learned.push(start.learned(engine));
    }

    /// Waits for the next dive. Returns its number and its nodes, or `None` if the thread is to
    /// end.
    fn next(&self) -> Option<(u32, u64)> {
        let mut state = lock(&self.state);
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            if state.left == 0 && state.pass < self.passes && !state.exhausted {
                state.pass += 1;
                state.left = dives_in_pass(state.pass, self.wide, state.was_exhausted);
            }
            if state.left > 0 && !self.search.is_over() {
                let number = state.started;
                state.left -= 1;
                state.started += 1;
                state.running.push(number);
                self.set_search_threads(&state);
                return Some((number, dive_nodes(self.wide, state.pass)));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn record(&self, dive: u32, outcome: Result<DiveOutcome, Unproven>) {
        let mut state = lock(&self.state);
        state.running.retain(|&other| other != dive);
        self.set_search_threads(&state);
        match outcome {
            Ok(DiveOutcome::Found(columns)) => {
                state.found.get_or_insert(columns);
            }
            Ok(DiveOutcome::Exhausted) if dive >= self.first_wanted.load(Ordering::Relaxed) => {
                (state.exhausted, state.was_exhausted, state.left) = (true, true, 0);
                self.first_wanted.store(state.started, Ordering::Relaxed);
            }
            Ok(DiveOutcome::Exhausted | DiveOutcome::Open) | Err(Unproven::Stopped) => {}
            Err(error) => state.failed = Some(error),
        }
        if state.found.is_some() || state.failed.is_some() {
            self.search.is_over.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    fn set_search_threads(&self, state: &State) {
        self.search.threads.store(self.threads - state.running.len(), Ordering::Relaxed);
    }

    /// Lets the dives know that the searches begin a pass.
    pub(super) fn begin_pass(&self, pass: usize) {
        let mut state = lock(&self.state);
        state.exhausted &= state.pass >= pass;
        self.changed.notify_all();
    }

    /// Waits for all dives of the trial. Returns the solution of one, if there is one.
    pub(super) fn finish_all(
        &self,
        report: &mut dyn FnMut() -> Result<(), Unproven>,
    ) -> Result<Option<Vec<usize>>, Unproven> {
        let is_over = |state: &State| {
            state.found.is_some()
                || state.failed.is_some()
                || state.running.is_empty()
                    && (state.exhausted || state.left == 0 && state.pass >= self.passes)
        };
        let mut state = lock(&self.state);
        while !is_over(&state) {
            let waited = self.changed.wait_timeout(state, MAX_REPORT_INTERVAL);
            drop(waited.unwrap_or_else(PoisonError::into_inner).0);
            if let Err(error) = report() {
                // A dive that ends the trial stops the reports, too.
                return self.found()?.map(Some).ok_or(error);
            }
            state = lock(&self.state);
        }
        Self::outcome(&mut state)
    }

    /// Returns the solution of the dive that has stopped the searches, or `None` if none has.
    ///
    /// # Errors
    /// A dive has failed.
    pub(super) fn found(&self) -> Result<Option<Vec<usize>>, Unproven> {
        if !self.search.is_over() {
            return Ok(None);
        }
        Self::outcome(&mut lock(&self.state))
    }

    fn outcome(state: &mut State) -> Result<Option<Vec<usize>>, Unproven> {
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(state.found.take()),
        }
    }

    /// Returns the knowledge of the copies, when all threads have ended.
    pub(super) fn into_learned(self) -> Vec<Learned> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).learned
    }
}

/// Stops all dives when it is dropped.
pub(super) struct StopDives<'a>(pub(super) &'a BackgroundDives);

impl Drop for StopDives<'_> {
    fn drop(&mut self) {
        let _state = lock(&self.0.state);
        self.0.stopped.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}
