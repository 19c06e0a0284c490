//! The dihedral group of the square, and its subgroups as stabilisers of a problem.

use crate::board::{Problem, Square};

/// One of the 8 symmetries of the square board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symmetry {
    /// Leaves every square in place.
    Identity,
    /// A quarter turn clockwise.
    Rotate90,
    /// A half turn.
    Rotate180,
    /// A quarter turn counter-clockwise.
    Rotate270,
    /// Exchanges left and right; every row stays in place.
    MirrorColumns,
    /// Exchanges top and bottom; every column stays in place.
    MirrorRows,
    /// Exchanges rows with columns; the main diagonal stays in place.
    Transpose,
    /// Mirrors in the main antidiagonal.
    AntiTranspose,
}

impl Symmetry {
    /// All 8 symmetries.
    pub const ALL: [Self; 8] = [
        Self::Identity,
        Self::Rotate90,
        Self::Rotate180,
        Self::Rotate270,
        Self::MirrorColumns,
        Self::MirrorRows,
        Self::Transpose,
        Self::AntiTranspose,
    ];

    /// Returns the image of `square` on the board of size `n`.
    pub const fn apply(self, n: usize, square: Square) -> Square {
        let Square { row, col } = square;
        let (row_back, col_back) = (n - 1 - row, n - 1 - col);
        match self {
            Self::Identity => Square::new(row, col),
            Self::Rotate90 => Square::new(col, row_back),
            Self::Rotate180 => Square::new(row_back, col_back),
            Self::Rotate270 => Square::new(col_back, row),
            Self::MirrorColumns => Square::new(row, col_back),
            Self::MirrorRows => Square::new(row_back, col),
            Self::Transpose => Square::new(col, row),
            Self::AntiTranspose => Square::new(col_back, row_back),
        }
    }

    /// Returns the image of a full placement; both are given as the column of the piece in each
    /// row.
    pub fn apply_to_columns(self, columns: &[usize]) -> Vec<usize> {
        let mut image = vec![0; columns.len()];
        for (row, &col) in columns.iter().enumerate() {
            let square = self.apply(columns.len(), Square::new(row, col));
            image[square.row] = square.col;
        }
        image
    }
}

/// A subgroup of the symmetries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group(u8);

impl Group {
    /// The group of all 8 symmetries.
    pub const FULL: Self = Self(0xff);

    /// Returns the symmetries that map the placed squares of `problem` to placed ones and the
    /// blocked ones to blocked ones. They permute its completions.
    pub fn of(problem: &Problem) -> Self {
        let keeps = |g: Symmetry, squares: &[Square]| {
            squares.iter().all(|&s| squares.binary_search(&g.apply(problem.n(), s)).is_ok())
        };
        Self::from_fn(|g| keeps(g, problem.placed()) && keeps(g, problem.blocked()))
    }

    /// Returns the symmetries of this group that map rows to rows.
    #[must_use]
    pub fn row_preserving(self) -> Self {
        use Symmetry::{Identity, MirrorColumns, MirrorRows, Rotate180};
        Self::from_fn(|g| {
            self.contains(g) && matches!(g, Identity | Rotate180 | MirrorColumns | MirrorRows)
        })
    }

    /// Returns whether a full placement, given as the column of the piece in each row, is the
    /// lexicographically least of its images under the group. Each orbit contains exactly one such
    /// placement.
    pub fn is_least(self, columns: &[usize]) -> bool {
        self.elements().all(|g| g.apply_to_columns(columns).as_slice() >= columns)
    }

    fn from_fn(contains: impl Fn(Symmetry) -> bool) -> Self {
        Self(
            Symmetry::ALL.into_iter().filter(|&g| contains(g)).fold(0, |set, g| set | 1 << g as u8),
        )
    }

    /// Returns whether `symmetry` belongs to the group.
    pub const fn contains(self, symmetry: Symmetry) -> bool {
        self.0 >> symmetry as u8 & 1 == 1
    }

    /// Returns the elements of the group.
    pub fn elements(self) -> impl Iterator<Item = Symmetry> {
        Symmetry::ALL.into_iter().filter(move |&g| self.contains(g))
    }

