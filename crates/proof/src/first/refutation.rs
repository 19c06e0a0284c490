//! The encoding of refutations; [`super`] describes the format.

use super::super::ProofError;
use super::super::bytes::{Reader, Writer};
use super::TOO_LONG;
use super::checker::{DEEPEST, TOO_DEEP};

/// A refutation of a certificate: an encoded tree, in prefix order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation(Vec<u8>);

/// The multipliers of a dual bound: an integer for each column, diagonal and antidiagonal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipliers {
    /// By column.
    pub columns: Vec<i64>,
    /// By c - r + n - 1, not negative.
    pub diagonals: Vec<i64>,
    /// By r + c, not negative.
    pub antidiagonals: Vec<i64>,
}

/// Exclusive upper bound on absolute values of multipliers, so that no sum over a board comes near
/// to 64 bits.
pub const LARGEST_MULTIPLIER: i64 = 1 << 40;

const SEARCH: u8 = 0;
const DUAL_BOUND: u8 = 1;
const DUAL_BOUND_WITH_KNAPSACKS: u8 = 2;
const BRANCH: u8 = 3;
const ELIMINATION: u8 = 4;
const SEARCH_BY_WEIGHT: u8 = 5;
const SEARCH_IN_BLOCKS: u8 = 6;
const SEARCH_BY_LINES: u8 = 7;
const SEARCH_WITH_WEIGHTS: u8 = 8;
const SEARCH_WITH_MEMORY: u8 = 9;
const LISTED_SETS: u8 = 10;
const CASES: u8 = 11;

/// A line, with its number in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// 0-based.
    Row(usize),
    /// 0-based.
    Column(usize),
    /// c - r + n - 1.
    Diagonal(usize),
    /// r + c.
    Antidiagonal(usize),
}

impl Line {
    /// Returns the number on the board of size `n`.
    pub const fn number(self, n: usize) -> usize {
        match self {
            Self::Row(row) => row,
            Self::Column(column) => n + column,
            Self::Diagonal(diagonal) => 2 * n + diagonal,
            Self::Antidiagonal(antidiagonal) => 4 * n - 1 + antidiagonal,
        }
    }
}

impl Refutation {
    /// Creates a refutation by an exhaustive search of the checker, which branches over the line
    /// with the fewest squares.
    pub fn search() -> Self {
        Self(vec![SEARCH])
    }

    /// Reads the refutation on the board of size `n` without checking what it proves.
    ///
    /// # Errors
    /// Returns an error if it is damaged, has a step of an unknown kind, or would be too deep as part of
    /// another one below so many branchings.
    pub fn check_encoding(&self, n: usize, branchings: usize) -> Result<(), ProofError> {
        let mut reader = Reader::new(&self.0);
        skip_tree(&mut reader, n, branchings, |_, _| Ok(()))?;
        if reader.is_empty() { Ok(()) } else { Err(TOO_LONG) }
    }

    /// Creates a refutation by an exhaustive search that prefers rows and columns that ran out of
    /// candidates before (as in dom/wdeg). It completes these blocks of rows one after the other,
    /// then the other rows. `weights` gives for each row and column how often it has run out of
    /// candidates before; it is empty if nothing is known.
    pub fn search_by_weight(blocks: &[Vec<usize>], weights: &[u32]) -> Self {
        let tag = if weights.is_empty() { SEARCH_BY_LINES } else { SEARCH_WITH_WEIGHTS };
        Self::search_in_blocks(tag, blocks, weights)
    }

    /// Creates a refutation by the search of [`Self::search_by_weight`] that remembers the refuted
    /// positions in which a block was complete. `weights` has a number for each row and column.
    pub fn search_with_memory(blocks: &[Vec<usize>], weights: &[u32]) -> Self {
        Self::search_in_blocks(SEARCH_WITH_MEMORY, blocks, weights)
    }

    fn search_in_blocks(tag: u8, blocks: &[Vec<usize>], weights: &[u32]) -> Self {
        let mut writer = Writer::new();
        writer.byte(tag);
        weights.iter().for_each(|&weight| writer.number(weight.into()));
        writer.size(blocks.len());
        for rows in blocks {
            writer.size(rows.len());
            rows.iter().for_each(|&row| writer.size(row));
        }
        Self(writer.finish())
    }

