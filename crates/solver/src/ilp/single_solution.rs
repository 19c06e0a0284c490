//! One solution by a 0-1 program: any solution, the heaviest one, or a largest non-attacking set.

use super::counterexample;
use super::formulation::{Formulation, Lines};
use super::model::{Direction, Model};
use super::rounding::{non_attacking, rounded, solution};
use super::solver::{Solver, SolverClaim};
use crate::progress::ProgressSink;
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::board::{Problem, Square};

/// The goal of a program.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// Any solution.
    AnySolution,
    /// A solution with the greatest sum of weights, given for the squares row by row.
    Heaviest(&'a [i64]),
    /// A largest non-attacking set.
    LargestSet,
}

impl Goal<'_> {
    /// Returns the program for the goal. Rows that are valid for all answers may be added.
    pub fn model(self, problem: &Problem, formulation: Formulation) -> Model {
        match self {
            Self::AnySolution => formulation.model(problem, Lines::Full),
            Self::LargestSet => formulation.model(problem, Lines::AtMostOne),
            Self::Heaviest(weights) => {
                let mut model = formulation.model(problem, Lines::Full);
                model.set_objective(Direction::Maximise, |k| weights[k]);
                model
            }
        }
    }
}

/// Finds a solution of `problem`, or that there is none. `model` is that of [`Goal::AnySolution`].
pub fn one_solution(
    problem: &Problem,
    model: &Model,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Answer<Vec<usize>> {
    if problem.n() == 0 {
        return Answer {
            found: Some(Vec::new()),
            verdict: Verdict::Proven,
            nodes: 0,
            lps_solved: 0,
        };
    }
    let run = Run::of(model, solver, sink);
    let (found, verdict) = match run.values.as_ref().and_then(|values| solution(problem, values)) {
        // A solution needs no further proof, whatever the solver claims.
        Some(found) => (Some(found), Verdict::Proven),
        None => match run.claim {
            Ok(SolverClaim::Infeasible) => counterexample::first(problem, None, sink).verdict(None),
            Ok(SolverClaim::Optimal) => (None, no_solution(solver)),
            Err(unproven) => (None, Verdict::NotProven(unproven)),
        },
    };
    Answer { found, verdict, nodes: run.nodes, lps_solved: 1 }
}

/// Finds a solution of `problem` with the greatest sum of `weights` (of the squares, row by row),
/// or that there is no solution. `model` is that of [`Goal::Heaviest`].
pub fn heaviest(
    problem: &Problem,
    model: &Model,
    weights: &[i64],
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Answer<Vec<usize>> {
    if problem.n() == 0 {
        return one_solution(problem, model, solver, sink);
    }
    let run = Run::of(model, solver, sink);
    let found = run.values.as_ref().and_then(|values| solution(problem, values));
    let n = problem.n();
    let weight = |columns: &Vec<usize>| -> i128 {
        columns.iter().enumerate().map(|(row, &col)| i128::from(weights[row * n + col])).sum()
    };
    let (found, verdict) = match run.claim {
        Ok(SolverClaim::Optimal) if found.is_none() => (None, no_solution(solver)),
        Ok(SolverClaim::Optimal) => {
            let claim = found.as_ref().map(weight);
            counterexample::heaviest(problem, weights, claim, sink).verdict(found)
        }
        Ok(SolverClaim::Infeasible) => counterexample::first(problem, None, sink).verdict(None),
        Err(unproven) => (found, Verdict::NotProven(unproven)),
    };
    Answer { found, verdict, nodes: run.nodes, lps_solved: 1 }
}

/// Finds a largest non-attacking set that contains the placed pieces and no blocked square. Finds
/// `None` if the placed pieces attack each other. `model` is that of [`Goal::LargestSet`].
pub fn largest_set(
    problem: &Problem,
    model: &Model,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Answer<Vec<Square>> {
    let proven = |found| Answer { found, verdict: Verdict::Proven, nodes: 0, lps_solved: 0 };
    if problem.conflict().is_some() {
        return proven(None);
    }
    if problem.n() == 0 {
        return proven(Some(Vec::new()));
    }
    let run = Run::of(model, solver, sink);
    let found = run.values.as_ref().and_then(|values| non_attacking(problem, values));
    let (found, verdict) = match run.claim {
        Ok(SolverClaim::Optimal) => match found {
            None => (None, no_solution(solver)),
            Some(set) => counterexample::largest(problem, set.len(), sink).verdict(Some(set)),
        },
        // The placed pieces are a non-attacking set.
        Ok(SolverClaim::Infeasible) => {
            (Some(problem.placed().to_vec()), Verdict::NotProven(Unproven::Refuted))
        }
        Err(unproven) => (found, Verdict::NotProven(unproven)),
    };
    Answer { found, verdict, nodes: run.nodes, lps_solved: 1 }
}

/// The result of solving one program.
struct Run {
    claim: Result<SolverClaim, Unproven>,
    /// The best point that the solver returned.
    values: Option<Vec<bool>>,
    nodes: u64,
}

impl Run {
    fn of(model: &Model, solver: &dyn Solver, sink: &mut dyn ProgressSink) -> Self {
        let outcome = solver.optimise(model, None, sink);
        let claim = outcome.status.claim(solver);
        Self { claim, values: outcome.values.map(|values| rounded(&values)), nodes: outcome.nodes }
    }
}

fn no_solution(solver: &dyn Solver) -> Verdict {
    Verdict::NotProven(solver.failed("its optimal point is not a solution"))
}
