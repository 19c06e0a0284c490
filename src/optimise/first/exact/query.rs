//! One completion query: does the board with these queens on its first rows have a completion? The answer is one, or a
//! refutation that can be checked.

use super::budget::Budget;
use super::in_order::Task;
use super::programme::{Master, Plain};
use super::residual::{Branch, Residual, State};
use super::width::{Set, Width};
use crate::proof::first::{Line, Refutation};

/// Nodes of a cheap search before programmes are solved instead.
const CHEAP: u64 = 3000;

/// What a query comes to.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// There is no completion.
    Refuted(Refutation),
    /// Here is one: the column of each row.
    Completed(Vec<usize>),
    /// It takes more programmes than were allowed.
    GivenUp,
    /// The run was stopped.
    Stopped,
}

/// A search for a completion.
pub(super) struct Query<'c, W: Width> {
    n: usize,
    task: Task<'c>,
    /// Programmes that may still be solved.
    programmes: u64,
    plain: Plain,
    master: Master<W>,
    /// The open rows at the beginning.
    rows: W::Columns,
}

/// How a cheap search ends.
enum Cheap {
    Refuted,
    Full(Vec<usize>),
    GivenUp,
}

/// Whether `prefix` has a completion, with at most so many programmes.
pub(super) fn ask<W: Width>(n: usize, prefix: &[usize], programmes: u64, task: Task<'_>) -> Outcome {
    let mut board = Residual::<W>::new(n, prefix);
    match board.propagate() {
        State::Refuted => Outcome::Refuted(Refutation::search()),
        State::Full => Outcome::Completed(board.solution()),
        State::Open(branch) => {
            let (plain, master) = (Plain::new(&board), Master::new(&board));
            Query { n, task, programmes, plain, master, rows: board.rows() }.search(board, branch)
        }
    }
}

impl<W: Width> Query<'_, W> {
    /// A cheap search, then the programmes, then branching.
    fn search(&mut self, board: Residual<'_, W>, mut branch: Branch) -> Outcome {
        if self.task.is_stopped() {
            return Outcome::Stopped;
        }
        if board.has_budget() {
            let mut nodes = CHEAP;
            let end = cheap(&board, branch, &mut nodes);
            self.task.add_nodes(CHEAP - nodes);
            match end {
                Cheap::Refuted => return Outcome::Refuted(Refutation::search()),
                Cheap::Full(solution) => return Outcome::Completed(solution),
                Cheap::GivenUp => {}
            }
        }
        if self.programmes == 0 {
            return Outcome::GivenUp;
        }
        self.programmes -= 1;
        let Some(multipliers) = self.plain.multipliers(&board, self.task) else {
            return self.branch(&board, branch);
        };
        let refuted = |then: &Refutation| Refutation::budget(&multipliers, false, then);
        let Some((budget, room)) = Budget::new(&board, &multipliers) else {
            return Outcome::Refuted(refuted(&Refutation::search()));
        };
        let mut board = board;
        board.push(&budget, room);
        match board.propagate() {
            State::Refuted => return Outcome::Refuted(refuted(&Refutation::search())),
            State::Full => return Outcome::Completed(board.solution()),
            State::Open(line) => branch = line,
        }
        if let Some(knapsack) = self.master.refute(&board, self.used(&board), self.task) {
            let then = Refutation::budget(&knapsack, true, &Refutation::search());
            return Outcome::Refuted(refuted(&then));
        }
        match self.branch(&board, branch) {
            Outcome::Refuted(then) => Outcome::Refuted(refuted(&then)),
            other => other,
        }
    }

    /// Tries all cells of a line, those first that the plain programme likes best.
    fn branch(&mut self, board: &Residual<'_, W>, branch: Branch) -> Outcome {
        let mut cells: Vec<(usize, usize)> = board.cells(branch).collect();
        let values = self.plain.values(&cells);
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        cells = order.into_iter().map(|i| cells[i]).collect();
        let mut children = Vec::new();
        for (row, column) in cells {
            let mut child = *board;
            if child.place(row, column) {
                continue;
            }
            let outcome = match child.propagate() {
                State::Refuted => continue,
                State::Full => Outcome::Completed(child.solution()),
                State::Open(branch) => self.search(child, branch),
            };
            match outcome {
                Outcome::Refuted(refutation) => children.push((row * self.n + column, refutation)),
                other => return other,
            }
        }
        let line = match branch {
            Branch::Row(row) => Line::Row(row),
            Branch::Column(column) => Line::Column(column),
            Branch::Diagonal(diagonal) => Line::Diagonal(diagonal),
            Branch::Antidiagonal(antidiagonal) => Line::Antidiagonal(antidiagonal),
        };
        Outcome::Refuted(Refutation::branch(self.n, line, &children))
    }

    /// The diagonals of each direction that were taken since the beginning.
    fn used(&self, board: &Residual<'_, W>) -> [W::Diagonals; 2] {
        let mut used = [W::Diagonals::EMPTY; 2];
        for row in self.rows.without(board.rows()).iter() {
            let column = board.queen(row);
            used[0] = used[0].or(W::Diagonals::one(column + self.n - 1 - row));
            used[1] = used[1].or(W::Diagonals::one(row + column));
        }
        used
    }
}

/// Tries everything under the budgets of `board`, as long as nodes are left.
fn cheap<W: Width>(board: &Residual<'_, W>, branch: Branch, nodes: &mut u64) -> Cheap {
    if *nodes == 0 {
        return Cheap::GivenUp;
    }
    *nodes -= 1;
    for (row, column) in board.cells(branch) {
        let mut child = *board;
        if child.place(row, column) {
            continue;
        }
        match child.propagate() {
            State::Refuted => {}
            State::Full => return Cheap::Full(child.solution()),
            State::Open(branch) => match cheap(&child, branch, nodes) {
                Cheap::Refuted => {}
                end => return end,
            },
        }
    }
    Cheap::Refuted
}
