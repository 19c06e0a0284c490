//! Backtracking: rows from top to bottom, columns increasing, back to the previous row when no
//! column is left. Answers come in lexicographic order. Each row costs a few operations on masks of
//! n bits.
//!
//! Squares that are blocked or attacked by placed pieces are removed from the rows before the
//! search.

use std::ops::ControlFlow;

use super::{AnswerSink, Counter, Outcome};
use crate::bitset::{BitSet, Words};
use nqueens_proof::board::{Piece, Problem};

/// The largest supported board: sixteen words.
pub(super) const LARGEST: usize = 1024;

pub(super) fn run(problem: &Problem, sink: &mut dyn AnswerSink) -> Outcome {
    let mut counter = Counter::new(sink);
    let flow = match problem.n() {
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
