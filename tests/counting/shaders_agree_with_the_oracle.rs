//! The shaders on every adapter of this machine, of which a software driver is enough, agree with
//! the oracle subproblem by subproblem, and with their mirrors state by state.
//!
//! Without an adapter these tests print "skipped: no adapter". If one is expected
//! (`NQUEENS_EXPECT_ADAPTER=1`), they fail instead.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use nqueens::board::{Piece, Problem, Square};
use nqueens::decomposition::{Decomposition, Job, Scheme};
use nqueens::kernel::gpu::layout::{
    Counters, GROUP, LEVELS, Lane, LowerState, SHADOW_LIMIT, Slot, UpperState,
};
use nqueens::kernel::gpu::tables::Variant;
use nqueens::kernel::gpu::{
    Adapters, Backend, Batch, DeviceKernel, Fault, JobMemory, Memory, Mirror, Shape, Submission,
    expand, schedule, search, self_test,
};
use nqueens::kernel::reference::completions;
use nqueens::kernel::{KernelKind, count_range};
use nqueens::oeis::{Sequence, lookup};
use nqueens::tally::Tally;
use proptest::prelude::*;

/// Returns every adapter's backend.
fn backends() -> Vec<(String, Box<dyn Backend>)> {
    let adapters = Adapters::find();
    let opened: Vec<_> = adapters
        .infos()
        .map(|info| {
            let backend = adapters.backend(&info.id).expect("an adapter that was found");
            (info.id.clone(), backend.expect("an adapter that opens"))
        })
        .collect();
    if opened.is_empty() {
        let expected = std::env::var("NQUEENS_EXPECT_ADAPTER").is_ok_and(|value| value == "1");
        assert!(!expected, "an adapter is expected here, and there is none");
        let _ = writeln!(std::io::stderr(), "skipped: no adapter");
    }
    opened
}

/// Seven workgroups: the number need not be a power of two.
const SMALL: Shape = Shape { lanes: 448, chunk: 512, ring: 1 << 15, prefixes: 3000 };

/// Returns a kernel on each adapter.
pub(crate) fn kernels() -> Vec<(String, DeviceKernel)> {
    backends()
        .into_iter()
        .map(|(id, backend)| (id, DeviceKernel::new(backend, SMALL, true)))
        .collect()
}

fn decompose(problem: &Problem, depth: Option<usize>, unit_prefixes: u64) -> Decomposition {
    let job = Job::new(problem.clone(), Scheme::best(problem), depth, unit_prefixes);
    Decomposition::new(job.expect("a small board"))
}

/// Returns the tallies of all units.
fn count(kernel: &mut DeviceKernel, decomposition: &Decomposition) -> Vec<Tally> {
    let units: Vec<u64> = (0..decomposition.units()).collect();
    kernel
        .open(decomposition)
        .and_then(|mut job| job.count(&units, &|| true))
        .expect("a device that works")
}

fn assert_every_subproblem_agrees(
    id: &str,
    kernel: &mut DeviceKernel,
    problem: &Problem,
    depth: Option<usize>,
) {
    let decomposition = decompose(problem, depth, 1);
    let tallies = count(kernel, &decomposition);
    let mut tallies = tallies.iter();
    decomposition.for_each(0..decomposition.prefixes(), |plan, prefix| {
        let expected = u128::from(completions(plan, prefix).0) * u128::from(plan.weight());
        assert_eq!(
            tallies.next().map(Tally::thirds),
            Some(expected),
            "{id}: {problem:?}, {plan:?}, {prefix:?}"
        );
    });
}

#[test]
fn totals_of_n_8_to_14_equal_the_published_values() {
    for (id, mut kernel) in kernels() {
        for n in 0..=14 {
            let mut total = Tally::default();
            for tally in count(&mut kernel, &decompose(&Problem::empty(Piece::Queen, n), None, 100))
            {
                total.merge(&tally).expect("a small sum");
            }
            assert_eq!(total.solutions().ok(), lookup(Sequence::Total, n), "{id}, n = {n}");
        }
    }
}

#[test]
fn every_subproblem_of_n_9_and_10_agrees_with_the_oracle() {
    for (id, mut kernel) in kernels() {
        for n in [9, 10] {
            assert_every_subproblem_agrees(
                &id,
                &mut kernel,
                &Problem::empty(Piece::Queen, n),
                None,
            );
        }
    }
}

