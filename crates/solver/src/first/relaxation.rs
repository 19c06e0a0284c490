//! The two linear relaxations of a residual board, whose duals propose the multipliers.
//!
//! [`Assignment`]: one queen in each row and column, at most 1 - t on every diagonal; t is
//! maximised.
//!
//! [`Master`]: the use of the diagonals of each direction is bounded by a convex combination of
//! sets with the right number and sum ([`crate::first::knapsack`]), and violations are penalised.
//! If the optimum is positive, no convex combination of such sets suffices. The sets are generated
//! as needed, beyond those of a pool, and integer multipliers are tried after each solve and on the
//! way to it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use super::control::Task;
use super::knapsack::Knapsack;
use super::listed_sets;
use super::params;
use super::pricing::Pricing;
use super::residual::Residual;
use super::set_pool::{SetPool, is_usable};
use super::width::Width;
use crate::bitset::BitSet;
use crate::ilp::Linear as _;
use crate::ilp::model::Direction;
use crate::simplex::{Simplex, Termination};
use crate::threads::lock;
use nqueens_proof::first::{DiagonalSets, Multipliers};

/// Multipliers that are not small fractions are rounded to multiples of the reciprocal of this.
const SCALE: f64 = (1 << 20) as f64;

/// Objective values of the master and reduced costs of its sets below this count as 0.
const TOLERANCE: f64 = 1e-7;

/// The LP rows by row, column, diagonal and antidiagonal of the board.
#[derive(Clone)]
struct Lines {
    rows: Vec<Option<usize>>,
    columns: Vec<Option<usize>>,
    diagonals: [Vec<Option<usize>>; 2],
}

impl Lines {
    /// Returns integer multipliers in proportion to the duals, multiplied by `sign`.
    fn multipliers(&self, duals: &[f64], sign: f64) -> Multipliers {
        let used: Vec<f64> = self
            .columns
            .iter()
            .chain(&self.diagonals[0])
            .chain(&self.diagonals[1])
            .flatten()
            .map(|&row| duals[row])
            .collect();
        let scale = sign * scale(&used);
        let value = |row: &Option<usize>| row.map_or(0, |row| rounded(duals[row] * scale));
        let weights = |rows: &[Option<usize>]| rows.iter().map(|row| value(row).max(0)).collect();
        Multipliers {
            columns: self.columns.iter().map(value).collect(),
            diagonals: weights(&self.diagonals[0]),
            antidiagonals: weights(&self.diagonals[1]),
        }
    }
}

/// The cells and lines of a board as columns and rows of an LP.
#[derive(Clone)]
struct Frame {
    n: usize,
    simplex: Simplex,
    cells: Vec<(usize, usize)>,
    /// For each cell and each line (rows, then columns of the board), true if it is active.
    cell_on: Vec<bool>,
    line_on: Vec<bool>,
    lines: Lines,
}

impl Frame {
    /// Builds the LP. `bound` is the upper bound of the diagonals.
    fn new<W: Width>(board: &Residual<'_, W>, direction: Direction, bound: f64) -> Self {
        let n = board.n();
        let mut simplex = Simplex::new(direction);
        let mut row = |lower: f64, upper: f64| {
            simplex.add_row_between(lower, upper, []);
            simplex.rows() - 1
        };
        let rows: Vec<_> =
            (0..n).map(|r| board.rows().contains(r).then(|| row(1.0, 1.0))).collect();
        let columns: Vec<_> =
            (0..n).map(|c| board.columns().contains(c).then(|| row(1.0, 1.0))).collect();
        let diagonals = board.diagonals().map(|remaining| {
            let all = 0..(2 * n).saturating_sub(1);
            all.map(|d| remaining.contains(d).then(|| row(f64::NEG_INFINITY, bound)))
                .collect::<Vec<_>>()
        });
        let cells: Vec<(usize, usize)> = board
            .rows()
            .iter()
            .flat_map(|r| board.remaining(r).iter().map(move |c| (r, c)))
            .collect();
        for &(r, c) in &cells {
            let lines = [rows[r], columns[c], diagonals[0][c + n - 1 - r], diagonals[1][r + c]];
            let terms: Vec<(usize, f64)> =
                lines.into_iter().flatten().map(|line| (line, 1.0)).collect();
            simplex.add_column(0.0, (0.0, f64::INFINITY), &terms);
        }
        let (cell_on, line_on) = (vec![true; cells.len()], vec![true; 2 * n]);
        Self { n, simplex, cells, cell_on, line_on, lines: Lines { rows, columns, diagonals } }
    }

