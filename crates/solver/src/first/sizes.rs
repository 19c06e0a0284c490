//! Column sizes: the number of remaining cells of every column, counted in parallel.

use crate::bitset::BitSet;

/// By byte value: its bits spread over eight bytes.
const SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            spread[byte] |= (byte as u64 >> bit & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    spread
};

/// Number of binary digits of a size, which is at most 128.
const DIGITS: usize = 8;

/// For each number below 128, the number of sets that contain it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes([[u8; 8]; 16]);

impl Sizes {
    /// Counts at most 128 sets.
    #[inline]
    pub(super) fn new<S: BitSet>(sets: impl Iterator<Item = S>) -> Self {
        // The digits of all sizes, the lowest first.
        let mut digits = [S::EMPTY; DIGITS];
        let mut most = 0;
        let mut all = S::EMPTY;
        for set in sets {
            all = all.or(set);
            let mut carry = set;
            for (place, digit) in digits.iter_mut().enumerate() {
                if carry.is_empty() {
                    break;
                }
                most = most.max(place + 1);
                let both = digit.and(carry);
                *digit = digit.or(carry).without(both);
                carry = both;
            }
        }
        let digits = digits.map(|digit| digit.bits_from(0).to_le_bytes());
        let mut sizes = [[0; 8]; 16];
        for (byte, any) in all.bits_from(0).to_le_bytes().into_iter().enumerate() {
            if any != 0 {
                let spread = |place: usize| SPREAD[usize::from(digits[place][byte])] << place;
                sizes[byte] = (0..most).map(spread).sum::<u64>().to_le_bytes();
            }
        }
        Self(sizes)
    }

    /// Returns the number of sets that contain `number`.
    #[inline]
    pub(super) fn of(&self, number: usize) -> usize {
        self.0[number / 8][number % 8].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_equal_those_of_naive_counting() {
        let mut random = fastrand::Rng::with_seed(7);
        for case in 0..2000 {
            let number = random.usize(0..=128);
            // Includes identical sets, which give the greatest sizes.
            let same = random.u128(..);
            let sets: Vec<u128> =
                (0..number).map(|_| if case % 4 == 0 { same } else { random.u128(..) }).collect();
            let sizes = Sizes::new(sets.iter().copied());
            for i in 0..128 {
                assert_eq!(
                    sizes.of(i),
                    sets.iter().filter(|set| set.contains(i)).count(),
                    "case {case}, {i}"
                );
            }
        }
    }
}
