//! The events that change a campaign.

use super::assignment::SubRangeSet;
use super::checks::CheckPlan;
use super::unit_result::Source;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;
use crate::tally::Tally;

/// A permanent change of a campaign. A coordinator writes events to its ledger before it applies
/// them.
#[derive(Clone, Debug, PartialEq)]
pub enum CampaignEvent {
    /// A job was submitted.
    JobSubmitted {
        /// The job.
        job: JobHash,
        /// Number of its units.
        units: u64,
        /// Priority; jobs with a higher one come first.
        priority: i32,
        /// Time of submission, in ms.
        at_ms: u64,
        /// The published number of solutions, if any. The ledger does not record it; it is looked
        /// up when a ledger is read.
        published: Option<u128>,
    },
    /// A job's state changed.
    JobState {
        /// The job.
        job: JobHash,
        /// The new state.
        state: JobState,
    },
    /// A unit was counted.
    UnitDone {
        /// The unit.
        unit: UnitId,
        /// Number of the lease; 0 for the arbiter.
        attempt: u64,
        /// The result.
        tally: Tally,
        /// Source of the result.
        source: Source,
        /// Counting time, in seconds.
        elapsed_s: f64,
        /// The checks drawn for it. `None` in ledgers of earlier versions; they are then drawn when
        /// the ledger is read.
        checks: Option<CheckPlan>,
        /// The sums of its sub-ranges, in thirds, if a check needs them.
        sub_sums: Vec<u128>,
    },
    /// Some sub-ranges of a unit that is done were recounted.
    SpotCheck {
        /// The unit.
        unit: UnitId,
        /// The sub-ranges.
        sub_ranges: SubRangeSet,
        /// Their sums, in thirds.
        sums: Vec<u128>,
        /// Source of the recount.
        source: Source,
        /// True if these are the sums of the result in force.
        agrees: bool,
        /// Counting time, in seconds.
        elapsed_s: f64,
    },
    /// A unit that is done was recounted.
    Recount {
        /// The unit.
        unit: UnitId,
        /// The result of the recount.
        tally: Tally,
        /// Source of the recount.
        source: Source,
        /// True if its mirror image was counted.
        mirrored: bool,
        /// True if it equals the result in force.
        agrees: bool,
        /// Counting time, in seconds.
        elapsed_s: f64,
    },
    /// A result was voided; the unit is open again.
    UnitVoided {
        /// The unit.
        unit: UnitId,
        /// The reason.
        reason: String,
    },
    /// A unit failed too often and is poisoned.
    UnitPoisoned {
        /// The unit.
        unit: UnitId,
        /// The reason.
        reason: String,
    },
    /// A poisoned unit is open again.
    UnitRevived {
        /// The unit.
        unit: UnitId,
    },
    /// A worker was quarantined.
    WorkerQuarantined {
        /// The worker.
        worker: WorkerName,
        /// The reason.
        reason: String,
        /// True if it reported a false result; all unconfirmed units are then recounted.
        widen: bool,
    },
    /// A worker was released from quarantine.
    WorkerReleased {
        /// The worker.
        worker: WorkerName,
    },
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Its units are being counted.
    Running,
    /// It is suspended until it is resumed.
    Paused,
    /// It was given up for good.
    Cancelled,
    /// Every unit is done, all checks are made, and the total does not contradict a published
    /// value.
    Finished,
    /// Every unit is done, but the total is impossible or contradicts the published value; units
    /// are being recounted.
    Disputed,
}

impl JobState {
    /// Returns the name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
            Self::Disputed => "disputed",
        }
    }

    /// Returns whether units of the job are leased.
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::Running | Self::Disputed)
    }
}
