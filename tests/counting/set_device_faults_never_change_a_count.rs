//! Whatever fault a device that counts column sets has, it is disabled and its units are counted
//! elsewhere. The device is the mirror with injected faults. Damage to its memory between two
//! submissions is tested in `src/kernel/gpu/sets/tests.rs`.

use crate::device_faults_never_change_a_count::count_on;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nqueens::board::{Piece, Problem};
use nqueens::decomposition::{Decomposition, Job, Scheme, Subproblems};
use nqueens::engine::CountOutcome;
use nqueens::kernel::gpu::layout::{Counters, Slot};
use nqueens::kernel::gpu::sets::layout::{SetItem, SetParams, SetQueue, SetSlot};
use nqueens::kernel::gpu::sets::{SetBackend, SetMirror, SetShape};
use nqueens::kernel::gpu::{
    Backend, Batch, DeviceKernel, Fault, JobMemory, Memory, Mirror, Shape, Submission,
};

/// The injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failing {
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
    /// The state of the batch is returned as zeros.
    ZeroQueue,
    /// An old state of the batch is returned.
    StaleQueue,
    /// The sets never arrive in the device's memory.
    ZeroItems,
    /// A set arrives in place of its neighbour.
    RepeatedItem,
    /// Slots are returned as zeros.
    ZeroSlots,
    /// The slots of the previous batch are returned.
    StaleSlots,
    /// Too few slots are returned.
    FewerSlots,
    /// A bit of a count flips.
    FlipsABit,
    /// A bit of the sum of the low halves flips.
    FlipsAShadowBit,
    /// Two slots are exchanged.
    ExchangesSlots,
}

const ALL: [Failing; 15] = [
    Failing::OutOfMemory,
    Failing::Lost,
    Failing::Hangs,
    Failing::Panics,
    Failing::DropsASubmission,
    Failing::ZeroQueue,
    Failing::StaleQueue,
    Failing::ZeroItems,
    Failing::RepeatedItem,
    Failing::ZeroSlots,
    Failing::StaleSlots,
    Failing::FewerSlots,
    Failing::FlipsABit,
    Failing::FlipsAShadowBit,
    Failing::ExchangesSlots,
];

/// A mirror that starts to fail after some batches of sets.
struct FailingDevice {
    prefixes: Mirror,
    mirror: SetMirror,
    failing: Failing,
    /// The number of batches before it fails.
    sound_batches: usize,
    /// The number of batches so far.
    loads: Arc<AtomicUsize>,
    submissions: usize,
    seen: VecDeque<SetQueue>,
    stale_queue: Option<SetQueue>,
    stale_slots: Vec<SetSlot>,
}

impl FailingDevice {
    fn kernel(failing: Failing, sound_batches: usize) -> DeviceKernel {
        Self::counting_loads(failing, sound_batches, Arc::default())
    }

    fn counting_loads(
        failing: Failing,
        sound_batches: usize,
        loads: Arc<AtomicUsize>,
    ) -> DeviceKernel {
        let device = Self {
            prefixes: Mirror::default(),
            mirror: SetMirror::default(),
            failing,
            sound_batches,
            loads,
            submissions: 0,
            seen: VecDeque::new(),
            stale_queue: None,
            stale_slots: Vec::new(),
        };
        let shape = Shape { lanes: 128, chunk: 64, ring: 1 << 13, prefixes: 100 };
        DeviceKernel::new(Box::new(device), shape, true)
    }

    /// Returns whether this fault is injected now.
    fn fails(&self, failing: Failing) -> bool {
        self.failing == failing && self.sound_batches == 0
    }
}

impl SetBackend for FailingDevice {
    fn open_sets(&mut self, columns: u32, shape: SetShape, families: &[u32]) -> Result<(), Fault> {
        if self.fails(Failing::OutOfMemory) {
            return Err(Fault::OutOfMemory("there is too little of it".into()));
        }
        self.mirror.open_sets(columns, shape, families)
    }

    fn load_sets(&mut self, items: &[SetItem]) -> Result<(), Fault> {
        self.sound_batches = self.sound_batches.saturating_sub(1);
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.submissions = 0;
        self.stale_queue = None;
        let mut items = items.to_vec();
        if self.fails(Failing::ZeroItems) {
            items.fill(SetItem::default());
        }
        if self.fails(Failing::RepeatedItem) {
            items[0] = items[items.len() - 1];
        }
        self.mirror.load_sets(&items)
    }

    fn submit_sets(&mut self, params: &SetParams) -> Result<(), Fault> {
        self.submissions += 1;
        assert!(!self.fails(Failing::Panics), "on purpose");
        if self.fails(Failing::DropsASubmission) && self.submissions == 2 {
            self.seen
                .push_back(*self.seen.back().or(self.stale_queue.as_ref()).expect("the first"));
            return Ok(());
        }
        self.mirror.submit_sets(params)?;
        self.seen.push_back(self.mirror.wait_sets()?);
        Ok(())
    }

