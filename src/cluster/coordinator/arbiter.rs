//! The arbiter: the coordinator counts units itself, on the local CPU. It counts a disputed unit
//! twice, the mirror image by the fastest kernel and the unit itself by another, and gives a ruling
//! only if both agree. An audit counts the unit once, as its mirror image.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use crate::cluster::campaign::{ArbiterTask, COORDINATOR, Ruling, Source, SubRangeSet};
use crate::cluster::protocol::BUILD;
use crate::decomposition::{Decomposition, Job};
use crate::executor::KernelPreference;
use crate::kernel::{KernelKind, count_parts};
use crate::tally::Tally;

/// The worker name of the arbiter, which no worker can have.
pub(super) const NAME: &str = "(arbiter)";

/// A task with the units of its job.
#[derive(Clone, Debug)]
pub(super) struct Assigned {
    pub(super) task: ArbiterTask,
    pub(super) decomposition: Arc<Decomposition>,
}

/// The outcome of a task.
#[derive(Clone, Debug)]
pub(super) struct ArbiterAnswer {
    pub(super) task: ArbiterTask,
    /// The ruling, or the reason that the arbiter cannot decide.
    pub(super) ruling: Result<Ruling, String>,
    pub(super) source: Source,
}

/// Starts the thread of the arbiter, which counts with `threads` threads. It ends when the sender
/// is dropped.
///
/// # Errors
/// Returns an error if the thread cannot be spawned.
pub(super) fn start(
    threads: NonZeroUsize,
    mut answer: impl FnMut(ArbiterAnswer) + Send + 'static,
) -> std::io::Result<mpsc::Sender<Assigned>> {
    let (sender, tasks) = mpsc::channel::<Assigned>();
    let work = move || {
        for Assigned { task, decomposition } in tasks {
            let (first, second) = kernels(decomposition.job());
            // Count on a separate thread, so that a panic still yields an answer.
            let ruling = std::thread::scope(|scope| {
                let counting =
                    scope.spawn(|| count(&task, &decomposition, (first, second), threads));
                counting.join().unwrap_or_else(|_| Err("counting failed; see the log".to_owned()))
            });
            let kernel = if task.dispute { format!("{first}+{second}") } else { first.to_string() };
            let source = Source {
                worker: NAME.to_owned(),
                owner: COORDINATOR.to_owned(),
                kernel,
                device: "cpu".to_owned(),
                build: BUILD.to_owned(),
            };
            answer(ArbiterAnswer { task, ruling, source });
        }
    };
    std::thread::Builder::new().name("arbiter".to_owned()).spawn(work)?;
    Ok(sender)
}

/// Returns the kernels that count a job on this machine.
fn kernels(job: &Job) -> (KernelKind, KernelKind) {
    let preference = KernelPreference::new(None).ok();
    let pair = preference.and_then(|preference| preference.pair(job));
    // It counts every job, on every machine.
    pair.unwrap_or((KernelKind::Generic, KernelKind::Generic))
}

fn count(
    task: &ArbiterTask,
    decomposition: &Decomposition,
    (first, second): (KernelKind, KernelKind),
    threads: NonZeroUsize,
) -> Result<Ruling, String> {
    let began = Instant::now();
    let unit = task.unit.unit;
    if unit >= decomposition.units() {
        return Err(format!("the job has {} units only", decomposition.units()));
    }
    let image = decomposition.mirrored();
    let mut sums = sums_of(first, &image, (unit, task.sub_ranges), threads)?;
    if task.dispute {
        let itself = sums_of(second, decomposition, (unit, task.sub_ranges), threads)?;
        let differ = image_differs(&itself, &sums);
        if let Some((one, other)) = differ {
            return Err(format!(
                "{second} counts {one} thirds, but {first} counts {other} in the mirror image: \
                 this machine cannot be trusted"
            ));
        }
        sums = itself;
    }
    let mut tally = Tally::default();
    sums.iter().try_for_each(|sum| tally.merge(sum)).map_err(|error| error.to_string())?;
    let sub_sums = sums.iter().map(Tally::thirds).collect();
    Ok(Ruling { task: *task, tally, sub_sums, elapsed_s: began.elapsed().as_secs_f64() })
}

/// Returns the first two sums that differ, in thirds.
fn image_differs(one: &[Tally], other: &[Tally]) -> Option<(u128, u128)> {
    one.iter()
        .zip(other)
        .map(|(one, other)| (one.thirds(), other.thirds()))
        .find(|(one, other)| one != other)
}

