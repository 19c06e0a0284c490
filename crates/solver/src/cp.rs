//! Constraint programming: p(i) is the column of the queen on row i. The values p(i) are all
//! different, and so are p(i) + i and p(i) − i.
//!
//! Depth-first search with propagation to a fixed point after each decision:
//! - a decided row removes its column and its two diagonals from the domains of all other rows;
//! - p is a permutation, so a column that remains in a single domain decides that row, and a column
//!   in no domain is a failure.
//!
//! All arithmetic is in integers and only impossible values are pruned, so the results are proofs.
//!
//! (pumpkin-solver 0.5 was evaluated and rejected: through enum-map 3.1 it needs Rust 1.95, its
//! build script runs git and a C++ compiler, and with its clause learning the first solution for
//! n = 24 took 7.5 s.)

use std::ops::ControlFlow;

use crate::progress::{Progress, ProgressSink};
use nqueens_proof::board::{Piece, Problem};

/// The rule that selects the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branching {
    /// The first open row: solutions come in lexicographic order.
    FirstRow,
    /// A random column of a row with the smallest domain: finds one solution quickly. See
    /// [`find_one`].
    SmallestDomain {
        /// Seed of the random choices.
        seed: u64,
    },
}

/// Finds one solution of `problem`, for queens or rooks, or proves that there is none. Returns the
/// result and the number of nodes searched.
///
/// The run times of such a search are heavy-tailed, so it is restarted with other random choices
/// after a node limit that doubles each time. Eventually the limit suffices for an exhaustive
/// search.
pub fn find_one(problem: &Problem, sink: &mut dyn ProgressSink) -> (Event, u64) {
    let mut nodes = 0;
    for seed in 0.. {
        let mut search = Search::new(problem, Branching::SmallestDomain { seed });
        search.stop_after = 1000u64.saturating_mul(1 << seed.min(50));
        let event = search.next(sink);
        nodes += search.nodes;
        if event != Event::Stopped || search.nodes < search.stop_after {
            return (event, nodes);
        }
    }
    unreachable!("2^64 restarts never finish")
}

