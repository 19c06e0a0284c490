//! Elimination of cells by probing: a queen is tried on each cell, and the cell is eliminated if no
//! completion uses it.
//!
//! As long as a decision is open, the linear relaxations mix both of its sides and see slack where
//! there is none. A queen on a cell is one side of a decision. Where the relaxations refute the
//! board with that queen, the cell is eliminated, and the remaining board is tighter for all
//! searches. For n = 58, with the first 22 queens, 208 of 688 cells are eliminated, after which the
//! assignment relaxation leaves no slack at all.

use std::collections::VecDeque;
use std::sync::Arc;

use super::control::Task;
use super::dual_bound::DualBound;
use super::params;
use super::pricing::Pricing;
use super::relaxation::{Assignment, Master};
use super::residual::{Residual, State};
use super::width::Width;
use crate::bitset::BitSet;
use nqueens_proof::first::{Multipliers, Refutation};

/// An eliminated cell, with the multipliers that refute the board with a queen there.
#[derive(Clone, Debug)]
struct EliminatedCell {
    row: usize,
    column: usize,
    multipliers: Arc<Multipliers>,
}

/// Eliminated cells in order of elimination, and the progress of probing.
#[derive(Clone, Debug)]
pub(super) struct Eliminations<W: Width> {
    cells: Vec<EliminatedCell>,
    tried: W::Rows,
    /// Number of consecutive cells that may still survive.
    patience: usize,
    /// Number of cells for which LPs were solved.
    lp_probes: u64,
}

impl<W: Width> Default for Eliminations<W> {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            tried: W::NO_ROWS,
            patience: params::PROBING_PATIENCE[0],
            lp_probes: 0,
        }
    }
}

impl<W: Width> Eliminations<W> {
    /// Returns the same progress without the eliminated cells, which have to be proved again.
    pub(super) fn resumed(&self) -> Self {
        Self { cells: Vec::new(), ..self.clone() }
    }

    /// Returns the eliminated cells, by row and column.
    #[cfg(test)]
    pub(super) fn squares(&self) -> impl Iterator<Item = (usize, usize)> {
        self.cells.iter().map(|cell| (cell.row, cell.column))
    }

    /// Returns whether probing is worth continuing under a limit of `squares` LP probes.
    pub(super) const fn can_continue(&self, squares: u64) -> bool {
        self.lp_probes < squares && self.patience > 0
    }

    /// Extends `then`, a refutation of the board without the eliminated cells, to the board with
    /// them.
    pub(super) fn refutation(&self, n: usize, then: Refutation) -> Refutation {
        let groups: Vec<&[EliminatedCell]> =
            self.cells.chunk_by(|a, b| Arc::ptr_eq(&a.multipliers, &b.multipliers)).collect();
        groups.into_iter().rev().fold(then, |then, group| {
            let squares: Vec<usize> = group.iter().map(|cell| cell.row * n + cell.column).collect();
            Refutation::elimination(&group[0].multipliers, &squares, &then)
        })
    }
}

/// A run of probing on a board.
pub(super) struct Probing<'e, 'b, W: Width> {
    pub(super) assignment: &'e mut Assignment,
    pub(super) master: &'e mut Master<W>,
    /// The open rows of the board for which the LPs were built.
    pub(super) lp_rows: W::Columns,
    pub(super) board: &'e mut Residual<'b, W>,
    pub(super) eliminated: Eliminations<W>,
    pub(super) task: Task<'e>,
}

