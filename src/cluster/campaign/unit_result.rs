//! A worker's report of a unit, and its source.

use serde::{Deserialize, Serialize};

use super::assignment::SubRangeSet;
use super::signed_result::{ResultSignature, Statement, commitment};
use super::{UnitId, WorkerName};
use crate::tally::{Parts, Tally};

/// The source of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// The worker.
    pub worker: WorkerName,
    /// Owner that enrolled the worker; empty in ledgers of earlier versions, where each worker is
    /// its own owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The kernel.
    pub kernel: String,
    /// The worker's device, with its driver.
    pub device: String,
    /// The program's version.
    pub build: String,
}

/// A result that a worker reports.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitResult {
    /// The unit.
    pub unit: UnitId,
    /// The number of the lease under which it was counted.
    pub attempt: u64,
    /// The grant of that lease.
    pub grant: Vec<u8>,
    /// The result.
    pub tally: Tally,
    /// The result, itemised by weight.
    pub parts: Parts,
    /// The result in thirds, itemised by sub-range: all of the unit's, or those named by the lease.
    /// May be empty.
    pub sub_sums: Vec<u128>,
    /// Source of the result.
    pub source: Source,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
    /// The signature of the worker; `None` from guests and from workers of earlier versions.
    pub signature: Option<ResultSignature>,
}

impl UnitResult {
    /// Returns the statement that a worker signs for this result of a lease of mirror images, or
    /// not, and of `sub_ranges`, which is empty for whole units.
    pub fn statement(&self, mirrored: bool, sub_ranges: SubRangeSet) -> Statement<'_> {
        Statement {
            unit: self.unit,
            mirrored,
            sub_ranges: self.spots(sub_ranges),
            thirds: self.tally.thirds(),
            commitment: commitment(&self.sub_sums),
            kernel: &self.source.kernel,
        }
    }

    /// Returns the sub-ranges that the result is limited to, given those of its lease; empty for
    /// the whole unit, which workers of earlier versions always recount.
    pub(super) fn spots(&self, sub_ranges: SubRangeSet) -> SubRangeSet {
        let limited = self.sub_sums.len() == sub_ranges.len();
        if limited { sub_ranges } else { SubRangeSet::default() }
    }
}