    /// Deactivates the cells and lines that are not on `board`, and activates those that are.
    fn restrict<W: Width>(&mut self, board: &Residual<'_, W>) {
        for (i, &(row, column)) in self.cells.iter().enumerate() {
            let on = board.rows().contains(row) && board.remaining(row).contains(column);
            if on != self.cell_on[i] {
                self.cell_on[i] = on;
                self.simplex.set_bounds(i, 0.0, if on { f64::INFINITY } else { 0.0 });
            }
        }
        for line in 0..2 * self.n {
            let (row, on) = if line < self.n {
                (self.lines.rows[line], board.rows().contains(line))
            } else {
                (self.lines.columns[line - self.n], board.columns().contains(line - self.n))
            };
            if let Some(row) = row.filter(|_| on != self.line_on[line]) {
                self.line_on[line] = on;
                let value = f64::from(u8::from(on));
                self.simplex.set_row_bounds(row, value, value);
            }
        }
    }

    /// Returns integer multipliers in proportion to the duals, multiplied by `sign`.
    fn multipliers(&self, sign: f64) -> Multipliers {
        self.lines.multipliers(self.simplex.duals(), sign)
    }
}

/// Returns the nearest integer, or 0 for NaN and for values that are too large.
fn rounded(value: f64) -> i64 {
    if value.abs() < 2.0 * SCALE { value.round() as i64 } else { 0 }
}

/// Returns the factor by which to multiply the values. If they are small multiples of one fraction,
/// as they often are at a vertex, the factor makes all of them integers; otherwise it scales the
/// largest to [`SCALE`].
fn scale(values: &[f64]) -> f64 {
    let sizes = || values.iter().map(|value| value.abs());
    let greatest = sizes().fold(0.0, f64::max);
    if greatest < 1e-9 {
        return 0.0;
    }
    let least = sizes().filter(|&size| size > 1e-6 * greatest).fold(f64::INFINITY, f64::min);
    let whole = |scale: &f64| {
        greatest * scale < SCALE
            && values.iter().all(|value| {
                let scaled = value * scale;
                (scaled - scaled.round()).abs() < 1e-4
            })
    };
    (1..=60).map(|k| f64::from(k) / least).find(whole).unwrap_or(SCALE / greatest)
}

/// The assignment relaxation.
#[derive(Clone)]
pub(super) struct Assignment(Frame);

impl Assignment {
    pub(super) fn new<W: Width>(board: &Residual<'_, W>) -> Self {
        let mut frame = Frame::new(board, Direction::Maximise, 1.0);
        let terms: Vec<(usize, f64)> =
            frame.lines.diagonals.iter().flatten().flatten().map(|&row| (row, 1.0)).collect();
        frame.simplex.add_column(1.0, (f64::NEG_INFINITY, 1.0), &terms);
        Self(frame)
    }

    /// Returns multipliers for `board`, whose remaining cells must be cells of the original board,
    /// or `None` if the LP was not solved to optimality.
    pub(super) fn multipliers<W: Width>(
        &mut self,
        board: &Residual<'_, W>,
        mut task: Task<'_>,
    ) -> Option<Multipliers> {
        self.0.restrict(board);
        task.add_lps(1);
        let termination = self.0.simplex.run(&mut task);
        matches!(termination, Termination::Optimal).then(|| self.0.multipliers(1.0))
    }

