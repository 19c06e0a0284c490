//! Limits of a unit's result, known without counting: a result outside of them is invalid.
//!
//! Below a prefix, m open rows and as many free columns are left, and no two pieces share a column,
//! whatever the piece.
//!
//! - **Completions.** Fill the rows in any fixed order. The queen of the j-th row (from 0) has at
//!   most m − j columns left, and at most as many as the row's mask allows, so a prefix has at most
//!   Π min(m − j, allowed) completions. Here the rows with few allowed columns come first, which
//!   gives the smallest product, at most m!.
//! - **Nodes.** A kernel visits each placement of the first k rows, in its own order, at most once
//!   as a node, and there are at most m!/(m − k)! of them: Σ m!/(m − k)! over k from 1 to m for
//!   each prefix. The permanent of a board of rooks takes at most 2^m − 1 steps, which is less: Σ
//!   m!/(m − k)! ≥ Σ C(m, k). The shaders count the turns of their search above the block in whole
//!   groups of 4. With u ≥ 2 rows left there, a state has at most Σ u!/(u − k)! turns over k from 1
//!   to u − 1, before the last is rounded up: by at most 3 < u! if u ≥ 3, and to 4 = 2!/1! + 2!/0!
//!   if u = 2. So it has at most Σ u!/(u − k)! over k from 1 to u.
//! - The lower limit of the nodes is 0: the batch engine and the shaders drop a prefix whose next
//!   row has no open square before it becomes a node, and the textbook kernel counts no nodes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::prefixes::{Decomposition, prefix_rows};
use super::symmetry_case::SymmetryCase;
use crate::tally::Thirds;

/// Limits of the result of a unit or of a range of prefixes, whichever kernel counts it. They are
/// the same for both images. Bounds beyond 128 bits saturate to `u128::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitLimits {
    /// The number of prefixes, or of column sets, including those that are images of others.
    pub prefixes: u64,
    /// The weights of their symmetry cases; a result has only parts with these weights.
    pub weights: BTreeSet<Thirds>,
    /// An upper bound of the sum in thirds of a solution.
    pub most_thirds: u128,
    /// An upper bound of the nodes.
    pub most_nodes: u128,
    /// A lower bound of the nodes: 0, because some kernels count no node for a prefix.
    pub least_nodes: u128,
}

impl Decomposition {
    /// Returns the limits of a unit's result. Reads the symmetry cases of the unit, not its
    /// prefixes.
    pub fn unit_limits(&self, unit: u64) -> UnitLimits {
        self.limits(self.unit(unit))
    }

    /// Returns the limits of the result of `range`, for example a sub-range.
    pub fn limits(&self, range: Range<u64>) -> UnitLimits {
        if self.has_sets() {
            return self.limits_of_sets(range);
        }
        let mut limits = UnitLimits::default();
        for (index, part) in self.parts_by_case(range) {
            let (case, prefixes) = (&self.cases()[index], part.end - part.start);
            let filled = prefix_rows(self.job(), case);
            let (completions, nodes) = (most_completions(case, filled), most_nodes(case, filled));
            let thirds = u128::from(case.weight()).saturating_mul(completions);
            let all = |of_one: u128| of_one.saturating_mul(prefixes.into());
            limits.prefixes += prefixes;
            limits.weights.insert(case.weight());
            limits.most_thirds = limits.most_thirds.saturating_add(all(thirds));
            limits.most_nodes = limits.most_nodes.saturating_add(all(nodes));
        }
        limits
    }

    /// Returns the limits of the column sets with these numbers. Each half is filled by as many
    /// queens as columns. A kernel for prefixes visits no more nodes than there are placements of
    /// any number of queens, once for each pair of squares of the rows next to the centre, which
    /// [its cases](super::SetFamily::cases) fix; a kernel for sets, fewer.
    fn limits_of_sets(&self, range: Range<u64>) -> UnitLimits {
        let sets = u128::from(self.prefixes().min(range.end).saturating_sub(range.start));
        if sets == 0 {
            return UnitLimits::default();
        }
        let n = self.job().problem().n() as u128;
        let factorial = |k: u128| (1..=k).product::<u128>();
        let nodes = (1 + placements(n)).saturating_mul(n * n + 1);
        let weights: BTreeSet<Thirds> =
            self.set_families().iter().flat_map(super::SetFamily::weights).collect();
        let heaviest = u128::from(weights.last().copied().unwrap_or_default());
        let completions = factorial(n / 2).saturating_mul(factorial(n - n / 2));
        UnitLimits {
            prefixes: sets as u64,
            weights,
            most_thirds: completions.saturating_mul(heaviest).saturating_mul(sets),
            most_nodes: nodes.saturating_mul(sets),
            least_nodes: 0,
        }
    }
}

