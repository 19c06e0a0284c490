//! The board LP: the linear relaxation of the whole board, with a variable for each candidate.
//!
//! The result is trusted only in exact integers. Prices on columns, diagonals and levels give each
//! square a price. The total price of all queens still to be placed has an upper bound, since no
//! diagonal has two of them, and a lower bound, since each row pays at least for its cheapest
//! square. If the lower bound exceeds the upper one, there is no solution. A square whose price
//! exceeds the cheapest of its row by more than the gap between the bounds has no queen, and a
//! diagonal whose price exceeds the gap has one.

use std::ops::ControlFlow;

use super::csp::Csp;
use super::orbits::Orbits;
use super::params;
use super::propagation::Node;
use super::search::CancelToken;
use crate::ilp::Linear as _;
use crate::ilp::model::Direction;
use crate::progress::{Progress, ProgressSink};
use crate::simplex::{Simplex, Termination};
use nqueens_proof::beautiful::prices;

/// Prices are rounded to integers, scaled so that the largest has this magnitude.
const SCALE: f64 = (1 << 24) as f64;
/// The least violation of a diagonal for which a row is added.
const VIOLATED: f64 = 1e-6;

/// The LP over all candidates: one for each required constraint, a number within its range on each
/// level, and at most 1 − t on each other diagonal, where t is maximised.
pub(super) struct BoardLp<'a> {
    csp: &'a Csp,
    simplex: Simplex,
    /// The diagonals, in the order of their numbers in a certificate.
    diagonals: Vec<Diagonal>,
    /// The number in a certificate of each row of the LP.
    numbers: Vec<usize>,
    /// By number in a certificate: the least and the greatest number of candidates on a column, a
    /// diagonal or a level.
    bounds: Vec<(i64, i64)>,
    /// For each candidate, the numbers of its column, diagonals and level, and its row.
    prices_of: Vec<[usize; 4]>,
    row_of: Vec<usize>,
    /// The state of each candidate in the simplex.
    states: Vec<VariableState>,
    /// The number of LPs solved.
    lps_solved: u64,
}

/// A diagonal in the LP.
#[derive(Clone, Debug)]
struct Diagonal {
    candidates: Vec<u32>,
    requirement: Requirement,
    /// Its rows, each added when first violated: at most 1 − t, and exactly 1.
    at_most: Option<usize>,
    exactly: Option<usize>,
}

/// The constraint on a diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requirement {
    /// At most one candidate.
    AtMostOne,
    /// Exactly one candidate.
    ExactlyOne,
    /// No constraint: it has its candidate.
    None,
}

/// The state of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableState {
    Open,
    Closed,
    Placed,
}

/// The outcome of solving the LP.
pub(super) enum LpOutcome {
    /// The prices from the dual solution, by their number in a certificate.
    Prices(Vec<i64>),
    /// No prices: the simplex failed, or all of them are 0.
    Inconclusive,
    /// The solver was stopped.
    Stopped,
}

/// The conclusions that prices prove.
pub(super) enum Implied {
    /// There is no solution.
    Infeasible,
    /// No solution has any of the candidates `eliminated`, and every solution has a candidate on
    /// each diagonal in `full`.
    Reductions { eliminated: Vec<u32>, full: Vec<usize> },
}

/// A progress sink that stops the simplex when the cancel token requests it.
struct CancelSink<'a>(&'a CancelToken);

