//! Workers against a coordinator that loses replies, restarts, is unreachable, cancels jobs, and
//! sends unknown fields: every total is correct, no result is lost, and uncounted units are given
//! back.
//!
//! The coordinator is a campaign in memory behind a real server on loopback. The tests wait for
//! events, with generous limits, so nothing depends on timing.

use crate::fake_coordinator::{
    FakeCoordinator, RunningServer, Scratch, job, listen, options, queens, start,
};

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use nqueens::board::{Piece, Problem, Square};
use nqueens::cluster::campaign::{CampaignEvent, JobState};
use nqueens::cluster::protocol::v1;
use nqueens::cluster::worker::{Environment, Rest, WorkerError, WorkerOptions};
use nqueens::decomposition::Decomposition;
use nqueens::engine::{Device, DeviceChoice};
use nqueens::kernel::KernelKind;
use nqueens::kernel::gpu::layout::{Counters, Slot};
use nqueens::kernel::gpu::{
    Backend, Batch, DeviceKernel, Fault, JobMemory, Memory, Mirror, Shape, Submission, self_test,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_worker_counts_every_board_correctly_and_exits_when_idle() {
    let corner = Problem::new(Piece::Queen, 10, vec![Square::new(0, 3)], vec![Square::new(9, 9)])
        .expect("a board");
    let jobs = [
        queens(8, 10),
        queens(9, 10),
        queens(10, 30),
        job(corner.clone(), 40),
        job(Problem::empty(Piece::Toroidal, 7), 5),
    ];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("counts");
    let running = start(WorkerOptions { exit_when_idle: true, ..options(&scratch, &serving) });
    coordinator.wait_until_finished(&jobs).await;
    let summary = running.end().await.expect("it ends when there is nothing to count");
    let oracle =
        nqueens::engine::CountOptions { kernel: Some(KernelKind::Reference), ..Default::default() };
    let of_corner = nqueens::engine::count(&corner, &oracle).expect("counts").solutions;
    let counted: Vec<u128> = jobs.iter().map(|job| coordinator.solutions(job)).collect();
    assert_eq!(counted, [92, 352, 724, of_corner, 28]);
    assert_eq!((summary.dropped, summary.undelivered), (0, 0));
    let units: u64 = jobs.iter().map(|job| Decomposition::new(job.clone()).units()).sum();
    assert!(summary.units >= units, "{summary:?}");

    let state = coordinator.state();
    for result in &state.log.results {
        assert!(result.device.starts_with("cpu, ") && !result.sub_sums.is_empty(), "{result:?}");
    }
    let last = state.log.syncs.last().expect("a last sync");
    assert!(last.draining && last.held.is_empty() && last.capacity == 0);
    let first = &state.log.syncs[0];
    assert_eq!((first.capacity, first.devices.len()), (2, 1));
    assert_eq!(first.kernels[0], KernelKind::fastest(Piece::Queen).name());
    // Rates are reported once they are known.
    assert!(
        state.log.syncs.iter().any(|sync| sync.rates.iter().any(|rate| rate.units_per_s > 0.0))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_lost_after_the_commit_cost_nothing() {
    let jobs = [queens(10, 10)];
    let (coordinator, serving) = listen(&jobs).await;
    coordinator.lose_replies.store(5, Ordering::SeqCst);
    let scratch = Scratch::new("lost-replies");
    let running = start(WorkerOptions { exit_when_idle: true, ..options(&scratch, &serving) });
    coordinator.wait_until_finished(&jobs).await;
    assert_eq!(running.end().await.expect("it ends without an error").undelivered, 0);
    assert_eq!(coordinator.solutions(&jobs[0]), 724);
    let results = coordinator.results();
    let same = |a: &v1::Result, b: &v1::Result| (a.attempt, a.unit) == (b.attempt, b.unit);
    let again = results
        .iter()
        .enumerate()
        .filter(|(i, a)| results[..*i].iter().any(|b| same(a, b)))
        .count();
    assert!(again > 0, "lost replies cause results to be sent again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_restarts_without_its_leases_gets_every_result() {
    let jobs = [queens(12, 20)];
    let (coordinator, mut serving) = listen(&jobs).await;
    let scratch = Scratch::new("restart");
    let running =
        start(WorkerOptions { kernel: Some(KernelKind::Generic), ..options(&scratch, &serving) });
    for results in [3, 20, 60] {
        coordinator.wait_until("some results", |state| state.log.results.len() >= results).await;
        let address = serving.stop().await;
        coordinator.restart();
        serving = RunningServer::start(&coordinator, address).await;
    }
    coordinator.wait_until_finished(&jobs).await;
    assert_eq!(running.stop().await.undelivered, 0);
    assert_eq!(coordinator.solutions(&jobs[0]), 14_200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_kept_while_the_coordinator_is_unreachable_and_submitted_later() {
    let jobs = [queens(11, 20)];
    let (coordinator, serving) = listen(&jobs).await;
    coordinator.ledger_full.store(true, Ordering::SeqCst);
    let scratch = Scratch::new("away");
    let running = start(options(&scratch, &serving));
    coordinator
        .wait_until("results that are not taken", |state| state.log.results.len() >= 5)
        .await;
    assert!(
        coordinator.state().log.syncs.iter().flat_map(|sync| &sync.held).all(|held| held.left > 0)
    );
    coordinator.away.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(300)).await;
    coordinator.ledger_full.store(false, Ordering::SeqCst);
    coordinator.away.store(false, Ordering::SeqCst);
    coordinator.wait_until_finished(&jobs).await;
    assert_eq!(running.stop().await.undelivered, 0);
    assert_eq!(coordinator.solutions(&jobs[0]), 2680);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_worker_in_the_folder_submits_the_results_of_a_killed_one() {
    let jobs = [queens(10, 10)];
    let (coordinator, serving) = listen(&jobs).await;
    coordinator.ledger_full.store(true, Ordering::SeqCst);
    let scratch = Scratch::new("killed");
    let running = start(options(&scratch, &serving));
    coordinator
        .wait_until("results that are not taken", |state| state.log.results.len() >= 2)
        .await;
    running.kill().await;
    let (unit, first_boot) = {
        let mut state = coordinator.state();
        let first = state.log.results[0].clone();
        let boot = state.log.syncs[0].boot;
        state.log.results.clear();
        ((first.attempt, first.unit), boot)
    };
    coordinator.ledger_full.store(false, Ordering::SeqCst);
    let running = start(options(&scratch, &serving));
    coordinator
        .wait_until("the first result arrives again", |state| {
            state.log.results.iter().any(|result| (result.attempt, result.unit) == unit)
        })
        .await;
    coordinator.wait_until_finished(&jobs).await;
    running.stop().await;
    assert_eq!(coordinator.solutions(&jobs[0]), 724);
    let state = coordinator.state();
    let last = state.log.syncs.last().expect("a last sync");
    assert_ne!(last.boot, first_boot);
    assert_eq!(last.worker, state.log.syncs[0].worker, "the name is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_is_dropped_and_the_next_one_is_counted() {
    // The first job would take half a minute.
    let jobs = [queens(17, 10), queens(9, 10)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("cancelled");
    let running =
        start(WorkerOptions { kernel: Some(KernelKind::Generic), ..options(&scratch, &serving) });
    coordinator
        .wait_until("a lease", |state| state.log.syncs.iter().any(|sync| !sync.held.is_empty()))
        .await;
    FakeCoordinator::apply(
        &mut coordinator.state(),
        vec![CampaignEvent::JobState { job: jobs[0].hash(), state: JobState::Cancelled }],
    );
    coordinator.wait_until_finished(&jobs[1..]).await;
    coordinator
        .wait_until("nothing is held", |state| {
            state.log.syncs.last().is_some_and(|sync| sync.held.is_empty())
        })
        .await;
    running.stop().await;
    assert_eq!(coordinator.solutions(&jobs[1]), 352);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_worker_submits_its_results_and_gives_back_the_rest() {
    let jobs = [queens(17, 50)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("drains");
    let running =
        start(WorkerOptions { kernel: Some(KernelKind::Generic), ..options(&scratch, &serving) });
    coordinator.wait_until("some results", |state| state.log.results.len() >= 5).await;
    let summary = running.stop().await;
    assert_eq!((summary.dropped, summary.undelivered), (0, 0));
    let state = coordinator.state();
    let last = state.log.syncs.last().expect("a last sync");
    assert!(last.draining && last.held.is_empty(), "{last:?}");
    let progress = state.campaign.progress(&jobs[0].hash()).expect("it was submitted");
    assert_eq!(progress.done + progress.open, progress.units, "no unit is leased");
    assert!(progress.done > 0 && progress.open > 0);
    // One result may have been sent twice: a stopping worker does not wait for the answer.
    let sent: HashSet<(u64, u64)> =
        state.log.results.iter().map(|result| (result.attempt, result.unit)).collect();
    assert_eq!(summary.units + summary.recounts, sent.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_of_another_version_ends_the_worker_with_the_version_to_install() {
    let (coordinator, serving) = listen(&[queens(8, 10)]).await;
    coordinator.other_protocol.store(true, Ordering::SeqCst);
    let scratch = Scratch::new("version");
    let error = start(options(&scratch, &serving)).end().await.expect_err("it is refused");
    assert!(matches!(error, WorkerError::Refused(..)), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("install nqueens") && message.lines().count() == 1, "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantined_worker_ends_with_the_reason() {
    let jobs = [queens(16, 1)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("quarantine");
    let running = start(options(&scratch, &serving));
    coordinator.wait_until("a result", |state| !state.log.results.is_empty()).await;
    {
        let mut state = coordinator.state();
        let worker = state.log.syncs[0].worker.clone();
        let events = state.campaign.quarantine(&worker, "its result is wrong", false);
        FakeCoordinator::apply(&mut state, events);
    }
    let error = running.end().await.expect_err("it is in quarantine");
    assert!(
        matches!(&error, WorkerError::Quarantined(why) if why == "its result is wrong"),
        "{error}"
    );
}

#[test]
fn a_sync_response_with_an_unknown_field_is_read() {
    use prost::Message;
    let lease = v1::Lease { attempt: 3, job: vec![7; 16], units: 2, ..v1::Lease::default() };
    let response =
        v1::SyncResponse { desired: vec![lease], next_sync_ms: 5, ..v1::SyncResponse::default() };
    let mut bytes = response.encode_to_vec();
    // Field 1000, a string.
    bytes.extend([0xc2, 0x3e, 3, b'n', b'e', b'w']);
    assert_eq!(v1::SyncResponse::decode(&bytes[..]).expect("a message"), response);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_has_one_worker_and_a_remote_address_needs_a_certificate() {
    let (coordinator, serving) = listen(&[]).await;
    let scratch = Scratch::new("folder");
    let running = start(options(&scratch, &serving));
    coordinator.wait_until("a sync", |state| !state.log.syncs.is_empty()).await;
    let error = start(options(&scratch, &serving)).end().await.expect_err("the folder is taken");
    assert!(matches!(error, WorkerError::InUse(_)), "{error:?}");
    running.stop().await;
    let join = "192.0.2.1:1".parse().expect("an address");
    let error = start(WorkerOptions { join, ..options(&scratch, &serving) })
        .end()
        .await
        .expect_err("no certificate");
    assert!(
        matches!(error, WorkerError::NoCertificate(_)) && error.to_string().contains("--token"),
        "{error}"
    );
}

/// A clock set by the test.
struct Clock(AtomicU16);

impl Environment for Clock {
    fn minute_of_day(&self) -> u16 {
        self.0.load(Ordering::SeqCst)
    }

    fn temperature_c(&self) -> Option<f64> {
        None
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_rests_outside_its_hours_and_holds_no_lease_then() {
    let jobs = [queens(17, 50), queens(9, 10)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("hours");
    let clock = Arc::new(Clock(AtomicU16::new(19 * 60)));
    let rest = Rest { hours: "18:00-08:00".parse().ok(), max_temperature_c: None };
    let running = start(WorkerOptions {
        rest,
        environment: Arc::<Clock>::clone(&clock),
        kernel: Some(KernelKind::Generic),
        ..options(&scratch, &serving)
    });
    coordinator.wait_until("some results", |state| state.log.results.len() >= 3).await;
    clock.0.store(9 * 60, Ordering::SeqCst);
    let rests =
        |sync: &v1::SyncRequest| sync.capacity == 0 && sync.held.is_empty() && !sync.draining;
    coordinator
        .wait_until("a sync at rest", |state| state.log.syncs.last().is_some_and(rests))
        .await;
    // The next morning there is a shorter job.
    FakeCoordinator::apply(
        &mut coordinator.state(),
        vec![CampaignEvent::JobState { job: jobs[0].hash(), state: JobState::Cancelled }],
    );
    clock.0.store(18 * 60, Ordering::SeqCst);
    coordinator.wait_until_finished(&jobs[1..]).await;
    running.stop().await;
    assert_eq!(coordinator.solutions(&jobs[1]), 352);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_a_thermometer_reports_it_at_startup() {
    let (_, serving) = listen(&[]).await;
    let scratch = Scratch::new("thermometer");
    let rest = Rest { hours: None, max_temperature_c: Some(80.0) };
    let environment = Arc::new(Clock(AtomicU16::new(0)));
    let error =
        start(WorkerOptions { rest, environment, ..options(&scratch, &serving) }).end().await;
    assert!(matches!(error, Err(WorkerError::NoThermometer)), "{error:?}");
}

/// The mirror of a device, which is lost after so many batches.
struct FailingBackend {
    mirror: Mirror,
    batches: usize,
}

impl Backend for FailingBackend {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.mirror.open(job)
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.batches =
            self.batches.checked_sub(1).ok_or_else(|| Fault::Lost("it fell off the bus".into()))?;
        self.mirror.load(batch)
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
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

fn device(id: &str, batches: usize) -> Device {
    Device::opened(id, kernel(batches))
}

fn kernel(batches: usize) -> DeviceKernel {
    let shape = Shape { lanes: 256, chunk: 128, ring: 1 << 14, prefixes: 5000 };
    let backend = FailingBackend { mirror: Mirror::default(), batches };
    DeviceKernel::new(Box::new(backend), shape, false)
}

/// Returns the number of batches of the self-test: the fewest with which a device passes it.
fn batches_of_the_self_test() -> usize {
    let passes = |batches: &usize| self_test(&mut kernel(*batches), false).is_ok();
    (0..1000).find(passes).expect("a sound device passes")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_counts_beside_the_cpu() {
    let jobs = [queens(11, 10)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("device");
    let running = start(WorkerOptions {
        opened: vec![device("mirror-0", usize::MAX)],
        ..options(&scratch, &serving)
    });
    coordinator.wait_until_finished(&jobs).await;
    running.stop().await;
    assert_eq!(coordinator.solutions(&jobs[0]), 2680);
    let state = coordinator.state();
    assert!(
        state
            .log
            .results
            .iter()
            .all(|result| result.grant == state.log.granted[&result.attempt].grant)
    );
    assert!(
        state
            .log
            .syncs
            .iter()
            .any(|sync| sync.devices.iter().any(|device| device.id == "mirror-0"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_alone_counts_everything() {
    let jobs = [queens(10, 10), queens(11, 30)];
    let (coordinator, serving) = listen(&jobs).await;
    let scratch = Scratch::new("device-alone");
    let devices = DeviceChoice::These(Vec::new());
    let opened = vec![device("mirror-0", usize::MAX)];
    let running = start(WorkerOptions { devices, opened, ..options(&scratch, &serving) });
    coordinator.wait_until_finished(&jobs).await;
    assert_eq!(running.stop().await.undelivered, 0);
    assert_eq!((coordinator.solutions(&jobs[0]), coordinator.solutions(&jobs[1])), (724, 2680));
    let by_device =
        |result: &v1::Result| (&result.kernel[..], &result.device[..]) == ("wgsl", "mirror-0");
    assert!(coordinator.results().iter().all(by_device));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_is_lost_is_reported_and_its_units_are_counted_by_the_cpu() {
    // The first device is lost in its self-test, the second in its second batch of the job.
    for batches in [0, batches_of_the_self_test() + 1] {
        let jobs = [queens(10, 10)];
        let (coordinator, serving) = listen(&jobs).await;
        let scratch = Scratch::new(&format!("lost-{batches}"));
        // The CPU does not count as long as there is a device.
        let alone = WorkerOptions {
            devices: DeviceChoice::These(Vec::new()),
            opened: vec![device("mirror-0", batches)],
            ..options(&scratch, &serving)
        };
        let running = start(alone);
        coordinator.wait_until_finished(&jobs).await;
        coordinator
            .wait_until("the fault is reported", |state| {
                state
                    .log
                    .syncs
                    .iter()
                    .any(|sync| sync.devices.iter().any(|device| device.fault.contains("the bus")))
            })
            .await;
        running.stop().await;
        assert_eq!(coordinator.solutions(&jobs[0]), 724);
        let by_device =
            coordinator.results().iter().filter(|result| result.kernel == "wgsl").count();
        assert_eq!(by_device > 0, batches > 0);
        assert!(coordinator.results().iter().any(|result| result.device.starts_with("cpu, ")));
    }
}
