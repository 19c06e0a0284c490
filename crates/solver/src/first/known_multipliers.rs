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
    /// Each with the number of those added up to it; the one that was of use last is at the end.
    recent: VecDeque<(usize, Arc<Multipliers>)>,
    /// Number of multipliers added so far.
    added: usize,
}

impl RecentMultipliers {
    /// Adds multipliers, or renews equal ones.
    pub(super) fn add(&mut self, multipliers: Arc<Multipliers>) {
        if self.recent.iter().any(|(_, other)| *other == multipliers) {
            return self.renew(&multipliers);
        }
        self.added += 1;
        self.recent.push_back((self.added, multipliers));
        if self.recent.len() > params::MAX_MULTIPLIERS {
            self.recent.pop_front();
        }
    }

    /// Moves these multipliers, which were of use, to the end, if they are still kept.
    pub(super) fn renew(&mut self, multipliers: &Arc<Multipliers>) {
        let place = self.recent.iter().position(|(_, other)| other == multipliers);
        if let Some(renewed) = place.and_then(|place| self.recent.remove(place)) {
            self.recent.push_back(renewed);
        }
    }

    /// Returns all multipliers, those that were of use last first.
    pub(super) fn all(&self) -> Vec<Arc<Multipliers>> {
        self.new_since(&mut 0)
    }

    /// Returns those added after the first `seen`, in the order of [`all`](Self::all), and sets
    /// `seen` to the number of all.
    fn new_since(&self, seen: &mut usize) -> Vec<Arc<Multipliers>> {
        let seen = std::mem::replace(seen, self.added);
        let new = self.recent.iter().rev().filter(|(number, _)| *number > seen);
        new.map(|(_, multipliers)| Arc::clone(multipliers)).collect()
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

    /// Adds the multipliers with which a refutation ends, if it ends with a dual bound. Ignores
    /// multipliers that no solver proposes, since they are too large.
    pub fn add(&self, refutation: &Refutation) {
        let multipliers = refutation.last_multipliers(self.n);
        if let Some(multipliers) = multipliers.filter(has_small_sums) {
            lock(&self.recent).add(Arc::new(multipliers));
        }
    }

    /// Returns a function that refutes a prefix, whose queens do not attack each other, by the kept
    /// multipliers that were added since its last call, if any of them do.
    pub fn refuter(&self, prefix: &[usize]) -> Box<dyn FnMut() -> Option<Refutation> + '_> {
        if self.n <= Width64x64::ROWS {
            self.refuter_on::<Width64x64>(prefix)
        } else {
            self.refuter_on::<Width128x128>(prefix)
        }
    }

    fn refuter_on<W: Width>(
        &self,
        prefix: &[usize],
    ) -> Box<dyn FnMut() -> Option<Refutation> + '_> {
        let queens = prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column));
        let mut board = Residual::<W>::new(self.n, &queens.collect::<Vec<_>>());
        let is_open = matches!(board.propagate(), State::Open(_));
        let (mut pricing, mut knapsack) = (Pricing::new(&board), Knapsack::default());
        let mut seen = 0;
        Box::new(move || {
            let new = lock(&self.recent).new_since(&mut seen);
            let mut refutes = |one: &&Arc<Multipliers>| pricing.is_refuted(one, &mut knapsack);
            let multipliers = new.iter().find(|one| is_open && refutes(one))?;
            lock(&self.recent).renew(multipliers);
            Some(Refutation::dual_bound(multipliers, true, &Refutation::search()))
        })
    }
}

/// Returns whether the weights of the diagonals sum to less than 2^30, and the multipliers of the
/// columns are from -2^30 to below 2^30.
fn has_small_sums(multipliers: &Multipliers) -> bool {
    const LIMIT: i64 = 1 << 30;
    let Multipliers { columns, diagonals, antidiagonals } = multipliers;
    diagonals.iter().chain(antidiagonals).sum::<i64>() < LIMIT
        && columns.iter().all(|y| (-LIMIT..LIMIT).contains(y))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, first_solution};
    use super::*;
    use crate::progress::Unobserved;
    use nqueens_proof::first::check_refutation;

    #[test]
    fn multipliers_of_refutations_refute_other_prefixes_and_the_checker_agrees() {
        for n in [32, 70] {
            let found = first_solution(n, Options::default(), &mut Unobserved, &mut |_| {});
            let known = KnownMultipliers::new(n);
            let solution = found.solution.as_deref().expect("a solution");
            let mut refuters: Vec<_> =
                (1..n).map(|length| known.refuter(&solution[..length])).collect();
            let mut refuted = 0;
            for (prefix, refutation) in &found.refuted {
                let mut refuter = known.refuter(prefix);
                if let Some(refutation) = refuter() {
                    check_refutation(n, prefix, &refutation, u64::MAX).expect("a valid one");
                    assert!(refutation.last_multipliers(n).is_some());
                    refuted += 1;
                }
                known.add(refutation);
                assert!(refuters.iter_mut().all(|refuter| refuter().is_none()));
            }
            assert!(refuted > 5, "n = {n}: {refuted} of {}", found.refuted.len());
        }
    }

    #[test]
    fn multipliers_that_are_of_use_are_kept_and_each_is_new_once() {
        let mut recent = RecentMultipliers::default();
        let one =
            |value: i64| Arc::new(Multipliers { columns: vec![value; 4], ..Multipliers::none(4) });
        let first = |recent: &RecentMultipliers, seen: &mut usize| {
            recent.new_since(seen).iter().map(|one| one.columns[0]).collect::<Vec<_>>()
        };
        let (most, mut seen) = (params::MAX_MULTIPLIERS as i64, 0);
        (0..most).for_each(|value| recent.add(one(value)));
        assert_eq!(first(&recent, &mut seen), (0..most).rev().collect::<Vec<_>>());
        recent.renew(&one(0));
        recent.add(one(1));
        assert_eq!(first(&recent, &mut seen), [0; 0], "none is new");
        recent.add(one(most));
        recent.renew(&one(5));
        assert_eq!(first(&recent, &mut seen), [most]);
        let all: Vec<_> = recent.all().iter().map(|one| one.columns[0]).collect();
        assert_eq!(all[..4], [5, most, 1, 0]);
        assert!(all.len() == most as usize && !all.contains(&2), "{all:?}");
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
        assert_eq!(known.refuter(&[0, 2])(), None);
    }
}
