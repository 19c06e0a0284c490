//! Backtracking: rows from top to bottom, columns increasing, back to the previous row when no
//! column is left. Answers come in lexicographic order. Each row costs a few operations on masks of
//! n bits.
//!
//! Squares that are blocked or attacked by placed pieces are removed from the rows before the
//! search. Beyond 1024 columns, or if most rows have a placed piece, only the open rows are
//! searched, with lists of their allowed columns in place of masks.

use std::ops::ControlFlow;

use super::{AnswerSink, Counter, Outcome};
use crate::bitset::{BitSet, Words};
use crate::open_board::{Diagonals, OpenBoard, open_rows};
use nqueens_proof::board::{Piece, Problem, Square};

/// The largest supported number of open rows.
pub(super) const LARGEST: usize = 1024;

pub(super) fn run(problem: &Problem, sink: &mut dyn AnswerSink) -> Outcome {
    let mut counter = Counter::new(sink);
    let n = problem.n();
    let flow = match n {
        _ if n > LARGEST || 2 * open_rows(problem) < n => search_open_rows(problem, &mut counter),
        ..=64 => search::<1>(problem, &mut counter),
        65..=128 => search::<2>(problem, &mut counter),
        129..=256 => search::<4>(problem, &mut counter),
        _ => search::<16>(problem, &mut counter),
    };
    counter.outcome(flow)
}

/// The squares of a row that are attacked by the pieces above it.
#[derive(Clone, Copy, Debug)]
struct Attacks<const W: usize> {
    columns: Words<W>,
    /// Diagonals that lead to the next higher and to the next lower column.
    up: Words<W>,
    down: Words<W>,
    /// The pieces one row and two rows above, which matter for knight moves.
    last: Words<W>,
    before_last: Words<W>,
}

impl<const W: usize> Attacks<W> {
    const NONE: Self = Self {
        columns: Words::EMPTY,
        up: Words::EMPTY,
        down: Words::EMPTY,
        last: Words::EMPTY,
        before_last: Words::EMPTY,
    };

    /// Returns the attacks on the row below if the pieces in this one are `here`.
    #[inline]
    fn below(self, piece: Piece, n: usize, here: Words<W>) -> Self {
        let columns = self.columns.or(here);
        let (up, down) = (self.up.or(here), self.down.or(here));
        let (up, down) = match piece {
            Piece::Rook => (Words::EMPTY, Words::EMPTY),
            Piece::Queen | Piece::Superqueen => (up.incremented(), down.decremented()),
            Piece::Toroidal => (up.rotated_up(n), down.rotated_down(n)),
        };
        Self { columns, up, down, last: here, before_last: self.last }
    }

    /// Returns all attacked columns.
    #[inline]
    fn all(self, piece: Piece) -> Words<W> {
        let lines = self.columns.or(self.up).or(self.down);
        if piece != Piece::Superqueen {
            return lines;
        }
        let (near, far) = (self.last, self.before_last);
        lines
            .or(near.incremented().incremented())
            .or(near.decremented().decremented())
            .or(far.incremented())
            .or(far.decremented())
    }
}

/// Returns the columns of each row in which a piece may stand: not blocked and not attacked by a
/// placed piece of another row; in the row of a placed piece, only its column.
fn open_columns<const W: usize>(problem: &Problem) -> Vec<Words<W>> {
    let (piece, n) = (problem.piece(), problem.n());
    let mut rows = vec![Words::<W>::below(n); n];
    for square in problem.blocked() {
        rows[square.row] = rows[square.row].without(Words::one(square.col));
    }
    for square in problem.placed() {
        let here = Words::one(square.col);
        rows[square.row] = rows[square.row].and(here);
        // Down from the piece, and up from it: attacks are symmetric.
        let start = Attacks::NONE.below(piece, n, here);
        let mut attacks = start;
        for row in &mut rows[square.row + 1..] {
            *row = row.without(attacks.all(piece));
            attacks = attacks.below(piece, n, Words::EMPTY);
        }
        attacks = start;
        for row in rows[..square.row].iter_mut().rev() {
            *row = row.without(attacks.all(piece));
            attacks = attacks.below(piece, n, Words::EMPTY);
        }
    }
    rows
}

