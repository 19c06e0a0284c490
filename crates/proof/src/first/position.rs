//! The rest of a board under a refutation: the squares that can still have a queen, and the slack
//! of the dual bounds.
//!
//! A *line* is a row, a column or a diagonal of either direction. A square is *alive* until it is
//! shown that no completion has a queen there. Every change is recorded on a trail and undone by
//! [`Position::back_to`].
//!
//! A *dual bound* gives an integer multiplier y to each line (of any sign for rows and columns, not
//! negative for diagonals) such that the reduced cost y(row) + y(column) + y(diagonal) +
//! y(antidiagonal) of no alive square is negative. Over any completion, the reduced costs of its
//! queens and the weights y of the unused diagonals sum to exactly G = Σ y over all open rows, open
//! columns and diagonals with an alive square. So G < 0 refutes the position, a square whose
//! reduced cost exceeds G is eliminated, and a diagonal whose weight exceeds G must be used. A
//! queen subtracts her reduced cost from G, and a diagonal that can no longer be used subtracts its
//! weight.
//!
//! With the *knapsacks*, the least total weight of the unused diagonals of a direction (all alive
//! ones without the heaviest set that a completion can use) is subtracted from G at once and
//! becomes a credit: diagonals of this direction that can no longer be used reduce the credit
//! first, and G only when the credit is used up.

use std::cell::Cell;
use std::ops::ControlFlow;

use super::knapsack::{Heaviest, Item, Outcome, heaviest};
use super::refutation::Weightiest;

/// The numbers of a square's row, column, diagonal and antidiagonal.
type LinesOf = [usize; 4];

/// After this many failures of rows, the weights of all rows are halved; likewise for columns.
const HALVING: usize = 20_000;

/// The largest number of dual bounds kept: the first one and the most recent ones.
const BUDGETS: usize = 3;

pub(super) struct Position {
    n: usize,
    /// By square, row by row: its lines.
    lines: Vec<LinesOf>,
    /// By line: the squares that were alive when the position was created.
    squares: Vec<Vec<usize>>,
    /// By square: whether it is alive.
    alive: Vec<bool>,
    /// By line: the number of alive squares.
    count: Vec<usize>,
    /// By line: whether a queen stands on it.
    taken: Vec<bool>,
    budgets: Vec<DualBound>,
    /// Lines that have one alive square left.
    units: Vec<usize>,
    trail: Vec<Change>,
    refuted: bool,
    /// By row and column: one more than how often it ran out of squares.
    weights: Vec<usize>,
    /// The failures of rows and those of columns since their weights were last halved.
    failures: [usize; 2],
    /// Operations not yet reported, each about a nanosecond.
    operations: Cell<u64>,
}

#[derive(Clone, Copy)]
enum Change {
    Died(usize),
    Placed(usize),
}

struct DualBound {
    room: Slack,
    /// By square: its reduced cost.
    cost: Vec<i64>,
    /// By line: the weight of a diagonal that was usable when the dual bound was added.
    weight: Vec<i64>,
    /// The squares by descending reduced cost.
    squares: Vec<usize>,
    /// The diagonals of each direction with positive weight, by descending weight.
    diagonals: [Vec<usize>; 2],
}

/// The part of a dual bound that changes.
#[derive(Clone, Copy, Default)]
struct Slack {
    /// The current slack: the remaining part of G.
    left: i64,
    /// The credit of each direction: the weight of unused diagonals that has already been
    /// subtracted from G.
    credit: [i64; 2],
    /// The number of squares whose reduced cost exceeds the slack.
    dear: usize,
    /// The number of diagonals of each direction whose weight exceeds the slack plus the credit.
    heavy: [usize; 2],
}

/// A mark to which a position can be restored.
pub(super) struct Mark {
    trail: usize,
    rooms: [Slack; BUDGETS],
}

/// A dual bound displaced by another one.
pub(super) struct Displaced(Option<DualBound>);

