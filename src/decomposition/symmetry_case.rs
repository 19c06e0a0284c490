//! One case of the symmetry argument, in the form that every kernel reads.

use std::sync::Arc;

use super::attack_state::{AttackState, full_row, state_of};
use super::image::mirrored_row;
use crate::board::{Piece, Problem, Square, first_attack};
use crate::tally::Thirds;

/// A constraint on the use of the centre columns, attached to an open row below the block.
///
/// These rules and a mask for each row are all that a kernel needs to know of the symmetry
/// argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CentreRule {
    /// No constraint.
    #[default]
    None,
    /// If a centre column is still free, the queen of this row stands in a free centre column.
    TakeIfAnyFree,
    /// If both centre columns are still free, the queen of this row stands in one of them.
    TakeIfBothFree,
}

/// A set of placements that are counted together with one weight.
///
/// The open rows are filled in a fixed order: downward from the block, then upward from it. Filling
/// one contiguous block of rows keeps every relevant diagonal inside a window of n columns, which
/// shifts by one column for each row that the order advances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymmetryCase {
    problem: Arc<Problem>,
    weight: Thirds,
    block: Vec<Square>,
    rows: Vec<usize>,
    below: usize,
    allowed: Vec<u32>,
    rules: Vec<CentreRule>,
    centre_columns: u32,
    start: AttackState,
}

impl SymmetryCase {
    /// Creates the case that places `block` and fills the open rows of `problem` outside
    /// `centre_rows` downward and then upward. `centre_rows` must contain no other open rows than
    /// those of the block. Returns `None` if the block is not allowed.
    pub(super) fn new(
        problem: &Arc<Problem>,
        weight: Thirds,
        mut block: Vec<Square>,
        centre_rows: std::ops::Range<usize>,
    ) -> Option<Self> {
        let n = problem.n();
        if !block.iter().all(|&s| problem.allows(s))
            || first_attack(problem.piece(), n, &block).is_some()
        {
            return None;
        }
        block.sort_unstable();
        let open = |row: &usize| problem.placed().iter().all(|s| s.row != *row);
        let mut rows: Vec<usize> = (centre_rows.end..n).filter(open).collect();
        let below = rows.len();
        rows.extend((0..centre_rows.start).rev().filter(open));
        let allowed = rows.iter().map(|&row| allowed_columns(problem, row)).collect();
        let start = start_of(problem, &block);
        let rules = vec![CentreRule::None; rows.len()];
        let problem = Arc::clone(problem);
        Some(Self { problem, weight, block, rows, below, allowed, rules, centre_columns: 0, start })
    }

    /// Returns the mirror image, a case of the mirrored `problem`: its completions are the mirror
    /// images of the completions of this case.
    #[must_use]
    pub(super) fn mirrored(&self, problem: &Arc<Problem>) -> Self {
        let n = self.n();
        // The queens of a block stand in different rows, so their order is unchanged.
        let block: Vec<Square> = self.block.iter().map(|s| s.mirrored(n)).collect();
        Self {
            problem: Arc::clone(problem),
            weight: self.weight,
            start: start_of(problem, &block),
            block,
            rows: self.rows.clone(),
            below: self.below,
            allowed: self.allowed.iter().map(|&row| mirrored_row(n, row)).collect(),
            rules: self.rules.clone(),
            centre_columns: mirrored_row(n, self.centre_columns),
        }
    }

    /// Sets the two (or one) centre columns that the rules refer to.
    pub(super) fn with_centre_columns(mut self, columns: u32) -> Self {
        self.centre_columns = columns;
        self
    }

    /// Attaches a rule to the open row at `position`.
    pub(super) fn set_rule(&mut self, position: usize, rule: CentreRule) {
        debug_assert!(position < self.below && self.rules[position] == CentreRule::None);
        self.rules[position] = rule;
    }

    /// Requires the open row at `position` to use one of the centre columns.
    pub(super) fn require_centre(&mut self, position: usize) {
        self.allowed[position] &= self.centre_columns;
    }

    /// Forbids the open row at `position` to use any of the centre columns.
    pub(super) fn forbid_centre(&mut self, position: usize) {
        self.allowed[position] &= !self.centre_columns;
    }

    /// Restricts the open row `row` to `columns`. A row that is not open stays as it is.
    pub(super) fn restrict(&mut self, row: usize, columns: u32) {
        if let Some(position) = self.rows.iter().position(|&open| open == row) {
            self.allowed[position] &= columns;
        }
    }

