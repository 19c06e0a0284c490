//! Feasible points of the orbit LP, which show what is possible.

use std::sync::Arc;

use super::bounds::Bounds;
use super::orbits::{Level, OrbitId, Orbits};
use super::params;

/// The least value that counts as 1.
pub(super) const ONE: f64 = 1.0 - 1e-6;

/// Points of the orbit LP seen so far. No LP is solved for what they already show.
#[derive(Clone, Debug, Default)]
pub(super) struct LpWitnesses {
    points: Vec<Arc<Point>>,
    /// The number of points seen, also of those that are no longer kept.
    seen: usize,
}

/// A feasible point.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The number of queens on each orbit.
    values: Vec<f64>,
    /// The orbits with queens.
    support: Vec<OrbitId>,
    /// The number of queens on each level.
    counts: Vec<f64>,
}

impl Point {
    fn new(orbits: &Orbits, values: Vec<f64>) -> Self {
        let count = |level: &Level| level.orbits.iter().map(|&orbit| values[orbit]).sum::<f64>();
        Self {
            support: (0..values.len()).filter(|&orbit| values[orbit] >= 1e-7).collect(),
            counts: orbits.levels.iter().map(count).collect(),
            values,
        }
    }

    fn satisfies(&self, bounds: &Bounds, cliques: &[Vec<(OrbitId, f64)>]) -> bool {
        let within = |(level, &count): (usize, &f64)| {
            bounds.range(level).is_none_or(|(least, most)| {
                count > f64::from(least) - 1e-6 && count < f64::from(most) + 1e-6
            })
        };
        let satisfies = |clique: &Vec<(OrbitId, f64)>| {
            clique.iter().map(|&(orbit, a)| a * self.values[orbit]).sum::<f64>() < 8.0 + 1e-6
        };
        self.support.iter().all(|&orbit| bounds.is_remaining(orbit))
            && self.counts.iter().enumerate().all(within)
            && cliques.iter().all(satisfies)
    }
}

impl LpWitnesses {
    pub(super) fn add(&mut self, orbits: &Orbits, values: Vec<f64>) {
        self.add_point(Arc::new(Point::new(orbits, values)));
    }

    pub(super) fn add_point(&mut self, point: Arc<Point>) {
        self.seen += 1;
        if self.points.len() == params::MAX_LP_POINTS {
            self.points.remove(0);
        }
        self.points.push(point);
    }

    /// Returns the points that were added since this was `earlier` and are still kept.
    pub(super) fn since(mut self, earlier: &Self) -> Vec<Arc<Point>> {
        let first = self.points.len().saturating_sub(self.seen - earlier.seen);
        self.points.split_off(first)
    }

    /// Returns the points that satisfy `bounds` and the cliques: the number of queens on each orbit.
    pub(super) fn under(
        &self,
        bounds: &Bounds,
        cliques: &[Vec<(OrbitId, f64)>],
    ) -> impl Iterator<Item = &Vec<f64>> {
        self.points
            .iter()
            .filter(move |point| point.satisfies(bounds, cliques))
            .map(|point| &point.values)
    }
}
