//! What a run has proved so far, as bytes: a later run goes on from there.
//!
//! Eight bytes, n, the claim and the records of [`crate::proof::beautiful`]; SHA-256 of all of it.

use sha2::{Digest as _, Sha256};

use super::Question;
use crate::proof::ProofError;
use crate::proof::beautiful::{Begun, check_begun, claim};
use crate::proof::bytes::{Reader, Writer};

const MAGIC: &[u8; 8] = b"NQBEAUT\n";

const CHECKSUM: usize = 32;

/// Why bytes are nothing to go on from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// They are something else.
    #[error("it is not the file of a run of beautiful")]
    NoRun,
    /// It was a run for another question.
    #[error("it is of a run for {found}, not for {wanted}")]
    AnotherQuestion {
        /// That question.
        found: String,
        /// This one.
        wanted: String,
    },
    /// They were changed, or cut short.
    #[error("it is damaged")]
    Damaged,
    /// What they say is proved is not.
    #[error("it says what is not so: {0}")]
    Wrong(ProofError),
}

/// The state of a run with an incumbent and the records of what is proved.
pub(super) fn write(question: &Question, solution: &[usize], records: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.bytes(MAGIC);
    writer.size(question.n);
    writer.bytes(claim(question.norm, question.turning, Some(solution)).as_bytes());
    writer.bytes(records);
    let mut bytes = writer.finish();
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// What a run for `question` had proved. Every record is checked.
///
/// # Errors
/// The bytes are of something else, damaged, or wrong.
pub fn read(question: &Question, bytes: &[u8]) -> Result<Begun, ResumeError> {
    let length = bytes.len().checked_sub(CHECKSUM).ok_or(ResumeError::NoRun)?;
    let (content, checksum) = bytes.split_at(length);
    let rest = content.strip_prefix(MAGIC).ok_or(ResumeError::NoRun)?;
    if Sha256::digest(content)[..] != *checksum {
        return Err(ResumeError::Damaged);
    }
    let mut reader = Reader::new(rest);
    let n = reader.size(usize::MAX).map_err(|_| ResumeError::Damaged)?;
    let another = |found: String, wanted: String| Err(ResumeError::AnotherQuestion { found, wanted });
    if n != question.n {
        return another(format!("n = {n}"), format!("n = {}", question.n));
    }
    let begun = check_begun(n, reader.rest()).map_err(ResumeError::Wrong)?;
    if begun.beauty.norm != question.norm {
        return another(format!("the {} norm", begun.beauty.norm), question.norm.to_string());
    }
    if begun.beauty.turning != question.turning {
        let among = |turning| if turning { "symmetric solutions" } else { "all solutions" };
        return another(among(begun.beauty.turning).into(), among(question.turning).into());
    }
    Ok(begun)
}