    /// Returns the problem that this case belongs to.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the piece to be placed.
    pub fn piece(&self) -> Piece {
        self.problem.piece()
    }

    /// Returns the board size.
    pub fn n(&self) -> usize {
        self.problem.n()
    }

    /// Returns the weight of each completion, in thirds of a solution.
    pub const fn weight(&self) -> Thirds {
        self.weight
    }

    /// Returns the pre-placed queens, in row order.
    pub fn block(&self) -> &[Square] {
        &self.block
    }

    /// Returns the open rows in the order in which they are filled.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Returns the number of open rows below the block; they come first, downward. The others go
    /// upward.
    pub const fn below(&self) -> usize {
        self.below
    }

    /// Returns the columns allowed for each open row, in filling order, before any open row is
    /// filled.
    pub fn allowed(&self) -> &[u32] {
        &self.allowed
    }

    /// Returns the rule of each open row, in filling order. Rows above the block have no rule.
    pub fn rules(&self) -> &[CentreRule] {
        &self.rules
    }

    /// Returns the columns that the rules refer to.
    pub const fn centre_columns(&self) -> u32 {
        self.centre_columns
    }

    /// Returns the state before any open row is filled.
    pub const fn start(&self) -> AttackState {
        self.start
    }

    /// Returns the columns available to the queen of the open row at `position`, with all earlier
    /// rows placed according to `state`. Correct for queens; other pieces attack differently (see
    /// `kernel::generic`).
    #[inline]
    pub fn available(&self, position: usize, state: AttackState) -> u32 {
        let free = self.allowed[position] & state.free(self.n(), self.rows[position]);
        match self.rules[position] {
            CentreRule::None => free,
            rule => self.apply_rule(rule, state, free),
        }
    }

    fn apply_rule(&self, rule: CentreRule, state: AttackState, free: u32) -> u32 {
        let centre_free = self.centre_columns & !state.columns;
        let take = match rule {
            CentreRule::None => false,
            CentreRule::TakeIfAnyFree => centre_free != 0,
            CentreRule::TakeIfBothFree => centre_free == self.centre_columns,
        };
        if take { free & self.centre_columns } else { free }
    }

    /// Returns the state with a queen in the open row at `position`, in the column of the single
    /// bit `queen`.
    #[inline]
    pub fn place(&self, position: usize, state: AttackState, queen: u32) -> AttackState {
        state.with_queen(self.n(), self.rows[position], queen)
    }

    /// Returns the first position above the block from which no row has a mask, or `rows().len()`
    /// if the last row has one.
    pub fn unmasked_from(&self) -> usize {
        let masked = self.allowed[self.below..].iter().rposition(|&a| a != full_row(self.n()));
        self.below + masked.map_or(0, |last| last + 1)
    }

    /// Returns whether `columns` (the column of the queen in each row) is a completion that this
    /// case counts, by the plain meaning of block, masks and rules. `columns` must be a solution of
    /// the problem. Tests compare the kernels with this.
    pub fn counts(&self, columns: &[usize]) -> bool {
        let is_centre = |col: usize| self.centre_columns >> col & 1 == 1;
        let mut centre_left = self.centre_columns.count_ones();
        centre_left -= self.block.iter().filter(|s| is_centre(s.col)).count() as u32;
        let open_rows_agree = (0..self.rows.len()).all(|k| {
            let col = columns[self.rows[k]];
            let rule_agrees = match self.rules[k] {
                CentreRule::None => true,
                CentreRule::TakeIfAnyFree => centre_left == 0 || is_centre(col),
                CentreRule::TakeIfBothFree => centre_left < 2 || is_centre(col),
            };
            centre_left -= u32::from(is_centre(col));
            rule_agrees && self.allowed[k] >> col & 1 == 1
        });
        open_rows_agree && self.block.iter().all(|s| columns[s.row] == s.col)
    }
}

/// Returns the state after placing `block`.
fn start_of(problem: &Problem, block: &[Square]) -> AttackState {
    let mut start = state_of(problem.n(), block);
    // Placed pieces take effect through the masks; the state records only their columns.
    start.columns |= problem.placed().iter().fold(0, |used, s| used | 1 << s.col);
    start
}

/// Returns the columns of `row` that the placed and blocked squares allow.
pub(super) fn allowed_columns(problem: &Problem, row: usize) -> u32 {
    let allowed = |&col: &usize| problem.allows(Square::new(row, col));
    (0..problem.n()).filter(allowed).fold(0, |mask, col| mask | 1 << col)
}
