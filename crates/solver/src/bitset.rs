//! Sets of small numbers in machine words.
//!
//! `u64`, `u128` and [`Words`] implement [`BitSet`]: their capacity is known at compile time.
//! [`contains`], [`insert`], [`remove`] and [`elements`] work on slices of words, for sets whose
//! capacity is known only at run time.
//!
//! [`crate::cp`] and [`crate::ilp::counterexample`] do not use this module: they share no code with
//! the searches that they are compared with.

use std::fmt::Debug;

/// A set of numbers below a capacity that the type determines.
pub(crate) trait BitSet: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// The empty set.
    const EMPTY: Self;
    /// Creates a set of one number.
    fn one(i: usize) -> Self;
    fn is_empty(self) -> bool;
    fn contains(self, i: usize) -> bool;
    /// Returns the number of elements.
    fn len(self) -> usize;
    /// Returns the least element. The set must not be empty.
    fn least(self) -> usize;
    /// Returns the set without its least element. The set must not be empty.
    fn without_least(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn without(self, other: Self) -> Self;
    /// Returns the elements from `least` to `least` + 127 as bits.
    fn bits_from(self, least: usize) -> u128;
    /// Creates a set from bits; those that do not fit are dropped.
    fn from_bits(bits: u128) -> Self;

    /// Returns the elements from `least` to `least` + 127, each reduced by `least`, as far as they
    /// fit the other set type.
    fn shifted_down<S: BitSet>(self, least: usize) -> S {
        S::from_bits(self.bits_from(least))
    }

    /// Returns the elements in ascending order.
    fn iter(self) -> Elements<Self> {
        Elements(self)
    }

    /// Creates the set of the numbers below n.
    fn below(n: usize) -> Self {
        (0..n).fold(Self::EMPTY, |set, i| set.or(Self::one(i)))
    }
}

/// An iterator over a set, see [`BitSet::iter`].
pub(crate) struct Elements<S>(S);

impl<S: BitSet> Iterator for Elements<S> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let least = self.0.least();
        self.0 = self.0.without_least();
        Some(least)
    }
}

macro_rules! word {
    ($word:ty) => {
        impl BitSet for $word {
            const EMPTY: Self = 0;
            #[inline]
            fn one(i: usize) -> Self {
                1 << i
            }
            #[inline]
            fn is_empty(self) -> bool {
                self == 0
            }
            #[inline]
            fn contains(self, i: usize) -> bool {
                self >> i & 1 == 1
            }
            #[inline]
            fn len(self) -> usize {
                self.count_ones() as usize
            }
            #[inline]
            fn least(self) -> usize {
                self.trailing_zeros() as usize
            }
            #[inline]
            fn without_least(self) -> Self {
                self & (self - 1)
            }
            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline]
            fn without(self, other: Self) -> Self {
                self & !other
            }
            #[inline]
            fn bits_from(self, least: usize) -> u128 {
                if least < <$word>::BITS as usize { u128::from(self >> least) } else { 0 }
            }
            #[inline]
            fn from_bits(bits: u128) -> Self {
                bits as $word
            }
        }
    };
}

word!(u64);
word!(u128);

/// A set in `N` words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words<const N: usize>([u64; N]);

impl<const N: usize> BitSet for Words<N> {
    const EMPTY: Self = Self([0; N]);
    #[inline]
    fn one(i: usize) -> Self {
        Self(std::array::from_fn(|word| if word == i / 64 { 1 << (i % 64) } else { 0 }))
    }
    #[inline]
    fn is_empty(self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }
    #[inline]
    fn contains(self, i: usize) -> bool {
        contains(&self.0, i)
    }
    #[inline]
    fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
    #[inline]
    fn least(self) -> usize {
        let word = (0..N).find(|&word| self.0[word] != 0).unwrap_or(0);
        64 * word + self.0[word].trailing_zeros() as usize
    }
    #[inline]
    fn without_least(mut self) -> Self {
        if let Some(word) = self.0.iter_mut().find(|word| **word != 0) {
            *word &= *word - 1;
        }
        self
    }
    #[inline]
    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
    #[inline]
    fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
    #[inline]
    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
    #[inline]
    fn bits_from(self, least: usize) -> u128 {
        let (first, bit) = (least / 64, least % 64);
        let word = |i: usize| u128::from(self.0.get(first + i).copied().unwrap_or(0));
        let two = word(0) | word(1) << 64;
        if bit == 0 { two } else { two >> bit | word(2) << (128 - bit) }
    }
    #[inline]
    fn from_bits(bits: u128) -> Self {
        Self(std::array::from_fn(|word| match word {
            0 => bits as u64,
            1 => (bits >> 64) as u64,
            _ => 0,
        }))
    }

