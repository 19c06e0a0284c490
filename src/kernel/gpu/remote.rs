//! Units for a device that another program drives with the same shaders, such as a web page.
//!
//! The other program gets the tables of a job ([`Tables`]) and the batches of some ranges of
//! prefixes ([`RemoteBatches`]): what [`Backend::open`] and [`Backend::load`] get here. It chooses
//! the shape for its device, and returns the counters at the end and the slots. They pass the same
//! accounting checks as those of a device of this machine, but nothing is believed because of that:
//! whoever sends them may have made them up.
//!
//! [`Backend::open`]: super::Backend::open
//! [`Backend::load`]: super::Backend::load

use std::ops::Range;

use super::accounting::{audit, drained, parts_of};
use super::backend::Batch;
use super::batch_builder::{BatchBuilder, pieces};
use super::fault::Fault;
use super::layout::{Counters, LowerState, Segment, Slot};
use super::tables::{Tables, Variant};
use crate::decomposition::Decomposition;
use crate::tally::{Parts, Thirds};

/// A batch for another program.
#[derive(Clone, Debug)]
pub struct RemoteBatch {
    /// The variant of the search that counts it.
    pub variant: Variant,
    batch: Batch,
    /// The range index and the weight of each slot.
    slots: Vec<(usize, Thirds)>,
    prefixes: usize,
}

/// The result of another program for a batch: the counters at the end, and the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteResult {
    /// The counters.
    pub counters: Counters,
    /// The slots.
    pub slots: Vec<Slot>,
}

impl RemoteBatch {
    /// Returns the states of level 0.
    pub fn prefixes(&self) -> &[LowerState] {
        &self.batch.prefixes
    }

    /// Returns the segments of these states.
    pub fn segments(&self) -> &[Segment] {
        &self.batch.segments
    }

    /// Returns the weight of each slot.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = Thirds> {
        self.slots.iter().map(|(_, weight)| *weight)
    }

    /// Returns the sum of the checksums of the prefixes: [`Counters::lower_put`] at the start.
    pub const fn checksum(&self) -> u32 {
        self.batch.counters.lower_put
    }
}

/// The batches of some ranges of prefixes.
#[derive(Clone, Debug)]
pub struct RemoteBatches {
    ranges: usize,
    batches: Vec<RemoteBatch>,
}

impl RemoteBatches {
    /// Creates the batches of `ranges`, each with at most `most_prefixes` prefixes.
    ///
    /// # Errors
    /// The shaders do not support every prefix.
    pub fn new(
        decomposition: &Decomposition,
        tables: &Tables,
        ranges: &[Range<u64>],
        most_prefixes: u64,
    ) -> Result<Self, Fault> {
        if !tables.suits_all() {
            return Err(Fault::Unsuited);
        }
        let mut batches = Vec::new();
        // Every prefix is supported, so none is counted here.
        let mut unused = Parts::default();
        for variant in Variant::ALL {
            let mut pieces =
                pieces(decomposition, tables, ranges, variant, most_prefixes).peekable();
            while pieces.peek().is_some() {
                let mut builder = BatchBuilder::new(decomposition, tables, Counters::default());
                while let Some((index, range)) =
                    pieces.next_if(|(_, range)| builder.has_room(range, most_prefixes))
                {
                    builder.add(index, range, &mut unused)?;
                }
                let BatchBuilder { batch, slots, .. } = builder;
                if !batch.prefixes.is_empty() {
                    let prefixes = batch.prefixes.len();
                    batches.push(RemoteBatch { variant, batch, slots, prefixes });
                }
            }
        }
        Ok(Self { ranges: ranges.len(), batches })
    }

    /// Returns the batches.
    pub fn batches(&self) -> &[RemoteBatch] {
        &self.batches
    }

    /// Drops the prefixes and segments, which are not needed to read the results.
    pub fn shrink(&mut self) {
        for batch in &mut self.batches {
            (batch.batch.prefixes, batch.batch.segments) = (Vec::new(), Vec::new());
        }
    }

