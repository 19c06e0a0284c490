//! Certificates: files with an answer and its proof, which is checked in integers by code that
//! shares only the definition of the board with the engine that found the answer.
//!
//! A file consists of
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `NQPROOF` and a line feed |
//! | 1 | the version of the format: [`FORMAT`] |
//! | 1 | the kind of proof: 1 for the lexicographically first solution ([`first`]), 2 for the most beautiful one ([`beautiful`]) |
//! | … | the board size n, a number as in [`bytes`](crate::bytes) |
//! | … | the proof, in the form of its kind |
//! | 32 | SHA-256 of everything before |
//!
//! The checksum only distinguishes accidental damage from false claims. The statement rests on the
//! proof alone.

use std::fmt;

use hmac_sha256::Hash;

use crate::board::{Norm, Piece, Placement, Problem};
use crate::bytes::{Reader, Writer};
use crate::meter::Meter;
use crate::{beautiful, first};

/// The format version that is written. Version 1 can also be read; it has no eliminated squares in
/// proofs of first solutions.
pub const FORMAT: u8 = 2;

/// The size in bytes of the largest file that programs should read as a certificate.
pub const LARGEST_FILE: u64 = 1 << 30;

const MAGIC: &[u8; 8] = b"NQPROOF\n";

const CHECKSUM: usize = 32;

/// A kind of statement that certificates prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The lexicographically first solution.
    First,
    /// A solution with the smallest fingerprint.
    Beautiful,
}

impl Kind {
    /// Returns the name used in messages and in JSON.
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

/// The statement that a certificate was found to prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedStatement {
    /// The kind of statement.
    pub kind: Kind,
    /// The norm and the set of solutions considered, for [`Kind::Beautiful`].
    pub beauty: Option<Beauty>,
    /// The board size.
    pub n: usize,
    /// The 0-based column of the queen in each row; `None` if there is no solution at all.
    pub solution: Option<Vec<usize>>,
    /// The work of the checker, in steps of a [`Meter`].
    pub work: u64,
}

impl fmt::Display for ProvedStatement {
    /// Writes the statement as a sentence; columns are 1-based.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, beauty, n, solution, .. } = self;
        let Beauty { norm, turning } = beauty.unwrap_or_default();
        let symmetric = if turning { "doubly symmetric " } else { "" };
        let Some(columns) = solution else {
            return write!(f, "proved: there is no {symmetric}solution for n = {n}");
        };
        match kind {
            Kind::First => f.write_str("proved: the lexicographically first solution")?,
            Kind::Beautiful => write!(f, "proved: a most beautiful {symmetric}solution")?,
        }
        if *kind == Kind::Beautiful && norm != Norm::default() {
            write!(f, " by the {norm} norm")?;
        }
        write!(f, " for n = {n} is")?;
        columns.iter().try_for_each(|column| write!(f, " {}", column + 1))
    }
}

/// The meaning of "most beautiful": the norm and the set of solutions considered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beauty {
    /// The norm that gives the cost of a square.
    pub norm: Norm,
    /// The restriction to solutions invariant under quarter turns.
    pub turning: bool,
}

/// The reason why a certificate proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofError {
    /// The file is not a certificate.
    NoCertificate,
    /// The certificate has a format version that cannot be read.
    Version(u8),
    /// The checksum is wrong, or the content cannot be read.
    Damaged(&'static str),
    /// The certificate can be read, but does not prove its statement.
    Refused(String),
    /// The check takes more work than the certificate states.
    TooMuchWork(u64),
    /// The certificate has a step of a kind unknown to this version, so it may be valid.
    UnknownStep(u64),
    /// The check exceeds the checker's step limit, so the certificate may be valid.
    LimitReached(u64),
    /// The check was stopped, so the certificate may be valid.
    Stopped,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => write!(f, "it is not a certificate of this program"),
            Self::Version(version) => {
                write!(f, "it has format {version}, and this program reads formats 1 to {FORMAT}")
            }
            Self::Damaged(how) => write!(f, "the certificate is damaged: {how}"),
            Self::Refused(why) => write!(f, "the certificate does not prove what it says: {why}"),
            Self::TooMuchWork(stated) => write!(
                f,
                "the certificate does not prove what it says: it takes more work than the {stated} that it states"
            ),
            Self::UnknownStep(kind) => write!(
                f,
                "it has a step of kind {kind}, which this version does not know: a newer one wrote it"
            ),
            Self::LimitReached(most) => write!(f, "checking it takes more than {most} steps"),
            Self::Stopped => write!(f, "the check was stopped"),
        }
    }
}

