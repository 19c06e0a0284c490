//! Local search by min-conflicts: every row has a queen. A randomly chosen attacked queen moves
//! within its row to a square attacked by the fewest queens, with ties broken at random, until no
//! queen is attacked.
//!
//! The start is a random permutation in which most queens attack none before them (Sosič and Gu),
//! so that few have to move: some hundred of 100,000. A move examines every column of one row. A
//! run that gets stuck is restarted from another start; after all its moves the search gives up,
//! which proves nothing.
//!
//! Placed queens never move, and no queen moves to a blocked square.
//!
//! S. Minton, M. D. Johnston, A. B. Philips and P. Laird, *Minimizing conflicts: a heuristic repair
//! method for constraint satisfaction and scheduling problems*, Artificial Intelligence 58 (1992),
//! 161–205. R. Sosič and J. Gu, *3,000,000 queens in less than one minute*, SIGART Bulletin 2
//! (1991), 22–24.

use std::ops::ControlFlow;

use fastrand::Rng;

use super::{AnswerSink, Ending, Outcome};
use crate::open_board::row_of;
use nqueens_proof::board::{Problem, Square};

/// Number of random columns tried for a queen of the start so that it attacks none before it.
const TRIES_PER_ROW: usize = 100;
/// Number of columns examined between two reports to the answer sink: a few milliseconds.
const COLUMNS_PER_REPORT: usize = 1 << 22;

/// Returns the number of moves from one start.
const fn moves_from_a_start(n: usize) -> u64 {
    100 + 10 * n as u64
}

pub(super) fn run(problem: &Problem, seed: u64, moves: u64, sink: &mut dyn AnswerSink) -> Outcome {
    let Some(board) = Board::new(problem) else {
        return Outcome::new(Ending::Exhausted, 0);
    };
    let mut search =
        Search { board, rng: Rng::with_seed(seed), sink, moves: 0, columns_examined: 0 };
    let mut best: Option<Vec<Option<usize>>> = None;
    let ending = loop {
        search.start();
        let until = search.moves.saturating_add(moves_from_a_start(problem.n())).min(moves);
        let repair = search.repair(until);
        if repair == Repair::Solved {
            let ending = if search.sink.answer(&search.board.queens).is_break() {
                Ending::Stopped
            } else {
                Ending::GaveUp
            };
            return Outcome::new(ending, search.moves);
        }
        let non_attacking = search.board.non_attacking();
        let queens = |columns: &[Option<usize>]| columns.iter().flatten().count();
        if best.as_ref().is_none_or(|best| queens(best) < queens(&non_attacking)) {
            best = Some(non_attacking);
        }
        match repair {
            Repair::Interrupted => break Ending::Stopped,
            _ if search.moves >= moves => break Ending::GaveUp,
            _ => {}
        }
    };
    Outcome { ending, tried: search.moves, best }
}

/// The end of the moves from one start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repair {
    Solved,
    Stuck,
    Interrupted,
}

/// The queens, and the number of queens on each line.
struct Board<'a> {
    problem: &'a Problem,
    n: usize,
    /// True if the queen of a row is fixed.
    fixed: Vec<bool>,
    /// The column of the queen in each row.
    queens: Vec<usize>,
    columns: Vec<u32>,
    /// By row + column, and by row + n - 1 - column.
    sums: Vec<u32>,
    differences: Vec<u32>,
}

impl<'a> Board<'a> {
    /// Creates a board with the placed queens, none of which is counted on the lines yet. Returns
    /// `None` if all squares of a row are blocked.
    fn new(problem: &'a Problem) -> Option<Self> {
        let n = problem.n();
        let mut board = Self {
            problem,
            n,
            fixed: vec![false; n],
            queens: vec![0; n],
            columns: vec![0; n],
            sums: vec![0; 2 * n],
            differences: vec![0; 2 * n],
        };
        for square in problem.placed() {
            board.fixed[square.row] = true;
            board.queens[square.row] = square.col;
        }
        // Only rows with blocked squares are visited, and there are at most as many as blocked
        // squares.
        let full = problem.blocked().chunk_by(|a, b| a.row == b.row).any(|row| row.len() == n);
        (!full).then_some(board)
    }

    fn clear(&mut self) {
        for counts in [&mut self.columns, &mut self.sums, &mut self.differences] {
            counts.fill(0);
        }
    }

    fn put(&mut self, row: usize, col: usize) {
        self.queens[row] = col;
        self.columns[col] += 1;
        self.sums[row + col] += 1;
        self.differences[row + self.n - 1 - col] += 1;
    }

    fn put_fixed(&mut self) {
        for square in self.problem.placed() {
            self.put(square.row, square.col);
        }
    }

    fn take(&mut self, row: usize) {
        let col = self.queens[row];
        self.columns[col] -= 1;
        self.sums[row + col] -= 1;
        self.differences[row + self.n - 1 - col] -= 1;
    }

    /// Returns the column in each row of the placed queens and, from top to bottom, of those others
    /// that attack no earlier queen. Afterwards only these queens are counted on the lines.
    fn non_attacking(&mut self) -> Vec<Option<usize>> {
        self.clear();
        self.put_fixed();
        let stays = |board: &mut Self, row: usize| {
            let col = board.queens[row];
            if !board.fixed[row] {
                if board.on_lines(row, col) > 0 {
                    return None;
                }
                board.put(row, col);
            }
            Some(col)
        };
        (0..self.n).map(|row| stays(self, row)).collect()
    }