impl ProgressSink for CancelSink<'_> {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.0.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<'a> BoardLp<'a> {
    /// Creates the LP over all candidates of `csp`. Each must have a single square.
    pub(super) fn new(csp: &'a Csp, orbits: &Orbits) -> Self {
        let n = orbits.n;
        let mut bounds = vec![(0, 1); prices::count(n, orbits.levels.len())];
        let mut rows = vec![None; bounds.len()];
        let (mut simplex, mut numbers) = (Simplex::new(Direction::Maximise), Vec::new());
        let mut add = |simplex: &mut Simplex, number: usize, least: f64, most: f64| {
            rows[number] = Some(simplex.rows());
            numbers.push(number);
            simplex.add_row_between(least, most, []);
        };
        for line in 0..2 * n {
            add(&mut simplex, line, 1.0, 1.0);
        }
        let mut level_of = vec![None; csp.candidates.len()];
        for group in &csp.groups {
            let Some(&candidate) = group.candidates.first() else { continue };
            let level = orbits.orbits
                [orbits.orbit_of[csp.candidates[candidate as usize][0] as usize]]
                .level;
            let number = prices::level(n, level);
            let range = (i64::from(*group.range.start()), i64::from(*group.range.end()));
            bounds[number] = range;
            add(&mut simplex, number, range.0 as f64, range.1 as f64);
            group
                .candidates
                .iter()
                .for_each(|&candidate| level_of[candidate as usize] = Some(number));
        }
        let lines_of: Vec<[usize; 4]> =
            csp.candidates.iter().map(|squares| prices::lines(n, squares[0] as usize)).collect();
        let diagonal = |line: usize| Diagonal {
            candidates: csp.constraints[line].clone(),
            requirement: Requirement::AtMostOne,
            at_most: None,
            exactly: None,
        };
        let diagonals = (2 * n..csp.constraints.len()).map(diagonal).collect();
        let nowhere = bounds.len();
        for (lines, level) in lines_of.iter().zip(&level_of) {
            let mut terms: Vec<(usize, f64)> = lines
                .iter()
                .chain(level)
                .filter_map(|&number| Some((rows[number]?, 1.0)))
                .collect();
            terms.sort_unstable_by_key(|term| term.0);
            simplex.add_column(0.0, (0.0, f64::INFINITY), &terms);
        }
        simplex.add_column(1.0, (f64::NEG_INFINITY, 1.0), &[]);
        bounds.push((0, 0));
        Self {
            csp,
            simplex,
            diagonals,
            numbers,
            bounds,
            prices_of: lines_of
                .iter()
                .zip(level_of)
                .map(|(lines, level)| [lines[1], lines[2], lines[3], level.unwrap_or(nowhere)])
                .collect(),
            row_of: lines_of.iter().map(|lines| lines[0]).collect(),
            states: vec![VariableState::Open; csp.candidates.len()],
            lps_solved: 0,
        }
    }

    /// Returns the number of LPs solved.
    pub(super) const fn lps_solved(&self) -> u64 {
        self.lps_solved
    }

    /// Returns the value of each candidate in the last solution.
    pub(super) fn values(&self) -> &[f64] {
        self.simplex.values()
    }

    /// Returns the candidates that can still be placed.
    pub(super) fn open(&self, root: &Node) -> impl Iterator<Item = u32> {
        (0..self.states.len() as u32).filter(|&candidate| root.state.is_remaining(candidate))
    }

    /// Solves the LP at `root`.
    pub(super) fn solve(&mut self, root: &Node, cancel: &CancelToken) -> LpOutcome {
        let mut now = vec![VariableState::Closed; self.states.len()];
        self.open(root).for_each(|candidate| now[candidate as usize] = VariableState::Open);
        root.placed.iter().for_each(|&candidate| now[candidate as usize] = VariableState::Placed);
        for (candidate, (state, &now)) in self.states.iter_mut().zip(&now).enumerate() {
            if *state != now {
                *state = now;
                let (least, most) = match now {
                    VariableState::Open => (0.0, f64::INFINITY),
                    VariableState::Closed => (0.0, 0.0),
                    VariableState::Placed => (1.0, 1.0),
                };
                self.simplex.set_bounds(candidate, least, most);
            }
        }
        self.update_diagonals(root, &now);
        self.lps_solved += 1;
        let mut termination = self.simplex.run(&mut CancelSink(cancel));
        while termination == Termination::Optimal && self.add_diagonals() {
            termination = self.simplex.run(&mut CancelSink(cancel));
        }
        let (multipliers, sign) = match termination {
            Termination::Optimal => (self.simplex.duals(), 1.0),
            Termination::Infeasible => (self.simplex.ray().unwrap_or_default(), -1.0),
            Termination::Stopped => return LpOutcome::Stopped,
            Termination::Failed(_) => return LpOutcome::Inconclusive,
        };
        let largest = multipliers.iter().fold(0.0, |largest: f64, y| largest.max(y.abs()));
        let scale = sign * SCALE / largest;
        if !scale.is_finite() {
            return LpOutcome::Inconclusive;
        }
        let mut prices = vec![0; self.bounds.len() - 1];
        for (&number, y) in self.numbers.iter().zip(multipliers) {
            prices[number] += (y * scale).round() as i64;
        }
        let n = self.csp.n;
        // Rows have no prices. The price of a diagonal that may be empty is not negative.
        prices[..n].fill(0);
        for (diagonal, price) in self.diagonals.iter().zip(&mut prices[2 * n..]) {
            if diagonal.requirement == Requirement::AtMostOne {
                *price = (*price).max(0);
            }
        }
        LpOutcome::Prices(prices)
    }

    /// Updates the constraints on diagonals at `root`, where `now` has the states of the
    /// candidates.
    fn update_diagonals(&mut self, root: &Node, now: &[VariableState]) {
        let first = 2 * self.csp.n;
        for (line, diagonal) in (first..).zip(&mut self.diagonals) {
            let is_done = diagonal
                .candidates
                .iter()
                .any(|&candidate| now[candidate as usize] == VariableState::Placed);
            let requirement = match root.state.choices(line) {
                _ if is_done => Requirement::None,
                Some(_) => Requirement::ExactlyOne,
                None => Requirement::AtMostOne,
            };
            if diagonal.requirement == requirement {
                continue;
            }
            diagonal.requirement = requirement;
            let anything = (f64::NEG_INFINITY, f64::INFINITY);
            let bounds = |wanted: bool, bounds| if wanted { bounds } else { anything };
            if let Some(row) = diagonal.at_most {
                let (least, most) =
                    bounds(requirement == Requirement::AtMostOne, (f64::NEG_INFINITY, 1.0));
                self.simplex.set_row_bounds(row, least, most);
            }
            if let Some(row) = diagonal.exactly {
                let (least, most) = bounds(requirement == Requirement::ExactlyOne, (1.0, 1.0));
                self.simplex.set_row_bounds(row, least, most);
            }
        }
    }

    /// Adds rows for the most violated diagonals. Returns whether there are any.
    fn add_diagonals(&mut self) -> bool {
        let values = self.simplex.values();
        let t = self.states.len();
        let excess = |diagonal: &Diagonal| {
            let on: f64 =
                diagonal.candidates.iter().map(|&candidate| values[candidate as usize]).sum();
            match diagonal.requirement {
                Requirement::AtMostOne if diagonal.at_most.is_none() => on + values[t] - 1.0,
                Requirement::ExactlyOne if diagonal.exactly.is_none() => (on - 1.0).abs(),
                _ => 0.0,
            }
        };
        let excess = self.diagonals.iter().map(excess).enumerate();
        let mut violated: Vec<(usize, f64)> =
            excess.filter(|(_, excess)| *excess > VIOLATED).collect();
        violated.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        violated.truncate(params::DIAGONALS_AT_ONCE);
        for &(number, _) in &violated {
            let diagonal = &mut self.diagonals[number];
            let row = Some(self.simplex.rows());
            let candidates = diagonal.candidates.iter().map(|&candidate| (candidate as usize, 1.0));
            if diagonal.requirement == Requirement::ExactlyOne {
                self.simplex.add_row_between(1.0, 1.0, candidates);
                diagonal.exactly = row;
            } else {
                self.simplex.add_row_between(f64::NEG_INFINITY, 1.0, candidates.chain([(t, 1.0)]));
                diagonal.at_most = row;
            }
            self.numbers.push(number + 2 * self.csp.n);
        }
        !violated.is_empty()
    }

    /// Derives what prices prove at `root`.
    pub(super) fn implied(&self, root: &Node, prices: &[i64]) -> Implied {
        let n = self.csp.n;
        let mut prices = prices.to_vec();
        prices.push(0);
        let price = |candidate: u32| {
            self.prices_of[candidate as usize].iter().map(|&number| prices[number]).sum::<i64>()
        };
        let mut placed = vec![0; self.bounds.len()];
        root.placed
            .iter()
            .for_each(|&candidate| placed[self.prices_of[candidate as usize][3]] += 1);
        let candidates: Vec<u32> = self.open(root).collect();
        let mut counts = vec![0i64; self.bounds.len()];
        let mut cheapest = vec![i64::MAX; n];
        for &candidate in &candidates {
            self.prices_of[candidate as usize].iter().for_each(|&number| counts[number] += 1);
            let row = self.row_of[candidate as usize];
            cheapest[row] = cheapest[row].min(price(candidate));
        }
        let most = |number: usize| {
            let (price, (least, most)) = (prices[number], self.bounds[number]);
            let first_level = prices::level(n, 0);
            if number < first_level {
                price * counts[number].min(1)
            } else if price > 0 {
                price * (most - placed[number]).min(counts[number])
            } else {
                price * (least - placed[number]).max(0)
            }
        };
        let gap = (n..self.bounds.len() - 1).map(most).sum::<i64>()
            - cheapest.iter().filter(|&&cheapest| cheapest < i64::MAX).sum::<i64>();
        if gap < 0 {
            return Implied::Infeasible;
        }
        let too_expensive =
            |&candidate: &u32| price(candidate) - cheapest[self.row_of[candidate as usize]] > gap;
        let full = (2 * n..).zip(&self.diagonals).filter(|&(line, diagonal)| {
            diagonal.requirement == Requirement::AtMostOne && counts[line] > 0 && prices[line] > gap
        });
        Implied::Reductions {
            full: full.map(|(line, _)| line).collect(),
            eliminated: candidates.into_iter().filter(too_expensive).collect(),
        }
    }
}