    fn wait_sets(&mut self) -> Result<SetQueue, Fault> {
        if self.fails(Failing::Hangs) {
            return Err(Fault::Hung(Duration::from_secs(30)));
        }
        if self.fails(Failing::Lost) {
            return Err(Fault::Lost("it fell off the bus".into()));
        }
        let seen = self.seen.pop_front().expect("something was submitted");
        if self.fails(Failing::ZeroQueue) {
            return Ok(SetQueue::default());
        }
        let before = *self.stale_queue.get_or_insert(seen);
        Ok(if self.fails(Failing::StaleQueue) { before } else { seen })
    }

    fn set_slots(&mut self) -> Result<Vec<SetSlot>, Fault> {
        let mut slots = self.mirror.set_slots()?;
        let stale = std::mem::replace(&mut self.stale_slots, slots.clone());
        if self.sound_batches > 0 {
            return Ok(slots);
        }
        match self.failing {
            Failing::ZeroSlots => slots.fill(SetSlot::default()),
            Failing::StaleSlots => slots = stale,
            Failing::FewerSlots => drop(slots.pop()),
            Failing::FlipsABit => slots[0].hits[0] ^= 1 << 7,
            Failing::FlipsAShadowBit => slots[0].low[0] ^= 1,
            Failing::ExchangesSlots => {
                let last = slots.len() - 1;
                slots.swap(0, last);
            }
            _ => {}
        }
        Ok(slots)
    }
}

/// The device counts column sets only; a test of prefixes goes to the mirror.
impl Backend for FailingDevice {
    fn sets(&mut self) -> Option<&mut dyn SetBackend> {
        Some(self)
    }
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.prefixes.open(job)
    }
    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.prefixes.load(batch)
    }
    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        self.prefixes.submit(submission)
    }
    fn wait(&mut self) -> Result<Counters, Fault> {
        self.prefixes.wait()
    }
    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        self.prefixes.slots()
    }
    fn memory(&mut self) -> Result<Memory, Fault> {
        self.prefixes.memory()
    }
    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.prefixes.set_memory(memory)
    }
}

fn problem() -> Problem {
    Problem::empty(Piece::Queen, 10)
}

/// Counts column sets on these devices, on the CPU, or both. Returns the outcome and the notes.
fn count(devices: Vec<DeviceKernel>, with_cpu: bool) -> (CountOutcome, Vec<String>) {
    count_on(&problem(), Some(Subproblems::ColumnSets), devices, with_cpu)
}

#[test]
fn a_sound_device_counts_column_sets_alone() {
    let (outcome, notes) = count(vec![FailingDevice::kernel(Failing::No, 0)], false);
    assert_eq!((outcome.solutions, &outcome.kernel[..]), (724, "wgsl"));
    assert_eq!(outcome.devices, ["failing-0"]);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn a_device_that_fails_with_column_sets_is_disabled() {
    // From its self-test on; after it, in the first or in a later batch.
    let job = Job::new(problem(), Scheme::ColumnSets, None, 1).expect("a small board");
    let decomposition = Decomposition::new(job);
    let loads = Arc::default();
    let mut kernel = FailingDevice::counting_loads(Failing::No, 0, Arc::clone(&loads));
    drop(kernel.open(&decomposition).expect("a sound device"));
    let loads_of_the_self_test = loads.load(Ordering::Relaxed);
    assert!(loads_of_the_self_test > 3);
    // A CPU beside the device may count the batches that would have failed,
    // so only the last moment, which a count may not reach at all, has one.
    let moments =
        [(0, false), (loads_of_the_self_test + 1, false), (loads_of_the_self_test + 3, true)];
    for failing in ALL {
        for (sound_batches, with_cpu) in moments {
            if failing == Failing::OutOfMemory && sound_batches > 0 {
                continue;
            }
            let device = FailingDevice::kernel(failing, sound_batches);
            let (outcome, notes) = count(vec![device], with_cpu);
            let case = format!("{failing:?} after {sound_batches} batches, CPU: {with_cpu}");
            assert_eq!(outcome.solutions, 724, "{case}");
            if !with_cpu {
                let disabled = |note: &String| note.contains("failing-0 is disabled");
                assert!(notes.iter().any(disabled), "{case}: {notes:?}");
                assert!(outcome.devices.contains(&"cpu".to_owned()), "{case}");
            }
        }
    }
}

#[test]
fn a_sound_device_takes_over_the_column_sets_of_a_failed_one() {
    for failing in [Failing::Lost, Failing::ZeroSlots, Failing::FlipsABit] {
        let devices =
            vec![FailingDevice::kernel(failing, 0), FailingDevice::kernel(Failing::No, 0)];
        let (outcome, _) = count(devices, false);
        assert_eq!(outcome.solutions, 724, "{failing:?}");
        assert_eq!(outcome.devices, ["failing-1"], "{failing:?}");
    }
}
