//! The backend interface of column sets: implemented by wgpu, by the mirror, and by those of tests.

use super::layout::{FRAMES, ITEM, NONE, ROW, SetItem, SetParams, SetQueue, SetSlot};
use crate::kernel::gpu::fault::Fault;

/// The amount of work that a device does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetShape {
    /// The number of workgroups.
    pub groups: u32,
    /// The number of states that each of them has room for: on devices a power of two.
    pub capacity: u32,
    /// The iterations of a lane after which the listing of a set is given up.
    pub list_iterations: u32,
}

impl SetShape {
    /// For GPUs. Not measured on hardware yet: six workgroups, for which there is workgroup memory,
    /// on each multiprocessor of a large card (132), with lists of 3.1 GiB in all.
    pub(in crate::kernel::gpu) const DEFAULT: Self =
        Self { groups: 792, capacity: 1 << 19, list_iterations: u32::MAX };
    /// For software drivers. llvmpipe ends the loops of a lane after 65,535 iterations in all, and
    /// then the workgroup, whose other lanes are lost. It implements early returns of functions as
    /// loops, too, so that an iteration counts up to five times. A step is not interrupted, so
    /// the limits of the work and of a list are a third of that together.
    pub(in crate::kernel::gpu) const SOFTWARE: Self =
        Self { groups: 16, capacity: 1 << 12, list_iterations: 6 << 10 };
    /// The least useful room of a workgroup, in states.
    const FEWEST_STATES: u32 = 1 << 10;
    /// The largest room: a lane counts at most 2^18 of these states in a step, with at most 10,240
    /// completions each, so that its count fits into 32 bits.
    const MOST_STATES: u32 = 1 << 20;

    /// Returns this shape, or a smaller one whose lists have at most `most_bytes`.
    ///
    /// # Errors
    /// Even a small shape does not fit.
    pub(super) fn fit(mut self, most_bytes: u64) -> Result<Self, Fault> {
        self.capacity = self.capacity.min(Self::MOST_STATES);
        while u64::from(self.groups) * u64::from(self.capacity) * 8 > most_bytes {
            self = self.halved().ok_or_else(|| {
                Fault::OutOfMemory(format!("{most_bytes} bytes in a buffer are too few"))
            })?;
        }
        Ok(self)
    }

    /// Returns the shape with half the states, or `None` if that is too small.
    pub(super) fn halved(self) -> Option<Self> {
        let Self { groups, capacity, .. } = self;
        if capacity > Self::FEWEST_STATES {
            return Some(Self { capacity: capacity / 2, ..self });
        }
        (groups > 1).then_some(Self { groups: groups / 2, ..self })
    }
}

/// Returns the pending work of `groups` workgroups at the start: none.
pub(in crate::kernel::gpu) fn empty_frames(groups: u32) -> Vec<u32> {
    let mut frames = vec![0; groups as usize * FRAMES];
    for of_group in frames.chunks_exact_mut(FRAMES) {
        of_group[ROW] = NONE;
        of_group[ITEM] = NONE;
    }
    frames
}

/// A device that counts column sets. It is not used again after a fault.
pub trait SetBackend {
    /// Allocates memory for a job with these families, and compiles what it needs.
    ///
    /// # Errors
    /// The device fails, or its memory is too small.
    fn open_sets(&mut self, shape: SetShape, families: &[u32]) -> Result<(), Fault>;

    /// Loads a batch of sets, with empty slots.
    ///
    /// # Errors
    /// The device fails.
    fn load_sets(&mut self, items: &[SetItem]) -> Result<(), Fault>;

    /// Queues a submission.
    ///
    /// # Errors
    /// The device fails.
    fn submit_sets(&mut self, params: &SetParams) -> Result<(), Fault>;

    /// Waits for the oldest submission that has not been waited for, and returns the state of the
    /// batch after it.
    ///
    /// # Errors
    /// The device fails or does not answer.
    fn wait_sets(&mut self) -> Result<SetQueue, Fault>;

    /// Returns the slots after all submissions.
    ///
    /// # Errors
    /// The device fails or does not answer.
    fn set_slots(&mut self) -> Result<Vec<SetSlot>, Fault>;
}
