//! The first records of a proof that is not finished yet: what they show so far.

use super::checker::{Checker, Supposition};
use super::claim::{Claim, read_claim};
use super::{LARGEST, refused};
use crate::bytes::Reader;
use crate::{Beauty, Meter, ProofError};

/// The result of checking the first records of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialProof {
    /// The norm and the set of solutions considered.
    pub beauty: Beauty,
    /// The 0-based column of the queen in each row.
    pub solution: Vec<usize>,
    /// The records.
    pub records: Vec<u8>,
    /// The current level, where 0 has the largest cost; all previous levels are complete.
    pub level: usize,
    /// The number of queens shown on it so far.
    pub shown: usize,
    /// The numbers of the eliminated squares, including those of levels without queens, but not
    /// those eliminated in the trial.
    pub eliminated: Vec<usize>,
    /// The distances of full diagonals, except those filled in the trial.
    pub full: Vec<usize>,
    /// The squares of each clique.
    pub cliques: Vec<Vec<usize>>,
    /// The trial that has not ended yet.
    pub trial: Option<Trial>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The least number of queens on the level that the trial is to show.
    pub least: usize,
    /// The squares eliminated in it.
    pub eliminated: Vec<usize>,
    /// The distances of the diagonals filled in it.
    pub filled: Vec<usize>,
    /// The levels whose range was narrowed in it, each with the least and the greatest number of
    /// queens.
    pub ranges: Vec<(usize, usize, usize)>,
    /// The length in bytes of the records before it.
    pub begin: usize,
    /// The number of cliques before it.
    pub cliques: usize,
}

/// Checks the first records of a proof for a board of size `n`, up to the end of the bytes.
///
/// # Errors
/// Returns an error if they cannot be read, if one of them proves nothing, or if the check exceeds
/// [`MOST_WORK`](crate::MOST_WORK) steps.
pub fn check_partial(n: usize, proof: &[u8]) -> Result<PartialProof, ProofError> {
    check_partial_within(n, proof, &mut Meter::default())
}

/// Checks the first records like [`check_partial`], under this meter.
///
/// # Errors
/// Returns an error if they cannot be read, if one of them proves nothing, or if the meter ends the
/// check.
pub fn check_partial_within(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
) -> Result<PartialProof, ProofError> {
    if n > LARGEST {
        return Err(refused(format!("the board is larger than {LARGEST}")));
    }
    let mut reader = Reader::new(proof);
    let Claim { beauty, solution } = read_claim(n, &mut reader)?;
    let solution = solution.ok_or_else(|| refused("it has no solution"))?;
    let mut checker = Checker::new(n, beauty, Some(&solution));
    let records = reader.rest();
    let mut trial = (0, 0);
    while !reader.is_empty() {
        if checker.is_done() {
            return Err(refused("records follow the last level"));
        }
        let before = (records.len() - reader.rest().len(), checker.cliques.len());
        let tried = !checker.suppositions.is_empty();
        checker.record(&mut reader, meter, &mut ())?;
        if !checker.suppositions.is_empty() && !tried {
            trial = before;
        }
    }
    let Checker { level, shown, board, cliques, mut suppositions, .. } = checker;
    let (begin, before) = trial;
    let mut full: Vec<usize> = (0..n).filter(|&distance| board.is_full(distance)).collect();
    let trial = suppositions.pop().map(|Supposition { bound, eliminated, filled, mut ranges }| {
        ranges.sort_unstable();
        ranges.dedup_by_key(|&mut (level, _)| level);
        let ranges = ranges
            .into_iter()
            .map(|(level, _)| (level, board.range[level].0, board.range[level].1));
        full.retain(|distance| !filled.contains(distance));
        Trial {
            least: bound.queens,
            eliminated,
            filled,
            ranges: ranges.collect(),
            begin,
            cliques: before,
        }
    });
    if !suppositions.is_empty() {
        return Err(refused("the records end in an assumption"));
    }
    let eliminated =
        |square: &usize| trial.as_ref().is_some_and(|trial| trial.eliminated.contains(square));
    let eliminated =
        (0..board.squares()).filter(|square| !board.open[*square] && !eliminated(square)).collect();
    Ok(PartialProof {
        beauty,
        solution,
        records: records.to_vec(),
        level,
        shown,
        eliminated,
        full,
        cliques,
        trial,
    })
}
