//! Units that workers could not count.

use std::collections::{BTreeMap, BTreeSet};

use super::event::CampaignEvent;
use super::guests::is_guest;
use super::leases::Lease;
use super::reputation::OwnerId;
use super::state::Campaign;
use super::units::UnitStatus;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;

impl Campaign {
    /// Marks a worker as having no kernel for the job until it restarts. Drops its lease and its
    /// reservations of checks.
    pub fn mark_unsuited(&mut self, unit: UnitId, attempt: u64, worker: &str) {
        if self.leases.get(attempt).is_some_and(|lease| lease.worker == worker) {
            self.drop_lease(attempt);
        }
        if let Some(job) = self.jobs.get_mut(&unit.job) {
            job.unsuited.insert(worker.to_owned());
        }
        self.end_reservations_of(worker);
    }

    /// Records that a worker could not count a unit of a lease that it holds or held. Returns an
    /// event if the unit is to be poisoned. Ignores workers that did not have this lease. The owner
    /// of a guest loses the unit after three failures.
    pub fn fail(
        &mut self,
        unit: UnitId,
        attempt: u64,
        worker: &str,
        reason: &str,
    ) -> Option<CampaignEvent> {
        if !self.was_leased_to(unit, attempt, worker) {
            return None;
        }
        if is_guest(worker) {
            self.record_failure_of_guest(unit, worker);
            return None;
        }
        self.record_failure(unit, worker, reason)
    }

    /// Returns whether a unit is or was leased to a worker under this number.
    pub fn was_leased_to(&self, unit: UnitId, attempt: u64, worker: &str) -> bool {
        let lease = self.lease_or_ended(attempt);
        lease.is_some_and(|lease| {
            lease.worker == worker && lease.job == unit.job && lease.units.contains(&unit.unit)
        })
    }

    fn record_failure(
        &mut self,
        unit: UnitId,
        worker: &str,
        reason: &str,
    ) -> Option<CampaignEvent> {
        let settings = self.settings;
        let job = self.jobs.get_mut(&unit.job)?;
        if !matches!(job.units.status(unit.unit)?, UnitStatus::Open | UnitStatus::Leased) {
            return None;
        }
        let workers = job.failures.entry(unit.unit).or_default();
        *workers.entry(worker.to_owned()).or_default() += 1;
        let failures: u32 = workers.values().sum();
        if failures < settings.poison_failures || workers.len() < settings.poison_workers {
            return None;
        }
        // After a restart the coordinator does not know a worker until it syncs.
        let owner = |name: &WorkerName| {
            let owner = self.workers.get(name).map(|worker| &worker.owner[..]).unwrap_or_default();
            self.reputation.known_owner(name, owner)
        };
        let mut of_owner: BTreeMap<Option<OwnerId>, u32> = BTreeMap::new();
        for (name, times) in &*workers {
            *of_owner.entry(owner(name)).or_default() += times;
        }
        // Where several owners count, a single owner cannot poison a unit, however often it reports
        // failures.
        let enrolled = self.workers.iter().filter(|(name, _)| !is_guest(name));
        let enrolled = enrolled.map(|(_, worker)| worker.owner_id);
        let enough_owners = settings.poison_workers.max(2);
        let mut owners = BTreeSet::new();
        for owner in job.owners.iter().copied().chain(enrolled) {
            owners.insert(owner);
            if owners.len() == enough_owners {
                break;
            }
        }
        let most = of_owner.values().copied().max().unwrap_or_default();
        let poison = of_owner.len() >= owners.len().min(settings.poison_workers)
            && (owners.len() < 2 || failures - most >= settings.poison_failures / 2);
        let reason =
            format!("failed {failures} times on {} workers; last error: {reason}", workers.len());
        poison.then_some(CampaignEvent::UnitPoisoned { unit, reason })
    }

    /// Treats the units of an expired lease as suspects, since one of them may have crashed the
    /// worker: their next leases are ever smaller. A unit that was `alone` with its worker has
    /// failed.
    pub(super) fn mark_suspects(&mut self, lease: &Lease, alone: bool) -> Option<CampaignEvent> {
        let count = lease.len();
        // A guest may leave at any time.
        if lease.mirrored || is_guest(&lease.worker) {
            return None;
        }
        if count == 1 && alone {
            let unit = UnitId { job: lease.job, unit: lease.units.start };
            return self.record_failure(unit, &lease.worker, "its lease expired");
        }
        let job = self.jobs.get_mut(&lease.job)?;
        for unit in lease.units.clone() {
            if job.units.status(unit) == Some(UnitStatus::Open) {
                job.suspects.insert(unit, count.div_ceil(4));
            }
        }
        None
    }

    /// Returns whether a unit of expired leases must be alone in its next lease.
    pub(super) fn is_suspect(&self, hash: JobHash, unit: u64) -> bool {
        self.jobs.get(&hash).is_some_and(|job| job.suspects.get(&unit) == Some(&1))
    }
}
