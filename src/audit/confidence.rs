//! Random samples of units, and what a sample without a wrong unit proves.

use std::ops::Range;

/// The number of units that are recounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleSize {
    /// At most this many random ones.
    AtMost(usize),
    /// All of them.
    All,
}

/// A uniform random sample of a sequence of unknown length: reservoir sampling (Vitter, 1985,
/// algorithm R). Every subset of the size of the sample is equally probable.
#[derive(Clone, Debug)]
pub struct Sample<T> {
    size: SampleSize,
    random: fastrand::Rng,
    offered: u64,
    chosen: Vec<(u64, T)>,
}

impl<T> Sample<T> {
    /// Creates an empty sample. The same seed chooses the same positions.
    pub fn new(size: SampleSize, seed: u64) -> Self {
        Self { size, random: fastrand::Rng::with_seed(seed), offered: 0, chosen: Vec::new() }
    }

    /// Offers the next unit, with its number.
    pub fn offer(&mut self, number: u64, unit: T) {
        self.offered += 1;
        let SampleSize::AtMost(size) = self.size else { return self.chosen.push((number, unit)) };
        if self.chosen.len() < size {
            return self.chosen.push((number, unit));
        }
        let place = self.random.u64(0..self.offered);
        if let Some(replaced) = usize::try_from(place).ok().and_then(|i| self.chosen.get_mut(i)) {
            *replaced = (number, unit);
        }
    }

    /// Returns the number of units that were offered.
    pub const fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns the chosen units with their numbers, in ascending order.
    pub fn into_chosen(mut self) -> Vec<(u64, T)> {
        self.chosen.sort_unstable_by_key(|(number, _)| *number);
        self.chosen
    }
}

/// The confidence of [`wrong_units_at_most`].
pub const CONFIDENCE: f64 = 0.95;

/// Returns an upper bound of the number of wrong units among `units`, with 95 % confidence, if none
/// of `recounted` random ones is wrong: the rule of three, 3 / `recounted` of them. A larger share
/// of wrong units would have been noticed with a probability of 1 − e⁻³ or more.
pub fn wrong_units_at_most(units: u64, recounted: u64) -> u64 {
    if recounted >= units {
        return 0;
    }
    let bound = (3 * u128::from(units)).div_ceil(u128::from(recounted.max(1)));
    // The units that were recounted are not wrong.
    u64::try_from(bound).unwrap_or(u64::MAX).min(units - recounted)
}

/// Returns whether `number` is one of `units`; without units, all are.
pub fn is_one_of(number: u64, units: Option<&Range<u64>>) -> bool {
    units.is_none_or(|units| units.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(size: SampleSize, of: u64, seed: u64) -> Vec<u64> {
        let mut sample = Sample::new(size, seed);
        (0..of).for_each(|number| sample.offer(number, ()));
        sample.into_chosen().into_iter().map(|(number, ())| number).collect()
    }

    #[test]
    fn a_sample_has_different_units_and_a_seed_repeats_it() {
        let once = chosen(SampleSize::AtMost(20), 1000, 7);
        assert!(once.len() == 20 && once.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(once, chosen(SampleSize::AtMost(20), 1000, 7));
        assert_ne!(once, chosen(SampleSize::AtMost(20), 1000, 8));
        assert_eq!(chosen(SampleSize::AtMost(20), 5, 7), vec![0, 1, 2, 3, 4]);
        assert_eq!(chosen(SampleSize::All, 5, 7), vec![0, 1, 2, 3, 4]);
        assert!(chosen(SampleSize::AtMost(0), 5, 7).is_empty());
    }

    #[test]
    fn every_unit_is_chosen_equally_often() {
        let mut times = [0_u32; 50];
        for seed in 0..4000 {
            for unit in chosen(SampleSize::AtMost(5), 50, seed) {
                times[usize::try_from(unit).expect("small")] += 1;
            }
        }
        // 400 each on average, with a standard deviation of 19; the seeds are fixed.
        assert!(times.iter().all(|times| (310..490).contains(times)), "{times:?}");
    }

    #[test]
    fn the_bound_is_the_rule_of_three_and_0_if_all_units_were_recounted() {
        assert_eq!(wrong_units_at_most(10_000, 1_000), 30);
        assert_eq!(wrong_units_at_most(10_000, 999), 31);
        assert_eq!(wrong_units_at_most(10_000, 10_000), 0);
        assert_eq!(wrong_units_at_most(10_000, 9_999), 1);
        assert_eq!(wrong_units_at_most(10_000, 2), 9_998);
        assert_eq!(wrong_units_at_most(10_000, 0), 10_000);
    }
}
