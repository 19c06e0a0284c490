//! The lexicographically first solution: what is proved, in which form, and the checker.
//!
//! **What is proved.** That the given columns are a solution, and that none comes before it: for each row, and each
//! smaller column that the queens of the rows above leave free, the board with these queens and one there has no
//! completion. Or, without columns, that the empty board has none.
//!
//! **The form.** Numbers as in [`super::bytes`]. First the most work that the checker may have to do: 1 for each queen, 500 for each budget.
//! Then 1 and the n 0-based columns, or 0 if there is no solution. Then the refutations: for each row from the top and each
//! smaller free column from the left, one tree; without a solution one tree for the empty board. A tree is one of
//!
//! | byte | followed by | what |
//! |---|---|---|
//! | 0 | | the checker tries everything by itself, on the line with the fewest squares |
//! | 1 | multipliers, a tree | a budget, and what refutes the position with it |
//! | 2 | multipliers, a tree | a budget with the knapsacks, and the same |
//! | 3 | line, number of children, for each a square and a tree | all squares of a line |
//! | 4 | multipliers, number of squares, the squares, a tree | squares that die, and what refutes the position then |
//! | 5 | | the checker tries everything by itself, in the rows that ran out of squares before |
//! | 6 | number of blocks, for each the number of its rows and these | the same, but one of these blocks of rows after the other, and then the rest |
//! | 7 | the same | the same, but also in the columns that ran out of squares before |
//! | 8 | by row and column how often it did so, and as after 7 | the same, as if that had happened already |
//!
//! Lines are the rows from 0, the columns from n, the diagonals c - r + n - 1 from 2n, the antidiagonals r + c from
//! 4n - 1; the square of row r and column c is r n + c. Multipliers are those of the columns (signed), diagonals and
//! antidiagonals in this order; after a 0 comes how many more zeros follow. What they mean is said in `position.rs`.
//!
//! **The checker** keeps one position and walks over the tree. After each queen and each budget it draws all
//! conclusions by itself: a position that it sees refuted needs nothing more, and what the tree still says about it is
//! passed over. A branch must be over a line that every completion uses, and every square of it that is alive must
//! be listed or be refuted at once; if the conclusions have put a queen on the line already, its square must be listed. A square that is to die, if it is alive,
//! must be refuted with a queen there: at once, or by the budget of the multipliers with the knapsacks. No multipliers can be wrong: those of the rows are computed, such that they make a
//! budget. They can only be too weak, and then the tree refutes nothing.

mod knapsack;
mod position;
mod refutation;

pub use refutation::{LARGEST_MULTIPLIER, Line, Multipliers, Refutation};

use super::bytes::{Reader, Writer};
use super::{Kind, ProofError, Proved, seal};
use crate::board::{Piece, Square, first_attack, is_solution};
use position::Position;
use refutation::{Node, Order, read};

/// The largest board.
pub const LARGEST: usize = 128;

/// Trees are not deeper than this.
const DEEPEST: usize = 1000;

/// A certificate for `solution` (the 0-based column of each row; none if there is none), with its refutations in
/// order. It is checked before it is returned, and says how much work that was.
///
/// # Errors
/// It would not be accepted.
pub fn certificate(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[&Refutation],
) -> Result<Vec<u8>, ProofError> {
    let mut writer = Writer::new();
    writer.byte(u8::from(solution.is_some()));
    solution.into_iter().flatten().for_each(|&column| writer.size(column));
    refutations.iter().for_each(|refutation| writer.bytes(refutation.as_bytes()));
    let claim = writer.finish();
    let work = check_claim(n, &mut Reader::new(&claim), u64::MAX)?.work;
    let mut writer = Writer::new();
    writer.number(work);
    writer.bytes(&claim);
    Ok(seal(Kind::First, n, &writer.finish()))
}

/// Checks what stands in a certificate of [`Kind::First`] for the board of size `n`.
///
/// # Errors
/// It is damaged, or it proves nothing.
pub fn check(n: usize, proof: &[u8]) -> Result<Proved, ProofError> {
    let mut reader = Reader::new(proof);
    let limit = reader.number()?;
    check_claim(n, &mut reader, limit)
}

