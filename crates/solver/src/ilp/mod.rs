//! Integer programming: the n-queens problem as a 0-1 program, solvers behind a common trait, and
//! the methods that use them (Fischetti and Salvagnin, arXiv 1907.08246).
//!
//! Floating-point solvers are never trusted. Their solutions are rounded and passed to the checker;
//! their claims (optimal, infeasible) count only if [`counterexample`] confirms them. An answer
//! without confirmation is merely the best one found,
//! [`Verdict::NotProven`](crate::Verdict::NotProven).

mod beautiful;
pub mod counterexample;
pub mod cuts;
pub mod exclusion;
mod first;
mod formulation;
#[cfg(feature = "highs")]
mod highs;
mod micro_lp;
pub mod model;
pub mod model_file;
mod rounding;
mod single_solution;
mod solver;

pub use beautiful::most_beautiful;
pub use first::{
    FirstMethod, TooLarge, UnknownFirstMethod, lex_dfs_with_cuts, lexicographic_first,
};
pub use formulation::{Formulation, Lines, UnknownFormulation};
#[cfg(feature = "highs")]
pub use highs::Highs;
pub use micro_lp::MicroLp;
pub use rounding::completes;
pub use single_solution::{Goal, heaviest, largest_set, one_solution};
pub use solver::{IntegerOutcome, Linear, LinearOutcome, Solver, Status, TOLERANCE, Vertex};

/// The best compiled-in solver: HiGHS, or microlp.
#[cfg(feature = "highs")]
pub const BEST_SOLVER: &dyn Solver = &Highs;
/// The best compiled-in solver: HiGHS, or microlp.
#[cfg(not(feature = "highs"))]
pub const BEST_SOLVER: &dyn Solver = &MicroLp;
