//! The sets of diagonals that column generation has found for earlier queries, for later ones of
//! all solvers that share it: a column pool.

use std::collections::VecDeque;

use super::params;
use super::width::Width;
use crate::bitset::BitSet;

/// The most recent sets of diagonals that all queens of a completion would occupy, each with its
/// direction. No code that locks a pool can panic half-way through a change.
pub(super) struct SetPool<W: Width>(VecDeque<(usize, W::Diagonals)>);

impl<W: Width> Default for SetPool<W> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<W: Width> SetPool<W> {
    /// Adds a set of this direction, 0 or 1.
    pub(super) fn add(&mut self, direction: usize, set: W::Diagonals) {
        self.0.push_back((direction, set));
        if self.0.len() > params::POOLED_SETS {
            self.0.pop_front();
        }
    }

    /// Returns the sets that contain all `occupied` diagonals of their direction and otherwise only
    /// `remaining` ones, the most recent one first.
    pub(super) fn usable(
        &self,
        occupied: [W::Diagonals; 2],
        remaining: [W::Diagonals; 2],
    ) -> impl Iterator<Item = (usize, W::Diagonals)> {
        self.0.iter().rev().copied().filter(move |&(direction, set)| {
            is_usable(set, occupied[direction], remaining[direction])
        })
    }
}

/// Returns whether a set contains all `occupied` diagonals and otherwise only `remaining` ones.
pub(super) fn is_usable<D: BitSet>(set: D, occupied: D, remaining: D) -> bool {
    occupied.without(set).is_empty() && set.without(occupied.or(remaining)).is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::width::Width64x64;
    use super::*;

    type Diagonals = <Width64x64 as Width>::Diagonals;

    fn set(diagonals: &[usize]) -> Diagonals {
        diagonals.iter().fold(Diagonals::EMPTY, |set, &d| set.or(Diagonals::one(d)))
    }

    #[test]
    fn sets_are_usable_with_the_occupied_diagonals_and_remaining_ones() {
        let mut pool = SetPool::<Width64x64>::default();
        for diagonals in [[1, 2, 3], [1, 2, 4], [1, 3, 4], [2, 3, 4]] {
            pool.add(0, set(&diagonals));
        }
        pool.add(1, set(&[5]));
        let usable = |occupied: [&[usize]; 2], remaining: [&[usize]; 2]| {
            pool.usable(occupied.map(set), remaining.map(set)).collect::<Vec<_>>()
        };
        let expected = [(0, set(&[1, 3, 4])), (0, set(&[1, 2, 4]))];
        assert_eq!(usable([&[1, 4], &[6]], [&[2, 3], &[5]]), expected);
        assert_eq!(usable([&[1, 4], &[]], [&[2], &[5, 6]]), [(1, set(&[5])), (0, set(&[1, 2, 4]))]);
    }

    #[test]
    fn a_pool_forgets_its_oldest_sets() {
        let mut pool = SetPool::<Width64x64>::default();
        for number in 0..params::POOLED_SETS + 3 {
            pool.add(0, set(&[number % 64]));
        }
        let all: Vec<usize> = (0..64).collect();
        let usable = pool.usable([set(&[]); 2], [set(&all); 2]);
        let newest = (3..params::POOLED_SETS + 3).rev().map(|number| (0, set(&[number % 64])));
        assert!(usable.eq(newest));
    }
}
