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

/// An entry of a solver's log: the state of branch and bound on a 0-1 program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogEntry {
    /// Nodes of branch and bound so far, without the root.
    pub nodes: u64,
    /// The bound on the objective, if one is proved.
    pub bound: Option<f64>,
    /// The objective of the best point found so far.
    pub incumbent: Option<f64>,
    /// Iterations of the simplex method so far, if the solver reports them.
    pub lp_iterations: Option<u64>,
    /// Rows that separation has added; `None` from a solver, which does not know which rows of its
    /// program are cuts.
    pub cuts: Option<usize>,
}

/// The receiver of progress reports. Every method calls it often (well below a second apart) and
/// stops on request.
pub trait ProgressSink {
    /// Receives the progress. Returning [`ControlFlow::Break`] ends the run soon afterwards.
    fn report(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Returns the time left for the run, or `None` if there is no limit.
    fn time_left(&self) -> Option<Duration> {
        None
    }

    /// Receives a human-readable description of the run's position whenever that changes.
    fn describe(&mut self, _position: &dyn Fn() -> String) {}

    /// Returns the number of nodes between two entries of the solver's log, at least 1, or `None`
    /// if no log is wanted.
    fn log_interval(&self) -> Option<u64> {
        None
    }

    /// Receives an entry of the solver's log: at these intervals of nodes, after each round of
    /// separation, and at the end.
    fn log(&mut self, _entry: &LogEntry) {}
}

/// Reports the progress. Returns whether the run must stop: on request, or because no time is left.
pub(crate) fn is_over(sink: &mut dyn ProgressSink, progress: &Progress) -> bool {
    sink.report(progress).is_break() || sink.time_left().is_some_and(|left| left.is_zero())
}

/// A progress sink that ignores all reports and never stops the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ProgressSink for Unobserved {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
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

    fn log_interval(&self) -> Option<u64> {
        self.sink.log_interval()
    }

    fn log(&mut self, entry: &LogEntry) {
        self.sink.log(&LogEntry { nodes: self.nodes + entry.nodes, ..*entry });
    }
}

/// The progress sink for an auxiliary program, whose nodes and bounds are not those of the log.
pub(super) struct WithoutLog<'a>(pub(super) &'a mut dyn ProgressSink);

impl ProgressSink for WithoutLog<'_> {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.0.report(progress)
    }

    fn time_left(&self) -> Option<Duration> {
        self.0.time_left()
    }
}
