//! The sets of diagonals of one direction that a completion can use, with a fixed size and a fixed
//! sum.
//!
//! Every queen stands on one diagonal of each direction. The antidiagonals r + c that a completion
//! adds are distinct, there is one for each open row, and they sum to Σ r + Σ c over the open rows
//! and columns; for the diagonals c - r the sum is Σ c - Σ r. The greatest weight of such a set is
//! the optimum of a 0-1 knapsack with an exact count and an exact sum, solved here by dynamic
//! programming over the items, forward and backward. The tables have entries of 32 bits if the
//! weights are small enough, since most of the time of a check can go into filling them.

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

/// The largest total number of table entries: a quarter of a gigabyte if they have 64 bits.
const LARGEST_TABLES: usize = 1 << 25;

/// The result of a knapsack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnapsackOutcome {
    /// There is no such set.
    NoSet,
    /// The greatest weights of the sets.
    Heaviest(Heaviest),
    /// The tables would be too large.
    TooLarge,
}

/// The tables of a knapsack. Their memory is reused: its allocation took 1.5 of the 8.6 s of
/// `nqueens check` for n = 97.
#[derive(Debug, Default)]
pub(super) struct Tables {
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
/// number of operations.
pub(super) fn heaviest(
    items: &[Item],
    count: usize,
    sum: i64,
    tables: &mut Tables,
) -> (KnapsackOutcome, usize) {
    /// The number of accesses to each entry.
    const EACH: usize = 4;
    let few = 100 * (items.len() + 1);
    if count > items.len() {
        return (KnapsackOutcome::NoSet, few);
    }
    // Relative to the mean rounded down, the places of a set sum to less than `count`.
    let mean = if count == 0 { 0 } else { sum.div_euclid(count as i64) };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (items[i].place - mean).abs());
    let ordered =
        order.iter().map(|&i| Item { place: items[i].place - mean, ..items[i] }).collect();
    let knapsack = Knapsack::new(ordered, count, sum - mean * count as i64);
    if knapsack.frames.iter().any(|frame| frame.low > frame.high) {
        return (KnapsackOutcome::NoSet, few);
    }
    let entries = knapsack.frames.iter().map(Frame::entries).sum::<usize>();
    if entries > LARGEST_TABLES {
        return (KnapsackOutcome::TooLarge, few);
    }
    let operations = few + EACH * entries;
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
    let Some((any, of_ordered)) = found else { return (KnapsackOutcome::NoSet, operations) };
    let mut with = vec![None; items.len()];
    order.iter().zip(of_ordered).for_each(|(&i, weight)| with[i] = weight);
    (KnapsackOutcome::Heaviest(Heaviest { any, with }), operations)
}

/// A knapsack whose items are ordered such that partial sums stay small.
struct Knapsack {
    items: Vec<Item>,
    /// The frame after each number of items.
    frames: Vec<Frame>,
}

/// The counts and sums that the first items can reach and the others can complete. A layer is a
/// table over them: one row per count, one entry per sum.
#[derive(Clone, Copy)]
struct Frame {
    least: usize,
    most: usize,
    low: i64,
    high: i64,
}

impl Frame {
    fn width(&self) -> usize {
        (self.high - self.low + 1) as usize
    }

    fn entries(&self) -> usize {
        self.width() * (self.most - self.least + 1)
    }
}

impl Knapsack {
    fn new(items: Vec<Item>, count: usize, sum: i64) -> Self {
        let (mut low, mut high) = (0, 0);
        let mut rest_low: i64 = items.iter().map(|item| item.place.min(0)).sum();
        let mut rest_high: i64 = items.iter().map(|item| item.place.max(0)).sum();
        let mut frames = Vec::with_capacity(items.len() + 1);
        for considered in 0..=items.len() {
            frames.push(Frame {
                least: count.saturating_sub(items.len() - considered),
                most: count.min(considered),
                low: low.max(sum - rest_high),
                high: high.min(sum - rest_low),
            });
            if let Some(item) = items.get(considered) {
                low += item.place.min(0);
                high += item.place.max(0);
                rest_low -= item.place.min(0);
                rest_high -= item.place.max(0);
            }
        }
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
            let (before, others) = rest.split_at_mut(from.entries());
            let layer = &mut others[..to.entries()];
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
            let begin = end - to.entries();
            layer.clear();
            layer.resize(to.entries(), E::NONE);
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
    let (low, high) = (to.low.max(from.low + place), to.high.min(from.high + place));
    if low > high {
        return;
    }
    let length = (high - low + 1) as usize;
    for (chosen, row) in (to.least..=to.most).zip(layer.chunks_mut(to.width())) {
        let source = chosen.wrapping_add_signed(-count);
        if (from.least..=from.most).contains(&source) {
            let source = (source - from.least) * from.width() + (low - place - from.low) as usize;
            let row = &mut row[(low - to.low) as usize..][..length];
            for (best, &other) in row.iter_mut().zip(&other[source..][..length]) {
                *best = (*best).max(other + weight);
            }
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
        // Entries of 32 bits hold every sum of ten weights of the first three limits, and some of the
        // fourth.
        let most_weights = [1, 1000, i32::MOST_WEIGHT / 10, i32::MOST_WEIGHT / 5, 1 << 41];
        for case in 0..20_000 {
            let most_weight = most_weights[case % most_weights.len()];
            let mut places: Vec<i64> = (-20..20).collect();
            random.shuffle(&mut places);
            let items: Vec<Item> = places[..random.usize(0..=10)]
                .iter()
                .map(|&place| Item { place, weight: random.i64(0..=most_weight) })
                .collect();
            let count = random.usize(0..=items.len() + 1);
            // The sum of some set, or a number close to it.
            let near = if random.u8(0..4) == 0 { random.i64(-2..=2) } else { 0 };
            let sum = items.iter().take(count).map(|item| item.place).sum::<i64>() + near;
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
}
