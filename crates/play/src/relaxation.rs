//! The linear relaxation of a board: queens may be divided into fractions, and the fractions in a
//! row, in a column and on a diagonal sum to at most 1. The maximum total is at most n; if it is
//! less, there is no completion.

use nqueens_proof::board::{Problem, Square};
use nqueens_solver::Unobserved;
use nqueens_solver::ilp::Linear as _;
use nqueens_solver::ilp::model::Direction;
use nqueens_solver::simplex::{Simplex, Termination};
use serde_json::{Value, json};

use crate::{RequestError, check_size};

/// The largest board whose relaxation is solved: about a second in a browser.
const LARGEST: usize = 20;

/// Values this close to an integer count as the integer.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// The relaxation of a board, which is solved again after squares are decided.
#[derive(Debug)]
pub(crate) struct Relaxation {
    n: usize,
    simplex: Simplex,
}

/// An optimum: the maximum total and the fraction on each square, row by row.
#[derive(Debug)]
pub(crate) struct Optimum {
    pub(crate) total: f64,
    pub(crate) values: Vec<f64>,
}

impl Relaxation {
    /// Creates the relaxation of `problem`.
    pub(crate) fn new(problem: &Problem) -> Self {
        let n = problem.n();
        let mut simplex = Simplex::new(Direction::Maximise);
        // Rows, columns, diagonals, antidiagonals.
        for _ in 0..2 * n + 2 * (2 * n - 1) {
            simplex.add_row_between(f64::NEG_INFINITY, 1.0, []);
        }
        for row in 0..n {
            for col in 0..n {
                let lines = [row, n + col, 2 * n + col + n - 1 - row, 4 * n - 1 + row + col];
                simplex.add_column(1.0, (0.0, 1.0), &lines.map(|line| (line, 1.0)));
            }
        }
        let mut relaxation = Self { n, simplex };
        for &square in problem.placed() {
            relaxation.set(square, Some(true));
        }
        for &square in problem.blocked() {
            relaxation.set(square, Some(false));
        }
        relaxation
    }

    /// Decides that a square has a queen or has none, or leaves that open.
    pub(crate) fn set(&mut self, square: Square, has_queen: Option<bool>) {
        let (lower, upper) = match has_queen {
            None => (0.0, 1.0),
            Some(true) => (1.0, 1.0),
            Some(false) => (0.0, 0.0),
        };
        self.simplex.set_bounds(square.row * self.n + square.col, lower, upper);
    }

    /// Returns an optimum, or `None` if the placed queens attack each other.
    pub(crate) fn solve(&mut self) -> Result<Option<Optimum>, RequestError> {
        match self.simplex.run(&mut Unobserved) {
            Termination::Optimal => Ok(Some(Optimum {
                total: self.simplex.objective(),
                values: self.simplex.values().iter().map(|value| value.clamp(0.0, 1.0)).collect(),
            })),
            Termination::Infeasible => Ok(None),
            Termination::Stopped => Err(RequestError::Linear("it was stopped".to_owned())),
            Termination::Failed(why) => Err(RequestError::Linear(why.to_owned())),
        }
    }
}

/// Returns values with four decimals, so that answers are short.
pub(crate) fn rounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| (value * 1e4).round() / 1e4).collect()
}

/// Returns the answer to `relaxation`: `total` and `values`, both null if there is no optimum.
pub(crate) fn answer(problem: &Problem) -> Result<Value, RequestError> {
    check_size("the linear relaxation", problem.n(), LARGEST)?;
    let optimum = Relaxation::new(problem).solve()?;
    Ok(json!({
        "total": optimum.as_ref().map(|optimum| rounded(&[optimum.total])[0]),
        "values": optimum.as_ref().map(|optimum| rounded(&optimum.values)),
    }))
}
