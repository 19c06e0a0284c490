//! The linear programme of the quotient: how many queens stand on each orbit.
//!
//! Let q(o) be the number of queens of a solution on orbit o, times the size of the group over 8: nothing is averaged,
//! all numbers are integers. Every solution satisfies, with coefficients that count how often a queen on o meets them:
//! - a row, its mirror image and the same two columns: 4 (the middle row and column: 2);
//! - the four diagonals at distance d from the two main ones: at most 4 (the main ones: 2);
//! - a level: what is known of it;
//! - the 8 images of a clique of squares that attack each other: at most 8.
//!
//! A solver's multipliers are rounded to 2⁻²⁰ and judged in integers: for multipliers y with the right signs and
//! r = −yA, base = Σ y·b + Σ min(0, r)·most is at most 0 if there is a solution, and base + r(o) is at most 0 if
//! there is one with a queen on o.

use super::facts::Facts;
use super::orbits::{OrbitId, Orbits};
use crate::optimise::model::{Column, Direction, Domain, Model, Relation, Row};
use crate::optimise::solver::{Linear, LinearOutcome, Solver};
use crate::optimise::verdict::Doubt;
use crate::optimise::watch::Watch;

/// Multipliers are integers over this.
const SCALE: f64 = (1 << 20) as f64;

/// What a row of the quotient is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Line {
    /// Rows and columns at this distance from the border.
    Rank(usize),
    /// Diagonals at this distance from the main ones.
    Diagonal(usize),
    /// A level, by number.
    Level(usize),
    /// A clique, by number.
    Clique(usize),
}

/// A row of the quotient.
#[derive(Clone, Debug)]
struct Sum {
    line: Line,
    terms: Vec<(OrbitId, i64)>,
    /// Of levels none: that is a fact.
    bound: i64,
}

/// Integer multipliers of the rows, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Multipliers(Vec<i64>);

/// What multipliers prove.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    /// Of rows, those that are not 0.
    pub(super) multipliers: Vec<(Line, i64)>,
    base: i128,
    reduced: Vec<i128>,
}

impl Proof {
    /// That there is no solution at all.
    pub(super) fn refutes(&self) -> bool {
        self.base > 0
    }

    /// That no solution has a queen on `orbit`.
    pub(super) fn kills(&self, orbit: OrbitId) -> bool {
        self.base + self.reduced[orbit] > 0
    }
}

/// What became of a question.
#[derive(Clone, Debug)]
pub(super) enum Answered {
    /// The optimum, the value of each orbit there, and multipliers.
    Optimal { objective: f64, values: Vec<f64>, multipliers: Multipliers },
    /// There is no point; multipliers that show it.
    Infeasible(Multipliers),
}

/// The programme, with the facts that it has been told.
pub(super) struct Quotient<'a> {
    orbits: &'a Orbits,
    solver: &'a dyn Solver,
    sums: Vec<Sum>,
    linear: Box<dyn Linear>,
    /// By orbit; none if it was dead when the programme was made.
    column: Vec<Option<usize>>,
    columns: usize,
    /// By level: the row's number and the column of its sum.
    level_row: Vec<Option<usize>>,
    told: Facts,
    /// Programmes that were solved.
    pub(super) programmes: u64,
}

