//! Cliques of mutually attacking squares that a point of the orbit LP violates.

use super::bounds::Bounds;
use super::orbits::Orbits;
use super::params;
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
    let value = |square: usize| {
        let orbit = orbits.orbit_of[square];
        values[orbit] / orbits.orbits[orbit].squares.len() as f64
    };
    let attacks = |a: usize, b: usize| {
        Piece::Queen.attacks(n, Square::new(a / n, a % n), Square::new(b / n, b % n))
    };
    let remaining = bounds.squares(orbits);
    let mut support: Vec<usize> =
        remaining.iter().copied().filter(|&square| value(square) > 1e-6).collect();
    support.sort_by(|&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
    let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
    for &seed in support
        .iter()
        .filter(|&&square| orbits.orbits[orbits.orbit_of[square]].squares[0] == square)
    {
        let neighbours: Vec<usize> = support
            .iter()
            .copied()
            .filter(|&other| other != seed && attacks(seed, other))
            .collect();
        for &second in &neighbours {
            let mut clique = vec![seed, second];
            let mut sum = value(seed) + value(second);
            for &other in &neighbours {
                if other != second && clique[1..].iter().all(|&member| attacks(member, other)) {
                    clique.push(other);
                    sum += value(other);
                }
            }
            if sum > 1.0 + params::MIN_CLIQUE_VIOLATION {
                for &other in &remaining {
                    if !clique.contains(&other)
                        && clique.iter().all(|&member| attacks(member, other))
                    {
                        clique.push(other);
                    }
                }
                clique.sort_unstable();
                if !found.iter().any(|each| each.1 == clique) {
                    found.push((sum, clique));
                }
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(limit);
    found.into_iter().map(|(_, clique)| clique).collect()
}
