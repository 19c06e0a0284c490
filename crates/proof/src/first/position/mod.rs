//! The position that a refutation is about: the squares that can still have a queen, and the slack
//! of the dual bounds.
//!
//! A *line* is a row, a column or a diagonal of either direction. A square is a *candidate* until
//! it is shown that no completion has a queen there. Every change is recorded on a trail, and
//! [`Position::backtrack_to`] undoes it.
//!
//! [`dual_bound`] says what a dual bound is, and how it eliminates squares; `sets.rs` keeps the
//! listed sets of diagonals.

mod dual_bound;
mod line;
mod sets;

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use super::diagonal_sets::{AssumedDiagonals, DiagonalSets};
use super::knapsack::Tables;
use super::refutation::Weighted;
pub(super) use dual_bound::Displaced;
use dual_bound::{DualBound, Slack, direction};
use line::Line;
pub(super) use sets::Kept;

/// The numbers of a square's row, column, diagonal and antidiagonal.
type LinesOf = [u16; 4];

/// After this many failures of rows, the weights of all rows are halved; likewise for columns.
const HALVING: usize = 20_000;

/// The largest number of dual bounds kept: the first one and the most recent ones.
const MOST_DUAL_BOUNDS: usize = 3;

/// A board with queens, and what follows from them by propagation.
pub(crate) struct Position {
    n: usize,
    lines: Vec<Line>,
    /// By square, row by row: its lines.
    lines_of: Vec<LinesOf>,
    dual_bounds: Vec<DualBound>,
    /// The sets of diagonals, if they are listed, and the cases that are assumed.
    sets: Option<DiagonalSets>,
    assumed: [AssumedDiagonals; 2],
    /// Lines that have one candidate left.
    units: Vec<usize>,
    trail: Vec<Change>,
    refuted: bool,
    /// By row and column: one more than how often it ran out of candidates.
    weights: Vec<usize>,
    /// The failures of rows and those of columns since their weights were last halved.
    failures: [usize; 2],
    /// Operations not yet reported, each up to a nanosecond.
    operations: Cell<u64>,
    /// Memory for the knapsacks.
    tables: RefCell<Tables>,
}

/// A change on the trail, with its square.
#[derive(Clone, Copy)]
enum Change {
    /// The square was eliminated, but not by a queen.
    Eliminated(usize),
    /// A queen was placed and eliminated the candidates on its lines.
    Placed(usize),
}

/// A mark to which a position can be restored.
pub(super) struct TrailMark {
    trail: usize,
    slacks: [Slack; MOST_DUAL_BOUNDS],
}

impl Position {
    /// Creates the position with queens on the first rows of the board of size `n`, which do not
    /// attack each other.
    pub(super) fn new(n: usize, prefix: &[usize]) -> Self {
        let lines_of = (0..n * n).map(|square| lines_at(n, square / n, square % n));
        let mut lines = vec![Line::default(); 6 * n - 2];
        for (row, col) in prefix.iter().enumerate() {
            for line in lines_of.clone().nth(row * n + col).into_iter().flatten() {
                lines[line].place_queen();
            }
        }
        for (square, of) in lines_of.clone().enumerate() {
            if of.iter().all(|&line| !lines[line].is_taken()) {
                let candidate = |line: usize| if line < n { square % n } else { square / n };
                of.iter().for_each(|&line| lines[line].insert(candidate(line)));
            }
        }
        let open = (0..2 * n).filter(|&line| !lines[line].is_taken());
        let refuted = open.clone().any(|line| lines[line].count() == 0);
        let units = open.filter(|&line| lines[line].count() == 1).collect();
        let lines_of = lines_of.map(|of| of.map(|line| line as u16)).collect();
        let (dual_bounds, trail) = (Vec::new(), Vec::new());
        let (weights, failures) = (vec![1; 2 * n], [0; 2]);
        let operations = Cell::new(1000 + 40 * (n * n) as u64);
        Self {
            n,
            lines,
            lines_of,
            dual_bounds,
            sets: None,
            assumed: [AssumedDiagonals::NONE; 2],
            units,
            trail,
            refuted,
            weights,
            failures,
            operations,
            tables: RefCell::default(),
        }
    }

    /// Returns the board size.
    pub(crate) const fn n(&self) -> usize {
        self.n
    }

    /// Returns whether a queen stands on the line.
    pub(crate) fn is_taken(&self, line: usize) -> bool {
        self.lines[line].is_taken()
    }

    /// Returns whether a queen can still stand on the line.
    pub(crate) fn is_usable(&self, line: usize) -> bool {
        self.lines[line].is_usable()
    }