#[test]
fn completions_with_placed_and_blocked_squares_agree_with_the_oracle() {
    let squares =
        |list: &[(usize, usize)]| list.iter().map(|&(row, col)| Square::new(row, col)).collect();
    type Squares = &'static [(usize, usize)];
    let cases: [(usize, Squares, Squares); 4] = [
        (10, &[(0, 3)], &[]),
        (10, &[], &[(0, 0), (5, 5), (9, 2)]),
        (11, &[(1, 3), (6, 0)], &[(0, 0), (9, 9), (4, 5)]),
        // Gaps on both sides of the block.
        (11, &[(2, 1), (8, 4)], &[(10, 10)]),
    ];
    for (id, mut kernel) in kernels() {
        for (n, placed, blocked) in cases {
            let problem = Problem::new(Piece::Queen, n, squares(placed), squares(blocked))
                .expect("a problem");
            // With few rows in the prefixes, the shaders cross the gaps.
            for depth in [None, Some(0), Some(1)] {
                assert_every_subproblem_agrees(&id, &mut kernel, &problem, depth);
            }
        }
    }
}

/// Returns a solution of any size from 4 on (Pauls 1874; in the form of Hoffman, Loessi and Moore
/// 1969): even columns, then odd.
fn known_solution(n: usize) -> Vec<usize> {
    let mut even: Vec<usize> = (2..=n).step_by(2).collect();
    let mut odd: Vec<usize> = (1..=n).step_by(2).collect();
    match n % 6 {
        2 => {
            odd.swap(0, 1);
            let five = odd.remove(2);
            odd.push(five);
        }
        3 => {
            even.rotate_left(1);
            odd.rotate_left(2);
        }
        _ => {}
    }
    even.into_iter().chain(odd).map(|column| column - 1).collect()
}

#[test]
fn large_boards_with_few_open_squares_agree_on_every_level_and_at_every_depth() {
    let mut random = fastrand::Rng::with_seed(2026);
    let mut with_completions = 0;
    for (id, mut kernel) in kernels() {
        for _ in 0..24 {
            let n = random.usize(20..=32);
            let solution = known_solution(n);
            let placed: Vec<usize> = (0..n).filter(|_| random.usize(..n) < 3).collect();
            let mut blocked = Vec::new();
            for row in (0..n).filter(|row| !placed.contains(row)) {
                let open: Vec<usize> =
                    (0..4).map(|_| random.usize(..n)).chain([solution[row]]).collect();
                blocked.extend(
                    (0..n).filter(|col| !open.contains(col)).map(|col| Square::new(row, col)),
                );
            }
            let placed = placed.into_iter().map(|row| Square::new(row, solution[row])).collect();
            let problem = Problem::new(Piece::Queen, n, placed, blocked).expect("a problem");
            let decomposition = decompose(&problem, Some(random.usize(..5)), random.u64(1..50));
            let mut scalar =
                KernelKind::Scalar.build(Piece::Queen).expect("a kernel for all machines");
            for (unit, found) in (0..).zip(count(&mut kernel, &decomposition)) {
                let expected = count_range(&mut *scalar, &decomposition, decomposition.unit(unit));
                let expected = expected.expect("a small sum").thirds();
                assert_eq!(
                    found.thirds(),
                    expected,
                    "{id}, unit {unit} of {}",
                    decomposition.job()
                );
                with_completions += usize::from(expected > 0);
            }
        }
        assert!(with_completions > 20, "{with_completions}");
    }
}

