//! The data on which both simplex methods work: the variables with their bounds, costs, values and
//! reduced costs, and the basis.
//!
//! Row i of the program is `Σ a x − s = 0` with a *logical* variable s, the activity of the row,
//! which has the row's bounds. Variables are numbered: columns first, then the logical ones. The
//! objective is minimised.

use super::inverse::{Inverse, Scattered};
use super::matrix::Matrix;

/// The status of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableStatus {
    /// In the basis.
    Basic,
    /// At its lower bound.
    Lower,
    /// At its upper bound.
    Upper,
    /// At its only value: the bounds are equal.
    Fixed,
    /// At 0, without bounds.
    Free,
}

/// The bounds and the cost of a variable as set by the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// To be minimised.
    pub(super) cost: f64,
}

/// Coefficients of a tableau below this are never pivots.
pub(super) const PIVOT: f64 = 1e-7;

/// Coefficients of a tableau below this count as 0 in the ratio tests.
pub(super) const ZERO: f64 = 1e-9;

/// Maximum relative difference of a pivot computed by row and by column.
const DISAGREEMENT: f64 = 1e-7;

/// The simplex tableau.
#[derive(Clone, Debug)]
pub(super) struct Tableau {
    pub(super) matrix: Matrix,
    given: Vec<Given>,
    /// Bounds and costs in use: the given ones, with scaled costs and possibly perturbed.
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    costs: Vec<f64>,
    pub(super) values: Vec<f64>,
    /// Reduced costs; those of basic variables are 0.
    pub(super) reduced: Vec<f64>,
    pub(super) statuses: Vec<VariableStatus>,
    /// The variables whose bounds differ. `reduced` and `row` are kept up to date only for these;
    /// others never enter the basis.
    pub(super) movable: Vec<usize>,
    /// The basic variable of each position.
    pub(super) basis: Vec<usize>,
    pub(super) inverse: Inverse,
    /// The factor by which costs are divided.
    scale: f64,
    pub(super) costs_perturbed: bool,
    pub(super) bounds_perturbed: bool,
    costs_stale: bool,
    pub(super) values_stale: bool,
    pub(super) reduced_stale: bool,
    /// A row of B⁻¹, and the corresponding tableau row, one coefficient per variable.
    pub(super) rho: Scattered,
    pub(super) row: Vec<f64>,
    /// A column of the tableau, one coefficient per position.
    pub(super) alpha: Scattered,
    sums: Vec<f64>,
    pub(super) random: fastrand::Rng,
}

impl Tableau {
    pub(super) fn new() -> Self {
        Self {
            matrix: Matrix::default(),
            given: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            costs: Vec::new(),
            values: Vec::new(),
            reduced: Vec::new(),
            statuses: Vec::new(),
            movable: Vec::new(),
            basis: Vec::new(),
            inverse: Inverse::default(),
            scale: 1.0,
            costs_perturbed: false,
            bounds_perturbed: false,
            costs_stale: true,
            values_stale: true,
            reduced_stale: true,
            rho: Scattered::default(),
            row: Vec::new(),
            alpha: Scattered::default(),
            sums: Vec::new(),
            random: fastrand::Rng::with_seed(1),
        }
    }

    pub(super) const fn rows(&self) -> usize {
        self.matrix.rows()
    }

    pub(super) const fn columns(&self) -> usize {
        self.matrix.columns()
    }

    fn variables(&self) -> usize {
        self.given.len()
    }

    pub(super) fn given(&self, variable: usize) -> Given {
        self.given[variable]
    }

    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Inserts a variable with this number, without a final status.
    fn insert(&mut self, variable: usize, given: Given) {
        self.given.insert(variable, given);
        self.lower.insert(variable, given.lower);
        self.upper.insert(variable, given.upper);
        self.costs.insert(variable, 0.0);
        self.values.insert(variable, 0.0);
        self.reduced.insert(variable, 0.0);
        self.statuses.insert(variable, VariableStatus::Free);
        self.costs_stale = true;
        self.values_stale = true;
    }

    pub(super) fn add_row(
        &mut self,
        lower: f64,
        upper: f64,
        terms: impl Iterator<Item = (usize, f64)>,
    ) {
        self.matrix.add_row(terms);
        let logical = self.variables();
        self.insert(logical, Given { lower, upper, cost: 0.0 });
        self.statuses[logical] = VariableStatus::Basic;
        self.basis.push(logical);
    }

