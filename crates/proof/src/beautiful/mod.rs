//! Certificates that a solution is most beautiful: no solution has a smaller fingerprint.
//!
//! # The argument
//! Suppose that another solution T has a smaller fingerprint than the given solution S. A *level*
//! is the set of squares of one cost; levels are ordered by decreasing cost. On the first level
//! where T and S have different numbers of queens, T has fewer. It is therefore enough to show,
//! level by level, that every solution with as many queens as S on all previous levels has at least
//! as many as S on this one. The certificate shows this in *records*. Each record rules out some of
//! the solutions in question: those with as many queens as S on the previous levels and, in a
//! *trial*, with fewer on this level than the bound to be shown.
//!
//! Such a set is invariant under the symmetries of the square. So if none of its solutions has a
//! queen on one square of an *orbit*, none has a queen on any square of that orbit: the orbit is
//! *eliminated*. A diagonal is *full* if every solution of the set has a queen on it; this is shown
//! for all diagonals at one distance from the main ones together.
//!
//! # The records
//! Numbers are encoded as in [`crate::bytes`]; the number of a square is row · n + column, 0-based.
//!
//! | record | followed by | meaning and check |
//! |---|---|---|
//! | 1 | v | a trial begins: the solutions with at most v − 1 queens on this level. The next refutation ends it: squares eliminated in it are restored, diagonals filled in it are no longer full, and the level has at least v queens |
//! | 2 | tree | no solution is left: by a search |
//! | 3 | square, tree | its orbit is eliminated: by a search with a queen on the square |
//! | 4 | multipliers | no solution is left: base > 0 |
//! | 5 | multipliers, count, squares | their orbits are eliminated: base + r(o) > 0 |
//! | 6 | count, squares | a clique: the squares attack each other; multipliers may refer to it |
//! | 7 | | the next level begins; this level was shown to have as many queens as in S (if S has none there, nothing needs to be shown) |
//! | 8 | level, side, v | in a trial, an assumption begins: another level, counted from 0, has at most v − 1 queens (side 0), or at least v (side 1). The next refutation ends it: squares eliminated in it are restored, what it showed of levels and diagonals is discarded, and the level has at least v queens, or at most v − 1 |
//! | 9 | multipliers, count, distances | the diagonals at these distances are full: base − y(d) > 0; not under quarter turns |
//!
//! The proof is complete when the levels passed hold n queens. If there is no solution at all,
//! there are no levels, and the proof is a single refutation. No record is needed if only solutions
//! invariant under quarter turns are considered and n is not 0 or 1 modulo 4: such queens come in
//! fours, except for one in the centre.
//!
//! **Search.** Queens are placed one by one, with propagation. An attacked square is closed. A row
//! or column with one open square gets its queen there; with no open square it is a contradiction.
//! A level with more or fewer queens than it can have is a contradiction. A level that has all its
//! queens is closed, and a level that needs all its open squares gets queens on them. Full
//! diagonals are treated like rows and columns. If propagation finds no contradiction, the tree
//! names a row (0 to n − 1), a column (n to 2n − 1) or a full diagonal ([`prices::in_tree`])
//! without a queen. Each of its open squares is tried in ascending order, and a subtree follows for
//! each one where propagation finds no contradiction.
//!
//! Alternatively the tree may have [`prices`]: the number 2n + 1 (or 6n + 2 if they also fill
//! diagonals), a count, and for each price the number of its line or level and the price. The price
//! of an open square is the sum of the prices of its column, its diagonals and its level; prices of
//! diagonals that are not full are not negative. All remaining queens together pay at most the
//! prices of all columns and diagonals that have an open square plus, for each level, its price
//! times the greatest number of queens it can still have (if the price is negative: the least
//! number). They pay at least the sum of the cheapest open squares of all rows. If this lower bound
//! exceeds the upper one, it is a contradiction. Otherwise each square is closed whose price
//! exceeds the cheapest of its row by more than the difference of the bounds, and with 6n + 2 each
//! diagonal becomes full whose price exceeds it. If propagation then finds no contradiction,
//! another tree follows.
//!
//! **Multipliers.** Let q(o) be the number of queens of a solution on orbit o, from 0 to most(o),
//! and let A be the matrix of the constraints Aq = b or Aq ≤ b: all rows and columns at one
//! distance from the border together contain 4 queens (2 if they are the middle ones); the
//! diagonals at one distance from the main ones contain at most 4 (2 if they are the main ones); a
//! level contains as many as is known; the 8 images of a clique contain at most 8. For multipliers
//! y, of any sign for equations and at most 0 for upper bounds, and r = −yA, every solution
//! satisfies base = Σ y·b + Σ min(0, r)·most ≤ Σ y·(Aq) + Σ r·q = 0. With a queen on o even base +
//! r(o) ≤ 0 if r(o) > 0. If one of the diagonals at distance d is empty, b(d) is one less, so
//! base − y(d) ≤ 0. Constraints are numbered: ⌈n/2⌉ distances from the border, n from the main
//! diagonals, levels, cliques.

