//! A search that branches on rows and columns alike (the dual viewpoint): each of these lines takes
//! exactly one piece, so the line with the fewest allowed squares is decided next. It is far faster
//! than a search by rows where few squares are allowed.
//!
//! Squares are bits. Each square is listed twice, in its row and in its column, so that the squares
//! of a line are adjacent bits. A piece removes the squares that it attacks with one operation per
//! word. A line without a square is a failure, and a line with one square is decided.
//!
//! Of the lines with the fewest squares, the one is chosen whose squares attack the most others. On
//! 13 of the boards of CSPLib's prob080 with n = 50 and 56 a prototype took a third of the nodes
//! that it took with the first of these lines.

use std::ops::ControlFlow;

use super::End;
use crate::open_board::OpenBoard;
use crate::progress::{Progress, ProgressSink, is_over};
use nqueens_proof::board::Piece;

/// The largest number of allowed squares: the masks of the attacks then take 64 MiB.
pub(super) const MOST_SQUARES: usize = 1 << 14;

/// Squares compared for the choice of a line. More of them cost more time than they save.
const MOST_COMPARED: usize = 128;

/// Nodes between two reports to the progress sink.
const REPORT_EVERY: u64 = 1024;

/// A row or a column: its squares are the bits of `mask` in one word, or all bits of several words.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: usize,
    words: usize,
    mask: u64,
}

/// The search. Its state is a stack of levels, each of which is a set of allowed squares and a set
/// of open lines.
#[derive(Debug, Default)]
pub(super) struct DualSearch {
    size: usize,
    /// The rows, then the columns.
    lines: Vec<Line>,
    /// The open row and the open column of each square.
    squares: Vec<[usize; 2]>,
    /// The square of each bit; bits that stand for none are never set.
    square_of: Vec<u32>,
    /// The two bits of each square.
    bits_of: Vec<[u32; 2]>,
    /// The squares that a piece on a square excludes, including its own row and column.
    attacks: Vec<u64>,
    /// Words of a set of squares, those of them that list the squares by rows, and words of a
    /// level.
    words: usize,
    row_words: usize,
    level_words: usize,
    levels: Vec<u64>,
    /// For each level but the last the line that was branched on, and the number of squares chosen
    /// before.
    branches: Vec<(usize, usize)>,
    chosen: Vec<usize>,
    /// Lines with the fewest squares, as the last propagation found them.
    smallest: Vec<usize>,
    nodes: u64,
}

/// A line has no square left.
struct Failure;

impl DualSearch {
    /// Creates a search of an open board with at most [`MOST_SQUARES`] squares.
    pub(super) fn new(board: &OpenBoard, piece: Piece) -> Self {
        let size = board.size();
        let squares: Vec<[usize; 2]> = (0..size)
            .flat_map(|row| board.allowed(row).iter().map(move |&column| [row, column]))
            .collect();
        let mut members = vec![Vec::new(); 2 * size];
        for (square, &[row, column]) in squares.iter().enumerate() {
            members[row].push(square);
            members[size + column].push(square);
        }
        let mut search = Self {
            size,
            lines: Vec::with_capacity(2 * size),
            bits_of: vec![[0; 2]; squares.len()],
            squares,
            ..Self::default()
        };
        search.lay_out(&members);
        search.find_attacks(board, piece, &members);
        search
    }

    /// Assigns bits to the squares of each line.
    fn lay_out(&mut self, members: &[Vec<usize>]) {
        let mut next_bit = 0;
        for (number, line) in members.iter().enumerate() {
            if number == self.size {
                next_bit = usize::next_multiple_of(next_bit, 64);
                self.row_words = next_bit / 64;
            }
            // A line that does not fit the current word begins another.
            if next_bit % 64 + line.len() > 64 {
                next_bit = usize::next_multiple_of(next_bit, 64);
            }
            let words = line.len().div_ceil(64).max(1);
            let mask = if words > 1 || line.len() == 64 {
                u64::MAX
            } else {
                ((1 << line.len()) - 1) << (next_bit % 64)
            };
            self.lines.push(Line { first: next_bit / 64, words, mask });
            let last = if words > 1 { next_bit + 64 * words } else { next_bit + line.len() };
            self.square_of.resize(last.next_multiple_of(64) + 64, 0);
            for (bit, &square) in (next_bit..).zip(line) {
                self.square_of[bit] = square as u32;
                self.bits_of[square][usize::from(number >= self.size)] = bit as u32;
            }
            next_bit = last;
        }
        self.words = next_bit / 64 + 1;
        self.level_words = self.words + (2 * self.size).div_ceil(64);
    }

