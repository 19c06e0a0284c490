//! Whatever fault a kernel or a device of a worker has, its units are counted again: never a wrong
//! total, never a unit that is lost. The faults are those of the tests of counts.

use crate::fake_coordinator::{Scratch, listen, options, queens, start};
use crate::faults::devices::{ALL, Failing, FailingDevice, batches_of_the_self_test};
use crate::faults::kernels::{Fault, Faulty};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nqueens::cluster::protocol::v1;
use nqueens::cluster::worker::{WorkerError, WorkerOptions};
use nqueens::decomposition::{Prefix, SymmetryCase};
use nqueens::engine::{Device, DeviceChoice, DeviceName, KernelFactory};
use nqueens::kernel::KernelKind;

/// More queens than on the boards with known answers, so that faults need not strike those.
const N: usize = 11;
const SOLUTIONS: u128 = 2680;

/// Counts N queens on a worker whose device fails so. Returns the results.
async fn count_on_device(failing: Failing, sound_batches: usize, cpu: bool) -> Vec<v1::Result> {
    let jobs = [queens(N, 100)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new(&format!("fault-{failing:?}-{sound_batches}-{cpu}"));
    let devices = if cpu { vec![DeviceName::Cpu] } else { Vec::new() };
    let running = start(WorkerOptions {
        devices: DeviceChoice::These(devices),
        opened: vec![Device::opened("failing-0", FailingDevice::kernel(failing, sound_batches))],
        ..options(&scratch, &serving)
    });
    coordinator.wait_until_finished(&jobs).await;
    running.stop().await;
    assert_eq!(coordinator.solutions(&jobs[0]), SOLUTIONS, "{failing:?}");
    assert!(coordinator.state().log.failures.is_empty(), "{failing:?}: a unit was given up");
    coordinator.results()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_fails_changes_no_total_of_a_campaign() {
    let sound = batches_of_the_self_test();
    for failing in ALL {
        let in_self_test = count_on_device(failing, 0, false).await;
        assert!(in_self_test.iter().all(|result| result.kernel != "wgsl"), "{failing:?}");
        if failing != Failing::OutOfMemory {
            let later = count_on_device(failing, sound + 2, false).await;
            assert!(later.iter().any(|result| result.kernel != "wgsl"), "{failing:?}");
            count_on_device(failing, sound + 2, true).await;
        }
    }
}

/// Returns a factory whose kernels of a kind have a fault as often as `times` says, in batches of
/// boards that are larger than those with known answers.
fn faulty(kind: KernelKind, fault: Fault, times: u32) -> KernelFactory {
    let left = Arc::new(AtomicU32::new(times));
    KernelFactory::new(move |wanted, piece| {
        let sound = wanted.build(piece)?;
        if wanted != kind {
            return Ok(sound);
        }
        let left = Arc::clone(&left);
        let take_one = |left: u32| left.checked_sub(1);
        let trigger = Arc::new(move |case: &SymmetryCase, _: &[Prefix]| {
            let strikes = case.n() == N
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take_one).is_ok();
            strikes.then_some(fault)
        });
        Ok(Box::new(Faulty { sound, trigger }))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_a_kernel_fails_on_is_counted_by_another_kernel_of_the_worker() {
    for fault in [Fault::Panics, Fault::Overflows, Fault::Contradicts] {
        for times in [1, 1_000_000] {
            let jobs = [queens(N, 100)];
            let (coordinator, serving) = listen(&jobs).await;
            let scratch = Scratch::new(&format!("kernel-{fault:?}-{times}"));
            let running = start(WorkerOptions {
                kernel: Some(KernelKind::Scalar),
                kernels: faulty(KernelKind::Scalar, fault, times),
                ..options(&scratch, &serving)
            });
            coordinator.wait_until_finished(&jobs).await;
            running.stop().await;
            assert_eq!(coordinator.solutions(&jobs[0]), SOLUTIONS, "{fault:?}");
            // Two threads may count the last unit.
            let results = coordinator.results();
            let by_others = results.iter().filter(|result| result.kernel == "generic");
            let by_others: BTreeSet<u64> = by_others.map(|result| result.unit).collect();
            assert!(!by_others.is_empty(), "{fault:?}, {times} times");
            assert!(times > 1 || by_others.len() == 1, "{fault:?}: {by_others:?}");
            let failures = &coordinator.state().log.failures;
            assert!(failures.is_empty(), "{fault:?}: {failures:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_kernel_fails_the_known_answers_ends_and_delivers_nothing_more() {
    let jobs = [queens(N, 100)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("miscounts");
    // It is sound until it contradicts itself, and then miscounts every board.
    let damaged = Arc::new(AtomicBool::new(false));
    let kernels = KernelFactory::new(move |kind, piece| {
        let (sound, damaged) = (kind.build(piece)?, Arc::clone(&damaged));
        let trigger = Arc::new(move |case: &SymmetryCase, _: &[Prefix]| {
            if damaged.load(Ordering::SeqCst) {
                return Some(Fault::Miscounts);
            }
            damaged.store(case.n() == N, Ordering::SeqCst);
            (case.n() == N).then_some(Fault::Contradicts)
        });
        Ok(Box::new(Faulty { sound, trigger }))
    });
    let running = start(WorkerOptions {
        kernel: Some(KernelKind::Scalar),
        kernels,
        threads: std::num::NonZeroUsize::new(1),
        ..options(&scratch, &serving)
    });
    let error = running.end().await;
    assert!(
        matches!(&error, Err(WorkerError::Miscounts(why)) if why.contains("published value")),
        "{error:?}"
    );
    assert_eq!(coordinator.results(), []);
    // The next worker in the folder, on a machine that is mended, has nothing to deliver.
    let next =
        start(WorkerOptions { kernel: Some(KernelKind::Scalar), ..options(&scratch, &serving) });
    coordinator.wait_until_finished(&jobs).await;
    next.stop().await;
    assert_eq!(coordinator.solutions(&jobs[0]), SOLUTIONS);
}
