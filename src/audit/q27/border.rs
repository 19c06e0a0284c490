//! Placements of the two outer rows and columns of each side: the subproblems of Q27.

use crate::board::{Piece, Square, first_attack};

/// The queens of the outer two columns or rows of a side, as the project numbers them: the distance
/// of the queen in the outermost one from the side's first corner, and that of the queen in the
/// next one. The sides are west, north, east and south, and the first corner is the one where a
/// walk around the board, clockwise from the south-west corner, enters the side.
pub type Pair = [u8; 2];

/// The queens of all four sides. A queen near a corner belongs to two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Border {
    n: usize,
    sides: [Pair; 4],
}

/// The smallest and the largest board: in a smaller one the sides overlap, and a larger one does
/// not fit into the format.
pub const SIZES: std::ops::RangeInclusive<usize> = 5..=32;

impl Border {
    /// Creates the border with these pairs, in the order west, north, east, south. Returns `None`
    /// if a queen is off the board, or if two of them attack each other.
    pub fn new(n: usize, sides: [Pair; 4]) -> Option<Self> {
        let border = Self { n, sides };
        let on_board = sides.as_flattened().iter().all(|&distance| usize::from(distance) < n);
        (SIZES.contains(&n) && on_board).then_some(border)?;
        first_attack(Piece::Queen, n, &border.squares()).is_none().then_some(border)
    }

    /// Returns the pairs, in the order west, north, east, south.
    pub const fn sides(&self) -> [Pair; 4] {
        self.sides
    }

    /// Returns the squares of the queens, each once.
    pub fn squares(&self) -> Vec<Square> {
        let last = self.n - 1;
        let [west, north, east, south] = self.sides;
        let mut squares = Vec::with_capacity(8);
        for depth in 0..2 {
            let [w, n, e, s] = [west, north, east, south].map(|pair| usize::from(pair[depth]));
            // Rows are counted from the north.
            squares.push(Square::new(last - w, depth));
            squares.push(Square::new(depth, n));
            squares.push(Square::new(e, last - depth));
            squares.push(Square::new(last - depth, last - s));
        }
        squares.sort_unstable();
        squares.dedup();
        squares
    }

    /// Returns the numbers of the four pairs, by which borders are ordered.
    pub fn numbers(&self) -> [u32; 4] {
        self.sides.map(|pair| number(self.n, pair))
    }

    /// Returns whether this is the image that stands for its orbit, the only one in the database:
    /// of the eight images the one whose west side has the smallest number. If several do, it is
    /// the one with the smallest remaining numbers, in their order; but of two that are each
    /// other's reflection at the diagonal through the south-west corner, the one whose north side
    /// has the larger number.
    pub fn is_canonical(&self) -> bool {
        let [west, north, east, south] = self.numbers();
        let mirrored = |number: u32| pairs(self.n) - 1 - number;
        let smallest =
            [north, east, south].into_iter().all(|side| west <= side && west <= mirrored(side));
        let before_reflections = !(south == mirrored(west) && north < mirrored(east)
            || east == mirrored(west) && north > mirrored(north)
            || north == mirrored(west) && east > mirrored(south));
        let before_rotations = if south == west {
            north == west && east == west
        } else {
            east != west || north <= south
        };
        smallest && before_reflections && before_rotations
    }

    /// Returns the number of its images: 8, or 4 if a half turn does not change it, or 2 if a
    /// quarter turn does not. This is the weight of its completions in the total.
    pub fn images(&self) -> u8 {
        let [west, north, east, south] = self.sides;
        match (west == east && north == south, west == north) {
            (true, true) => 2,
            (true, false) => 4,
            (false, _) => 8,
        }
    }
}

/// Returns the number of pairs of queens in two adjacent rows that do not attack each other.
fn pairs(n: usize) -> u32 {
    ((n - 1) * (n - 2)) as u32
}

/// Returns the number of a pair among those that do not attack each other, in lexicographic order.
fn number(n: usize, [outer, inner]: Pair) -> u32 {
    let (n, outer, inner) = (n as u32, u32::from(outer), u32::from(inner));
    let before = if outer == 0 { 0 } else { n - 2 + (outer - 1) * (n - 3) };
    let attacked = if outer == 0 { 2 } else { 3 };
    before + if inner > outer { inner - attacked } else { inner }
}

/// The queens of a border that is being built, and the lines they occupy.
#[derive(Clone, Copy)]
struct Partial {
    /// For each column the row of its queen, plus 1.
    rows: [u8; 32],
    occupied_rows: u32,
    diagonals: u64,
    antidiagonals: u64,
}

impl Partial {
    const EMPTY: Self = Self { rows: [0; 32], occupied_rows: 0, diagonals: 0, antidiagonals: 0 };

    /// Returns this with one more queen, which may be one of those that are there already; `None`
    /// if it is attacked.
    fn with(&self, column: usize, row: usize) -> Option<Self> {
        let there = usize::from(self.rows[column]);
        if there == row + 1 {
            return Some(*self);
        }
        let (diagonal, antidiagonal) = (1_u64 << (32 + row - column), 1_u64 << (row + column));
        if there != 0
            || self.occupied_rows >> row & 1 != 0
            || self.diagonals & diagonal != 0
            || self.antidiagonals & antidiagonal != 0
        {
            return None;
        }
        let mut more = *self;
        more.rows[column] = row as u8 + 1;
        more.occupied_rows |= 1 << row;
        more.diagonals |= diagonal;
        more.antidiagonals |= antidiagonal;
        Some(more)
    }
}

