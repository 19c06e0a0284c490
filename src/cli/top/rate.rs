//! The rate of a job over time.

/// The number of counted units at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// The time in ms since 1970.
    pub(super) at_ms: u64,
    pub(super) done: u64,
}

/// Returns the units per second in `bins` equal parts of the time from the first point to the last;
/// nothing if that time is 0. The rate between two points is constant, and never negative.
pub(super) fn rates(points: &[Point], bins: usize) -> Vec<f64> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let whole_ms = last.at_ms.saturating_sub(first.at_ms) as f64;
    if whole_ms <= 0.0 || bins == 0 {
        return Vec::new();
    }
    let edge = |bin: usize| first.at_ms as f64 + whole_ms * bin as f64 / bins as f64;
    let seconds = whole_ms / bins as f64 / 1000.0;
    (0..bins)
        .map(|bin| (done_at(points, edge(bin + 1)) - done_at(points, edge(bin))).max(0.0) / seconds)
        .collect()
}

/// Returns the number of units that were counted at `at_ms`, between the first point and the last.
fn done_at(points: &[Point], at_ms: f64) -> f64 {
    let later = points.partition_point(|point| point.at_ms as f64 <= at_ms);
    let Some(before) = later.checked_sub(1).map(|index| points[index]) else {
        return points.first().map_or(0.0, |point| point.done as f64);
    };
    let Some(after) = points.get(later) else { return before.done as f64 };
    let share = (at_ms - before.at_ms as f64) / (after.at_ms - before.at_ms) as f64;
    before.done as f64 + share * (after.done as f64 - before.done as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(u64, u64)]) -> Vec<Point> {
        of.iter().map(|&(at_ms, done)| Point { at_ms, done }).collect()
    }

    #[test]
    fn rates_are_differences_over_time() {
        let points = points(&[(1_000, 0), (2_000, 10), (5_000, 40), (9_000, 40)]);
        assert_eq!(rates(&points, 8), [10.0, 10.0, 10.0, 10.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(rates(&points, 2), [10.0, 0.0]);
        assert_eq!(rates(&points, 1), [5.0]);
    }

    #[test]
    fn without_samples_there_is_no_rate() {
        assert!(rates(&[], 4).is_empty());
        assert!(rates(&points(&[(5, 1)]), 4).is_empty());
        assert!(rates(&points(&[(5, 1), (5, 2)]), 4).is_empty());
        assert!(rates(&points(&[(5, 1), (9, 2)]), 0).is_empty());
    }

    #[test]
    fn voided_units_give_no_negative_rate() {
        assert_eq!(rates(&points(&[(0, 10), (1_000, 5), (2_000, 15)]), 2), [0.0, 10.0]);
    }

    proptest::proptest! {
        /// Whatever the points, the rates add up to the units that were counted.
        #[test]
        fn the_rates_add_up(steps in proptest::collection::vec((1u64..5_000, 0u64..100), 1..30), bins in 1usize..50) {
            let mut points = vec![Point { at_ms: 7, done: 3 }];
            for (ms, units) in steps {
                let last = points[points.len() - 1];
                points.push(Point { at_ms: last.at_ms + ms, done: last.done + units });
            }
            let (first, last) = (points[0], points[points.len() - 1]);
            let rates = rates(&points, bins);
            let seconds = (last.at_ms - first.at_ms) as f64 / 1000.0 / bins as f64;
            let sum: f64 = rates.iter().map(|rate| rate * seconds).sum();
            proptest::prop_assert_eq!(rates.len(), bins);
            proptest::prop_assert!((sum - (last.done - first.done) as f64).abs() < 1e-6 * (1.0 + sum));
        }
    }
}
