//! The lexicographically first solution: the statement, the format of its proof, and the checker.
//!
//! **The statement.** The given columns are a solution, and no solution comes before it: for each
//! row, and each smaller column that the queens of the rows above leave free, the board with these
//! queens and one there has no completion. Without columns, the empty board has no completion.
//!
//! **The format.** Numbers are encoded as in [`super::bytes`]. The first one is the work limit that
//! the certificate states: 1 for each queen, 500 for each dual bound. (The checker's own limit is
//! that of its [`Meter`].) Then comes 1 and the n 0-based columns, or 0 if there is no solution.
//! The refutations follow: for each row from the top and each smaller free column from the left,
//! one tree; without a solution, one tree for the empty board. A tree is one of
//!
//! | byte | followed by | meaning |
//! |---|---|---|
//! | 0 | | the checker searches exhaustively, branching over the line with the fewest squares |
//! | 1 | multipliers, a tree | a dual bound, and the refutation of the position with it |
//! | 2 | multipliers, a tree | a dual bound with the knapsacks, and the same |
//! | 3 | line, number of children, for each a square and a tree | a branching over all squares of a line |
//! | 4 | multipliers, number of squares, the squares, a tree | squares that are eliminated, and the refutation of the position without them |
//! | 5 | | the checker searches exhaustively, preferring rows that ran out of squares before |
//! | 6 | number of blocks, for each the number of its rows and these | like 5, but one of these blocks of rows after the other, then the rest |
//! | 7 | as for 6 | like 6, but also preferring columns that ran out of squares before |
//! | 8 | by row and column how often it ran out of squares, then as for 7 | like 7, starting from these counts |
//!
//! Lines are the rows from 0, the columns from n, the diagonals c - r + n - 1 from 2n, the
//! antidiagonals r + c from 4n - 1; the square of row r and column c is r n + c. Multipliers are
//! those of the columns (signed), diagonals and antidiagonals in this order; a 0 is followed by the
//! number of further zeros. `position.rs` defines their meaning.
//!
//! **The checker** keeps one position and traverses the tree. After each queen and each dual bound
//! it propagates on its own: a position that it finds refuted needs nothing more, and the rest of
//! the tree for it is skipped. A branching must be over a line that every completion uses, and
//! every alive square of the line must be listed or be refuted at once by propagation. If
//! propagation has already placed a queen on the line, her square must be listed. A square to be
//! eliminated, if it is alive, must be refuted with a queen there: at once, or by the dual bound of
//! the multipliers with the knapsacks. Multipliers cannot be invalid: those of the rows are
//! computed such that the dual bound is valid. Multipliers can only be too weak, and then the tree
//! refutes nothing.

mod knapsack;
mod position;
mod refutation;

pub use refutation::{LARGEST_MULTIPLIER, Line, Multipliers, Refutation};

use super::bytes::{Reader, Writer};
use super::{Kind, Meter, ProofError, Proved, seal};
use crate::board::{Piece, Square, first_attack, is_solution};
use position::{Displaced, Mark, Position};
use refutation::{Node, Order, read};

/// The largest board size.
pub const LARGEST: usize = 128;

/// The largest depth of a tree.
const DEEPEST: usize = 1000;

/// The largest number of nested branchings. A branching that decides something places a queen, so
/// this many are enough, and few enough for the stack of any thread.
const MOST_BRANCHES: usize = 3 * LARGEST;

/// Creates a certificate for `solution` (the 0-based column of each row; `None` if there is none),
/// with its refutations in order. It is checked before it is returned, without a limit, and states
/// the work of that check.
///
/// # Errors
/// Returns an error if the certificate would not be accepted.
pub fn certificate(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[&Refutation],
) -> Result<Vec<u8>, ProofError> {
    certificate_within(n, solution, refutations, &mut Meter::new(None))
}