/// Calls `f` with each canonical border of the board of size `n`, in ascending order of their
/// numbers, until it returns `false`. Does nothing for sizes outside [`SIZES`].
pub fn for_each_canonical(n: usize, mut f: impl FnMut(Border) -> bool) {
    if !SIZES.contains(&n) {
        return;
    }
    let last = n - 1;
    let all: Vec<Pair> = (0..n as u8)
        .flat_map(|outer| (0..n as u8).map(move |inner| [outer, inner]))
        .filter(|[outer, inner]| outer.abs_diff(*inner) > 1)
        .collect();
    let with = |partial: &Partial, side: usize, pair: Pair| {
        (0..2).try_fold(*partial, |partial, depth| {
            let distance = usize::from(pair[depth]);
            match side {
                0 => partial.with(depth, distance),
                1 => partial.with(distance, last - depth),
                2 => partial.with(last - depth, last - distance),
                _ => partial.with(last - distance, depth),
            }
        })
    };
    for (number, &west) in all.iter().enumerate() {
        // No side of a canonical border has a smaller number than the west side, and none of its
        // mirror images.
        let Some(others) = all.get(number..all.len() - number) else { return };
        let Some(first) = with(&Partial::EMPTY, 0, west) else { continue };
        for &north in others {
            let Some(second) = with(&first, 1, north) else { continue };
            for &east in others {
                let Some(third) = with(&second, 2, east) else { continue };
                for &south in others {
                    let border = Border { n, sides: [west, north, east, south] };
                    if with(&third, 3, south).is_some() && border.is_canonical() && !f(border) {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::board::Problem;
    use crate::engine::{CountOptions, count};
    use crate::oeis::{Sequence, lookup};

    fn canonical(n: usize) -> Vec<Border> {
        let mut all = Vec::new();
        for_each_canonical(n, |border| {
            all.push(border);
            true
        });
        all
    }

    #[test]
    fn pairs_are_numbered_in_lexicographic_order() {
        for n in SIZES {
            let all = (0..n as u8).flat_map(|a| (0..n as u8).map(move |b| [a, b]));
            let safe = all.filter(|[a, b]| a.abs_diff(*b) > 1);
            let numbers: Vec<u32> = safe.map(|pair| number(n, pair)).collect();
            assert_eq!(numbers, (0..pairs(n)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_numbers_of_canonical_borders_are_those_of_the_project() {
        // Printed by its program `coronal2` (commit c8df61d).
        for (n, borders) in
            [(5, 3), (6, 8), (7, 32), (8, 179), (9, 861), (10, 3739), (11, 14_666), (12, 51_484)]
        {
            assert_eq!(canonical(n).len(), borders, "n = {n}");
        }
    }

    #[test]
    fn canonical_borders_ascend_and_are_valid() {
        for n in [5, 8, 9, 11] {
            let all = canonical(n);
            assert!(all.windows(2).all(|pair| pair[0].numbers() < pair[1].numbers()));
            assert!(all.iter().all(|border| Border::new(n, border.sides) == Some(*border)));
        }
    }

    #[test]
    fn each_orbit_has_one_canonical_border() {
        for n in [6, 7, 8, 9] {
            let rotated = |[w, n, e, s]: [Pair; 4]| [s, w, n, e];
            let reflected = |sides: [Pair; 4]| {
                let [w, north, e, s] = sides.map(|pair| pair.map(|d| n as u8 - 1 - d));
                [e, north, w, s]
            };
            let mut seen = HashSet::new();
            for border in canonical(n) {
                let mut images = HashSet::new();
                let mut sides = border.sides;
                for _ in 0..4 {
                    images.extend([sides, reflected(sides)]);
                    sides = rotated(sides);
                }
                assert_eq!(images.len(), usize::from(border.images()), "{border:?}");
                for image in images {
                    let image = Border::new(n, image).expect("an image of a valid border");
                    assert!(seen.insert(image.sides), "{border:?} and another border");
                    assert_eq!(image.is_canonical(), image == border);
                }
            }
        }
    }

    #[test]
    fn weighted_completions_add_up_to_all_solutions() {
        for n in 5..=9 {
            let total: u128 = canonical(n)
                .into_iter()
                .map(|border| {
                    let board = Problem::new(Piece::Queen, n, border.squares(), Vec::new());
                    let board = board.expect("the queens are on the board");
                    let outcome = count(&board, &CountOptions::default()).expect("it counts");
                    outcome.solutions * u128::from(border.images())
                })
                .sum();
            assert_eq!(Some(total), lookup(Sequence::Total, n), "n = {n}");
        }
    }

    #[test]
    fn queens_that_attack_each_other_or_are_off_the_board_are_no_border() {
        assert_eq!(Border::new(8, [[0, 1], [3, 6], [2, 5], [2, 5]]), None);
        assert_eq!(Border::new(8, [[0, 2], [8, 6], [2, 5], [2, 5]]), None);
        assert_eq!(Border::new(4, [[1, 3], [1, 3], [1, 3], [1, 3]]), None);
    }
}