    /// Returns the number of queens on the lines through a square, counted once per line.
    #[inline]
    fn on_lines(&self, row: usize, col: usize) -> u32 {
        self.columns[col] + self.sums[row + col] + self.differences[row + self.n - 1 - col]
    }

    /// Returns whether the queen of a row is attacked. The queen itself counts on its three lines.
    fn is_attacked(&self, row: usize) -> bool {
        self.on_lines(row, self.queens[row]) > 3
    }

    /// Returns the blocked squares of a row.
    fn blocked(&self, row: usize) -> &'a [Square] {
        row_of(self.problem.blocked(), row)
    }

    /// Returns the column of a row attacked by the fewest queens, with ties broken at random. The
    /// row's own queen must not be counted on the lines, and some square of the row must not be
    /// blocked.
    fn least_attacked(&self, row: usize, rng: &mut Rng) -> usize {
        let blocked = self.blocked(row);
        let (mut least, mut ties, mut best) = (u32::MAX, 0, 0);
        for col in 0..self.n {
            let queens = self.on_lines(row, col);
            if queens > least || blocked.binary_search(&Square::new(row, col)).is_ok() {
                continue;
            }
            ties = if queens < least { 1 } else { ties + 1 };
            least = queens;
            if ties == 1 || rng.u32(0..ties) == 0 {
                best = col;
            }
        }
        best
    }
}

struct Search<'a> {
    board: Board<'a>,
    rng: Rng,
    sink: &'a mut dyn AnswerSink,
    moves: u64,
    /// Number of columns examined since the last report.
    columns_examined: usize,
}

impl Search<'_> {
    /// Sets up a new start: the placed queens, then those for which a free square is found, then
    /// the others.
    fn start(&mut self) {
        let Self { board, rng, .. } = self;
        board.clear();
        board.put_fixed();
        let mut columns: Vec<usize> = (0..board.n).filter(|&col| board.columns[col] == 0).collect();
        let mut later = Vec::new();
        for row in 0..board.n {
            if board.fixed[row] {
                continue;
            }
            let blocked = board.blocked(row);
            let is_free = |col: usize| {
                board.on_lines(row, col) == 0
                    && blocked.binary_search(&Square::new(row, col)).is_err()
            };
            // There are at least as many free columns as remaining rows.
            let mut tries = (0..TRIES_PER_ROW).map(|_| rng.usize(0..columns.len()));
            match tries.find(|&i| is_free(columns[i])) {
                Some(i) => board.put(row, columns.swap_remove(i)),
                None => later.push(row),
            }
        }
        for row in later {
            let col = board.least_attacked(row, rng);
            board.put(row, col);
        }
    }

    /// Moves attacked queens until none is left, or until `until` moves were made in all.
    fn repair(&mut self, until: u64) -> Repair {
        let mut candidates = Candidates::of(&self.board);
        while let Some((chosen, row)) = candidates.choose(&mut self.rng) {
            if !self.board.is_attacked(row) {
                candidates.clear(chosen);
                continue;
            }
            if self.moves >= until {
                return Repair::Stuck;
            }
            self.board.take(row);
            let col = self.board.least_attacked(row, &mut self.rng);
            self.board.put(row, col);
            self.moves += 1;
            if self.board.is_attacked(row) {
                let attacks = |other: usize, queen: usize| {
                    queen == col || row.abs_diff(other) == col.abs_diff(queen)
                };
                let queens = self.board.queens.iter().enumerate();
                queens
                    .filter(|&(other, &queen)| attacks(other, queen))
                    .for_each(|(other, _)| candidates.add(other));
            }
            if self.report().is_break() {
                return Repair::Interrupted;
            }
        }
        Repair::Solved
    }

    fn report(&mut self) -> ControlFlow<()> {
        self.columns_examined += self.board.n;
        if self.columns_examined < COLUMNS_PER_REPORT {
            return ControlFlow::Continue(());
        }
        self.columns_examined = 0;
        self.sink.report(self.moves)
    }
}

/// All attacked queens that may move, and some that are no longer attacked.
struct Candidates {
    rows: Vec<usize>,
    /// True if a row must not be added: it is in `rows`, or its queen never moves.
    known: Vec<bool>,
}

impl Candidates {
    fn of(board: &Board<'_>) -> Self {
        let mut candidates = Self { rows: Vec::new(), known: board.fixed.clone() };
        (0..board.n).filter(|&row| board.is_attacked(row)).for_each(|row| candidates.add(row));
        candidates
    }

    fn add(&mut self, row: usize) {
        if !self.known[row] {
            self.known[row] = true;
            self.rows.push(row);
        }
    }

    /// Returns a random entry: its index in `rows` and its row.
    fn choose(&self, rng: &mut Rng) -> Option<(usize, usize)> {
        if self.rows.is_empty() {
            return None;
        }
        let chosen = rng.usize(0..self.rows.len());
        Some((chosen, self.rows[chosen]))
    }

    /// Removes the entry at this index.
    fn clear(&mut self, place: usize) {
        let row = self.rows.swap_remove(place);
        self.known[row] = false;
    }
}