    pub(super) fn add_column(&mut self, given: Given, terms: &[(usize, f64)]) {
        let column = self.columns();
        self.matrix.add_column(terms);
        for basic in &mut self.basis {
            *basic += usize::from(*basic >= column);
        }
        self.insert(column, given);
        self.settle(column);
    }

    pub(super) fn set_bounds(&mut self, variable: usize, lower: f64, upper: f64) {
        let given = &mut self.given[variable];
        self.reduced_stale |= given.lower == given.upper && lower != upper;
        (given.lower, given.upper) = (lower, upper);
        (self.lower[variable], self.upper[variable]) = (lower, upper);
        if self.statuses[variable] != VariableStatus::Basic {
            self.settle(variable);
            self.values_stale = true;
        }
    }

    pub(super) fn set_cost(&mut self, column: usize, cost: f64) {
        self.given[column].cost = cost;
        self.costs_stale = true;
    }

    /// Moves a nonbasic variable to the bound that suits its reduced cost, if it has that bound.
    pub(super) fn settle(&mut self, variable: usize) {
        let (lower, upper) = (self.lower[variable], self.upper[variable]);
        let place = if lower == upper {
            VariableStatus::Fixed
        } else if lower.is_finite() && (self.reduced[variable] >= 0.0 || upper.is_infinite()) {
            VariableStatus::Lower
        } else if upper.is_finite() {
            VariableStatus::Upper
        } else {
            VariableStatus::Free
        };
        self.put(variable, place);
    }

    /// Sets the status of a nonbasic variable, and its value accordingly.
    pub(super) fn put(&mut self, variable: usize, place: VariableStatus) {
        self.statuses[variable] = place;
        self.values[variable] = match place {
            VariableStatus::Basic => return,
            VariableStatus::Lower | VariableStatus::Fixed => self.lower[variable],
            VariableStatus::Upper => self.upper[variable],
            VariableStatus::Free => 0.0,
        };
    }

    /// Applies all changes since the last solve.
    pub(super) fn refresh(&mut self) {
        self.matrix.index();
        self.movable.clear();
        let movable = |&variable: &usize| self.given[variable].lower < self.given[variable].upper;
        self.movable.extend((0..self.given.len()).filter(movable));
        if self.inverse.size() < self.rows() {
            self.grow_inverse();
        }
        if self.costs_stale {
            self.load_costs();
        }
        if self.values_stale {
            self.compute_values();
        }
        if self.reduced_stale {
            self.compute_reduced();
        }
    }

    fn grow_inverse(&mut self) {
        let mut position = vec![usize::MAX; self.columns()];
        for (p, &basic) in self.basis.iter().enumerate() {
            if let Some(place) = position.get_mut(basic) {
                *place = p;
            }
        }
        let rows: Vec<Vec<(usize, f64)>> = (self.inverse.size()..self.rows())
            .map(|i| {
                let basic = self.matrix.row(i).iter().map(|&(j, a)| (position[j as usize], a));
                basic.filter(|&(p, _)| p != usize::MAX).collect()
            })
            .collect();
        self.inverse.grow(&rows);
    }

    /// Loads the given costs, divided by a power of two so that the largest is at most 16.
    fn load_costs(&mut self) {
        let largest = self.given.iter().fold(0.0f64, |most, given| most.max(given.cost.abs()));
        self.scale = if largest > 16.0 { (largest / 16.0).log2().ceil().exp2() } else { 1.0 };
        for (cost, given) in self.costs.iter_mut().zip(&self.given) {
            *cost = given.cost / self.scale;
        }
        self.costs_stale = false;
        self.costs_perturbed = false;
        self.reduced_stale = true;
    }

    /// Undoes the perturbation of costs.
    pub(super) fn restore_costs(&mut self) {
        if self.costs_perturbed {
            self.load_costs();
        }
    }

    /// Undoes the perturbation of bounds.
    pub(super) fn restore_bounds(&mut self) {
        if !self.bounds_perturbed {
            return;
        }
        for variable in 0..self.variables() {
            let Given { lower, upper, .. } = self.given[variable];
            (self.lower[variable], self.upper[variable]) = (lower, upper);
            match self.statuses[variable] {
                VariableStatus::Basic => {}
                _ if lower == upper => self.put(variable, VariableStatus::Fixed),
                place => self.put(variable, place),
            }
        }
        self.bounds_perturbed = false;
        self.values_stale = true;
    }

