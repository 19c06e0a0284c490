//! The entries of a campaign's ledger, in chronological order.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::decomposition::JobHash;
use crate::tally::Tally;

/// An event in the ledger. Times are milliseconds since the Unix epoch, given by the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A job was accepted.
    JobSubmitted(JobSubmitted),
    /// The phase of a job changed.
    JobState(PhaseChanged),
    /// A unit was counted.
    UnitDone(UnitDone),
    /// A unit that is done was recounted.
    Recount(Recount),
    /// Some sub-ranges of a unit that is done were recounted.
    SpotCheck(SpotCheck),
    /// The result of a unit was voided, for instance that of a quarantined worker; the unit is open
    /// again.
    UnitVoided(UnitReason),
    /// A unit was poisoned because it failed on several workers.
    UnitPoisoned(UnitReason),
    /// A poisoned unit is open again.
    UnitRevived(UnitRevived),
    /// A worker called for the first time since the coordinator started.
    WorkerSeen(WorkerSeen),
    /// A worker was quarantined.
    WorkerQuarantined(WorkerQuarantined),
    /// A worker was released from quarantine.
    WorkerReleased(WorkerReleased),
    /// A worker was drained: it gets no more work until it restarts.
    WorkerDrained(WorkerDrained),
    /// A comment for operators.
    Note(Note),
}

/// A job and its submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSubmitted {
    /// The hash of `text`.
    pub job: JobHash,
    /// The canonical text of the job.
    pub text: String,
    /// Units of the job.
    pub units: u64,
    /// Priority; jobs with a higher one come first.
    pub priority: i32,
    /// The submitter.
    pub submitter: String,
    /// Time of submission.
    pub at_ms: u64,
}

/// The phase of a job, which determines whether its units are leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its units are leased. This is the initial phase.
    Running,
    /// It is suspended until it is resumed.
    Paused,
    /// It was given up for good.
    Cancelled,
    /// All units are done.
    Finished,
    /// All units are done, but the total is impossible or contradicts the published value; units
    /// are being recounted.
    Disputed,
}

impl Phase {
    /// All phases, each at the index of its number.
    pub(super) const ALL: [Self; 5] =
        [Self::Running, Self::Paused, Self::Cancelled, Self::Finished, Self::Disputed];

    /// Returns the name of the phase.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
            Self::Disputed => "disputed",
        }
    }
}

/// A change of a job's phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseChanged {
    /// The job.
    pub job: JobHash,
    /// The new phase; finished only if every unit is done and the total passes its checks.
    pub state: Phase,
    /// Time of the change.
    pub at_ms: u64,
}

/// The result of a unit and its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitDone {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// The result.
    pub tally: Tally,
    /// The worker that counted.
    pub worker: String,
    /// Owner that enrolled the worker; empty in ledgers of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The kernel that counted.
    pub kernel: String,
    /// The device that counted.
    pub device: String,
    /// The build of the program that counted.
    pub build: String,
    /// The number of the lease; 0 for the arbiter.
    pub attempt: u64,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
    /// The checks drawn for it; `None` in ledgers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<DrawnChecks>,
    /// The sums of its sub-ranges, if a check needs them.
    #[serde(default, skip_serializing_if = "SubSums::is_empty")]
    pub sub_sums: SubSums,
    /// Time of arrival.
    pub at_ms: u64,
}

/// A recount of some sub-ranges of a unit that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpotCheck {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// The numbers of the sub-ranges, from 0, ascending.
    pub sub_ranges: Vec<u32>,
    /// Their sums, in thirds of a solution.
    pub sums: SubSums,
    /// The worker that counted.
    pub worker: String,
    /// Owner that enrolled the worker.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The kernel that counted.
    pub kernel: String,
    /// The device that counted.
    pub device: String,
    /// The build of the program that counted.
    pub build: String,
    /// True if these are the sums of the result in force.
    pub agrees: bool,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
    /// Time of arrival.
    pub at_ms: u64,
}

/// Sums of sub-ranges of a unit, in thirds of a solution. Serialised as decimal strings, since JSON
/// readers lose digits beyond 2^53.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubSums(pub Vec<u128>);

impl SubSums {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for SubSums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(u128::to_string))
    }
}

impl<'de> Deserialize<'de> for SubSums {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts: Vec<String> = Deserialize::deserialize(deserializer)?;
        let sums: Result<Vec<u128>, _> = texts.iter().map(|text| text.parse()).collect();
        sums.map(Self).map_err(de::Error::custom)
    }
}

/// The extent of a recount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckDepth {
    /// Some sub-ranges.
    Spot,
    /// The whole unit.
    Full,
}

/// The checks drawn for a unit when it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnChecks {
    /// The check by a worker of another owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<CheckDepth>,
    /// The check by the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<CheckDepth>,
}

/// A recount of a unit that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recount {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// The result of the recount.
    pub tally: Tally,
    /// The worker that counted.
    pub worker: String,
    /// Owner that enrolled the worker; empty in ledgers of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The kernel that counted.
    pub kernel: String,
    /// The device that counted.
    pub device: String,
    /// The build of the program that counted.
    pub build: String,
    /// True if a mirror image of the unit was counted instead of the unit itself.
    pub mirrored: bool,
    /// True if the sum equals that of the result in force.
    pub agrees: bool,
    /// Counting time, in seconds.
    pub elapsed_s: f64,
    /// Time of arrival.
    pub at_ms: u64,
}

/// A change of a unit's state, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitReason {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// The reason.
    pub reason: String,
    /// Time of the change.
    pub at_ms: u64,
}

/// A poisoned unit that is open again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRevived {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// Time of the change.
    pub at_ms: u64,
}

/// A worker's first call since the coordinator started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSeen {
    /// The worker.
    pub worker: String,
    /// Its owner.
    pub owner: String,
    /// Time of the call.
    pub at_ms: u64,
}

/// The quarantine of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerQuarantined {
    /// The worker.
    pub worker: String,
    /// The reason.
    pub reason: String,
    /// True if it reported a false result, so that all unconfirmed units were to be recounted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub widen: bool,
    /// Time of the quarantine.
    pub at_ms: u64,
}

/// The release of a worker from quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerReleased {
    /// The worker.
    pub worker: String,
    /// Time of the release.
    pub at_ms: u64,
}

/// The draining of a worker, which lasts until it restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerDrained {
    /// The worker.
    pub worker: String,
    /// Identifier of the worker's start; changes when it restarts, which ends the draining.
    pub boot: u64,
    /// Time of the draining.
    pub at_ms: u64,
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The text.
    pub text: String,
    /// Time of the comment.
    pub at_ms: u64,
}

impl Entry {
    /// Returns the job that the entry is about, or `None` for workers and notes.
    pub const fn job(&self) -> Option<JobHash> {
        match self {
            Self::JobSubmitted(JobSubmitted { job, .. })
            | Self::JobState(PhaseChanged { job, .. })
            | Self::UnitDone(UnitDone { job, .. })
            | Self::Recount(Recount { job, .. })
            | Self::SpotCheck(SpotCheck { job, .. })
            | Self::UnitVoided(UnitReason { job, .. })
            | Self::UnitPoisoned(UnitReason { job, .. })
            | Self::UnitRevived(UnitRevived { job, .. }) => Some(*job),
            Self::WorkerSeen(_)
            | Self::WorkerQuarantined(_)
            | Self::WorkerReleased(_)
            | Self::WorkerDrained(_)
            | Self::Note(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
