//! Bounds on the number of queens on a level, by the orbit LP, with multipliers that prove them.

use std::sync::Arc;

use super::cliques;
use super::engine::Engine;
use super::lp_witnesses::Point;
use super::orbit_lp::{LpOutcome, Multipliers};
use super::params;
use crate::verdict::Unproven;

impl Engine<'_> {
    /// Returns the fewest queens on `level` that the orbit LP can prove, and multipliers that prove
    /// it if it is more than was known. Violated cliques are added until the bound reaches
    /// `enough`.
    pub(super) fn bound(
        &mut self,
        level: usize,
        enough: u32,
    ) -> Result<(u32, Multipliers), Unproven> {
        self.update_lp();
        let mut rounds = 0;
        loop {
            let floor = self.bounds.range(level).map_or(0, |range| range.0);
            let outcome = self.orbit_lp.fewest(level, floor, self.sink)?;
            let (objective, values, multipliers) = match outcome {
                LpOutcome::Infeasible(multipliers) => return Ok((0, multipliers)),
                LpOutcome::TargetReached(values) => {
                    (f64::from(floor), values, Multipliers::default())
                }
                LpOutcome::Optimal { objective, values, multipliers } => {
                    (objective, values, multipliers)
                }
            };
            let least = self.proven_least(level, objective, &multipliers);
            if least < enough && rounds < params::CLIQUE_ROUNDS {
                rounds += 1;
                let cuts = cliques::violated(
                    self.orbits,
                    &self.bounds,
                    &values,
                    params::CLIQUES_PER_ROUND,
                );
                if !cuts.is_empty() {
                    for clique in cuts {
                        self.orbit_lp.add_clique(self.cliques.len(), &clique);
                        self.cliques.push(clique);
                    }
                    continue;
                }
            }
            self.witnesses.add(self.orbits, values);
            return Ok((least.max(floor), multipliers));
        }
    }

    /// Returns the largest lower bound on the queens on `level` that `multipliers` prove in
    /// integers.
    fn proven_least(&mut self, level: usize, objective: f64, multipliers: &Multipliers) -> u32 {
        let step = self.step(level);
        let mut least = ((objective - 1e-6).ceil().max(0.0) as u32).next_multiple_of(step);
        let range = self.bounds.range(level);
        let floor = range.map_or(0, |range| range.0);
        while least > floor {
            self.bounds.set_range(level, Some((floor, least - step)));
            self.orbit_lp.set_bounds(&self.bounds);
            let refutes = self.orbit_lp.prove(multipliers).refutes();
            self.bounds.set_range(level, range);
            self.orbit_lp.set_bounds(&self.bounds);
            if refutes {
                return least;
            }
            least -= step;
        }
        least
    }

    /// Finds the fewest and the most queens on each level below `level`, in a trial there, with the
    /// orbit LP, whose bounds must be current. Returns the number of limits found, or `None` if
    /// there is no solution.
    pub(super) fn limit_levels(&mut self, level: usize) -> Result<Option<usize>, Unproven> {
        let mut points: Vec<Arc<Point>> = self.known_points().into_iter().cloned().collect();
        let mut limits = 0;
        for below in level + 1..self.orbits.levels.len() {
            if self.bounds.remaining_on(&self.orbits.levels[below]).next().is_none() {
                continue;
            }
            for at_least in [true, false] {
                let range = self.bounds.range(below).unwrap_or((0, self.query.n as u32));
                let limit = if at_least { range.0 } else { range.1 };
                let at_limit =
                    |point: &Arc<Point>| (point.counts()[below] - f64::from(limit)).abs() < 1e-6;
                if range.0 == range.1 || points.iter().any(at_limit) {
                    continue;
                }
                self.report()?;
                let cost = if at_least { 1 } else { -1 };
                let target = cost as f64 * f64::from(limit);
                let outcome = self.orbit_lp.cheapest(below, cost, target, self.sink)?;
                let (values, optimum) = match outcome {
                    LpOutcome::Optimal { objective, values, multipliers } => {
                        (values, Some((objective, multipliers)))
                    }
                    LpOutcome::TargetReached(values) => (values, None),
                    LpOutcome::Infeasible(multipliers) => {
                        if self.prove(&multipliers).is_none() {
                            return Ok(None);
                        }
                        continue;
                    }
                };
                points.push(self.witnesses.add(self.orbits, values));
                let Some((objective, multipliers)) = optimum else { continue };
                let found = if at_least {
                    (((objective - 1e-6).ceil().max(0.0) as u32).clamp(range.0, range.1), range.1)
                } else {
                    (range.0, ((-objective + 1e-6).floor().max(0.0) as u32).clamp(range.0, range.1))
                };
                if found != range && self.limit(below, found, at_least, multipliers) {
                    limits += 1;
                    points.retain(|point| {
                        let queens = point.counts()[below];
                        queens > f64::from(found.0) - 1e-6 && queens < f64::from(found.1) + 1e-6
                    });
                }
            }
        }
        Ok(Some(limits))
    }

    /// Limits the queens on a level to `found`, which is tighter than the known range on one side,
    /// if `multipliers` prove it. Returns whether they do.
    pub(super) fn limit(
        &mut self,
        level: usize,
        found: (u32, u32),
        at_least: bool,
        mut multipliers: Multipliers,
    ) -> bool {
        let known = self.bounds.range(level);
        let (least, most) = known.unwrap_or((0, self.query.n as u32));
        let (contrary, queens) = if at_least {
            ((least, found.0 - 1), found.0)
        } else {
            ((found.1 + 1, most), found.1 + 1)
        };
        self.bounds.set_range(level, Some(contrary));
        self.orbit_lp.set_bounds(&self.bounds);
        self.orbit_lp.charge(level, if at_least { 1 } else { -1 }, &mut multipliers);
        let proof = self.orbit_lp.prove(&multipliers);
        let proved = proof.refutes();
        if proved {
            self.log.assume(level, at_least, queens);
            self.log.refuted_by(&proof, self.orbits, &self.cliques);
        }
        self.bounds.set_range(level, if proved { Some(found) } else { known });
        self.orbit_lp.set_bounds(&self.bounds);
        proved
    }
}
