//! Limited search: an exhaustive search under the dual bounds of the board, with a node limit.
//!
//! While it runs, the size of the whole search tree is estimated from the part that was searched,
//! as if all children of a node had trees of the same size (the weighted backtrack estimator of
//! Kilby, Slaney, Thiébaux and Walsh, 2006). A search that would exceed its limit is given up early.
//! Estimates after 524,288 nodes and the sizes: n = 87, first 36 queens and column 71, 12.8 and 9.5
//! million; n = 87, first 31 queens, 17 million million and unknown.

use super::components::Components;
use super::concurrent_queries::Task;
use super::params;
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

/// Searches `board`, which is open, under its dual bounds with at most `nodes` nodes, and fewer if
/// they will not be enough. Updates `weights`; fills the blocks in `components` one after the other.
/// If `refuted` is given, the search uses and extends it whenever it has filled a block.
pub(super) fn limited<W: Width>(
    board: &Residual<'_, W>,
    nodes: u64,
    (weights, components): (&mut Weights, &Components),
    refuted: Option<&mut RefutedPositions>,
    task: Task<'_>,
) -> LimitedOutcome {
    let mut left = nodes;
    let mut search = Nodes {
        weights,
        components,
        refuted,
        limit: nodes,
        left: &mut left,
        share: 1.0,
        searched: 0.0,
        task,
    };
    let end = window::search(board, &mut search);
    task.add_nodes(nodes - left);
    end
}

struct Nodes<'a> {
    weights: &'a mut Weights,
    components: &'a Components,
    refuted: Option<&'a mut RefutedPositions>,
    /// The limit of nodes, and how many are left of it.
    limit: u64,
    left: &'a mut u64,
    /// The shares of the tree that are below the current node and that were searched: 1 is all of it.
    share: f64,
    searched: f64,
    task: Task<'a>,
}

impl Search for &mut Nodes<'_> {
    type Found = LimitedOutcome;

    fn run<W: Width>(self, mut board: Residual<'_, W>) -> LimitedOutcome {
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
                self.searched += self.share;
                LimitedOutcome::Refuted
            }
            State::Full => LimitedOutcome::Full(board.solution()),
            State::Open(branch) => {
                if self.complete(board) == complete {
                    return self.branch(board, branch);
                }
                let lines = board.open_lines();
                if self.refuted.as_ref().is_some_and(|refuted| refuted.contains(&lines)) {
                    self.searched += self.share;
                    return LimitedOutcome::Refuted;
                }
                // What is left of the board often fits narrower words.
                let outcome = window::search(board, &mut *self);
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
        if self.is_too_large() {
            return LimitedOutcome::GivenUp;
        }
        let branch = self.weights.choose(board, branch, self.components, || 1.0);
        let complete = self.complete(board);
        let share = self.share;
        let of_child = share / board.cells(branch).count() as f64;
        for (row, column) in board.cells(branch) {
            self.share = of_child;
            let mut child = *board;
            let state = child.put(row, column);
            match self.go_on(&child, state, complete) {
                LimitedOutcome::Refuted => {}
                end => return end,
            }
        }
        self.share = share;
        LimitedOutcome::Refuted
    }

    /// Returns whether the estimated size of the tree exceeds the limit. Only numbers of nodes that
    /// are powers of two are checked.
    fn is_too_large(&self) -> bool {
        let nodes = self.limit - *self.left;
        nodes >= params::NODES_BEFORE_ESTIMATE.max(self.limit / params::LIMIT_PER_ESTIMATE)
            && nodes.is_power_of_two()
            && nodes as f64 > self.limit as f64 * self.searched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first::board::Board;
    use crate::first::concurrent_queries::Control;
    use crate::first::width::Width64x64;
    use nqueens_proof::board::Square;

    /// Searches the board of size `n` with the first `queens` queens of the greedy prefix. Returns the
    /// outcome and the number of nodes.
    fn search(n: usize, queens: usize, limit: u64) -> (LimitedOutcome, u64) {
        let greedy = Board { n, placed: Vec::new(), blocked: Vec::new() }.greedy();
        let queens = greedy[..queens].iter().enumerate();
        let queens: Vec<Square> = queens.map(|(row, &column)| Square::new(row, column)).collect();
        let board = Residual::<Width64x64>::new(n, &queens);
        let control = Control::default();
        let known = (&mut Weights::new(n), &Components::default());
        let outcome = limited(&board, limit, known, None, Task::alone(&control));
        (outcome, control.nodes())
    }

    #[test]
    fn a_search_is_given_up_early_if_its_limit_will_not_be_enough() {
        let (outcome, nodes) = search(45, 18, 3_000_000);
        assert!(matches!(outcome, LimitedOutcome::Refuted));
        assert!(nodes > params::NODES_BEFORE_ESTIMATE, "{nodes}");

        let (outcome, nodes) = search(45, 17, 3_000_000);
        assert!(matches!(outcome, LimitedOutcome::GivenUp));
        assert!(nodes <= 3_000_000 / 32, "{nodes}");

        let (outcome, nodes) = search(45, 17, 1000);
        assert!(matches!(outcome, LimitedOutcome::GivenUp));
        assert_eq!(nodes, 1000);
    }
}
