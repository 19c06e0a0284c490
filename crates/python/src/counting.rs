//! Counts, estimates and published values.

use std::num::NonZeroUsize;

use nqueens::engine::{CountOptions, Mean, TimeForecast};
use nqueens_bindings::{self as bindings, EstimateRequest, Estimated};
use pyo3::prelude::*;

use crate::Board;
use crate::errors::raise;
use crate::watcher::Watcher;

/// Parses a number of threads.
pub(crate) fn threads(py: Python<'_>, text: Option<&str>) -> PyResult<Option<NonZeroUsize>> {
    text.map(bindings::threads).transpose().map_err(|failure| raise(py, failure))
}

fn options(py: Python<'_>, device: &str, text: Option<&str>) -> PyResult<CountOptions> {
    bindings::count_options(device, threads(py, text)?).map_err(|failure| raise(py, failure))
}

/// Counts the completions of a board.
#[pyfunction]
pub(crate) fn count(
    py: Python<'_>,
    board: &Bound<'_, Board>,
    device: &str,
    threads: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<u128> {
    let options = options(py, device, threads)?;
    let problem = &board.get().problem;
    let outcome =
        Watcher::new(progress).run(py, |observer| bindings::count(problem, &options, observer))?;
    Ok(outcome.solutions)
}

/// Counts the solutions of an empty board by symmetry: all, fundamental, unchanged by a half turn,
/// by a quarter turn.
#[pyfunction]
pub(crate) fn classes(
    py: Python<'_>,
    board: &Bound<'_, Board>,
    device: &str,
    threads: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u128, u128, u128, u128)> {
    let options = options(py, device, threads)?;
    let problem = &board.get().problem;
    let of_board = (problem.piece(), problem.n());
    let found = Watcher::new(progress)
        .run(py, |observer| bindings::count_classes(of_board, &options, observer))?;
    let (total, fundamental) = (found.total, found.fundamental);
    Ok((total, fundamental, found.point_symmetric, found.quarter_turn_symmetric))
}

/// A mean, its standard error, and the bounds of its 90 % interval.
type Estimate = (f64, f64, f64, f64);

fn estimated(value: Mean) -> Estimate {
    let [least, most] = value.interval();
    (value.mean, value.error, least, most)
}

/// Estimates a count: solutions, nodes, dives and time; or the logarithm of the solutions, gamma,
/// runs and effective runs.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn estimate(
    py: Python<'_>,
    board: &Bound<'_, Board>,
    threads: Option<&str>,
    seconds: f64,
    seed: u64,
) -> PyResult<(
    Option<(Estimate, Estimate, u64, Option<(f64, f64, f64)>)>,
    Option<(Estimate, Estimate, u64, f64)>,
)> {
    let (problem, threads) = (board.get().problem.clone(), self::threads(py, threads)?);
    let request = EstimateRequest { problem, threads, seconds, seed };
    let found = Watcher::new(None).run(py, |observer| bindings::estimate(request, observer))?;
    Ok(match found {
        Estimated::ByDives(found) => {
            let time = |time: TimeForecast| (time.seconds, time.least_s, time.most_s);
            let (solutions, nodes) = (estimated(found.solutions), estimated(found.nodes));
            (Some((solutions, nodes, found.dives, found.time.map(time))), None)
        }
        Estimated::ByAnnealing(found) => {
            let (solutions, gamma) = (estimated(found.ln_solutions), estimated(found.gamma()));
            (None, Some((solutions, gamma, found.runs, found.effective_runs)))
        }
    })
}

/// Returns the published value of a sequence at n, if one is known.
#[pyfunction]
pub(crate) fn known(py: Python<'_>, sequence: &str, n: &str) -> PyResult<Option<u128>> {
    let value = || {
        let sequence = bindings::sequence(sequence)?;
        let n = bindings::size(n, bindings::LARGEST_SIZE)?;
        Ok(bindings::published(sequence, n))
    };
    value().map_err(|failure| raise(py, failure))
}
