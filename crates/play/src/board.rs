//! The board of a request.

use nqueens_proof::board::{Piece, Problem, Square};
use serde::Deserialize;

use crate::{RequestError, check_size};

/// The largest board: its rows are masks of 32 bits.
pub(crate) const LARGEST: usize = 32;

/// A board with placed and blocked squares, as `[row, column]` counted from 1.
#[derive(Debug, Deserialize)]
pub(crate) struct Board {
    n: usize,
    #[serde(default)]
    placed: Vec<[usize; 2]>,
    #[serde(default)]
    blocked: Vec<[usize; 2]>,
}

impl Board {
    /// Returns the problem of completing the board with queens.
    pub(crate) fn problem(&self) -> Result<Problem, RequestError> {
        check_size("the board", self.n, LARGEST)?;
        // A coordinate of 0 wraps to a square off the board, which `Problem::new` refuses.
        let square =
            |&[row, col]: &[usize; 2]| Square::new(row.wrapping_sub(1), col.wrapping_sub(1));
        let squares = |list: &[[usize; 2]]| list.iter().map(square).collect();
        Ok(Problem::new(Piece::Queen, self.n, squares(&self.placed), squares(&self.blocked))?)
    }
}

/// Returns the columns of each row, as a mask, in which a queen may stand: not blocked and not
/// attacked by a placed queen of another square; in the row of a placed queen, only its column.
pub(crate) fn open_columns(problem: &Problem) -> Vec<u32> {
    let n = problem.n();
    let is_open = |square: Square| {
        let attacks = |&queen: &Square| queen != square && Piece::Queen.attacks(n, queen, square);
        problem.allows(square) && !problem.placed().iter().any(attacks)
    };
    let mask =
        |row| (0..n).filter(|&col| is_open(Square::new(row, col))).fold(0, |m, col| m | 1 << col);
    (0..n).map(mask).collect()
}

/// Returns a square as the page writes it.
pub(crate) fn coordinates(square: Square) -> [usize; 2] {
    [square.row + 1, square.col + 1]
}
