//! The device emulated in host memory: the same buffers, and the CPU mirrors of the shaders. Tests
//! compare the shaders with it, and inject faults into it.

use std::collections::VecDeque;

use super::backend::{Backend, Batch, JobMemory, Submission};
use super::fault::Fault;
use super::layout::{Counters, Lane, LowerRow, LowerState, Segment, Slot, UpperRow, UpperState};
use super::sets::{SetBackend, SetMirror};
use super::{expand::expand, schedule::schedule, search::search};

/// The device buffers.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The counters.
    pub counters: Counters,
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
            counters: Counters::default(),
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
        self.counters = batch.counters;
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
    /// The counters after each submission that was not waited for.
    finished: VecDeque<Counters>,
    sets: SetMirror,
}

impl Backend for Mirror {
    fn sets(&mut self) -> Option<&mut dyn SetBackend> {
        Some(&mut self.sets)
    }

    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.memory = Memory::new(job);
        self.finished.clear();
        Ok(())
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.memory.load(batch);
        Ok(())
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        for _ in 0..submission.rounds {
            for _ in 0..submission.expansions {
                schedule(&mut self.memory, &submission.params);
                expand(&mut self.memory, &submission.params);
            }
            search(&mut self.memory, &submission.params, submission.special);
        }
        self.finished.push_back(self.memory.counters);
        Ok(())
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        self.finished.pop_front().ok_or_else(|| Fault::Refused("nothing was submitted".into()))
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
