//! Comparison of ways to count n queens in one run: in turn (A B A B …), with each count compared
//! with the published value.

mod comparison;
mod contestant;
mod energy;
mod gpu_meter;
mod measurements;
mod spread;

pub use comparison::{BenchError, Turn, compare};
pub use contestant::{Contestant, ContestantKind, ProgressFn, Run};
pub use gpu_meter::GpuReadings;
pub use measurements::Measurements;
pub use spread::Spread;
