//! Devices with faults: mirrors that start to fail after some batches.

use std::collections::VecDeque;
use std::time::Duration;

use nqueens::kernel::gpu::layout::{Counters, Slot};
use nqueens::kernel::gpu::{
    Backend, Batch, DeviceKernel, Fault, JobMemory, Memory, Mirror, Shape, Submission, self_test,
};

/// The injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// No fault.
    No,
    /// There is too little memory for the job.
    OutOfMemory,
    /// The driver reports that the device is lost.
    Lost,
    /// It never answers.
    Hangs,
    /// A wrapper around the driver panics.
    Panics,
    /// A submission is silently not run.
    DropsASubmission,
    /// Counters are returned as zeros.
    ZeroCounters,
    /// Old values of the counters are returned.
    StaleCounters,
    /// Slots are returned as zeros.
    ZeroSlots,
    /// The slots of the previous batch are returned.
    StaleSlots,
    /// Too few slots are returned.
    FewerSlots,
    /// A bit of a count flips.
    FlipsABit,
    /// A bit of the shadow flips.
    FlipsAShadowBit,
    /// A lane loses its state.
    ForgetsALane,
    /// A state that waits below the block is lost.
    LosesALowerState,
    /// A state that waits in the ring is lost.
    LosesARingState,
    /// The prefixes never arrive in the device's memory.
    ZeroLevels,
    /// States of the ring are replaced by their neighbours.
    StaleRing,
    /// Parked stacks are returned as zeros.
    ZeroStacks,
}

/// All faults.
pub const ALL: [Failing; 18] = [
    Failing::OutOfMemory,
    Failing::Lost,
    Failing::Hangs,
    Failing::Panics,
    Failing::DropsASubmission,
    Failing::ZeroCounters,
    Failing::StaleCounters,
    Failing::ZeroSlots,
    Failing::StaleSlots,
    Failing::FewerSlots,
    Failing::FlipsABit,
    Failing::FlipsAShadowBit,
    Failing::ForgetsALane,
    Failing::LosesALowerState,
    Failing::LosesARingState,
    Failing::ZeroLevels,
    Failing::StaleRing,
    Failing::ZeroStacks,
];

/// So small that a job has several batches.
const SHAPE: Shape = Shape { lanes: 128, chunk: 64, ring: 1 << 13, prefixes: 100 };

/// The faults that change memory between two dispatches.
const DAMAGES: [Failing; 6] = [
    Failing::ForgetsALane,
    Failing::LosesALowerState,
    Failing::LosesARingState,
    Failing::ZeroLevels,
    Failing::StaleRing,
    Failing::ZeroStacks,
];

/// A mirror that starts to fail after some batches.
pub struct FailingDevice {
    mirror: Mirror,
    failing: Failing,
    /// The number of batches before it fails.
    sound_batches: usize,
    submissions: usize,
    seen: VecDeque<Counters>,
    stale_counters: Option<Counters>,
    stale_slots: Vec<Slot>,
}

impl FailingDevice {
    /// Creates a device that fails after `sound_batches`.
    pub fn kernel(failing: Failing, sound_batches: usize) -> DeviceKernel {
        let mirror = Mirror::default();
        let device = Self {
            mirror,
            failing,
            sound_batches,
            submissions: 0,
            seen: VecDeque::new(),
            stale_counters: None,
            stale_slots: Vec::new(),
        };
        DeviceKernel::new(Box::new(device), SHAPE, false)
    }

    /// Returns whether this fault is injected now.
    fn fails(&self, failing: Failing) -> bool {
        self.failing == failing && self.sound_batches == 0
    }

    fn run(&mut self, submission: &Submission) -> Result<(), Fault> {
        self.mirror.submit(submission)?;
        self.seen.push_back(self.mirror.wait()?);
        Ok(())
    }

    fn damage(&mut self, memory: &mut Memory) -> bool {
        let counters = &mut memory.counters;
        match self.failing {
            Failing::ForgetsALane => {
                let lane = memory.lanes.iter_mut().find(|lane| lane.open != 0);
                lane.map(|lane| *lane = Default::default()).is_some()
            }
            Failing::LosesALowerState => {
                let level = counters.level_count.iter_mut().find(|count| **count > 0);
                level.map(|count| *count -= 1).is_some()
            }
            Failing::LosesARingState => {
                let there = counters.ring_write.wrapping_sub(counters.ring_read).cast_signed() > 0;
                counters.ring_read = counters.ring_read.wrapping_add(there.into());
                there
            }
            Failing::ZeroLevels => {
                let there = counters.level_count.iter().any(|&count| count > 0);
                memory.levels.fill(Default::default());
                there
            }
            Failing::StaleRing => {
                let waiting = counters.ring_write.wrapping_sub(counters.ring_read).cast_signed();
                let (size, first) = (memory.ring.len(), counters.ring_read as usize);
                let (a, b) = (first % size, (first + 1) % size);
                let differ = waiting > 1 && memory.ring[a] != memory.ring[b];
                memory.ring[a] = if differ { memory.ring[b] } else { memory.ring[a] };
                differ
            }
            Failing::ZeroStacks => {
                let there = memory.lanes.iter().any(|lane| lane.open != 0 && lane.height > 0);
                memory.stacks.fill([0; 4]);
                there
            }
            _ => false,
        }
    }
}

