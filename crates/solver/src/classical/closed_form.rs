//! Solutions in closed form: of queens for n = 1 and every n ≥ 4, of toroidal queens wherever there
//! is one, and of rooks.
//!
//! Queens: for even n there are two constructions, at least one of which applies:
//!
//! - A, if n mod 6 ≠ 2: the queen of row i ≤ n/2 is in column 2i, that of row n/2 + i in column
//!   2i - 1;
//! - B, if n mod 6 ≠ 0: the queen of row i ≤ n/2 is in column 1 + ((2i + n/2 - 3) mod n), that of
//!   row n + 1 - i in the opposite column, n - ((2i + n/2 - 3) mod n).
//!
//! Neither has a queen on the main diagonal, so for odd n a solution of size n - 1 and the corner
//! (n, n) form a solution. For n = 2 and n = 3 there is no solution.
//!
//! Toroidal queens: if 2 and 3 do not divide n, the queen of row i is in column 1 + (2(i - 1) mod
//! n). For all other n ≥ 2 there is no solution (Pólya).
//!
//! Constant time per row; rows i and columns are counted from 1.
//!
//! E. Pauls, *Das Maximalproblem der Damen auf dem Schachbrete*, Deutsche Schachzeitung 29 (1874);
//! E. J. Hoffman, J. C. Loessi and R. C. Moore, *Constructions for the solution of the m queens
//! problem*, Mathematics Magazine 42 (1969), 66–72. G. Pólya, *Über die "doppelt-periodischen"
//! Lösungen des n-Damen-Problems*, in W. Ahrens, Mathematische Unterhaltungen und Spiele, volume 2
//! (1918), 364–374.

use nqueens_proof::board::Piece;

use super::{AnswerSink, Ending, Outcome};

/// Returns the 0-based column of the queen in the 0-based `row` of the solution of size `n`, or
/// `None` for n = 2 and n = 3, and for rows below the board.
pub fn column(n: usize, row: usize) -> Option<usize> {
    if row >= n || n == 2 || n == 3 {
        return None;
    }
    if n % 2 == 1 {
        return if row == n - 1 { Some(row) } else { Some(even_column(n - 1, row)) };
    }
    Some(even_column(n, row))
}

/// Returns the column for even `n` ≥ 4.
fn even_column(n: usize, row: usize) -> usize {
    let half = n / 2;
    if n % 6 != 2 {
        return if row < half { 2 * row + 1 } else { 2 * (row - half) };
    }
    // With i = row + 1: 2i + n/2 - 3.
    let skewed = |row: usize| (2 * row + half - 1) % n;
    if row < half { skewed(row) } else { n - 1 - skewed(n - 1 - row) }
}

/// Returns whether there is a formula for `piece`.
pub(super) const fn places(piece: Piece) -> bool {
    !matches!(piece, Piece::Superqueen)
}

/// Returns the 0-based column of the piece in the 0-based `row`, or `None` if there is no solution.
fn column_of(piece: Piece, n: usize, row: usize) -> Option<usize> {
    match piece {
        Piece::Rook => Some(row),
        Piece::Toroidal => {
            (n == 1 || !n.is_multiple_of(2) && !n.is_multiple_of(3)).then(|| 2 * row % n)
        }
        Piece::Queen | Piece::Superqueen => column(n, row),
    }
}

/// Passes the solution of a piece that has a formula to `sink`.
pub(super) fn run(piece: Piece, n: usize, sink: &mut dyn AnswerSink) -> Outcome {
    let columns: Option<Vec<usize>> = (0..n).map(|row| column_of(piece, n, row)).collect();
    let ending = match columns {
        None => Ending::Exhausted,
        Some(columns) if sink.answer(&columns).is_break() => Ending::Stopped,
        Some(_) if n <= 1 => Ending::Exhausted,
        Some(_) => Ending::GaveUp,
    };
    Outcome::new(ending, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::{Placement, Problem, is_solution};

    #[test]
    fn every_board_up_to_1000_except_2_and_3_and_some_large_ones_have_a_solution() {
        let large = [10_000, 10_001, 10_002, 10_003, 10_004, 10_005, 99_998, 1_000_000, 1_000_001];
        for n in (0..=1000).chain(large) {
            let columns: Option<Vec<usize>> = (0..n).map(|row| column(n, row)).collect();
            assert_eq!(columns.is_none(), n == 2 || n == 3, "n = {n}");
            if let Some(columns) = columns {
                let checked = Placement::check_solution(&Problem::empty(Piece::Queen, n), &columns);
                assert!(checked.is_ok(), "n = {n}: {checked:?}");
                assert!(n > 200 || is_solution(Piece::Queen, &columns), "n = {n}");
            }
        }
    }

    #[test]
    fn rooks_and_toroidal_queens_have_a_solution_where_backtracking_finds_one() {
        use crate::classical::{Method, first_answer};

        for piece in [Piece::Rook, Piece::Toroidal] {
            for n in 0..=13 {
                let problem = Problem::empty(piece, n);
                let found = first_answer(Method::Formula, &problem);
                let expected = first_answer(Method::Backtracking, &problem);
                assert_eq!(found.is_some(), expected.is_some(), "{piece} n = {n}");
                let columns = found.unwrap_or_default();
                assert!(is_solution(piece, &columns), "{piece} n = {n}");
            }
            for n in [125, 1001] {
                let columns: Vec<usize> =
                    (0..n).filter_map(|row| column_of(piece, n, row)).collect();
                let checked = Placement::check_solution(&Problem::empty(piece, n), &columns);
                assert!(checked.is_ok(), "{piece} n = {n}: {checked:?}");
            }
        }
    }
}
