//! Counts units on a device: divides them into batches, keeps the device busy, and checks its
//! accounting.
//!
//! **The path of a batch.** The prefixes of some units are written to level 0, each labelled with a
//! *slot*, one for every unit (or sub-range of one) and weight. Submissions of several rounds
//! follow, two or three in flight, until nothing is left; then the lanes flush, and the slots
//! become tallies.
//!
//! **The accounting.** A batch is accepted only if
//! 1. each submission's stamp came back in order, and the number of searches that ran is the number
//!    requested,
//! 2. every state put on a level was expanded, and read back as it was written (sums of checksums
//!    agree),
//! 3. every state emitted to the ring was finished by a lane, and read back as it was written,
//! 4. every parked lane was found unchanged, with its stack,
//! 5. the hits agree with the shadow (turns minus misses, summed separately) as residues, and no
//!    slot has more hits than turns,
//! 6. the tables of rows are in the device's memory as they were written (see `device.rs`).
//!
//! So memory that comes back as zeros or stale, or a dropped dispatch, is a [`Fault`] and never a
//! count. These checks cannot detect wrong arithmetic on sound memory; self-tests and recounts
//! cover that.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::backend::{Backend, Batch, JobMemory, Order, Seen, Shape};
use super::fault::Fault;
use super::layout::{Control, Params, Segment, Slot};
use super::tables::{Specialisation, Tables, lower_state};
use super::tuning::{Observed, Tuning};
use crate::decomposition::{Decomposition, Prefix, SymmetryCase};
use crate::kernel::Kernel;
use crate::kernel::scalar::Scalar;
use crate::tally::{Parts, Residues, Tally, Thirds};

/// The maximum number of slots of a batch: a label has 16 bits for them.
const MOST_SLOTS: usize = 1 << 16;

/// A kernel that counts on a device.
pub struct DeviceKernel {
    backend: Box<dyn Backend>,
    shape: Shape,
    tuning: Tuning,
    look_ahead: bool,
    /// Whether the tuning adapts to observed submissions.
    tuned: bool,
    /// The number of submissions kept in flight.
    in_flight: usize,
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
    /// The device fails, or its memory is too small.
    pub fn open<'a>(
        &'a mut self,
        decomposition: &'a Decomposition,
    ) -> Result<DeviceJob<'a>, Fault> {
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
        let control = Control { level_first, ..Control::default() };
        Ok(DeviceJob {
            kernel: self,
            decomposition,
            tables: Arc::new(tables),
            shape,
            control,
            stamp: 0,
        })
    }
}

/// A job opened on a device.
#[derive(Debug)]
pub struct DeviceJob<'a> {
    kernel: &'a mut DeviceKernel,
    decomposition: &'a Decomposition,
    tables: Arc<Tables>,
    shape: Shape,
    /// The counters at the start of a batch.
    control: Control,
    stamp: u32,
}

/// A submission in flight.
struct InFlight {
    stamp: u32,
    rounds: u32,
    expansions: u32,
}

