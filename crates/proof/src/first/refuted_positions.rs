//! The refuted positions that a search remembers.
//!
//! Blocks of rows often have many placements that leave the same lines to the rows below. So a
//! search remembers each position that it has refuted and in which it had just completed a block,
//! by its *open lines*: those that have candidates and no queen. A position with the same open
//! lines as a refuted one is refuted, too. Otherwise it would have a completion, whose further
//! queens stand on open lines. These lines have no queen in the refuted position either, so the
//! same queens would complete that position.

use std::collections::HashSet;

use super::LARGEST;
use super::position::Position;

/// The largest number of positions that are remembered; about 30 MB.
const MOST: usize = 1 << 18;

/// Open lines, one bit per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenLines([u64; (6 * LARGEST).div_ceil(64)]);

impl OpenLines {
    /// Creates the set of the open lines of a position.
    pub(super) fn of(position: &Position) -> Self {
        let mut lines = Self([0; _]);
        for line in position.open_lines() {
            lines.0[line / 64] |= 1 << (line % 64);
        }
        lines
    }
}

/// The refuted positions of a search.
#[derive(Debug)]
pub(super) struct RefutedPositions {
    positions: HashSet<OpenLines>,
    /// Blocks of rows, one bit per row; none if nothing is to be remembered.
    blocks: Vec<u128>,
}

impl RefutedPositions {
    pub(super) fn new(blocks: Vec<u128>) -> Self {
        Self { positions: HashSet::new(), blocks }
    }

    /// Returns the number of complete blocks of a position.
    pub(super) fn complete_blocks(&self, position: &Position) -> usize {
        self.blocks.iter().filter(|&&block| position.is_complete(block)).count()
    }

    /// Returns the open lines of a position if it has more than `before` complete blocks.
    pub(super) fn open_lines(&self, position: &Position, before: usize) -> Option<OpenLines> {
        (self.complete_blocks(position) > before).then(|| OpenLines::of(position))
    }

    pub(super) fn contains(&self, lines: &OpenLines) -> bool {
        self.positions.contains(lines)
    }

    /// Adds a refuted position, unless there are too many.
    pub(super) fn insert(&mut self, lines: OpenLines) {
        if self.positions.len() < MOST {
            self.positions.insert(lines);
        }
    }
}
