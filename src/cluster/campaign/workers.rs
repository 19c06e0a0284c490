//! The workers of a campaign.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::signed_result::ResultKey;
use super::state::Campaign;
use crate::decomposition::JobHash;

/// The coordinator's view of a worker; volatile.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Identifier of the worker's start; changes when it restarts.
    pub boot: u64,
    /// Owner that enrolled it; empty if unknown.
    pub owner: String,
    /// Address from which it calls.
    pub address: Option<IpAddr>,
    /// Units that it counts at the same time.
    pub capacity: u32,
    /// Its kernels.
    pub kernels: Vec<String>,
    /// Kernels and devices that it has named since its first sync. Results of any others
    /// are not accepted.
    pub announced: BTreeSet<String>,
    /// Measured rate for each job, in units per second.
    pub units_per_s: HashMap<JobHash, f64>,
    /// Time of its last sync, in ms.
    pub seen_ms: u64,
    /// True if it takes no more work, by its own request or the coordinator's.
    pub draining: bool,
    /// Units that it has counted since the coordinator started.
    pub units_done: u64,
    /// Maximum number of units of its next lease of each job: twice the number of a lease that it
    /// completed.
    pub lease_units: HashMap<JobHash, u64>,
}

impl Campaign {
    /// Returns whether a worker is not quarantined, takes work, and has synced in the last
    /// `within_ms`.
    pub(super) fn is_active(
        &self,
        name: &str,
        worker: &WorkerState,
        within_ms: u64,
        now_ms: u64,
    ) -> bool {
        worker.capacity > 0 && self.is_alive(name, worker, within_ms, now_ms)
    }

    /// Returns the same as [`Self::is_active`], but also true for a worker whose capacity is 0.
    pub(super) fn is_alive(
        &self,
        name: &str,
        worker: &WorkerState,
        within_ms: u64,
        now_ms: u64,
    ) -> bool {
        !worker.draining
            && now_ms.saturating_sub(worker.seen_ms) < within_ms
            && !self.reputation.is_quarantined(name, &worker.owner)
    }

    /// Drains a worker: it gets no more work. Returns false if the worker is unknown.
    pub fn drain(&mut self, worker: &str) -> bool {
        self.end_reservations_of(worker);
        self.workers.get_mut(worker).map(|worker| worker.draining = true).is_some()
    }

    /// Drains a worker until it restarts. A worker that has not synced since the coordinator
    /// started is drained when it syncs, unless it has restarted.
    pub(super) fn apply_drained(&mut self, worker: &str, boot: u64) {
        if !self.drain(worker) {
            self.drained.insert(worker.to_owned(), boot);
        }
    }

    /// Returns the key with which a worker signs its results, if it has one.
    pub fn result_key(&self, worker: &str) -> Option<ResultKey> {
        self.keys.get(worker)?.last().copied()
    }

    /// Returns whether a key that a worker presents is new and is to be recorded. A worker gets a
    /// new key if it loses its data directory, so there are few; the rest are ignored.
    pub fn is_new_key(&self, worker: &str, key: ResultKey) -> bool {
        const MOST_KEYS: usize = 64;
        let known = self.keys.get(worker).map_or(&[][..], Vec::as_slice);
        known.last() != Some(&key) && known.len() < MOST_KEYS
    }

    pub(super) fn apply_key(&mut self, worker: &str, key: ResultKey) {
        self.keys.entry(worker.to_owned()).or_default().push(key);
    }

    /// Returns whether a worker is draining.
    pub fn is_draining(&self, worker: &str) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.draining)
    }
}
