//! The progress of a job from its submission on, with as many points as a chart needs.

/// The progress of a job at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
pub(super) struct History {
    points: Vec<HistorySample>,
    step_ms: u64,
}

/// A power of two, and more than the width of most screens in characters.
const MOST_POINTS: usize = 1024;
const FIRST_STEP_MS: u64 = 2_000;

impl Default for History {
    fn default() -> Self {
        Self { points: Vec::new(), step_ms: FIRST_STEP_MS }
    }
}

impl History {
    /// Creates the history of a job from its ledger: when it was submitted, and when its units were
    /// counted and confirmed, in any order. All times are in ms since 1970.
    pub(super) fn from_ledger(
        submitted_ms: u64,
        mut done: Vec<u64>,
        mut verified: Vec<u64>,
    ) -> Self {
        done.sort_unstable();
        verified.sort_unstable();
        let mut history = Self::default();
        let last_ms =
            done.last().max(verified.last()).copied().unwrap_or(submitted_ms).max(submitted_ms);
        while (last_ms - submitted_ms) / history.step_ms >= MOST_POINTS as u64 - 1 {
            history.step_ms *= 2;
        }
        let until = |times: &[u64], at_ms: u64| times.partition_point(|&time| time <= at_ms) as u64;
        let steps = (last_ms - submitted_ms).div_ceil(history.step_ms);
        history.points = (0..=steps)
            .map(|step| submitted_ms + step * history.step_ms)
            .map(|at_ms| HistorySample {
                at_ms,
                done: until(&done, at_ms),
                verified: until(&verified, at_ms),
            })
            .collect();
        history
    }

    /// Adds a point if one is due.
    pub(super) fn observe(&mut self, point: HistorySample) {
        if self.points.last().is_some_and(|last| point.at_ms < last.at_ms + self.step_ms) {
            return;
        }
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
        let mut history = History::default();
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

    proptest! {
        #[test]
        fn a_history_from_a_ledger_is_exact_at_its_points(
            submitted_ms in 0u64..1_000_000,
            done in proptest::collection::vec(0u64..400_000_000, 0..200),
            confirmed in 0usize..200,
        ) {
            let done: Vec<u64> = done.into_iter().map(|after| submitted_ms + after).collect();
            let verified: Vec<u64> = done.iter().copied().take(confirmed).collect();
            let history = History::from_ledger(submitted_ms, done.clone(), verified.clone());
            prop_assert!(history.points.len() <= MOST_POINTS);
            for point in &history.points {
                let until = |times: &[u64]| times.iter().filter(|&&time| time <= point.at_ms).count() as u64;
                prop_assert_eq!((point.done, point.verified), (until(&done), until(&verified)));
            }
            let last = history.points[history.points.len() - 1];
            prop_assert_eq!((last.done, last.verified), (done.len() as u64, verified.len() as u64));
        }
    }
}