impl<'a> Quotient<'a> {
    /// The programme of the orbits that are alive, with all `cliques`.
    pub(super) fn new(
        orbits: &'a Orbits,
        solver: &'a dyn Solver,
        facts: &Facts,
        cliques: &[Vec<usize>],
    ) -> Self {
        let n = orbits.n;
        let mut column = vec![None; orbits.orbits.len()];
        let mut columns = Vec::new();
        for orbit in facts.alive() {
            column[orbit] = Some(columns.len());
            columns.push(Column { name: String::new(), cost: 0, domain: Domain::Free });
        }
        let mut ranks: Vec<Sum> = (0..n.div_ceil(2))
            .map(|k| Sum { line: Line::Rank(k), terms: Vec::new(), bound: if 2 * k + 1 == n { 2 } else { 4 } })
            .collect();
        let mut diagonals: Vec<Sum> = (0..n)
            .map(|d| Sum { line: Line::Diagonal(d), terms: Vec::new(), bound: if d == 0 { 2 } else { 4 } })
            .collect();
        for orbit in facts.alive() {
            let (row, col) = (orbits.orbits[orbit].squares[0] / n, orbits.orbits[orbit].squares[0] % n);
            for rank in [row, col] {
                add_term(&mut ranks[rank.min(n - 1 - rank)].terms, orbit, 1);
            }
            for d in [row.abs_diff(col), (row + col).abs_diff(n - 1)] {
                add_term(&mut diagonals[d].terms, orbit, 1);
            }
        }
        let most = |sum: &Sum| -> i64 { sum.terms.iter().map(|&(o, a)| a * orbits.orbits[o].most).sum() };
        diagonals.retain(|sum| most(sum) > sum.bound);
        let mut sums = ranks;
        sums.append(&mut diagonals);
        let mut this = Self {
            orbits,
            solver,
            sums: Vec::new(),
            linear: Box::new(Nothing),
            columns: columns.len(),
            column,
            level_row: vec![None; orbits.levels.len()],
            told: Facts::new(orbits),
            programmes: 0,
        };
        let rows = sums.iter().map(|sum| this.row(sum)).collect();
        let model = Model { name: String::new(), direction: Direction::Minimise, columns, rows };
        this.linear = solver.relaxation(&model);
        this.sums = sums;
        for orbit in facts.alive() {
            this.set_most(orbit, orbits.orbits[orbit].most);
        }
        for orbit in 0..orbits.orbits.len() {
            if !facts.is_alive(orbit) {
                this.told.kill(orbit);
            }
        }
        for (number, clique) in cliques.iter().enumerate() {
            this.add_clique(number, clique);
        }
        this.tell(facts);
        this
    }

    fn row(&self, sum: &Sum) -> Row {
        let relation = match sum.line {
            Line::Rank(_) | Line::Level(_) => Relation::Equal,
            Line::Diagonal(_) | Line::Clique(_) => Relation::AtMost,
        };
        let terms = sum.terms.iter().filter_map(|&(orbit, a)| Some((self.column[orbit]?, a))).collect();
        Row { name: String::new(), terms, relation, bound: sum.bound }
    }

    fn set_most(&mut self, orbit: OrbitId, most: i64) {
        if let Some(column) = self.column[orbit] {
            self.linear.set_bounds(column, 0.0, most as f64);
        }
    }

    /// Adds the images of a clique of squares (numbers).
    pub(super) fn add_clique(&mut self, number: usize, squares: &[usize]) {
        let mut terms = Vec::new();
        for &square in squares {
            let orbit = self.orbits.orbit_of[square];
            add_term(&mut terms, orbit, 8 / self.orbits.orbits[orbit].squares.len() as i64);
        }
        let sum = Sum { line: Line::Clique(number), terms, bound: 8 };
        self.linear.add_row(&self.row(&sum));
        self.sums.push(sum);
    }

    /// The column of the number of queens on `level`, made when it is asked for first.
    fn level_column(&mut self, level: usize) -> usize {
        if let Some(column) = self.level_row[level] {
            return column;
        }
        let terms = self.orbits.levels[level].orbits.iter().map(|&orbit| (orbit, 1)).collect();
        let sum = Sum { line: Line::Level(level), terms, bound: 0 };
        self.linear.add_row(&self.row(&sum));
        self.linear.add_column(0.0, (0.0, self.orbits.n as f64), &[(self.sums.len(), -1.0)]);
        self.sums.push(sum);
        self.level_row[level] = Some(self.columns);
        self.columns += 1;
        self.columns - 1
    }

    /// Brings the programme to `facts`, which may be more or fewer than before.
    pub(super) fn tell(&mut self, facts: &Facts) {
        for orbit in 0..self.orbits.orbits.len() {
            if facts.is_alive(orbit) != self.told.is_alive(orbit) {
                let most = if facts.is_alive(orbit) { self.orbits.orbits[orbit].most } else { 0 };
                self.set_most(orbit, most);
            }
        }
        for level in 0..self.orbits.levels.len() {
            let range = facts.range(level);
            let closed = range == Some((0, 0)) && self.level_row[level].is_none();
            if range != self.told.range(level) && !closed {
                let (least, most) = range.unwrap_or((0, self.orbits.n as u32));
                let column = self.level_column(level);
                self.linear.set_bounds(column, least.into(), most.into());
            }
        }
        self.told = facts.clone();
    }

    /// Whether an orbit that is alive has no variable: then the programme has to be made anew.
    pub(super) fn lacks(&self, facts: &Facts) -> bool {
        facts.alive().any(|orbit| self.column[orbit].is_none())
    }

    /// How many variables were alive when it was made.
    pub(super) fn size(&self) -> usize {
        self.column.iter().flatten().count()
    }

