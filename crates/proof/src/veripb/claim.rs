//! The formulas: what a reader of a proof has to believe. `docs/proofs.md` explains them, and
//! `tests/veripb/formulas.py` writes the same files.

use super::constraint::{Constraint, Formula, Literal, Variable};
use crate::Beauty;
use crate::board::{Norm, Square};

/// Returns the squares of each line, row · n + column in ascending order: the rows, the columns,
/// the diagonals by c - r, the antidiagonals by r + c.
pub(crate) fn lines(n: usize) -> Vec<Vec<usize>> {
    let mut lines = vec![Vec::new(); if n == 0 { 0 } else { 6 * n - 2 }];
    for square in 0..n * n {
        lines_of(n, square).into_iter().for_each(|line| lines[line].push(square));
    }
    lines
}

/// Returns the numbers of the lines of a square.
pub(super) const fn lines_of(n: usize, square: usize) -> [usize; 4] {
    let (row, column) = (square / n, square % n);
    [row, n + column, 2 * n + column + n - 1 - row, 4 * n - 1 + row + column]
}

/// Returns the levels of a norm: the squares of each cost, from the largest cost.
pub(crate) fn levels(n: usize, norm: Norm) -> Vec<Vec<usize>> {
    let mut levels = std::collections::BTreeMap::<u64, Vec<usize>>::new();
    for square in 0..n * n {
        let cost = norm.cost(n, Square::new(square / n, square % n));
        levels.entry(cost).or_default().push(square);
    }
    levels.into_values().rev().collect()
}

/// Returns the number of queens of a solution on each level.
pub(crate) fn queens_by_level(levels: &[Vec<usize>], columns: &[usize]) -> Vec<usize> {
    let has_queen = |square: &usize| columns[square / columns.len()] == square % columns.len();
    levels.iter().map(|level| level.iter().copied().filter(has_queen).count()).collect()
}

/// Returns "n queens that do not attack each other stand on the board", by line.
pub(crate) fn queens(n: usize) -> Formula {
    let mut formula = Formula::default();
    for (line, squares) in lines(n).into_iter().enumerate() {
        let variables = squares.iter().map(|&square| Variable::queen(n, square));
        formula.push(if line < 2 * n {
            Constraint::exactly_one(variables)
        } else {
            Constraint::at_least(squares.len() - 1, variables.map(Variable::negative))
        });
    }
    formula
}

/// Returns "a solution comes before `solution` in lexicographic order", or "there is a solution".
pub(crate) fn first(n: usize, solution: Option<&[usize]>) -> Formula {
    let mut formula = queens(n);
    let Some(columns) = solution else { return formula };
    let queen = |row: usize, column: usize| Variable::Queen(row as u16, column as u16).positive();
    let rows: Vec<usize> = (0..n).filter(|&row| columns[row] > 0).collect();
    let selector = |row: usize| Variable::FirstRow(row as u16);
    formula.push(Constraint::clause(rows.iter().map(|&row| selector(row).positive())));
    for row in rows {
        let above = (0..row).map(|above| queen(above, columns[above]));
        formula.push(Constraint::at_least(row, above).implied_by(selector(row).positive()));
        let smaller = (0..columns[row]).map(|column| queen(row, column));
        formula.push(Constraint::clause(smaller).implied_by(selector(row).positive()));
    }
    formula
}

/// A claim about fingerprints, with the numbers of the constraints that its proof needs.
pub(crate) struct BeautifulClaim {
    pub(crate) formula: Formula,
    /// By level: "as many queens as S up to here implies no more queens than S here".
    pub(crate) at_most: Vec<Option<usize>>,
    /// By level: "the first difference is here implies fewer queens than S here".
    pub(crate) fewer: Vec<Option<usize>>,
}

/// Returns "a solution has a smaller fingerprint than `solution`", or "there is a solution".
pub(crate) fn beautiful(n: usize, beauty: Beauty, solution: Option<&[usize]>) -> BeautifulClaim {
    let levels = levels(n, beauty.norm);
    let mut formula = board(n, beauty);
    let (mut at_most, mut fewer) = (vec![None; levels.len()], vec![None; levels.len()]);
    let Some(columns) = solution else { return BeautifulClaim { formula, at_most, fewer } };
    let queens = queens_by_level(&levels, columns);
    let has_queens: Vec<usize> = (0..levels.len()).filter(|&level| queens[level] > 0).collect();
    let last = has_queens.last().copied().unwrap_or(0);
    let on = |level: usize| levels[level].iter().map(|&square| Variable::queen(n, square));
    let no_more = |level: usize, than: usize| {
        Constraint::at_least(levels[level].len() - than, on(level).map(Variable::negative))
    };
    let implies =
        |one: Variable, other: Variable| Constraint::clause([one.negative(), other.positive()]);
    let fewer_on = |level: usize| Variable::FewerOn(level as u16);
    let same_before = |level: usize| Variable::SameBefore(level as u16);
    formula.push(Constraint::clause(has_queens.iter().map(|&level| fewer_on(level).positive())));
    for level in 0..last {
        let same = same_before(level + 1);
        if level > 0 {
            formula.push(implies(same, same_before(level)));
        }
        let no_fewer = Constraint::at_least(queens[level], on(level).map(Variable::positive));
        formula.push(no_fewer.implied_by(same.positive()));
        at_most[level] =
            Some(formula.push(no_more(level, queens[level]).implied_by(same.positive())));
    }
    for level in has_queens {
        if level > 0 {
            formula.push(implies(fewer_on(level), same_before(level)));
        }
        let less = no_more(level, queens[level] - 1).implied_by(fewer_on(level).positive());
        fewer[level] = Some(formula.push(less));
    }
    BeautifulClaim { formula, at_most, fewer }
}

/// Returns the solutions that are compared: all of them, or those invariant under quarter turns.
pub(crate) fn board(n: usize, beauty: Beauty) -> Formula {
    let mut formula = queens(n);
    if beauty.turning {
        for square in 0..n * n {
            let turned = quarter_turn(n, square);
            if turned != square {
                let queens = [Variable::queen(n, square), Variable::queen(n, turned)];
                let mut equal = Constraint::exactly_one(queens);
                equal.terms[1].1 = queens[1].negative();
                formula.push(equal);
            }
        }
    }
    formula
}

/// Returns the image of a square under a quarter turn.
pub(super) const fn quarter_turn(n: usize, square: usize) -> usize {
    square % n * n + n - 1 - square / n
}

/// Returns the literals that are true if the queens stand in these columns.
pub(crate) fn assignment(columns: &[usize]) -> impl Iterator<Item = Literal> {
    let n = columns.len();
    (0..n * n).map(move |square| {
        let variable = Variable::queen(n, square);
        Literal { variable, negated: columns[square / n] != square % n }
    })
}
