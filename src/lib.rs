//! Exact counts of placements of n non-attacking queens (OEIS A000170), and of the completions of a partial
//! board, with what proves each number kept beside it.
//!
//! The rooms stand on floors, and imports run downward only (ARCHITECTURE.md draws them):
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`board`]: squares, pieces, problems, checkers; `whole_file`: files that appear whole; `net`: connections of servers |
//! | 1 | [`symmetry`]: the group of the square; [`known`]: published values; [`proof`]: certificates and their checkers; [`render`]: drawings |
//! | 2 | [`preplacement`]: canonical weighted prefixes, jobs, units; [`tally`]: exact sums |
//! | 3 | [`kernel`]: what counts one subproblem; [`ledger`]: what keeps a finished unit |
//! | 3 | [`solver`]: what places queens, integer and constraint programming, exact solvers with certificates |
//! | 3 | [`campaign`]: who counts which unit, and what is believed; [`authority`]: who may talk to a coordinator |
//! | 4 | [`engine`]: whole jobs on every core, estimates; [`wire`]: the protocol's messages and links |
//! | 5 | [`coordinator`]: hands units out and judges results; [`worker`]: counts them |
//! | 5 | [`cluster`]: plans, parts and scripts for batch systems |
//! | 5 | [`dashboard`]: a page for browsers that shows a coordinator and steers it |
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
//! in parts ([`preplacement`]): there are the examples.

pub use nqueens_proof as proof;
pub use nqueens_proof::{board, symmetry};
pub use nqueens_solver as solver;

pub mod authority;
pub mod campaign;
pub mod cli;
pub mod cluster;
pub mod coordinator;
pub mod dashboard;
pub mod engine;
pub mod kernel;
pub mod known;
pub mod ledger;
mod net;
pub mod preplacement;
pub mod render;
pub mod tally;
mod whole_file;
pub mod wire;
pub mod worker;
