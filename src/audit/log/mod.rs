//! Audits of [transparency logs](crate::transparency). Nothing in a log is believed:
//!
//! - the checkpoint must be signed by the key of the log, and the entries must have its root; the
//!   trees of all earlier checkpoints must be parts of this one ([`read`]);
//! - every result must be signed by the key that it names, each unit must be counted once, and the
//!   total must be the sum of the units ([`replay`]);
//! - random units are counted again as their mirror images ([`recount`]).
//!
//! [`unit_proof`] audits a single unit with a few files of the log.

pub mod read;
pub mod recount;
pub mod replay;
pub mod unit_proof;

use crate::transparency::checkpoint::CheckpointError;
use crate::transparency::source::SourceError;

pub use replay::{LogState, WrongReason};

/// An entry that is wrong, whatever the others say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongEntry {
    /// Its number in the log, from 0.
    pub entry: u64,
    /// The unit that it is about.
    pub unit: Option<u64>,
    /// The reason.
    pub reason: WrongReason,
}

impl std::fmt::Display for WrongEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.unit {
            Some(unit) => write!(f, "unit {unit} is wrong (entry {}): {}", self.entry, self.reason),
            None => write!(f, "entry {} is wrong: {}", self.entry, self.reason),
        }
    }
}

/// The reason why an audit ended.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file of the log cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file of the log has not the form that it must have.
    #[error("{0} is damaged: {1}")]
    Form(String, &'static str),
    /// A checkpoint is refused.
    #[error("the checkpoint in {0} is refused: {1}")]
    Checkpoint(String, CheckpointError),
    /// The log has another key than the expected one.
    #[error("the log has the key {0}, not the expected one")]
    AnotherKey(String),
    /// An entry is wrong.
    #[error("{0}")]
    Wrong(WrongEntry),
    /// The entries have another root than the one that was signed, although the tiles agree with
    /// them.
    #[error("the root that was signed is not that of the {0} entries")]
    Root(u64),
    /// The log is shorter than an earlier checkpoint.
    #[error(
        "the log has {size} entries, but a checkpoint of {earlier} was signed before: its end was removed"
    )]
    Shortened {
        /// The number of entries.
        size: u64,
        /// The number of entries of the earlier checkpoint.
        earlier: u64,
    },
    /// The history before an earlier checkpoint was changed.
    #[error(
        "the first {0} entries are not those of the checkpoint that was signed for them: the history was rewritten"
    )]
    Rewritten(u64),
    /// The log has no result of the unit.
    #[error("the log has no result of unit {0}")]
    NoResult(u64),
}
