//! The sections that `nqueens show` prints: the board, attacks, costs, cliques, and the constraint
//! matrix.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde::Serialize;

use crate::board::{Norm, Piece, Problem, Square};
use crate::cli::args::{from_one, square_from_one};
use crate::cli::candidate::Candidate;
use crate::cli::solution_output::spaced;
use crate::render::{attackers, attacking_pairs};
use crate::solver::ilp::cuts::CliqueFamily;
use crate::solver::ilp::model::{Relation, Row};
use crate::solver::ilp::{Formulation, Lines};

/// The largest number of attacks and of violated cliques that are listed.
const MOST_LISTED: usize = 100;

/// Returns the board with row numbers, and with letters for the columns up to n = 26. Blocked
/// squares are crosses.
pub(super) fn board(problem: &Problem, found: &Candidate) -> String {
    let sign = if problem.piece() == Piece::Rook { "♜" } else { "♛" };
    let blocked: HashSet<Square> = problem.blocked().iter().copied().collect();
    grid(found.n, |square| {
        let is_free = found.squares.binary_search(&square).is_err();
        let mark = if blocked.contains(&square) { "x" } else { "·" };
        if is_free { mark.into() } else { sign.into() }
    })
}

/// Returns a table with a cell for each square, and its coordinates.
fn grid(n: usize, cell: impl Fn(Square) -> String) -> String {
    let cells: Vec<Vec<String>> =
        (0..n).map(|row| (0..n).map(|col| cell(Square::new(row, col))).collect()).collect();
    let width = cells.iter().flatten().map(|cell| cell.chars().count()).max().unwrap_or(1);
    let margin = n.to_string().len();
    let mut text = String::new();
    for (cells, number) in cells.iter().zip(1..) {
        // Writing to a string does not fail.
        let _ = write!(text, "{number:>margin$} ");
        cells.iter().for_each(|cell| {
            let _ = write!(text, " {cell:>width$}");
        });
        text.push('\n');
    }
    if (1..=26).contains(&n) {
        let _ = write!(text, "{:>margin$} ", "");
        ('a'..='z').take(n).for_each(|letter| {
            let _ = write!(text, " {letter:>width$}");
        });
        text.push('\n');
    }
    text
}

/// The squares in words, or a hyphen if there are none.
fn listed(squares: &[[usize; 2]]) -> String {
    let words: Vec<String> = squares.iter().map(|[row, col]| format!("{row},{col}")).collect();
    if words.is_empty() { "-".into() } else { words.join(" ") }
}

/// The attacks of the pieces.
#[derive(Debug, Serialize)]
pub(super) struct Attacks {
    /// The number of pieces that attack each square, row by row.
    attackers: Vec<Vec<usize>>,
    /// The pairs of pieces that attack each other, at most 100.
    pairs: Vec<[[usize; 2]; 2]>,
    /// The number of squares without a piece that no piece attacks.
    free: usize,
}

impl Attacks {
    pub(super) fn of(piece: Piece, found: &Candidate) -> Self {
        let attackers = attackers(piece, found.n, &found.squares);
        let pairs = attacking_pairs(piece, found.n, &found.squares, MOST_LISTED);
        let unattacked = attackers.iter().flatten().filter(|&&count| count == 0).count();
        let peaceful =
            found.squares.iter().filter(|square| attackers[square.row][square.col] == 0).count();
        Self {
            attackers,
            pairs: pairs.into_iter().map(|(a, b)| [a, b].map(square_from_one)).collect(),
            free: unattacked - peaceful,
        }
    }

    pub(super) fn text(&self, found: &Candidate) -> String {
        let map = grid(found.n, |square| {
            let count = self.attackers[square.row][square.col];
            match (found.squares.binary_search(&square).is_ok(), count) {
                (true, 0) => "♛".into(),
                (true, count) => format!("♛{count}"),
                (false, 0) => "·".into(),
                (false, count) => count.to_string(),
            }
        });
        let mut text = format!("pieces that attack each square\n{map}");
        let _ = writeln!(text, "squares that are free and not attacked: {}", self.free);
        if self.pairs.is_empty() {
            text += "no two pieces attack each other\n";
        }
        for [a, b] in &self.pairs {
            let _ = writeln!(text, "{} and {} attack each other", listed(&[*a]), listed(&[*b]));
        }
        if self.pairs.len() == MOST_LISTED {
            let _ = writeln!(text, "(only the first {MOST_LISTED} attacks are listed)");
        }
        text
    }
}

/// The costs of the squares.
#[derive(Debug, Serialize)]
pub(super) struct Costs {
    norm: String,
    /// The cost of each square, row by row.
    squares: Vec<Vec<u64>>,
    /// The rings from the outside.
    rings: Vec<Ring>,
    /// The costs of the pieces' squares, the largest first.
    fingerprint: Vec<u64>,
}

/// The squares of one cost.
#[derive(Debug, Serialize)]
struct Ring {
    cost: u64,
    squares: usize,
    pieces: usize,
}

