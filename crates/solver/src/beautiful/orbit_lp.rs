//! The orbit LP: the linear relaxation of the number of queens on each orbit.
//!
//! Let q(o) be the number of queens of a solution on orbit o. Nothing is averaged, and all numbers
//! are integers. Every solution satisfies the following rows, with coefficients that count how
//! often a queen on o occurs in them:
//! - a row, its mirror image and the same two columns: 4 (the middle row and column: 2);
//! - the four diagonals at distance d from the two main ones: at most 4 (the main ones: 2);
//! - a level: its known range;
//! - the 8 images of a clique of squares that attack each other: at most 8.
//!
//! The solver's multipliers are rounded to 2⁻²⁰ and validated in integers. Given multipliers y with
//! the right signs, let r = −yA and base = Σ y·b + Σ min(0, r)·most. Then base is at most 0 if
//! there is a solution; base + r(o) is at most 0 if there is one with a queen on o; and base − y(d)
//! is at most 0 if there is one with an empty diagonal at distance d.

use super::bounds::Bounds;
use super::orbits::{OrbitId, Orbits, most_on_diagonals};
use crate::ilp::Linear as _;
use crate::ilp::model::Direction;
use crate::progress::ProgressSink;
use crate::simplex::{Simplex, Termination};
use crate::verdict::Unproven;

/// The common denominator of integer multipliers.
const SCALE: f64 = (1 << 20) as f64;

/// The subject of a row of the orbit LP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum RowId {
    /// Rows and columns at this distance from the border.
    Rank(usize),
    /// Diagonals at this distance from the main ones.
    Diagonal(usize),
    /// A level, by number.
    Level(usize),
    /// A clique, by number.
    Clique(usize),
}

/// A row of the orbit LP.
#[derive(Clone, Debug)]
struct Row {
    id: RowId,
    terms: Vec<(OrbitId, i64)>,
    /// The right-hand side; unused for levels, whose range is in the bounds.
    bound: i64,
}

/// Integer multipliers of the rows, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Multipliers(Vec<i64>);

/// The consequences of multipliers.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    /// The nonzero multipliers, by row.
    pub(super) multipliers: Vec<(RowId, i64)>,
    base: i128,
    reduced: Vec<i128>,
}

impl Proof {
    /// Returns whether it proves that there is no solution.
    pub(super) fn refutes(&self) -> bool {
        self.base > 0
    }

    /// Returns whether it proves that no solution has a queen on `orbit`.
    pub(super) fn eliminates(&self, orbit: OrbitId) -> bool {
        self.base + self.reduced[orbit] > 0
    }

    /// Returns the distances from the main diagonals at which every solution has a queen on each
    /// diagonal: with one of them empty, the bound of the row would be 1 less.
    pub(super) fn fills(&self) -> Vec<usize> {
        let full = |&(line, y): &(RowId, i64)| match line {
            RowId::Diagonal(distance) => Some(distance).filter(|_| self.base > i128::from(y)),
            _ => None,
        };
        self.multipliers.iter().filter_map(full).collect()
    }
}

/// The outcome of solving the LP.
#[derive(Clone, Debug)]
pub(super) enum LpOutcome {
    /// The optimum, the value of each orbit there, and multipliers.
    Optimal { objective: f64, values: Vec<f64>, multipliers: Multipliers },
    /// The value of each orbit at a feasible point that attains the target.
    TargetReached(Vec<f64>),
    /// The LP is infeasible; the multipliers prove it.
    Infeasible(Multipliers),
}

/// The LP under its current bounds.
#[derive(Clone, Debug)]
pub(super) struct OrbitLp<'a> {
    orbits: &'a Orbits,
    rows: Vec<Row>,
    simplex: Simplex,
    /// The variable of each orbit; `None` if the orbit was eliminated when the LP was built.
    column: Vec<Option<usize>>,
    /// The row of each level.
    level_row: Vec<Option<usize>>,
    /// Rows of diagonals that no point violates. They are added on demand.
    free: Vec<Row>,
    bounds: Bounds,
    /// The number of LPs solved.
    pub(super) lps_solved: u64,
}

