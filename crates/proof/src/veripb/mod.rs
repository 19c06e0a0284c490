//! Proofs for VeriPB, a checker of pseudo-Boolean proofs by other authors.
//!
//! A certificate is translated into a formula, which says that a better solution exists, and a
//! proof that this formula has no solution. The formula (`claim.rs`) is what a reader has to
//! believe; the proof is checked by VeriPB, so nothing else here needs to be trusted.
//!
//! The proof is written while the checker follows the certificate and reports its steps to an
//! observer. A prefix whose refutation lists sets of diagonals is checked twice, since its lists
//! have to be known first. Every step becomes pseudo-Boolean reasoning:
//!
//! | step | proof |
//! |---|---|
//! | a prefix, a branch, a trial, an assumption | a proof by contradiction, nested like the steps |
//! | propagation | unit propagation of VeriPB |
//! | a dual bound, multipliers, prices | one sum of multiples of constraints |
//! | a knapsack | branch and bound over the usage of diagonals, with cuts of a linear relaxation |
//! | a list of sets | branch and bound over the usage of diagonals, with a variable for each set |
//! | a case distinction | a proof by contradiction for the first case |
//! | a search | a clause for each refuted choice, in postorder |
//! | an eliminated orbit | the same search under each symmetry |
//!
//! The format is that of VeriPB 3: `pol` is a sum in reverse Polish notation, `rup` a constraint
//! that follows by reverse unit propagation, `pbc` a proof by contradiction, and `red`
//! redundance-based strengthening, which introduces the variables for the usage of diagonals and
//! for listed sets. `del range` deletes the definitions of the latter.

mod beautiful;
mod beautiful_tree;
mod board_lines;
pub(crate) mod claim;
pub(crate) mod constraint;
mod diagonals;
mod direction;
mod dual_bound;
mod files;
mod first;
mod knapsack;
mod listed_sets;
mod relaxation;
mod search_tree;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::io::{self, Write};

use crate::{Beauty, Kind, Meter, ProofError, open};
use beautiful::BeautifulProof;
use first::FirstProof;
use writer::{Interruption, ProofWriter};

pub use files::write_files;

/// The default limit on the lines of a proof.
pub const MOST_LINES: u64 = 5_000_000;

/// The size of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofSize {
    /// The number of lines.
    pub lines: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The reason why a certificate was not translated.
#[derive(Debug)]
pub enum TranslationError {
    /// The certificate is not accepted.
    Certificate(ProofError),
    /// The proof has more lines than this.
    LineLimit(u64),
    /// A file cannot be written.
    Io(io::Error),
}

impl fmt::Display for TranslationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(error) => error.fmt(f),
            Self::LineLimit(most) => {
                write!(f, "it needs more than {most} lines; raise --veripb-limit")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TranslationError {}

/// Translates a certificate while it is checked: writes the formula "a better solution exists" and
/// the proof that it has no solution.
///
/// # Errors
/// Returns an error if the certificate is not accepted, if the proof has more than `most_lines`
/// lines, or if a file cannot be written.
pub fn translate(
    certificate: &[u8],
    most_lines: u64,
    meter: &mut Meter<'_>,
    formula: &mut dyn Write,
    proof: &mut dyn Write,
) -> Result<ProofSize, TranslationError> {
    let (kind, n, bytes) = open(certificate).map_err(TranslationError::Certificate)?;
    let mut writer = ProofWriter::new(proof, most_lines);
    let done = match kind {
        Kind::First => first(n, bytes, meter, formula, &mut writer),
        Kind::Beautiful => beautiful(n, bytes, meter, formula, &mut writer),
    };
    let (lines, bytes) = writer.size();
    match (done, writer.interruption) {
        (_, Some(Interruption::LineLimit(most))) => Err(TranslationError::LineLimit(most)),
        (_, Some(Interruption::Io(error))) => Err(TranslationError::Io(error)),
        (Err(error), None) => Err(error),
        (Ok(()), None) => Ok(ProofSize { lines, bytes }),
    }
}

fn first(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
    formula: &mut dyn Write,
    writer: &mut ProofWriter<'_>,
) -> Result<(), TranslationError> {
    let certificate = TranslationError::Certificate;
    let solution = crate::first::read_solution(n, proof).map_err(certificate)?;
    claim::first(n, solution.as_deref()).write(formula).map_err(TranslationError::Io)?;
    let mut observer = FirstProof::begin(n, solution.as_deref(), writer).map_err(certificate)?;
    crate::first::observe(n, proof, meter, &mut observer).map_err(certificate)?;
    observer.end().map_err(certificate)
}

fn beautiful(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
    formula: &mut dyn Write,
    writer: &mut ProofWriter<'_>,
) -> Result<(), TranslationError> {
    let mut unwritten = None;
    let observed = crate::beautiful::observe(n, proof, meter, |beauty, solution| {
        if let Err(error) = claim::beautiful(n, beauty, solution).formula.write(formula) {
            unwritten = Some(error);
            return Err(ProofError::Stopped);
        }
        BeautifulProof::begin(n, beauty, solution, writer)
    });
    if let Some(error) = unwritten {
        return Err(TranslationError::Io(error));
    }
    observed.and_then(|(_, proof)| proof.end()).map_err(TranslationError::Certificate)
}

/// Writes the formula of a claim alone: there is a solution that comes before these columns or, for
/// [`Kind::Beautiful`], has a smaller fingerprint. Without columns: there is a solution.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_claim(
    kind: Kind,
    n: usize,
    beauty: Beauty,
    columns: Option<&[usize]>,
    formula: &mut dyn Write,
) -> io::Result<()> {
    match kind {
        Kind::First => claim::first(n, columns).write(formula),
        Kind::Beautiful => claim::beautiful(n, beauty, columns).formula.write(formula),
    }
}

/// Writes the formula "there is a solution", with the symmetry that a certificate demands, and the
/// proof that these columns are one.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write_solution(
    columns: &[usize],
    beauty: Beauty,
    formula: &mut dyn Write,
    proof: &mut dyn Write,
) -> io::Result<()> {
    let board = claim::board(columns.len(), beauty);
    board.write(formula)?;
    let mut writer = ProofWriter::new(proof, u64::MAX);
    let written = writer
        .begin(board.identifiers().1)
        .and_then(|()| writer.conclude_satisfiable(claim::assignment(columns)));
    match (written, writer.interruption) {
        (_, Some(Interruption::Io(error))) => Err(error),
        _ => Ok(()),
    }
}
