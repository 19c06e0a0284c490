//! The leases that pages hold, as the coordinator has confirmed them with their last sync, and the
//! units of them that were prepared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cluster::protocol::v1;
use crate::kernel::gpu::RemoteBatches;

/// The time after which a silent page is forgotten. Its next sync is a first one.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// The number of times that a unit is prepared for a page: once, and again if an answer was lost.
const MOST_PREPARATIONS: u32 = 3;

/// A unit that was prepared.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) batches: Arc<RemoteBatches>,
    /// When it was prepared first.
    pub(super) at: Instant,
    times: u32,
}

/// A page.
#[derive(Debug)]
struct Page {
    leases: HashMap<u64, v1::Lease>,
    /// By lease and unit.
    prepared: HashMap<(u64, u64), Prepared>,
    called: Instant,
}

/// All pages, by the name of the worker.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<HashMap<String, Page>>);

impl Pages {
    fn pages(&self) -> MutexGuard<'_, HashMap<String, Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the leases that a page is to hold.
    pub(super) fn set(&self, worker: &str, leases: &[v1::Lease]) {
        let leases: HashMap<u64, v1::Lease> =
            leases.iter().map(|lease| (lease.attempt, lease.clone())).collect();
        let mut pages = self.pages();
        let page = pages.entry(worker.to_owned()).or_insert_with(|| Page {
            leases: HashMap::new(),
            prepared: HashMap::new(),
            called: Instant::now(),
        });
        page.prepared.retain(|(attempt, _), _| leases.contains_key(attempt));
        page.leases = leases;
        page.called = Instant::now();
    }

    /// Returns the lease with this number if the page holds it and it has this unit.
    pub(super) fn lease(&self, worker: &str, attempt: u64, unit: u64) -> Option<v1::Lease> {
        let pages = self.pages();
        let lease = pages.get(worker)?.leases.get(&attempt)?;
        let units = lease.first_unit..lease.first_unit.saturating_add(lease.units);
        units.contains(&unit).then(|| lease.clone())
    }

    /// Returns whether a unit may be prepared, and counts the attempt.
    pub(super) fn may_prepare(&self, worker: &str, attempt: u64, unit: u64) -> bool {
        let mut pages = self.pages();
        let Some(page) = pages.get_mut(worker) else { return false };
        page.prepared.get_mut(&(attempt, unit)).is_none_or(|prepared| {
            prepared.times += 1;
            prepared.times <= MOST_PREPARATIONS
        })
    }

    /// Records a unit that was prepared.
    pub(super) fn prepare(
        &self,
        worker: &str,
        (attempt, unit): (u64, u64),
        batches: RemoteBatches,
    ) {
        if let Some(page) = self.pages().get_mut(worker) {
            let batches = Arc::new(batches);
            let new = || Prepared { batches, at: Instant::now(), times: 1 };
            page.prepared.entry((attempt, unit)).or_insert_with(new);
        }
    }

    /// Returns a unit that was prepared.
    pub(super) fn prepared(&self, worker: &str, attempt: u64, unit: u64) -> Option<Prepared> {
        self.pages().get(worker)?.prepared.get(&(attempt, unit)).cloned()
    }

    /// Forgets a unit that has a verdict.
    pub(super) fn done(&self, worker: &str, attempt: u64, unit: u64) {
        if let Some(page) = self.pages().get_mut(worker) {
            page.prepared.remove(&(attempt, unit));
        }
    }

    /// Forgets pages that have been silent for long.
    pub(super) fn forget_silent(&self) {
        self.pages().retain(|_, page| page.called.elapsed() < FORGOTTEN_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(attempt: u64, first_unit: u64, units: u64) -> v1::Lease {
        v1::Lease { attempt, first_unit, units, ..v1::Lease::default() }
    }

    #[test]
    fn a_page_holds_what_its_last_sync_said_and_nothing_of_others() {
        let pages = Pages::default();
        pages.set("a", &[lease(1, 10, 2), lease(2, 20, 1)]);
        pages.set("b", &[lease(3, 30, 1)]);
        assert_eq!(pages.lease("a", 1, 11), Some(lease(1, 10, 2)));
        for (worker, attempt, unit) in
            [("a", 1, 12), ("a", 1, 9), ("a", 3, 30), ("b", 1, 10), ("c", 1, 10)]
        {
            assert_eq!(pages.lease(worker, attempt, unit), None, "{worker} {attempt} {unit}");
        }
        pages.set("a", &[lease(2, 20, 1)]);
        assert_eq!(pages.lease("a", 1, 10), None);
        let huge = lease(9, u64::MAX, u64::MAX);
        pages.set("a", std::slice::from_ref(&huge));
        assert_eq!(pages.lease("a", 9, 0), None);
    }
}