impl Backend for FailingDevice {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        if self.fails(Failing::OutOfMemory) {
            return Err(Fault::OutOfMemory("there is too little of it".into()));
        }
        self.mirror.open(job)
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.sound_batches = self.sound_batches.saturating_sub(1);
        self.submissions = 0;
        self.stale_counters = None;
        self.mirror.load(batch)
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        self.submissions += 1;
        if self.fails(Failing::Panics) {
            panic!("on purpose");
        }
        if self.fails(Failing::DropsASubmission) && self.submissions == 2 {
            return self.run(&Submission { rounds: 0, ..*submission });
        }
        if self.sound_batches == 0 && DAMAGES.contains(&self.failing) {
            // Run a part of the work first, so that there is something to lose; its counters are
            // discarded.
            let below = [Failing::LosesALowerState, Failing::ZeroLevels].contains(&self.failing);
            let expansions = if below { 1 } else { 64 };
            let mut part = Submission { rounds: 1, expansions, ..*submission };
            let parks = [Failing::ForgetsALane, Failing::ZeroStacks].contains(&self.failing);
            part.params.turns = if parks { 4 } else { 0 };
            part.params.flush = 0;
            let mut memory = self.mirror.memory()?;
            let searches = memory.counters.searches;
            self.mirror.submit(&part)?;
            self.mirror.wait()?;
            memory = self.mirror.memory()?;
            memory.counters.searches = searches;
            let damaged = self.damage(&mut memory);
            self.mirror.set_memory(&memory)?;
            if damaged {
                // Once is sufficient.
                self.failing = Failing::No;
            }
        }
        self.run(submission)
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        if self.fails(Failing::Hangs) {
            return Err(Fault::Hung(Duration::from_secs(30)));
        }
        if self.fails(Failing::Lost) && self.submissions > 1 {
            return Err(Fault::Lost("it fell off the bus".into()));
        }
        let seen = self.seen.pop_front().expect("something was submitted");
        if self.fails(Failing::ZeroCounters) {
            return Ok(Counters::default());
        }
        let before = *self.stale_counters.get_or_insert(seen);
        Ok(if self.fails(Failing::StaleCounters) { before } else { seen })
    }

    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        let mut slots = self.mirror.slots()?;
        let stale = std::mem::replace(&mut self.stale_slots, slots.clone());
        if self.sound_batches > 0 {
            return Ok(slots);
        }
        match self.failing {
            Failing::ZeroSlots => slots.fill(Slot::default()),
            Failing::StaleSlots => slots = stale,
            Failing::FewerSlots => drop(slots.pop()),
            Failing::FlipsABit => slots[0].hits ^= 1 << 7,
            Failing::FlipsAShadowBit => slots[0].shadow[1] ^= 1,
            _ => {}
        }
        Ok(slots)
    }

    fn memory(&mut self) -> Result<Memory, Fault> {
        self.mirror.memory()
    }

    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.mirror.set_memory(memory)
    }
}

/// Returns the number of batches that a sound device loads for its self-test.
pub fn batches_of_the_self_test() -> usize {
    let loaded = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    struct Counting(Mirror, std::sync::Arc<std::sync::atomic::AtomicUsize>);
    impl Backend for Counting {
        fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
            self.0.open(job)
        }
        fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.load(batch)
        }
        fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
            self.0.submit(submission)
        }
        fn wait(&mut self) -> Result<Counters, Fault> {
            self.0.wait()
        }
        fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
            self.0.slots()
        }
        fn memory(&mut self) -> Result<Memory, Fault> {
            self.0.memory()
        }
        fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
            self.0.set_memory(memory)
        }
    }
    let counting = Counting(Mirror::default(), std::sync::Arc::clone(&loaded));
    self_test(&mut DeviceKernel::new(Box::new(counting), SHAPE, false), false)
        .expect("a sound device");
    loaded.load(std::sync::atomic::Ordering::Relaxed)
}
