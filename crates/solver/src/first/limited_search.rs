//! Limited search: an exhaustive search under the dual bounds of the board, with a node limit.

use super::components::Components;
use super::concurrent_queries::Task;
use super::refuted_positions::RefutedPositions;
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
/// `weights`; fills the blocks in `components` one after the other. If `refuted` is given, the search
/// uses and extends it whenever it has filled a block.
pub(super) fn limited<W: Width>(
    board: &Residual<'_, W>,
    nodes: u64,
    (weights, components): (&mut Weights, &Components),
    refuted: Option<&mut RefutedPositions>,
    task: Task<'_>,
) -> LimitedOutcome {
    let mut left = nodes;
    let search = Nodes { weights, components, refuted, left: &mut left, task };
    let end = window::search(board, search);
    task.add_nodes(nodes - left);
    end
}

struct Nodes<'a> {
    weights: &'a mut Weights,
    components: &'a Components,
    refuted: Option<&'a mut RefutedPositions>,
    left: &'a mut u64,
    task: Task<'a>,
}

impl Search for Nodes<'_> {
    type Found = LimitedOutcome;

    fn run<W: Width>(mut self, mut board: Residual<'_, W>) -> LimitedOutcome {
        let complete = self.complete(&board);
        let state = board.propagate();
        self.go_on(&board, state, complete)
    }
}

impl Nodes<'_> {
    /// Returns the number of complete blocks, or 0 if no refuted positions are remembered.
    fn complete<W: Width>(&self, board: &Residual<'_, W>) -> usize {
        if self.refuted.is_some() { self.components.complete(board) } else { 0 }
    }

    /// Continues with a board that was propagated, when so many blocks were complete before.
    fn go_on<W: Width>(
        &mut self,
        board: &Residual<'_, W>,
        state: State,
        complete: usize,
    ) -> LimitedOutcome {
        match state {
            State::Refuted => {
                self.weights.learn(board);
                LimitedOutcome::Refuted
            }
            State::Full => LimitedOutcome::Full(board.solution()),
            State::Open(branch) => {
                if self.complete(board) == complete {
                    return self.branch(board, branch);
                }
                let lines = board.open_lines();
                if self.refuted.as_ref().is_some_and(|refuted| refuted.contains(&lines)) {
                    return LimitedOutcome::Refuted;
                }
                let outcome = self.branch(board, branch);
                if let (LimitedOutcome::Refuted, Some(refuted)) = (&outcome, &mut self.refuted) {
                    refuted.insert(lines);
                }
                outcome
            }
        }
    }

    fn branch<W: Width>(&mut self, board: &Residual<'_, W>, branch: Branch) -> LimitedOutcome {
        if *self.left == 0 || self.left.is_multiple_of(CHECK_EVERY) && self.task.is_stopped() {
            return LimitedOutcome::GivenUp;
        }
        *self.left -= 1;
        let branch = self.weights.choose(board, branch, self.components, || 1.0);
        let complete = self.complete(board);
        for (row, column) in board.cells(branch) {
            let mut child = *board;
            let state = child.put(row, column);
            match self.go_on(&child, state, complete) {
                LimitedOutcome::Refuted => {}
                end => return end,
            }
        }
        LimitedOutcome::Refuted
    }
}