/// A mirror that checks after every dispatch that no buffer overflows.
struct Checked {
    memory: Memory,
    seen: std::collections::VecDeque<Counters>,
    /// The start of the indices of the ring.
    start: u32,
    fullest: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl Backend for Checked {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.memory = Memory::new(job);
        Ok(())
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.memory.load(batch);
        let counters = &mut self.memory.counters;
        (counters.ring_write, counters.ring_read) = (self.start, self.start);
        counters.returned_total = self.start;
        Ok(())
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        let size = submission.params.ring_mask + 1;
        for _ in 0..submission.rounds {
            for _ in 0..submission.expansions {
                schedule(&mut self.memory, &submission.params);
                expand(&mut self.memory, &submission.params);
                let counters = &self.memory.counters;
                let filled = counters.ring_write.wrapping_sub(counters.ring_read);
                assert!(
                    filled + submission.params.ring_reserve <= size,
                    "the ring holds {filled} of {size}"
                );
                self.fullest.fetch_max(filled, std::sync::atomic::Ordering::Relaxed);
                for level in (1..LEVELS).filter(|&level| counters.level_count[level] > 0) {
                    let later = counters.level_first[level + 1..].iter().find(|&&first| first > 0);
                    let end = later.copied().unwrap_or(self.memory.levels.len() as u32);
                    assert!(
                        counters.level_first[level] + counters.level_count[level] <= end,
                        "level {level}"
                    );
                }
            }
            search(&mut self.memory, &submission.params, submission.special);
            assert!(self.memory.counters.ring_returned <= submission.params.ring_reserve);
        }
        self.seen.push_back(self.memory.counters);
        Ok(())
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        Ok(self.seen.pop_front().expect("something was submitted"))
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

#[test]
fn no_buffer_overflows_even_where_the_indices_of_the_ring_wrap() {
    let fullest = std::sync::Arc::default();
    for start in [0, u32::MAX - 1000] {
        for (n, depth) in [(14, 0), (14, 2), (13, 6), (15, 8)] {
            for (lanes, chunk, ring) in
                [(64, 64, 1 << 15), (512, 64, 1 << 14), (64, 512, 1 << 13), (128, 4096, 1 << 13)]
            {
                let problem = Problem::empty(Piece::Queen, n);
                let decomposition = decompose(&problem, Some(depth), 500);
                let watched = Checked {
                    memory: Memory::default(),
                    seen: std::collections::VecDeque::new(),
                    start,
                    fullest: std::sync::Arc::clone(&fullest),
                };
                let shape = Shape { lanes, chunk, ring, prefixes: 1 << 14 };
                let mut total = Tally::default();
                let tallies =
                    count(&mut DeviceKernel::new(Box::new(watched), shape, true), &decomposition);
                tallies.iter().for_each(|tally| total.merge(tally).expect("a small sum"));
                assert_eq!(
                    total.solutions().ok(),
                    lookup(Sequence::Total, n),
                    "n = {n}, depth {depth}"
                );
            }
        }
    }
    // The ring was as full as is allowed.
    assert!(fullest.load(std::sync::atomic::Ordering::Relaxed) > 1 << 12);
}

#[test]
fn random_boards_with_decided_squares_agree_with_the_oracle() {
    let square = |n: usize| (0..n, 0..n).prop_map(|(row, col)| Square::new(row, col));
    let problems = (6usize..=9).prop_flat_map(move |n| {
        let squares = |most| proptest::collection::vec(square(n), 0..=most);
        (squares(2), squares(8), 0usize..5)
            .prop_filter_map("a square is placed or blocked", move |(p, b, depth)| {
                Some((Problem::new(Piece::Queen, n, p, b).ok()?, depth))
            })
    });
    for (id, kernel) in kernels() {
        let kernel = std::cell::RefCell::new(kernel);
        let config = ProptestConfig { cases: 40, ..ProptestConfig::default() };
        let outcome =
            proptest::test_runner::TestRunner::new(config).run(&problems, |(problem, depth)| {
                assert_every_subproblem_agrees(
                    &id,
                    &mut kernel.borrow_mut(),
                    &problem,
                    Some(depth),
                );
                Ok(())
            });
        outcome.expect("agreement");
    }
}

#[test]
fn devices_pass_their_self_test() {
    for (id, mut kernel) in kernels() {
        assert_eq!(self_test(&mut kernel, false), Ok(()), "{id}");
    }
}

/// What must be equal on the device and in the mirror, whichever lane takes which states.
#[derive(Debug, PartialEq, Eq)]
struct Comparable {
    counters: [u32; 11],
    level_count: [u32; LEVELS],
    levels: Vec<Vec<LowerState>>,
    ring: Vec<UpperState>,
    /// The states in the lanes, with their stacks.
    states: Vec<(UpperState, u32, Vec<[u32; 4]>)>,
    /// The sum over slots and lanes for each slot: hits, turns, shadow, finished states.
    sums: BTreeMap<u32, [u64; 4]>,
}

fn shadow_of(slot: &Slot) -> u64 {
    let [low, low_high, high, high_high] = slot.shadow.map(u64::from);
    (low | low_high << 32) + ((high | high_high << 32) << 16)
}

fn comparable(memory: &Memory) -> Comparable {
    let Counters {
        ring_write, ring_read, ring_returned, busy, expanded, appended, expansions, ..
    } = memory.counters;
    let Counters { lower_put, lower_taken, ring_put, ring_taken, faults, .. } = memory.counters;
    let sorted = |mut states: Vec<LowerState>| {
        states.sort_unstable();
        states
    };
    let stack_of = |level: usize| {
        let first = memory.counters.level_first[level] as usize;
        sorted(memory.levels[first..first + memory.counters.level_count[level] as usize].to_vec())
    };
    let waiting = ring_write.wrapping_sub(ring_read).cast_signed().max(0).cast_unsigned();
    let at = |index: u32| memory.ring[index as usize % memory.ring.len()];
    let mut ring: Vec<UpperState> =
        (0..waiting).map(|i| at(ring_write.wrapping_sub(i + 1))).collect();
    ring.extend((0..ring_returned).map(|i| at(ring_write.wrapping_add(i))));
    ring.sort_unstable();
    let lanes = memory.lanes.len();
    let stack = |index: usize, lane: &Lane| {
        (0..lane.height as usize).map(|height| memory.stacks[height * lanes + index]).collect()
    };
    let working = memory.lanes.iter().enumerate().filter(|(_, lane)| lane.open != 0);
    let mut states: Vec<_> = working
        .map(|(i, lane)| {
            ([lane.free, lane.left, lane.right, lane.open], lane.label, stack(i, lane))
        })
        .collect();
    states.sort_unstable();
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let mut sums: BTreeMap<u32, [u64; 4]> = BTreeMap::new();
    let mut add = |slot: u32, values: [u64; 4]| {
        let sum = sums.entry(slot).or_default();
        (0..4).for_each(|k| sum[k] = sum[k].wrapping_add(values[k]));
    };
    for (index, slot) in memory.slots.iter().enumerate() {
        let shadow = shadow_of(slot);
        let (hits, turns) = (pair(slot.hits, slot.hits_high), pair(slot.turns, slot.turns_high));
        add(index as u32, [hits, turns, shadow, slot.finished.into()]);
    }
    for lane in &memory.lanes {
        let (hits, turns) = (pair(lane.hits, lane.hits_high), pair(lane.turns, lane.turns_high));
        add(lane.label & 0xffff, [hits, turns, lane.shadow.into(), lane.finished.into()]);
    }
    Comparable {
        counters: [
            waiting,
            ring_returned,
            busy,
            expanded,
            appended,
            expansions,
            lower_put,
            lower_taken,
            ring_put,
            ring_taken,
            faults,
        ],
        level_count: memory.counters.level_count,
        levels: (0..LEVELS).map(stack_of).collect(),
        ring,
        states,
        sums,
    }
}

/// Runs the device and the mirror, one dispatch at a time, from the same memory each time.
struct SideBySide {
    mirror: Mirror,
    device: Box<dyn Backend>,
    steps: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    /// The variants of the search that ran.
    variants: std::sync::Arc<std::sync::Mutex<BTreeSet<Variant>>>,
    searches: u32,
}

impl SideBySide {
    fn step(&mut self, submission: &Submission) -> Result<(), Fault> {
        let before = self.mirror.memory()?;
        self.device.set_memory(&before)?;
        for backend in [&mut self.mirror as &mut dyn Backend, &mut *self.device] {
            backend.submit(submission)?;
            backend.wait()?;
        }
        let (ours, theirs) =
            (comparable(&self.mirror.memory()?), comparable(&self.device.memory()?));
        assert_eq!(ours, theirs, "after {submission:?}");
        self.steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

impl Backend for SideBySide {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.mirror.open(job)?;
        self.device.open(job)
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.searches = 0;
        self.mirror.load(batch)?;
        self.device.load(batch)
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        for _ in 0..submission.rounds {
            // Which states an idle lane takes does not depend on the interleaving only if it takes
            // once per search, and if expansion and search do not overlap: so a search of no turns
            // after an expansion, and a group of turns.
            let mut expansion = Submission { rounds: 1, expansions: 1, ..*submission };
            (expansion.params.turns, expansion.params.flush) = (0, 0);
            self.step(&expansion)?;
            let mut search = Submission { rounds: 1, expansions: 0, ..*submission };
            search.params.turns = GROUP;
            self.variants.lock().expect("no thread panicked").insert(search.special.variant);
            self.step(&search)?;
            self.searches += 1;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        // The driver may have several submissions in flight; here each ends before the next begins.
        let counters = Counters { searches: self.searches, ..self.mirror.memory()?.counters };
        Ok(counters)
    }

    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        self.device.slots()
    }

    fn memory(&mut self) -> Result<Memory, Fault> {
        self.device.memory()
    }

    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.device.set_memory(memory)
    }
}

#[test]
fn shaders_agree_with_their_mirrors_state_by_state() {
    let shape = Shape { lanes: 64, chunk: 4096, ring: 1 << 17, prefixes: 500 };
    for (id, device) in backends() {
        let steps = std::sync::Arc::default();
        let variants = std::sync::Arc::default();
        let side_by_side = SideBySide {
            mirror: Mirror::default(),
            device,
            steps: std::sync::Arc::clone(&steps),
            variants: std::sync::Arc::clone(&variants),
            searches: 0,
        };
        let mut kernel = DeviceKernel::new(Box::new(side_by_side), shape, true);
        kernel.set_in_flight(1);
        let blocked =
            Problem::new(Piece::Queen, 9, vec![Square::new(1, 2)], vec![Square::new(8, 8)]);
        for (problem, solutions) in [
            (Problem::empty(Piece::Queen, 10), Some(724)),
            (Problem::empty(Piece::Queen, 11), Some(2680)),
            (blocked.expect("a problem"), None),
        ] {
            let decomposition = decompose(&problem, Some(2), 3);
            let mut total = Tally::default();
            count(&mut kernel, &decomposition)
                .iter()
                .for_each(|t| total.merge(t).expect("a small sum"));
            let found = total.solutions().expect("whole solutions");
            assert!(solutions.is_none_or(|known| found == known), "{id}: {found}");
        }
        assert!(steps.load(std::sync::atomic::Ordering::Relaxed) > 50);
        let variants = variants.lock().expect("no thread panicked");
        assert_eq!(*variants, BTreeSet::from(Variant::ALL), "{id}");
    }
}

/// A backend whose lanes and slots start just below the limits of their counters.
struct NearOverflow(Box<dyn Backend>);

/// The initial values of hits and turns in lanes and slots, just before a carry.
const INITIAL: u32 = u32::MAX - 3;

impl Backend for NearOverflow {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.0.open(job)
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.0.load(batch)?;
        let mut memory = self.0.memory()?;
        for slot in &mut memory.slots {
            (slot.hits, slot.turns) = (INITIAL, INITIAL);
        }
        for lane in &mut memory.lanes {
            // `finished` is 0, so that the lane does not count as parked.
            (lane.hits, lane.turns, lane.shadow) = (INITIAL, INITIAL, SHADOW_LIMIT - 1);
        }
        self.0.set_memory(&memory)
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        self.0.submit(submission)
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        self.0.wait()
    }

    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        // The initial values are subtracted again, in 64 bits.
        let lanes = self.0.memory()?.lanes.len() as u64;
        let mut slots = self.0.slots()?;
        for (index, slot) in slots.iter_mut().enumerate() {
            // All lanes start with the label of slot 0.
            let from_lanes = if index == 0 { lanes } else { 0 };
            let start = u64::from(INITIAL) * (1 + from_lanes);
            for (low, high) in
                [(&mut slot.hits, &mut slot.hits_high), (&mut slot.turns, &mut slot.turns_high)]
            {
                let sum = (u64::from(*high) << 32 | u64::from(*low)) - start;
                (*low, *high) = (sum as u32, (sum >> 32) as u32);
            }
            let shadow = shadow_of(slot);
            let shadow = shadow - from_lanes * u64::from(SHADOW_LIMIT - 1);
            slot.shadow = [shadow as u32, (shadow >> 32) as u32, 0, 0];
        }
        Ok(slots)
    }

    fn memory(&mut self) -> Result<Memory, Fault> {
        self.0.memory()
    }

    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.0.set_memory(memory)
    }
}

#[test]
fn counters_that_pass_32_bits_carry() {
    let mut backends = backends();
    backends.push(("mirror".into(), Box::new(Mirror::default())));
    for (id, backend) in backends {
        let shape = Shape { lanes: 128, chunk: 256, ring: 1 << 14, prefixes: 3000 };
        let mut kernel = DeviceKernel::new(Box::new(NearOverflow(backend)), shape, true);
        let mut total = Tally::default();
        for tally in count(&mut kernel, &decompose(&Problem::empty(Piece::Queen, 11), None, 200)) {
            total.merge(&tally).expect("a small sum");
        }
        assert_eq!(total.solutions(), Ok(2680), "{id}");
    }
}