impl Costs {
    pub(super) fn of(norm: Norm, found: &Candidate) -> Self {
        let n = found.n;
        let of_row = |row| (0..n).map(|col| norm.cost(n, Square::new(row, col))).collect();
        let squares: Vec<Vec<u64>> = (0..n).map(of_row).collect();
        let mut rings: BTreeMap<u64, Ring> = BTreeMap::new();
        for &cost in squares.iter().flatten() {
            let ring = rings.entry(cost).or_insert(Ring { cost, squares: 0, pieces: 0 });
            ring.squares += 1;
        }
        let mut fingerprint = Vec::new();
        for &square in &found.squares {
            let cost = norm.cost(n, square);
            fingerprint.push(cost);
            if let Some(ring) = rings.get_mut(&cost) {
                ring.pieces += 1;
            }
        }
        fingerprint.sort_unstable_by(|a, b| b.cmp(a));
        let rings = rings.into_values().rev().collect();
        Self { norm: norm.to_string(), squares, rings, fingerprint }
    }

    pub(super) fn text(&self, found: &Candidate) -> String {
        let map = grid(found.n, |square| {
            let cost = self.squares[square.row][square.col];
            let is_piece = found.squares.binary_search(&square).is_ok();
            if is_piece { format!("[{cost}]") } else { format!("{cost} ") }
        });
        let mut text = format!("costs of the squares ({}), [pieces]\n{map}", self.norm);
        let _ = writeln!(text, "{:>8}  {:>8}  {:>8}", "cost", "squares", "pieces");
        for Ring { cost, squares, pieces } in &self.rings {
            let _ = writeln!(text, "{cost:>8}  {squares:>8}  {pieces:>8}");
        }
        let _ = writeln!(text, "fingerprint: {}", spaced(&self.fingerprint));
        text += "a solution is most beautiful if its fingerprint is lexicographically smallest\n";
        text
    }
}

/// The cliques of the 0-1 program.
#[derive(Debug, Serialize)]
pub(super) struct Cliques {
    lines: Vec<Line>,
    families: Vec<Family>,
}

/// A row, a column or a diagonal.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    relation: &'static str,
    bound: i64,
    squares: Vec<[usize; 2]>,
    pieces: Vec<[usize; 2]>,
}

/// A family of other cliques.
#[derive(Debug, Serialize)]
struct Family {
    name: &'static str,
    /// The number of the inequality in the paper.
    inequality: u8,
    cliques: usize,
    with_piece: usize,
    violated: usize,
    /// The squares of the first cliques with two or more pieces.
    first_violated: Vec<Vec<[usize; 2]>>,
}

/// Returns the rows of the 0-1 program.
fn rows(piece: Piece, n: usize) -> Vec<Row> {
    Formulation::Diagonals.model(&Problem::empty(piece, n), Lines::Full).rows
}

const fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::AtMost => "<=",
        Relation::Equal => "=",
        Relation::AtLeast => ">=",
    }
}

impl Cliques {
    pub(super) fn of(piece: Piece, found: &Candidate) -> Self {
        let n = found.n;
        let holds = |square: &Square| found.squares.binary_search(square).is_ok();
        let line = |row: Row| {
            let squares: Vec<Square> =
                row.terms.iter().map(|&(index, _)| Square::new(index / n, index % n)).collect();
            let pieces = squares.iter().copied().filter(holds).map(square_from_one).collect();
            Line {
                name: row.name,
                relation: sign(row.relation),
                bound: row.bound,
                squares: from_one(&squares),
                pieces,
            }
        };
        let family = |family: CliqueFamily| {
            let (name, inequality) = family.name();
            let mut of_family = Family {
                name,
                inequality,
                cliques: 0,
                with_piece: 0,
                violated: 0,
                first_violated: Vec::new(),
            };
            for clique in family.cliques(n) {
                let pieces = clique.iter().filter(|square| holds(square)).count();
                of_family.cliques += 1;
                of_family.with_piece += usize::from(pieces > 0);
                of_family.violated += usize::from(pieces > 1);
                if pieces > 1 && of_family.first_violated.len() < MOST_LISTED {
                    of_family.first_violated.push(from_one(&clique));
                }
            }
            of_family
        };
        let families: Vec<Family> = match piece {
            Piece::Queen => CliqueFamily::ALL.into_iter().map(family).collect(),
            // The squares of these cliques are joined by diagonals.
            _ => Vec::new(),
        };
        Self { lines: rows(piece, n).into_iter().map(line).collect(), families }
    }

