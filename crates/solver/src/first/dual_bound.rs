//! Dual bounds: integer multipliers that bound the total reduced cost of a completion of a residual
//! board.
//!
//! The multipliers u (rows), v (columns) and w, z ≥ 0 (the two directions of diagonals) are such
//! that no remaining cell has a reduced cost u + v + w + z below 0. For every completion
//!
//! G = Σ u + Σ v + Σ w + Σ z (over open rows and columns and available diagonals) = Σ reduced costs
//! of its queens + Σ w + Σ z of unused diagonals.
//!
//! Hence G < 0 refutes the board, a cell whose reduced cost exceeds G is eliminated, and a diagonal
//! heavier than G must be used.
//!
//! The used diagonals of a direction form one of the sets of [`crate::first::knapsack`], so the
//! unused ones weigh at least as much as the heaviest set leaves. That amount is subtracted from G
//! at once, and becomes a credit that pays first for diagonals that are lost later. A cell is also
//! eliminated if its reduced cost exceeds the slack left by the heaviest sets that contain its two
//! diagonals.
//!
//! The multipliers come from the duals of a linear relaxation in floating point. [`DualBound::new`]
//! makes them valid in integers, whatever they are.

use super::knapsack::{Diagonals, Knapsack};
use super::listed_sets;
use super::residual::Residual;
use super::width::Width;
use super::window::Window;
use crate::bitset::BitSet;
use nqueens_proof::board::Square;
use nqueens_proof::first::Multipliers;

/// Number of levels of G for which filters are tabulated.
pub(super) const LEVELS: usize = 32;

/// A dual bound with its tables.
#[derive(Debug)]
pub(super) struct DualBound<W: Width> {
    /// Multipliers u and v of the rows and columns.
    rows: Vec<i64>,
    columns: Vec<i64>,
    diagonals: Vec<i64>,
    antidiagonals: Vec<i64>,
    /// Difference of G between two levels.
    step: i64,
    /// By level: the cells with a reduced cost of at most level × step, except those that the
    /// knapsacks eliminate.
    affordable: Vec<W::Rows>,
    /// By level: the diagonals that weigh more than level × step.
    heavy: Vec<[W::Diagonals; 2]>,
}

impl<W: Width> DualBound<W> {
    /// Creates the dual bound of `multipliers` on a board, with its slack. Returns `None` if G < 0,
    /// that is, if the board is refuted. The row multipliers are computed as small as possible;
    /// then the column multipliers are lowered as far as the reduced costs allow.
    pub(super) fn new(
        board: &Residual<'_, W>,
        multipliers: &Multipliers,
        knapsack: &mut Knapsack,
    ) -> Option<(Self, Slack)> {
        let n = board.n();
        let (rows, columns) = repaired(board, multipliers);
        let mut dual_bound = Self {
            rows,
            columns,
            diagonals: multipliers.diagonals.clone(),
            antidiagonals: multipliers.antidiagonals.clone(),
            step: 0,
            affordable: Vec::new(),
            heavy: Vec::new(),
        };
        let lines = dual_bound.rows.iter().chain(&dual_bound.columns).sum::<i64>();
        let mut slack = Slack { left: lines, credit: [0; 2] };
        let mut with = [Vec::new(), Vec::new()];
        for (direction, with) in with.iter_mut().enumerate() {
            let weights = dual_bound.weights(direction);
            let all: i64 = board.diagonals()[direction].iter().map(|line| weights[line]).sum();
            let weight;
            (weight, *with) = greatest_weights(board, multipliers, direction, knapsack)?;
            slack.left += weight;
            slack.credit[direction] = all - weight;
        }
        if slack.left < 0 {
            return None;
        }
        dual_bound.step = slack.left / (LEVELS as i64 - 1) + 1;
        dual_bound.affordable = vec![W::NO_ROWS; LEVELS + 1];
        for row in board.rows().iter() {
            for column in board.remaining(row).iter() {
                let (falling, rising) = (with[0][column + n - 1 - row], with[1][row + column]);
                if falling < 0
                    || rising < 0
                    || lines + falling + rising < dual_bound.cost(n, row, column)
                {
                    continue;
                }
                let level = dual_bound.level(dual_bound.cost(n, row, column));
                let cells = &mut dual_bound.affordable[level].as_mut()[row];
                *cells = cells.or(W::Columns::one(column));
            }
        }
        for level in 0..LEVELS {
            let below = dual_bound.affordable[level];
            let cells = dual_bound.affordable[level + 1].as_mut().iter_mut().zip(below.as_ref());
            cells.for_each(|(cells, &below)| *cells = cells.or(below));
        }
        let heavier = |weights: &[i64], level: usize| {
            let heavy =
                weights.iter().enumerate().filter(|&(_, &weight)| dual_bound.level(weight) > level);
            heavy.fold(W::Diagonals::EMPTY, |set, (i, _)| set.or(W::Diagonals::one(i)))
        };
        dual_bound.heavy = (0..=LEVELS)
            .map(|level| {
                [heavier(&dual_bound.diagonals, level), heavier(&dual_bound.antidiagonals, level)]
            })
            .collect();
        Some((dual_bound, slack))
    }

