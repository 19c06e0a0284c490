//! Sources of results, their owners, and the reputation of each owner.
//!
//! Reputation belongs to the *owner*: all workers that enrolled with one token. It is gained only
//! through confirmations by others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::WorkerName;
use super::guests::{guest_owner, is_guest};
use super::unit_result::Source;

/// The name of the coordinator as the owner of its arbiter.
pub const COORDINATOR: &str = "(coordinator)";

/// Number of convicted workers from which an owner is no longer trusted.
const MOST_CONVICTED: usize = 3;

/// Upper limit of the sources of a worker.
pub(super) const MOST_SOURCES: usize = 256;

/// The number of an owner.
pub(super) type OwnerId = u32;

/// The record of an owner.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// Units of its workers that others confirmed, in full or in part.
    confirmed: u64,
    /// Its quarantined workers.
    convicted: BTreeSet<WorkerName>,
    /// True if its workers are guests.
    is_guest: bool,
}

/// All sources and owners by number, and their reputation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Reputation {
    #[serde(serialize_with = "serialize_sources", deserialize_with = "deserialize_sources")]
    sources: Vec<Arc<Source>>,
    /// Follows from `sources`, as does `of_worker`.
    #[serde(skip)]
    numbers: HashMap<Arc<Source>, u32>,
    owner_of: Vec<OwnerId>,
    records: Vec<Record>,
    owners: HashMap<String, OwnerId>,
    /// Owners under which each worker was known.
    owners_of: HashMap<WorkerName, BTreeSet<OwnerId>>,
    #[serde(skip)]
    of_worker: HashMap<WorkerName, Vec<u32>>,
    quarantined: HashMap<WorkerName, String>,
}

/// Returns the owner of a worker whose credentials name `owner`.
fn owner_name<'a>(worker: &'a str, owner: &'a str) -> &'a str {
    match owner {
        // Only the arbiter's name begins with a parenthesis.
        _ if worker.starts_with('(') => COORDINATOR,
        _ if is_guest(worker) => guest_owner(worker),
        "" => worker,
        owner => owner,
    }
}

/// Returns whether the workers of two sources have the same owner.
pub(super) fn have_same_owner(one: &Source, other: &Source) -> bool {
    owner_name(&one.worker, &one.owner) == owner_name(&other.worker, &other.owner)
}

