//! The checker's board: it follows search trees by placing queens, and it evaluates the prices in
//! them.

use super::{prices, refused};
use crate::board::{Norm, Square};
use crate::bytes::Reader;
use crate::{Meter, ProofError};

/// A change that can be undone.
#[derive(Clone, Copy)]
enum Change {
    Closed(usize),
    Placed(usize),
    Filled(usize),
}

/// A board on which queens are placed.
pub(super) struct Board {
    pub(super) n: usize,
    pub(super) turning: bool,
    /// By square: whether a queen may stand there.
    pub(super) open: Vec<bool>,
    /// The first square of each square's orbit.
    pub(super) first_of: Vec<usize>,
    level_of: Vec<u16>,
    /// The row, column, diagonal and antidiagonal of each square, in 16 bits each because they are
    /// read very often.
    lines_of: Vec<[u16; 4]>,
    /// By level, in ascending order: the squares that are not closed for good. The vectors below
    /// leave out the same squares.
    pub(super) levels: Vec<Vec<usize>>,
    /// The squares of each row, column, diagonal and antidiagonal.
    lines: Vec<Vec<usize>>,
    /// By line: whether it must have a queen. Rows, columns and full diagonals must.
    must: Vec<bool>,
    /// The number of open squares of each line.
    open_on_line: Vec<usize>,
    open_on_level: Vec<usize>,
    /// The square of the queen on each line.
    queen_on: Vec<Option<usize>>,
    queens_on_level: Vec<usize>,
    /// The least and the greatest number of queens by level.
    pub(super) range: Vec<(usize, usize)>,
    changes: Vec<Change>,
    /// Propagation queue: lines, followed by levels, that may force something.
    pending: Vec<usize>,
    /// The number of nodes of all trees so far; at most `limit`.
    pub(super) work: u64,
    pub(super) limit: u64,
    /// The queens at each hole of the tree; `None` if the tree must not have holes. A depth-first
    /// search leaves at most the squares of the lines on one path, so n² holes are enough.
    pub(super) holes: Option<Vec<Vec<usize>>>,
    /// Operations not yet reported to a meter, each about a nanosecond.
    operations: u64,
}

