//! `ilp-trunc`: depth first over the rows. At each node, only the linear relaxation of the program
//! that minimises the row's column is solved. Its value, rounded up, is a lower bound of the
//! column, and the first free column from there is tried. If no solution follows, the columns up to
//! the tried one are forbidden, and the bound of the row is computed again.

use super::board::LinearBoard;
use super::{Claim, Run};
use crate::ilp::model::Direction;
use crate::ilp::solver::TOLERANCE;
use crate::verdict::Unproven;

pub(super) fn run(run: &mut Run<'_>) -> Claim {
    let mut board = LinearBoard::new(run, Direction::Minimise);
    let mut columns = Vec::new();
    Ok(descend(run, &mut board, &mut columns)?.then_some(columns))
}

/// Returns whether the rows from `columns.len()` on can be filled; if so, `columns` is the first
/// solution.
fn descend(
    run: &mut Run<'_>,
    board: &mut LinearBoard,
    columns: &mut Vec<usize>,
) -> Result<bool, Unproven> {
    let (n, row) = (run.problem.n(), columns.len());
    if row == n {
        return Ok(true);
    }
    let entry = board.mark();
    loop {
        board.set_costs((0..n).map(|col| (row * n + col, col as f64)));
        let Some(vertex) = board.solve(run, row)? else { break };
        let bound = (vertex.objective - TOLERANCE).ceil();
        let free = |&col: &usize| board.is_free(row * n + col);
        let Some(column) = (0..n).filter(free).find(|&col| col as f64 >= bound) else { break };
        let node = board.mark();
        run.nodes += 1;
        columns.push(column);
        if board.place(row * n + column) && descend(run, board, columns)? {
            return Ok(true);
        }
        columns.pop();
        board.undo(node);
        for col in 0..=column {
            if board.is_free(row * n + col) {
                board.forbid(row * n + col);
            }
        }
    }
    board.undo(entry);
    Ok(false)
}