    /// Returns the candidates.
    pub(crate) fn candidate_squares(&self) -> impl Iterator<Item = usize> {
        self.candidates()
    }

    /// Returns the operations since the last call.
    pub(super) fn operations(&self) -> u64 {
        self.operations.take()
    }

    /// Counts operations, to be reported later.
    fn spend(&self, operations: usize) {
        self.operations.set(self.operations.get().saturating_add(operations as u64));
    }

    /// Returns a mark of the current state, for [`Self::backtrack_to`].
    pub(super) fn mark(&self) -> TrailMark {
        let mut slacks = [Slack::default(); MOST_DUAL_BOUNDS];
        slacks
            .iter_mut()
            .zip(&self.dual_bounds)
            .for_each(|(slack, dual_bound)| *slack = dual_bound.slack);
        TrailMark { trail: self.trail.len(), slacks }
    }

    /// Undoes all changes since `mark`. The dual bounds must be the same as then.
    pub(super) fn backtrack_to(&mut self, mark: &TrailMark) {
        while self.trail.len() > mark.trail
            && let Some(change) = self.trail.pop()
        {
            match change {
                Change::Eliminated(square) => {
                    let [row, column, diagonal, antidiagonal] =
                        self.lines_of[square].map(usize::from);
                    self.lines[row].insert(column - self.n);
                    self.lines[column].insert(row);
                    self.lines[diagonal].insert(row);
                    self.lines[antidiagonal].insert(row);
                }
                Change::Placed(square) => {
                    self.for_each_attacked(square, |position, line, candidate| {
                        position.lines[line].insert(candidate);
                    });
                    for line in self.lines_of[square] {
                        self.lines[usize::from(line)].remove_queen();
                    }
                }
            }
        }
        self.dual_bounds
            .iter_mut()
            .zip(mark.slacks)
            .for_each(|(dual_bound, slack)| dual_bound.slack = slack);
        self.units.clear();
        self.refuted = false;
    }

    /// Returns the candidates of a line without a queen; `None` if the line has a queen or does
    /// not exist.
    pub(super) fn choices(&self, line: usize) -> Option<Vec<usize>> {
        self.spend(50 + self.lines.get(line).map_or(0, Line::count));
        let open = self.lines.get(line).is_some_and(|line| !line.is_taken());
        open.then(|| self.candidates_on(line).collect())
    }

    /// Returns the square of the queen on a line, if it was placed after the position was created.
    pub(super) fn queen_on(&self, line: usize) -> Option<usize> {
        self.spend(2 * self.trail.len());
        self.trail.iter().find_map(|change| match *change {
            Change::Placed(square)
                if self.lines_of[square].iter().any(|&of| usize::from(of) == line) =>
            {
                Some(square)
            }
            _ => None,
        })
    }

    /// Returns whether every completion has a queen on the open line. The weight of a diagonal
    /// without a candidate has already been subtracted from the slack.
    pub(super) fn is_mandatory(&self, line: usize) -> bool {
        let n = self.n;
        line < 2 * n
            || self.lines[line].count() > 0
                && self
                    .dual_bounds
                    .iter()
                    .any(|dual_bound| dual_bound.requires(line, direction(n, line)))
    }

    /// Returns an open mandatory line with the fewest choices; `None` if the board is full.
    pub(super) fn smallest_line(&self) -> Option<usize> {
        let columns_and_rows = 0..2 * self.n;
        self.spend(8 * self.n);
        columns_and_rows
            .chain(self.mandatory_diagonals())
            .filter(|&line| self.is_usable(line))
            .min_by_key(|&line| self.lines[line].count())
    }

    /// Returns a column or mandatory diagonal with at most two choices; otherwise the row or column
    /// with the smallest ratio of choices to weight, since a line that ran out of candidates before
    /// is likely to do so again; `None` if the board is full. Any rule is sound, since every open
    /// row or column must get a queen.
    pub(super) fn weighted_line(&self, of: &Weighted) -> Option<usize> {
        let n = self.n;
        // With blocks, the squares of columns are examined too.
        self.spend(16 * n + if of.columns && !of.blocks.is_empty() { n * n / 4 } else { 0 });
        let short = (n..2 * n)
            .chain(self.mandatory_diagonals())
            .find(|&line| self.is_usable(line) && self.lines[line].count() <= 2);
        if short.is_some() {
            return short;
        }
        let open_rows =
            |block: u128| (0..n).filter(move |&row| block >> row & 1 == 1 && self.is_usable(row));
        let block = of.blocks.iter().copied().find(|&block| open_rows(block).next().is_some());
        let within =
            |column: usize| block.is_none_or(|block| self.lines[column].candidates() & !block == 0);
        let columns = if of.columns { n..2 * n } else { 0..0 };
        let columns = columns.filter(|&column| self.is_usable(column) && within(column));
        open_rows(block.unwrap_or(u128::MAX)).chain(columns).min_by(|&a, &b| {
            let ratio = |line: usize, other: usize| self.lines[line].count() * self.weights[other];
            ratio(a, b).cmp(&ratio(b, a))
        })
    }

