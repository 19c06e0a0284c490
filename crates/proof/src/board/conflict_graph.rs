//! The conflict graph: it has a vertex for each square on which a piece may stand, and an edge
//! between any two that attack each other. Its independent sets of n vertices are the solutions.
//!
//! The queens' graph of the empty board has n² vertices and n(n-1)(5n-1)/3 edges (OEIS A035006
//! counts twice that); the rooks' graph has n²(n-1) edges.

use std::io::{self, Write};

use super::{Problem, Square};

/// The largest board size whose graph is written; it has 13.3 million edges between queens.
pub const MAX_GRAPH_SIZE: usize = 200;

/// Returns the vertices: every square that the problem allows, in row order.
pub fn vertices(problem: &Problem) -> Vec<Square> {
    let n = problem.n();
    let squares = (0..n * n).map(|i| Square::new(i / n, i % n));
    squares.filter(|&square| problem.allows(square)).collect()
}

/// Writes the graph in the DIMACS format for colouring and independent sets: comments (`c`),
/// `p edge V E`, and a line `e I J` for each edge, with I < J and vertices numbered from 1. A
/// comment for each vertex names its square.
///
/// # Errors
/// Returns any error of the writer.
pub fn write_dimacs(problem: &Problem, out: &mut impl Write) -> io::Result<()> {
    let (piece, n) = (problem.piece(), problem.n());
    let vertices = vertices(problem);
    let last = vertices.len();
    let joined = |&(i, j): &(usize, usize)| piece.attacks(n, vertices[i - 1], vertices[j - 1]);
    let edges = || (1..=last).flat_map(|i| (i + 1..=last).map(move |j| (i, j))).filter(joined);
    writeln!(
        out,
        "c squares on which a {piece} may stand, n = {n}; an edge joins two that attack each other"
    )?;
    writeln!(out, "c independent sets of {n} vertices are the solutions")?;
    for (i, square) in vertices.iter().enumerate() {
        writeln!(out, "c vertex {} is the square {square}", i + 1)?;
    }
    writeln!(out, "p edge {last} {}", edges().count())?;
    for (i, j) in edges() {
        writeln!(out, "e {i} {j}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Piece;

    fn dimacs(problem: &Problem) -> String {
        let mut out = Vec::new();
        write_dimacs(problem, &mut out).expect("memory can be written");
        String::from_utf8(out).expect("DIMACS is ASCII")
    }

    #[test]
    fn the_graph_of_the_2_board_joins_all_queens_and_not_all_rooks() {
        let lines = |piece| {
            let text = dimacs(&Problem::empty(piece, 2));
            let lines: Vec<String> =
                text.lines().filter(|l| !l.starts_with('c')).map(String::from).collect();
            lines
        };
        assert_eq!(
            lines(Piece::Queen),
            ["p edge 4 6", "e 1 2", "e 1 3", "e 1 4", "e 2 3", "e 2 4", "e 3 4"]
        );
        assert_eq!(lines(Piece::Rook), ["p edge 4 4", "e 1 2", "e 1 3", "e 2 4", "e 3 4"]);
    }

    #[test]
    fn the_number_of_edges_matches_the_formula() {
        for n in 0..=12usize {
            let has = |piece, edges: usize| {
                let text = dimacs(&Problem::empty(piece, n));
                assert!(text.contains(&format!("\np edge {} {edges}\n", n * n)), "{piece}, {n}");
                assert_eq!(text.lines().filter(|line| line.starts_with("e ")).count(), edges);
            };
            has(Piece::Queen, n * n.saturating_sub(1) * (5 * n).saturating_sub(1) / 3);
            has(Piece::Rook, n * n * n.saturating_sub(1));
        }
    }

    #[test]
    fn independent_sets_of_n_vertices_are_the_completions() {
        let at = Square::new;
        for (placed, blocked, completions) in
            [(vec![], vec![], 10), (vec![at(0, 1)], vec![], 2), (vec![at(0, 1)], vec![at(1, 4)], 1)]
        {
            let problem =
                Problem::new(Piece::Queen, 5, placed, blocked).expect("squares on the board");
            let text = dimacs(&problem);
            let edges: Vec<(usize, usize)> = text
                .lines()
                .filter_map(|line| line.strip_prefix("e ")?.split_once(' '))
                .map(|(i, j)| (i.parse().expect("a vertex"), j.parse().expect("a vertex")))
                .collect();
            let count = vertices(&problem).len();
            assert_eq!(independent_sets(&edges, count, 1, &mut Vec::new(), 5), completions);
        }
    }

    /// Counts the sets that add vertices from `first` on to `chosen`, up to `size` in all, without
    /// an edge between any two.
    fn independent_sets(
        edges: &[(usize, usize)],
        vertices: usize,
        first: usize,
        chosen: &mut Vec<usize>,
        size: usize,
    ) -> usize {
        if chosen.len() == size {
            return 1;
        }
        let mut sets = 0;
        for vertex in first..=vertices {
            if !chosen.iter().any(|&other| edges.contains(&(other, vertex))) {
                chosen.push(vertex);
                sets += independent_sets(edges, vertices, vertex + 1, chosen, size);
                chosen.pop();
            }
        }
        sets
    }
}
