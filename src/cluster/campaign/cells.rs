//! A map of a job's units: stretches of equal length, and how many units of each are what. It follows every change as it
//! happens, so that a look at a million units costs no more than a look at some thousand cells.

/// A map has at most so many cells.
pub const MOST_CELLS: u64 = 4096;

/// A stretch of units: how many of them are what. The rest are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// In a lease, or in several.
    pub leased: u32,
    /// Counted.
    pub done: u32,
    /// Those of them that are confirmed by another worker, kernel or device.
    pub verified: u32,
    /// Set aside.
    pub poisoned: u32,
}

/// The cells of a job: cell k stands for the units from k × [`UnitMap::units_per_cell`] on, the last one for fewer perhaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitMap {
    units: u64,
    units_per_cell: u64,
    changes: u64,
    cells: Vec<Cell>,
}

impl UnitMap {
    /// Of so many units, all of them open.
    pub(super) fn new(units: u64) -> Self {
        let units_per_cell = units.div_ceil(MOST_CELLS).max(1);
        let cells = vec![Cell::default(); units.div_ceil(units_per_cell) as usize];
        Self { units, units_per_cell, changes: 0, cells }
    }

    /// Changes the cell of a unit.
    pub(super) fn change(&mut self, unit: u64, change: impl FnOnce(&mut Cell)) {
        change(&mut self.cells[(unit / self.units_per_cell) as usize]);
        self.changes += 1;
    }

    /// Units in all.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Units for which a cell stands; 1 up to [`MOST_CELLS`] units.
    pub const fn units_per_cell(&self) -> u64 {
        self.units_per_cell
    }

    /// How often it has changed: two looks with the same number saw the same.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The cells, in the order of the units.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Units of cell `index`.
    pub fn size(&self, index: usize) -> u64 {
        let first = index as u64 * self.units_per_cell;
        self.units_per_cell.min(self.units.saturating_sub(first))
    }
}
