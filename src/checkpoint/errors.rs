//! The errors of checkpoints.

use std::io;
use std::path::{Path, PathBuf};

use super::completed_units::EnterError;
use crate::decomposition::{Job, JobHash};

/// The reason why a checkpoint cannot be used. Each message says how to proceed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system reported an error.
    #[error("checkpoint {path} cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process uses the file.
    #[error(
        "checkpoint {0} is in use by another process; wait until it ends, or give another file"
    )]
    InUse(PathBuf),
    /// The file is damaged.
    #[error(
        "checkpoint {path}, line {line}: {damage}; the file was left unchanged: restore a copy, or give another file to start anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The damage.
        damage: Corruption,
    },
    /// The file belongs to another job.
    #[error(
        "checkpoint {path} belongs to another job ({found}), not to {wanted}; give another file"
    )]
    AnotherJob {
        /// The file.
        path: PathBuf,
        /// The job of the file.
        found: String,
        /// The requested job.
        wanted: String,
    },
    /// A unit was rejected.
    #[error("checkpoint {path}: {source}; nothing was written")]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: EnterError,
    },
    /// A unit was counted twice, with different results.
    #[error(
        "checkpoint {path}: unit {unit} was counted twice with different results, so a kernel or a device is faulty; the unit will be counted again: run nqueens selftest --long, then repeat the command with the kernels and devices that passed"
    )]
    Disputed {
        /// The file.
        path: PathBuf,
        /// The unit.
        unit: u64,
    },
    /// An earlier write failed.
    #[error(
        "checkpoint {0}: an earlier write failed, so nothing more is written; open the file again to continue"
    )]
    FailedBefore(PathBuf),
}

impl CheckpointError {
    /// Returns a function that adds the file and the attempted action to an error of the operating
    /// system.
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }

    /// Returns the error that a file belongs to the job `found` instead of `wanted`.
    pub(crate) fn another_job(path: &Path, found: &Job, wanted: &Job) -> Self {
        let (found, wanted) = (found.to_string(), wanted.to_string());
        Self::AnotherJob { path: path.to_owned(), found, wanted }
    }
}

/// The damage of a line of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The line does not match its checksum.
    #[error("the checksum does not match, so the line is damaged")]
    Checksum,
    /// The first line is not a valid header.
    #[error("the header is missing or damaged, so this is not a checkpoint")]
    NoHeader,
    /// The header's hash is not that of its job.
    #[error("the job in the header has the hash {0}, but the header names another hash")]
    JobHash(JobHash),
    /// A valid record that this version does not understand.
    #[error("unknown content ({0}), written by another version")]
    Unknown(String),
    /// A unit with two results, or outside the job.
    #[error("{0}")]
    Unit(#[from] EnterError),
}