impl Position {
    /// Creates the position with queens on the first rows of the board of size `n`, which do not
    /// attack each other.
    pub(super) fn new(n: usize, prefix: &[usize]) -> Self {
        let lines: Vec<LinesOf> = (0..n * n)
            .map(|square| {
                let (row, col) = (square / n, square % n);
                [row, n + col, 2 * n + (col + n - 1 - row), 4 * n - 1 + (row + col)]
            })
            .collect();
        let mut taken = vec![false; 6 * n - 2];
        for (row, col) in prefix.iter().enumerate() {
            for line in lines[row * n + col] {
                taken[line] = true;
            }
        }
        let alive: Vec<bool> =
            lines.iter().map(|lines| lines.iter().all(|&line| !taken[line])).collect();
        let mut squares = vec![Vec::new(); taken.len()];
        for square in (0..n * n).filter(|&square| alive[square]) {
            for line in lines[square] {
                squares[line].push(square);
            }
        }
        let count: Vec<usize> = squares.iter().map(Vec::len).collect();
        let open = (0..2 * n).filter(|&line| !taken[line]);
        let refuted = open.clone().any(|line| count[line] == 0);
        let units = open.filter(|&line| count[line] == 1).collect();
        let (budgets, trail) = (Vec::new(), Vec::new());
        let (weights, failures) = (vec![1; 2 * n], [0; 2]);
        let operations = Cell::new(1000 + 40 * (n * n) as u64);
        Self {
            n,
            lines,
            squares,
            alive,
            count,
            taken,
            budgets,
            units,
            trail,
            refuted,
            weights,
            failures,
            operations,
        }
    }

    /// Returns the operations since the last call.
    pub(super) fn operations(&self) -> u64 {
        self.operations.take()
    }

    fn spend(&self, operations: usize) {
        self.operations.set(self.operations.get().saturating_add(operations as u64));
    }

    pub(super) fn mark(&self) -> Mark {
        let mut rooms = [Slack::default(); BUDGETS];
        rooms.iter_mut().zip(&self.budgets).for_each(|(room, dual_bound)| *room = dual_bound.room);
        Mark { trail: self.trail.len(), rooms }
    }

    /// Undoes all changes since `mark`. The dual bounds must be the same as then.
    pub(super) fn back_to(&mut self, mark: &Mark) {
        for change in self.trail.drain(mark.trail..).rev() {
            match change {
                Change::Died(square) => {
                    self.alive[square] = true;
                    self.lines[square].iter().for_each(|&line| self.count[line] += 1);
                }
                Change::Placed(square) => {
                    self.lines[square].iter().for_each(|&line| self.taken[line] = false);
                }
            }
        }
        self.budgets
            .iter_mut()
            .zip(mark.rooms)
            .for_each(|(dual_bound, room)| dual_bound.room = room);
        self.units.clear();
        self.refuted = false;
    }

    /// Returns the alive squares of a line without a queen; `None` if the line has a queen or does
    /// not exist.
    pub(super) fn choices(&self, line: usize) -> Option<Vec<usize>> {
        let open = self.taken.get(line).is_some_and(|taken| !taken);
        self.spend(50 + self.squares.get(line).map_or(0, Vec::len));
        open.then(|| {
            self.squares[line].iter().copied().filter(|&square| self.alive[square]).collect()
        })
    }

    /// Returns the square of the queen on a line, if she was placed after the position was created.
    pub(super) fn queen_on(&self, line: usize) -> Option<usize> {
        self.spend(2 * self.trail.len());
        self.trail.iter().find_map(|change| match *change {
            Change::Placed(square) if self.lines[square].contains(&line) => Some(square),
            _ => None,
        })
    }

    /// Returns whether every completion has a queen on the open line. The weight of a diagonal
    /// without an alive square has already been subtracted from the slack.
    pub(super) fn is_mandatory(&self, line: usize) -> bool {
        let n = self.n;
        line < 2 * n
            || self.count[line] > 0
                && self.budgets.iter().any(|dual_bound| dual_bound.needs(line, direction(n, line)))
    }

    /// Returns an open mandatory line with the fewest choices; `None` if the board is full.
    pub(super) fn smallest_line(&self) -> Option<usize> {
        let columns_and_rows = 0..2 * self.n;
        self.spend(8 * self.n);
        columns_and_rows
            .chain(self.heavy())
            .filter(|&line| self.is_open(line))
            .min_by_key(|&line| self.count[line])
    }

