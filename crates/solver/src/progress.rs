//! What a long run tells while it runs, and how it is stopped.

use std::ops::ControlFlow;
use std::time::Duration;

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Rows that are decided, levels of cost that are fixed, or solutions found: what the method advances by.
    pub level: usize,
    /// The bound that the solver has proved for the programme in hand, if it tells.
    pub bound: Option<f64>,
    /// Nodes of all searches so far, those of the solver included.
    pub nodes: u64,
}

/// Whoever started a run. Every method asks often (well below a second apart) whether it may go on.
pub trait ProgressSink {
    /// Is told how far the run is. [`ControlFlow::Break`] ends it soon.
    fn look(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// The time that is left to the run; `None` if there is no limit.
    fn time_left(&self) -> Option<Duration>;

    /// Is told in words where the run is, for people, whenever that changes.
    fn tell(&mut self, _place: &dyn Fn() -> String) {}
}

/// Nobody watches: the run goes on until it is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ProgressSink for Unobserved {
    fn look(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}

/// The watch of one step of a method: it adds the level, and the nodes of the steps before.
#[derive(Debug)]
pub(super) struct Step<'a, W: ?Sized> {
    pub(super) watch: &'a mut W,
    pub(super) level: usize,
    pub(super) nodes: u64,
}

impl<W: ProgressSink + ?Sized> ProgressSink for Step<'_, W> {
    fn look(&mut self, progress: &Progress) -> ControlFlow<()> {
        let nodes = self.nodes + progress.nodes;
        self.watch.look(&Progress { level: self.level, nodes, ..*progress })
    }

    fn time_left(&self) -> Option<Duration> {
        self.watch.time_left()
    }

    fn tell(&mut self, place: &dyn Fn() -> String) {
        self.watch.tell(place);
    }
}
