//! The textbook recursion (Abelson and Sussman, exercise 2.42): all ways to fill the first k
//! columns, each extended by every safe row of the next column. Unlike `nqueens_solver`, which
//! holds one way at a time, this keeps the whole list, as the textbook does.

use nqueens_proof::board::{Piece, Square};

use super::{Flow, Kind, Step, Trace, counted, list, written};
use crate::board::coordinates;

pub(super) fn run(trace: &mut Trace<'_>) -> Flow {
    let problem = trace.problem;
    let n = problem.n();
    // The row of the queen in each column, from left to right.
    let mut ways: Vec<Vec<usize>> = vec![Vec::new()];
    let mut lists = vec![1];
    let text = "Start with one list: no queen in no column.".to_owned();
    let queens = vec![0; n];
    trace.push(Step { text, queens, lists: lists.clone(), ..Step::default() })?;
    for col in 0..n {
        let mut longer: Vec<Vec<usize>> = Vec::new();
        lists.push(0);
        for (taken, way) in ways.iter().enumerate() {
            let is_safe = |&row: &usize| {
                let square = Square::new(row, col);
                let mut queens = way.iter().enumerate().map(|(col, &row)| Square::new(row, col));
                problem.allows(square)
                    && !queens.any(|queen| Piece::Queen.attacks(n, queen, square))
            };
            let safe: Vec<usize> = (0..n).filter(is_safe).collect();
            trace.nodes += safe.len() as u64;
            longer.extend(safe.iter().map(|&row| way.iter().copied().chain([row]).collect()));
            lists[col + 1] = longer.len();
            let which = match col {
                0 => "The empty board".to_owned(),
                _ => format!(
                    "Placement {} of {} with {}",
                    taken + 1,
                    ways.len(),
                    counted(col as u64, "column")
                ),
            };
            let text = match safe.len() {
                0 => format!("{which}: column {} has no safe row.", col + 1),
                1 => format!("{which}: in column {}, row {} is safe.", col + 1, safe[0] + 1),
                _ => {
                    let rows = list(safe.iter().map(|row| row + 1));
                    format!("{which}: in column {}, rows {rows} are safe.", col + 1)
                }
            };
            trace.push(Step {
                kind: if safe.is_empty() { Kind::Fail } else { Kind::Infer },
                text,
                queens: written(&by_row(n, way)),
                marked: safe.iter().map(|&row| coordinates(Square::new(row, col))).collect(),
                lists: lists.clone(),
                ..Step::default()
            })?;
        }
        ways = longer;
    }
    for way in &ways {
        let columns = by_row(n, way);
        let queens = written(&columns);
        let columns: Vec<usize> = columns.into_iter().flatten().collect();
        trace.solution(&columns, Step { queens, lists: lists.clone(), ..Step::default() })?;
    }
    let text = format!("The last list has {}.", counted(ways.len() as u64, "solution"));
    trace.push(Step { kind: Kind::End, text, queens: vec![0; n], lists, ..Step::default() })
}

/// Returns the column of the queen in each row.
fn by_row(n: usize, way: &[usize]) -> Vec<Option<usize>> {
    let mut columns = vec![None; n];
    for (col, &row) in way.iter().enumerate() {
        columns[row] = Some(col);
    }
    columns
}
