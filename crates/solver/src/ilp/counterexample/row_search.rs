//! Searches row by row: for an earlier, a missing or a heavier solution, and for a larger set.

use std::collections::BTreeSet;

use super::{ClaimCheck, LARGEST, Meter};
use crate::progress::ProgressSink;
use nqueens_proof::board::{Piece, Problem, Square};

/// The rows of a board, searched from the top, columns from the left. Attacked squares are masks
/// that are shifted from row to row.
struct Rows {
    /// Allowed squares by row; for a row with a placed piece, only its square.
    allowed: Vec<u128>,
    diagonals: bool,
}

#[derive(Clone, Copy, Default)]
struct Attacked {
    columns: u128,
    falling_right: u128,
    falling_left: u128,
}

impl Rows {
    fn new(problem: &Problem) -> Option<Self> {
        let n = problem.n();
        if n > LARGEST {
            return None;
        }
        let mut allowed: Vec<u128> =
            vec![u128::MAX.checked_shr((LARGEST - n) as u32).unwrap_or(0); n];
        for square in problem.blocked() {
            allowed[square.row] &= !(1 << square.col);
        }
        for square in problem.placed() {
            allowed[square.row] &= 1 << square.col;
        }
        Some(Self { allowed, diagonals: problem.piece() == Piece::Queen })
    }

    fn free(&self, row: usize, attacked: Attacked) -> u128 {
        self.allowed[row] & !(attacked.columns | attacked.falling_right | attacked.falling_left)
    }

    /// Returns the squares attacked on the next row if this row has a piece on `bit`, or no piece
    /// if `bit` is 0.
    fn below(&self, attacked: Attacked, bit: u128) -> Attacked {
        let on_diagonals = if self.diagonals { bit } else { 0 };
        Attacked {
            columns: attacked.columns | bit,
            falling_right: (attacked.falling_right | on_diagonals) << 1,
            falling_left: (attacked.falling_left | on_diagonals) >> 1,
        }
    }
}

/// Iterates over the columns of a mask from the left, each with its bit.
fn columns(mut mask: u128) -> impl Iterator<Item = (usize, u128)> {
    std::iter::from_fn(move || {
        let bit = mask & mask.wrapping_neg();
        mask ^= bit;
        (bit != 0).then(|| (bit.trailing_zeros() as usize, bit))
    })
}

/// Checks that `claim` is the lexicographically first solution of `problem`, or that there is none
/// if it is `None`. A counterexample is an earlier solution.
pub fn first(
    problem: &Problem,
    claim: Option<&[usize]>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    let mut meter = Meter { sink, nodes: 0 };
    earlier(&rows, claim, &mut Vec::new(), Attacked::default(), &mut meter)
}

/// Searches for a solution before `claim`, which is `None` once `chosen` comes before it.
fn earlier(
    rows: &Rows,
    claim: Option<&[usize]>,
    chosen: &mut Vec<usize>,
    attacked: Attacked,
    meter: &mut Meter<'_>,
) -> ClaimCheck<Vec<usize>> {
    if !meter.step() {
        return ClaimCheck::Undecided;
    }
    let row = chosen.len();
    if row == rows.allowed.len() {
        // The claim itself is no counterexample.
        return if claim.is_some() {
            ClaimCheck::Confirmed
        } else {
            ClaimCheck::Refuted(chosen.clone())
        };
    }
    for (column, bit) in columns(rows.free(row, attacked)) {
        let claim = match claim {
            Some(claim) if column > claim[row] => break,
            Some(claim) => (column == claim[row]).then_some(claim),
            None => None,
        };
        chosen.push(column);
        let check = earlier(rows, claim, chosen, rows.below(attacked, bit), meter);
        chosen.pop();
        if !matches!(check, ClaimCheck::Confirmed) {
            return check;
        }
    }
    ClaimCheck::Confirmed
}

/// Checks that these are all solutions of `problem`. A counterexample is a missing solution.
pub fn complete(
    problem: &Problem,
    found: &BTreeSet<Vec<usize>>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    let mut meter = Meter { sink, nodes: 0 };
    missing(&rows, found, &mut Vec::new(), Attacked::default(), &mut meter)
}

