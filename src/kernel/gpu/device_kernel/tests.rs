use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::board::{Piece, Problem, Square};
use crate::decomposition::testing::decompose;
use crate::kernel::gpu::backend::Batch;
use crate::kernel::gpu::batch_builder::MOST_SLOTS;
use crate::kernel::gpu::layout::Slot;
use crate::kernel::gpu::{Memory, Mirror};
use crate::kernel::reference::{Reference, completions};
use crate::kernel::scalar::Scalar;
use crate::kernel::{count_parts, count_sub_ranges};
use crate::tally::Tally;
use crate::tally::Thirds;

const SMALL: Shape = Shape { lanes: 128, chunk: 64, ring: 1 << 13, prefixes: 1000 };

fn mirror(shape: Shape) -> DeviceKernel {
    DeviceKernel::new(Box::new(Mirror::default()), shape, false)
}

/// Counts every unit.
fn count(kernel: &mut DeviceKernel, decomposition: &Decomposition) -> Vec<Tally> {
    let units: Vec<u64> = (0..decomposition.units()).collect();
    kernel.open(decomposition).expect("opens").count(&units, &|| true).expect("counts")
}

fn solutions(tallies: &[Tally]) -> u128 {
    let mut total = Tally::default();
    tallies.iter().for_each(|tally| total.merge(tally).expect("a small sum"));
    total.solutions().expect("whole solutions")
}

#[test]
fn the_mirror_counts_the_known_totals() {
    let known = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14_200, 73_712, 365_596];
    for (n, known) in known.into_iter().enumerate() {
        let decomposition = decompose(&Problem::empty(Piece::Queen, n), None, 50);
        assert_eq!(solutions(&count(&mut mirror(SMALL), &decomposition)), known, "n = {n}");
    }
}

#[test]
fn the_mirror_agrees_with_the_oracle_on_every_subproblem() {
    for n in [8, 9, 10] {
        let decomposition = decompose(&Problem::empty(Piece::Queen, n), None, 1);
        let tallies = count(&mut mirror(SMALL), &decomposition);
        let mut tallies = tallies.iter();
        decomposition.for_each(0..decomposition.prefixes(), |case, prefix| {
            let expected = u128::from(completions(case, prefix).0) * u128::from(case.weight());
            assert_eq!(
                tallies.next().map(Tally::thirds),
                Some(expected),
                "n = {n}, {case:?} {prefix:?}"
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
    let mut kernel = mirror(Shape { prefixes, ..SMALL });
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
                let (limits, total) = (decomposition.limits(range), parts.total().expect("agrees"));
                assert!(total.thirds() <= limits.most_thirds && total.nodes() <= limits.most_nodes);
                sum.merge(parts).expect("a small sum");
            }
            assert_eq!(items(&sum), items(whole), "{problem:?}, unit {unit}");
        }
    }
}

#[test]
fn sub_ranges_add_up_to_their_units_even_in_small_batches() {
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
    let mut kernel = mirror(shape);
    let units: Vec<u64> = (0..UNITS).collect();
    let mut job = kernel.open(&decomposition).expect("opens");
    let counted = job.count_sub_ranges(&units, &|| true).expect("counts");
    for (unit, counted) in units.into_iter().zip(counted) {
        let ranges = decomposition.sub_ranges(unit);
        let expected = count_sub_ranges(&mut Scalar, &decomposition, ranges).expect("a small sum");
        assert!(
            counted.iter().map(completions_of).eq(expected.iter().map(completions_of)),
            "unit {unit}"
        );
    }
}

/// A call of a [`Recorder`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    /// With the classes of the batch's states.
    Load(BTreeSet<u32>),
    Compile(Variant),
    Submit(Variant),
}

/// A mirror that records its calls.
struct Recorder {
    mirror: Mirror,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    fn kernel(shape: Shape) -> (DeviceKernel, Arc<Mutex<Vec<Call>>>) {
        let calls = Arc::default();
        let recorder = Self { mirror: Mirror::default(), calls: Arc::clone(&calls) };
        (DeviceKernel::new(Box::new(recorder), shape, false), calls)
    }