    /// Creates a refutation that adds the dual bound of `multipliers`, with the knapsacks if
    /// `knapsack` is set, and continues with `then`.
    pub fn dual_bound(multipliers: &Multipliers, knapsack: bool, then: &Self) -> Self {
        let mut writer = Writer::new();
        writer.byte(if knapsack { DUAL_BOUND_WITH_KNAPSACKS } else { DUAL_BOUND });
        multipliers.write(&mut writer);
        writer.bytes(&then.0);
        Self(writer.finish())
    }

    /// Creates a branching over all squares of a line on the board of size `n`. `children` are the
    /// squares that need a refutation, each with its number (row by row) and its refutation.
    pub fn branch(n: usize, line: Line, children: &[(usize, Self)]) -> Self {
        let mut writer = Writer::new();
        writer.byte(BRANCH);
        writer.size(line.number(n));
        writer.size(children.len());
        for (square, refutation) in children {
            writer.size(*square);
            writer.bytes(&refutation.0);
        }
        Self(writer.finish())
    }

    /// Creates a refutation that eliminates these squares in this order, and continues with `then`.
    /// With a queen on any of them, the dual bound of `multipliers` with the knapsacks refutes the
    /// position.
    pub fn elimination(multipliers: &Multipliers, squares: &[usize], then: &Self) -> Self {
        let mut writer = Writer::new();
        writer.byte(ELIMINATION);
        multipliers.write(&mut writer);
        writer.size(squares.len());
        squares.iter().for_each(|&square| writer.size(square));
        writer.bytes(&then.0);
        Self(writer.finish())
    }

    /// Creates a refutation that lists the sets of diagonals, and continues with `then`.
    pub fn listed_sets(then: &Self) -> Self {
        Self([&[LISTED_SETS], &*then.0].concat())
    }

    /// Creates a case distinction on the board of size `n`: of the listed sets of the direction of
    /// a diagonal or antidiagonal, only those without it are left, or only those with it. `unused`
    /// and `used` are the refutations of the two cases.
    pub fn cases(n: usize, diagonal: Line, unused: &Self, used: &Self) -> Self {
        let mut writer = Writer::new();
        writer.byte(CASES);
        writer.size(diagonal.number(n));
        writer.bytes(&unused.0);
        writer.bytes(&used.0);
        Self(writer.finish())
    }

    /// Returns the multipliers of a dual bound with knapsacks that ends the refutation: the first
    /// branching or search is a plain search that directly follows it, so propagation under the
    /// dual bound probably refutes the position. Returns `None` for other refutations, and for
    /// bytes that are no refutation on the board of size `n`.
    pub fn last_multipliers(&self, n: usize) -> Option<Multipliers> {
        let mut reader = Reader::new(&self.0);
        let mut last = None;
        loop {
            last = match read(&mut reader, n).ok()? {
                Node::DualBound { knapsack: true, y } => Some(y),
                Node::DualBound { .. } | Node::Elimination { .. } => None,
                Node::Search(Order::FewestCandidates) => break,
                Node::Branch { .. } | Node::Search(_) | Node::ListedSets | Node::Cases { .. } => {
                    return None;
                }
            }
        }
        let mut columns = last?;
        let mut diagonals = columns.split_off(n);
        let antidiagonals = diagonals.split_off(diagonals.len() / 2);
        Some(Multipliers { columns, diagonals, antidiagonals })
    }

    /// Creates a refutation from the bytes of [`Self::as_bytes`]. Other bytes refute nothing.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes as they are written in a certificate.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Multipliers {
    /// Creates multipliers that are all 0, for the board of size `n`.
    pub fn none(n: usize) -> Self {
        let diagonals = vec![0; (2 * n).saturating_sub(1)];
        Self { columns: vec![0; n], diagonals: diagonals.clone(), antidiagonals: diagonals }
    }

