//! A monotonic clock for leases.

use std::time::{Duration, Instant};

use super::now_ms;

/// The wall-clock time at the start plus the time that has passed since, without pauses. Setting
/// the wall clock neither ends nor extends a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonotonicClock {
    began: Instant,
    at_ms: u64,
    paused: Duration,
}

impl MonotonicClock {
    /// Creates a clock that agrees with the wall clock now.
    pub(super) fn start() -> Self {
        Self { began: Instant::now(), at_ms: now_ms(), paused: Duration::ZERO }
    }

    /// Leaves out a time that has just passed, in which no worker could be answered.
    pub(super) fn leave_out(&mut self, passed: Duration) {
        self.paused += passed;
    }

    /// Returns the current time, in ms.
    pub(super) fn now_ms(&self) -> u64 {
        // A `u64` holds the milliseconds of more than 500 million years.
        self.at_ms + self.began.elapsed().saturating_sub(self.paused).as_millis() as u64
    }
}