/// Creates a certificate like [`certificate`], checked under this meter.
///
/// # Errors
/// Returns an error if the certificate would not be accepted, or if the meter ends the check.
pub fn certificate_within(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[&Refutation],
    meter: &mut Meter<'_>,
) -> Result<Vec<u8>, ProofError> {
    let mut writer = Writer::new();
    writer.byte(u8::from(solution.is_some()));
    solution.into_iter().flatten().for_each(|&column| writer.size(column));
    refutations.iter().for_each(|refutation| writer.bytes(refutation.as_bytes()));
    let claim = writer.finish();
    let (_, work) = check_claim(n, &mut Reader::new(&claim), u64::MAX, meter)?;
    let mut writer = Writer::new();
    writer.number(work);
    writer.bytes(&claim);
    Ok(seal(Kind::First, n, &writer.finish()))
}

/// Checks the proof of a certificate of [`Kind::First`] for the board of size `n`, within
/// [`MOST_WORK`](super::MOST_WORK) steps.
///
/// # Errors
/// Returns an error if the proof is damaged, proves nothing, or exceeds the step limit.
pub fn check(n: usize, proof: &[u8]) -> Result<Proved, ProofError> {
    check_within(n, proof, &mut Meter::default())
}

/// Checks a proof like [`check`], under this meter.
///
/// # Errors
/// Returns an error if the proof is damaged or proves nothing, or if the meter ends the check.
pub fn check_within(n: usize, proof: &[u8], meter: &mut Meter<'_>) -> Result<Proved, ProofError> {
    let mut reader = Reader::new(proof);
    let limit = reader.number()?;
    let before = meter.work();
    let (solution, _) = check_claim(n, &mut reader, limit, meter)?;
    Ok(Proved { kind: Kind::First, beauty: None, n, solution, work: meter.work() - before })
}

/// Checks one refutation: the queens in the first rows of the board of size `n`, on the 0-based
/// columns `prefix`, have no completion. Returns the work as stated in certificates.
///
/// # Errors
/// Returns an error if it refutes nothing, or takes more work than `limit` or more than
/// [`MOST_WORK`](super::MOST_WORK) steps.
pub fn check_refutation(
    n: usize,
    prefix: &[usize],
    refutation: &Refutation,
    limit: u64,
) -> Result<u64, ProofError> {
    check_refutation_within(n, prefix, refutation, limit, &mut Meter::default())
}

/// Checks one refutation like [`check_refutation`], under this meter.
///
/// # Errors
/// Returns an error if it refutes nothing or takes more work than `limit`, or if the meter ends the
/// check.
pub fn check_refutation_within(
    n: usize,
    prefix: &[usize],
    refutation: &Refutation,
    limit: u64,
    meter: &mut Meter<'_>,
) -> Result<u64, ProofError> {
    let reader = Reader::new(refutation.as_bytes());
    let mut checker = Checker { n, reader, work: Work { done: 0, limit, meter }, branches: 0 };
    checker.refute_prefix(prefix)?;
    if checker.reader.is_empty() { Ok(checker.work.done) } else { Err(TOO_LONG) }
}

const TOO_DEEP: ProofError = ProofError::Damaged("a refutation is too deep");

const TOO_LONG: ProofError = ProofError::Damaged("something follows after its end");

/// Checks a claim with its refutations. Returns the solution and the work as stated in
/// certificates.
fn check_claim(
    n: usize,
    reader: &mut Reader<'_>,
    limit: u64,
    meter: &mut Meter<'_>,
) -> Result<(Option<Vec<usize>>, u64), ProofError> {
    if n > LARGEST {
        return Err(ProofError::Damaged("its board is larger than 128"));
    }
    let solution = match reader.byte()? {
        0 => None,
        1 => Some((0..n).map(|_| reader.size(LARGEST)).collect::<Result<Vec<usize>, _>>()?),
        _ => {
            return Err(ProofError::Damaged("it claims neither a solution nor that there is none"));
        }
    };
    let mut checker =
        Checker { n, reader: reader.clone(), work: Work { done: 0, limit, meter }, branches: 0 };
    match &solution {
        Some(columns) if !is_solution(Piece::Queen, columns) => {
            return Err(ProofError::Refused("its queens attack each other".into()));
        }
        Some(columns) => {
            for row in 0..n {
                let mut prefix = columns[..=row].to_vec();
                for column in 0..columns[row] {
                    prefix[row] = column;
                    checker.work.meter.add(100 * (row as u64 + 1))?;
                    if is_free(n, &prefix) {
                        checker.refute_prefix(&prefix)?;
                    }
                }
            }
        }
        None if n == 0 => {
            return Err(ProofError::Refused("the board without squares has a solution".into()));
        }
        None => checker.refute_prefix(&[])?,
    }
    if !checker.reader.is_empty() {
        return Err(TOO_LONG);
    }
    Ok((solution, checker.work.done))
}

