//! The fundamental solutions of a board and their orbits under the symmetries of the square.

use std::ops::ControlFlow;

use nqueens_proof::board::{Piece, Placement, Problem};
use nqueens_proof::symmetry::{Group, Symmetry};
use nqueens_solver::classical::{AnswerSink, Method};
use serde_json::{Value, json};

use crate::{RequestError, check_size};

/// The largest board: 724 solutions, 92 of them fundamental.
const LARGEST: usize = 10;

/// Keeps all solutions.
#[derive(Default)]
pub(crate) struct All(pub(crate) Vec<Vec<usize>>);

impl AnswerSink for All {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.0.push(columns.to_vec());
        ControlFlow::Continue(())
    }

    fn report(&mut self, _tried: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

const fn name(symmetry: Symmetry) -> &'static str {
    match symmetry {
        Symmetry::Identity => "the solution itself",
        Symmetry::Rotate90 => "a quarter turn clockwise",
        Symmetry::Rotate180 => "a half turn",
        Symmetry::Rotate270 => "a quarter turn counter-clockwise",
        Symmetry::MirrorColumns => "left and right exchanged",
        Symmetry::MirrorRows => "top and bottom exchanged",
        Symmetry::Transpose => "mirrored in the main diagonal",
        Symmetry::AntiTranspose => "mirrored in the antidiagonal",
    }
}

/// Returns the orbit of a solution: its different images, each with the symmetries that lead to it.
fn orbit(columns: &[usize]) -> Vec<(Vec<usize>, Vec<&'static str>)> {
    let mut images: Vec<(Vec<usize>, Vec<&'static str>)> = Vec::new();
    for symmetry in Symmetry::ALL {
        let image = symmetry.apply_to_columns(columns);
        match images.iter_mut().find(|(known, _)| *known == image) {
            Some((_, names)) => names.push(name(symmetry)),
            None => images.push((image, vec![name(symmetry)])),
        }
    }
    images
}

/// Returns the answer to `classes`: the number of `solutions`, and the `fundamental` ones, each the
/// lexicographically least of its orbit, with this `orbit`. Columns are counted from 1.
pub(crate) fn answer(n: usize) -> Result<Value, RequestError> {
    check_size("the list of fundamental solutions", n, LARGEST)?;
    let problem = Problem::empty(Piece::Queen, n);
    let mut all = All::default();
    // Cannot fail: backtracking suits every board of this size.
    let _ = Method::Backtracking.run(&problem, &mut all);
    for columns in &all.0 {
        Placement::check_solution(&problem, columns)?;
    }
    let written = |columns: &[usize]| columns.iter().map(|col| col + 1).collect::<Vec<_>>();
    let fundamental: Vec<Value> = all
        .0
        .iter()
        .filter(|columns| Group::FULL.is_least(columns))
        .map(|columns| {
            let orbit: Vec<Value> = orbit(columns)
                .iter()
                .map(|(image, by)| json!({ "columns": written(image), "by": by }))
                .collect();
            json!({ "columns": written(columns), "orbit": orbit })
        })
        .collect();
    Ok(json!({ "solutions": all.0.len(), "fundamental": fundamental }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_solutions_equal_a000170_and_a002562() {
        let published = [
            (1, 1),
            (0, 0),
            (0, 0),
            (2, 1),
            (10, 2),
            (4, 1),
            (40, 6),
            (92, 12),
            (352, 46),
            (724, 92),
        ];
        for (n, (solutions, fundamental)) in (1..).zip(published) {
            let found = answer(n).expect("a small board");
            assert_eq!(found["solutions"], solutions, "n = {n}");
            let classes = found["fundamental"].as_array().expect("a list");
            assert_eq!(classes.len(), fundamental, "n = {n}");
            let images: usize =
                classes.iter().map(|class| class["orbit"].as_array().map_or(0, Vec::len)).sum();
            assert_eq!(images, solutions, "the orbits are disjoint and cover all, n = {n}");
        }
    }
}