fn serialize_sources<S: Serializer>(sources: &[Arc<Source>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(sources.iter().map(AsRef::as_ref))
}

fn deserialize_sources<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arc<Source>>, D::Error> {
    Ok(Vec::<Source>::deserialize(from)?.into_iter().map(Arc::new).collect())
}

impl Reputation {
    /// Completes the state that was read from a snapshot.
    pub(super) fn complete(&mut self) {
        for (number, source) in (0..).zip(&self.sources) {
            self.numbers.insert(Arc::clone(source), number);
            self.of_worker.entry(source.worker.clone()).or_default().push(number);
        }
    }

    /// Returns the number of a source, assigning one if it is new.
    pub(super) fn number(&mut self, source: &Source) -> u32 {
        if let Some(&number) = self.numbers.get(source) {
            return number;
        }
        let owner = self.owner(&source.worker, &source.owner);
        // There are far fewer than 2^32 sources.
        let number = self.sources.len() as u32;
        let shared = Arc::new(source.clone());
        self.sources.push(Arc::clone(&shared));
        self.owner_of.push(owner);
        self.numbers.insert(shared, number);
        self.of_worker.entry(source.worker.clone()).or_default().push(number);
        number
    }

    /// Returns the number of a worker's owner, assigning one if it is new.
    pub(super) fn owner(&mut self, worker: &str, owner: &str) -> OwnerId {
        let name = owner_name(worker, owner);
        let id = self.owners.get(name).copied().unwrap_or_else(|| {
            let id = self.records.len() as OwnerId;
            let is_guest = is_guest(worker);
            self.records.push(Record { is_guest, ..Record::default() });
            self.owners.insert(name.to_owned(), id);
            id
        });
        if !self.owners_of.get(worker).is_some_and(|owners| owners.contains(&id)) {
            self.owners_of.entry(worker.to_owned()).or_default().insert(id);
        }
        id
    }

    /// Returns how many owners there are. Every [`OwnerId`] is less than this.
    pub(super) const fn owners(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of a worker's owner, or `None` if it has none yet.
    pub(super) fn known_owner(&self, worker: &str, owner: &str) -> Option<OwnerId> {
        self.owners.get(owner_name(worker, owner)).copied()
    }

    /// Returns whether a source is the coordinator.
    pub(super) fn is_coordinator(&self, number: u32) -> bool {
        self.sources[number as usize].worker.starts_with('(')
    }

    /// Returns whether an owner is the coordinator.
    pub(super) fn is_coordinator_owner(&self, owner: OwnerId) -> bool {
        self.owners.get(COORDINATOR) == Some(&owner)
    }

    pub(super) fn source(&self, number: u32) -> &Source {
        &self.sources[number as usize]
    }

    /// Returns the owner of a source.
    pub(super) fn owner_of(&self, number: u32) -> OwnerId {
        self.owner_of[number as usize]
    }

    /// Returns the numbers of a worker's sources.
    pub(super) fn of_worker(&self, worker: &str) -> &[u32] {
        self.of_worker.get(worker).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a source is new and its worker already has the maximum number of sources.
    pub(super) fn has_too_many_sources(&self, source: &Source) -> bool {
        !self.numbers.contains_key(source) && self.of_worker(&source.worker).len() >= MOST_SOURCES
    }

    /// Records that others confirmed a unit of an owner.
    pub(super) fn confirmed(&mut self, owner: OwnerId) {
        self.records[owner as usize].confirmed += 1;
    }

    /// Returns whether an owner has a quarantined worker.
    pub(super) fn is_convicted(&self, owner: OwnerId) -> bool {
        !self.records[owner as usize].convicted.is_empty()
    }

    /// Returns whether others confirmed fewer than `units` of an owner's units. Guests are always
    /// new.
    pub(super) fn is_new(&self, owner: OwnerId, units: u64) -> bool {
        let record = &self.records[owner as usize];
        record.is_guest || record.confirmed < units
    }

    /// Returns whether the workers of an owner are guests.
    pub(super) fn is_guest(&self, owner: OwnerId) -> bool {
        self.records[owner as usize].is_guest
    }

    /// Returns the sources whose results are void if a worker is quarantined: its own or, for a
    /// guest, all of its owner.
    pub(super) fn voided_with(&self, worker: &str) -> Vec<u32> {
        match self.known_owner(worker, "").filter(|_| is_guest(worker)) {
            Some(owner) => {
                let owners = (0..).zip(&self.owner_of);
                owners.filter(|(_, of)| **of == owner).map(|(number, _)| number).collect()
            }
            None => self.of_worker(worker).to_vec(),
        }
    }

    /// Quarantines a worker and resets the reputation of its owners. Returns these owners.
    pub(super) fn quarantine(&mut self, worker: &str, reason: &str) -> BTreeSet<OwnerId> {
        if is_guest(worker) {
            // After a restart the ledger may contain no result of it.
            self.owner(worker, "");
        }
        self.quarantined.entry(worker.to_owned()).or_insert_with(|| reason.to_owned());
        let owners = self.owners_of.get(worker).cloned().unwrap_or_default();
        for &owner in &owners {
            let record = &mut self.records[owner as usize];
            record.confirmed = 0;
            record.convicted.insert(worker.to_owned());
        }
        owners
    }

    /// Releases a worker from quarantine and resets the reputation of the owners for which it was
    /// convicted. Returns these owners.
    pub(super) fn release(&mut self, worker: &str) -> BTreeSet<OwnerId> {
        self.quarantined.remove(worker);
        let mut owners = BTreeSet::new();
        for (owner, record) in (0..).zip(&mut self.records) {
            if record.convicted.remove(worker) {
                record.confirmed = 0;
                owners.insert(owner);
            }
        }
        owners
    }

    /// Returns whether results of a worker are rejected: it is quarantined, or too many workers of
    /// its owner are; one is too many for guests.
    pub(super) fn is_quarantined(&self, worker: &str, owner: &str) -> bool {
        match self.known_owner(worker, owner) {
            Some(owner) => self.is_rejected(worker, owner),
            None => self.quarantined.contains_key(worker),
        }
    }

    /// Returns the same for a worker of a known owner.
    pub(super) fn is_rejected(&self, worker: &str, owner: OwnerId) -> bool {
        let Record { convicted, is_guest, .. } = &self.records[owner as usize];
        convicted.len() >= if *is_guest { 1 } else { MOST_CONVICTED }
            || self.quarantined.contains_key(worker)
    }

    /// Returns the quarantined workers, with the reason.
    pub(super) const fn quarantined(&self) -> &HashMap<WorkerName, String> {
        &self.quarantined
    }
}
