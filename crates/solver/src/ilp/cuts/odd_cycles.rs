//! Odd cycles of the conflict graph: of 2k + 1 squares, each of which attacks the next in the
//! cycle, at most k hold a queen. These are 0-½ cuts: half the sum of the edges' rows x(u) + x(v) ≤
//! 1, rounded down.
//!
//! Separation: an edge weighs 1 − x(u) − x(v), which is not negative where the rows hold, and a
//! cycle is violated if it weighs less than 1. The lightest odd closed walk through u is the
//! shortest path from (u, even) to (u, odd) in the graph in which each edge changes the parity. A
//! closed walk that visits a vertex twice consists of two closed walks, one of them odd, so
//! repeated splitting yields a cycle.

use nqueens_proof::board::{Piece, Square};

/// Values below this count as 0: their squares are in no relevant violated cycle.
const ZERO: f64 = 1e-6;

/// Returns the odd cycles that are violated by more than `by`, at most one through each square,
/// without duplicates.
pub fn violated(n: usize, values: &[f64], by: f64) -> Vec<Vec<Square>> {
    let squares: Vec<Square> =
        (0..n * n).filter(|&k| values[k] > ZERO).map(|k| Square::new(k / n, k % n)).collect();
    let value = |vertex: usize| values[squares[vertex].row * n + squares[vertex].col];
    let weight = |u: usize, v: usize| {
        let attacks = u != v && Piece::Queen.attacks(n, squares[u], squares[v]);
        attacks.then(|| (1.0 - value(u) - value(v)).max(0.0))
    };
    let mut found: Vec<Vec<usize>> = Vec::new();
    for start in 0..squares.len() {
        // A cycle weighs 1 − 2·violation.
        let walk = lightest_odd_walk(squares.len(), start, &weight, 1.0 - 2.0 * by);
        let Some(mut cycle) = walk.map(simple) else { continue };
        let sum: f64 = cycle.iter().map(|&v| value(v)).sum();
        if sum > (cycle.len() / 2) as f64 + by {
            cycle.sort_unstable();
            found.push(cycle);
        }
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|cycle| cycle.into_iter().map(|v| squares[v]).collect()).collect()
}

/// Returns the vertices of the lightest odd closed walk through `start`, which occurs once in it,
/// if the walk weighs less than `limit`. Dijkstra's algorithm on the dense graph with two copies of
/// each vertex.
fn lightest_odd_walk(
    vertices: usize,
    start: usize,
    weight: &impl Fn(usize, usize) -> Option<f64>,
    limit: f64,
) -> Option<Vec<usize>> {
    // Node 2v is v after an even number of edges, 2v + 1 after an odd number.
    let mut distance = vec![f64::INFINITY; 2 * vertices];
    let mut before = vec![usize::MAX; 2 * vertices];
    let mut done = vec![false; 2 * vertices];
    distance[2 * start] = 0.0;
    loop {
        let open = (0..2 * vertices).filter(|&node| !done[node] && distance[node] < limit);
        let node = open.min_by(|&a, &b| distance[a].total_cmp(&distance[b]))?;
        if node == 2 * start + 1 {
            break;
        }
        done[node] = true;
        for next in 0..vertices {
            let Some(weight) = weight(node / 2, next) else { continue };
            let (other, length) = (2 * next + 1 - node % 2, distance[node] + weight);
            if length < distance[other] {
                distance[other] = length;
                before[other] = node;
            }
        }
    }
    let mut walk = Vec::new();
    let mut node = before[2 * start + 1];
    while node != 2 * start {
        walk.push(node / 2);
        node = before[node];
    }
    walk.push(start);
    Some(walk)
}

/// Returns an odd cycle contained in an odd closed walk.
fn simple(mut walk: Vec<usize>) -> Vec<usize> {
    'again: loop {
        for i in 0..walk.len() {
            if let Some(j) = (i + 1..walk.len()).find(|&j| walk[j] == walk[i]) {
                let inner: Vec<usize> = walk[i..j].to_vec();
                if inner.len() % 2 == 1 {
                    walk = inner;
                } else {
                    walk.drain(i..j);
                }
                continue 'again;
            }
        }
        return walk;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_that_meets_itself_is_cut_to_an_odd_cycle() {
        assert_eq!(simple(vec![1, 2, 3]), [1, 2, 3]);
        assert_eq!(simple(vec![0, 1, 2, 3, 1]), [1, 2, 3]);
        assert_eq!(simple(vec![0, 1, 2, 1, 3]), [0, 1, 3]);
    }

    /// A 5-cycle with values ½ is violated, and all subsets of the found cycles confirm their
    /// bounds.
    #[test]
    fn a_violated_five_cycle_is_found_and_holds_for_every_peaceful_set() {
        let n = 5;
        let ring = [(0, 0), (0, 3), (2, 1), (4, 1), (4, 0)].map(|(r, c)| Square::new(r, c));
        let attacks = |i: usize, j: usize| Piece::Queen.attacks(n, ring[i], ring[j]);
        assert!((0..5).all(|i| attacks(i, (i + 1) % 5)), "the example is a cycle");
        let mut values = vec![0.0; n * n];
        for square in ring {
            values[square.row * n + square.col] = 0.5;
        }
        let found = violated(n, &values, 1e-3);
        assert!(!found.is_empty());
        for cycle in found {
            assert!(cycle.len() % 2 == 1);
            let largest = (0..1u32 << cycle.len())
                .map(|set| {
                    (0..cycle.len())
                        .filter(|&i| set >> i & 1 == 1)
                        .map(|i| cycle[i])
                        .collect::<Vec<_>>()
                })
                .filter(|set| nqueens_proof::board::first_attack(Piece::Queen, n, set).is_none())
                .map(|set| set.len())
                .max();
            assert!(largest <= Some(cycle.len() / 2), "{cycle:?}");
        }
    }

    #[test]
    fn integral_values_violate_nothing() {
        let mut values = vec![0.0; 16];
        for k in [1, 7, 8, 14] {
            values[k] = 1.0;
        }
        assert!(violated(4, &values, 1e-6).is_empty());
    }
}
