//! Cliques of the queens' graph that do not lie on a single line: the families (3)–(5) of Fischetti
//! and Salvagnin (arXiv 1907.08246). At most one square of each holds a queen.
//!
//! - (3) the cross: a centre and the four squares at distance k in its row and its column;
//! - (4) the X: a centre and the four squares at distance k on its diagonals;
//! - (5) the square: four corners, k apart.
//!
//! Where arms extend beyond the border, the rest is still a clique.

use nqueens_proof::board::Square;

const CROSS: [(isize, isize); 5] = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)];
const X: [(isize, isize); 5] = [(0, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)];
const CORNERS: [(isize, isize); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];

/// Returns all cliques of the three families on the board of size `n` with at least three squares.
pub(super) fn all(n: usize) -> impl Iterator<Item = Vec<Square>> {
    of_shapes(n, CliqueFamily::ALL.map(CliqueFamily::shape))
}

/// Returns the cliques of these shapes with at least three squares.
fn of_shapes<const SHAPES: usize>(
    n: usize,
    shapes: [&'static [(isize, isize)]; SHAPES],
) -> impl Iterator<Item = Vec<Square>> {
    let centres = (0..n * n).map(move |k| Square::new(k / n, k % n));
    let placed = centres.flat_map(move |centre| (1..n).map(move |k| (centre, k)));
    let cliques = placed.flat_map(move |(centre, k)| {
        shapes.map(|shape| {
            shape.iter().filter_map(|&(r, c)| moved(n, centre, r, c, k)).collect::<Vec<_>>()
        })
    });
    cliques.filter(|clique| clique.len() >= 3)
}

/// A family of cliques that do not lie on a line, numbered as in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CliqueFamily {
    /// (3): a centre and the squares at one distance in its row and its column.
    Cross,
    /// (4): a centre and the squares at one distance on its diagonals.
    X,
    /// (5): the corners of a square.
    Square,
}

impl CliqueFamily {
    /// All families, in the order of the paper.
    pub const ALL: [Self; 3] = [Self::Cross, Self::X, Self::Square];

    /// Returns the name and the number of the inequality in the paper.
    pub const fn name(self) -> (&'static str, u8) {
        match self {
            Self::Cross => ("cross", 3),
            Self::X => ("x", 4),
            Self::Square => ("square", 5),
        }
    }

    const fn shape(self) -> &'static [(isize, isize)] {
        match self {
            Self::Cross => &CROSS,
            Self::X => &X,
            Self::Square => &CORNERS,
        }
    }

    /// Returns the cliques of this family with at least three squares, on the board of size `n`.
    pub fn cliques(self, n: usize) -> impl Iterator<Item = Vec<Square>> {
        of_shapes(n, [self.shape()])
    }
}

/// Returns the square `k` steps away in a direction, if it is on the board.
fn moved(n: usize, from: Square, rows: isize, cols: isize, k: usize) -> Option<Square> {
    let step = |start: usize, direction: isize| {
        start.checked_add_signed(direction * k as isize).filter(|&place| place < n)
    };
    Some(Square::new(step(from.row, rows)?, step(from.col, cols)?))
}

/// Returns the cliques whose values sum to more than 1 + `by`, the most violated first.
pub fn violated(n: usize, values: &[f64], by: f64) -> Vec<Vec<Square>> {
    let sum = |clique: &Vec<Square>| clique.iter().map(|s| values[s.row * n + s.col]).sum::<f64>();
    let mut found: Vec<(f64, Vec<Square>)> =
        all(n).map(|clique| (sum(&clique), clique)).filter(|(sum, _)| *sum > 1.0 + by).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, clique)| clique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::Piece;

    #[test]
    fn any_two_squares_of_a_clique_attack_each_other() {
        for n in 2..=7 {
            for clique in all(n) {
                for (i, &a) in clique.iter().enumerate() {
                    assert!(
                        clique[..i].iter().all(|&b| Piece::Queen.attacks(n, a, b)),
                        "{clique:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_families_have_all_cliques_between_them() {
        for n in 0..=6 {
            let of_family = |family: CliqueFamily| family.cliques(n).count();
            let sum: usize = CliqueFamily::ALL.into_iter().map(of_family).sum();
            assert_eq!(sum, all(n).count());
        }
        // On the board of size 3: a square of side 1 in four places, and one of side 2.
        assert_eq!(CliqueFamily::Square.cliques(3).count(), 5);
        // Crosses of size 1: one with five squares, four with four, four with three; of size 2:
        // four at the corners.
        assert_eq!(CliqueFamily::Cross.cliques(3).count(), (1 + 4 + 4) + 4);
    }

    #[test]
    fn each_family_is_found_where_it_is_violated() {
        let n = 5;
        let shapes: [&[(usize, usize)]; 3] = [
            &[(2, 2), (0, 2), (4, 2), (2, 0), (2, 4)],
            &[(2, 2), (0, 0), (4, 4), (0, 4), (4, 0)],
            &[(1, 1), (1, 4), (4, 1), (4, 4)],
        ];
        for shape in shapes {
            let mut values = vec![0.0; n * n];
            for &(row, col) in shape {
                values[row * n + col] = 0.3;
            }
            let worst = violated(n, &values, 1e-6);
            let mut squares: Vec<(usize, usize)> =
                worst[0].iter().map(|s| (s.row, s.col)).collect();
            squares.sort_unstable();
            let mut shape = shape.to_vec();
            shape.sort_unstable();
            assert_eq!(squares, shape);
        }
        assert!(violated(n, &vec![0.2; n * n], 1e-6).is_empty());
    }
}
