//! The sets of diagonals of one direction that a completion can use, with a fixed size and a fixed
//! sum.
//!
//! Every queen stands on one diagonal of each direction. The antidiagonals r + c that a completion
//! adds are distinct, there is one for each open row, and they sum to Σ r + Σ c over the open rows
//! and columns; for the diagonals c - r the sum is Σ c - Σ r. The greatest weight of such a set is
//! the optimum of a 0-1 knapsack with an exact count and an exact sum, solved here by dynamic
//! programming over the items, forward and backward. Most of the time of a check can go into
//! filling the tables. So their entries have 32 bits if the weights are small enough, and the items
//! are in ascending order of their places: then few sums of a given number of the first items can
//! be completed by the others.

use std::ops::Add;

use super::{LARGEST, LARGEST_MULTIPLIER};

/// A diagonal on which a queen can still stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The position of the diagonal: r + c or c - r.
    pub(crate) place: i64,
    /// The weight, not negative.
    pub(crate) weight: i64,
}

/// The greatest weights of the sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heaviest {
    /// The greatest weight of any set.
    pub(crate) any: i64,
    /// By item: the greatest weight of a set that contains it, or `None` if no set does.
    pub(crate) with: Vec<Option<i64>>,
}

/// An entry of a table: the greatest weight of some sets.
trait Entry: Copy + Ord + Add<Output = Self> + Into<i64> {
    /// The value for no set: its sum with itself and with any weights is negative and does not
    /// overflow.
    const NONE: Self;

    /// The empty set.
    const EMPTY: Self;

    /// Converts the weight of an item. All weights sum to at most `MOST_WEIGHT`.
    fn of(weight: i64) -> Self;

    /// The largest sum of all weights.
    const MOST_WEIGHT: i64;
}

impl Entry for i64 {
    const NONE: Self = Self::MIN / 4;
    const EMPTY: Self = 0;
    const MOST_WEIGHT: Self = {
        let most = -(Self::NONE + 1);
        assert!(2 * LARGEST as Self * LARGEST_MULTIPLIER <= most);
        most
    };

    fn of(weight: i64) -> Self {
        weight
    }
}

impl Entry for i32 {
    const NONE: Self = Self::MIN / 4;
    const EMPTY: Self = 0;
    const MOST_WEIGHT: i64 = -(Self::NONE as i64 + 1);

    fn of(weight: i64) -> Self {
        weight as Self
    }
}

/// The largest number of [`specified_entries`].
const MOST_SPECIFIED_ENTRIES: usize = 1 << 25;

/// The result of a knapsack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnapsackOutcome {
    /// There is no such set.
    NoSet,
    /// The greatest weights of the sets.
    Heaviest(Heaviest),
    /// The knapsack is too large, by the definition of docs/certificates.md.
    TooLarge,
}

/// The tables of a knapsack, kept between calls to avoid allocation.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    narrow: SizedTables<i32>,
    wide: SizedTables<i64>,
}

/// The tables with entries of one size.
#[derive(Debug, Default)]
struct SizedTables<E> {
    /// By number of first items: the greatest weights of their sets.
    layers: Vec<E>,
    /// The layers over the items after the current one, and from it on.
    after: Vec<E>,
    from_item: Vec<E>,
}

