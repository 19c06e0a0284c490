//! Delays between retries: exponential backoff with full jitter, so that a thousand workers do not
//! return at once.

use std::time::Duration;

/// The delays after consecutive failures: random, at most 200 ms after the first failure, with a
/// bound that doubles after each further one up to a minute.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(200);
    const MOST: Duration = Duration::from_secs(60);

    /// Returns the next delay; `random` is from 0 to 1.
    pub(super) fn next(&mut self, random: f64) -> Duration {
        let doubled =
            Self::FIRST.saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        doubled.min(Self::MOST).mul_f64(random.clamp(0.0, 1.0))
    }

    /// Resets the delays after a success.
    pub(super) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_minute_and_are_reset_by_a_success() {
        let mut backoff = Backoff::default();
        let longest: Vec<u64> = (0..11).map(|_| backoff.next(1.0).as_millis() as u64).collect();
        assert_eq!(
            longest,
            [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000]
        );
        for _ in 0..1000 {
            assert_eq!(backoff.next(1.0), Backoff::MOST);
        }
        assert_eq!(backoff.next(0.0), Duration::ZERO);
        assert_eq!(backoff.next(0.5), Duration::from_secs(30));
        backoff.reset();
        assert_eq!(backoff.next(1.0), Backoff::FIRST);
    }
}
