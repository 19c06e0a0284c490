//! Signals and the progress callback of a run.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use nqueens_bindings::{Failure, Observer, Progress};
use pyo3::prelude::*;

use crate::errors::raise;

/// Looks for signals, and passes the progress on to a callback, at most ten times a second.
pub(crate) struct Watcher {
    callback: Option<Py<PyAny>>,
    last: Instant,
    /// The exception of a signal handler or of the callback.
    error: Option<PyErr>,
}

impl Watcher {
    const INTERVAL: Duration = Duration::from_millis(100);

    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, last: Instant::now(), error: None }
    }

    /// Runs a request without the interpreter's lock, and returns its result, or the exception that
    /// ended it.
    pub(crate) fn run<T: Send>(
        mut self,
        py: Python<'_>,
        request: impl FnOnce(&mut dyn Observer) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| request(&mut self));
        match self.error {
            Some(error) => Err(error),
            None => result.map_err(|failure| raise(py, failure)),
        }
    }

    fn call(&mut self, progress: &Progress) -> PyResult<()> {
        let is_last = progress.fraction == Some(1.0);
        let is_due = is_last || self.last.elapsed() >= Self::INTERVAL;
        Python::attach(|py| {
            py.check_signals()?;
            let Some(callback) = self.callback.as_ref().filter(|_| is_due) else { return Ok(()) };
            self.last = Instant::now();
            let Progress { fraction, done, all, solutions, nodes, elapsed_s, left_s } = *progress;
            let values = (fraction, done, all, solutions, nodes, elapsed_s, left_s);
            callback.call1(py, values).map(drop)
        })
    }
}

impl Observer for Watcher {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        match self.call(progress) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