impl DeviceJob<'_> {
    /// Returns the shape of this job: the kernel's shape, or a smaller one that fits.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns whether the shaders count any part of this job. Prefixes of symmetry cases that the
    /// shaders do not support are counted by the scalar kernel on the calling thread.
    pub fn suits(&self) -> bool {
        self.tables.suits()
    }

    /// Counts units and returns one tally for each, in the order of `units`. Stops with
    /// [`Fault::Stopped`] soon after `go_on` returns false.
    ///
    /// # Errors
    /// The device fails; nothing that it counted in this call is valid then.
    pub fn count(&mut self, units: &[u64], go_on: &dyn Fn() -> bool) -> Result<Vec<Tally>, Fault> {
        self.count_parts(units, go_on)?.iter().map(|parts| Ok(parts.total()?)).collect()
    }

    /// Like [`Self::count`], itemised by weight.
    ///
    /// # Errors
    /// As for [`Self::count`].
    pub fn count_parts(
        &mut self,
        units: &[u64],
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        let ranges = units.iter().map(|&unit| self.decomposition.unit(unit)).collect();
        self.count_ranges(ranges, go_on)
    }

    /// Like [`Self::count_parts`], for each [sub-range](Decomposition::sub_ranges) of each unit.
    ///
    /// # Errors
    /// As for [`Self::count`].
    pub fn count_sub_ranges(
        &mut self,
        units: &[u64],
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<Parts>>, Fault> {
        let decomposition = self.decomposition;
        let sub_ranges = || units.iter().map(|&unit| decomposition.sub_ranges(unit));
        let mut parts = self.count_ranges(sub_ranges().flatten().collect(), go_on)?.into_iter();
        Ok(sub_ranges().map(|ranges| parts.by_ref().take(ranges.len()).collect()).collect())
    }

    /// Counts ranges of prefixes, for example sub-ranges, itemised by weight, in the order of
    /// `ranges`.
    ///
    /// # Errors
    /// As for [`Self::count`].
    pub fn count_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        let mut results = vec![Parts::default(); ranges.len()];
        let tables = Arc::clone(&self.tables);
        let room = u64::from(self.shape.prefixes);
        let mut pieces = pieces(ranges, room).peekable();
        while pieces.peek().is_some() {
            let mut loading = Loading::new(self.decomposition, &tables, self.control);
            while let Some((index, range)) =
                pieces.next_if(|(_, range)| loading.has_room(range, room))
            {
                loading.add(index, range, &mut results[index])?;
            }
            self.run(&loading, &mut results, go_on)?;
        }
        Ok(results)
    }

    /// Runs a batch and adds the content of its slots to the results of their ranges.
    fn run(
        &mut self,
        loading: &Loading<'_>,
        results: &mut [Parts],
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let batch = &loading.batch;
        if batch.prefixes.is_empty() {
            return Ok(());
        }
        self.kernel.backend.load(batch)?;
        let special = Specialisation {
            depth: self.tables.depth(),
            general: loading.general,
            look_ahead: self.kernel.look_ahead,
        };
        let mut flying: VecDeque<InFlight> = VecDeque::new();
        let (mut searches, mut used) = (0u32, 0);
        let mut began = Instant::now();
        let last = loop {
            if !go_on() {
                // The device may be used again later: the submissions in flight must complete
                // first.
                for submission in flying {
                    self.wait(&submission, &mut searches)?;
                }
                return Err(Fault::Stopped);
            }
            while flying.len() < self.kernel.in_flight {
                flying.push_back(self.submit(special, false)?);
            }
            let Some(submission) = flying.pop_front() else { continue };
            let control = self.wait(&submission, &mut searches)?;
            let elapsed = began.elapsed();
            began = Instant::now();
            if drained(&control) {
                break control;
            }
            let (rounds, expansions) =
                (submission.rounds, submission.rounds * submission.expansions);
            let lanes = self.shape.lanes;
            let used_now = control.expansions.wrapping_sub(used);
            used = control.expansions;
            let seen = Observed { elapsed, rounds, expansions, used: used_now, lanes, control };
            if self.kernel.tuned {
                self.kernel.tuning.observe(&seen);
            }
        };
        // The submissions in flight find nothing to do.
        flying.push_back(self.submit(special, true)?);
        let mut end = last;
        for submission in flying {
            end = self.wait(&submission, &mut searches)?;
        }
        if !drained(&end) {
            return Err(Fault::Miscounts("work came back after all was done".into()));
        }
        let slots = self.kernel.backend.slots()?;
        audit(batch, &end, &slots)?;
        for (slot, &(range, weight)) in slots.iter().zip(&loading.slots) {
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
        backend.submit(&Order { params, rounds, expansions, special })?;
        Ok(InFlight { stamp: self.stamp, rounds, expansions })
    }

    fn wait(&mut self, submission: &InFlight, searches: &mut u32) -> Result<Control, Fault> {
        let Seen { control } = self.kernel.backend.wait()?;
        if control.stamp != submission.stamp {
            let (seen, asked) = (control.stamp, submission.stamp);
            return Err(Fault::Miscounts(format!("submission {asked} came back as {seen}")));
        }
        *searches = searches.wrapping_add(submission.rounds);
        if control.searches != *searches {
            let ran = control.searches;
            return Err(Fault::Miscounts(format!(
                "{ran} searches ran where {searches} were asked for"
            )));
        }
        Ok(control)
    }
}

/// Returns whether no work is left.
fn drained(control: &Control) -> bool {
    let waiting = control.ring_write.wrapping_sub(control.ring_read).cast_signed();
    waiting <= 0
        && control.ring_returned == 0
        && control.busy == 0
        && control.level_count.iter().all(|&count| count == 0)
}