    fn find_attacks(&mut self, board: &OpenBoard, piece: Piece, members: &[Vec<usize>]) {
        let Self { size, words, squares, bits_of, .. } = self;
        let mut attacks = vec![0; squares.len() * *words];
        let mut add = |from: usize, to: usize| {
            for bit in bits_of[to].map(|bit| bit as usize) {
                attacks[from * *words + bit / 64] |= 1 << (bit % 64);
            }
        };
        for (from, &[row, column]) in squares.iter().enumerate() {
            let lines = members[row].iter().chain(&members[*size + column]);
            lines.for_each(|&to| add(from, to));
        }
        if piece == Piece::Queen {
            let place = |square: usize| board.square(squares[square][0], squares[square][1]);
            // Squares by diagonal: two squares that share one are neighbours in a sorted list.
            let sum = |square: usize| place(square).row + place(square).col;
            let difference = |square: usize| place(square).row.wrapping_sub(place(square).col);
            for key in [&sum as &dyn Fn(usize) -> usize, &difference] {
                let mut sorted: Vec<usize> = (0..squares.len()).collect();
                sorted.sort_by_key(|&square| key(square));
                for diagonal in sorted.chunk_by(|&a, &b| key(a) == key(b)) {
                    for &from in diagonal {
                        diagonal.iter().for_each(|&to| add(from, to));
                    }
                }
            }
        }
        self.attacks = attacks;
    }

    /// Returns the number of decisions made so far.
    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Searches from the start, and passes each solution to `take`, as the open column in each open
    /// row, until it breaks. With `random`, the squares of a line are tried in a random order.
    /// Stops after `most` decisions.
    pub(super) fn run(
        &mut self,
        mut random: Option<fastrand::Rng>,
        most: u64,
        sink: &mut dyn ProgressSink,
        take: &mut dyn FnMut(&[usize]) -> ControlFlow<()>,
    ) -> End {
        let until = self.nodes.saturating_add(most);
        self.start();
        let mut is_consistent = self.propagate(0).is_ok();
        loop {
            let level = self.branches.len();
            if !is_consistent {
                let Some(&(line, chosen)) = self.branches.last() else { return End::Exhausted };
                self.levels.truncate(level * self.level_words);
                self.chosen.truncate(chosen);
                match self.next_square(level - 1, line, random.as_mut()) {
                    Some(square) => {
                        if self.is_over(until, sink) {
                            return End::Stopped;
                        }
                        is_consistent = self.branch(level - 1, square);
                    }
                    None => {
                        self.branches.pop();
                    }
                }
                continue;
            }
            match self.choose_line(level) {
                // The loop above takes the first square of the line.
                Some(line) => self.branches.push((line, self.chosen.len())),
                None => {
                    if take(&self.solution()).is_break() {
                        return End::Stopped;
                    }
                }
            }
            is_consistent = false;
        }
    }

    /// Sets up the first level: all squares are allowed and all lines are open.
    fn start(&mut self) {
        self.branches.clear();
        self.chosen.clear();
        self.levels.clear();
        self.levels.resize(self.level_words, 0);
        for bit in self.bits_of.iter().flatten() {
            self.levels[*bit as usize / 64] |= 1 << (bit % 64);
        }
        for line in 0..2 * self.size {
            self.levels[self.words + line / 64] |= 1 << (line % 64);
        }
    }

    fn is_over(&self, until: u64, sink: &mut dyn ProgressSink) -> bool {
        if self.nodes >= until {
            return true;
        }
        if !self.nodes.is_multiple_of(REPORT_EVERY) {
            return false;
        }
        let progress = Progress { level: self.chosen.len(), bound: None, nodes: self.nodes };
        is_over(sink, &progress)
    }

    /// Puts a piece on a square above `level`. Returns whether the new level is consistent.
    fn branch(&mut self, level: usize, square: usize) -> bool {
        self.nodes += 1;
        let start = level * self.level_words;
        self.levels.extend_from_within(start..start + self.level_words);
        self.place(level + 1, square);
        self.propagate(level + 1).is_ok()
    }

