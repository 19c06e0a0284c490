//! Leases as seen by both the coordinator and the worker.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::decomposition::JobHash;

/// A set of sub-ranges of a unit, which has at most 32. Serialised as their numbers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "Vec<u32>", try_from = "Vec<u32>")]
pub struct SubRangeSet(u32);

impl From<SubRangeSet> for Vec<u32> {
    fn from(set: SubRangeSet) -> Self {
        set.numbers().collect()
    }
}

impl TryFrom<Vec<u32>> for SubRangeSet {
    type Error = &'static str;

    fn try_from(numbers: Vec<u32>) -> Result<Self, Self::Error> {
        Self::from_numbers(numbers).ok_or("a unit has at most 32 sub-ranges, from 0 to 31")
    }
}

impl SubRangeSet {
    /// Returns the set of the sub-ranges whose bit in `bits` is 1; bit 0 is sub-range 0.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns one bit for each sub-range, starting with the lowest.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of these sub-ranges, or `None` if a number is 32 or more.
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

    /// Returns the number of sub-ranges in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of two sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A lease as granted to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The lease's number.
    pub attempt: u64,
    /// The job.
    pub job: JobHash,
    /// The units.
    pub units: Range<u64>,
    /// True if the mirror images are to be counted, which makes this a recount.
    pub mirrored: bool,
    /// A kernel that must not be used. Coordinators of this version set none.
    pub not_kernel: Option<String>,
    /// For a recount: the sub-ranges to count; empty for the whole unit.
    pub sub_ranges: SubRangeSet,
    /// The coordinator's proof that it granted this lease, to be returned unchanged. Empty from a
    /// coordinator of an earlier version.
    pub grant: Vec<u8>,
}

/// A lease that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The lease.
    pub lease: Assignment,
    /// Units whose results are not acknowledged yet. A worker holds a lease until there are none.
    pub left: u64,
    /// Units among them that are not started.
    pub unstarted: u64,
}
