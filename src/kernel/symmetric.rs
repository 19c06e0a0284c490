//! Symmetric solutions, by a search among symmetric placements only, and the solution classes
//! derived from them.
//!
//! By Burnside's lemma the number of fundamental solutions (A002562), which counts images under the
//! 8 symmetries once, is the mean number of solutions that a symmetry leaves unchanged. For n ≥ 2
//! no mirror leaves a solution unchanged: a vertical or horizontal mirror maps a queen to another
//! square of its row or column, and a diagonal mirror maps (i, j) to (j, i), which a queen on (i,
//! j) attacks; so all queens would have to stand on one diagonal. With P solutions that a half turn
//! leaves unchanged (A032522) and R that a quarter turn does (A033148),
//!
//! > fundamental = (total + P + 2 R) / 8.
//!
//! Symmetric placements consist of whole orbits, so the search places two or four queens at a time
//! and visits about the square root (fourth root) of the nodes of the full search. Counters grow by
//! one a solution; P(32) < 2^38.

use crate::board::{Piece, Square};
use crate::decomposition::{AttackState, columns_of, full_row, state_of};
use crate::symmetry::Symmetry;

/// The number of solutions, classified by symmetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// All solutions.
    pub total: u128,
    /// Solutions with images under the 8 symmetries of the square counted once (A002562 for
    /// queens).
    pub fundamental: u128,
    /// Solutions that a half turn leaves unchanged, including those that a quarter turn does
    /// (A032522 for queens).
    pub point_symmetric: u128,
    /// Solutions that a quarter turn leaves unchanged (A033148 for queens).
    pub quarter_turn_symmetric: u128,
}

/// The error returned when the classes cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassesError {
    /// Mirrors leave rook placements unchanged, so the formula does not hold.
    #[error("rook placements have mirror symmetries; their classes are not counted")]
    Rooks,
    /// The total is inconsistent with the symmetric solutions.
    #[error(
        "{total} solutions cannot fall into orbits with {fixed} fixed by rotations: the total is wrong"
    )]
    NotDivisible {
        /// All solutions.
        total: u128,
        /// P + 2 R.
        fixed: u128,
    },
}

/// Returns the classes of the `total` solutions for n pieces on the empty board, n ≤ 32.
///
/// # Errors
/// The piece is a rook, or the total is inconsistent with the symmetric solutions.
pub fn classes(piece: Piece, n: usize, total: u128) -> Result<Classes, ClassesError> {
    if piece == Piece::Rook {
        return Err(ClassesError::Rooks);
    }
    let point_symmetric = u128::from(point_symmetric(piece, n));
    let quarter_turn_symmetric = u128::from(quarter_turn_symmetric(piece, n));
    let fixed = point_symmetric + 2 * quarter_turn_symmetric;
    let fundamental = match (n, (total + fixed).is_multiple_of(8)) {
        // The only placement on these boards is unchanged by mirrors as well.
        (0 | 1, _) => total,
        (_, true) => (total + fixed) / 8,
        (_, false) => return Err(ClassesError::NotDivisible { total, fixed }),
    };
    Ok(Classes { total, fundamental, point_symmetric, quarter_turn_symmetric })
}

/// Returns the number of solutions for n ≤ 32 pieces that a half turn leaves unchanged.
pub fn point_symmetric(piece: Piece, n: usize) -> u64 {
    let middle = n / 2;
    let mut search = HalfTurn { piece, n, queens: Vec::new() };
    if n.is_multiple_of(2) {
        return search.fill(middle, 0, 0, 0);
    }
    // The image of a piece in the middle row is in that row as well, so the piece stands in the
    // centre.
    search.queens.push(Square::new(middle, middle));
    let centre = 1 << middle;
    search.fill(middle + 1, centre, centre << 1, centre >> 1)
}

/// A search that fills the rows below the centre downward, each together with its image above.
struct HalfTurn {
    piece: Piece,
    n: usize,
    /// The placed queens; kept only for pieces that attack more squares than queens do.
    queens: Vec<Square>,
}

impl HalfTurn {
    /// Returns the solutions with `columns` used and `row` attacked along diagonals that move
    /// `left` or `right` downward.
    fn fill(&mut self, row: usize, columns: u32, left: u32, right: u32) -> u64 {
        let n = self.n;
        if row == n {
            return 1;
        }
        // On the main diagonals of the board a queen and its image attack each other.
        let own_image = 1 << row | 1 << (n - 1 - row);
        let mut open = full_row(n) & !(columns | left | right | own_image);
        // The distance from this row up to its image.
        let distance = 2 * row + 1 - n;
        let (placed, mut solutions) = (self.queens.len(), 0);
        while open != 0 {
            let queen = open & open.wrapping_neg();
            open ^= queen;
            let image = queen.reverse_bits() >> (32 - n);
            if self.piece != Piece::Queen {
                let square = Square::new(row, queen.trailing_zeros() as usize);
                let opposite = Symmetry::Rotate180.apply(n, square);
                let attacked = |s: Square| self.queens.iter().any(|&q| self.piece.attacks(n, q, s));
                if self.piece.attacks(n, square, opposite) || attacked(square) || attacked(opposite)
                {
                    continue;
                }
                self.queens.extend([square, opposite]);
            }
            let left = (left | queen | image << distance) << 1;
            let right = (right | queen | image >> distance) >> 1;
            solutions += self.fill(row + 1, columns | queen | image, left, right);
            self.queens.truncate(placed);
        }
        solutions
    }
}

