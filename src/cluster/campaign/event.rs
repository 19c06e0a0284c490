//! The events that change a campaign.
//!
//! An event is created once and passes through everything that depends on it:
//!
//! | step | place |
//! |---|---|
//! | created by validation, a ruling, a tick or an operator | [`super::Campaign`] |
//! | given a time: now it is an entry | `ledger::Entry::new` |
//! | checked against the entries before it, summed up and written | `ledger::CampaignFile::append` |
//! | applied | [`super::Campaign::apply`] |
//! | shown to operators | `coordinator::Observers::applied` |
//!
//! The last two also happen to every entry when a coordinator reads its ledger. The derived
//! encoding is the format of the ledger, so the names and the order of all fields are fixed. A new
//! field needs `serde(default)` and `skip_serializing_if`, so that older ledgers stay readable.

use serde::{Deserialize, Serialize};

use super::assignment::SubRangeSet;
use super::checks::CheckPlan;
use super::job::Claim;
use super::signed_result::{ResultKey, ResultSignature};
use super::unit_result::Source;
use super::{UnitId, WorkerName};
use crate::decomposition::{Job, JobHash};
use crate::oeis;
use crate::tally::Tally;

/// A permanent change of a campaign. A coordinator writes events to its ledger before it applies
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CampaignEvent {
    /// A job was submitted.
    JobSubmitted {
        /// The job: the hash of `text`.
        job: JobHash,
        /// The canonical text of the job.
        text: String,
        /// Number of its units.
        units: u64,
        /// Priority; jobs with a higher one come first.
        priority: i32,
        /// The submitter.
        submitter: String,
        /// Time of submission, in ms: that of the ledger's entry.
        #[serde(skip)]
        at_ms: u64,
        /// The published number of solutions, if any; looked up when a ledger is read.
        #[serde(skip)]
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
        #[serde(flatten)]
        unit: UnitId,
        /// The result.
        tally: Tally,
        /// Source of the result.
        #[serde(flatten)]
        source: Source,
        /// Number of the lease; 0 for the arbiter.
        attempt: u64,
        /// Counting time, in seconds.
        elapsed_s: f64,
        /// The checks drawn for it. `None` in ledgers of earlier versions; they are then drawn when
        /// the ledger is read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checks: Option<CheckPlan>,
        /// The sums of its sub-ranges, in thirds, if a check needs them.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::tally::decimals")]
        sub_sums: Vec<u128>,
        /// The signature of the worker, if it has a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<ResultSignature>,
    },
    /// Some sub-ranges of a unit that is done were recounted.
    SpotCheck {
        /// The unit.
        #[serde(flatten)]
        unit: UnitId,
        /// The sub-ranges.
        sub_ranges: SubRangeSet,
        /// Their sums, in thirds.
        #[serde(with = "crate::tally::decimals")]
        sums: Vec<u128>,
        /// Source of the recount.
        #[serde(flatten)]
        source: Source,
        /// True if these are the sums of the result in force.
        agrees: bool,
        /// Counting time, in seconds.
        elapsed_s: f64,
        /// The signature of the worker, if it has a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<ResultSignature>,
    },
    /// A unit that is done was recounted.
    Recount {
        /// The unit.
        #[serde(flatten)]
        unit: UnitId,
        /// The result of the recount.
        tally: Tally,
        /// Source of the recount.
        #[serde(flatten)]
        source: Source,
        /// True if its mirror image was counted.
        mirrored: bool,
        /// True if it equals the result in force.
        agrees: bool,
        /// Counting time, in seconds.
        elapsed_s: f64,
        /// The signature of the worker, if it has a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<ResultSignature>,
    },
    /// A result was voided; the unit is open again.
    UnitVoided {
        /// The unit.
        #[serde(flatten)]
        unit: UnitId,
        /// The reason.
        reason: String,
    },
    /// A unit failed too often and is poisoned.
    UnitPoisoned {
        /// The unit.
        #[serde(flatten)]
        unit: UnitId,
        /// The reason.
        reason: String,
    },
    /// A poisoned unit is open again.
    UnitRevived {
        /// The unit.
        #[serde(flatten)]
        unit: UnitId,
    },
    /// A worker called for the first time since the coordinator started, or with a new key.
    WorkerSeen {
        /// The worker.
        worker: WorkerName,
        /// Its owner.
        owner: String,
        /// The key with which it signs its results from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<ResultKey>,
    },
    /// A worker was quarantined.
    WorkerQuarantined {
        /// The worker.
        worker: WorkerName,
        /// The reason.
        reason: String,
        /// True if it reported a false result; all unconfirmed units are then recounted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        widen: bool,
    },
    /// A worker was released from quarantine.
    WorkerReleased {
        /// The worker.
        worker: WorkerName,
    },
    /// A worker was drained: it gets no more work until it restarts.
    WorkerDrained {
        /// The worker.
        worker: WorkerName,
        /// Identifier of the worker's start; changes when it restarts, which ends the draining.
        boot: u64,
    },
    /// A comment for operators.
    Note {
        /// The text.
        text: String,
    },
}

impl CampaignEvent {
    /// Creates the event of a submission at a time in ms.
    pub fn submission(job: &Job, units: u64, priority: i32, submitter: &str, at_ms: u64) -> Self {
        let (text, submitter) = (job.to_string(), submitter.to_owned());
        let (job, published) = (job.hash(), oeis::published(job.problem()));
        Self::JobSubmitted { job, text, units, priority, submitter, at_ms, published }
    }

    /// Creates the event of a recount of a unit, or of some of its sub-ranges. `mirrored` says
    /// whether the mirror image was counted, as it always is for sub-ranges.
    pub(super) fn recount(
        unit: UnitId,
        claim: Claim,
        (mirrored, agrees): (bool, bool),
        (source, signature): (Source, Option<ResultSignature>),
        elapsed_s: f64,
    ) -> Self {
        match claim {
            Claim::Whole(tally) => {
                Self::Recount { unit, tally, source, mirrored, agrees, elapsed_s, signature }
            }
            Claim::Spot(sub_ranges, sums) => {
                Self::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s, signature }
            }
        }
    }

    /// Sets what the encoding of a submission omits: its time in ms, and the published value.
    pub fn complete(&mut self, time_ms: u64) {
        if let Self::JobSubmitted { text, at_ms, published, .. } = self {
            *at_ms = time_ms;
            *published = text.parse::<Job>().ok().and_then(|job| oeis::published(job.problem()));
        }
    }

    /// Returns the job that the event is about, or `None` for workers and notes.
    pub const fn job(&self) -> Option<JobHash> {
        match self {
            Self::JobSubmitted { job, .. } | Self::JobState { job, .. } => Some(*job),
            Self::UnitDone { unit, .. }
            | Self::SpotCheck { unit, .. }
            | Self::Recount { unit, .. }
            | Self::UnitVoided { unit, .. }
            | Self::UnitPoisoned { unit, .. }
            | Self::UnitRevived { unit } => Some(unit.job),
            Self::WorkerSeen { .. }
            | Self::WorkerQuarantined { .. }
            | Self::WorkerReleased { .. }
            | Self::WorkerDrained { .. }
            | Self::Note { .. } => None,
        }
    }
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Its units are being counted. This is the initial state.
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
    /// All states, each at the index of its number.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Paused, Self::Cancelled, Self::Finished, Self::Disputed];

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