/// Returns the greatest weight of a set of `count` of the `items` whose places sum to `sum`, and
/// for each item the greatest weight of such a set that contains it; also returns the approximate
/// number of operations. The items must be in ascending order of their places.
pub(crate) fn heaviest(
    items: &[Item],
    count: usize,
    sum: i64,
    tables: &mut Tables,
) -> (KnapsackOutcome, usize) {
    /// The number of accesses to each entry, and of operations on each row.
    const EACH_ENTRY: usize = 4;
    const EACH_ROW: usize = 30;
    assert!(items.is_sorted_by_key(|item| item.place));
    let few = 100 * (items.len() + 1);
    if count > items.len() {
        return (KnapsackOutcome::NoSet, few);
    }
    match specified_entries(items, count, sum) {
        None => return (KnapsackOutcome::NoSet, few),
        Some(entries) if entries > MOST_SPECIFIED_ENTRIES => {
            return (KnapsackOutcome::TooLarge, few);
        }
        Some(_) => {}
    }
    let knapsack = Knapsack::new(items, count, sum);
    let sum_of = |number: fn(&Frame) -> usize| knapsack.frames.iter().map(number).sum::<usize>();
    let (rows, entries) = (sum_of(|frame| frame.rows.len()), sum_of(|frame| frame.entries));
    let operations = few + EACH_ROW * rows + EACH_ENTRY * entries;
    if knapsack.frames.iter().any(|frame| frame.entries == 0) {
        return (KnapsackOutcome::NoSet, operations);
    }
    let all = items.iter().fold(0, |sum: i64, item| sum.saturating_add(item.weight));
    debug_assert!(items.iter().all(|item| item.weight >= 0));
    // Only one kind of tables keeps its memory.
    let found = if all <= i32::MOST_WEIGHT {
        tables.wide = SizedTables::default();
        knapsack.solve(entries, &mut tables.narrow)
    } else {
        tables.narrow = SizedTables::default();
        knapsack.solve(entries, &mut tables.wide)
    };
    let Some((any, with)) = found else { return (KnapsackOutcome::NoSet, operations) };
    (KnapsackOutcome::Heaviest(Heaviest { any, with }), operations)
}

/// Returns the number of entries of the tables that define which knapsacks are too large; `None` if
/// their frames show that there is no set. `docs/certificates.md` specifies these tables. Those
/// that are filled are several times smaller: on the largest board they have fewer than 13 million
/// entries.
fn specified_entries(items: &[Item], count: usize, sum: i64) -> Option<usize> {
    // Relative to the mean rounded down, the places of a set sum to less than `count`.
    let mean = if count == 0 { 0 } else { sum.div_euclid(count as i64) };
    let sum = sum - mean * count as i64;
    let mut places: Vec<i64> = items.iter().map(|item| item.place - mean).collect();
    places.sort_by_key(|&place| (place.abs(), place));
    let (mut low, mut high) = (0, 0);
    let mut rest_low: i64 = places.iter().map(|&place| place.min(0)).sum();
    let mut rest_high: i64 = places.iter().map(|&place| place.max(0)).sum();
    let mut entries = 0;
    for first in 0..=places.len() {
        let counts = count.min(first) + 1 - count.saturating_sub(places.len() - first);
        let sums = high.min(sum - rest_low) - low.max(sum - rest_high) + 1;
        if sums <= 0 {
            return None;
        }
        entries += counts * sums as usize;
        if let Some(place) = places.get(first) {
            low += place.min(&0);
            high += place.max(&0);
            rest_low -= place.min(&0);
            rest_high -= place.max(&0);
        }
    }
    Some(entries)
}

/// A knapsack.
struct Knapsack<'i> {
    /// In ascending order of their places.
    items: &'i [Item],
    /// The frame after each number of items.
    frames: Vec<Frame>,
}

/// The counts and sums that sets of the first items can have and that the other items can complete.
/// A layer is a table over them: one row per count, one entry per sum.
struct Frame {
    /// The count of the first row.
    least: usize,
    rows: Vec<Row>,
    /// The number of entries of all rows.
    entries: usize,
}

/// The sums from `low` to `high` of one count; none if `high` is less.
#[derive(Clone, Copy)]
struct Row {
    low: i64,
    high: i64,
    /// The index of the first entry in a layer.
    start: usize,
}

impl Row {
    fn width(low: i64, high: i64) -> usize {
        (high - low + 1).max(0) as usize
    }
}

impl Frame {
    /// Returns the row of this count.
    fn row(&self, count: usize) -> Option<&Row> {
        self.rows.get(count.checked_sub(self.least)?)
    }
}

