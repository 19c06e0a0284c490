//! One solution, fingerprints and pictures.

use std::time::Duration;

use nqueens::board::Placement;
use nqueens_bindings::{self as bindings, Failure, Fingerprint, Method, SolveOptions};
use pyo3::prelude::*;

use crate::Board;
use crate::errors::raise;
use crate::watcher::Watcher;

/// Returns the columns from 1.
pub(crate) fn columns(placement: &Placement) -> Vec<usize> {
    placement.columns().flatten().map(|col| col + 1).collect()
}

/// Returns a time limit.
pub(crate) fn time_limit(py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let limit = |seconds| {
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            let message = format!("invalid time '{seconds}'; use a number of seconds, at least 0");
            Failure::usage(message)
        })
    };
    seconds.map(limit).transpose().map_err(|failure| raise(py, failure))
}

/// Finds one solution.
#[pyfunction]
pub(crate) fn solve(
    py: Python<'_>,
    board: &Bound<'_, Board>,
    method: Option<&str>,
    seed: Option<u64>,
    time_limit_s: Option<f64>,
) -> PyResult<Vec<usize>> {
    let method = method.map(Method::for_solving).transpose();
    let method = method.map_err(|failure| raise(py, failure))?;
    let options = SolveOptions { method, seed, time_limit: time_limit(py, time_limit_s)? };
    let problem = &board.get().problem;
    let found =
        Watcher::new(None).run(py, |observer| bindings::solve(problem, &options, observer))?;
    Ok(columns(&found))
}

fn checked(py: Python<'_>, piece: &str, columns: &[usize]) -> PyResult<Placement> {
    let placement = bindings::piece(piece).and_then(|piece| bindings::placement(piece, columns));
    placement.map_err(|failure| raise(py, failure))
}

/// Checks a solution.
#[pyfunction]
pub(crate) fn validate(py: Python<'_>, piece: &str, columns: Vec<usize>) -> PyResult<()> {
    checked(py, piece, &columns).map(drop)
}

/// Returns the fingerprint of a solution: costs, canonical image, images, symmetry.
#[pyfunction]
pub(crate) fn fingerprint(
    py: Python<'_>,
    piece: &str,
    columns: Vec<usize>,
    norm: &str,
) -> PyResult<(Vec<u64>, Vec<usize>, usize, &'static str)> {
    let norm = bindings::norm(norm).map_err(|failure| raise(py, failure))?;
    let placement = checked(py, piece, &columns)?;
    let Fingerprint { costs, canonical, images, symmetry } =
        bindings::fingerprint(&placement, norm);
    Ok((costs, canonical, images, symmetry))
}

/// Returns the picture of a solution as SVG.
#[pyfunction]
pub(crate) fn svg(
    py: Python<'_>,
    piece: &str,
    columns: Vec<usize>,
    rings: Option<&str>,
) -> PyResult<String> {
    let rings = rings.map(bindings::norm).transpose().map_err(|failure| raise(py, failure))?;
    let placement = checked(py, piece, &columns)?;
    Ok(py.detach(|| bindings::svg(&placement, rings)))
}
