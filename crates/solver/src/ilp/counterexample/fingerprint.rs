//! The search for a smaller fingerprint.

use super::{ClaimCheck, Meter};
use crate::progress::ProgressSink;
use nqueens_proof::board::Square;

/// Checks that no solution of the empty board of size `n` has a fingerprint below `claim`, or that
/// there is no solution if it is `None`. A counterexample is a solution with a smaller fingerprint.
/// See [`crate::beautiful::fingerprint`].
pub fn most_beautiful(
    n: usize,
    claim: Option<&[u64]>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    // From the border inward: large costs come first.
    let order = (0..n).map(|k| if k % 2 == 0 { k / 2 } else { n - 1 - k / 2 }).collect();
    let mut search = SmallerFingerprint {
        n,
        order,
        claim,
        columns: vec![None; n],
        used: vec![false; n],
        falling: vec![false; 2 * n],
        rising: vec![false; 2 * n],
        costs: Vec::new(),
        meter: Meter { sink, nodes: 0 },
    };
    search.from(0)
}

struct SmallerFingerprint<'a> {
    n: usize,
    order: Vec<usize>,
    claim: Option<&'a [u64]>,
    columns: Vec<Option<usize>>,
    used: Vec<bool>,
    falling: Vec<bool>,
    rising: Vec<bool>,
    /// Costs of the placed queens, in descending order.
    costs: Vec<u64>,
    meter: Meter<'a>,
}

impl SmallerFingerprint<'_> {
    /// Returns whether the fingerprint can still become smaller than the claim. More queens only
    /// increase it, entry by entry.
    fn can_be_smaller(&self) -> bool {
        self.claim.is_none_or(|claim| self.costs[..] < claim[..])
    }

    fn from(&mut self, depth: usize) -> ClaimCheck<Vec<usize>> {
        if !self.meter.step() {
            return ClaimCheck::Undecided;
        }
        if depth == self.n {
            // Only n = 0 gets here without a check of its costs.
            let solution = || self.columns.iter().flatten().copied().collect();
            return if self.can_be_smaller() {
                ClaimCheck::Refuted(solution())
            } else {
                ClaimCheck::Confirmed
            };
        }
        let row = self.order[depth];
        for column in 0..self.n {
            let (falling, rising) = (self.n + column - row, row + column);
            if self.used[column] || self.falling[falling] || self.rising[rising] {
                continue;
            }
            let cost = crate::beautiful::cost(self.n, Square::new(row, column));
            let place = self.costs.partition_point(|&other| other >= cost);
            self.costs.insert(place, cost);
            if self.can_be_smaller() {
                self.set(row, column, true);
                let check = self.from(depth + 1);
                self.set(row, column, false);
                if !matches!(check, ClaimCheck::Confirmed) {
                    return check;
                }
            }
            self.costs.remove(place);
        }
        ClaimCheck::Confirmed
    }

    fn set(&mut self, row: usize, column: usize, occupied: bool) {
        self.columns[row] = occupied.then_some(column);
        self.used[column] = occupied;
        self.falling[self.n + column - row] = occupied;
        self.rising[row + column] = occupied;
    }
}
