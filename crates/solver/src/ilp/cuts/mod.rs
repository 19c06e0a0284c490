//! Rows that every non-attacking set satisfies but the relaxation may violate: cliques of the
//! paper's families (3)–(5) and odd cycles, separated round by round where they cut off the optimum
//! of the relaxation.

mod cliques;
mod odd_cycles;

pub use cliques::{CliqueFamily, violated as violated_cliques};
pub use odd_cycles::violated as violated_odd_cycles;

use super::model::{Model, Relation, Row};
use super::solver::{LinearOutcome, Solver};
use crate::progress::ProgressSink;
use crate::verdict::Unproven;
use nqueens_proof::board::Square;

/// Maximum number of separation rounds.
const ROUNDS: usize = 50;

/// Minimum violation of a row that is added.
const VIOLATION: f64 = 1e-4;

/// The families of rows to separate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// Crosses, X's and squares.
    pub cliques: bool,
    /// Odd cycles of the conflict graph.
    pub odd_cycles: bool,
}

/// The rows found by separation, and their effect on the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Separation {
    /// The rows, to be added to the model.
    pub rows: Vec<Row>,
    /// Number of cliques among the rows; the others are odd cycles.
    pub cliques: usize,
    /// Number of rounds in which rows were added.
    pub rounds: usize,
    /// The relaxation's bound without the rows.
    pub before: f64,
    /// The bound with the rows; `None` if the relaxation is then infeasible, so there is no
    /// solution at all.
    pub after: Option<f64>,
}

/// Separates rows of `families` from the relaxation of `model`, an n-queens program on the board of
/// size `n`, until none is violated or the limit of rounds is reached. Returns `Ok(None)` if the
/// relaxation is infeasible from the start.
///
/// # Errors
/// The solver was stopped or failed.
pub fn separate(
    model: &Model,
    n: usize,
    families: Families,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Result<Option<Separation>, Unproven> {
    let mut linear = solver.relaxation(model);
    let mut separation: Option<Separation> = None;
    loop {
        let vertex = match linear.solve(sink) {
            LinearOutcome::Optimal(vertex) => vertex,
            LinearOutcome::Infeasible { .. } => {
                return Ok(separation.map(|separation| Separation { after: None, ..separation }));
            }
            LinearOutcome::Stopped => return Err(Unproven::Stopped),
            LinearOutcome::Failed(why) => {
                return Err(Unproven::SolverFailed(format!("{}: {why}", solver.name())));
            }
        };
        let so_far = separation.get_or_insert_with(|| Separation {
            rows: Vec::new(),
            cliques: 0,
            rounds: 0,
            before: vertex.objective,
            after: None,
        });
        so_far.after = Some(vertex.objective);
        let mut found = Vec::new();
        if families.cliques {
            let cliques = violated_cliques(n, &vertex.values, VIOLATION).into_iter();
            found.extend(cliques.map(|squares| (squares, 1)));
            so_far.cliques += found.len();
        }
        // Odd cycles are expensive to find: only where there is no clique.
        if families.odd_cycles && found.is_empty() {
            let cycles = violated_odd_cycles(n, &vertex.values, VIOLATION).into_iter();
            found.extend(cycles.map(|squares| {
                let bound = squares.len() as i64 / 2;
                (squares, bound)
            }));
        }
        if found.is_empty() || so_far.rounds == ROUNDS {
            return Ok(separation);
        }
        so_far.rounds += 1;
        for (squares, bound) in found {
            let name = format!("cut{}", so_far.rows.len() + 1);
            let variables = squares.iter().map(|square: &Square| square.row * n + square.col);
            let row = Row::sum(name, variables, Relation::AtMost, bound);
            linear.add_row(&row);
            so_far.rows.push(row);
        }
    }
}
