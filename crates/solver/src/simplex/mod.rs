//! Our own simplex for the linear programs of this crate: a few hundred rows and a few thousand
//! columns with few small coefficients, solved repeatedly after small changes.
//!
//! After a change of bounds or a new row the dual simplex continues from the last basis, after a
//! change of costs or a new column the primal one; after both, the dual one with some shifted
//! costs, followed by the primal one. The first solve starts from the basis of logical variables;
//! variables with two finite bounds never obstruct the dual simplex.
//!
//! All computations are in floating point, so results are only proposals. An optimal solution
//! satisfies rows and bounds to 1e-7, and its reduced costs have the right sign to 1e-7 of the
//! largest cost. A ray is a self-contained proof, up to rounding.

mod dual;
mod inverse;
mod matrix;
mod primal;
mod ray;
mod tableau;
mod wide;

use std::ops::ControlFlow;

use dual::Dual;
use primal::Primal;
use tableau::{Given, Tableau};

use crate::ilp::model::{Direction, Model, Row};
use crate::ilp::{Linear, LinearOutcome, Vertex};
use crate::progress::{Progress, ProgressSink, is_over};

/// Feasibility tolerance that is aimed at.
const STRICT: f64 = 1e-9;

/// Feasibility tolerance that is accepted where the strict one fails.
const LOOSE: f64 = 1e-7;

/// Number of alternations between the two methods with the strict tolerance and perturbation.
const STRICT_ROUNDS: usize = 6;

/// Number of alternations after which the solve fails.
const ROUNDS: usize = 20;

/// Row violation above which the inverse is computed from scratch.
const RESIDUAL: f64 = 1e-10;

/// Number of steps between two reports to the progress sink.
const REPORT_EVERY: u64 = 64;

/// The end of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// At an optimal vertex: see [`Simplex::values`], [`Simplex::duals`] and
    /// [`Simplex::objective`].
    Optimal,
    /// The program is infeasible: see [`Simplex::ray`].
    Infeasible,
    /// The progress sink stopped the solve.
    Stopped,
    /// The solve failed, for the given reason.
    Failed(&'static str),
}

/// The end of one of the two methods.
enum Phase {
    Done,
    /// The objective attains the target.
    TargetReached,
    /// The inspection ended the solve.
    InspectionEnded,
    /// A basic variable is too large (positive) or too small (negative) by this, and cannot be
    /// moved within its bounds.
    Infeasible(f64),
    Stopped,
    Failed(&'static str),
}

/// The inspection of the multipliers of a basis; it can end the solve.
type Inspection<'a> = dyn FnMut(&[f64]) -> ControlFlow<()> + 'a;

/// A condition, besides optimality and infeasibility, that ends a solve.
enum End<'a> {
    None,
    /// The objective of the tableau is at most this.
    Target(f64),
    /// The inspection, which takes place every so many steps.
    Inspection(u64, &'a mut Inspection<'a>),
}

/// The limits of a solve. Counts steps, and reports to the progress sink from time to time.
struct Clock<'a, 'e> {
    sink: &'a mut dyn ProgressSink,
    /// Number of steps of all solves.
    steps: &'a mut u64,
    last: u64,
    may_perturb: bool,
    end: End<'e>,
    /// 1 to minimise, -1 to maximise.
    sign: f64,
}

impl Clock<'_, '_> {
    /// Counts a step, and inspects the basis if it is time. Returns the end of the phase if it must
    /// stop.
    fn tick(&mut self, tableau: &mut Tableau) -> Option<Phase> {
        *self.steps += 1;
        if *self.steps >= self.last {
            return Some(Phase::Failed("too many steps"));
        }
        if self.steps.is_multiple_of(REPORT_EVERY) && is_over(self.sink, &Progress::default()) {
            return Some(Phase::Stopped);
        }
        match &mut self.end {
            End::Inspection(every, inspect) if self.steps.is_multiple_of(*every) => {
                inspect(tableau.multipliers(self.sign)).is_break().then_some(Phase::InspectionEnded)
            }
            _ => None,
        }
    }

    /// Returns whether the objective of the tableau attains the target, to this tolerance.
    fn is_target(&self, objective: f64, tolerance: f64) -> bool {
        matches!(self.end, End::Target(target) if objective <= target + tolerance)
    }
}

/// A linear program with the basis of the last solve.
#[derive(Clone, Debug)]
pub struct Simplex {
    direction: Direction,
    tableau: Tableau,
    dual: Dual,
    primal: Primal,
    duals: Vec<f64>,
    ray: Option<Vec<f64>>,
    steps: u64,
}

