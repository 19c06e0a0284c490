//! Counts ranges of column sets on a device: divides them into batches, keeps the device busy, and
//! checks its accounting.
//!
//! A batch whose accounting does not balance is a [`Fault`] and never a count. The checks are that
//! every submission ran in all workgroups; that every set was read as it was written, and finished
//! once; that every list and program was read as it was written; and that the sums agree with the
//! sums of the two halves of what was added. Some sets are counted again by the CPU. A set that
//! does not fit is divided by its first queens; in the end the CPU counts it.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::backend::{SetBackend, SetShape};
use super::families;
use super::layout::{FAMILY, LISTED, SetParams, SetQueue, SetSlot, mark_of_set};
use crate::board::Piece;
use crate::decomposition::{ColumnSet, Decomposition, SetFamily, columns_of};
use crate::kernel::gpu::fault::Fault;
use crate::kernel::sets::is_sampled;
use crate::kernel::{Kernel, KernelKind};
use crate::tally::{Parts, Residues, Tally, TallyError};

/// The most sets of a batch.
const MOST_SETS: usize = 1 << 14;
/// One set of this power of two is counted again by the CPU.
const SAMPLED_BITS: u32 = 12;

/// The work of a submission: about so many iterations of loops in each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel::gpu) struct SetTuning {
    budget: u32,
    most: u32,
}

impl SetTuning {
    /// The duration of a submission that is aimed at.
    const AIM: Duration = Duration::from_millis(60);
    const LEAST: u32 = 1 << 10;

    /// Returns the tuning at the start. Software drivers bound the iterations of loops.
    pub(in crate::kernel::gpu) const fn first(software: bool) -> Self {
        // Counting by planes spends at least 2^10, so that a submission adds fewer than 2^16
        // numbers to a sum of 16 bits.
        Self { budget: 1 << 12, most: if software { 1 << 12 } else { 1 << 22 } }
    }

    /// Sets the work of all submissions, for tests.
    #[cfg(test)]
    pub(super) const fn fixed(budget: u32) -> Self {
        Self { budget, most: budget }
    }

    fn observe(&mut self, elapsed: Duration) {
        if elapsed < Self::AIM / 2 {
            self.budget = self.budget.saturating_mul(2).min(self.most);
        } else if elapsed > 2 * Self::AIM {
            self.budget = (self.budget / 2).max(Self::LEAST.min(self.most));
        }
    }
}

/// A set to be counted: the index of its range, its family and the family's number.
#[derive(Clone, Copy)]
struct Pending<'a> {
    range: usize,
    number: usize,
    family: &'a SetFamily,
    set: ColumnSet,
}

/// A job of column sets opened on a device.
#[derive(Debug)]
pub(in crate::kernel::gpu) struct SetCounts {
    n: u32,
    shape: SetShape,
    /// The words of all families.
    families: Vec<u32>,
    stamp: u32,
}

/// A device at work.
struct Running<'a> {
    backend: &'a mut dyn SetBackend,
    in_flight: VecDeque<u32>,
    /// The submissions of this batch.
    submitted: u32,
    /// The workgroups that have ended without a set in them.
    idle: u32,
}

impl SetCounts {
    /// Returns whether the shader counts any set of a job.
    pub(in crate::kernel::gpu) fn suits(decomposition: &Decomposition) -> bool {
        decomposition.set_families().iter().any(families::suits)
    }

    /// Prepares the device for a job, with the shader for boards of at most `columns` columns.
    ///
    /// # Errors
    /// The device fails, its memory is too small, or the shader counts no set of the job.
    pub(in crate::kernel::gpu) fn open(
        backend: &mut dyn SetBackend,
        columns: u32,
        shape: SetShape,
        most_bytes: u64,
        decomposition: &Decomposition,
    ) -> Result<Self, Fault> {
        let n = decomposition.job().problem().n() as u32;
        if !Self::suits(decomposition) || n > columns {
            return Err(Fault::Unsuited);
        }
        let families = decomposition.set_families();
        let words: Vec<u32> = families
            .iter()
            .flat_map(
                |family| {
                    if families::suits(family) { families::words(family) } else { [0; _] }
                },
            )
            .collect();
        let mut shape = shape.fit(most_bytes)?;
        while let Err(fault) = backend.open_sets(columns, shape, &words) {
            // Other programs may use the device's memory too.
            shape = match fault {
                Fault::OutOfMemory(_) => shape.halved().ok_or(fault)?,
                _ => return Err(fault),
            };
        }
        Ok(Self { n, shape, families: words, stamp: 0 })
    }

