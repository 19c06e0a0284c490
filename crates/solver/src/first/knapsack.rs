//! The heaviest set of diagonals of a given number and sum, by dynamic programming: the pricing
//! problem of the column generation.

use std::ops::Range;

use nqueens_proof::first::DiagonalSets;

/// Available diagonals of one direction: their positions, in ascending order, and their weights
/// (non-negative; all weights sum to less than 2^30).
#[derive(Clone, Debug, Default)]
pub(super) struct Diagonals {
    pub(super) places: Vec<i32>,
    pub(super) weights: Vec<i32>,
}

/// A heaviest set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeaviestSet {
    pub(super) weight: i32,
    /// Indices of the diagonals in the set.
    pub(super) chosen: Vec<usize>,
}

/// Far below any sum of weights.
const NONE: i32 = -(1 << 30);

/// The tables of the dynamic program, kept between calls to avoid allocation: one for each number
/// of first diagonals. It has the greatest weight of the sets of these diagonals with each size and
/// sum that sets of the others can complete. Since the positions ascend, these are few sums for
/// each size.
#[derive(Debug, Default)]
pub(super) struct Knapsack {
    frames: Vec<Frame>,
    rows: Vec<Row>,
    entries: Vec<i32>,
    /// The sets that take the place of all those of a given number and sum, if they were listed.
    pub(super) listed: Option<DiagonalSets>,
}

/// The rows and the entries of a table.
#[derive(Clone, Debug)]
struct Frame {
    /// The number of diagonals of the first row.
    least: usize,
    rows: Range<usize>,
    entries: Range<usize>,
}

/// The sums from `low` to `high` of one number of diagonals; none if `high` is less.
#[derive(Clone, Copy, Debug)]
struct Row {
    low: i32,
    high: i32,
    /// The index of the first entry in the table.
    start: usize,
}

impl Row {
    fn width(&self) -> usize {
        (self.high - self.low + 1).max(0) as usize
    }
}

/// A diagonal with its position and its weight.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    place: i32,
    weight: i32,
}

/// A table: the number of diagonals of its first row, its rows and its entries.
type Table<'t, E> = (usize, &'t [Row], E);

/// Takes the maximum of a table and another one extended by an item and by `count` diagonals.
fn improve(
    (least, rows, table): Table<'_, &mut [i32]>,
    (other_least, other_rows, other): Table<'_, &[i32]>,
    count: isize,
    Item { place, weight }: Item,
) {
    for (chosen, to) in (least..).zip(rows) {
        let source = chosen.wrapping_add_signed(-count).wrapping_sub(other_least);
        let Some(from) = other_rows.get(source) else { continue };
        let (low, high) = (to.low.max(from.low + place), to.high.min(from.high + place));
        if low > high {
            continue;
        }
        let length = (high - low + 1) as usize;
        let row = &mut table[to.start + (low - to.low) as usize..][..length];
        let other = &other[from.start + (low - place - from.low) as usize..][..length];
        for (best, other) in row.iter_mut().zip(other) {
            *best = (*best).max(other + weight);
        }
    }
}

impl Diagonals {
    fn items(&self) -> impl DoubleEndedIterator<Item = Item> + ExactSizeIterator {
        self.places.iter().zip(&self.weights).map(|(&place, &weight)| Item { place, weight })
    }
}

/// A clone has empty tables, since every call fills them anew.
impl Clone for Knapsack {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Knapsack {
    /// Returns the heaviest set of `count` diagonals whose positions sum to `sum`, or `None` if
    /// there is no such set.
    pub(super) fn heaviest(
        &mut self,
        diagonals: &Diagonals,
        count: usize,
        sum: i32,
    ) -> Option<HeaviestSet> {
        self.fill(diagonals, count, sum)?;
        let mut chosen = Vec::with_capacity(count);
        let (mut rest, mut at) = (count, sum);
        for i in (0..diagonals.places.len()).rev() {
            let here = self.entry(i + 1, rest, at);
            if self.entry(i, rest, at) != here {
                chosen.push(i);
                rest -= 1;
                at -= diagonals.places[i];
            }
        }
        debug_assert!(rest == 0 && at == 0);
        Some(HeaviestSet { weight: self.weight(), chosen })
    }

