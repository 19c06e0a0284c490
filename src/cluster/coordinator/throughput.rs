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
/// With fewer units in the window, the band follows from their number alone.
const FEW_UNITS: u64 = 8;

impl Throughput {
    /// Adds a sample if one is due. The first is due once units are being counted.
    pub(super) fn observe(&mut self, now_ms: u64, done: u64, is_counted: bool) {
        const EVERY_MS: u64 = 2_000;
        const WINDOW_MS: u64 = 600_000;
        if self.0.back().map_or(is_counted, |(at, _)| now_ms >= at + EVERY_MS) {
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
    /// nothing is being counted. The band is two standard errors of the mean rate to either side,
    /// from the eight parts of the window, or from the number of units if there are only a few. It
    /// does not foresee workers that come and go, or longer units.
    pub(super) fn left(
        &self,
        now_ms: u64,
        done: u64,
        units: u64,
        is_counted: bool,
    ) -> Option<TimeLeft> {
        let &(from, before) = self.0.front()?;
        let (rate, units) = (self.units_per_s(now_ms, done), units as f64);
        let elapsed_s = now_ms.saturating_sub(from) as f64 / 1000.0;
        if elapsed_s <= 0.0 || (rate <= 0.0 && !is_counted) {
            return None;
        }
        let completed = done.saturating_sub(before);
        let parts = self.parts(now_ms, done).filter(|_| completed >= FEW_UNITS);
        let Some(parts) = parts else {
            return Some(left_by_few(completed, elapsed_s, units));
        };
        let s = units / rate;
        let variance =
            parts.iter().map(|part| (part - rate).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
        let error = BAND * (variance / PARTS as f64).sqrt();
        let most_s = (error < rate).then(|| units / (rate - error));
        Some(TimeLeft { s, least_s: Some(units / (rate + error)), most_s })
    }
}

/// Estimates the time that `units` units take if `completed` units, a few or none, took
/// `elapsed_s`. The band has two standard deviations of a Poisson distribution to either side, by
/// the approximation of Wilson and Hilferty. Without a completed unit, the estimate is the median.
fn left_by_few(completed: u64, elapsed_s: f64, units: f64) -> TimeLeft {
    /// Returns a quantile of the gamma distribution of shape `k`.
    fn quantile(k: f64, deviations: f64) -> f64 {
        k * (1.0 - 1.0 / (9.0 * k) + deviations / (3.0 * k.sqrt())).powi(3)
    }
    let k = completed as f64;
    let time = |expected: f64| units * elapsed_s / expected;
    let least_s = Some(time(quantile(k + 1.0, BAND)));
    if completed == 0 {
        return TimeLeft { s: time(std::f64::consts::LN_2), least_s, most_s: None };
    }
    TimeLeft { s: time(k), least_s, most_s: Some(time(quantile(k, -BAND))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(done_at_second: impl Fn(u64) -> u64, seconds: u64) -> Throughput {
        let mut rate = Throughput::default();
        (0..=seconds).for_each(|second| rate.observe(second * 1000, done_at_second(second), true));
        rate
    }

    #[test]
    fn a_steady_rate_has_a_narrow_interval_and_an_unsteady_one_a_wide_interval() {
        let even = observed(|second| 5 * second, 600);
        let left = even.left(600_000, 3000, 1000, true).expect("an estimate");
        assert!((left.s - 200.0).abs() < 1e-9);
        assert!(
            left.least_s.expect("a band") > 199.9 && left.most_s.expect("an end") < 200.1,
            "{left:?}"
        );

        // All work is done in every other minute.
        let uneven = observed(|second| 10 * 60 * (second / 120) + 10 * (second % 120).min(60), 600);
        let left = uneven.left(600_000, 3000, 1000, true).expect("an estimate");
        assert!((left.s - 200.0).abs() < 1e-9);
        assert!(
            left.least_s.expect("a band") < 170.0 && left.most_s.is_none_or(|most| most > 250.0),
            "{left:?}"
        );
    }

    #[test]
    fn there_is_an_estimate_with_a_band_from_the_first_seconds() {
        assert_eq!(Throughput::default().left(0, 0, 10, true), None);
        assert_eq!(observed(|_| 7, 600).left(600_000, 7, 10, false), None, "nothing is counted");
        // No unit is completed yet: the quantiles 0.5 and 0.023 of an exponential distribution.
        let none = observed(|_| 0, 4).left(4_000, 0, 10, true).expect("an estimate");
        assert!(
            (none.s - 10.0 * 4.0 / std::f64::consts::LN_2).abs() < 0.01 && none.most_s.is_none(),
            "{none:?}"
        );
        assert!((10.0..12.0).contains(&none.least_s.expect("a band")), "{none:?}");
        // 4 units in 4 s: the rate is between 1.1 and 10.2 units in 4 s (Garwood).
        let fresh = observed(|second| second, 4).left(4_000, 4, 10, true).expect("an estimate");
        assert!((fresh.s - 10.0).abs() < 1e-9);
        assert!((3.8..4.1).contains(&fresh.least_s.expect("a band")), "{fresh:?}");
        assert!((35.0..42.0).contains(&fresh.most_s.expect("a band")), "{fresh:?}");
        // The time before the first lease does not count.
        let mut waiting = Throughput::default();
        (0..100).for_each(|second| waiting.observe(second * 1000, 0, second >= 90));
        let left = waiting.left(100_000, 2, 10, true).expect("an estimate");
        assert!((left.s - 50.0).abs() < 1e-9, "{left:?}");
        // One burst long ago gives no upper bound.
        let burst = observed(|second| if second < 20 { 0 } else { 100 }, 600);
        let left = burst.left(600_000, 100, 1000, true).expect("something was done");
        assert!(left.least_s.is_some() && left.most_s.is_none(), "{left:?}");
    }
}
