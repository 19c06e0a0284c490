//! Limited search: an exhaustive search under the dual bounds of the board, with a node limit.
//!
//! While it runs, the size of the whole search tree is estimated from the part that was searched,
//! as if all children of a node had trees of the same size (the weighted backtrack estimator of
//! Kilby, Slaney, Thiébaux and Walsh, 2006). A search that would exceed its limit is given up
//! early. Estimates after 524,288 nodes and the sizes: n = 87, first 36 queens and column 71, 12.8
//! and 9.5 million; n = 87, first 31 queens, 17 million million and unknown.

use std::iter;

use super::components::Components;
use super::control::Task;
use super::params;
use super::placements::Placements;
use super::refuted_positions::{OpenLines, RefutedPositions};
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
/// they will not be enough. Updates `weights`; fills the blocks in `components` one after the
/// other. If `refuted` is given, the search uses and extends it whenever it has filled a block, and
/// goes on below most placements of all blocks only when all of these are known. Also returns the
/// number of nodes.
pub(super) fn limited<W: Width>(
    board: &Residual<'_, W>,
    nodes: u64,
    (weights, components): (&mut Weights, &Components),
    refuted: Option<&mut RefutedPositions>,
    task: Task<'_>,
) -> (LimitedOutcome, u64) {
    let budget = Budget { limit: nodes, left: nodes, share: 1.0, searched: 0.0, task };
    let placements = refuted.is_some().then(Placements::default);
    let mut search = Nodes { weights, components, refuted, placements, budget };
    let mut outcome = window::search(board, &mut search);
    if matches!(outcome, LimitedOutcome::Refuted) {
        outcome = search.search_deferred(board);
    }
    let searched = nodes - search.budget.left;
    task.add_nodes(searched);
    (outcome, searched)
}

/// The nodes that a search may have, and how much of its tree has been searched.
struct Budget<'a> {
    /// The nodes that were left when the tree was begun, and those that are left now.
    limit: u64,
    left: u64,
    /// The shares of the tree that are below the current node and that were searched: 1 is all of
    /// it.
    share: f64,
    searched: f64,
    task: Task<'a>,
}

impl Budget<'_> {
    /// Begins a tree, of which the next board is the share `share`, with the nodes that are left.
    fn begin(&mut self, share: f64) {
        (self.limit, self.share, self.searched) = (self.left, share, 0.0);
    }

    /// Counts the share of the current node as searched.
    fn end_part(&mut self) {
        self.searched += self.share;
    }

    /// Counts a node. Returns whether the search is to be given up.
    fn spend_node(&mut self) -> bool {
        if self.left == 0 || self.left.is_multiple_of(CHECK_EVERY) && self.task.is_stopped() {
            return true;
        }
        self.left -= 1;
        self.is_too_large()
    }

    /// Returns whether the estimated size of the tree exceeds the limit. Only numbers of nodes that
    /// are powers of two are checked.
    fn is_too_large(&self) -> bool {
        let nodes = self.limit - self.left;
        nodes >= params::NODES_BEFORE_ESTIMATE.max(self.limit / params::LIMIT_PER_ESTIMATE)
            && nodes.is_power_of_two()
            && nodes as f64 > self.limit as f64 * self.searched
    }
}

