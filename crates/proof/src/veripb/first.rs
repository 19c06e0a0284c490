//! Proofs that a solution is the lexicographically first one, written while the checker follows a
//! certificate.

use super::board_lines::BoardLines;
use super::claim;
use super::constraint::{Constraint, Variable};
use super::diagonals::Diagonals;
use super::search_tree::{SearchTree, clause};
use super::writer::{Interruption, ProofWriter};
use crate::ProofError;
use crate::first::{Observer, Position};

/// A writer of the proof that no solution comes before the given one.
pub(super) struct FirstProof<'p, 'w> {
    pub(super) n: usize,
    solution: Option<&'p [usize]>,
    pub(super) writer: &'p mut ProofWriter<'w>,
    pub(super) lines: BoardLines,
    pub(super) diagonals: Diagonals,
    search: Option<SearchTree>,
    /// The number of rows that were shown not to be the first that differs.
    rows: usize,
}

impl<'p, 'w> FirstProof<'p, 'w> {
    /// Begins the proof.
    pub(super) fn begin(
        n: usize,
        solution: Option<&'p [usize]>,
        writer: &'p mut ProofWriter<'w>,
    ) -> Result<Self, ProofError> {
        let (identifiers, count) = claim::first(n, solution).identifiers();
        writer.begin(count)?;
        let lines = BoardLines::new(n, &identifiers, writer)?;
        let diagonals = Diagonals::new(&lines, writer)?;
        Ok(Self { n, solution, writer, lines, diagonals, search: None, rows: 0 })
    }

    /// Shows that the rows before `row` are not the first that differ.
    fn finish_rows(&mut self, row: usize) -> Result<(), ProofError> {
        let columns = self.solution.unwrap_or_default();
        for (row, &column) in columns.iter().enumerate().take(row).skip(self.rows) {
            if column > 0 {
                let selector = Variable::FirstRow(row as u16);
                self.writer.rup(&Constraint::clause([selector.negative()]))?;
            }
        }
        self.rows = row;
        Ok(())
    }

    /// Ends the proof.
    pub(super) fn end(mut self) -> Result<(), ProofError> {
        self.finish_rows(self.n)?;
        self.writer.conclude_unsatisfiable()
    }

    /// Returns "the prefix is not that of the first difference"; `None` without a solution.
    fn goal(&self, prefix: &[usize]) -> Option<Constraint> {
        let (&column, above) = prefix.split_last()?;
        let queen = Variable::Queen(above.len() as u16, column as u16);
        let selector = Variable::FirstRow(above.len() as u16);
        Some(Constraint::clause([selector.negative(), queen.negative()]))
    }
}

impl Observer for FirstProof<'_, '_> {
    fn begin_prefix(&mut self, prefix: &[usize], refuted: bool) -> Result<(), ProofError> {
        self.finish_rows(prefix.len().saturating_sub(1))?;
        match self.goal(prefix) {
            Some(goal) if refuted => self.writer.rup(&goal).map(drop),
            Some(goal) => self.writer.begin_contradiction(&goal).map(drop),
            None => Ok(()),
        }
    }

    fn end_prefix(&mut self, prefix: &[usize], refuted: bool) -> Result<(), ProofError> {
        if refuted || prefix.is_empty() {
            return Ok(());
        }
        self.writer.end_contradiction().map(drop)
    }

    fn begin_queen(&mut self, square: usize, refuted: bool) -> Result<(), ProofError> {
        if let Some(search) = &mut self.search {
            search.enter();
            return Ok(());
        }
        let goal = clause(self.n, &[square]);
        if refuted {
            self.writer.rup(&goal).map(drop)
        } else {
            self.writer.begin_contradiction(&goal).map(drop)
        }
    }

    fn end_queen(&mut self, square: usize, refuted: bool) -> Result<(), ProofError> {
        match &mut self.search {
            Some(search) => {
                search.leave(square);
                self.writer.reserve(search.lines())
            }
            None if refuted => Ok(()),
            None => self.writer.end_contradiction().map(drop),
        }
    }

    fn begin_search(&mut self) -> Result<(), ProofError> {
        self.search = Some(SearchTree::new());
        Ok(())
    }

    fn end_search(&mut self) -> Result<(), ProofError> {
        self.search.take().map_or(Ok(()), |search| search.write(self.n, self.writer))
    }

    fn listed_sets(&mut self) -> Result<(), ProofError> {
        self.writer.interrupt(Interruption::ListedSets)
    }

    fn dual_bound(
        &mut self,
        position: &Position,
        y: &[i64],
        knapsacks: bool,
    ) -> Result<(), ProofError> {
        super::dual_bound::write(self, position, y, knapsacks)
    }
}
