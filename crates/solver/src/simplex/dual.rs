//! The dual simplex: from a dual feasible basis to a primal feasible one.
//!
//! Steepest edge, the long-step ratio test (a variable with two bounds can be passed by flipping it
//! to its other bound), Harris's tolerance, and perturbation of costs when it stalls.

use super::tableau::{Tableau, VariableStatus, ZERO};
use super::{Clock, Phase};

/// Number of steps without progress after which costs are perturbed.
const STALL: u32 = 20;

/// Size of a perturbation of costs, which are at most 16. Measured: 1e-6 takes a third more steps
/// on residual boards.
const PERTURBATION: f64 = 1e-2;

/// Number of steps without progress after which the leaving variable is chosen at random.
const RANDOMISE_AFTER: u32 = 500;

/// A candidate for entering the basis in the ratio test.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    variable: usize,
    /// Coefficient in the pivot row, positive.
    slope: f64,
    /// Reduced cost, positive where it has the right sign.
    distance: f64,
    /// Distance between the bounds.
    range: f64,
}

/// Buffers that are kept between steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Dual {
    candidates: Vec<Candidate>,
    /// Ends of the groups of candidates that are passed together.
    groups: Vec<usize>,
    /// Variables that flip to their other bound, with the distance.
    flips: Vec<(usize, f64)>,
    sums: Vec<(usize, f64)>,
}

/// Gives all reduced costs the right signs, by flipping the variable to its other bound or, if
/// there is none, by shifting its cost.
pub(super) fn prepare(tableau: &mut Tableau, tolerance: f64) {
    for variable in 0..tableau.statuses.len() {
        if tableau.dual_infeasibility(variable) <= tolerance {
            continue;
        }
        let place = match tableau.statuses[variable] {
            VariableStatus::Lower if tableau.upper[variable].is_finite() => VariableStatus::Upper,
            VariableStatus::Upper if tableau.lower[variable].is_finite() => VariableStatus::Lower,
            _ => {
                tableau.shift_cost(variable, 0.0);
                continue;
            }
        };
        tableau.put(variable, place);
        tableau.values_stale = true;
    }
    if tableau.values_stale {
        tableau.compute_values();
    }
}

/// Moves every reduced cost away from 0 by a random amount.
fn perturb(tableau: &mut Tableau) {
    for variable in 0..tableau.statuses.len() {
        let away = PERTURBATION * tableau.random.f64();
        match tableau.statuses[variable] {
            VariableStatus::Lower => tableau.shift_cost(variable, tableau.reduced[variable] + away),
            VariableStatus::Upper => tableau.shift_cost(variable, tableau.reduced[variable] - away),
            VariableStatus::Basic | VariableStatus::Fixed | VariableStatus::Free => {}
        }
    }
}

impl Dual {
    /// Runs until all values are within bounds ([`Phase::Done`]) or a row, left in `rho`, proves
    /// that this is impossible ([`Phase::Infeasible`]), or until the inspection ends the solve.
    pub(super) fn run(
        &mut self,
        tableau: &mut Tableau,
        clock: &mut Clock<'_, '_>,
        tolerance: f64,
    ) -> Phase {
        tableau.inverse.compute_norms();
        let mut stalled = 0;
        let mut renewed = false;
        let mut perturbed = !clock.may_perturb;
        loop {
            let Some((position, excess)) = leaving(tableau, tolerance, stalled > RANDOMISE_AFTER)
            else {
                return Phase::Done;
            };
            if let Some(phase) = clock.tick(tableau) {
                return phase;
            }
            tableau.inverse.row(position, &mut tableau.rho);
            tableau.price_row();
            let Some(entering) = self.entering(tableau, excess, tolerance) else {
                return Phase::Infeasible(excess);
            };
            tableau.price_column(entering);
            if !tableau.is_pivot_stable(position, entering) {
                if renewed && tableau.inverse.exchanges() == 0 {
                    return Phase::Failed("a pivot is too small");
                }
                renewed = true;
                tableau.reinvert();
                prepare(tableau, tolerance);
                continue;
            }
            renewed = false;
            let theta = tableau.reduced[entering] / tableau.alpha.values[position];
            if theta * excess < 0.0 {
                // Harris's tolerance has let it pass 0.
                tableau.shift_cost(entering, 0.0);
            }
            stalled = if theta.abs() > tolerance { 0 } else { stalled + 1 };
            self.flip(tableau);
            step(tableau, position, entering, excess);
            if stalled == STALL && !perturbed {
                perturb(tableau);
                perturbed = true;
            }
        }
    }

