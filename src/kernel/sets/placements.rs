//! The placements of up to four consecutive rows, by their sets of columns.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::vector::{Few, FewCodes};
use crate::decomposition::{HalfRow, binomial, columns_of};

/// The most rows of a table.
pub(super) const MOST_ROWS: usize = 4;

/// Two row masks in a word: the columns attacked from the right (by queens whose diagonal moves to
/// the left with every row) in the low half, those attacked from the left in the high half.
#[inline]
pub(super) const fn windows(left: u32, right: u32) -> u64 {
    left as u64 | (right as u64) << 32
}

/// Returns the mask of `column`, or 0 if it is off a board of size n.
#[inline]
pub(super) const fn on_board(n: usize, column: isize) -> u32 {
    if column >= 0 && (column as usize) < n { 1 << column } else { 0 }
}

/// The masks that the placements of the other part are tested against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tests {
    /// The windows that the queens of a table have after its last row.
    Beyond,
    /// The windows, so many rows before the first row of the table, that would attack one of its
    /// queens.
    NeedAhead(usize),
}

/// The key of a table: all that determines its contents.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    n: usize,
    rows: Vec<HalfRow>,
    tests: Tests,
    /// The distance of row 0 from the first row of the other half, if the reach is wanted.
    distance: Option<usize>,
}

/// All legal placements of up to four consecutive rows of a half, grouped by the set of their
/// columns. A placement is legal if its queens stand on allowed columns and do not attack each
/// other. Rows are numbered outward from the first row of the table, from 0.
#[derive(Debug)]
pub(super) struct Placements {
    rows: usize,
    rank: Ranks,
    /// The index of the first placement of each set, and the number of all placements.
    first: Vec<u32>,
    /// The windows of row 0 that would attack one of the queens.
    need: Vec<u64>,
    tests: Vec<u64>,
    /// The columns of the first row of the other half that the queens attack, as windows; empty if
    /// not wanted.
    reach: Vec<u64>,
    /// The number of the order of the columns, an index of [`orders`].
    order: Vec<u32>,
}

/// The tables in use. Threads that count the same job share them: at n = 24 they have 40 MB.
static TABLES: Mutex<Vec<(Content, Weak<Placements>)>> = Mutex::new(Vec::new());

impl Placements {
    /// Returns the placements of `rows` (at most [`MOST_ROWS`]) on a board of size n, with their
    /// reach if row 0 has the `distance` from the first row of the other half.
    pub(super) fn shared(
        n: usize,
        rows: &[HalfRow],
        tests: Tests,
        distance: Option<usize>,
    ) -> Arc<Self> {
        let content = Content { n, rows: rows.to_vec(), tests, distance };
        // A thread that panicked here has changed nothing.
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|(_, table)| table.strong_count() > 0);
        let known = tables.iter().find(|(of, _)| *of == content);
        if let Some(table) = known.and_then(|(_, table)| table.upgrade()) {
            return table;
        }
        let table = Arc::new(Self::new(&content));
        tables.push((content, Arc::downgrade(&table)));
        table
    }

    fn new(content: &Content) -> Self {
        let Content { n, ref rows, tests, distance } = *content;
        let rank = Ranks::new(n, rows.len());
        let mut found: Vec<Found> = Vec::new();
        place(rows, &mut Vec::new(), 0, [0, 0], &mut |columns, used, [left, right]| {
            let mut one =
                Found { set: rank.of(used) as u32, order: order_of(columns), ..Found::default() };
            if tests == Tests::Beyond {
                one.tests = windows(left, right);
            }
            for (row, &column) in columns.iter().enumerate() {
                let column = column as isize;
                let at = |shift: usize| {
                    let shift = shift as isize;
                    windows(on_board(n, column - shift), on_board(n, column + shift))
                };
                one.need |= at(row);
                if let Tests::NeedAhead(ahead) = tests {
                    one.tests |= at(row + ahead);
                }
                one.reach |= distance.map_or(0, |distance| at(distance + row));
            }
            found.push(one);
        });
        // Placements of a set stay in the order of their queens.
        found.sort_by_key(|one| one.set);
        let placements = found.len();
        let mut first = vec![0; rank.sets() + 1];
        found.iter().for_each(|one| first[one.set as usize + 1] += 1);
        // Slices of a fixed size are read.
        found.resize_with(placements + size_of::<FewCodes>() / size_of::<u32>(), Found::default);
        for set in 0..rank.sets() {
            first[set + 1] += first[set];
        }
        let with_reach = if distance.is_some() { &found[..] } else { &[] };
        Self {
            rows: rows.len(),
            rank,
            first,
            need: found.iter().map(|one| one.need).collect(),
            tests: found.iter().map(|one| one.tests).collect(),
            reach: with_reach.iter().map(|one| one.reach).collect(),
            order: found.iter().map(|one| one.order).collect(),
        }
    }

    /// Returns the number of rows.
    #[inline]
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the placements of a set of as many columns as there are rows.
    #[inline(always)]
    pub(super) fn of(&self, set: u32) -> Set<'_> {
        let rank = self.rank.of(set);
        let (start, end) = (self.first[rank] as usize, self.first[rank + 1] as usize);
        Set { table: self, columns: set, start, count: end - start }
    }
}

/// The placements of one set of columns, at most [`MOST_PLACEMENTS`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Set<'a> {
    table: &'a Placements,
    pub(super) columns: u32,
    start: usize,
    pub(super) count: usize,
}

