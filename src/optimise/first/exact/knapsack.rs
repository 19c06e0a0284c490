//! The heaviest set of so many diagonals with such a sum, by dynamic programming: the price of the column generation.

/// Diagonals of one direction that can be used: where they are, what they weigh (from 0; all weights sum to less than
/// 2^30).
#[derive(Clone, Debug, Default)]
pub(super) struct Diagonals {
    pub(super) places: Vec<i32>,
    pub(super) weights: Vec<i32>,
}

/// A heaviest set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeaviestSet {
    pub(super) weight: i32,
    /// Indices of its diagonals.
    pub(super) chosen: Vec<usize>,
}

/// Far below any sum of weights.
const NONE: i32 = -(1 << 30);

/// Tables, kept from one question to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Knapsack {
    order: Vec<usize>,
    /// After each number of diagonals: the first entry of its table.
    starts: Vec<usize>,
    frames: Vec<Frame>,
    entries: Vec<i32>,
}

/// Which counts and sums of the first diagonals can still become a set.
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
}

impl Knapsack {
    /// The heaviest set of `count` diagonals whose places sum to `sum`; `None` if there is no such set.
    pub(super) fn heaviest(&mut self, diagonals: &Diagonals, count: usize, sum: i32) -> Option<HeaviestSet> {
        let number = diagonals.places.len();
        if count > number {
            return None;
        }
        let mean = if count == 0 { 0 } else { (f64::from(sum) / count as f64).round() as i32 };
        let sum = sum - mean * count as i32;
        let place = |i: usize| diagonals.places[i] - mean;
        self.order.clear();
        self.order.extend(0..number);
        self.order.sort_by_key(|&i| place(i).abs());
        if !self.set_frames(place, count, sum) {
            return None;
        }
        self.entries[0] = 0;
        for i in 0..number {
            let diagonal = self.order[i];
            self.step(i, place(diagonal), diagonals.weights[diagonal]);
        }
        let weight = self.entries[self.starts[number]];
        if weight < 0 {
            return None;
        }
        let mut chosen = Vec::with_capacity(count);
        let (mut rest, mut at) = (count, sum);
        for i in (0..number).rev() {
            let diagonal = self.order[i];
            let here = self.entry(i + 1, rest, at);
            if self.entry(i, rest, at) != here {
                chosen.push(diagonal);
                rest -= 1;
                at -= place(diagonal);
            }
        }
        debug_assert!(rest == 0 && at == 0);
        Some(HeaviestSet { weight, chosen })
    }

    /// Whether every number of diagonals has something to say.
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
            entries += frame.width() * (frame.most - frame.least + 1);
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

    /// The table after diagonal `i` of the order, from the one before it.
    fn step(&mut self, i: usize, place: i32, weight: i32) {
        let (from, to) = (self.frames[i], self.frames[i + 1]);
        let (before, after) = self.entries.split_at_mut(self.starts[i + 1]);
        let before = &before[self.starts[i]..];
        for chosen in to.least..=to.most {
            let row = &mut after[(chosen - to.least) * to.width()..][..to.width()];
            // Without it.
            row.fill(NONE);
            if (from.least..=from.most).contains(&chosen) {
                let (low, high) = (to.low.max(from.low), to.high.min(from.high));
                if low <= high {
                    let length = (high - low + 1) as usize;
                    let source = (chosen - from.least) * from.width() + (low - from.low) as usize;
                    row[(low - to.low) as usize..][..length].copy_from_slice(&before[source..][..length]);
                }
            }
            // With it.
            if chosen > from.least && chosen - 1 <= from.most {
                let (low, high) = (to.low.max(from.low + place), to.high.min(from.high + place));
                if low <= high {
                    let length = (high - low + 1) as usize;
                    let source = (chosen - 1 - from.least) * from.width() + (low - place - from.low) as usize;
                    let row = &mut row[(low - to.low) as usize..][..length];
                    for (best, other) in row.iter_mut().zip(&before[source..][..length]) {
                        *best = (*best).max(other + weight);
                    }
                }
            }
        }
    }

    /// The greatest weight of so many of the first `i` diagonals with this sum.
    fn entry(&self, i: usize, chosen: usize, sum: i32) -> i32 {
        let frame = self.frames[i];
        if (frame.least..=frame.most).contains(&chosen) && (frame.low..=frame.high).contains(&sum) {
            self.entries[self.starts[i] + (chosen - frame.least) * frame.width() + (sum - frame.low) as usize]
        } else {
            NONE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest weight by trying all sets.
    fn oracle(diagonals: &Diagonals, count: usize, sum: i32) -> Option<i32> {
        let number = diagonals.places.len();
        let set = |set: u32| (0..number).filter(move |i| set >> i & 1 == 1);
        (0u32..1 << number)
            .filter(|&s| set(s).count() == count && set(s).map(|i| diagonals.places[i]).sum::<i32>() == sum)
            .map(|s| set(s).map(|i| diagonals.weights[i]).sum())
            .max()
    }

    #[test]
    fn the_heaviest_set_is_that_of_trying_all_of_them() {
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
            assert_eq!(found.as_ref().map(|set| set.weight), oracle(&diagonals, count, sum), "{context}");
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
