//! The board of the checker: open squares, queens, and the propagation of what they force.

use super::prices;
use crate::board::{Norm, Square};
use crate::{Meter, ProofError};

/// A change that can be undone.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Closed(usize),
    Placed(usize),
    Filled(usize),
}

/// A board on which queens are placed.
pub(crate) struct Board {
    pub(super) n: usize,
    pub(super) turning: bool,
    /// By square: whether a queen may stand there.
    pub(super) open: Vec<bool>,
    /// The first square of each square's orbit.
    pub(super) first_of: Vec<usize>,
    pub(super) level_of: Vec<u16>,
    /// The row, column, diagonal and antidiagonal of each square, in 16 bits each because they are
    /// read very often.
    lines_of: Vec<[u16; 4]>,
    /// By level, in ascending order: the squares that are not closed for good. The vectors below
    /// leave out the same squares.
    pub(super) levels: Vec<Vec<usize>>,
    /// The squares of each row, column, diagonal and antidiagonal.
    pub(super) lines: Vec<Vec<usize>>,
    /// By line: whether it must have a queen. Rows, columns and full diagonals must.
    pub(super) mandatory: Vec<bool>,
    /// The number of open squares of each line.
    open_on_line: Vec<usize>,
    pub(super) open_on_level: Vec<usize>,
    /// The square of the queen on each line.
    pub(super) queen_on: Vec<Option<usize>>,
    pub(super) queens_on_level: Vec<usize>,
    /// The least and the greatest number of queens by level.
    pub(super) range: Vec<(usize, usize)>,
    pub(super) changes: Vec<Change>,
    /// Propagation queue: lines, followed by levels, that may force something.
    pub(super) pending: Vec<usize>,
    /// The number of nodes of all trees so far; at most `limit`.
    pub(super) work: u64,
    pub(super) limit: u64,
    /// The queens at each hole of the tree; `None` if the tree must not have holes. A depth-first
    /// search leaves at most the squares of the lines on one path, so n² holes are enough.
    pub(super) holes: Option<Vec<Vec<usize>>>,
    /// Operations not yet reported to a meter, each up to a nanosecond.
    operations: u64,
}

/// The contradiction found when no solution is left.
pub(super) struct Contradiction;

impl Board {
    pub(super) fn new(n: usize, norm: Norm, turning: bool) -> Self {
        let cost = |square: usize| norm.cost(n, Square::new(square / n, square % n));
        let mut costs: Vec<u64> = (0..n * n).map(cost).collect();
        costs.sort_unstable_by(|a, b| b.cmp(a));
        costs.dedup();
        let level = |square: usize| costs.partition_point(|&other| other > cost(square));
        let mut board = Self {
            n,
            turning,
            open: vec![true; n * n],
            first_of: Vec::new(),
            level_of: (0..n * n).map(|square| level(square) as u16).collect(),
            lines_of: (0..n * n)
                .map(|square| prices::lines(n, square).map(|line| line as u16))
                .collect(),
            levels: vec![Vec::new(); costs.len()],
            lines: vec![Vec::new(); 6 * n],
            mandatory: (0..6 * n).map(|line| line < 2 * n).collect(),
            open_on_line: vec![0; 6 * n],
            open_on_level: vec![0; costs.len()],
            queen_on: vec![None; 6 * n],
            queens_on_level: vec![0; costs.len()],
            range: vec![(0, n); costs.len()],
            changes: Vec::new(),
            pending: Vec::new(),
            work: 0,
            limit: u64::MAX,
            holes: None,
            operations: 200 * (n * n) as u64,
        };
        for square in 0..n * n {
            board.first_of.push(board.orbit(square)[0]);
            let level = board.level_of(square);
            board.levels[level].push(square);
            board.open_on_level[level] += 1;
            for line in board.lines_of(square) {
                board.lines[line].push(square);
                board.open_on_line[line] += 1;
            }
        }
        board
    }

    /// Returns the board size.
    pub(crate) const fn size(&self) -> usize {
        self.n
    }

    /// Returns whether a queen may stand on the square and none does yet.
    pub(crate) fn is_open(&self, square: usize) -> bool {
        self.open[square]
    }

