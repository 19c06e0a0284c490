//! Dives: randomized searches for a completion that are restarted again and again.
//!
//! The time until a search finds a completion is heavy-tailed: an early wrong queen costs the whole
//! subtree below it. So a dive is abandoned after a number of nodes, with lengths in proportion to
//! 1, 1, 2, 1, 1, 2, 4, … (Luby, Sinclair and Zuckerman, 1993). The dual bounds of the board do the
//! pruning. The search branches on lines that have failed before. Dives prove nothing.
//!
//! Cells are tried in the order of their LP values or, on boards of odd size, of their
//! [marginals](super::marginals), which are fitted anew at each node (counting-based search:
//! Zanarini and Pesant, 2009); then the row with the largest marginal replaces other rows. Both
//! have some noise.

use fastrand::Rng;

use super::components::Components;
use super::control::Task;
use super::marginals::Factors;
use super::params;
use super::residual::{Branch, Residual, State};
use super::weights::Weights;
use super::width::Width;
use super::window::{self, Search};
use crate::bitset::BitSet;

/// Looks for a completion of `board`, which is open, with at most `nodes` nodes, in the order
/// of `lp_values`, the LP value of each cell by row × n + column, or of the marginals. Updates
/// `weights`; fills the blocks in `components` one after the other.
pub(super) fn dive<W: Width>(
    board: &Residual<'_, W>,
    lp_values: Option<&[f64]>,
    nodes: u64,
    (weights, components, random): (&mut Weights, &Components, &mut Rng),
    task: Task<'_>,
) -> Option<Vec<usize>> {
    let (factors, cells) = (Factors::new(), Vec::new());
    let dives =
        Dives { lp_values, nodes, weights, components, random, task, factors, cells, left: 0 };
    window::search(board, dives)
}

struct Dives<'a> {
    lp_values: Option<&'a [f64]>,
    nodes: u64,
    weights: &'a mut Weights,
    components: &'a Components,
    random: &'a mut Rng,
    task: Task<'a>,
    factors: Factors,
    cells: Vec<(u8, u8)>,
    /// Nodes left of the current dive.
    left: u64,
}

impl Search for Dives<'_> {
    type Found = Option<Vec<usize>>;

    fn run<W: Width>(mut self, mut board: Residual<'_, W>) -> Option<Vec<usize>> {
        let state = board.propagate();
        let mut factors = Factors::new();
        if self.lp_values.is_none() {
            factors.fit(&board, params::FITS_OF_A_DIVE, &mut self.cells);
        }
        let mut dives = 0;
        while self.nodes > 0 && !self.task.is_stopped() {
            dives += 1;
            let length = self.nodes.min(params::SHORTEST_DIVE_NODES * luby(dives));
            (self.factors, self.left) = (factors.clone(), length);
            let found = self.go_on(&board, state);
            self.task.add_nodes(length - self.left);
            // With nodes left, the search was exhaustive.
            if found.is_some() || self.left > 0 {
                return found;
            }
            self.nodes -= length;
        }
        None
    }
}

/// Returns the number at position `k` ≥ 1 of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, …
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

impl Dives<'_> {
    /// Returns a completion, or `None` if there is none or no nodes are left.
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
        let noise = || 1.0 + params::DIVE_SIZE_NOISE * self.random.f64();
        let branch = self.weights.choose(board, branch, self.components, noise);
        let before = self.lp_values.is_none().then(|| self.factors.clone());
        let mut cells = match self.lp_values {
            Some(lp_values) => self.cells_by_lp_value(board, branch, lp_values),
            None => self.cells_by_marginal(board, branch),
        };
        cells.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, row, column) in cells {
            let mut child = *board;
            let state = child.put(row, column);
            let found = self.go_on(&child, state);
            if found.is_some() || self.left == 0 {
                return found;
            }
        }
        if let Some(before) = before {
            self.factors = before;
        }
        None
    }

    /// Returns the cells of a line with their LP values, with noise.
    fn cells_by_lp_value<W: Width>(
        &mut self,
        board: &Residual<'_, W>,
        branch: Branch,
        lp_values: &[f64],
    ) -> Vec<(f64, usize, usize)> {
        let (n, corner) = (board.n(), board.corner());
        let cell = |(row, column)| {
            let value = lp_values[(corner.row + row) * n + corner.col + column];
            (value + params::DIVE_NOISE * self.random.f64(), row, column)
        };
        board.cells(branch).map(cell).collect()
    }

    /// Fits the marginals, and returns the cells of a line, or of the likeliest row instead of
    /// another row, with the logarithms of their marginals, with noise.
    fn cells_by_marginal<W: Width>(
        &mut self,
        board: &Residual<'_, W>,
        mut branch: Branch,
    ) -> Vec<(f64, usize, usize)> {
        self.factors.fit(board, params::FITS_OF_A_NODE, &mut self.cells);
        if matches!(branch, Branch::Row(_)) {
            branch = self.likeliest_row(board);
        }
        let cell = |(row, column)| {
            let marginal = self.factors.marginal(board.height(), row, column);
            (marginal.ln() + params::DIVE_TEMPERATURE * self.gumbel(), row, column)
        };
        board.cells(branch).map(cell).collect()
    }

    /// Returns the row of the first open block with the largest marginal, with some noise.
    fn likeliest_row<W: Width>(&mut self, board: &Residual<'_, W>) -> Branch {
        let rows = self.components.first(board);
        let (mut largest, mut likeliest) = (f64::NEG_INFINITY, rows.least());
        for row in rows.iter() {
            for column in board.remaining(row).iter() {
                let noise = 1.0 + params::DIVE_MARGINAL_NOISE * self.random.f64();
                let marginal = self.factors.marginal(board.height(), row, column) * noise;
                if marginal > largest {
                    (largest, likeliest) = (marginal, row);
                }
            }
        }
        Branch::Row(likeliest)
    }

    /// Returns a random number with the standard Gumbel distribution: added to the logarithms of
    /// weights, it sorts in the order of draws in proportion to the weights.
    fn gumbel(&mut self) -> f64 {
        -(-self.random.f64().max(f64::MIN_POSITIVE).ln()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::luby;

    #[test]
    fn lengths_follow_the_luby_sequence() {
        let lengths: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(lengths, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