    fn record(&self, call: Call) {
        self.calls.lock().expect("no thread panicked").push(call);
    }
}

impl Backend for Recorder {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.mirror.open(job)
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.record(Call::Load(batch.segments.iter().map(|s| s.label >> 16).collect()));
        self.mirror.load(batch)
    }

    fn compile(&mut self, special: Specialisation) -> Result<(), Fault> {
        self.record(Call::Compile(special.variant));
        Ok(())
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        self.record(Call::Submit(submission.special.variant));
        self.mirror.submit(submission)
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        self.mirror.wait()
    }

    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        self.mirror.slots()
    }

    fn memory(&mut self) -> Result<Memory, Fault> {
        self.mirror.memory()
    }

    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.mirror.set_memory(memory)
    }
}

#[test]
fn a_batch_has_prefixes_of_one_variant_of_the_search() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 12), None, 700);
    let tables = Tables::new(&decomposition);
    let variants_of = |class: u32| -> BTreeSet<Variant> {
        let entries = tables.cases.iter().flatten();
        let of_class = entries.filter(|entry| u32::from(entry.class) == class);
        of_class.map(|entry| entry.variant).collect()
    };
    let (mut kernel, calls) = Recorder::kernel(Shape { prefixes: 1 << 14, ..SMALL });
    // Units in an order in which their variants alternate.
    let all = decomposition.units();
    let units: Vec<u64> = (0..all / 2).flat_map(|i| [i, all - 1 - i]).collect();
    let counted = kernel
        .open(&decomposition)
        .and_then(|mut job| job.count_parts(&units, &|| true))
        .expect("counts");
    for (unit, parts) in units.into_iter().zip(&counted) {
        let expected = count_parts(&mut Reference, &decomposition, decomposition.unit(unit));
        assert_eq!(completions_of(parts), completions_of(&expected.expect("a small sum")));
    }
    let calls = calls.lock().expect("no thread panicked");
    let mut batches: Vec<Variant> = Vec::new();
    let mut classes = &BTreeSet::new();
    for call in calls.iter() {
        match call {
            Call::Load(loaded) => classes = loaded,
            Call::Compile(_) => {}
            Call::Submit(variant) => {
                batches.push(*variant);
                for &class in classes {
                    assert_eq!(variants_of(class), BTreeSet::from([*variant]), "class {class}");
                }
            }
        }
    }
    batches.dedup();
    // Each variant has one batch, as all prefixes fit in one.
    assert_eq!(batches, Variant::ALL);
}

#[test]
fn a_search_is_compiled_before_the_first_submission_of_a_batch() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 10), None, 100);
    let (mut kernel, calls) = Recorder::kernel(SMALL);
    count(&mut kernel, &decomposition);
    let calls = calls.lock().expect("no thread panicked");
    let mut batches = 0;
    for (before, call) in calls.iter().zip(&calls[1..]) {
        match call {
            Call::Load(_) => batches += 1,
            Call::Compile(_) => assert!(matches!(before, Call::Load(_)), "{calls:?}"),
            Call::Submit(variant) => assert!(
                [Call::Compile(*variant), Call::Submit(*variant)].contains(before),
                "{calls:?}"
            ),
        }
    }
    assert!(batches > 1);
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
fn settings_for_measurements_change_no_count() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 11), None, 50);
    let mut kernel = mirror(SMALL);
    for (in_flight, lanes, turns) in [(0, 64, 0), (1, 192, 1023), (3, 320, u32::MAX)] {
        let shape = Shape { lanes, ..SMALL };
        let mut tuning = kernel.tuning();
        (tuning.turns, tuning.rounds, tuning.expansions) = (turns, in_flight as u32, 0);
        kernel.set_in_flight(in_flight);
        kernel.set_shape(shape);
        kernel.set_tuning(tuning);
        kernel.freeze_tuning(true);
        let frozen = kernel.tuning();
        assert_eq!(kernel.open(&decomposition).expect("opens").shape(), Some(shape));
        let found = solutions(&count(&mut kernel, &decomposition));
        assert_eq!(found, 2680, "{in_flight} in flight, {lanes} lanes, {turns} turns");
        assert_eq!(kernel.tuning(), frozen);
    }
}
