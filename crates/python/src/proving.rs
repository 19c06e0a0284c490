//! First and most beautiful solutions, and the check of certificates.

use nqueens::proof::Beauty;
use nqueens_bindings::{self as bindings, Proof};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::Board;
use crate::counting::threads;
use crate::errors::raise;
use crate::solving::{columns, time_limit};
use crate::watcher::Watcher;

/// The columns of the solution, the certificate, nodes, linear programs, and seconds.
type Proved<'py> = (Option<Vec<usize>>, Option<Bound<'py, PyBytes>>, u64, u64, f64);

fn proved(py: Python<'_>, proof: Proof) -> Proved<'_> {
    let Proof { solution, certificate, nodes, programs, elapsed } = proof;
    let certificate = certificate.map(|bytes| PyBytes::new(py, &bytes));
    (solution.as_ref().map(columns), certificate, nodes, programs, elapsed.as_secs_f64())
}

/// Finds and proves the first solution or completion.
#[pyfunction]
pub(crate) fn first<'py>(
    py: Python<'py>,
    board: &Bound<'_, Board>,
    threads: Option<&str>,
    time_limit_s: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Proved<'py>> {
    let (threads, limit) = (self::threads(py, threads)?, time_limit(py, time_limit_s)?);
    let problem = &board.get().problem;
    let proof = Watcher::new(progress)
        .run(py, |observer| bindings::first(problem, threads, limit, observer))?;
    Ok(proved(py, proof))
}

/// Finds and proves a most beautiful solution.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn beautiful<'py>(
    py: Python<'py>,
    board: &Bound<'_, Board>,
    norm: &str,
    symmetric: bool,
    threads: Option<&str>,
    time_limit_s: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Proved<'py>> {
    let norm = bindings::norm(norm).map_err(|failure| raise(py, failure))?;
    let (threads, limit) = (self::threads(py, threads)?, time_limit(py, time_limit_s)?);
    let query = (board.get().problem.n(), norm, symmetric);
    let proof = Watcher::new(progress)
        .run(py, |observer| bindings::beautiful(query, threads, limit, observer))?;
    Ok(proved(py, proof))
}

/// Checks a certificate: its kind, n, solution, norm, symmetric, work and statement.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn check(
    py: Python<'_>,
    certificate: &[u8],
    steps: Option<u64>,
) -> PyResult<(&'static str, usize, Option<Vec<usize>>, Option<(String, bool)>, u64, String)> {
    let statement =
        Watcher::new(None).run(py, |observer| bindings::check(certificate, steps, observer))?;
    let text = statement.to_string();
    let from_one = |columns: Vec<usize>| columns.into_iter().map(|col| col + 1).collect();
    let beauty = statement.beauty.map(|Beauty { norm, turning }| (norm.to_string(), turning));
    let (kind, n) = (statement.kind.name(), statement.n);
    Ok((kind, n, statement.solution.map(from_one), beauty, statement.work, text))
}