impl<'a> OrbitLp<'a> {
    /// Creates the LP over the remaining orbits, with all `cliques`.
    pub(super) fn new(orbits: &'a Orbits, bounds: &Bounds, cliques: &[Vec<usize>]) -> Self {
        let n = orbits.n;
        let mut column = vec![None; orbits.orbits.len()];
        let mut simplex = Simplex::new(Direction::Minimise);
        for (number, orbit) in bounds.remaining().enumerate() {
            column[orbit] = Some(number);
            simplex.add_column(0.0, (0.0, orbits.orbits[orbit].most as f64), &[]);
        }
        let mut ranks: Vec<Row> = (0..n.div_ceil(2))
            .map(|k| Row {
                id: RowId::Rank(k),
                terms: Vec::new(),
                bound: if 2 * k + 1 == n { 2 } else { 4 },
            })
            .collect();
        let mut diagonals: Vec<Row> = (0..n)
            .map(|d| Row { id: RowId::Diagonal(d), terms: Vec::new(), bound: most_on_diagonals(d) })
            .collect();
        for orbit in bounds.remaining() {
            let (row, col) =
                (orbits.orbits[orbit].squares[0] / n, orbits.orbits[orbit].squares[0] % n);
            for rank in [row, col] {
                add_term(&mut ranks[rank.min(n - 1 - rank)].terms, orbit, 1);
            }
            for d in orbits.diagonals_of(orbit) {
                add_term(&mut diagonals[d].terms, orbit, 1);
            }
        }
        let most =
            |row: &Row| -> i64 { row.terms.iter().map(|&(o, a)| a * orbits.orbits[o].most).sum() };
        let (binding, free): (Vec<Row>, Vec<Row>) =
            diagonals.into_iter().partition(|row| most(row) > row.bound);
        let mut this = Self {
            orbits,
            rows: Vec::new(),
            simplex,
            column,
            level_row: vec![None; orbits.levels.len()],
            free,
            bounds: bounds.clone(),
            lps_solved: 0,
        };
        for row in ranks.into_iter().chain(binding) {
            this.add(row);
        }
        for (number, clique) in cliques.iter().enumerate() {
            if clique.iter().filter(|&&square| bounds.is_remaining(orbits.orbit_of[square])).count()
                > 2
            {
                this.add_clique(number, clique);
            }
        }
        for level in 0..orbits.levels.len() {
            if bounds.range(level).is_some_and(|range| range != (0, 0)) {
                this.level(level);
            }
        }
        this
    }

    fn add(&mut self, row: Row) {
        let (least, most) = match row.id {
            RowId::Rank(_) => (row.bound as f64, row.bound as f64),
            RowId::Diagonal(_) | RowId::Clique(_) => (f64::NEG_INFINITY, row.bound as f64),
            RowId::Level(level) => level_bounds(self.bounds.range(level)),
        };
        let terms =
            row.terms.iter().filter_map(|&(orbit, a)| Some((self.column[orbit]?, a as f64)));
        self.simplex.add_row_between(least, most, terms);
        self.rows.push(row);
    }

    /// Adds the images of a clique of squares (numbers).
    pub(super) fn add_clique(&mut self, number: usize, squares: &[usize]) {
        let mut terms = Vec::new();
        for &square in squares {
            let orbit = self.orbits.orbit_of[square];
            add_term(&mut terms, orbit, 8 / self.orbits.orbits[orbit].squares.len() as i64);
        }
        self.add(Row { id: RowId::Clique(number), terms, bound: 8 });
    }

    /// Returns the row of `level`, which is added on first use.
    fn level(&mut self, level: usize) -> usize {
        if let Some(row) = self.level_row[level] {
            return row;
        }
        let row = self.rows.len();
        let terms = self.orbits.levels[level].orbits.iter().map(|&orbit| (orbit, 1)).collect();
        self.add(Row { id: RowId::Level(level), terms, bound: 0 });
        self.level_row[level] = Some(row);
        row
    }

    /// Sets the bounds of the LP, which may be tighter or looser than before.
    pub(super) fn set_bounds(&mut self, bounds: &Bounds) {
        for orbit in 0..self.orbits.orbits.len() {
            if bounds.is_remaining(orbit) != self.bounds.is_remaining(orbit)
                && let Some(column) = self.column[orbit]
            {
                let most =
                    if bounds.is_remaining(orbit) { self.orbits.orbits[orbit].most } else { 0 };
                self.simplex.set_bounds(column, 0.0, most as f64);
            }
        }
        for level in 0..self.orbits.levels.len() {
            let range = bounds.range(level);
            if range == self.bounds.range(level) {
                continue;
            }
            self.bounds.set_range(level, range);
            let closed = range == Some((0, 0)) && self.level_row[level].is_none();
            if !closed {
                let row = self.level(level);
                let (least, most) = level_bounds(range);
                self.simplex.set_row_bounds(row, least, most);
            }
        }
        self.bounds = bounds.clone();
    }