fn missing(
    rows: &Rows,
    found: &BTreeSet<Vec<usize>>,
    chosen: &mut Vec<usize>,
    attacked: Attacked,
    meter: &mut Meter<'_>,
) -> ClaimCheck<Vec<usize>> {
    if !meter.step() {
        return ClaimCheck::Undecided;
    }
    if chosen.len() == rows.allowed.len() {
        return if found.contains(chosen) {
            ClaimCheck::Confirmed
        } else {
            ClaimCheck::Refuted(chosen.clone())
        };
    }
    for (column, bit) in columns(rows.free(chosen.len(), attacked)) {
        chosen.push(column);
        let check = missing(rows, found, chosen, rows.below(attacked, bit), meter);
        chosen.pop();
        if !matches!(check, ClaimCheck::Confirmed) {
            return check;
        }
    }
    ClaimCheck::Confirmed
}

/// Checks that no solution of `problem` has a sum of weights above `claim`, or that there is no
/// solution if it is `None`. `weights` are those of the squares, row by row; a counterexample is a
/// heavier solution.
pub fn heaviest(
    problem: &Problem,
    weights: &[i64],
    claim: Option<i128>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    let n = problem.n();
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    // Upper bounds on the weight of the rows from a given one on.
    let mut most = vec![0i128; n + 1];
    for row in (0..n).rev() {
        let best = weights[row * n..(row + 1) * n].iter().max().copied().unwrap_or(0);
        most[row] = most[row + 1] + i128::from(best);
    }
    let mut meter = Meter { sink, nodes: 0 };
    let task = Heavier { rows: &rows, weights, most: &most, claim };
    task.search(&mut Vec::new(), 0, Attacked::default(), &mut meter)
}

struct Heavier<'a> {
    rows: &'a Rows,
    weights: &'a [i64],
    most: &'a [i128],
    claim: Option<i128>,
}

impl Heavier<'_> {
    fn search(
        &self,
        chosen: &mut Vec<usize>,
        weight: i128,
        attacked: Attacked,
        meter: &mut Meter<'_>,
    ) -> ClaimCheck<Vec<usize>> {
        if !meter.step() {
            return ClaimCheck::Undecided;
        }
        let (row, n) = (chosen.len(), self.rows.allowed.len());
        if self.claim.is_some_and(|claim| weight + self.most[row] <= claim) {
            return ClaimCheck::Confirmed;
        }
        if row == n {
            return ClaimCheck::Refuted(chosen.clone());
        }
        for (column, bit) in columns(self.rows.free(row, attacked)) {
            chosen.push(column);
            let weight = weight + i128::from(self.weights[row * n + column]);
            let check = self.search(chosen, weight, self.rows.below(attacked, bit), meter);
            chosen.pop();
            if !matches!(check, ClaimCheck::Confirmed) {
                return check;
            }
        }
        ClaimCheck::Confirmed
    }
}

/// Checks that no non-attacking set of `problem` has more than `claim` pieces. A counterexample is
/// a larger set.
pub fn largest(
    problem: &Problem,
    claim: usize,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<Square>> {
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    if claim >= problem.n() {
        return ClaimCheck::Confirmed; // at most one per row
    }
    let mut meter = Meter { sink, nodes: 0 };
    let placed: Vec<bool> = (0..problem.n())
        .map(|row| problem.placed().iter().any(|square| square.row == row))
        .collect();
    let mut chosen = Vec::new();
    larger(&rows, &placed, problem.n() - claim - 1, 0, &mut chosen, Attacked::default(), &mut meter)
}

/// Searches for a set that leaves at most `spare` more rows empty, none of them with a placed
/// piece.
fn larger(
    rows: &Rows,
    placed: &[bool],
    spare: usize,
    row: usize,
    chosen: &mut Vec<Square>,
    attacked: Attacked,
    meter: &mut Meter<'_>,
) -> ClaimCheck<Vec<Square>> {
    if !meter.step() {
        return ClaimCheck::Undecided;
    }
    if row == rows.allowed.len() {
        return ClaimCheck::Refuted(chosen.clone());
    }
    for (column, bit) in columns(rows.free(row, attacked)) {
        chosen.push(Square::new(row, column));
        let check = larger(rows, placed, spare, row + 1, chosen, rows.below(attacked, bit), meter);
        chosen.pop();
        if !matches!(check, ClaimCheck::Confirmed) {
            return check;
        }
    }
    if spare == 0 || placed[row] {
        return ClaimCheck::Confirmed;
    }
    larger(rows, placed, spare - 1, row + 1, chosen, rows.below(attacked, 0), meter)
}
