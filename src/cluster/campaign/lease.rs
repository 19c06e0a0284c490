//! What a coordinator leases to a worker, as both see it.

use std::ops::Range;

use crate::decomposition::JobHash;

/// Some of the sub-ranges of a unit, of which there are at most 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubRangeSet(u32);

impl SubRangeSet {
    /// Returns the set of those sub-ranges for which `bits` has a 1, from the lowest bit.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns a bit for each sub-range, from the lowest.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of these sub-ranges, or none if a number is 32 or more.
    pub fn from_numbers(numbers: impl IntoIterator<Item = u32>) -> Option<Self> {
        let bit = |number: u32| 1u32.checked_shl(number);
        numbers.into_iter().try_fold(0, |bits, number| Some(bits | bit(number)?)).map(Self)
    }

    /// Returns the set of the first `count` sub-ranges.
    pub(super) const fn first(count: usize) -> Self {
        Self(if count >= 32 { u32::MAX } else { (1 << count) - 1 })
    }

    /// Returns the numbers in the set, ascending.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).filter(move |number| self.0 >> number & 1 == 1)
    }

    /// Returns how many there are.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns those in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Work for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The lease's number.
    pub attempt: u64,
    /// The job.
    pub job: JobHash,
    /// The units.
    pub units: Range<u64>,
    /// Whether their mirror images are to be counted: it is a recount.
    pub mirrored: bool,
    /// A kernel that must not be used. Coordinators of this version name none.
    pub not_kernel: Option<String>,
    /// Of a recount: the sub-ranges that are to be counted; empty for all of the unit.
    pub sub_ranges: SubRangeSet,
    /// The coordinator's proof that it granted this lease, to be handed back unchanged. Empty from a coordinator of before.
    pub grant: Vec<u8>,
}

/// A lease that a worker has in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The lease.
    pub lease: Assignment,
    /// Units of it whose results were not acknowledged yet. A worker has a lease in hand until there are none.
    pub left: u64,
    /// Those of them that nothing has begun.
    pub unstarted: u64,
}
