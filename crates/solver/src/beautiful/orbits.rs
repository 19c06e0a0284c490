//! The orbits of squares under the 8 symmetries of the board, grouped into levels of equal cost.

use std::collections::BTreeMap;

use nqueens_proof::board::{Norm, Square};
use nqueens_proof::symmetry::Symmetry;

/// The number of an orbit.
pub(super) type OrbitId = usize;

/// The squares that the symmetries exchange.
#[derive(Clone, Debug)]
pub(super) struct Orbit {
    /// Squares by number (row · n + column), ascending. The first represents the orbit.
    pub(super) squares: Vec<usize>,
    /// The level, counted from the largest cost.
    pub(super) level: usize,
    /// An upper bound on its queens in a solution: 8 squares lie in four rows, two in each; the
    /// squares of a smaller orbit all attack each other.
    pub(super) most: i64,
}

/// The orbits of equal cost.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) cost: u64,
    pub(super) orbits: Vec<OrbitId>,
}

/// All orbits of a board.
#[derive(Clone, Debug)]
pub(super) struct Orbits {
    pub(super) n: usize,
    pub(super) orbits: Vec<Orbit>,
    /// The levels, largest cost first.
    pub(super) levels: Vec<Level>,
    /// The orbit of each square, by number.
    pub(super) orbit_of: Vec<OrbitId>,
}

/// Returns the number of diagonals at a distance from the main ones, which bounds the queens on
/// them.
pub(super) const fn most_on_diagonals(distance: usize) -> i64 {
    if distance == 0 { 2 } else { 4 }
}

impl Orbits {
    pub(super) fn new(n: usize, norm: Norm) -> Self {
        let mut orbit_of = vec![usize::MAX; n * n];
        let mut orbits: Vec<Orbit> = Vec::new();
        let mut by_cost: BTreeMap<std::cmp::Reverse<u64>, Vec<OrbitId>> = BTreeMap::new();
        for number in 0..n * n {
            if orbit_of[number] != usize::MAX {
                continue;
            }
            let square = Square::new(number / n, number % n);
            let image = |g: Symmetry| {
                let Square { row, col } = g.apply(n, square);
                row * n + col
            };
            let mut squares: Vec<usize> = Symmetry::ALL.into_iter().map(image).collect();
            squares.sort_unstable();
            squares.dedup();
            for &square in &squares {
                orbit_of[square] = orbits.len();
            }
            by_cost.entry(std::cmp::Reverse(norm.cost(n, square))).or_default().push(orbits.len());
            let most = if squares.len() == 8 { 4 } else { 1 };
            orbits.push(Orbit { squares, level: 0, most });
        }
        let levels: Vec<Level> = by_cost
            .into_iter()
            .map(|(std::cmp::Reverse(cost), orbits)| Level { cost, orbits })
            .collect();
        for (number, level) in levels.iter().enumerate() {
            for &orbit in &level.orbits {
                orbits[orbit].level = number;
            }
        }
        Self { n, orbits, levels, orbit_of }
    }

    /// Returns the distances of the diagonal and the antidiagonal of an orbit's first square from
    /// the main ones. Every queen on the orbit stands on diagonals at these two distances.
    pub(super) fn diagonals_of(&self, orbit: OrbitId) -> [usize; 2] {
        let square = self.orbits[orbit].squares[0];
        let (row, column) = (square / self.n, square % self.n);
        [row.abs_diff(column), (row + column).abs_diff(self.n - 1)]
    }

    /// Returns the number of queens of a solution on each level.
    pub(super) fn counts(&self, columns: &[usize]) -> Vec<u32> {
        let mut counts = vec![0; self.levels.len()];
        for (row, col) in columns.iter().enumerate() {
            counts[self.orbits[self.orbit_of[row * self.n + col]].level] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::Piece;

    #[test]
    fn no_orbit_holds_more_queens_than_its_bound() {
        for n in 1..=9 {
            let all = Orbits::new(n, Norm::Euclidean);
            assert_eq!(all.orbits.iter().map(|orbit| orbit.squares.len()).sum::<usize>(), n * n);
            for orbit in &all.orbits {
                let peaceful = |set: u32| {
                    let squares: Vec<Square> = (0..orbit.squares.len())
                        .filter(|k| set >> k & 1 == 1)
                        .map(|k| Square::new(orbit.squares[k] / n, orbit.squares[k] % n))
                        .collect();
                    nqueens_proof::board::first_attack(Piece::Queen, n, &squares).is_none()
                };
                let most = (0..1u32 << orbit.squares.len()).filter(|&set| peaceful(set));
                let most = most.map(u32::count_ones).max().expect("the empty set");
                assert!(i64::from(most) <= orbit.most, "n = {n}: {:?}", orbit.squares);
            }
        }
    }

    #[test]
    fn levels_are_unions_of_orbits_from_the_largest_cost() {
        for norm in Norm::ALL {
            let all = Orbits::new(8, norm);
            assert!(all.levels.windows(2).all(|pair| pair[0].cost > pair[1].cost));
            for (number, orbit) in all.orbits.iter().enumerate() {
                let level = &all.levels[orbit.level];
                assert!(level.orbits.contains(&number));
                let costs = orbit.squares.iter().map(|&s| norm.cost(8, Square::new(s / 8, s % 8)));
                assert!(costs.into_iter().all(|cost| cost == level.cost));
            }
        }
    }
}
