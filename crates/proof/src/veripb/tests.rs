//! The formulas say what they should: compared with the plain definitions by exhaustive evaluation.

use std::collections::BTreeSet;

use super::claim;
use super::constraint::{Formula, Literal, Variable};
use crate::Beauty;
use crate::board::{Norm, Piece, is_solution};

/// Returns whether the constraints hold if exactly these variables are true.
fn holds(formula: &Formula, is_true: &dyn Fn(Variable) -> bool) -> bool {
    formula.constraints.iter().all(|constraint| {
        let value = |literal: Literal| is_true(literal.variable) != literal.negated;
        let terms = constraint.terms.iter().filter(|(_, literal)| value(*literal));
        let sum: i128 = terms.map(|(coefficient, _)| coefficient).sum();
        if constraint.equal { sum == constraint.degree } else { sum >= constraint.degree }
    })
}

/// A formula, divided into the constraints on queens alone, which most placements violate, and the
/// others, with the variables that only these have.
struct Divided {
    queens: Formula,
    rest: Formula,
    others: Vec<Variable>,
}

impl Divided {
    fn new(formula: &Formula) -> Self {
        let on_queens = |variable: Variable| matches!(variable, Variable::Queen(..));
        let (mut queens, mut rest) = (Formula::default(), Formula::default());
        for constraint in &formula.constraints {
            let alone = constraint.terms.iter().all(|(_, literal)| on_queens(literal.variable));
            let alone = alone && !constraint.terms.is_empty();
            (if alone { &mut queens } else { &mut rest }).push(constraint.clone());
        }
        let terms = rest.constraints.iter().flat_map(|constraint| &constraint.terms);
        let variables = terms.map(|(_, literal)| literal.variable);
        let others: BTreeSet<Variable> = variables.filter(|&one| !on_queens(one)).collect();
        assert!(others.len() < 20, "{} variables", others.len());
        Self { queens, rest, others: others.into_iter().collect() }
    }

    /// Returns whether the formula has a solution with queens in these columns.
    fn is_satisfiable_with(&self, columns: &[usize]) -> bool {
        self.is_satisfiable(&|row, column| columns[row] == column)
    }

    /// Returns whether the formula has a solution with queens on the squares where `has_queen` is
    /// true, by trying all values of its other variables.
    fn is_satisfiable(&self, has_queen: &dyn Fn(usize, usize) -> bool) -> bool {
        let queen = |variable: Variable| match variable {
            Variable::Queen(row, column) => has_queen(row.into(), column.into()),
            _ => unreachable!("it is no queen"),
        };
        holds(&self.queens, &queen)
            && (0u32..1 << self.others.len()).any(|values| {
                holds(&self.rest, &|variable| match self.others.binary_search(&variable) {
                    Ok(place) => values >> place & 1 == 1,
                    Err(_) => queen(variable),
                })
            })
    }
}

/// Calls `visit` with each choice of a column in each row.
fn for_all_placements(n: usize, visit: &mut dyn FnMut(&[usize])) {
    let mut columns = vec![0; n];
    loop {
        visit(&columns);
        let Some(row) = (0..n).rev().find(|&row| columns[row] + 1 < n) else { return };
        columns[row] += 1;
        columns[row + 1..].fill(0);
    }
}

fn solutions(n: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    for_all_placements(n, &mut |columns| {
        if is_solution(Piece::Queen, columns) {
            found.push(columns.to_vec());
        }
    });
    found
}

#[test]
fn the_formula_of_a_first_solution_is_satisfied_by_the_solutions_before_it() {
    let (mut satisfied, mut checked) = (0, 0);
    for n in 1..=6 {
        let claims: Vec<_> = [None].into_iter().chain(solutions(n).into_iter().map(Some)).collect();
        for claim in &claims {
            let formula = Divided::new(&claim::first(n, claim.as_deref()));
            for_all_placements(n, &mut |columns| {
                let before = claim.as_deref().is_none_or(|claim| columns < claim);
                let expected = is_solution(Piece::Queen, columns) && before;
                assert_eq!(formula.is_satisfiable_with(columns), expected, "{columns:?} {claim:?}");
                checked += 1;
                satisfied += usize::from(expected);
            });
        }
    }
    assert!(checked > 250_000 && satisfied > 30, "{checked}, {satisfied}");
}

