//! The relaxation of the n-queens program with some variables fixed, and the propagation of a queen
//! to its cliques.

use std::ops::ControlFlow;

use super::Run;
use crate::ilp::formulation::{Formulation, Lines};
use crate::ilp::model::{Direction, Relation, Row};
use crate::ilp::solver::{Linear, Vertex};
use crate::progress::{Progress, ProgressSink, Step};
use crate::verdict::Unproven;
use nqueens_proof::board::{Piece, Square};

/// A board whose variables are free, 0 or 1, with the remaining linear program.
pub(super) struct LinearBoard {
    n: usize,
    linear: Box<dyn Linear>,
    values: Vec<Option<bool>>,
    /// The fixed variables, in the order of fixing.
    trail: Vec<usize>,
    /// The variables with a non-zero cost.
    priced: Vec<usize>,
}

/// A position in the trail of fixed variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

impl LinearBoard {
    /// Creates a board with no variable fixed and a zero objective.
    pub(super) fn new(run: &Run<'_>, direction: Direction) -> Self {
        let n = run.problem.n();
        let mut model = Formulation::Diagonals.model(run.problem, Lines::Full);
        model.set_objective(direction, |_| 0);
        Self {
            n,
            linear: run.solver.relaxation(&model),
            values: vec![None; n * n],
            trail: Vec::new(),
            priced: Vec::new(),
        }
    }

    /// Returns whether the variable is free.
    pub(super) fn is_free(&self, variable: usize) -> bool {
        self.values[variable].is_none()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.trail.len())
    }

    /// Frees the variables fixed since `mark`.
    pub(super) fn undo(&mut self, mark: Mark) {
        for variable in self.trail.drain(mark.0..) {
            self.values[variable] = None;
            self.linear.set_bounds(variable, 0.0, 1.0);
        }
    }

    fn fix(&mut self, variable: usize, on: bool) {
        let value = f64::from(u8::from(on));
        self.values[variable] = Some(on);
        self.trail.push(variable);
        self.linear.set_bounds(variable, value, value);
    }

    /// Fixes a free variable at 0.
    pub(super) fn forbid(&mut self, variable: usize) {
        self.fix(variable, false);
    }

    /// Fixes a free variable at 1, and all free variables that share a clique with it (a row, a
    /// column, a diagonal) at 0. Returns whether every row and column still has a square that is
    /// not 0.
    pub(super) fn place(&mut self, variable: usize) -> bool {
        self.fix(variable, true);
        let queen = Square::new(variable / self.n, variable % self.n);
        for other in 0..self.n * self.n {
            let square = Square::new(other / self.n, other % self.n);
            if self.is_free(other) && Piece::Queen.attacks(self.n, queen, square) {
                self.fix(other, false);
            }
        }
        let open = |variable: usize| self.values[variable] != Some(false);
        let lines = 0..self.n;
        lines.clone().all(|row| (0..self.n).any(|col| open(row * self.n + col)))
            && lines.into_iter().all(|col| (0..self.n).any(|row| open(row * self.n + col)))
    }

    /// Sets the costs of the variables in `costs`, and those of all others to 0.
    pub(super) fn set_costs(&mut self, costs: impl IntoIterator<Item = (usize, f64)>) {
        for variable in self.priced.drain(..) {
            self.linear.set_cost(variable, 0.0);
        }
        for (variable, cost) in costs {
            self.linear.set_cost(variable, cost);
            self.priced.push(variable);
        }
    }

    /// Adds a row that holds for every solution.
    pub(super) fn add_row(&mut self, row: &Row) {
        self.linear.add_row(row);
    }

    /// Adds the no-good: not all of `ones` and `last` are 1.
    pub(super) fn add_no_good(&mut self, ones: &[usize], last: usize) {
        let variables = ones.iter().copied().chain([last]);
        self.linear.add_row(&Row::sum("no_good", variables, Relation::AtMost, ones.len() as i64));
    }

    /// Returns an optimal vertex of the remaining program, or `None` if the solver finds it
    /// infeasible.
    pub(super) fn solve(
        &mut self,
        run: &mut Run<'_>,
        level: usize,
    ) -> Result<Option<Vertex>, Unproven> {
        let mut sink = Step { sink: &mut *run.sink, level, nodes: run.nodes };
        if sink.report(&Progress::default()) == ControlFlow::Break(()) {
            return Err(Unproven::Stopped);
        }
        let outcome = self.linear.solve(&mut sink);
        run.vertex(outcome)
    }
}
