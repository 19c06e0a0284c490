//! Search trees: the checker follows them on its board, and evaluates the prices in them.

use super::board::{Board, Change, Contradiction};
use super::observer::Observer;
use super::{prices, refused};
use crate::bytes::Reader;
use crate::{Meter, ProofError};

impl Board {
    /// Checks that a tree leads to contradictions everywhere, from the current board or with a
    /// queen on `square`.
    pub(super) fn search(
        &mut self,
        square: Option<usize>,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), ProofError> {
        observer.begin_search();
        self.search_below(square.as_slice(), reader, meter, observer)?;
        observer.end_search(square)
    }

    /// Does the same with queens on several squares, some of which may propagate from others.
    pub(super) fn search_below(
        &mut self,
        squares: &[usize],
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), ProofError> {
        self.report(meter)?;
        self.spend(4 * (self.lines.len() + self.levels.len()));
        self.pending = (0..self.lines.len() + self.levels.len()).collect();
        let placed = squares.iter().try_for_each(|&square| {
            if self.queen_on[square / self.n] == Some(square) { Ok(()) } else { self.place(square) }
        });
        let done = if placed.and_then(|()| self.propagate()).is_ok() {
            self.tree(reader, meter, observer)
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

    fn tree(
        &mut self,
        reader: &mut Reader<'_>,
        meter: &mut Meter<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), ProofError> {
        let (mark, last) = (prices::mark(self.n), prices::filling_mark(self.n));
        let mut line = self.read_line(reader)?;
        // A loop rather than recursion, so that a long chain of prices needs no deep stack.
        while line == mark || line == last {
            if self.holes.is_some() {
                return Err(refused("the tree of a subtree has prices"));
            }
            self.count_node()?;
            if self.prices(line == last, reader, observer)?.is_err() {
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
        if self.queen_on[line].is_some() || !self.mandatory[line] {
            return Err(refused("a tree branches over a line that needs no queen"));
        }
        let choices = self.open_on_line(line);
        self.spend(50 + 2 * self.lines[line].len());
        let before = self.changes.len();
        let last = choices.last().copied();
        for square in choices {
            let is_last = last == Some(square);
            observer.begin_queen(square, is_last)?;
            self.pending.clear();
            let open = self.place(square).and_then(|()| self.propagate()).is_ok();
            self.report(meter)?;
            if open {
                self.tree(reader, meter, observer)?;
            }
            observer.end_queen(is_last);
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
        observer: &mut impl Observer,
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
        if (0..6 * self.n).any(|line| !self.mandatory[line] && price[line] < 0) {
            return Err(refused("the price of a diagonal that is not full is negative"));
        }
        observer.prices(self, &price);
        let Some((costly, mut full)) = self.ruled_out(&price) else {
            return Ok(Err(Contradiction));
        };
        full.retain(|_| fill);
        if costly.is_empty() && full.is_empty() {
            return Err(refused("the prices rule nothing out"));
        }
        self.pending.clone_from(&full);
        for diagonal in full {
            self.mandatory[diagonal] = true;
            self.changes.push(Change::Filled(diagonal));
        }
        let closed = costly.into_iter().try_for_each(|square| self.close(square));
        Ok(closed.and_then(|()| self.propagate()))
    }

    /// Returns the open squares that the prices rule out, and the diagonals on which the remaining
    /// queens must place one; `None` if the prices are a contradiction.
    ///
    /// A queen pays the prices of its column, its diagonals and its level. All remaining queens
    /// together pay the price of each column and of each full diagonal once, the price of any other
    /// diagonal at most once, and the price of a level once per queen on it. They pay at least the
    /// cheapest square of each row.
    ///
    /// No sum overflows: prices have 64 bits, each square has four of them, and there are fewer
    /// than 2^20 squares and numbers.
    fn ruled_out(&self, price: &[i128]) -> Option<(Vec<usize>, Vec<usize>)> {
        let number_of = |level| prices::level(self.n, level);
        let price_of = |&square: &usize| self.price(square, price);
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
        let full = |&line: &usize| !self.mandatory[line] && price[line] > between;
        (between >= 0).then(|| {
            let costly = (0..self.n).flat_map(open_on).filter(ruled_out).collect();
            (costly, lines.iter().copied().filter(full).collect())
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::board::{Norm, Piece, Placement, Problem};
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

    /// Writes a tree over the first `rows` rows without a queen, with a hole at every leaf that is
    /// not refuted.
    pub(in super::super) fn write_wide(board: &mut Board, rows: usize, tree: &mut Vec<u8>) {
        let row = (0..board.n).find(|&row| board.queen_on[row].is_none());
        let Some(row) = row.filter(|_| rows > 0) else { return tree.push(2 * board.n as u8) };
        tree.push(row as u8);
        let before = board.changes.len();
        for square in board.lines[row].clone() {
            board.pending.clear();
            if board.open[square] && board.place(square).and_then(|()| board.propagate()).is_ok() {
                write_wide(board, rows - 1, tree);
            }
            board.undo(before);
        }
    }

    #[test]
    fn trees_branch_only_on_full_diagonals() {
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
            board.search(None, &mut Reader::new(&tree.finish()), &mut Meter::default(), &mut ())
        };
        let nowhere = Err(refused("a tree branches over a line that needs no queen"));
        assert_eq!(tree(&mut board, prices::in_tree(diagonal)), nowhere);
        // Both solutions have a queen there, so branching on it leaves them.
        board.set_full(1, true);
        assert!(board.mandatory[diagonal] && !board.mandatory[prices::diagonals(n, 2)[0]]);
        assert_eq!(tree(&mut board, prices::in_tree(diagonal)), tree(&mut board, 0));
        // Neither solution has a queen on a main diagonal.
        board.set_full(0, true);
        assert_eq!(
            board.search(None, &mut Reader::new(&[]), &mut Meter::default(), &mut ()),
            Ok(())
        );
    }

    #[test]
    fn prices_of_diagonals_are_nonnegative_and_rule_out_at_least_one_square() {
        let n = 6;
        let diagonal = prices::lines(n, 2 * n + 3)[2];
        let row = prices::lines(n, 0)[0];
        for (number, price, why) in [
            (diagonal, -1, Some("the price of a diagonal that is not full is negative")),
            (diagonal, 0, Some("the prices rule nothing out")),
            (row, 1, Some("the prices rule nothing out")),
            (prices::count(n, Board::new(n, Norm::Euclidean, false).levels.len()), 1, None),
        ] {
            let mut tree = Writer::new();
            tree.size(prices::mark(n));
            tree.size(1);
            tree.size(number);
            tree.signed(price);
            let tree = tree.finish();
            let mut board = Board::new(n, Norm::Euclidean, false);
            let checked =
                board.search(None, &mut Reader::new(&tree), &mut Meter::default(), &mut ());
            let expected = why.map_or(ProofError::Damaged("a number is too large"), refused);
            assert_eq!(checked, Err(expected), "{number}: {price}");
        }
    }

    #[test]
    fn prices_rule_no_solution_out() {
        let mut random = fastrand::Rng::with_seed(12);
        let (mut ruled_out, mut filled, mut with_squares, mut only_filled) = (0, 0, 0, 0);
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
                board.mandatory[diagonal] = random.u8(0..3) == 0;
            }
            let numbers = prices::count(n, board.levels.len());
            let mut price = vec![0i128; numbers];
            for _ in 0..random.usize(1..2 * n) {
                let number = random.usize(0..numbers);
                let may_be_empty = (2 * n..6 * n).contains(&number) && !board.mandatory[number];
                let least = if may_be_empty { 0 } else { -4 };
                price[number] = random.i128(least..5);
            }
            let (costly, full) =
                board.ruled_out(&price).unwrap_or_else(|| panic!("case {case} is ruled out"));
            assert!(costly.iter().all(|square| board.open[*square]), "case {case}");
            assert!(queens.iter().all(|square| !costly.contains(square)), "case {case}");
            assert!(full.iter().all(|line| with_queen.contains(line)), "case {case}");
            filled += full.len();
            ruled_out += costly.len();
            with_squares += usize::from(!costly.is_empty());
            if costly.is_empty() && !full.is_empty() {
                // Plain prices fill no diagonals, so they rule nothing out here.
                let mut writer = Writer::new();
                writer.size(numbers);
                for (number, &price) in price.iter().enumerate() {
                    writer.size(number);
                    writer.signed(price as i64);
                }
                let written = writer.finish();
                let mut read = |fill| {
                    board.prices(fill, &mut Reader::new(&written), &mut ()).map(|open| open.is_ok())
                };
                assert_eq!(read(false), Err(refused("the prices rule nothing out")), "case {case}");
                assert_eq!(read(true), Ok(true), "case {case}");
                assert!(full.iter().all(|&line| board.mandatory[line]), "case {case}");
                only_filled += 1;
            }
        }
        assert!(
            with_squares > 200 && filled > 200,
            "{ruled_out} squares in {with_squares} cases, {filled} diagonals"
        );
        assert!(only_filled > 200, "{only_filled}");
    }
}
