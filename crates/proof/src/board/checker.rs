//! The reference checkers of placements and solutions. They compare every pair of pieces and share
//! no code with the kernels that they validate.

use super::{Piece, Square};

/// Returns the first pair of `squares`, in the order given, that attack each other on a board of
/// size `n`.
pub fn first_attack(piece: Piece, n: usize, squares: &[Square]) -> Option<(Square, Square)> {
    squares
        .iter()
        .enumerate()
        .find_map(|(i, &b)| squares[..i].iter().find(|&&a| piece.attacks(n, a, b)).map(|&a| (a, b)))
}

/// Returns whether `columns` (the 0-based column of the piece in each row) is a solution for n =
/// `columns.len()`. The empty board is the one solution for n = 0.
pub fn is_solution(piece: Piece, columns: &[usize]) -> bool {
    let n = columns.len();
    let squares: Vec<Square> =
        columns.iter().enumerate().map(|(row, &col)| Square::new(row, col)).collect();
    columns.iter().all(|&col| col < n) && first_attack(piece, n, &squares).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_solutions_of_the_4_board_are_the_only_ones() {
        let mut found = Vec::new();
        for code in 0..256usize {
            let columns = [code / 64 % 4, code / 16 % 4, code / 4 % 4, code % 4];
            if is_solution(Piece::Queen, &columns) {
                found.push(columns);
            }
        }
        assert_eq!(found, [[1, 3, 0, 2], [2, 0, 3, 1]]);
    }

    #[test]
    fn each_piece_attacks_what_it_should() {
        let centre = Square::new(2, 2);
        let attacked = |piece: Piece| {
            (0..25)
                .map(|i| Square::new(i / 5, i % 5))
                .filter(|&s| s != centre && piece.attacks(5, centre, s))
                .count()
        };
        assert_eq!(attacked(Piece::Rook), 8);
        assert_eq!(attacked(Piece::Queen), 16);
        assert_eq!(attacked(Piece::Superqueen), 24);
        assert_eq!(attacked(Piece::Toroidal), 16);
        // Across the edge: (0,1) and (4,0) share a joined diagonal of the 5-board, (0,0) and (1,4)
        // too.
        assert!(Piece::Toroidal.attacks(5, Square::new(0, 1), Square::new(4, 0)));
        assert!(Piece::Toroidal.attacks(5, Square::new(0, 0), Square::new(1, 4)));
        assert!(!Piece::Queen.attacks(5, Square::new(0, 0), Square::new(1, 4)));
    }

    #[test]
    fn the_first_attacking_pair_is_named_in_the_order_given() {
        let squares = [Square::new(0, 0), Square::new(1, 2), Square::new(2, 2)];
        assert_eq!(first_attack(Piece::Queen, 4, &squares), Some((squares[0], squares[2])));
        assert_eq!(first_attack(Piece::Queen, 4, &squares[..2]), None);
        assert!(is_solution(Piece::Queen, &[]));
        assert!(!is_solution(Piece::Queen, &[4, 0, 2, 1]));
    }
}
