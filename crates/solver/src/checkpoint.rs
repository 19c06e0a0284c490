//! The envelope of checkpoints: what a run has proved so far, as bytes from which a later run
//! resumes.
//!
//! Eight magic bytes, the content, and the SHA-256 of both.

use hmac_sha256::Hash as Sha256;
use nqueens_proof::ProofError;

const CHECKSUM: usize = 32;

/// The reason why a run cannot resume from some bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The bytes are in another format than that of this command's checkpoints.
    #[error("not a checkpoint of `{0}`")]
    NotACheckpoint(&'static str),
    /// The checkpoint belongs to another query.
    #[error("the checkpoint belongs to {found}, not {wanted}")]
    WrongQuery {
        /// The query of the checkpoint.
        found: String,
        /// The query of this run.
        wanted: String,
    },
    /// The checkpoint was altered or truncated.
    #[error("the checkpoint is damaged")]
    Damaged,
    /// A step of the checkpoint does not prove what it claims.
    #[error("the checkpoint has a wrong step: {0}")]
    Invalid(ProofError),
    /// The check was not completed, so the checkpoint may be correct.
    #[error("{0}")]
    Undecided(ProofError),
}

impl From<ProofError> for ResumeError {
    fn from(error: ProofError) -> Self {
        if error.is_undecided() { Self::Undecided(error) } else { Self::Invalid(error) }
    }
}

/// Adds the checksum to a content that begins with its magic bytes.
pub(crate) fn seal(mut content: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::hash(&content);
    content.extend_from_slice(&checksum);
    content
}

/// Returns the content behind the magic bytes.
///
/// # Errors
/// The bytes do not begin with `magic`, so they are no checkpoint of `command`, or they are
/// damaged.
pub(crate) fn open<'a>(
    magic: &[u8; 8],
    command: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8], ResumeError> {
    let other = ResumeError::NotACheckpoint(command);
    let length = bytes.len().checked_sub(CHECKSUM).ok_or(other.clone())?;
    let (content, checksum) = bytes.split_at(length);
    let rest = content.strip_prefix(magic).ok_or(other)?;
    if Sha256::hash(content)[..] == *checksum { Ok(rest) } else { Err(ResumeError::Damaged) }
}
