//! The pure Rust solver, which is always available: microlp for 0-1 programs and our own simplex
//! for linear programs, for which microlp has no duals, no rays and no warm starts.

use std::ops::ControlFlow;
use std::time::Duration;

use microlp::{
    ComparisonOp, Error, OptimizationDirection, Problem, ResumeOptions, SolutionStatus,
    SolveOptions, SolveOutcome, Variable,
};

use super::model::{Direction, Model, Relation};
use super::solver::{IntegerOutcome, Linear, Solver, Status};
use crate::progress::{Progress, ProgressSink};
use crate::simplex::Simplex;

/// microlp, with our own simplex for linear programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct MicroLp;

/// Interval between two progress reports. microlp has no callbacks, so it is interrupted and
/// resumed.
const SLICE: Duration = Duration::from_millis(100);

const fn direction(direction: Direction) -> OptimizationDirection {
    match direction {
        Direction::Minimise => OptimizationDirection::Minimize,
        Direction::Maximise => OptimizationDirection::Maximize,
    }
}

const fn comparison(relation: Relation) -> ComparisonOp {
    match relation {
        Relation::AtMost => ComparisonOp::Le,
        Relation::Equal => ComparisonOp::Eq,
        Relation::AtLeast => ComparisonOp::Ge,
    }
}

/// Returns the next time slice, or `None` if no time is left.
fn slice(sink: &dyn ProgressSink) -> Option<Duration> {
    let slice = sink.time_left().map_or(SLICE, |left| left.min(SLICE));
    (!slice.is_zero()).then_some(slice)
}

impl Solver for MicroLp {
    fn name(&self) -> &'static str {
        "microlp"
    }

    fn relaxation(&self, model: &Model) -> Box<dyn Linear> {
        Box::new(Simplex::of(model))
    }

    fn optimise(
        &self,
        model: &Model,
        start: Option<&[bool]>,
        sink: &mut dyn ProgressSink,
    ) -> IntegerOutcome {
        let mut problem = Problem::new(direction(model.direction));
        let variables: Vec<Variable> = model
            .columns
            .iter()
            .map(|column| {
                let (lower, upper) = column.domain.bounds();
                // The bounds of a domain are 0 and 1.
                problem.add_integer_var(column.cost as f64, (lower as i32, upper as i32))
            })
            .collect();
        for row in &model.rows {
            let terms: Vec<(Variable, f64)> =
                row.terms.iter().map(|&(j, a)| (variables[j], a as f64)).collect();
            problem.add_constraint(terms, comparison(row.relation), row.bound as f64);
        }
        let start = start.map(|values| {
            variables
                .iter()
                .zip(values)
                .map(|(&variable, &on)| (variable, f64::from(u8::from(on))))
                .collect()
        });
        let stopped =
            IntegerOutcome { status: Status::Stopped, values: None, bound: None, nodes: 0 };
        if sink.report(&Progress::default()).is_break() {
            return stopped;
        }
        let Some(time) = slice(sink) else { return stopped };
        let mut options = SolveOptions::default();
        options.time_limit = Some(time);
        options.warm_start = start;
        let mut outcome = problem.solve_with(options);
        loop {
            match outcome {
                Ok(reached) => {
                    let result = outcome_of(&reached, &variables);
                    if result.status != Status::Stopped {
                        return result;
                    }
                    let progress = Progress { level: 0, bound: result.bound, nodes: result.nodes };
                    if sink.report(&progress) == ControlFlow::Break(()) {
                        return result;
                    }
                    let Some(time) = slice(sink) else { return result };
                    let mut options = ResumeOptions::default();
                    options.time_limit = Some(time);
                    outcome = reached.resume_with(options);
                }
                Err(Error::Infeasible) => {
                    return IntegerOutcome { status: Status::Infeasible, ..stopped };
                }
                Err(error) => {
                    return IntegerOutcome { status: Status::Failed(error.to_string()), ..stopped };
                }
            }
        }
    }
}

fn outcome_of(outcome: &SolveOutcome, variables: &[Variable]) -> IntegerOutcome {
    let stats = outcome.stats();
    let solution = outcome.solution();
    let optimal = solution.is_some_and(|solution| solution.status() == SolutionStatus::Optimal);
    IntegerOutcome {
        status: if optimal { Status::Optimal } else { Status::Stopped },
        values: solution.map(|solution| variables.iter().map(|&v| solution.var_value(v)).collect()),
        bound: stats.best_bound,
        nodes: stats.nodes_solved,
    }
}
