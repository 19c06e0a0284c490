//! Dual bounds of a position, and the slack that they leave.
//!
//! A *dual bound* gives an integer multiplier y to each line (of any sign for rows and columns, not
//! negative for diagonals) such that the reduced cost y(row) + y(column) + y(diagonal) +
//! y(antidiagonal) of no candidate is negative. Over any completion, the reduced costs of its
//! queens and the weights y of the unused diagonals sum to exactly G = Σ y over all open rows, open
//! columns and diagonals with a candidate. So G < 0 refutes the position, a square whose
//! reduced cost exceeds G is eliminated (reduced-cost fixing), and a diagonal whose weight exceeds
//! G must be used. G is an upper bound on what the queens still to come can cost: the *slack*. A
//! queen subtracts its reduced cost from it, and a diagonal that can no longer be used subtracts
//! its weight.
//!
//! With the *knapsacks*, the least total weight of the unused diagonals of a direction (all
//! diagonals with a candidate, without the heaviest set that a completion can use) is subtracted
//! from G at once and becomes a *credit*: diagonals of this direction that can no longer be used
//! reduce the credit first, and G only when the credit is 0.

use super::super::knapsack::{Heaviest, Item, KnapsackOutcome, heaviest};
use super::{Line, MOST_DUAL_BOUNDS, Position};

/// A dual bound, evaluated on the squares of a position.
pub(super) struct DualBound {
    pub(super) slack: Slack,
    /// By square: its reduced cost.
    pub(super) cost: Vec<i64>,
    /// By line: the weight of a diagonal that was usable when the dual bound was added.
    weight: Vec<i64>,
    /// The squares by descending reduced cost.
    squares: Vec<usize>,
    /// The diagonals of each direction with positive weight, by descending weight.
    diagonals: [Vec<usize>; 2],
}

/// The part of a dual bound that changes.
#[derive(Clone, Copy, Default)]
pub(super) struct Slack {
    /// The current slack: the remaining part of G.
    pub(super) value: i64,
    /// The credit of each direction: the weight of unused diagonals that has already been
    /// subtracted from G.
    credit: [i64; 2],
    /// The number of squares whose reduced cost was found to exceed the slack.
    costly: usize,
    /// The number of diagonals of each direction whose weight was found to exceed the slack plus
    /// the credit.
    mandatory: [usize; 2],
}

/// A dual bound displaced by another one.
pub(in super::super) struct Displaced(Option<DualBound>);

impl Position {
    /// Adds the dual bound of `y` (by line, without the rows).
    ///
    /// With `knapsack` there is less slack, but a credit; and squares are eliminated whose reduced
    /// cost exceeds the slack even if the heaviest sets that contain their two diagonals are used.
    pub(in super::super) fn add_dual_bound(&mut self, y: &[i64], knapsack: bool) -> Displaced {
        let n = self.n;
        let y = self.dual_feasible(y);
        self.spend(40 * n * n);
        let cost: Vec<i64> = (0..n * n).map(|square| self.cost(&y, square)).collect();
        let usable = |line: &usize| self.is_usable(*line);
        let weight: Vec<i64> = (0..y.len())
            .map(|line| if line >= 2 * n && usable(&line) { y[line] } else { 0 })
            .collect();
        let lines: i64 = y[..2 * n].iter().sum();
        let weights = [&weight[2 * n..4 * n - 1], &weight[4 * n - 1..]]
            .map(|weights| weights.iter().sum::<i64>());
        let mut slack = Slack { value: lines + weights[0] + weights[1], ..Slack::default() };
        if knapsack {
            match self.heaviest_diagonals(&y) {
                [KnapsackOutcome::NoSet, _] | [_, KnapsackOutcome::NoSet] => self.refuted = true,
                [KnapsackOutcome::Heaviest(falling), KnapsackOutcome::Heaviest(rising)] => {
                    let is_eliminated = |&square: &usize| {
                        let [_, _, diagonal, antidiagonal] = self.lines_of[square].map(usize::from);
                        let (diagonal, antidiagonal) =
                            (diagonal - 2 * n, antidiagonal - (4 * n - 1));
                        let most = falling.with[diagonal].zip(rising.with[antidiagonal]);
                        most.is_none_or(|(falling, rising)| lines + falling + rising < cost[square])
                    };
                    let eliminated: Vec<usize> = self.candidates().filter(is_eliminated).collect();
                    slack.value = lines + falling.any + rising.any;
                    slack.credit = [weights[0] - falling.any, weights[1] - rising.any];
                    eliminated.into_iter().for_each(|square| self.eliminate(square));
                }
                // The knapsack is too large, as certificates define it: use the plain dual bound.
                _ => {}
            }
        }
        let mut squares: Vec<usize> = self.candidates().collect();
        squares.sort_by_key(|&square| std::cmp::Reverse(cost[square]));
        let diagonals = [2 * n..4 * n - 1, 4 * n - 1..y.len()].map(|lines| {
            let mut diagonals: Vec<usize> = lines.filter(|&line| weight[line] > 0).collect();
            diagonals.sort_by_key(|&line| std::cmp::Reverse(weight[line]));
            diagonals
        });
        let displaced =
            (self.dual_bounds.len() == MOST_DUAL_BOUNDS).then(|| self.dual_bounds.remove(1));
        let mut dual_bound = DualBound { slack, cost, weight, squares, diagonals };
        // Subtract the diagonals whose candidates were all eliminated by the knapsacks.
        let is_unusable = |line: &Line| !line.is_taken() && line.count() == 0;
        for line in (2 * n..y.len()).filter(|&line| is_unusable(&self.lines[line])) {
            dual_bound.mark_unusable(line, direction(n, line));
        }
        self.dual_bounds.push(dual_bound);
        Displaced(displaced)
    }