    /// Returns the greatest weight of such a set and, by diagonal, of such a set that contains it,
    /// which is negative if there is none.
    pub(super) fn weights(
        &mut self,
        diagonals: &Diagonals,
        count: usize,
        sum: i32,
    ) -> Option<(i32, Vec<i32>)> {
        self.fill(diagonals, count, sum)?;
        Some((self.weight(), self.backward(diagonals)))
    }

    /// Fills the tables. Returns `None` if there is no set.
    fn fill(&mut self, diagonals: &Diagonals, count: usize, sum: i32) -> Option<()> {
        debug_assert!(diagonals.places.is_sorted());
        if count > diagonals.places.len() {
            return None;
        }
        self.set_frames(diagonals, count, sum)?;
        self.forward(diagonals);
        (self.weight() >= 0).then_some(())
    }

    /// Returns the weight of the heaviest set, once the tables are filled.
    fn weight(&self) -> i32 {
        self.frames.last().map_or(NONE, |last| self.entries[last.entries.start])
    }

    /// Sets the numbers and sums of the tables. Returns `None` if there are none in one of them.
    fn set_frames(&mut self, diagonals: &Diagonals, count: usize, sum: i32) -> Option<()> {
        // The sum of the positions of each number of first diagonals.
        let mut sums = vec![0];
        sums.extend(diagonals.places.iter().scan(0, |sum, &place| {
            *sum += place;
            Some(*sum)
        }));
        let between = |from: usize, to: usize| sums[to] - sums[from];
        let all = diagonals.places.len();
        self.frames.clear();
        self.rows.clear();
        let mut begin = 0;
        for first in 0..=all {
            let least = count.saturating_sub(all - first);
            let mut start = 0;
            let rows = self.rows.len();
            for chosen in least..=count.min(first) {
                let others = count - chosen;
                // The sum is at least that of the lowest positions of the first diagonals, and it
                // leaves at most that of the highest ones of the others; and conversely.
                let low = between(0, chosen).max(sum - between(all - others, all));
                let high = between(first - chosen, first).min(sum - between(first, first + others));
                let row = Row { low, high, start };
                start += row.width();
                self.rows.push(row);
            }
            if start == 0 {
                return None;
            }
            let (rows, entries) = (rows..self.rows.len(), begin..begin + start);
            begin = entries.end;
            self.frames.push(Frame { least, rows, entries });
        }
        if self.entries.len() < begin {
            self.entries.resize(begin, NONE);
        }
        Some(())
    }

    /// Fills the tables of sets of the first diagonals, by number of diagonals. The last table
    /// holds the result.
    fn forward(&mut self, diagonals: &Diagonals) {
        self.entries[0] = 0;
        for (i, item) in diagonals.items().enumerate() {
            let (from, to) = (&self.frames[i], &self.frames[i + 1]);
            let (before, after) = self.entries.split_at_mut(to.entries.start);
            let from = (from.least, &self.rows[from.rows.clone()], &before[from.entries.clone()]);
            let rows = &self.rows[to.rows.clone()];
            let table = &mut after[..to.entries.len()];
            table.fill(NONE);
            improve((to.least, rows, table), from, 0, Item::default());
            improve((to.least, rows, table), from, 1, item);
        }
    }

