//! Placements that have passed the checker. Only these are printed as answers.

use std::fmt;

use super::{OccupiedLines, Piece, Problem, Square};

/// A placement of pieces for a problem: at most one in each row, no two attack each other, one on
/// each placed square and none on a blocked one. It can only be created by [`Self::check`] and
/// [`Self::check_solution`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    piece: Piece,
    /// The 0-based column in each row, or [`Self::NONE`] for an empty row.
    columns: Vec<u32>,
    pieces: usize,
}

/// The reason why columns are not a placement for a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// Too few or too many rows.
    Rows {
        /// The number of rows given.
        found: usize,
        /// The number of rows of the board.
        n: usize,
    },
    /// A piece beyond the last column, or in a column too large for 32 bits.
    OffBoard(Square),
    /// Two pieces that attack each other.
    Attack(Square, Square),
    /// A placed square without a piece.
    Missing(Square),
    /// A piece on a blocked square.
    Blocked(Square),
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { found, n } => write!(f, "there are {found} rows on a board of {n}"),
            Self::OffBoard(square) => write!(f, "the piece on {square} is off the board"),
            Self::Attack(one, other) => {
                write!(f, "the pieces on {one} and {other} attack each other")
            }
            Self::Missing(square) => write!(f, "there is no piece on the placed square {square}"),
            Self::Blocked(square) => write!(f, "there is a piece on the blocked square {square}"),
        }
    }
}

impl std::error::Error for PlacementError {}

impl Placement {
    /// Marks a row without a piece.
    const NONE: u32 = u32::MAX;

    /// Checks a solution: `columns` is the 0-based column of the piece in each row. Time and memory
    /// are proportional to n plus the number of placed and blocked squares.
    ///
    /// # Errors
    /// Returns the first error found.
    pub fn check_solution(problem: &Problem, columns: &[usize]) -> Result<Self, PlacementError> {
        Self::check_rows(problem, columns.len(), columns.iter().map(|&col| Some(col)))
    }

    /// Checks a placement that may leave rows empty: `columns` is the 0-based column of the piece
    /// in each row, or `None`.
    ///
    /// # Errors
    /// Returns the first error found.
    pub fn check(problem: &Problem, columns: &[Option<usize>]) -> Result<Self, PlacementError> {
        Self::check_rows(problem, columns.len(), columns.iter().copied())
    }

    fn check_rows(
        problem: &Problem,
        rows: usize,
        columns: impl Iterator<Item = Option<usize>>,
    ) -> Result<Self, PlacementError> {
        let (piece, n) = (problem.piece(), problem.n());
        if rows != n {
            return Err(PlacementError::Rows { found: rows, n });
        }
        let mut found = Self { piece, columns: Vec::with_capacity(n), pieces: 0 };
        let mut lines = OccupiedLines::new(piece, n);
        for (row, col) in columns.enumerate() {
            let Some(col) = col else {
                found.columns.push(Self::NONE);
                continue;
            };
            let square = Square::new(row, col);
            let number = u32::try_from(col).ok().filter(|&number| col < n && number != Self::NONE);
            let number = number.ok_or(PlacementError::OffBoard(square))?;
            if !lines.add(square) {
                let attacked = found.squares().find(|&other| piece.attacks(n, other, square));
                return Err(PlacementError::Attack(attacked.unwrap_or(square), square));
            }
            found.columns.push(number);
            found.pieces += 1;
        }
        let holds = |square: &Square| found.column(square.row) == Some(square.col);
        if let Some(&missing) = problem.placed().iter().find(|square| !holds(square)) {
            return Err(PlacementError::Missing(missing));
        }
        if let Some(&blocked) = problem.blocked().iter().find(|square| holds(square)) {
            return Err(PlacementError::Blocked(blocked));
        }
        Ok(found)
    }

    /// Returns the piece.
    pub const fn piece(&self) -> Piece {
        self.piece
    }

    /// Returns the board size.
    pub const fn n(&self) -> usize {
        self.columns.len()
    }

    /// Returns the number of pieces.
    pub const fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns whether every row has a piece.
    pub const fn is_solution(&self) -> bool {
        self.pieces == self.columns.len()
    }

    /// Returns the 0-based column of the piece in the 0-based `row`, if there is one.
    pub fn column(&self, row: usize) -> Option<usize> {
        Some(self.columns[row]).filter(|&col| col != Self::NONE).map(|col| col as usize)
    }

    /// Returns the 0-based column of the piece in each row, from top to bottom.
    pub fn columns(&self) -> impl Iterator<Item = Option<usize>> {
        (0..self.n()).map(|row| self.column(row))
    }

    /// Returns the squares of the pieces, from top to bottom.
    pub fn squares(&self) -> impl Iterator<Item = Square> {
        // During construction there may be fewer rows than the board has.
        (0..self.columns.len()).filter_map(|row| Some(Square::new(row, self.column(row)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::is_solution;

    #[test]
    fn every_row_by_row_placement_is_checked_as_by_the_plain_checker() {
        for piece in Piece::ALL {
            for n in 0..=5usize {
                let problem = Problem::empty(piece, n);
                for code in 0..n.pow(n as u32) {
                    let columns: Vec<usize> =
                        (0..n).map(|row| code / n.pow(row as u32) % n).collect();
                    let checked = Placement::check_solution(&problem, &columns);
                    assert_eq!(
                        checked.is_ok(),
                        is_solution(piece, &columns),
                        "{piece}: {columns:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn errors_name_the_offending_squares() {
        let at = Square::new;
        let problem = Problem::new(Piece::Queen, 4, vec![at(0, 1)], vec![at(3, 3)])
            .expect("squares on the board");
        let check = |columns: [usize; 4]| Placement::check_solution(&problem, &columns);
        assert!(check([1, 3, 0, 2]).is_ok_and(|found| found.is_solution()));
        assert_eq!(check([1, 3, 0, 4]), Err(PlacementError::OffBoard(at(3, 4))));
        assert_eq!(check([1, 3, 0, 1]), Err(PlacementError::Attack(at(0, 1), at(3, 1))));
        assert_eq!(check([1, 3, 0, usize::MAX]), Err(PlacementError::OffBoard(at(3, usize::MAX))));
        assert_eq!(check([2, 0, 3, 1]), Err(PlacementError::Missing(at(0, 1))));
        assert_eq!(
            Placement::check_solution(&problem, &[1, 3]),
            Err(PlacementError::Rows { found: 2, n: 4 })
        );
        let partial = Placement::check(&problem, &[Some(1), None, None, Some(3)]);
        assert_eq!(partial, Err(PlacementError::Blocked(at(3, 3))));
        let partial =
            Placement::check(&problem, &[Some(1), None, Some(0), None]).expect("a placement");
        assert_eq!((partial.pieces(), partial.is_solution()), (2, false));
        assert_eq!(partial.squares().collect::<Vec<_>>(), [at(0, 1), at(2, 0)]);
    }
}
