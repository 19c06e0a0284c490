//! Concurrent queries, of which either the first one that is not refuted or any answer is wanted.

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

/// The answer that is wanted from several queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The outcome of the first query that is not refuted. Queries after that one are abandoned.
    FirstOpen,
    /// The first answer of any query: all of them solve the same query in different ways.
    AnyAnswer,
}

/// An event during [`run_queries`].
pub(super) enum Event {
    /// The query with this number is refuted.
    Refuted(usize, Refutation),
    /// No refutation: another outcome has arrived, or [`MAX_EVENT_INTERVAL`] has passed.
    Nothing,
}

/// Maximum time between two events.
const MAX_EVENT_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the queries on several solvers, each on its own thread, until the wanted answer is known.
/// Returns the number of a query and its outcome, or `None` if all are refuted or, for
/// [`Wanted::AnyAnswer`], if no answer is a completion. Everything is stopped when `on_event`
/// breaks.
///
/// # Panics
/// If a solver panics.
pub(super) fn run_queries(
    queries: &[PrefixQuery<'_>],
    wanted: Wanted,
    solvers: &mut [Box<dyn QuerySolver>],
    control: &Control,
    on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Option<(usize, QueryOutcome)> {
    // Queries with a higher number than `last` are abandoned. Numbers start at 1.
    let (next, last) = (AtomicUsize::new(1), AtomicUsize::new(usize::MAX));
    let (sender, receiver) = mpsc::channel();
    let mut found: Option<(usize, QueryOutcome)> = None;
    thread::scope(|scope| {
        for solver in solvers.iter_mut().take(queries.len()) {
            let (next, last, sender) = (&next, &last, sender.clone());
            scope.spawn(move || {
                let _guard = StopOnPanic(control);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let task = Task::new(control, number, last);
                    let Some(query) = queries.get(number - 1).filter(|_| !task.is_stopped()) else {
                        return;
                    };
                    let outcome = solver.solve(query, task);
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
                    if sender.send((number - 1, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            let event = match receiver.recv_timeout(MAX_EVENT_INTERVAL) {
                Ok((number, QueryOutcome::Refuted(refutation))) => {
                    Event::Refuted(number, refutation)
                }
                Ok((number, outcome)) => {
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

/// Stops all queries if its thread panics; the scope of the threads then propagates the panic.
struct StopOnPanic<'a>(&'a Control);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// State shared by the threads of a run: the stop flag and the work counters.
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    nodes: AtomicU64,
    lps_solved: AtomicU64,
}

impl Control {
    /// Requests all work under this control to stop soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
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

/// The handle of one query.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    control: &'a Control,
    number: usize,
    /// Queries with a higher number are abandoned.
    last: &'a AtomicUsize,
}

impl<'a> Task<'a> {
    pub(super) const fn new(control: &'a Control, number: usize, last: &'a AtomicUsize) -> Self {
        Self { control, number, last }
    }

    /// Creates the handle of the only query under `control`.
    pub const fn alone(control: &'a Control) -> Self {
        static NONE: AtomicUsize = AtomicUsize::new(usize::MAX);
        Self { control, number: 0, last: &NONE }
    }

    /// Returns whether the answer is no longer wanted.
    pub fn is_stopped(self) -> bool {
        self.control.is_stopped() || self.last.load(Ordering::Relaxed) < self.number
    }

    /// Counts nodes searched for the query.
    pub fn add_nodes(self, nodes: u64) {
        self.control.nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    /// Counts LPs solved for the query.
    pub fn add_lps(self, lps: u64) {
        self.control.lps_solved.fetch_add(lps, Ordering::Relaxed);
    }
}

/// Stops a solver together with its query.
impl ProgressSink for Task<'_> {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}