#[test]
fn the_formula_of_a_most_beautiful_solution_is_satisfied_by_smaller_fingerprints() {
    let (mut satisfied, mut checked) = (0, 0);
    for n in 1..=6 {
        for (norm, turning) in Norm::ALL.into_iter().flat_map(|norm| [(norm, false), (norm, true)])
        {
            let beauty = Beauty { norm, turning };
            let is_turned = |columns: &[usize]| {
                !turning || (0..n).all(|row| columns[columns[row]] == n - 1 - row)
            };
            let all = solutions(n).into_iter().filter(|columns| is_turned(columns)).map(Some);
            for claim in [None].into_iter().chain(all) {
                let claimed = claim::beautiful(n, beauty, claim.as_deref());
                let formula = Divided::new(&claimed.formula);
                for_all_placements(n, &mut |columns| {
                    let smaller = claim
                        .as_deref()
                        .is_none_or(|claim| norm.fingerprint(columns) < norm.fingerprint(claim));
                    let solves = is_solution(Piece::Queen, columns) && is_turned(columns);
                    let expected = solves && smaller;
                    let found = formula.is_satisfiable_with(columns);
                    assert_eq!(found, expected, "{beauty:?} {columns:?} {claim:?}");
                    checked += 1;
                    satisfied += usize::from(expected);
                });
            }
        }
    }
    assert!(checked > 900_000 && satisfied > 30, "{checked}, {satisfied}");
}

#[test]
fn sets_without_one_queen_in_each_row_satisfy_no_formula() {
    let mut checked = 0;
    for n in 1..=4 {
        let claims: Vec<_> = [None].into_iter().chain(solutions(n).into_iter().map(Some)).collect();
        for claim in &claims {
            let claim = claim.as_deref();
            let beautiful = claim::beautiful(n, Beauty::default(), claim).formula;
            for formula in [claim::first(n, claim), beautiful].iter().map(Divided::new) {
                for set in 0u32..1 << (n * n) {
                    let row = |row: usize| set >> (row * n) & ((1 << n) - 1);
                    if (0..n).any(|of| row(of).count_ones() != 1) {
                        let has_queen = |of: usize, column: usize| row(of) >> column & 1 == 1;
                        assert!(!formula.is_satisfiable(&has_queen), "{n}: {set:b}");
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 390_000, "{checked}");
}

#[test]
fn the_formulas_of_the_8_board_compare_all_pairs_of_solutions() {
    let n = 8;
    let mut found = vec![Vec::new()];
    for _ in 0..n {
        let longer = found.iter().flat_map(|above: &Vec<usize>| {
            (0..n).map(move |column| [&above[..], &[column]].concat())
        });
        found = longer.filter(|columns| is_peaceful(columns)).collect();
    }
    assert_eq!(found.len(), 92);
    let (mut before, mut smaller) = (0, 0);
    for claim in &found {
        let first = Divided::new(&claim::first(n, Some(claim)));
        let beauty = Beauty::default();
        let beautiful = Divided::new(&claim::beautiful(n, beauty, Some(claim)).formula);
        for columns in &found {
            let expected = columns < claim;
            assert_eq!(first.is_satisfiable_with(columns), expected, "{columns:?} {claim:?}");
            before += usize::from(expected);
            let fingerprint = |columns: &[usize]| Norm::Euclidean.fingerprint(columns);
            let expected = fingerprint(columns) < fingerprint(claim);
            assert_eq!(beautiful.is_satisfiable_with(columns), expected, "{columns:?} {claim:?}");
            smaller += usize::from(expected);
        }
    }
    assert!(before == 92 * 91 / 2 && smaller > 1000, "{before}, {smaller}");
}

/// Returns whether the last of these queens attacks none of the others.
fn is_peaceful(columns: &[usize]) -> bool {
    let Some((&last, above)) = columns.split_last() else { return true };
    above
        .iter()
        .rev()
        .zip(1..)
        .all(|(&column, distance)| column != last && column.abs_diff(last) != distance)
}
