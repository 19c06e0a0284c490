//! Counts units on a device: divides them into batches, keeps the device busy, and checks its
//! accounting.
//!
//! **The path of a batch.** The prefixes of some units are written to level 0, each labelled with a
//! *slot*, one for every unit (or sub-range of one) and weight. All prefixes of a batch need the
//! same variant of the search. Submissions of several rounds follow, two or three in flight, until
//! nothing is left; then the lanes flush, and the slots become tallies.
//!
//! A batch whose accounting does not balance is a [`Fault`] and never a count; `accounting.rs`
//! lists the checks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::accounting::{audit, drained, enter};
use super::backend::{Backend, JobMemory, Shape, Submission};
use super::batch_builder::{BatchBuilder, pieces};
use super::device_job::{DeviceJob, SetJob, SetSettings, Work};
use super::fault::Fault;
use super::layout::{Counters, Params};
use super::tables::{Specialisation, Tables, Variant};
use super::tuning::{Observation, Tuning};
use crate::decomposition::Decomposition;
use crate::tally::Parts;

/// A kernel that counts on a device.
pub struct DeviceKernel {
    pub(super) backend: Box<dyn Backend>,
    shape: Shape,
    tuning: Tuning,
    look_ahead: bool,
    /// True if the tuning adapts to observed submissions.
    tuned: bool,
    /// The number of submissions kept in flight.
    in_flight: usize,
    pub(super) sets: SetSettings,
}

impl std::fmt::Debug for DeviceKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceKernel")
            .field("shape", &self.shape)
            .field("tuning", &self.tuning)
            .finish()
    }
}

impl DeviceKernel {
    /// The default number of submissions in flight: while the host examines the result of one, the
    /// device works on the next.
    pub const IN_FLIGHT: usize = 2;

    /// Creates a kernel on `backend`, with batches of the given `shape`. On software drivers
    /// searches stay below their limit of loop iterations.
    pub fn new(backend: Box<dyn Backend>, shape: Shape, software: bool) -> Self {
        Self {
            backend,
            shape,
            tuning: Tuning::first(software),
            look_ahead: true,
            tuned: true,
            in_flight: Self::IN_FLIGHT,
            sets: SetSettings::new(software),
        }
    }

    /// Sets whether children must have an open square in the row after the next (the default); for
    /// measurements.
    pub fn set_look_ahead(&mut self, look_ahead: bool) {
        self.look_ahead = look_ahead;
    }

    /// Sets the number of submissions in flight, at least 1: 1 for backends that do not queue,
    /// others for measurements.
    pub fn set_in_flight(&mut self, in_flight: usize) {
        self.in_flight = in_flight.max(1);
    }

    /// Returns the shape. A job whose buffers would be too large gets a smaller shape.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Sets the shape of jobs opened from now on; for measurements.
    pub const fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    /// Runs `act` in another shape and with the longest possible searches; for self-tests.
    pub(super) fn with_longest_searches<T>(
        &mut self,
        shape: Shape,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = (self.shape, self.tuning, self.tuned);
        (self.shape, self.tuning, self.tuned) = (shape, self.tuning.longest(), false);
        let outcome = act(self);
        (self.shape, self.tuning, self.tuned) = before;
        outcome
    }

    /// Returns the current tuning.
    pub const fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// Sets the tuning to these amounts, or the nearest valid ones; for measurements.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning = tuning.allowed();
    }

    /// Sets whether the tuning stays fixed whatever is observed; for measurements.
    pub const fn freeze_tuning(&mut self, frozen: bool) {
        self.tuned = !frozen;
    }

    /// Prepares the device for a job.
    ///
    /// # Errors
    /// The device fails, its memory is too small, or the shaders count no part of the job.
    pub fn open<'a>(
        &'a mut self,
        decomposition: &'a Decomposition,
    ) -> Result<DeviceJob<'a>, Fault> {
        Ok(DeviceJob::new(if decomposition.has_sets() {
            Work::Sets(SetJob::open(self, decomposition)?)
        } else {
            Work::Prefixes(Box::new(self.open_prefixes(decomposition)?))
        }))
    }

    fn open_prefixes<'a>(
        &'a mut self,
        decomposition: &'a Decomposition,
    ) -> Result<PrefixJob<'a>, Fault> {
        let tables = Tables::new(decomposition);
        let most_bytes = self.backend.most_bytes();
        let mut shape = self.shape.fit(&tables, most_bytes)?;
        let (lower_rows, upper_rows) = (&tables.lower_rows[..], &tables.upper_rows[..]);
        let depth = tables.depth();
        let level_first = loop {
            let (level_first, levels) = tables.levels(shape.prefixes, shape.chunk);
            let job = JobMemory { shape, levels, lower_rows, upper_rows, depth };
            match self.backend.open(&job) {
                // Other programs may use the device's memory too; try a smaller shape.
                Err(fault @ Fault::OutOfMemory(_)) => {
                    shape = shape.halved().ok_or(fault)?.fit(&tables, most_bytes)?;
                }
                outcome => {
                    outcome?;
                    break level_first;
                }
            }
        };
        let counters = Counters { level_first, ..Counters::default() };
        Ok(PrefixJob {
            kernel: self,
            decomposition,
            tables: Arc::new(tables),
            shape,
            counters,
            stamp: 0,
        })
    }
}

/// A job of prefixes opened on a device.
#[derive(Debug)]
pub(super) struct PrefixJob<'a> {
    kernel: &'a mut DeviceKernel,
    pub(super) decomposition: &'a Decomposition,
    tables: Arc<Tables>,
    shape: Shape,
    /// The counters at the start of a batch.
    counters: Counters,
    stamp: u32,
}