    /// Returns a column or mandatory diagonal with at most two choices; otherwise the row or column
    /// with the smallest ratio of choices to weight, since a line that ran out of squares before is
    /// likely to do so again; `None` if the board is full. Any rule is sound, since every open row
    /// or column must get a queen.
    pub(super) fn weightiest_line(&self, of: &Weightiest) -> Option<usize> {
        let n = self.n;
        // With blocks, the squares of columns are examined too.
        self.spend(16 * n + if of.columns && !of.blocks.is_empty() { n * n / 4 } else { 0 });
        let short = (n..2 * n)
            .chain(self.heavy())
            .find(|&line| self.is_open(line) && self.count[line] <= 2);
        if short.is_some() {
            return short;
        }
        let open_rows =
            |block: u128| (0..n).filter(move |&row| block >> row & 1 == 1 && self.is_open(row));
        let block = of.blocks.iter().copied().find(|&block| open_rows(block).next().is_some());
        let within = |column: usize| {
            block.is_none_or(|block| {
                self.alive_on(column).all(|square| block >> (square / n) & 1 == 1)
            })
        };
        let columns = if of.columns { n..2 * n } else { 0..0 };
        let columns = columns.filter(|&column| self.is_open(column) && within(column));
        open_rows(block.unwrap_or(u128::MAX)).chain(columns).min_by(|&a, &b| {
            (self.count[a] * self.weights[b]).cmp(&(self.count[b] * self.weights[a]))
        })
    }

    /// Returns whether a line has no queen but has alive squares.
    fn is_open(&self, line: usize) -> bool {
        !self.taken[line] && self.count[line] > 0
    }

    /// Returns the diagonals that must be used, are used, or can no longer be used.
    fn heavy(&self) -> impl Iterator<Item = usize> {
        self.budgets.iter().flat_map(DualBound::heavy_diagonals)
    }

    /// Sets the weights of rows and columns to the learned ones, if there are any.
    pub(super) fn learn(&mut self, of: &Weightiest) {
        self.weights
            .iter_mut()
            .zip(&of.learned)
            .for_each(|(weight, &learned)| *weight = learned.max(1));
    }

    /// Counts a failure of a row or column that ran out of squares.
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

    /// Places a queen on an alive square.
    pub(super) fn place(&mut self, square: usize) {
        for dual_bound in &mut self.budgets {
            dual_bound.room.left -= dual_bound.cost[square];
        }
        self.trail.push(Change::Placed(square));
        for line in self.lines[square] {
            self.taken[line] = true;
        }
        for line in self.lines[square] {
            self.spend(20 + self.squares[line].len());
            for i in 0..self.squares[line].len() {
                let other = self.squares[line][i];
                if self.alive[other] {
                    self.kill(other);
                }
            }
        }
    }

    /// Returns whether the square is still alive.
    pub(super) fn is_alive(&self, square: usize) -> bool {
        self.alive[square]
    }

    /// Eliminates an alive square.
    pub(super) fn kill(&mut self, square: usize) {
        self.alive[square] = false;
        self.trail.push(Change::Died(square));
        // Includes the cost of restoring it.
        self.spend(20);
        for line in self.lines[square] {
            self.count[line] -= 1;
            if self.taken[line] {
                continue;
            }
            match self.count[line] {
                0 if line < 2 * self.n => {
                    self.refuted = true;
                    self.fail(line);
                }
                0 => {
                    let direction = direction(self.n, line);
                    self.budgets.iter_mut().for_each(|dual_bound| dual_bound.lose(line, direction));
                }
                1 => self.units.push(line),
                _ => {}
            }
        }
    }

    /// Propagates until nothing changes. Returns whether the position is refuted.
    pub(super) fn conclude(&mut self) -> bool {
        loop {
            while self.filter().is_continue() {}
            if self.refuted {
                return true;
            }
            let Some(line) = self.units.pop() else { return false };
            self.spend(20);
            if !self.taken[line] && self.count[line] == 1 && self.is_mandatory(line) {
                let last = self.squares[line].iter().copied().find(|&square| self.alive[square]);
                self.place(last.expect("one is alive"));
            }
        }
    }

    /// Eliminates squares whose reduced cost exceeds the slack of a dual bound. Returns `Continue`
    /// if anything changed.
    fn filter(&mut self) -> ControlFlow<()> {
        let mut changed = ControlFlow::Break(());
        for i in 0..self.budgets.len() {
            if self.budgets[i].room.left < 0 {
                self.refuted = true;
            }
            while let Some(square) = self.budgets[i].next_dear_square() {
                self.spend(4);
                if self.refuted {
                    return ControlFlow::Break(());
                }
                if self.alive[square] {
                    self.kill(square);
                    changed = ControlFlow::Continue(());
                }
            }
            while let Some(diagonal) = self.budgets[i].next_heavy_diagonal() {
                self.spend(4);
                if self.count[diagonal] == 1 {
                    self.units.push(diagonal);
                }
            }
        }
        changed
    }

