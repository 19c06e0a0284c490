//! Backtracking, as in `nqueens_solver::classical`: rows from top to bottom, columns increasing.

use super::{Flow, Kind, Step, Trace, counted, written};
use crate::board::{coordinates, open_columns};
use nqueens_proof::board::{Piece, Square};

pub(super) fn run(trace: &mut Trace<'_>) -> Flow {
    let n = trace.problem.n();
    let mut search = Search { open: open_columns(trace.problem), columns: vec![None; n] };
    search.step(trace, Kind::Start, "Start with the first row.".to_owned(), None)?;
    if let Some(row) = search.open.iter().position(|&open| open == 0) {
        let text = format!("Row {} has no free square, so there is no completion.", row + 1);
        return search.step(trace, Kind::End, text, None);
    }
    search.fill(trace, 0)?;
    let text = format!(
        "All columns of row 1 are done: {} in {}.",
        counted(trace.solutions.len() as u64, "solution"),
        counted(trace.nodes, "node"),
    );
    search.step(trace, Kind::End, text, None)
}

struct Search {
    open: Vec<u32>,
    columns: Vec<Option<usize>>,
}

impl Search {
    fn step(
        &self,
        trace: &mut Trace<'_>,
        kind: Kind,
        text: String,
        marked: Option<Square>,
    ) -> Flow {
        let marked = marked.map(coordinates).into_iter().collect();
        let queens = written(&self.columns);
        trace.push(Step { kind, text, queens, marked, ..Step::default() })
    }

    /// Returns whether a queen above attacks the square.
    fn is_attacked(&self, n: usize, square: Square) -> bool {
        let above = self.columns[..square.row].iter().enumerate();
        above
            .filter_map(|(row, col)| Some(Square::new(row, (*col)?)))
            .any(|queen| Piece::Queen.attacks(n, queen, square))
    }

    fn fill(&mut self, trace: &mut Trace<'_>, row: usize) -> Flow {
        let n = self.columns.len();
        let mut is_dead_end = true;
        for col in 0..n {
            let square = Square::new(row, col);
            if self.open[row] >> col & 1 == 0 || self.is_attacked(n, square) {
                continue;
            }
            is_dead_end = false;
            trace.nodes += 1;
            self.columns[row] = Some(col);
            let text = format!("Row {}: a queen in column {}.", row + 1, col + 1);
            self.step(trace, Kind::Decide, text, Some(square))?;
            if row + 1 == n {
                let columns: Vec<usize> = self.columns.iter().flatten().copied().collect();
                let queens = written(&self.columns);
                trace.solution(&columns, Step { queens, ..Step::default() })?;
            } else {
                self.fill(trace, row + 1)?;
            }
            self.columns[row] = None;
            let text = format!("Back to row {}: take the queen off column {}.", row + 1, col + 1);
            self.step(trace, Kind::Undo, text, Some(square))?;
        }
        if is_dead_end {
            let text = format!("Row {}: the queens above attack every free square.", row + 1);
            let marked = (0..n).map(|col| coordinates(Square::new(row, col))).collect();
            let queens = written(&self.columns);
            trace.push(Step { kind: Kind::Fail, text, queens, marked, ..Step::default() })?;
        }
        Flow::Continue(())
    }
}
