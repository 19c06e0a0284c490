//! Counting the placements of a set.

use super::buffers::Buffers;
use super::lower_half::LowerHalf;
use super::sum::Sum;
use super::upper_half::UpperHalf;
use super::vector::Vector;
use crate::decomposition::{ColumnSet, SetFamily};

/// The number of states from which the upper half is counted for the list so far, which bounds the
/// memory of a thread.
pub(super) const MOST_STATES: usize = 1 << 19;

/// Counts the sets of a family.
#[derive(Debug)]
pub(super) struct Engine {
    /// The upper half is counted whenever the lists have at least this many states.
    most_states: usize,
    lower: LowerHalf,
    upper: UpperHalf,
}

impl Engine {
    /// Creates the engine of a family, with tables of at most `table_rows` rows.
    pub(super) fn new(family: &SetFamily, most_states: usize, table_rows: usize) -> Self {
        let lower = LowerHalf::new(family, table_rows);
        Self { most_states, lower, upper: UpperHalf::new(family, table_rows) }
    }

    /// Returns the number of placements that `set` counts, without its weight.
    #[inline(always)]
    pub(super) fn count<V: Vector, const W: usize>(
        &mut self,
        vector: V,
        buffers: &mut Buffers<W>,
        set: &ColumnSet,
    ) -> Sum {
        let Self { most_states, lower, upper } = self;
        let Buffers { lists, lower: of_lower, upper: of_upper } = buffers;
        let mut sum = Sum::default();
        lower.start(set);
        upper.start(of_upper);
        while lower.next(vector, of_lower, lists, *most_states) {
            of_upper.counters.listed += lists.len() as u64;
            upper.count(vector, of_upper, set, lists, &mut sum);
        }
        sum
    }
}
