//! The methods that find one solution if none is chosen: one that is usually fast and, if that does
//! not decide the board, constraint programming.

use nqueens_proof::board::{Piece, Problem};

use crate::classical::Method;
use crate::cp;

/// Up to this number of open rows, backtracking completes most boards in a short time. Above it,
/// random moves usually find a completion sooner.
const BACKTRACKING_PAYS: usize = 24;

/// The nodes after which the default gives up backtracking: about a quarter of a second.
const BACKTRACKING_NODES: u64 = 20_000_000;

/// The moves after which the default gives up local search, and the number of columns that they
/// examine at most: less than half a second.
const LOCAL_SEARCH_MOVES: u64 = 100_000;
const LOCAL_SEARCH_COLUMNS: u64 = 200_000_000;

/// The method that is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAttempt {
    /// A classical method, which gives up after this number of nodes or moves.
    Classical(Method, u64),
    /// Constraint programming.
    Cp,
}

/// The methods for a board, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultMethods {
    /// The method that is tried first.
    pub first: FirstAttempt,
    /// True if constraint programming follows after the first method gives up.
    pub then_cp: bool,
}

impl DefaultMethods {
    /// Returns the methods for a board.
    pub fn of(problem: &Problem) -> Self {
        use FirstAttempt::{Classical, Cp};
        let alone = |first| Self { first, then_cp: false };
        if Method::Formula.suits(problem).is_ok() {
            return alone(Classical(Method::Formula, u64::MAX));
        }
        match problem.piece() {
            Piece::Queen => {}
            Piece::Rook if cp::suits(problem) => return alone(Cp),
            _ => return alone(Classical(Method::Backtracking, u64::MAX)),
        }
        let then_cp = cp::suits(problem);
        let first = if cp::open_rows(problem) <= BACKTRACKING_PAYS {
            Classical(Method::Backtracking, BACKTRACKING_NODES)
        } else {
            let affordable = LOCAL_SEARCH_COLUMNS / problem.n() as u64;
            let moves =
                if then_cp { LOCAL_SEARCH_MOVES.min(affordable) } else { Method::USUAL_MOVES };
            Classical(Method::LocalSearch { seed: 1, moves }, u64::MAX)
        };
        Self { first, then_cp }
    }
}

#[cfg(test)]
mod tests {
    use nqueens_proof::board::Square;

    use super::*;

    #[test]
    fn every_board_has_methods_that_suit_it() {
        for piece in Piece::ALL {
            for n in [1, 8, 24, 25, 40, 1001] {
                for blocked in [vec![], vec![Square::new(0, 0)]] {
                    let problem = Problem::new(piece, n, vec![], blocked).expect("on the board");
                    let methods = DefaultMethods::of(&problem);
                    match methods.first {
                        FirstAttempt::Classical(method, _) if n <= 1000 => {
                            assert_eq!(method.suits(&problem), Ok(()), "{problem:?}");
                        }
                        FirstAttempt::Classical(..) => {}
                        FirstAttempt::Cp => assert!(cp::suits(&problem), "{problem:?}"),
                    }
                    assert!(!methods.then_cp || cp::suits(&problem), "{problem:?}");
                }
            }
        }
    }

    #[test]
    fn boards_of_queens_with_decided_squares_are_decided_by_cp_in_the_end() {
        for n in [8, 40] {
            let blocked = vec![Square::new(0, 0)];
            let problem = Problem::new(Piece::Queen, n, vec![], blocked).expect("on the board");
            assert!(DefaultMethods::of(&problem).then_cp, "n = {n}");
        }
    }
}