impl Simplex {
    /// Creates a program without columns and rows.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            tableau: Tableau::new(),
            dual: Dual::default(),
            primal: Primal::default(),
            duals: Vec::new(),
            ray: None,
            steps: 0,
        }
    }

    /// Creates the relaxation of `model`.
    pub fn of(model: &Model) -> Self {
        let mut simplex = Self::new(model.direction);
        for column in &model.columns {
            let (lower, upper) = column.domain.bounds();
            simplex.add_column(column.cost as f64, (lower as f64, upper as f64), &[]);
        }
        for row in &model.rows {
            simplex.add_row(row);
        }
        simplex
    }

    /// Adds the row lower ≤ Σ coefficient × column ≤ upper; `terms` are (column, coefficient).
    /// Either bound may be infinite.
    ///
    /// # Panics
    /// If a column does not exist, a bound is NaN, or a coefficient is not finite.
    pub fn add_row_between(
        &mut self,
        lower: f64,
        upper: f64,
        terms: impl IntoIterator<Item = (usize, f64)>,
    ) {
        assert!(!lower.is_nan() && !upper.is_nan());
        self.tableau.add_row(
            lower,
            upper,
            terms.into_iter().inspect(|(_, a)| assert!(a.is_finite())),
        );
    }

    /// Changes the bounds of a row; either may be infinite.
    ///
    /// # Panics
    /// If the row does not exist, or a bound is NaN.
    pub fn set_row_bounds(&mut self, row: usize, lower: f64, upper: f64) {
        assert!(row < self.rows() && !lower.is_nan() && !upper.is_nan());
        self.tableau.set_bounds(self.columns() + row, lower, upper);
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.tableau.rows()
    }

    /// Returns the number of columns.
    pub const fn columns(&self) -> usize {
        self.tableau.columns()
    }

    /// Returns the values of the columns after [`Termination::Optimal`] or at the target.
    pub fn values(&self) -> &[f64] {
        &self.tableau.values[..self.columns()]
    }

    /// Returns one multiplier per row after [`Termination::Optimal`]: the change of the objective
    /// per unit by which the row's bound is raised. If the objective is minimised, that of an `at
    /// most` row is ≤ 0 and that of an `at least` row ≥ 0; if it is maximised, vice versa. With y
    /// and reduced costs `c − yA`, the objective is `yb` plus each reduced cost times the bound
    /// that its column is at.
    pub fn duals(&self) -> &[f64] {
        &self.duals
    }

    /// Returns the objective at [`Self::values`].
    pub fn objective(&self) -> f64 {
        self.sign() * self.tableau.objective()
    }

    /// Returns one multiplier per row after [`Termination::Infeasible`], ≤ 0 for `at most` rows and
    /// ≥ 0 for `at least` rows, whatever the direction: the maximum of Σ y × (left side) within the
    /// bounds of the columns is less than Σ y × bound. Returns `None` if the lower bound of a row
    /// or a column is above its upper one.
    pub fn ray(&self) -> Option<&[f64]> {
        self.ray.as_deref()
    }

    /// Returns the number of simplex steps in all solves so far.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    const fn sign(&self) -> f64 {
        match self.direction {
            Direction::Minimise => 1.0,
            Direction::Maximise => -1.0,
        }
    }

    /// Solves the program. Reports to the progress sink every 64 steps, counted over all solves.
    pub fn run(&mut self, sink: &mut dyn ProgressSink) -> Termination {
        self.run_to(End::None, sink).expect("there is no other end")
    }

    /// Solves the program like [`run`](Self::run), but may also end at a feasible vertex whose
    /// objective is at least as good as `target`, to 1e-7. Then it returns `None`: see
    /// [`Self::values`] and [`Self::objective`].
    pub fn run_until(
        &mut self,
        target: Option<f64>,
        sink: &mut dyn ProgressSink,
    ) -> Option<Termination> {
        let end = target.map_or(End::None, |target| End::Target(self.sign() * target));
        self.run_to(end, sink)
    }

    /// Solves the program like [`run`](Self::run), but calls `inspect` every `every` steps, counted
    /// over all solves, with the multipliers of the current basis. They are like those of
    /// [`Self::duals`], but some may have the wrong sign. Returns `None` if `inspect` ends the
    /// solve; the values and the duals are then of no use.
    pub fn run_inspected(
        &mut self,
        every: u64,
        inspect: &mut Inspection<'_>,
        sink: &mut dyn ProgressSink,
    ) -> Option<Termination> {
        self.run_to(End::Inspection(every, inspect), sink)
    }

    /// Solves the program. Returns `None` at the given end.
    fn run_to(&mut self, end: End<'_>, sink: &mut dyn ProgressSink) -> Option<Termination> {
        self.ray = None;
        let sign = self.sign();
        let tableau = &mut self.tableau;
        tableau.restore_costs();
        tableau.restore_bounds();
        if tableau.has_crossed_bounds() {
            return Some(Termination::Infeasible);
        }
        let last = self.steps + 2000 + 50 * (tableau.rows() + tableau.columns()) as u64;
        let steps = &mut self.steps;
        let mut clock = Clock { sink, steps, last, may_perturb: true, end, sign };
        let mut verified = false;
        let mut loose = false;
        for round in 0..ROUNDS {
            loose |= round >= STRICT_ROUNDS;
            clock.may_perturb = !loose;
            let tolerance = if loose { LOOSE } else { STRICT };
            tableau.refresh();
            let phase = if !tableau.is_primal_feasible(tolerance) {
                dual::prepare(tableau, tolerance);
                let phase = self.dual.run(tableau, &mut clock, tolerance);
                tableau.restore_costs();
                phase
            } else if !tableau.is_dual_feasible(tolerance) {
                let phase = self.primal.run(tableau, &mut clock, tolerance);
                tableau.restore_bounds();
                phase
            } else if verified {
                self.duals.clear();
                let factor = self.sign() * self.tableau.scale();
                let columns = self.columns();
                self.duals.extend(self.tableau.reduced[columns..].iter().map(|y| factor * y));
                return Some(Termination::Optimal);
            } else {
                if !verify(tableau) {
                    return Some(Termination::Failed("the basis is not regular"));
                }
                verified = true;
                continue;
            };
            verified = false;
            match phase {
                Phase::Done => {}
                Phase::TargetReached => {
                    tableau.refresh();
                    if !verify(tableau) {
                        return Some(Termination::Failed("the basis is not regular"));
                    }
                    let is_target = clock.is_target(tableau.objective(), LOOSE);
                    if is_target && tableau.is_primal_feasible(LOOSE) {
                        return None;
                    }
                    // Perturbed bounds or rounding had let it seem to be reached.
                    clock.end = End::None;
                }
                Phase::InspectionEnded => return None,
                Phase::Infeasible(excess) => {
                    self.ray = ray::proof(tableau, excess.signum(), tolerance);
                    if self.ray.is_some() {
                        return Some(Termination::Infeasible);
                    }
                    loose |= tableau.inverse.exchanges() == 0;
                    tableau.reinvert();
                }
                Phase::Stopped => return Some(Termination::Stopped),
                Phase::Failed(why) => return Some(Termination::Failed(why)),
            }
        }
        Some(Termination::Failed("the two methods do not agree"))
    }
}

