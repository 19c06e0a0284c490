//! Exact counts of placements of n non-attacking queens (OEIS A000170) and of the completions of a
//! partial board, and solvers that prove first and most beautiful solutions.
//!
//! A module imports only from layers below its own (ARCHITECTURE.md has the whole table):
//!
//! | layer | modules |
//! |---|---|
//! | 0 | [`board`]: squares, pieces, problems, checkers; `atomic_file`: files that are replaced atomically |
//! | 1 | [`symmetry`]: the symmetries of the square; [`oeis`]: published values; [`proof`]: certificates and their checkers; [`render`]: drawings |
//! | 2 | [`decomposition`]: canonical weighted prefixes, jobs, units; [`tally`]: exact sums |
//! | 3 | [`kernel`]: counting the completions of prefixes; [`checkpoint`]: the file of `--resume` |
//! | 3 | [`solver`]: classical methods, exact solvers with certificates, integer programming |
//! | 4 | `executor`: threads for cores and devices, which count units of any source |
//! | 4 | [`report`]: jobs and proofs as the command line and the dashboard show them |
//! | 4 | [`fleet`]: forecasts of campaigns: time, energy, cost of the checks |
//! | 5 | [`engine`]: whole jobs, estimates |
//! | 6 | [`cluster`]: coordinator and workers, with layers of its own |
//! | 6 | [`audit`]: audits of counts that others have published |
//! | 6 | [`batch`]: plans, parts and scripts for batch systems |
//! | 7 | [`cli`]: the commands |
//!
//! Count the solutions or the completions of a board ([`engine`]):
//!
//! ```
//! use nqueens::board::{Piece, Problem, parse_squares};
//! use nqueens::engine::{CountOptions, count};
//!
//! let outcome = count(&Problem::empty(Piece::Queen, 8), &CountOptions::default())?;
//! assert_eq!(outcome.solutions, 92);
//!
//! let (placed, blocked) = (parse_squares("1,1")?, parse_squares("2,3 5,5")?);
//! let board = Problem::new(Piece::Queen, 8, placed, blocked)?;
//! assert_eq!(count(&board, &CountOptions::default())?.solutions, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules have more examples: one solution, verified by an independent checker
//! ([`solver::classical`]); the first solution with a proof ([`solver::first`]); a count in parts
//! ([`decomposition`]).

pub use nqueens_proof as proof;
pub use nqueens_proof::{board, symmetry};
pub use nqueens_solver as solver;

mod atomic_file;
pub mod audit;
pub mod batch;
pub mod bench;
#[cfg(feature = "cli")]
pub mod board_file;
pub mod checkpoint;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod decomposition;
pub mod engine;
mod executor;
#[cfg(feature = "cluster")]
pub mod fleet;
pub mod kernel;
pub mod oeis;
#[cfg(feature = "render")]
pub mod render;
#[cfg(feature = "cluster")]
pub mod report;
pub mod tally;
#[cfg(feature = "cluster")]
pub mod transparency;
