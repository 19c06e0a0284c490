//! The layout of the device's memory, word by word, as host and shaders both see it. A test asks
//! naga for the offsets and sizes in the shaders, so that a layout mismatch fails without a GPU.

use bytemuck::{Pod, Zeroable};

/// The number of levels: one for each number of open rows left below the block, from 0 (the batch's
/// prefixes) to 16.
pub const LEVELS: usize = 17;
/// From this level down an expansion fills all rows left below the block, and emits to the ring.
pub const LAST_LEVEL: usize = 2;
/// The maximum number of open rows of a symmetry case on each side of the block.
pub const MOST_ROWS: usize = LEVELS - 1;
/// The number of lanes of a workgroup.
pub const WORKGROUP: u32 = 64;
/// The number of states that a lane of the search takes from the ring at once.
pub const TAKE: u32 = 8;
/// The number of entries of a class in the table of rows above the block, indexed by the rows left:
/// 0 to 16.
pub const CLASS_ROWS: usize = MOST_ROWS + 1;
/// The value of a lane's `shadow` at which it is flushed.
pub const SHADOW_LIMIT: u32 = 1 << 31;
/// The number of turns that a lane makes in a group. A turn generates at most one child. A lane
/// begins a state only at the start of a group, and the rest of a group in which a state ends are
/// turns of that state.
pub const GROUP: u32 = 4;
/// The maximum number of turns of a lane in one dispatch: hits and misses have 16 bits each.
pub const MOST_TURNS: u32 = 65_532;

/// Counters of the device, shared by all shaders. Counts that only grow may wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Counters {
    /// The stamp of the last submission that ran.
    pub stamp: u32,
    /// The total number of states emitted to the ring: the index of the next, modulo its size.
    pub ring_write: u32,
    /// The total number of states taken from the ring.
    pub ring_read: u32,
    /// The number of states that the last search took and returned.
    pub ring_returned: u32,
    /// The number of states that all earlier searches returned.
    pub returned_total: u32,
    /// The index of the first state of the next expansion.
    pub source_first: u32,
    /// The number of states of the next expansion.
    pub source_count: u32,
    /// The number of lanes that hold a state.
    pub busy: u32,
    /// The number of expansions that had work to do.
    pub expansions: u32,
    /// The number of states expanded.
    pub expanded: u32,
    /// The number of states put on a level.
    pub appended: u32,
    /// The number of searches that ran.
    pub searches: u32,
    /// The sum of the checksums of the states put on levels, including the prefixes.
    pub lower_put: u32,
    /// The sum of the checksums of the states taken from levels.
    pub lower_taken: u32,
    /// The sum of the checksums of the states put into the ring.
    pub ring_put: u32,
    /// The sum of the checksums of the states that a lane took from the ring and began.
    pub ring_taken: u32,
    /// The number of lanes that were not found as they had been parked.
    pub faults: u32,
    /// The start of each level's stack.
    pub level_first: [u32; LEVELS],
    /// The number of states on each level's stack.
    pub level_count: [u32; LEVELS],
}

/// The parameters of a submission.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Params {
    /// A number that no other submission of this batch has.
    pub stamp: u32,
    /// The maximum number of turns of each lane in one search: a multiple of [`GROUP`], at most
    /// [`MOST_TURNS`].
    pub turns: u32,
    /// The maximum number of states that an expansion takes.
    pub chunk: u32,
    /// The size of the ring, a power of two, minus 1.
    pub ring_mask: u32,
    /// The number of ring entries kept free for the states that a search returns.
    pub ring_reserve: u32,
    /// The maximum number of states that one state emits to the ring.
    pub most_emitted: u32,
    /// 1 if lanes are to flush their counts to the slots.
    pub flush: u32,
    /// The number of lanes of the search.
    pub lanes: u32,
}

/// A state below the block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
pub struct LowerState {
    /// Free columns, as many as there are open rows left.
    pub free: u32,
    /// Columns of the current row attacked along diagonals.
    pub left: u32,
    /// Columns of the current row attacked along antidiagonals.
    pub right: u32,
    /// Columns of the first row above the block attacked along antidiagonals.
    pub upper_left: u32,
    /// Columns of the first row above the block attacked along diagonals.
    pub upper_right: u32,
    /// The index of its segment.
    pub segment: u32,
}

