//! A map of a job's units: ranges of equal length with counts of the units in each state. It is
//! updated on every change, so that rendering a million units reads only a few thousand cells.

use serde::{Deserialize, Serialize};

/// Upper limit of the cells of a map.
pub const MOST_CELLS: u64 = 4096;

/// A range of units, with the number of units in each state. The remaining units are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Units in at least one lease. Leases are volatile, so they are not encoded.
    #[serde(skip)]
    pub leased: u32,
    /// Units that are done.
    pub done: u32,
    /// Units that are done and fully confirmed by another source.
    pub verified: u32,
    /// Poisoned units.
    pub poisoned: u32,
}

/// The cells of a job. Cell k covers the units from k × [`UnitMap::units_per_cell`]; the last cell
/// may cover fewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitMap {
    units: u64,
    units_per_cell: u64,
    changes: u64,
    cells: Vec<Cell>,
}

impl UnitMap {
    /// Creates a map of `units` open units.
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

    /// Returns the number of units.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Returns the number of units per cell; 1 for up to [`MOST_CELLS`] units.
    pub const fn units_per_cell(&self) -> u64 {
        self.units_per_cell
    }

    /// Returns the number of changes so far; the map is unchanged between two equal values.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the cells in the order of the units.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the number of units of cell `index`.
    pub fn size(&self, index: usize) -> u64 {
        let first = index as u64 * self.units_per_cell;
        self.units_per_cell.min(self.units.saturating_sub(first))
    }
}
