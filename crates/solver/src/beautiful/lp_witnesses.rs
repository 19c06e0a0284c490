//! Feasible points of the orbit LP, which show what is possible.

use super::bounds::Bounds;
use super::orbits::{OrbitId, Orbits};
use super::params;

/// The least value that counts as 1.
pub(super) const ONE: f64 = 1.0 - 1e-6;

/// Points of the orbit LP seen so far. No LP is solved for what they already show.
#[derive(Clone, Debug, Default)]
pub(super) struct LpWitnesses {
    points: Vec<Vec<f64>>,
}

impl LpWitnesses {
    pub(super) fn add(&mut self, values: Vec<f64>) {
        if self.points.len() == params::MAX_LP_POINTS {
            self.points.remove(0);
        }
        self.points.push(values);
    }

    /// Returns the points that satisfy `bounds` and the cliques.
    pub(super) fn under(
        &self,
        orbits: &Orbits,
        bounds: &Bounds,
        cliques: &[Vec<(OrbitId, f64)>],
    ) -> impl Iterator<Item = &Vec<f64>> {
        self.points
            .iter()
            .filter(move |point| Self::satisfies_bounds(point, orbits, bounds, cliques))
    }

    fn satisfies_bounds(
        point: &[f64],
        orbits: &Orbits,
        bounds: &Bounds,
        cliques: &[Vec<(OrbitId, f64)>],
    ) -> bool {
        let remaining = |(orbit, &value): (usize, &f64)| value < 1e-7 || bounds.is_remaining(orbit);
        let within = |level: usize| {
            bounds.range(level).is_none_or(|(least, most)| {
                let sum: f64 = orbits.levels[level].orbits.iter().map(|&orbit| point[orbit]).sum();
                sum > f64::from(least) - 1e-6 && sum < f64::from(most) + 1e-6
            })
        };
        let satisfies = |clique: &Vec<(OrbitId, f64)>| {
            clique.iter().map(|&(orbit, a)| a * point[orbit]).sum::<f64>() < 8.0 + 1e-6
        };
        point.iter().enumerate().all(remaining)
            && (0..orbits.levels.len()).all(within)
            && cliques.iter().all(satisfies)
    }
}
