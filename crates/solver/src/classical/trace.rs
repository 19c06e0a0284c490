//! The classical methods step by step, for teaching: the partial solutions of the textbook
//! recursion, and every placement, conflict and return of backtracking. They work by the plain
//! definition of an attack, much more slowly than the methods themselves.

use std::ops::ControlFlow;

use nqueens_proof::board::{Problem, Square};

/// Calls `visit` with each partial solution of the method `columns`: the pieces in the first k
/// columns, from left to right, for k from 0 to n. Those with the same k come in the order in which
/// the method finds them. There is none if placed pieces attack each other.
pub fn partial_solutions(
    problem: &Problem,
    visit: &mut dyn FnMut(&[Square]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if problem.conflict().is_some() {
        return ControlFlow::Continue(());
    }
    extend_columns(problem, &mut Vec::new(), visit)
}

fn extend_columns(
    problem: &Problem,
    pieces: &mut Vec<Square>,
    visit: &mut dyn FnMut(&[Square]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    visit(pieces)?;
    if pieces.len() == problem.n() {
        return ControlFlow::Continue(());
    }
    for row in 0..problem.n() {
        let square = Square::new(row, pieces.len());
        if problem.allows(square) && attacker(problem, pieces, square).is_none() {
            pieces.push(square);
            extend_columns(problem, pieces, visit)?;
            pieces.pop();
        }
    }
    ControlFlow::Continue(())
}

/// A step of backtracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A piece is placed.
    Place(Square),
    /// The square is attacked by a piece above or, if there is none, is excluded by the placed and
    /// blocked squares of the problem.
    Conflict(Square, Option<Square>),
    /// All rows are filled.
    Solution,
    /// A row has no column left: the piece in the row above, if there is one, is removed.
    Backtrack {
        /// The row without a column, counted from 0.
        row: usize,
        /// The piece that is removed.
        removed: Option<Square>,
    },
}

/// Runs backtracking: rows from top to bottom, columns increasing. Calls `visit` with each step and
/// the pieces on the board after it, from the top row on. There is no step if placed pieces attack
/// each other.
pub fn backtracking_steps(
    problem: &Problem,
    visit: &mut dyn FnMut(Step, &[Square]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if problem.conflict().is_some() {
        return ControlFlow::Continue(());
    }
    fill_rows(problem, &mut Vec::new(), visit)
}

fn fill_rows(
    problem: &Problem,
    pieces: &mut Vec<Square>,
    visit: &mut dyn FnMut(Step, &[Square]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let row = pieces.len();
    if row == problem.n() {
        return visit(Step::Solution, pieces);
    }
    for col in 0..problem.n() {
        let square = Square::new(row, col);
        let attacker = attacker(problem, pieces, square);
        if attacker.is_some() || !problem.allows(square) {
            visit(Step::Conflict(square, attacker), pieces)?;
            continue;
        }
        pieces.push(square);
        visit(Step::Place(square), pieces)?;
        fill_rows(problem, pieces, visit)?;
        pieces.pop();
    }
    let removed = pieces.last().copied();
    visit(Step::Backtrack { row, removed }, &pieces[..row.saturating_sub(1)])
}

/// Returns the first of `pieces` that attacks `square`.
fn attacker(problem: &Problem, pieces: &[Square], square: Square) -> Option<Square> {
    let attacks = |other: &Square| problem.piece().attacks(problem.n(), *other, square);
    pieces.iter().copied().find(attacks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::Method;
    use crate::test_support::AllAnswers;
    use nqueens_proof::board::{Piece, Placement, first_attack};

    fn problems() -> Vec<Problem> {
        let boards = (0..=6).map(|n| Problem::empty(Piece::Queen, n));
        let decided = Problem::new(
            Piece::Superqueen,
            6,
            vec![Square::new(1, 3)],
            vec![Square::new(0, 0), Square::new(5, 5)],
        );
        let rooks = Problem::empty(Piece::Rook, 4);
        boards.chain([rooks, decided.expect("on the board")]).collect()
    }

    #[test]
    fn partial_solutions_are_those_of_the_method() {
        for problem in problems() {
            let n = problem.n();
            let (mut nodes, mut complete) = (0, Vec::new());
            let flow = partial_solutions(&problem, &mut |pieces| {
                assert!(first_attack(problem.piece(), n, pieces).is_none());
                assert!(pieces.iter().enumerate().all(|(column, piece)| piece.col == column));
                nodes += u64::from(!pieces.is_empty());
                if pieces.len() == n {
                    let mut columns = vec![0; n];
                    for piece in pieces {
                        columns[piece.row] = piece.col;
                    }
                    complete.push(columns);
                }
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            let mut all = AllAnswers::default();
            let outcome = Method::Columns.run(&problem, &mut all).expect("it suits");
            assert_eq!((nodes, complete), (outcome.tried, all.0), "n = {n}");
        }
    }

    #[test]
    fn steps_of_backtracking_replay_to_its_solutions() {
        for problem in problems() {
            let n = problem.n();
            let (mut board, mut solutions): (Vec<Square>, Vec<Vec<usize>>) = Default::default();
            let flow = backtracking_steps(&problem, &mut |step, pieces| {
                match step {
                    Step::Place(square) => {
                        assert_eq!(square.row, board.len());
                        board.push(square);
                    }
                    Step::Conflict(square, Some(other)) => {
                        assert!(
                            problem.piece().attacks(n, other, square) && board.contains(&other)
                        );
                    }
                    Step::Conflict(square, None) => assert!(!problem.allows(square)),
                    Step::Backtrack { row, removed } => {
                        assert_eq!(row, board.len());
                        assert_eq!(board.pop(), removed);
                    }
                    Step::Solution => {
                        let columns: Vec<usize> = board.iter().map(|piece| piece.col).collect();
                        assert!(Placement::check_solution(&problem, &columns).is_ok());
                        solutions.push(columns);
                        assert_eq!(pieces, board);
                        // The last piece is removed without a step of its own.
                        board.pop();
                        return ControlFlow::Continue(());
                    }
                }
                assert_eq!(pieces, board, "{step:?}");
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            let mut all = AllAnswers::default();
            Method::Backtracking.run(&problem, &mut all).expect("it suits");
            assert_eq!(solutions, all.0, "n = {n}");
        }
    }
}
