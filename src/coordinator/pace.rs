//! How fast a job goes.

use std::collections::VecDeque;

/// Units done at some times, for the rate.
#[derive(Debug, Default)]
pub(super) struct Pace(VecDeque<(u64, u64)>);

impl Pace {
    /// Notes how many units are done.
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

    /// Units a second in the last minutes.
    pub(super) fn units_per_s(&self, now_ms: u64, done: u64) -> f64 {
        let Some(&(at, before)) = self.0.front() else { return 0.0 };
        let elapsed_ms = now_ms.saturating_sub(at);
        if elapsed_ms == 0 { 0.0 } else { done.saturating_sub(before) as f64 * 1000.0 / elapsed_ms as f64 }
    }
}
