//! Lists of words, above all of states: what the upper half knows of the placements of the lower
//! one.

use super::vector::{Each, Few, SLACK, Vector, Words};

/// A list of states, the columns of the first upper row that the lower queens attack, as windows;
/// or of 32-bit codes of completions (see [`Block::count`](super::block::Block::count)).
#[derive(Debug)]
pub(super) struct List<T = u64> {
    /// The words of the list, and at least [`SLACK`] more.
    words: Vec<T>,
    len: usize,
}

impl<T: Copy + Default> List<T> {
    pub(super) fn new() -> Self {
        Self { words: vec![T::default(); SLACK], len: 0 }
    }

    /// Returns the words of the list.
    #[inline]
    pub(super) fn words(&self) -> &[T] {
        &self.words[..self.len]
    }

    /// Returns the words of the list and at least [`SLACK`] arbitrary ones.
    #[inline(always)]
    pub(super) fn padded(&self) -> &[T] {
        &self.words
    }

    /// Returns the number of words.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns room for `most` more words and [`SLACK`] ones behind those that there are.
    #[inline(always)]
    pub(super) fn room(&mut self, most: usize) -> &mut [T] {
        let end = self.len + most + SLACK;
        if self.words.len() < end {
            self.words.resize(end.next_power_of_two(), T::default());
        }
        &mut self.words[self.len..end]
    }

    /// Appends the words that were written to the front of the room.
    #[inline(always)]
    pub(super) const fn extend(&mut self, written: usize) {
        debug_assert!(self.len + written + SLACK <= self.words.len());
        self.len += written;
    }
}

impl List {
    /// Appends the state of each pair of placements that do not meet.
    #[inline(always)]
    pub(super) fn join<V: Vector>(
        &mut self,
        vector: V,
        many: Words<'_>,
        each: Each<'_>,
        (words, all): (&Few, u64),
    ) {
        let into = self.room(many.count * each.mask.count_ones() as usize);
        let written = vector.join_all(many, each, words, all, into);
        self.extend(written);
    }
}

/// The states of a set, grouped by the queens of the first upper row that the family's rule allows
/// with them.
#[derive(Debug)]
pub(super) struct Lists {
    /// By the side of the first lower row's queen (0 right, 1 left), and by the group: group t may
    /// be used with a queen of the first upper row on the same side if its distance exceeds t, and
    /// with any queen on the other side. [`ANY_SIDE`] and [`OTHER_SIDE`] are its extremes.
    groups: [Vec<List>; 2],
}

/// The group of states that may be used with every queen of the first upper row.
pub(super) const ANY_SIDE: u8 = 0;
/// The group of states that may only be used with a queen on the other side: no distance exceeds
/// it.
pub(super) const OTHER_SIDE: u8 = 32;
impl Lists {
    pub(super) fn new() -> Self {
        let groups = || (0..=OTHER_SIDE).map(|_| List::new()).collect();
        Self { groups: [groups(), groups()] }
    }

    /// Returns the lists of a side (0 right, 1 left), by group.
    #[inline]
    pub(super) fn side(&self, side: usize) -> &[List] {
        &self.groups[side]
    }

    /// Returns the lists of a side, by group, to be extended.
    #[inline(always)]
    pub(super) fn side_mut(&mut self, side: usize) -> &mut [List] {
        &mut self.groups[side]
    }

    /// Returns the number of states.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.groups.iter().flatten().map(|list| list.len).sum()
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.groups.iter_mut().flatten().for_each(List::clear);
    }
}