    /// Adds the dual bound of `y` (by line, without the rows).
    ///
    /// With `knapsack` there is less slack, but a credit; and squares are eliminated whose reduced
    /// cost exceeds the slack even if the heaviest sets that contain their two diagonals are used.
    pub(super) fn add_budget(&mut self, y: &[i64], knapsack: bool) -> Displaced {
        let n = self.n;
        let y = self.repaired(y);
        self.spend(40 * n * n);
        let cost: Vec<i64> = (0..n * n).map(|square| self.cost(&y, square)).collect();
        let usable = |line: &usize| !self.taken[*line] && self.count[*line] > 0;
        let weight: Vec<i64> = (0..y.len())
            .map(|line| if line >= 2 * n && usable(&line) { y[line] } else { 0 })
            .collect();
        let lines: i64 = y[..2 * n].iter().sum();
        let weights = [&weight[2 * n..4 * n - 1], &weight[4 * n - 1..]]
            .map(|weights| weights.iter().sum::<i64>());
        let mut room = Slack { left: lines + weights[0] + weights[1], ..Slack::default() };
        if knapsack {
            match self.heaviest_diagonals(&y) {
                [Outcome::NoSet, _] | [_, Outcome::NoSet] => self.refuted = true,
                [Outcome::Heaviest(falling), Outcome::Heaviest(rising)] => {
                    let dead = |&square: &usize| {
                        let [_, _, diagonal, antidiagonal] = self.lines[square];
                        let (diagonal, antidiagonal) =
                            (diagonal - 2 * n, antidiagonal - (4 * n - 1));
                        let most = falling.with[diagonal].zip(rising.with[antidiagonal]);
                        most.is_none_or(|(falling, rising)| lines + falling + rising < cost[square])
                    };
                    let dead: Vec<usize> = self.all_alive().filter(dead).collect();
                    room.left = lines + falling.any + rising.any;
                    room.credit = [weights[0] - falling.any, weights[1] - rising.any];
                    dead.into_iter().for_each(|square| self.kill(square));
                }
                // The tables would be too large: use the plain dual bound.
                _ => {}
            }
        }
        let mut squares: Vec<usize> = self.all_alive().collect();
        squares.sort_by_key(|&square| std::cmp::Reverse(cost[square]));
        let diagonals = [2 * n..4 * n - 1, 4 * n - 1..y.len()].map(|lines| {
            let mut diagonals: Vec<usize> = lines.filter(|&line| weight[line] > 0).collect();
            diagonals.sort_by_key(|&line| std::cmp::Reverse(weight[line]));
            diagonals
        });
        let displaced = (self.budgets.len() == BUDGETS).then(|| self.budgets.remove(1));
        let mut dual_bound = DualBound { room, cost, weight, squares, diagonals };
        // Subtract the diagonals that lost all squares to the knapsacks.
        for line in (2 * n..y.len()).filter(|&line| !self.taken[line] && self.count[line] == 0) {
            dual_bound.lose(line, direction(n, line));
        }
        self.budgets.push(dual_bound);
        Displaced(displaced)
    }

    /// Returns whether the dual bound of `y` with the knapsacks has negative slack.
    pub(super) fn is_refuted_by(&self, y: &[i64]) -> bool {
        let y = self.repaired(y);
        let lines: i64 = y[..2 * self.n].iter().sum();
        match self.heaviest_diagonals(&y) {
            [Outcome::NoSet, _] | [_, Outcome::NoSet] => true,
            [Outcome::Heaviest(falling), Outcome::Heaviest(rising)] => {
                lines + falling.any + rising.any < 0
            }
            _ => false,
        }
    }

    /// Returns valid multipliers of all lines: those of the rows are the least for which no reduced
    /// cost is negative, then those of the columns are lowered as far as the reduced costs allow.
    fn repaired(&self, y: &[i64]) -> Vec<i64> {
        let n = self.n;
        self.spend(8 * n * n);
        let mut y: Vec<i64> = std::iter::repeat_n(0, n).chain(y.iter().copied()).collect();
        for line in 0..2 * n {
            if self.taken[line] {
                y[line] = 0;
            } else if let Some(least) =
                self.alive_on(line).map(|square| self.cost(&y, square)).min()
            {
                y[line] -= least;
            }
        }
        y
    }

