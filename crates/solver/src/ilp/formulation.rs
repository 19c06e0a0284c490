//! The n-queens problem as a 0-1 program: x(i,j) = 1 if there is a queen on row i, column j.
//!
//! Variables are numbered row by row: x(i,j) of the 0-based square has index i·n + j. Names are
//! 1-based.

use std::fmt;
use std::str::FromStr;

use super::model::{Column, Direction, Domain, Model, Relation, Row};
use nqueens_proof::board::{Piece, Problem, Square};

/// The formulation of the diagonals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formulation {
    /// 6n rows: the falling diagonal from each square of the first row and of the first column, and
    /// the other diagonal from each square of the first row and of the last column (the two long
    /// diagonals occur twice). The number of queens is maximised.
    Borders,
    /// Each of the 2(2n−1) diagonals once; the objective is zero.
    #[default]
    Diagonals,
}

/// The number of queens in every row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Exactly one queen each: a solution.
    Full,
    /// At most one each: any non-attacking set.
    AtMostOne,
}

/// The error for a text that names no formulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a formulation; choose borders or diagonals")]
pub struct UnknownFormulation(String);

impl Formulation {
    /// Every formulation.
    pub const ALL: [Self; 2] = [Self::Borders, Self::Diagonals];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Borders => "borders",
            Self::Diagonals => "diagonals",
        }
    }

    /// Returns the program of `problem`: placed squares are 1, blocked ones 0. The objective counts
    /// the queens ([`Lines::AtMostOne`], [`Self::Borders`]) or is zero. For rooks there are no
    /// diagonals.
    ///
    /// # Panics
    /// If the piece is neither queen nor rook.
    pub fn model(self, problem: &Problem, lines: Lines) -> Model {
        let n = problem.n();
        let relation = match lines {
            Lines::Full => Relation::Equal,
            Lines::AtMostOne => Relation::AtMost,
        };
        let mut rows = Vec::new();
        for i in 0..n {
            rows.push(Row::sum(format!("row{}", i + 1), (0..n).map(|j| i * n + j), relation, 1));
        }
        for j in 0..n {
            rows.push(Row::sum(format!("column{}", j + 1), (0..n).map(|i| i * n + j), relation, 1));
        }
        match problem.piece() {
            Piece::Rook => {}
            Piece::Queen => rows.extend(self.diagonals(n)),
            piece => panic!("{piece}s have no 0-1 program here"),
        }
        let counts = lines == Lines::AtMostOne || self == Self::Borders;
        let columns = (0..n * n).map(|index| {
            let square = Square::new(index / n, index % n);
            Column {
                name: format!("x{}_{}", square.row + 1, square.col + 1),
                cost: i64::from(counts),
                domain: domain(problem, square),
            }
        });
        Model {
            name: format!("{n}_{}s_{}", problem.piece(), self.name()),
            direction: Direction::Maximise,
            columns: columns.collect(),
            rows,
        }
    }

    fn diagonals(self, n: usize) -> Vec<Row> {
        let at_most_one = |name: String, squares: Vec<Square>| {
            Row::sum(name, squares.iter().map(|s| s.row * n + s.col), Relation::AtMost, 1)
        };
        // The long diagonals begin in a corner, which the other border has, too.
        let first = match self {
            Self::Borders => 0,
            Self::Diagonals => 1,
        };
        let starts: [(&str, Vec<Square>, bool); 4] = [
            ("forward_top", (0..n).map(|j| Square::new(0, j)).collect(), true),
            ("forward_left", (first..n).map(|i| Square::new(i, 0)).collect(), true),
            ("backward_top", (0..n).map(|j| Square::new(0, j)).collect(), false),
            ("backward_right", (first..n).map(|i| Square::new(i, n - 1)).collect(), false),
        ];
        let mut rows = Vec::new();
        for (family, starts, forward) in starts {
            for start in starts {
                let name = format!("{family}{}_{}", start.row + 1, start.col + 1);
                rows.push(at_most_one(name, falling(n, start, forward)));
            }
        }
        rows
    }
}

/// Returns the squares of the diagonal that falls from `start`, to the right (forward) or to the
/// left.
fn falling(n: usize, start: Square, forward: bool) -> Vec<Square> {
    let right_of = |k: usize| (start.col + k < n).then(|| start.col + k);
    let left_of = |k: usize| start.col.checked_sub(k);
    let squares = (0..n - start.row).map_while(|k| {
        let col = if forward { right_of(k) } else { left_of(k) }?;
        Some(Square::new(start.row + k, col))
    });
    squares.collect()
}

/// Places a piece on `square`: its variable becomes 1, those of attacked squares become 0.
pub(super) fn place(model: &mut Model, problem: &Problem, square: Square) {
    let n = problem.n();
    for (index, column) in model.columns.iter_mut().enumerate() {
        let other = Square::new(index / n, index % n);
        if other == square {
            column.domain = Domain::One;
        } else if problem.piece().attacks(n, square, other) {
            column.domain = Domain::Zero;
        }
    }
}

fn domain(problem: &Problem, square: Square) -> Domain {
    if problem.placed().binary_search(&square).is_ok() {
        Domain::One
    } else if problem.blocked().binary_search(&square).is_ok() {
        Domain::Zero
    } else {
        Domain::Free
    }
}

impl fmt::Display for Formulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Formulation {
    type Err = UnknownFormulation;

    fn from_str(text: &str) -> Result<Self, UnknownFormulation> {
        let known = Self::ALL.into_iter().find(|formulation| formulation.name() == text);
        known.ok_or_else(|| UnknownFormulation(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::first_attack;

    #[test]
    fn the_programs_have_the_number_of_rows_in_the_literature() {
        for n in [1, 4, 9] {
            let problem = Problem::empty(Piece::Queen, n);
            assert_eq!(Formulation::Borders.model(&problem, Lines::Full).rows.len(), 6 * n);
            let rows = Formulation::Diagonals.model(&problem, Lines::Full).rows.len();
            assert_eq!(rows, 2 * n + 2 * (2 * n - 1));
        }
        assert_eq!(
            Formulation::Diagonals.model(&Problem::empty(Piece::Rook, 5), Lines::Full).rows.len(),
            10
        );
    }

    #[test]
    fn a_set_of_squares_is_feasible_exactly_if_no_two_attack_each_other() {
        for n in 1..=3 {
            for piece in [Piece::Queen, Piece::Rook] {
                for formulation in Formulation::ALL {
                    let model = formulation.model(&Problem::empty(piece, n), Lines::AtMostOne);
                    for set in 0..1u32 << (n * n) {
                        let values: Vec<bool> = (0..n * n).map(|k| set >> k & 1 == 1).collect();
                        let squares: Vec<Square> = (0..n * n)
                            .filter(|&k| values[k])
                            .map(|k| Square::new(k / n, k % n))
                            .collect();
                        let non_attacking = first_attack(piece, n, &squares).is_none();
                        assert_eq!(
                            model.is_feasible(&values),
                            non_attacking,
                            "{formulation}, {piece}, {squares:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn decided_squares_fix_variables() {
        let at = Square::new;
        let problem =
            Problem::new(Piece::Queen, 3, vec![at(0, 1)], vec![at(2, 2)]).expect("on the board");
        let model = Formulation::Borders.model(&problem, Lines::Full);
        let decided: Vec<usize> =
            (0..9).filter(|&j| model.columns[j].domain != Domain::Free).collect();
        assert_eq!(decided, [1, 8]);
        assert_eq!((model.columns[1].domain, model.columns[8].domain), (Domain::One, Domain::Zero));
        assert_eq!(model.columns[5].name, "x2_3");
    }
}
