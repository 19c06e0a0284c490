//! The rate of a job, and an estimate of its remaining time.

use std::collections::VecDeque;

use crate::cluster::protocol::v1::TimeLeft;

/// Samples of the number of completed units, each with its time in ms.
#[derive(Debug, Default)]
pub(super) struct Throughput(VecDeque<(u64, u64)>);

/// The number of parts of the window, from which the variance of the rate is estimated.
const PARTS: u64 = 8;
/// The half-width of the band, in standard errors.
const BAND: f64 = 2.0;

impl Throughput {
    /// Adds a sample if one is due.
    pub(super) fn observe(&mut self, now_ms: u64, done: u64) {
        const EVERY_MS: u64 = 2_000;
        const WINDOW_MS: u64 = 600_000;
        if self.0.back().is_none_or(|(at, _)| now_ms >= at + EVERY_MS) {
            self.0.push_back((now_ms, done));
        }
        while self.0.len() > 2 && self.0.front().is_some_and(|(at, _)| at + WINDOW_MS < now_ms) {
            self.0.pop_front();
        }
    }

    /// Returns the average number of units per second over the window.
    pub(super) fn units_per_s(&self, now_ms: u64, done: u64) -> f64 {
        let Some(&(at, before)) = self.0.front() else { return 0.0 };
        let elapsed_ms = now_ms.saturating_sub(at);
        if elapsed_ms == 0 {
            0.0
        } else {
            done.saturating_sub(before) as f64 * 1000.0 / elapsed_ms as f64
        }
    }

    /// Returns the units per second in each part of the window, or `None` until there are enough
    /// samples.
    fn parts(&self, now_ms: u64, done: u64) -> Option<[f64; PARTS as usize]> {
        let &(from, _) = self.0.front()?;
        if self.0.len() <= PARTS as usize {
            return None;
        }
        // The number of completed units at a time, interpolated linearly between samples.
        let done_at = |at: f64| {
            let after = self.0.partition_point(|&(time, _)| (time as f64) < at);
            let (left, left_done) = self.0[after.saturating_sub(1)];
            let (right, right_done) = self.0.get(after).copied().unwrap_or((now_ms, done));
            let share = if right > left { (at - left as f64) / (right - left) as f64 } else { 1.0 };
            left_done as f64 + share.clamp(0.0, 1.0) * (right_done as f64 - left_done as f64)
        };
        let length = now_ms.saturating_sub(from) as f64 / PARTS as f64;
        let edge = |part: usize| done_at(from as f64 + part as f64 * length);
        Some(std::array::from_fn(|part| (edge(part + 1) - edge(part)) * 1000.0 / length))
    }

    /// Estimates the seconds that `units` more units take at the current rate. Returns `None` if
    /// nothing is being completed. The band is two standard errors of the mean rate to either side,
    /// from the eight parts of the window. It does not foresee workers that come and go, or longer
    /// units.
    pub(super) fn left(&self, now_ms: u64, done: u64, units: u64) -> Option<TimeLeft> {
        let (rate, units) = (self.units_per_s(now_ms, done), units as f64);
        if rate <= 0.0 {
            return None;
        }
        let s = units / rate;
        let Some(parts) = self.parts(now_ms, done) else {
            return Some(TimeLeft { s, least_s: None, most_s: None });
        };
        let variance =
            parts.iter().map(|part| (part - rate).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
        let error = BAND * (variance / PARTS as f64).sqrt();
        let most_s = (error < rate).then(|| units / (rate - error));
        Some(TimeLeft { s, least_s: Some(units / (rate + error)), most_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(done_at_second: impl Fn(u64) -> u64, seconds: u64) -> Throughput {
        let mut rate = Throughput::default();
        (0..=seconds).for_each(|second| rate.observe(second * 1000, done_at_second(second)));
        rate
    }

    #[test]
    fn a_steady_rate_has_a_narrow_interval_and_an_unsteady_one_a_wide_interval() {
        let even = observed(|second| 5 * second, 600);
        let left = even.left(600_000, 3000, 1000).expect("an estimate");
        assert!((left.s - 200.0).abs() < 1e-9);
        assert!(
            left.least_s.expect("a band") > 199.9 && left.most_s.expect("an end") < 200.1,
            "{left:?}"
        );

        // All work is done in every other minute.
        let uneven = observed(|second| 10 * 60 * (second / 120) + 10 * (second % 120).min(60), 600);
        let left = uneven.left(600_000, 3000, 1000).expect("an estimate");
        assert!((left.s - 200.0).abs() < 1e-9);
        assert!(
            left.least_s.expect("a band") < 170.0 && left.most_s.is_none_or(|most| most > 250.0),
            "{left:?}"
        );
    }

    #[test]
    fn estimates_need_enough_samples() {
        assert_eq!(Throughput::default().left(0, 0, 10), None);
        assert_eq!(observed(|_| 7, 600).left(600_000, 7, 10), None, "nothing is done");
        let fresh = observed(|second| second, 4).left(4_000, 4, 10).expect("an estimate");
        assert!(fresh.least_s.is_none() && fresh.most_s.is_none() && (fresh.s - 10.0).abs() < 1e-9);
        // One burst long ago gives no upper bound.
        let burst = observed(|second| if second < 20 { 0 } else { 100 }, 600);
        let left = burst.left(600_000, 100, 1000).expect("something was done");
        assert!(left.least_s.is_some() && left.most_s.is_none(), "{left:?}");
    }
}
