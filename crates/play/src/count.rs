//! Counting the completions of a board, in total and for each square.

use std::ops::ControlFlow;

use nqueens_proof::board::{Placement, Problem};
use nqueens_solver::cp::{Event, find_one};
use nqueens_solver::{Progress, ProgressSink};
use serde_json::{Value, json};

use crate::RequestError;
use crate::board::{coordinates, open_columns};

/// The limit on nodes if a request has none: about a second in a browser. The empty board of size
/// 14 has 27 million nodes.
pub(crate) const fn usual_nodes() -> u64 {
    100_000_000
}

/// The completions of a board, as far as they were counted.
#[derive(Debug)]
pub(crate) struct Counted {
    /// The number of completions. Every counter grows by at most one a node, so none can wrap.
    pub(crate) completions: u64,
    /// The number of completions with a queen on each square, row by row.
    pub(crate) squares: Vec<u64>,
    /// The number of queens placed by the search.
    pub(crate) nodes: u64,
    /// True if all were counted. Otherwise the numbers are lower bounds.
    pub(crate) is_complete: bool,
}

/// Counts the completions of `problem`, n ≤ 32, by backtracking with masks, until `most_nodes`
/// queens were placed. Rows with the fewest open squares come first.
pub(crate) fn count(problem: &Problem, most_nodes: u64) -> Counted {
    let n = problem.n();
    let open = open_columns(problem);
    let mut rows: Vec<usize> = (0..n).collect();
    rows.sort_by_key(|&row| open[row].count_ones());
    let rows = rows.into_iter().map(|row| (row, open[row])).collect();
    let mut search = Search { n, rows, squares: vec![0; n * n], nodes: 0, most_nodes };
    let completions =
        if problem.conflict().is_some() { 0 } else { search.completions(0, Lines::default()) };
    let Search { squares, nodes, .. } = search;
    Counted { completions, squares, nodes, is_complete: nodes <= most_nodes }
}

/// The columns, diagonals and antidiagonals that hold a queen.
#[derive(Clone, Copy, Default)]
struct Lines {
    columns: u32,
    diagonals: u64,
    antidiagonals: u64,
}

struct Search {
    n: usize,
    /// The rows in the order of the search, with their open columns.
    rows: Vec<(usize, u32)>,
    squares: Vec<u64>,
    nodes: u64,
    most_nodes: u64,
}

impl Search {
    fn completions(&mut self, k: usize, lines: Lines) -> u64 {
        let Some(&(row, open)) = self.rows.get(k) else {
            return 1;
        };
        let back = self.n - 1 - row;
        let attacked = (lines.diagonals >> back | lines.antidiagonals >> row) as u32;
        let mut free = open & !(lines.columns | attacked);
        let mut found = 0;
        while free != 0 {
            let queen = free & free.wrapping_neg();
            free ^= queen;
            self.nodes += 1;
            if self.nodes > self.most_nodes {
                break;
            }
            let below = self.completions(
                k + 1,
                Lines {
                    columns: lines.columns | queen,
                    diagonals: lines.diagonals | u64::from(queen) << back,
                    antidiagonals: lines.antidiagonals | u64::from(queen) << row,
                },
            );
            self.squares[row * self.n + queen.trailing_zeros() as usize] += below;
            found += below;
        }
        found
    }
}

/// Returns the answer to `count`. `squares` has the completions with a queen on each square, row by
/// row; these numbers are below 2^53.
pub(crate) fn answer(problem: &Problem, most_nodes: u64) -> Result<Value, RequestError> {
    let counted = count(problem, most_nodes.min(1 << 50));
    Ok(json!({
        "completions": counted.completions.to_string(),
        "complete": counted.is_complete,
        "nodes": counted.nodes.to_string(),
        "squares": counted.squares,
        "conflict": problem.conflict().map(|(one, other)| [one, other].map(coordinates)),
    }))
}

/// Nodes after which the search for one completion gives up: some seconds.
const MOST_NODES_OF_ONE: u64 = 2_000_000;

/// Stops a search after a number of nodes.
struct NodeLimit;

impl ProgressSink for NodeLimit {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        if progress.nodes < MOST_NODES_OF_ONE {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Returns the answer to `complete`: the column of the queen in each row, counted from 1, as
/// `columns`, which is null if there is no completion, or if `complete` is false: then the search
/// gave up.
pub(crate) fn one_completion(problem: &Problem) -> Result<Value, RequestError> {
    if problem.conflict().is_some() {
        return Ok(json!({ "columns": null, "complete": true }));
    }
    match find_one(problem, &mut NodeLimit).0 {
        Event::Solution(columns) => {
            Placement::check_solution(problem, &columns)?;
            let columns: Vec<usize> = columns.iter().map(|col| col + 1).collect();
            Ok(json!({ "columns": columns, "complete": true }))
        }
        Event::Exhausted => Ok(json!({ "columns": null, "complete": true })),
        Event::Stopped => Ok(json!({ "columns": null, "complete": false })),
    }
}
