//! The most beautiful queens (Knuth; Fischetti and Salvagnin, arXiv 1907.08246).
//!
//! The cost of a square is its distance from the centre in a [`Norm`]. The fingerprint of a
//! solution is the list of its costs in descending order. A most beautiful solution has the
//! lexicographically smallest fingerprint.
//!
//! | file | contents |
//! |---|---|
//! | `exact.rs`, `engine.rs` | the interface; the engine: level by level from the largest cost |
//! | `orbits.rs` | the orbits of squares under the symmetries of the board, in levels of equal cost |
//! | `bounds.rs`, `level_bounds.rs` | the bounds proved so far; those on one level, by the orbit LP |
//! | `orbit_lp.rs`, `cliques.rs`, `lp_witnesses.rs` | the linear relaxation of the number of queens on each orbit; its clique cuts; its feasible points |
//! | `board_lp.rs`, `lp_search.rs` | the linear relaxation of the whole board, and a search that solves it |
//! | `dive.rs`, `background_dives.rs` | attempts to find a better incumbent; on threads of their own |
//! | `presolve.rs` | elimination of squares before a search |
//! | `cases.rs` | a trial split by the number of queens on the outermost open levels |
//! | `csp.rs`, `propagation.rs`, `search.rs` | the constraint satisfaction problem of a trial, unit propagation, and the sequential search |
//! | `concurrent.rs` | tasks of a trial on several threads: the cases, probes of orbits |
//! | `orbit_search.rs`, `parallel_search.rs`, `subtree_task.rs` | long searches in parallel subtrees, here and at remote searchers |
//! | `proof_log.rs`, `resume.rs` | the certificate while it is written; the checkpoint of a run |
//! | `params.rs` | the tuned constants |
//!
//! **Bounds.** An incumbent gives an upper bound on the number of queens on each level, the orbit
//! LP a lower bound. Where they meet, the level is fixed. Where they differ, a *trial* assumes that
//! the level has fewer queens and is decided by a search: a solution is a better incumbent, and a
//! refutation raises the lower bound.
//!
//! **Proof.** Each bound and each refutation is a record in integers that
//! [`nqueens_proof::beautiful`] checks: multipliers of the orbit LP or of the board LP, or the tree
//! of a search, whose leaves are refuted by propagation.
//!
//! **Remote interface.** A [`SubtreeTask`] has the path to a node of a search; a [`Searcher`]
//! answers it with the tree below, which is validated before it is used ([`ValidatedAnswer`]).

mod background_dives;
mod board_lp;
mod bounds;
mod cases;
mod cliques;
mod concurrent;
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
mod params;
mod passes;
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