    /// Removes the last dual bound and restores the displaced one. Must be called before going back
    /// to the mark.
    pub(super) fn remove_budget(&mut self, displaced: Displaced) {
        self.budgets.pop();
        if let Some(dual_bound) = displaced.0 {
            self.budgets.insert(1, dual_bound);
        }
    }

    /// Returns the heaviest sets of diagonals of each direction that a completion can use, under
    /// the weights `y`. Their items are all diagonals of that direction.
    fn heaviest_diagonals(&self, y: &[i64]) -> [Outcome; 2] {
        let n = self.n;
        let open = |lines: std::ops::Range<usize>| lines.filter(|&line| !self.taken[line]);
        let rows: i64 = open(0..n).map(|row| row as i64).sum();
        let columns: i64 = open(n..2 * n).map(|column| (column - n) as i64).sum();
        let count = open(0..n).count();
        let heaviest_of = |first: usize, least: i64, sum: i64| {
            let usable = |line: &usize| !self.taken[*line] && self.count[*line] > 0;
            let lines: Vec<usize> = (first..first + 2 * n - 1).filter(usable).collect();
            let item =
                |&line: &usize| Item { place: (line - first) as i64 + least, weight: y[line] };
            let items: Vec<Item> = lines.iter().map(item).collect();
            let (outcome, operations) = heaviest(&items, count, sum);
            self.spend(operations);
            match outcome {
                Outcome::Heaviest(found) => {
                    let mut with = vec![None; 2 * n - 1];
                    lines
                        .iter()
                        .zip(found.with)
                        .for_each(|(&line, weight)| with[line - first] = weight);
                    Outcome::Heaviest(Heaviest { with, ..found })
                }
                other => other,
            }
        };
        let least = 1 - n as i64;
        [heaviest_of(2 * n, least, columns - rows), heaviest_of(4 * n - 1, 0, rows + columns)]
    }

    fn all_alive(&self) -> impl Iterator<Item = usize> {
        (0..self.alive.len()).filter(|&square| self.alive[square])
    }

    fn alive_on(&self, line: usize) -> impl Iterator<Item = usize> {
        self.squares[line].iter().copied().filter(|&square| self.alive[square])
    }

    fn cost(&self, y: &[i64], square: usize) -> i64 {
        self.lines[square].iter().map(|&line| y[line]).sum()
    }
}

/// Returns 0 for a diagonal, 1 for an antidiagonal.
fn direction(n: usize, line: usize) -> usize {
    usize::from(line >= 4 * n - 1)
}

impl DualBound {
    /// Returns the next square whose reduced cost exceeds the slack.
    fn next_dear_square(&mut self) -> Option<usize> {
        let square = *self.squares.get(self.room.dear)?;
        (self.cost[square] > self.room.left).then(|| {
            self.room.dear += 1;
            square
        })
    }

    /// Returns the next diagonal that must be used.
    fn next_heavy_diagonal(&mut self) -> Option<usize> {
        for direction in [0, 1] {
            let next = self.diagonals[direction].get(self.room.heavy[direction]);
            if let Some(&line) = next.filter(|&&line| self.needs(line, direction)) {
                self.room.heavy[direction] += 1;
                return Some(line);
            }
        }
        None
    }

    /// Returns the diagonals that must be used, are used, or can no longer be used.
    fn heavy_diagonals(&self) -> impl Iterator<Item = usize> {
        let [falling, rising] = &self.diagonals;
        let [heavy_falling, heavy_rising] = self.room.heavy;
        falling[..heavy_falling].iter().chain(&rising[..heavy_rising]).copied()
    }

    /// Returns whether the slack does not allow a diagonal to be unused.
    fn needs(&self, line: usize, direction: usize) -> bool {
        self.weight[line] > self.room.left + self.room.credit[direction]
    }

    /// Subtracts the weight of a diagonal that can no longer be used.
    fn lose(&mut self, line: usize, direction: usize) {
        let credit = &mut self.room.credit[direction];
        *credit -= self.weight[line];
        if *credit < 0 {
            self.room.left += *credit;
            *credit = 0;
        }
    }
}
