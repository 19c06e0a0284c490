//! Budgets: integer multipliers that leave a residual board so much room, and no more.
//!
//! Multipliers u (rows), v (columns), w, z ≥ 0 (the two directions of diagonals) such that no alive cell has a reduced
//! cost u + v + w + z below 0. For every completion
//!
//! G = Σ u + Σ v + Σ w + Σ z (over what is open or alive) = Σ reduced costs of its queens + Σ w + Σ z of unused diagonals.
//!
//! So G < 0 refutes the board, a cell dearer than G dies, a diagonal heavier than G must be used. The multipliers come
//! from the duals of a linear programme, in floating point; [`Budget::new`] makes them right in integers whatever they are.

use super::residual::Residual;
use super::width::{Set, Width};
use crate::proof::first::Multipliers;

/// Filters are tabulated for so many levels of G.
pub(super) const LEVELS: usize = 32;

/// A budget and its tables.
#[derive(Debug)]
pub(super) struct Budget<W: Width> {
    /// u + v of a cell come from these two.
    rows: Vec<i64>,
    columns: Vec<i64>,
    pub(super) diagonals: Vec<i64>,
    pub(super) antidiagonals: Vec<i64>,
    /// G between two levels.
    step: i64,
    /// By level: the cells that cost at most level × step.
    affordable: Vec<W::Rows>,
    /// By level: the diagonals that weigh more than level × step.
    heavy: Vec<[W::Diagonals; 2]>,
}

impl<W: Width> Budget<W> {
    /// The budget of `multipliers` on a board, and its G; `None` if G < 0: the board is refuted. The multipliers of the
    /// rows are computed: as small as they can be; then those of the columns are lowered as far as costs allow.
    pub(super) fn new(board: &Residual<'_, W>, multipliers: &Multipliers) -> Option<(Self, i64)> {
        let n = board.n();
        let (rows, columns) = repaired(board, multipliers);
        let mut budget = Self {
            rows,
            columns,
            diagonals: multipliers.diagonals.clone(),
            antidiagonals: multipliers.antidiagonals.clone(),
            step: 0,
            affordable: Vec::new(),
            heavy: Vec::new(),
        };
        let lines = budget.rows.iter().chain(&budget.columns).sum::<i64>();
        let [falling, rising] = board.diagonals();
        let weights = falling.iter().map(|d| budget.diagonals[d]).sum::<i64>()
            + rising.iter().map(|s| budget.antidiagonals[s]).sum::<i64>();
        let room = lines + weights;
        if room < 0 {
            return None;
        }
        budget.step = room / (LEVELS as i64 - 1) + 1;
        budget.affordable = vec![W::NO_ROWS; LEVELS + 1];
        for row in board.rows().iter() {
            for column in board.alive(row).iter() {
                let level = budget.level(budget.cost(n, row, column));
                let cells = &mut budget.affordable[level].as_mut()[row];
                *cells = cells.or(W::Columns::one(column));
            }
        }
        for level in 0..LEVELS {
            let below = budget.affordable[level];
            let cells = budget.affordable[level + 1].as_mut().iter_mut().zip(below.as_ref());
            cells.for_each(|(cells, &below)| *cells = cells.or(below));
        }
        let heavier = |weights: &[i64], level: usize| {
            let heavy = weights.iter().enumerate().filter(|&(_, &weight)| budget.level(weight) > level);
            heavy.fold(W::Diagonals::EMPTY, |set, (i, _)| set.or(W::Diagonals::one(i)))
        };
        budget.heavy = (0..=LEVELS)
            .map(|level| [heavier(&budget.diagonals, level), heavier(&budget.antidiagonals, level)])
            .collect();
        Some((budget, room))
    }

    /// What a queen on a cell takes from G.
    #[inline]
    pub(super) fn cost(&self, n: usize, row: usize, column: usize) -> i64 {
        self.rows[row]
            + self.columns[column]
            + self.diagonals[column + n - 1 - row]
            + self.antidiagonals[row + column]
    }

    /// The level of a room: it is at most level × step, and more than one less.
    #[inline]
    pub(super) fn level(&self, room: i64) -> usize {
        (((room + self.step - 1) / self.step) as usize).min(LEVELS)
    }

    /// The cells that a room of this level affords, by row.
    #[inline]
    pub(super) fn affordable(&self, level: usize) -> &[W::Columns] {
        self.affordable[level].as_ref()
    }

    /// The diagonals of each direction that must be used where there is a room of this level.
    #[inline]
    pub(super) fn heavy(&self, level: usize) -> [W::Diagonals; 2] {
        self.heavy[level]
    }
}

/// Multipliers of the rows and columns such that no alive cell costs less than 0.
pub(super) fn repaired<W: Width>(board: &Residual<'_, W>, multipliers: &Multipliers) -> (Vec<i64>, Vec<i64>) {
    let n = board.n();
    let (mut rows, mut columns) = (vec![0; n], vec![0; n]);
    let diagonals = |row: usize, column: usize| {
        multipliers.diagonals[column + n - 1 - row] + multipliers.antidiagonals[row + column]
    };
    for row in board.rows().iter() {
        let cost = |column: usize| multipliers.columns[column] + diagonals(row, column);
        rows[row] = -board.alive(row).iter().map(cost).min().unwrap_or(0);
    }
    let mut least = vec![i64::MAX; n];
    for row in board.rows().iter() {
        for column in board.alive(row).iter() {
            let cost = rows[row] + multipliers.columns[column] + diagonals(row, column);
            least[column] = least[column].min(cost);
        }
    }
    for column in board.columns().iter() {
        let spare = if least[column] == i64::MAX { 0 } else { least[column] };
        columns[column] = multipliers.columns[column] - spare;
    }
    (rows, columns)
}