    /// Writes the multipliers one after the other; a 0 is followed by the number of further zeros.
    fn write(&self, writer: &mut Writer) {
        let mut zeros = 0;
        let flush = |writer: &mut Writer, zeros: &mut usize| {
            if *zeros > 0 {
                writer.number(0);
                writer.size(*zeros - 1);
            }
            *zeros = 0;
        };
        for (values, signed) in
            [(&self.columns, true), (&self.diagonals, false), (&self.antidiagonals, false)]
        {
            for &value in values {
                if value == 0 {
                    zeros += 1;
                    continue;
                }
                flush(writer, &mut zeros);
                if signed { writer.signed(value) } else { writer.number(value.unsigned_abs()) }
            }
        }
        flush(writer, &mut zeros);
    }
}

/// The branching rule of the checker's search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Branches over the line with the fewest squares.
    FewestCandidates,
    /// Branches over the line with the smallest ratio of squares to weight, where the weight grows
    /// whenever the line runs out of candidates (as in dom/wdeg).
    Weighted(Weighted),
}

/// The lines that are compared by weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Weighted {
    /// Blocks of rows, one bit per row. The rows of the first block that is not complete are
    /// compared; once all are complete, all rows.
    pub(super) blocks: Vec<u128>,
    /// Set if columns are compared as well: those whose candidates all lie in the rows compared.
    pub(super) columns: bool,
    /// By row and column: how often it has run out of candidates before; empty if nothing is known.
    pub(super) initial: Vec<usize>,
    /// Set if the refuted positions in which a block was complete are remembered.
    pub(super) remembers: bool,
}

/// A node of a tree as it is read.
pub(super) enum Node {
    Search(Order),
    DualBound { knapsack: bool, y: Vec<i64> },
    Branch { line: usize, children: usize },
    Elimination { y: Vec<i64>, squares: Vec<usize> },
    ListedSets,
    Cases { line: usize },
}

impl Node {
    /// Returns the number of operations for reading the node from this number of bytes. A few bytes
    /// can encode many multipliers.
    pub(super) fn operations(&self, bytes: usize) -> u64 {
        let multipliers = match self {
            Self::DualBound { y, .. } | Self::Elimination { y, .. } => y.len(),
            Self::Search(_) | Self::Branch { .. } | Self::ListedSets | Self::Cases { .. } => 0,
        };
        50 + 4 * (bytes + multipliers) as u64
    }
}

/// Reads the next node of the board of size `n`.
pub(super) fn read(reader: &mut Reader<'_>, n: usize) -> Result<Node, ProofError> {
    let tag = reader.byte()?;
    Ok(match tag {
        SEARCH => Node::Search(Order::FewestCandidates),
        SEARCH_BY_WEIGHT => Node::Search(Order::Weighted(Weighted::default())),
        SEARCH_IN_BLOCKS | SEARCH_BY_LINES => {
            let columns = tag == SEARCH_BY_LINES;
            let blocks = read_blocks(reader, n)?;
            Node::Search(Order::Weighted(Weighted { blocks, columns, ..Weighted::default() }))
        }
        DUAL_BOUND | DUAL_BOUND_WITH_KNAPSACKS => Node::DualBound {
            knapsack: tag == DUAL_BOUND_WITH_KNAPSACKS,
            y: read_multipliers(reader, n)?,
        },
        BRANCH => Node::Branch { line: reader.size(usize::MAX)?, children: reader.size(n)? },
        ELIMINATION => {
            let y = read_multipliers(reader, n)?;
            let number = reader.size(n * n)?;
            let square = |_| reader.size((n * n).saturating_sub(1));
            Node::Elimination { y, squares: (0..number).map(square).collect::<Result<_, _>>()? }
        }
        SEARCH_WITH_WEIGHTS | SEARCH_WITH_MEMORY => {
            let weight = |_| reader.size(u32::MAX as usize);
            let initial = (0..2 * n).map(weight).collect::<Result<_, _>>()?;
            let blocks = read_blocks(reader, n)?;
            let remembers = tag == SEARCH_WITH_MEMORY;
            Node::Search(Order::Weighted(Weighted { blocks, columns: true, initial, remembers }))
        }
        LISTED_SETS => Node::ListedSets,
        CASES => Node::Cases { line: reader.size(usize::MAX)? },
        _ => return Err(ProofError::UnknownStep(tag.into())),
    })
}

