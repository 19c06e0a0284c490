//! All solutions by exclusion: solve the 0-1 programme, forbid the solution S by Σ_S x ≤ n − 1, solve again, until
//! the solver says that there is none. That last word, too, is put before the [`super::referee`].

use std::collections::BTreeSet;

use super::formulation::{Formulation, Lines};
use super::model::{Model, Relation, Row};
use super::reading::{rounded, solution};
use super::referee::{self, Ruling};
use super::solver::{Solver, Status};
use super::verdict::{Doubt, Verdict};
use super::watch::{Step, Watch};
use crate::board::Problem;

/// Yields one solution after the other.
pub struct Exclusion<'a> {
    problem: &'a Problem,
    solver: &'a dyn Solver,
    model: Model,
    found: BTreeSet<Vec<usize>>,
    nodes: u64,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A solution that did not come before: the 0-based column of each row.
    Solution(Vec<usize>),
    /// The end, and whether it is proved that these were all.
    End(Verdict),
}

impl<'a> Exclusion<'a> {
    /// The solutions of `problem`, for queens or rooks.
    pub fn new(problem: &'a Problem, formulation: Formulation, solver: &'a dyn Solver) -> Self {
        let model = formulation.model(problem, Lines::Full);
        Self { problem, solver, model, found: BTreeSet::new(), nodes: 0 }
    }

    /// Nodes of branch and bound so far.
    pub const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Solves once more. After [`Next::End`] it would do so again.
    pub fn next(&mut self, watch: &mut dyn Watch) -> Next {
        if self.problem.n() == 0 {
            // The one solution of the empty board has no variable to exclude it by.
            return match self.found.insert(Vec::new()) {
                true => Next::Solution(Vec::new()),
                false => Next::End(Verdict::Proven),
            };
        }
        let mut step = Step { watch: &mut *watch, level: self.found.len(), nodes: self.nodes };
        let outcome = self.solver.optimise(&self.model, None, &mut step);
        self.nodes += outcome.nodes;
        let doubt = |doubt| Next::End(Verdict::NotProven(doubt));
        let values = outcome.values.map(|values| rounded(&values));
        let failed = |why: &str| Doubt::SolverFailed(format!("{}: {why}", self.solver.name()));
        match (outcome.status, values.and_then(|values| solution(self.problem, &values))) {
            // Any solution will do, whether the solver calls it optimal or was stopped with it in hand.
            (Status::Optimal | Status::Stopped, Some(found)) => {
                if !self.found.insert(found.clone()) {
                    return doubt(failed("it gave an excluded solution again"));
                }
                let n = self.problem.n();
                let squares = found.iter().enumerate().map(|(row, &col)| row * n + col);
                let name = format!("not{}", self.found.len());
                self.model.rows.push(Row::sum(name, squares, Relation::AtMost, n as i64 - 1));
                Next::Solution(found)
            }
            (Status::Optimal, None) => doubt(failed("what it calls optimal is no solution")),
            (Status::Stopped, None) => doubt(Doubt::Stopped),
            (Status::Failed(why), _) => doubt(failed(&why)),
            (Status::Infeasible, _) => match referee::complete(self.problem, &self.found, watch) {
                Ruling::Confirmed => Next::End(Verdict::Proven),
                Ruling::Refuted(_) => doubt(Doubt::Refuted),
                Ruling::Undecided => doubt(Doubt::Unchecked),
            },
        }
    }
}