fn search<const W: usize>(problem: &Problem, counter: &mut Counter<'_>) -> ControlFlow<()> {
    let (piece, n) = (problem.piece(), problem.n());
    let open = open_columns::<W>(problem);
    if n == 0 {
        return counter.sink.answer(&[]);
    }
    if open.iter().any(|row| row.is_empty()) {
        return ControlFlow::Continue(());
    }
    let mut columns = vec![0; n];
    let mut attacks = vec![Attacks::<W>::NONE; n];
    // The columns left to try in each row.
    let mut left = open.clone();
    let mut row = 0;
    loop {
        let Some(col) = left[row].pop() else {
            match row.checked_sub(1) {
                Some(above) => row = above,
                None => return ControlFlow::Continue(()),
            }
            continue;
        };
        counter.count()?;
        columns[row] = col;
        if row + 1 == n {
            counter.sink.answer(&columns)?;
            continue;
        }
        attacks[row + 1] = attacks[row].below(piece, n, Words::one(col));
        row += 1;
        left[row] = open[row].without(attacks[row].all(piece));
    }
}

/// Searches the open rows only.
fn search_open_rows(problem: &Problem, counter: &mut Counter<'_>) -> ControlFlow<()> {
    let board = OpenBoard::of(problem);
    let size = board.size();
    let mut diagonals = Diagonals::new(problem);
    let mut is_taken = vec![false; size];
    // For each row the number of columns tried, and the column chosen.
    let mut tried = vec![0; size];
    let mut chosen: Vec<usize> = Vec::with_capacity(size);
    loop {
        let row = chosen.len();
        if row == size {
            counter.sink.answer(&board.completed(problem, chosen.iter().copied()))?;
        } else {
            let is_free = |&column: &usize| {
                let square = board.square(row, column);
                let is_attacked_by_a_knight =
                    problem.piece() == Piece::Superqueen && leapt_to(&board, &chosen, square);
                !is_taken[column] && !diagonals.attack(square) && !is_attacked_by_a_knight
            };
            let rest = &board.allowed(row)[tried[row]..];
            if let Some(skipped) = rest.iter().position(is_free) {
                let column = rest[skipped];
                tried[row] += skipped + 1;
                is_taken[column] = true;
                diagonals.occupy(board.square(row, column));
                chosen.push(column);
                counter.count()?;
                continue;
            }
            tried[row] = 0;
        }
        let Some(column) = chosen.pop() else { return ControlFlow::Continue(()) };
        is_taken[column] = false;
        diagonals.free(board.square(chosen.len(), column));
    }
}

/// Returns whether a chosen piece above is a knight's move away. They are at most two open rows up.
fn leapt_to(board: &OpenBoard, chosen: &[usize], square: Square) -> bool {
    chosen.iter().enumerate().rev().take(2).any(|(row, &column)| {
        let above = board.square(row, column);
        matches!((square.row - above.row, square.col.abs_diff(above.col)), (1, 2) | (2, 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{AllAnswers, random_problem};

    #[test]
    fn a_search_of_the_open_rows_gives_the_same_answers_in_the_same_order() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut compared = 0;
        while compared < 400 {
            let n = random.usize(0..=8);
            let piece = random.choice(Piece::ALL).expect("there are pieces");
            let problem = random_problem(&mut random, piece, n, (2, 8));
            if problem.conflict().is_some() {
                continue;
            }
            compared += 1;
            let (mut masks, mut lists) = (AllAnswers::default(), AllAnswers::default());
            assert!(search::<1>(&problem, &mut Counter::new(&mut masks)).is_continue());
            assert!(search_open_rows(&problem, &mut Counter::new(&mut lists)).is_continue());
            assert_eq!(masks.0, lists.0, "{problem:?}");
        }
    }
}
