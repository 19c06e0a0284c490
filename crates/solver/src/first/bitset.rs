//! Sets of columns and of diagonals as machine words, as wide as the board needs.

use std::fmt::Debug;

/// A small set of small numbers.
pub(super) trait Set: Copy + Debug + PartialEq + Send + Sync + 'static {
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
    /// Removes the least element. The set must not be empty.
    fn but_least(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn without(self, other: Self) -> Self;
    /// Returns the elements from `least` to `least` + 127 as bits.
    fn bits_from(self, least: usize) -> u128;
    /// Creates a set from bits; those that do not fit are dropped.
    fn of_bits(bits: u128) -> Self;

    /// Returns the elements from `least` to `least` + 127, each reduced by `least`, as far as they
    /// fit the other set type.
    fn moved_down<S: Set>(self, least: usize) -> S {
        S::of_bits(self.bits_from(least))
    }

    /// Returns the elements in ascending order.
    fn iter(self) -> Numbers<Self> {
        Numbers(self)
    }

    /// Creates the set of the numbers below n.
    fn below(n: usize) -> Self {
        (0..n).fold(Self::EMPTY, |set, i| set.or(Self::one(i)))
    }
}

/// An iterator over a set, see [`Set::iter`].
pub(super) struct Numbers<S>(S);

impl<S: Set> Iterator for Numbers<S> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let least = self.0.least();
        self.0 = self.0.but_least();
        Some(least)
    }
}

