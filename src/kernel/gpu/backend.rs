//! What the driver of the device asks of a backend: wgpu, the mirror, or one that fails on purpose.

use std::mem::size_of;

use super::fault::Fault;
use super::layout::{Control, Lane, LowerRow, LowerState, Params, Segment, Slot, TAKE, UpperRow, UpperState};
use super::mirror::Memory;
use super::tables::{Specialisation, Tables};

/// How much a device does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Lanes of the search: a multiple of 64.
    pub lanes: u32,
    /// States that an expansion takes.
    pub chunk: u32,
    /// States in the ring: a power of two.
    pub ring: u32,
    /// Prefixes in a batch.
    pub prefixes: u32,
}

impl Shape {
    /// This shape, or a smaller one of which every buffer has at most `most_bytes`, for a job with these tables.
    ///
    /// # Errors
    /// Not even a small one fits.
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
            // Half of the ring at the most is kept free, and a workgroup of states finds room in what is left.
            let ring_is_large =
                |ring: u32| u64::from(ring) >= 2 * reserve + 64 * u64::from(tables.most_emitted());
            if largest.into_iter().all(|bytes| bytes <= limit) && ring_is_large(self.ring) {
                return Ok(self);
            }
            if self.lanes <= SMALLEST || self.chunk <= SMALLEST {
                return Err(Fault::OutOfMemory(format!("{most_bytes} bytes in a buffer are too few")));
            }
            if ring_is_large(self.ring / 2) {
                self.ring /= 2;
            }
            self.lanes /= 2;
            self.chunk /= 2;
        }
    }

    /// Half of everything, or `None` if that is too little.
    pub(super) fn halved(self) -> Option<Self> {
        const FEWEST_LANES: u32 = 4096;
        let Self { lanes, chunk, ring, prefixes } = self;
        (lanes >= 2 * FEWEST_LANES).then_some(Self {
            lanes: lanes / 2,
            chunk: chunk / 2,
            ring: ring / 2,
            prefixes,
        })
    }

    /// States of the ring that are kept free for what the lanes may give back.
    pub(super) const fn ring_reserve(self) -> u32 {
        self.lanes * TAKE
    }
}

/// What a job needs in the device's memory.
#[derive(Clone, Copy, Debug)]
pub struct JobMemory<'a> {
    /// How much is done at once.
    pub shape: Shape,
    /// States that the prefixes and the levels hold together.
    pub levels: u64,
    /// Rows below the block.
    pub lower_rows: &'a [LowerRow],
    /// Rows above the block.
    pub upper_rows: &'a [UpperRow],
    /// Entries of a lane's stack.
    pub depth: u32,
}

/// A batch: prefixes that are counted until nothing is left of them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The counters at the start.
    pub control: Control,
    /// States of level 0.
    pub prefixes: Vec<LowerState>,
    /// What they have in common.
    pub segments: Vec<Segment>,
    /// Slots that the segments name, all empty at the start.
    pub slots: usize,
}

/// A submission: rounds of several expansions (each with its schedule) and one search.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// What the shaders read.
    pub params: Params,
    /// Rounds.
    pub rounds: u32,
    /// Expansions in a round.
    pub expansions: u32,
    /// Which search.
    pub special: Specialisation,
}

/// What a finished submission left.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The counters after it.
    pub control: Control,
}

/// A device, or what stands in for one. After a fault it is not used again.
pub trait Backend: Send {
    /// Makes room for a job and compiles what it needs.
    ///
    /// # Errors
    /// The device fails, or its memory is too small.
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault>;

    /// Puts a batch in; slots, lanes and counters start anew.
    ///
    /// # Errors
    /// The device fails.
    fn load(&mut self, batch: &Batch) -> Result<(), Fault>;

    /// Queues a submission.
    ///
    /// # Errors
    /// The device fails.
    fn submit(&mut self, order: &Order) -> Result<(), Fault>;

    /// Waits for the oldest submission that was not waited for.
    ///
    /// # Errors
    /// The device fails or does not answer.
    fn wait(&mut self) -> Result<Seen, Fault>;

    /// The most bytes that one buffer may have.
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    /// The slots after all submissions.
    ///
    /// # Errors
    /// The device fails or does not answer.
    fn slots(&mut self) -> Result<Vec<Slot>, Fault>;

    /// All of the device's memory, for tests and post-mortems.
    ///
    /// # Errors
    /// No batch is loaded; the device fails or does not answer.
    fn memory(&mut self) -> Result<Memory, Fault>;

    /// Overwrites what the shaders write: everything but rows and segments. For tests.
    ///
    /// # Errors
    /// No batch is loaded, or the device fails.
    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault>;
}
