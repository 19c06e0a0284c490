//! `ilp-iter`: for each row in turn, solves the 0-1 program that minimises its column, Σ j·x(i,j),
//! with the rows above fixed at their optima: n programs.

use super::{Claim, Run};
use crate::ilp::formulation::{Formulation, Lines, place};
use crate::ilp::model::{Direction, Domain};
use crate::ilp::rounding::values_of;
use crate::ilp::solver::Status;
use crate::progress::Step;
use crate::verdict::Unproven;
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
            let start = known.as_ref().map(|columns| values_of(&model, columns));
            let mut sink = Step { sink: &mut *run.sink, level: row, nodes: run.nodes };
            let outcome = run.solver.optimise(&model, start.as_deref(), &mut sink);
            run.nodes += outcome.nodes;
            run.lps_solved += 1;
            let found = outcome.values.as_ref().and_then(|values| run.offer(values));
            known = match (outcome.status, found, known) {
                (Status::Optimal, Some(found), _) => Some(found),
                (Status::Infeasible, _, None) => return Ok(None),
                (Status::Stopped, ..) => return Err(Unproven::Stopped),
                (Status::Failed(why), ..) => return Err(run.failed(&why)),
                (Status::Optimal, None, _) => {
                    return Err(run.failed("its optimal point is not a solution"));
                }
                (Status::Infeasible, _, Some(_)) => {
                    return Err(run.failed("it reports infeasibility after it returned a solution"));
                }
            };
        }
        let Some(known) = &known else {
            return Err(run.failed("it returned no solution"));
        };
        place(&mut model, run.problem, Square::new(row, known[row]));
    }
    // n = 0 has one solution, the empty one.
    Ok(Some(known.unwrap_or_default()))
}
