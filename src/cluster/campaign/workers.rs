//! The workers of a campaign.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::WorkerName;
use super::guests::is_guest;
use super::reputation::OwnerId;
use super::signed_result::ResultKey;
use super::state::Campaign;
use crate::decomposition::JobHash;

/// The coordinator's view of a worker; volatile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerState {
    /// Identifier of the worker's start; changes when it restarts.
    pub boot: u64,
    /// Owner that enrolled it; empty if unknown.
    pub owner: String,
    /// The number of the owner.
    pub(super) owner_id: OwnerId,
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

/// The number of syncs per second from which workers are asked to sync less often.
const MOST_SYNCS_PER_S: u64 = 500;

impl Campaign {
    /// Returns the time between two syncs of a worker, in ms: that of the settings, or longer if
    /// there are so many workers that they would sync too often in all.
    pub(super) fn sync_ms(&self) -> u64 {
        self.settings.sync_ms.max(self.at_work * 1000 / MOST_SYNCS_PER_S)
    }

    /// Returns how many times longer it is than in the settings.
    fn delay(&self) -> f64 {
        self.sync_ms() as f64 / self.settings.sync_ms.max(1) as f64
    }

    /// Returns the lifetime of a lease without a sync from its worker, in ms. It grows with the
    /// time between two syncs.
    pub fn lease_ms(&self) -> u64 {
        (self.settings.lease_ms as f64 * self.delay()) as u64
    }

    /// Returns the counting time of a lease in seconds. It grows likewise, so that workers do not
    /// sync in between because they have nothing left to count.
    pub(super) fn lease_s(&self) -> f64 {
        self.settings.lease_s * self.delay()
    }

    /// Counts the workers at work.
    pub(super) fn count_workers(&mut self, now_ms: u64) {
        let active =
            |(name, worker): &(&WorkerName, &WorkerState)| self.is_active(name, worker, now_ms);
        self.at_work = self.workers.iter().filter(active).count() as u64;
    }

    /// Returns whether a worker is not quarantined, takes work, and has synced within the lifetime
    /// of a lease.
    pub(super) fn is_active(&self, name: &str, worker: &WorkerState, now_ms: u64) -> bool {
        worker.capacity > 0 && self.is_alive(name, worker, now_ms)
    }

    /// Returns the same as [`Self::is_active`], but also true for a worker whose capacity is 0.
    pub(super) fn is_alive(&self, name: &str, worker: &WorkerState, now_ms: u64) -> bool {
        !worker.draining
            && now_ms.saturating_sub(worker.seen_ms) < self.lease_ms()
            && !self.reputation.is_rejected(name, worker.owner_id)
    }

    /// Forgets what workers reported that have been silent for long and have no leases: guests
    /// after ten minutes, because strangers come and go, others after a month.
    pub(super) fn forget_silent_workers(&mut self, now_ms: u64) {
        const GUEST_MS: u64 = 600_000;
        const WORKER_MS: u64 = 30 * 86_400_000;
        let is_forgotten = |(name, worker): &(&WorkerName, &WorkerState)| {
            let after_ms = if is_guest(name) { GUEST_MS } else { WORKER_MS };
            now_ms.saturating_sub(worker.seen_ms) > after_ms
                && self.leases.of_worker(name).next().is_none()
        };
        let forgotten = self.workers.iter().filter(is_forgotten).map(|(name, _)| name.clone());
        for name in forgotten.collect::<Vec<_>>() {
            self.workers.remove(&name);
            self.reserved.remove(&name);
            for job in self.jobs.values_mut() {
                job.unsuited.remove(&name);
            }
        }
    }

    /// Drains a worker: it gets no more work. Returns false if the worker is unknown.
    pub fn drain(&mut self, worker: &str) -> bool {
        self.end_reservations_of(worker);
        self.workers.get_mut(worker).map(|worker| worker.draining = true).is_some()
    }

    /// Drains a worker until it restarts. A worker that has not synced since the coordinator
    /// started is drained when it syncs, unless it has restarted.
    pub(super) fn apply_drained(&mut self, worker: &str, boot: u64) {
        self.drain(worker);
        self.drained.insert(worker.to_owned(), boot);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::campaign::{CampaignKey, Settings, SyncRequest};

    #[test]
    fn many_workers_sync_less_often_and_keep_their_leases_longer() {
        let settings = Settings::default();
        let mut campaign = Campaign::new(settings, 1, CampaignKey::from_seed(1));
        let mut sync = |count: u32, now_ms| {
            let mut next_ms = 0;
            for number in 0..count {
                let request = SyncRequest {
                    worker: format!("w{number}"),
                    boot: 1,
                    capacity: 1,
                    ..SyncRequest::default()
                };
                next_ms = campaign.sync(&request, now_ms).next_sync_ms;
            }
            campaign.tick(now_ms);
            (next_ms, campaign.lease_ms())
        };
        let usual = (settings.sync_ms, settings.lease_ms);
        assert_eq!(sync(4000, 0), usual);
        sync(20_000, 1000);
        assert_eq!(sync(20_000, 2000), (40_000, 4 * settings.lease_ms));
        // Workers are scanned once in every 2 s, so these count a second later.
        assert_eq!(sync(24_000, 2500).0, 40_000);
        assert_eq!(sync(24_000, 3000).0, 40_000);
        assert_eq!(sync(24_000, 3500).0, 48_000);
        // Those that have left count no more once their leases would have expired.
        assert_eq!(sync(10, 10_000 + 5 * settings.lease_ms).1, settings.lease_ms);
    }
}