mod board;
mod checker;
mod claim;
mod observer;
mod partial;
pub mod prices;
pub mod record;
mod subtree;
mod tree;

pub(crate) use board::Board;
use checker::Checker;
use claim::{Claim, read_claim};
pub(crate) use observer::{LevelBound, Observer};

use crate::bytes::Reader;
use crate::{Beauty, Kind, Meter, ProofError, ProvedStatement};

pub use claim::claim;
pub use partial::{PartialProof, Trial, check_partial, check_partial_within};
pub use subtree::{CheckedTree, Premises, Subtree, SubtreeChecker};

/// The largest board size that is accepted.
pub const LARGEST: usize = 512;

fn refused(why: impl ToString) -> ProofError {
    ProofError::Refused(why.to_string())
}

/// Checks a proof for a board of size `n` within [`MOST_WORK`](crate::MOST_WORK) steps.
///
/// # Errors
/// Returns an error if the proof cannot be read, proves nothing, or exceeds the step limit.
pub fn check(n: usize, proof: &[u8]) -> Result<ProvedStatement, ProofError> {
    check_within(n, proof, &mut Meter::default())
}

/// Checks a proof like [`check`], under this meter.
///
/// # Errors
/// Returns an error if the proof cannot be read or proves nothing, or if the meter ends the check.
pub fn check_within(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
) -> Result<ProvedStatement, ProofError> {
    let before = meter.work();
    let (Claim { beauty, solution }, ()) = observe(n, proof, meter, |_, _| Ok(()))?;
    let work = meter.work() - before;
    Ok(ProvedStatement { kind: Kind::Beautiful, beauty: Some(beauty), n, solution, work })
}

/// Checks a proof like [`check_within`], and reports its records to the observer that `begin` makes
/// from the claim. Returns the claim.
pub(crate) fn observe<O: Observer>(
    n: usize,
    proof: &[u8],
    meter: &mut Meter<'_>,
    begin: impl FnOnce(Beauty, Option<&[usize]>) -> Result<O, ProofError>,
) -> Result<(Claim, O), ProofError> {
    if n > LARGEST {
        return Err(refused(format!("the board is larger than {LARGEST}")));
    }
    let mut reader = Reader::new(proof);
    let Claim { beauty, solution } = read_claim(n, &mut reader)?;
    let mut observer = begin(beauty, solution.as_deref())?;
    let mut checker = Checker::new(n, beauty, solution.as_deref());
    // Under quarter turns queens come in fours, except for one in the centre.
    checker.refuted = beauty.turning && n % 4 > 1;
    while !checker.is_done() {
        checker.record(&mut reader, meter, &mut observer)?;
    }
    if !reader.is_empty() {
        return Err(ProofError::Damaged("bytes follow the end of the proof"));
    }
    Ok((Claim { beauty, solution }, observer))
}