/// Checks that all work was done exactly once.
fn audit(batch: &Batch, end: &Control, slots: &[Slot]) -> Result<(), Fault> {
    let wrong = |what: String| Err(Fault::Miscounts(what));
    // A batch holds far fewer than 2^32 prefixes.
    let to_expand = (batch.prefixes.len() as u32).wrapping_add(end.appended);
    if end.expanded != to_expand {
        return wrong(format!("{} states were expanded of {to_expand}", end.expanded));
    }
    if end.lower_put != end.lower_taken || end.ring_put != end.ring_taken {
        return wrong("states were not kept as they were written".into());
    }
    if end.faults > 0 {
        return wrong(format!("{} lanes were not kept as they were parked", end.faults));
    }
    let emitted = end.ring_write.wrapping_sub(end.returned_total);
    let finished = slots.iter().fold(0u32, |sum, slot| sum.wrapping_add(slot.finished));
    if finished != emitted {
        return wrong(format!("{finished} states were finished of {emitted}"));
    }
    if slots.len() != batch.slots {
        return wrong(format!("{} slots came back of {}", slots.len(), batch.slots));
    }
    for slot in slots {
        if pair(slot.hits, slot.hits_high) > pair(slot.turns, slot.turns_high) {
            return wrong("more solutions than turns".into());
        }
    }
    Ok(())
}

/// Adds a slot's count to a range's result.
fn enter(slot: &Slot, weight: Thirds, parts: &mut Parts) -> Result<(), Fault> {
    let [low, low_high, high, high_high] = slot.shadow;
    let shadow = u128::from(pair(low, low_high)) + (u128::from(pair(high, high_high)) << 16);
    let (hits, turns) = (pair(slot.hits, slot.hits_high), pair(slot.turns, slot.turns_high));
    // Verified here, and not only in the sum, because two errors in one range could cancel out.
    Tally::from_parts(hits.into(), Residues::of(shadow), turns.into()).verify()?;
    Ok(parts.add(weight, hits, Residues::of(shadow), turns)?)
}

const fn pair(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// Splits ranges into pieces of at most `most_prefixes` prefixes, which fit in a batch, each with
/// the index of its range.
fn pieces(
    ranges: Vec<Range<u64>>,
    most_prefixes: u64,
) -> impl Iterator<Item = (usize, Range<u64>)> {
    ranges.into_iter().enumerate().flat_map(move |(index, mut left)| {
        std::iter::from_fn(move || {
            let end = left.end.min(left.start.saturating_add(most_prefixes));
            let piece = std::mem::replace(&mut left.start, end)..end;
            (!piece.is_empty()).then_some((index, piece))
        })
    })
}

/// A batch under construction.
struct Loading<'a> {
    decomposition: &'a Decomposition,
    tables: &'a Tables,
    batch: Batch,
    /// The range index and the weight of each slot.
    slots: Vec<(usize, Thirds)>,
    slot_of: HashMap<(usize, Thirds), usize>,
    general: bool,
    prefixes: u64,
}

impl<'a> Loading<'a> {
    fn new(decomposition: &'a Decomposition, tables: &'a Tables, control: Control) -> Self {
        let batch = Batch { control, prefixes: Vec::new(), segments: Vec::new(), slots: 0 };
        let (slots, slot_of) = (Vec::new(), HashMap::new());
        Self { decomposition, tables, batch, slots, slot_of, general: false, prefixes: 0 }
    }

    /// Returns whether a range still fits in the batch.
    fn has_room(&self, range: &Range<u64>, most_prefixes: u64) -> bool {
        /// Weights, in thirds: of 1 to 8 images, some with ties.
        const MOST_WEIGHTS: usize = 24;
        self.prefixes + (range.end - range.start) <= most_prefixes
            && self.slots.len() + MOST_WEIGHTS <= MOST_SLOTS
    }