    pub(super) fn text(&self) -> String {
        let mut text = "lines of the board, with their pieces\n".to_owned();
        let width = self.lines.iter().map(|line| line.name.len()).max().unwrap_or(0);
        for Line { name, relation, bound, squares, pieces } in &self.lines {
            let state = match pieces.len() {
                0 if *relation == "=" => "  empty",
                0 | 1 => "",
                _ => "  violated",
            };
            let _ = writeln!(
                text,
                "  {name:<width$}  sum of {:>2} {relation:>2} {bound}  {}{state}",
                squares.len(),
                listed(pieces)
            );
        }
        if !self.families.is_empty() {
            text += "other cliques of three or more squares (Fischetti and Salvagnin)\n";
        }
        for family in &self.families {
            let Family { name, inequality, cliques, with_piece, violated, .. } = family;
            let _ = writeln!(
                text,
                "  ({inequality}) {name:<6}  {cliques} cliques, {with_piece} with a piece, {violated} violated"
            );
            for clique in &family.first_violated {
                let _ = writeln!(text, "      violated: {}", listed(clique));
            }
        }
        text
    }
}

/// The constraint matrix of the 0-1 program.
#[derive(Debug, Serialize)]
pub(super) struct Matrix {
    n: usize,
    rows: Vec<MatrixRow>,
}

/// A constraint.
#[derive(Debug, Serialize)]
struct MatrixRow {
    name: String,
    /// The coefficients of the squares, row by row.
    coefficients: Vec<i64>,
    relation: &'static str,
    bound: i64,
    /// The left side for these pieces.
    sum: i64,
}

impl Matrix {
    pub(super) fn of(piece: Piece, found: &Candidate) -> Self {
        let n = found.n;
        let row = |row: Row| {
            let mut coefficients = vec![0; n * n];
            for (index, coefficient) in row.terms {
                coefficients[index] = coefficient;
            }
            let sum = found.squares.iter().map(|s| coefficients[s.row * n + s.col]).sum();
            let (relation, bound) = (sign(row.relation), row.bound);
            MatrixRow { name: row.name, coefficients, relation, bound, sum }
        };
        Self { n, rows: rows(piece, n).into_iter().map(row).collect() }
    }

    pub(super) fn text(&self) -> String {
        let n = self.n;
        let mut text = format!(
            "constraint matrix: {} rows, {} columns (the squares, row by row)\n",
            self.rows.len(),
            n * n
        );
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for MatrixRow { name, coefficients, relation, bound, sum } in &self.rows {
            let blocks: Vec<String> = coefficients
                .chunks(n.max(1))
                .map(|block| block.iter().map(i64::to_string).collect())
                .collect();
            let _ = writeln!(
                text,
                "  {name:<width$}  {}  {relation:>2} {bound}  (here {sum})",
                blocks.join(" ")
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(columns: &[usize]) -> Candidate {
        let squares = columns.iter().enumerate().map(|(row, col)| Square::new(row, col - 1));
        Candidate { line: 1, n: columns.len(), squares: squares.collect() }
    }

    #[test]
    fn the_board_has_numbers_for_rows_and_letters_for_columns() {
        assert_eq!(
            board(&Problem::empty(Piece::Queen, 4), &candidate(&[2, 4, 1, 3])),
            "1  · ♛ · ·\n2  · · · ♛\n3  ♛ · · ·\n4  · · ♛ ·\n   a b c d\n"
        );
        assert_eq!(board(&Problem::empty(Piece::Rook, 1), &candidate(&[1])), "1  ♜\n   a\n");
        let large: Vec<usize> = (1..=27).collect();
        assert_eq!(board(&Problem::empty(Piece::Rook, 27), &candidate(&large)).lines().count(), 27);
    }

    #[test]
    fn rings_have_all_squares_and_all_pieces() {
        for norm in Norm::ALL {
            let found = candidate(&[1, 3, 5, 2, 4]);
            let costs = Costs::of(norm, &found);
            assert_eq!(costs.rings.iter().map(|ring| ring.squares).sum::<usize>(), 25);
            assert_eq!(costs.rings.iter().map(|ring| ring.pieces).sum::<usize>(), 5);
            assert!(costs.rings.windows(2).all(|pair| pair[0].cost > pair[1].cost));
            assert_eq!(costs.fingerprint, norm.fingerprint(&[0, 2, 4, 1, 3]));
        }
    }

    #[test]
    fn a_solution_violates_no_clique_and_two_attacking_queens_violate_one() {
        for (columns, violations) in [(vec![2, 4, 1, 3], false), (vec![1, 2, 4, 3], true)] {
            let found = candidate(&columns);
            let cliques = Cliques::of(Piece::Queen, &found);
            assert_eq!(cliques.lines.iter().any(|line| line.pieces.len() > 1), violations);
            assert_eq!(cliques.families.iter().any(|family| family.violated > 0), violations);
            let matrix = Matrix::of(Piece::Queen, &found);
            assert_eq!(matrix.rows.len(), 4 + 4 + 2 * 7);
            let holds = |row: &MatrixRow| match row.relation {
                "=" => row.sum == row.bound,
                _ => row.sum <= row.bound,
            };
            assert_eq!(matrix.rows.iter().all(holds), !violations);
        }
    }
}