    /// Returns the parts of each range according to the results of all batches. The sums are not
    /// compared with their residues: [`Parts::total`] does that.
    ///
    /// # Errors
    /// The accounting of a batch does not balance, or there are not as many results as batches.
    pub fn parts(&self, results: &[RemoteResult]) -> Result<Vec<Parts>, Fault> {
        if results.len() != self.batches.len() {
            let (found, wanted) = (results.len(), self.batches.len());
            return Err(Fault::Miscounts(format!("{found} of {wanted} batches came back")));
        }
        let mut parts = vec![Parts::default(); self.ranges];
        for (batch, RemoteResult { counters, slots }) in self.batches.iter().zip(results) {
            if !drained(counters) {
                return Err(Fault::Miscounts("a batch is not finished".into()));
            }
            audit((batch.prefixes, batch.slots.len()), counters, slots)?;
            for (slot, &(range, weight)) in slots.iter().zip(&batch.slots) {
                let (hits, shadow, turns) = parts_of(slot);
                parts[range].add(weight, hits, shadow, turns)?;
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::decomposition::testing::{decompose, queens};
    use crate::kernel::gpu::tables::Specialisation;
    use crate::kernel::gpu::{Backend, JobMemory, Mirror, Shape, Submission, layout::Params};
    use crate::kernel::{KernelKind, count_range};

    /// Counts a batch on the mirrors, as another program would do it on a device.
    fn count(tables: &Tables, batch: &RemoteBatch) -> RemoteResult {
        let shape = Shape { lanes: 64, chunk: 64, ring: 1 << 15, prefixes: 1 << 10 };
        let (level_first, levels) = tables.levels(shape.prefixes, shape.chunk);
        let (lower_rows, upper_rows) = (&tables.lower_rows[..], &tables.upper_rows[..]);
        let depth = tables.depth();
        let mut mirror = Mirror::default();
        let job = JobMemory { shape, levels, lower_rows, upper_rows, depth };
        mirror.open(&job).expect("memory");
        let mut counters = Counters { level_first, ..Counters::default() };
        counters.level_count[0] = batch.prefixes().len() as u32;
        counters.lower_put = batch.checksum();
        let (prefixes, segments) = (batch.prefixes().to_vec(), batch.segments().to_vec());
        let slots = batch.weights().len();
        mirror.load(&Batch { counters, prefixes, segments, slots }).expect("memory");
        let special = Specialisation { depth, variant: batch.variant, look_ahead: true };
        let mut flush = 0;
        loop {
            let params = Params {
                stamp: 1,
                turns: 4096,
                chunk: shape.chunk,
                ring_mask: shape.ring - 1,
                ring_reserve: shape.ring_reserve(),
                most_emitted: tables.most_emitted(),
                flush,
                lanes: shape.lanes,
            };
            let submission = Submission { params, rounds: 1, expansions: 4, special };
            mirror.submit(&submission).expect("a mirror");
            let counters = mirror.wait().expect("a mirror");
            if flush == 1 {
                return RemoteResult { counters, slots: mirror.slots().expect("a mirror") };
            }
            flush = u32::from(drained(&counters));
        }
    }

    fn decomposition() -> Decomposition {
        decompose(&queens(11, &[], &[(7, 3), (8, 9)]), None, 40)
    }

    #[test]
    fn batches_counted_elsewhere_have_the_parts_of_each_range() {
        for itself in [decomposition(), decompose(&queens(12, &[], &[]), None, 300)] {
            for decomposition in [itself.mirrored(), itself] {
                let tables = Tables::new(&decomposition);
                for unit in 0..decomposition.units() {
                    let ranges: Vec<Range<u64>> = decomposition.sub_ranges(unit).collect();
                    let mut batches =
                        RemoteBatches::new(&decomposition, &tables, &ranges, 100).expect("suits");
                    let results: Vec<RemoteResult> =
                        batches.batches().iter().map(|batch| count(&tables, batch)).collect();
                    batches.shrink();
                    let parts = batches.parts(&results).expect("balances");
                    let mut kernel = KernelKind::Scalar.build(Piece::Queen).expect("anywhere");
                    for (parts, range) in parts.iter().zip(ranges) {
                        let expected = count_range(&mut *kernel, &decomposition, range);
                        let expected = expected.expect("a count");
                        let total = parts.total().expect("agrees with its residues");
                        assert_eq!(total.thirds(), expected.thirds());
                    }
                }
            }
        }
    }

    #[test]
    fn results_whose_accounting_does_not_balance_are_refused() {
        let decomposition = decomposition();
        let tables = Tables::new(&decomposition);
        let ranges = [decomposition.unit(0)];
        let batches = RemoteBatches::new(&decomposition, &tables, &ranges, 1000).expect("suits");
        let right: Vec<RemoteResult> =
            batches.batches().iter().map(|batch| count(&tables, batch)).collect();
        assert!(batches.parts(&right).is_ok());
        let changes: [fn(&mut RemoteResult); 8] = [
            |result| result.slots.truncate(result.slots.len() - 1),
            |result| result.slots.push(Slot::default()),
            |result| result.counters.expanded += 1,
            |result| result.counters.lower_taken += 1,
            |result| result.counters.ring_put ^= 1,
            |result| result.counters.busy = 1,
            |result| result.counters.faults = 1,
            |result| result.slots[0].finished += 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut wrong = right.clone();
            change(&mut wrong[0]);
            assert!(matches!(batches.parts(&wrong), Err(Fault::Miscounts(_))), "change {number}");
        }
        assert!(batches.parts(&right[1..]).is_err());
        // A false count is not noticed here, but contradicts its residues.
        let mut wrong = right;
        wrong[0].slots[0].hits += 1;
        let parts = batches.parts(&wrong).expect("balances");
        assert!(parts[0].total().is_err());
    }

    #[test]
    fn boards_that_the_shaders_do_not_support_have_no_batches() {
        let decomposition = decompose(&Problem::empty(Piece::Rook, 6), None, 10);
        let tables = Tables::new(&decomposition);
        let unit = [decomposition.unit(0)];
        let outcome = RemoteBatches::new(&decomposition, &tables, &unit, 1000);
        assert!(matches!(outcome, Err(Fault::Unsuited)));
    }
}
