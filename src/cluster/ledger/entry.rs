//! What the ledger of a campaign keeps, in the order in which it happened.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::decomposition::JobHash;
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
    /// Some sub-ranges of a unit were counted again.
    SpotCheck(SpotCheck),
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
    /// A worker is to take nothing more until it restarts.
    WorkerDrained(WorkerDrained),
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
    /// All are done, and what they add up to cannot be, or is not the published number: units are counted again.
    Disputed,
}

impl Phase {
    /// Every phase, each at the place of its number.
    pub(super) const ALL: [Self; 5] =
        [Self::Running, Self::Paused, Self::Cancelled, Self::Finished, Self::Disputed];

    /// Its name.
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
    /// Who enrolled the worker; empty in older ledgers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
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
    /// Which checks were drawn for it; in ledgers of before none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<DrawnChecks>,
    /// The sums of its sub-ranges, if a check needs them.
    #[serde(default, skip_serializing_if = "SubSums::is_empty")]
    pub sub_sums: SubSums,
    /// When the result arrived.
    pub at_ms: u64,
}

/// A second count of some sub-ranges of a unit that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpotCheck {
    /// The job.
    pub job: JobHash,
    /// The unit's index in the job.
    pub unit: u64,
    /// The sub-ranges, from 0 and ascending.
    pub sub_ranges: Vec<u32>,
    /// Their sums, in thirds of a solution.
    pub sums: SubSums,
    /// The worker that counted.
    pub worker: String,
    /// Who enrolled it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The kernel that counted.
    pub kernel: String,
    /// The device that counted.
    pub device: String,
    /// The build of the program that counted.
    pub build: String,
    /// Whether these are the sums that the result in force came with.
    pub agrees: bool,
    /// Seconds that it took.
    pub elapsed_s: f64,
    /// When it arrived.
    pub at_ms: u64,
}

/// Sums of sub-ranges of a unit, in thirds of a solution; as decimal strings, since JSON readers lose digits past 2^53.
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

/// How much of a unit is counted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckDepth {
    /// Some sub-ranges.
    Spot,
    /// All of it.
    Full,
}

/// Which checks were drawn for a unit when it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnChecks {
    /// By a worker of another owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<CheckDepth>,
    /// By the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<CheckDepth>,
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
    /// Who enrolled the worker; empty in older ledgers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
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
    /// Whether it lied, so that whatever nobody had confirmed was to be counted again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub widen: bool,
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

/// A worker that is to take nothing more until it restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerDrained {
    /// The worker.
    pub worker: String,
    /// Which of its starts: it changes when the worker restarts, and what was said to it is over then.
    pub boot: u64,
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
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::decomposition::{Job, Scheme};
    use crate::tally::Residues;

    #[test]
    fn the_text_of_an_entry_is_the_one_that_files_hold() {
        let job = Job::new(Problem::empty(Piece::Queen, 16), Scheme::CentreCross, None, 64).expect("small");
        let mut done = UnitDone {
            job: job.hash(),
            unit: 7,
            tally: Tally::from_parts(276, Residues::of(276), 1 << 70),
            worker: "w1".into(),
            owner: String::new(),
            kernel: "avx512".into(),
            device: "cpu".into(),
            build: "0.1.0".into(),
            attempt: 1,
            elapsed_s: 0.1,
            checks: None,
            sub_sums: SubSums::default(),
            at_ms: 1_700_000_000_000,
        };
        let text = serde_json::to_string(&Entry::UnitDone(done.clone())).expect("serialises");
        assert_eq!(
            text,
            r#"{"unit_done":{"job":"e5de266bef88e30784f61efc53666cec","unit":7,"tally":{"thirds":"276","residues":[276,276],"nodes":"1180591620717411303424"},"worker":"w1","kernel":"avx512","device":"cpu","build":"0.1.0","attempt":1,"elapsed_s":0.1,"at_ms":1700000000000}}"#
        );
        assert_eq!(serde_json::from_str::<Entry>(&text).expect("reads back"), Entry::UnitDone(done.clone()));
        done.owner = "anna".into();
        done.checks = Some(DrawnChecks { peer: Some(CheckDepth::Spot), audit: None });
        done.sub_sums = SubSums(vec![u128::MAX, 276]);
        let done = Entry::UnitDone(done);
        let of_today = text.replace(r#""worker":"w1","#, r#""worker":"w1","owner":"anna","#).replace(
            r#","at_ms""#,
            r#","checks":{"peer":"spot"},"sub_sums":["340282366920938463463374607431768211455","276"],"at_ms""#,
        );
        assert_eq!(serde_json::to_string(&done).expect("serialises"), of_today);
        assert_eq!(serde_json::from_str::<Entry>(&of_today).expect("reads back"), done);
        assert_eq!(done.job(), Some(job.hash()));
    }

    #[test]
    fn the_text_of_checks_and_disputes_is_the_one_that_files_hold() {
        let job = JobHash::from_bytes([0xab; 16]);
        let check = Entry::SpotCheck(SpotCheck {
            job,
            unit: 7,
            sub_ranges: vec![3, 17],
            sums: SubSums(vec![u128::MAX, 24]),
            worker: "w2".into(),
            owner: "anna".into(),
            kernel: "avx2".into(),
            device: "cpu".into(),
            build: "0.1.0".into(),
            agrees: true,
            elapsed_s: 0.5,
            at_ms: 1_700_000_000_000,
        });
        let disputed = Entry::JobState(JobState { job, state: Phase::Disputed, at_ms: 1_700_000_000_000 });
        let name = "ab".repeat(16);
        for (entry, text) in [
            (
                check,
                format!(
                    r#"{{"spot_check":{{"job":"{name}","unit":7,"sub_ranges":[3,17],"sums":["340282366920938463463374607431768211455","24"],"worker":"w2","owner":"anna","kernel":"avx2","device":"cpu","build":"0.1.0","agrees":true,"elapsed_s":0.5,"at_ms":1700000000000}}}}"#
                ),
            ),
            (
                disputed,
                format!(r#"{{"job_state":{{"job":"{name}","state":"disputed","at_ms":1700000000000}}}}"#),
            ),
        ] {
            assert_eq!(serde_json::to_string(&entry).expect("serialises"), text);
            assert_eq!(serde_json::from_str::<Entry>(&text).expect("reads back"), entry);
            assert_eq!(entry.job(), Some(job));
        }
    }

    #[test]
    fn the_start_of_a_worker_keeps_all_its_bits() {
        let drained = Entry::WorkerDrained(WorkerDrained {
            worker: "w".into(),
            boot: u64::MAX,
            at_ms: 1_700_000_000_000,
        });
        let text = r#"{"worker_drained":{"worker":"w","boot":18446744073709551615,"at_ms":1700000000000}}"#;
        assert_eq!(serde_json::to_string(&drained).expect("serialises"), text);
        assert_eq!(serde_json::from_str::<Entry>(text).expect("reads back"), drained);
    }

    #[test]
    fn each_phase_stands_at_the_place_of_its_number() {
        for (number, phase) in (0..).zip(Phase::ALL) {
            assert_eq!(phase as usize, number);
        }
    }
}
