//! The result of counting a set: its sum, and the work done for it.

use crate::tally::Residues;

/// The sum of a set and, beside it, the sums of the halves of the words that were added, which
/// share no counter with it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    all: u128,
    /// The sums of the low and of the high 32 bits, which the number of blocks of a set cannot
    /// overflow: it is below 2^96.
    halves: [u128; 2],
}

impl Sum {
    #[inline(always)]
    pub(super) fn add(&mut self, word: u64) {
        self.all += u128::from(word);
        self.halves[0] += u128::from(word & 0xffff_ffff);
        self.halves[1] += u128::from(word >> 32);
    }

    /// Returns the sum and its residues.
    pub(super) fn checked(self) -> (u128, Residues) {
        let [low, high] = self.halves.map(Residues::of);
        (self.all, low.plus(high.product(Residues::of(1 << 32))))
    }
}

/// The work done for sets, the same on every machine and with every instruction set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetWork {
    /// The states of the lists.
    pub listed: u64,
    /// The calls of the bit-sliced kernel.
    pub calls: u64,
    /// The states of those calls.
    pub states: u64,
    /// The completions of those calls, without repetition for the blocks of a list.
    pub completions: u64,
}
