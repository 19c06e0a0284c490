//! The entries of a log: JSON objects with one field, named after the kind of the entry.

use serde::{Deserialize, Serialize};

use crate::cluster::campaign::{
    JobState, ResultKey, ResultSignature, Statement, SubRangeSet, UnitId, commitment,
};
use crate::decomposition::JobHash;

/// The version of the format. Readers refuse a later one.
pub const FORMAT: u32 = 1;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LogEntry {
    /// The job. This is the first entry of every log, and of no other place in it.
    Job {
        /// [`FORMAT`].
        format: u32,
        /// The hash of `text`.
        job: JobHash,
        /// The canonical text, from which everybody derives the same units.
        text: String,
        /// The number of units.
        units: u64,
        /// The time of submission, in ms since 1970.
        at_ms: u64,
    },
    /// A key that signs results, before the first of them.
    Signer {
        /// The number of the owner of the worker. Workers with the same number have the same owner.
        owner: u64,
        /// The key.
        key: ResultKey,
    },
    /// A unit was counted.
    Result {
        /// The unit.
        unit: u64,
        /// Its sum of weight times completions, in thirds of a solution.
        #[serde(with = "crate::tally::decimal")]
        thirds: u128,
        /// The kernel.
        kernel: String,
        /// The author.
        by: Author,
        /// The signature of the author, if it is a signer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<ResultSignature>,
    },
    /// A unit with a result was counted again.
    Recount {
        /// The unit.
        unit: u64,
        /// The sum of the recount, in thirds of a solution.
        #[serde(with = "crate::tally::decimal")]
        thirds: u128,
        /// True if the mirror image was counted.
        mirrored: bool,
        /// The kernel.
        kernel: String,
        /// The author.
        by: Author,
        /// The signature of the author, if it is a signer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<ResultSignature>,
    },
    /// Some sub-ranges of a unit with a result were counted again, as mirror images.
    SpotCheck {
        /// The unit.
        unit: u64,
        /// The sub-ranges.
        sub_ranges: SubRangeSet,
        /// Their sums, in thirds of a solution.
        #[serde(with = "crate::tally::decimals")]
        sums: Vec<u128>,
        /// True if they are the sums that belong to the result.
        agrees: bool,
        /// The kernel.
        kernel: String,
        /// The author.
        by: Author,
        /// The signature of the author, if it is a signer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<ResultSignature>,
    },
    /// The result of a unit was taken back; the unit is open again.
    Void {
        /// The unit.
        unit: u64,
        /// The entry of the result, counted from 0.
        result: u64,
    },
    /// The state of the job changed.
    State {
        /// The new state.
        state: JobState,
        /// The time, in ms since 1970.
        at_ms: u64,
        /// The number of solutions as a decimal number, if the job is finished.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        solutions: Option<String>,
    },
}

/// The author of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Author {
    /// The worker with the key in this entry, counted from 0. The result has its signature.
    Signer(u64),
    /// A worker of this owner that does not sign its results.
    Owner(u64),
    /// A guest, who has no key.
    Guest,
    /// The coordinator.
    Coordinator,
}

impl LogEntry {
    /// Returns the entry as it is in the log.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts can be encoded")
    }

    /// Parses what [`Self::to_bytes`] returns. An entry has no other encoding, so that nobody can
    /// change one without a trace.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let parsed: Self = serde_json::from_slice(bytes).ok()?;
        (parsed.to_bytes() == bytes).then_some(parsed)
    }

    /// Returns the unit that the entry is about.
    pub const fn unit(&self) -> Option<u64> {
        match self {
            Self::Result { unit, .. }
            | Self::Recount { unit, .. }
            | Self::SpotCheck { unit, .. }
            | Self::Void { unit, .. } => Some(*unit),
            Self::Job { .. } | Self::Signer { .. } | Self::State { .. } => None,
        }
    }

    /// Returns the statement of the author about a unit of this job, with the author and the
    /// signature, or `None` if the entry has no author. Returns a sum that overflows as the largest
    /// number.
    pub fn claim(&self, job: JobHash) -> Option<Claim<'_>> {
        let claim = |unit: &u64, mirrored, thirds, kernel, by: &Author, signature: &Option<_>| {
            let commitment = signature.map_or([0; 32], |signed: ResultSignature| signed.commitment);
            let (unit, sub_ranges) = (UnitId { job, unit: *unit }, SubRangeSet::default());
            let statement = Statement { unit, mirrored, sub_ranges, thirds, commitment, kernel };
            Claim { statement, by: *by, signature: *signature }
        };
        Some(match self {
            Self::Result { unit, thirds, kernel, by, signature } => {
                claim(unit, false, *thirds, kernel, by, signature)
            }
            Self::Recount { unit, thirds, mirrored, kernel, by, signature } => {
                claim(unit, *mirrored, *thirds, kernel, by, signature)
            }
            Self::SpotCheck { unit, sub_ranges, sums, kernel, by, signature, .. } => {
                let sum = sums.iter().try_fold(0_u128, |sum, part| sum.checked_add(*part));
                let sum = sum.unwrap_or(u128::MAX);
                let mut claim = claim(unit, true, sum, kernel, by, signature);
                claim.statement.sub_ranges = *sub_ranges;
                claim.statement.commitment = commitment(sums);
                claim
            }
            Self::Job { .. } | Self::Signer { .. } | Self::Void { .. } | Self::State { .. } => {
                return None;
            }
        })
    }
}

/// A statement about a unit, with its author.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The statement.
    pub statement: Statement<'a>,
    /// The author.
    pub by: Author,
    /// The signature, if the author is a signer.
    pub signature: Option<ResultSignature>,
}
