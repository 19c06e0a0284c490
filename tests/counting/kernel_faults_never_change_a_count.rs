//! Whatever fault a CPU kernel has, its unit is counted again, by another kernel if there is one:
//! never a wrong total, never a panic that ends the count. The kernels are sound ones with injected
//! faults.

use crate::faults::kernels::{Fault, Faulty, Trigger};
use crate::support;

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nqueens::board::{Piece, Problem};
use nqueens::decomposition::{Prefix, SymmetryCase};
use nqueens::engine::{
    CountError, CountEvent, CountOptions, CountOutcome, CountProgress, CountTask,
};
use nqueens::kernel::{Kernel, KernelError, KernelKind};
use support::{Scratch, eventually};

/// Injects faults into kernels of these kinds.
fn inject(task: &mut CountTask, kinds: &'static [KernelKind], trigger: impl Trigger + 'static) {
    let trigger: Arc<dyn Trigger> = Arc::new(trigger);
    task.set_kernels(move |kind, piece| -> Result<Box<dyn Kernel>, KernelError> {
        let sound = kind.build(piece)?;
        let trigger = Arc::clone(&trigger);
        Ok(if kinds.contains(&kind) { Box::new(Faulty { sound, trigger }) } else { sound })
    });
}

/// Returns a trigger for batches with one of the first prefixes of these units.
fn on_units(
    task: &CountTask,
    units: &[u64],
) -> impl Fn(&SymmetryCase, &[Prefix]) -> bool + Send + Sync + use<> {
    let mut first = Vec::new();
    for &unit in units {
        let range = task.decomposition().unit(unit);
        task.decomposition().for_each(range.start..range.start + 1, |plan, prefix| {
            first.push((plan.clone(), *prefix));
        });
    }
    // Symmetry cases that differ only in their rules have the same prefixes.
    move |plan, prefixes| first.iter().any(|(of, prefix)| of == plan && prefixes.contains(prefix))
}

fn options(kernel: Option<KernelKind>, threads: usize) -> CountOptions {
    CountOptions { kernel, threads: NonZeroUsize::new(threads), ..CountOptions::default() }
}

fn plan(n: usize, kernel: KernelKind, threads: usize) -> CountTask {
    CountTask::plan(&Problem::empty(Piece::Queen, n), &options(Some(kernel), threads))
        .expect("plans")
}

/// Counts and calls a function with the progress. Returns the outcome and the notes.
fn run(
    task: CountTask,
    mut watch: impl FnMut(&CountProgress),
) -> (Result<CountOutcome, CountError>, Vec<String>) {
    let mut notes = Vec::new();
    let outcome = task.run(|event| {
        match event {
            CountEvent::Note(note) => notes.push(note.to_owned()),
            CountEvent::Progress(progress) => watch(progress),
        }
        ControlFlow::Continue(())
    });
    assert!(notes.iter().all(|note| !note.contains('\n')), "{notes:?}");
    (outcome, notes)
}

const SOLUTIONS_11: u128 = 2680;

