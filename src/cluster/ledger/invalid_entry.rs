//! The reasons that the ledger rejects an entry.

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
    #[error("unit {unit} does not belong to job {job} of {units} units")]
    NoSuchUnit {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// Units of the job.
        units: u64,
    },
    /// The unit has a result in force.
    #[error("unit {unit} of job {job} already has a result, which must be voided first")]
    DuplicateUnit {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The unit has no result in force.
    #[error("unit {unit} of job {job} has no result that could be recounted or voided")]
    NotDone {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
    /// The result is inconsistent, or the sum would exceed 128 bits.
    #[error("unit {unit} of job {job}: {source}")]
    Tally {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// The error of the tally.
        source: TallyError,
    },
    /// The recount's `agrees` contradicts its sum.
    #[error(
        "unit {unit} of job {job}: the recount has {recount} thirds, the result {result}, \
         but agrees = {agrees}"
    )]
    Verdict {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
        /// The sum of the recount.
        recount: u128,
        /// The sum of the result in force.
        result: u128,
        /// The value of `agrees` in the recount.
        agrees: bool,
    },
    /// A time that is negative or not finite; JSON cannot represent the latter.
    #[error(
        "unit {unit} of job {job} has an invalid counting time; it must be a finite number of \
         seconds, at least 0"
    )]
    Elapsed {
        /// The job.
        job: JobHash,
        /// The index.
        unit: u64,
    },
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