struct Nodes<'a> {
    weights: &'a mut Weights,
    components: &'a Components,
    refuted: Option<&'a mut RefutedPositions>,
    placements: Option<Placements>,
    budget: Budget<'a>,
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
                self.budget.end_part();
                LimitedOutcome::Refuted
            }
            State::Full => LimitedOutcome::Full(board.solution()),
            State::Open(branch) => {
                if self.complete(board) == complete {
                    self.branch(board, branch)
                } else {
                    self.go_on_below(board)
                }
            }
        }
    }

    /// Continues with a board where another block is complete.
    fn go_on_below<W: Width>(&mut self, board: &Residual<'_, W>) -> LimitedOutcome {
        let lines = board.open_lines();
        let is_known = self.refuted.as_ref().is_some_and(|refuted| refuted.contains(&lines))
            || self.placements.as_ref().is_some_and(|placements| placements.contains(&lines));
        if is_known {
            self.budget.end_part();
            return LimitedOutcome::Refuted;
        }
        let is_last = self.components.complete(board) == self.components.len();
        if let Some(placements) = &mut self.placements
            && is_last
            && !placements.is_searched_at_once()
        {
            placements.defer(board, lines, self.components);
            self.budget.end_part();
            if placements.expected_nodes() > self.budget.left {
                return LimitedOutcome::GivenUp;
            }
            return LimitedOutcome::Refuted;
        }
        // What is left of the board often fits narrower words.
        let outcome = match (&self.placements, is_last) {
            (Some(_), true) => self.sample(board),
            _ => window::search(board, &mut *self),
        };
        if matches!(outcome, LimitedOutcome::Refuted) {
            match (&mut self.placements, &mut self.refuted) {
                // Some of the boards below may still be deferred.
                (Some(placements), _) if !is_last => placements.add_lines(lines),
                (_, Some(refuted)) => refuted.insert(lines),
                (_, None) => {}
            }
        }
        outcome
    }

    /// Searches the board of a placement at once, as a tree of its own.
    fn sample<W: Width>(&mut self, board: &Residual<'_, W>) -> LimitedOutcome {
        let Budget { limit, left, share, searched, .. } = self.budget;
        self.budget.begin(1.0);
        let outcome = window::search(board, &mut *self);
        let nodes = left - self.budget.left;
        self.budget.limit = limit - nodes;
        (self.budget.share, self.budget.searched) = (share, searched + share);
        if let Some(placements) = &mut self.placements {
            placements.add_sample(nodes);
        }
        outcome
    }

    /// Searches `board` with each of the placements whose boards were deferred. All others are
    /// refuted.
    fn search_deferred<W: Width>(&mut self, board: &Residual<'_, W>) -> LimitedOutcome {
        let Some(mut placements) = self.placements.take() else { return LimitedOutcome::Refuted };
        let deferred = placements.take_deferred();
        let share = 1.0 / deferred.len() as f64;
        self.budget.begin(share);
        for (lines, placement) in deferred {
            self.budget.share = share;
            let mut placed = *board;
            let outcome = match placed.put_all(&placement) {
                State::Refuted => {
                    self.budget.end_part();
                    LimitedOutcome::Refuted
                }
                State::Full => LimitedOutcome::Full(placed.solution()),
                State::Open(_) => window::search(&placed, &mut *self),
            };
            if !matches!(outcome, LimitedOutcome::Refuted) {
                return outcome;
            }
            self.remember(iter::once(lines));
        }
        self.remember(placements.into_lines());
        LimitedOutcome::Refuted
    }

    /// Adds refuted positions.
    fn remember(&mut self, lines: impl Iterator<Item = OpenLines>) {
        if let Some(refuted) = &mut self.refuted {
            lines.for_each(|lines| refuted.insert(lines));
        }
    }

    fn branch<W: Width>(&mut self, board: &Residual<'_, W>, branch: Branch) -> LimitedOutcome {
        if self.budget.spend_node() {
            return LimitedOutcome::GivenUp;
        }
        let branch = self.weights.choose(board, branch, self.components, || 1.0);
        let complete = self.complete(board);
        let share = self.budget.share;
        let of_child = share / board.cells(branch).count() as f64;
        for (row, column) in board.cells(branch) {
            self.budget.share = of_child;
            let mut child = *board;
            let state = child.put(row, column);
            match self.go_on(&child, state, complete) {
                LimitedOutcome::Refuted => {}
                end => return end,
            }
        }
        self.budget.share = share;
        LimitedOutcome::Refuted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitset::BitSet;
    use crate::first::board::Board;
    use crate::first::control::Control;
    use crate::first::tests::squares;
    use crate::first::width::Width64x64;
    use nqueens_proof::board::{Piece, is_solution};

    /// Searches the board of size `n` with the first `queens` queens of the greedy prefix. Returns
    /// the outcome and the number of nodes.
    fn search(n: usize, queens: usize, limit: u64) -> (LimitedOutcome, u64) {
        let greedy = Board { n, placed: Vec::new(), blocked: Vec::new() }.greedy();
        let board = Residual::<Width64x64>::new(n, &squares(&greedy[..queens]));
        let control = Control::default();
        let known = (&mut Weights::new(n), &Components::default());
        limited(&board, limit, known, None, Task::alone(&control))
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

    /// Searches the board of size `n` with the first `queens` queens of the greedy prefix, where
    /// the next five rows are to be filled first, mainly from the columns at the right, without
    /// refuted positions and with them. Returns whether there is a completion, and the number of
    /// positions that the second search refuted.
    fn search_in_blocks(n: usize, queens: usize) -> (bool, usize) {
        const BLOCK: usize = 5;
        let greedy = Board { n, placed: Vec::new(), blocked: Vec::new() }.greedy();
        let mut board = Residual::<Width64x64>::new(n, &squares(&greedy[..queens]));
        assert!(matches!(board.propagate(), State::Open(_)));
        let columns: Vec<usize> = board.columns().iter().collect();
        let right = columns[columns.len() - BLOCK];
        let mut lp_values = vec![0.0; n * n];
        for row in board.rows().iter() {
            let in_block = row < queens + BLOCK;
            let used = board.remaining(row).iter().filter(|&column| (column >= right) == in_block);
            used.for_each(|column| lp_values[row * n + column] = 0.1);
        }
        let components = Components::new(&board, &lp_values);
        assert_eq!(components.len(), 1);
        let control = Control::default();
        let search = |refuted: Option<&mut RefutedPositions>| {
            let known = (&mut Weights::new(n), &components);
            match limited(&board, 20_000_000, known, refuted, Task::alone(&control)) {
                (LimitedOutcome::Refuted, _) => false,
                (LimitedOutcome::Full(columns), _) => {
                    assert!(is_solution(Piece::Queen, &columns), "{columns:?}");
                    true
                }
                (LimitedOutcome::GivenUp, nodes) => panic!("n = {n}: {nodes} nodes"),
            }
        };
        let has_completion = search(None);
        let mut refuted = RefutedPositions::default();
        assert_eq!(search(Some(&mut refuted)), has_completion);
        (has_completion, refuted.len())
    }

    #[test]
    fn deferred_placements_do_not_change_the_outcome() {
        for (n, queens, has_completion) in [
            (20, 6, false),
            (21, 6, true),
            (22, 6, false),
            (24, 7, true),
            (27, 8, true),
            (28, 8, true),
        ] {
            let (completed, refuted) = search_in_blocks(n, queens);
            assert_eq!(completed, has_completion, "n = {n}");
            let sampled = params::SAMPLED_PLACEMENTS as usize;
            assert!(completed || refuted > sampled, "n = {n}: {refuted} placements");
        }
    }
}
