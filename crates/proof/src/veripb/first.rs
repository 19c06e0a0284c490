//! Proofs that a solution is the lexicographically first one, written while the checker follows a
//! certificate.

use std::collections::VecDeque;
use std::ops::Range;

use super::board_lines::{BoardLines, usage};
use super::claim;
use super::constraint::{Constraint, Variable};
use super::diagonals::DiagonalEquations;
use super::listed_sets::{DefinedList, NextVariables, ProvedList};
use super::search_tree::{SearchTree, clause};
use super::writer::{Id, ProofWriter};
use crate::ProofError;
use crate::first::{DiagonalSets, Observer, Position, TooManySets};

/// A writer of the proof that no solution comes before the given one.
pub(super) struct FirstProof<'p, 'w> {
    pub(super) n: usize,
    solution: Option<&'p [usize]>,
    pub(super) writer: &'p mut ProofWriter<'w>,
    pub(super) lines: BoardLines,
    pub(super) diagonals: DiagonalEquations,
    /// The equation of the squares of all diagonals, ≥ and ≤, once it is needed.
    sum_of_squares: Option<[Id; 2]>,
    /// The lists of the prefix that are still to be proved.
    lists: VecDeque<DefinedList>,
    /// The identifiers of the definitions of the prefix.
    definitions: Option<Range<Id>>,
    next_variables: NextVariables,
    /// The list of the position.
    pub(super) list: Option<ProvedList>,
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
        let diagonals = DiagonalEquations::new(&lines, writer)?;
        Ok(Self {
            n,
            solution,
            writer,
            lines,
            diagonals,
            sum_of_squares: None,
            lists: VecDeque::new(),
            definitions: None,
            next_variables: NextVariables::default(),
            list: None,
            search: None,
            rows: 0,
        })
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

    /// Returns whether the position's list says which sets use a diagonal. No set uses another
    /// diagonal: the first case is then the whole position, and the second one has no possible set.
    fn is_listed(&self, line: usize) -> bool {
        self.list.as_ref().is_some_and(|list| list.is_open(line))
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
    /// Each set is defined by two lines.
    fn most_listed_sets(&self) -> usize {
        self.writer.lines_left() / 2
    }

    fn define_lists(
        &mut self,
        lists: Result<Vec<DiagonalSets>, TooManySets>,
    ) -> Result<(), ProofError> {
        let Ok(lists) = lists else { return self.writer.exceed() };
        if self.sum_of_squares.is_none() {
            let equation = DiagonalEquations::sum_of_squares(&self.lines, self.writer)?;
            self.sum_of_squares = Some(equation);
        }
        let first = self.writer.next();
        for list in lists {
            let list = DefinedList::define(self.n, list, &mut self.next_variables, self.writer)?;
            self.lists.push_back(list);
        }
        self.definitions = Some(first..self.writer.next()).filter(|ids| !ids.is_empty());
        Ok(())
    }

    fn begin_prefix(&mut self, prefix: &[usize], refuted: bool) -> Result<(), ProofError> {
        self.finish_rows(prefix.len().saturating_sub(1))?;
        match self.goal(prefix) {
            Some(goal) if refuted => self.writer.rup(&goal).map(drop),
            Some(goal) => self.writer.begin_contradiction(&goal).map(drop),
            None => Ok(()),
        }
    }

    fn end_prefix(&mut self, prefix: &[usize], refuted: bool) -> Result<(), ProofError> {
        if prefix.is_empty() {
            // The conclusion needs all constraints.
            return Ok(());
        }
        if !refuted {
            self.writer.end_contradiction()?;
        }
        self.definitions.take().map_or(Ok(()), |definitions| self.writer.delete(definitions))
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

    fn begin_list(&mut self, position: &Position, _: &DiagonalSets) -> Result<(), ProofError> {
        let list = self.lists.pop_front().zip(self.sum_of_squares);
        let (list, sum_of_squares) = list.expect("lists are defined before their prefix");
        self.list = Some(list.prove(sum_of_squares, self, position)?);
        Ok(())
    }

    fn end_list(&mut self) {
        self.list = None;
    }

    fn begin_case(&mut self, line: usize, used: bool, refuted: bool) -> Result<(), ProofError> {
        // The other case holds once this one is refuted.
        if used || !self.is_listed(line) {
            return Ok(());
        }
        let goal = Constraint::clause([usage(self.n, line).positive()]);
        if refuted {
            self.writer.rup(&goal).map(drop)
        } else {
            self.writer.begin_contradiction(&goal).map(drop)
        }
    }

    fn end_case(&mut self, line: usize, used: bool, refuted: bool) -> Result<(), ProofError> {
        if used || refuted || !self.is_listed(line) {
            return Ok(());
        }
        self.writer.end_contradiction().map(drop)
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
