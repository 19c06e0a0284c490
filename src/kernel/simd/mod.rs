//! The batch engine over vector lanes: one implementation that runs with AVX-512 or AVX2.
//!
//! - `lanes`: the operations required of a vector instruction set, as a trait;
//! - `batch`: the engine in safe code over that trait: the kernel and the order in which levels
//!   run; `level`: how the lanes of a level process its states; `group`: the operations of a group
//!   of lanes in one step;
//! - `avx512`, `avx2`: the trait by intrinsics, the only unsafe code of the module;
//! - `portable`: the trait by plain loops, against which the others are tested.
//!
//! The instruction set is detected at run time, never at compile time.

#[cfg(any(target_arch = "x86_64", test))]
mod batch;
#[cfg(any(target_arch = "x86_64", test))]
mod group;
#[cfg(any(target_arch = "x86_64", test))]
mod lanes;
#[cfg(any(target_arch = "x86_64", test))]
mod level;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{avx2, avx2_runs_here, avx512, avx512_runs_here};

#[cfg(not(target_arch = "x86_64"))]
pub use other::{avx2, avx2_runs_here, avx512, avx512_runs_here};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::avx2::Avx2;
    use super::avx512::Avx512;
    use crate::kernel::Kernel;

    /// Returns whether this processor has AVX2, BMI1, BMI2 and POPCNT.
    pub fn avx2_runs_here() -> bool {
        Avx2::detect().is_some()
    }

    /// Returns whether this processor has AVX-512 (F, BW, DQ, VL), BMI1, BMI2 and POPCNT.
    pub fn avx512_runs_here() -> bool {
        Avx512::detect().is_some()
    }

    /// Returns the kernel over 8 lanes, if this processor can run it.
    pub fn avx2() -> Option<Box<dyn Kernel>> {
        Avx2::detect().map(super::avx2::kernel)
    }

    /// Returns the kernel over 16 lanes, if this processor can run it.
    pub fn avx512() -> Option<Box<dyn Kernel>> {
        Avx512::detect().map(super::avx512::kernel)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod other {
    use crate::kernel::Kernel;

    /// Returns false: AVX2 exists on x86-64 only.
    pub fn avx2_runs_here() -> bool {
        false
    }

    /// Returns false: AVX-512 exists on x86-64 only.
    pub fn avx512_runs_here() -> bool {
        false
    }

    /// Returns `None`: AVX2 exists on x86-64 only.
    pub fn avx2() -> Option<Box<dyn Kernel>> {
        None
    }

    /// Returns `None`: AVX-512 exists on x86-64 only.
    pub fn avx512() -> Option<Box<dyn Kernel>> {
        None
    }
}