/// Returns an upper bound of the completions of a prefix of `case` with `filled` rows filled.
fn most_completions(case: &SymmetryCase, filled: usize) -> u128 {
    let mut choices: Vec<u32> =
        case.allowed()[filled..].iter().map(|allowed| allowed.count_ones()).collect();
    choices.sort_unstable();
    // A board has at most 32 rows, and 32! is below 2^118.
    (1..=choices.len() as u32)
        .rev()
        .zip(choices)
        .map(|(free, allowed)| u128::from(free.min(allowed)))
        .product()
}

/// Returns an upper bound of the nodes that a kernel visits below a prefix of `case` with `filled`
/// rows filled.
fn most_nodes(case: &SymmetryCase, filled: usize) -> u128 {
    placements((case.rows().len() - filled) as u128)
}

/// Returns the number of placements of one or more rooks in the first of `rows` rows, one in each.
/// For 32 rows it is below 2^120.
fn placements(rows: u128) -> u128 {
    let by_number = (1..=rows).rev().scan(1, |product, free| {
        *product *= free;
        Some(*product)
    });
    by_number.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem, Square};
    use crate::decomposition::testing::{decompose, queens};

    /// Decomposes the empty board of rooks.
    fn rooks(n: usize) -> Decomposition {
        decompose(&Problem::empty(Piece::Rook, n), None, 1)
    }

    #[test]
    fn an_empty_board_of_rooks_reaches_its_limit() {
        for (n, factorial) in [(0u32, 1u128), (1, 1), (5, 120), (12, 479_001_600)] {
            let limits = rooks(n as usize).unit_limits(0);
            assert_eq!((limits.prefixes, limits.most_thirds), (1, 3 * factorial), "n = {n}");
            assert!(
                limits.most_nodes + 1 >= 1 << n,
                "n = {n}: Ryser's formula takes 2^n - 1 steps"
            );
        }
        assert_eq!(rooks(32).unit_limits(0).most_thirds, 3 * (1..=32).product::<u128>());
    }

    #[test]
    fn a_row_with_few_columns_lowers_the_limit() {
        // Two squares of the last row are open: at most 2 × 3 × 2 × 1.
        let blocked = vec![Square::new(3, 0), Square::new(3, 2)];
        let rooks = Problem::new(Piece::Rook, 4, Vec::new(), blocked).expect("on the board");
        assert_eq!(decompose(&rooks, None, 1).unit_limits(0).most_thirds, 3 * 2 * 6);
    }

    #[test]
    fn limits_of_ranges_add_up_and_equal_those_of_the_mirror_image() {
        for n in [6, 9, 12] {
            let queens = decompose(&queens(n, &[], &[]), Some(3), 17);
            let mut sum = UnitLimits::default();
            for unit in 0..queens.units() {
                let limits = queens.unit_limits(unit);
                assert_eq!(limits, queens.mirrored().unit_limits(unit));
                let range = queens.unit(unit);
                assert_eq!(limits.prefixes, range.end - range.start);
                let mut weights = BTreeSet::new();
                queens.for_each(range, |case, _| weights.extend([case.weight()]));
                assert_eq!(limits.weights, weights);
                sum.prefixes += limits.prefixes;
                sum.weights.extend(limits.weights);
                sum.most_thirds += limits.most_thirds;
                sum.most_nodes += limits.most_nodes;
            }
            assert_eq!(sum, queens.limits(0..queens.prefixes()));
        }
    }

    #[test]
    fn a_unit_without_prefixes_has_a_sum_of_0() {
        let two_in_a_row = queens(8, &[(0, 0), (0, 5)], &[]);
        let nothing = decompose(&two_in_a_row, Some(3), 10);
        assert_eq!(nothing.unit_limits(0), UnitLimits::default());
        assert_eq!(nothing.sub_ranges(0).len(), 0);
        // The same holds for a unit index past the end of the job.
        assert_eq!(nothing.unit_limits(7), UnitLimits::default());
    }
}