    /// Returns the optimum t of the last solve.
    pub(super) fn objective(&self) -> f64 {
        self.0.simplex.objective()
    }

    /// Returns the values of these cells in the last solution.
    pub(super) fn values(&self, cells: &[(usize, usize)]) -> Vec<f64> {
        let values = self.0.simplex.values();
        cells
            .iter()
            .map(|cell| self.0.cells.binary_search(cell).map_or(0.0, |i| values[i]))
            .collect()
    }
}

/// The end of a solve of the master program.
enum Solved {
    /// Multipliers that refute the board.
    Refuted(Multipliers),
    /// The multipliers of the optimum, which is positive.
    Optimal(Multipliers),
    /// The optimum is 0, or the solve was stopped or failed.
    Other,
}

/// The master program over sets of diagonals.
#[derive(Clone)]
pub(super) struct Master<W: Width> {
    frame: Frame,
    /// The convexity rows of the two directions.
    convexity_rows: [usize; 2],
    /// The index of the first column that is a set, and the sets with their directions.
    first_set: usize,
    sets: Vec<(usize, W::Diagonals)>,
    set_on: Vec<bool>,
    /// The diagonals of each direction that are occupied on the board of the LP.
    occupied: [W::Diagonals; 2],
    pool: Arc<Mutex<SetPool<W>>>,
    knapsack: Knapsack,
}

impl<W: Width> Master<W> {
    /// Builds the program for `board`. Its sets go into the pool, which may supply others.
    pub(super) fn new(board: &Residual<'_, W>, pool: Arc<Mutex<SetPool<W>>>) -> Self {
        let mut frame = Frame::new(board, Direction::Minimise, 0.0);
        let convexity_rows = [(); 2].map(|()| {
            frame.simplex.add_row_between(1.0, 1.0, []);
            frame.simplex.rows() - 1
        });
        let penalised_rows: Vec<usize> =
            frame.lines.diagonals.iter().flatten().flatten().copied().collect();
        for row in penalised_rows {
            frame.simplex.add_column(1.0, (0.0, f64::INFINITY), &[(row, -1.0)]);
        }
        for row in convexity_rows {
            frame.simplex.add_column(100.0, (0.0, f64::INFINITY), &[(row, 1.0)]);
        }
        let first_set = frame.simplex.columns();
        Self {
            frame,
            convexity_rows,
            first_set,
            sets: Vec::new(),
            set_on: Vec::new(),
            occupied: board.occupied(),
            pool,
            knapsack: Knapsack::default(),
        }
    }

    /// Looks for multipliers with which the knapsacks refute `board`. `used` are the diagonals of
    /// each direction that were occupied since the LP was built. If sets of diagonals are listed,
    /// the LP must have been built for the board for which they were.
    pub(super) fn refute(
        &mut self,
        board: &Residual<'_, W>,
        used: [W::Diagonals; 2],
        task: Task<'_>,
    ) -> Option<Multipliers> {
        self.restrict(board, used);
        let mut pricing = Pricing::new(board);
        for _ in 0..params::COLUMN_GENERATION_ROUNDS {
            let multipliers = match self.solve(&mut pricing, task) {
                Solved::Refuted(multipliers) => return Some(multipliers),
                Solved::Optimal(multipliers) => multipliers,
                Solved::Other => return None,
            };
            let Some(sets) = pricing.price(&multipliers, &mut self.knapsack) else {
                return Some(multipliers);
            };
            let sets = [(0, sets[0].or(used[0])), (1, sets[1].or(used[1]))];
            let promising =
                sets.map(|(direction, set)| self.reduced_cost(direction, set) < -TOLERANCE);
            if promising == [false; 2] {
                return None;
            }
            for ((direction, set), promising) in sets.into_iter().zip(promising) {
                if promising {
                    let whole = set.or(self.occupied[direction]);
                    lock(&self.pool).add(direction, whole);
                    self.add(direction, set);
                }
            }
        }
        None
    }