/// Checks one refutation: that the queens in the first rows of the board of size `n`, on the 0-based columns
/// `prefix`, have no completion. Returns how much work that was.
///
/// # Errors
/// It refutes nothing, or there would be more work than `limit`.
pub fn check_refutation(
    n: usize,
    prefix: &[usize],
    refutation: &Refutation,
    limit: u64,
) -> Result<u64, ProofError> {
    let mut checker =
        Checker { n, reader: Reader::new(refutation.as_bytes()), work: Work { done: 0, limit } };
    checker.refute_prefix(prefix)?;
    if checker.reader.is_empty() { Ok(checker.work.done) } else { Err(TOO_LONG) }
}

const TOO_LONG: ProofError = ProofError::Damaged("something follows after its end");

fn check_claim(n: usize, reader: &mut Reader<'_>, limit: u64) -> Result<Proved, ProofError> {
    if n > LARGEST {
        return Err(ProofError::Damaged("its board is larger than 128"));
    }
    let solution = match reader.byte()? {
        0 => None,
        1 => Some((0..n).map(|_| reader.size(LARGEST)).collect::<Result<Vec<usize>, _>>()?),
        _ => return Err(ProofError::Damaged("it claims neither a solution nor that there is none")),
    };
    let mut checker = Checker { n, reader: reader.clone(), work: Work { done: 0, limit } };
    match &solution {
        Some(columns) if !is_solution(Piece::Queen, columns) => {
            return Err(ProofError::Refused("its queens attack each other".into()));
        }
        Some(columns) => {
            for row in 0..n {
                let mut prefix = columns[..=row].to_vec();
                for column in 0..columns[row] {
                    prefix[row] = column;
                    if is_free(n, &prefix) {
                        checker.refute_prefix(&prefix)?;
                    }
                }
            }
        }
        None if n == 0 => return Err(ProofError::Refused("the board without squares has a solution".into())),
        None => checker.refute_prefix(&[])?,
    }
    if !checker.reader.is_empty() {
        return Err(TOO_LONG);
    }
    Ok(Proved { kind: Kind::First, beauty: None, n, solution, work: checker.work.done })
}

/// Whether the last of these queens attacks none of the others, which do not attack each other.
fn is_free(n: usize, prefix: &[usize]) -> bool {
    let squares: Vec<Square> = prefix.iter().enumerate().map(|(row, &col)| Square::new(row, col)).collect();
    first_attack(Piece::Queen, n, &squares).is_none()
}

/// What the checker has to do: 1 for each queen that it places, [`Work::BUDGET`] for each budget. A
/// certificate states it, so that nobody waits for longer than it says.
struct Work {
    done: u64,
    limit: u64,
}

impl Work {
    /// About as long as so many queens.
    const BUDGET: u64 = 500;

    fn add(&mut self, more: u64) -> Result<(), ProofError> {
        self.done = self.done.saturating_add(more);
        if self.done > self.limit {
            return Err(ProofError::TooMuchWork(self.limit));
        }
        Ok(())
    }
}

struct Checker<'a> {
    n: usize,
    reader: Reader<'a>,
    work: Work,
}