/// A submission in flight.
struct InFlight {
    stamp: u32,
    rounds: u32,
    expansions: u32,
}

impl PrefixJob<'_> {
    /// Returns the shape of this job: the kernel's shape, or a smaller one that fits.
    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns whether the shaders count any part of this job. Prefixes of symmetry cases that the
    /// shaders do not support are counted by the scalar kernel on the calling thread.
    pub(super) fn suits(&self) -> bool {
        self.tables.suits()
    }

    /// Counts ranges of prefixes, for example sub-ranges, itemised by weight, in the order of
    /// `ranges`.
    ///
    /// # Errors
    /// The device fails, or `should_continue` returned false.
    pub(super) fn count_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        let mut results = vec![Parts::default(); ranges.len()];
        let tables = Arc::clone(&self.tables);
        let most_prefixes = u64::from(self.shape.prefixes);
        let decomposition = self.decomposition;
        for variant in Variant::ALL {
            let mut pieces =
                pieces(decomposition, &tables, &ranges, variant, most_prefixes).peekable();
            while pieces.peek().is_some() {
                let mut builder = BatchBuilder::new(decomposition, &tables, self.counters);
                while let Some((index, range)) =
                    pieces.next_if(|(_, range)| builder.has_room(range, most_prefixes))
                {
                    builder.add(index, range, &mut results[index])?;
                }
                self.run(&builder, variant, &mut results, should_continue)?;
            }
        }
        Ok(results)
    }

    /// Runs a batch and adds the content of its slots to the results of their ranges.
    fn run(
        &mut self,
        builder: &BatchBuilder<'_>,
        variant: Variant,
        results: &mut [Parts],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let batch = &builder.batch;
        if batch.prefixes.is_empty() {
            return Ok(());
        }
        self.kernel.backend.load(batch)?;
        let special = Specialisation {
            depth: self.tables.depth(),
            variant,
            look_ahead: self.kernel.look_ahead,
        };
        // Before the clock of the first submission starts: the tuning would take the time of the
        // compiler for slowness of the device.
        self.kernel.backend.compile(special)?;
        let mut in_flight: VecDeque<InFlight> = VecDeque::new();
        let (mut searches, mut used) = (0u32, 0);
        let mut began = Instant::now();
        let last = loop {
            if !should_continue() {
                // The device may be used again later: the submissions in flight must complete
                // first.
                for submission in in_flight {
                    self.wait(&submission, &mut searches)?;
                }
                return Err(Fault::Stopped);
            }
            while in_flight.len() < self.kernel.in_flight {
                in_flight.push_back(self.submit(special, false)?);
            }
            let Some(submission) = in_flight.pop_front() else { continue };
            let counters = self.wait(&submission, &mut searches)?;
            let elapsed = began.elapsed();
            began = Instant::now();
            if drained(&counters) {
                break counters;
            }
            let (rounds, expansions) =
                (submission.rounds, submission.rounds * submission.expansions);
            let lanes = self.shape.lanes;
            let used_now = counters.expansions.wrapping_sub(used);
            used = counters.expansions;
            let observation =
                Observation { elapsed, rounds, expansions, used: used_now, lanes, counters };
            if self.kernel.tuned {
                self.kernel.tuning.observe(&observation);
            }
        };
        // The submissions in flight find nothing to do.
        in_flight.push_back(self.submit(special, true)?);
        let mut end = last;
        for submission in in_flight {
            end = self.wait(&submission, &mut searches)?;
        }
        if !drained(&end) {
            return Err(Fault::Miscounts("work came back after all was done".into()));
        }
        let slots = self.kernel.backend.slots()?;
        audit((batch.prefixes.len(), batch.slots), &end, &slots)?;
        for (slot, &(range, weight)) in slots.iter().zip(&builder.slots) {
            enter(slot, weight, &mut results[range])?;
        }
        Ok(())
    }

    fn submit(&mut self, special: Specialisation, flush: bool) -> Result<InFlight, Fault> {
        let DeviceKernel { backend, tuning, .. } = &mut *self.kernel;
        let shape = self.shape;
        self.stamp = self.stamp.wrapping_add(1);
        let (rounds, expansions) = if flush { (1, 1) } else { (tuning.rounds, tuning.expansions) };
        let params = Params {
            stamp: self.stamp,
            turns: tuning.turns,
            chunk: shape.chunk,
            ring_mask: shape.ring - 1,
            ring_reserve: shape.ring_reserve(),
            most_emitted: self.tables.most_emitted(),
            flush: flush.into(),
            lanes: shape.lanes,
        };
        backend.submit(&Submission { params, rounds, expansions, special })?;
        Ok(InFlight { stamp: self.stamp, rounds, expansions })
    }

    fn wait(&mut self, submission: &InFlight, searches: &mut u32) -> Result<Counters, Fault> {
        let counters = self.kernel.backend.wait()?;
        if counters.stamp != submission.stamp {
            let (found, expected) = (counters.stamp, submission.stamp);
            return Err(Fault::Miscounts(format!("submission {expected} came back as {found}")));
        }
        *searches = searches.wrapping_add(submission.rounds);
        if counters.searches != *searches {
            let ran = counters.searches;
            return Err(Fault::Miscounts(format!(
                "{ran} searches ran, where {searches} were requested"
            )));
        }
        Ok(counters)
    }
}

#[cfg(test)]
mod tests;
