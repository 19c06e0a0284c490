//! A search that branches on rows: in lexicographic order, or by the smallest domain.

use super::Event;
use crate::open_board::OpenBoard;
use crate::progress::{Progress, ProgressSink, is_over};
use nqueens_proof::board::{Piece, Problem};

/// The rule that selects the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branching {
    /// The first open row: solutions come in lexicographic order.
    FirstRow,
    /// A random column of a row with the smallest domain: finds one solution quickly. See
    /// [`super::find_one`].
    SmallestDomain {
        /// Seed of the random choices.
        seed: u64,
    },
}

/// A search that yields the solutions one by one.
#[derive(Clone, Debug)]
pub struct Search {
    problem: Problem,
    board: OpenBoard,
    /// Number of open rows, and of open columns. Rows and columns are numbered among these.
    n: usize,
    /// The number of each open column by its number on the whole board.
    column_numbers: Vec<Option<u32>>,
    /// Number of 64-bit words per domain.
    words: usize,
    diagonals: bool,
    branching: Branching,
    /// The domains of the rows, concatenated.
    domains: Vec<u64>,
    decided: Vec<Option<usize>>,
    trail: Vec<Change>,
    decisions: Vec<Decision>,
    /// Rows that are decided but not yet propagated.
    pending: Vec<(usize, usize)>,
    nodes: u64,
    /// Node count at which the search stops.
    stop_after: u64,
    random: fastrand::Rng,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The search has not started.
    Fresh,
    /// A solution was just returned.
    AtSolution,
    /// The progress sink stopped the search at a consistent node.
    Paused,
    /// All solutions were found.
    Exhausted,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Word { index: usize, before: u64 },
    Decided { row: usize },
}

#[derive(Clone, Copy, Debug)]
struct Decision {
    row: usize,
    column: usize,
    /// Length of the trail before the decision.
    trail: usize,
}

/// A domain is empty, or a column is in no domain.
struct Failure;

/// Nodes between two reports to the progress sink.
const REPORT_EVERY: u64 = 1024;

impl Search {
    /// Creates a search for the solutions of `problem`, for queens or rooks.
    ///
    /// # Panics
    /// If the pieces are neither queens nor rooks.
    pub fn new(problem: &Problem, branching: Branching) -> Self {
        assert!(matches!(problem.piece(), Piece::Queen | Piece::Rook), "queens and rooks only");
        let is_contradictory = problem.conflict().is_some();
        let board = if is_contradictory {
            OpenBoard::of(&Problem::empty(problem.piece(), 0))
        } else {
            OpenBoard::of(problem)
        };
        let n = board.size();
        let words = n.div_ceil(64);
        let mut domains = vec![0; n * words];
        for row in 0..n {
            for &column in board.allowed(row) {
                domains[row * words + column / 64] |= 1 << (column % 64);
            }
        }
        Self {
            problem: problem.clone(),
            n,
            column_numbers: board.column_numbers(problem.n()),
            board,
            words,
            diagonals: problem.piece() == Piece::Queen,
            branching,
            domains,
            decided: vec![None; n],
            trail: Vec::new(),
            decisions: Vec::new(),
            pending: Vec::new(),
            nodes: 0,
            stop_after: u64::MAX,
            random: fastrand::Rng::with_seed(match branching {
                Branching::FirstRow => 0,
                Branching::SmallestDomain { seed } => seed,
            }),
            state: if is_contradictory { State::Exhausted } else { State::Fresh },
        }
    }

    /// Stops the search after this number of decisions.
    pub(super) fn stop_after(&mut self, nodes: u64) {
        self.stop_after = nodes;
    }

    /// Returns the number of decisions made so far.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Searches for the next solution.
    pub fn next(&mut self, sink: &mut dyn ProgressSink) -> Event {
        let mut consistent = match self.state {
            State::Exhausted => return Event::Exhausted,
            State::Fresh => self.propagate_roots(),
            State::AtSolution => false,
            State::Paused => true,
        };
        loop {
            if !consistent {
                let Some(last) = self.decisions.pop() else {
                    self.state = State::Exhausted;
                    return Event::Exhausted;
                };
                consistent = self.refute(last);
                continue;
            }
            let Some(row) = self.open_row() else {
                self.state = State::AtSolution;
                let decided = self.decided.iter().flatten().copied();
                return Event::Solution(self.board.completed(&self.problem, decided));
            };
            let due = self.nodes.is_multiple_of(REPORT_EVERY);
            if self.nodes >= self.stop_after || (due && self.is_over(sink)) {
                self.state = State::Paused;
                return Event::Stopped;
            }
            self.nodes += 1;
            let column = match self.branching {
                Branching::FirstRow => self.least(row),
                Branching::SmallestDomain { .. } => self.any(row),
            };
            self.decisions.push(Decision { row, column, trail: self.trail.len() });
            self.decide(row, column);
            consistent = self.propagate().is_ok();
        }
    }

    fn is_over(&self, sink: &mut dyn ProgressSink) -> bool {
        let level = self.decided.iter().flatten().count();
        is_over(sink, &Progress { level, bound: None, nodes: self.nodes })
    }