    /// Returns, by diagonal, the greatest weight of a set that contains it, negative if there is
    /// none. Goes back from the last diagonal and combines the contribution of the later diagonals
    /// with the tables of [`forward`](Self::forward).
    fn backward(&self, diagonals: &Diagonals) -> Vec<i32> {
        let mut with = vec![NONE; diagonals.places.len()];
        let (mut behind, mut table) = (vec![0], Vec::new());
        for (i, Item { place, weight }) in diagonals.items().enumerate().rev() {
            let (from, to) = (&self.frames[i + 1], &self.frames[i]);
            let from = (from.least, &self.rows[from.rows.clone()], &behind[..]);
            let rows = &self.rows[to.rows.clone()];
            table.clear();
            table.resize(to.entries.len(), NONE);
            improve((to.least, rows, &mut table), from, -1, Item { place: -place, weight });
            let before = &self.entries[to.entries.clone()];
            with[i] = table
                .iter()
                .zip(before)
                .map(|(behind, before)| behind + before)
                .max()
                .unwrap_or(NONE);
            improve((to.least, rows, &mut table), from, 0, Item::default());
            std::mem::swap(&mut behind, &mut table);
        }
        with
    }

    /// Returns the greatest weight of `chosen` of the first `i` diagonals with this sum.
    fn entry(&self, i: usize, chosen: usize, sum: i32) -> i32 {
        let frame = &self.frames[i];
        let rows = &self.rows[frame.rows.clone()];
        match rows.get(chosen.wrapping_sub(frame.least)) {
            Some(row) if (row.low..=row.high).contains(&sum) => {
                self.entries[frame.entries.start + row.start + (sum - row.low) as usize]
            }
            _ => NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the greatest weight, in all and by diagonal, by trying all sets.
    fn oracle(diagonals: &Diagonals, count: usize, sum: i32) -> Option<(i32, Vec<Option<i32>>)> {
        let number = diagonals.places.len();
        let set = |set: u32| (0..number).filter(move |i| set >> i & 1 == 1);
        let mut with = vec![None; number];
        let sets = (0u32..1 << number).filter(|&s| {
            set(s).count() == count && set(s).map(|i| diagonals.places[i]).sum::<i32>() == sum
        });
        let weights = sets.map(|s| {
            let weight: i32 = set(s).map(|i| diagonals.weights[i]).sum();
            set(s).for_each(|i| with[i] = with[i].max(Some(weight)));
            weight
        });
        let weight = weights.max()?;
        Some((weight, with))
    }

    #[test]
    fn the_heaviest_sets_equal_those_of_exhaustive_search() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut knapsack = Knapsack::default();
        let (mut sets, mut none) = (0, 0);
        for case in 0..20_000 {
            let mut places: Vec<i32> = (-30..30).collect();
            random.shuffle(&mut places);
            places.truncate(random.usize(0..=12));
            let set: Vec<i32> = places.clone();
            places.sort_unstable();
            let weights: Vec<i32> = places.iter().map(|_| random.i32(0..1000)).collect();
            let count = random.usize(0..=places.len() + 1);
            let near = if random.u8(0..4) == 0 { random.i32(-2..=2) } else { 0 };
            let sum = set.iter().take(count).sum::<i32>() + near;
            let diagonals = Diagonals { places, weights };
            let found = knapsack.heaviest(&diagonals, count, sum);
            let context = format!("case {case}: {diagonals:?}, {count}, {sum}");
            let expected = oracle(&diagonals, count, sum);
            assert_eq!(
                found.as_ref().map(|set| set.weight),
                expected.as_ref().map(|sets| sets.0),
                "{context}"
            );
            let weights = knapsack.weights(&diagonals, count, sum);
            let there = |weight: i32| (weight >= 0).then_some(weight);
            let weights = weights.map(|(most, with)| (most, with.into_iter().map(there).collect()));
            assert_eq!(weights, expected, "{context}");
            match found {
                Some(HeaviestSet { weight, mut chosen }) => {
                    let total = |of: &[i32]| chosen.iter().map(|&i| of[i]).sum::<i32>();
                    assert_eq!(
                        (total(&diagonals.weights), total(&diagonals.places)),
                        (weight, sum),
                        "{context}"
                    );
                    chosen.sort_unstable();
                    chosen.dedup();
                    assert_eq!(chosen.len(), count, "{context}");
                    sets += 1;
                }
                None => none += 1,
            }
        }
        assert!(sets > 1000 && none > 1000, "{sets} with a set, {none} without");
    }
}
