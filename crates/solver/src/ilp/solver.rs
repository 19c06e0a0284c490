//! The interface to solvers of linear and 0-1 programs.
//!
//! Solvers compute in floating point and are never trusted: their results are proposals. Solutions
//! are rounded and validated by the checker of [`nqueens_proof::board`], claims of optimality by
//! [`crate::ilp::counterexample`].

use super::model::{Model, Row};
use crate::progress::ProgressSink;
use crate::verdict::Unproven;

/// A solver of 0-1 programs and of their relaxations.
pub trait Solver: Sync {
    /// Returns the human-readable name.
    fn name(&self) -> &'static str;

    /// Creates the linear relaxation of `model`, which is solved repeatedly with small changes.
    fn relaxation(&self, model: &Model) -> Box<dyn Linear>;

    /// Solves `model`, starting from the feasible point `start` if it is given.
    fn optimise(
        &self,
        model: &Model,
        start: Option<&[bool]>,
        sink: &mut dyn ProgressSink,
    ) -> IntegerOutcome;
}

impl dyn Solver + '_ {
    /// Creates the reason for an answer that is not proved because this solver failed.
    pub(super) fn failed(&self, why: &str) -> Unproven {
        Unproven::SolverFailed(format!("{}: {why}", self.name()))
    }
}

/// A solver's result for a 0-1 program.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerOutcome {
    /// The status of the solve.
    pub status: Status,
    /// The best point: one value per variable, near 0 or near 1.
    pub values: Option<Vec<f64>>,
    /// The bound on the objective.
    pub bound: Option<f64>,
    /// Nodes of branch and bound.
    pub nodes: u64,
}

/// The status of a solve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The solver claims that the point is optimal.
    Optimal,
    /// The solver claims that the program is infeasible.
    Infeasible,
    /// The solve was stopped by its progress sink or by the time limit.
    Stopped,
    /// The solver gave up, for the given reason.
    Failed(String),
}

/// A claim of a solver about a 0-1 program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SolverClaim {
    /// The point is optimal.
    Optimal,
    /// No point is feasible.
    Infeasible,
}

impl Status {
    /// Returns the claim of `solver`, which has this status.
    ///
    /// # Errors
    /// The solver was stopped or gave up.
    pub(super) fn claim(self, solver: &dyn Solver) -> Result<SolverClaim, Unproven> {
        match self {
            Self::Optimal => Ok(SolverClaim::Optimal),
            Self::Infeasible => Ok(SolverClaim::Infeasible),
            Self::Stopped => Err(Unproven::Stopped),
            Self::Failed(why) => Err(solver.failed(&why)),
        }
    }
}

/// A linear program that is warm-started: after a change it is solved again from the last basis, if
/// the solver supports that. Columns and rows are numbered in the order of their addition, those of
/// the model first.
pub trait Linear {
    /// Changes the bounds of a variable. Both bounds are finite.
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64);

    /// Changes a coefficient of the objective.
    fn set_cost(&mut self, column: usize, cost: f64);

    /// Adds a row.
    fn add_row(&mut self, row: &Row);

    /// Adds a variable with its cost, bounds, and coefficients in existing rows.
    fn add_column(&mut self, cost: f64, bounds: (f64, f64), terms: &[(usize, f64)]);

    /// Solves the program.
    fn solve(&mut self, sink: &mut dyn ProgressSink) -> LinearOutcome;
}

/// A solver's result for a linear program.
#[derive(Clone, Debug, PartialEq)]
pub enum LinearOutcome {
    /// An optimal vertex.
    Optimal(Vertex),
    /// The program is infeasible.
    Infeasible {
        /// A Farkas ray, one multiplier per row, if the solver provides it.
        ray: Option<Vec<f64>>,
    },
    /// The solve was stopped by its progress sink or by the time limit.
    Stopped,
    /// The solver gave up, for the given reason.
    Failed(String),
}

/// An optimal vertex of a linear program.
#[derive(Clone, Debug, PartialEq)]
pub struct Vertex {
    /// The objective value.
    pub objective: f64,
    /// One value per variable.
    pub values: Vec<f64>,
    /// One multiplier per row, if the solver provides them.
    pub duals: Option<Vec<f64>>,
}

/// Values this close to an integer are rounded to it. Solvers work to about 1e-7.
pub const TOLERANCE: f64 = 1e-5;