/// The data common to the states of one symmetry case and one unit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Segment {
    /// The offset of the case's rows: the current row when k rows below the block are left is at
    /// `rows` + k.
    pub rows: u32,
    /// The number of open rows above the block.
    pub upper_rows: u32,
    /// The class of the rows above the block in the high half, the slot in the low half.
    pub label: u32,
    /// Columns allowed in the first row above the block.
    pub upper_allowed: u32,
}

/// An open row below the block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LowerRow {
    /// Columns allowed in this row.
    pub allowed: u32,
    /// The centre columns.
    pub centre: u32,
    /// 0: no rule; 1: take a centre column if any is free; 2: if both are free.
    pub rule: u32,
    /// The distance to the next row.
    pub step: u32,
    /// The distance to the first row above the block.
    pub to_upper: u32,
    /// Padding.
    pub pad: u32,
}

/// A state above the block: free columns, columns of the current row attacked along antidiagonals
/// and along diagonals, and the label of its segment.
pub type UpperState = [u32; 4];

/// An open row above the block: columns allowed in it and in the next row, the distance from the
/// previous row, and the distance to the next row. The entry of 0 rows has the [gate] of the class:
/// the rows that it closes, by the number of rows left, and the columns.
///
/// [gate]: super::tables::Variant::Gated
pub type UpperRow = [u32; 4];

/// A parked lane of the search, and its counts since the last flush.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Lane {
    /// Free columns of the state on top of the stack.
    pub free: u32,
    /// Attacked columns along left-moving diagonals.
    pub left: u32,
    /// Attacked columns along right-moving diagonals.
    pub right: u32,
    /// Squares not yet tried; 0 if the lane has no state.
    pub open: u32,
    /// The label of the state.
    pub label: u32,
    /// The number of parents on the stack.
    pub height: u32,
    /// Completions found, low half of the pair.
    pub hits: u32,
    /// High half.
    pub hits_high: u32,
    /// Turns made, low half of the pair.
    pub turns: u32,
    /// High half.
    pub turns_high: u32,
    /// Turns minus misses.
    pub shadow: u32,
    /// States finished.
    pub finished: u32,
    /// The checksum of the fields above, without the high halves, and of the stack.
    pub check: u32,
}

/// The counts under one weight in one unit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Slot {
    /// Completions, low half of the pair.
    pub hits: u32,
    /// High half.
    pub hits_high: u32,
    /// Turns made, in whole groups, low half of the pair.
    pub turns: u32,
    /// High half.
    pub turns_high: u32,
    /// Turns minus misses: the sum of the low 16 bits, as a pair, then that of the high 16 bits.
    pub shadow: [u32; 4],
    /// States finished.
    pub finished: u32,
    /// Padding.
    pub pad: [u32; 3],
}

/// Returns a checksum that depends on every bit of a state; the same as in the shaders.
pub const fn mark(w: [u32; 4]) -> u32 {
    let mut h = w[0].wrapping_mul(0x9e37_79b1).wrapping_add(w[1].wrapping_mul(0x85eb_ca77));
    h = h.wrapping_add(0x7feb_352d);
    h = (h ^ (h >> 16)).wrapping_add(w[2].wrapping_mul(0xc2b2_ae3d));
    h = h.wrapping_add(w[3].wrapping_mul(0x27d4_eb2f));
    h = (h ^ (h >> 15)).wrapping_mul(0x1656_67b1);
    h ^ (h >> 13)
}

