//! The progress of a job from its submission on, with as many points as a chart needs.

use serde::{Deserialize, Serialize};

/// The progress of a job at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HistorySample {
    /// The time, in ms since 1970.
    pub(super) at_ms: u64,
    /// Units counted.
    pub(super) done: u64,
    /// Units confirmed by another source.
    pub(super) verified: u64,
}

/// The points of a job, at roughly equal intervals. When there are too many, every second point is
/// dropped and the interval is doubled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct History {
    points: Vec<HistorySample>,
    step_ms: u64,
    /// The time of the last entry that was read from the ledger, in ms since 1970.
    read_ms: u64,
}

/// A power of two, and more than the width of most screens in characters.
const MOST_POINTS: usize = 1024;
const FIRST_STEP_MS: u64 = 2_000;

impl History {
    /// Creates the history of a job that was submitted at a time, in ms since 1970.
    pub(super) fn new(submitted_ms: u64) -> Self {
        let submitted = HistorySample { at_ms: submitted_ms, done: 0, verified: 0 };
        Self { points: vec![submitted], step_ms: FIRST_STEP_MS, read_ms: submitted_ms }
    }

    /// Adds the points that are due before the next entry of the ledger, at whose time the job has
    /// this progress.
    pub(super) fn advance(&mut self, next: HistorySample) {
        while self.next_ms() < next.at_ms {
            self.push(HistorySample { at_ms: self.next_ms(), ..next });
        }
        self.read_ms = self.read_ms.max(next.at_ms);
    }

    /// Adds the point of the last entry of the ledger.
    pub(super) fn end(&mut self, done: u64, verified: u64) {
        let last = HistorySample { at_ms: self.read_ms, done, verified };
        self.advance(last);
        match self.points.last_mut() {
            // A job that was counted within a step has this point and that of its submission.
            Some(point) if point.at_ms == last.at_ms => *point = last,
            _ => self.push(last),
        }
    }

    /// Adds a point if one is due.
    pub(super) fn observe(&mut self, point: HistorySample) {
        if point.at_ms >= self.next_ms() {
            self.push(point);
        }
    }

    /// Returns the time from which on a point is due. A ledger may have any times.
    fn next_ms(&self) -> u64 {
        self.points.last().map_or(0, |last| last.at_ms.saturating_add(self.step_ms))
    }

    fn push(&mut self, point: HistorySample) {
        if self.points.len() == MOST_POINTS {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step_ms *= 2;
        }
        self.points.push(point);
    }

    /// Returns the points after a time, in ms since 1970, in chronological order.
    pub(super) fn after(&self, after_ms: u64) -> &[HistorySample] {
        &self.points[self.points.partition_point(|point| point.at_ms <= after_ms)..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_history_of_a_week_fits_and_keeps_its_first_point() {
        let mut history = History::new(0);
        for second in (0..7 * 86_400_u64).step_by(2) {
            history.observe(HistorySample {
                at_ms: second * 1000,
                done: second,
                verified: second / 2,
            });
        }
        let points = history.after(0);
        assert!((MOST_POINTS / 2 - 1..=MOST_POINTS).contains(&points.len()), "{}", points.len());
        assert_eq!(history.points[0], HistorySample { at_ms: 0, done: 0, verified: 0 });
        let last = points[points.len() - 1].at_ms;
        assert!(last >= 7 * 86_400_000 - 2 * history.step_ms, "{last}");
        assert!(
            points.windows(2).all(|two| two[0].at_ms < two[1].at_ms && two[0].done < two[1].done)
        );
    }

    #[test]
    fn a_ledger_may_have_any_times() {
        let mut history = History::new(1_800_000_000_000);
        for at_ms in [u64::MAX, 0, 1_800_000_001_000, u64::MAX - 1] {
            history.advance(HistorySample { at_ms, done: 1, verified: 0 });
        }
        history.end(2, 1);
        assert!(history.points.len() <= MOST_POINTS);
        assert!(history.points.windows(2).all(|two| two[0].at_ms < two[1].at_ms));
        let last = HistorySample { at_ms: u64::MAX, done: 2, verified: 1 };
        assert_eq!(history.points.last(), Some(&last));
        history.observe(HistorySample { at_ms: 1_800_000_009_000, done: 2, verified: 2 });
    }

    proptest! {
        #[test]
        fn a_history_from_a_ledger_is_exact_at_its_points(
            submitted_ms in 0u64..1_000_000,
            after_ms in proptest::collection::vec((1u64..400_000_000, any::<bool>()), 0..200),
        ) {
            let mut entries: Vec<(u64, bool)> =
                after_ms.into_iter().map(|(ms, confirms)| (submitted_ms + ms, confirms)).collect();
            entries.sort_unstable();
            let until = |at_ms: u64, confirms: bool| {
                entries.iter().filter(|&&(ms, kind)| ms <= at_ms && kind == confirms).count() as u64
            };
            let mut history = History::new(submitted_ms);
            let (mut done, mut verified) = (0, 0);
            for &(at_ms, confirms) in &entries {
                history.advance(HistorySample { at_ms, done, verified });
                if confirms { verified += 1 } else { done += 1 }
            }
            history.end(done, verified);
            prop_assert!(history.points.len() <= MOST_POINTS);
            for point in &history.points {
                let expected = (until(point.at_ms, false), until(point.at_ms, true));
                prop_assert_eq!((point.done, point.verified), expected);
            }
            let last = history.points[history.points.len() - 1];
            prop_assert_eq!((last.done, last.verified), (done, verified));
            let steps = history.points.windows(2).map(|two| two[1].at_ms - two[0].at_ms);
            prop_assert!(steps.into_iter().all(|step| 0 < step && step <= history.step_ms));
        }
    }
}
