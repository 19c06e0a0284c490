//! Solvers for placements of n non-attacking queens.
//!
//! | module | contents |
//! |---|---|
//! | [`classical`] | one or all placements by the classical methods: closed form, backtracking, min-conflicts, brute force |
//! | [`first`] | the lexicographically first solution (OEIS A141843), with a certificate |
//! | [`beautiful`] | the most beautiful solutions (Knuth), with a certificate |
//! | [`ilp`] | the 0-1 programs of Fischetti and Salvagnin, solvers for them, and counterexample searches that check the solvers' claims |
//! | [`simplex`] | a warm-started dual and primal simplex method for bounded variables, with duals and Farkas rays |
//! | [`cp`] | constraint programming: a search with propagation |
//!
//! Certificates are checked by [`nqueens_proof`], which shares no code with the searches.

pub mod beautiful;
mod bitset;
mod checkpoint;
pub mod classical;
pub mod cp;
mod default_methods;
pub mod first;
pub mod ilp;
mod open_board;
mod progress;
pub mod simplex;
#[cfg(test)]
mod test_support;
mod threads;
mod verdict;

pub use checkpoint::ResumeError;
pub use default_methods::{DefaultMethods, FirstAttempt};
pub use progress::{LogEntry, Progress, ProgressSink, Unobserved};
pub use verdict::{Answer, Unproven, Verdict};
