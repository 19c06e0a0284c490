//! `ilp-iter`: for each row in turn, solves the 0-1 program that minimises its column, Σ j·x(i,j),
//! with the rows above fixed at their optima: n programs.

use super::{Claim, Run};
use crate::ilp::formulation::{Formulation, Lines, place};
use crate::ilp::model::{Direction, Domain};
use nqueens_proof::board::Square;

pub(super) fn run(run: &mut Run<'_>) -> Claim {
    let n = run.problem.n();
    let mut model = Formulation::Diagonals.model(run.problem, Lines::Full);
    let mut known: Option<Vec<usize>> = None;
    for row in 0..n {
        // If the known column is already the least free one, it is optimal.
        let least = (0..n).find(|&col| model.columns[row * n + col].domain != Domain::Zero);
        if known.as_ref().is_none_or(|known| Some(known[row]) != least) {
            model.set_objective(
                Direction::Minimise,
                |k| if k / n == row { (k % n) as i64 } else { 0 },
            );
            known = match (run.optimise(&model, known.as_deref(), row)?, known) {
                (Some(found), _) => Some(found),
                (None, None) => return Ok(None),
                (None, Some(_)) => {
                    let why = "it reports infeasibility after it returned a solution";
                    return Err(run.solver.failed(why));
                }
            };
        }
        let Some(known) = &known else {
            return Err(run.solver.failed("it returned no solution"));
        };
        place(&mut model, run.problem, Square::new(row, known[row]));
    }
    // n = 0 has one solution, the empty one.
    Ok(Some(known.unwrap_or_default()))
}