    /// Recomputes the values of the basic variables.
    pub(super) fn compute_values(&mut self) {
        let (rows, columns) = (self.rows(), self.columns());
        self.sums.clear();
        self.sums.resize(rows, 0.0);
        for variable in 0..self.variables() {
            let value = self.values[variable];
            if self.statuses[variable] == VariableStatus::Basic || value == 0.0 {
                continue;
            }
            if variable < columns {
                for &(i, a) in self.matrix.column(variable) {
                    self.sums[i as usize] -= a * value;
                }
            } else {
                self.sums[variable - columns] += value;
            }
        }
        self.alpha.clear(rows);
        let sums = self.sums.iter().copied().enumerate().filter(|&(_, value)| value != 0.0);
        self.inverse.add_product(sums, &mut self.alpha.values);
        for (p, &basic) in self.basis.iter().enumerate() {
            self.values[basic] = self.alpha.values[p];
        }
        self.values_stale = false;
    }

    /// Returns the multipliers of the rows for the current basis and the given costs, multiplied by
    /// `sign`.
    pub(super) fn multipliers(&mut self, sign: f64) -> &[f64] {
        let costs = self.basis.iter().map(|&basic| sign * self.given[basic].cost);
        let basic_costs: Vec<(usize, f64)> =
            costs.enumerate().filter(|&(_, cost)| cost != 0.0).collect();
        self.inverse.multipliers(&basic_costs, &mut self.sums);
        &self.sums
    }

    /// Recomputes all reduced costs.
    pub(super) fn compute_reduced(&mut self) {
        let columns = self.columns();
        let basic_costs: Vec<(usize, f64)> = self
            .basis
            .iter()
            .enumerate()
            .map(|(p, &basic)| (p, self.costs[basic]))
            .filter(|&(_, cost)| cost != 0.0)
            .collect();
        self.inverse.multipliers(&basic_costs, &mut self.sums);
        self.reduced.copy_from_slice(&self.costs);
        let (structural, logical) = self.reduced.split_at_mut(columns);
        for (i, &y) in self.sums.iter().enumerate().filter(|&(_, &y)| y != 0.0) {
            for &(j, a) in self.matrix.row(i) {
                structural[j as usize] -= y * a;
            }
            logical[i] += y;
        }
        for &basic in &self.basis {
            self.reduced[basic] = 0.0;
        }
        self.reduced_stale = false;
    }

    /// Returns whether every row's activity is the sum of its terms, and not NaN.
    pub(super) fn rows_hold(&self, tolerance: f64) -> bool {
        self.values[self.columns()..].iter().enumerate().all(|(i, activity)| {
            let sum: f64 =
                self.matrix.row(i).iter().map(|&(j, a)| a * self.values[j as usize]).sum();
            (sum - activity).abs() <= tolerance
        })
    }

    /// Returns whether the lower bound of some variable is above its upper one.
    pub(super) fn has_crossed_bounds(&self) -> bool {
        self.given.iter().any(|given| given.lower > given.upper)
    }

    /// Returns the amount by which a value is above its upper bound (positive) or below its lower
    /// one (negative).
    pub(super) fn excess(&self, variable: usize) -> f64 {
        let value = self.values[variable];
        if value < self.lower[variable] {
            value - self.lower[variable]
        } else {
            (value - self.upper[variable]).max(0.0)
        }
    }

    /// Returns the amount by which the reduced cost of a variable has the wrong sign.
    pub(super) fn dual_infeasibility(&self, variable: usize) -> f64 {
        let reduced = self.reduced[variable];
        match self.statuses[variable] {
            VariableStatus::Basic | VariableStatus::Fixed => 0.0,
            VariableStatus::Lower => -reduced,
            VariableStatus::Upper => reduced,
            VariableStatus::Free => reduced.abs(),
        }
    }

    pub(super) fn is_primal_feasible(&self, tolerance: f64) -> bool {
        self.basis.iter().all(|&basic| self.excess(basic).abs() <= tolerance)
    }

    pub(super) fn is_dual_feasible(&self, tolerance: f64) -> bool {
        (0..self.variables()).all(|variable| self.dual_infeasibility(variable) <= tolerance)
    }

    /// Shifts the cost of a nonbasic variable so that its reduced cost becomes `reduced`.
    pub(super) fn shift_cost(&mut self, variable: usize, reduced: f64) {
        self.costs[variable] += reduced - self.reduced[variable];
        self.reduced[variable] = reduced;
        self.costs_perturbed = true;
    }

    /// Returns the objective at the current values.
    pub(super) fn objective(&self) -> f64 {
        (0..self.columns()).map(|column| self.given[column].cost * self.values[column]).sum()
    }

