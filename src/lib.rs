//! Exact counts of placements of n non-attacking queens (OEIS A000170), and of the completions of a partial
//! board, with what proves each number kept beside it.
//!
//! The rooms stand on floors, and imports run downward only (ARCHITECTURE.md draws them):
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`board`]: squares, pieces, problems, checkers; `atomic_file`: files that are replaced atomically |
//! | 1 | [`symmetry`]: the group of the square; [`oeis`]: published values; [`proof`]: certificates and their checkers; [`render`]: drawings |
//! | 2 | [`decomposition`]: canonical weighted prefixes, jobs, units; [`tally`]: exact sums |
//! | 3 | [`kernel`]: what counts one subproblem; [`checkpoint`]: the file of `--resume` |
//! | 3 | [`solver`]: classical methods, exact solvers with certificates, integer programming |
//! | 4 | [`engine`]: whole jobs on every core, estimates |
//! | 5 | [`cluster`]: coordinator and workers, with floors of its own |
//! | 5 | [`batch`]: plans, parts and scripts for batch systems; [`bench`](mod@bench): comparisons of counts |
//! | 6 | [`cli`]: the commands |
//!
//! Counting a board, all of it or its completions ([`engine`]):
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
//! One solution, checked by code that knows nothing of the method ([`solver::classical`]); the first one with a proof ([`solver::first`]); a count
//! in parts ([`decomposition`]): there are the examples.

pub use nqueens_proof as proof;
pub use nqueens_proof::{board, symmetry};
pub use nqueens_solver as solver;

mod atomic_file;
pub mod batch;
pub mod bench;
pub mod checkpoint;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod decomposition;
pub mod engine;
pub mod kernel;
pub mod oeis;
#[cfg(feature = "render")]
pub mod render;
pub mod tally;