impl<'i> Knapsack<'i> {
    /// Creates the knapsack of sets of `count` of the `items` whose places sum to `sum`.
    fn new(items: &'i [Item], count: usize, sum: i64) -> Self {
        // The sum of the places of each number of first items.
        let mut sums = vec![0];
        sums.extend(items.iter().scan(0, |sum, item| {
            *sum += item.place;
            Some(*sum)
        }));
        let between = |from: usize, to: usize| sums[to] - sums[from];
        let all = items.len();
        let frame = |first: usize| {
            let least = count.saturating_sub(all - first);
            let mut entries = 0;
            let rows = (least..=count.min(first)).map(|chosen| {
                let others = count - chosen;
                // The sum is at least that of the smallest places of the first items, and it leaves
                // at most that of the largest places of the others; and conversely.
                let low = between(0, chosen).max(sum - between(all - others, all));
                let high = between(first - chosen, first).min(sum - between(first, first + others));
                let start = entries;
                entries += Row::width(low, high);
                Row { low, high, start }
            });
            let rows = rows.collect();
            Frame { least, rows, entries }
        };
        let frames = (0..=all).map(frame).collect();
        Self { items, frames }
    }

    /// Returns the greatest weight of a set, and for each item that of a set that contains it;
    /// `None` if there is no set. `entries` is the number of entries of all frames.
    fn solve<E: Entry>(
        &self,
        entries: usize,
        tables: &mut SizedTables<E>,
    ) -> Option<(i64, Vec<Option<i64>>)> {
        let any = self.forward(entries, &mut tables.layers).into();
        (any >= 0).then(|| (any, self.backward(tables)))
    }

    /// Fills the layers, `entries` in all, with the greatest weights of sets of the first items.
    /// Returns the greatest weight of a set of all items.
    fn forward<E: Entry>(&self, entries: usize, layers: &mut Vec<E>) -> E {
        layers.clear();
        layers.resize(entries, E::NONE);
        layers[0] = E::EMPTY;
        let mut rest = &mut layers[..];
        for (item, frames) in self.items.iter().zip(self.frames.windows(2)) {
            let (from, to) = (&frames[0], &frames[1]);
            let (before, others) = rest.split_at_mut(from.entries);
            let layer = &mut others[..to.entries];
            improve(to, layer, from, before, 0, 0, E::EMPTY);
            improve(to, layer, from, before, 1, item.place, E::of(item.weight));
            rest = others;
        }
        rest[0]
    }

    /// Returns for each item the greatest weight of a set that contains it. Combines the forward
    /// layers with tables over the items after it, from the last item backwards.
    fn backward<E: Entry>(&self, tables: &mut SizedTables<E>) -> Vec<Option<i64>> {
        let SizedTables { layers, after, from_item: layer } = tables;
        let mut with = vec![None; self.items.len()];
        after.clear();
        after.push(E::EMPTY);
        let mut end = layers.len() - 1;
        for (i, item) in self.items.iter().enumerate().rev() {
            let (from, to) = (&self.frames[i + 1], &self.frames[i]);
            let begin = end - to.entries;
            layer.clear();
            layer.resize(to.entries, E::NONE);
            improve(to, layer, from, after, -1, -item.place, E::of(item.weight));
            let before = &layers[begin..end];
            let best = layer.iter().zip(before).map(|(&after, &before)| after + before).max();
            with[i] = best.map(E::into).filter(|&best| best >= 0);
            improve(to, layer, from, after, 0, 0, E::EMPTY);
            std::mem::swap(after, layer);
            end = begin;
        }
        with
    }
}