impl LowerState {
    /// Returns the checksum of the state.
    pub const fn mark(&self) -> u32 {
        let half = mark([self.free, self.left, self.right, self.segment]);
        mark([half, self.upper_left, self.upper_right, 1])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// Asserts that `name` in `source` has the size of the Rust type and each of its fields at the
    /// same offset.
    macro_rules! assert_same_layout {
        ($source:expr, $ty:ty, [$($field:ident),*]) => {
            let fields = [$((stringify!($field), offset_of!($ty, $field))),*];
            assert_layout($source, stringify!($ty), size_of::<$ty>(), &fields);
        };
    }
    pub(in crate::kernel::gpu) use assert_same_layout;

    pub(in crate::kernel::gpu) fn assert_layout(
        source: &str,
        name: &str,
        size: usize,
        fields: &[(&str, usize)],
    ) {
        let module = naga::front::wgsl::parse_str(source).expect("the shader parses");
        let (_, ty) =
            module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name)).expect(name);
        let naga::TypeInner::Struct { members, span } = &ty.inner else {
            panic!("{name} is no struct")
        };
        assert_eq!(*span as usize, size, "size of {name}");
        let found: Vec<(&str, usize)> =
            members.iter().map(|m| (m.name.as_deref().unwrap_or(""), m.offset as usize)).collect();
        assert_eq!(found, fields, "{name}");
    }

    /// Returns the value of a constant of a shader, or the default of an override, without its
    /// suffix.
    pub(in crate::kernel::gpu) fn constant(source: &str, name: &str) -> String {
        let begins = ["const", "override"].map(|kind| format!("{kind} {name}:"));
        let is_it = |line: &&str| begins.iter().any(|begin| line.starts_with(begin));
        let line = source.lines().find(is_it).expect(name);
        line.split(['=', ';']).nth(1).expect("a value").trim().trim_end_matches('u').to_owned()
    }

    const SCHEDULE: &str = include_str!("../../../shaders/schedule.wgsl");
    const EXPAND: &str = include_str!("../../../shaders/expand.wgsl");
    const SEARCH: &str = include_str!("../../../shaders/search.wgsl");

    #[test]
    fn shaders_and_host_have_the_same_memory_layout() {
        for source in [SCHEDULE, EXPAND, SEARCH] {
            assert_same_layout!(
                source,
                Counters,
                [
                    stamp,
                    ring_write,
                    ring_read,
                    ring_returned,
                    returned_total,
                    source_first,
                    source_count,
                    busy,
                    expansions,
                    expanded,
                    appended,
                    searches,
                    lower_put,
                    lower_taken,
                    ring_put,
                    ring_taken,
                    faults,
                    level_first,
                    level_count
                ]
            );
            assert_same_layout!(
                source,
                Params,
                [stamp, turns, chunk, ring_mask, ring_reserve, most_emitted, flush, lanes]
            );
        }
        assert_same_layout!(
            EXPAND,
            LowerState,
            [free, left, right, upper_left, upper_right, segment]
        );
        assert_same_layout!(EXPAND, Segment, [rows, upper_rows, label, upper_allowed]);
        assert_same_layout!(EXPAND, LowerRow, [allowed, centre, rule, step, to_upper, pad]);
        assert_same_layout!(
            SEARCH,
            Lane,
            [
                free, left, right, open, label, height, hits, hits_high, turns, turns_high, shadow,
                finished, check
            ]
        );
    }

    #[test]
    fn shaders_zero_the_atomic_words_of_a_workgroup_before_their_first_barrier() {
        let mut words = 0;
        for source in [SCHEDULE, EXPAND, SEARCH] {
            let (globals, entry_point) = source.split_once("@compute").expect("an entry point");
            let before_barrier = entry_point.split("workgroupBarrier()").next().expect("code");
            for line in globals.lines().filter(|line| line.contains("atomic<")) {
                let Some(variable) = line.strip_prefix("var<workgroup> ") else { continue };
                let name = variable.split(':').next().expect("a name");
                assert!(before_barrier.contains(&format!("atomicStore(&{name}")), "{name}");
                words += 1;
            }
        }
        assert_eq!(words, 4);
    }

    #[test]
    fn shaders_and_host_have_the_same_constants() {
        // A slot is not a struct in the shader because its words are atomic; its size and offsets
        // are constants there.
        let words = |bytes: usize| (bytes / 4).to_string();
        let hex = |value: u32| format!("{value:#x}");
        assert_eq!(constant(SEARCH, "SLOT_WORDS"), words(size_of::<Slot>()));
        assert_eq!(constant(SEARCH, "CLASS_ROWS"), CLASS_ROWS.to_string());
        assert_eq!(constant(SEARCH, "LANES"), WORKGROUP.to_string());
        assert_eq!(constant(SEARCH, "TAKE"), TAKE.to_string());
        assert_eq!(constant(SEARCH, "GROUP"), GROUP.to_string());
        let turns = SEARCH.lines().filter(|line| line.trim() == "turn();").count();
        assert_eq!(turns, GROUP as usize);
        assert_eq!(constant(SEARCH, "SHADOW_LIMIT"), hex(SHADOW_LIMIT));
        assert_eq!(constant(SCHEDULE, "LAST_LEVEL"), LAST_LEVEL.to_string());
        assert_eq!(constant(SCHEDULE, "LEVELS"), LEVELS.to_string());
        assert_eq!(constant(EXPAND, "LEVELS"), LEVELS.to_string());
        let offsets =
            [offset_of!(Slot, turns), offset_of!(Slot, shadow), offset_of!(Slot, finished)];
        assert_eq!(offsets.map(|bytes| bytes / 4), [2, 4, 8]);
    }
}
