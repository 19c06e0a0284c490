//! A simplex of our own for the linear programmes of this room: some hundred rows, some thousand columns with few small
//! coefficients, solved again and again after small changes.
//!
//! After a change of bounds or a new row the dual simplex goes on from the last basis, after a change of costs or a new
//! column the primal one, after both the dual one with some costs shifted, then the primal one. The first solve starts
//! from the basis of the rows' own activities; variables with two finite bounds never stand in the dual simplex's way.
//!
//! Everything is floating point, so it only proposes. What is called optimal satisfies rows and bounds to 1e-7, reduced
//! costs have the right sign to 1e-7 of the largest cost; a ray proves by itself what it says, to rounding.

mod dual;
mod inverse;
mod matrix;
mod primal;
mod ray;
mod tableau;
mod wide;

use dual::Dual;
use primal::Primal;
use tableau::{Given, Tableau};

use crate::ilp::model::{Direction, Model, Relation, Row};
use crate::ilp::{Linear, LinearOutcome, Vertex};
use crate::progress::{Progress, ProgressSink};

/// Feasibility that is aimed at.
const STRICT: f64 = 1e-9;

/// Feasibility that is accepted where the strict one leads nowhere.
const LOOSE: f64 = 1e-7;

/// Alternations between the two methods: up to here they are strict and may perturb, ...
const STRICT_ROUNDS: usize = 6;

/// ... and here they give up.
const ROUNDS: usize = 20;

/// Rows that are violated by more make the inverse be computed anew.
const RESIDUAL: f64 = 1e-10;

/// The watch is asked when the steps have this many more.
const LOOK: u64 = 64;

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At an optimal vertex: see [`Simplex::values`], [`Simplex::duals`] and [`Simplex::objective`].
    Optimal,
    /// There is no point: see [`Simplex::ray`].
    Infeasible,
    /// The watch has stopped it.
    Stopped,
    /// It gave up.
    Failed(&'static str),
}

/// How one of the two methods ended.
enum Phase {
    Done,
    /// Whatever the others do, a basic variable is too large (positive) or too small (negative) by this.
    Infeasible(f64),
    Stopped,
    Failed(&'static str),
}

/// Counts steps, and asks the watch from time to time.
struct Clock<'a> {
    watch: &'a mut dyn ProgressSink,
    /// Of all solves.
    steps: &'a mut u64,
    last: u64,
    may_perturb: bool,
}

impl Clock<'_> {
    /// Counts a step; whether it must be the last.
    fn tick(&mut self) -> Option<Phase> {
        *self.steps += 1;
        if *self.steps >= self.last {
            return Some(Phase::Failed("too many steps"));
        }
        (self.steps.is_multiple_of(LOOK) && is_over(self.watch)).then_some(Phase::Stopped)
    }
}

fn is_over(watch: &mut dyn ProgressSink) -> bool {
    watch.look(&Progress::default()).is_break() || watch.time_left().is_some_and(|left| left.is_zero())
}

