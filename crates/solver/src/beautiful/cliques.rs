//! Cliques of mutually attacking squares that a point of the orbit LP violates.

use super::bounds::Bounds;
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
    let (mut clique, mut open) = (Vec::new(), Vec::new());
    for (seed, &square) in support.squares.iter().enumerate() {
        if orbits.orbits[orbits.orbit_of[square]].squares[0] != square {
            continue;
        }
        let neighbours = support.attacked_by(seed);
        let attacked = support.attacked_among(&neighbours);
        let words = neighbours.len().div_ceil(64);
        for second in 0..neighbours.len() {
            clique.clear();
            clique.extend([seed, neighbours[second]]);
            // The neighbours that all squares of the clique attack.
            open.clear();
            open.extend_from_slice(&attacked[second * words..][..words]);
            loop {
                let Some(next) = bitset::elements(&open).next() else { break };
                clique.push(neighbours[next]);
                for (open, attacked) in open.iter_mut().zip(&attacked[next * words..]) {
                    *open &= attacked;
                }
            }
            let sum = clique.iter().map(|&place| support.values[place]).sum();
            if sum > 1.0 + params::MIN_CLIQUE_VIOLATION {
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
    lines: Vec<[usize; 4]>,
    /// The places on each line, ascending.
    on_line: Vec<Vec<usize>>,
}

impl Support {
    fn new(orbits: &Orbits, bounds: &Bounds, values: &[f64]) -> Self {
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
        let lines: Vec<[usize; 4]> =
            squares.iter().map(|&square| prices::lines(orbits.n, square)).collect();
        let mut on_line = vec![Vec::new(); 6 * orbits.n];
        for (place, lines) in lines.iter().enumerate() {
            lines.iter().for_each(|&line| on_line[line].push(place));
        }
        Self { squares, values, lines, on_line }
    }

    /// Returns the other places that a queen at a place attacks, ascending.
    fn attacked_by(&self, place: usize) -> Vec<usize> {
        let on_lines = self.lines[place].iter().flat_map(|&line| &self.on_line[line]);
        let mut attacked: Vec<usize> = on_lines.copied().filter(|&other| other != place).collect();
        attacked.sort_unstable();
        attacked
    }

    /// Returns, for each of these places, the set of the others that a queen there attacks, by
    /// their indices in `places`. All sets have the same number of words.
    fn attacked_among(&self, places: &[usize]) -> Vec<u64> {
        let words = places.len().div_ceil(64);
        let mut on_line = vec![0; self.on_line.len() * words];
        for (index, &place) in places.iter().enumerate() {
            for line in self.lines[place] {
                bitset::insert(&mut on_line[line * words..][..words], index);
            }
        }
        let mut sets = vec![0; places.len() * words];
        for (index, &place) in places.iter().enumerate() {
            let attacked = &mut sets[index * words..][..words];
            for line in self.lines[place] {
                for (attacked, on_line) in attacked.iter_mut().zip(&on_line[line * words..]) {
                    *attacked |= on_line;
                }
            }
            bitset::remove(attacked, index);
        }
        sets
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