    fn below(n: usize) -> Self {
        Self(std::array::from_fn(|word| match n.saturating_sub(64 * word) {
            0 => 0,
            elements @ 1..64 => (1 << elements) - 1,
            _ => u64::MAX,
        }))
    }
}

impl<const N: usize> Words<N> {
    /// Removes and returns the least element.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        for (word, bits) in self.0.iter_mut().enumerate() {
            if *bits != 0 {
                let least = 64 * word + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                return Some(least);
            }
        }
        None
    }

    /// Creates a set from bits, each increased by `by`. All of them must fit.
    #[inline]
    pub(crate) fn from_bits_shifted_up(bits: u128, by: usize) -> Self {
        let words = [bits as u64, (bits >> 64) as u64];
        let (word, bit) = (by / 64, by % 64);
        let carry = |word: u64| if bit == 0 { 0 } else { word >> (64 - bit) };
        let shifted = [words[0] << bit, words[1] << bit | carry(words[0]), carry(words[1])];
        Self(std::array::from_fn(
            |i| {
                if (word..word + 3).contains(&i) { shifted[i - word] } else { 0 }
            },
        ))
    }

    /// Increments every element; elements beyond the last word are dropped.
    #[inline]
    pub(crate) fn incremented(self) -> Self {
        let carry = |word: usize| if word == 0 { 0 } else { self.0[word - 1] >> 63 };
        Self(std::array::from_fn(|word| self.0[word] << 1 | carry(word)))
    }

    /// Decrements every element; element 0 is dropped.
    #[inline]
    pub(crate) fn decremented(self) -> Self {
        let carry = |word: usize| if word + 1 == N { 0 } else { self.0[word + 1] << 63 };
        Self(std::array::from_fn(|word| self.0[word] >> 1 | carry(word)))
    }

    /// Increments every element modulo n.
    pub(crate) fn rotated_up(self, n: usize) -> Self {
        let shifted = self.incremented().and(Self::below(n));
        if self.contains(n - 1) { shifted.or(Self::one(0)) } else { shifted }
    }

    /// Decrements every element modulo n.
    pub(crate) fn rotated_down(self, n: usize) -> Self {
        if self.contains(0) { self.decremented().or(Self::one(n - 1)) } else { self.decremented() }
    }
}

/// Returns whether the set in `words` contains i.
#[inline]
pub(crate) fn contains(words: &[u64], i: usize) -> bool {
    words[i / 64] >> (i % 64) & 1 == 1
}

/// Adds i to the set in `words`.
#[inline]
pub(crate) fn insert(words: &mut [u64], i: usize) {
    words[i / 64] |= 1 << (i % 64);
}

/// Removes i from the set in `words`.
#[inline]
pub(crate) fn remove(words: &mut [u64], i: usize) {
    words[i / 64] &= !(1 << (i % 64));
}