/// A linear programme with the basis where the last solve ended.
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
    /// No columns, no rows.
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

    /// The relaxation of `model`.
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

    /// Adds the row lower ≤ Σ coefficient × column ≤ upper; `terms` are (column, coefficient). Either bound may be
    /// infinite.
    ///
    /// # Panics
    /// If a column is not there, or a number is NaN.
    pub fn add_row_between(&mut self, lower: f64, upper: f64, terms: impl IntoIterator<Item = (usize, f64)>) {
        assert!(!lower.is_nan() && !upper.is_nan());
        self.tableau.add_row(lower, upper, terms.into_iter().inspect(|(_, a)| assert!(a.is_finite())));
    }

    /// Changes the bounds of a row; either may be infinite.
    ///
    /// # Panics
    /// If the row is not there, or a number is NaN.
    pub fn set_row_bounds(&mut self, row: usize, lower: f64, upper: f64) {
        assert!(row < self.rows() && !lower.is_nan() && !upper.is_nan());
        self.tableau.set_bounds(self.columns() + row, lower, upper);
    }

    /// The number of rows.
    pub const fn rows(&self) -> usize {
        self.tableau.rows()
    }

    /// The number of columns.
    pub const fn columns(&self) -> usize {
        self.tableau.columns()
    }

    /// The values of the columns after [`Ended::Optimal`].
    pub fn values(&self) -> &[f64] {
        &self.tableau.values[..self.columns()]
    }

    /// A multiplier a row after [`Ended::Optimal`]: by how much the objective changes for each unit that the row's bound
    /// is raised. If the objective is minimised, that of an `at most` row is ≤ 0, of an `at least` row ≥ 0; if it is
    /// maximised, the other way. With y and reduced costs `c − yA`, the objective is `yb` plus each reduced cost times
    /// the bound that its column is at.
    pub fn duals(&self) -> &[f64] {
        &self.duals
    }

    /// The objective at [`Self::values`].
    pub fn objective(&self) -> f64 {
        let costs = (0..self.columns()).map(|column| self.tableau.given(column).cost);
        self.sign() * costs.zip(self.values()).map(|(cost, value)| cost * value).sum::<f64>()
    }

    /// A multiplier a row after [`Ended::Infeasible`], ≤ 0 for `at most` rows and ≥ 0 for `at least` rows, whatever the
    /// direction: the greatest value that Σ y × (left side) has within the bounds of the columns is less than Σ y × bound.
    /// `None` if the lower bound of a row or a column is above its upper one.
    pub fn ray(&self) -> Option<&[f64]> {
        self.ray.as_deref()
    }

    /// Steps of the simplex in all solves so far.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    const fn sign(&self) -> f64 {
        match self.direction {
            Direction::Minimise => 1.0,
            Direction::Maximise => -1.0,
        }
    }

    /// Solves. The watch is asked every 64 steps, counted over all solves.
    pub fn run(&mut self, watch: &mut dyn ProgressSink) -> Ended {
        self.ray = None;
        let tableau = &mut self.tableau;
        tableau.restore_costs();
        tableau.restore_bounds();
        if tableau.has_crossed_bounds() {
            return Ended::Infeasible;
        }
        let last = self.steps + 2000 + 50 * (tableau.rows() + tableau.columns()) as u64;
        let mut clock = Clock { watch, steps: &mut self.steps, last, may_perturb: true };
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
                return Ended::Optimal;
            } else {
                if !verify(tableau) {
                    return Ended::Failed("the basis is not regular");
                }
                verified = true;
                continue;
            };
            verified = false;
            match phase {
                Phase::Done => {}
                Phase::Infeasible(excess) => {
                    self.ray = ray::proof(tableau, excess.signum(), tolerance);
                    if self.ray.is_some() {
                        return Ended::Infeasible;
                    }
                    loose |= tableau.inverse.exchanges() == 0;
                    tableau.reinvert();
                }
                Phase::Stopped => return Ended::Stopped,
                Phase::Failed(why) => return Ended::Failed(why),
            }
        }
        Ended::Failed("the two methods do not agree")
    }
}

/// Computes values and reduced costs anew, and the inverse too if it has become inexact. Whether that has helped.
fn verify(tableau: &mut Tableau) -> bool {
    tableau.compute_values();
    if tableau.rows_hold(RESIDUAL) {
        tableau.compute_reduced();
        return true;
    }
    tableau.reinvert();
    tableau.rows_hold(LOOSE)
}

/// The bounds of a row's left side.
fn bounds(row: &Row) -> (f64, f64) {
    let bound = row.bound as f64;
    match row.relation {
        Relation::AtMost => (f64::NEG_INFINITY, bound),
        Relation::Equal => (bound, bound),
        Relation::AtLeast => (bound, f64::INFINITY),
    }
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
        let (lower, upper) = bounds(row);
        self.add_row_between(lower, upper, row.terms.iter().map(|&(j, a)| (j, a as f64)));
    }

    fn add_column(&mut self, cost: f64, (lower, upper): (f64, f64), terms: &[(usize, f64)]) {
        assert!(cost.is_finite() && !lower.is_nan() && !upper.is_nan());
        assert!(terms.iter().all(|(_, a)| a.is_finite()));
        self.tableau.add_column(Given { lower, upper, cost: self.sign() * cost }, terms);
    }

    fn solve(&mut self, watch: &mut dyn ProgressSink) -> LinearOutcome {
        if is_over(watch) {
            return LinearOutcome::Stopped;
        }
        match self.run(watch) {
            Ended::Optimal => LinearOutcome::Optimal(Vertex {
                objective: self.objective(),
                values: self.values().to_vec(),
                duals: Some(self.duals.clone()),
            }),
            Ended::Infeasible => LinearOutcome::Infeasible { ray: self.ray.clone() },
            Ended::Stopped => LinearOutcome::Stopped,
            Ended::Failed(why) => LinearOutcome::Failed(why.to_owned()),
        }
    }
}
