//! Feasible points of the orbit LP, which show what is possible.

use std::sync::Arc;

use super::bounds::Bounds;
use super::orbits::{Level, OrbitId, Orbits, most_on_diagonals};
use super::params;

/// The least value that counts as 1.
pub(super) const ONE: f64 = 1.0 - 1e-6;

/// Points of the orbit LP seen so far. No LP is solved for what they already show.
#[derive(Clone, Debug, Default)]
pub(super) struct LpWitnesses {
    witnesses: Vec<Witness>,
    /// The number of points seen, also of those that are no longer kept.
    seen: usize,
}

/// A point that was seen.
#[derive(Clone, Debug)]
struct Witness {
    point: Arc<Point>,
    /// Its number, from 0, among those seen.
    number: usize,
    /// The number of cliques, from the first one on, that it is known to satisfy.
    satisfied: usize,
}

/// A feasible point.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The number of queens on each orbit.
    values: Vec<f64>,
    /// The orbits with queens.
    support: Vec<OrbitId>,
    /// The orbits with at least one queen.
    occupied: Vec<OrbitId>,
    /// The number of queens on each level.
    counts: Vec<f64>,
    /// By distance from the main diagonals: true if there is at least one queen fewer than
    /// diagonals.
    slack: Vec<bool>,
}

impl Point {
    fn new(orbits: &Orbits, values: Vec<f64>) -> Self {
        let above =
            |least: f64| (0..values.len()).filter(|&orbit| values[orbit] >= least).collect();
        let support: Vec<OrbitId> = above(1e-7);
        let count = |level: &Level| level.orbits.iter().map(|&orbit| values[orbit]).sum::<f64>();
        let mut on_diagonals = vec![0.0; orbits.n];
        for &orbit in &support {
            orbits.diagonals_of(orbit).into_iter().for_each(|d| on_diagonals[d] += values[orbit]);
        }
        let has_slack =
            |(distance, &queens): (usize, &f64)| queens < most_on_diagonals(distance) as f64 - ONE;
        Self {
            occupied: above(ONE),
            support,
            counts: orbits.levels.iter().map(count).collect(),
            slack: on_diagonals.iter().enumerate().map(has_slack).collect(),
            values,
        }
    }

    /// Returns the orbits with at least one queen.
    pub(super) fn occupied(&self) -> &[OrbitId] {
        &self.occupied
    }

    /// Returns the number of queens on each level.
    pub(super) fn counts(&self) -> &[f64] {
        &self.counts
    }

    /// Returns, by distance from the main diagonals, whether there is at least one queen fewer than
    /// diagonals.
    pub(super) fn slack(&self) -> &[bool] {
        &self.slack
    }

    /// Returns whether there is at most one queen on a clique of squares.
    fn satisfies(&self, orbits: &Orbits, clique: &[usize]) -> bool {
        let on_images = |&square: &usize| {
            let orbit = orbits.orbit_of[square];
            self.values[orbit] * (8.0 / orbits.orbits[orbit].squares.len() as f64)
        };
        clique.iter().map(on_images).sum::<f64>() < 8.0 + 1e-6
    }

    /// Returns whether all its queens are on remaining orbits, and their number on each of these
    /// levels is between the least and the greatest number stated with it.
    fn is_within(&self, bounds: &Bounds, ranges: &[(usize, f64, f64)]) -> bool {
        self.support.iter().all(|&orbit| bounds.is_remaining(orbit))
            && ranges.iter().all(|&(level, least, most)| {
                self.counts[level] > least - 1e-6 && self.counts[level] < most + 1e-6
            })
    }
}

impl LpWitnesses {
    /// Adds a point, the number of queens on each orbit, and returns it.
    pub(super) fn add(&mut self, orbits: &Orbits, values: Vec<f64>) -> Arc<Point> {
        let point = Arc::new(Point::new(orbits, values));
        self.add_point(Arc::clone(&point));
        point
    }

    /// Adds a point. If too many are kept, the oldest one is dropped.
    pub(super) fn add_point(&mut self, point: Arc<Point>) {
        if self.witnesses.len() == params::MAX_LP_POINTS {
            self.witnesses.remove(0);
        }
        self.witnesses.push(Witness { point, number: self.seen, satisfied: 0 });
        self.seen += 1;
    }

    /// Returns the points that were added since this was `earlier` and are still kept.
    pub(super) fn since(self, earlier: &Self) -> Vec<Arc<Point>> {
        let new = self.witnesses.into_iter().filter(|witness| witness.number >= earlier.seen);
        new.map(|witness| witness.point).collect()
    }

    /// Drops the points that violate a clique. In all calls, the cliques must begin with those of
    /// the call before.
    pub(super) fn retain_under_cliques(&mut self, orbits: &Orbits, cliques: &[Vec<usize>]) {
        self.witnesses.retain_mut(|Witness { point, satisfied, .. }| {
            let new = &cliques[*satisfied..];
            *satisfied = cliques.len();
            new.iter().all(|clique| point.satisfies(orbits, clique))
        });
    }

