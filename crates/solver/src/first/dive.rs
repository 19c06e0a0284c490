//! Dives: cheap searches for a completion that are begun anew again and again, each in another order.
//!
//! How long a search takes until it comes upon a completion has a heavy tail: an early wrong queen is paid for with all
//! that is below it. So a dive is given up after some nodes, in lengths 1, 1, 2, 1, 1, 2, 4, … (Luby, Sinclair and
//! Zuckerman, 1993). The budgets of the board do the pruning; the cells that the plain programme likes are tried first,
//! more or less, in the rows that have run out of cells before. Dives prove nothing.

use fastrand::Rng;

use super::bitset::Width;
use super::components::Components;
use super::in_order::Task;
use super::residual::{Branch, Residual, State};
use super::weights::Weights;
use super::window::{self, Search};

/// Nodes of the shortest dive.
const SHORTEST: u64 = 500;

/// What is added at random to the liking of a cell, which is from 0 to 1. Measured on n = 71, 85 and 101: better than 0.1
/// and 2.
const NOISE: f64 = 0.5;

/// Sizes of rows are multiplied by up to 1 and this.
const ROWS_NOISE: f64 = 0.1;

/// Looks for a completion of `board`, which is open, with so many nodes. `liking` is that of each cell, by row × n + column.
/// `weights` are learned, `blocks` filled one after the other.
pub(super) fn dive<W: Width>(
    board: &Residual<'_, W>,
    liking: &[f64],
    nodes: u64,
    (weights, blocks, random): (&mut Weights, &Components, &mut Rng),
    task: Task<'_>,
) -> Option<Vec<usize>> {
    window::search(board, Dives { liking, nodes, weights, blocks, random, task })
}

struct Dives<'a> {
    liking: &'a [f64],
    nodes: u64,
    weights: &'a mut Weights,
    blocks: &'a Components,
    random: &'a mut Rng,
    task: Task<'a>,
}

impl Search for Dives<'_> {
    type Found = Option<Vec<usize>>;

    fn run<W: Width>(mut self, mut board: Residual<'_, W>) -> Option<Vec<usize>> {
        let state = board.propagate();
        let mut dives = 0;
        while self.nodes > 0 && !self.task.is_stopped() {
            dives += 1;
            let length = self.nodes.min(SHORTEST * luby(dives));
            let Self { liking, blocks, .. } = self;
            let mut dive = Dive { liking, weights: self.weights, blocks, random: self.random, left: length };
            let found = dive.go_on(&board, state);
            let left = dive.left;
            self.task.add_nodes(length - left);
            // With nodes left, everything was tried.
            if found.is_some() || left > 0 {
                return found;
            }
            self.nodes -= length;
        }
        None
    }
}

/// The number at place `k` ≥ 1 of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, …
fn luby(mut k: u64) -> u64 {
    loop {
        // 2^(bits - 1) ≤ k < 2^bits.
        let bits = k.ilog2() + 1;
        if k == (1 << bits) - 1 {
            return 1 << (bits - 1);
        }
        k -= (1 << (bits - 1)) - 1;
    }
}

struct Dive<'a> {
    liking: &'a [f64],
    weights: &'a mut Weights,
    blocks: &'a Components,
    random: &'a mut Rng,
    /// Nodes.
    left: u64,
}

impl Dive<'_> {
    /// A completion; `None` if there is none, or no nodes are left.
    fn go_on<W: Width>(&mut self, board: &Residual<'_, W>, state: State) -> Option<Vec<usize>> {
        match state {
            State::Refuted => {
                self.weights.learn(board);
                None
            }
            State::Full => Some(board.solution()),
            State::Open(branch) => self.branch(board, branch),
        }
    }

    fn branch<W: Width>(&mut self, board: &Residual<'_, W>, branch: Branch) -> Option<Vec<usize>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let noise = || 1.0 + ROWS_NOISE * self.random.f64();
        let branch = self.weights.choose(board, branch, self.blocks, noise);
        let (n, corner) = (board.n(), board.corner());
        let mut cells: Vec<(f64, usize, usize)> = board
            .cells(branch)
            .map(|(row, column)| {
                let liking = self.liking[(corner.row + row) * n + corner.col + column];
                (liking + NOISE * self.random.f64(), row, column)
            })
            .collect();
        cells.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, row, column) in cells {
            let mut child = *board;
            let state = child.put(row, column);
            let found = self.go_on(&child, state);
            if found.is_some() || self.left == 0 {
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::luby;

    #[test]
    fn lengths_are_those_of_luby() {
        let lengths: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(lengths, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