/// Recomputes values and reduced costs, and the inverse if it has become inexact. Returns whether
/// the rows hold.
fn verify(tableau: &mut Tableau) -> bool {
    tableau.compute_values();
    if tableau.rows_hold(RESIDUAL) {
        tableau.compute_reduced();
        return true;
    }
    tableau.reinvert();
    tableau.rows_hold(LOOSE)
}

impl Linear for Simplex {
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64) {
        assert!(column < self.columns() && !lower.is_nan() && !upper.is_nan());
        self.tableau.set_bounds(column, lower, upper);
    }

    fn set_cost(&mut self, column: usize, cost: f64) {
        assert!(column < self.columns() && cost.is_finite());
        self.tableau.set_cost(column, self.sign() * cost);
    }

    fn add_row(&mut self, row: &Row) {
        let (lower, upper) = row.bounds();
        self.add_row_between(lower, upper, row.terms.iter().map(|&(j, a)| (j, a as f64)));
    }

    fn add_column(&mut self, cost: f64, (lower, upper): (f64, f64), terms: &[(usize, f64)]) {
        assert!(cost.is_finite() && !lower.is_nan() && !upper.is_nan());
        assert!(terms.iter().all(|(_, a)| a.is_finite()));
        self.tableau.add_column(Given { lower, upper, cost: self.sign() * cost }, terms);
    }

    fn solve(&mut self, sink: &mut dyn ProgressSink) -> LinearOutcome {
        if is_over(sink, &Progress::default()) {
            return LinearOutcome::Stopped;
        }
        match self.run(sink) {
            Termination::Optimal => LinearOutcome::Optimal(Vertex {
                objective: self.objective(),
                values: self.values().to_vec(),
                duals: Some(self.duals.clone()),
            }),
            Termination::Infeasible => LinearOutcome::Infeasible { ray: self.ray.clone() },
            Termination::Stopped => LinearOutcome::Stopped,
            Termination::Failed(why) => LinearOutcome::Failed(why.to_owned()),
        }
    }
}
