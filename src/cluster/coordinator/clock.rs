//! Time that only goes forward, for leases.

use std::time::Instant;

use super::now_ms;

/// What a clock on the wall showed at the start, and what has passed since: setting the wall's clock ends no lease and
/// lengthens none.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonotonicClock {
    began: Instant,
    at_ms: u64,
}

impl MonotonicClock {
    /// A clock that agrees with the wall's at this moment.
    pub(super) fn start() -> Self {
        Self { began: Instant::now(), at_ms: now_ms() }
    }

    /// Now, in ms.
    pub(super) fn now_ms(&self) -> u64 {
        // Milliseconds of more than 500 million years do not fit.
        self.at_ms + self.began.elapsed().as_millis() as u64
    }
}
