//! One case of the symmetry argument, in the form that every kernel reads.

use std::sync::Arc;

use super::image::mirrored_row;
use super::state::{State, full_row, state_of};
use crate::board::{Piece, Problem, Square, first_attack};
use crate::tally::Thirds;

/// A condition on where the centre columns are used, attached to an open row below the block.
///
/// Kernels need to know only this much of the symmetry argument; everything else is a mask for each row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CentreRule {
    /// No condition.
    #[default]
    None,
    /// If a centre column is still free, the queen of this row stands in one.
    TakeIfAnyFree,
    /// If both centre columns are still free, the queen of this row stands in one of them.
    TakeIfBothFree,
}

/// A set of placements that are counted together with one weight.
///
/// The open rows are filled in a fixed order: downward from the block, then upward from it. Filling one
/// contiguous block of rows keeps every diagonal that can still matter inside a window of n columns, which
/// shifts by as many columns as the order advances rows.
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
    start: State,
}

impl SymmetryCase {
    /// The plan that places `block` (rows `top..=bottom` hold nothing else that is open) and fills the other
    /// open rows of `problem` downward and then upward. `None` if the block is not allowed.
    pub(super) fn new(
        problem: &Arc<Problem>,
        weight: Thirds,
        mut block: Vec<Square>,
        centre_rows: std::ops::Range<usize>,
    ) -> Option<Self> {
        let n = problem.n();
        if !block.iter().all(|&s| problem.allows(s)) || first_attack(problem.piece(), n, &block).is_some() {
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

    /// Its mirror image, a plan of the mirrored `problem`: the completions that it counts are the mirror images
    /// of those that this plan counts.
    #[must_use]
    pub(super) fn mirrored(&self, problem: &Arc<Problem>) -> Self {
        let n = self.n();
        // Queens of a block stand in different rows, so they stay in order.
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

    /// Names the two (or one) centre columns that the rules speak of.
    pub(super) fn with_centre_columns(mut self, columns: u32) -> Self {
        self.centre_columns = columns;
        self
    }

    /// Attaches a rule to the open row at `position`.
    pub(super) fn set_rule(&mut self, position: usize, rule: CentreRule) {
        debug_assert!(position < self.below && self.rules[position] == CentreRule::None);
        self.rules[position] = rule;
    }

    /// The open row at `position` uses one of the centre columns.
    pub(super) fn require_centre(&mut self, position: usize) {
        self.allowed[position] &= self.centre_columns;
    }

    /// The open row at `position` uses none of the centre columns.
    pub(super) fn forbid_centre(&mut self, position: usize) {
        self.allowed[position] &= !self.centre_columns;
    }

    /// The problem that this plan is a part of.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The piece that is placed.
    pub fn piece(&self) -> Piece {
        self.problem.piece()
    }

    /// The board size.
    pub fn n(&self) -> usize {
        self.problem.n()
    }

    /// Thirds of a solution that each completion stands for.
    pub const fn weight(&self) -> Thirds {
        self.weight
    }

    /// The queens that the plan places itself, in row order.
    pub fn block(&self) -> &[Square] {
        &self.block
    }

    /// The open rows in the order in which they are filled.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// How many of the open rows lie below the block; they come first, downward. The others go upward.
    pub const fn below(&self) -> usize {
        self.below
    }

    /// For each open row, in filling order: columns that are allowed before any open row is filled.
    pub fn allowed(&self) -> &[u32] {
        &self.allowed
    }

    /// For each open row, in filling order: its rule. Rows above the block have none.
    pub fn rules(&self) -> &[CentreRule] {
        &self.rules
    }

    /// The columns that the rules speak of.
    pub const fn centre_columns(&self) -> u32 {
        self.centre_columns
    }

    /// The state before any open row is filled.
    pub const fn start(&self) -> State {
        self.start
    }

    /// The columns in which the queen of the open row at `position` may stand, all earlier ones placed as
    /// `state` says. Right for queens; other pieces attack more (see `kernel::generic`).
    #[inline]
    pub fn available(&self, position: usize, state: State) -> u32 {
        let free = self.allowed[position] & state.free(self.n(), self.rows[position]);
        match self.rules[position] {
            CentreRule::None => free,
            rule => self.apply_rule(rule, state, free),
        }
    }

    fn apply_rule(&self, rule: CentreRule, state: State, free: u32) -> u32 {
        let centre_free = self.centre_columns & !state.columns;
        let take = match rule {
            CentreRule::None => false,
            CentreRule::TakeIfAnyFree => centre_free != 0,
            CentreRule::TakeIfBothFree => centre_free == self.centre_columns,
        };
        if take { free & self.centre_columns } else { free }
    }

    /// The state with a queen in the open row at `position`, in the column of the single bit `queen`.
    #[inline]
    pub fn place(&self, position: usize, state: State, queen: u32) -> State {
        state.with_queen(self.n(), self.rows[position], queen)
    }

    /// The first open row above the block from which on no row has a mask: `rows().len()` if there is none.
    pub fn unmasked_from(&self) -> usize {
        let masked = self.allowed[self.below..].iter().rposition(|&a| a != full_row(self.n()));
        self.below + masked.map_or(0, |last| last + 1)
    }

    /// Whether `columns` (the column of the queen in each row) is a completion that this plan counts: by the
    /// plain meaning of block, masks and rules, without any of the tricks above. The caller has made sure
    /// that `columns` is a solution of the problem. Tests hold the kernels against this.
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

/// The state after placing `block`.
fn start_of(problem: &Problem, block: &[Square]) -> State {
    let mut start = state_of(problem.n(), block);
    // Placed pieces act through the masks; only their columns are used up.
    start.columns |= problem.placed().iter().fold(0, |used, s| used | 1 << s.col);
    start
}

/// The columns of `row` in which a piece may stand as far as the placed and blocked squares say.
pub(super) fn allowed_columns(problem: &Problem, row: usize) -> u32 {
    let allowed = |&col: &usize| problem.allows(Square::new(row, col));
    (0..problem.n()).filter(allowed).fold(0, |mask, col| mask | 1 << col)
}
