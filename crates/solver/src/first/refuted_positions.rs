//! The refuted positions that long searches remember: see the module of the same name in
//! [`nqueens_proof::first`], whose checker does the same.
//!
//! Measured on n = 81, first 30 queens: of 2,201 placements of the upper block that a search of 9
//! million nodes found, 388 left different lines, and 82 % of the nodes were searched again. On n =
//! 105, first 48 queens, it was 3 of 5 placements and 47 % of 10 million nodes.

use std::collections::HashSet;

use nqueens_proof::board::Square;

/// The largest number of positions that are remembered; about 30 MB.
const MOST: usize = 1 << 18;

/// The open lines of a board: the rows and columns without a queen, and the diagonals of both
/// directions with a remaining cell, counted from the corner of a window of this height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenLines {
    pub(super) corner: Square,
    pub(super) height: usize,
    pub(super) rows: u128,
    pub(super) columns: u128,
    pub(super) diagonals: [[u128; 2]; 2],
}

/// Open lines of boards with a prefix that have no completion.
///
/// That a board has no completion follows from its open lines alone, so what is refuted for a
/// prefix can be used for all queries about it and about longer ones.
#[derive(Clone, Debug, Default)]
pub(super) struct RefutedPositions {
    prefix: Vec<usize>,
    positions: HashSet<OpenLines>,
}

impl RefutedPositions {
    /// Prepares for a query: forgets everything unless it is about the prefix or a longer one.
    pub(super) fn begin(&mut self, prefix: &[usize]) {
        if !prefix.starts_with(&self.prefix) || self.prefix.is_empty() {
            self.prefix = prefix.to_vec();
            self.positions.clear();
        }
    }

    #[inline]
    pub(super) fn contains(&self, lines: &OpenLines) -> bool {
        self.positions.contains(lines)
    }

    /// Returns the number of positions that are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Adds the open lines of a board without a completion, unless there are too many.
    pub(super) fn insert(&mut self, lines: OpenLines) {
        if self.positions.len() < MOST {
            self.positions.insert(lines);
        }
    }
}