    /// Adds a piece of the range with this index. Prefixes that the shaders do not support are
    /// counted immediately.
    fn add(&mut self, index: usize, range: Range<u64>, parts: &mut Parts) -> Result<(), Fault> {
        let decomposition = self.decomposition;
        let mut plans = decomposition.plans().iter().zip(&self.tables.plans);
        let mut current: Option<(&SymmetryCase, Option<u32>)> = None;
        let mut left_over: Vec<(&SymmetryCase, Prefix)> = Vec::new();
        self.prefixes += range.end - range.start;
        decomposition.for_each(range, |plan, prefix| {
            let segment = match current {
                Some((known, segment)) if std::ptr::eq(known, plan) => segment,
                _ => {
                    // Prefixes come in the order of the symmetry cases.
                    let entry =
                        plans.find(|(p, _)| std::ptr::eq(*p, plan)).and_then(|(_, entry)| *entry);
                    let segment = entry.map(|entry| {
                        let slot =
                            *self.slot_of.entry((index, plan.weight())).or_insert_with(|| {
                                self.slots.push((index, plan.weight()));
                                self.slots.len() - 1
                            });
                        self.general |= entry.general;
                        self.batch.segments.push(Segment {
                            rows: entry.rows,
                            upper_rows: entry.upper_rows,
                            // A batch has at most 2^16 slots.
                            label: u32::from(entry.class) << 16 | slot as u32,
                            upper_allowed: entry.upper_allowed,
                        });
                        self.batch.segments.len() as u32 - 1
                    });
                    current = Some((plan, segment));
                    segment
                }
            };
            match segment {
                Some(segment) => {
                    let state = lower_state(plan, prefix, segment);
                    let put = &mut self.batch.control.lower_put;
                    *put = put.wrapping_add(state.mark());
                    self.batch.prefixes.push(state);
                }
                None => left_over.push((plan, *prefix)),
            }
        });
        self.batch.slots = self.slots.len();
        // Fewer than 2^32 prefixes fit in a batch.
        self.batch.control.level_count[0] = self.batch.prefixes.len() as u32;
        for (plan, prefix) in left_over {
            Scalar.count(plan, &[prefix], parts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::{Piece, Problem, Square};
    use crate::decomposition::{Job, Scheme};
    use crate::kernel::count_sub_ranges;
    use crate::kernel::gpu::Mirror;
    use crate::kernel::reference::{Reference, completions};

    const SMALL: Shape = Shape { lanes: 128, chunk: 64, ring: 1 << 13, prefixes: 1000 };

    fn decompose(problem: &Problem, depth: Option<usize>, unit: u64) -> Decomposition {
        Decomposition::new(
            Job::new(problem.clone(), Scheme::best(problem), depth, unit).expect("a small board"),
        )
    }

    fn count(problem: &Problem, unit: u64) -> u128 {
        let decomposition = decompose(problem, None, unit);
        let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), SMALL, false);
        let units: Vec<u64> = (0..decomposition.units()).collect();
        let tallies =
            kernel.open(&decomposition).expect("opens").count(&units, &|| true).expect("counts");
        let mut total = Tally::default();
        tallies.iter().for_each(|tally| total.merge(tally).expect("a small sum"));
        total.solutions().expect("whole solutions")
    }

    #[test]
    fn the_mirror_counts_the_known_boards() {
        let known = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14_200, 73_712, 365_596];
        for (n, solutions) in known.into_iter().enumerate() {
            assert_eq!(count(&Problem::empty(Piece::Queen, n), 50), solutions, "n = {n}");
        }
    }

