use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use crate::board::{Piece, Problem};
use crate::cluster::campaign::{Assignment, SubRangeSet};
use crate::decomposition::{Decomposition, Job, Prefix, Scheme, SymmetryCase};
use crate::executor::{CpuThread, DeviceThread, KernelFactory, KernelPreference};
use crate::kernel::gpu::{DeviceKernel, Mirror, Shape};
use crate::kernel::{Kernel, KernelKind, count_range};

/// Creates a source without threads; `cpu_counts` sets whether the CPU may count.
fn leased_units(cpu_counts: bool) -> (LeasedUnits, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let preference = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
    let queue = Arc::new(WorkQueue::new(preference, 1, cpu_counts));
    let outbox = Arc::new(Outbox::open(&folder.path().join("outbox.db")).expect("opens"));
    let key = Arc::new(SigningKey::generate().expect("random"));
    (LeasedUnits { queue, outbox, key }, folder)
}

/// Returns leases of whole units, of whole mirror images and of some sub-ranges of mirror
/// images, each with its decomposition.
fn leases() -> Vec<(Assignment, Arc<Decomposition>)> {
    let problem = Problem::empty(Piece::Queen, 10);
    let scheme = Scheme::best(&problem);
    let job = |prefixes| Job::new(problem.clone(), scheme, None, prefixes).expect("small");
    // Several units, the last of which is small.
    let prefixes = Decomposition::new(job(1)).prefixes();
    let itself = Arc::new(Decomposition::new(job((prefixes - 5) / 3)));
    let image = Arc::new(itself.mirrored());
    let last = itself.units() - 1;
    assert!(
        itself.sub_ranges(0).len() == 32
            && (1..32).contains(&itself.sub_ranges(last).len())
            && last > 2
    );
    let some = SubRangeSet::from_numbers([0, 3, 31]).expect("below 32");
    let lease = |attempt, units, mirrored, sub_ranges| Assignment {
        attempt,
        job: itself.job().hash(),
        units,
        mirrored,
        not_kernel: None,
        sub_ranges,
        grant: vec![attempt as u8; 3],
    };
    vec![
        (lease(1, 0..last + 1, false, SubRangeSet::default()), Arc::clone(&itself)),
        (lease(2, 1..2, true, SubRangeSet::default()), Arc::clone(&image)),
        (lease(3, 0..2, true, some), Arc::clone(&image)),
        (lease(4, last..last + 1, true, SubRangeSet::from_bits(1)), image),
    ]
}

fn assign(queue: &WorkQueue, leases: &[(Assignment, Arc<Decomposition>)]) -> usize {
    for (lease, decomposition) in leases {
        queue.assign([lease.clone()]);
        queue.set_decomposition(lease.attempt, Ok(Arc::clone(decomposition)));
    }
    leases.iter().map(|(lease, _)| (lease.units.end - lease.units.start) as usize).sum()
}

