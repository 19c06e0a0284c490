//! Progress reports and cancellation of long runs.

use std::ops::ControlFlow;
use std::time::Duration;

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Number of rows decided, cost levels fixed or solutions found, depending on the method.
    pub level: usize,
    /// The bound that the solver has proved for the current program, if it reports one.
    pub bound: Option<f64>,
    /// Nodes of all searches so far, including those of the solver.
    pub nodes: u64,
}

/// The receiver of progress reports. Every method calls it often (well below a second apart) and
/// stops on request.
pub trait ProgressSink {
    /// Receives the progress. Returning [`ControlFlow::Break`] ends the run soon afterwards.
    fn report(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Returns the time left for the run, or `None` if there is no limit.
    fn time_left(&self) -> Option<Duration>;

    /// Receives a human-readable description of the run's position whenever that changes.
    fn describe(&mut self, _position: &dyn Fn() -> String) {}
}

/// A progress sink that ignores all reports and never stops the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ProgressSink for Unobserved {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}

/// The progress sink for one step of a method. It adds the level and the nodes of earlier steps.
#[derive(Debug)]
pub(super) struct Step<'a, W: ?Sized> {
    pub(super) sink: &'a mut W,
    pub(super) level: usize,
    pub(super) nodes: u64,
}

impl<W: ProgressSink + ?Sized> ProgressSink for Step<'_, W> {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        let nodes = self.nodes + progress.nodes;
        self.sink.report(&Progress { level: self.level, nodes, ..*progress })
    }

    fn time_left(&self) -> Option<Duration> {
        self.sink.time_left()
    }

    fn describe(&mut self, position: &dyn Fn() -> String) {
        self.sink.describe(position);
    }
}
