//! Sets of columns in `W` machine words.

/// A set of 0-based columns of a board with at most 64 `W` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask<const W: usize>([u64; W]);

impl<const W: usize> Mask<W> {
    /// The empty set.
    pub(super) const EMPTY: Self = Self([0; W]);

    /// Creates the set of the columns 0 to n - 1.
    pub(super) fn first(n: usize) -> Self {
        Self(std::array::from_fn(|word| match n.saturating_sub(64 * word) {
            0 => 0,
            columns @ 1..64 => (1 << columns) - 1,
            _ => u64::MAX,
        }))
    }

    /// Creates the set of one column.
    #[inline]
    pub(super) fn one(col: usize) -> Self {
        Self(std::array::from_fn(|word| if col / 64 == word { 1 << (col % 64) } else { 0 }))
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; W]
    }

    #[inline]
    pub(super) fn contains(self, col: usize) -> bool {
        self.0[col / 64] >> (col % 64) & 1 == 1
    }

    /// Removes and returns the least column.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<usize> {
        for (word, bits) in self.0.iter_mut().enumerate() {
            if *bits != 0 {
                let col = 64 * word + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                return Some(col);
            }
        }
        None
    }

    #[inline]
    pub(super) fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    #[inline]
    pub(super) fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    #[inline]
    pub(super) fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Increments every column; columns beyond the last word are dropped.
    #[inline]
    pub(super) fn up(self) -> Self {
        let carry = |word: usize| if word == 0 { 0 } else { self.0[word - 1] >> 63 };
        Self(std::array::from_fn(|word| self.0[word] << 1 | carry(word)))
    }

    /// Decrements every column; column 0 is dropped.
    #[inline]
    pub(super) fn down(self) -> Self {
        let carry = |word: usize| if word + 1 == W { 0 } else { self.0[word + 1] << 63 };
        Self(std::array::from_fn(|word| self.0[word] >> 1 | carry(word)))
    }

    /// Increments every column; column n - 1 becomes column 0.
    pub(super) fn rotated_up(self, n: usize) -> Self {
        let moved = self.up().and(Self::first(n));
        if self.contains(n - 1) { moved.or(Self::one(0)) } else { moved }
    }

    /// Decrements every column; column 0 becomes column n - 1.
    pub(super) fn rotated_down(self, n: usize) -> Self {
        if self.contains(0) { self.down().or(Self::one(n - 1)) } else { self.down() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Converts a plain set to a mask of `W` words.
    fn mask<const W: usize>(columns: &BTreeSet<usize>) -> Mask<W> {
        columns.iter().fold(Mask::EMPTY, |mask, &col| mask.or(Mask::one(col)))
    }

    fn agrees<const W: usize>(n: usize, set: &BTreeSet<usize>, other: &BTreeSet<usize>) {
        let (a, b) = (mask::<W>(set), mask::<W>(other));
        let is = |mask: Mask<W>, mut columns: Vec<usize>, what: &str| {
            columns.sort_unstable();
            let mut rest = mask;
            let popped: Vec<usize> = std::iter::from_fn(|| rest.pop()).collect();
            assert_eq!(popped, columns, "{what}");
            assert_eq!(mask.is_empty(), columns.is_empty(), "{what}");
        };
        is(a.or(b), set.union(other).copied().collect(), "or");
        is(a.and(b), set.intersection(other).copied().collect(), "and");
        is(a.without(b), set.difference(other).copied().collect(), "without");
        is(Mask::<W>::first(n), (0..n).collect(), "first");
        is(a.up(), set.iter().map(|col| col + 1).filter(|&col| col < 64 * W).collect(), "up");
        is(a.down(), set.iter().filter_map(|col| col.checked_sub(1)).collect(), "down");
        is(a.rotated_up(n), set.iter().map(|col| (col + 1) % n).collect(), "rotated up");
        is(a.rotated_down(n), set.iter().map(|col| (col + n - 1) % n).collect(), "rotated down");
        assert!((0..64 * W).all(|col| a.contains(col) == set.contains(&col)));
    }

    /// Generates a board size and two sets of its columns.
    fn sets(words: usize) -> impl Strategy<Value = (usize, BTreeSet<usize>, BTreeSet<usize>)> {
        let size = prop_oneof![1..=64 * words, (1..=words).prop_map(|w| 64 * w)];
        size.prop_flat_map(|n| {
            let columns =
                || proptest::collection::btree_set(prop_oneof![0..n, Just(n - 1), Just(0)], 0..=n);
            (Just(n), columns(), columns())
        })
    }

    proptest! {
        #[test]
        fn masks_of_any_width_are_sets(
            (n, a, b) in sets(1), (n2, a2, b2) in sets(2), (n5, a5, b5) in sets(5),
        ) {
            agrees::<1>(n, &a, &b);
            agrees::<2>(n2, &a2, &b2);
            agrees::<5>(n5, &a5, &b5);
        }
    }
}
