//! Integer and constraint programming: the queens' problem as a 0-1 programme, solvers behind one narrow door, and
//! the methods that ask them.
//!
//! The rule of this room: a solver of floating-point numbers is never trusted. Its solutions are rounded and pass
//! the checker; its claims (optimal, infeasible) go before the [`referee`]; what nobody confirmed is the best that
//! was found, [`Verdict::NotProven`].

pub mod beautiful;
pub mod cp;
pub mod cuts;
pub mod exclusion;
mod first;
mod formulation;
#[cfg(feature = "highs")]
mod highs;
pub mod model;
pub mod model_file;
mod one;
mod reading;
pub mod referee;
pub mod simplex;
mod small;
mod solver;
mod verdict;
mod watch;

pub use first::{Method as FirstMethod, TooLarge, UnknownMethod, exact, first};
pub use formulation::{Formulation, Lines, UnknownFormulation};
#[cfg(feature = "highs")]
pub use highs::Highs;
pub use one::{Goal, heaviest, largest_set, one_solution};
pub use reading::completes;
pub use small::Small;
pub use solver::{IntegerOutcome, Linear, LinearOutcome, Solver, Status, TOLERANCE, Vertex};
pub use verdict::{Answer, Doubt, Verdict};
pub use watch::{Progress, Unwatched, Watch};

/// The best solver that is built in.
#[cfg(feature = "highs")]
pub const BEST_SOLVER: &dyn Solver = &Highs;
/// The best solver that is built in.
#[cfg(not(feature = "highs"))]
pub const BEST_SOLVER: &dyn Solver = &Small;
