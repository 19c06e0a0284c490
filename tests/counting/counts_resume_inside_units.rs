//! A count that ended inside a unit continues there, unless the kernel is another one or is no
//! longer trusted.

use std::fs;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::{Scratch, eventually};

use nqueens::board::{Piece, Problem};
use nqueens::checkpoint::{Checkpoint, CheckpointError, Corruption, EnterError, PartialUnit};
use nqueens::decomposition::{Prefix, SymmetryCase};
use nqueens::engine::{CountError, CountEvent, CountOptions, CountOutcome, CountTask};
use nqueens::kernel::gpu::{DeviceKernel, Mirror, Shape};
use nqueens::kernel::{Kernel, KernelKind};
use nqueens::tally::{Parts, Residues, Tally, TallyError};

const N: usize = 12;
const SOLUTIONS: u128 = 14_200;

/// A function that is called before a prefix is counted.
type Before = dyn Fn(KernelKind, &SymmetryCase, &Prefix) -> bool + Send + Sync;

/// A sound kernel that calls a function before each prefix. If it returns true, a solution too many
/// is counted.
struct Watched {
    kind: KernelKind,
    sound: Box<dyn Kernel>,
    before: Arc<Before>,
}

impl Kernel for Watched {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        for prefix in prefixes {
            if (self.before)(self.kind, case, prefix) {
                parts.add(3, 1u32, Residues::of(1), 0u32)?;
            }
        }
        self.sound.count(case, prefixes, parts)
    }

    fn finish(&mut self, parts: &mut Parts) -> Result<(), TallyError> {
        self.sound.finish(parts)
    }
}

fn watch(
    task: &mut CountTask,
    before: impl Fn(KernelKind, &SymmetryCase, &Prefix) -> bool + Send + Sync + 'static,
) {
    let before: Arc<Before> = Arc::new(before);
    task.set_kernels(move |kind, piece| {
        let (sound, before) = (kind.build(piece)?, Arc::clone(&before));
        Ok(Box::new(Watched { kind, sound, before }))
    });
}

/// Returns whether a prefix is this one of a unit.
fn at(
    task: &CountTask,
    unit: u64,
    number: u64,
) -> impl Fn(&SymmetryCase, &Prefix) -> bool + Send + Sync + use<> {
    let first = task.decomposition().unit(unit).start + number;
    let mut wanted = None;
    task.decomposition().for_each(first..first + 1, |case, prefix| {
        wanted = Some((case.clone(), *prefix));
    });
    move |case, prefix| wanted.as_ref().is_some_and(|(of, at)| of == case && at == prefix)
}

/// Counts the prefixes that kernels of this kind count in the count itself, not in tests of the
/// kernel.
fn prefixes_counted(task: &mut CountTask, of: KernelKind) -> Arc<AtomicU64> {
    let counter = Arc::new(AtomicU64::new(0));
    let more = Arc::clone(&counter);
    watch(task, move |kind, case, _| {
        more.fetch_add(u64::from(kind == of && case.n() == N), Ordering::Relaxed);
        false
    });
    counter
}

fn options(kernel: KernelKind, threads: usize) -> CountOptions {
    let threads = NonZeroUsize::new(threads);
    CountOptions { kernel: Some(kernel), threads, ..CountOptions::default() }
}

/// Returns a task that records the partial result of a unit after this many subproblems.
fn resume(path: &Path, kernel: KernelKind, threads: usize, every: u64) -> CountTask {
    let problem = Problem::empty(Piece::Queen, N);
    let mut task = CountTask::resume(&problem, &options(kernel, threads), path).expect("plans");
    task.record_every(NonZeroU64::new(every).expect("at least one"));
    task
}

fn run(task: CountTask) -> CountOutcome {
    task.run(|_| ControlFlow::Continue(())).expect("counts")
}

/// Returns the records of partial results in the checkpoint.
fn partial_records(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a checkpoint");
    text.lines().filter(|line| line.contains("counted")).map(str::to_owned).collect()
}

