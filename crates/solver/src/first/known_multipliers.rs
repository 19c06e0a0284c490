//! Multipliers that refuted boards: they often refute similar boards, too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::knapsack::Knapsack;
use super::params;
use super::pricing::Pricing;
use super::residual::{Residual, State};
use super::width::{Width, Width64x64, Width128x128};
use crate::threads::lock;
use nqueens_proof::board::Square;
use nqueens_proof::first::{Multipliers, Refutation};

/// The multipliers with which the knapsacks refuted the last boards.
#[derive(Debug, Default)]
pub(super) struct RecentMultipliers {
    /// The most recent last.
    recent: VecDeque<Arc<Multipliers>>,
    /// Number of multipliers added so far.
    added: usize,
}

impl RecentMultipliers {
    /// Adds multipliers.
    pub(super) fn add(&mut self, multipliers: Arc<Multipliers>) {
        self.added += 1;
        self.recent.push_back(multipliers);
        if self.recent.len() > params::MAX_MULTIPLIERS {
            self.recent.pop_front();
        }
    }

    /// Makes these multipliers the most recent ones, if they are still kept.
    pub(super) fn renew(&mut self, multipliers: &Arc<Multipliers>) {
        let place = self.recent.iter().position(|other| Arc::ptr_eq(other, multipliers));
        if let Some(renewed) = place.and_then(|place| self.recent.remove(place)) {
            self.recent.push_back(renewed);
        }
    }

    /// Returns all multipliers, the most recent first.
    pub(super) fn all(&self) -> Vec<Arc<Multipliers>> {
        self.recent.iter().rev().cloned().collect()
    }

    /// Returns those added after the first `seen`, the most recent first, and sets `seen` to the
    /// number of all.
    fn new_since(&self, seen: &mut usize) -> Vec<Arc<Multipliers>> {
        let new = self.added - std::mem::replace(seen, self.added);
        self.recent.iter().rev().take(new).cloned().collect()
    }
}

/// The multipliers of refutations of the board of size `n`, which come from other machines.
#[derive(Debug)]
pub struct KnownMultipliers {
    n: usize,
    recent: Mutex<RecentMultipliers>,
}

impl KnownMultipliers {
    /// Creates an empty set.
    ///
    /// # Panics
    /// If n is larger than [`LARGEST`](crate::first::LARGEST).
    pub fn new(n: usize) -> Self {
        assert!(n <= crate::first::LARGEST);
        Self { n, recent: Mutex::default() }
    }

    /// Adds the multipliers of the last dual bound of a refutation that does not branch before.
    /// Ignores refutations without any, with multipliers that no solver proposes, or with bytes
    /// that encode none.
    pub fn add(&self, refutation: &Refutation) {
        let multipliers = refutation.knapsack_multipliers(self.n);
        if let Some(multipliers) = multipliers.filter(has_small_sums) {
            lock(&self.recent).add(Arc::new(multipliers));
        }
    }

    /// Refutes a prefix, whose queens do not attack each other, by multipliers added after the
    /// first `seen` ones, if any of them do. Sets `seen` to the number added so far.
    pub fn refute(&self, prefix: &[usize], seen: &mut usize) -> Option<Refutation> {
        let known = lock(&self.recent).new_since(seen);
        if known.is_empty() {
            None
        } else if self.n <= Width64x64::ROWS {
            refute::<Width64x64>(self.n, prefix, &known)
        } else {
            refute::<Width128x128>(self.n, prefix, &known)
        }
    }
}

/// Returns whether the weights of the diagonals sum to less than 2^30, and no multiplier of a
/// column is larger.
fn has_small_sums(multipliers: &Multipliers) -> bool {
    const LIMIT: i64 = 1 << 30;
    let Multipliers { columns, diagonals, antidiagonals } = multipliers;
    diagonals.iter().chain(antidiagonals).sum::<i64>() < LIMIT
        && columns.iter().all(|y| (-LIMIT..LIMIT).contains(y))
}

fn refute<W: Width>(n: usize, prefix: &[usize], known: &[Arc<Multipliers>]) -> Option<Refutation> {
    let queens = prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column));
    let mut board = Residual::<W>::new(n, &queens.collect::<Vec<_>>());
    if !matches!(board.propagate(), State::Open(_)) {
        return None;
    }
    let (mut pricing, mut knapsack) = (Pricing::new(&board), Knapsack::default());
    let multipliers = known.iter().find(|one| pricing.is_refuted(one, &mut knapsack))?;
    Some(Refutation::dual_bound(multipliers, true, &Refutation::search()))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, first_solution};
    use super::*;
    use crate::progress::Unobserved;
    use nqueens_proof::first::check_refutation;

    #[test]
    fn multipliers_of_refutations_refute_other_prefixes_and_the_checker_agrees() {
        let n = 32;
        let found = first_solution(n, Options::default(), &mut Unobserved, &mut |_| {});
        let known = KnownMultipliers::new(n);
        let (mut seen, mut refuted) = (0, 0);
        for (prefix, refutation) in &found.refuted {
            let before = known.refute(prefix, &mut 0);
            refuted += usize::from(before.is_some());
            if let Some(refutation) = before {
                check_refutation(n, prefix, &refutation, u64::MAX).expect("a valid refutation");
                assert!(refutation.knapsack_multipliers(n).is_some());
            }
            known.add(refutation);
            let solution = found.solution.as_deref().expect("a solution");
            assert_eq!(known.refute(&solution[..prefix.len()], &mut seen), None);
            assert_eq!(seen, lock(&known.recent).added);
            assert_eq!(known.refute(prefix, &mut seen), None, "there are no new ones");
        }
        assert!(refuted > 5, "{refuted} of {}", found.refuted.len());
    }

    #[test]
    fn multipliers_that_no_solver_proposes_and_wrong_bytes_are_ignored() {
        let n = 8;
        let known = KnownMultipliers::new(n);
        let add = |multipliers: &Multipliers, knapsack: bool| {
            known.add(&Refutation::dual_bound(multipliers, knapsack, &Refutation::search()));
        };
        let none = Multipliers::none(n);
        add(&none, false);
        add(&Multipliers::none(9), true);
        let large = (1 << 40) - 1;
        add(&Multipliers { diagonals: vec![large; 15], ..none.clone() }, true);
        add(&Multipliers { antidiagonals: vec![1 << 27; 15], ..none.clone() }, true);
        add(&Multipliers { columns: vec![-large; 8], ..none.clone() }, true);
        known.add(&Refutation::search());
        for length in 0..30 {
            known.add(&Refutation::from_bytes(vec![2; length]));
        }
        assert_eq!(lock(&known.recent).added, 0);
        add(&Multipliers { columns: vec![-1 << 30; 8], ..none }, true);
        assert_eq!(lock(&known.recent).added, 1);
        assert_eq!(known.refute(&[0, 2], &mut 0), None);
    }
}
