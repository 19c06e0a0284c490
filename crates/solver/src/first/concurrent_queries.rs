//! Concurrent queries, and series of them, of which either the first one that is not refuted or any
//! answer is wanted.

use std::iter;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::query::{QueryOutcome, QuerySolver};
use crate::progress::{Progress, ProgressSink};
use nqueens_proof::first::Refutation;

/// A completion query with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixQuery<'a> {
    /// The 0-based columns of the queens on the first rows.
    pub prefix: &'a [usize],
    /// Maximum number of LPs solved for the query.
    pub lp_limit: u64,
    /// 0 for the default search order; every other number seeds a different random order.
    pub attempt: u64,
}

/// The answer that is wanted from several jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The outcome of the first job whose prefix is not refuted. Jobs after that one are abandoned.
    FirstOpen,
    /// The first answer of any job: all of them are about the same prefix.
    AnyAnswer,
}

/// A job for one or more solvers: a query, or a series of them that decides one prefix.
pub(super) trait Job: Sync {
    /// Returns the prefix that the outcome is about.
    fn prefix(&self) -> &[usize];

    /// Does the job with at least one solver. Calls `refuted` with each longer prefix that is
    /// refuted on the way.
    fn run(
        &self,
        solvers: &mut [Box<dyn QuerySolver>],
        task: Task<'_>,
        refuted: &mut dyn FnMut(Vec<usize>, Refutation),
    ) -> QueryOutcome;
}

/// An event during [`run_jobs`].
pub(super) enum Event {
    /// This prefix is refuted: that of a job, or a longer one.
    Refuted(Vec<usize>, Refutation),
    /// No refutation: another outcome has arrived, or [`MAX_EVENT_INTERVAL`] has passed.
    Nothing,
}

/// A message from a job's thread.
enum Message {
    /// A prefix that extends the job's is refuted.
    Refuted(Vec<usize>, Refutation),
    /// The job with this number is done.
    Done(usize, QueryOutcome),
}

/// Maximum time between two events.
const MAX_EVENT_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the jobs on groups of solvers, one thread per group, until the wanted answer is known. Each
/// group begins with the job at its own place in the list, then takes the next job that no group
/// has taken. Returns the number of a job and its outcome, or `None` if all are refuted or, for
/// [`Wanted::AnyAnswer`], if no answer is a completion. Stops everything when `on_event` breaks.
///
/// # Panics
/// If a solver panics.
pub(super) fn run_jobs(
    jobs: &[impl Job],
    wanted: Wanted,
    groups: Vec<&mut [Box<dyn QuerySolver>]>,
    control: &Control<'_>,
    on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Option<(usize, QueryOutcome)> {
    // Jobs with a higher number than `last` are abandoned. Numbers start at 1.
    let (next, last) = (AtomicUsize::new(groups.len() + 1), AtomicUsize::new(usize::MAX));
    let (sender, receiver) = mpsc::channel();
    let mut found: Option<(usize, QueryOutcome)> = None;
    thread::scope(|scope| {
        for (first, solvers) in (1..).zip(groups) {
            let (next, last, sender) = (&next, &last, sender.clone());
            scope.spawn(move || {
                let _guard = StopOnPanic(control);
                let numbers = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for number in iter::once(first).chain(numbers) {
                    let task = Task::new(control, number, last);
                    let Some(job) = jobs.get(number - 1).filter(|_| !task.is_stopped()) else {
                        return;
                    };
                    let outcome = job.run(solvers, task, &mut |prefix, refutation| {
                        drop(sender.send(Message::Refuted(prefix, refutation)));
                    });
                    match (wanted, &outcome) {
                        (Wanted::FirstOpen, QueryOutcome::Refuted(_)) => {}
                        (Wanted::FirstOpen, _) => drop(last.fetch_min(number, Ordering::Relaxed)),
                        (
                            Wanted::AnyAnswer,
                            QueryOutcome::Refuted(_) | QueryOutcome::Completed(_),
                        ) => {
                            last.store(0, Ordering::Relaxed);
                        }
                        (Wanted::AnyAnswer, _) => {}
                    }
                    if sender.send(Message::Done(number - 1, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            let event = match receiver.recv_timeout(MAX_EVENT_INTERVAL) {
                Ok(Message::Refuted(prefix, refutation)) => Event::Refuted(prefix, refutation),
                Ok(Message::Done(number, QueryOutcome::Refuted(refutation))) => {
                    Event::Refuted(jobs[number].prefix().to_vec(), refutation)
                }
                Ok(Message::Done(number, outcome)) => {
                    let counts = wanted == Wanted::FirstOpen
                        || matches!(outcome, QueryOutcome::Completed(_));
                    if counts && found.as_ref().is_none_or(|&(first, _)| number < first) {
                        found = Some((number, outcome));
                    }
                    Event::Nothing
                }
                Err(RecvTimeoutError::Timeout) => Event::Nothing,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if on_event(event).is_break() {
                control.stop();
            }
        }
    });
    found
}

/// Stops all jobs if its thread panics; the scope of the threads then propagates the panic.
struct StopOnPanic<'a>(&'a Control<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// State shared by the threads of a run: the stop flag and the work counters.
#[derive(Debug, Default)]
pub struct Control<'a> {
    stopped: AtomicBool,
    nodes: AtomicU64,
    lps_solved: AtomicU64,
    /// The job of an outer run, if this run is a part of one.
    outer: Option<Task<'a>>,
}

impl<'a> Control<'a> {
    /// Creates the state of a run that is a job of another run. Its counters begin with those of
    /// the other run.
    pub(super) fn within(outer: Task<'a>) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            nodes: AtomicU64::new(outer.control.nodes()),
            lps_solved: AtomicU64::new(outer.control.lps_solved()),
            outer: Some(outer),
        }
    }

    /// Requests all work under this control to stop soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.outer.is_some_and(Task::is_stopped)
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
    control: &'a Control<'a>,
    number: usize,
    /// Jobs with a higher number are abandoned.
    last: &'a AtomicUsize,
}

impl<'a> Task<'a> {
    pub(super) const fn new(
        control: &'a Control<'a>,
        number: usize,
        last: &'a AtomicUsize,
    ) -> Self {
        Self { control, number, last }
    }

    /// Creates the handle of the only job under `control`.
    pub const fn alone(control: &'a Control<'a>) -> Self {
        static NONE: AtomicUsize = AtomicUsize::new(usize::MAX);
        Self { control, number: 0, last: &NONE }
    }

    /// Returns whether the answer is no longer wanted.
    pub fn is_stopped(self) -> bool {
        self.control.is_stopped() || self.last.load(Ordering::Relaxed) < self.number
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

    fn time_left(&self) -> Option<Duration> {
        None
    }
}