    /// Returns whether a remaining orbit has no variable. The LP then has to be rebuilt.
    pub(super) fn lacks(&self, bounds: &Bounds) -> bool {
        bounds.remaining().any(|orbit| self.column[orbit].is_none())
    }

    /// Returns the number of orbits that remained when the LP was built.
    pub(super) fn size(&self) -> usize {
        self.column.iter().flatten().count()
    }

    /// Finds the fewest queens on `level`, with multipliers that prove that there are no fewer, or
    /// a point with at most `target` queens there.
    pub(super) fn fewest(
        &mut self,
        level: usize,
        target: u32,
        sink: &mut dyn ProgressSink,
    ) -> Result<LpOutcome, Unproven> {
        self.level(level);
        let mut outcome = self.cheapest(level, 1, target.into(), sink);
        if let Ok(LpOutcome::Optimal { multipliers, .. }) = &mut outcome {
            self.charge(level, 1, multipliers);
        }
        outcome
    }

    /// Minimises the total cost if each queen on `level` costs `cost`, or finds a point where it is
    /// at most `target`. To prove the minimum, the multipliers must be [charged](Self::charge).
    pub(super) fn cheapest(
        &mut self,
        level: usize,
        cost: i64,
        target: f64,
        sink: &mut dyn ProgressSink,
    ) -> Result<LpOutcome, Unproven> {
        self.cost_of_level(level, cost as f64);
        let outcome = self.solve(Some(target), sink);
        self.cost_of_level(level, 0.0);
        outcome
    }

    /// Turns the multipliers of [`cheapest`](Self::cheapest) into multipliers that prove the
    /// minimum by way of the level's row.
    pub(super) fn charge(&mut self, level: usize, cost: i64, multipliers: &mut Multipliers) {
        let row = self.level(level);
        multipliers.0.resize(self.rows.len(), 0);
        multipliers.0[row] -= cost * SCALE as i64;
    }

    fn cost_of_level(&mut self, level: usize, cost: f64) {
        for orbit in &self.orbits.levels[level].orbits {
            if let Some(column) = self.column[*orbit] {
                self.simplex.set_cost(column, cost);
            }
        }
    }

    /// Finds the fewest queens on all diagonals at a distance, with multipliers that prove that
    /// there are no fewer, or a point with one fewer than the greatest number possible there. Also
    /// returns that number. Returns `None` if no square there remains.
    pub(super) fn emptiest(
        &mut self,
        distance: usize,
        sink: &mut dyn ProgressSink,
    ) -> Result<Option<(LpOutcome, i64)>, Unproven> {
        let line = RowId::Diagonal(distance);
        if let Some(place) = self.free.iter().position(|row| row.id == line) {
            let row = self.free.swap_remove(place);
            self.add(row);
        }
        let row = self.rows.iter().position(|row| row.id == line);
        let Some(row) = row.filter(|&row| !self.rows[row].terms.is_empty()) else {
            return Ok(None);
        };
        let bound = self.rows[row].bound;
        self.cost_of_row(row, 1.0);
        let outcome = self.solve(Some((bound - 1) as f64), sink);
        self.cost_of_row(row, 0.0);
        let mut outcome = outcome?;
        if let LpOutcome::Optimal { multipliers, .. } = &mut outcome {
            multipliers.0[row] -= SCALE as i64;
        }
        Ok(Some((outcome, bound)))
    }

    /// Sets the cost of each queen to `cost` times its coefficient in a row.
    fn cost_of_row(&mut self, row: usize, cost: f64) {
        for &(orbit, a) in &self.rows[row].terms {
            if let Some(column) = self.column[orbit] {
                self.simplex.set_cost(column, cost * a as f64);
            }
        }
    }

    /// Finds the most queens on `orbit`, or a point with at least one there.
    pub(super) fn most(
        &mut self,
        orbit: OrbitId,
        sink: &mut dyn ProgressSink,
    ) -> Result<Option<LpOutcome>, Unproven> {
        let Some(column) = self.column[orbit] else { return Ok(None) };
        self.simplex.set_cost(column, -1.0);
        let outcome = self.solve(Some(-1.0), sink);
        self.simplex.set_cost(column, 0.0);
        outcome.map(Some)
    }

