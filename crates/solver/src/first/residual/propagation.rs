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
            let counted = match self.count() {
                Ok(counted) => counted,
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
            match self.place_forced(&counted) {
                Some(true) => {}
                Some(false) => return State::Open(self.shortest_line()),
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

    /// Counts the remaining cells of every line. Returns a row without any as an error.
    #[inline]
    fn count(&self) -> Result<Counted<W>, usize> {
        let mut counted: Counted<W> = Counted {
            single: W::Columns::EMPTY,
            columns: [W::Columns::EMPTY; 2],
            falling: [W::Diagonals::EMPTY; 2],
            rising: [W::Diagonals::EMPTY; 2],
        };
        for row in self.rows.iter() {
            let cells = self.remaining(row);
            if cells.is_empty() {
                return Err(row);
            }
            if cells.without_least().is_empty() {
                counted.single = counted.single.or(W::Columns::one(row));
            }
            add(&mut counted.columns, cells);
            add(&mut counted.falling, W::shifted(cells, self.height - 1 - row));
            add(&mut counted.rising, W::shifted(cells, row));
        }
        Ok(counted)
    }

    /// Charges diagonals without remaining cells to the slacks. Returns whether some dual bound can
    /// now eliminate more cells, or `None` if a slack is negative.
    #[inline]
    fn charge_lost_diagonals(&mut self, counted: &Counted<W>) -> Option<bool> {
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
    fn place_forced(&mut self, counted: &Counted<W>) -> Option<bool> {
        let columns = self.columns.without(counted.columns[1]);
        let [falling, rising] = self.mandatory_diagonals();
        let falling = falling.without(counted.falling[1]);
        let rising = rising.without(counted.rising[1]);
        for row in counted.single.iter() {
            if self.place(row, self.remaining(row).least()) {
                return None;
            }
        }
        for column in columns.iter() {
            if !self.columns.contains(column) {
                continue;
            }
            let cell = self.cells(Branch::Column(column)).next();
            let Some((row, column)) = cell else {
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
        let is_any = !counted.single.is_empty() || !columns.is_empty();
        Some(is_any || !falling.is_empty() || !rising.is_empty())
    }

    /// Returns a line to branch on, where none has a single cell: the smallest row, but a column or
    /// a mandatory diagonal of two cells before a larger row.
    #[inline]
    fn shortest_line(&self) -> Branch {
        let sizes = self.rows.iter().map(|row| (self.remaining(row).len(), row));
        let (size, row) = sizes.min().unwrap_or_default();
        if size <= 2 {
            return Branch::Row(row);
        }
        let mut columns = [W::Columns::EMPTY; 3];
        let mut diagonals = [[W::Diagonals::EMPTY; 3]; 2];
        for row in self.rows.iter() {
            let cells = self.remaining(row);
            add(&mut columns, cells);
            add(&mut diagonals[0], W::shifted(cells, self.height - 1 - row));
            add(&mut diagonals[1], W::shifted(cells, row));
        }
        let double = self.columns.without(columns[2]);
        if !double.is_empty() {
            return Branch::Column(double.least());
        }
        let [falling, rising] = self.mandatory_diagonals();
        let double = falling.without(diagonals[0][2]);
        if !double.is_empty() {
            return Branch::Diagonal(double.least());
        }
        let double = rising.without(diagonals[1][2]);
        if !double.is_empty() {
            return Branch::Antidiagonal(double.least());
        }
        Branch::Row(row)
    }
}

/// The lines with at least one and two remaining cells.
struct Counted<W: Width> {
    /// The rows with a single remaining cell.
    single: W::Columns,
    columns: [W::Columns; 2],
    falling: [W::Diagonals; 2],
    rising: [W::Diagonals; 2],
}

#[inline]
fn add<S: BitSet, const N: usize>(counters: &mut [S; N], cells: S) {
    for more in (1..N).rev() {
        counters[more] = counters[more].or(counters[more - 1].and(cells));
    }
    counters[0] = counters[0].or(cells);
}
