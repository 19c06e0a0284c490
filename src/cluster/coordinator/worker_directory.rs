//! The reports of workers about themselves, and the list of silent workers.

use std::collections::{HashMap, HashSet};

use super::commands::WorkerDetails;
use super::now_ms;
use super::observers::Observers;
use crate::cluster::campaign::{Campaign, CampaignEvent, is_guest};
use crate::cluster::ledger::Entry;
use crate::cluster::protocol::v1::Device;

/// The workers that have synced since the coordinator started.
#[derive(Debug, Default)]
pub(super) struct WorkerDirectory {
    details: HashMap<String, WorkerDetails>,
    /// Known workers that are silent now.
    silent: HashSet<String>,
    /// Entries of new workers and new keys, written with the next tick or before results.
    unwritten: Vec<Entry>,
}

impl WorkerDirectory {
    /// Records what a worker reports about itself with a sync. Reports to the observers if it is
    /// new or has returned, and which of its devices failed since its last sync.
    pub(super) fn record(
        &mut self,
        campaign: &Campaign,
        (worker, owner): (&str, &str),
        details: WorkerDetails,
        observers: &Observers,
    ) {
        let before = self.details.get(worker);
        let was_silent = self.silent.remove(worker);
        // Guests come and go, and leave no trace in the log.
        if (before.is_none() || was_silent) && !is_guest(worker) {
            observers.worker_joined(worker, &details.address, was_silent);
        }
        let is_known = |device: &Device| {
            before.is_some_and(|before| {
                before.devices.iter().any(|old| old.id == device.id && old.fault == device.fault)
            })
        };
        let is_faulty = |device: &&Device| !device.fault.is_empty() && !is_known(device);
        for device in details.devices.iter().filter(is_faulty) {
            observers.device_failed(worker, device);
        }
        if before.is_none() && !is_guest(worker) {
            tracing::info!(
                worker,
                address = details.address,
                build = details.build,
                "a worker has joined"
            );
        }
        let presented = |details: &WorkerDetails| details.key;
        let new_key = details.key.filter(|key| {
            campaign.is_new_key(worker, *key) && before.and_then(presented) != Some(*key)
        });
        if (before.is_none() || new_key.is_some()) && !is_guest(worker) {
            let (worker, owner) = (worker.to_owned(), owner.to_owned());
            let seen = CampaignEvent::WorkerSeen { worker, owner, key: new_key };
            self.unwritten.push(Entry::new(seen, now_ms()));
        }
        self.details.insert(worker.to_owned(), details);
    }

    /// Removes and returns the entries of new workers that are not in the ledger yet.
    pub(super) fn take_unwritten(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.unwritten)
    }

    /// Keeps entries that could not be written.
    pub(super) fn keep_unwritten(&mut self, entries: Vec<Entry>) {
        self.unwritten.splice(..0, entries);
    }

    /// Returns what a worker reported about itself.
    pub(super) fn details(&self, worker: &str) -> WorkerDetails {
        self.details.get(worker).cloned().unwrap_or_default()
    }

    /// Returns whether a worker that is not silent counts on a GPU.
    pub(super) fn have_gpu(&self) -> bool {
        let heard = self.details.iter().filter(|(name, _)| !self.silent.contains(*name));
        let mut devices = heard.flat_map(|(_, details)| &details.devices);
        devices.any(|device| device.id != "cpu" && device.fault.is_empty())
    }

    /// Forgets the guests and the silent workers that the campaign has forgotten.
    pub(super) fn forget_silent(&mut self, campaign: &Campaign) {
        let silent = &self.silent;
        self.details.retain(|name, _| {
            campaign.has_synced(name) || !is_guest(name) && !silent.contains(name)
        });
        self.silent.retain(|name| campaign.has_synced(name));
    }

    /// Reports the workers that have not synced for the lifetime of a lease, each once.
    pub(super) fn report_silent(
        &mut self,
        campaign: &Campaign,
        (steady_ms, lease_ms): (u64, u64),
        observers: &Observers,
    ) {
        for (name, worker) in campaign.workers() {
            if worker.seen_ms + lease_ms <= steady_ms
                && !self.silent.contains(name)
                && !is_guest(name)
            {
                self.silent.insert(name.clone());
                observers.worker_silent(name, worker.draining);
            }
        }
    }
}

#[cfg(test)]
impl WorkerDirectory {
    /// Sets what a worker reported about itself.
    pub(super) fn set_details(&mut self, worker: String, details: WorkerDetails) {
        self.details.insert(worker, details);
    }
}