    /// Restricts the bound to a window of a board of this height.
    pub(super) fn within<V: Width>(&self, height: usize, window: &Window) -> DualBound<V> {
        let Square { row, col } = window.corner;
        let [falling, rising] = window.first_diagonals(height);
        let part = |of: &[i64], from: usize, number: usize| of[from..from + number].to_vec();
        let affordable = self.affordable.iter().map(|cells| {
            let mut moved = V::NO_ROWS;
            let rows = &cells.as_ref()[row..row + window.height];
            moved
                .as_mut()
                .iter_mut()
                .zip(rows)
                .for_each(|(to, cells)| *to = cells.shifted_down(col));
            moved
        });
        let heavy =
            |of: &[W::Diagonals; 2]| [of[0].shifted_down(falling), of[1].shifted_down(rising)];
        DualBound {
            rows: part(&self.rows, row, window.height),
            columns: part(&self.columns, col, window.width),
            diagonals: part(&self.diagonals, falling, window.diagonals()),
            antidiagonals: part(&self.antidiagonals, rising, window.diagonals()),
            step: self.step,
            affordable: affordable.collect(),
            heavy: self.heavy.iter().map(heavy).collect(),
        }
    }

    /// Returns the weights of the diagonals of a direction.
    #[inline]
    pub(super) fn weights(&self, direction: usize) -> &[i64] {
        if direction == 0 { &self.diagonals } else { &self.antidiagonals }
    }

    /// Returns the reduced cost of a cell of a board of this height: a queen there lowers G by it.
    #[inline]
    pub(super) fn cost(&self, height: usize, row: usize, column: usize) -> i64 {
        self.rows[row]
            + self.columns[column]
            + self.diagonals[column + height - 1 - row]
            + self.antidiagonals[row + column]
    }

    /// Returns the level of a slack: the least level with slack ≤ level × step, at most [`LEVELS`].
    #[inline]
    pub(super) fn level(&self, slack: i64) -> usize {
        // Boards of odd size leave hardly any slack, and a division is slow.
        if slack == 0 { 0 } else { (((slack + self.step - 1) / self.step) as usize).min(LEVELS) }
    }

    /// Returns the cells that a slack of this level permits, by row.
    #[inline]
    pub(super) fn affordable(&self, level: usize) -> &[W::Columns] {
        self.affordable[level].as_ref()
    }

    /// Returns the diagonals of each direction that must be used.
    #[inline]
    pub(super) fn heavy(&self, slack: &Slack) -> [W::Diagonals; 2] {
        [0, 1].map(|direction| {
            self.heavy[self.level(slack.left + slack.credit[direction])][direction]
        })
    }
}

/// The slack left in a dual bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slack {
    /// G.
    pub(super) left: i64,
    /// The weight of diagonals of each direction that can still be lost without reducing G.
    pub(super) credit: [i64; 2],
}

impl Slack {
    /// Accounts for diagonals of a direction with this total weight that can no longer be used.
    #[inline]
    pub(super) fn lose(&mut self, direction: usize, weight: i64) {
        let credit = &mut self.credit[direction];
        *credit -= weight;
        if *credit < 0 {
            self.left += *credit;
            *credit = 0;
        }
    }
}

/// A heaviest set of diagonals of one direction.
pub(super) struct Heaviest<W: Width> {
    pub(super) weight: i64,
    pub(super) diagonals: W::Diagonals,
}

/// Returns the heaviest sets of diagonals of both directions that a completion can use, or `None`
/// if there is no such set, that is, if the board is refuted. The weights sum to less than 2^30.
pub(super) fn heaviest<W: Width>(
    board: &Residual<'_, W>,
    multipliers: &Multipliers,
    knapsack: &mut Knapsack,
) -> Option<[Heaviest<W>; 2]> {
    let mut of = |direction: usize| {
        if let Some(listed) = &knapsack.listed {
            let weights = listed_weights(board, multipliers, direction);
            let (weight, set) = listed.heaviest(direction, &weights)?;
            let diagonals = listed_sets::diagonals::<W>(set).and(board.diagonals()[direction]);
            return Some(Heaviest { weight, diagonals });
        }
        let sets = Sets::new(board, multipliers, direction);
        let set = knapsack.heaviest(&sets.diagonals, sets.count, sets.sum)?;
        let chosen = set.chosen.iter().map(|&i| W::Diagonals::one(sets.line(i)));
        Some(Heaviest {
            weight: set.weight.into(),
            diagonals: chosen.fold(W::Diagonals::EMPTY, |all, one| all.or(one)),
        })
    };
    Some([of(0)?, of(1)?])
}

