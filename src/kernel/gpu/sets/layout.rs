//! The definitions that the shader of column sets and the host share: structures, and the words of
//! arrays. The shader's comments describe the fields.

use bytemuck::{Pod, Zeroable};

/// The shader: one module from several files.
#[cfg(any(feature = "gpu", test))]
pub(in crate::kernel::gpu) const SHADER: &str = concat!(
    include_str!("../../../../shaders/column_sets/memory.wgsl"),
    include_str!("../../../../shaders/column_sets/lists.wgsl"),
    include_str!("../../../../shaders/column_sets/programs.wgsl"),
    include_str!("../../../../shaders/column_sets/planes.wgsl"),
    include_str!("../../../../shaders/column_sets/counts.wgsl"),
    include_str!("../../../../shaders/column_sets/steps.wgsl"),
);

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
pub const PROGRAM: usize = 6160;

/// The lanes of a workgroup, and the planes: the best first. A plane has 64 bits for two lanes.
#[cfg(feature = "gpu")]
pub(in crate::kernel::gpu) const LANES_AND_PLANES: [(u32, u32); 3] =
    [(64, 128), (64, 120), (32, 120)];

/// The listing of a set that does not fit ends at this many times the room.
pub(super) const LISTED: u32 = 4;

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
    /// The work after which a workgroup stops: about so many iterations of loops in a lane.
    pub budget: u32,
    /// The number of the submission.
    pub stamp: u32,
    /// The iterations of a lane after which the listing of a set is given up.
    pub list_iterations: u32,
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
}

/// The counters of a set. Pairs of words are numbers of 64 bits, low word first.
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
    /// The mark of the set and of its family, as they were read.
    pub set_mark: u32,
    /// The number of times that the set was finished.
    pub finished: u32,
    /// The lists and programs that did not come back as they were written.
    pub damaged: u32,
    /// The lists and programs that did not fit.
    pub overflows: u32,
}

/// Returns the mark of the set with a number in its batch, and of its family's words.
pub(super) fn mark_of_set(number: u32, item: &SetItem, family: &[u32]) -> u32 {
    let words = [item.upper, item.lower, item.first_rows[0], item.first_rows[1]];
    let of_set = words.iter().fold(number.wrapping_add(1), |mark, &word| {
        mark.wrapping_mul(0x9e37_79b1).wrapping_add(word)
    });
    (1u32..).step_by(2).zip(family).fold(of_set, |mark, (odd, &word)| {
        mark.wrapping_add(word.wrapping_mul(odd.wrapping_mul(0x85eb_ca77)))
    })
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;
    use crate::kernel::gpu::layout::tests::{assert_layout, assert_same_layout, constant};

    #[test]
    fn the_shader_of_column_sets_and_the_host_have_the_same_memory_layout() {
        assert_same_layout!(
            SHADER,
            SetParams,
            [n, items, capacity, budget, stamp, list_iterations]
        );
        assert_same_layout!(SHADER, SetItem, [upper, lower, first_rows, family]);
        assert_same_layout!(SHADER, SetQueue, [next, finished, ran, stamp, damaged, idle]);
        assert_same_layout!(
            SHADER,
            SetSlot,
            [hits, low, high, listed, states, set_mark, finished, damaged, overflows]
        );
    }

    #[test]
    fn the_shader_of_column_sets_and_the_host_have_the_same_constants() {
        let of_host = [
            ("FAMILY", FAMILY),
            ("ROWS_BELOW", ROWS_BELOW),
            ("ROWS_ABOVE", ROWS_ABOVE),
            ("GAP", GAP),
            ("ALLOWED_BELOW", ALLOWED_BELOW),
            ("ALLOWED_ABOVE", ALLOWED_ABOVE),
            ("FIRST_BELOW", FIRST_BELOW),
            ("FIRST_ABOVE", FIRST_ABOVE),
            ("FRAMES", FRAMES),
            ("ROW", ROW),
            ("ITEM", ITEM),
            ("PROGRAM", PROGRAM),
            ("MOST_ROWS", MOST_ROWS),
            ("OUTER", MOST_OUTER_ROWS),
            ("NOT_COUNTED", NOT_COUNTED as usize),
            ("LISTED", LISTED as usize),
        ];
        for (name, value) in of_host {
            assert_eq!(constant(SHADER, name), value.to_string(), "{name}");
        }
        for name in ["NO_ROW", "NO_ITEM"] {
            assert_eq!(constant(SHADER, name), format!("{NONE:#x}"), "{name}");
        }
        // The widest board has planes of all columns, and none of those that are made before the
        // pairs overlaps another one, even with the fewest planes.
        let number = |name| constant(SHADER, name).parse::<usize>().expect("a number");
        let fewest = number("PLANES");
        let [left, right, outer, states] = ["LEFT", "RIGHT", "OUTER_SQUARES", "STATES"].map(number);
        assert_eq!(number("MASK_PLANES"), MOST_COLUMNS);
        assert!(left >= number("PAIRS") && left + MOST_COLUMNS <= right);
        assert!(right + MOST_COLUMNS <= outer && outer + 8 * 4 <= fewest);
        assert!(states + number("AT_ONCE") <= fewest);
        // The pairs of rows 0 and 1 are written before the squares of the outer rows are read.
        assert!(number("SQUARES_OF_ROW_0") + number("MOST_PAIRS_OF_ROWS") <= outer);
        #[cfg(feature = "gpu")]
        assert!(
            LANES_AND_PLANES.iter().all(|&(_, planes)| (fewest..=128).contains(&(planes as usize)))
        );
        // While a set is listed, the stack has ten levels of three pairs of words for a half of 14
        // rows; the placements found are behind it. A lane has 60 pairs in the memory of planes.
        let [found, most_found] = ["FOUND", "MOST_FOUND"].map(number);
        assert!(found >= 3 * (MOST_ROWS - 2 - 4), "{found}");
        assert!(found + most_found <= fewest / 2, "{most_found}");
        // The frames of all rows, and the words behind them.
        const { assert!(MOST_ROWS * 8 <= ROW && ROW < ITEM && ITEM + 1 < FRAMES) };
    }
}
