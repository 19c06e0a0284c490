//! Checks: which units are recounted, to what extent, and by which worker.
//!
//! A *spot check* recounts some sub-ranges of a unit, drawn after the unit's sums of all its
//! sub-ranges are known; a *full check* recounts the whole unit. The checks of a result are decided
//! when it is validated, by a draw that no worker can predict. The checker is drawn as well, from
//! the workers of other owners and in proportion to the units that they have counted; the check is
//! then reserved for it for a limited time. Asking first gives no advantage. Checks that no worker
//! can make are made by the coordinator's arbiter, which also audits a share of all units.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::WorkerName;

/// The extent of a recount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Some sub-ranges.
    Spot,
    /// The whole unit.
    Full,
}

/// The checks drawn for a unit when it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckPlan {
    /// The check by a worker of another owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Depth>,
    /// The check by the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Depth>,
}

impl CheckPlan {
    /// Returns whether the sums of the unit's sub-ranges will be needed.
    pub fn has_spot(self) -> bool {
        self.peer == Some(Depth::Spot) || self.audit == Some(Depth::Spot)
    }
}

/// A pending check by a worker.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) depth: Depth,
    /// Source that confirmed the unit before it became doubtful again, by number; a worker of
    /// another owner must check it now.
    pub(super) earlier_checker: Option<u32>,
    /// Worker for which the check is reserved, and the end of the reservation in ms.
    pub(super) reservation: Option<(WorkerName, u64)>,
    /// Start of the lease or, if there is none, of the reservation, in ms.
    pub(super) since_ms: u64,
    /// Lease under which the check is being made.
    pub(super) leased: Option<u64>,
    /// Last worker that did not make it in time.
    pub(super) missed: Option<WorkerName>,
    /// Number of times that a worker did not make it in time.
    pub(super) misses: u32,
}

impl Check {
    pub(super) const fn new(depth: Depth, earlier_checker: Option<u32>) -> Self {
        Self {
            depth,
            earlier_checker,
            reservation: None,
            since_ms: 0,
            leased: None,
            missed: None,
            misses: 0,
        }
    }
}

/// The pending checks of a job.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) due: BTreeMap<u64, Check>,
    /// Units whose check is neither reserved nor leased.
    pub(super) unreserved: BTreeSet<u64>,
    /// Unit at which the next scan of `unreserved` begins.
    pub(super) cursor: u64,
    /// Unit at which the arbiter's next scan of `unreserved` begins.
    pub(super) arbiter_cursor: u64,
    /// Pending checks by the coordinator.
    pub(super) audits: BTreeMap<u64, Depth>,
    /// Number of full audits among them.
    pub(super) full_audits: usize,
}

impl Checks {
    /// Adds a check, or deepens the pending one.
    pub(super) fn insert(&mut self, unit: u64, check: Check) {
        match self.due.get_mut(&unit) {
            Some(known) => {
                known.depth = known.depth.max(check.depth);
                known.earlier_checker = known.earlier_checker.or(check.earlier_checker);
            }
            None => {
                self.due.insert(unit, check);
                self.unreserved.insert(unit);
            }
        }
    }

    pub(super) fn insert_audit(&mut self, unit: u64, depth: Depth) {
        let known = self.audits.get(&unit).copied();
        if known.is_none_or(|known| known < depth) {
            self.full_audits += usize::from(depth == Depth::Full);
            self.audits.insert(unit, depth);
        }
    }

    pub(super) fn remove(&mut self, unit: u64) -> Option<Check> {
        self.unreserved.remove(&unit);
        self.due.remove(&unit)
    }

    pub(super) fn remove_audit(&mut self, unit: u64) {
        if self.audits.remove(&unit) == Some(Depth::Full) {
            self.full_audits -= 1;
        }
    }

    pub(super) fn get(&self, unit: u64) -> Option<&Check> {
        self.due.get(&unit)
    }

    /// Returns the first pending audit that is not skipped.
    pub(super) fn first_audit(&self, skip: impl Fn(u64) -> bool) -> Option<(u64, Depth)> {
        self.audits.iter().map(|(&unit, &depth)| (unit, depth)).find(|&(unit, _)| !skip(unit))
    }

    /// Returns a pending check, preferably a spot check, whether or not it is reserved.
    pub(super) fn shallowest(&self, skip: impl Fn(u64) -> bool) -> Option<(u64, Depth)> {
        let due = || {
            self.due
                .iter()
                .filter(|(unit, _)| !skip(**unit))
                .map(|(&unit, check)| (unit, check.depth))
        };
        due().find(|(_, depth)| *depth == Depth::Spot).or_else(|| due().next())
    }

    /// Returns the checks that are not reserved, starting at a unit.
    pub(super) fn unreserved_from(&self, unit: u64) -> impl Iterator<Item = (u64, &Check)> {
        self.unreserved.range(unit..).filter_map(|unit| Some((*unit, self.due.get(unit)?)))
    }

    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    pub(super) fn audits(&self) -> usize {
        self.audits.len()
    }

    /// Returns whether a unit has a pending check by a worker or the coordinator.
    pub(super) fn is_due(&self, unit: u64) -> bool {
        self.due.contains_key(&unit) || self.audits.contains_key(&unit)
    }

    /// Removes all pending checks.
    pub(super) fn clear(&mut self) {
        *self =
            Self { cursor: self.cursor, arbiter_cursor: self.arbiter_cursor, ..Self::default() };
    }
}

impl Serialize for Checks {
    /// Encodes the checks without their reservations and leases, which are volatile.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let due = |(unit, check): (&u64, &Check)| (*unit, check.depth, check.earlier_checker);
        let due: Vec<_> = self.due.iter().map(due).collect();
        (due, &self.audits).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Checks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        type Encoded = (Vec<(u64, Depth, Option<u32>)>, BTreeMap<u64, Depth>);
        let (due, audits) = Encoded::deserialize(from)?;
        let mut checks = Self::default();
        for (unit, depth, earlier_checker) in due {
            checks.insert(unit, Check::new(depth, earlier_checker));
        }
        for (unit, depth) in audits {
            checks.insert_audit(unit, depth);
        }
        Ok(checks)
    }
}

/// Missed deadlines after which an urgent check goes to the coordinator.
pub(super) const MOST_MISSES: u32 = 2;