    /// Returns the lines without a queen that have candidates.
    pub(super) fn open_lines(&self) -> impl Iterator<Item = usize> {
        self.spend(12 * self.n);
        (0..self.lines.len()).filter(|&line| self.is_usable(line))
    }

    /// Returns whether all rows of a block, which has a bit per row, have queens.
    pub(super) fn is_complete(&self, block: u128) -> bool {
        self.spend(self.n);
        (0..self.n).all(|row| block >> row & 1 == 0 || self.lines[row].is_taken())
    }

    /// Returns the diagonals that must be used, are used, or can no longer be used.
    fn mandatory_diagonals(&self) -> impl Iterator<Item = usize> {
        self.dual_bounds.iter().flat_map(DualBound::mandatory_diagonals)
    }

    /// Sets the weights of rows and columns to the initial ones, if there are any.
    pub(super) fn set_weights(&mut self, of: &Weighted) {
        self.weights
            .iter_mut()
            .zip(&of.initial)
            .for_each(|(weight, &initial)| *weight = initial.max(1));
    }

    /// Counts a failure of a row or column that ran out of candidates.
    fn fail(&mut self, line: usize) {
        self.weights[line] += 1;
        let kind = line / self.n;
        self.failures[kind] += 1;
        if self.failures[kind] == HALVING {
            self.failures[kind] = 0;
            let all = &mut self.weights[kind * self.n..][..self.n];
            all.iter_mut().for_each(|weight| *weight = weight.div_ceil(2));
        }
    }

    /// Places a queen on a candidate square.
    pub(super) fn place(&mut self, square: usize) {
        for dual_bound in &mut self.dual_bounds {
            dual_bound.slack.value -= dual_bound.cost[square];
        }
        self.trail.push(Change::Placed(square));
        let mut candidates = 0;
        for line in self.lines_of[square].map(usize::from) {
            candidates += self.lines[line].count();
            self.lines[line].place_queen();
        }
        // 20 for each line and 21 for each candidate, which includes the cost of restoring it. The
        // square itself is on four lines.
        self.spend(80 + 21 * (candidates - 3));
        self.for_each_attacked(square, Self::eliminate_on);
    }

    /// Calls `change` for each other candidate on the lines of a square that has a queen, with each
    /// line of the candidate that the queen is not on, and the candidate's bit on this line.
    #[inline]
    fn for_each_attacked(
        &mut self,
        square: usize,
        mut change: impl FnMut(&mut Self, usize, usize),
    ) {
        let n = self.n;
        let (row, col) = (square / n, square % n);
        let [_, column, diagonal, antidiagonal] = lines_at(n, row, col);
        let others = |position: &Self, line: usize, own: usize| {
            bits(position.lines[line].kept_candidates() & !(1 << own))
        };
        for c in others(self, row, col) {
            let [_, column, diagonal, antidiagonal] = lines_at(n, row, c);
            [column, diagonal, antidiagonal].into_iter().for_each(|line| change(self, line, row));
        }
        for r in others(self, column, row) {
            let [_, _, diagonal, antidiagonal] = lines_at(n, r, col);
            change(self, r, col);
            [diagonal, antidiagonal].into_iter().for_each(|line| change(self, line, r));
        }
        for r in others(self, diagonal, row) {
            let c = col + r - row;
            let [_, column, _, antidiagonal] = lines_at(n, r, c);
            change(self, r, c);
            [column, antidiagonal].into_iter().for_each(|line| change(self, line, r));
        }
        for r in others(self, antidiagonal, row) {
            let c = col + row - r;
            let [_, column, diagonal, _] = lines_at(n, r, c);
            change(self, r, c);
            [column, diagonal].into_iter().for_each(|line| change(self, line, r));
        }
    }

    /// Returns whether the square is a candidate.
    pub(super) fn is_candidate(&self, square: usize) -> bool {
        let [row, column, ..] = self.lines_of[square].map(usize::from);
        self.lines[row].has(column - self.n)
    }