    #[test]
    fn the_mirror_counts_every_subproblem_like_the_oracle() {
        for n in [8, 9, 10] {
            let decomposition = decompose(&Problem::empty(Piece::Queen, n), None, 1);
            let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), SMALL, false);
            let units: Vec<u64> = (0..decomposition.units()).collect();
            let tallies = kernel
                .open(&decomposition)
                .expect("opens")
                .count(&units, &|| true)
                .expect("counts");
            let mut tallies = tallies.iter();
            decomposition.for_each(0..decomposition.prefixes(), |plan, prefix| {
                let expected = u128::from(completions(plan, prefix).0) * u128::from(plan.weight());
                assert_eq!(
                    tallies.next().map(Tally::thirds),
                    Some(expected),
                    "n = {n}, {plan:?} {prefix:?}"
                );
            });
        }
    }

    /// Weights, completions and nodes.
    fn items(parts: &Parts) -> Vec<(Thirds, u128, u128)> {
        let mut items: Vec<_> =
            parts.iter().map(|part| (part.weight, part.completions, part.nodes)).collect();
        items.sort_unstable();
        items
    }

    fn completions_of(parts: &Parts) -> Vec<(Thirds, u128)> {
        items(parts).into_iter().map(|(weight, completions, _)| (weight, completions)).collect()
    }

    /// Compares all units of both images by sub-ranges with the oracle, with the units as a whole,
    /// and with their limits.
    fn assert_sub_ranges_add_up(problem: &Problem, depth: Option<usize>, unit: u64, prefixes: u32) {
        let itself = decompose(problem, depth, unit);
        let mut kernel =
            DeviceKernel::new(Box::new(Mirror::default()), Shape { prefixes, ..SMALL }, false);
        // In reverse order, to check that each result is returned at the position of its unit.
        let units: Vec<u64> = (0..itself.units()).rev().collect();
        for decomposition in [&itself, &itself.mirrored()] {
            let mut job = kernel.open(decomposition).expect("opens");
            let whole = job.count_parts(&units, &|| true).expect("counts");
            let by_sub_ranges = job.count_sub_ranges(&units, &|| true).expect("counts");
            assert_eq!((whole.len(), by_sub_ranges.len()), (units.len(), units.len()));
            for ((&unit, whole), counted) in units.iter().zip(&whole).zip(&by_sub_ranges) {
                let ranges = decomposition.sub_ranges(unit);
                let expected =
                    count_sub_ranges(&mut Reference, decomposition, ranges).expect("a small sum");
                assert_eq!(counted.len(), expected.len());
                let mut sum = Parts::default();
                for ((range, parts), expected) in
                    decomposition.sub_ranges(unit).zip(counted).zip(&expected)
                {
                    let (found, expected) = (completions_of(parts), completions_of(expected));
                    assert_eq!(found, expected, "{problem:?}, prefixes {range:?}");
                    let (limits, total) =
                        (decomposition.limits(range), parts.total().expect("agrees"));
                    assert!(
                        total.thirds() <= limits.most_thirds && total.nodes() <= limits.most_nodes
                    );
                    sum.merge(parts).expect("a small sum");
                }
                assert_eq!(items(&sum), items(whole), "{problem:?}, unit {unit}");
            }
        }
    }

    #[test]
    fn sub_ranges_add_up_to_their_units_even_where_a_batch_holds_few_of_them() {
        for (n, unit, prefixes) in [(9, 40, 7), (9, 1000, 90), (10, 100, 1000), (6, 1, 1)] {
            assert_sub_ranges_add_up(&Problem::empty(Piece::Queen, n), None, unit, prefixes);
        }
    }

    #[test]
    fn sub_ranges_without_slots_left_go_into_further_batches() {
        // Every prefix is a sub-range, and there are just more of them than slots.
        const UNITS: u64 = MOST_SLOTS as u64 / 32 + 1;
        let decomposition = decompose(&Problem::empty(Piece::Queen, 14), Some(6), 32);
        let shape = Shape { prefixes: 1 << 17, ..SMALL };
        assert!((UNITS..u64::from(shape.prefixes) / 32).contains(&decomposition.units()));
        let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), shape, false);
        let units: Vec<u64> = (0..UNITS).collect();
        let mut job = kernel.open(&decomposition).expect("opens");
        let counted = job.count_sub_ranges(&units, &|| true).expect("counts");
        for (unit, counted) in units.into_iter().zip(counted) {
            let ranges = decomposition.sub_ranges(unit);
            let expected =
                count_sub_ranges(&mut Scalar, &decomposition, ranges).expect("a small sum");
            assert!(
                counted.iter().map(completions_of).eq(expected.iter().map(completions_of)),
                "unit {unit}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn sub_ranges_add_up_on_boards_with_decided_squares(
            n in 4usize..=9,
            squares in proptest::collection::vec((0usize..9, 0usize..9, any::<bool>()), 0..6),
            depth in 0usize..5,
            unit in 1u64..150,
            prefixes in 1u32..300,
        ) {
            let (mut placed, mut blocked) = (Vec::new(), Vec::new());
            for (row, col, place) in squares.into_iter().filter(|&(row, col, _)| row < n && col < n) {
                if place { placed.push(Square::new(row, col)) } else { blocked.push(Square::new(row, col)) }
            }
            let problem = Problem::new(Piece::Queen, n, placed, blocked);
            prop_assume!(problem.is_ok());
            assert_sub_ranges_add_up(&problem.expect("assumed"), Some(depth), unit, prefixes);
        }
    }

    #[test]
    fn what_is_set_for_measurements_changes_no_count() {
        let decomposition = decompose(&Problem::empty(Piece::Queen, 11), None, 50);
        let units: Vec<u64> = (0..decomposition.units()).collect();
        let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), SMALL, false);
        for (in_flight, lanes, turns) in [(0, 64, 0), (1, 128, 1023), (3, 256, u32::MAX)] {
            let shape = Shape { lanes, ..SMALL };
            let mut tuning = kernel.tuning();
            (tuning.turns, tuning.rounds, tuning.expansions) = (turns, in_flight as u32, 0);
            kernel.set_in_flight(in_flight);
            kernel.set_shape(shape);
            kernel.set_tuning(tuning);
            kernel.freeze_tuning(true);
            let frozen = kernel.tuning();
            let mut job = kernel.open(&decomposition).expect("opens");
            assert_eq!(job.shape(), shape);
            let mut total = Tally::default();
            for tally in job.count(&units, &|| true).expect("counts") {
                total.merge(&tally).expect("a small sum");
            }
            assert_eq!(
                total.solutions(),
                Ok(2680),
                "{in_flight} in flight, {lanes} lanes, {turns} turns"
            );
            assert_eq!(kernel.tuning(), frozen);
        }
    }
}
