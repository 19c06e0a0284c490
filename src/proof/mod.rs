//! Certificates: files with which an answer is proved again, in integers, by code that shares nothing with the
//! engine that found it but the definition of the board.
//!
//! A file is
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `NQPROOF` and a line feed |
//! | 1 | the version of the format: [`FORMAT`] |
//! | 1 | what is proved: 1 the lexicographically first solution ([`first`]), 2 the most beautiful one ([`beautiful`]) |
//! | … | the board size n, a number as in [`bytes`] |
//! | … | the proof, in the form of its kind |
//! | 32 | SHA-256 of everything before |
//!
//! The checksum only tells accidents from lies: what convinces is the proof alone.
//!
//! ```
//! use nqueens::optimise::{Unwatched, exact};
//! use nqueens::proof;
//!
//! // The engine searches and keeps what it refutes.
//! let n = 20;
//! let found = exact::first(n, exact::Options::default(), &mut Unwatched, &mut |_| {});
//! let refutations = found.refutations(n);
//! let refutations: Vec<_> = refutations.iter().collect();
//! let mut certificate = proof::first::certificate(n, found.solution.as_deref(), &refutations)?;
//!
//! // The checker needs nothing but the bytes.
//! let proved = proof::check(&certificate)?;
//! assert_eq!(proved.solution, found.solution);
//! assert_eq!(proved.solution.unwrap()[..5], [0, 2, 4, 1, 3]);
//!
//! // And believes none that was changed.
//! *certificate.last_mut().unwrap() ^= 1;
//! assert!(proof::check(&certificate).is_err());
//! # Ok::<(), proof::ProofError>(())
//! ```

pub mod beautiful;
pub mod bytes;
pub mod first;
mod meter;

pub use meter::{MOST_WORK, Meter};

use bytes::{Reader, Writer};
use sha2::{Digest as _, Sha256};

use crate::board::Norm;

/// The version of the format that is written. Version 1 is read, too: it has no dead squares in first solutions.
pub const FORMAT: u8 = 2;

const MAGIC: &[u8; 8] = b"NQPROOF\n";

const CHECKSUM: usize = 32;

/// What a certificate proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The lexicographically first solution.
    First,
    /// A solution of the smallest fingerprint.
    Beautiful,
}

impl Kind {
    /// Its name, for people and for JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Beautiful => "beautiful",
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::First => 1,
            Self::Beautiful => 2,
        }
    }
}

/// What was proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// The question.
    pub kind: Kind,
    /// Which beauty, if that is the question.
    pub beauty: Option<Beauty>,
    /// The board size.
    pub n: usize,
    /// The 0-based column of the queen in each row; `None`: there is no solution at all.
    pub solution: Option<Vec<usize>>,
    /// How much the checker had to do, in steps of a [`Meter`].
    pub work: u64,
}

/// What is called beautiful, and among which solutions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beauty {
    /// What a square costs.
    pub norm: Norm,
    /// Among the solutions only that do not change under quarter turns.
    pub turning: bool,
}

/// Why a certificate proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// It is something else.
    #[error("it is no certificate of this program")]
    NoCertificate,
    /// It was written by another version.
    #[error("it has format {0}, and this program reads formats 1 to {FORMAT}")]
    Version(u8),
    /// The checksum is wrong, or what it says cannot be read.
    #[error("the certificate is damaged: {0}")]
    Damaged(&'static str),
    /// It can be read, and does not prove what it says.
    #[error("the certificate does not prove what it says: {0}")]
    Refused(String),
    /// To check it takes more work than it states itself.
    #[error("the certificate does not prove what it says: it takes more work than the {0} that it states")]
    TooMuchWork(u64),
    /// It has a step of a kind that this version does not know, so it may be right.
    #[error("it has a step of kind {0}, which this version does not know: a newer one wrote it")]
    UnknownStep(u64),
    /// To check it takes more steps than the checker may do, so it may be right.
    #[error("to check it takes more than {0} steps")]
    LimitReached(u64),
    /// The check was stopped, so it may be right.
    #[error("the check was stopped")]
    Stopped,
}

impl ProofError {
    /// Returns whether nothing is known to be wrong: the check was not carried to its end.
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::UnknownStep(_) | Self::LimitReached(_) | Self::Stopped)
    }
}

/// Checks a certificate of any kind, with at most [`MOST_WORK`] steps.
///
/// # Errors
/// It is none, or it proves nothing, or that takes too long.
pub fn check(certificate: &[u8]) -> Result<Proved, ProofError> {
    check_within(certificate, &mut Meter::default())
}

/// Checks a certificate of any kind under this meter.
///
/// # Errors
/// It is none, or it proves nothing, or the meter ends the check.
pub fn check_within(certificate: &[u8], meter: &mut Meter<'_>) -> Result<Proved, ProofError> {
    let (kind, n, proof) = open(certificate)?;
    match kind {
        Kind::First => first::check_within(n, proof, meter),
        Kind::Beautiful => beautiful::check_within(n, proof, meter),
    }
}

/// A certificate with this proof.
pub fn seal(kind: Kind, n: usize, proof: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.bytes(MAGIC);
    writer.byte(FORMAT);
    writer.byte(kind.code());
    writer.size(n);
    writer.bytes(proof);
    let mut certificate = writer.finish();
    let checksum = Sha256::digest(&certificate);
    certificate.extend_from_slice(&checksum);
    certificate
}

/// Kind, board size and proof of a certificate whose checksum is right.
///
/// # Errors
/// It is none, of another version, or damaged.
pub fn open(certificate: &[u8]) -> Result<(Kind, usize, &[u8]), ProofError> {
    let sealed = certificate.strip_prefix(MAGIC).ok_or(ProofError::NoCertificate)?;
    match sealed.first() {
        Some(1..=FORMAT) => {}
        Some(&other) => return Err(ProofError::Version(other)),
        None => return Err(ProofError::Damaged("it ends too early")),
    }
    let length = sealed.len().checked_sub(CHECKSUM).ok_or(ProofError::Damaged("it ends too early"))?;
    let (sealed, checksum) = sealed.split_at(length);
    if Sha256::digest(&certificate[..MAGIC.len() + length])[..] != *checksum {
        return Err(ProofError::Damaged("its checksum is wrong"));
    }
    let mut reader = Reader::new(sealed);
    reader.byte()?; // the format
    let kind = match reader.byte()? {
        1 => Kind::First,
        2 => Kind::Beautiful,
        _ => return Err(ProofError::Damaged("it proves something that this program does not know")),
    };
    let n = reader.size(usize::MAX)?;
    Ok((kind, n, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_opened_and_any_other_byte_is_noticed() {
        let certificate = seal(Kind::First, 300, b"proof");
        assert_eq!(open(&certificate), Ok((Kind::First, 300, &b"proof"[..])));
        for place in 0..certificate.len() {
            for bit in 0..8 {
                let mut altered = certificate.clone();
                altered[place] ^= 1 << bit;
                assert!(open(&altered).is_err(), "byte {place}, bit {bit}");
            }
            assert!(open(&certificate[..place]).is_err(), "the first {place} bytes");
        }
        assert_eq!(open(b"%PDF-1.7"), Err(ProofError::NoCertificate));
        assert_eq!(open(b"NQPROOF\n\x07"), Err(ProofError::Version(7)));
    }
}
