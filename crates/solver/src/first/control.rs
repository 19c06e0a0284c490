//! State that the threads of a run of concurrent queries share: the stop flag and the counters of
//! work, the handles of jobs, and the solvers that are idle.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{fmt, iter, mem};

use super::query::QuerySolver;
use super::schedule::Schedule;
use crate::progress::{Progress, ProgressSink};
use crate::threads::lock;

/// Solvers that run concurrently.
pub(super) type Solvers = Vec<Box<dyn QuerySolver>>;

/// A source of solvers; more may become available during a run.
pub trait SolverSource: fmt::Debug + Sync {
    /// Returns the solvers that have become available since the last call. The first call returns
    /// at least one.
    fn take_new(&self) -> Vec<Box<dyn QuerySolver>>;

    /// Called when tasks were stopped, except by a panic, so that solvers that wait need not poll
    /// [`Task::is_stopped`] often.
    fn wake(&self) {}
}

/// The idle solvers of a run, and the number of its groups that have something to do.
#[derive(Default)]
pub(super) struct IdleSolvers {
    solvers: Mutex<Solvers>,
    pub(super) busy_groups: AtomicUsize,
}

impl IdleSolvers {
    pub(super) fn add(&self, mut solvers: Solvers) {
        lock(&self.solvers).append(&mut solvers);
    }

    pub(super) fn pop(&self) -> Option<Box<dyn QuerySolver>> {
        lock(&self.solvers).pop()
    }

    pub(super) fn take(&self) -> Solvers {
        mem::take(&mut *lock(&self.solvers))
    }
}

impl fmt::Debug for IdleSolvers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdleSolvers").field(&lock(&self.solvers).len()).finish()
    }
}

/// State shared by the threads of a run: the stop flag and the work counters.
#[derive(Debug, Default)]
pub struct Control<'a> {
    pub(super) stopped: AtomicBool,
    nodes: AtomicU64,
    lps_solved: AtomicU64,
    /// The job of an outer run, if this run is a part of one.
    outer: Option<Task<'a>>,
    /// The source of further solvers of this run.
    source: Option<&'a dyn SolverSource>,
}

impl<'a> Control<'a> {
    /// Creates the state of a run that has the solvers of `source`.
    pub(super) fn with_source(source: &'a dyn SolverSource) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// Creates the state of a run that is a job of another run. Its counters begin with those of
    /// the other run.
    pub(super) fn within(outer: Task<'a>) -> Self {
        Self {
            nodes: AtomicU64::new(outer.control.nodes()),
            lps_solved: AtomicU64::new(outer.control.lps_solved()),
            outer: Some(outer),
            ..Self::default()
        }
    }

    /// Requests all work under this control to stop soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Wakes the solvers that wait, after tasks were stopped.
    pub(super) fn wake(&self) {
        match (self.source, self.outer) {
            (Some(source), _) => source.wake(),
            (None, Some(outer)) => outer.control.wake(),
            (None, None) => {}
        }
    }

    /// Returns whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.outer.is_some_and(Task::is_stopped)
    }

    /// Returns the solvers that have become available.
    pub(super) fn take_new_solvers(&self) -> Solvers {
        match (self.source, self.outer) {
            (Some(source), _) => source.take_new(),
            (None, Some(outer)) => outer.control.take_new_solvers(),
            (None, None) => Vec::new(),
        }
    }

    /// Takes all idle solvers of the outer runs.
    pub(super) fn take_idle_solvers(&self) -> Solvers {
        iter::from_fn(|| self.take_idle_solver()).collect()
    }

    /// Takes one idle solver of an outer run.
    pub(super) fn take_idle_solver(&self) -> Option<Box<dyn QuerySolver>> {
        let Task { control, place, .. } = self.outer?;
        place.and_then(Place::take_idle_solver).or_else(|| control.take_idle_solver())
    }

    /// Returns the number of nodes of all searches.
    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Returns the total work, in units of about the time of one LP.
    pub(super) fn work(&self) -> u64 {
        self.lps_solved() + self.nodes() / 4000
    }

    /// Returns the number of linear programs solved.
    pub fn lps_solved(&self) -> u64 {
        self.lps_solved.load(Ordering::Relaxed)
    }
}

/// The handle of one job.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub(super) control: &'a Control<'a>,
    /// Set when the job is to stop: it is answered, abandoned or postponed.
    pub(super) stopped: &'a AtomicBool,
    /// `None` if the job is not part of a run.
    pub(super) place: Option<Place<'a>>,
}

/// The place of a job in its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) idle: &'a IdleSolvers,
    pub(super) schedule: &'a Schedule,
    /// The number of the job.
    pub(super) job: usize,
}

impl Place<'_> {
    /// Takes an idle solver of the run, unless they wait for another job.
    fn take_idle_solver(self) -> Option<Box<dyn QuerySolver>> {
        if self.schedule.is_for(self.job) { self.idle.pop() } else { None }
    }
}

impl<'a> Task<'a> {
    /// Creates the handle of the only job under `control`.
    pub const fn alone(control: &'a Control<'a>) -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self { control, stopped: &NEVER, place: None }
    }

    /// Returns whether the answer is no longer wanted, or not now.
    pub fn is_stopped(self) -> bool {
        self.control.is_stopped() || self.stopped.load(Ordering::Relaxed)
    }

    /// Returns whether another group of solvers still has something to do.
    pub(super) fn others_are_busy(self) -> bool {
        self.place.is_some_and(|place| place.idle.busy_groups.load(Ordering::Relaxed) > 1)
    }

    /// Returns the total work under the control of this job, like [`Control::work`].
    pub(super) fn total_work(self) -> u64 {
        self.control.work()
    }

    /// Counts nodes searched for the job.
    pub fn add_nodes(self, nodes: u64) {
        self.control.nodes.fetch_add(nodes, Ordering::Relaxed);
        if let Some(outer) = self.control.outer {
            outer.add_nodes(nodes);
        }
    }

    /// Counts LPs solved for the job.
    pub fn add_lps(self, lps: u64) {
        self.control.lps_solved.fetch_add(lps, Ordering::Relaxed);
        if let Some(outer) = self.control.outer {
            outer.add_lps(lps);
        }
    }
}

/// Stops a solver together with its job.
impl ProgressSink for Task<'_> {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
