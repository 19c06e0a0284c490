//! The heaviest set of diagonals of a given number and sum, by dynamic programming: the pricing
//! problem of the column generation.

/// Available diagonals of one direction: their positions and their weights (non-negative; all
/// weights sum to less than 2^30).
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

/// The tables of the dynamic program, kept between calls to avoid allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Knapsack {
    order: Vec<usize>,
    /// By number of diagonals: the index of the first entry of its table.
    starts: Vec<usize>,
    frames: Vec<Frame>,
    entries: Vec<i32>,
}

/// The range of counts and sums of the first diagonals that can still be extended to a set.
#[derive(Clone, Copy, Debug)]
struct Frame {
    least: usize,
    most: usize,
    low: i32,
    high: i32,
}

impl Frame {
    const fn width(&self) -> usize {
        (self.high - self.low + 1) as usize
    }

    const fn entries(&self) -> usize {
        self.width() * (self.most - self.least + 1)
    }
}

/// A diagonal with its position and its weight.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    place: i32,
    weight: i32,
}

/// Takes the maximum of a table and another one extended by `item` and by `count` diagonals.
fn improve(
    (to, table): (&Frame, &mut [i32]),
    (from, other): (&Frame, &[i32]),
    count: isize,
    item: Item,
) {
    let Item { place, weight } = item;
    let (low, high) = (to.low.max(from.low + place), to.high.min(from.high + place));
    if low > high {
        return;
    }
    let length = (high - low + 1) as usize;
    for (chosen, row) in (to.least..=to.most).zip(table.chunks_mut(to.width())) {
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

impl Knapsack {
    /// Returns the heaviest set of `count` diagonals whose positions sum to `sum`, or `None` if
    /// there is no such set.
    pub(super) fn heaviest(
        &mut self,
        diagonals: &Diagonals,
        count: usize,
        sum: i32,
    ) -> Option<HeaviestSet> {
        let item = self.fill(diagonals, count, sum)?;
        let mut chosen = Vec::with_capacity(count);
        let (mut rest, mut at) = (count, self.last_sum());
        for i in (0..self.order.len()).rev() {
            let here = self.entry(i + 1, rest, at);
            if self.entry(i, rest, at) != here {
                chosen.push(self.order[i]);
                rest -= 1;
                at -= item(self.order[i]).place;
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
        let item = self.fill(diagonals, count, sum)?;
        Some((self.weight(), self.backward(item)))
    }

    /// Fills the tables. Returns `None` if there is no set. To keep the sums small, positions are
    /// measured from their mean, also in the returned items, which are indexed by diagonal.
    fn fill<'d>(
        &mut self,
        diagonals: &'d Diagonals,
        count: usize,
        sum: i32,
    ) -> Option<impl Fn(usize) -> Item + use<'d>> {
        let number = diagonals.places.len();
        if count > number {
            return None;
        }
        let mean = if count == 0 { 0 } else { (f64::from(sum) / count as f64).round() as i32 };
        let item = move |i: usize| Item {
            place: diagonals.places[i] - mean,
            weight: diagonals.weights[i],
        };
        self.order.clear();
        self.order.extend(0..number);
        self.order.sort_by_key(|&i| item(i).place.abs());
        if !self.set_frames(|i| item(i).place, count, sum - mean * count as i32) {
            return None;
        }
        self.forward(item);
        (self.weight() >= 0).then_some(item)
    }

    /// Returns the weight of the heaviest set, once the tables are filled.
    fn weight(&self) -> i32 {
        self.entries[self.starts[self.order.len()]]
    }

    /// Returns the required sum of positions.
    fn last_sum(&self) -> i32 {
        self.frames[self.order.len()].low
    }

    /// Sets the ranges. Returns whether they are all non-empty.
    fn set_frames(&mut self, place: impl Fn(usize) -> i32, count: usize, sum: i32) -> bool {
        let number = self.order.len();
        let (mut low, mut high) = (0, 0);
        let mut rest_low: i32 = self.order.iter().map(|&i| place(i).min(0)).sum();
        let mut rest_high: i32 = self.order.iter().map(|&i| place(i).max(0)).sum();
        self.frames.clear();
        self.starts.clear();
        let mut entries = 0;
        for i in 0..=number {
            let frame = Frame {
                least: count.saturating_sub(number - i),
                most: count.min(i),
                low: low.max(sum - rest_high),
                high: high.min(sum - rest_low),
            };
            if frame.low > frame.high {
                return false;
            }
            self.frames.push(frame);
            self.starts.push(entries);
            entries += frame.entries();
            if let Some(&diagonal) = self.order.get(i) {
                let place = place(diagonal);
                (low, high) = (low + place.min(0), high + place.max(0));
                (rest_low, rest_high) = (rest_low - place.min(0), rest_high - place.max(0));
            }
        }
        if self.entries.len() < entries {
            self.entries.resize(entries, NONE);
        }
        true
    }

    /// Fills the tables of sets of the first diagonals, by number of diagonals. The last table
    /// holds the result.
    fn forward(&mut self, item: impl Fn(usize) -> Item) {
        self.entries[0] = 0;
        for i in 0..self.order.len() {
            let (from, to) = (self.frames[i], self.frames[i + 1]);
            let (before, after) = self.entries.split_at_mut(self.starts[i + 1]);
            let (before, after) = (&before[self.starts[i]..], &mut after[..to.entries()]);
            after.fill(NONE);
            improve((&to, after), (&from, before), 0, Item::default());
            improve((&to, after), (&from, before), 1, item(self.order[i]));
        }
    }

    /// Returns, by diagonal, the greatest weight of a set that contains it, negative if there is
    /// none. Goes back from the last diagonal and combines the contribution of the later diagonals
    /// with the tables of [`forward`](Self::forward).
    fn backward(&self, item: impl Fn(usize) -> Item) -> Vec<i32> {
        let mut with = vec![NONE; self.order.len()];
        let mut behind = vec![0];
        for (i, &diagonal) in self.order.iter().enumerate().rev() {
            let (from, to) = (&self.frames[i + 1], &self.frames[i]);
            let Item { place, weight } = item(diagonal);
            let mut layer = vec![NONE; to.entries()];
            improve((to, &mut layer), (from, &behind), -1, Item { place: -place, weight });
            let before = &self.entries[self.starts[i]..][..to.entries()];
            with[diagonal] = layer
                .iter()
                .zip(before)
                .map(|(behind, before)| behind + before)
                .max()
                .unwrap_or(NONE);
            improve((to, &mut layer), (from, &behind), 0, Item::default());
            behind = layer;
        }
        with
    }

    /// Returns the greatest weight of `chosen` of the first `i` diagonals with this sum.
    fn entry(&self, i: usize, chosen: usize, sum: i32) -> i32 {
        let frame = self.frames[i];
        if (frame.least..=frame.most).contains(&chosen) && (frame.low..=frame.high).contains(&sum) {
            self.entries[self.starts[i]
                + (chosen - frame.least) * frame.width()
                + (sum - frame.low) as usize]
        } else {
            NONE
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
            let weights: Vec<i32> = places.iter().map(|_| random.i32(0..1000)).collect();
            let count = random.usize(0..=places.len() + 1);
            let near = if random.u8(0..4) == 0 { random.i32(-2..=2) } else { 0 };
            let sum = places.iter().take(count).sum::<i32>() + near;
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