impl<'b, W: Width> Probing<'_, 'b, W> {
    /// Eliminates those cells eliminated on a board with fewer queens that can be proved eliminated
    /// here.
    pub(super) fn reapply(&mut self, known: &Eliminations<W>) -> State {
        for cell in &known.cells {
            if !self.is_remaining(cell.row, cell.column) {
                continue;
            }
            let is_refuted = match self.with_queen(cell.row, cell.column) {
                Err(state) => state == State::Refuted,
                Ok(board) => {
                    Pricing::new(&board).is_refuted(&cell.multipliers, self.master.knapsack())
                }
            };
            if is_refuted {
                match self.eliminate(cell.clone()) {
                    State::Open(_) => {}
                    other => return other,
                }
            }
        }
        self.board.propagate()
    }

    /// Probes cells in descending order of reduced cost until hardly any is eliminated, the
    /// assignment relaxation leaves no slack, or the limit of LP probes is reached.
    pub(super) fn probe(&mut self, squares: u64) -> State {
        let mut recent: VecDeque<Arc<Multipliers>> = VecDeque::new();
        while let Some(cells) = self.cells_by_reduced_cost() {
            let mut eliminations = 0;
            for (row, column) in cells {
                if eliminations == params::ELIMINATIONS_PER_SOLVE {
                    break;
                }
                if self.task.is_stopped() || !self.eliminated.can_continue(squares) {
                    return self.board.propagate();
                }
                if !self.is_remaining(row, column) {
                    continue;
                }
                let tried = &mut self.eliminated.tried.as_mut()[row];
                *tried = tried.or(W::Columns::one(column));
                match self.refute(row, column, &mut recent) {
                    Some(multipliers) => {
                        match self.eliminate(EliminatedCell { row, column, multipliers }) {
                            State::Open(_) => {}
                            other => return other,
                        }
                        self.eliminated.patience = params::PROBING_PATIENCE[1];
                        eliminations += 1;
                    }
                    None => self.eliminated.patience -= 1,
                }
            }
            if eliminations < params::ELIMINATIONS_PER_SOLVE {
                self.eliminated.patience = 0;
            }
        }
        self.board.propagate()
    }

    /// Returns the cells not probed yet in descending order of reduced cost. Returns `None` if
    /// there is no slack, if there is too much slack for any elimination, or if the LP was not
    /// solved.
    fn cells_by_reduced_cost(&mut self) -> Option<Vec<(usize, usize)>> {
        if self.eliminated.patience == 0 {
            return None;
        }
        let multipliers = self.assignment.multipliers(self.board, self.task)?;
        let (dual_bound, slack) = DualBound::new(self.board, &multipliers, self.master.knapsack())?;
        if slack.left == 0 || self.assignment.objective() >= params::PROMISING_OPTIMUM {
            return None;
        }
        let mut affordable = *self.board;
        affordable.push(&dual_bound, slack);
        affordable.propagate();
        let n = self.board.n();
        let tried = self.eliminated.tried.as_ref();
        let mut squares: Vec<(usize, usize)> = affordable
            .rows()
            .iter()
            .flat_map(|row| {
                affordable
                    .remaining(row)
                    .without(tried[row])
                    .iter()
                    .map(move |column| (row, column))
            })
            .collect();
        squares.sort_by_key(|&(row, column)| std::cmp::Reverse(dual_bound.cost(n, row, column)));
        Some(squares)
    }

    /// Returns multipliers that refute the board with a queen on this cell.
    fn refute(
        &mut self,
        row: usize,
        column: usize,
        recent: &mut VecDeque<Arc<Multipliers>>,
    ) -> Option<Arc<Multipliers>> {
        let multipliers = match self.with_queen(row, column) {
            Err(State::Refuted) => {
                recent.pop_front().unwrap_or_else(|| Arc::new(Multipliers::none(self.board.n())))
            }
            Err(_) => return None,
            Ok(board) => {
                let mut pricing = Pricing::new(&board);
                let knapsack = self.master.knapsack();
                match recent.iter().position(|known| pricing.is_refuted(known, knapsack)) {
                    Some(place) => recent.remove(place)?,
                    None => {
                        self.eliminated.lp_probes += 1;
                        Arc::new(self.refute_by_lps(&board)?)
                    }
                }
            }
        };
        recent.push_front(Arc::clone(&multipliers));
        recent.truncate(params::RECENT_MULTIPLIERS);
        Some(multipliers)
    }

    fn refute_by_lps(&mut self, board: &Residual<'_, W>) -> Option<Multipliers> {
        let multipliers = self.assignment.multipliers(board, self.task)?;
        if Pricing::new(board).is_refuted(&multipliers, self.master.knapsack()) {
            return Some(multipliers);
        }
        let promising = self.assignment.objective() < params::PROMISING_OPTIMUM;
        promising.then(|| self.master.refute(board, board.used(self.lp_rows), self.task))?
    }

    /// Returns the board with one more queen, or the state that propagation reached.
    fn with_queen(&self, row: usize, column: usize) -> Result<Residual<'b, W>, State> {
        let mut board = *self.board;
        match board.put(row, column) {
            State::Open(_) => Ok(board),
            other => Err(other),
        }
    }

    fn is_remaining(&self, row: usize, column: usize) -> bool {
        self.board.rows().contains(row) && self.board.remaining(row).contains(column)
    }

    fn eliminate(&mut self, cell: EliminatedCell) -> State {
        self.board.eliminate(cell.row, cell.column);
        self.eliminated.cells.push(cell);
        self.board.propagate()
    }
}
