//! The batch engine.

use super::Kernel;

/// Whether this processor has AVX2.
pub fn avx2_runs_here() -> bool {
    false
}

/// Whether this processor has AVX-512.
pub fn avx512_runs_here() -> bool {
    false
}

/// The AVX2 kernel.
pub fn avx2() -> Option<Box<dyn Kernel>> {
    None
}

/// The AVX-512 kernel.
pub fn avx512() -> Option<Box<dyn Kernel>> {
    None
}