impl std::error::Error for ProofError {}

impl ProofError {
    /// Returns the class, which decides how a program that checks certificates exits.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::LimitReached(_) | Self::Stopped => ErrorClass::Unfinished,
            Self::Damaged(_) | Self::Refused(_) | Self::TooMuchWork(_) => ErrorClass::Invalid,
            Self::NoCertificate | Self::Version(_) | Self::UnknownStep(_) => ErrorClass::Unreadable,
        }
    }

    /// Returns whether the check ended without a decision, so the certificate may be valid.
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::UnknownStep(_) | Self::LimitReached(_) | Self::Stopped)
    }
}

/// A class of [`ProofError`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The check was not finished.
    Unfinished,
    /// The certificate does not prove its statement.
    Invalid,
    /// The file is not a certificate that this version can read.
    Unreadable,
}

impl ErrorClass {
    /// Returns the exit code of a program whose check of a certificate failed with an error of this
    /// class: 4, 6 or 7.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Unfinished => 4,
            Self::Invalid => 6,
            Self::Unreadable => 7,
        }
    }
}

/// Checks a certificate of any kind, within [`MOST_WORK`](crate::MOST_WORK) steps.
///
/// # Errors
/// Returns an error if it is not a certificate, proves nothing, or exceeds the step limit.
pub fn check(certificate: &[u8]) -> Result<ProvedStatement, ProofError> {
    check_within(certificate, &mut Meter::default())
}

/// Checks a certificate of any kind under this meter.
///
/// # Errors
/// Returns an error if it is not a certificate or proves nothing, or if the meter ends the check.
pub fn check_within(
    certificate: &[u8],
    meter: &mut Meter<'_>,
) -> Result<ProvedStatement, ProofError> {
    check_with_threads(certificate, 1, meter)
}

/// Checks a certificate like [`check_within`], with this number of threads; 0 is treated as 1. The
/// refutations of a first solution are checked concurrently; other proofs are checked by one
/// thread.
///
/// # Errors
/// Returns an error if it is not a certificate or proves nothing, or if the meter ends the check.
pub fn check_with_threads(
    certificate: &[u8],
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<ProvedStatement, ProofError> {
    let (kind, n, proof) = open(certificate)?;
    let proved = match kind {
        Kind::First => first::check_with_threads(n, proof, threads, meter),
        Kind::Beautiful => beautiful::check_within(n, proof, meter),
    }?;
    // Both checkers have tested this already. Test it once more, by the definition alone.
    if let Some(columns) = &proved.solution {
        Placement::check_solution(&Problem::empty(Piece::Queen, n), columns)
            .map_err(|error| ProofError::Refused(error.to_string()))?;
    }
    Ok(proved)
}

/// Creates a certificate of format [`FORMAT`] with this proof for the board of size `n`, and its
/// checksum. Does not check the proof.
pub fn seal(kind: Kind, n: usize, proof: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.bytes(MAGIC);
    writer.byte(FORMAT);
    writer.byte(kind.code());
    writer.size(n);
    writer.bytes(proof);
    let mut certificate = writer.finish();
    let checksum = Hash::hash(&certificate);
    certificate.extend_from_slice(&checksum);
    certificate
}

/// Returns the kind, board size and proof of a certificate, after verifying its checksum.
///
/// # Errors
/// Returns an error if it is not a certificate, has an unknown version, or is damaged.
pub fn open(certificate: &[u8]) -> Result<(Kind, usize, &[u8]), ProofError> {
    let sealed = certificate.strip_prefix(MAGIC).ok_or(ProofError::NoCertificate)?;
    match sealed.first() {
        Some(1..=FORMAT) => {}
        Some(&other) => return Err(ProofError::Version(other)),
        None => return Err(ProofError::Damaged("it ends too early")),
    }
    let length =
        sealed.len().checked_sub(CHECKSUM).ok_or(ProofError::Damaged("it ends too early"))?;
    let (sealed, checksum) = sealed.split_at(length);
    if Hash::hash(&certificate[..MAGIC.len() + length])[..] != *checksum {
        return Err(ProofError::Damaged("its checksum is wrong"));
    }
    let mut reader = Reader::new(sealed);
    reader.byte()?; // the format
    let code = reader.byte()?;
    let kind = [Kind::First, Kind::Beautiful].into_iter().find(|kind| kind.code() == code);
    let unknown = "it proves a kind of statement that this program does not know";
    let kind = kind.ok_or(ProofError::Damaged(unknown))?;
    let n = reader.size(usize::MAX)?;
    Ok((kind, n, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_round_trips_and_any_changed_bit_is_detected() {
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