    /// Returns the open squares of a line, numbered as in [`prices`].
    pub(crate) fn open_on_line(&self, line: usize) -> Vec<usize> {
        self.lines[line].iter().copied().filter(|&square| self.open[square]).collect()
    }

    /// Returns the open squares of a level.
    pub(crate) fn open_on_level(&self, level: usize) -> Vec<usize> {
        self.levels[level].iter().copied().filter(|&square| self.open[square]).collect()
    }

    /// Returns the number of queens on a level, and how many it has at least and at most.
    pub(crate) fn queens_on_level(&self, level: usize) -> (usize, (usize, usize)) {
        (self.queens_on_level[level], self.range[level])
    }

    /// Returns the price of a square, the sum of those of its column, diagonals and level.
    pub(crate) fn price(&self, square: usize, price: &[i128]) -> i128 {
        let lines: i128 = self.lines_of(square)[1..].iter().map(|&line| price[line]).sum();
        lines + price[prices::level(self.n, self.level_of(square))]
    }

    pub(super) fn squares(&self) -> usize {
        self.n * self.n
    }

    pub(super) fn spend(&mut self, operations: usize) {
        self.operations = self.operations.saturating_add(operations as u64);
    }

    /// Reports the operations since the last call to the meter.
    pub(super) fn report(&mut self, meter: &mut Meter<'_>) -> Result<(), ProofError> {
        meter.add(std::mem::take(&mut self.operations))
    }

    pub(super) fn lines_of(&self, square: usize) -> [usize; 4] {
        self.lines_of[square].map(usize::from)
    }

    pub(super) fn level_of(&self, square: usize) -> usize {
        self.level_of[square].into()
    }

    /// Returns the images of `square` under all symmetries, in ascending order and without
    /// duplicates.
    pub(super) fn orbit(&self, square: usize) -> Vec<usize> {
        let (n, row, column) = (self.n, square / self.n, square % self.n);
        let (below, right) = (n - 1 - row, n - 1 - column);
        let mut orbit: Vec<usize> = [(row, column), (row, right), (below, column), (below, right)]
            .into_iter()
            .flat_map(|(a, b)| [a * n + b, b * n + a])
            .collect();
        orbit.sort_unstable();
        orbit.dedup();
        orbit
    }

    pub(super) fn close_for_good(&mut self, square: usize) {
        if std::mem::take(&mut self.open[square]) {
            let level = self.level_of(square);
            self.spend(4 * self.n + self.levels[level].len());
            self.levels[level].retain(|&other| other != square);
            self.open_on_level[level] -= 1;
            for line in self.lines_of(square) {
                self.lines[line].retain(|&other| other != square);
                self.open_on_line[line] -= 1;
            }
        }
    }

    pub(super) fn open_again(&mut self, square: usize) {
        self.open[square] = true;
        let level = self.level_of(square);
        self.spend(4 * self.n + self.levels[level].len());
        insert(&mut self.levels[level], square);
        self.open_on_level[level] += 1;
        for line in self.lines_of(square) {
            insert(&mut self.lines[line], square);
            self.open_on_line[line] += 1;
        }
    }

    /// Returns whether queens on these squares cover all lines that must have one.
    pub(super) fn covers_mandatory_lines(&self, squares: &[usize]) -> bool {
        let has_queen =
            |line: usize| squares.iter().any(|&square| self.lines_of(square).contains(&line));
        (0..self.lines.len()).all(|line| !self.mandatory[line] || has_queen(line))
    }

    pub(super) fn is_full(&self, distance: usize) -> bool {
        self.mandatory[prices::diagonals(self.n, distance)[0]]
    }

    pub(super) fn set_full(&mut self, distance: usize, full: bool) {
        for diagonal in prices::diagonals(self.n, distance) {
            self.mandatory[diagonal] = full;
        }
    }

