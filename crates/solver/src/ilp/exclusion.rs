//! All solutions by exclusion: solve the 0-1 programme, forbid the solution S by Σ_S x ≤ n − 1, solve again, until
//! the solver says that there is none. That last word, too, is put before the [`crate::ilp::counterexample`].
//!
//! Every programme has to rule out the solutions that are excluded before it finds a new one, so the work grows
//! with their square. Therefore the first n/4 rows are filled in every way, in lexicographic order, and each such case
//! is a programme of its own with its own exclusions: with microlp n = 8 takes 0.2 s in place of 9 s.

use std::collections::BTreeSet;

use super::counterexample::{self, Ruling};
use super::formulation::{Formulation, Lines, place};
use super::model::{Model, Relation, Row};
use super::rounding::{rounded, solution};
use super::solver::{Solver, Status};
use crate::progress::{ProgressSink, Step};
use crate::verdict::{Unproven, Verdict};
use nqueens_proof::board::{Problem, Square};

/// Yields one solution after the other.
pub struct Exclusion<'a> {
    problem: &'a Problem,
    solver: &'a dyn Solver,
    formulation: Formulation,
    cases: std::vec::IntoIter<Vec<Square>>,
    /// The programme of the case in hand.
    model: Option<Model>,
    found: BTreeSet<Vec<usize>>,
    nodes: u64,
    programmes: u64,
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
        let cases = cases(problem, problem.n() / 4).into_iter();
        let found = BTreeSet::new();
        Self { problem, solver, formulation, cases, model: None, found, nodes: 0, programmes: 0 }
    }

    /// Nodes of branch and bound so far.
    pub const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Programmes that were solved so far.
    pub const fn programmes(&self) -> u64 {
        self.programmes
    }

    /// The next solution, or the end. After the end nothing comes that is of use.
    pub fn next(&mut self, watch: &mut dyn ProgressSink) -> Next {
        loop {
            let model = match self.model.take() {
                Some(model) => model,
                None => match self.cases.next() {
                    Some(case) => self.programme(&case),
                    None => return Next::End(self.verdict(watch)),
                },
            };
            match self.solve(model, watch) {
                Ok(Some(found)) => return Next::Solution(found),
                Ok(None) => {}
                Err(doubt) => return Next::End(Verdict::NotProven(doubt)),
            }
        }
    }

    /// The programme of a case: its squares are 1, what they attack is 0.
    fn programme(&self, case: &[Square]) -> Model {
        let mut model = self.formulation.model(self.problem, Lines::Full);
        for &square in case {
            place(&mut model, self.problem, square);
        }
        model
    }

    /// A new solution of the case, which is then excluded; or that the case has no more.
    fn solve(
        &mut self,
        mut model: Model,
        watch: &mut dyn ProgressSink,
    ) -> Result<Option<Vec<usize>>, Unproven> {
        let n = self.problem.n();
        if n == 0 {
            // The one solution of the empty board has no variable to be excluded by.
            self.found.insert(Vec::new());
            return Ok(Some(Vec::new()));
        }
        let mut step = Step { watch, level: self.found.len(), nodes: self.nodes };
        let outcome = self.solver.optimise(&model, None, &mut step);
        self.nodes += outcome.nodes;
        self.programmes += 1;
        let failed = |why: &str| Err(Unproven::SolverFailed(format!("{}: {why}", self.solver.name())));
        let values = outcome.values.map(|values| rounded(&values)).filter(|values| model.is_feasible(values));
        match (outcome.status, values.and_then(|values| solution(self.problem, &values))) {
            // Any solution will do, whether the solver calls it optimal or was stopped with it in hand.
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
            (Status::Optimal, None) => failed("what it calls optimal is no new solution"),
            (Status::Failed(why), _) => failed(&why),
        }
    }

    fn verdict(&self, watch: &mut dyn ProgressSink) -> Verdict {
        match counterexample::complete(self.problem, &self.found, watch) {
            Ruling::Confirmed => Verdict::Proven,
            Ruling::Refuted(_) => Verdict::NotProven(Unproven::Refuted),
            Ruling::Undecided => Verdict::NotProven(Unproven::Unchecked),
        }
    }
}

/// All ways to fill the first `rows` rows with pieces that the problem allows and that do not attack each other.
fn cases(problem: &Problem, rows: usize) -> Vec<Vec<Square>> {
    let n = problem.n();
    let mut cases = vec![Vec::new()];
    if problem.conflict().is_some() {
        return Vec::new();
    }
    for row in 0..rows {
        let longer = cases.iter().flat_map(|case: &Vec<Square>| {
            let free = (0..n).map(|col| Square::new(row, col)).filter(|&square| {
                problem.allows(square) && !case.iter().any(|&other| problem.piece().attacks(n, other, square))
            });
            free.map(|square| case.iter().copied().chain([square]).collect())
        });
        cases = longer.collect();
    }
    cases
}