    /// Returns the number of elements.
    pub const fn order(self) -> u32 {
        self.0.count_ones()
    }
}

/// The images of a solution under the 8 symmetries of the square.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orbit {
    /// The lexicographically smallest image: the 0-based column of the piece in each row.
    pub least: Vec<usize>,
    /// The number of different images: 1, 2, 4 or 8.
    pub images: usize,
    /// The symmetry that the solution has: `none`, `point` (a half turn), `rotation` (quarter
    /// turns), `reflection` or `full`.
    pub symmetry: &'static str,
}

impl Orbit {
    /// Returns the orbit of a solution, given the 0-based column of the piece in each row.
    pub fn of(columns: &[usize]) -> Self {
        let mut images: Vec<Vec<usize>> =
            Group::FULL.elements().map(|symmetry| symmetry.apply_to_columns(columns)).collect();
        images.sort_unstable();
        images.dedup();
        let symmetry = symmetry_of(columns);
        let count = images.len();
        Self { least: images.into_iter().next().unwrap_or_default(), images: count, symmetry }
    }
}

/// Returns the name of the symmetry that a solution has.
fn symmetry_of(columns: &[usize]) -> &'static str {
    let kept = |symmetry: Symmetry| symmetry.apply_to_columns(columns) == columns;
    let reflections = [
        Symmetry::MirrorColumns,
        Symmetry::MirrorRows,
        Symmetry::Transpose,
        Symmetry::AntiTranspose,
    ];
    match (reflections.into_iter().any(kept), kept(Symmetry::Rotate90), kept(Symmetry::Rotate180)) {
        (true, true, _) => "full",
        (true, false, _) => "reflection",
        (false, true, _) => "rotation",
        (false, false, true) => "point",
        (false, false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::board::Piece;

    #[test]
    fn the_eight_symmetries_are_different_bijections_and_form_a_group() {
        let n = 5;
        let image = |g: Symmetry| -> Vec<Square> {
            (0..n * n).map(|i| g.apply(n, Square::new(i / n, i % n))).collect()
        };
        let images: BTreeSet<Vec<Square>> = Symmetry::ALL.into_iter().map(image).collect();
        assert_eq!(images.len(), 8);
        for g in Symmetry::ALL {
            assert_eq!(image(g).into_iter().collect::<BTreeSet<_>>().len(), n * n);
            for h in Symmetry::ALL {
                let product: Vec<Square> = image(g).into_iter().map(|s| h.apply(n, s)).collect();
                assert!(images.contains(&product));
            }
        }
    }

    #[test]
    fn the_symmetry_of_a_problem_is_that_of_its_squares() {
        let order = |placed: &[(usize, usize)], blocked: &[(usize, usize)]| {
            let squares =
                |list: &[(usize, usize)]| list.iter().map(|&(r, c)| Square::new(r, c)).collect();
            let problem = Problem::new(Piece::Queen, 5, squares(placed), squares(blocked));
            Group::of(&problem.expect("squares on the board")).order()
        };
        assert_eq!(order(&[], &[]), 8);
        assert_eq!(order(&[(2, 2)], &[]), 8);
        assert_eq!(order(&[], &[(0, 0), (0, 4), (4, 0), (4, 4)]), 8);
        assert_eq!(order(&[(0, 1), (1, 4), (4, 3), (3, 0)], &[]), 4);
        assert_eq!(order(&[(0, 1), (4, 3)], &[]), 2);
        assert_eq!(order(&[(0, 2)], &[]), 2);
        assert_eq!(order(&[(1, 1)], &[]), 2);
        assert_eq!(order(&[(0, 1)], &[]), 1);
        assert_eq!(order(&[(2, 2)], &[(0, 1)]), 1);
    }

    #[test]
    fn the_image_of_a_solution_is_a_solution() {
        let columns = [0, 4, 7, 5, 2, 6, 1, 3];
        let images: BTreeSet<Vec<usize>> =
            Symmetry::ALL.into_iter().map(|g| g.apply_to_columns(&columns)).collect();
        assert_eq!(images.len(), 8);
        assert!(images.iter().all(|image| crate::board::is_solution(Piece::Queen, image)));
    }
}
