use std::path::PathBuf;
use std::time::Duration;

use super::cpu_thread::CpuThread;
use super::device_thread::count_on_device;
use super::*;
use crate::board::{Piece, Problem};
use crate::cluster::campaign::{Assignment, SubRangeSet};
use crate::decomposition::{Job, Scheme};
use crate::engine::KernelPreference;
use crate::kernel::gpu::{DeviceKernel, Mirror, Shape};
use crate::kernel::{KernelKind, count_range};

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Creates a context without threads; `cpu_counts` sets whether the CPU may count.
fn context(name: &str, cpu_counts: bool) -> (Context, Scratch) {
    let folder =
        std::env::temp_dir().join(format!("nqueens-executors-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let preference = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
    let queue = Arc::new(WorkQueue::new(preference, 1, cpu_counts));
    let outbox = Arc::new(Outbox::open(&folder.join("outbox.db")).expect("opens"));
    (Context { queue, outbox }, Scratch(folder))
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
fn results(context: &Context, count: usize) -> Vec<(u64, v1::Result)> {
    for _ in 0..60_000 {
        let batch = context.outbox.batch(1000, 1 << 20);
        if batch.len() == count {
            return batch;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("there are not {count} results")
}

/// Waits for `count` results and compares them with the counts of the reference kernel.
fn check_results(context: &Context, count: usize) {
    let results = results(context, count);
    let leases = leases();
    let mut oracle = KernelKind::Reference.build(Piece::Queen).expect("runs everywhere");
    for (_, result) in results {
        let (lease, decomposition) =
            leases.iter().find(|(lease, _)| lease.attempt == result.attempt).expect("asked for");
        let result = messages::unit_result(result, ("w", "o"), "0").expect("well-formed");
        let unit = LeasedUnit { lease: Arc::new(lease.clone()), unit: result.unit.unit };
        let ranges = sub_ranges(decomposition, &unit);
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

#[test]
fn a_cpu_thread_counts_exactly_the_sub_ranges_of_a_lease() {
    let (context, _scratch) = context("cpu", true);
    let count = assign(&context.queue, &leases());
    let mut thread = CpuThread::new(&context, "cpu, a\u{e9}b\n");
    while context.outbox.len() < count {
        let (batch, kind) = context.queue.take_for_cpu().expect("a unit");
        thread.count_or_fail(&batch, kind).expect("counts");
    }
    check_results(&context, count);
    let devices = context.outbox.batch(1000, 1 << 20).into_iter().map(|(_, result)| result.device);
    assert!(devices.into_iter().all(|device| device == "cpu, ab"));
}

#[test]
fn a_busy_thread_makes_spot_checks_between_sub_ranges() {
    let (context, _scratch) = context("between", true);
    let (whole, spots): (Vec<_>, Vec<_>) =
        leases().into_iter().partition(|(lease, _)| lease.sub_ranges.is_empty());
    assign(&context.queue, &whole);
    let (batch, kind) = context.queue.take_for_cpu().expect("a unit");
    assign(&context.queue, &spots);
    CpuThread::new(&context, "cpu").count_or_fail(&batch, kind).expect("counts");
    let results = results(&context, 4);
    let attempts: Vec<u64> = results.into_iter().map(|(_, result)| result.attempt).collect();
    assert_eq!(attempts, [3, 3, 4, batch.units[0].lease.attempt]);
    assert!(context.queue.take_spot_for_cpu().is_none());
}

#[test]
fn a_device_counts_exactly_the_sub_ranges_of_a_lease() {
    let (context, _scratch) = context("device", false);
    let device = DeviceStatus { id: "mirror-0".into(), name: String::new(), fault: None };
    context.queue.add_devices([device]);
    let count = assign(&context.queue, &leases());
    let shape = Shape { lanes: 256, chunk: 128, ring: 1 << 14, prefixes: 5000 };
    let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), shape, false);
    std::thread::scope(|scope| {
        let counting =
            scope.spawn(|| count_on_device(&context, "mirror-0", &mut kernel, 0, &mut None));
        check_results(&context, count);
        context.queue.stop();
        assert_eq!(counting.join().expect("no panic"), Ok(()));
    });
}
