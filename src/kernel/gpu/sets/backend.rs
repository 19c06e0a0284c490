//! The backend interface of column sets: implemented by wgpu, by the mirror, and by those of tests.

use super::layout::{FRAMES, ITEM, NONE, ROW, SetItem, SetParams, SetQueue, SetSlot};
use crate::kernel::gpu::fault::Fault;

/// The amount of work that a device does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetShape {
    /// The number of workgroups.
    pub groups: u32,
    /// The number of states that each of them has room for: on devices a multiple of 512.
    pub capacity: u32,
    /// The iterations of a lane after which the listing of a set is given up.
    pub list_iterations: u32,
}

impl SetShape {
    /// For GPUs. Not measured on hardware yet: six workgroups, for which there is workgroup memory,
    /// on each multiprocessor of a large card (132), with lists of 3.9 GiB in all: a binding has
    /// less than 4 GiB.
    pub(in crate::kernel::gpu) const DEFAULT: Self =
        Self { groups: 792, capacity: 5 << 17, list_iterations: u32::MAX };
    /// For software drivers. llvmpipe ends the loops of a lane after 65,535 iterations in all, and
    /// then the workgroup, whose other lanes are lost. It implements early returns of functions as
    /// loops, too, so that an iteration counts up to five times. A step is not interrupted, so
    /// the limits of the work and of a list are a third of that together.
    pub(in crate::kernel::gpu) const SOFTWARE: Self =
        Self { groups: 16, capacity: 1 << 12, list_iterations: 6 << 10 };
    /// The least useful room of a workgroup, in states; larger ones are made multiples of it.
    const FEWEST_STATES: u32 = 1 << 10;
    /// The largest room: a lane counts at most 2^18 of these states in a step, with at most 10,240
    /// completions each, so that its count fits into 32 bits.
    const MOST_STATES: u32 = 1 << 20;

    /// Returns this shape, or a smaller one whose lists have at most `most_bytes`: with as many
    /// workgroups as have a useful room.
    ///
    /// # Errors
    /// Even a small shape does not fit.
    pub(super) fn fit(self, most_bytes: u64) -> Result<Self, Fault> {
        let mut shape = Self { capacity: self.capacity.min(Self::MOST_STATES), ..self };
        while shape.groups > 0 {
            let room = most_bytes / 8 / u64::from(shape.groups);
            if u64::from(shape.capacity) <= room {
                return Ok(shape);
            }
            if room >= Self::FEWEST_STATES.into() {
                // Less than the capacity.
                let room = room as u32;
                return Ok(Self { capacity: room - room % Self::FEWEST_STATES, ..shape });
            }
            shape.groups /= 2;
        }
        Err(Fault::OutOfMemory(format!("{most_bytes} bytes in a buffer are too few")))
    }

    /// Returns the shape with about half the states, or `None` if that is too small.
    pub(super) fn halved(self) -> Option<Self> {
        let Self { groups, capacity, .. } = self;
        if capacity > Self::FEWEST_STATES {
            let capacity = (capacity / 2).next_multiple_of(Self::FEWEST_STATES);
            return Some(Self { capacity, ..self });
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
    /// Allocates memory for a job with these families. Compiles the shader for boards of at most
    /// `columns` columns, 20, 24 or 28, unless it is compiled for this number already.
    ///
    /// # Errors
    /// The device fails, or its memory is too small.
    fn open_sets(&mut self, columns: u32, shape: SetShape, families: &[u32]) -> Result<(), Fault>;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_fits_into_a_buffer_in_whole_parts() {
        const STATE: u64 = 8;
        let shape = SetShape { groups: 100, capacity: 5 << 17, list_iterations: 1 };
        let fit = |states: u64| shape.fit(states * STATE).map(|fit| (fit.groups, fit.capacity));
        assert_eq!(fit(100 * (5 << 17)).ok(), Some((100, 5 << 17)));
        assert_eq!(fit(100 * (5 << 17) - 1).ok(), Some((100, (5 << 17) - 1024)));
        assert_eq!(fit(100 * 2048).ok(), Some((100, 2048)));
        assert_eq!(fit(100 * 1024 - 1).ok(), Some((50, 2048 - 1024)));
        assert_eq!(fit(1024).ok(), Some((1, 1024)));
        assert!(fit(1023).is_err());
        assert_eq!(SetShape::DEFAULT.fit(u32::MAX.into()).ok(), Some(SetShape::DEFAULT));
    }

    #[test]
    fn a_shape_is_halved_in_whole_parts_down_to_a_small_one() {
        let mut shape = SetShape::DEFAULT;
        let mut states = u64::MAX;
        while let Some(smaller) = shape.halved() {
            let fewer = u64::from(smaller.groups) * u64::from(smaller.capacity);
            assert!(fewer < states && smaller.capacity % 1024 == 0, "{smaller:?}");
            (shape, states) = (smaller, fewer);
        }
        assert_eq!((shape.groups, shape.capacity), (1, 1024));
    }
}
