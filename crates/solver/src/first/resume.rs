//! Checkpoints: the refutations of a run as bytes, from which a later run resumes.
//!
//! Format: eight magic bytes, n, the number of prefixes; for each prefix its length, its columns,
//! the length of its refutation, and the refutation; finally the SHA-256 of everything before it.
//! Numbers are encoded as in [`nqueens_proof::bytes`].

use super::{LARGEST, Refutations};
use crate::checkpoint::{self, ResumeError};
use nqueens_proof::bytes::{Reader, Writer};
use nqueens_proof::first::{Refutation, check_refutation_within};
use nqueens_proof::{Meter, ProofError};

const MAGIC: &[u8; 8] = b"NQFIRST\n";

/// Encodes the refutations of a run for the board of size `n`.
pub fn write(n: usize, refuted: &Refutations) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.bytes(MAGIC);
    writer.size(n);
    writer.size(refuted.len());
    for (prefix, refutation) in refuted {
        writer.size(prefix.len());
        prefix.iter().for_each(|&column| writer.size(column));
        writer.size(refutation.as_bytes().len());
        writer.bytes(refutation.as_bytes());
    }
    checkpoint::seal(writer.finish())
}

/// Decodes the refutations of a run for the board of size `n`. Every refutation is checked, with at
/// most [`MOST_WORK`](nqueens_proof::MOST_WORK) steps in all.
///
/// # Errors
/// The bytes are in another format, damaged or wrong, or the check takes too long.
pub fn read(n: usize, bytes: &[u8]) -> Result<Refutations, ResumeError> {
    read_within(n, bytes, &mut Meter::default())
}

/// Like [`read`], under a given meter.
///
/// # Errors
/// The bytes are in another format, damaged or wrong, or the meter ends the check.
pub fn read_within(
    n: usize,
    bytes: &[u8],
    meter: &mut Meter<'_>,
) -> Result<Refutations, ResumeError> {
    let refuted = read_unchecked(n, bytes)?;
    for (prefix, refutation) in &refuted {
        check_refutation_within(n, prefix, refutation, u64::MAX, meter)?;
    }
    Ok(refuted)
}

/// Like [`read`], but does not check the refutations.
///
/// # Errors
/// The bytes are in another format or damaged.
pub fn read_unchecked(n: usize, bytes: &[u8]) -> Result<Refutations, ResumeError> {
    let content = checkpoint::open(MAGIC, "first", bytes)?;
    let (found, refuted) = parse(content).map_err(|_| ResumeError::Damaged)?;
    if found != n {
        let (found, wanted) = (format!("n = {found}"), format!("n = {n}"));
        return Err(ResumeError::WrongQuery { found, wanted });
    }
    let is_valid = |prefix: &Vec<usize>| {
        let is_free = |(row, &column): (usize, &usize)| {
            column < n && crate::first::board::is_free(&prefix[..row], column)
        };
        // A run never refutes the prefix without queens, and with a queen in each row there is
        // nothing left to refute.
        !prefix.is_empty() && prefix.len() < n && prefix.iter().enumerate().all(is_free)
    };
    if refuted.keys().all(is_valid) { Ok(refuted) } else { Err(ResumeError::Damaged) }
}

fn parse(bytes: &[u8]) -> Result<(usize, Refutations), ProofError> {
    let mut reader = Reader::new(bytes);
    let n = reader.size(LARGEST)?;
    let mut refuted = Refutations::new();
    for _ in 0..reader.number()? {
        let rows = reader.size(n)?;
        let prefix = (0..rows).map(|_| reader.size(LARGEST)).collect::<Result<Vec<usize>, _>>()?;
        let length = reader.size(usize::MAX)?;
        let refutation = reader.bytes(length)?;
        refuted.insert(prefix, Refutation::from_bytes(refutation.to_vec()));
    }
    if reader.is_empty() { Ok((n, refuted)) } else { Err(ProofError::Damaged("something follows")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::first::{Options, first_solution};
    use crate::progress::Unobserved;

    #[test]
    fn a_resumed_run_repeats_no_query_and_finds_the_same() {
        let run = |refuted| {
            let options = Options { refuted, ..Options::default() };
            first_solution(22, options, &mut Unobserved, &mut |_| {})
        };
        let whole = run(Refutations::new());
        let bytes = write(22, &whole.refuted);
        let read_again = read(22, &bytes).expect("intact");
        assert_eq!(read_again, whole.refuted);
        let again = run(read_again);
        assert_eq!((again.solution, again.finished), (whole.solution, true));
        assert!(again.lps_solved < whole.lps_solved);
        let error = read(21, &bytes).expect_err("of another board");
        assert_eq!(error.to_string(), "the checkpoint belongs to n = 22, not n = 21");
        for place in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[place] ^= 0x10;
            assert!(read(22, &altered).is_err());
        }
    }

    /// Adds the magic bytes and a valid checksum.
    fn sealed(content: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(content);
        checkpoint::seal(bytes)
    }

    #[test]
    fn a_board_without_rows_has_no_refutations() {
        let empty = Refutations::from([(vec![], Refutation::search())]);
        assert_eq!(read(0, &write(0, &empty)), Err(ResumeError::Damaged));
        assert_eq!(read(0, &write(0, &Refutations::new())), Ok(Refutations::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_with_a_valid_checksum_are_read_or_refused(
            n in 0usize..=9,
            content in proptest::collection::vec(0u8..12, 0..40),
            more in proptest::collection::vec(any::<u8>(), 0..10),
        ) {
            let bytes = sealed(&[&[n as u8][..], &content, &more].concat());
            if let Ok(refuted) = read(n, &bytes) {
                prop_assert_eq!(read(n, &write(n, &refuted)), Ok(refuted));
            }
        }
    }

    #[test]
    fn wrong_refutations_are_rejected() {
        let lies = Refutations::from([(vec![0], Refutation::search())]);
        assert!(matches!(read(8, &write(8, &lies)), Err(ResumeError::Invalid(_))));
        let nonsense = Refutations::from([(vec![0, 1], Refutation::search())]);
        assert_eq!(read(8, &write(8, &nonsense)), Err(ResumeError::Damaged));
    }
}
