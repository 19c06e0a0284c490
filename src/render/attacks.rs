//! The squares that pieces attack, and the pieces that attack each other, by the plain definition.

use crate::board::{Piece, Square};

/// The largest board on which [`attackers`] are counted.
pub const MAX_ATTACKS: usize = 256;

/// Returns the number of pieces on `squares` that attack each square of the board of size `n`, row
/// by row. Other pieces between two squares do not matter.
pub fn attackers(piece: Piece, n: usize, squares: &[Square]) -> Vec<Vec<usize>> {
    let at = |square: Square| {
        squares.iter().filter(|&&other| other != square && piece.attacks(n, other, square)).count()
    };
    (0..n).map(|row| (0..n).map(|col| at(Square::new(row, col))).collect()).collect()
}

/// Returns the first `most` pairs of `squares` whose pieces attack each other.
pub fn attacking_pairs(
    piece: Piece,
    n: usize,
    squares: &[Square],
    most: usize,
) -> Vec<(Square, Square)> {
    let before = squares.iter().enumerate().flat_map(|(i, &b)| {
        squares[..i].iter().filter(move |&&a| piece.attacks(n, a, b)).map(move |&a| (a, b))
    });
    before.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::first_attack;

    #[test]
    fn every_square_of_a_full_board_is_attacked_along_at_most_four_lines() {
        let squares = [(0, 1), (1, 3), (2, 0), (3, 2)].map(|(row, col)| Square::new(row, col));
        let map = attackers(Piece::Queen, 4, &squares);
        assert_eq!(map, [[2, 0, 4, 2], [4, 3, 3, 0], [0, 3, 3, 4], [2, 4, 0, 2]]);
        let rooks = attackers(Piece::Rook, 4, &squares);
        for (row, counts) in rooks.iter().enumerate() {
            for (col, &count) in counts.iter().enumerate() {
                assert_eq!(count, if squares.contains(&Square::new(row, col)) { 0 } else { 2 });
            }
        }
    }

    #[test]
    fn the_pairs_begin_with_the_first_attack() {
        let squares = [(0, 0), (0, 2), (1, 1), (2, 2)].map(|(row, col)| Square::new(row, col));
        let pairs = attacking_pairs(Piece::Queen, 3, &squares, 100);
        assert_eq!(pairs.first().copied(), first_attack(Piece::Queen, 3, &squares));
        assert_eq!(pairs.len(), 6);
        assert_eq!(attacking_pairs(Piece::Queen, 3, &squares, 2), pairs[..2]);
    }
}
