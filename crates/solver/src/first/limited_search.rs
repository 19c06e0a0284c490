//! Limited search: an exhaustive search under the dual bounds of the board, with a node limit.

use super::components::Components;
use super::concurrent_queries::Task;
use super::residual::{Branch, Residual, State};
use super::weights::Weights;
use super::width::Width;
use super::window::{self, Search};

/// Nodes between two checks for cancellation.
const CHECK_EVERY: u64 = 1024;

/// The result of a limited search.
pub(super) enum LimitedOutcome {
    Refuted,
    Full(Vec<usize>),
    GivenUp,
}

/// Searches `board`, which is open, under its dual bounds with at most `nodes` nodes. Updates
/// `weights`; fills the blocks in `components` one after the other.
pub(super) fn limited<W: Width>(
    board: &Residual<'_, W>,
    nodes: u64,
    (weights, components): (&mut Weights, &Components),
    task: Task<'_>,
) -> LimitedOutcome {
    let mut left = nodes;
    let end = window::search(board, Nodes { weights, components, left: &mut left, task });
    task.add_nodes(nodes - left);
    end
}

struct Nodes<'a> {
    weights: &'a mut Weights,
    components: &'a Components,
    left: &'a mut u64,
    task: Task<'a>,
}

impl Search for Nodes<'_> {
    type Found = LimitedOutcome;

    fn run<W: Width>(mut self, mut board: Residual<'_, W>) -> LimitedOutcome {
        let state = board.propagate();
        self.go_on(&board, state)
    }
}

impl Nodes<'_> {
    fn go_on<W: Width>(&mut self, board: &Residual<'_, W>, state: State) -> LimitedOutcome {
        match state {
            State::Refuted => {
                self.weights.learn(board);
                LimitedOutcome::Refuted
            }
            State::Full => LimitedOutcome::Full(board.solution()),
            State::Open(branch) => self.branch(board, branch),
        }
    }

    fn branch<W: Width>(&mut self, board: &Residual<'_, W>, branch: Branch) -> LimitedOutcome {
        if *self.left == 0 || self.left.is_multiple_of(CHECK_EVERY) && self.task.is_stopped() {
            return LimitedOutcome::GivenUp;
        }
        *self.left -= 1;
        let branch = self.weights.choose(board, branch, self.components, || 1.0);
        for (row, column) in board.cells(branch) {
            let mut child = *board;
            let state = child.put(row, column);
            match self.go_on(&child, state) {
                LimitedOutcome::Refuted => {}
                end => return end,
            }
        }
        LimitedOutcome::Refuted
    }
}
