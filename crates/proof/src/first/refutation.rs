//! A refutation as it is written down: see the form in [`super`].

use super::super::ProofError;
use super::super::bytes::{Reader, Writer};

/// What the refutations of a certificate are made of: a tree, in prefix order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation(Vec<u8>);

/// A whole number for each column, diagonal and antidiagonal: the multipliers of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipliers {
    /// By column.
    pub columns: Vec<i64>,
    /// By c - r + n - 1, from 0 on.
    pub diagonals: Vec<i64>,
    /// By r + c, from 0 on.
    pub antidiagonals: Vec<i64>,
}

/// Multipliers are smaller than this, so that no sum of a board's comes near to 64 bits.
pub const LARGEST_MULTIPLIER: i64 = 1 << 40;

const SEARCH: u8 = 0;
const PLAIN: u8 = 1;
const KNAPSACK: u8 = 2;
const BRANCH: u8 = 3;
const DEAD: u8 = 4;
const SEARCH_BY_WEIGHT: u8 = 5;
const SEARCH_IN_BLOCKS: u8 = 6;
const SEARCH_BY_LINES: u8 = 7;
const SEARCH_AFTER_LEARNING: u8 = 8;

/// The lines, as they are numbered in a certificate.
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
    /// Its number on the board of size `n`.
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
    /// The checker is to find out by itself, by trying everything on the line with the fewest squares.
    pub fn search() -> Self {
        Self(vec![SEARCH])
    }

    /// The same, in the rows and columns first that ran out of squares before; but these blocks of rows one after the
    /// other, and then the rest. `weights` say of each row and column how often it did so already; nothing is known of any if
    /// there are none.
    pub fn search_by_weight(blocks: &[Vec<usize>], weights: &[u32]) -> Self {
        let mut writer = Writer::new();
        writer.byte(if weights.is_empty() { SEARCH_BY_LINES } else { SEARCH_AFTER_LEARNING });
        weights.iter().for_each(|&weight| writer.number(weight.into()));
        writer.size(blocks.len());
        for rows in blocks {
            writer.size(rows.len());
            rows.iter().for_each(|&row| writer.size(row));
        }
        Self(writer.finish())
    }

    /// The budget of `multipliers` (with the knapsack, if that is said), and what refutes the position with it.
    pub fn budget(multipliers: &Multipliers, knapsack: bool, then: &Self) -> Self {
        let mut writer = Writer::new();
        writer.byte(if knapsack { KNAPSACK } else { PLAIN });
        multipliers.write(&mut writer);
        writer.bytes(&then.0);
        Self(writer.finish())
    }

    /// All squares of a line on the board of size `n`: `children` are those that need a refutation, each with its
    /// number, row by row.
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

    /// Squares that no completion uses, because the budget of `multipliers` with the knapsacks refutes the position with
    /// a queen there; and what refutes the position without them. The squares die in this order.
    pub fn dead(multipliers: &Multipliers, squares: &[usize], then: &Self) -> Self {
        let mut writer = Writer::new();
        writer.byte(DEAD);
        multipliers.write(&mut writer);
        writer.size(squares.len());
        squares.iter().for_each(|&square| writer.size(square));
        writer.bytes(&then.0);
        Self(writer.finish())
    }

    /// What [`Self::as_bytes`] gave. If these are other bytes, it refutes nothing.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// As it stands in a certificate.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Multipliers {
    /// All 0, for the board of size `n`.
    pub fn none(n: usize) -> Self {
        let diagonals = vec![0; (2 * n).saturating_sub(1)];
        Self { columns: vec![0; n], diagonals: diagonals.clone(), antidiagonals: diagonals }
    }

    /// Numbers one after the other; a 0 is followed by how many more zeros there are.
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

/// Over which line a search of the checker branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The one with the fewest squares.
    Smallest,
    /// The one that has the fewest for how often it ran out of them.
    Weightiest(Weightiest),
}

/// Which lines are compared by weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Weightiest {
    /// Blocks of rows, a bit for each: those of the first block that is not full, and all rows at the end.
    pub(super) blocks: Vec<u128>,
    /// Besides the rows the columns that have squares in no others.
    pub(super) columns: bool,
    /// How often each row and column ran out of squares already; empty if nothing is known.
    pub(super) learned: Vec<usize>,
}

/// One node of a tree, as it is read.
pub(super) enum Node {
    Search(Order),
    Budget { knapsack: bool, y: Vec<i64> },
    Branch { line: usize, children: usize },
    Dead { y: Vec<i64>, squares: Vec<usize> },
}

impl Node {
    /// Returns how many operations it takes to read it from so many bytes. Few bytes can stand for many multipliers.
    pub(super) fn operations(&self, bytes: usize) -> u64 {
        let multipliers = match self {
            Self::Budget { y, .. } | Self::Dead { y, .. } => y.len(),
            Self::Search(_) | Self::Branch { .. } => 0,
        };
        50 + 4 * (bytes + multipliers) as u64
    }
}

/// Reads the next node of the board of size `n`.
pub(super) fn read(reader: &mut Reader<'_>, n: usize) -> Result<Node, ProofError> {
    let tag = reader.byte()?;
    Ok(match tag {
        SEARCH => Node::Search(Order::Smallest),
        SEARCH_BY_WEIGHT => Node::Search(Order::Weightiest(Weightiest::default())),
        SEARCH_IN_BLOCKS | SEARCH_BY_LINES => {
            let (columns, learned) = (tag == SEARCH_BY_LINES, Vec::new());
            Node::Search(Order::Weightiest(Weightiest { blocks: read_blocks(reader, n)?, columns, learned }))
        }
        PLAIN | KNAPSACK => Node::Budget { knapsack: tag == KNAPSACK, y: read_multipliers(reader, n)? },
        BRANCH => Node::Branch { line: reader.size(usize::MAX)?, children: reader.size(n)? },
        DEAD => {
            let y = read_multipliers(reader, n)?;
            let number = reader.size(n * n)?;
            let square = |_| reader.size((n * n).saturating_sub(1));
            Node::Dead { y, squares: (0..number).map(square).collect::<Result<_, _>>()? }
        }
        SEARCH_AFTER_LEARNING => {
            let weight = |_| reader.size(u32::MAX as usize);
            let learned = (0..2 * n).map(weight).collect::<Result<_, _>>()?;
            let blocks = read_blocks(reader, n)?;
            Node::Search(Order::Weightiest(Weightiest { blocks, columns: true, learned }))
        }
        _ => return Err(ProofError::UnknownStep(tag.into())),
    })
}

/// Blocks of rows, a bit for each row.
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

/// By line, from the first column on.
fn read_multipliers(reader: &mut Reader<'_>, n: usize) -> Result<Vec<i64>, ProofError> {
    let lines = 5 * n - 2;
    let mut y = Vec::with_capacity(lines);
    while y.len() < lines {
        let value =
            if y.len() < n { reader.signed()? } else { reader.number()?.try_into().unwrap_or(i64::MAX) };
        if !(-LARGEST_MULTIPLIER + 1..LARGEST_MULTIPLIER).contains(&value) {
            return Err(ProofError::Damaged("a multiplier is too large"));
        }
        let more = if value == 0 { reader.size(lines - y.len() - 1)? } else { 0 };
        y.extend(std::iter::repeat_n(value, more + 1));
    }
    Ok(y)
}