macro_rules! word {
    ($word:ty) => {
        impl Set for $word {
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
            fn but_least(self) -> Self {
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
            fn of_bits(bits: u128) -> Self {
                bits as $word
            }
        }
    };
}

word!(u64);
word!(u128);

/// A set in 256 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits256([u64; 4]);

impl Set for Bits256 {
    const EMPTY: Self = Self([0; 4]);
    #[inline]
    fn one(i: usize) -> Self {
        Self(std::array::from_fn(|word| if word == i / 64 { 1 << (i % 64) } else { 0 }))
    }
    #[inline]
    fn is_empty(self) -> bool {
        self.0[0] | self.0[1] | self.0[2] | self.0[3] == 0
    }
    #[inline]
    fn contains(self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    #[inline]
    fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
    #[inline]
    fn least(self) -> usize {
        let word = (0..4).find(|&word| self.0[word] != 0).unwrap_or(0);
        64 * word + self.0[word].trailing_zeros() as usize
    }
    #[inline]
    fn but_least(mut self) -> Self {
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
    fn of_bits(bits: u128) -> Self {
        Self([bits as u64, (bits >> 64) as u64, 0, 0])
    }
}

/// Word widths for a board.
pub(super) trait Width: Copy + Debug + Send + Sync + 'static {
    /// Maximum number of rows.
    const ROWS: usize;
    /// Maximum number of columns.
    const COLUMNS: usize;
    /// Maximum number of diagonals of one direction.
    const DIAGONALS: usize;
    /// A set of columns.
    type Columns: Set;
    /// A set of diagonals of one direction.
    type Diagonals: Set;
    /// A set of columns for each row.
    type Rows: Copy + Debug + Send + Sync + AsRef<[Self::Columns]> + AsMut<[Self::Columns]>;
    /// The empty set of columns for every row.
    const NO_ROWS: Self::Rows;
    /// Shifts each column up by `by`, as a diagonal.
    fn moved(columns: Self::Columns, by: usize) -> Self::Diagonals;
}

/// Boards with up to 32 rows and 64 diagonals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width32x64;

/// Boards up to n = 64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width64x64;

/// Boards with up to 64 rows and 128 diagonals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width64x128;

/// Boards up to n = 128.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width128x128;

impl Width for Width32x64 {
    const ROWS: usize = 32;
    const COLUMNS: usize = 64;
    const DIAGONALS: usize = 64;
    type Columns = u64;
    type Diagonals = u64;
    type Rows = Rows<u64, 32>;
    const NO_ROWS: Self::Rows = Rows([0; 32]);

    #[inline]
    fn moved(columns: u64, by: usize) -> u64 {
        columns << by
    }
}

impl Width for Width64x64 {
    const ROWS: usize = 64;
    const COLUMNS: usize = 64;
    const DIAGONALS: usize = 127;
    type Columns = u64;
    type Diagonals = u128;
    type Rows = Rows<u64, 64>;
    const NO_ROWS: Self::Rows = Rows([0; 64]);

    #[inline]
    fn moved(columns: u64, by: usize) -> u128 {
        u128::from(columns) << by
    }
}

impl Width for Width64x128 {
    const ROWS: usize = 64;
    const COLUMNS: usize = 128;
    const DIAGONALS: usize = 128;
    type Columns = u128;
    type Diagonals = u128;
    type Rows = Rows<u128, 64>;
    const NO_ROWS: Self::Rows = Rows([0; 64]);

    #[inline]
    fn moved(columns: u128, by: usize) -> u128 {
        columns << by
    }
}

impl Width for Width128x128 {
    const ROWS: usize = 128;
    const COLUMNS: usize = 128;
    const DIAGONALS: usize = 255;
    type Columns = u128;
    type Diagonals = Bits256;
    type Rows = Rows<u128, 128>;
    const NO_ROWS: Self::Rows = Rows([0; 128]);

    #[inline]
    fn moved(columns: u128, by: usize) -> Bits256 {
        let words = [columns as u64, (columns >> 64) as u64];
        let (word, bit) = (by / 64, by % 64);
        let carry = |word: u64| if bit == 0 { 0 } else { word >> (64 - bit) };
        let moved = [words[0] << bit, words[1] << bit | carry(words[0]), carry(words[1])];
        Bits256(std::array::from_fn(|i| {
            if (word..word + 3).contains(&i) { moved[i - word] } else { 0 }
        }))
    }
}

/// `NUMBER` sets of columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<S, const NUMBER: usize>([S; NUMBER]);

impl<S, const NUMBER: usize> AsRef<[S]> for Rows<S, NUMBER> {
    fn as_ref(&self) -> &[S] {
        &self.0
    }
}

impl<S, const NUMBER: usize> AsMut<[S]> for Rows<S, NUMBER> {
    fn as_mut(&mut self) -> &mut [S] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set<S: Set>(numbers: &BTreeSet<usize>) -> S {
        numbers.iter().fold(S::EMPTY, |set, &i| set.or(S::one(i)))
    }

    fn is_set<S: Set>(bits: usize, a: &BTreeSet<usize>, b: &BTreeSet<usize>) {
        let (x, y) = (set::<S>(a), set::<S>(b));
        let same =
            |set: S, numbers: Vec<usize>| assert_eq!(set.iter().collect::<Vec<_>>(), numbers);
        same(x, a.iter().copied().collect());
        same(x.and(y), a.intersection(b).copied().collect());
        same(x.or(y), a.union(b).copied().collect());
        same(x.without(y), a.difference(b).copied().collect());
        assert_eq!((x.len(), x.is_empty()), (a.len(), a.is_empty()));
        assert!((0..bits).all(|i| x.contains(i) == a.contains(&i)));
    }

    proptest! {
        #[test]
        fn sets_of_any_width_are_sets(
            a in proptest::collection::btree_set(0..256usize, 0..40),
            b in proptest::collection::btree_set(0..256usize, 0..40),
            by in 0..128usize,
        ) {
            let below = |bits: usize, s: &BTreeSet<usize>| s.iter().copied().filter(|&i| i < bits).collect();
            is_set::<u64>(64, &below(64, &a), &below(64, &b));
            is_set::<u128>(128, &below(128, &a), &below(128, &b));
            is_set::<Bits256>(256, &a, &b);
            let moved = Width128x128::moved(set(&below(128, &a)), by);
            let expected: Vec<usize> = a.iter().filter(|&&i| i < 128).map(|i| i + by).collect();
            prop_assert_eq!(moved.iter().collect::<Vec<_>>(), expected);
            let down: Vec<usize> = a.iter().filter(|&&i| (by..by + 64).contains(&i)).map(|i| i - by).collect();
            let narrow = |narrow: u64| narrow.iter().collect::<Vec<_>>();
            prop_assert_eq!(narrow(set::<Bits256>(&a).moved_down(by)), down.clone());
            let down = |bits: usize| down.iter().copied().filter(|i| i + by < bits).collect::<Vec<_>>();
            prop_assert_eq!(narrow(set::<u128>(&below(128, &a)).moved_down(by)), down(128));
            prop_assert_eq!(narrow(set::<u64>(&below(64, &a)).moved_down(by)), down(64));
        }
    }
}
