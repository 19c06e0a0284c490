//! The placements of the first blocks of a board, which a long search finds before it searches the
//! last block for each of them.
//!
//! Their number tells what the search will take, which the estimator of the tree cannot: most of
//! the placements leave the same lines as another one, but the first ones do not. Measured on n =
//! 89, first 37 queens: 35,124 placements leave 4,607 different sets of lines, each of which takes
//! about 45,000 nodes, 210 million in all; the estimate after 16 million nodes was 1,700 million.

use std::collections::HashSet;
use std::mem;

use super::components::Components;
use super::params;
use super::refuted_positions::OpenLines;
use super::residual::Residual;
use super::width::Width;
use nqueens_proof::board::Square;

/// The largest number of placements that are kept; about 40 MB.
const MOST: usize = 1 << 16;

/// Placements of the first blocks whose boards are searched later.
#[derive(Default)]
pub(super) struct Placements {
    /// The lines that they leave, and those that placements of some of the blocks leave.
    lines: HashSet<OpenLines>,
    deferred: Vec<(OpenLines, Vec<Square>)>,
    /// The number of placements whose boards were searched at once, and the nodes of these
    /// searches.
    sampled: u64,
    sampled_nodes: u64,
}

impl Placements {
    /// Returns whether a placement that leaves these lines is known.
    pub(super) fn contains(&self, lines: &OpenLines) -> bool {
        self.lines.contains(lines)
    }

    /// Adds the lines that a placement of some of the blocks leaves.
    pub(super) fn add_lines(&mut self, lines: OpenLines) {
        self.lines.insert(lines);
    }

    /// Returns whether the board of the next placement is searched at once, as a sample or because
    /// there is no room for more.
    pub(super) fn is_searched_at_once(&self) -> bool {
        self.sampled < params::SAMPLED_PLACEMENTS || self.deferred.len() == MOST
    }

    /// Counts the nodes of such a search.
    pub(super) fn add_sample(&mut self, nodes: u64) {
        self.sampled += 1;
        self.sampled_nodes += nodes;
    }

    /// Adds the placement of all `blocks` on a board with these lines, which is to be searched
    /// later.
    pub(super) fn defer<W: Width>(
        &mut self,
        board: &Residual<'_, W>,
        lines: OpenLines,
        blocks: &Components,
    ) {
        let rows = blocks.rows().into_iter().flatten();
        let placement = rows.map(|row| Square::new(row, board.queen(row))).collect();
        self.lines.insert(lines);
        self.deferred.push((lines, placement));
    }

    /// Returns the number of nodes that all deferred searches will take if they are like the
    /// others.
    pub(super) fn expected_nodes(&self) -> u64 {
        self.sampled_nodes / self.sampled.max(1) * self.deferred.len() as u64
    }

    /// Removes and returns the placements whose searches were deferred, with the lines that they
    /// leave.
    pub(super) fn take_deferred(&mut self) -> Vec<(OpenLines, Vec<Square>)> {
        mem::take(&mut self.deferred)
    }

    /// Returns the lines of all placements, once all of them are refuted.
    pub(super) fn into_lines(self) -> impl Iterator<Item = OpenLines> {
        self.lines.into_iter()
    }
}
