//! Exact counts of placements of n non-attacking queens (OEIS A000170), and of the completions of a partial
//! board, with what proves each number kept beside it.
//!
//! The rooms stand on floors, and imports run downward only (ARCHITECTURE.md draws them):
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`board`]: squares, pieces, problems, checkers, drawings; `whole_file`: files that appear whole |
//! | 1 | [`symmetry`]: the group of the square; [`known`]: published values; [`proof`]: certificates and their checker |
//! | 2 | [`preplacement`]: canonical weighted prefixes, jobs, units; [`tally`]: exact sums |
//! | 3 | [`kernel`]: what counts one subproblem; [`search`]: what places queens; [`ledger`]: what keeps a finished unit |
//! | 3 | [`optimise`]: integer and constraint programming, and the referee of what solvers claim |
//! | 3 | [`campaign`]: who counts which unit, and what is believed; [`authority`]: who may talk to a coordinator |
//! | 4 | [`engine`]: whole jobs on every core, estimates; [`wire`]: the protocol's messages and links |
//! | 5 | [`coordinator`]: hands units out and judges results; [`worker`]: counts them |
//! | 5 | [`cluster`]: plans, parts and scripts for batch systems |
//! | 5 | [`dashboard`]: a page for browsers that shows a coordinator and steers it |
//! | 6 | [`cli`]: the commands |
//!
//! ```
//! use nqueens::board::{Piece, Problem};
//! use nqueens::engine::{CountOptions, count};
//!
//! let outcome = count(&Problem::empty(Piece::Queen, 8), &CountOptions::default()).unwrap();
//! assert_eq!(outcome.solutions, 92);
//! ```

pub mod authority;
pub mod board;
pub mod campaign;
pub mod cli;
pub mod cluster;
pub mod coordinator;
pub mod dashboard;
pub mod engine;
pub mod kernel;
pub mod known;
pub mod ledger;
pub mod optimise;
pub mod preplacement;
pub mod proof;
pub mod search;
pub mod symmetry;
pub mod tally;
mod whole_file;
pub mod wire;
pub mod worker;