/// Reads the next tree of the board of size `n` without checking it. Its root has this depth;
/// `visit` is called with each node and the operations of reading it.
pub(super) fn skip_tree(
    reader: &mut Reader<'_>,
    n: usize,
    depth: usize,
    mut visit: impl FnMut(&Node, u64) -> Result<(), ProofError>,
) -> Result<(), ProofError> {
    // For each branching and case distinction that was begun: the number of children left to read,
    // and whether their squares are written.
    let mut left = Vec::new();
    loop {
        // A node, and the nodes with one subtree above it.
        let mut deep = depth + left.len();
        loop {
            if deep > DEEPEST {
                return Err(TOO_DEEP);
            }
            let before = reader.rest().len();
            let node = read(reader, n)?;
            visit(&node, node.operations(before - reader.rest().len()))?;
            match node {
                Node::Search(_) => break,
                Node::Branch { children, .. } => {
                    left.push((children, true));
                    break;
                }
                Node::Cases { .. } => {
                    left.push((2, false));
                    break;
                }
                Node::DualBound { .. } | Node::Elimination { .. } | Node::ListedSets => deep += 1,
            }
        }
        while left.last().is_some_and(|&(children, _)| children == 0) {
            left.pop();
        }
        let Some((children, has_squares)) = left.last_mut() else { return Ok(()) };
        *children -= 1;
        if *has_squares {
            reader.size(usize::MAX)?;
        }
    }
}

/// Reads blocks of rows, one bit per row.
fn read_blocks(reader: &mut Reader<'_>, n: usize) -> Result<Vec<u128>, ProofError> {
    let mut blocks = Vec::new();
    for _ in 0..reader.size(n)? {
        let rows = reader.size(n)?;
        let mut block = 0;
        for _ in 0..rows {
            block |= 1 << reader.size(n.saturating_sub(1))?;
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Reads multipliers by line, starting with the first column.
fn read_multipliers(reader: &mut Reader<'_>, n: usize) -> Result<Vec<i64>, ProofError> {
    let lines = 5 * n - 2;
    let mut y = Vec::with_capacity(lines);
    while y.len() < lines {
        let value = if y.len() < n {
            reader.signed()?
        } else {
            reader.number()?.try_into().unwrap_or(i64::MAX)
        };
        if !(-LARGEST_MULTIPLIER + 1..LARGEST_MULTIPLIER).contains(&value) {
            return Err(ProofError::Damaged("a multiplier is too large"));
        }
        let more = if value == 0 { reader.size(lines - y.len() - 1)? } else { 0 };
        y.extend(std::iter::repeat_n(value, more + 1));
    }
    Ok(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_multipliers_are_those_of_a_dual_bound_that_a_plain_search_follows() {
        let n = 4;
        let one = |value: i64| Multipliers {
            columns: vec![-value, 0, 0, 3],
            diagonals: vec![0, value, 0, 0, 0, 0, 1],
            antidiagonals: vec![2, 0, 0, 0, 0, 0, value],
        };
        let search = Refutation::search();
        let with = |value: i64, then: &Refutation| Refutation::dual_bound(&one(value), true, then);
        let last = |refutation: &Refutation| refutation.last_multipliers(n);
        assert_eq!(last(&with(5, &search)), Some(one(5)));
        assert_eq!(last(&with(5, &with(6, &search))), Some(one(6)));
        let eliminated = Refutation::elimination(&one(7), &[1, 2], &with(6, &search));
        assert_eq!(last(&eliminated), Some(one(6)));
        assert_eq!(last(&search), None);
        let without = Refutation::dual_bound(&one(6), false, &search);
        assert_eq!(last(&with(5, &without)), None);
        assert_eq!(last(&with(5, &Refutation::elimination(&one(7), &[1], &search))), None);
        assert_eq!(last(&with(5, &Refutation::search_by_weight(&[], &[]))), None);
        let branch = Refutation::branch(n, Line::Row(3), &[(12, with(5, &search))]);
        assert_eq!(last(&with(5, &branch)), None);
        let bytes = with(5, &search).as_bytes().to_vec();
        for length in 0..bytes.len() {
            assert_eq!(last(&Refutation::from_bytes(bytes[..length].to_vec())), None);
        }
        assert_eq!(with(5, &search).last_multipliers(n + 1), None);
    }
}
