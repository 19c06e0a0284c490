//! Rounding of a solver's values to queens, which the checker then validates in integers.

use super::model::Model;
use nqueens_proof::board::{Placement, Problem, Square};

/// Rounds each value to the nearer of 0 and 1. The result may violate rows of the program;
/// feasibility is checked later.
pub(super) fn rounded(values: &[f64]) -> Vec<bool> {
    values.iter().map(|&value| value > 0.5).collect()
}

/// Returns the squares whose variable is 1, row by row, on the board of size `n`. Variables beyond
/// the board are ignored.
pub(super) fn squares(n: usize, values: &[bool]) -> Vec<Square> {
    let on = values.iter().take(n * n).enumerate().filter(|&(_, &on)| on);
    on.map(|(index, _)| Square::new(index / n, index % n)).collect()
}

/// Returns the solution of `problem` encoded by `values`, as the 0-based column of each row, if
/// there is one.
pub(super) fn solution(problem: &Problem, values: &[bool]) -> Option<Vec<usize>> {
    let squares = squares(problem.n(), values);
    let one_a_row =
        squares.len() == problem.n() && squares.iter().enumerate().all(|(row, s)| s.row == row);
    let columns: Vec<usize> = squares.iter().map(|square| square.col).collect();
    (one_a_row && completes(problem, &columns)).then_some(columns)
}

/// Returns the non-attacking set of `problem` encoded by `values`, if there is one.
pub(super) fn non_attacking(problem: &Problem, values: &[bool]) -> Option<Vec<Square>> {
    let squares = squares(problem.n(), values);
    let mut columns = vec![None; problem.n()];
    for square in &squares {
        columns[square.row] = Some(square.col);
    }
    let one_a_row = columns.iter().flatten().count() == squares.len();
    (one_a_row && Placement::check(problem, &columns).is_ok()).then_some(squares)
}

/// Returns whether the checker accepts `columns` as a solution of `problem`.
pub fn completes(problem: &Problem, columns: &[usize]) -> bool {
    Placement::check_solution(problem, columns).is_ok()
}

/// Returns the values of the variables of `model` at a solution; variables beyond the board are 0.
pub(super) fn values_of(model: &Model, columns: &[usize]) -> Vec<bool> {
    let mut values = vec![false; model.columns.len()];
    for (row, &col) in columns.iter().enumerate() {
        values[row * columns.len() + col] = true;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::Piece;

    #[test]
    fn values_are_a_solution_only_if_the_checker_accepts_them() {
        let problem = Problem::empty(Piece::Queen, 4);
        let values = |on: &[usize]| (0..16).map(|k| on.contains(&k)).collect::<Vec<bool>>();
        assert_eq!(solution(&problem, &values(&[1, 7, 8, 14])), Some(vec![1, 3, 0, 2]));
        for wrong in [&[1, 7, 8][..], &[1, 7, 8, 9, 14], &[0, 5, 10, 15], &[1, 2, 8, 14]] {
            assert_eq!(solution(&problem, &values(wrong)), None, "{wrong:?}");
        }
        let other =
            Problem::new(Piece::Queen, 4, vec![Square::new(0, 2)], vec![]).expect("on the board");
        assert_eq!(solution(&other, &values(&[1, 7, 8, 14])), None, "a placed queen is missing");
        let blocked =
            Problem::new(Piece::Queen, 4, vec![], vec![Square::new(0, 1)]).expect("on the board");
        assert_eq!(solution(&blocked, &values(&[1, 7, 8, 14])), None, "a blocked square is used");
        assert_eq!(non_attacking(&blocked, &values(&[7, 8])).map(|s| s.len()), Some(2));
        assert_eq!(non_attacking(&problem, &values(&[0, 5])), None);
    }
}