    /// The fewest queens on `level`.
    pub(super) fn fewest(&mut self, level: usize, watch: &mut dyn Watch) -> Result<Answered, Doubt> {
        let column = self.level_column(level);
        self.linear.set_cost(column, 1.0);
        let answered = self.solve(watch);
        self.linear.set_cost(column, 0.0);
        answered
    }

    /// The most queens on `orbit`.
    pub(super) fn most(&mut self, orbit: OrbitId, watch: &mut dyn Watch) -> Result<Option<Answered>, Doubt> {
        let Some(column) = self.column[orbit] else { return Ok(None) };
        self.linear.set_cost(column, -1.0);
        let answered = self.solve(watch);
        self.linear.set_cost(column, 0.0);
        answered.map(Some)
    }

    fn solve(&mut self, watch: &mut dyn Watch) -> Result<Answered, Doubt> {
        self.programmes += 1;
        match self.linear.solve(watch) {
            LinearOutcome::Optimal(vertex) => {
                let value = |column: &Option<usize>| column.map_or(0.0, |column| vertex.values[column]);
                Ok(Answered::Optimal {
                    objective: vertex.objective,
                    values: self.column.iter().map(value).collect(),
                    multipliers: self.rounded(vertex.duals.as_deref().unwrap_or_default()),
                })
            }
            LinearOutcome::Infeasible { ray } => {
                Ok(Answered::Infeasible(self.rounded(ray.as_deref().unwrap_or_default())))
            }
            LinearOutcome::Stopped => Err(Doubt::Stopped),
            LinearOutcome::Failed(why) => Err(Doubt::SolverFailed(format!("{}: {why}", self.solver.name()))),
        }
    }

    /// A solver's multipliers as integers. A ray is of any length: it is given the length 1.
    fn rounded(&self, multipliers: &[f64]) -> Multipliers {
        let largest = multipliers.iter().fold(0.0f64, |largest, y| largest.max(y.abs()));
        let scale = if largest > 1e6 { SCALE / largest } else { SCALE };
        Multipliers(multipliers.iter().map(|y| (y * scale).round() as i64).collect())
    }

    /// What multipliers prove under the facts that were told. Solvers differ in the sign: the better one is taken.
    pub(super) fn prove(&self, multipliers: &Multipliers) -> Proof {
        let (plain, turned) = (self.judge(&multipliers.0, 1), self.judge(&multipliers.0, -1));
        if turned.base > plain.base { turned } else { plain }
    }

    /// Multipliers of the wrong sign are taken for 0.
    fn judge(&self, multipliers: &[i64], sign: i64) -> Proof {
        let mut reduced = vec![0i128; self.orbits.orbits.len()];
        let mut base = 0i128;
        let mut kept = Vec::new();
        for (sum, &y) in self.sums.iter().zip(multipliers) {
            let y = sign * y;
            let bound = match sum.line {
                _ if y == 0 => continue,
                Line::Rank(_) => sum.bound,
                Line::Diagonal(_) | Line::Clique(_) if y > 0 => continue,
                Line::Diagonal(_) | Line::Clique(_) => sum.bound,
                Line::Level(level) => {
                    let (least, most) = self.told.range(level).unwrap_or((0, self.orbits.n as u32));
                    i64::from(if y > 0 { least } else { most })
                }
            };
            base += i128::from(y) * i128::from(bound);
            for &(orbit, a) in &sum.terms {
                reduced[orbit] -= i128::from(y) * i128::from(a);
            }
            kept.push((sum.line, y));
        }
        for orbit in self.told.alive() {
            base += reduced[orbit].min(0) * i128::from(self.orbits.orbits[orbit].most);
        }
        Proof { multipliers: kept, base, reduced }
    }
}

fn add_term(terms: &mut Vec<(OrbitId, i64)>, orbit: OrbitId, coefficient: i64) {
    match terms.iter_mut().rev().find(|term| term.0 == orbit) {
        Some(term) => term.1 += coefficient,
        None => terms.push((orbit, coefficient)),
    }
}

/// Before there is a programme.
struct Nothing;

impl Linear for Nothing {
    fn set_bounds(&mut self, _: usize, _: f64, _: f64) {}
    fn set_cost(&mut self, _: usize, _: f64) {}
    fn add_row(&mut self, _: &Row) {}
    fn add_column(&mut self, _: f64, _: (f64, f64), _: &[(usize, f64)]) {}
    fn solve(&mut self, _: &mut dyn Watch) -> LinearOutcome {
        LinearOutcome::Failed("no programme".into())
    }
}
