//! What the ledger of a campaign keeps, in the order in which it happened.

use serde::{Deserialize, Serialize};

use crate::preplacement::JobHash;
use crate::tally::Tally;

/// One thing that happened. Times are milliseconds since the Unix epoch, told by the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A job was accepted.
    JobSubmitted(JobSubmitted),
    /// A job goes on, waits, or is over.
    JobState(JobState),
    /// A unit has its result.
    UnitDone(UnitDone),
    /// The result of a unit was compared with a second count.
    Recount(Recount),
    /// The result of a unit is taken back, for instance that of a quarantined worker: the unit is open again.
    UnitVoided(UnitReason),
    /// A unit is set aside because it fails wherever it goes.
    UnitPoisoned(UnitReason),
    /// A unit that was set aside is tried again.
    UnitRevived(UnitRevived),
    /// A worker is there.
    WorkerSeen(WorkerSeen),
    /// A worker is not believed any more.
    WorkerQuarantined(WorkerQuarantined),
    /// A worker is believed again.
    WorkerReleased(WorkerReleased),
    /// Something for people to read.
    Note(Note),
}

/// A job and what its submitter wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSubmitted {
    /// The hash of `text`.
    pub job: JobHash,
    /// The canonical text of the job.
    pub text: String,
    /// Units of the job.
    pub units: u64,
    /// Jobs of higher priority come first.
    pub priority: i32,
    /// Who submitted it.
    pub submitter: String,
    /// When.
    pub at_ms: u64,
}

/// Whether units of a job are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// They are. Jobs begin so.
    Running,
    /// Not now.
    Paused,
    /// Never again.
    Cancelled,
    /// All are done.
    Finished,
}

impl Phase {
    /// Every phase, each at the place of its number.
    pub(super) const ALL: [Self; 4] = [Self::Running, Self::Paused, Self::Cancelled, Self::Finished];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }
}

/// The phase that a job enters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobState {
    /// The job.
    pub job: JobHash,
    /// Its new phase; finished only if every unit is done and the total stands its checks.
    pub state: Phase,
    /// When.
    pub at_ms: u64,
}

/// The result of a unit and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitDone {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// What was counted.
    pub tally: Tally,
    /// The worker that counted.
    pub worker: String,
    /// The kernel that counted.
    pub kernel: String,
    /// The device that counted.
    pub device: String,
    /// The build of the program that counted.
    pub build: String,
    /// Which attempt at the unit this was.
    pub attempt: u64,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// When the result arrived.
    pub at_ms: u64,
}

/// A second count of a unit that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recount {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// What was counted this time.
    pub tally: Tally,
    /// The worker that counted.
    pub worker: String,
    /// The kernel that counted.
    pub kernel: String,
    /// The device that counted.
    pub device: String,
    /// The build of the program that counted.
    pub build: String,
    /// Whether an image of the unit under a symmetry was counted instead of the unit itself.
    pub mirrored: bool,
    /// Whether the sum is that of the result in force.
    pub agrees: bool,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// When it arrived.
    pub at_ms: u64,
}

/// Why something is done to a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitReason {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// Why.
    pub reason: String,
    /// When.
    pub at_ms: u64,
}

/// A unit that is no longer set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRevived {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// When.
    pub at_ms: u64,
}

/// A worker and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSeen {
    /// The worker.
    pub worker: String,
    /// Its owner.
    pub owner: String,
    /// When.
    pub at_ms: u64,
}

/// Why a worker is not believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerQuarantined {
    /// The worker.
    pub worker: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at_ms: u64,
}

/// A worker that is believed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerReleased {
    /// The worker.
    pub worker: String,
    /// When.
    pub at_ms: u64,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What is to be remembered.
    pub text: String,
    /// When.
    pub at_ms: u64,
}

impl Entry {
    /// The job that the entry is about; none for workers and notes.
    pub const fn job(&self) -> Option<JobHash> {
        match self {
            Self::JobSubmitted(JobSubmitted { job, .. })
            | Self::JobState(JobState { job, .. })
            | Self::UnitDone(UnitDone { job, .. })
            | Self::Recount(Recount { job, .. })
            | Self::UnitVoided(UnitReason { job, .. })
            | Self::UnitPoisoned(UnitReason { job, .. })
            | Self::UnitRevived(UnitRevived { job, .. }) => Some(*job),
            Self::WorkerSeen(_) | Self::WorkerQuarantined(_) | Self::WorkerReleased(_) | Self::Note(_) => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::preplacement::{Job, Scheme};
    use crate::tally::Residues;

    #[test]
    fn the_text_of_an_entry_is_the_one_that_files_hold() {
        let job = Job::new(Problem::empty(Piece::Queen, 16), Scheme::CentreCross, None, 64).expect("small");
        let done = Entry::UnitDone(UnitDone {
            job: job.hash(),
            unit: 7,
            tally: Tally::from_parts(276, Residues::of(276), 1 << 70),
            worker: "w1".into(),
            kernel: "avx512".into(),
            device: "cpu".into(),
            build: "0.1.0".into(),
            attempt: 1,
            elapsed_s: 0.1,
            at_ms: 1_700_000_000_000,
        });
        let text = serde_json::to_string(&done).expect("serialises");
        assert_eq!(
            text,
            r#"{"unit_done":{"job":"e5de266bef88e30784f61efc53666cec","unit":7,"tally":{"thirds":"276","residues":[276,276],"nodes":"1180591620717411303424"},"worker":"w1","kernel":"avx512","device":"cpu","build":"0.1.0","attempt":1,"elapsed_s":0.1,"at_ms":1700000000000}}"#
        );
        assert_eq!(serde_json::from_str::<Entry>(&text).expect("reads back"), done);
        assert_eq!(done.job(), Some(job.hash()));
    }

    #[test]
    fn each_phase_stands_at_the_place_of_its_number() {
        for (number, phase) in (0..).zip(Phase::ALL) {
            assert_eq!(phase as usize, number);
        }
    }
}