    /// Selects the entering variable by the long-step ratio test, for a basic variable that is too
    /// large by `excess`. The passed variables are left in `flips`.
    fn entering(&mut self, tableau: &Tableau, excess: f64, tolerance: f64) -> Option<usize> {
        self.gather(tableau, excess > 0.0);
        let mut slope = excess.abs();
        self.groups.clear();
        let mut passed = 0;
        while passed < self.candidates.len() && slope >= 0.0 {
            let rest = &mut self.candidates[passed..];
            let ratio = |c: &Candidate| (c.distance + tolerance).max(0.0) / c.slope;
            let limit = rest.iter().map(ratio).fold(f64::INFINITY, f64::min);
            let mut group = 0;
            for k in 0..rest.len() {
                if rest[k].distance / rest[k].slope <= limit {
                    slope -= rest[k].slope * rest[k].range;
                    rest.swap(group, k);
                    group += 1;
                }
            }
            if group == 0 {
                // Only NaNs are left.
                return None;
            }
            passed += group;
            self.groups.push(passed);
        }
        // All candidates can be passed, and the variable is still out of bounds.
        if slope > tolerance {
            return None;
        }
        self.choose()
    }

    /// Gathers the variables whose reduced costs the step moves towards 0.
    fn gather(&mut self, tableau: &Tableau, too_large: bool) {
        self.candidates.clear();
        let sign = if too_large { 1.0 } else { -1.0 };
        for &variable in &tableau.movable {
            let (a, place) = (tableau.row[variable], tableau.statuses[variable]);
            if a.abs() <= ZERO {
                continue;
            }
            let reduced = tableau.reduced[variable];
            let (slope, distance) = match place {
                VariableStatus::Basic | VariableStatus::Fixed => continue,
                VariableStatus::Lower => (sign * a, reduced),
                VariableStatus::Upper => (-sign * a, -reduced),
                VariableStatus::Free => (a.abs(), reduced.abs()),
            };
            if slope > 0.0 {
                let range = tableau.upper[variable] - tableau.lower[variable];
                self.candidates.push(Candidate { variable, slope, distance, range });
            }
        }
    }

    /// Selects the best pivot of the last group, or of an earlier one if that has no sufficiently
    /// large one.
    fn choose(&mut self) -> Option<usize> {
        let passed = *self.groups.last()?;
        let best =
            |group: &[Candidate]| group.iter().copied().max_by(|a, b| a.slope.total_cmp(&b.slope));
        let enough = best(&self.candidates[..passed])?.slope.min(1.0) * 0.1;
        let mut end = passed;
        let starts = self.groups.iter().rev().skip(1).copied().chain([0]);
        for start in starts {
            let chosen = best(&self.candidates[start..end])?;
            if chosen.slope >= enough {
                self.flips.clear();
                let passed = &self.candidates[..start];
                self.flips.extend(passed.iter().map(|c| (c.variable, c.range)));
                return Some(chosen.variable);
            }
            end = start;
        }
        None
    }

    /// Flips the passed variables to their other bounds.
    fn flip(&mut self, tableau: &mut Tableau) {
        if self.flips.is_empty() {
            return;
        }
        let columns = tableau.columns();
        self.sums.clear();
        for &(variable, _) in &self.flips {
            let (place, sign) = match tableau.statuses[variable] {
                VariableStatus::Lower => (VariableStatus::Upper, 1.0),
                _ => (VariableStatus::Lower, -1.0),
            };
            let step = sign * (tableau.upper[variable] - tableau.lower[variable]);
            tableau.put(variable, place);
            if variable < columns {
                let terms = tableau.matrix.column(variable).iter();
                self.sums.extend(terms.map(|&(i, a)| (i as usize, -a * step)));
            } else {
                self.sums.push((variable - columns, step));
            }
        }
        merge(&mut self.sums);
        tableau.move_basic(&self.sums);
    }
}

/// Adds up entries with the same row.
fn merge(sums: &mut Vec<(usize, f64)>) {
    sums.sort_unstable_by_key(|&(place, _)| place);
    sums.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    sums.retain(|&(_, value)| value != 0.0);
}

/// Selects the position whose value violates its bounds most, relative to the norm of its row.
fn leaving(tableau: &mut Tableau, tolerance: f64, randomised: bool) -> Option<(usize, f64)> {
    let mut best = None;
    let mut most = 0.0;
    for (position, &basic) in tableau.basis.iter().enumerate() {
        let excess = tableau.excess(basic);
        if excess.abs() > tolerance {
            let weight = if randomised {
                tableau.random.f64() + 1e-9
            } else {
                1.0 / tableau.inverse.norm(position)
            };
            let score = excess * excess * weight;
            if score > most {
                most = score;
                best = Some((position, excess));
            }
        }
    }
    best
}

/// Moves the basic variable of `position` to the bound that it violates, and `entering` into the
/// basis.
fn step(tableau: &mut Tableau, position: usize, entering: usize, excess: f64) {
    let leaving = tableau.basis[position];
    let (place, bound) = if excess > 0.0 {
        (VariableStatus::Upper, tableau.upper[leaving])
    } else {
        (VariableStatus::Lower, tableau.lower[leaving])
    };
    let length = (tableau.values[leaving] - bound) / tableau.alpha.values[position];
    tableau.shift(entering, length);
    tableau.exchange(position, entering, place);
}
