//! The one narrow door to solvers of linear and 0-1 programmes.
//!
//! Solvers compute in floating point and are never trusted: what comes through here are proposals. Solutions
//! are rounded and judged by [`nqueens_proof::board`]'s checker, claims of optimality by [`crate::ilp::counterexample`].

use super::model::{Model, Row};
use crate::progress::ProgressSink;

/// A solver of 0-1 programmes and of their relaxations.
pub trait Solver: Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// The linear relaxation of `model`, to be solved again and again with small changes.
    fn relaxation(&self, model: &Model) -> Box<dyn Linear>;

    /// Solves `model`; `start` is a feasible point to begin with.
    fn optimise(&self, model: &Model, start: Option<&[bool]>, watch: &mut dyn ProgressSink)
    -> IntegerOutcome;
}

/// What a solver says about a 0-1 programme.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerOutcome {
    /// How it ended.
    pub status: Status,
    /// The best point, a value a variable, near 0 or near 1.
    pub values: Option<Vec<f64>>,
    /// The bound on the objective.
    pub bound: Option<f64>,
    /// Nodes of branch and bound.
    pub nodes: u64,
}

/// How a solver ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It says that the point is optimal.
    Optimal,
    /// It says that there is no point.
    Infeasible,
    /// It was stopped by its watch or by the time limit.
    Stopped,
    /// It gave up, for a reason of its own.
    Failed(String),
}

/// A linear programme that remembers where it was: after a change it is solved again from there, if the solver
/// can do that. Columns and rows are numbered in the order in which they came, those of the model first.
pub trait Linear {
    /// Changes what a variable may be. Both bounds are finite.
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64);

    /// Changes a coefficient of the objective.
    fn set_cost(&mut self, column: usize, cost: f64);

    /// Adds a row.
    fn add_row(&mut self, row: &Row);

    /// Adds a variable with its cost, bounds, and coefficients in rows that are there.
    fn add_column(&mut self, cost: f64, bounds: (f64, f64), terms: &[(usize, f64)]);

    /// Solves.
    fn solve(&mut self, watch: &mut dyn ProgressSink) -> LinearOutcome;
}

/// What a solver says about a linear programme.
#[derive(Clone, Debug, PartialEq)]
pub enum LinearOutcome {
    /// An optimal vertex.
    Optimal(Vertex),
    /// No point.
    Infeasible {
        /// A Farkas ray, a multiplier a row, if the solver has one.
        ray: Option<Vec<f64>>,
    },
    /// It was stopped by its watch or by the time limit.
    Stopped,
    /// It gave up, for a reason of its own.
    Failed(String),
}

/// An optimal vertex of a linear programme.
#[derive(Clone, Debug, PartialEq)]
pub struct Vertex {
    /// The objective there.
    pub objective: f64,
    /// A value a variable.
    pub values: Vec<f64>,
    /// A multiplier a row, if the solver has them.
    pub duals: Option<Vec<f64>>,
}

/// Values this near to an integer are taken for it. Solvers work to about 1e-7.
pub const TOLERANCE: f64 = 1e-5;