/// The contradiction found when no solution is left.
struct Contradiction;

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
            must: (0..6 * n).map(|line| line < 2 * n).collect(),
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
        (0..self.lines.len()).all(|line| !self.must[line] || has_queen(line))
    }

    pub(super) fn is_full(&self, distance: usize) -> bool {
        self.must[prices::diagonals(self.n, distance)[0]]
    }

    pub(super) fn set_full(&mut self, distance: usize, full: bool) {
        for diagonal in prices::diagonals(self.n, distance) {
            self.must[diagonal] = full;
        }
    }

    /// Checks that a tree leads to contradictions everywhere, from the current board or with a
    /// queen on `square`.
    pub(super) fn search(
        &mut self,
        square: Option<usize>,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(), ProofError> {
        self.search_below(square.as_slice(), reader, meter)
    }

    /// Does the same with queens on several squares, some of which may follow from others.
    pub(super) fn search_below(
        &mut self,
        squares: &[usize],
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(), ProofError> {
        self.report(meter)?;
        self.spend(4 * (self.lines.len() + self.levels.len()));
        self.pending = (0..self.lines.len() + self.levels.len()).collect();
        let placed = squares.iter().try_for_each(|&square| {
            if self.queen_on[square / self.n] == Some(square) { Ok(()) } else { self.place(square) }
        });
        let done = if placed.and_then(|()| self.follow()).is_ok() {
            self.tree(reader, meter)
        } else {
            Ok(())
        };
        self.undo(0);
        done.and_then(|()| self.report(meter))
    }

    /// Reads the first number of a tree. Numbers beyond the last marker belong to a newer version.
    fn read_line(&self, reader: &mut Reader<'_>) -> Result<usize, ProofError> {
        let (number, last) = (reader.number()?, prices::filling_mark(self.n));
        let line = usize::try_from(number).ok().filter(|&line| line <= last);
        line.ok_or(ProofError::UnknownStep(number))
    }

    fn tree(&mut self, reader: &mut Reader<'_>, meter: &mut Meter<'_>) -> Result<(), ProofError> {
        let (mark, last) = (prices::mark(self.n), prices::filling_mark(self.n));
        let mut line = self.read_line(reader)?;
        // A loop rather than recursion, so that a long chain of prices needs no deep stack.
        while line == mark || line == last {
            if self.holes.is_some() {
                return Err(refused("a part of a search has prices"));
            }
            self.count_node()?;
            if self.prices(line == last, reader)?.is_err() {
                return self.report(meter);
            }
            self.report(meter)?;
            line = self.read_line(reader)?;
        }
        let most = self.squares();
        if line == 2 * self.n {
            let holes = self.holes.as_mut().ok_or_else(|| refused("a tree has a hole"))?;
            if holes.len() == most {
                return Err(refused("a tree has more holes than the board has squares"));
            }
            holes.push(self.queen_on[..self.n].iter().copied().flatten().collect());
            return Ok(());
        }
        self.count_node()?;
        let line = if line < 2 * self.n { line } else { line - prices::in_tree(0) };
        if self.queen_on[line].is_some() || !self.must[line] {
            return Err(refused("a tree branches where no queen is to come"));
        }
        let open = |&square: &usize| self.open[square];
        let choices: Vec<usize> = self.lines[line].iter().copied().filter(open).collect();
        self.spend(50 + 2 * self.lines[line].len());
        let before = self.changes.len();
        for square in choices {
            self.pending.clear();
            let open = self.place(square).and_then(|()| self.follow()).is_ok();
            self.report(meter)?;
            if open {
                self.tree(reader, meter)?;
            }
            self.undo(before);
        }
        Ok(())
    }

    fn count_node(&mut self) -> Result<(), ProofError> {
        self.work += 1;
        if self.work > self.limit { Err(ProofError::TooMuchWork(self.limit)) } else { Ok(()) }
    }

    /// Reads prices, closes the squares they rule out, fills diagonals if `fill` is set, and
    /// propagates.
    fn prices(
        &mut self,
        fill: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Result<(), Contradiction>, ProofError> {
        let numbers = prices::count(self.n, self.levels.len());
        let mut price = vec![0i128; numbers];
        let count = reader.size(numbers)?;
        let squares: usize = self.lines[..self.n].iter().map(Vec::len).sum();
        self.spend(10 * numbers + 20 * count + 30 * squares);
        for _ in 0..count {
            let number = reader.size(numbers.saturating_sub(1))?;
            price[number] = reader.signed()?.into();
        }
        if (0..6 * self.n).any(|line| !self.must[line] && price[line] < 0) {
            return Err(refused("a queen is paid for her diagonal"));
        }
        let Some((dear, mut full)) = self.ruled_out(&price) else { return Ok(Err(Contradiction)) };
        full.retain(|_| fill);
        if dear.is_empty() && full.is_empty() {
            return Err(refused("prices rule nothing out"));
        }
        self.pending.clone_from(&full);
        for diagonal in full {
            self.must[diagonal] = true;
            self.changes.push(Change::Filled(diagonal));
        }
        let closed = dear.into_iter().try_for_each(|square| self.close(square));
        Ok(closed.and_then(|()| self.follow()))
    }

    /// Returns the open squares that the prices rule out, and the diagonals on which the remaining
    /// queens must place one; `None` if the prices are a contradiction.
    ///
    /// A queen pays the prices of her column, her diagonals and her level. All remaining queens
    /// together pay the price of each column and of each full diagonal once, the price of any other
    /// diagonal at most once, and the price of a level once per queen on it. They pay at least the
    /// cheapest square of each row.
    ///
    /// No sum overflows: prices have 64 bits, each square has four of them, and there are fewer
    /// than 2^20 squares and numbers.
    fn ruled_out(&self, price: &[i128]) -> Option<(Vec<usize>, Vec<usize>)> {
        let number_of = |level| prices::level(self.n, level);
        let price_of = |&square: &usize| -> i128 {
            let lines: i128 = self.lines_of(square)[1..].iter().map(|&line| price[line]).sum();
            lines + price[number_of(self.level_of(square))]
        };
        let open_on =
            |line: usize| self.lines[line].iter().copied().filter(|&square| self.open[square]);
        let lines =
            (self.n..6 * self.n).filter(|&line| price[line] != 0 && open_on(line).next().is_some());
        let lines: Vec<usize> = lines.collect();
        let on_lines: i128 = lines.iter().map(|&line| price[line]).sum();
        let on_levels: i128 = (0..self.levels.len())
            .map(|level| {
                let (queens, (least, most)) = (self.queens_on_level[level], self.range[level]);
                let price = price[number_of(level)];
                let at_most = most.saturating_sub(queens).min(self.open_on_level[level]);
                let to_come = if price > 0 { at_most } else { least.saturating_sub(queens) };
                price * to_come as i128
            })
            .sum();
        let cheapest: Vec<Option<i128>> =
            (0..self.n).map(|row| open_on(row).map(|square| price_of(&square)).min()).collect();
        let between = on_lines + on_levels - cheapest.iter().flatten().sum::<i128>();
        let ruled_out = |&square: &usize| {
            cheapest[square / self.n].is_some_and(|cheapest| price_of(&square) - cheapest > between)
        };
        let full = |&line: &usize| !self.must[line] && price[line] > between;
        (between >= 0).then(|| {
            let dear = (0..self.n).flat_map(open_on).filter(ruled_out).collect();
            (dear, lines.iter().copied().filter(full).collect())
        })
    }

    /// Propagates what is forced until the queue is empty.
    fn follow(&mut self) -> Result<(), Contradiction> {
        while let Some(next) = self.pending.pop() {
            self.spend(4);
            if next < self.lines.len() {
                if self.lacks(next) && self.open_on_line[next] <= 1 {
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
                let squares: Vec<usize> = self.levels[level]
                    .iter()
                    .copied()
                    .filter(|&square| self.open[square])
                    .collect();
                for square in squares {
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
    fn lacks(&self, line: usize) -> bool {
        self.must[line] && self.queen_on[line].is_none()
    }

    /// Returns how many queens are placed together on a level: four under quarter turns, except in
    /// the centre, otherwise one.
    fn queens_per_orbit(&self, level: usize) -> usize {
        let in_centre = !self.n.is_multiple_of(2) && level == self.level_of(self.squares() / 2);
        if self.turning && !in_centre { 4 } else { 1 }
    }

    /// Places a queen and, if solutions are invariant under quarter turns, her images; closes all
    /// attacked squares.
    fn place(&mut self, square: usize) -> Result<(), Contradiction> {
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
    fn close(&mut self, square: usize) -> Result<(), Contradiction> {
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
            if self.open_on_line[line] <= 1 && self.lacks(line) {
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

    fn undo(&mut self, before: usize) {
        while self.changes.len() > before {
            let Some(change) = self.changes.pop() else { break };
            match change {
                Change::Filled(diagonal) => self.must[diagonal] = false,
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::board::{Piece, Placement, Problem};
    use crate::bytes::Writer;

    /// Returns a random solution: the column of the queen in each row.
    fn random_solution(n: usize, random: &mut fastrand::Rng) -> Vec<usize> {
        loop {
            let mut columns: Vec<usize> = (0..n).collect();
            random.shuffle(&mut columns);
            if Placement::check_solution(&Problem::empty(Piece::Queen, n), &columns).is_ok() {
                return columns;
            }
        }
    }

    /// Writes a tree over the first `rows` rows without a queen, with a hole wherever something is
    /// left.
    pub(in super::super) fn write_wide(board: &mut Board, rows: usize, tree: &mut Vec<u8>) {
        let row = (0..board.n).find(|&row| board.queen_on[row].is_none());
        let Some(row) = row.filter(|_| rows > 0) else { return tree.push(2 * board.n as u8) };
        tree.push(row as u8);
        let before = board.changes.len();
        for square in board.lines[row].clone() {
            board.pending.clear();
            if board.open[square] && board.place(square).and_then(|()| board.follow()).is_ok() {
                write_wide(board, rows - 1, tree);
            }
            board.undo(before);
        }
    }

    #[test]
    fn trees_branch_on_diagonals_that_are_full_and_on_no_others() {
        let n = 4;
        let mut board = Board::new(n, Norm::Euclidean, false);
        // The squares of both solutions.
        let open = [1, 2, 4, 7, 8, 11, 13, 14];
        (0..16)
            .filter(|square| !open.contains(square))
            .for_each(|square| board.close_for_good(square));
        let diagonal = prices::diagonals(n, 1)[0];
        let tree = |board: &mut Board, line: usize| {
            let mut tree = Writer::new();
            tree.size(line);
            board.search(None, &mut Reader::new(&tree.finish()), &mut Meter::default())
        };
        let nowhere = Err(refused("a tree branches where no queen is to come"));
        assert_eq!(tree(&mut board, prices::in_tree(diagonal)), nowhere);
        // Both solutions have a queen there, so branching on it leaves them.
        board.set_full(1, true);
        assert!(board.must[diagonal] && !board.must[prices::diagonals(n, 2)[0]]);
        assert_eq!(tree(&mut board, prices::in_tree(diagonal)), tree(&mut board, 0));
        // Neither solution has a queen on a main diagonal.
        board.set_full(0, true);
        assert_eq!(board.search(None, &mut Reader::new(&[]), &mut Meter::default()), Ok(()));
    }

    #[test]
    fn prices_on_diagonals_are_not_negative_and_none_are_there_for_nothing() {
        let n = 6;
        let diagonal = prices::lines(n, 2 * n + 3)[2];
        let row = prices::lines(n, 0)[0];
        for (number, price, why) in [
            (diagonal, -1, Some("a queen is paid for her diagonal")),
            (diagonal, 0, Some("prices rule nothing out")),
            (row, 1, Some("prices rule nothing out")),
            (prices::count(n, Board::new(n, Norm::Euclidean, false).levels.len()), 1, None),
        ] {
            let mut tree = Writer::new();
            tree.size(prices::mark(n));
            tree.size(1);
            tree.size(number);
            tree.signed(price);
            let tree = tree.finish();
            let mut board = Board::new(n, Norm::Euclidean, false);
            let checked = board.search(None, &mut Reader::new(&tree), &mut Meter::default());
            let expected = why.map_or(ProofError::Damaged("a number is too large"), refused);
            assert_eq!(checked, Err(expected), "{number}: {price}");
        }
    }

    #[test]
    fn prices_rule_no_solution_out() {
        let mut random = fastrand::Rng::with_seed(12);
        let (mut ruled_out, mut filled, mut told, mut only_filled) = (0, 0, 0, 0);
        for case in 0..20_000 {
            let n = random.usize(5..=8);
            let solution = random_solution(n, &mut random);
            let mut board = Board::new(n, Norm::Euclidean, false);
            let queens: Vec<usize> = (0..n).map(|row| row * n + solution[row]).collect();
            let mut counts = vec![0; board.levels.len()];
            queens.iter().for_each(|&square| counts[board.level_of(square)] += 1);
            for (level, &count) in counts.iter().enumerate() {
                if random.bool() {
                    board.range[level] =
                        (count - random.usize(0..=count), count + random.usize(0..2));
                }
            }
            for square in 0..n * n {
                if !queens.contains(&square) && random.u8(0..3) == 0 {
                    board.close_for_good(square);
                }
            }
            for &square in &queens {
                if random.u8(0..3) == 0 {
                    assert!(board.open[square] && board.place(square).is_ok(), "case {case}");
                }
            }
            let has_queen =
                |line: &usize| queens.iter().any(|&square| board.lines_of(square).contains(line));
            let with_queen: Vec<usize> = (2 * n..6 * n).filter(has_queen).collect();
            for &diagonal in &with_queen {
                board.must[diagonal] = random.u8(0..3) == 0;
            }
            let numbers = prices::count(n, board.levels.len());
            let mut price = vec![0i128; numbers];
            for _ in 0..random.usize(1..2 * n) {
                let number = random.usize(0..numbers);
                let may_be_empty = (2 * n..6 * n).contains(&number) && !board.must[number];
                let least = if may_be_empty { 0 } else { -4 };
                price[number] = random.i128(least..5);
            }
            let (dear, full) =
                board.ruled_out(&price).unwrap_or_else(|| panic!("case {case} is ruled out"));
            assert!(dear.iter().all(|square| board.open[*square]), "case {case}");
            assert!(queens.iter().all(|square| !dear.contains(square)), "case {case}");
            assert!(full.iter().all(|line| with_queen.contains(line)), "case {case}");
            filled += full.len();
            ruled_out += dear.len();
            told += usize::from(!dear.is_empty());
            if dear.is_empty() && !full.is_empty() {
                // Plain prices fill no diagonals, so they rule nothing out here.
                let mut writer = Writer::new();
                writer.size(numbers);
                for (number, &price) in price.iter().enumerate() {
                    writer.size(number);
                    writer.signed(price as i64);
                }
                let written = writer.finish();
                let mut read =
                    |fill| board.prices(fill, &mut Reader::new(&written)).map(|open| open.is_ok());
                assert_eq!(read(false), Err(refused("prices rule nothing out")), "case {case}");
                assert_eq!(read(true), Ok(true), "case {case}");
                assert!(full.iter().all(|&line| board.must[line]), "case {case}");
                only_filled += 1;
            }
        }
        assert!(
            told > 200 && filled > 200,
            "{ruled_out} squares in {told} cases, {filled} diagonals"
        );
        assert!(only_filled > 200, "{only_filled}");
    }
}
