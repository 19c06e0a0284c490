//! The sets of diagonals of one direction that a completion can use, with a fixed size and a fixed
//! sum.
//!
//! Every queen stands on one diagonal of each direction. The antidiagonals r + c that a completion
//! adds are distinct, there is one for each open row, and they sum to Σ r + Σ c over the open rows
//! and columns; for the diagonals c - r the sum is Σ c - Σ r. The greatest weight of such a set is
//! the optimum of a 0-1 knapsack with an exact count and an exact sum, solved here by dynamic
//! programming over the items, forward and backward.

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

/// A weight smaller than every sum of weights; it means that there is no set.
const NONE: i64 = i64::MIN / 4;

/// The largest total number of table entries: a quarter of a gigabyte.
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
    /// By number of first items: the greatest weights of their sets.
    layers: Vec<i64>,
    /// The layers over the items after the current one, and from it on.
    after: Vec<i64>,
    from_item: Vec<i64>,
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
    let any = knapsack.forward(entries, tables);
    if any < 0 {
        return (KnapsackOutcome::NoSet, operations);
    }
    let mut with = vec![None; items.len()];
    order.iter().zip(knapsack.backward(tables)).for_each(|(&i, weight)| with[i] = weight);
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

    /// Fills the layers, `entries` in all, with the greatest weights of sets of the first items.
    /// Returns the greatest weight of a set of all items.
    fn forward(&self, entries: usize, tables: &mut Tables) -> i64 {
        tables.layers.clear();
        tables.layers.resize(entries, NONE);
        tables.layers[0] = 0;
        let mut rest = &mut tables.layers[..];
        for (item, frames) in self.items.iter().zip(self.frames.windows(2)) {
            let (from, to) = (&frames[0], &frames[1]);
            let (before, others) = rest.split_at_mut(from.entries());
            let layer = &mut others[..to.entries()];
            improve(to, layer, from, before, 0, 0, 0);
            improve(to, layer, from, before, 1, item.place, item.weight);
            rest = others;
        }
        rest[0]
    }

    /// Returns for each item the greatest weight of a set that contains it. Combines the forward
    /// layers with tables over the items after it, from the last item backwards.
    fn backward(&self, tables: &mut Tables) -> Vec<Option<i64>> {
        let Tables { layers, after, from_item: layer } = tables;
        let mut with = vec![None; self.items.len()];
        after.clear();
        after.push(0);
        let mut end = layers.len() - 1;
        for (i, item) in self.items.iter().enumerate().rev() {
            let (from, to) = (&self.frames[i + 1], &self.frames[i]);
            let begin = end - to.entries();
            layer.clear();
            layer.resize(to.entries(), NONE);
            improve(to, layer, from, after, -1, -item.place, item.weight);
            let before = &layers[begin..end];
            let best = layer.iter().zip(before).map(|(after, before)| after + before).max();
            with[i] = best.filter(|&best| best >= 0);
            improve(to, layer, from, after, 0, 0, 0);
            std::mem::swap(after, layer);
            end = begin;
        }
        with
    }
}

/// Raises the entries of the table `layer` over `to` to those of `other` over `from`, with `count`,
/// `place` and `weight` added to their counts, sums and weights.
fn improve(
    to: &Frame,
    layer: &mut [i64],
    from: &Frame,
    other: &[i64],
    count: isize,
    place: i64,
    weight: i64,
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
            for (best, other) in row.iter_mut().zip(&other[source..][..length]) {
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
        for case in 0..20_000 {
            let mut places: Vec<i64> = (-20..20).collect();
            random.shuffle(&mut places);
            let items: Vec<Item> = places[..random.usize(0..=10)]
                .iter()
                .map(|&place| Item { place, weight: random.i64(0..1000) })
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
