//! A job of a campaign.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::WorkerName;
use super::assignment::SubRangeSet;
use super::checks::Checks;
use super::event::JobState;
use super::finish::DisputeStage;
use super::reputation::OwnerId;
use super::unit_result::Source;
use super::units::Units;
use crate::tally::Tally;

/// The result of a recount, which may differ from the first result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Claim {
    /// The tally of the whole unit.
    Whole(Tally),
    /// The sums of some sub-ranges.
    Spot(SubRangeSet, Vec<u128>),
}

/// A job. Its encoding omits what is volatile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) units: Units,
    pub(super) priority: i32,
    pub(super) submitted_ms: u64,
    pub(super) state: JobState,
    /// The published number of solutions, if any.
    pub(super) published: Option<u128>,
    /// Owners of workers that counted or recounted units of it, without guests.
    pub(super) owners: BTreeSet<OwnerId>,
    /// Pending checks.
    pub(super) checks: Checks,
    /// Sums of sub-ranges, for units with a pending spot check or a dispute.
    pub(super) sub_sums: HashMap<u64, Box<[u128]>>,
    /// Units with two different results that the arbiter has not decided, with the source and the
    /// claim of the second result.
    pub(super) disputes: BTreeMap<u64, (Source, Claim)>,
    /// The stage of a dispute about the total.
    pub(super) stage: DisputeStage,
    /// Failures of units: the number for each worker.
    #[serde(skip)]
    pub(super) failures: HashMap<u64, BTreeMap<WorkerName, u32>>,
    /// For each unit that is not done: the owners to which it was leased, each with the time of its
    /// first lease in ms.
    #[serde(skip)]
    pub(super) held_since: HashMap<u64, Vec<(OwnerId, u64)>>,
    /// For each owner: units in force, counted since its record was last reset, that no other owner
    /// has checked.
    pub(super) unproven: HashMap<OwnerId, u64>,
    /// Units of expired leases, with the maximum number of units of their next lease.
    #[serde(skip)]
    pub(super) suspects: HashMap<u64, u64>,
    /// Workers that have no kernel for the job.
    #[serde(skip)]
    pub(super) unsuited: HashSet<WorkerName>,
    /// Total time of counting and of recounting, in seconds.
    pub(super) counting_s: f64,
    pub(super) checking_s: f64,
    /// The arbiter's counting time in seconds, and the equivalent number of whole units.
    pub(super) arbiter: (f64, f64),
}

impl Job {
    /// Returns whether a check by a worker or the coordinator is pending.
    pub(super) fn has_pending_checks(&self) -> bool {
        self.checks.len() + self.checks.audits() > 0
    }

    pub(super) fn change_unproven(&mut self, owner: OwnerId, by: i64) {
        let unproven = self.unproven.entry(owner).or_default();
        *unproven = unproven.saturating_add_signed(by);
    }

    /// Returns whether these are the sums of the unit's result, or `None` if its sums are not
    /// stored.
    pub(super) fn agrees_with(
        &self,
        unit: u64,
        sub_ranges: SubRangeSet,
        sums: &[u128],
    ) -> Option<bool> {
        let known = self.sub_sums.get(&unit)?;
        let same = |(number, sum): (u32, &u128)| known.get(number as usize) == Some(sum);
        Some(sub_ranges.len() == sums.len() && sub_ranges.numbers().zip(sums).all(same))
    }
}
