//! The exact separation of clique rows: the heaviest clique of the conflict graph, by the 0-1
//! program
//!
//! max Σ x(v)·z(v),  z(u) + z(v) ≤ 1 for any two squares u, v that do not attack each other
//!
//! over the squares with a positive value. The families of [`super::violated_cliques`] are found
//! faster, but a clique of another shape, such as a part of a line and a square beside it, is only
//! found here.

use super::super::model::{Column, Direction, Domain, Model, Relation, Row};
use super::super::rounding::rounded;
use super::super::solver::{Solver, SolverClaim};
use crate::progress::{ProgressSink, WithoutLog};
use crate::verdict::Unproven;
use nqueens_proof::board::{Piece, Square};

/// The values of the relaxation are multiplied by this number, because the coefficients of a model
/// are integers. Smaller values count as 0.
const SCALE: f64 = 1e6;

/// Returns a clique of the conflict graph of queens on the board of size `n` whose values have the
/// greatest sum, if that is more than 1 + `by`. Squares of value 0 that attack all of the clique
/// are added as long as there is one, which makes the row stronger.
///
/// # Errors
/// The solver was stopped or failed.
pub fn heaviest(
    n: usize,
    values: &[f64],
    by: f64,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Result<Option<Vec<Square>>, Unproven> {
    let squares: Vec<usize> = (0..n * n).filter(|&k| scaled(values[k]) > 0).collect();
    let outcome = solver.optimise(&program(n, &squares, values), None, &mut WithoutLog(sink));
    if outcome.status.claim(solver)? == SolverClaim::Infeasible {
        return Err(solver.failed("it finds the program of the cliques infeasible"));
    }
    let on = rounded(&outcome.values.unwrap_or_default());
    let mut clique: Vec<Square> = squares
        .iter()
        .zip(on)
        .filter(|&(_, on)| on)
        .map(|(&k, _)| Square::new(k / n, k % n))
        .collect();
    if !is_clique(n, &clique) {
        return Err(solver.failed("its heaviest clique is not a clique"));
    }
    let sum: f64 = clique.iter().map(|square| values[square.row * n + square.col]).sum();
    if sum <= 1.0 + by {
        return Ok(None);
    }
    extend(n, &mut clique);
    Ok(Some(clique))
}

fn scaled(value: f64) -> i64 {
    (value * SCALE).round() as i64
}

fn attack(n: usize, u: Square, v: Square) -> bool {
    Piece::Queen.attacks(n, u, v)
}

/// Returns whether any two of the squares attack each other.
fn is_clique(n: usize, squares: &[Square]) -> bool {
    squares.iter().enumerate().all(|(i, &u)| squares[..i].iter().all(|&v| attack(n, u, v)))
}

/// Returns the program of the cliques among `squares`.
fn program(n: usize, squares: &[usize], values: &[f64]) -> Model {
    let square = |i: usize| Square::new(squares[i] / n, squares[i] % n);
    let column = |&k: &usize| Column {
        name: format!("z{},{}", k / n + 1, k % n + 1),
        cost: scaled(values[k]),
        domain: Domain::Free,
    };
    let pairs = (0..squares.len()).flat_map(|u| (0..u).map(move |v| (v, u)));
    let apart = pairs.filter(|&(v, u)| !attack(n, square(u), square(v)));
    Model {
        name: "heaviest_clique".into(),
        direction: Direction::Maximise,
        columns: squares.iter().map(column).collect(),
        rows: apart
            .map(|(v, u)| Row::sum(format!("apart{v},{u}"), [v, u], Relation::AtMost, 1))
            .collect(),
    }
}

/// Adds squares until the clique is maximal.
fn extend(n: usize, clique: &mut Vec<Square>) {
    for k in 0..n * n {
        let square = Square::new(k / n, k % n);
        if clique.iter().all(|&other| other != square && attack(n, square, other)) {
            clique.push(square);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ilp::{BEST_SOLVER, MicroLp};
    use crate::progress::Unobserved;

    /// Returns the greatest sum of the values of a clique, by enumeration of all cliques.
    fn oracle(n: usize, values: &[f64]) -> f64 {
        fn extended(n: usize, values: &[f64], clique: &mut Vec<Square>, from: usize) -> f64 {
            let mut best = clique.iter().map(|s| values[s.row * n + s.col]).sum::<f64>();
            for k in from..n * n {
                let square = Square::new(k / n, k % n);
                if clique.iter().all(|&other| attack(n, square, other)) {
                    clique.push(square);
                    best = best.max(extended(n, values, clique, k + 1));
                    clique.pop();
                }
            }
            best
        }
        extended(n, values, &mut Vec::new(), 0)
    }

    fn sum(n: usize, values: &[f64], clique: &[Square]) -> f64 {
        clique.iter().map(|s| values[s.row * n + s.col]).sum()
    }

    #[test]
    fn the_heaviest_clique_equals_that_of_the_enumeration_of_all_cliques() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut found = 0;
        for case in 0..60 {
            let n = 3 + case % 3;
            // Few positive values, as at a vertex of the relaxation.
            let value = |random: &mut fastrand::Rng| {
                if random.u8(0..3) == 0 { f64::from(random.u32(1..600)) / 1000.0 } else { 0.0 }
            };
            let values: Vec<f64> = (0..n * n).map(|_| value(&mut random)).collect();
            let expected = oracle(n, &values);
            for solver in [&MicroLp as &dyn Solver, BEST_SOLVER] {
                let clique =
                    heaviest(n, &values, 1e-4, solver, &mut Unobserved).expect("it is solved");
                assert_eq!(clique.is_some(), expected > 1.0 + 1e-4, "{values:?}");
                if let Some(clique) = clique {
                    found += 1;
                    assert!(is_clique(n, &clique), "{clique:?}");
                    assert!((sum(n, &values, &clique) - expected).abs() < 1e-4, "{clique:?}");
                }
            }
        }
        assert!(found > 20, "only {found} violated cliques");
    }

    /// Calls `visit` with each maximal clique of the conflict graph.
    fn maximal_cliques(n: usize, visit: &mut dyn FnMut(&[Square])) {
        fn extended(
            n: usize,
            clique: &mut Vec<Square>,
            from: usize,
            visit: &mut dyn FnMut(&[Square]),
        ) {
            let square = |k: usize| Square::new(k / n, k % n);
            let fits = |k: &usize, clique: &[Square]| {
                clique.iter().all(|&other| attack(n, square(*k), other))
            };
            if !(0..n * n).any(|k| !clique.contains(&square(k)) && fits(&k, clique)) {
                visit(clique);
            }
            for k in from..n * n {
                if fits(&k, clique) {
                    clique.push(square(k));
                    extended(n, clique, k + 1, visit);
                    clique.pop();
                }
            }
        }
        extended(n, &mut Vec::new(), 0, visit);
    }

    #[test]
    fn every_maximal_clique_is_a_line_or_of_one_of_the_three_families() {
        for n in 2..=6 {
            let families: Vec<Vec<Square>> = super::super::cliques::all(n).collect();
            let mut checked = 0;
            maximal_cliques(n, &mut |clique| {
                let on_a_line = |of: fn(&Square) -> isize| {
                    clique.iter().all(|square| of(square) == of(&clique[0]))
                };
                let line = on_a_line(|s| s.row as isize)
                    || on_a_line(|s| s.col as isize)
                    || on_a_line(|s| s.row as isize + s.col as isize)
                    || on_a_line(|s| s.row as isize - s.col as isize);
                let in_family = || {
                    families.iter().any(|other| clique.iter().all(|square| other.contains(square)))
                };
                assert!(line || in_family(), "{clique:?}");
                checked += 1;
            });
            assert!(checked >= 1, "n = {n}");
        }
    }

    #[test]
    fn a_clique_that_is_returned_is_maximal() {
        let n = 5;
        let mut values = vec![0.0; n * n];
        for k in [0, 6, 1] {
            values[k] = 0.4;
        }
        let clique = heaviest(n, &values, 1e-4, BEST_SOLVER, &mut Unobserved);
        let clique = clique.expect("it is solved").expect("it is violated");
        let mut extended = clique.clone();
        extend(n, &mut extended);
        assert!(clique.len() > 3 && extended == clique, "{clique:?}");
    }
}