impl<'a> Set<'a> {
    /// Returns the words of these placements and some more.
    #[inline(always)]
    fn few<T, const COUNT: usize>(&self, all: &'a [T]) -> &'a [T; COUNT] {
        all[self.start..].first_chunk().expect("the arrays are padded")
    }

    /// Returns the windows of the first row that would attack one of the queens.
    #[inline(always)]
    pub(super) fn need(&self) -> &'a Few {
        self.few(&self.table.need)
    }

    /// Returns what the placements of the other part are tested against.
    #[inline(always)]
    pub(super) fn tests(&self) -> &'a Few {
        self.few(&self.table.tests)
    }

    /// Returns the columns of the first row of the other half that the queens attack, as windows.
    /// The table must have them.
    #[inline(always)]
    pub(super) fn reach(&self) -> &'a Few {
        self.few(&self.table.reach)
    }

    /// Returns the numbers of the orders of the columns.
    #[inline(always)]
    pub(super) fn orders(&self) -> &'a FewCodes {
        self.few(&self.table.order)
    }
}
#[derive(Default)]
struct Found {
    set: u32,
    need: u64,
    tests: u64,
    reach: u64,
    order: u32,
}

fn place(
    rows: &[HalfRow],
    columns: &mut Vec<usize>,
    used: u32,
    [left, right]: [u32; 2],
    found: &mut impl FnMut(&[usize], u32, [u32; 2]),
) {
    let Some((row, rest)) = rows.split_first() else { return found(columns, used, [left, right]) };
    for column in columns_of(row.allowed & !used & !left & !right) {
        let queen = 1 << column;
        columns.push(column);
        place(rest, columns, used | queen, [(left | queen) << 1, (right | queen) >> 1], found);
        columns.pop();
    }
}

/// Ranks of the sets of k of n columns in colexicographic order, by two table look-ups.
#[derive(Debug)]
struct Ranks {
    low: Vec<u32>,
    high: Vec<u32>,
    half: u32,
    sets: usize,
}

impl Ranks {
    fn new(n: usize, k: usize) -> Self {
        let half = n / 2;
        // The i-th smallest column c, i from 1, contributes C(c, i).
        let sum = |bits: u32, from: usize, taken: usize| {
            let columns = columns_of(bits).map(|column| column + from);
            columns
                .zip(taken + 1..)
                .map(|(column, i)| binomial(column as u32, i as u32) as u32)
                .sum()
        };
        let low = (0..1 << half)
            .map(|bits: u32| if bits.count_ones() as usize > k { 0 } else { sum(bits, 0, 0) });
        let high = (0..1 << (n - half)).map(|bits: u32| {
            k.checked_sub(bits.count_ones() as usize).map_or(0, |taken| sum(bits, half, taken))
        });
        let sets = binomial(n as u32, k as u32) as usize;
        Self { low: low.collect(), high: high.collect(), half: half as u32, sets }
    }

    const fn sets(&self) -> usize {
        self.sets
    }

    #[inline(always)]
    fn of(&self, set: u32) -> usize {
        let low = (1u32 << self.half) - 1;
        // A board of size 0 has no higher half.
        self.low[(set & low) as usize] as usize + self.high[(set >> self.half) as usize] as usize
    }
}

/// Returns the number of the order of `columns`, at most four: an index of [`orders`].
fn order_of(columns: &[usize]) -> u32 {
    let smaller_later = |i: usize| columns[i + 1..].iter().filter(|&&c| c < columns[i]).count();
    let number = (0..columns.len()).fold(0, |sum, i| sum * (columns.len() - i) + smaller_later(i));
    number as u32
}

/// Returns the orders of `rows` columns by their number. An order gives for each row the rank of
/// its column in the set.
pub(super) fn orders(rows: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for _ in 0..rows {
        all = all
            .into_iter()
            .flat_map(|order: Vec<u8>| {
                (0..rows as u8)
                    .filter(|rank| !order.contains(rank))
                    .map(|rank| {
                        let mut longer = order.clone();
                        longer.push(rank);
                        longer
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    all.sort_by_key(|order| {
        order_of(&order.iter().map(|&rank| usize::from(rank)).collect::<Vec<_>>())
    });
    all
}

/// Returns the subsets of 0..of with `chosen` elements, in the order of their numbers.
pub(super) fn subsets(of: usize, chosen: usize) -> Vec<u32> {
    (0..1u32 << of).filter(|bits| bits.count_ones() as usize == chosen).collect()
}

/// The subsets of up to ten columns, by bit masks of their positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subsets {
    low: [u32; 32],
    high: [u32; 32],
}

impl Subsets {
    /// Prepares the subsets of `columns`, of which there are at most ten.
    #[inline(always)]
    pub(super) fn new(mut columns: u32) -> Self {
        let mut halves = [[0; 32]; 2];
        for half in &mut halves {
            for bit in 0..5 {
                let column = columns & columns.wrapping_neg();
                columns ^= column;
                for bits in 0..1 << bit {
                    half[bits | 1 << bit] = half[bits] | column;
                }
            }
        }
        Self { low: halves[0], high: halves[1] }
    }

    /// Returns the columns at `positions`, one bit each; position 0 is the lowest column.
    #[inline(always)]
    pub(super) fn at(&self, positions: u32) -> u32 {
        self.low[(positions & 31) as usize] | self.high[(positions >> 5 & 31) as usize]
    }
}
