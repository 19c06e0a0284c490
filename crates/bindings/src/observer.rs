//! Progress reports and cancellation.

use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use nqueens::solver::classical::AnswerSink;
use nqueens::solver::{self, ProgressSink};

use crate::failure::Failure;

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The fraction of the work that is done, from 0 to 1; `None` if it is unknown.
    pub fraction: Option<f64>,
    /// The finished units of a count; the rows or cost levels decided by a proof.
    pub done: u64,
    /// The number of units of a count; 0 if it is unknown.
    pub all: u64,
    /// The solutions counted so far.
    pub solutions: u128,
    /// The nodes, moves or configurations tried so far; 0 for a count.
    pub nodes: u64,
    /// The time since the start in seconds.
    pub elapsed_s: f64,
    /// The time left in seconds, if it is known.
    pub left_s: Option<f64>,
}

/// The receiver of progress reports. It is called on the thread that made the request.
pub trait Observer {
    /// Receives the progress, about every 20 ms. Returning [`ControlFlow::Break`] ends the run with
    /// a failure of class [`Interrupted`](crate::FailureClass::Interrupted).
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// An observer that ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The time between two calls of an observer, which may have to wait for an interpreter's lock.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// Passes reports on to an observer, at most every [`INTERVAL`], and ends a run at its time limit.
pub(crate) struct Throttle<'a> {
    observer: &'a mut dyn Observer,
    began: Instant,
    last: Instant,
    limit: Option<Duration>,
    is_interrupted: bool,
}

impl<'a> Throttle<'a> {
    /// Creates a throttle for a run that begins now, and may take until a time limit.
    pub(crate) fn new(observer: &'a mut dyn Observer, limit: Option<Duration>) -> Self {
        let now = Instant::now();
        Self { observer, began: now, last: now, limit, is_interrupted: false }
    }

    /// Returns whether the observer ended the run.
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the time until the limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.limit.map(|limit| limit.saturating_sub(self.elapsed()))
    }

    /// Reports `progress`, whose times are filled in if it has none, if a report is due.
    pub(crate) fn report(&mut self, progress: impl FnOnce() -> Progress) -> ControlFlow<()> {
        if self.last.elapsed() >= INTERVAL {
            return self.report_now(progress());
        }
        self.flow()
    }

    /// Reports `progress` at once.
    pub(crate) fn report_now(&mut self, progress: Progress) -> ControlFlow<()> {
        let elapsed_s = self.elapsed().as_secs_f64();
        if self.observer.observe(&Progress { elapsed_s, ..progress }).is_break() {
            self.is_interrupted = true;
        }
        self.last = Instant::now();
        self.flow()
    }

    fn flow(&self) -> ControlFlow<()> {
        if self.is_interrupted || self.time_left() == Some(Duration::ZERO) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl ProgressSink for Throttle<'_> {
    fn report(&mut self, progress: &solver::Progress) -> ControlFlow<()> {
        let (done, nodes) = (progress.level as u64, progress.nodes);
        Throttle::report(self, || Progress { done, nodes, ..Progress::default() })
    }

    fn time_left(&self) -> Option<Duration> {
        Throttle::time_left(self)
    }
}

/// Receives the first solution of a classical method.
pub(crate) struct FirstSolution<'a, 'b> {
    pub(crate) throttle: &'a mut Throttle<'b>,
    /// The nodes or moves after which the method is stopped.
    pub(crate) most: u64,
    pub(crate) columns: Option<Vec<usize>>,
}

impl AnswerSink for FirstSolution<'_, '_> {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.columns = Some(columns.to_owned());
        ControlFlow::Break(())
    }

    fn report(&mut self, nodes: u64) -> ControlFlow<()> {
        self.throttle.report(|| Progress { nodes, ..Progress::default() })?;
        if nodes >= self.most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs `work`, which cannot be stopped, on a thread of its own. If the observer ends the run, the
/// thread ends by itself later, and its result is discarded.
pub(crate) fn run_beside<T: Send + 'static>(
    observer: &mut dyn Observer,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let mut throttle = Throttle::new(observer, None);
    let (sender, receiver) = sync_channel(1);
    // The receiver is gone if the run was ended.
    let thread = std::thread::spawn(move || sender.send(work()).is_ok());
    loop {
        match receiver.recv_timeout(INTERVAL) {
            Ok(result) => {
                let _ = thread.join();
                return Ok(result);
            }
            Err(RecvTimeoutError::Timeout) => {
                if throttle.report_now(Progress::default()).is_break() {
                    return Err(Failure::interrupted());
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let class = crate::FailureClass::CheckFailed;
                return Err(Failure::new(class, "a thread ended unexpectedly"));
            }
        }
    }
}