/// Returns the greatest weight of a set of diagonals of a direction and, by diagonal, the greatest
/// weight of a set that contains it, which is negative if there is none.
fn greatest_weights<W: Width>(
    board: &Residual<'_, W>,
    multipliers: &Multipliers,
    direction: usize,
    knapsack: &mut Knapsack,
) -> Option<(i64, Vec<i64>)> {
    let Some(listed) = &knapsack.listed else {
        return Sets::new(board, multipliers, direction).weights(knapsack, 2 * board.n() - 1);
    };
    let weights = listed_weights(board, multipliers, direction);
    let (any, with) = listed.greatest_weights(direction, &weights)?;
    Some((any, with.into_iter().map(|weight| weight.unwrap_or(-1)).collect()))
}

/// Returns the weights of the remaining diagonals of a direction; 0 for others.
fn listed_weights<W: Width>(
    board: &Residual<'_, W>,
    multipliers: &Multipliers,
    direction: usize,
) -> Vec<i64> {
    let weights = [&multipliers.diagonals, &multipliers.antidiagonals][direction];
    let mut remaining = vec![0; weights.len()];
    board.diagonals()[direction].iter().for_each(|line| remaining[line] = weights[line]);
    remaining
}

/// The sets of diagonals of one direction that a completion of a board can use.
struct Sets {
    diagonals: Diagonals,
    /// Number of diagonals in a set.
    count: usize,
    /// Sum of the positions of the diagonals in a set.
    sum: i32,
    /// Index of the diagonal with position 0.
    zero: i32,
}

impl Sets {
    fn new<W: Width>(board: &Residual<'_, W>, multipliers: &Multipliers, direction: usize) -> Self {
        let sum = |set: W::Columns| set.iter().map(|i| i as i32).sum::<i32>();
        let (rows, columns) = (sum(board.rows()), sum(board.columns()));
        let (weights, zero, sum) = match direction {
            0 => (&multipliers.diagonals, board.n() as i32 - 1, columns - rows),
            _ => (&multipliers.antidiagonals, 0, rows + columns),
        };
        let remaining = board.diagonals()[direction];
        let diagonals = Diagonals {
            places: remaining.iter().map(|line| line as i32 - zero).collect(),
            weights: remaining.iter().map(|line| weights[line] as i32).collect(),
        };
        Self { diagonals, count: board.rows().len(), sum, zero }
    }

    fn line(&self, diagonal: usize) -> usize {
        (self.diagonals.places[diagonal] + self.zero) as usize
    }

    /// Returns the greatest weight of a set and, by diagonal, the greatest weight of a set that
    /// contains it, which is negative if there is none.
    fn weights(&self, knapsack: &mut Knapsack, lines: usize) -> Option<(i64, Vec<i64>)> {
        let (weight, with) = knapsack.weights(&self.diagonals, self.count, self.sum)?;
        let mut by_line = vec![-1; lines];
        with.into_iter().enumerate().for_each(|(i, weight)| by_line[self.line(i)] = weight.into());
        Some((weight.into(), by_line))
    }
}

/// Returns multipliers of the rows and columns such that no remaining cell has a negative reduced
/// cost.
pub(super) fn repaired<W: Width>(
    board: &Residual<'_, W>,
    multipliers: &Multipliers,
) -> (Vec<i64>, Vec<i64>) {
    let n = board.n();
    let (mut rows, mut columns) = (vec![0; n], vec![0; n]);
    let diagonals = |row: usize, column: usize| {
        multipliers.diagonals[column + n - 1 - row] + multipliers.antidiagonals[row + column]
    };
    for row in board.rows().iter() {
        let cost = |column: usize| multipliers.columns[column] + diagonals(row, column);
        rows[row] = -board.remaining(row).iter().map(cost).min().unwrap_or(0);
    }
    let mut least = vec![i64::MAX; n];
    for row in board.rows().iter() {
        for column in board.remaining(row).iter() {
            let cost = rows[row] + multipliers.columns[column] + diagonals(row, column);
            least[column] = least[column].min(cost);
        }
    }
    for column in board.columns().iter() {
        let spare = if least[column] == i64::MAX { 0 } else { least[column] };
        columns[column] = multipliers.columns[column] - spare;
    }
    (rows, columns)
}
