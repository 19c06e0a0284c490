//! Counting column sets on a GPU (`shaders/column_sets/`).
//!
//! A workgroup counts one set after another by itself: it lists the placements of the lower half,
//! filters the list by the first upper rows, and counts the completions of the outer rows, at most
//! eight, by bit planes of 64 states for two lanes. Only sets and counts cross the bus. A
//! submission ends after a certain amount of work; the next one continues where it stopped.
//!
//! - [`layout`]: the memory layout; `families`: what the shader knows of a family;
//! - [`SetBackend`]: runs the shader: wgpu, or the [`SetMirror`];
//! - `job`: counts ranges of sets on a backend, and accepts a batch only if its checks pass.

mod backend;
mod families;
mod job;
pub mod layout;
mod mirror;
#[cfg(test)]
mod tests;

#[cfg(feature = "gpu")]
pub(super) use backend::empty_frames;
pub use backend::{SetBackend, SetShape};
pub use mirror::SetMirror;

pub(super) use job::{SetCounts, SetTuning};
