//! The parts of a job, for counts on batch systems.

use std::num::NonZeroU64;

/// A part of a job: the units whose index has a given remainder modulo the number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPart {
    index: u64,
    parts: NonZeroU64,
}

impl JobPart {
    /// The whole job.
    pub(super) const WHOLE: Self = Self { index: 0, parts: NonZeroU64::MIN };

    /// Creates the part of the units whose index modulo `parts` is `index`, or returns `None` if
    /// `index` is not below `parts`.
    pub const fn new(index: u64, parts: NonZeroU64) -> Option<Self> {
        if index < parts.get() { Some(Self { index, parts }) } else { None }
    }

    /// Returns whether a unit belongs to the part.
    pub const fn has(self, unit: u64) -> bool {
        unit % self.parts.get() == self.index
    }

    /// Returns the number of parts of the job.
    pub(super) const fn parts(self) -> NonZeroU64 {
        self.parts
    }

    /// Returns the number of units of the part in a job of `of` units.
    pub const fn units(self, of: u64) -> u64 {
        of.saturating_sub(self.index).div_ceil(self.parts.get())
    }
}