/// Waits for `count` results and returns them.
fn results(source: &LeasedUnits, count: usize) -> Vec<(u64, v1::Result)> {
    for _ in 0..60_000 {
        let batch = source.outbox.batch(1000, 1 << 20);
        if batch.len() == count {
            return batch;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("there are not {count} results")
}

/// Waits for `count` results and compares them with the counts of the reference kernel.
fn check_results(source: &LeasedUnits, count: usize) {
    let results = results(source, count);
    let leases = leases();
    let mut oracle = KernelKind::Reference.build(Piece::Queen).expect("runs everywhere");
    for (_, result) in results {
        let (lease, decomposition) =
            leases.iter().find(|(lease, _)| lease.attempt == result.attempt).expect("asked for");
        let result = messages::unit_result(result, ("w", "o"), "0").expect("well-formed");
        let unit = LeasedUnit { lease: Arc::new(lease.clone()), unit: result.unit.unit };
        let batch = Batch {
            job: lease.job,
            decomposition: Arc::clone(decomposition),
            kernels: Arc::default(),
            units: vec![unit.clone()],
        };
        let by = Counter::Cpu(KernelKind::Reference);
        let ranges = source.begin(&batch, &unit, &by).ranges();
        let whole = || decomposition.sub_ranges(result.unit.unit).len();
        assert_eq!(
            ranges.len(),
            if lease.sub_ranges.is_empty() { whole() } else { lease.sub_ranges.len() }
        );
        let naive: Vec<u128> = ranges
            .into_iter()
            .map(|range| count_range(&mut *oracle, decomposition, range).expect("counts").thirds())
            .collect();
        assert_eq!(result.sub_sums, naive, "{:?}", result.unit);
        assert_eq!(result.sub_sums.iter().sum::<u128>(), result.tally.thirds());
        assert_eq!(result.parts.total(), Ok(result.tally));
        assert_eq!(result.grant, lease.grant);
    }
}

fn kernels(factory: KernelFactory) -> CpuKernels {
    CpuKernels::new(vec![KernelKind::Scalar, KernelKind::Generic], factory, true)
}

#[test]
fn a_cpu_thread_counts_exactly_the_sub_ranges_of_a_lease() {
    let (source, _scratch) = leased_units(true);
    let count = assign(&source.queue, &leases());
    let kernels = kernels(KernelFactory::default());
    let mut thread = CpuThread::new(&source, &kernels, PieceSize::Timed);
    while source.outbox.len() < count {
        thread.count(&source.take_for_cpu().expect("a unit"));
    }
    check_results(&source, count);
    let devices = source.outbox.batch(1000, 1 << 20).into_iter().map(|(_, result)| result.device);
    assert!(devices.into_iter().all(|device| device.starts_with("cpu, ")));
}

#[test]
fn a_busy_thread_makes_spot_checks_between_sub_ranges() {
    let (source, _scratch) = leased_units(true);
    let (whole, spots): (Vec<_>, Vec<_>) =
        leases().into_iter().partition(|(lease, _)| lease.sub_ranges.is_empty());
    assign(&source.queue, &whole);
    let batch = source.take_for_cpu().expect("a unit");
    assign(&source.queue, &spots);
    let kernels = kernels(KernelFactory::default());
    CpuThread::new(&source, &kernels, PieceSize::Timed).count(&batch);
    let results = results(&source, 4);
    let attempts: Vec<u64> = results.into_iter().map(|(_, result)| result.attempt).collect();
    assert_eq!(attempts, [3, 3, 4, batch.units[0].lease.attempt]);
    assert!(source.take_between().is_none());
}

#[test]
fn a_device_counts_exactly_the_sub_ranges_of_a_lease() {
    let (source, _scratch) = leased_units(false);
    let mut devices = [DeviceLabel { number: 7, id: "mirror-0".into(), name: String::new() }];
    source.add_devices(&mut devices);
    let [device] = devices;
    assert_eq!(device.number, 0);
    let count = assign(&source.queue, &leases());
    let shape = Shape { lanes: 256, chunk: 128, ring: 1 << 14, prefixes: 5000 };
    let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), shape, false);
    std::thread::scope(|scope| {
        let counting = scope.spawn(|| DeviceThread::new(&source, device).work(&mut kernel));
        check_results(&source, count);
        source.stop();
        assert_eq!(counting.join().expect("no panic"), Ok(()));
    });
}

/// Returns a factory whose scalar kernels panic in their first use.
fn panicking_once() -> KernelFactory {
    let used = Arc::new(AtomicBool::new(false));
    KernelFactory::new(move |kind, piece| {
        let kernel = kind.build(piece)?;
        let panics = kind == KernelKind::Scalar && !used.swap(true, Ordering::Relaxed);
        Ok(if panics { Box::new(Panicking) } else { kernel })
    })
}

struct Panicking;

impl Kernel for Panicking {
    fn count(&mut self, _: &SymmetryCase, _: &[Prefix], _: &mut Parts) -> Result<(), TallyError> {
        panic!("on purpose")
    }
}

#[test]
fn a_unit_that_a_kernel_panics_on_is_counted_here_and_not_reported_as_failed() {
    let (source, _scratch) = leased_units(true);
    let count = assign(&source.queue, &leases()[..1]);
    let kernels = kernels(panicking_once());
    let mut thread = CpuThread::new(&source, &kernels, PieceSize::Timed);
    while source.outbox.len() < count {
        thread.count(&source.take_for_cpu().expect("a unit"));
    }
    check_results(&source, count);
    assert_eq!((source.queue.next_failed(), source.queue.broken()), (None, None));
    let results = source.outbox.batch(1000, 1 << 20).into_iter();
    let others: Vec<u64> = results
        .filter(|(_, result)| result.kernel != "scalar")
        .map(|(_, result)| result.unit)
        .collect();
    assert_eq!(others, [0], "the unit that the scalar kernel failed on");
}

#[test]
fn results_of_a_machine_that_miscounts_do_not_leave_it() {
    let (source, _scratch) = leased_units(true);
    assign(&source.queue, &leases()[..1]);
    // The first kernel counts a unit; those for the test panic.
    let made = Arc::new(AtomicBool::new(false));
    let factory = KernelFactory::new(move |kind, piece| {
        let first = !made.swap(true, Ordering::Relaxed);
        Ok(if first { kind.build(piece)? } else { Box::new(Panicking) })
    });
    let kernels = kernels(factory);
    let mut thread = CpuThread::new(&source, &kernels, PieceSize::Timed);
    thread.count(&source.take_for_cpu().expect("a unit"));
    assert_eq!(source.outbox.len(), 1);
    thread.test(KernelKind::Scalar, &[KernelKind::Scalar]);
    assert_eq!(source.outbox.len(), 0);
    assert!(source.queue.broken().is_some_and(|why| why.contains("it panicked")));
    assert!(source.is_stopped() && source.take_for_cpu().is_none());
    // Another thread finishes its unit a moment later.
    let result = v1::Result::default();
    source.outbox.put(result);
    assert_eq!(source.outbox.len(), 0);
}
