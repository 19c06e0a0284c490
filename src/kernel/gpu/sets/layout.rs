//! What the shader of column sets and the host share: structures, and the words of arrays. The
//! shader's comments describe the fields.

use bytemuck::{Pod, Zeroable};

/// The words that describe a family.
pub const FAMILY: usize = 100;
/// Positions of these words.
pub(super) const ROWS_BELOW: usize = 0;
pub(super) const ROWS_ABOVE: usize = 1;
pub(super) const GAP: usize = 2;
pub(super) const ALLOWED_BELOW: usize = 4;
pub(super) const ALLOWED_ABOVE: usize = 20;
pub(super) const FIRST_BELOW: usize = 36;
pub(super) const FIRST_ABOVE: usize = 68;

/// The words of a workgroup that hold what is pending, and those of them that are not zero at the
/// start.
pub const FRAMES: usize = 136;
/// The position of the number of the current row.
pub const ROW: usize = 128;
/// The position of the number of the current set.
pub const ITEM: usize = 129;
/// No row, and no set.
pub const NONE: u32 = u32::MAX;

/// The pairs of words of a workgroup's program.
pub const PROGRAM: usize = 6144;

/// The most columns of a board: the other bits of a state's words have the rule's group and side.
pub const MOST_COLUMNS: usize = 28;
/// The most rows of a half.
pub(super) const MOST_ROWS: usize = 16;
/// The most rows that are counted by planes.
pub(super) const MOST_OUTER_ROWS: usize = 8;
/// The group of states that the rule does not count, and that of states that count with a queen on
/// the other side only.
pub(super) const NOT_COUNTED: u32 = 16;
pub(super) const OTHER_SIDE: u32 = 15;

/// Parameters of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SetParams {
    /// The board size.
    pub n: u32,
    /// The number of sets of the batch.
    pub items: u32,
    /// The number of states that a workgroup has room for.
    pub capacity: u32,
    /// The work after which a workgroup stops, in tests of states.
    pub budget: u32,
    /// The number of the submission.
    pub stamp: u32,
    /// Unused.
    pub unused: [u32; 3],
}

/// A set, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SetItem {
    /// The columns of the upper half.
    pub upper: u32,
    /// The columns of the lower half.
    pub lower: u32,
    /// The columns that the queens of the first and of the second lower row may have.
    pub first_rows: [u32; 2],
    /// The number of the family.
    pub family: u32,
    /// Unused.
    pub unused: [u32; 3],
}

/// The state of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SetQueue {
    /// The next set that no workgroup has taken.
    pub next: u32,
    /// The number of sets that are finished.
    pub finished: u32,
    /// The workgroups that ran, over all submissions of the batch.
    pub ran: u32,
    /// The number of the last submission.
    pub stamp: u32,
    /// The workgroups whose pending work was damaged.
    pub damaged: u32,
    /// The workgroups that ended without a set, over all submissions.
    pub idle: u32,
    /// Unused.
    pub unused: [u32; 2],
}

/// What was counted for a set. Pairs of words are numbers of 64 bits, low word first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SetSlot {
    /// The placements.
    pub hits: [u32; 2],
    /// The sum of the low 16 bits of every number that was added to the placements.
    pub low: [u32; 2],
    /// The sum of the high 16 bits.
    pub high: [u32; 2],
    /// The states of the list.
    pub listed: u32,
    /// The states that were counted by planes.
    pub states: [u32; 2],
    /// How often the set was finished.
    pub finished: u32,
    /// The lists and programs that did not come back as they were written.
    pub damaged: u32,
    /// The lists and programs that did not fit.
    pub overflows: u32,
}