    /// Counts ranges of sets, itemised by weight, in the order of `ranges`.
    ///
    /// # Errors
    /// The device fails; nothing that it counted in this call is valid then. Or `should_continue`
    /// returned false.
    pub(in crate::kernel::gpu) fn count_ranges(
        &mut self,
        backend: &mut dyn SetBackend,
        tuning: &mut SetTuning,
        decomposition: &Decomposition,
        ranges: Vec<Range<u64>>,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        let mut results = vec![Parts::default(); ranges.len()];
        let mut cpu = None;
        let families = decomposition.set_families();
        let mut pending: Vec<Pending<'_>> = Vec::new();
        for (index, range) in ranges.into_iter().enumerate() {
            for (family, set) in decomposition.sets(range) {
                if !families::suits(family) {
                    count_on_cpu(&mut cpu, family, &set, &mut results[index])?;
                    continue;
                }
                let number = families.iter().position(|known| std::ptr::eq(known, family));
                let number = number.unwrap_or_default();
                pending.push(Pending { range: index, number, family, set });
                if pending.len() == MOST_SETS {
                    let batch = std::mem::take(&mut pending);
                    self.run(backend, tuning, batch, &mut cpu, &mut results, should_continue)?;
                }
            }
        }
        self.run(backend, tuning, pending, &mut cpu, &mut results, should_continue)?;
        Ok(results)
    }

    /// Counts a batch, and again the parts of those sets that do not fit, and adds the counts to
    /// the results of their ranges.
    fn run(
        &mut self,
        backend: &mut dyn SetBackend,
        tuning: &mut SetTuning,
        mut batch: Vec<Pending<'_>>,
        cpu: &mut Option<Box<dyn Kernel>>,
        results: &mut [Parts],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        while !batch.is_empty() {
            let rest = batch.split_off(batch.len().min(MOST_SETS));
            let slots = self.count(backend, tuning, &batch, should_continue)?;
            let mut next = rest;
            for (pending, slot) in batch.iter().zip(&slots) {
                let Pending { range, family, set, .. } = *pending;
                if slot.overflows > 0 {
                    match parts(&set, slot.listed, self.shape.capacity) {
                        Some(parts) => {
                            next.extend(parts.into_iter().map(|set| Pending { set, ..*pending }));
                        }
                        None => count_on_cpu(cpu, family, &set, &mut results[range])?,
                    }
                    continue;
                }
                let (hits, nodes) = enter(slot, &set, &mut results[range])?;
                if is_sampled(&set, SAMPLED_BITS) {
                    let mut again = Parts::default();
                    count_on_cpu(cpu, family, &set, &mut again)?;
                    let second = again.total()?.thirds() / u128::from(set.weight);
                    if second != u128::from(hits) {
                        let first = hits.into();
                        return Err(TallyError::CountedTwice { first, second }.into());
                    }
                }
                debug_assert!(hits == 0 || nodes > 0);
            }
            batch = next;
        }
        Ok(())
    }

