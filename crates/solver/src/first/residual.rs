//! The residual board: the open rows and columns, and the remaining cells, on which a queen can
//! still be placed.
//!
//! Boards are small enough to be copied at every node of a search. `propagation.rs` contains their
//! propagation.

mod propagation;

use super::dual_bound::{DualBound, LEVELS, Slack};
use super::refuted_positions::OpenLines;
use super::sizes::Sizes;
use super::width::Width;
use super::window::Window;
use crate::bitset::BitSet;
use nqueens_proof::board::{Piece, Square};

/// Maximum number of active dual bounds.
const MAX_DUAL_BOUNDS: usize = 3;

/// A residual board with its active dual bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residual<'a, W: Width> {
    /// The size of the whole board.
    n: usize,
    /// The position of the first cell on the whole board. The rows, columns and diagonals of all
    /// fields below, except `queens`, are counted from here.
    corner: Square,
    height: usize,
    width: usize,
    /// By row: its remaining cells.
    remaining: W::Rows,
    rows: W::Columns,
    columns: W::Columns,
    /// Diagonals c - r + height - 1 and antidiagonals r + c with a remaining cell.
    diagonals: [W::Diagonals; 2],
    /// By row of the whole board: the column of its queen on the whole board.
    queens: [u8; 128],
    dual_bounds: [Option<&'a DualBound<W>>; MAX_DUAL_BOUNDS],
    slacks: [Slack; MAX_DUAL_BOUNDS],
    levels: [usize; MAX_DUAL_BOUNDS],
    /// The row or column that ran out of cells, if that refuted the board.
    exhausted: Option<Branch>,
}

/// A line to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    Row(usize),
    Column(usize),
    Diagonal(usize),
    Antidiagonal(usize),
}

/// The result of propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is no completion.
    Refuted,
    /// All queens are placed.
    Full,
    /// Every completion has a queen on this line.
    Open(Branch),
}

impl<'a, W: Width> Residual<'a, W> {
    /// Creates the board with these queens, which must not attack each other.
    pub(super) fn new(n: usize, queens: &[Square]) -> Self {
        let mut board = Self {
            n,
            corner: Square::new(0, 0),
            height: n,
            width: n,
            remaining: W::NO_ROWS,
            rows: W::Columns::below(n),
            columns: W::Columns::below(n),
            diagonals: [W::Diagonals::EMPTY; 2],
            queens: [0; 128],
            dual_bounds: [None; MAX_DUAL_BOUNDS],
            slacks: [Slack::default(); MAX_DUAL_BOUNDS],
            levels: [0; MAX_DUAL_BOUNDS],
            exhausted: None,
        };
        for queen in queens {
            board.queens[queen.row] = queen.col as u8;
            board.rows = board.rows.without(W::Columns::one(queen.row));
            board.columns = board.columns.without(W::Columns::one(queen.col));
        }
        for row in board.rows.iter() {
            for column in board.columns.iter() {
                let square = Square::new(row, column);
                if !queens.iter().any(|&queen| Piece::Queen.attacks(n, queen, square)) {
                    let cells = &mut board.remaining.as_mut()[row];
                    *cells = cells.or(W::Columns::one(column));
                    let [falling, rising] = &mut board.diagonals;
                    *falling = falling.or(W::Diagonals::one(column + n - 1 - row));
                    *rising = rising.or(W::Diagonals::one(row + column));
                }
            }
        }
        board
    }

    /// Returns the size of the whole board.
    pub(super) const fn n(&self) -> usize {
        self.n
    }

    /// Returns the position of the first cell on the whole board.
    pub(super) const fn corner(&self) -> Square {
        self.corner
    }

    /// Returns the number of rows from the first cell on.
    pub(super) const fn height(&self) -> usize {
        self.height
    }

    /// Returns the open rows.
    pub(super) const fn rows(&self) -> W::Columns {
        self.rows
    }

    /// Returns the open columns.
    pub(super) const fn columns(&self) -> W::Columns {
        self.columns
    }

    /// Returns the diagonals of each direction with a remaining cell.
    pub(super) const fn diagonals(&self) -> [W::Diagonals; 2] {
        self.diagonals
    }

    /// Returns the remaining cells of an open row.
    #[inline]
    pub(super) fn remaining(&self, row: usize) -> W::Columns {
        self.remaining.as_ref()[row]
    }