/// Raises the entries of the table `layer` over `to` to those of `other` over `from`, with `count`,
/// `place` and `weight` added to their counts, sums and weights.
fn improve<E: Entry>(
    to: &Frame,
    layer: &mut [E],
    from: &Frame,
    other: &[E],
    count: isize,
    place: i64,
    weight: E,
) {
    for (chosen, to) in (to.least..).zip(&to.rows) {
        let Some(from) = from.row(chosen.wrapping_add_signed(-count)) else { continue };
        let (low, high) = (to.low.max(from.low + place), to.high.min(from.high + place));
        if low > high {
            continue;
        }
        let length = Row::width(low, high);
        let row = &mut layer[to.start + (low - to.low) as usize..][..length];
        let other = &other[from.start + (low - place - from.low) as usize..][..length];
        for (best, &other) in row.iter_mut().zip(other) {
            *best = (*best).max(other + weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Solves the knapsack by enumerating all sets.
    fn oracle(items: &[Item], count: usize, sum: i64) -> Option<Heaviest> {
        let mut found: Option<Heaviest> = None;
        for set in 0u32..1 << items.len() {
            let chosen = || items.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
            if chosen().count() != count || chosen().map(|(_, item)| item.place).sum::<i64>() != sum
            {
                continue;
            }
            let weight = chosen().map(|(_, item)| item.weight).sum::<i64>();
            let best = found.get_or_insert(Heaviest { any: weight, with: vec![None; items.len()] });
            best.any = best.any.max(weight);
            for (i, _) in chosen() {
                best.with[i] = best.with[i].max(Some(weight));
            }
        }
        found
    }

    #[test]
    fn the_greatest_weights_equal_those_of_all_sets() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut sets, mut none) = (0, 0);
        let mut tables = Tables::default();
        // Entries of 32 bits hold every sum of ten weights of the first three limits, and some of
        // the fourth.
        let most_weights = [1, 1000, i32::MOST_WEIGHT / 10, i32::MOST_WEIGHT / 5, 1 << 41];
        for case in 0..20_000 {
            let most_weight = most_weights[case % most_weights.len()];
            let mut places: Vec<i64> = (-20..20).collect();
            random.shuffle(&mut places);
            places.truncate(random.usize(0..=10));
            let set: Vec<i64> = places.clone();
            places.sort_unstable();
            let items: Vec<Item> = places
                .iter()
                .map(|&place| Item { place, weight: random.i64(0..=most_weight) })
                .collect();
            let count = random.usize(0..=items.len() + 1);
            // The sum of some set, or a number close to it.
            let near = if random.u8(0..4) == 0 { random.i64(-2..=2) } else { 0 };
            let sum = set.iter().take(count).sum::<i64>() + near;
            let expected = oracle(&items, count, sum);
            if expected.is_some() {
                sets += 1
            } else {
                none += 1
            }
            let expected = expected.map_or(KnapsackOutcome::NoSet, KnapsackOutcome::Heaviest);
            assert_eq!(
                heaviest(&items, count, sum, &mut tables).0,
                expected,
                "case {case}: {items:?}, {count}, {sum}"
            );
        }
        assert!(sets > 1000 && none > 1000, "{sets} with a set, {none} without");
        let all: Vec<Item> = (0..255).map(|place| Item { place, weight: 1 }).collect();
        assert_eq!(heaviest(&all, 127, 127 * 127, &mut tables).0, KnapsackOutcome::TooLarge);
    }

    #[test]
    fn a_knapsack_is_too_large_from_the_specified_number_of_entries_on() {
        let items: Vec<Item> = (0..218).map(|place| Item { place, weight: 1 }).collect();
        assert_eq!(specified_entries(&items, 93, 10_090), Some(33_544_925));
        assert_eq!(specified_entries(&items, 94, 10_199), Some(33_637_650));
        let outcome = |count, sum| heaviest(&items, count, sum, &mut Tables::default()).0;
        assert!(matches!(outcome(93, 10_090), KnapsackOutcome::Heaviest(found) if found.any == 93));
        assert_eq!(outcome(94, 10_199), KnapsackOutcome::TooLarge);
    }

    #[test]
    fn the_tables_of_the_largest_board_have_fewer_than_13_million_entries() {
        const LINES: usize = 2 * LARGEST - 1;
        for count in [1, 32, 64, 96, 120, 127, 128] {
            let items: Vec<Item> =
                (0..LINES as i64).map(|place| Item { place, weight: 1 }).collect();
            let sum = (count * (LARGEST - 1)) as i64;
            let frames = Knapsack::new(&items, count, sum).frames;
            let entries = frames.iter().map(|frame| frame.entries).sum::<usize>();
            assert!((1..13_000_000).contains(&entries), "{count} of {LINES}: {entries}");
        }
    }
}
