//! The diagonals of a direction that the further queens of a completion can use.

use super::knapsack::Knapsack;
use crate::first::{Item, Position};

/// Returns the first line of a direction: 0 for the diagonals, 1 for the antidiagonals.
pub(super) const fn first_line(n: usize, direction: usize) -> usize {
    if direction == 0 { 2 * n } else { (4 * n).saturating_sub(1) }
}

/// The diagonals of a direction that can be used.
pub(super) struct Direction {
    pub(super) direction: usize,
    pub(super) lines: Vec<usize>,
    pub(super) items: Vec<Item>,
    pub(super) count: i64,
    pub(super) sum: i64,
}

impl Direction {
    /// Creates the direction with the weights `y`, by line.
    pub(super) fn new(position: &Position, y: &[i64], direction: usize) -> Self {
        let n = position.n();
        let first = first_line(n, direction);
        let lines: Vec<usize> =
            (first..first + 2 * n - 1).filter(|&line| position.is_usable(line)).collect();
        let item = |&line: &usize| Item { place: (line - first) as i64, weight: y[line] };
        let items = lines.iter().map(item).collect();
        let open = |lines: std::ops::Range<usize>| lines.filter(|&line| !position.is_taken(line));
        let columns: i64 = open(n..2 * n).map(|line| (line - n) as i64).sum();
        let rows: i64 = open(0..n).map(|line| line as i64).sum();
        let count = open(0..n).count() as i64;
        let sum =
            if direction == 0 { columns - rows + (n as i64 - 1) * count } else { rows + columns };
        Self { direction, lines, items, count, sum }
    }

    /// Returns the weight of all diagonals.
    pub(super) fn weight(&self) -> i64 {
        self.items.iter().map(|item| item.weight).sum()
    }

    /// Returns the knapsack with the claim that no set weighs more than `most`, or that there is
    /// none.
    pub(super) fn knapsack(&self, most: Option<i128>) -> Knapsack {
        Knapsack { items: self.items.clone(), count: self.count, sum: self.sum, most }
    }

    /// Returns the weight that the linear relaxation allows beyond `most`, rounded down.
    pub(super) fn gap(&self, most: i64) -> i64 {
        let relaxed = self.knapsack(Some(most.into())).relaxed();
        relaxed.map_or(0, |value| (value as i64 - most).max(0))
    }
}