impl Checker<'_> {
    /// Reads the next tree and checks that it refutes the board with these queens on its first rows.
    fn refute_prefix(&mut self, prefix: &[usize]) -> Result<(), ProofError> {
        let mut position = Position::new(self.n, prefix);
        let refuted = position.conclude();
        self.refute(&mut position, refuted, 0).map_err(|error| match error {
            ProofError::Refused(why) => {
                let columns: Vec<String> = prefix.iter().map(|column| (column + 1).to_string()).collect();
                ProofError::Refused(format!("after {}: {why}", columns.join(" ")))
            }
            other => other,
        })
    }

    /// Reads the next tree and checks that it refutes `position`, which is left as it was. Where it is refuted
    /// already, the tree is only read.
    fn refute(&mut self, position: &mut Position, refuted: bool, depth: usize) -> Result<(), ProofError> {
        if depth > DEEPEST {
            return Err(ProofError::Damaged("a refutation is too deep"));
        }
        match read(&mut self.reader, self.n)? {
            Node::Search(_) if refuted => Ok(()),
            Node::Search(order) => {
                if let Order::Weightiest(lines) = &order {
                    position.learn(lines);
                }
                self.search(position, &order)
            }
            Node::Budget { .. } if refuted => self.refute(position, refuted, depth + 1),
            Node::Budget { knapsack, y } => {
                self.work.add(Work::BUDGET)?;
                let mark = position.mark();
                let displaced = position.add_budget(&y, knapsack);
                let refuted = position.conclude();
                self.refute(position, refuted, depth + 1)?;
                position.remove_budget(displaced);
                position.back_to(&mark);
                Ok(())
            }
            Node::Branch { children, .. } if refuted => {
                for _ in 0..children {
                    self.reader.size(usize::MAX)?;
                    self.refute(position, refuted, depth + 1)?;
                }
                Ok(())
            }
            Node::Branch { line, children } => self.branch(position, line, children, depth),
            Node::Dead { .. } if refuted => self.refute(position, refuted, depth + 1),
            Node::Dead { y, squares } => {
                let mark = position.mark();
                let mut refuted = false;
                for square in squares {
                    refuted = refuted || self.dies(position, square, &y)?;
                }
                self.refute(position, refuted, depth + 1)?;
                position.back_to(&mark);
                Ok(())
            }
        }
    }

    /// Kills a square, if it is alive, that cannot hold a queen by the budget of `y`. Returns whether the position is
    /// refuted then.
    fn dies(&mut self, position: &mut Position, square: usize, y: &[i64]) -> Result<bool, ProofError> {
        if !position.is_alive(square) {
            return Ok(false);
        }
        let mark = position.mark();
        if !self.place(position, square)? {
            self.work.add(Work::BUDGET)?;
            if !position.is_refuted_by(y) {
                return Err(ProofError::Refused("it passes over a square that may hold a queen".into()));
            }
        }
        position.back_to(&mark);
        position.kill(square);
        Ok(position.conclude())
    }

    fn branch(
        &mut self,
        position: &mut Position,
        line: usize,
        children: usize,
        depth: usize,
    ) -> Result<(), ProofError> {
        let refused = |what: &str| Err(ProofError::Refused(format!("it branches over {what}")));
        let Some(mut open) = position.choices(line) else {
            let Some(queen) = position.queen_on(line) else { return refused("a line that is not open") };
            let mut listed = false;
            for _ in 0..children {
                let here = self.reader.size(usize::MAX)? == queen;
                self.refute(position, !here, depth + 1)?;
                listed |= here;
            }
            return if listed { Ok(()) } else { refused("a line and passes over the queen on it") };
        };
        if !position.is_mandatory(line) {
            return refused("a diagonal that no completion must use");
        }
        for _ in 0..children {
            let square = self.reader.size(usize::MAX)?;
            let place = open.iter().position(|&other| other == square);
            match place.map(|place| open.swap_remove(place)) {
                Some(square) => {
                    let mark = position.mark();
                    let refuted = self.place(position, square)?;
                    self.refute(position, refuted, depth + 1)?;
                    position.back_to(&mark);
                }
                None => self.refute(position, true, depth + 1)?,
            }
        }
        for square in open {
            let mark = position.mark();
            if !self.place(position, square)? {
                return refused("a line and passes over one of its squares");
            }
            position.back_to(&mark);
        }
        Ok(())
    }

    /// Tries everything on one line after the other. Whatever the order says, each line is one that every completion uses.
    fn search(&mut self, position: &mut Position, order: &Order) -> Result<(), ProofError> {
        let line = match order {
            Order::Smallest => position.smallest_line(),
            Order::Weightiest(lines) => position.weightiest_line(lines),
        };
        let Some(line) = line else {
            return Err(ProofError::Refused("there is a completion".into()));
        };
        for square in position.choices(line).into_iter().flatten() {
            let mark = position.mark();
            if !self.place(position, square)? {
                self.search(position, order)?;
            }
            position.back_to(&mark);
        }
        Ok(())
    }

    /// Whether the position is refuted with a queen on `square`.
    fn place(&mut self, position: &mut Position, square: usize) -> Result<bool, ProofError> {
        self.work.add(1)?;
        position.place(square);
        Ok(position.conclude())
    }
}

#[cfg(test)]
mod tests {
    use super::refutation::Weightiest;
    use super::*;

    /// Every completion of `prefix`, by the plain definition.
    fn completions(n: usize, prefix: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        if prefix.len() == n {
            found.push(prefix.clone());
            return;
        }
        for column in 0..n {
            prefix.push(column);
            if is_free(n, prefix) {
                completions(n, prefix, found);
            }
            prefix.pop();
        }
    }

