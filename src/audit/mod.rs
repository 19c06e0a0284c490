//! Audits of counts that others have published: the claims are read, added up, and compared with
//! recounts of random units.
//!
//! - [`confidence`]: random samples, and what a sample without a wrong unit proves;
//! - [`recount`]: the recount of a sample on several threads;
//! - [`log`]: the transparency logs that `nqueens publish` writes;
//! - [`q27`]: the database of the project Q27, which counted n = 27.

pub mod confidence;
#[cfg(feature = "cluster")]
pub mod log;
pub mod q27;
pub mod recount;
