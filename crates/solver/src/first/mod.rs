//! `exact`: the first solution by completion queries, each answered by a completion or by a refutation in integers that
//! [`nqueens_proof`] can check.
//!
//! | file | what it is |
//! |---|---|
//! | `lexicographic.rs` | which queries are asked, and what the first solution is |
//! | `in_order.rs` | several queries at a time |
//! | `query.rs` | one query: linear programmes, knapsacks, dives, cheap search under budgets, branching |
//! | `dive.rs` | cheap searches for a completion, begun anew again and again |
//! | `probing.rs` | squares that no completion uses, found by trying each of them |
//! | `residual.rs` | the rest of the board, and propagation over all four families of lines |
//! | `limited_search.rs` | cheap searches |
//! | `components.rs` | parts of a board that share no columns, to search one after the other |
//! | `dual_bound.rs` | integer multipliers, and what they forbid |
//! | `relaxation.rs` | the linear programmes that propose them, and the generation of their columns |
//! | `knapsack.rs` | the heaviest set of diagonals of a given number and sum |
//! | `resume.rs` | what a run has refuted, for a later one |
//! | `sizes.rs` | how many cells each column has |
//! | `weights.rs` | which rows and columns run out of cells, to branch over them sooner |
//! | `bitset.rs` | sets in machine words |
//! | `window.rs` | the open part of a board in narrow words |
//!
//! Why the knapsacks: the antidiagonals r + c of a completion are different, as many as open rows, and their sum is that
//! of the open rows and columns; so for the diagonals c - r. Near the row where the greedy prefix ends, the board is so
//! tight that nearly all central diagonals must be used. A linear programme gets the sum right by half-used diagonals at
//! the end; whole ones often cannot.

mod bitset;
mod components;
mod dive;
mod dual_bound;
mod in_order;
mod knapsack;
mod lexicographic;
mod limited_search;
mod probing;
mod query;
mod relaxation;
mod residual;
pub mod resume;
mod sizes;
#[cfg(test)]
mod tests;
mod weights;
mod window;

pub use in_order::{Control, Question, Task};
pub use lexicographic::{Found, Options, Refutations, first, first_by};
pub use query::{Outcome, QuerySolver, at_once, query_solver};

/// The largest board.
pub const LARGEST: usize = 128;