    fn place(&mut self, level: usize, square: usize) {
        let squares = &mut self.levels[level * self.level_words..][..self.level_words];
        let attacks = &self.attacks[square * self.words..][..self.words];
        for (word, attacked) in squares.iter_mut().zip(attacks) {
            *word &= !attacked;
        }
        let [row, column] = self.squares[square];
        for line in [row, self.size + column] {
            squares[self.words + line / 64] &= !(1 << (line % 64));
        }
        self.chosen.push(square);
    }

    /// Decides lines with one square until there are none. Leaves the lines with the fewest squares
    /// in `smallest`.
    fn propagate(&mut self, level: usize) -> Result<(), Failure> {
        let start = level * self.level_words;
        loop {
            let mut fewest = u32::MAX;
            let mut is_changed = false;
            self.smallest.clear();
            for open_word in 0..self.level_words - self.words {
                let mut open = self.levels[start + self.words + open_word];
                while open != 0 {
                    let number = 64 * open_word + open.trailing_zeros() as usize;
                    open &= open - 1;
                    let Line { first, words, mask } = self.lines[number];
                    let squares = &self.levels[start + first..][..words];
                    let count: u32 = squares.iter().map(|word| (word & mask).count_ones()).sum();
                    if count == 0 {
                        return Err(Failure);
                    }
                    if count == 1 {
                        let last = squares.iter().position(|word| word & mask != 0);
                        let word = last.expect("one square is left");
                        let bit = (squares[word] & mask).trailing_zeros() as usize;
                        let square = self.square_of[64 * (first + word) + bit] as usize;
                        self.place(level, square);
                        is_changed = true;
                        // Its row or column may be among the lines that follow.
                        open &= self.levels[start + self.words + open_word];
                    }
                    if count < fewest {
                        fewest = count;
                        self.smallest.clear();
                    }
                    if count == fewest {
                        self.smallest.push(number);
                    }
                }
            }
            if !is_changed {
                return Ok(());
            }
        }
    }

    /// Returns the line to branch on, if any is open.
    fn choose_line(&self, level: usize) -> Option<usize> {
        let mut compared = 0;
        let mut best = None;
        for &line in &self.smallest {
            if compared > MOST_COMPARED {
                break;
            }
            let mut removed = 0;
            for square in self.squares_of(level, line) {
                compared += 1;
                removed += self.removed_by(level, square);
            }
            if best.is_none_or(|(most, _)| removed > most) {
                best = Some((removed, line));
            }
        }
        best.map(|(_, line)| line)
    }

    /// Returns the number of allowed squares that a piece on `square` would exclude.
    fn removed_by(&self, level: usize, square: usize) -> u32 {
        let allowed = &self.levels[level * self.level_words..][..self.row_words];
        let attacks = &self.attacks[square * self.words..][..self.row_words];
        allowed.iter().zip(attacks).map(|(one, other)| (one & other).count_ones()).sum()
    }

    /// Returns the allowed squares of a line.
    fn squares_of(&self, level: usize, line: usize) -> impl Iterator<Item = usize> {
        let Line { first, words, mask } = self.lines[line];
        (first..first + words).flat_map(move |word| {
            let bits = self.levels[level * self.level_words + word] & mask;
            let rest = |&bits: &u64| Some(bits & (bits - 1)).filter(|&rest| rest != 0);
            std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest).map(move |bits| {
                self.square_of[64 * word + bits.trailing_zeros() as usize] as usize
            })
        })
    }

    /// Removes a square of the line from `level`, and returns it; `None` if none is left.
    fn next_square(
        &mut self,
        level: usize,
        line: usize,
        random: Option<&mut fastrand::Rng>,
    ) -> Option<usize> {
        let left = self.squares_of(level, line).count();
        if left == 0 {
            return None;
        }
        let skipped = random.map_or(0, |random| random.usize(..left));
        let square = self.squares_of(level, line).nth(skipped)?;
        for bit in self.bits_of[square].map(|bit| bit as usize) {
            self.levels[level * self.level_words + bit / 64] &= !(1 << (bit % 64));
        }
        Some(square)
    }

    /// Returns the open column in each open row.
    fn solution(&self) -> Vec<usize> {
        let mut columns = vec![0; self.size];
        for &square in &self.chosen {
            let [row, column] = self.squares[square];
            columns[row] = column;
        }
        columns
    }
}
