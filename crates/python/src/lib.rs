//! The native part of the Python package `nqueens_exact` (folder `python`).
//!
//! Python code checks nothing: sizes, squares and names arrive as texts and are parsed as the
//! command line parses them, so that the errors have the same texts. All functions release the
//! interpreter's lock while they work, and look for signals about every 20 ms.
//!
//! | module | contents |
//! |---|---|
//! | `watcher` | signals and the progress callback of a run |
//! | `errors` | exceptions |
//! | `counting`, `solving`, `proving` | requests |
//! | `stream` | all solutions, from a thread that runs ahead |
//! | `coordinator` | a client of a coordinator |

mod coordinator;
mod counting;
mod errors;
mod proving;
mod solving;
mod stream;
mod watcher;

use nqueens::board::Problem;
use nqueens_bindings::{Squares, board, piece, size};
use pyo3::prelude::*;

use errors::raise;

/// A board: a piece, a size and decided squares.
#[pyclass(frozen, module = "nqueens_exact._native")]
struct Board {
    problem: Problem,
}

#[pymethods]
impl Board {
    #[new]
    fn new(
        py: Python<'_>,
        n: &str,
        place: &str,
        block: &str,
        piece_name: &str,
        largest: usize,
    ) -> PyResult<Self> {
        let problem = || {
            let (place, block) = (Squares::Text(place), Squares::Text(block));
            board(piece(piece_name)?, size(n, largest)?, &place, &block)
        };
        problem().map(|problem| Self { problem }).map_err(|failure| raise(py, failure))
    }
}

#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Board>()?;
    module.add_class::<stream::SolutionStream>()?;
    module.add_class::<coordinator::CoordinatorClient>()?;
    for function in [
        wrap_pyfunction!(counting::count, module)?,
        wrap_pyfunction!(counting::classes, module)?,
        wrap_pyfunction!(counting::estimate, module)?,
        wrap_pyfunction!(counting::known, module)?,
        wrap_pyfunction!(solving::solve, module)?,
        wrap_pyfunction!(solving::validate, module)?,
        wrap_pyfunction!(solving::fingerprint, module)?,
        wrap_pyfunction!(solving::svg, module)?,
        wrap_pyfunction!(proving::first, module)?,
        wrap_pyfunction!(proving::beautiful, module)?,
        wrap_pyfunction!(proving::check, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
