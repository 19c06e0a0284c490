//! Limited search: an exhaustive search under the dual bounds of the board, with a node limit.

use super::bitset::Width;
use super::components::Components;
use super::in_order::Task;
use super::residual::{Branch, Residual, State};
use super::weights::Weights;
use super::window::{self, Search};

/// Nodes between two checks for cancellation.
const LOOK: u64 = 1024;

/// The result of a limited search.
pub(super) enum Limited {
    Refuted,
    Full(Vec<usize>),
    GivenUp,
}

/// Searches `board`, which is open, under its dual bounds with at most `nodes` nodes. Updates
/// `weights`; fills the components in `blocks` one after the other.
pub(super) fn limited<W: Width>(
    board: &Residual<'_, W>,
    nodes: u64,
    (weights, blocks): (&mut Weights, &Components),
    task: Task<'_>,
) -> Limited {
    let mut left = nodes;
    let end = window::search(board, Nodes { weights, blocks, left: &mut left, task });
    task.add_nodes(nodes - left);
    end
}

struct Nodes<'a> {
    weights: &'a mut Weights,
    blocks: &'a Components,
    left: &'a mut u64,
    task: Task<'a>,
}

impl Search for Nodes<'_> {
    type Found = Limited;

    fn run<W: Width>(mut self, mut board: Residual<'_, W>) -> Limited {
        let state = board.propagate();
        self.go_on(&board, state)
    }
}

impl Nodes<'_> {
    fn go_on<W: Width>(&mut self, board: &Residual<'_, W>, state: State) -> Limited {
        match state {
            State::Refuted => {
                self.weights.learn(board);
                Limited::Refuted
            }
            State::Full => Limited::Full(board.solution()),
            State::Open(branch) => self.branch(board, branch),
        }
    }

    fn branch<W: Width>(&mut self, board: &Residual<'_, W>, branch: Branch) -> Limited {
        if *self.left == 0 || self.left.is_multiple_of(LOOK) && self.task.is_stopped() {
            return Limited::GivenUp;
        }
        *self.left -= 1;
        let branch = self.weights.choose(board, branch, self.blocks, || 1.0);
        for (row, column) in board.cells(branch) {
            let mut child = *board;
            let state = child.put(row, column);
            match self.go_on(&child, state) {
                Limited::Refuted => {}
                end => return end,
            }
        }
        Limited::Refuted
    }
}
