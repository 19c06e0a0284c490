//! The construction of a batch from ranges of prefixes.

use std::collections::HashMap;
use std::ops::Range;

use super::backend::Batch;
use super::fault::Fault;
use super::layout::{Counters, Segment};
use super::tables::{Tables, Variant, lower_state};
use crate::decomposition::{Decomposition, Prefix, SymmetryCase};
use crate::kernel::Kernel;
use crate::kernel::scalar::Scalar;
use crate::tally::{Parts, Thirds};

/// The maximum number of slots of a batch: a label has 16 bits for them.
pub(super) const MOST_SLOTS: usize = 1 << 16;

/// Splits those parts of the ranges that `variant` of the search counts into pieces of at most
/// `most_prefixes` prefixes, which fit in a batch. Returns each piece with the index of its range.
pub(super) fn pieces<'a>(
    decomposition: &'a Decomposition,
    tables: &'a Tables,
    ranges: &'a [Range<u64>],
    variant: Variant,
    most_prefixes: u64,
) -> impl Iterator<Item = (usize, Range<u64>)> + 'a {
    ranges.iter().enumerate().flat_map(move |(index, range)| {
        let parts = parts(decomposition, tables, range.clone(), variant);
        parts.into_iter().flat_map(move |mut left| {
            std::iter::from_fn(move || {
                let end = left.end.min(left.start.saturating_add(most_prefixes));
                let piece = std::mem::replace(&mut left.start, end)..end;
                (!piece.is_empty()).then_some((index, piece))
            })
        })
    })
}

/// Returns the longest parts of `range` whose symmetry cases `variant` of the search counts.
/// Similar cases have adjacent prefixes, so there are few parts.
fn parts(
    decomposition: &Decomposition,
    tables: &Tables,
    range: Range<u64>,
    variant: Variant,
) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    for (case, part) in decomposition.parts_by_case(range) {
        if tables.variant(case) != variant {
            continue;
        }
        match parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => parts.push(part),
        }
    }
    parts
}

/// A batch under construction.
pub(super) struct BatchBuilder<'a> {
    decomposition: &'a Decomposition,
    tables: &'a Tables,
    pub(super) batch: Batch,
    /// The range index and the weight of each slot.
    pub(super) slots: Vec<(usize, Thirds)>,
    slot_of: HashMap<(usize, Thirds), usize>,
    prefixes: u64,
}

impl<'a> BatchBuilder<'a> {
    pub(super) fn new(
        decomposition: &'a Decomposition,
        tables: &'a Tables,
        counters: Counters,
    ) -> Self {
        let batch = Batch { counters, prefixes: Vec::new(), segments: Vec::new(), slots: 0 };
        let (slots, slot_of) = (Vec::new(), HashMap::new());
        Self { decomposition, tables, batch, slots, slot_of, prefixes: 0 }
    }

    /// Returns whether a range still fits in the batch.
    pub(super) fn has_room(&self, range: &Range<u64>, most_prefixes: u64) -> bool {
        /// Weights, in thirds: of 1 to 8 images, some with ties.
        const MOST_WEIGHTS: usize = 24;
        self.prefixes + (range.end - range.start) <= most_prefixes
            && self.slots.len() + MOST_WEIGHTS <= MOST_SLOTS
    }

    /// Adds a piece of the range with this index. Prefixes that the shaders do not support are
    /// counted immediately.
    pub(super) fn add(
        &mut self,
        index: usize,
        range: Range<u64>,
        parts: &mut Parts,
    ) -> Result<(), Fault> {
        let decomposition = self.decomposition;
        let mut cases = decomposition.cases().iter().zip(&self.tables.cases);
        let mut current: Option<(&SymmetryCase, Option<u32>)> = None;
        let mut left_over: Vec<(&SymmetryCase, Prefix)> = Vec::new();
        self.prefixes += range.end - range.start;
        decomposition.for_each(range, |case, prefix| {
            let segment = match current {
                Some((known, segment)) if std::ptr::eq(known, case) => segment,
                _ => {
                    // Prefixes come in the order of the symmetry cases.
                    let entry =
                        cases.find(|(p, _)| std::ptr::eq(*p, case)).and_then(|(_, entry)| *entry);
                    let segment = entry.map(|entry| {
                        let slot =
                            *self.slot_of.entry((index, case.weight())).or_insert_with(|| {
                                self.slots.push((index, case.weight()));
                                self.slots.len() - 1
                            });
                        self.batch.segments.push(Segment {
                            rows: entry.rows,
                            upper_rows: entry.upper_rows,
                            // A batch has at most 2^16 slots.
                            label: u32::from(entry.class) << 16 | slot as u32,
                            upper_allowed: entry.upper_allowed,
                        });
                        self.batch.segments.len() as u32 - 1
                    });
                    current = Some((case, segment));
                    segment
                }
            };
            match segment {
                Some(segment) => {
                    let state = lower_state(case, prefix, segment);
                    let put = &mut self.batch.counters.lower_put;
                    *put = put.wrapping_add(state.mark());
                    self.batch.prefixes.push(state);
                }
                None => left_over.push((case, *prefix)),
            }
        });
        self.batch.slots = self.slots.len();
        // Fewer than 2^32 prefixes fit in a batch.
        self.batch.counters.level_count[0] = self.batch.prefixes.len() as u32;
        for (case, prefix) in left_over {
            Scalar.count(case, &[prefix], parts)?;
        }
        Ok(())
    }
}
