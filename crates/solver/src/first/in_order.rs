//! Several queries at a time, of which the first is wanted that is not refuted, or any answer.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::query::{Outcome, QuerySolver};
use crate::progress::{Progress, ProgressSink};
use nqueens_proof::first::Refutation;

/// One query: what is asked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The 0-based columns of the queens on the first rows.
    pub prefix: &'a [usize],
    /// Programmes that may be solved for it.
    pub programmes: u64,
    /// 0 for the usual order of trials; each other number is another order, at random.
    pub attempt: u64,
}

/// What is wanted of several queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The first that is not refuted, and what became of it. Those behind it are abandoned.
    FirstOpen,
    /// They all ask the same, in different ways: the first answer.
    AnyAnswer,
}

/// What happens meanwhile.
pub(super) enum Event {
    /// The query of this number is answered.
    Refuted(usize, Refutation),
    /// Nothing for some time.
    Nothing,
}

/// The caller hears of something at least this often.
const EVENT_EVERY: Duration = Duration::from_millis(20);

/// Asks at several desks, each on a thread of its own, until it is known what is wanted: the number of a query and its
/// outcome; none if all are refuted, or, of [`Wanted::AnyAnswer`], if there is no completion among the answers. Where `tell`
/// breaks, everything is stopped.
pub(super) fn ask(
    questions: &[Question<'_>],
    wanted: Wanted,
    solvers: &mut [Box<dyn QuerySolver>],
    control: &Control,
    tell: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Option<(usize, Outcome)> {
    // Queries with a higher number than `last` are abandoned. Numbers begin at 1.
    let (next, last) = (AtomicUsize::new(1), AtomicUsize::new(usize::MAX));
    let (sender, receiver) = mpsc::channel();
    let mut found: Option<(usize, Outcome)> = None;
    thread::scope(|scope| {
        for solver in solvers.iter_mut().take(questions.len()) {
            let (next, last, sender) = (&next, &last, sender.clone());
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let task = Task::new(control, number, last);
                    let Some(question) = questions.get(number - 1).filter(|_| !task.is_stopped()) else {
                        return;
                    };
                    let outcome = solver.ask(question, task);
                    match (wanted, &outcome) {
                        (Wanted::FirstOpen, Outcome::Refuted(_)) => {}
                        (Wanted::FirstOpen, _) => drop(last.fetch_min(number, Ordering::Relaxed)),
                        (Wanted::AnyAnswer, Outcome::Refuted(_) | Outcome::Completed(_)) => {
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
            let event = match receiver.recv_timeout(EVENT_EVERY) {
                Ok((number, Outcome::Refuted(refutation))) => Event::Refuted(number, refutation),
                Ok((number, outcome)) => {
                    let counts = wanted == Wanted::FirstOpen || matches!(outcome, Outcome::Completed(_));
                    if counts && found.as_ref().is_none_or(|&(first, _)| number < first) {
                        found = Some((number, outcome));
                    }
                    Event::Nothing
                }
                Err(RecvTimeoutError::Timeout) => Event::Nothing,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if tell(event).is_break() {
                control.stop();
            }
        }
    });
    found
}

/// What the threads of a run share: whether they are to stop, and what they have done.
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    nodes: AtomicU64,
    programmes: AtomicU64,
}

impl Control {
    /// Ends all that is done under it, soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was ended.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Nodes of all searches.
    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// All that was done, in about the time of a programme.
    pub(super) fn work(&self) -> u64 {
        self.programmes() + self.nodes() / 4000
    }

    /// Linear programmes that were solved.
    pub fn programmes(&self) -> u64 {
        self.programmes.load(Ordering::Relaxed)
    }
}

/// One of several queries.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    control: &'a Control,
    number: usize,
    /// Queries with higher numbers are abandoned.
    last: &'a AtomicUsize,
}

impl<'a> Task<'a> {
    pub(super) const fn new(control: &'a Control, number: usize, last: &'a AtomicUsize) -> Self {
        Self { control, number, last }
    }

    /// The only query that is asked under `control`.
    pub const fn alone(control: &'a Control) -> Self {
        static NONE: AtomicUsize = AtomicUsize::new(usize::MAX);
        Self { control, number: 0, last: &NONE }
    }

    /// Whether nobody wants the answer any more.
    pub fn is_stopped(self) -> bool {
        self.control.is_stopped() || self.last.load(Ordering::Relaxed) < self.number
    }

    /// So many nodes were searched for it.
    pub fn add_nodes(self, nodes: u64) {
        self.control.nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    /// So many programmes were solved for it.
    pub fn add_programmes(self, programmes: u64) {
        self.control.programmes.fetch_add(programmes, Ordering::Relaxed);
    }
}

/// Solvers are stopped with their task.
impl ProgressSink for Task<'_> {
    fn look(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}