    /// Counts a batch and returns its slots, whose accounting balances.
    fn count(
        &mut self,
        backend: &mut dyn SetBackend,
        tuning: &mut SetTuning,
        batch: &[Pending<'_>],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<SetSlot>, Fault> {
        /// While the host looks at the result of a submission, the device works on the next.
        const IN_FLIGHT: usize = 2;
        let wrong = |what: String| Err(Fault::Miscounts(what));
        let items: Vec<_> =
            batch.iter().map(|p| families::item(p.number, p.family, &p.set)).collect();
        backend.load_sets(&items)?;
        let mut running = Running { backend, in_flight: VecDeque::new(), submitted: 0, idle: 0 };
        let mut began = Instant::now();
        loop {
            if !should_continue() {
                // The device may be used again later.
                while !running.in_flight.is_empty() {
                    self.wait(&mut running)?;
                }
                return Err(Fault::Stopped);
            }
            while running.in_flight.len() < IN_FLIGHT {
                self.submit(&mut running, tuning.budget, batch.len())?;
            }
            let queue = self.wait(&mut running)?;
            tuning.observe(began.elapsed());
            began = Instant::now();
            if queue.finished as usize >= batch.len() {
                break;
            }
            let idle = queue.idle.wrapping_sub(running.idle);
            if idle >= self.shape.groups && queue.next as usize >= batch.len() {
                let lost = batch.len() - queue.finished as usize;
                return wrong(format!("{lost} sets were lost"));
            }
            running.idle = queue.idle;
        }
        let mut queue = SetQueue::default();
        while !running.in_flight.is_empty() {
            // They find nothing to do.
            queue = self.wait(&mut running)?;
        }
        if queue.finished as usize != batch.len() {
            return wrong(format!("{} of {} sets were finished", queue.finished, batch.len()));
        }
        let slots = running.backend.set_slots()?;
        if slots.len() != batch.len() {
            return wrong(format!("{} of {} slots came back", slots.len(), batch.len()));
        }
        if let Some(slot) = slots.iter().find(|slot| slot.finished != 1) {
            return wrong(format!("a set was finished {} times", slot.finished));
        }
        for (number, (slot, item)) in (0..).zip(slots.iter().zip(&items)) {
            let family = &self.families[item.family as usize * FAMILY..][..FAMILY];
            if slot.set_mark != mark_of_set(number, item, family) {
                return wrong(format!("set {number} of a batch was read as another set"));
            }
        }
        if slots.iter().any(|slot| slot.damaged > 0) {
            return wrong("lists in memory were damaged".into());
        }
        Ok(slots)
    }

    fn submit(&mut self, running: &mut Running<'_>, budget: u32, sets: usize) -> Result<(), Fault> {
        self.stamp = self.stamp.wrapping_add(1);
        running.backend.submit_sets(&SetParams {
            n: self.n,
            items: sets as u32,
            capacity: self.shape.capacity,
            budget,
            stamp: self.stamp,
            list_iterations: self.shape.list_iterations,
        })?;
        running.in_flight.push_back(self.stamp);
        Ok(())
    }

    fn wait(&mut self, running: &mut Running<'_>) -> Result<SetQueue, Fault> {
        let queue = running.backend.wait_sets()?;
        let expected = running.in_flight.pop_front().unwrap_or_default();
        running.submitted = running.submitted.wrapping_add(1);
        let wrong = |what: String| Err(Fault::Miscounts(what));
        if queue.stamp != expected {
            return wrong(format!("submission {expected} came back as {}", queue.stamp));
        }
        if queue.ran != running.submitted.wrapping_mul(self.shape.groups) {
            return wrong(format!(
                "{} workgroups ran in {} submissions",
                queue.ran, running.submitted
            ));
        }
        if queue.damaged > 0 {
            return wrong("pending work in memory was damaged".into());
        }
        Ok(queue)
    }
}

/// Returns the parts of a set of which `listed` states were listed: they divide the columns of a
/// first lower queen among them, into as few parts as may fit. Returns `None` if there is one
/// column each.
fn parts(set: &ColumnSet, listed: u32, capacity: u32) -> Option<Vec<ColumnSet>> {
    let row = set.first_rows.iter().position(|columns| columns.count_ones() > 1)?;
    let columns: Vec<usize> = columns_of(set.first_rows[row]).collect();
    // Lists behind the first one take about three quarters of its room. If the listing was ended,
    // it is not known how many states there are: many, if it was too long for the room, and
    // otherwise half of them may take a lane less time.
    let room = u64::from(capacity);
    let wanted = match u64::from(listed) {
        listed if listed > room * u64::from(LISTED) => columns.len(),
        listed => (listed * 7 / 4).div_ceil(room) as usize,
    };
    let each = columns.len().div_ceil(wanted.clamp(2, columns.len()));
    let part = |columns: &[usize]| {
        let mut part = *set;
        part.first_rows[row] = columns.iter().fold(0, |mask, column| mask | 1 << column);
        part
    };
    Some(columns.chunks(each).map(part).collect())
}

/// Adds a slot's count to a range's result. Returns the count and the number of states.
fn enter(slot: &SetSlot, set: &ColumnSet, parts: &mut Parts) -> Result<(u64, u64), Fault> {
    let [hits, low, high, states] = [slot.hits, slot.low, slot.high, slot.states]
        .map(|[low, high]| u64::from(high) << 32 | u64::from(low));
    let shadow = Residues::of(u128::from(low) + (u128::from(high) << 16));
    let nodes = u64::from(slot.listed) + states;
    // Verified here, and not only in the sum, because two errors in one range could cancel out.
    Tally::from_parts(hits.into(), shadow, nodes.into()).verify()?;
    parts.add(set.weight, hits, shadow, nodes)?;
    Ok((hits, nodes))
}

/// Counts a set on the calling thread, by a kernel that shares nothing with the shader.
fn count_on_cpu(
    kernel: &mut Option<Box<dyn Kernel>>,
    family: &SetFamily,
    set: &ColumnSet,
    parts: &mut Parts,
) -> Result<(), Fault> {
    let kernel = match kernel {
        Some(kernel) => kernel,
        None => {
            let built = KernelKind::fastest(Piece::Queen).build(Piece::Queen);
            kernel.insert(built.map_err(|error| Fault::Refused(error.to_string()))?)
        }
    };
    Ok(kernel.count_set(family, set, parts)?)
}