/// Returns whether the checkpoint has this partial result.
fn is_recorded(path: &Path, unit: u64, counted: u64, kernel: KernelKind) -> bool {
    let (begin, end) =
        (format!(r#"{{"unit":{unit},"counted":{counted},"#), format!(r#""{kernel}"}}"#));
    partial_records(path).iter().any(|line| line.contains(&begin) && line.ends_with(&end))
}

/// Returns the units that are voided in the checkpoint.
fn voided(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a checkpoint");
    let voided = text.lines().filter_map(|line| line.split_once(r#"{"disputed":"#));
    voided.map(|(_, unit)| unit.trim_end_matches('}').to_owned()).collect()
}

/// The state of a checkpoint when 20 subproblems of unit 0 and nothing else was counted.
fn killed_inside_a_unit(scratch: &Scratch) -> PathBuf {
    const COUNTED: u64 = 20;
    let (path, copy) = (scratch.path("run"), scratch.path("killed"));
    let mut task = resume(&path, KernelKind::Scalar, 1, 1);
    let released = Arc::new(AtomicBool::new(false));
    let (gate, next) = (Arc::clone(&released), at(&task, 0, COUNTED));
    watch(&mut task, move |_, case, prefix| {
        if next(case, prefix) {
            eventually("end of the count", || gate.load(Ordering::Relaxed).then_some(()));
        }
        false
    });
    let stopped = task.run(|event| match event {
        CountEvent::Progress(progress) if is_recorded(&path, 0, COUNTED, KernelKind::Scalar) => {
            assert!(progress.units_done == 0 && progress.fraction > 0.0, "{progress:?}");
            // What is on the disk at a kill.
            fs::copy(&path, &copy).expect("a copy");
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    released.store(true, Ordering::Relaxed);
    assert!(matches!(stopped, Err(CountError::Stopped { units_done: 0, .. })));
    copy
}

#[test]
fn a_count_that_was_killed_inside_a_unit_continues_there() {
    for threads in [1, 3] {
        let scratch = Scratch::new("killed");
        let path = killed_inside_a_unit(&scratch);
        let mut task = resume(&path, KernelKind::Scalar, threads, 7);
        assert_eq!((task.resumed().0, task.resumed_partial()), (0, 1));
        let all = task.decomposition().prefixes();
        let counted = prefixes_counted(&mut task, KernelKind::Scalar);
        let mut fractions = Vec::new();
        let outcome = task.run(|event| {
            if let CountEvent::Progress(progress) = event {
                fractions.push(progress.fraction);
            }
            ControlFlow::Continue(())
        });
        let outcome = outcome.expect("counts");
        assert_eq!((outcome.solutions, outcome.kernel.as_str()), (SOLUTIONS, "scalar"));
        assert_eq!(counted.load(Ordering::Relaxed), all - 20);
        assert!(fractions[0] > 0.0 && fractions.last().is_some_and(|last| *last > 0.999_999));
        // The file is complete, and its units have whole results only.
        let file = Checkpoint::read(&path).expect("a checkpoint");
        assert_eq!(file.partial().iter().count(), 0);
        assert_eq!(file.completed().total().expect("all units").solutions(), Ok(SOLUTIONS));
    }
}

#[test]
fn a_count_that_is_stopped_inside_many_units_has_the_right_total() {
    for threads in [1, 3] {
        let scratch = Scratch::new("stopped");
        let path = scratch.path("run");
        let mut sessions = 0;
        let outcome = loop {
            sessions += 1;
            let mut task = resume(&path, KernelKind::Scalar, threads, 5);
            // Some units wait until their first five subproblems are recorded, or the count stops.
            let gates = [0, 1, 2, 20, 41, 60].map(|unit| (unit, at(&task, unit, 5)));
            let released = Arc::new(AtomicBool::new(false));
            let (open, recorded) = (Arc::clone(&released), path.clone());
            watch(&mut task, move |_, case, prefix| {
                if let Some((unit, _)) = gates.iter().find(|(_, at)| at(case, prefix)) {
                    eventually("record", || {
                        let known = is_recorded(&recorded, *unit, 5, KernelKind::Scalar);
                        (known || open.load(Ordering::Relaxed)).then_some(())
                    });
                }
                false
            });
            let before = partial_records(&path).len();
            let outcome = task.run(|_| {
                let new = partial_records(&path).len() > before;
                if new { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            released.store(true, Ordering::Relaxed);
            match outcome {
                Ok(outcome) => break outcome,
                Err(CountError::Stopped { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(outcome.solutions, SOLUTIONS, "{sessions} sessions");
        assert!(sessions > 1);
    }
}

#[test]
fn another_kernel_counts_a_unit_from_its_beginning() {
    let scratch = Scratch::new("another-kernel");
    let path = killed_inside_a_unit(&scratch);
    let mut task = resume(&path, KernelKind::Generic, 2, 5);
    assert_eq!(task.resumed_partial(), 0);
    let all = task.decomposition().prefixes();
    let (counter, next, recorded) = (Arc::new(AtomicU64::new(0)), at(&task, 0, 5), path.clone());
    let more = Arc::clone(&counter);
    watch(&mut task, move |kind, case, prefix| {
        if next(case, prefix) {
            // Its own partial result replaces the larger one of the other kernel.
            eventually("record", || is_recorded(&recorded, 0, 5, kind).then_some(()));
        }
        more.fetch_add(1, Ordering::Relaxed);
        false
    });
    assert_eq!(run(task).solutions, SOLUTIONS);
    assert_eq!(counter.load(Ordering::Relaxed), all);
    assert_eq!(run(resume(&path, KernelKind::Scalar, 2, 5)).solutions, SOLUTIONS);
}

/// Adds wrong partial results by the scalar kernel to a checkpoint.
fn add_wrong_results(path: &Path, units: &[u64]) {
    let mut wrong = Tally::default();
    wrong.add(3, 1000u64, Residues::of(1000), 0).expect("fits");
    let partial = units.iter().map(|&unit| PartialUnit {
        counted: 3,
        tally: wrong,
        ..PartialUnit::start(unit, "scalar")
    });
    let mut file = Checkpoint::open(path).expect("a checkpoint");
    file.append_partial(&partial.collect::<Vec<_>>()).expect("units of the job");
}

#[test]
fn the_partial_result_is_what_a_count_continues_from() {
    let scratch = Scratch::new("wrong");
    let path = scratch.path("run");
    drop(resume(&path, KernelKind::Scalar, 1, 1));
    add_wrong_results(&path, &[0, 9]);
    // Solutions that it does not have, so the result was used.
    assert!(run(resume(&path, KernelKind::Scalar, 2, 4)).solutions > SOLUTIONS);
}

#[test]
fn partial_results_of_a_kernel_that_miscounts_are_not_continued() {
    for threads in [1, 3] {
        let scratch = Scratch::new("distrusted");
        let path = scratch.path("run");
        drop(resume(&path, KernelKind::Scalar, 1, 1));
        add_wrong_results(&path, &[0, 9, 60]);
        let mut task = resume(&path, KernelKind::Scalar, threads, 4);
        assert_eq!(task.resumed_partial(), 3);
        // It panics in the count, and miscounts the boards with known answers.
        watch(&mut task, |kind, case, _| {
            assert!(kind != KernelKind::Scalar || case.n() != N, "on purpose");
            kind == KernelKind::Scalar
        });
        let outcome = run(task);
        assert_eq!((outcome.solutions, outcome.kernel.as_str()), (SOLUTIONS, "generic"));
        assert_eq!(voided(&path), ["0", "9", "60"]);
        assert_eq!(run(resume(&path, KernelKind::Scalar, 1, 4)).solutions, SOLUTIONS);
    }
}

#[test]
fn a_unit_that_a_miscounting_kernel_has_begun_is_counted_from_its_beginning() {
    let scratch = Scratch::new("miscounted");
    let path = scratch.path("run");
    let mut task = resume(&path, KernelKind::Scalar, 1, 4);
    let (next, recorded) = (at(&task, 1, 8), path.clone());
    // It miscounts until the first part of unit 1 is recorded, and then panics.
    watch(&mut task, move |kind, case, prefix| {
        if kind == KernelKind::Scalar && next(case, prefix) {
            eventually("record", || is_recorded(&recorded, 1, 8, kind).then_some(()));
            panic!("on purpose");
        }
        kind == KernelKind::Scalar
    });
    let outcome = run(task);
    assert_eq!((outcome.solutions, outcome.kernel.as_str()), (SOLUTIONS, "generic"));
    assert_eq!(voided(&path), ["0", "1"]);
    let again = resume(&path, KernelKind::Scalar, 1, 4);
    assert_eq!(again.resumed(), (again.decomposition().units(), 0));
    assert_eq!(run(again).solutions, SOLUTIONS);
}

#[test]
fn a_unit_that_a_kernel_fails_on_is_counted_from_its_beginning() {
    let scratch = Scratch::new("failed");
    let path = killed_inside_a_unit(&scratch);
    let mut task = resume(&path, KernelKind::Scalar, 1, 6);
    let (next, recorded) = (at(&task, 0, 26), path.clone());
    let unit = task.decomposition().unit(0);
    let by_others = Arc::new(AtomicU64::new(0));
    let more = Arc::clone(&by_others);
    // It panics once, when the unit has been continued.
    watch(&mut task, move |kind, case, prefix| {
        if kind == KernelKind::Scalar && next(case, prefix) {
            eventually("record", || is_recorded(&recorded, 0, 26, kind).then_some(()));
            panic!("on purpose");
        }
        more.fetch_add(u64::from(kind != KernelKind::Scalar), Ordering::Relaxed);
        false
    });
    let outcome = run(task);
    assert_eq!((outcome.solutions, outcome.kernel.as_str()), (SOLUTIONS, "generic+scalar"));
    assert_eq!(voided(&path), ["0"]);
    assert_eq!(by_others.load(Ordering::Relaxed), unit.end - unit.start);
}

#[test]
fn a_device_and_a_thread_may_count_the_same_unit() {
    let scratch = Scratch::new("device");
    let path = scratch.path("run");
    let mut task = resume(&path, KernelKind::Scalar, 1, 1);
    let shape = Shape { lanes: 128, chunk: 64, ring: 1 << 13, prefixes: 100 };
    task.add_device("mirror", DeviceKernel::new(Box::new(Mirror::default()), shape, false));
    assert_eq!(run(task).solutions, SOLUTIONS);
    let file = Checkpoint::read(&path).expect("a checkpoint");
    assert_eq!(file.completed().total().expect("all units").solutions(), Ok(SOLUTIONS));
}

#[test]
fn a_partial_result_that_is_larger_than_its_unit_is_refused() {
    let scratch = Scratch::new("too-large");
    let path = scratch.path("run");
    let task = resume(&path, KernelKind::Scalar, 1, 1);
    let last = task.decomposition().units() - 1;
    let range = task.decomposition().unit(last);
    drop(task);
    let mut file = Checkpoint::open(&path).expect("a checkpoint");
    let counted = range.end - range.start;
    let whole = PartialUnit { counted, ..PartialUnit::start(last, "scalar") };
    file.append_partial(&[whole]).expect("smaller than most units");
    drop(file);
    let problem = Problem::empty(Piece::Queen, N);
    let refused = CountTask::resume(&problem, &options(KernelKind::Scalar, 1), &path);
    let Err(CountError::Checkpoint(CheckpointError::Damaged {
        damage: Corruption::Unit(error),
        ..
    })) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(error, EnterError::Subproblems { unit: last, counted, subproblems: counted });
}
