//! Farkas rays: multipliers of the rows that prove infeasibility.

use super::tableau::{Given, Tableau};

/// Multipliers below this are dropped if they would invalidate the proof.
const SMALL: f64 = 1e-9;

/// Returns the least value of `factor` × a variable, or −∞ if it is unbounded.
fn least(factor: f64, given: Given) -> f64 {
    if factor == 0.0 { 0.0 } else { factor * if factor > 0.0 { given.lower } else { given.upper } }
}

/// Returns the ray `factor` × `rho` if it proves by more than `margin` that the rows cannot be
/// satisfied within the bounds.
pub(super) fn proof(tableau: &Tableau, factor: f64, margin: f64) -> Option<Vec<f64>> {
    let columns = tableau.columns();
    let mut ray: Vec<f64> = tableau.rho.values.iter().map(|y| factor * y).collect();
    let mut right = 0.0;
    let mut combined = vec![0.0; columns];
    for (i, y) in ray.iter_mut().enumerate() {
        let given = tableau.given(columns + i);
        if y.abs() <= SMALL && least(*y, given).is_infinite() {
            *y = 0.0;
        }
        right += least(*y, given);
        for &(j, a) in tableau.matrix.row(i) {
            combined[j as usize] += *y * a;
        }
    }
    let most = combined.iter().enumerate().map(|(j, &a)| {
        let a = if a.abs() <= SMALL && least(-a, tableau.given(j)).is_infinite() { 0.0 } else { a };
        -least(-a, tableau.given(j))
    });
    (right - most.sum::<f64>() > margin).then_some(ray)
}
