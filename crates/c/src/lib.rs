//! The C interface: `include/nqueens.h`, described in docs/c.md.
//!
//! `types` defines what C sees, in safe code. `interface` has the functions; it is the only file with
//! `unsafe` code. No panic crosses the boundary, and nothing is global.

mod interface;
mod types;

pub use interface::*;
pub use types::*;
