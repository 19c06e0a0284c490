//! Exceptions.

use nqueens_bindings::Failure;
use pyo3::prelude::*;

/// Returns the exception for a failure. Its class is chosen by `nqueens_exact._errors`.
pub(crate) fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    let Failure { class, message, best } = failure;
    let best = best.map(|placement| {
        let columns: Vec<usize> = placement.columns().flatten().map(|col| col + 1).collect();
        (columns, placement.piece().name())
    });
    let error = py
        .import("nqueens_exact._errors")
        .and_then(|module| module.getattr("exception"))
        .and_then(|exception| exception.call1((class as u8, message, best)));
    error.map_or_else(|error| error, PyErr::from_value)
}
