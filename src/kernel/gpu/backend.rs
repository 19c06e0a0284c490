//! The backend interface of the device kernel: implemented by wgpu, by the mirror, and by one that
//! fails on purpose.

use std::mem::size_of;

use super::fault::Fault;
use super::layout::{
    Counters, Lane, LowerRow, LowerState, Params, Segment, Slot, TAKE, UpperRow, UpperState,
    WORKGROUP,
};
use super::mirror::Memory;
use super::sets::SetBackend;
use super::tables::{Specialisation, Tables};

/// The amount of work that a device processes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of lanes of the search: a multiple of [`WORKGROUP`].
    pub lanes: u32,
    /// The number of states that an expansion takes.
    pub chunk: u32,
    /// The number of states in the ring: a power of two.
    pub ring: u32,
    /// The number of prefixes in a batch.
    pub prefixes: u32,
}

impl Shape {
    /// Returns this shape, or a smaller one whose buffers each have at most `most_bytes`, for a job
    /// with these tables.
    ///
    /// # Errors
    /// Even a small shape does not fit.
    pub(super) fn fit(mut self, tables: &Tables, most_bytes: u64) -> Result<Self, Fault> {
        const SMALLEST: u32 = 64;
        let limit = most_bytes.min(u32::MAX.into());
        loop {
            let reserve = u64::from(self.ring_reserve());
            let (_, levels) = tables.levels(self.prefixes, self.chunk);
            let largest = [
                levels * size_of::<LowerState>() as u64,
                u64::from(self.ring) * size_of::<UpperState>() as u64,
                u64::from(self.lanes) * u64::from(tables.depth()) * size_of::<UpperState>() as u64,
                u64::from(self.lanes) * size_of::<Lane>() as u64,
            ];
            // At most half of the ring is kept free, and the output of a workgroup fits in the
            // rest.
            let ring_is_large =
                |ring: u32| u64::from(ring) >= 2 * reserve + 64 * u64::from(tables.most_emitted());
            if largest.into_iter().all(|bytes| bytes <= limit) && ring_is_large(self.ring) {
                return Ok(self);
            }
            if self.lanes <= SMALLEST || self.chunk <= SMALLEST {
                return Err(Fault::OutOfMemory(format!(
                    "{most_bytes} bytes in a buffer are too few"
                )));
            }
            if ring_is_large(self.ring / 2) {
                self.ring /= 2;
            }
            self.lanes = half_of_lanes(self.lanes);
            self.chunk /= 2;
        }
    }

    /// Returns the shape with lanes, chunk and ring halved, or `None` if that is too small.
    pub(super) fn halved(self) -> Option<Self> {
        const FEWEST_LANES: u32 = 4096;
        let Self { lanes, chunk, ring, prefixes } = self;
        (lanes >= 2 * FEWEST_LANES).then_some(Self {
            lanes: half_of_lanes(lanes),
            chunk: chunk / 2,
            ring: ring / 2,
            prefixes,
        })
    }

    /// Returns the number of ring entries kept free for the states that the lanes may return.
    pub(super) const fn ring_reserve(self) -> u32 {
        self.lanes * TAKE
    }
}

/// Returns about half of the lanes, in whole workgroups.
const fn half_of_lanes(lanes: u32) -> u32 {
    (lanes / 2).next_multiple_of(WORKGROUP)
}

/// The memory that a job needs on the device.
#[derive(Clone, Copy, Debug)]
pub struct JobMemory<'a> {
    /// The shape of the job.
    pub shape: Shape,
    /// The total number of states of the prefixes and the levels.
    pub levels: u64,
    /// Rows below the block.
    pub lower_rows: &'a [LowerRow],
    /// Rows above the block.
    pub upper_rows: &'a [UpperRow],
    /// The number of entries of a lane's stack.
    pub depth: u32,
}

/// A batch: prefixes that are counted to completion.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The counters at the start.
    pub counters: Counters,
    /// States of level 0.
    pub prefixes: Vec<LowerState>,
    /// The segments of these states.
    pub segments: Vec<Segment>,
    /// The number of slots that the segments refer to, all empty at the start.
    pub slots: usize,
}

/// A submission: rounds of several expansions (each preceded by its schedule) and one search.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// The parameters that the shaders read.
    pub params: Params,
    /// The number of rounds.
    pub rounds: u32,
    /// The number of expansions in a round.
    pub expansions: u32,
    /// The specialisation of the search.
    pub special: Specialisation,
}

/// A device, or a substitute for one. It is not used again after a fault.
pub trait Backend: Send {
    /// Returns the part that counts column sets, if there is one.
    fn sets(&mut self) -> Option<&mut dyn SetBackend> {
        None
    }

    /// Allocates memory for a job and compiles what it needs.
    ///
    /// # Errors
    /// The device fails, or its memory is too small.
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault>;

    /// Loads a batch; slots, lanes and counters are reset.
    ///
    /// # Errors
    /// The device fails.
    fn load(&mut self, batch: &Batch) -> Result<(), Fault>;

    /// Compiles the search with these constants, unless that was done before. A submission whose
    /// search is not compiled compiles it, which counts as time of the submission.
    ///
    /// # Errors
    /// The driver rejects the search.
    fn compile(&mut self, _special: Specialisation) -> Result<(), Fault> {
        Ok(())
    }

    /// Queues a submission.
    ///
    /// # Errors
    /// The device fails.
    fn submit(&mut self, submission: &Submission) -> Result<(), Fault>;

    /// Waits for the oldest submission that has not been waited for, and returns the counters
    /// after it.
    ///
    /// # Errors
    /// The device fails or does not answer.
    fn wait(&mut self) -> Result<Counters, Fault>;

    /// Returns the maximum size of one buffer, in bytes.
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Returns the slots after all submissions.
    ///
    /// # Errors
    /// The device fails or does not answer.
    fn slots(&mut self) -> Result<Vec<Slot>, Fault>;

    /// Returns all of the device's memory, for tests and post-mortems.
    ///
    /// # Errors
    /// No batch is loaded; the device fails or does not answer.
    fn memory(&mut self) -> Result<Memory, Fault>;

    /// Overwrites everything that the shaders write, which excludes rows and segments. For tests.
    ///
    /// # Errors
    /// No batch is loaded, or the device fails.
    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::testing::{decompose, queens};

    #[test]
    fn smaller_shapes_have_whole_workgroups_and_rings_of_a_power_of_two() {
        let tables = Tables::new(&decompose(&queens(16, &[], &[]), None, 100));
        for lanes in [64, 192, 320, 448 * 64, 1 << 18] {
            let shape = Shape { lanes, chunk: 1 << 18, ring: 1 << 23, prefixes: 1 << 10 };
            for bytes in (16..30).map(|bits| 1 << bits) {
                let Ok(fitted) = shape.fit(&tables, bytes) else { continue };
                for smaller in [Some(fitted), fitted.halved()].into_iter().flatten() {
                    assert!(smaller.lanes > 0 && smaller.lanes.is_multiple_of(WORKGROUP));
                    assert!(smaller.lanes <= lanes && smaller.ring.is_power_of_two());
                }
            }
        }
        let halved = Shape { lanes: 129 * 64, chunk: 64, ring: 1 << 20, prefixes: 64 }.halved();
        assert_eq!(halved.map(|shape| shape.lanes), Some(65 * 64));
    }
}
