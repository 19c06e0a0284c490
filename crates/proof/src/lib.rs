//! Certificates of the lexicographically first (OEIS A141843) and of a most beautiful placement of
//! n non-attacking queens, and the checkers of these certificates.
//!
//! [`check`] reads a certificate and proves its statement again, in integers. It shares only the
//! definitions in [`board`] with the search that found the answer. This crate has no `unsafe` code
//! and one dependency, which computes SHA-256 and has no dependencies itself.
//!
//! ```
//! use nqueens_proof::{check, first};
//!
//! // n = 5: each queen stands in the first column that no queen above attacks, so there is nothing
//! // to refute.
//! let mut certificate = first::certificate(5, Some(&[0, 2, 4, 1, 3]), &[])?;
//! let proved = check(&certificate)?;
//! assert_eq!(proved.to_string(), "proved: the lexicographically first solution for n = 5 is 1 3 5 2 4");
//!
//! // Any changed bit makes it invalid.
//! *certificate.last_mut().unwrap() ^= 1;
//! assert!(check(&certificate).is_err());
//! # Ok::<(), nqueens_proof::ProofError>(())
//! ```

#![forbid(unsafe_code)]

pub mod beautiful;
pub mod board;
pub mod bytes;
mod certificate;
pub mod first;
mod meter;
pub mod symmetry;
pub mod veripb;

pub use certificate::{
    Beauty, ErrorClass, FORMAT, Kind, LARGEST_FILE, ProofError, ProvedStatement, check,
    check_with_threads, check_within, open, seal,
};
pub use meter::{InvalidStepLimit, MOST_WORK, Meter, StepLimit};