/// A search that yields the solutions one by one.
#[derive(Clone, Debug)]
pub struct Search {
    n: usize,
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

/// The result of one search step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A solution: the 0-based column of each row.
    Solution(Vec<usize>),
    /// There are no more solutions.
    Exhausted,
    /// The progress sink stopped the search. The search can be resumed.
    Stopped,
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
        let n = problem.n();
        let words = n.div_ceil(64);
        let mut search = Self {
            n,
            words,
            diagonals: problem.piece() == Piece::Queen,
            branching,
            domains: vec![0; n * words],
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
            state: State::Fresh,
        };
        for row in 0..n {
            for column in 0..n {
                search.domains[row * words + column / 64] |= 1 << (column % 64);
            }
        }
        for square in problem.blocked() {
            search.domains[square.row * words + square.col / 64] &= !(1 << (square.col % 64));
        }
        for square in problem.placed() {
            for (word, bits) in search.domains[square.row * words..][..words].iter_mut().enumerate()
            {
                *bits &= if word == square.col / 64 { 1 << (square.col % 64) } else { 0 };
            }
        }
        search
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
                return Event::Solution(self.decided.iter().flatten().copied().collect());
            };
            let due = self.nodes.is_multiple_of(REPORT_EVERY);
            if self.nodes >= self.stop_after || (due && self.report(sink).is_break()) {
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

    fn report(&self, sink: &mut dyn ProgressSink) -> ControlFlow<()> {
        let level = self.decided.iter().flatten().count();
        let flow = sink.report(&Progress { level, bound: None, nodes: self.nodes });
        let timed_out = sink.time_left().is_some_and(|left| left.is_zero());
        if timed_out { ControlFlow::Break(()) } else { flow }
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
        for other in (0..self.n).filter(|&other| other != row) {
            self.remove(other, column)?;
            if self.diagonals {
                let distance = row.abs_diff(other);
                if column + distance < self.n {
                    self.remove(other, column + distance)?;
                }
                if let Some(left) = column.checked_sub(distance) {
                    self.remove(other, left)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Unobserved;
    use nqueens_proof::board::{Square, is_solution};

    fn all(problem: &Problem, branching: Branching) -> Vec<Vec<usize>> {
        let mut search = Search::new(problem, branching);
        let mut found = Vec::new();
        while let Event::Solution(solution) = search.next(&mut Unobserved) {
            found.push(solution);
        }
        assert_eq!(search.next(&mut Unobserved), Event::Exhausted);
        found
    }

    /// Returns all placements with one piece per row that the checker accepts, in lexicographic
    /// order.
    fn oracle(problem: &Problem) -> Vec<Vec<usize>> {
        let n = problem.n();
        let columns = |code: usize| (0..n).map(|i| code / n.pow((n - 1 - i) as u32) % n).collect();
        let placements = (0..n.pow(n as u32)).map(columns);
        placements.filter(|p: &Vec<usize>| crate::ilp::completes(problem, p)).collect()
    }

    #[test]
    fn all_solutions_are_found_once_and_in_order() {
        for n in 0..=6 {
            for piece in [Piece::Queen, Piece::Rook] {
                let problem = Problem::empty(piece, n);
                let expected = oracle(&problem);
                assert_eq!(all(&problem, Branching::FirstRow), expected, "{piece}, n = {n}");
                let mut other = all(&problem, Branching::SmallestDomain { seed: 3 });
                other.sort();
                assert_eq!(other, expected, "{piece}, n = {n}");
            }
        }
        assert_eq!(all(&Problem::empty(Piece::Queen, 10), Branching::FirstRow).len(), 724);
    }

    #[test]
    fn decided_squares_are_kept() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let n = random.usize(4..=6);
            let square =
                |random: &mut fastrand::Rng| Square::new(random.usize(..n), random.usize(..n));
            let placed: Vec<Square> = (0..random.usize(..3)).map(|_| square(&mut random)).collect();
            let blocked: Vec<Square> =
                (0..random.usize(..6)).map(|_| square(&mut random)).collect();
            let Ok(problem) = Problem::new(Piece::Queen, n, placed, blocked) else { continue };
            assert_eq!(all(&problem, Branching::FirstRow), oracle(&problem), "{problem:?}");
        }
    }

    #[test]
    fn boards_wider_than_a_word_are_solved() {
        for n in [63, 64, 65, 130] {
            match find_one(&Problem::empty(Piece::Queen, n), &mut Unobserved).0 {
                Event::Solution(solution) => assert!(is_solution(Piece::Queen, &solution)),
                other => panic!("n = {n}: {other:?}"),
            }
        }
    }

    #[test]
    fn one_solution_is_found_exactly_if_there_is_one() {
        for n in 0..=8 {
            let problem = Problem::empty(Piece::Queen, n);
            match find_one(&problem, &mut Unobserved).0 {
                Event::Solution(solution) => assert!(is_solution(Piece::Queen, &solution)),
                event => assert_eq!((event, n == 2 || n == 3), (Event::Exhausted, true), "n = {n}"),
            }
        }
    }

    #[test]
    fn a_stopped_search_can_be_continued() {
        struct StopAlways;
        impl ProgressSink for StopAlways {
            fn report(&mut self, _: &Progress) -> ControlFlow<()> {
                ControlFlow::Break(())
            }
            fn time_left(&self) -> Option<std::time::Duration> {
                None
            }
        }
        let problem = Problem::empty(Piece::Queen, 7);
        let mut search = Search::new(&problem, Branching::FirstRow);
        assert_eq!(search.next(&mut StopAlways), Event::Stopped);
        let mut found = 0;
        while let Event::Solution(_) = search.next(&mut Unobserved) {
            found += 1;
        }
        assert_eq!(found, 40);
    }
}
