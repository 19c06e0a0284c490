//! Rows that every non-attacking set satisfies but the relaxation may violate: cliques of the
//! paper's families (3)–(5), any clique, and odd cycles, separated round by round where they cut
//! off the optimum of the relaxation.

mod cliques;
mod exact_cliques;
mod odd_cycles;

pub use cliques::{CliqueFamily, violated as violated_cliques};
pub use exact_cliques::heaviest as heaviest_clique;
pub use odd_cycles::violated as violated_odd_cycles;

use super::model::{Model, Relation, Row};
use super::solver::{LinearOutcome, Solver};
use crate::progress::{LogEntry, ProgressSink};
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
    /// Any clique: the heaviest one, by a 0-1 program, where no other clique is violated.
    pub exact_cliques: bool,
    /// Odd cycles of the conflict graph, where no clique is violated.
    pub odd_cycles: bool,
}

/// The number of rows found by separation, by family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCounts {
    /// Cliques, including those of the exact separation.
    pub cliques: usize,
    /// Those of the cliques that the exact separation found.
    pub exact_cliques: usize,
    /// Odd cycles.
    pub odd_cycles: usize,
    /// Rounds in which rows were added.
    pub rounds: usize,
}

impl Families {
    /// Returns whether no family is selected.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns rows of these families for the board of size `n` that the `values` of its variables
    /// violate, and adds their numbers to `counts`. The families are tried in turn, from the one
    /// that is found fastest, until one is violated.
    ///
    /// # Errors
    /// The solver of the exact separation was stopped or failed.
    pub fn violated(
        self,
        n: usize,
        values: &[f64],
        counts: &mut CutCounts,
        solver: &dyn Solver,
        sink: &mut dyn ProgressSink,
    ) -> Result<Vec<Row>, Unproven> {
        let mut cliques = Vec::new();
        if self.cliques {
            cliques = violated_cliques(n, values, VIOLATION);
        }
        if self.exact_cliques && cliques.is_empty() {
            cliques.extend(heaviest_clique(n, values, VIOLATION, solver, sink)?);
            counts.exact_cliques += cliques.len();
        }
        let mut cycles = Vec::new();
        if self.odd_cycles && cliques.is_empty() {
            cycles = violated_odd_cycles(n, values, VIOLATION);
        }
        let first = counts.cliques + counts.odd_cycles + 1;
        counts.cliques += cliques.len();
        counts.odd_cycles += cycles.len();
        let bounds = cliques.iter().map(|_| 1).chain(cycles.iter().map(|c| c.len() as i64 / 2));
        let row = |(number, (squares, bound)): (usize, (&Vec<Square>, i64))| {
            let variables = squares.iter().map(|square| square.row * n + square.col);
            Row::sum(format!("cut{number}"), variables, Relation::AtMost, bound)
        };
        let rows: Vec<Row> =
            (first..).zip(cliques.iter().chain(&cycles).zip(bounds)).map(row).collect();
        counts.rounds += usize::from(!rows.is_empty());
        Ok(rows)
    }
}

/// The rows found by separation, and their effect on the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Separation {
    /// The rows, to be added to the model.
    pub rows: Vec<Row>,
    /// Their number by family.
    pub counts: CutCounts,
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
            LinearOutcome::Failed(why) => return Err(solver.failed(&why)),
        };
        let so_far = separation.get_or_insert_with(|| Separation {
            rows: Vec::new(),
            counts: CutCounts::default(),
            before: vertex.objective,
            after: None,
        });
        so_far.after = Some(vertex.objective);
        if sink.log_interval().is_some() {
            let (bound, cuts) = (Some(vertex.objective), Some(so_far.rows.len()));
            sink.log(&LogEntry { bound, cuts, ..LogEntry::default() });
        }
        if so_far.counts.rounds == ROUNDS {
            return Ok(separation);
        }
        let found = families.violated(n, &vertex.values, &mut so_far.counts, solver, sink)?;
        if found.is_empty() {
            return Ok(separation);
        }
        for row in found {
            linear.add_row(&row);
            so_far.rows.push(row);
        }
    }
}
