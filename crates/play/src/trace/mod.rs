//! The steps of the methods, for watching them one by one.
//!
//! Each method is written here again so that every step can be shown. The tests compare the nodes
//! and the solutions with those of `nqueens_solver`, whose methods have no steps to show.

mod backtracking;
mod columns;
mod propagation;
mod relaxation;

use std::ops::ControlFlow;

use nqueens_proof::board::{Placement, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{RequestError, check_size};

/// A method whose steps are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// Row by row, columns increasing, with backtracking.
    Backtracking,
    /// All lists of queens in the first k columns, then each of them with one column more.
    Columns,
    /// Domains, from which propagation removes columns.
    Propagation,
    /// Branch and bound with the linear relaxation, until the first solution.
    Relaxation,
}

impl Method {
    #[cfg(test)]
    const ALL: [Self; 4] = [Self::Backtracking, Self::Columns, Self::Propagation, Self::Relaxation];

    /// Returns the largest board whose steps are shown.
    const fn largest(self) -> usize {
        match self {
            Self::Backtracking | Self::Propagation => 20,
            // The longest list has 2680 entries for n = 9 and 13 848 for n = 10.
            Self::Columns => 9,
            Self::Relaxation => 12,
        }
    }
}

/// Limit on the number of steps: some megabytes of JSON.
const MOST_STEPS: usize = 10_000;

/// One step, with the state after it. Squares and columns are counted from 1.
#[derive(Clone, Debug, Default, Serialize)]
struct Step {
    kind: Kind,
    /// The step in words.
    text: String,
    /// The column of the queen in each row, or 0.
    queens: Vec<usize>,
    /// The squares that the step is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marked: Vec<[usize; 2]>,
    /// Propagation: the domain of each row, as a mask of columns, the first column in bit 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    domains: Vec<u32>,
    /// Columns: the lengths of the lists of 0, 1, 2 … columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lists: Vec<usize>,
    /// Relaxation: the fraction of a queen on each square, row by row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<f64>,
}

/// The action of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Start,
    /// A decision: a queen is placed, or a square is decided.
    Decide,
    /// A consequence of decisions.
    Infer,
    /// There is no way on.
    Fail,
    /// A decision is taken back.
    Undo,
    Solution,
    End,
}

/// The trace of a run.
#[derive(Debug)]
struct Trace<'a> {
    problem: &'a Problem,
    steps: Vec<Step>,
    /// Nodes as the solvers count them.
    nodes: u64,
    solutions: Vec<Vec<usize>>,
}

/// A step of a run that may have reached the limit on steps.
type Flow = ControlFlow<()>;

impl Trace<'_> {
    /// Adds a step. Breaks if it was the last one that is allowed.
    fn push(&mut self, step: Step) -> Flow {
        self.steps.push(step);
        if self.steps.len() < MOST_STEPS { Flow::Continue(()) } else { Flow::Break(()) }
    }

    /// Adds the step of a solution, given as the 0-based column of each row.
    fn solution(&mut self, columns: &[usize], step: Step) -> Flow {
        self.solutions.push(columns.to_vec());
        let written: Vec<String> = columns.iter().map(|col| (col + 1).to_string()).collect();
        let text = format!("Solution {}: {}.", self.solutions.len(), written.join(" "));
        self.push(Step { kind: Kind::Solution, text, ..step })
    }
}

/// Returns the queens of a step: `columns` has the 0-based column of each row, if there is one.
fn written(columns: &[Option<usize>]) -> Vec<usize> {
    columns.iter().map(|col| col.map_or(0, |col| col + 1)).collect()
}

/// Joins numbers as in a sentence: "1", "1 and 2", "1, 2 and 3".
fn list(numbers: impl Iterator<Item = usize>) -> String {
    let words: Vec<String> = numbers.map(|number| number.to_string()).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
    }
}

/// Returns "1 node", "2 nodes".
fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn run(problem: &Problem, method: Method) -> Result<(Trace<'_>, bool), RequestError> {
    check_size("this method", problem.n(), method.largest())?;
    let mut trace = Trace { problem, steps: Vec::new(), nodes: 0, solutions: Vec::new() };
    let flow = match (problem.conflict(), method) {
        (Some((one, other)), _) => {
            let text = format!(
                "The queens on {one} and {other} attack each other, so there is no completion."
            );
            trace.push(Step { kind: Kind::End, text, queens: placed(problem), ..Step::default() })
        }
        (None, Method::Backtracking) => backtracking::run(&mut trace),
        (None, Method::Columns) => columns::run(&mut trace),
        (None, Method::Propagation) => propagation::run(&mut trace),
        (None, Method::Relaxation) => relaxation::run(&mut trace)?,
    };
    for columns in &trace.solutions {
        Placement::check_solution(problem, columns)?;
    }
    Ok((trace, flow.is_continue()))
}

/// Returns the queens of a step that has only the placed squares.
fn placed(problem: &Problem) -> Vec<usize> {
    let mut queens = vec![0; problem.n()];
    for square in problem.placed() {
        queens[square.row] = square.col + 1;
    }
    queens
}

/// Returns the answer to `trace`: `steps`, the number of `nodes` and of `solutions`, and whether
/// the steps are `complete` or end at the limit.
pub(crate) fn answer(problem: &Problem, method: Method) -> Result<Value, RequestError> {
    let (trace, is_complete) = run(problem, method)?;
    Ok(json!({
        "steps": trace.steps,
        "nodes": trace.nodes,
        "solutions": trace.solutions.len(),
        "complete": is_complete,
    }))
}

#[cfg(test)]
mod tests;