    fn all(n: usize, prefix: &[usize]) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        completions(n, &mut prefix.to_vec(), &mut found);
        found
    }

    fn peaceful_prefix(n: usize, random: &mut fastrand::Rng) -> Vec<usize> {
        let mut prefix = Vec::new();
        for _ in 0..random.usize(0..n) {
            let free: Vec<usize> =
                (0..n).filter(|&column| is_free(n, &[&prefix[..], &[column]].concat())).collect();
            let Some(&column) = random.choice(&free) else { break };
            prefix.push(column);
        }
        prefix
    }

    fn multipliers(n: usize, random: &mut fastrand::Rng) -> Multipliers {
        let size = random.choice([1, 10, 1000, LARGEST_MULTIPLIER - 1]).unwrap_or(1);
        let sparse = random.u8(0..4);
        let mut values = |from: i64, number: usize| -> Vec<i64> {
            let value = |_| if random.u8(0..4) < sparse { 0 } else { random.i64(from..=size) };
            (0..number).map(value).collect()
        };
        Multipliers {
            columns: values(-size, n),
            diagonals: values(0, 2 * n - 1),
            antidiagonals: values(0, 2 * n - 1),
        }
    }

    /// Some blocks of any rows.
    fn blocks(n: usize, random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
        let block =
            |random: &mut fastrand::Rng| (0..random.usize(0..=n)).map(|_| random.usize(0..n)).collect();
        (0..random.usize(0..=n.min(3))).map(|_| block(random)).collect()
    }

    /// Any weights of rows and columns.
    fn learned(n: usize, random: &mut fastrand::Rng) -> Vec<u32> {
        (0..2 * n).map(|_| random.choice([0, 1, 2, 100, u32::MAX]).unwrap_or(1)).collect()
    }

    /// Any tree at all, of any squares and lines.
    fn tree(n: usize, depth: usize, random: &mut fastrand::Rng) -> Refutation {
        match random.u8(0..if depth == 0 { 1 } else { 7 }) {
            0 if random.bool() => in_blocks(random.u8(6..=7), &blocks(n, random)),
            0 if random.bool() => Refutation::search_by_weight(&blocks(n, random), &learned(n, random)),
            0 => SEARCHES[random.usize(0..3)](),
            6 => {
                let then = tree(n, depth - 1, random);
                let squares: Vec<usize> =
                    (0..random.usize(0..=2 * n)).map(|_| random.usize(0..n * n)).collect();
                Refutation::dead(&multipliers(n, random), &squares, &then)
            }
            kind @ 1..=3 => {
                let then = tree(n, depth - 1, random);
                Refutation::budget(&multipliers(n, random), kind > 1, &then)
            }
            _ => {
                let at = random.usize(0..n);
                let lines = [Line::Row(at), Line::Column(at), Line::Diagonal(at), Line::Antidiagonal(at)];
                let line = random.choice(lines).unwrap_or(Line::Row(0));
                let listed = random.usize(0..=n);
                let square = |random: &mut fastrand::Rng| match line {
                    Line::Row(row) => row * n + random.usize(0..n),
                    Line::Column(column) => random.usize(0..n) * n + column,
                    _ => random.usize(0..n * n),
                };
                let children: Vec<(usize, Refutation)> =
                    (0..listed).map(|_| (square(random), tree(n, depth - 1, random))).collect();
                Refutation::branch(n, line, &children)
            }
        }
    }

    #[test]
    fn no_tree_refutes_a_position_that_has_a_completion() {
        let mut random = fastrand::Rng::with_seed(62);
        let (mut refuted, mut with_completion) = (0, 0);
        for case in 0..6000 {
            let n = random.usize(1..=8);
            let prefix = peaceful_prefix(n, &mut random);
            let none = all(n, &prefix).is_empty();
            let tree = tree(n, 4, &mut random);
            let accepted = check_refutation(n, &prefix, &tree, 1_000_000);
            match accepted {
                Ok(_) => {
                    assert!(none, "case {case}: {prefix:?} of {n} has a completion: {tree:?}");
                    refuted += 1;
                }
                Err(ProofError::Refused(_) | ProofError::Damaged(_)) => {}
                Err(other) => panic!("case {case}: {other}"),
            }
            with_completion += u32::from(!none);
        }
        assert!(
            refuted > 300 && with_completion > 300,
            "{refuted} refuted, {with_completion} with a completion"
        );
    }

    #[test]
    fn the_search_refutes_exactly_what_has_no_completion() {
        let mut random = fastrand::Rng::with_seed(8);
        for case in 0..2000 {
            let n = random.usize(1..=9);
            let prefix = peaceful_prefix(n, &mut random);
            let budgets: usize = random.usize(0..6);
            let blocks = blocks(n, &mut random);
            let searches = [
                Refutation::search(),
                in_blocks(6, &blocks),
                Refutation::search_by_weight(&blocks, &[]),
                Refutation::search_by_weight(&blocks, &learned(n, &mut random)),
            ];
            let search = searches[random.usize(0..4)].clone();
            let refutation = (0..budgets).fold(search, |then, _| {
                Refutation::budget(&multipliers(n, &mut random), random.bool(), &then)
            });
            let accepted = check_refutation(n, &prefix, &refutation, u64::MAX).is_ok();
            assert_eq!(accepted, all(n, &prefix).is_empty(), "case {case}: {prefix:?} of {n}");
        }
    }

    #[test]
    fn columns_are_branched_over_where_they_ran_out_of_squares_before() {
        let lines =
            |blocks: &[u128]| Weightiest { blocks: blocks.to_vec(), columns: true, ..Weightiest::default() };
        let mut position = Position::new(6, &[]);
        assert!(!position.conclude());
        let mark = position.mark();
        // Column 4 loses all its squares.
        (0..6).for_each(|row| position.kill(row * 6 + 4));
        assert!(position.conclude());
        position.back_to(&mark);
        assert!(!position.conclude());
        assert_eq!(position.weightiest_line(&lines(&[])), Some(6 + 4));
        assert_eq!(position.weightiest_line(&Weightiest::default()), Some(0));
        // It is shared by rows that are not of the block.
        assert_eq!(position.weightiest_line(&lines(&[0b1100])), Some(2));
        (0..6).filter(|row| ![2, 3].contains(row)).for_each(|row| position.kill(row * 6 + 4));
        assert_eq!(position.weightiest_line(&lines(&[0b1100])), Some(6 + 4));
    }

    #[test]
    fn a_search_begins_with_what_was_learned() {
        let mut position = Position::new(6, &[]);
        assert!(!position.conclude());
        let mut learned = vec![1; 12];
        learned[6 + 2] = 5;
        learned[3] = 0;
        let lines = Weightiest { columns: true, learned, ..Weightiest::default() };
        position.learn(&lines);
        assert_eq!(position.weightiest_line(&lines), Some(6 + 2));
        // Nothing is known: what was learned stays.
        position.learn(&Weightiest::default());
        assert_eq!(position.weightiest_line(&lines), Some(6 + 2));
        // A weight for each line, and no larger ones than 32 bits.
        let whole = Refutation::search_by_weight(&[], &[1; 16]);
        assert!(check_refutation(8, &[0, 2, 4, 1, 3], &whole, u64::MAX).is_ok());
        let short = Refutation::search_by_weight(&[], &[1; 14]);
        let mut large = whole.as_bytes().to_vec();
        large.splice(1..2, [0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        for damaged in [short, Refutation::from_bytes(large)] {
            let checked = check_refutation(8, &[0, 2, 4, 1, 3], &damaged, u64::MAX);
            assert!(matches!(checked, Err(ProofError::Damaged(_))), "{checked:?}");
        }
    }

    #[test]
    fn a_search_in_blocks_begins_with_them_and_passes_over_no_row() {
        let mut position = Position::new(8, &[]);
        assert!(!position.conclude());
        let rows = |blocks: &[u128]| Weightiest { blocks: blocks.to_vec(), ..Weightiest::default() };
        assert_eq!(position.weightiest_line(&rows(&[])), Some(0));
        assert_eq!(position.weightiest_line(&rows(&[0, 1 << 5 | 1 << 6, 1])), Some(5));
        position.place(5 * 8);
        assert!(!position.conclude());
        assert_eq!(position.weightiest_line(&rows(&[1 << 5 | 1 << 3, 1])), Some(3));
        assert_eq!(position.weightiest_line(&rows(&[1 << 5])), position.weightiest_line(&rows(&[])));
        // Blocks with rows that the board does not have are damaged.
        for (blocks, accepted) in [(vec![vec![0, 1]], true), (vec![vec![8]], false), (vec![vec![]; 9], false)]
        {
            for byte in [6, 7] {
                let refutation = in_blocks(byte, &blocks);
                let checked = check_refutation(8, &[0, 2, 4, 1, 3], &refutation, u64::MAX);
                let damaged = matches!(checked, Err(ProofError::Damaged(_)));
                assert_eq!((checked.is_ok(), damaged), (accepted, !accepted), "{byte}, {blocks:?}");
            }
        }
    }

    #[test]
    fn squares_that_die_are_in_no_completion() {
        let mut random = fastrand::Rng::with_seed(10);
        let (mut died, mut not_refuted_at_once) = (0, 0);
        for case in 0..6000 {
            let n = random.usize(4..=9);
            let prefix = peaceful_prefix(n, &mut random);
            let completions = all(n, &prefix);
            let mut position = Position::new(n, &prefix);
            if position.conclude() {
                continue;
            }
            let y = multipliers(n, &mut random);
            let lines: Vec<i64> = [&y.columns[..], &y.diagonals, &y.antidiagonals].concat();
            for square in 0..n * n {
                if !position.is_alive(square) || random.bool() {
                    continue;
                }
                let mark = position.mark();
                position.place(square);
                let dies = position.conclude() || {
                    let dies = position.is_refuted_by(&lines);
                    not_refuted_at_once += u32::from(dies);
                    dies
                };
                position.back_to(&mark);
                if dies {
                    let used = completions.iter().any(|columns| columns[square / n] == square % n);
                    assert!(!used, "case {case}: {square} of {n} after {prefix:?}");
                    died += 1;
                }
                // It says the same as a tree: what does not die is refused.
                let dead = Refutation::dead(&y, &[square], &Refutation::search());
                let accepted = check_refutation(n, &prefix, &dead, u64::MAX).is_ok();
                assert_eq!(accepted, dies && completions.is_empty(), "case {case}: {square} of {n}");
            }
        }
        assert!(died > 1000 && not_refuted_at_once > 20, "{died} died, {not_refuted_at_once} by a budget");
    }

    #[test]
    fn a_branch_over_any_row_or_column_refutes_exactly_what_has_no_completion() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut forced = 0;
        for case in 0..3000 {
            let n = random.usize(1..=9);
            let prefix = peaceful_prefix(n, &mut random);
            let none = all(n, &prefix).is_empty();
            let mut position = Position::new(n, &prefix);
            let refuted = position.conclude();
            for line in [Line::Row(random.usize(0..n)), Line::Column(random.usize(0..n))] {
                let number = line.number(n);
                let taken = number < prefix.len() || number >= n && prefix.contains(&(number - n));
                forced += u32::from(!refuted && position.queen_on(number).is_some());
                let at = |i: usize| if number < n { number * n + i } else { i * n + number - n };
                let children: Vec<_> = (0..n).map(|i| (at(i), Refutation::search())).collect();
                let branch = Refutation::branch(n, line, &children);
                let accepted = check_refutation(n, &prefix, &branch, u64::MAX).is_ok();
                assert_eq!(accepted, refuted || none && !taken, "case {case}: {prefix:?} of {n}, {line:?}");
            }
        }
        assert!(forced > 20, "only {forced} queens were forced");
    }

    /// The ways to have the checker try everything.
    const SEARCHES: [fn() -> Refutation; 3] =
        [Refutation::search, || Refutation::from_bytes(vec![5]), || Refutation::search_by_weight(&[], &[])];

    /// A search in blocks of rows, by rows only (6) or by columns too (7).
    fn in_blocks(byte: u8, blocks: &[Vec<usize>]) -> Refutation {
        let mut bytes = Refutation::search_by_weight(blocks, &[]).as_bytes().to_vec();
        bytes[0] = byte;
        Refutation::from_bytes(bytes)
    }

    /// The first solution and a search for each refutation.
    fn searched(n: usize) -> (Option<Vec<usize>>, Vec<Refutation>) {
        searched_by(n, &Refutation::search())
    }

    /// The first solution and this for each refutation.
    fn searched_by(n: usize, search: &Refutation) -> (Option<Vec<usize>>, Vec<Refutation>) {
        let first = all(n, &[]).into_iter().next();
        let number = first.as_ref().map_or(1, |columns| {
            let free = |row: usize, column: usize| is_free(n, &[&columns[..row], &[column]].concat());
            (0..n).map(|row| (0..columns[row]).filter(|&column| free(row, column)).count()).sum()
        });
        (first, vec![search.clone(); number])
    }

    fn sealed(n: usize) -> Vec<u8> {
        let (first, refutations) = searched(n);
        let refutations: Vec<&Refutation> = refutations.iter().collect();
        certificate(n, first.as_deref(), &refutations).expect("it is right")
    }

    #[test]
    fn certificates_prove_the_first_solutions_of_small_boards() {
        for (n, search) in (0..=10).flat_map(|n| SEARCHES.map(|search| (n, search()))) {
            let (first, refutations) = searched_by(n, &search);
            let refutations: Vec<&Refutation> = refutations.iter().collect();
            let sealed = certificate(n, first.as_deref(), &refutations).expect("it is right");
            let proved = super::super::check(&sealed).expect("it is right");
            assert_eq!((proved.kind, proved.n, proved.solution), (Kind::First, n, first), "n = {n}");
        }
        assert_eq!(searched(3).0, None);
    }

    #[test]
    fn no_other_solution_and_no_missing_refutation_is_accepted() {
        for n in [4, 6, 7, 8] {
            let all = all(n, &[]);
            for other in &all[1..] {
                let many = vec![Refutation::search(); n * n];
                for number in 0..n * n {
                    let refutations: Vec<&Refutation> = many[..number].iter().collect();
                    assert!(certificate(n, Some(other), &refutations).is_err(), "{other:?}");
                }
            }
            assert!(certificate(n, None, &[&Refutation::search()]).is_err());
            let refutations = searched(n).1;
            let all_but_one: Vec<&Refutation> = refutations.iter().skip(1).collect();
            assert!(certificate(n, Some(&all[0]), &all_but_one).is_err());
        }
    }

    #[test]
    fn an_altered_certificate_proves_the_same_or_nothing_even_with_a_new_checksum() {
        let mut random = fastrand::Rng::with_seed(1);
        for n in [3, 5, 8, 9] {
            let (first, refutations) = searched(n);
            let refutations: Vec<Refutation> = refutations
                .iter()
                .map(|search| Refutation::budget(&multipliers(n, &mut random), random.bool(), search))
                .collect();
            let borrowed: Vec<&Refutation> = refutations.iter().collect();
            let certificate = certificate(n, first.as_deref(), &borrowed).expect("it is right");
            let (_, _, proof) = super::super::open(&certificate).expect("it is right");
            for _ in 0..5000 {
                let mut altered = proof.to_vec();
                for _ in 0..random.usize(1..4) {
                    let place = random.usize(0..altered.len());
                    match random.u8(0..3) {
                        0 => altered[place] ^= 1 << random.u8(0..8),
                        1 => altered.truncate(place.max(1)),
                        _ => altered.insert(place, random.u8(..)),
                    }
                }
                if let Ok(proved) = check(n, &altered) {
                    assert_eq!(proved.solution, first, "n = {n}");
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_the_checker_panic() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(0..60)).map(|_| random.u8(..) >> random.u8(0..8)).collect();
            // Work is what the file says; here it is little.
            let mut proof = vec![0xff, 0x07];
            proof.extend(bytes);
            let _ = check(random.usize(0..=12), &proof);
        }
        assert!(check(129, &[0, 0, 0]).is_err());
    }

    #[test]
    fn more_work_than_stated_is_refused() {
        let proved = super::super::check(&sealed(10)).expect("it is right");
        assert!(proved.work > 0);
        let certificate = sealed(10);
        let (_, n, proof) = super::super::open(&certificate).expect("it is right");
        let mut reader = Reader::new(proof);
        assert_eq!(reader.number(), Ok(proved.work));
        let mut writer = Writer::new();
        writer.number(proved.work - 1);
        writer.bytes(reader.rest());
        assert_eq!(check(n, &writer.finish()), Err(ProofError::TooMuchWork(proved.work - 1)));
    }
}
