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
use crate::progress::{LogEntry, Progress, ProgressSink};
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
        let mut log = Log::new(sink);
        let mut options = SolveOptions::default();
        options.time_limit = Some(time);
        options.node_limit = log.node_limit(0);
        options.warm_start = start;
        let mut outcome = problem.solve_with(options);
        loop {
            match outcome {
                Ok(reached) => {
                    let result = outcome_of(&reached, &variables);
                    log.write(&reached, &result, sink);
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
                    options.node_limit = log.node_limit(result.nodes);
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

/// The entries of the log: at multiples of an interval of nodes, and at the end. The limit of nodes
/// interrupts microlp there, so that the entries do not depend on the speed of the machine.
struct Log {
    interval: Option<u64>,
    /// The number of nodes of the next entry.
    next: u64,
}

impl Log {
    fn new(sink: &dyn ProgressSink) -> Self {
        let interval = sink.log_interval().map(|interval| interval.max(1));
        Self { interval, next: interval.unwrap_or(0) }
    }

    /// Returns the number of nodes until the next entry.
    fn node_limit(&self, nodes: u64) -> Option<u64> {
        self.interval.map(|_| self.next.saturating_sub(nodes).max(1))
    }

    /// Writes an entry if it is due.
    fn write(
        &mut self,
        outcome: &SolveOutcome,
        result: &IntegerOutcome,
        sink: &mut dyn ProgressSink,
    ) {
        let Some(interval) = self.interval else { return };
        if result.nodes < self.next && result.status == Status::Stopped {
            return;
        }
        self.next = (result.nodes / interval + 1) * interval;
        sink.log(&LogEntry {
            nodes: result.nodes,
            bound: result.bound,
            incumbent: outcome.solution().map(|solution| solution.objective()),
            lp_iterations: Some(outcome.stats().lp_iterations),
            cuts: None,
        });
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
