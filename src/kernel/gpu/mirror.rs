//! The device emulated in host memory: the same buffers, and the CPU mirrors of the shaders. Tests
//! compare the shaders with it, and inject faults into it.

use std::collections::VecDeque;

use super::backend::{Backend, Batch, JobMemory, Order, Seen};
use super::fault::Fault;
use super::layout::{Control, Lane, LowerRow, LowerState, Segment, Slot, UpperRow, UpperState};
use super::{expand::expand, schedule::schedule, search::search};

/// The device buffers.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The counters.
    pub control: Control,
    /// States below the block: prefixes, then the stacks of the levels.
    pub levels: Vec<LowerState>,
    /// States above the block.
    pub ring: Vec<UpperState>,
    /// Segments of the batch.
    pub segments: Vec<Segment>,
    /// Rows below the block.
    pub lower_rows: Vec<LowerRow>,
    /// Rows above the block.
    pub upper_rows: Vec<UpperRow>,
    /// Parked lanes.
    pub lanes: Vec<Lane>,
    /// Their stacks: the entry at height h of lane i is at h × lanes + i.
    pub stacks: Vec<[u32; 4]>,
    /// The slots.
    pub slots: Vec<Slot>,
}

impl Memory {
    /// Allocates memory for a job.
    pub fn new(job: &JobMemory<'_>) -> Self {
        let lanes = job.shape.lanes as usize;
        Self {
            control: Control::default(),
            levels: vec![LowerState::default(); job.levels as usize],
            ring: vec![UpperState::default(); job.shape.ring as usize],
            segments: Vec::new(),
            lower_rows: job.lower_rows.to_vec(),
            upper_rows: job.upper_rows.to_vec(),
            lanes: vec![Lane::default(); lanes],
            stacks: vec![[0; 4]; lanes * job.depth as usize],
            slots: Vec::new(),
        }
    }

    /// Loads a batch.
    pub fn load(&mut self, batch: &Batch) {
        self.control = batch.control;
        self.levels[..batch.prefixes.len()].copy_from_slice(&batch.prefixes);
        self.segments.clone_from(&batch.segments);
        self.lanes.fill(Lane::default());
        self.slots = vec![Slot::default(); batch.slots];
    }
}

/// A backend without a device.
#[derive(Debug, Default)]
pub struct Mirror {
    memory: Memory,
    seen: VecDeque<Control>,
}

impl Backend for Mirror {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.memory = Memory::new(job);
        self.seen.clear();
        Ok(())
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.memory.load(batch);
        Ok(())
    }

    fn submit(&mut self, order: &Order) -> Result<(), Fault> {
        for _ in 0..order.rounds {
            for _ in 0..order.expansions {
                schedule(&mut self.memory, &order.params);
                expand(&mut self.memory, &order.params);
            }
            search(&mut self.memory, &order.params, order.special);
        }
        self.seen.push_back(self.memory.control);
        Ok(())
    }

    fn wait(&mut self) -> Result<Seen, Fault> {
        let control = self.seen.pop_front();
        control
            .map(|control| Seen { control })
            .ok_or_else(|| Fault::Refused("nothing was submitted".into()))
    }

    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        Ok(self.memory.slots.clone())
    }

    fn memory(&mut self) -> Result<Memory, Fault> {
        Ok(self.memory.clone())
    }

    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.memory = memory.clone();
        Ok(())
    }
}