    /// Propagates what is forced until the queue is empty.
    pub(super) fn propagate(&mut self) -> Result<(), Contradiction> {
        while let Some(next) = self.pending.pop() {
            self.spend(4);
            if next < self.lines.len() {
                if self.needs_queen(next) && self.open_on_line[next] <= 1 {
                    self.spend(self.lines[next].len());
                    let last = self.lines[next].iter().copied().find(|&square| self.open[square]);
                    self.place(last.ok_or(Contradiction)?)?;
                }
                continue;
            }
            let level = next - self.lines.len();
            let (queens, open, (least, most)) =
                (self.queens_on_level[level], self.open_on_level[level], self.range[level]);
            if queens > most || queens + open < least {
                return Err(Contradiction);
            }
            let full = queens + self.queens_per_orbit(level) > most;
            if open > 0 && (full || queens + open == least) {
                self.spend(self.levels[level].len());
                for square in self.open_on_level(level) {
                    if full {
                        self.close(square)?;
                    } else if self.queen_on[square / self.n] != Some(square) {
                        self.place(square)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether a line must have a queen but has none yet.
    fn needs_queen(&self, line: usize) -> bool {
        self.mandatory[line] && self.queen_on[line].is_none()
    }

    /// Returns how many queens are placed together on a level: four under quarter turns, except in
    /// the centre, otherwise one.
    fn queens_per_orbit(&self, level: usize) -> usize {
        let in_centre = !self.n.is_multiple_of(2) && level == self.level_of(self.squares() / 2);
        if self.turning && !in_centre { 4 } else { 1 }
    }

    /// Places a queen and, if solutions are invariant under quarter turns, its images; closes all
    /// attacked squares.
    pub(super) fn place(&mut self, square: usize) -> Result<(), Contradiction> {
        self.place_one(square)?;
        if self.turning {
            let mut image = square;
            loop {
                image = image % self.n * self.n + self.n - 1 - image / self.n;
                if image == square {
                    break;
                }
                self.place_one(image)?;
            }
        }
        Ok(())
    }

    fn place_one(&mut self, square: usize) -> Result<(), Contradiction> {
        if !self.open[square] {
            return Err(Contradiction);
        }
        let lines = self.lines_of(square);
        for line in lines {
            self.queen_on[line] = Some(square);
        }
        let level = self.level_of(square);
        self.queens_on_level[level] += 1;
        self.changes.push(Change::Placed(square));
        self.pending.push(self.lines.len() + level);
        self.close(square)?;
        for line in lines {
            self.spend(20 + self.lines[line].len());
            for index in 0..self.lines[line].len() {
                let other = self.lines[line][index];
                if self.open[other] {
                    self.close(other)?;
                }
            }
        }
        Ok(())
    }

    /// Closes a square if it is open. Queues what this forces, and detects contradictions
    /// immediately.
    pub(super) fn close(&mut self, square: usize) -> Result<(), Contradiction> {
        if !std::mem::take(&mut self.open[square]) {
            return Ok(());
        }
        self.changes.push(Change::Closed(square));
        // Includes the cost of opening it again.
        self.spend(25);
        let lines = self.lines_of(square);
        let level = self.level_of(square);
        for line in lines {
            self.open_on_line[line] -= 1;
        }
        self.open_on_level[level] -= 1;
        for line in lines {
            if self.open_on_line[line] <= 1 && self.needs_queen(line) {
                if self.open_on_line[line] == 0 {
                    return Err(Contradiction);
                }
                self.pending.push(line);
            }
        }
        let (possible, least) =
            (self.queens_on_level[level] + self.open_on_level[level], self.range[level].0);
        if possible < least {
            return Err(Contradiction);
        }
        if possible == least {
            self.pending.push(self.lines.len() + level);
        }
        Ok(())
    }

    pub(super) fn undo(&mut self, before: usize) {
        while self.changes.len() > before {
            let Some(change) = self.changes.pop() else { break };
            match change {
                Change::Filled(diagonal) => self.mandatory[diagonal] = false,
                Change::Placed(square) => {
                    for line in self.lines_of(square) {
                        self.queen_on[line] = None;
                    }
                    let level = self.level_of(square);
                    self.queens_on_level[level] -= 1;
                }
                Change::Closed(square) => {
                    self.open[square] = true;
                    for line in self.lines_of(square) {
                        self.open_on_line[line] += 1;
                    }
                    let level = self.level_of(square);
                    self.open_on_level[level] += 1;
                }
            }
        }
    }
}

fn insert(squares: &mut Vec<usize>, square: usize) {
    let place = squares.partition_point(|&other| other < square);
    squares.insert(place, square);
}
