//! What is known about the solutions in question.

use std::ops::RangeInclusive;

use super::orbits::{OrbitId, Orbits};
use nqueens_proof::Beauty;
use nqueens_proof::beautiful::Premises;

/// Facts that hold for a set of solutions which no symmetry changes: so no queen stands on a dead orbit, wherever
/// one of its squares is shown to be impossible.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    dead: Vec<bool>,
    /// By distance from the main diagonals: whether the diagonals there are known to have a queen each.
    full: Vec<bool>,
    /// How many queens stand on each level that something is known of.
    range: Vec<Option<(u32, u32)>>,
}

impl Bounds {
    pub(super) fn new(orbits: &Orbits) -> Self {
        Self {
            dead: vec![false; orbits.orbits.len()],
            full: vec![false; orbits.n],
            range: vec![None; orbits.levels.len()],
        }
    }

    /// The facts that others sent.
    pub(super) fn of(orbits: &Orbits, known: &Premises) -> Self {
        let mut bounds = Self::new(orbits);
        for (dead, alive) in bounds.dead.iter_mut().zip(known.alive()) {
            *dead = !alive;
        }
        known.full().iter().for_each(|&distance| bounds.fill(distance));
        for &(level, least, most) in known.ranges() {
            bounds.range[level] = Some((least as u32, most as u32));
        }
        bounds
    }

    /// The facts for others; none if they ask for more queens than a board has.
    pub(super) fn known(&self, n: usize, beauty: Beauty) -> Option<Premises> {
        let alive = self.dead.iter().map(|dead| !dead).collect();
        let range = |(level, range): (usize, &Option<(u32, u32)>)| {
            range.map(|(least, most)| (level, least as usize, (most as usize).min(n)))
        };
        let ranges = self.range.iter().enumerate().filter_map(range).collect();
        Premises::new(n, beauty, alive, self.full().collect(), ranges).ok()
    }

    pub(super) fn is_alive(&self, orbit: OrbitId) -> bool {
        !self.dead[orbit]
    }

    pub(super) fn kill(&mut self, orbit: OrbitId) {
        self.dead[orbit] = true;
    }

    /// The distances from the main diagonals at which diagonals are known to have a queen each, ascending.
    pub(super) fn full(&self) -> impl Iterator<Item = usize> {
        (0..self.full.len()).filter(|&distance| self.full[distance])
    }

    pub(super) fn is_full(&self, distance: usize) -> bool {
        self.full[distance]
    }

    pub(super) fn fill(&mut self, distance: usize) {
        self.full[distance] = true;
    }

    /// The least and the greatest number of queens on `level`, if anything is known.
    pub(super) fn range(&self, level: usize) -> Option<(u32, u32)> {
        self.range[level]
    }

    pub(super) fn set_range(&mut self, level: usize, range: Option<(u32, u32)>) {
        self.range[level] = range;
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = OrbitId> {
        (0..self.dead.len()).filter(|&orbit| !self.dead[orbit])
    }

    /// The squares that are alive, by number, ascending.
    pub(super) fn squares(&self, orbits: &Orbits) -> Vec<usize> {
        let alive = |&square: &usize| self.is_alive(orbits.orbit_of[square]);
        (0..orbits.n * orbits.n).filter(alive).collect()
    }

    /// The levels that something is known of: how many queens, and their squares.
    pub(super) fn groups(&self, orbits: &Orbits) -> Vec<(RangeInclusive<u32>, Vec<usize>)> {
        let squares = |level: usize| {
            let alive = orbits.levels[level].orbits.iter().filter(|&&orbit| self.is_alive(orbit));
            alive.flat_map(|&orbit| orbits.orbits[orbit].squares.iter().copied()).collect()
        };
        let known = |(level, range): (usize, &Option<(u32, u32)>)| {
            range.map(|(least, most)| (least..=most, squares(level)))
        };
        let says_something =
            |group: &(RangeInclusive<u32>, Vec<usize>)| *group.0.start() > 0 || !group.1.is_empty();
        self.range.iter().enumerate().filter_map(known).filter(says_something).collect()
    }
}