    /// Returns whether the dual bound of `y` with the knapsacks has negative slack.
    pub(in super::super) fn is_refuted_by(&self, y: &[i64]) -> bool {
        let y = self.dual_feasible(y);
        let lines: i64 = y[..2 * self.n].iter().sum();
        match self.heaviest_diagonals(&y) {
            [KnapsackOutcome::NoSet, _] | [_, KnapsackOutcome::NoSet] => true,
            [KnapsackOutcome::Heaviest(falling), KnapsackOutcome::Heaviest(rising)] => {
                lines + falling.any + rising.any < 0
            }
            _ => false,
        }
    }

    /// Returns dual feasible multipliers of all lines: those of the rows are the least for which no
    /// reduced cost is negative, then those of the columns are lowered as far as the reduced costs
    /// allow.
    pub(crate) fn dual_feasible(&self, y: &[i64]) -> Vec<i64> {
        let n = self.n;
        self.spend(8 * n * n);
        let mut y: Vec<i64> = std::iter::repeat_n(0, n).chain(y.iter().copied()).collect();
        for line in 0..2 * n {
            if self.lines[line].is_taken() {
                y[line] = 0;
            } else if let Some(least) =
                self.candidates_on(line).map(|square| self.cost(&y, square)).min()
            {
                y[line] -= least;
            }
        }
        y
    }

    /// Removes the last dual bound and restores the displaced one. Must be called before
    /// backtracking to the mark.
    pub(in super::super) fn remove_dual_bound(&mut self, displaced: Displaced) {
        self.dual_bounds.pop();
        if let Some(dual_bound) = displaced.0 {
            self.dual_bounds.insert(1, dual_bound);
        }
    }

    /// Returns the heaviest sets of diagonals of each direction that a completion can use, under
    /// the weights `y`: of the listed ones, if there are any, or else by knapsacks. Their items are
    /// all diagonals of that direction.
    pub(crate) fn heaviest_diagonals(&self, y: &[i64]) -> [KnapsackOutcome; 2] {
        let n = self.n;
        if let Some(sets) = self.current_sets() {
            return [0, 1].map(|direction| self.heaviest_listed(&sets, direction, y));
        }
        let open =
            |lines: std::ops::Range<usize>| lines.filter(|&line| !self.lines[line].is_taken());
        let rows: i64 = open(0..n).map(|row| row as i64).sum();
        let columns: i64 = open(n..2 * n).map(|column| (column - n) as i64).sum();
        let count = open(0..n).count();
        let heaviest_of = |first: usize, least: i64, sum: i64| {
            let usable = |line: &usize| self.is_usable(*line);
            let lines: Vec<usize> = (first..first + 2 * n - 1).filter(usable).collect();
            let item =
                |&line: &usize| Item { place: (line - first) as i64 + least, weight: y[line] };
            let items: Vec<Item> = lines.iter().map(item).collect();
            let (outcome, operations) = heaviest(&items, count, sum, &mut self.tables.borrow_mut());
            self.spend(operations);
            match outcome {
                KnapsackOutcome::Heaviest(found) => {
                    let mut with = vec![None; 2 * n - 1];
                    lines
                        .iter()
                        .zip(found.with)
                        .for_each(|(&line, weight)| with[line - first] = weight);
                    KnapsackOutcome::Heaviest(Heaviest { with, ..found })
                }
                other => other,
            }
        };
        let least = 1 - n as i64;
        [heaviest_of(2 * n, least, columns - rows), heaviest_of(4 * n - 1, 0, rows + columns)]
    }
}

/// Returns 0 for a diagonal, 1 for an antidiagonal.
pub(super) fn direction(n: usize, line: usize) -> usize {
    usize::from(line >= 4 * n - 1)
}

impl DualBound {
    /// Returns the next square whose reduced cost exceeds the slack.
    pub(super) fn next_costly_square(&mut self) -> Option<usize> {
        let square = *self.squares.get(self.slack.costly)?;
        (self.cost[square] > self.slack.value).then(|| {
            self.slack.costly += 1;
            square
        })
    }

    /// Returns the next diagonal that must be used.
    pub(super) fn next_mandatory_diagonal(&mut self) -> Option<usize> {
        for direction in [0, 1] {
            let next = self.diagonals[direction].get(self.slack.mandatory[direction]);
            if let Some(&line) = next.filter(|&&line| self.requires(line, direction)) {
                self.slack.mandatory[direction] += 1;
                return Some(line);
            }
        }
        None
    }

    /// Returns the diagonals that must be used, are used, or can no longer be used.
    pub(super) fn mandatory_diagonals(&self) -> impl Iterator<Item = usize> {
        let [falling, rising] = &self.diagonals;
        let [mandatory_falling, mandatory_rising] = self.slack.mandatory;
        falling[..mandatory_falling].iter().chain(&rising[..mandatory_rising]).copied()
    }

    /// Returns whether the slack does not allow a diagonal to be unused.
    pub(super) fn requires(&self, line: usize, direction: usize) -> bool {
        self.weight[line] > self.slack.value + self.slack.credit[direction]
    }

    /// Subtracts the weight of a diagonal that can no longer be used.
    pub(super) fn mark_unusable(&mut self, line: usize, direction: usize) {
        let credit = &mut self.slack.credit[direction];
        *credit -= self.weight[line];
        if *credit < 0 {
            self.slack.value += *credit;
            *credit = 0;
        }
    }
}
