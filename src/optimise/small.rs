//! The small solver: microlp, pure Rust, always there. It has no duals, no rays and no warm starts for linear
//! programmes; on boards up to about 20 it answers in milliseconds.

use std::ops::ControlFlow;
use std::time::Duration;

use microlp::{
    ComparisonOp, Error, OptimizationDirection, Problem, ResumeOptions, SolutionStatus, SolveOptions,
    SolveOutcome, Variable,
};

use super::model::{Direction, Model, Relation, Row};
use super::solver::{IntegerOutcome, Linear, LinearOutcome, Solver, Status, Vertex};
use super::watch::{Progress, Watch};

/// microlp.
#[derive(Clone, Copy, Debug, Default)]
pub struct Small;

/// microlp has no callbacks: it is stopped this often to look up.
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

/// The next time slice, or none if the watch has no time left.
fn slice(watch: &dyn Watch) -> Option<Duration> {
    let slice = watch.time_left().map_or(SLICE, |left| left.min(SLICE));
    (!slice.is_zero()).then_some(slice)
}

impl Solver for Small {
    fn name(&self) -> &'static str {
        "microlp"
    }

    fn relaxation(&self, model: &Model) -> Box<dyn Linear> {
        let bounds = |(lower, upper): (i64, i64)| (lower as f64, upper as f64);
        Box::new(SmallLinear {
            direction: direction(model.direction),
            costs: model.columns.iter().map(|column| column.cost as f64).collect(),
            bounds: model.columns.iter().map(|column| bounds(column.domain.bounds())).collect(),
            rows: model.rows.iter().map(SmallRow::from).collect(),
        })
    }

    fn optimise(&self, model: &Model, start: Option<&[bool]>, watch: &mut dyn Watch) -> IntegerOutcome {
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
            variables.iter().zip(values).map(|(&variable, &on)| (variable, f64::from(u8::from(on)))).collect()
        });
        let stopped = IntegerOutcome { status: Status::Stopped, values: None, bound: None, nodes: 0 };
        if watch.look(&Progress::default()).is_break() {
            return stopped;
        }
        let Some(time) = slice(watch) else { return stopped };
        let mut options = SolveOptions::default();
        options.time_limit = Some(time);
        options.warm_start = start;
        let mut outcome = problem.solve_with(options);
        loop {
            match outcome {
                Ok(reached) => {
                    let told = told(&reached, &variables);
                    if told.status != Status::Stopped {
                        return told;
                    }
                    let progress = Progress { level: 0, bound: told.bound, nodes: told.nodes };
                    if watch.look(&progress) == ControlFlow::Break(()) {
                        return told;
                    }
                    let Some(time) = slice(watch) else { return told };
                    let mut options = ResumeOptions::default();
                    options.time_limit = Some(time);
                    outcome = reached.resume_with(options);
                }
                Err(Error::Infeasible) => return IntegerOutcome { status: Status::Infeasible, ..stopped },
                Err(error) => {
                    return IntegerOutcome { status: Status::Failed(error.to_string()), ..stopped };
                }
            }
        }
    }
}

fn told(outcome: &SolveOutcome, variables: &[Variable]) -> IntegerOutcome {
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

/// A linear programme that is built anew for each solve.
struct SmallLinear {
    direction: OptimizationDirection,
    costs: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    rows: Vec<SmallRow>,
}

struct SmallRow {
    terms: Vec<(usize, f64)>,
    comparison: ComparisonOp,
    bound: f64,
}

impl From<&Row> for SmallRow {
    fn from(row: &Row) -> Self {
        Self {
            terms: row.terms.iter().map(|&(j, a)| (j, a as f64)).collect(),
            comparison: comparison(row.relation),
            bound: row.bound as f64,
        }
    }
}

impl Linear for SmallLinear {
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64) {
        self.bounds[column] = (lower, upper);
    }

    fn set_cost(&mut self, column: usize, cost: f64) {
        self.costs[column] = cost;
    }

    fn add_row(&mut self, row: &Row) {
        self.rows.push(row.into());
    }

    fn add_column(&mut self, cost: f64, bounds: (f64, f64), terms: &[(usize, f64)]) {
        let column = self.costs.len();
        self.costs.push(cost);
        self.bounds.push(bounds);
        for &(row, coefficient) in terms {
            self.rows[row].terms.push((column, coefficient));
        }
    }

    fn solve(&mut self, watch: &mut dyn Watch) -> LinearOutcome {
        if watch.look(&Progress::default()) == ControlFlow::Break(()) {
            return LinearOutcome::Stopped;
        }
        let mut problem = Problem::new(self.direction);
        let variables: Vec<Variable> = self
            .costs
            .iter()
            .zip(&self.bounds)
            .map(|(&cost, &bounds)| problem.add_var(cost, bounds))
            .collect();
        for row in &self.rows {
            let terms: Vec<(Variable, f64)> = row.terms.iter().map(|&(j, a)| (variables[j], a)).collect();
            problem.add_constraint(terms, row.comparison, row.bound);
        }
        let mut options = SolveOptions::default();
        options.time_limit = watch.time_left();
        match problem.solve_with(options) {
            Ok(SolveOutcome::Solution(solution)) => {
                let values = variables.iter().map(|&v| solution.var_value(v)).collect();
                LinearOutcome::Optimal(Vertex { objective: solution.objective(), values, duals: None })
            }
            Ok(SolveOutcome::Interrupted(_)) => LinearOutcome::Stopped,
            Err(Error::Infeasible) => LinearOutcome::Infeasible { ray: None },
            Err(error) => LinearOutcome::Failed(error.to_string()),
        }
    }
}
