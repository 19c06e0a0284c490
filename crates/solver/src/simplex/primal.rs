//! The primal simplex: from a primal feasible basis to a dual feasible one.
//!
//! Devex pricing (Forrest and Goldfarb, 1992), Harris's two-pass ratio test, and perturbation of
//! bounds when it stalls.

use super::tableau::{Tableau, VariableStatus, ZERO};
use super::{Clock, Phase};

/// Number of steps without progress after which bounds are perturbed.
const STALL: u32 = 30;

/// Size of a perturbation of bounds.
const PERTURBATION: f64 = 1e-6;

/// Number of steps without progress after which the entering variable is chosen at random.
const RANDOMISE_AFTER: u32 = 500;

/// The reference weights of Devex.
#[derive(Clone, Debug, Default)]
pub(super) struct Primal {
    weights: Vec<f64>,
}

/// The result of the ratio test.
enum Block {
    /// The entering variable reaches its other bound.
    Itself(f64),
    /// The basic variable of this position reaches this bound.
    Basic(usize, VariableStatus),
    /// Nothing blocks the step.
    Nothing,
}

impl Primal {
    /// Runs until all reduced costs have the right signs, or until the objective attains the target
    /// of the clock or its inspection ends the solve.
    pub(super) fn run(
        &mut self,
        tableau: &mut Tableau,
        clock: &mut Clock<'_, '_>,
        tolerance: f64,
    ) -> Phase {
        self.weights.clear();
        self.weights.resize(tableau.statuses.len(), 1.0);
        tableau.inverse.invalidate_norms();
        let mut stalled = 0;
        let mut renewed = false;
        let mut objective = tableau.objective();
        loop {
            if clock.is_target(objective, 0.0) {
                return Phase::TargetReached;
            }
            let Some(entering) = self.entering(tableau, tolerance, stalled > RANDOMISE_AFTER)
            else {
                return Phase::Done;
            };
            if let Some(phase) = clock.tick(tableau) {
                return phase;
            }
            tableau.price_column(entering);
            let up = tableau.reduced[entering] < 0.0;
            let gain = tableau.reduced[entering].abs() * tableau.scale();
            let (position, place) = match block(tableau, entering, up, tolerance) {
                Block::Nothing => return Phase::Failed("unbounded"),
                Block::Itself(range) => {
                    tableau.shift(entering, if up { range } else { -range });
                    objective -= gain * range;
                    tableau.put(
                        entering,
                        if up { VariableStatus::Upper } else { VariableStatus::Lower },
                    );
                    stalled = 0;
                    continue;
                }
                Block::Basic(position, place) => (position, place),
            };
            tableau.inverse.row(position, &mut tableau.rho);
            tableau.price_row();
            if !tableau.is_pivot_stable(position, entering) {
                if renewed && tableau.inverse.exchanges() == 0 {
                    return Phase::Failed("a pivot is too small");
                }
                renewed = true;
                tableau.reinvert();
                objective = tableau.objective();
                if !tableau.is_primal_feasible(tolerance) {
                    return Phase::Done;
                }
                continue;
            }
            renewed = false;
            let length = step(tableau, position, entering, place, up);
            objective -= gain * length;
            self.reweigh(tableau, position, entering);
            tableau.exchange(position, entering, place);
            stalled = if length > tolerance { 0 } else { stalled + 1 };
            if stalled == STALL && !tableau.bounds_perturbed && clock.may_perturb {
                perturb(tableau);
            }
        }
    }

    /// Selects the variable whose reduced cost has the largest weighted violation.
    fn entering(&self, tableau: &mut Tableau, tolerance: f64, randomised: bool) -> Option<usize> {
        let mut best = None;
        let mut most = 0.0;
        for index in 0..tableau.movable.len() {
            let variable = tableau.movable[index];
            let wrong = tableau.dual_infeasibility(variable);
            if wrong > tolerance {
                let weight = if randomised {
                    1.0 / (tableau.random.f64() + 1e-9)
                } else {
                    self.weights[variable]
                };
                let score = wrong * wrong / weight;
                if score > most {
                    most = score;
                    best = Some(variable);
                }
            }
        }
        best
    }

    fn reweigh(&mut self, tableau: &Tableau, position: usize, entering: usize) {
        let pivot = tableau.alpha.values[position];
        let reference = self.weights[entering] / (pivot * pivot);
        for &variable in &tableau.movable {
            let (weight, a) = (&mut self.weights[variable], tableau.row[variable]);
            *weight = weight.max(a * a * reference);
        }
        self.weights[tableau.basis[position]] = reference.max(1.0);
    }
}

/// Relaxes the bounds of all basic variables by random amounts.
fn perturb(tableau: &mut Tableau) {
    for &basic in &tableau.basis {
        tableau.lower[basic] -= PERTURBATION * (1.0 + tableau.random.f64());
        tableau.upper[basic] += PERTURBATION * (1.0 + tableau.random.f64());
    }
    tableau.bounds_perturbed = true;
}

/// Returns the distance from a basic variable to the bound in its direction, and that bound.
fn room(tableau: &Tableau, basic: usize, falls: bool) -> (f64, VariableStatus) {
    if falls {
        (tableau.values[basic] - tableau.lower[basic], VariableStatus::Lower)
    } else {
        (tableau.upper[basic] - tableau.values[basic], VariableStatus::Upper)
    }
}

/// Performs the ratio test for `entering`, which rises or falls, and whose tableau column is in
/// `alpha`.
fn block(tableau: &Tableau, entering: usize, up: bool, tolerance: f64) -> Block {
    let falls = |a: f64| (a > 0.0) == up;
    let steps = || tableau.alpha.iter().filter(|&(_, a)| a.abs() > ZERO);
    let longest = steps()
        .map(|(p, a)| {
            ((room(tableau, tableau.basis[p], falls(a)).0 + tolerance).max(0.0)) / a.abs()
        })
        .fold(f64::INFINITY, f64::min);
    let range = tableau.upper[entering] - tableau.lower[entering];
    if range <= longest && range.is_finite() {
        return Block::Itself(range);
    }
    if longest.is_infinite() {
        return Block::Nothing;
    }
    let mut best = Block::Nothing;
    let mut most = 0.0;
    for (p, a) in steps() {
        let (room, place) = room(tableau, tableau.basis[p], falls(a));
        if a.abs() > most && room / a.abs() <= longest {
            most = a.abs();
            best = Block::Basic(p, place);
        }
    }
    best
}

/// Moves `entering` until the basic variable of `position` is at its bound. Returns the length of
/// the move.
fn step(
    tableau: &mut Tableau,
    position: usize,
    entering: usize,
    place: VariableStatus,
    up: bool,
) -> f64 {
    let pivot = tableau.alpha.values[position];
    let (room, _) = room(tableau, tableau.basis[position], place == VariableStatus::Lower);
    let length = (room / pivot.abs()).max(0.0);
    tableau.shift(entering, if up { length } else { -length });
    length
}