/// Returns whether the last of these queens attacks none of the others, which do not attack each
/// other.
fn is_free(n: usize, prefix: &[usize]) -> bool {
    let squares: Vec<Square> =
        prefix.iter().enumerate().map(|(row, &col)| Square::new(row, col)).collect();
    first_attack(Piece::Queen, n, &squares).is_none()
}

/// The work of the checker: 1 for each queen that it places, [`Work::DUAL_BOUND`] for each dual bound.
/// Certificates state it; the meter counts the actual operations.
struct Work<'m, 'a> {
    done: u64,
    limit: u64,
    meter: &'m mut Meter<'a>,
}

impl Work<'_, '_> {
    /// The work of a dual bound, in placed queens.
    const DUAL_BOUND: u64 = 500;

    fn add(&mut self, more: u64) -> Result<(), ProofError> {
        self.done = self.done.saturating_add(more);
        if self.done > self.limit {
            return Err(ProofError::TooMuchWork(self.limit));
        }
        Ok(())
    }
}

/// The state to restore when a node is left: the mark, and the dual bound displaced by the node's
/// own.
type Entered = (Mark, Option<Displaced>);

struct Checker<'r, 'm, 'a> {
    n: usize,
    reader: Reader<'r>,
    work: Work<'m, 'a>,
    /// The number of nested branchings at this node of the tree.
    branches: usize,
}

