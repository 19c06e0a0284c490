//! The database of the project Q27 (Preußer and Engelhardt, "Putting Queens in Carry Chains, No.
//! 27", Journal of Signal Processing Systems, 2016), which counted n = 27. Its authors ask others
//! to verify single entries.
//!
//! A unit is a [`Border`]: the queens in the two outer rows and columns of each side. The database
//! has one border of each orbit under the symmetries of the square, in the order of their numbers,
//! with the number of completions, which counts 8, 4 or 2 times in the total. It is read in its
//! binary form, or as the text that the project's `q27db print` writes.
//!
//! - [`border`]: borders, their order, and all canonical ones;
//! - [`entry`]: the two forms of a unit;
//! - [`database`]: a pass over the database, which checks everything but the counts and draws a
//!   sample;
//! - [`recount`]: the sample, counted again.

pub mod border;
pub mod database;
pub mod entry;
pub mod recount;

pub use border::Border;
pub use database::{Database, DatabaseError, Form, WrongUnit};
pub use entry::{Entry, EntryError};
