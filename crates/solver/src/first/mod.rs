//! `exact`: the first solution by completion queries, each answered by a completion or by a
//! refutation in integers that [`nqueens_proof`] can check.
//!
//! | file | contents |
//! |---|---|
//! | `lexicographic.rs` | the order of the queries, and the first solution derived from their answers |
//! | `board.rs` | the board that is to be completed, and the limits of queries about it |
//! | `decider.rs` | a prefix decided by queries about it and about longer ones |
//! | `decision_job.rs` | the jobs of a decider: queries, or series of them |
//! | `round.rs` | the rounds in which a prefix is settled: their jobs and work limit |
//! | `concurrent_queries.rs` | concurrent jobs and their solvers |
//! | `schedule.rs` | the order in which solvers begin jobs and help with others |
//! | `query.rs` | one query, with the state that its solver keeps |
//! | `completion_search.rs` | its search: linear relaxations, knapsacks, dives, limited search under dual bounds, branching |
//! | `set_search.rs` | its search through listed sets of diagonals |
//! | `dive.rs` | randomized searches for a completion with restarts |
//! | `marginals.rs` | the distribution of greatest entropy of the queens of a completion |
//! | `probing.rs` | elimination of cells by probing |
//! | `proofs.rs` | proofs of earlier queries that several solvers share |
//! | `residual.rs` | the residual board |
//! | `residual/propagation.rs` | its propagation over rows, columns and both families of diagonals |
//! | `limited_search.rs` | node-limited exhaustive search |
//! | `limits.rs` | the limits of a query |
//! | `listed_sets.rs` | the listed sets of diagonals of a board |
//! | `lp_states.rs` | the LPs that several queries share, and their states |
//! | `components.rs` | blocks of rows that share no columns, searched one after the other |
//! | `dual_bound.rs` | integer multipliers, and the cells that they eliminate |
//! | `refuted_positions.rs` | the refuted positions that searches remember |
//! | `relaxation.rs` | the linear relaxations whose duals propose the multipliers, with column generation |
//! | `knapsack.rs` | the heaviest set of diagonals of a given number and sum |
//! | `known_multipliers.rs` | the multipliers that refuted boards, for similar boards |
//! | `params.rs` | the tuned constants |
//! | `placements.rs` | the placements of the first blocks, found before the last one is searched |
//! | `pricing.rs` | the pricing problem of the column generation, and the test of multipliers on a board |
//! | `resume.rs` | the refutations of a run, stored for a later run |
//! | `set_pool.rs` | the sets of diagonals that column generation found for earlier queries |
//! | `sizes.rs` | number of remaining cells of each column |
//! | `weights.rs` | failure weights of rows and columns, for branching |
//! | `width.rs` | word widths of the sets of columns and diagonals, by board size |
//! | `window.rs` | the open part of a board in narrower words |
//!
//! **Search.** A query asks for a completion of a prefix, the queens of the first rows. The longest
//! part of the greedy prefix that has a completion is found by bisection, and the remaining rows
//! are decided one by one from their free columns, left to right (OEIS A141843).
//!
//! **Proof.** A refutation is integer multipliers of rows, columns and diagonals, possibly below
//! decided and eliminated cells, which [`nqueens_proof`] adds up; see its module for the format.
//!
//! **Remote interface.** A [`PrefixQuery`] is a query for another machine; its answer is a
//! [`QueryOutcome`], and a refutation is checked before it is part of a certificate.
//!
//! Why knapsacks help: the antidiagonals r + c used by a completion are distinct, as many as there
//! are open rows, and their sum is the sum of the open rows and columns. The same holds for the
//! diagonals c - r. Near the row where the greedy prefix ends, the board is so tight that nearly
//! all central diagonals must be used. A linear relaxation reaches the right sum with half-used
//! diagonals at the ends; a set of whole diagonals often cannot.

mod board;
mod completion_search;
mod components;
mod concurrent_queries;
mod control;
mod decider;
mod decision_job;
mod dive;
mod dual_bound;
mod knapsack;
mod known_multipliers;
mod lexicographic;
mod limited_search;
mod limits;
mod listed_sets;
mod lp_states;
mod marginals;
mod params;
mod placements;
mod pricing;
mod probing;
mod proofs;
mod query;
mod refuted_positions;
mod relaxation;
mod residual;
pub mod resume;
mod round;
mod schedule;
mod set_pool;
mod set_search;
mod sizes;
#[cfg(test)]
mod tests;
mod weights;
mod width;
mod window;

pub use concurrent_queries::PrefixQuery;
pub use control::{Control, SolverSource, Task};
pub use known_multipliers::KnownMultipliers;
pub use lexicographic::{Found, Options, Refutations, first_solution, first_solution_with};
pub use params::SEARCH_NODES_PER_LP;
pub use query::{
    QueryOutcome, QuerySolver, QuerySolverFactory, decide_by_propagation, query_solvers,
};

/// The largest supported board size.
pub const LARGEST: usize = 128;