    /// Activates what is on `board`: cells, lines and usable sets.
    fn restrict(&mut self, board: &Residual<'_, W>, used: [W::Diagonals; 2]) {
        self.frame.restrict(board);
        let remaining = board.diagonals();
        for (k, &(direction, set)) in self.sets.iter().enumerate() {
            let is_listed =
                |listed: &DiagonalSets| listed.contains(direction, listed_sets::of_width::<W>(set));
            let on = is_usable(set, used[direction], remaining[direction])
                && self.knapsack.listed.as_ref().is_none_or(is_listed);
            if on != self.set_on[k] {
                self.set_on[k] = on;
                self.frame.simplex.set_bounds(
                    self.first_set + k,
                    0.0,
                    if on { f64::INFINITY } else { 0.0 },
                );
            }
        }
    }

    /// Solves the LP. Ends as soon as the multipliers of a basis refute the board: those found on
    /// the way from the optimum of a neighbouring board often refute more boards than those of the
    /// next optimum.
    fn solve(&mut self, pricing: &mut Pricing<'_, W>, mut task: Task<'_>) -> Solved {
        task.add_lps(1);
        let Frame { simplex, lines, .. } = &mut self.frame;
        let mut refutation = None;
        let mut inspect = |duals: &[f64]| {
            let multipliers = lines.multipliers(duals, -1.0);
            if !pricing.is_refuted(&multipliers, &mut self.knapsack) {
                return ControlFlow::Continue(());
            }
            refutation = Some(multipliers);
            ControlFlow::Break(())
        };
        let termination =
            simplex.run_inspected(params::STEPS_PER_INSPECTION, &mut inspect, &mut task);
        match (refutation, termination) {
            (Some(multipliers), _) => Solved::Refuted(multipliers),
            (None, Some(Termination::Optimal)) if simplex.objective() >= TOLERANCE => {
                Solved::Optimal(self.frame.multipliers(-1.0))
            }
            _ => Solved::Other,
        }
    }

    /// Adds the sets of the pool that are usable on `board`, with `used` as for
    /// [`refute`](Self::refute).
    pub(super) fn add_pooled(&mut self, board: &Residual<'_, W>, used: [W::Diagonals; 2]) {
        let occupied = [0, 1].map(|direction| self.occupied[direction].or(used[direction]));
        let pool = lock(&self.pool);
        let usable = pool.usable(occupied, board.diagonals());
        let new: Vec<_> = usable
            .map(|(direction, whole)| (direction, whole.without(self.occupied[direction])))
            .filter(|set| !self.sets.contains(set))
            .collect();
        drop(pool);
        new.into_iter().for_each(|(direction, set)| self.add(direction, set));
    }

    /// Returns the number of sets.
    pub(super) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Returns the knapsack tables, for reuse by callers.
    pub(super) fn knapsack(&mut self) -> &mut Knapsack {
        &mut self.knapsack
    }

    fn terms(&self, direction: usize, set: W::Diagonals) -> Vec<(usize, f64)> {
        let rows = set.iter().filter_map(|d| self.frame.lines.diagonals[direction][d]);
        rows.map(|row| (row, -1.0)).chain([(self.convexity_rows[direction], 1.0)]).collect()
    }

    fn reduced_cost(&self, direction: usize, set: W::Diagonals) -> f64 {
        let duals = self.frame.simplex.duals();
        -self.terms(direction, set).iter().map(|&(row, a)| a * duals[row]).sum::<f64>()
    }

    fn add(&mut self, direction: usize, set: W::Diagonals) {
        let terms = self.terms(direction, set);
        debug_assert_eq!(terms.len(), set.len() + 1);
        self.frame.simplex.add_column(0.0, (0.0, f64::INFINITY), &terms);
        self.sets.push((direction, set));
        self.set_on.push(true);
    }
}
