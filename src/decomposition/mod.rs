//! The decomposition: a problem is split into symmetry cases, a case into prefixes, and ranges of
//! prefixes form units.
//!
//! - A **symmetry case** is one case of the symmetry argument: the queens that it pre-places (the
//!   *block*), the order in which the open rows are filled, a mask of allowed columns for each of
//!   them, and a **weight**.
//! - A **prefix** is a symmetry case with its first few open rows filled. Prefixes are numbered
//!   from 0 in a fixed order, so `(job, index)` denotes the same subproblem on every machine.
//! - A **column set** is the subproblem of another scheme: the columns of the queens in the upper
//!   half of the board. There, sets or parts of sets have the numbers of prefixes.
//! - A **unit** is a contiguous range of prefixes: the amount of work that is leased and recorded.
//!   It is divided into at most 32 **sub-ranges**, whose sums can be checked individually.
//! - An **image** of a decomposition is the same set of units with left and right exchanged.
//!
//! Weights are in thirds of a solution: in the case analysis of an even board up to three distances
//! can tie, so that an orbit of 8 = 24 thirds is found once, twice or three times. Σ weight ×
//! completions over all prefixes is 3 × the number of solutions, so divisibility by 3 is a free
//! check.
//!
//! ```
//! use nqueens::board::{Piece, Problem};
//! use nqueens::engine::plan_for_campaign;
//! use nqueens::kernel::{KernelKind, count_range};
//! use nqueens::decomposition::{Decomposition, Job, Subproblems};
//! use nqueens::tally::Tally;
//!
//! // A job is a line of text; every machine makes the same units of it.
//! let problem = Problem::empty(Piece::Queen, 10);
//! let text = plan_for_campaign(&problem, Subproblems::Prefixes)?.job().to_string();
//! let units = Decomposition::new(text.parse::<Job>()?);
//!
//! // Each unit is counted by itself, here every second one as its mirror image, and all are
//! // added up.
//! let image = units.mirrored();
//! let mut kernel = KernelKind::Scalar.build(Piece::Queen)?;
//! let mut total = Tally::default();
//! for unit in 0..units.units() {
//!     let of = if unit % 2 == 0 { &units } else { &image };
//!     total.merge(&count_range(&mut *kernel, of, of.unit(unit))?)?;
//! }
//! assert_eq!(total.solutions()?, 724);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attack_state;
#[cfg(feature = "cluster")]
mod cache;
mod centre_cross;
mod centre_rows;
mod column_sets;
mod combinations;
mod image;
mod job;
mod limits;
mod prefixes;
mod set_numbers;
mod special_schemes;
mod subproblems;
mod symmetry_case;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use attack_state::state_of;
pub use attack_state::{AttackState, columns_of, full_row};
#[cfg(feature = "cluster")]
pub(crate) use cache::DecompositionCache;
#[cfg(test)]
pub(crate) use column_sets::tests::solutions;
pub use column_sets::{ColumnSet, HalfRow, SetFamily, SetRule};
pub(crate) use combinations::binomial;
pub use image::Image;
pub use job::{Job, JobError, JobHash, JobTextError, MAX_COUNT_SIZE, Scheme};
pub use limits::UnitLimits;
pub use prefixes::{Decomposition, MOST_SUB_RANGES, Prefix, sub_ranges_of};
pub use subproblems::{Subproblems, UnknownSubproblems};
pub use symmetry_case::{CentreRule, SymmetryCase};

/// The maximum number of rows that a prefix fills beyond its symmetry case's block.
pub const MAX_PREFIX_ROWS: usize = 8;
