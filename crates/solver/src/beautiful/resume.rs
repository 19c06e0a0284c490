//! Checkpoints: what a run has proved so far, as bytes, so that a later run can resume from it.
//!
//! Format: eight magic bytes, n, the claim and the records of [`nqueens_proof::beautiful`], and the
//! SHA-256 of everything before it.

use super::Query;
use crate::checkpoint::{self, ResumeError};
use nqueens_proof::Meter;
use nqueens_proof::beautiful::{PartialProof, check_partial_within, claim};
use nqueens_proof::bytes::{Reader, Writer};

const MAGIC: &[u8; 8] = b"NQBEAUT\n";

/// Creates the checkpoint of a run with an incumbent and the records proved so far.
pub(super) fn write(query: &Query, solution: &[usize], records: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.bytes(MAGIC);
    writer.size(query.n);
    writer.bytes(claim(query.norm, query.turning, Some(solution)).as_bytes());
    writer.bytes(records);
    checkpoint::seal(writer.finish())
}

/// Reads the checkpoint of a run for `query`. Every record is checked, in at most
/// [`MOST_WORK`](nqueens_proof::MOST_WORK) steps in all.
///
/// # Errors
/// The bytes are not a checkpoint for `query`, damaged or wrong, or the check takes too long.
pub fn read(query: &Query, bytes: &[u8]) -> Result<PartialProof, ResumeError> {
    read_within(query, bytes, &mut Meter::default())
}

/// Reads a checkpoint like [`read`], but under a given meter.
///
/// # Errors
/// The bytes are not a checkpoint for `query`, damaged or wrong, or the meter ends the check.
pub fn read_within(
    query: &Query,
    bytes: &[u8],
    meter: &mut Meter<'_>,
) -> Result<PartialProof, ResumeError> {
    let mut reader = Reader::new(checkpoint::open(MAGIC, "beautiful", bytes)?);
    let n = reader.size(usize::MAX).map_err(|_| ResumeError::Damaged)?;
    let another = |found: String, wanted: String| Err(ResumeError::WrongQuery { found, wanted });
    if n != query.n {
        return another(format!("n = {n}"), format!("n = {}", query.n));
    }
    let proof = check_partial_within(n, reader.rest(), meter)?;
    if proof.beauty.norm != query.norm {
        return another(format!("the {} norm", proof.beauty.norm), query.norm.to_string());
    }
    if proof.beauty.turning != query.turning {
        let among = |turning| if turning { "symmetric solutions" } else { "all solutions" };
        return another(among(proof.beauty.turning).into(), among(query.turning).into());
    }
    Ok(proof)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::beautiful::most_beautiful_exactly;
    use crate::progress::Unobserved;
    use nqueens_proof::beautiful::record;
    use nqueens_proof::board::Norm;

    fn query(n: usize, turning: bool) -> Query {
        Query { n, norm: Norm::Euclidean, turning, threads: 1 }
    }

    /// Creates a checkpoint with a solution and these records, valid or not.
    fn file(n: usize, turning: bool, records: &[u8]) -> Vec<u8> {
        let found = most_beautiful_exactly(query(n, turning), &mut Unobserved).answer.found;
        write(&query(n, turning), &found.expect("a solution"), records)
    }

    #[test]
    fn records_after_the_last_level_are_refused() {
        let whole = most_beautiful_exactly(query(6, false), &mut Unobserved)
            .checkpoint
            .expect("a solution");
        let proof = read(&query(6, false), &whole).expect("intact");
        for more in [record::NEXT, record::AT_LEAST, record::REFUTED] {
            let mut records = proof.records.clone();
            records.extend([more, 1, 0]);
            let read = read(&query(6, false), &file(6, false, &records));
            assert!(matches!(read, Err(ResumeError::Invalid(_))), "{read:?}");
        }
        // The board of size 0 has no levels at all.
        assert!(read(&query(0, false), &write(&query(0, false), &[], &[])).is_ok());
        for record in 0..9 {
            let bytes = write(&query(0, false), &[], &[record, 1, 0]);
            assert!(read(&query(0, false), &bytes).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_with_a_valid_checksum_are_read_or_refused(
            n in prop::sample::select(&[0usize, 1, 4, 5, 6, 8][..]),
            turning in any::<bool>(),
            known in 0usize..60,
            records in proptest::collection::vec(0u8..20, 0..40),
            more in proptest::collection::vec(any::<u8>(), 0..10),
        ) {
            let turning = turning && n < 6;
            // A prefix of a run's records, followed by arbitrary bytes.
            let whole = most_beautiful_exactly(query(n, turning), &mut Unobserved).checkpoint;
            let proof = whole.map(|whole| read(&query(n, turning), &whole).expect("intact").records);
            let mut all = proof.unwrap_or_default();
            all.truncate(known);
            all.extend(records);
            all.extend(more);
            if let Ok(proof) = read(&query(n, turning), &file(n, turning, &all)) {
                prop_assert_eq!(&proof.records, &all);
            }
            // The same bytes in place of the claim.
            let mut writer = Writer::new();
            writer.bytes(MAGIC);
            writer.size(n);
            writer.bytes(&all);
            let _ = read(&query(n, turning), &checkpoint::seal(writer.finish()));
        }
    }
}