impl Checker<'_, '_, '_> {
    /// Reads the next tree and checks that it refutes the board with these queens on its first
    /// rows.
    fn refute_prefix(&mut self, prefix: &[usize]) -> Result<(), ProofError> {
        let mut position = Position::new(self.n, prefix);
        self.meter(&position)?;
        let refuted = position.conclude();
        self.refute(&mut position, refuted, 0).map_err(|error| match error {
            ProofError::Refused(why) => {
                let columns: Vec<String> =
                    prefix.iter().map(|column| (column + 1).to_string()).collect();
                ProofError::Refused(format!("after {}: {why}", columns.join(" ")))
            }
            other => other,
        })
    }

    /// Reads the next tree and checks that it refutes `position`, which is restored afterwards. If
    /// `refuted` is set, the tree is only read.
    fn refute(
        &mut self,
        position: &mut Position,
        mut refuted: bool,
        mut depth: usize,
    ) -> Result<(), ProofError> {
        // A node with one subtree is followed in this loop, without recursion.
        let mut entered = Vec::new();
        loop {
            if depth > DEEPEST {
                return Err(TOO_DEEP);
            }
            match self.read(position)? {
                Node::Search(_) if refuted => break,
                Node::Search(order) => {
                    self.learn_and_search(position, &order)?;
                    break;
                }
                Node::Branch { children, .. } if refuted => {
                    self.pass_over(position, children, depth)?;
                    break;
                }
                Node::Branch { line, children } => {
                    if self.branches == MOST_BRANCHES {
                        return Err(TOO_DEEP);
                    }
                    self.branches += 1;
                    self.branch(position, line, children, depth)?;
                    self.branches -= 1;
                    break;
                }
                Node::DualBound { .. } | Node::Dead { .. } if refuted => {}
                Node::DualBound { knapsack, y } => {
                    let (left, is_refuted) = self.enter_budget(position, knapsack, &y)?;
                    entered.push(left);
                    refuted = is_refuted;
                }
                Node::Dead { y, squares } => {
                    let (left, is_refuted) = self.enter_elimination(position, &y, squares)?;
                    entered.push(left);
                    refuted = is_refuted;
                }
            }
            depth += 1;
        }
        while let Some((mark, displaced)) = entered.pop() {
            if let Some(displaced) = displaced {
                position.remove_budget(displaced);
            }
            position.back_to(&mark);
        }
        Ok(())
    }

    /// Reads the next node. The meter counts this and the operations on the position so far.
    fn read(&mut self, position: &Position) -> Result<Node, ProofError> {
        let before = self.reader.rest().len();
        let node = read(&mut self.reader, self.n)?;
        self.work.meter.add(node.operations(before - self.reader.rest().len()))?;
        self.meter(position)?;
        Ok(node)
    }

    /// Adds a dual bound. Returns the state to restore, and whether the position is refuted.
    fn enter_budget(
        &mut self,
        position: &mut Position,
        knapsack: bool,
        y: &[i64],
    ) -> Result<(Entered, bool), ProofError> {
        self.work.add(Work::DUAL_BOUND)?;
        let mark = position.mark();
        let displaced = position.add_budget(y, knapsack);
        let refuted = position.conclude();
        self.meter(position)?;
        Ok(((mark, Some(displaced)), refuted))
    }

    /// Eliminates squares. Returns the state to restore, and whether the position is refuted.
    fn enter_elimination(
        &mut self,
        position: &mut Position,
        y: &[i64],
        squares: Vec<usize>,
    ) -> Result<(Entered, bool), ProofError> {
        let mark = position.mark();
        let mut refuted = false;
        for square in squares {
            refuted = refuted || self.dies(position, square, y)?;
        }
        Ok(((mark, None), refuted))
    }

    /// Reads the children of a branching where the position is already refuted, whatever its line
    /// is.
    fn pass_over(
        &mut self,
        position: &Position,
        children: usize,
        depth: usize,
    ) -> Result<(), ProofError> {
        // The number of children left to read, for each branching that was begun.
        let mut left = vec![children];
        while let Some(children) = left.last_mut() {
            if *children == 0 {
                left.pop();
                continue;
            }
            *children -= 1;
            self.reader.size(usize::MAX)?;
            let mut deep = depth + left.len();
            loop {
                if deep > DEEPEST {
                    return Err(TOO_DEEP);
                }
                match self.read(position)? {
                    Node::Search(_) => break,
                    Node::Branch { children, .. } => {
                        left.push(children);
                        break;
                    }
                    Node::DualBound { .. } | Node::Dead { .. } => deep += 1,
                }
            }
        }
        Ok(())
    }

    fn learn_and_search(
        &mut self,
        position: &mut Position,
        order: &Order,
    ) -> Result<(), ProofError> {
        if let Order::Weightiest(lines) = order {
            position.learn(lines);
        }
        self.search(position, order)
    }

    /// Eliminates a square, if it is alive, on which the dual bound of `y` refutes a queen. Returns
    /// whether the position is then refuted.
    fn dies(
        &mut self,
        position: &mut Position,
        square: usize,
        y: &[i64],
    ) -> Result<bool, ProofError> {
        if !position.is_alive(square) {
            return Ok(false);
        }
        let mark = position.mark();
        if !self.place(position, square)? {
            self.work.add(Work::DUAL_BOUND)?;
            let is_refuted = position.is_refuted_by(y);
            self.meter(position)?;
            if !is_refuted {
                return Err(ProofError::Refused(
                    "it passes over a square that may hold a queen".into(),
                ));
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
            let Some(queen) = position.queen_on(line) else {
                return refused("a line that is not open");
            };
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

    /// Searches exhaustively over one line after the other. Under any branching rule, each is a
    /// line that every completion uses.
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

    /// Places a queen on `square`. Returns whether the position is then refuted.
    fn place(&mut self, position: &mut Position, square: usize) -> Result<bool, ProofError> {
        self.work.add(1)?;
        position.place(square);
        let refuted = position.conclude();
        self.meter(position)?;
        Ok(refuted)
    }

    /// Reports the operations on a position to the meter.
    fn meter(&mut self, position: &Position) -> Result<(), ProofError> {
        self.work.meter.add(position.operations())
    }
}

#[cfg(test)]
mod tests {
    use super::refutation::Weightiest;
    use super::*;

    /// Finds every completion of `prefix`, by the plain definition.
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

    /// Returns some random blocks of rows.
    fn blocks(n: usize, random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
        let block = |random: &mut fastrand::Rng| {
            (0..random.usize(0..=n)).map(|_| random.usize(0..n)).collect()
        };
        (0..random.usize(0..=n.min(3))).map(|_| block(random)).collect()
    }

    /// Returns random weights of rows and columns.
    fn learned(n: usize, random: &mut fastrand::Rng) -> Vec<u32> {
        (0..2 * n).map(|_| random.choice([0, 1, 2, 100, u32::MAX]).unwrap_or(1)).collect()
    }

    /// Returns a random tree, over any squares and lines.
    fn tree(n: usize, depth: usize, random: &mut fastrand::Rng) -> Refutation {
        match random.u8(0..if depth == 0 { 1 } else { 7 }) {
            0 if random.bool() => in_blocks(random.u8(6..=7), &blocks(n, random)),
            0 if random.bool() => {
                Refutation::search_by_weight(&blocks(n, random), &learned(n, random))
            }
            0 => SEARCHES[random.usize(0..3)](),
            6 => {
                let then = tree(n, depth - 1, random);
                let squares: Vec<usize> =
                    (0..random.usize(0..=2 * n)).map(|_| random.usize(0..n * n)).collect();
                Refutation::dead(&multipliers(n, random), &squares, &then)
            }
            kind @ 1..=3 => {
                let then = tree(n, depth - 1, random);
                Refutation::dual_bound(&multipliers(n, random), kind > 1, &then)
            }
            _ => {
                let at = random.usize(0..n);
                let lines =
                    [Line::Row(at), Line::Column(at), Line::Diagonal(at), Line::Antidiagonal(at)];
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
                Refutation::dual_bound(&multipliers(n, &mut random), random.bool(), &then)
            });
            let accepted = check_refutation(n, &prefix, &refutation, u64::MAX).is_ok();
            assert_eq!(accepted, all(n, &prefix).is_empty(), "case {case}: {prefix:?} of {n}");
        }
    }

    #[test]
    fn columns_are_branched_over_where_they_ran_out_of_squares_before() {
        let lines = |blocks: &[u128]| Weightiest {
            blocks: blocks.to_vec(),
            columns: true,
            ..Weightiest::default()
        };
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
        // The column has squares in rows outside the block.
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
        // Without learned weights, the previous ones are kept.
        position.learn(&Weightiest::default());
        assert_eq!(position.weightiest_line(&lines), Some(6 + 2));
        // There must be a weight for each line, of at most 32 bits.
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
        let rows =
            |blocks: &[u128]| Weightiest { blocks: blocks.to_vec(), ..Weightiest::default() };
        assert_eq!(position.weightiest_line(&rows(&[])), Some(0));
        assert_eq!(position.weightiest_line(&rows(&[0, 1 << 5 | 1 << 6, 1])), Some(5));
        position.place(5 * 8);
        assert!(!position.conclude());
        assert_eq!(position.weightiest_line(&rows(&[1 << 5 | 1 << 3, 1])), Some(3));
        assert_eq!(
            position.weightiest_line(&rows(&[1 << 5])),
            position.weightiest_line(&rows(&[]))
        );
        // Blocks with rows that are not on the board are damaged.
        for (blocks, accepted) in
            [(vec![vec![0, 1]], true), (vec![vec![8]], false), (vec![vec![]; 9], false)]
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
                // A tree gives the same result: a square that cannot be eliminated is refused.
                let dead = Refutation::dead(&y, &[square], &Refutation::search());
                let accepted = check_refutation(n, &prefix, &dead, u64::MAX).is_ok();
                assert_eq!(
                    accepted,
                    dies && completions.is_empty(),
                    "case {case}: {square} of {n}"
                );
            }
        }
        assert!(
            died > 1000 && not_refuted_at_once > 20,
            "{died} died, {not_refuted_at_once} by a budget"
        );
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
                assert_eq!(
                    accepted,
                    refuted || none && !taken,
                    "case {case}: {prefix:?} of {n}, {line:?}"
                );
            }
        }
        assert!(forced > 20, "only {forced} queens were forced");
    }

    /// The kinds of exhaustive search without parameters.
    const SEARCHES: [fn() -> Refutation; 3] = [
        Refutation::search,
        || Refutation::from_bytes(vec![5]),
        || Refutation::search_by_weight(&[], &[]),
    ];

    /// Creates a search in blocks of rows, by rows only (6) or by columns too (7).
    fn in_blocks(byte: u8, blocks: &[Vec<usize>]) -> Refutation {
        let mut bytes = Refutation::search_by_weight(blocks, &[]).as_bytes().to_vec();
        bytes[0] = byte;
        Refutation::from_bytes(bytes)
    }

    /// Returns the first solution, and a search for each refutation.
    fn searched(n: usize) -> (Option<Vec<usize>>, Vec<Refutation>) {
        searched_by(n, &Refutation::search())
    }

    /// Returns the first solution, and `search` for each refutation.
    fn searched_by(n: usize, search: &Refutation) -> (Option<Vec<usize>>, Vec<Refutation>) {
        let first = all(n, &[]).into_iter().next();
        let number = first.as_ref().map_or(1, |columns| {
            let free =
                |row: usize, column: usize| is_free(n, &[&columns[..row], &[column]].concat());
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
            assert_eq!(
                (proved.kind, proved.n, proved.solution),
                (Kind::First, n, first),
                "n = {n}"
            );
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
                .map(|search| {
                    Refutation::dual_bound(&multipliers(n, &mut random), random.bool(), search)
                })
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
            let bytes: Vec<u8> =
                (0..random.usize(0..60)).map(|_| random.u8(..) >> random.u8(0..8)).collect();
            // The certificate states the work limit; here it is small.
            let mut proof = vec![0xff, 0x07];
            proof.extend(bytes);
            let _ = check(random.usize(0..=12), &proof);
        }
        assert!(check(129, &[0, 0, 0]).is_err());
    }

    #[test]
    fn a_certificate_of_few_bytes_that_asks_for_endless_work_ends_at_the_checkers_limit() {
        const LIMIT: u64 = 20_000;
        let heavy = Multipliers { columns: vec![1; LARGEST], ..Multipliers::none(LARGEST) };
        // Claims that the knapsacks eliminate every square of the board.
        let squares: Vec<usize> = (0..LARGEST * LARGEST).collect();
        let everything = Refutation::search();
        let trees = [
            everything.clone(),
            Refutation::from_bytes(vec![5]),
            in_blocks(6, &[(0..64).collect()]),
            in_blocks(7, &[(0..64).collect(), vec![99]]),
            Refutation::search_by_weight(&[], &[u32::MAX; 2 * LARGEST]),
            (0..900)
                .fold(everything.clone(), |then, _| Refutation::dual_bound(&heavy, true, &then)),
            Refutation::dead(&heavy, &squares, &everything),
            Refutation::branch(LARGEST, Line::Row(64), &[(64 * LARGEST, everything)]),
        ];
        for (number, tree) in trees.iter().enumerate() {
            let mut writer = Writer::new();
            // The stated work limit does not bind the checker.
            writer.number(u64::MAX);
            writer.byte(0);
            writer.bytes(tree.as_bytes());
            let sealed = seal(Kind::First, LARGEST, &writer.finish());
            assert!(number > 0 || sealed.len() == 56);
            let mut meter = Meter::new(Some(LIMIT));
            let checked = super::super::check_within(&sealed, &mut meter);
            // A square that cannot be eliminated ends the check sooner.
            let is_ended = checked == Err(ProofError::LimitReached(LIMIT));
            assert!(
                is_ended || number == 6 && matches!(checked, Err(ProofError::Refused(_))),
                "{number}"
            );
            // Only a little more work than that was done.
            assert!(meter.work() < LIMIT + 1_000_000, "{number}: {}", meter.work());
        }
    }

    #[test]
    fn the_limit_of_the_checker_is_what_it_says_that_a_check_took() {
        let certificate = sealed(8);
        let work = super::super::check(&certificate).expect("it is right").work;
        let within = |limit| super::super::check_within(&certificate, &mut Meter::new(Some(limit)));
        assert_eq!(within(work).map(|proved| proved.work), Ok(work));
        assert_eq!(within(work - 1), Err(ProofError::LimitReached(work - 1)));
        let stopped =
            super::super::check_within(&certificate, &mut Meter::new(None).stopped_by(&|| true));
        assert_eq!(stopped, Err(ProofError::Stopped));
    }

    #[test]
    fn trees_deeper_than_any_are_refused_on_the_stack_of_any_thread() {
        let search = Refutation::search;
        let nothing = Multipliers::none(8);
        let deep = |wrap: &dyn Fn(&Refutation) -> Refutation| {
            (0..3 * DEEPEST).fold(search(), |then, _| wrap(&then))
        };
        // The first prefix leaves many squares alive, the second has no completion, and the third
        // is that of a solution.
        let trees = [
            deep(&|then| Refutation::branch(8, Line::Row(7), &[(56, then.clone())])),
            deep(&|then| Refutation::dual_bound(&nothing, true, then)),
            deep(&|then| Refutation::dead(&nothing, &[], then)),
        ];
        for tree in trees {
            for prefix in [&[0usize][..], &[0, 2, 4, 1, 3], &[0, 4, 7, 5, 2, 6]] {
                let (tree, prefix) = (tree.clone(), prefix.to_vec());
                // The program's own threads have two megabytes of stack, like this one.
                let checked = std::thread::Builder::new()
                    .stack_size(2 << 20)
                    .spawn(move || check_refutation(8, &prefix, &tree, u64::MAX))
                    .expect("a thread")
                    .join()
                    .expect("the stack is enough");
                assert!(checked.is_err());
            }
        }
    }

    #[test]
    fn a_step_that_this_version_does_not_know_is_told_from_a_false_one() {
        let check = |bytes: &[u8]| {
            check_refutation(8, &[0, 2], &Refutation::from_bytes(bytes.to_vec()), u64::MAX)
        };
        assert!(check(&[0]).is_ok());
        for unknown in [9, 99, 255] {
            assert_eq!(check(&[unknown]), Err(ProofError::UnknownStep(unknown.into())));
            // The unknown step is also reported after known steps, and where nothing is left to
            // refute.
            let newer = Refutation::from_bytes(vec![unknown]);
            let behind = Refutation::dual_bound(&Multipliers::none(8), false, &newer);
            assert_eq!(check(behind.as_bytes()), Err(ProofError::UnknownStep(unknown.into())));
        }
        // An error before the unknown step is reported as an error.
        let damaged = check(&[3, 200, 1, 9]);
        assert!(
            matches!(damaged, Err(ProofError::Damaged(_) | ProofError::Refused(_))),
            "{damaged:?}"
        );
    }

    #[test]
    fn more_work_than_stated_is_refused() {
        let proved = super::super::check(&sealed(10)).expect("it is right");
        assert!(proved.work > 0);
        let certificate = sealed(10);
        let (_, n, proof) = super::super::open(&certificate).expect("it is right");
        let mut reader = Reader::new(proof);
        let stated = reader.number().expect("what it states");
        let mut writer = Writer::new();
        writer.number(stated - 1);
        writer.bytes(reader.rest());
        assert_eq!(check(n, &writer.finish()), Err(ProofError::TooMuchWork(stated - 1)));
    }
}
