//! The most beautiful queens (Knuth; Fischetti and Salvagnin, arXiv 1907.08246).
//!
//! The cost of a square is its distance from the centre in a [`Norm`]. The fingerprint of a
//! solution is the list of its costs in descending order. A most beautiful solution has the
//! lexicographically smallest fingerprint.

mod board_lp;
mod bounds;
mod cases;
mod cliques;
mod csp;
mod dive;
mod engine;
mod exact;
mod level_bounds;
mod lp_search;
mod lp_witnesses;
mod orbit_lp;
mod orbit_search;
mod orbits;
mod parallel_search;
mod presolve;
mod proof_log;
mod propagation;
pub mod resume;
mod search;
mod subtree_task;

use nqueens_proof::board::{Norm, Square};

pub use exact::{
    CheckpointSink, Exact, Position, Query, Stage, all_equally_beautiful, most_beautiful_exactly,
    most_beautiful_with, resume_most_beautiful,
};
pub use search::CancelToken;
pub use subtree_task::{
    MOST_NODES, Searcher, SubtreeAnswer, SubtreeSolver, SubtreeTask, ValidatedAnswer,
};

/// Returns (2i − n − 1)² + (2j − n − 1)², the cost of the square in row i and column j (1-based).
pub fn cost(n: usize, square: Square) -> u64 {
    Norm::Euclidean.cost(n, square)
}

/// Returns the costs of a solution's squares in descending order.
pub fn fingerprint(columns: &[usize]) -> Vec<u64> {
    Norm::Euclidean.fingerprint(columns)
}
