//! `exact`: the first solution by completion queries, each answered by a completion or a refutation in integers.

mod budget;
mod knapsack;
mod lexicographic;
mod programme;
mod query;
mod residual;
mod width;

pub use lexicographic::{Found, Options, Refutations, first};

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::optimise::watch::{Progress, Watch};

/// The largest board.
pub const LARGEST: usize = 128;

/// What the threads of a run share: whether they are to stop, and what they have done.
#[derive(Debug, Default)]
struct Control {
    stopped: AtomicBool,
    nodes: AtomicU64,
    programmes: AtomicU64,
}

impl Control {
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn add_nodes(&self, nodes: u64) {
        self.nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    fn add_programme(&self) {
        self.programmes.fetch_add(1, Ordering::Relaxed);
    }

    fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    fn programmes(&self) -> u64 {
        self.programmes.load(Ordering::Relaxed)
    }
}

/// One of several queries of which the first with a completion is wanted.
#[derive(Clone, Copy, Debug)]
struct Task<'a> {
    control: &'a Control,
    number: usize,
    /// The first one that is known to have a completion.
    completed: &'a AtomicUsize,
}

impl Task<'_> {
    /// Whether nobody wants the answer any more.
    fn is_stopped(&self) -> bool {
        self.control.is_stopped() || self.completed.load(Ordering::Relaxed) < self.number
    }
}

/// Solvers are stopped with their task.
impl Watch for Task<'_> {
    fn look(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}