/// Returns the elements of the set in `words`, ascending.
pub(crate) fn elements(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(number, &word)| {
        let rest = |&word: &u64| Some(word & (word - 1)).filter(|&rest| rest != 0);
        let first = Some(word).filter(|&word| word != 0);
        std::iter::successors(first, rest)
            .map(move |word| number << 6 | word.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set<S: BitSet>(numbers: &BTreeSet<usize>) -> S {
        numbers.iter().fold(S::EMPTY, |set, &i| set.or(S::one(i)))
    }

    fn below(bits: usize, numbers: &BTreeSet<usize>) -> BTreeSet<usize> {
        numbers.iter().copied().filter(|&i| i < bits).collect()
    }

    fn assert_is_set<S: BitSet>(bits: usize, a: &BTreeSet<usize>, b: &BTreeSet<usize>) {
        let (a, b) = (&below(bits, a), &below(bits, b));
        let (x, y) = (set::<S>(a), set::<S>(b));
        let same =
            |set: S, numbers: Vec<usize>| assert_eq!(set.iter().collect::<Vec<_>>(), numbers);
        same(x, a.iter().copied().collect());
        same(x.and(y), a.intersection(b).copied().collect());
        same(x.or(y), a.union(b).copied().collect());
        same(x.without(y), a.difference(b).copied().collect());
        same(S::below(bits), (0..bits).collect());
        assert_eq!((x.len(), x.is_empty()), (a.len(), a.is_empty()));
        assert!((0..bits).all(|i| x.contains(i) == a.contains(&i)));
    }

    /// Asserts that the elements from `by` on, each reduced by it, are those of the set.
    fn assert_shifted_down<S: BitSet>(bits: usize, a: &BTreeSet<usize>, by: usize) {
        let a = below(bits, a);
        let expected: Vec<usize> =
            a.iter().filter(|&&i| (by..by + 64).contains(&i)).map(|i| i - by).collect();
        assert_eq!(set::<S>(&a).shifted_down::<u64>(by).iter().collect::<Vec<_>>(), expected);
    }

    proptest! {
        #[test]
        fn sets_of_any_type_behave_like_sets(
            a in proptest::collection::btree_set(0..320usize, 0..40),
            b in proptest::collection::btree_set(0..320usize, 0..40),
            by in 0..128usize,
        ) {
            assert_is_set::<u64>(64, &a, &b);
            assert_is_set::<u128>(128, &a, &b);
            assert_is_set::<Words<1>>(64, &a, &b);
            assert_is_set::<Words<4>>(256, &a, &b);
            assert_is_set::<Words<5>>(320, &a, &b);
            assert_shifted_down::<u64>(64, &a, by);
            assert_shifted_down::<u128>(128, &a, by);
            assert_shifted_down::<Words<4>>(256, &a, by);
            let shifted = Words::<4>::from_bits_shifted_up(set(&below(128, &a)), by);
            let expected: Vec<usize> = below(128, &a).into_iter().map(|i| i + by).collect();
            prop_assert_eq!(shifted.iter().collect::<Vec<_>>(), expected);
        }

        #[test]
        fn slices_of_words_behave_like_sets(
            a in proptest::collection::btree_set(0..256usize, 0..40),
            b in proptest::collection::btree_set(0..256usize, 0..40),
        ) {
            let mut words = [0; 4];
            a.iter().for_each(|&i| insert(&mut words, i));
            prop_assert_eq!(elements(&words).collect::<Vec<_>>(), a.iter().copied().collect::<Vec<_>>());
            b.iter().for_each(|&i| remove(&mut words, i));
            prop_assert!((0..256).all(|i| contains(&words, i) == (a.contains(&i) && !b.contains(&i))));
        }
    }

    fn assert_shifts<const N: usize>(n: usize, elements: &BTreeSet<usize>) {
        let words = set::<Words<N>>(elements);
        let is = |words: Words<N>, mut expected: Vec<usize>, what: &str| {
            expected.sort_unstable();
            let mut rest = words;
            let popped: Vec<usize> = std::iter::from_fn(|| rest.pop()).collect();
            assert_eq!(popped, expected, "{what}");
        };
        let incremented = elements.iter().map(|i| i + 1).filter(|&i| i < 64 * N);
        is(words.incremented(), incremented.collect(), "incremented");
        let decremented = elements.iter().filter_map(|i| i.checked_sub(1));
        is(words.decremented(), decremented.collect(), "decremented");
        is(words.rotated_up(n), elements.iter().map(|i| (i + 1) % n).collect(), "rotated up");
        let down = elements.iter().map(|i| (i + n - 1) % n).collect();
        is(words.rotated_down(n), down, "rotated down");
        is(Words::<N>::below(n), (0..n).collect(), "below");
    }

    /// Generates a board size and a set of its columns.
    fn columns(words: usize) -> impl Strategy<Value = (usize, BTreeSet<usize>)> {
        let size = prop_oneof![1..=64 * words, (1..=words).prop_map(|w| 64 * w)];
        size.prop_flat_map(|n| {
            let column = prop_oneof![0..n, Just(n - 1), Just(0)];
            (Just(n), proptest::collection::btree_set(column, 0..=n))
        })
    }

    proptest! {
        #[test]
        fn shifts_and_rotations_move_every_element(
            (n, a) in columns(1), (n2, a2) in columns(2), (n5, a5) in columns(5),
        ) {
            assert_shifts::<1>(n, &a);
            assert_shifts::<2>(n2, &a2);
            assert_shifts::<5>(n5, &a5);
        }
    }
}
