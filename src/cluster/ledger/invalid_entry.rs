//! The reasons that the ledger rejects an entry.

use crate::cluster::campaign::UnitId;
use crate::decomposition::JobHash;
use crate::tally::TallyError;

/// The reason that an entry is not valid after its predecessors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// The text is not that of a job with this hash.
    #[error("job {0}: the text does not have this hash; submit the canonical text of the job")]
    JobText(JobHash),
    /// The job was submitted before.
    #[error("job {0} was already submitted")]
    DuplicateJob(JobHash),
    /// The job was never submitted.
    #[error("job {0} was never submitted; submit it first")]
    NoSuchJob(JobHash),
    /// A unit index beyond the last unit.
    #[error(
        "unit {index} does not belong to job {job} of {units} units",
        index = .unit.unit,
        job = .unit.job
    )]
    NoSuchUnit {
        /// The unit.
        unit: UnitId,
        /// Units of the job.
        units: u64,
    },
    /// The unit has a result in force.
    #[error("{0} already has a result, which must be voided first")]
    DuplicateUnit(UnitId),
    /// The unit has no result in force.
    #[error("{0} has no result that could be recounted or voided")]
    NotDone(UnitId),
    /// The result is inconsistent, or the sum would exceed 128 bits.
    #[error("{unit}: {source}")]
    Tally {
        /// The unit.
        unit: UnitId,
        /// The error of the tally.
        source: TallyError,
    },
    /// The recount's `agrees` contradicts its sum.
    #[error("{unit}: the recount has {recount} thirds, the result {result}, but agrees = {agrees}")]
    Verdict {
        /// The unit.
        unit: UnitId,
        /// The sum of the recount.
        recount: u128,
        /// The sum of the result in force.
        result: u128,
        /// The value of `agrees` in the recount.
        agrees: bool,
    },
    /// A time that is negative or not finite; JSON cannot represent the latter.
    #[error("{0} has an invalid counting time; it must be a finite number of seconds, at least 0")]
    Elapsed(UnitId),
    /// The job cannot be finished because units are missing.
    #[error("job {job} cannot be finished: {missing} of {units} units are missing")]
    Unfinished {
        /// The job.
        job: JobHash,
        /// Units without a result in force.
        missing: u64,
        /// Units of the job.
        units: u64,
    },
    /// The job cannot be finished because its total is impossible.
    #[error("job {job} cannot be finished: {source}")]
    Total {
        /// The job.
        job: JobHash,
        /// The error of the total.
        source: TallyError,
    },
}