    /// Fills `row` with the tableau row of `rho`, for movable nonbasic variables.
    pub(super) fn price_row(&mut self) {
        self.row.clear();
        self.row.resize(self.given.len(), 0.0);
        let columns = self.columns();
        let rho = &self.rho.values;
        for &variable in &self.movable {
            if self.statuses[variable] == VariableStatus::Basic {
                continue;
            }
            self.row[variable] = if variable < columns {
                self.matrix.column(variable).iter().map(|&(i, a)| a * rho[i as usize]).sum()
            } else {
                -rho[variable - columns]
            };
        }
    }

    /// Fills `alpha` with the tableau column of a variable.
    pub(super) fn price_column(&mut self, variable: usize) {
        self.alpha.clear(self.inverse.size());
        let columns = self.columns();
        if variable < columns {
            let terms = self.matrix.column(variable).iter().map(|&(i, a)| (i as usize, a));
            self.inverse.add_product(terms, &mut self.alpha.values);
        } else {
            self.inverse
                .add_product(std::iter::once((variable - columns, -1.0)), &mut self.alpha.values);
        }
        self.alpha.gather();
    }

    /// Returns whether the pivot is large enough, and the same by row and by column.
    pub(super) fn is_pivot_stable(&self, position: usize, entering: usize) -> bool {
        let (by_row, by_column) = (self.row[entering], self.alpha.values[position]);
        by_column.abs() >= PIVOT
            && (by_row - by_column).abs() <= DISAGREEMENT * (1.0 + by_column.abs())
    }

    /// Moves a nonbasic variable by `step`, and the basic ones accordingly along `alpha`.
    pub(super) fn shift(&mut self, variable: usize, step: f64) {
        if step != 0.0 {
            self.values[variable] += step;
            for (p, a) in self.alpha.iter() {
                self.values[self.basis[p]] -= a * step;
            }
        }
    }

    /// Moves the basic variables by B⁻¹ `sums` (row, value).
    pub(super) fn move_basic(&mut self, sums: &[(usize, f64)]) {
        self.sums.clear();
        self.sums.resize(self.inverse.size(), 0.0);
        self.inverse.add_product(sums.iter().copied(), &mut self.sums);
        for (&basic, step) in self.basis.iter().zip(&self.sums) {
            self.values[basic] += step;
        }
    }

    /// Exchanges the basic variable of a position, which gets the status `place`, for `entering`,
    /// whose reduced cost becomes 0. `rho`, `row` and `alpha` belong to the position and the
    /// variable.
    pub(super) fn exchange(&mut self, position: usize, entering: usize, place: VariableStatus) {
        let leaving = self.basis[position];
        let theta = self.reduced[entering] / self.alpha.values[position];
        if theta != 0.0 {
            for &variable in &self.movable {
                self.reduced[variable] -= theta * self.row[variable];
            }
        }
        self.reduced[entering] = 0.0;
        self.reduced[leaving] = -theta;
        self.inverse.exchange(position, &self.alpha, &self.rho);
        self.basis[position] = entering;
        self.statuses[entering] = VariableStatus::Basic;
        let place =
            if self.lower[leaving] == self.upper[leaving] { VariableStatus::Fixed } else { place };
        self.put(leaving, place);
    }

    /// Computes the inverse from scratch, then everything else. Linearly dependent variables leave
    /// the basis.
    pub(super) fn reinvert(&mut self) {
        let (rows, columns) = (self.rows(), self.columns());
        let mut entering: Vec<usize> =
            self.basis.iter().copied().filter(|&basic| basic < columns).collect();
        entering.sort_by_key(|&column| self.matrix.column(column).len());
        // Rows whose logical variable stays basic are not available as pivots.
        let mut open = vec![true; rows];
        for &basic in self.basis.iter().filter(|&&basic| basic >= columns) {
            open[basic - columns] = false;
        }
        self.inverse.of_logicals(rows);
        self.basis.clear();
        self.basis.extend(columns..columns + rows);
        for column in entering {
            self.price_column(column);
            let pivots = self.alpha.iter().filter(|&(p, _)| open[p]);
            let best = pivots.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            if let Some((position, _)) = best.filter(|(_, pivot)| pivot.abs() > PIVOT) {
                self.inverse.row(position, &mut self.rho);
                self.inverse.exchange(position, &self.alpha, &self.rho);
                self.basis[position] = column;
                open[position] = false;
            } else {
                self.settle(column);
            }
        }
        self.inverse.reset_exchanges();
        for (row, _) in open.iter().enumerate().filter(|&(_, &open)| open) {
            self.statuses[columns + row] = VariableStatus::Basic;
        }
        self.compute_values();
        self.compute_reduced();
    }
}
