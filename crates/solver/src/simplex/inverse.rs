//! The inverse of the basis, explicit and dense.
//!
//! Bases here have at most a few hundred rows, and the inverse of an n-queens basis is far from
//! sparse. Stored by columns, it makes each step of the simplex cheap: B⁻¹a is a sum of as many
//! columns as `a` has non-zeros, a row is read off directly, and an exchange touches only the
//! columns in which the pivot row is not 0. The squared norms of its rows, the weights of the dual
//! steepest edge (Forrest and Goldfarb, 1992), are updated along with it.

use super::wide::{Width, subtract_one};

/// Values below this are rounding errors, and treated as 0.
const ROUNDOFF: f64 = 1e-13;

/// A dense vector with the indices of its non-zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Scattered {
    pub(super) values: Vec<f64>,
    pub(super) indices: Vec<u32>,
}

impl Scattered {
    /// Resets to a vector of `len` zeros.
    pub(super) fn clear(&mut self, len: usize) {
        self.values.clear();
        self.values.resize(len, 0.0);
        self.indices.clear();
    }

    /// Recomputes the indices of the non-zeros; values below [`ROUNDOFF`] become 0.
    pub(super) fn gather(&mut self) {
        self.indices.clear();
        for (place, value) in (0u32..).zip(&mut self.values) {
            if value.abs() > ROUNDOFF {
                self.indices.push(place);
            } else {
                *value = 0.0;
            }
        }
    }

    /// Iterates over the indices with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.indices.iter().map(|&place| (place as usize, self.values[place as usize]))
    }
}

/// B⁻¹ of the basis B, whose columns are in the order of their positions.
#[derive(Clone, Debug, Default)]
pub(super) struct Inverse {
    size: usize,
    /// Stored column by column.
    columns: Vec<f64>,
    /// The squared norm of each row, if known.
    norms: Vec<f64>,
    norms_valid: bool,
    /// Number of exchanges since the last computation from scratch.
    exchanges: usize,
}

