//! The bounds proved so far on the solutions that are searched for.

use std::ops::RangeInclusive;

use super::orbits::{Level, OrbitId, Orbits};
use nqueens_proof::Beauty;
use nqueens_proof::beautiful::Premises;

/// Bounds on a set of solutions that is closed under all symmetries: an orbit is eliminated as soon
/// as one of its squares is shown to be impossible.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    eliminated: Vec<bool>,
    /// By distance from the main diagonals: `true` if every diagonal there is known to have a
    /// queen.
    full: Vec<bool>,
    /// The least and the greatest number of queens on each level, if known.
    range: Vec<Option<(u32, u32)>>,
}

impl Bounds {
    pub(super) fn new(orbits: &Orbits) -> Self {
        Self {
            eliminated: vec![false; orbits.orbits.len()],
            full: vec![false; orbits.n],
            range: vec![None; orbits.levels.len()],
        }
    }

    /// Creates the bounds that premises state.
    pub(super) fn of(orbits: &Orbits, premises: &Premises) -> Self {
        let mut bounds = Self::new(orbits);
        for (eliminated, remaining) in bounds.eliminated.iter_mut().zip(premises.candidates()) {
            *eliminated = !remaining;
        }
        premises.full().iter().for_each(|&distance| bounds.fill(distance));
        for &(level, least, most) in premises.ranges() {
            bounds.range[level] = Some((least as u32, most as u32));
        }
        bounds
    }

    /// Returns the bounds as premises, or `None` if they require more queens than the board holds.
    pub(super) fn premises(&self, n: usize, beauty: Beauty) -> Option<Premises> {
        let remaining = self.eliminated.iter().map(|eliminated| !eliminated).collect();
        let range = |(level, range): (usize, &Option<(u32, u32)>)| {
            range.map(|(least, most)| (level, least as usize, (most as usize).min(n)))
        };
        let ranges = self.range.iter().enumerate().filter_map(range).collect();
        Premises::new(n, beauty, remaining, self.full().collect(), ranges).ok()
    }

    pub(super) fn is_remaining(&self, orbit: OrbitId) -> bool {
        !self.eliminated[orbit]
    }

    pub(super) fn eliminate(&mut self, orbit: OrbitId) {
        self.eliminated[orbit] = true;
    }

    /// Returns the distances from the main diagonals at which every diagonal is known to have a
    /// queen, ascending.
    pub(super) fn full(&self) -> impl Iterator<Item = usize> {
        (0..self.full.len()).filter(|&distance| self.full[distance])
    }

    pub(super) fn is_full(&self, distance: usize) -> bool {
        self.full[distance]
    }

    pub(super) fn fill(&mut self, distance: usize) {
        self.full[distance] = true;
    }

    /// Returns the least and the greatest number of queens on `level`, if known.
    pub(super) fn range(&self, level: usize) -> Option<(u32, u32)> {
        self.range[level]
    }

    pub(super) fn set_range(&mut self, level: usize, range: Option<(u32, u32)>) {
        self.range[level] = range;
    }

    pub(super) fn remaining(&self) -> impl Iterator<Item = OrbitId> {
        (0..self.eliminated.len()).filter(|&orbit| !self.eliminated[orbit])
    }

    /// Returns the remaining orbits of a level.
    pub(super) fn remaining_on(&self, level: &Level) -> impl Iterator<Item = OrbitId> {
        level.orbits.iter().copied().filter(|&orbit| self.is_remaining(orbit))
    }

    /// Returns the numbers of the remaining squares, ascending.
    pub(super) fn squares(&self, orbits: &Orbits) -> Vec<usize> {
        let remaining = |&square: &usize| self.is_remaining(orbits.orbit_of[square]);
        (0..orbits.n * orbits.n).filter(remaining).collect()
    }

    /// Returns the levels with known bounds: the range of their queens, and their remaining
    /// squares.
    pub(super) fn groups(&self, orbits: &Orbits) -> Vec<(RangeInclusive<u32>, Vec<usize>)> {
        let squares = |level: usize| {
            let remaining = self.remaining_on(&orbits.levels[level]);
            remaining.flat_map(|orbit| orbits.orbits[orbit].squares.iter().copied()).collect()
        };
        let known = |(level, range): (usize, &Option<(u32, u32)>)| {
            range.map(|(least, most)| (least..=most, squares(level)))
        };
        let is_restrictive =
            |group: &(RangeInclusive<u32>, Vec<usize>)| *group.0.start() > 0 || !group.1.is_empty();
        self.range.iter().enumerate().filter_map(known).filter(is_restrictive).collect()
    }
}
