//! The 8 symmetries of the square, the symmetry that a problem has left, and orbits.

mod group;

pub use group::{Group, Symmetry};
