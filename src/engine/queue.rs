//! The assignment of units to workers. Each unit is assigned once; near the end units that others
//! still hold are assigned again, so that no worker waits for the slowest. A unit is recorded only
//! once, so duplicates cost only computing time.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A worker: a CPU thread, or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Any CPU thread.
    Cpu,
    /// A device, by its number.
    Device(usize),
}

/// The units of a job that are not finished.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    open: BTreeSet<u64>,
    /// The number of kernel tests in progress: the results of a failed kernel may yet be discarded.
    kernel_tests: usize,
    held: HashMap<u64, Hold>,
    stopped: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    by: Holder,
    duplicated: bool,
}

impl Queue {
    pub(super) fn new(open: impl Iterator<Item = u64>) -> Self {
        let state = QueueState { open: open.collect(), ..QueueState::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code that holds the lock can panic in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns units: one to a CPU thread; to a device up to `most`, but at least one, from the
    /// end. Waits while others hold units that may be returned. Returns `None` if no unit is left,
    /// or after a stop.
    pub(super) fn take(&self, by: Holder, most: usize) -> Option<Vec<u64>> {
        /// Only a safeguard: every change wakes the waiting threads.
        const LOOK_AGAIN: Duration = Duration::from_millis(500);
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            let taken: Vec<u64> = match by {
                Holder::Cpu => state.open.first().copied().into_iter().collect(),
                Holder::Device(_) => state.open.iter().rev().copied().take(most.max(1)).collect(),
            };
            if !taken.is_empty() {
                for unit in &taken {
                    state.open.remove(unit);
                    state.held.insert(*unit, Hold { by, duplicated: false });
                }
                return Some(taken);
            }
            // Duplicates pay off only across kinds of workers: CPU threads are equally fast.
            let slow = state.held.iter_mut().find(|(_, hold)| hold.by != by && !hold.duplicated);
            if let Some((&unit, hold)) = slow {
                hold.duplicated = true;
                return Some(vec![unit]);
            }
            if state.held.is_empty() && state.kernel_tests == 0 {
                return None;
            }
            let waited = self.changed.wait_timeout(state, LOOK_AGAIN);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether the result of this unit is still needed.
    pub(super) fn is_needed(&self, unit: u64) -> bool {
        let state = self.state();
        !state.stopped && (state.open.contains(&unit) || state.held.contains_key(&unit))
    }

    /// Marks the unit as finished.
    pub(super) fn finish(&self, unit: u64) {
        let mut state = self.state();
        state.open.remove(&unit);
        state.held.remove(&unit);
        self.changed.notify_all();
    }

    /// Announces the test of a failed kernel, after which units may be reopened: no worker ends
    /// before [its end](Self::end_kernel_test).
    pub(super) fn begin_kernel_test(&self) {
        self.state().kernel_tests += 1;
    }

    /// Ends a test: all units to be recounted are open.
    pub(super) fn end_kernel_test(&self) {
        let mut state = self.state();
        state.kernel_tests = state.kernel_tests.saturating_sub(1);
        self.changed.notify_all();
    }

    /// Returns whether a failed kernel is being tested.
    pub(super) fn is_testing_kernel(&self) -> bool {
        self.state().kernel_tests > 0
    }

    /// Reopens finished units.
    pub(super) fn reopen(&self, units: &[u64]) {
        self.state().open.extend(units);
        self.changed.notify_all();
    }

    /// Returns units to the queue that a worker holds and will not count.
    pub(super) fn give_back(&self, by: Holder, units: &[u64]) {
        let mut state = self.state();
        for &unit in units {
            match state.held.get_mut(&unit) {
                // It was a duplicate: the original holder may need another one.
                Some(hold) if hold.by != by => hold.duplicated = false,
                Some(_) => {
                    state.held.remove(&unit);
                    state.open.insert(unit);
                }
                None => {}
            }
        }
        self.changed.notify_all();
    }

    /// Returns the units that are neither finished nor held.
    pub(super) fn open(&self) -> Vec<u64> {
        self.state().open.iter().copied().collect()
    }

    /// Stops the queue: no more units are assigned.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    /// Returns whether the queue was stopped.
    pub(super) fn stopped(&self) -> bool {
        self.state().stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Holder = Holder::Device(0);

    #[test]
    fn every_open_unit_is_assigned_once() {
        let queue = Queue::new(0..5);
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![0]));
        assert_eq!(queue.take(GPU, 2), Some(vec![4, 3]));
        assert_eq!(queue.take(GPU, 0), Some(vec![2]));
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![1]));
    }

    #[test]
    fn near_the_end_a_unit_is_assigned_once_more_to_another_kind() {
        let queue = Queue::new(0..1);
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![0]));
        assert_eq!(queue.take(GPU, 9), Some(vec![0]));
        queue.finish(0);
        assert!(!queue.is_needed(0));
        assert_eq!(queue.take(Holder::Device(1), 9), None);
    }

    #[test]
    fn units_given_back_by_a_device_are_open_again_and_duplicates_can_be_duplicated_again() {
        let queue = Queue::new(0..2);
        assert_eq!(queue.take(GPU, 9), Some(vec![1, 0]));
        queue.give_back(GPU, &[1]);
        assert_eq!(queue.open(), vec![1]);
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![1]));
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![0]));
        queue.give_back(Holder::Cpu, &[0]);
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![0]));
    }

    #[test]
    fn waiting_threads_are_woken_at_the_end() {
        let queue = Queue::new(0..1);
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![0]));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.take(Holder::Cpu, 1));
            queue.finish(0);
            assert_eq!(waiting.join().expect("does not panic"), None);
        });
    }

    #[test]
    fn no_thread_ends_while_finished_units_may_be_reopened() {
        let queue = Queue::new(0..1);
        assert_eq!(queue.take(Holder::Cpu, 1), Some(vec![0]));
        queue.begin_kernel_test();
        queue.finish(0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.take(Holder::Cpu, 1));
            queue.reopen(&[0]);
            queue.end_kernel_test();
            assert_eq!(waiting.join().expect("does not panic"), Some(vec![0]));
        });
        queue.finish(0);
        assert!(!queue.is_testing_kernel());
        assert_eq!(queue.take(Holder::Cpu, 1), None);
    }

    #[test]
    fn no_unit_is_assigned_after_a_stop() {
        let queue = Queue::new(0..3);
        queue.stop();
        assert_eq!(queue.take(Holder::Cpu, 1), None);
        assert!(!queue.is_needed(1));
    }
}