impl Inverse {
    /// Resets to the inverse of −1, the basis of all logical variables.
    pub(super) fn of_logicals(&mut self, size: usize) {
        self.size = size;
        self.columns.clear();
        self.columns.resize(size * size, 0.0);
        for i in 0..size {
            self.columns[i * size + i] = -1.0;
        }
        self.norms.clear();
        self.norms.resize(size, 1.0);
        self.norms_valid = true;
        self.exchanges = 0;
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn exchanges(&self) -> usize {
        self.exchanges
    }

    /// Resets the number of exchanges.
    pub(super) fn reset_exchanges(&mut self) {
        self.exchanges = 0;
    }

    /// Stops updating the norms until [`compute_norms`](Self::compute_norms) is called.
    pub(super) fn invalidate_norms(&mut self) {
        self.norms_valid = false;
    }

    /// Computes the norms, if they are not known.
    pub(super) fn compute_norms(&mut self) {
        if self.norms_valid {
            return;
        }
        self.norms.fill(0.0);
        for column in self.columns.chunks_exact(self.size.max(1)) {
            self.norms.iter_mut().zip(column).for_each(|(norm, entry)| *norm += entry * entry);
        }
        self.norms_valid = true;
    }

    /// Returns the weight of a position in the dual simplex.
    pub(super) fn norm(&self, position: usize) -> f64 {
        self.norms[position].max(1e-6)
    }

    fn column(&self, column: usize) -> &[f64] {
        &self.columns[column * self.size..(column + 1) * self.size]
    }

    /// Adds rows whose logical variables are basic. `rows` are their coefficients by position in
    /// the basis.
    pub(super) fn grow(&mut self, rows: &[Vec<(usize, f64)>]) {
        let (old, new) = (self.size, self.size + rows.len());
        let mut columns = vec![0.0; new * new];
        self.norms.resize(new, 1.0);
        for (k, column) in columns.chunks_exact_mut(new).enumerate() {
            if k >= old {
                column[k] = -1.0;
                continue;
            }
            column[..old].copy_from_slice(self.column(k));
            for (i, row) in (old..).zip(rows) {
                let value: f64 = row.iter().map(|&(p, a)| a * column[p]).sum();
                column[i] = value;
                self.norms[i] += value * value;
            }
        }
        self.size = new;
        self.columns = columns;
    }

    /// `out` = row `position` of B⁻¹.
    pub(super) fn row(&self, position: usize, out: &mut Scattered) {
        out.values.clear();
        out.values.extend((0..self.size).map(|k| self.columns[k * self.size + position]));
        out.gather();
    }

    /// `out` += B⁻¹ `vector`, given by its entries (row, value).
    pub(super) fn add_product(&self, vector: impl Iterator<Item = (usize, f64)>, out: &mut [f64]) {
        for (k, value) in vector {
            for (out, &entry) in out.iter_mut().zip(self.column(k)) {
                *out += value * entry;
            }
        }
    }

    /// `out` = `costs` B⁻¹, the costs given by position.
    pub(super) fn multipliers(&self, costs: &[(usize, f64)], out: &mut Vec<f64>) {
        out.clear();
        out.extend((0..self.size).map(|k| {
            let column = self.column(k);
            costs.iter().map(|&(p, c)| c * column[p]).sum::<f64>()
        }));
    }

    /// Exchanges the column of `position` in B. `alpha` is B⁻¹ times the entering column, `row` is
    /// row `position` of B⁻¹.
    pub(super) fn exchange(&mut self, position: usize, alpha: &Scattered, row: &Scattered) {
        let pivot = alpha.values[position];
        let sparse = alpha.indices.len() * 4 < self.size;
        let width = Width::widest();
        let norms = &mut self.norms;
        let mut own = 0.0;
        for (k, entry) in row.iter() {
            let factor = entry / pivot;
            own += factor * factor;
            let column = &mut self.columns[k * self.size..(k + 1) * self.size];
            match (sparse, self.norms_valid) {
                (true, true) => {
                    alpha
                        .iter()
                        .for_each(|(i, a)| subtract_one(&mut column[i], &mut norms[i], a * factor));
                }
                (true, false) => alpha.iter().for_each(|(i, a)| column[i] -= a * factor),
                (false, true) => width.subtract_with_norms(column, norms, &alpha.values, factor),
                (false, false) => width.subtract(column, &alpha.values, factor),
            }
            column[position] = factor;
        }
        norms[position] = own;
        self.exchanges += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns B⁻¹ B for the basis with these columns.
    fn product(inverse: &Inverse, columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let size = inverse.size();
        columns
            .iter()
            .map(|column| {
                let mut out = vec![0.0; size];
                inverse.add_product(column.iter().copied().enumerate(), &mut out);
                out
            })
            .collect()
    }

    fn assert_inverse(inverse: &mut Inverse, columns: &[Vec<f64>]) {
        for (j, column) in product(inverse, columns).into_iter().enumerate() {
            for (i, value) in column.into_iter().enumerate() {
                assert!((value - f64::from(u8::from(i == j))).abs() < 1e-9);
            }
        }
        inverse.compute_norms();
        for p in 0..inverse.size() {
            let mut row = Scattered::default();
            inverse.row(p, &mut row);
            let norm: f64 = row.values.iter().map(|v| v * v).sum();
            assert!((norm - inverse.norm(p)).abs() < 1e-9 * norm);
        }
    }

    #[test]
    fn exchanges_and_growth_preserve_the_inverse_and_its_row_norms() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..50 {
            let mut size = random.usize(1..12);
            let unit = |size: usize, i: usize| {
                (0..size).map(|k| if k == i { -1.0 } else { 0.0 }).collect()
            };
            let mut columns: Vec<Vec<f64>> = (0..size).map(|i| unit(size, i)).collect();
            let mut inverse = Inverse::default();
            inverse.of_logicals(size);
            for step in 0..30 {
                if step == 20 && random.bool() {
                    inverse.invalidate_norms();
                }
                if step == 15 {
                    let new: Vec<f64> = (0..size).map(|_| f64::from(random.i32(-1..=1))).collect();
                    inverse.grow(&[new.iter().copied().enumerate().collect()]);
                    columns.iter_mut().zip(new).for_each(|(column, value)| column.push(value));
                    columns.push(unit(size + 1, size));
                    size += 1;
                }
                let entering: Vec<f64> = (0..size).map(|_| f64::from(random.i32(-1..=1))).collect();
                let mut alpha = Scattered::default();
                alpha.clear(size);
                inverse.add_product(entering.iter().copied().enumerate(), &mut alpha.values);
                alpha.gather();
                let position = random.usize(..size);
                if alpha.values[position].abs() > 0.1 {
                    let mut row = Scattered::default();
                    inverse.row(position, &mut row);
                    inverse.exchange(position, &alpha, &row);
                    columns[position] = entering;
                }
            }
            assert_inverse(&mut inverse, &columns);
        }
    }
}