/// Returns the number of solutions for n ≤ 32 pieces that a quarter turn leaves unchanged.
pub fn quarter_turn_symmetric(piece: Piece, n: usize) -> u64 {
    if n % 4 > 1 {
        return 0; // The rows, without the middle one, fall into orbits of 4.
    }
    let orbits =
        (0..n).map(|row| (0..n).map(|col| Orbit::of(piece, n, Square::new(row, col))).collect());
    let mut search = QuarterTurn { piece, n, orbits: orbits.collect(), queens: Vec::new() };
    if n.is_multiple_of(2) {
        return search.fill(AttackState::default());
    }
    let centre = Square::new(n / 2, n / 2);
    search.queens.push(centre);
    search.fill(state_of(n, &[centre]))
}

/// A square and its images under quarter turns, provided that they do not attack each other.
struct Orbit {
    squares: [Square; 4],
    /// The columns (the rows are the same by symmetry) and diagonals of the squares.
    lines: AttackState,
}

impl Orbit {
    fn of(piece: Piece, n: usize, square: Square) -> Option<Self> {
        let turns =
            [Symmetry::Identity, Symmetry::Rotate90, Symmetry::Rotate180, Symmetry::Rotate270];
        let squares = turns.map(|g| g.apply(n, square));
        let peaceful = crate::board::first_attack(piece, n, &squares).is_none();
        peaceful.then(|| Self { squares, lines: state_of(n, &squares) })
    }
}

/// A search that repeatedly fills the first empty row with an orbit of four.
struct QuarterTurn {
    piece: Piece,
    n: usize,
    /// Indexed by row and column.
    orbits: Vec<Vec<Option<Orbit>>>,
    /// The placed queens; read only for pieces that attack more squares than queens do.
    queens: Vec<Square>,
}

impl QuarterTurn {
    fn fill(&mut self, used: AttackState) -> u64 {
        let empty = full_row(self.n) & !used.columns;
        if empty == 0 {
            return 1;
        }
        let row = empty.trailing_zeros() as usize;
        let mut solutions = 0;
        for col in columns_of(empty) {
            let Some(Orbit { squares, lines }) = &self.orbits[row][col] else { continue };
            let (squares, lines) = (*squares, *lines);
            let attacked =
                |s: &Square| self.queens.iter().any(|&q| self.piece.attacks(self.n, q, *s));
            if lines.meets(used) || (self.piece != Piece::Queen && squares.iter().any(attacked)) {
                continue;
            }
            self.queens.extend(squares);
            solutions += self.fill(used.and(lines));
            self.queens.truncate(self.queens.len() - 4);
        }
        solutions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::is_solution;
    use crate::oeis::{Sequence, lookup};

    /// Calls `visit` for every solution, by trying every permutation.
    fn for_each_solution(
        piece: Piece,
        columns: &mut Vec<usize>,
        k: usize,
        visit: &mut impl FnMut(&[usize]),
    ) {
        if k == columns.len() {
            if is_solution(piece, columns) {
                visit(columns);
            }
            return;
        }
        for i in k..columns.len() {
            columns.swap(k, i);
            for_each_solution(piece, columns, k + 1, visit);
            columns.swap(k, i);
        }
    }

    #[test]
    fn symmetric_counts_and_orbits_agree_with_brute_force_up_to_8() {
        for piece in [Piece::Queen, Piece::Superqueen, Piece::Toroidal] {
            for n in 0..=8 {
                let (mut total, mut half, mut quarter) = (0, 0, 0);
                let mut orbits = std::collections::BTreeSet::new();
                for_each_solution(piece, &mut (0..n).collect(), 0, &mut |columns| {
                    let image = |g: Symmetry| g.apply_to_columns(columns);
                    total += 1;
                    half += u64::from(image(Symmetry::Rotate180) == columns);
                    quarter += u64::from(image(Symmetry::Rotate90) == columns);
                    orbits.insert(Symmetry::ALL.into_iter().map(image).min());
                });
                assert_eq!(point_symmetric(piece, n), half, "{piece}, n = {n}");
                assert_eq!(quarter_turn_symmetric(piece, n), quarter, "{piece}, n = {n}");
                let found = classes(piece, n, total).expect("a right total");
                assert_eq!(found.fundamental, orbits.len() as u128, "{piece}, n = {n}");
            }
        }
    }

    #[test]
    fn symmetric_counts_equal_the_published_ones() {
        for n in 1..=21 {
            let found = u128::from(point_symmetric(Piece::Queen, n));
            assert_eq!(Some(found), lookup(Sequence::PointSymmetric, n), "half turn, n = {n}");
        }
        for n in 0..=29 {
            let found = u128::from(quarter_turn_symmetric(Piece::Queen, n));
            assert_eq!(
                Some(found),
                lookup(Sequence::QuarterTurnSymmetric, n),
                "quarter turn, n = {n}"
            );
        }
    }

    #[test]
    fn fundamental_counts_equal_the_published_ones() {
        for (piece, total, fundamental, most) in [
            (Piece::Queen, Sequence::Total, Sequence::Fundamental, 20),
            (Piece::Superqueen, Sequence::Superqueens, Sequence::SuperqueensFundamental, 16),
        ] {
            for n in 1..=most {
                let total = lookup(total, n).expect("published");
                let found = classes(piece, n, total).expect("a right total").fundamental;
                assert_eq!(Some(found), lookup(fundamental, n), "{piece}, n = {n}");
            }
        }
    }

    #[test]
    fn a_total_that_is_inconsistent_with_orbits_is_refused() {
        assert!(matches!(classes(Piece::Queen, 8, 93), Err(ClassesError::NotDivisible { .. })));
        assert_eq!(classes(Piece::Rook, 8, 40_320), Err(ClassesError::Rooks));
    }
}