    /// Returns the points that satisfy the bounds.
    pub(super) fn within(&self, orbits: &Orbits, bounds: &Bounds) -> Vec<&Arc<Point>> {
        // On a level without squares there are no queens.
        let range = |(number, level): (usize, &Level)| {
            let (least, most) = bounds.range(number)?;
            let is_open = least > 0 || bounds.remaining_on(level).next().is_some();
            is_open.then_some((number, f64::from(least), f64::from(most)))
        };
        let ranges: Vec<_> = orbits.levels.iter().enumerate().filter_map(range).collect();
        let points = self.witnesses.iter().map(|witness| &witness.point);
        points.filter(|point| point.is_within(bounds, &ranges)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::Norm;

    /// Returns the point with so many queens on these orbits.
    fn values(orbits: &Orbits, queens: &[(OrbitId, f64)]) -> Vec<f64> {
        let mut values = vec![0.0; orbits.orbits.len()];
        queens.iter().for_each(|&(orbit, queens)| values[orbit] = queens);
        values
    }

    fn numbers(points: &[Arc<Point>], all: &[Arc<Point>]) -> Vec<usize> {
        let number = |point| all.iter().position(|other| Arc::ptr_eq(point, other));
        points.iter().filter_map(number).collect()
    }

    #[test]
    fn a_point_shows_its_queens_levels_and_diagonals() {
        let orbits = Orbits::new(8, Norm::Euclidean);
        let point = LpWitnesses::default().add(&orbits, values(&orbits, &[(0, 1.0), (1, 0.5)]));
        assert_eq!(point.occupied(), [0]);
        let level = orbits.orbits[0].level;
        assert_eq!(point.counts()[level], 1.0);
        assert_eq!(point.counts().iter().sum::<f64>(), 1.5);
        // Square 0 is on a main diagonal, which two queens would fill.
        assert!(orbits.diagonals_of(0).contains(&0) && point.slack()[0]);
        let point = LpWitnesses::default().add(&orbits, values(&orbits, &[(0, 2.0)]));
        assert!(!point.slack()[0] && point.slack()[1]);
    }

    #[test]
    fn points_are_known_within_the_bounds_only() {
        let orbits = Orbits::new(8, Norm::Euclidean);
        let mut witnesses = LpWitnesses::default();
        let all: Vec<_> =
            (0..3).map(|orbit| witnesses.add(&orbits, values(&orbits, &[(orbit, 1.0)]))).collect();
        let known = |bounds: &Bounds| {
            let points: Vec<_> = witnesses.within(&orbits, bounds).into_iter().cloned().collect();
            numbers(&points, &all)
        };
        let mut bounds = Bounds::new(&orbits);
        assert_eq!(known(&bounds), [0, 1, 2]);
        bounds.eliminate(1);
        assert_eq!(known(&bounds), [0, 2]);
        bounds.set_range(orbits.orbits[0].level, Some((1, 2)));
        assert_eq!(known(&bounds), [0]);
        bounds.set_range(orbits.orbits[0].level, Some((0, 0)));
        assert_eq!(known(&bounds), [2]);
    }

    #[test]
    fn points_that_violate_a_clique_are_dropped_whenever_it_was_found() {
        let orbits = Orbits::new(8, Norm::Euclidean);
        let square = |orbit: OrbitId| orbits.orbits[orbit].squares[0];
        let (two, three) = (vec![square(0), square(1)], vec![square(1), square(2)]);
        let mut witnesses = LpWitnesses::default();
        let add = |witnesses: &mut LpWitnesses, orbit| {
            witnesses.add(&orbits, values(&orbits, &[(orbit, 9.0)]))
        };
        let mut all = vec![add(&mut witnesses, 0), add(&mut witnesses, 2)];
        let known = |witnesses: &LpWitnesses, all: &[Arc<Point>]| {
            let points: Vec<_> = witnesses.witnesses.iter().map(|w| Arc::clone(&w.point)).collect();
            numbers(&points, all)
        };
        witnesses.retain_under_cliques(&orbits, std::slice::from_ref(&two));
        assert_eq!(known(&witnesses, &all), [1]);
        let earlier = witnesses.clone();
        // One that violates the clique known before, and one that violates none.
        all.extend([add(&mut witnesses, 0), add(&mut witnesses, 4)]);
        witnesses.retain_under_cliques(&orbits, &[two, three]);
        assert_eq!(known(&witnesses, &all), [3]);
        assert_eq!(numbers(&witnesses.since(&earlier), &all), [3]);
    }

    #[test]
    fn the_oldest_points_are_dropped() {
        let orbits = Orbits::new(5, Norm::Euclidean);
        let mut witnesses = LpWitnesses::default();
        witnesses.add(&orbits, values(&orbits, &[(0, 1.0)]));
        let earlier = witnesses.clone();
        let all: Vec<_> = (0..params::MAX_LP_POINTS)
            .map(|_| witnesses.add(&orbits, values(&orbits, &[(1, 1.0)])))
            .collect();
        assert_eq!(witnesses.witnesses.len(), params::MAX_LP_POINTS);
        let new = witnesses.since(&earlier);
        assert!(numbers(&new, &all).into_iter().eq(0..all.len()));
    }
}
