//! `ilp-weights`: one 0-1 program whose objective encodes the order, (1) in the paper: row i and
//! column j (both from 0) cost j·n^(n−1−i), so that one column less on a row outweighs all rows
//! below. Minimised.
//!
//! The weights span n^(n−1), and a solver computes with 53 bits, so the size of the board is
//! limited; even there, its tolerances may hide the last rows. As always, the counterexample search
//! decides.

use super::{Claim, Run};
use crate::ilp::formulation::{Formulation, Lines};
use crate::ilp::model::Direction;

/// The largest board on which every objective value is an integer below 2^53: 13^13 < 2^53 < 14^14.
pub(super) const LARGEST: usize = 13;

pub(super) fn run(run: &mut Run<'_>) -> Claim {
    let n = run.problem.n();
    if n == 0 {
        return Ok(Some(Vec::new()));
    }
    let mut model = Formulation::Diagonals.model(run.problem, Lines::Full);
    model.set_objective(Direction::Minimise, |k| weight(n, k / n, k % n));
    run.optimise(&model, None, 0)
}

fn weight(n: usize, row: usize, column: usize) -> i64 {
    // Below 2^53 for the accepted boards.
    let power = (n as i64).pow((n - 1 - row) as u32);
    column as i64 * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_order_placements_lexicographically_and_stay_exact() {
        let n = 4;
        let total =
            |p: &[usize]| -> i64 { p.iter().enumerate().map(|(r, &c)| weight(n, r, c)).sum() };
        let placements: Vec<Vec<usize>> =
            (0..256).map(|code| vec![code / 64, code / 16 % 4, code / 4 % 4, code % 4]).collect();
        assert!(placements.windows(2).all(|pair| total(&pair[0]) < total(&pair[1])));
        let largest = |n: usize| (0..n).map(|r| i128::from(weight(n, r, n - 1))).sum::<i128>();
        assert!(largest(LARGEST) < 1 << 53);
        assert!((LARGEST as u128 + 1).pow(LARGEST as u32 + 1) > 1 << 53);
    }
}
