//! Who counted, whose it is, and how far that is believed.
//!
//! Reputation is an *owner's*: everybody who enrolled with one token. Only what others confirmed adds to it.

use std::collections::{BTreeSet, HashMap};

use super::WorkerName;
use super::unit_result::Source;

/// The coordinator as the owner of its arbiter.
pub const COORDINATOR: &str = "(coordinator)";

/// An owner is not believed any more once so many of its workers were convicted.
const MOST_CONVICTED: usize = 3;

/// The most sources of one worker.
pub(super) const MOST_SOURCES: usize = 256;

/// An owner's number.
pub(super) type OwnerId = u32;

/// The record of an owner.
#[derive(Clone, Debug, Default)]
struct Record {
    /// Units of its workers that others confirmed, as a whole or in some sub-ranges.
    confirmed: u64,
    /// Its workers that are in quarantine.
    convicted: BTreeSet<WorkerName>,
}

/// All sources and owners, as numbers, and what is known of them.
#[derive(Debug, Default)]
pub(super) struct Reputation {
    sources: Vec<Source>,
    numbers: HashMap<Source, u32>,
    owner_of: Vec<OwnerId>,
    records: Vec<Record>,
    owners: HashMap<String, OwnerId>,
    /// The owners under which each worker was known.
    owners_of: HashMap<WorkerName, BTreeSet<OwnerId>>,
    of_worker: HashMap<WorkerName, Vec<u32>>,
    quarantined: HashMap<WorkerName, String>,
}

/// Returns whose a worker is, where its credentials say `owner`.
fn owner_name<'a>(worker: &'a str, owner: &'a str) -> &'a str {
    match owner {
        // No worker's name begins so: the arbiter, by whatever name.
        _ if worker.starts_with('(') => COORDINATOR,
        "" => worker,
        owner => owner,
    }
}

impl Reputation {
    /// Returns the number of a source.
    pub(super) fn number(&mut self, source: &Source) -> u32 {
        if let Some(&number) = self.numbers.get(source) {
            return number;
        }
        let owner = self.owner(&source.worker, &source.owner);
        // There are far fewer than 2^32 sources.
        let number = self.sources.len() as u32;
        self.sources.push(source.clone());
        self.owner_of.push(owner);
        self.numbers.insert(source.clone(), number);
        self.of_worker.entry(source.worker.clone()).or_default().push(number);
        number
    }

    /// Returns the number of an owner.
    pub(super) fn owner(&mut self, worker: &str, owner: &str) -> OwnerId {
        let name = owner_name(worker, owner);
        let id = self.owners.get(name).copied().unwrap_or_else(|| {
            let id = self.records.len() as OwnerId;
            self.records.push(Record::default());
            self.owners.insert(name.to_owned(), id);
            id
        });
        if !self.owners_of.get(worker).is_some_and(|owners| owners.contains(&id)) {
            self.owners_of.entry(worker.to_owned()).or_default().insert(id);
        }
        id
    }

    /// Returns the number of an owner that has one.
    pub(super) fn known_owner(&self, worker: &str, owner: &str) -> Option<OwnerId> {
        self.owners.get(owner_name(worker, owner)).copied()
    }

    /// Returns whether a source is the coordinator's own.
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

    /// Returns the numbers of the sources of a worker.
    pub(super) fn of_worker(&self, worker: &str) -> &[u32] {
        self.of_worker.get(worker).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a result of this source would be one source too many of its worker.
    pub(super) fn has_too_many_sources(&self, source: &Source) -> bool {
        !self.numbers.contains_key(source) && self.of_worker(&source.worker).len() >= MOST_SOURCES
    }

    /// Notes that others confirmed a unit of an owner.
    pub(super) fn confirmed(&mut self, owner: OwnerId) {
        self.records[owner as usize].confirmed += 1;
    }

    /// Returns whether a worker of an owner is in quarantine.
    pub(super) fn is_convicted(&self, owner: OwnerId) -> bool {
        !self.records[owner as usize].convicted.is_empty()
    }

    /// Returns whether fewer than `units` of an owner's units were confirmed by others.
    pub(super) fn is_new(&self, owner: OwnerId, units: u64) -> bool {
        self.records[owner as usize].confirmed < units
    }

    /// Puts a worker in quarantine; its owner begins anew. Returns the owners that it had.
    pub(super) fn quarantine(&mut self, worker: &str, reason: &str) -> BTreeSet<OwnerId> {
        self.quarantined.entry(worker.to_owned()).or_insert_with(|| reason.to_owned());
        let owners = self.owners_of.get(worker).cloned().unwrap_or_default();
        for &owner in &owners {
            let record = &mut self.records[owner as usize];
            record.confirmed = 0;
            record.convicted.insert(worker.to_owned());
        }
        owners
    }

    /// Lets a worker out of quarantine; its owner begins anew. Returns the owners that it had.
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

    /// Returns whether nothing of a worker is taken: it is in quarantine, or too many of its owner's workers are.
    pub(super) fn is_quarantined(&self, worker: &str, owner: &str) -> bool {
        self.quarantined.contains_key(worker)
            || self
                .known_owner(worker, owner)
                .is_some_and(|owner| self.records[owner as usize].convicted.len() >= MOST_CONVICTED)
    }

    /// Returns the workers in quarantine, with the reason.
    pub(super) const fn quarantined(&self) -> &HashMap<WorkerName, String> {
        &self.quarantined
    }
}
