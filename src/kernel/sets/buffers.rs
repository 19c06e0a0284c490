//! The buffers of a thread: the intermediate results of both halves.

use std::ops::Range;

use super::block::Block;
use super::last_rows::Ranges;
use super::lists::{List, Lists};
use super::part_rows::{PartRows, SAME};
use super::placements::Set;
use super::sum::SetWork;
use super::vector::{Choice, Few, ROOM, SLACK, Vector, Words};

/// The buffers of a thread, for planes of W words. The engines of all families use them in turn: a
/// set begins with them empty.
#[derive(Debug)]
pub(super) struct Buffers<const W: usize> {
    pub(super) lists: Lists,
    pub(super) lower: LowerBuffers,
    pub(super) upper: UpperBuffers<W>,
}

impl<const W: usize> Buffers<W> {
    pub(super) fn new() -> Self {
        let outer_placements =
            OuterPlacements { ranges: Ranges::new(), need: Vec::new(), codes: Vec::new() };
        let upper = UpperBuffers {
            levels: Vec::new(),
            completions: Vec::new(),
            outer_placements,
            block: Block::new(),
            counters: SetWork::default(),
        };
        let lower = LowerBuffers { outer: Kept::default(), ranges: Ranges::new() };
        Self { lists: Lists::new(), lower, upper }
    }

    /// Returns what was done with these buffers.
    pub(super) const fn counters(&self) -> SetWork {
        self.upper.counters
    }
}

/// The placements of the outer part of a lower half, and those of each set of columns.
#[derive(Debug)]
pub(super) struct LowerBuffers {
    pub(super) outer: Kept,
    pub(super) ranges: Ranges,
}

/// Placements of the outer part, in parallel arrays.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) count: usize,
    /// The masks that a placement of the other part is tested against.
    tests: Vec<u64>,
    reach: Vec<u64>,
    /// The row in the part of each decisive column, where the set has it.
    pub(super) rows: [Vec<u8>; 2],
}

impl Kept {
    /// Makes room for the placements of a table's set, and [`SLACK`] words behind them.
    #[inline(always)]
    pub(super) fn reserve(&mut self) {
        let end = self.count + ROOM + SLACK;
        if self.tests.len() < end {
            let len = end.next_power_of_two();
            self.tests.resize(len, 0);
            self.reach.resize(len, 0);
            self.rows.iter_mut().for_each(|rows| rows.resize(len, 0));
        }
    }

    /// Returns a range of the placements, and what is behind it.
    #[inline(always)]
    pub(super) fn words(&self, range: Range<usize>) -> Words<'_> {
        let (tests, words) = (&self.tests[range.start..], &self.reach[range.start..]);
        Words { count: range.len(), tests, words }
    }

    /// Appends the chosen placements of a table, with their tests and their reach.
    #[inline(always)]
    pub(super) fn append<V: Vector>(
        &mut self,
        vector: V,
        choice: Choice<'_>,
        words: [&Few; 2],
        all: [u64; 2],
    ) {
        let into = [&mut self.tests[self.count..], &mut self.reach[self.count..]];
        self.count += vector.select(choice, words, all, into);
    }

    /// Finds the rows of the columns `decisive`, which have one bit or none, in the placements from
    /// `new` on, which were chosen last. A column that the table does not have is that of the
    /// leading row.
    #[inline(always)]
    pub(super) fn find_rows<V: Vector>(
        &mut self,
        vector: V,
        new: usize,
        choice: Choice<'_>,
        set: &Set<'_>,
        decisive: [u32; 2],
        of: &PartRows,
    ) {
        let (mut unused, mut kept) = ([0; ROOM], [0; ROOM]);
        let codes = [set.orders(), &SAME];
        vector.select_coded(choice, choice.tests, codes, (0, 0), (&mut unused, &mut kept));
        for (rows, column) in self.rows.iter_mut().zip(decisive) {
            let rows = &mut rows[new..self.count];
            if column & set.columns == 0 {
                rows.fill(0);
                continue;
            }
            for (row, order) in rows.iter_mut().zip(kept) {
                *row = of.of_table + of.row(set.columns, column, order);
            }
        }
    }
}

/// The intermediate results of the upper half.
#[derive(Debug)]
pub(super) struct UpperBuffers<const W: usize> {
    /// The list behind each number of rows that filter.
    pub(super) levels: Vec<List>,
    /// The completions by their key, which has a decimal digit for each of the first
    /// `UpperHalf::keys` rows: the rank of its column.
    pub(super) completions: Vec<List<u32>>,
    pub(super) outer_placements: OuterPlacements,
    pub(super) block: Block<W>,
    pub(super) counters: SetWork,
}

/// The placements of the outer part in every set of columns.
#[derive(Debug)]
pub(super) struct OuterPlacements {
    pub(super) ranges: Ranges,
    /// The windows of the part's first row that would attack one of the queens.
    pub(super) need: Vec<u64>,
    pub(super) codes: Vec<u32>,
}
