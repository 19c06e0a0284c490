//! Cliques of mutually attacking squares that a point of the orbit LP violates.

use std::collections::BTreeSet;

use super::bounds::Bounds;
use super::csp::sharing_lines;
use super::orbits::Orbits;
use super::params;
use crate::bitset;
use nqueens_proof::beautiful::prices;
use nqueens_proof::board::{Piece, Square};

/// Returns cliques of remaining squares (numbers, ascending) whose values sum to more than 1: at
/// most `limit`, the most violated first. `values` are the numbers of queens on the orbits.
pub(super) fn violated(
    orbits: &Orbits,
    bounds: &Bounds,
    values: &[f64],
    limit: usize,
) -> Vec<Vec<usize>> {
    let n = orbits.n;
    let support = Support::new(orbits, bounds, values);
    let mut remaining = None;
    let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
    let mut extended = BTreeSet::new();
    let (mut clique, mut open) = (Vec::new(), Vec::new());
    for (seed, &square) in support.squares.iter().enumerate() {
        if orbits.orbits[orbits.orbit_of[square]].squares[0] != square {
            continue;
        }
        for second in bitset::elements(support.attacked_by(seed)) {
            clique.clear();
            clique.extend([seed, second]);
            // The places that all squares of the clique attack.
            open.clear();
            open.extend_from_slice(support.attacked_by(seed));
            let mut last = second;
            loop {
                for (open, attacked) in open.iter_mut().zip(support.attacked_by(last)) {
                    *open &= attacked;
                }
                let Some(next) = bitset::elements(&open).next() else { break };
                clique.push(next);
                last = next;
            }
            let sum = clique.iter().map(|&place| support.values[place]).sum();
            if sum > 1.0 + params::MIN_CLIQUE_VIOLATION {
                clique.sort_unstable();
                if !extended.insert(clique.clone()) {
                    continue;
                }
                let mut squares = clique.iter().map(|&place| support.squares[place]).collect();
                let remaining = remaining.get_or_insert_with(|| bounds.squares(orbits));
                extend(n, &mut squares, remaining);
                squares.sort_unstable();
                if !found.iter().any(|each| each.1 == squares) {
                    found.push((sum, squares));
                }
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(limit);
    found.into_iter().map(|(_, clique)| clique).collect()
}

/// Adds each of the squares that attacks all squares of the clique.
fn extend(n: usize, clique: &mut Vec<usize>, squares: &[usize]) {
    for &other in squares {
        let square = |number: usize| Square::new(number / n, number % n);
        let attacks = |&member: &usize| Piece::Queen.attacks(n, square(member), square(other));
        if !clique.contains(&other) && clique.iter().all(attacks) {
            clique.push(other);
        }
    }
}

/// The remaining squares with queens, by descending value. They are numbered by their places.
struct Support {
    squares: Vec<usize>,
    values: Vec<f64>,
    /// For each place, the set of the others that a queen there attacks, in `words` words.
    attacked: Vec<u64>,
    words: usize,
}

impl Support {
    fn new(orbits: &Orbits, bounds: &Bounds, values: &[f64]) -> Self {
        let n = orbits.n;
        let mut squares = Vec::new();
        for orbit in bounds.remaining() {
            let of_orbit = &orbits.orbits[orbit].squares;
            let value = values[orbit] / of_orbit.len() as f64;
            if value > 1e-6 {
                squares.extend(of_orbit.iter().map(|&square| (value, square)));
            }
        }
        squares.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (values, squares): (Vec<f64>, Vec<usize>) = squares.into_iter().unzip();
        let words = squares.len().div_ceil(64);
        let lines_of = |place: usize| prices::lines(n, squares[place]).into_iter();
        let attacked = sharing_lines(squares.len(), prices::level(n, 0), lines_of);
        Self { squares, values, attacked, words }
    }

    /// Returns the set of the other places that a queen at a place attacks.
    fn attacked_by(&self, place: usize) -> &[u64] {
        &self.attacked[place * self.words..][..self.words]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nqueens_proof::board::Norm;

    #[test]
    fn violated_cliques_attack_each_other_and_have_too_many_queens() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut cliques = 0;
        for n in [4, 5, 8, 13] {
            let orbits = Orbits::new(n, Norm::Euclidean);
            let bounds = Bounds::new(&orbits);
            for _ in 0..200 {
                let values: Vec<f64> = orbits
                    .orbits
                    .iter()
                    .map(|_| random.f64() * f64::from(random.u8(0..2)))
                    .collect();
                let found = violated(&orbits, &bounds, &values, 10);
                assert!(found.len() <= 10);
                let sum = |clique: &Vec<usize>| -> f64 {
                    let value = |&square: &usize| {
                        let orbit = orbits.orbit_of[square];
                        values[orbit] / orbits.orbits[orbit].squares.len() as f64
                    };
                    clique.iter().map(value).sum()
                };
                for clique in &found {
                    assert!(sum(clique) > 1.0, "n = {n}: {clique:?}");
                    let square = |&number: &usize| Square::new(number / n, number % n);
                    for (place, a) in clique.iter().enumerate() {
                        let mut rest = clique[place + 1..].iter();
                        assert!(
                            rest.all(|b| a < b && Piece::Queen.attacks(n, square(a), square(b)))
                        );
                    }
                    // No other square can be added.
                    let attacks_all = |other: &usize| {
                        clique.iter().all(|member| {
                            member != other
                                && Piece::Queen.attacks(n, square(member), square(other))
                        })
                    };
                    assert_eq!((0..n * n).find(attacks_all), None, "n = {n}: {clique:?}");
                }
                assert!(found.windows(2).all(|pair| sum(&pair[0]) >= sum(&pair[1]) - 1e-9));
                cliques += found.len();
            }
        }
        assert!(cliques > 1000, "{cliques}");
    }
}
