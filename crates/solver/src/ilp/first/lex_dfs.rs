//! `lex-dfs`: depth-first search with the lexicographic simplex, with n-way branching on the rows
//! in order.
//!
//! The mini-cutloop of a row: take its first free variable. If the relaxation has no point in which
//! the variable is 1, it is below 1 in the lexicographic optimum, hence 0 in integers: fix it and
//! repeat. Otherwise branch there. A queen fixes all variables of its cliques. When every row has
//! been passed in this way, the lexicographic optimum is integral and the first solution.
//!
//! A known point of the relaxation that has the variable at 1 saves solving an LP.
//!
//! Cuts (cliques and odd cycles) hold for every non-attacking set, so that those found at one node
//! stay in the program for all later nodes. They are separated from the vertex of each LP, before
//! the search branches.

use super::board::LinearBoard;
use super::{Claim, Run};
use crate::ilp::cuts::Families;
use crate::ilp::model::Direction;
use crate::ilp::solver::TOLERANCE;
use crate::verdict::Unproven;

/// Maximum number of rounds in which cuts are separated at one node.
const ROUNDS_PER_NODE: usize = 10;

pub(super) fn run(run: &mut Run<'_>, families: Families) -> Claim {
    let board = LinearBoard::new(run, Direction::Maximise);
    let mut search = LexDfs { board, point: Vec::new(), families };
    let mut columns = Vec::new();
    Ok(search.descend(run, &mut columns)?.then_some(columns))
}

struct LexDfs {
    board: LinearBoard,
    /// The last point of the relaxation that was found.
    point: Vec<f64>,
    /// The families of cuts to separate.
    families: Families,
}

impl LexDfs {
    /// Returns whether the rows from `columns.len()` on can be filled; if so, `columns` is the
    /// first solution.
    fn descend(&mut self, run: &mut Run<'_>, columns: &mut Vec<usize>) -> Result<bool, Unproven> {
        let (n, row) = (run.problem.n(), columns.len());
        if row == n {
            return Ok(true);
        }
        let entry = self.board.mark();
        for column in 0..n {
            let variable = row * n + column;
            if !self.board.is_free(variable) {
                continue;
            }
            let node = self.board.mark();
            run.nodes += 1;
            columns.push(column);
            if self.can_be_one(run, variable, row)? && self.descend(run, columns)? {
                return Ok(true);
            }
            columns.pop();
            self.board.undo(node);
            self.board.forbid(variable);
        }
        self.board.undo(entry);
        Ok(false)
    }

    /// Places a queen. Returns whether the relaxation is still feasible.
    fn can_be_one(
        &mut self,
        run: &mut Run<'_>,
        variable: usize,
        row: usize,
    ) -> Result<bool, Unproven> {
        if !self.board.place(variable) {
            return Ok(false);
        }
        if self.point.get(variable).is_some_and(|&value| value > 1.0 - TOLERANCE) {
            return Ok(true);
        }
        for round in 0.. {
            let Some(vertex) = self.board.solve(run, row)? else { return Ok(false) };
            self.point = vertex.values;
            if round == ROUNDS_PER_NODE || !self.separate(run)? {
                break;
            }
        }
        Ok(true)
    }

    /// Adds the cuts that the last point violates. Returns whether there was one.
    fn separate(&mut self, run: &mut Run<'_>) -> Result<bool, Unproven> {
        if self.families.is_empty() {
            return Ok(false);
        }
        let n = run.problem.n();
        let rows =
            self.families.violated(n, &self.point, &mut run.cuts, run.solver, &mut *run.sink)?;
        for row in &rows {
            self.board.add_row(row);
        }
        Ok(!rows.is_empty())
    }
}
