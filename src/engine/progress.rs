//! The progress of a count and its remaining time.

use std::time::Duration;

/// The progress of a running count.
#[derive(Clone, Copy, Debug)]
pub struct CountProgress {
    /// The number of finished units, including those of an earlier session.
    pub units_done: u64,
    /// The number of units of the job.
    pub units: u64,
    /// The fraction of the work that is done, by the forecast: 0 to 1.
    pub fraction: f64,
    /// The number of solutions in the finished units, rounded down.
    pub solutions: u128,
    /// The time since this session began to count.
    pub elapsed: Duration,
    /// Solutions a second in this session; `None` before its first unit.
    pub rate_per_s: Option<f64>,
    /// The time left: measured once units of this session are finished, and until then predicted
    /// from a sample, if one was counted, or the kernel's usual rate. `None` if there is no forecast and no unit is finished.
    pub left: Option<Duration>,
}

impl CountProgress {
    /// Returns the progress at the start of a job with this many units.
    pub(crate) const fn at_start(units: u64) -> Self {
        let elapsed = Duration::ZERO;
        Self {
            units_done: 0,
            units,
            fraction: 0.0,
            solutions: 0,
            elapsed,
            rate_per_s: None,
            left: None,
        }
    }

    /// Returns the time left if the session began at the fraction `before` and reached `done` after
    /// `elapsed`.
    pub(super) fn time_left(before: f64, done: f64, elapsed: Duration) -> Option<Duration> {
        let in_session = done - before;
        let left = elapsed.as_secs_f64() * (1.0 - done).max(0.0) / in_session;
        (in_session > 0.0).then(|| Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_counts_only_what_this_session_did() {
        let left =
            |before, done, secs| CountProgress::time_left(before, done, Duration::from_secs(secs));
        assert_eq!(left(0.0, 0.25, 10), Some(Duration::from_secs(30)));
        assert_eq!(left(0.5, 0.75, 10), Some(Duration::from_secs(10)));
        assert_eq!(left(0.5, 0.5, 10), None);
        assert_eq!(left(0.0, 1.0, 10), Some(Duration::ZERO));
    }
}
