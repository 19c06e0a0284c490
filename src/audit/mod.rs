//! Audits of counts that others have published: the claims are read, added up, and compared with
//! recounts of random units.
//!
//! - [`confidence`]: random samples, and what a sample without a wrong unit proves;
//! - [`q27`]: the database of the project Q27, which counted n = 27.

pub mod confidence;
pub mod q27;
