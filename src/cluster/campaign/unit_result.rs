//! What a worker reports of a unit, and who it is.

use super::{UnitId, WorkerName};
use crate::tally::{Parts, Tally};

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The worker.
    pub worker: WorkerName,
    /// Who enrolled it; empty in ledgers of before, where each worker is its own owner.
    pub owner: String,
    /// The kernel.
    pub kernel: String,
    /// The device: of the worker, with its driver.
    pub device: String,
    /// The program's version.
    pub build: String,
}

/// A result that a worker reports.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitResult {
    /// The unit.
    pub unit: UnitId,
    /// The lease under which it was counted.
    pub attempt: u64,
    /// The grant of that lease.
    pub grant: Vec<u8>,
    /// What was counted.
    pub tally: Tally,
    /// The same, itemised by weight.
    pub parts: Parts,
    /// The same in thirds, itemised by sub-range: all of the unit's, or those that the lease named. May be empty.
    pub sub_sums: Vec<u128>,
    /// By whom.
    pub source: Source,
    /// Seconds that it took.
    pub elapsed_s: f64,
}
