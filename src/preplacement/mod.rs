//! The decomposition: a problem becomes plans, plans become prefixes, ranges of prefixes become units.
//!
//! - A **plan** is one case of the symmetry argument: queens that it places itself (the *block*), the order
//!   in which the open rows are filled, a mask of allowed columns for each of them, and a **weight**.
//! - A **prefix** is a plan with its first few open rows filled. Prefixes are numbered from 0 in a fixed
//!   order, so `(job, index)` names a subproblem on every machine.
//! - A **unit** is a contiguous range of prefixes: the piece of work that is leased and recorded.
//! - An **image** of a decomposition is the same units with left and right exchanged.
//!
//! Weights are in thirds of a solution: in the case analysis of an even board up to three distances can tie,
//! so that an orbit of 8 = 24 thirds is found once, twice or three times. Σ weight × completions over all
//! prefixes is 3 × the number of solutions, and divisibility by 3 is a free check.

mod centre_cross;
mod centre_rows;
mod decomposition;
mod image;
mod job;
mod plan;
mod shortcuts;
mod state;

pub use decomposition::{Decomposition, Prefix};
pub use image::Image;
pub use job::{Job, JobError, JobHash, JobTextError, MAX_COUNT_SIZE, Scheme};
pub use plan::{CentreRule, Plan};
pub use state::{State, columns_of, full_row};

/// The most rows that a prefix fills beyond its plan's block.
pub const MAX_PREFIX_ROWS: usize = 8;
