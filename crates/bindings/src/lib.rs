//! The requests that the bindings for Python and C share.
//!
//! | module | contents |
//! |---|---|
//! | `failure` | errors: a class, which is an exit code of the program, and the text of the command line |
//! | `observer` | progress reports and cancellation |
//! | `request` | boards and options from plain numbers and texts |
//! | `counting` | counts, classes, estimates, published values |
//! | `solving` | one solution, all solutions, fingerprints |
//! | `proving` | first and most beautiful solutions with certificates, and their check |
//!
//! Rows, columns and squares are counted from 1, as on the command line. Each request takes an
//! [`Observer`], which is called many times a second and can end it. Nothing is global.

#![forbid(unsafe_code)]

mod counting;
mod failure;
mod observer;
mod proving;
mod request;
mod solving;

pub use counting::{EstimateRequest, Estimated, count, count_classes, estimate, sequence};
pub use failure::{Failure, FailureClass};
pub use nqueens::oeis::lookup as published;
pub use observer::{Observer, Progress, Unobserved};
pub use proving::{Proof, beautiful, check, first};
pub use request::{LARGEST_SIZE, Squares, board, count_options, norm, piece, size, threads};
pub use solving::{Fingerprint, Method, SolveOptions, fingerprint, list, placement, solve, svg};
