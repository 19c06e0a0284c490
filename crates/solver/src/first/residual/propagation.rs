//! Propagation of a residual board: the remaining cells of all rows, columns and diagonals are
//! counted at once in bit-sliced counters over the rows, up to two for propagation and up to three
//! to select a line.

use super::{Branch, MAX_DUAL_BOUNDS, Residual, State};
use crate::bitset::BitSet;
use crate::first::width::Width;

impl<W: Width> Residual<'_, W> {
    /// Propagates to a fixed point.
    pub(in crate::first) fn propagate(&mut self) -> State {
        loop {
            if self.rows.is_empty() {
                return State::Full;
            }
            self.filter();
            let (single, counted) = match self.count() {
                Ok(counts) => counts,
                Err(row) => {
                    self.exhausted = Some(Branch::Row(row));
                    return State::Refuted;
                }
            };
            let lost = self.columns.without(counted.columns[0]);
            if !lost.is_empty() {
                self.exhausted = Some(Branch::Column(lost.least()));
                return State::Refuted;
            }
            match self.charge_lost_diagonals(&counted) {
                Some(true) => continue,
                Some(false) => {}
                None => return State::Refuted,
            }
            match self.place_forced(single, &counted) {
                Some(true) => {}
                Some(false) => return State::Open(self.smallest_line()),
                None => return State::Refuted,
            }
        }
    }

    /// Eliminates cells whose reduced cost exceeds the slack.
    #[inline]
    fn filter(&mut self) {
        for i in 0..MAX_DUAL_BOUNDS {
            let Some(dual_bound) = self.dual_bounds[i] else { break };
            let level = dual_bound.level(self.slacks[i].left);
            if level < self.levels[i] {
                self.levels[i] = level;
                let affordable = dual_bound.affordable(level);
                for row in self.rows.iter() {
                    let cells = &mut self.remaining.as_mut()[row];
                    *cells = cells.and(affordable[row]);
                }
            }
        }
    }

    /// Counts the remaining cells of columns and diagonals, up to two. Also returns the rows with a
    /// single remaining cell, and a row without any as an error.
    #[inline]
    fn count(&self) -> Result<(W::Columns, Counted<W, 2>), usize> {
        let (mut single, mut counted) = (W::Columns::EMPTY, Counted::EMPTY);
        for row in self.rows.iter() {
            let cells = self.remaining(row);
            if cells.is_empty() {
                return Err(row);
            }
            if cells.without_least().is_empty() {
                single = single.or(W::Columns::one(row));
            }
            counted.add(self.height, row, cells);
        }
        Ok((single, counted))
    }

    /// Charges diagonals without remaining cells to the slacks. Returns whether some dual bound can
    /// now eliminate more cells, or `None` if a slack is negative.
    #[inline]
    fn charge_lost_diagonals(&mut self, counted: &Counted<W, 2>) -> Option<bool> {
        let [falling, rising] = self.diagonals;
        let (lost_falling, lost_rising) =
            (falling.without(counted.falling[0]), rising.without(counted.rising[0]));
        if lost_falling.is_empty() && lost_rising.is_empty() {
            return Some(false);
        }
        self.diagonals = [falling.and(counted.falling[0]), rising.and(counted.rising[0])];
        let mut again = false;
        for i in 0..MAX_DUAL_BOUNDS {
            let Some(dual_bound) = self.dual_bounds[i] else { break };
            let slack = &mut self.slacks[i];
            slack.lose(0, lost_falling.iter().map(|d| dual_bound.weights(0)[d]).sum());
            slack.lose(1, lost_rising.iter().map(|s| dual_bound.weights(1)[s]).sum());
            if slack.left < 0 {
                return None;
            }
            again |= dual_bound.level(slack.left) < self.levels[i];
        }
        Some(again)
    }

    /// Places queens on the only cells of lines that must be used: of all rows, columns and
    /// mandatory diagonals that have a single cell now, since counting takes most of the time.
    /// Returns whether there were any, or `None` if the board is refuted.
    #[inline]
    fn place_forced(&mut self, single: W::Columns, counted: &Counted<W, 2>) -> Option<bool> {
        let columns = self.columns.without(counted.columns[1]);
        let [falling, rising] = self.mandatory_diagonals();
        let falling = falling.without(counted.falling[1]);
        let rising = rising.without(counted.rising[1]);
        for row in single.iter() {
            if self.place(row, self.remaining(row).least()) {
                return None;
            }
        }
        for column in columns.iter() {
            if !self.columns.contains(column) {
                continue;
            }
            let cell = self.cells(Branch::Column(column)).next();
            let Some((row, _)) = cell else {
                self.exhausted = Some(Branch::Column(column));
                return None;
            };
            if self.place(row, column) {
                return None;
            }
        }
        let diagonals = falling.iter().map(Branch::Diagonal);
        for line in diagonals.chain(rising.iter().map(Branch::Antidiagonal)) {
            // A queen may have been placed on it meanwhile. If one attacks its cell, the diagonal
            // is charged next.
            let cell = self.cells(line).next();
            if let Some((row, column)) = cell
                && self.place(row, column)
            {
                return None;
            }
        }
        let is_any_line = !single.is_empty() || !columns.is_empty();
        Some(is_any_line || !falling.is_empty() || !rising.is_empty())
    }

    /// Returns a line to branch on, where none has a single cell: the smallest row, but a column or
    /// a mandatory diagonal of two cells before a larger row.
    #[inline]
    fn smallest_line(&self) -> Branch {
        let sizes = self.rows.iter().map(|row| (self.remaining(row).len(), row));
        let (size, row) = sizes.min().unwrap_or_default();
        if size <= 2 {
            return Branch::Row(row);
        }
        let mut counted = Counted::<W, 3>::EMPTY;
        self.rows.iter().for_each(|row| counted.add(self.height, row, self.remaining(row)));
        let double = self.columns.without(counted.columns[2]);
        if !double.is_empty() {
            return Branch::Column(double.least());
        }
        let [falling, rising] = self.mandatory_diagonals();
        let double = falling.without(counted.falling[2]);
        if !double.is_empty() {
            return Branch::Diagonal(double.least());
        }
        let double = rising.without(counted.rising[2]);
        if !double.is_empty() {
            return Branch::Antidiagonal(double.least());
        }
        Branch::Row(row)
    }
}

/// The columns and diagonals with at least 1, 2, ... N remaining cells.
struct Counted<W: Width, const N: usize> {
    columns: [W::Columns; N],
    falling: [W::Diagonals; N],
    rising: [W::Diagonals; N],
}

impl<W: Width, const N: usize> Counted<W, N> {
    const EMPTY: Self = Self {
        columns: [W::Columns::EMPTY; N],
        falling: [W::Diagonals::EMPTY; N],
        rising: [W::Diagonals::EMPTY; N],
    };

    /// Adds the remaining cells of a row on a board of this height.
    #[inline]
    fn add(&mut self, height: usize, row: usize, cells: W::Columns) {
        add(&mut self.columns, cells);
        add(&mut self.falling, W::shifted(cells, height - 1 - row));
        add(&mut self.rising, W::shifted(cells, row));
    }
}

/// Adds the elements of a set to bit-sliced counters.
#[inline]
fn add<S: BitSet, const N: usize>(counters: &mut [S; N], set: S) {
    for more in (1..N).rev() {
        counters[more] = counters[more].or(counters[more - 1].and(set));
    }
    counters[0] = counters[0].or(set);
}