    /// Eliminates a candidate square.
    pub(super) fn eliminate(&mut self, square: usize) {
        self.trail.push(Change::Eliminated(square));
        // Includes the cost of restoring it.
        self.spend(20);
        let [row, column, diagonal, antidiagonal] = self.lines_of[square].map(usize::from);
        self.eliminate_on(row, column - self.n);
        self.eliminate_on(column, row);
        self.eliminate_on(diagonal, row);
        self.eliminate_on(antidiagonal, row);
    }

    /// Eliminates a candidate from the candidates of one of its lines.
    #[inline]
    fn eliminate_on(&mut self, line: usize, candidate: usize) {
        if self.lines[line].remove(candidate) {
            self.note_few_candidates(line);
        }
    }

    /// Takes note of a line that has at most one candidate left, and no queen. Out of line, so that
    /// `eliminate_on` is inlined: a check takes 8 % less time.
    #[inline(never)]
    fn note_few_candidates(&mut self, line: usize) {
        if self.lines[line].count() == 1 {
            self.units.push(line);
        } else if line < 2 * self.n {
            self.refuted = true;
            self.fail(line);
        } else {
            let direction = direction(self.n, line);
            let dual_bounds = self.dual_bounds.iter_mut();
            dual_bounds.for_each(|dual_bound| dual_bound.mark_unusable(line, direction));
        }
    }

    /// Propagates until nothing changes. Returns whether the position is refuted.
    pub(super) fn propagate(&mut self) -> bool {
        loop {
            while self.fix_by_reduced_cost().is_continue() {}
            if self.refuted {
                return true;
            }
            let Some(line) = self.units.pop() else { return false };
            self.spend(20);
            let is_unit = self.is_usable(line) && self.lines[line].count() == 1;
            if is_unit && self.is_mandatory(line) {
                let last = self.candidates_on(line).next();
                self.place(last.expect("the line has one candidate"));
            }
        }
    }

    /// Eliminates squares whose reduced cost exceeds the slack of a dual bound. Returns `Continue`
    /// if anything changed.
    fn fix_by_reduced_cost(&mut self) -> ControlFlow<()> {
        let mut changed = ControlFlow::Break(());
        for i in 0..self.dual_bounds.len() {
            if self.dual_bounds[i].slack.value < 0 {
                self.refuted = true;
            }
            while let Some(square) = self.dual_bounds[i].next_costly_square() {
                self.spend(4);
                if self.refuted {
                    return ControlFlow::Break(());
                }
                if self.is_candidate(square) {
                    self.eliminate(square);
                    changed = ControlFlow::Continue(());
                }
            }
            while let Some(diagonal) = self.dual_bounds[i].next_mandatory_diagonal() {
                self.spend(4);
                if self.lines[diagonal].count() == 1 {
                    self.units.push(diagonal);
                }
            }
        }
        changed
    }

    /// Returns the candidates in ascending order.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        (0..self.n).flat_map(|row| self.candidates_on(row))
    }

    /// Returns the candidates on a line in ascending order.
    fn candidates_on(&self, line: usize) -> impl Iterator<Item = usize> + use<> {
        self.squares_of(line, self.lines[line].candidates())
    }

    /// Returns the squares of a line that are represented by the bits of a set, in ascending order.
    fn squares_of(&self, line: usize, set: u128) -> impl Iterator<Item = usize> + use<> {
        let n = self.n;
        // The square of bit 0, which is not on the board for some diagonals, and the distance of
        // the squares of two successive bits.
        let (first, distance) = match line {
            _ if line < n => (line * n, 1),
            _ if line < 2 * n => (line - n, n),
            _ if line < 4 * n - 1 => ((line - 2 * n).wrapping_sub(n - 1), n + 1),
            _ => (line - (4 * n - 1), n - 1),
        };
        bits(set).map(move |bit| first.wrapping_add(bit * distance))
    }

    fn cost(&self, y: &[i64], square: usize) -> i64 {
        self.lines_of[square].iter().map(|&line| y[usize::from(line)]).sum()
    }
}

/// Returns the numbers of the row, column, diagonal and antidiagonal of a square.
const fn lines_at(n: usize, row: usize, col: usize) -> [usize; 4] {
    [row, n + col, 2 * n + (col + n - 1 - row), 4 * n - 1 + (row + col)]
}

/// Returns the bits of a set in ascending order.
fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros() as usize;
        (set != 0).then(|| {
            set &= set - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests;