/// Counts the given sub-ranges of a unit, or all of them if `sub_ranges` is empty: as many at a
/// time as there are threads.
fn sums_of(
    kind: KernelKind,
    decomposition: &Decomposition,
    (unit, sub_ranges): (u64, SubRangeSet),
    threads: NonZeroUsize,
) -> Result<Vec<Tally>, String> {
    let wanted = |number: &u32| sub_ranges.is_empty() || sub_ranges.bits() >> number & 1 == 1;
    let ranges: Vec<Range<u64>> = (0..u32::BITS)
        .zip(decomposition.sub_ranges(unit))
        .filter(|(number, _)| wanted(number))
        .map(|(_, range)| range)
        .collect();
    let piece = decomposition.job().problem().piece();
    let next = AtomicUsize::new(0);
    let count_some = || -> Result<Vec<(usize, Tally)>, String> {
        let mut kernel = kind.build(piece).map_err(|error| error.to_string())?;
        let mut sums = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = ranges.get(number) else { return Ok(sums) };
            let parts = count_parts(&mut *kernel, decomposition, range.clone());
            let tally = parts.and_then(|parts| parts.total());
            sums.push((number, tally.map_err(|error| error.to_string())?));
        }
    };
    let counted: Result<Vec<_>, String> = std::thread::scope(|scope| {
        // This thread counts, too, and alone if no other can be spawned.
        let others = 1..threads.get().min(ranges.len());
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, count_some).ok();
        let others: Vec<_> = others.filter_map(spawn).collect();
        let own = std::iter::once(count_some());
        let joined = others.into_iter().map(|other| other.join());
        own.chain(joined.map(|sums| sums.unwrap_or_else(|panic| resume_unwind(panic)))).collect()
    });
    let mut sums: Vec<(usize, Tally)> = counted?.into_iter().flatten().collect();
    sums.sort_unstable_by_key(|(number, _)| *number);
    Ok(sums.into_iter().map(|(_, tally)| tally).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::cluster::campaign::UnitId;
    use crate::decomposition::Subproblems;
    use crate::engine::plan_for_campaign;

    #[test]
    fn the_sums_do_not_depend_on_the_number_of_threads() {
        let problem = Problem::empty(Piece::Queen, 12);
        let decomposition = plan_for_campaign(&problem, Subproblems::Prefixes).expect("small");
        let all = decomposition.sub_ranges(0).len();
        assert!(all > 4, "{all}");
        for bits in [0, 0b1010, 1 << (all - 1)] {
            let sums = |threads| {
                let sub_ranges = SubRangeSet::from_bits(bits);
                let threads = NonZeroUsize::new(threads).expect("some");
                sums_of(KernelKind::Generic, &decomposition, (0, sub_ranges), threads)
            };
            let alone = sums(1).expect("counts");
            assert_eq!(alone.len(), if bits == 0 { all } else { bits.count_ones() as usize });
            for _ in 0..8 {
                assert_eq!(sums(3).as_ref(), Ok(&alone), "{bits:b}");
                assert_eq!(sums(40).as_ref(), Ok(&alone), "{bits:b}");
            }
        }
    }

    #[test]
    fn the_arbiter_counts_the_known_totals() {
        for (piece, threads) in [(Piece::Queen, 1), (Piece::Queen, 3), (Piece::Rook, 40)] {
            let threads = NonZeroUsize::new(threads).expect("some");
            let decomposition =
                plan_for_campaign(&Problem::empty(piece, 8), Subproblems::Prefixes).expect("small");
            let decomposition = Arc::new(decomposition);
            let job = decomposition.job().hash();
            let (sender, receiver) = mpsc::channel();
            let tasks = start(threads, move |answer| sender.send(answer).expect("waited for"))
                .expect("a thread");
            let ask = |unit, bits, dispute| {
                let sub_ranges = SubRangeSet::from_bits(bits);
                let task = ArbiterTask { unit: UnitId { job, unit }, sub_ranges, dispute };
                let decomposition = Arc::clone(&decomposition);
                tasks.send(Assigned { task, decomposition }).expect("it waits");
                let answer = receiver.recv().expect("it answers");
                assert_eq!(answer.task, task);
                answer.ruling
            };
            let mut total = Tally::default();
            for unit in 0..decomposition.units() {
                let ruling = ask(unit, 0, true).expect("both kernels agree");
                assert_eq!(ruling.sub_sums.len(), decomposition.sub_ranges(unit).len());
                let audit = ask(unit, 0, false).expect("counted");
                assert_eq!(
                    (&audit.sub_sums, audit.tally.thirds()),
                    (&ruling.sub_sums, ruling.tally.thirds())
                );
                if let Some(first) = ruling.sub_sums.first() {
                    assert_eq!(ask(unit, 1, false).expect("counted").sub_sums, vec![*first]);
                }
                total.merge(&ruling.tally).expect("small");
            }
            let known = if piece == Piece::Queen { 92 } else { 40_320 };
            assert_eq!(total.solutions(), Ok(known));
            assert!(ask(decomposition.units(), 0, true).is_err());
        }
    }
}