    /// Finds a feasible point with as many queens as possible on these orbits together, where none
    /// of them has more than one: the value of each orbit. Returns `None` if there is no such point
    /// or the solver fails.
    pub(super) fn most_of(
        &mut self,
        orbits: &[OrbitId],
        sink: &mut dyn ProgressSink,
    ) -> Result<Option<Vec<f64>>, Unproven> {
        self.limit_orbits(orbits, -1.0, 1);
        let outcome = self.solve(None, sink);
        self.limit_orbits(orbits, 0.0, i64::MAX);
        match outcome {
            Ok(LpOutcome::Optimal { values, .. } | LpOutcome::TargetReached(values)) => {
                Ok(Some(values))
            }
            Ok(LpOutcome::Infeasible(_)) | Err(Unproven::SolverFailed(_)) => Ok(None),
            Err(stopped) => Err(stopped),
        }
    }

    /// Sets the cost of each queen on these orbits, and limits the queens on each to `most`.
    fn limit_orbits(&mut self, orbits: &[OrbitId], cost: f64, most: i64) {
        for &orbit in orbits {
            if let Some(column) = self.column[orbit] {
                let most = self.orbits.orbits[orbit].most.min(most);
                self.simplex.set_cost(column, cost);
                self.simplex.set_bounds(column, 0.0, most as f64);
            }
        }
    }

    /// Solves the LP, or finds a feasible point whose objective is at most `target`.
    fn solve(
        &mut self,
        target: Option<f64>,
        sink: &mut dyn ProgressSink,
    ) -> Result<LpOutcome, Unproven> {
        self.lps_solved += 1;
        let Some(termination) = self.simplex.run_until(target, sink) else {
            return Ok(LpOutcome::TargetReached(self.values()));
        };
        match termination {
            Termination::Optimal => Ok(LpOutcome::Optimal {
                objective: self.simplex.objective(),
                values: self.values(),
                multipliers: rounded(self.simplex.duals()),
            }),
            Termination::Infeasible => {
                Ok(LpOutcome::Infeasible(rounded(self.simplex.ray().unwrap_or_default())))
            }
            Termination::Stopped => Err(Unproven::Stopped),
            Termination::Failed(why) => Err(Unproven::SolverFailed(format!("the simplex: {why}"))),
        }
    }

    /// Returns the value of each orbit at the last vertex.
    fn values(&self) -> Vec<f64> {
        let values = self.simplex.values();
        self.column.iter().map(|column| column.map_or(0.0, |column| values[column])).collect()
    }

    /// Derives what multipliers prove under the current bounds. Multipliers of the wrong sign count
    /// as 0.
    pub(super) fn prove(&self, multipliers: &Multipliers) -> Proof {
        let mut reduced = vec![0i128; self.orbits.orbits.len()];
        let mut base = 0i128;
        let mut kept = Vec::new();
        for (row, &y) in self.rows.iter().zip(&multipliers.0) {
            let bound = match row.id {
                _ if y == 0 => continue,
                RowId::Rank(_) => row.bound,
                RowId::Diagonal(_) | RowId::Clique(_) if y > 0 => continue,
                RowId::Diagonal(_) | RowId::Clique(_) => row.bound,
                RowId::Level(level) => {
                    let (least, most) =
                        self.bounds.range(level).unwrap_or((0, self.orbits.n as u32));
                    i64::from(if y > 0 { least } else { most })
                }
            };
            base += i128::from(y) * i128::from(bound);
            for &(orbit, a) in &row.terms {
                reduced[orbit] -= i128::from(y) * i128::from(a);
            }
            kept.push((row.id, y));
        }
        for orbit in self.bounds.remaining() {
            base += reduced[orbit].min(0) * i128::from(self.orbits.orbits[orbit].most);
        }
        Proof { multipliers: kept, base, reduced }
    }
}

/// Returns the bounds of a level's row.
fn level_bounds(range: Option<(u32, u32)>) -> (f64, f64) {
    range.map_or((f64::NEG_INFINITY, f64::INFINITY), |(least, most)| (least.into(), most.into()))
}

/// Rounds multipliers to integers. A ray can have any length; a very long one is scaled down.
fn rounded(multipliers: &[f64]) -> Multipliers {
    let largest = multipliers.iter().fold(0.0f64, |largest, y| largest.max(y.abs()));
    let scale = if largest > 1e6 { SCALE / largest } else { SCALE };
    Multipliers(multipliers.iter().map(|y| (y * scale).round() as i64).collect())
}

fn add_term(terms: &mut Vec<(OrbitId, i64)>, orbit: OrbitId, coefficient: i64) {
    match terms.iter_mut().rev().find(|term| term.0 == orbit) {
        Some(term) => term.1 += coefficient,
        None => terms.push((orbit, coefficient)),
    }
}