#[test]
fn a_unit_that_a_kernel_fails_on_is_counted_again_by_another_one() {
    for fault in [Fault::Panics, Fault::Overflows, Fault::Contradicts] {
        for threads in [1, 3] {
            for units in [&[0][..], &[20, 40], &[3, 4, 7, 30, 31, 62]] {
                let mut task = plan(11, KernelKind::Scalar, threads);
                let hit = on_units(&task, units);
                inject(&mut task, &[KernelKind::Scalar], move |plan, prefixes| {
                    hit(plan, prefixes).then_some(fault)
                });
                let (outcome, notes) = run(task, |_| ());
                let outcome = outcome.expect("counts");
                let what = format!("{fault:?} on {units:?}, {threads} threads: {notes:?}");
                assert_eq!(outcome.solutions, SOLUTIONS_11, "{what}");
                assert_eq!(outcome.kernel, "generic+scalar", "{what}");
                // One note that it fails, and, if it fails on three units, one that it is disabled.
                let (dropped, others): (Vec<&String>, Vec<&String>) =
                    notes.iter().partition(|note| note.contains("is disabled"));
                assert_eq!(dropped.len(), usize::from(units.len() > 2), "{what}");
                assert!(others.len() == 1 || others.is_empty() && units.len() > 2, "{what}");
                assert!(
                    notes.iter().all(|note| note.starts_with("kernel scalar failed on ")),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn a_kernel_that_always_fails_is_not_used_again_and_is_noted_once() {
    for fault in [Fault::Panics, Fault::Overflows, Fault::Contradicts] {
        for threads in [1, 3] {
            // Include a batch kernel if there is one: its pending results must not be used later.
            for kernel in [KernelKind::Scalar, KernelKind::fastest(Piece::Queen)] {
                let mut task = plan(11, kernel, threads);
                let kinds: &'static [KernelKind] = match kernel {
                    KernelKind::Avx512 => &[KernelKind::Avx512],
                    KernelKind::Avx2 => &[KernelKind::Avx2],
                    _ => &[KernelKind::Scalar],
                };
                inject(&mut task, kinds, move |_, _| Some(fault));
                let (outcome, notes) = run(task, |_| ());
                let outcome = outcome.expect("counts");
                assert_eq!(outcome.solutions, SOLUTIONS_11, "{fault:?}");
                assert!(!outcome.kernel.contains(kernel.name()), "{fault:?}: {}", outcome.kernel);
                assert_eq!(notes.len(), 1, "{notes:?}");
                assert!(
                    notes[0].starts_with(&format!("kernel {kernel} on this machine: ")),
                    "{notes:?}"
                );
            }
        }
    }
}

/// Injects a kernel that miscounts silently until it panics on the last unit, which it counts when
/// all other results are recorded.
fn miscounting(task: &mut CountTask) -> Arc<AtomicBool> {
    let last = on_units(task, &[task.decomposition().units() - 1]);
    let others_are_kept = Arc::new(AtomicBool::new(false));
    let kept = Arc::clone(&others_are_kept);
    inject(task, &[KernelKind::Scalar], move |plan, prefixes| {
        if !last(plan, prefixes) {
            return Some(Fault::Miscounts);
        }
        eventually("count of all others", || {
            kept.load(Ordering::Relaxed).then_some(Some(Fault::Panics))
        })
    });
    others_are_kept
}

#[test]
fn units_of_a_kernel_that_fails_the_known_answers_are_counted_again() {
    for threads in [1, 3] {
        let mut task = plan(11, KernelKind::Scalar, threads);
        let all_but_one = task.decomposition().units() - 1;
        let others_are_kept = miscounting(&mut task);
        let mut most_done = 0;
        let (outcome, notes) = run(task, |progress| {
            most_done = most_done.max(progress.units_done);
            others_are_kept.store(most_done == all_but_one, Ordering::Relaxed);
        });
        let outcome = outcome.expect("counts");
        assert_eq!((outcome.solutions, outcome.kernel.as_str()), (SOLUTIONS_11, "generic"));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].contains("everything it counted in this run is counted again"),
            "{notes:?}"
        );
    }
}

fn resumed(path: &Path) -> CountTask {
    let problem = Problem::empty(Piece::Queen, 11);
    CountTask::resume(&problem, &options(Some(KernelKind::Scalar), 2), path).expect("a checkpoint")
}

#[test]
fn results_of_a_miscounting_kernel_are_removed_from_a_checkpoint() {
    let scratch = Scratch::new("kernel-faults");
    let path = scratch.file("count.run");
    let path = Path::new(&path);
    let mut task = resumed(path);
    let all_but_one = task.decomposition().units() - 1;
    let others_are_kept = miscounting(&mut task);
    let (outcome, _) = run(task, |progress| {
        if progress.units_done == all_but_one {
            others_are_kept.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(outcome.expect("counts").solutions, SOLUTIONS_11);
    let text = fs::read_to_string(path).expect("it exists");
    assert_eq!(text.matches("disputed").count() as u64, all_but_one);
    // The next session finds a complete count with sound results only.
    let task = resumed(path);
    assert_eq!(task.resumed().0, all_but_one + 1);
    let (outcome, notes) = run(task, |_| ());
    assert_eq!((outcome.expect("it is complete").solutions, notes.len()), (SOLUTIONS_11, 0));
}

#[test]
fn results_of_a_miscounting_kernel_are_discarded_even_if_no_kernel_is_left() {
    let scratch = Scratch::new("kernel-faults-none-left");
    let path = scratch.file("count.run");
    let path = Path::new(&path);
    let mut task = resumed(path);
    task.without_fallback();
    let all_but_one = task.decomposition().units() - 1;
    let others_are_kept = miscounting(&mut task);
    let (outcome, _) = run(task, |progress| {
        if progress.units_done == all_but_one {
            others_are_kept.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(outcome, Err(CountError::Unit { .. })), "{outcome:?}");
    let task = resumed(path);
    assert_eq!(task.resumed().0, 0);
    assert_eq!(run(task, |_| ()).0.expect("counts").solutions, SOLUTIONS_11);
}

#[test]
fn a_unit_that_every_kernel_fails_on_ends_the_count_with_one_line() {
    for fault in [Fault::Panics, Fault::Overflows, Fault::Contradicts] {
        for threads in [1, 3] {
            let mut task = plan(11, KernelKind::Scalar, threads);
            let hit = on_units(&task, &[17]);
            inject(&mut task, &KernelKind::ALL, move |plan, prefixes| {
                hit(plan, prefixes).then_some(fault)
            });
            let (outcome, _) = run(task, |_| ());
            let error = outcome.expect_err("unit 17 cannot be counted");
            assert!(matches!(error, CountError::Unit { unit: 17, .. }), "{error}");
            let line = error.to_string();
            assert!(line.starts_with("unit 17 cannot be counted here: kernel scalar: "), "{line}");
            assert_eq!((line.matches("kernel ").count(), line.lines().count()), (2, 1), "{line}");
        }
    }
}

#[test]
fn a_kernel_without_an_alternative_is_tried_twice() {
    // No other kernel counts rooks on a board of this size.
    let rooks = Problem::empty(Piece::Rook, 12);
    for (failures, counts) in [(1, true), (2, false)] {
        let mut task = CountTask::plan(&rooks, &options(None, 2)).expect("plans");
        let left = AtomicU32::new(failures);
        inject(&mut task, &[KernelKind::Generic], move |plan, _| {
            let mine = plan.problem().piece() == Piece::Rook && plan.n() == 12;
            let take = |left: u32| left.checked_sub(1);
            (mine && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok())
                .then_some(Fault::Panics)
        });
        let (outcome, notes) = run(task, |_| ());
        assert_eq!(outcome.as_ref().ok().map(|o| o.solutions), counts.then_some(479_001_600));
        assert_eq!(outcome.is_err_and(|error| matches!(error, CountError::Unit { .. })), !counts);
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}

#[test]
fn a_selected_kernel_without_alternatives_ends_the_count_when_it_fails() {
    let mut task = plan(11, KernelKind::Scalar, 2);
    task.without_fallback();
    let hit = on_units(&task, &[5]);
    inject(&mut task, &[KernelKind::Scalar], move |plan, prefixes| {
        hit(plan, prefixes).then_some(Fault::Panics)
    });
    let (outcome, notes) = run(task, |_| ());
    let error = outcome.expect_err("no other kernel may count it");
    assert_eq!(error.to_string(), "unit 5 cannot be counted here: kernel scalar: it panicked");
    assert!(notes.len() < 2, "{notes:?}");
}

#[test]
fn the_textbook_kernel_has_alternatives_too() {
    let mut task = plan(11, KernelKind::Textbook, 2);
    inject(&mut task, &[KernelKind::Textbook], move |_, _| Some(Fault::Panics));
    let (outcome, notes) = run(task, |_| ());
    let outcome = outcome.expect("counts");
    assert_eq!(outcome.solutions, SOLUTIONS_11);
    assert_eq!(outcome.kernel, KernelKind::fastest(Piece::Queen).name());
    assert_eq!(notes.len(), 1, "{notes:?}");
}
