//! All solutions by exclusion: solve the 0-1 program, forbid the solution S by Σ_S x ≤ n − 1, and
//! solve again until the solver reports infeasibility. That final claim, too, is passed to
//! [`crate::ilp::counterexample`].
//!
//! Every program has to rule out the excluded solutions before it finds a new one, so the work
//! grows with the square of their number. Therefore the first n/4 rows are filled in every way, in
//! lexicographic order, and each such case is a separate program with its own exclusions: with
//! microlp n = 8 takes 0.2 s instead of 9 s.

use std::collections::BTreeSet;

use super::counterexample;
use super::formulation::{Formulation, Lines, place};
use super::model::{Model, Relation, Row};
use super::rounding::{rounded, solution};
use super::solver::{Solver, Status};
use crate::progress::{ProgressSink, Step};
use crate::verdict::{Unproven, Verdict};
use nqueens_proof::board::{Problem, Square};

/// An enumeration of the solutions, one by one.
pub struct Exclusion<'a> {
    problem: &'a Problem,
    solver: &'a dyn Solver,
    formulation: Formulation,
    cases: std::vec::IntoIter<Vec<Square>>,
    /// The program of the current case.
    model: Option<Model>,
    found: BTreeSet<Vec<usize>>,
    nodes: u64,
    lps_solved: u64,
}

/// The next result of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A solution not returned before: the 0-based column of each row.
    Solution(Vec<usize>),
    /// The end, and whether the solutions are proved to be complete.
    End(Verdict),
}

impl<'a> Exclusion<'a> {
    /// Creates an enumeration of the solutions of `problem`, for queens or rooks.
    pub fn new(problem: &'a Problem, formulation: Formulation, solver: &'a dyn Solver) -> Self {
        let cases = cases(problem, problem.n() / 4).into_iter();
        let found = BTreeSet::new();
        Self { problem, solver, formulation, cases, model: None, found, nodes: 0, lps_solved: 0 }
    }

    /// Returns the number of branch-and-bound nodes so far.
    pub const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Returns the number of programs solved so far.
    pub const fn lps_solved(&self) -> u64 {
        self.lps_solved
    }

    /// Returns the next solution, or the end. Results after the end are meaningless.
    pub fn next(&mut self, sink: &mut dyn ProgressSink) -> Next {
        loop {
            let model = match self.model.take() {
                Some(model) => model,
                None => match self.cases.next() {
                    Some(case) => self.case_model(&case),
                    None => return Next::End(self.verdict(sink)),
                },
            };
            match self.solve(model, sink) {
                Ok(Some(found)) => return Next::Solution(found),
                Ok(None) => {}
                Err(unproven) => return Next::End(Verdict::NotProven(unproven)),
            }
        }
    }

    /// Returns the program of a case: the variables of its squares are 1, those of attacked squares
    /// are 0.
    fn case_model(&self, case: &[Square]) -> Model {
        let mut model = self.formulation.model(self.problem, Lines::Full);
        for &square in case {
            place(&mut model, self.problem, square);
        }
        model
    }

    /// Returns a new solution of the case, which is then excluded, or `None` if the case has no
    /// more.
    fn solve(
        &mut self,
        mut model: Model,
        sink: &mut dyn ProgressSink,
    ) -> Result<Option<Vec<usize>>, Unproven> {
        let n = self.problem.n();
        if n == 0 {
            // The only solution of the empty board has no variables by which to exclude it.
            self.found.insert(Vec::new());
            return Ok(Some(Vec::new()));
        }
        let mut step = Step { sink, level: self.found.len(), nodes: self.nodes };
        let outcome = self.solver.optimise(&model, None, &mut step);
        self.nodes += outcome.nodes;
        self.lps_solved += 1;
        let failed = |why: &str| Err(self.solver.failed(why));
        let values = outcome
            .values
            .map(|values| rounded(&values))
            .filter(|values| model.is_feasible(values));
        match (outcome.status, values.and_then(|values| solution(self.problem, &values))) {
            // Any solution will do, whether the solver calls it optimal or was stopped after
            // finding it.
            (Status::Optimal | Status::Stopped, Some(found)) => {
                self.found.insert(found.clone());
                let squares = found.iter().enumerate().map(|(row, &col)| row * n + col);
                let name = format!("not{}", self.found.len());
                model.rows.push(Row::sum(name, squares, Relation::AtMost, n as i64 - 1));
                self.model = Some(model);
                Ok(Some(found))
            }
            (Status::Infeasible, _) => Ok(None),
            (Status::Stopped, None) => Err(Unproven::Stopped),
            (Status::Optimal, None) => failed("its optimal point is not a new solution"),
            (Status::Failed(why), _) => failed(&why),
        }
    }

    fn verdict(&self, sink: &mut dyn ProgressSink) -> Verdict {
        counterexample::complete(self.problem, &self.found, sink).verdict(None).1
    }
}

/// Returns all ways to fill the first `rows` rows with non-attacking pieces that the problem
/// allows.
fn cases(problem: &Problem, rows: usize) -> Vec<Vec<Square>> {
    let n = problem.n();
    let mut cases = vec![Vec::new()];
    if problem.conflict().is_some() {
        return Vec::new();
    }
    for row in 0..rows {
        let longer = cases.iter().flat_map(|case: &Vec<Square>| {
            let free = (0..n).map(|col| Square::new(row, col)).filter(|&square| {
                problem.allows(square)
                    && !case.iter().any(|&other| problem.piece().attacks(n, other, square))
            });
            free.map(|square| case.iter().copied().chain([square]).collect())
        });
        cases = longer.collect();
    }
    cases
}