    /// Undoes a decision and removes its value. Returns whether the remaining state is consistent.
    fn refute(&mut self, last: Decision) -> bool {
        while self.trail.len() > last.trail {
            match self.trail.pop() {
                Some(Change::Word { index, before }) => self.domains[index] = before,
                Some(Change::Decided { row }) => self.decided[row] = None,
                None => {}
            }
        }
        self.pending.clear();
        self.remove(last.row, last.column).and_then(|()| self.propagate()).is_ok()
    }

    /// Propagates the initially decided rows. Returns whether the state is consistent.
    fn propagate_roots(&mut self) -> bool {
        for row in 0..self.n {
            match self.size(row) {
                0 => return false,
                1 => self.decide(row, self.least(row)),
                _ => {}
            }
        }
        self.propagate().is_ok()
    }

    fn size(&self, row: usize) -> u32 {
        self.domain(row).iter().map(|bits| bits.count_ones()).sum()
    }

    fn domain(&self, row: usize) -> &[u64] {
        &self.domains[row * self.words..(row + 1) * self.words]
    }

    /// Returns the least column of a non-empty domain.
    fn least(&self, row: usize) -> usize {
        let words = self.domain(row).iter().enumerate();
        let first = words
            .filter(|(_, bits)| **bits != 0)
            .map(|(w, bits)| 64 * w + bits.trailing_zeros() as usize);
        first.min().expect("the domain of an open row is not empty")
    }

    /// Returns a random column of a non-empty domain.
    fn any(&mut self, row: usize) -> usize {
        let mut skip = self.random.u32(..self.size(row));
        let all = 0..self.n;
        let mut inside =
            all.filter(|column| self.domain(row)[column / 64] >> (column % 64) & 1 == 1);
        loop {
            match (inside.next(), skip) {
                (Some(column), 0) => return column,
                (Some(_), _) => skip -= 1,
                (None, _) => unreachable!("fewer are skipped than there are"),
            }
        }
    }

    /// Returns the next row to decide, if any row is open.
    fn open_row(&self) -> Option<usize> {
        let mut open = (0..self.n).filter(|&row| self.decided[row].is_none());
        match self.branching {
            Branching::FirstRow => open.next(),
            Branching::SmallestDomain { .. } => open.min_by_key(|&row| self.size(row)),
        }
    }

    fn set_word(&mut self, index: usize, bits: u64) {
        let before = self.domains[index];
        if before != bits {
            self.trail.push(Change::Word { index, before });
            self.domains[index] = bits;
        }
    }

    fn decide(&mut self, row: usize, column: usize) {
        for word in 0..self.words {
            let bits = if word == column / 64 { 1 << (column % 64) } else { 0 };
            self.set_word(row * self.words + word, bits);
        }
        self.decided[row] = Some(column);
        self.trail.push(Change::Decided { row });
        self.pending.push((row, column));
    }

    fn remove(&mut self, row: usize, column: usize) -> Result<(), Failure> {
        let (index, bit) = (row * self.words + column / 64, 1 << (column % 64));
        if self.domains[index] & bit == 0 {
            return Ok(());
        }
        if self.decided[row].is_some() {
            return Err(Failure);
        }
        self.set_word(index, self.domains[index] & !bit);
        match self.size(row) {
            0 => return Err(Failure),
            1 => self.decide(row, self.least(row)),
            _ => {}
        }
        Ok(())
    }

    /// Propagates both rules to a fixed point.
    fn propagate(&mut self) -> Result<(), Failure> {
        loop {
            while let Some((row, column)) = self.pending.pop() {
                self.remove_attacked(row, column)?;
            }
            self.propagate_hidden_singles()?;
            if self.pending.is_empty() {
                return Ok(());
            }
        }
    }

    /// Removes the column and the diagonals of the piece on `row` from all other domains.
    fn remove_attacked(&mut self, row: usize, column: usize) -> Result<(), Failure> {
        let piece = self.board.square(row, column);
        for other in (0..self.n).filter(|&other| other != row) {
            self.remove(other, column)?;
            if self.diagonals {
                let distance = self.board.row(other).abs_diff(piece.row);
                for col in [Some(piece.col + distance), piece.col.checked_sub(distance)] {
                    let number = col.and_then(|col| *self.column_numbers.get(col)?);
                    if let Some(number) = number {
                        self.remove(other, number as usize)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Fails if a column is in no domain. Decides each row that is the only one left for a column.
    fn propagate_hidden_singles(&mut self) -> Result<(), Failure> {
        for word in 0..self.words {
            let (mut once, mut twice) = (0u64, 0u64);
            for row in 0..self.n {
                let bits = self.domains[row * self.words + word];
                twice |= once & bits;
                once |= bits;
            }
            let columns = self.n - 64 * word;
            let all = if columns >= 64 { u64::MAX } else { (1 << columns) - 1 };
            if once != all {
                return Err(Failure);
            }
            let single = once & !twice;
            for row in 0..self.n {
                if self.decided[row].is_some() {
                    continue;
                }
                let mine = self.domains[row * self.words + word] & single;
                if mine.count_ones() > 1 {
                    return Err(Failure);
                }
                if mine != 0 {
                    self.decide(row, 64 * word + mine.trailing_zeros() as usize);
                }
            }
        }
        Ok(())
    }
}
