//! Kernels and devices with injected faults, for tests of counts and of workers.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod devices;
pub mod kernels;
