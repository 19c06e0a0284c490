//! `nqueens list --trace`: a method step by step, for teaching.

use std::io::Write as _;
use std::ops::ControlFlow;

use serde::Serialize;

use super::args::square_from_one;
use super::solution_output::{object, refused, spaced};
use super::stream::Stream;
use super::{Exit, Failure};
use crate::board::{Placement, Problem, Square};
use crate::report::{counted, grouped};
use crate::solver::classical::trace::{Step, backtracking_steps, partial_solutions};

/// The largest board whose partial solutions are printed.
const LARGEST_WITH_PARTIAL_SOLUTIONS: usize = 6;
/// The largest board whose steps of backtracking are printed.
const LARGEST_WITH_STEPS: usize = 8;
/// The largest board that is traced.
const LARGEST: usize = 12;

/// A number of columns, in JSON.
#[derive(Debug, Default, Serialize)]
struct Level {
    columns: usize,
    partial_solutions: String,
    /// For each partial solution the row of the piece in each of the columns, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Vec<usize>>>,
}

/// A step of backtracking, in JSON. Rows and columns are counted from 1.
#[derive(Debug, Serialize)]
struct StepLine {
    step: u64,
    action: &'static str,
    row: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attacked_by: Option<[usize; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<[usize; 2]>,
    /// The columns of the pieces on the board after the step.
    board: Vec<usize>,
}

/// The steps in a row, in JSON.
#[derive(Clone, Debug, Default, Serialize)]
struct RowLine {
    row: usize,
    placed: u64,
    conflicts: u64,
    backtracks: u64,
}

/// Rejects a board that is too large to be traced.
fn fits(problem: &Problem) -> Result<(), Failure> {
    if problem.n() > LARGEST {
        return Err(Failure::usage(format!(
            "--trace supports boards up to n = {LARGEST}, not n = {}; up to n = \
             {LARGEST_WITH_PARTIAL_SOLUTIONS} (columns) and n = {LARGEST_WITH_STEPS} \
             (backtracking) it prints every step",
            problem.n()
        )));
    }
    Ok(())
}

/// Prints the partial solutions of k columns, for each k: their number and, on small boards, all of
/// them.
pub(super) fn columns(problem: &Problem, json: bool) -> Result<Exit, Failure> {
    fits(problem)?;
    let n = problem.n();
    let all = n <= LARGEST_WITH_PARTIAL_SOLUTIONS;
    let (mut counts, mut lists) = (vec![0u64; n + 1], vec![Vec::new(); n + 1]);
    let mut wrong = None;
    let _ = partial_solutions(problem, &mut |pieces| {
        if let Err(error) = check(problem, pieces) {
            wrong = Some(refused("columns", &error));
            return ControlFlow::Break(());
        }
        counts[pieces.len()] += 1;
        if all {
            lists[pieces.len()].push(pieces.iter().map(|piece| piece.row + 1).collect());
        }
        ControlFlow::Continue(())
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let mut stream = Stream::begin();
    for (columns, (count, rows)) in counts.into_iter().zip(lists).enumerate() {
        let level =
            Level { columns, partial_solutions: count.to_string(), rows: all.then_some(rows) };
        let flow = if json { object(&mut stream, &level) } else { level.print(&mut stream) };
        if flow.is_break() {
            break;
        }
    }
    stream.finish()?;
    Ok(Exit::Done)
}

/// Checks pieces that need not fill the board: no piece of the problem has to be among them.
fn check(problem: &Problem, pieces: &[Square]) -> Result<(), crate::board::PlacementError> {
    let empty = Problem::empty(problem.piece(), problem.n());
    let mut columns = vec![None; problem.n()];
    for piece in pieces {
        columns[piece.row] = Some(piece.col);
    }
    if pieces.len() == problem.n() && !pieces.is_empty() {
        return Placement::check(problem, &columns).map(|_| ());
    }
    Placement::check(&empty, &columns).map(|_| ())
}

impl Level {
    fn print(&self, stream: &mut Stream) -> ControlFlow<()> {
        let count: u128 = self.partial_solutions.parse().unwrap_or(0);
        let columns = counted(self.columns as u128, "column");
        stream.write(|out| {
            writeln!(out, "after {columns}: {}", counted(count, "partial solution"))?;
            for rows in self.rows.iter().flatten().filter(|rows| !rows.is_empty()) {
                writeln!(out, "  {}", spaced(rows))?;
            }
            Ok(())
        })
    }
}

/// Prints every step of backtracking on a small board, or the number of steps in each row, until
/// `limit` solutions are found.
pub(super) fn backtracking(
    problem: &Problem,
    limit: Option<usize>,
    json: bool,
) -> Result<Exit, Failure> {
    fits(problem)?;
    let mut trace = Trace {
        problem,
        json,
        every_step: problem.n() <= LARGEST_WITH_STEPS,
        limit,
        stream: Stream::begin(),
        steps: 0,
        solutions: 0,
        rows: (1..=problem.n()).map(|row| RowLine { row, ..RowLine::default() }).collect(),
        wrong: None,
    };
    let _ = backtracking_steps(problem, &mut |step, pieces| trace.take(step, pieces));
    trace.finish()
}

/// The output of the steps of backtracking.
struct Trace<'a> {
    problem: &'a Problem,
    json: bool,
    every_step: bool,
    limit: Option<usize>,
    stream: Stream,
    steps: u64,
    solutions: usize,
    rows: Vec<RowLine>,
    wrong: Option<Failure>,
}

impl Trace<'_> {
    fn take(&mut self, step: Step, pieces: &[Square]) -> ControlFlow<()> {
        self.steps += 1;
        match step {
            Step::Place(square) => self.rows[square.row].placed += 1,
            Step::Conflict(square, _) => self.rows[square.row].conflicts += 1,
            Step::Backtrack { row, .. } => self.rows[row].backtracks += 1,
            Step::Solution => self.solutions += 1,
        }
        if let (Step::Place(_) | Step::Solution, Err(error)) = (step, check(self.problem, pieces)) {
            self.wrong = Some(refused("backtracking", &error));
            return ControlFlow::Break(());
        }
        if self.every_step {
            self.print(step, pieces)?;
        }
        let enough = step == Step::Solution && Some(self.solutions) == self.limit;
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn print(&mut self, step: Step, pieces: &[Square]) -> ControlFlow<()> {
        if self.json {
            return object(&mut self.stream, &line(self.steps, step, pieces));
        }
        let words = match step {
            Step::Place(square) => format!("place     {square}"),
            Step::Conflict(square, Some(other)) => format!("conflict  {square} with {other}"),
            Step::Conflict(square, None) => format!("excluded  {square}"),
            Step::Solution => "solution".to_owned(),
            Step::Backtrack { row, removed: Some(removed) } => {
                format!("backtrack row {} has no column left: remove {removed}", row + 1)
            }
            Step::Backtrack { removed: None, .. } => {
                "backtrack row 1 has no column left: the end".to_owned()
            }
        };
        let mut board: Vec<String> =
            pieces.iter().map(|piece| (piece.col + 1).to_string()).collect();
        board.resize(self.problem.n(), "-".into());
        let (number, board) = (self.steps, board.join(" "));
        self.stream.write(|out| writeln!(out, "{number:>6}  {board}  {words}"))
    }

    fn finish(mut self) -> Result<Exit, Failure> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        for row in &self.rows {
            let flow = if self.json {
                object(&mut self.stream, row)
            } else {
                let &RowLine { row, placed, ref conflicts, ref backtracks } = row;
                let count = |number: u64, noun| counted(number.into(), noun);
                let (placed, conflicts) = (grouped(placed.into()), count(*conflicts, "conflict"));
                let backtracks = count(*backtracks, "backtrack");
                self.stream.write(|out| {
                    writeln!(out, "row {row:>2}: {placed} placed, {conflicts}, {backtracks}")
                })
            };
            if flow.is_break() {
                break;
            }
        }
        let (steps, solutions) = (self.steps, self.solutions);
        if self.json {
            let total = serde_json::json!({
                "n": self.problem.n(),
                "steps": steps.to_string(),
                "solutions": solutions.to_string(),
            });
            let _ = object(&mut self.stream, &total);
        } else {
            let steps = counted(steps.into(), "step");
            let solutions = counted(solutions as u128, "solution");
            let _ = self.stream.write(|out| writeln!(out, "{steps}, {solutions}"));
        }
        self.stream.finish()?;
        Ok(Exit::Done)
    }
}

/// Returns a step for JSON, `pieces` being the board after it.
fn line(step: u64, what: Step, pieces: &[Square]) -> StepLine {
    let board = pieces.iter().map(|piece| piece.col + 1).collect();
    let (action, row, column, attacked_by, removed) = match what {
        Step::Place(square) => ("place", square.row, Some(square.col), None, None),
        Step::Conflict(square, other) => {
            ("conflict", square.row, Some(square.col), other.map(square_from_one), None)
        }
        Step::Solution => ("solution", pieces.len().saturating_sub(1), None, None, None),
        Step::Backtrack { row, removed } => {
            ("backtrack", row, None, None, removed.map(square_from_one))
        }
    };
    let column = column.map(|column| column + 1);
    StepLine { step, action, row: row + 1, column, attacked_by, removed, board }
}