    /// Returns the column of the queen in a row that is not open.
    pub(super) fn queen(&self, row: usize) -> usize {
        self.queens[row].into()
    }

    /// Returns the column of each row of the whole board, if it is full.
    pub(super) fn solution(&self) -> Vec<usize> {
        self.queens[..self.n].iter().map(|&column| column.into()).collect()
    }

    /// Returns the smallest rectangle that contains all open rows and columns. There must be some.
    pub(super) fn window(&self) -> Window {
        let corner = Square::new(self.rows.least(), self.columns.least());
        let extent =
            |set: W::Columns, least: usize| set.iter().last().map_or(0, |last| last + 1 - least);
        Window {
            corner,
            height: extent(self.rows, corner.row),
            width: extent(self.columns, corner.col),
        }
    }

    /// Copies the board to its [`window`](Self::window), with the dual bounds restricted to it.
    pub(super) fn within<'b, V: Width>(
        &self,
        window: &Window,
        dual_bounds: &'b [DualBound<V>],
    ) -> Residual<'b, V> {
        let Window { corner, height, width } = *window;
        let mut remaining = V::NO_ROWS;
        for row in self.rows.iter() {
            remaining.as_mut()[row - corner.row] = self.remaining(row).shifted_down(corner.col);
        }
        let [falling, rising] = window.first_diagonals(self.height);
        let mut places = dual_bounds.iter();
        Residual {
            n: self.n,
            corner: Square::new(self.corner.row + corner.row, self.corner.col + corner.col),
            height,
            width,
            remaining,
            rows: self.rows.shifted_down(corner.row),
            columns: self.columns.shifted_down(corner.col),
            diagonals: [
                self.diagonals[0].shifted_down(falling),
                self.diagonals[1].shifted_down(rising),
            ],
            queens: self.queens,
            dual_bounds: [(); MAX_DUAL_BOUNDS].map(|()| places.next()),
            slacks: self.slacks,
            levels: self.levels,
            exhausted: None,
        }
    }

    /// Returns the active dual bounds, restricted to the [`window`](Self::window).
    pub(super) fn dual_bounds_within<V: Width>(&self, window: &Window) -> Vec<DualBound<V>> {
        self.dual_bounds
            .iter()
            .flatten()
            .map(|dual_bound| dual_bound.within(self.height, window))
            .collect()
    }

    /// Returns whether a dual bound is active.
    pub(super) const fn has_dual_bound(&self) -> bool {
        self.dual_bounds[0].is_some()
    }

    /// Activates another dual bound. If there is no free place, the second oldest is dropped: the
    /// first one and the latest ones are kept.
    pub(super) fn push(&mut self, dual_bound: &'a DualBound<W>, slack: Slack) {
        let place = self.dual_bounds.iter().position(Option::is_none).unwrap_or_else(|| {
            self.dual_bounds.copy_within(2.., 1);
            self.slacks.copy_within(2.., 1);
            self.levels.copy_within(2.., 1);
            MAX_DUAL_BOUNDS - 1
        });
        self.dual_bounds[place] = Some(dual_bound);
        self.slacks[place] = slack;
        self.levels[place] = LEVELS + 1;
    }

    /// Eliminates a remaining cell that no completion uses.
    pub(super) fn eliminate(&mut self, row: usize, column: usize) {
        let cells = &mut self.remaining.as_mut()[row];
        *cells = cells.without(W::Columns::one(column));
    }

    /// Returns the row or column of the whole board that ran out of cells, if that refuted the
    /// board.
    pub(super) fn exhausted(&self) -> Option<Branch> {
        self.exhausted.map(|line| match line {
            Branch::Row(row) => Branch::Row(self.corner.row + row),
            Branch::Column(column) => Branch::Column(self.corner.col + column),
            diagonal => diagonal,
        })
    }

    /// Returns the open columns whose remaining cells are all in these open rows.
    #[inline]
    pub(super) fn columns_within(&self, rows: W::Columns) -> W::Columns {
        self.rows
            .without(rows)
            .iter()
            .fold(self.columns, |within, row| within.without(self.remaining(row)))
    }

    /// Returns the number of remaining cells of each column.
    #[inline]
    pub(super) fn column_sizes(&self) -> Sizes {
        Sizes::new(self.rows.iter().map(|row| self.remaining(row)))
    }

    /// Returns the diagonals of each direction that are occupied by queens.
    pub(super) fn occupied(&self) -> [W::Diagonals; 2] {
        self.used(W::Columns::below(self.n))
    }

    /// Returns the diagonals of each direction that are occupied by the queens in these rows.
    pub(super) fn used(&self, rows: W::Columns) -> [W::Diagonals; 2] {
        let mut used = [W::Diagonals::EMPTY; 2];
        for row in rows.without(self.rows).iter() {
            let column = self.queen(row);
            used[0] = used[0].or(W::Diagonals::one(column + self.n - 1 - row));
            used[1] = used[1].or(W::Diagonals::one(row + column));
        }
        used
    }

    /// Places a queen on a cell. Returns whether the board is refuted at once.
    #[inline]
    fn place(&mut self, row: usize, column: usize) -> bool {
        if !self.remaining(row).contains(column) {
            return true;
        }
        for (dual_bound, slack) in self.dual_bounds.iter().zip(&mut self.slacks) {
            let Some(dual_bound) = dual_bound else { break };
            slack.left -= dual_bound.cost(self.height, row, column);
            if slack.left < 0 {
                return true;
            }
        }
        self.queens[self.corner.row + row] = (self.corner.col + column) as u8;
        let queen = W::Columns::one(column);
        self.rows = self.rows.without(W::Columns::one(row));
        self.columns = self.columns.without(queen);
        let [falling, rising] = &mut self.diagonals;
        *falling = falling.without(W::Diagonals::one(column + self.height - 1 - row));
        *rising = rising.without(W::Diagonals::one(row + column));
        for other in self.rows.iter() {
            // Columns beyond the board have no remaining cells.
            let attacked = W::attacked(queen, other.abs_diff(row));
            let cells = &mut self.remaining.as_mut()[other];
            *cells = cells.without(attacked);
            if cells.is_empty() {
                self.exhausted = Some(Branch::Row(other));
                return true;
            }
        }
        false
    }

    /// Places queens on cells and propagates.
    pub(super) fn put_all(&mut self, queens: &[Square]) -> State {
        let is_refuted = queens.iter().any(|queen| self.place(queen.row, queen.col));
        if is_refuted { State::Refuted } else { self.propagate() }
    }

    /// Places a queen on a cell and propagates.
    pub(super) fn put(&mut self, row: usize, column: usize) -> State {
        if self.place(row, column) { State::Refuted } else { self.propagate() }
    }

    /// Returns the diagonals of each direction that must be used.
    #[inline]
    pub(super) fn mandatory_diagonals(&self) -> [W::Diagonals; 2] {
        let [mut falling, mut rising] = [W::Diagonals::EMPTY; 2];
        for i in 0..MAX_DUAL_BOUNDS {
            let Some(dual_bound) = self.dual_bounds[i] else { break };
            let heavy = dual_bound.heavy(&self.slacks[i]);
            (falling, rising) = (falling.or(heavy[0]), rising.or(heavy[1]));
        }
        [falling.and(self.diagonals[0]), rising.and(self.diagonals[1])]
    }

    /// Returns the open lines, after propagation.
    pub(super) fn open_lines(&self) -> OpenLines {
        let words = |lines: W::Diagonals| [lines.bits_from(0), lines.bits_from(128)];
        OpenLines {
            corner: self.corner,
            height: self.height,
            rows: self.rows.bits_from(0),
            columns: self.columns.bits_from(0),
            diagonals: self.diagonals.map(words),
        }
    }

    /// Returns the remaining cells of a line.
    #[inline]
    pub(super) fn cells(&self, line: Branch) -> impl Iterator<Item = (usize, usize)> {
        let (height, width) = (self.height, self.width);
        let rows = match line {
            Branch::Row(row) => W::Columns::one(row),
            _ => self.rows,
        };
        let in_row = move |row: usize, cells: W::Columns| match line {
            Branch::Row(_) => cells,
            Branch::Column(column) => cells.and(W::Columns::one(column)),
            Branch::Diagonal(d) => on(cells, (d + row).wrapping_sub(height - 1), width),
            Branch::Antidiagonal(s) => on(cells, s.wrapping_sub(row), width),
        };
        rows.iter().flat_map(move |row| {
            in_row(row, self.remaining(row)).iter().map(move |column| (row, column))
        })
    }
}

/// Returns the cell in `column` if it is on the board and remains.
#[inline]
fn on<S: BitSet>(cells: S, column: usize, width: usize) -> S {
    if column < width { cells.and(S::one(column)) } else { S::EMPTY }
}
