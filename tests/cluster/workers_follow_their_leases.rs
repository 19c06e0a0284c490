//! Workers against a scripted coordinator: they count exactly what a lease contains, give up what
//! is removed from a lease, and wait for work in a sync that blocks nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::UnitResult;
use nqueens::cluster::protocol::v1::work_server::{Work, WorkServer};
use nqueens::cluster::protocol::{messages, v1};
use nqueens::cluster::worker::{self, Environment, Rest, Summary, WorkerError, WorkerOptions};
use nqueens::decomposition::{Decomposition, Job, Scheme};
use nqueens::engine::{DeviceChoice, DeviceName};
use nqueens::kernel::{KernelKind, count_range};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Far longer than any test takes.
const LONG: Duration = Duration::from_secs(120);

/// How the coordinator answers a sync that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncWait {
    /// At once, as earlier coordinators do.
    Never,
    /// When there is a lease to grant, and otherwise never.
    ForWork,
}

/// The coordinator's instructions and what it has received.
#[derive(Debug)]
struct Script {
    waits: SyncWait,
    next_sync_ms: u32,
    /// Leases to grant.
    to_grant: VecDeque<v1::Lease>,
    /// The new ends of granted leases.
    ends: BTreeMap<u64, u64>,
    /// True if results are refused, so that they are sent again.
    refuses_results: bool,
    syncs: Vec<v1::SyncRequest>,
    /// The number of syncs that wait for work.
    waiting: usize,
    /// The number of calls that waited for recounts.
    listens: usize,
    /// True if the next such call is answered.
    kept: bool,
    results: Vec<v1::Result>,
    failures: Vec<v1::FailRequest>,
}

struct ScriptedCoordinator {
    job: Job,
    script: Mutex<Script>,
    changes: watch::Sender<()>,
}

impl ScriptedCoordinator {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no test panics while holding the lock")
    }

    fn change_quietly<T>(&self, act: impl FnOnce(&mut Script) -> T) -> T {
        act(&mut self.script())
    }

    fn change<T>(&self, act: impl FnOnce(&mut Script) -> T) -> T {
        let outcome = self.change_quietly(act);
        self.changes.send_replace(());
        outcome
    }

    async fn wait_until(&self, what: &str, holds: impl Fn(&Script) -> bool) {
        let mut changes = self.changes.subscribe();
        let wait = async {
            loop {
                changes.mark_unchanged();
                if holds(&self.script()) {
                    return;
                }
                changes.changed().await.expect("the sender exists");
            }
        };
        let waited = tokio::time::timeout(LONG, wait).await;
        waited.unwrap_or_else(|_| panic!("timed out waiting for: {what}: {:?}", self.script()));
    }

    fn lease(&self, attempt: u64, units: Range<u64>) -> v1::Lease {
        v1::Lease {
            attempt,
            job: self.job.hash().to_bytes().into(),
            first_unit: units.start,
            units: units.end - units.start,
            grant: vec![attempt as u8; 40],
            ..v1::Lease::default()
        }
    }

    fn response(&self, request: &v1::SyncRequest, script: &mut Script) -> v1::SyncResponse {
        let held = request.held.iter().filter_map(|held| held.lease.clone());
        let held = held.filter_map(|mut lease| {
            if let Some(end) = script.ends.get(&lease.attempt) {
                lease.units = lease.units.min(end - lease.first_unit);
            }
            (lease.units > 0).then_some(lease)
        });
        let mut desired: Vec<v1::Lease> = held.collect();
        if request.capacity > 0 {
            desired.extend(script.to_grant.drain(..));
        }
        let job = v1::Job { job: self.job.hash().to_bytes().into(), text: self.job.to_string() };
        v1::SyncResponse {
            desired,
            jobs: vec![job],
            next_sync_ms: script.next_sync_ms,
            running_jobs: 1,
            ..v1::SyncResponse::default()
        }
    }
}

/// Counts as a waiting sync until it is dropped.
struct Waiting<'a>(&'a ScriptedCoordinator);

impl<'a> Waiting<'a> {
    fn new(scripted: &'a ScriptedCoordinator) -> Self {
        scripted.change(|script| script.waiting += 1);
        Self(scripted)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change(|script| script.waiting -= 1);
    }
}

struct Calls(Arc<ScriptedCoordinator>);

#[tonic::async_trait]
impl Work for Calls {
    async fn listen(
        &self,
        request: Request<v1::ListenRequest>,
    ) -> Result<Response<v1::ListenResponse>, Status> {
        if self.0.script().waits == SyncWait::Never {
            return Err(Status::unimplemented("as earlier coordinators answer"));
        }
        assert!(request.get_ref().wait_ms > 0, "{request:?}");
        self.0.change(|script| script.listens += 1);
        let mut changes = self.0.changes.subscribe();
        while !self.0.change_quietly(|script| std::mem::take(&mut script.kept)) {
            changes.changed().await.map_err(|_| Status::unavailable("it ends"))?;
        }
        Ok(Response::new(v1::ListenResponse { kept: true }))
    }

    async fn sync(
        &self,
        request: Request<v1::SyncRequest>,
    ) -> Result<Response<v1::SyncResponse>, Status> {
        let request = request.into_inner();
        let waits = self.0.change(|script| {
            script.syncs.push(request.clone());
            script.waits == SyncWait::ForWork && request.wait_ms > 0
        });
        if waits {
            assert!(request.held.is_empty() && request.capacity > 0, "{request:?}");
            let _waiting = Waiting::new(&self.0);
            let mut changes = self.0.changes.subscribe();
            while self.0.script().to_grant.is_empty() {
                changes.changed().await.map_err(|_| Status::unavailable("it ends"))?;
            }
        }
        let response = self.0.change(|script| self.0.response(&request, script));
        Ok(Response::new(response))
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        let results = request.into_inner().results;
        let verdicts = vec![v1::Verdict::Accepted.into(); results.len()];
        self.0.change(|script| {
            if script.refuses_results {
                return Err(Status::unavailable("the ledger cannot be written"));
            }
            script.results.extend(results);
            Ok(Response::new(v1::CompleteResponse { verdicts }))
        })
    }

    async fn fail(
        &self,
        request: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        self.0.change(|script| script.failures.push(request.into_inner()));
        Ok(Response::new(v1::FailResponse {}))
    }
}

/// Returns a job of n queens; the unit size determines how long its units take.
fn queens(n: usize, unit_prefixes: u64) -> Job {
    let problem = Problem::empty(Piece::Queen, n);
    let scheme = Scheme::best(&problem);
    Job::new(problem, scheme, None, unit_prefixes).expect("a board that can be counted")
}

/// A scripted coordinator that listens, and the options and the folder of workers.
struct TestSetup {
    coordinator: Arc<ScriptedCoordinator>,
    options: Box<dyn Fn() -> WorkerOptions>,
    folder: PathBuf,
}

impl Drop for TestSetup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl TestSetup {
    async fn new(name: &str, job: Job, waits: SyncWait) -> Self {
        let script = Script {
            waits,
            // Long, so that nothing happens only because of the time.
            next_sync_ms: 600_000,
            to_grant: VecDeque::new(),
            ends: BTreeMap::new(),
            refuses_results: false,
            syncs: Vec::new(),
            waiting: 0,
            listens: 0,
            kept: false,
            results: Vec::new(),
            failures: Vec::new(),
        };
        let (script, changes) = (Mutex::new(script), watch::Sender::new(()));
        let coordinator = Arc::new(ScriptedCoordinator { job, script, changes });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let service = WorkServer::new(Calls(Arc::clone(&coordinator)));
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        let folder =
            std::env::temp_dir().join(format!("nqueens-leases-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let data = folder.clone();
        let options = move || WorkerOptions {
            devices: DeviceChoice::These(vec![DeviceName::Cpu]),
            kernel: Some(KernelKind::Scalar),
            threads: NonZeroUsize::new(2),
            // Longer than any test, so that a test times out if anything waits for a waiting call.
            deadline: 10 * LONG,
            ..WorkerOptions::new(address.to_string().parse().expect("an address"), data.clone())
        };
        Self { coordinator, options: Box::new(options), folder }
    }

    /// Compares results with the oracle's counts of the requested sub-ranges.
    fn check(&self, results: &[v1::Result], leases: &[v1::Lease]) {
        let itself = Decomposition::new(self.coordinator.job.clone());
        let image = itself.mirrored();
        let mut oracle = KernelKind::Reference.build(Piece::Queen).expect("runs everywhere");
        for result in results {
            let lease =
                leases.iter().find(|lease| lease.attempt == result.attempt).expect("asked for");
            let result: UnitResult =
                messages::unit_result(result.clone(), ("w", "o"), "0").expect("well-formed");
            let decomposition = if lease.mirrored { &image } else { &itself };
            let asked = |number| lease.sub_ranges.is_empty() || lease.sub_ranges.contains(&number);
            let ranges = decomposition.sub_ranges(result.unit.unit).zip(0u32..);
            let naive: Vec<u128> = ranges
                .filter(|&(_, number)| asked(number))
                .map(|(range, _)| {
                    count_range(&mut *oracle, decomposition, range).expect("counts").thirds()
                })
                .collect();
            assert_eq!(result.sub_sums, naive, "{:?}", result.unit);
            assert_eq!(result.tally.thirds(), naive.iter().sum::<u128>());
            assert_eq!(result.parts.total(), Ok(result.tally));
            assert_eq!(result.grant, lease.grant);
        }
    }
}

struct RunningWorker {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Summary, WorkerError>>,
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.expect("it ends in time")
}

impl RunningWorker {
    fn start(options: WorkerOptions) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        Self { stop, task: tokio::spawn(worker::run(options, stopped)) }
    }

    /// Stops the worker and waits for its end.
    async fn stop(self) -> Summary {
        drop(self.stop);
        in_time(self.task).await.expect("no panic").expect("it ends without an error")
    }

    /// Aborts the worker, like a kill.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("aborted").is_cancelled());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_result_has_the_sums_of_exactly_the_requested_sub_ranges() {
    let setup = TestSetup::new("spots", queens(10, 100), SyncWait::ForWork).await;
    let coordinator = &setup.coordinator;
    let leases = vec![
        coordinator.lease(1, 0..3),
        v1::Lease { mirrored: true, ..coordinator.lease(2, 1..2) },
        v1::Lease { mirrored: true, sub_ranges: vec![0, 17, 31], ..coordinator.lease(3, 2..3) },
    ];
    coordinator.change(|script| script.to_grant.extend(leases.clone()));
    let running = RunningWorker::start((setup.options)());
    coordinator.wait_until("all results", |script| script.results.len() >= 5).await;
    let summary = running.stop().await;
    assert_eq!((summary.units, summary.recounts, summary.undelivered), (3, 2, 0));
    let results = coordinator.script().results.clone();
    // Results in flight when it was stopped may have arrived twice.
    let sums: BTreeMap<(u64, u64), usize> = results
        .iter()
        .map(|result| ((result.attempt, result.unit), result.sub_sums.len() / 16))
        .collect();
    assert_eq!((sums.len(), sums.values().sum::<usize>()), (5, 4 * 32 + 3));
    setup.check(&results, &leases);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_worker_fetches_a_recount_as_soon_as_it_is_reserved() {
    // Twenty units take half a minute; the recount is made during one of them.
    let setup = TestSetup::new("listens", queens(18, 1000), SyncWait::ForWork).await;
    let coordinator = &setup.coordinator;
    coordinator.change(|script| script.to_grant.push_back(coordinator.lease(1, 0..20)));
    let running = RunningWorker::start((setup.options)());
    coordinator.wait_until("it counts, and listens", |script| script.listens > 0).await;
    // A recount is reserved, and nothing else causes a sync: the next one is due in ten minutes.
    let spot = v1::Lease { mirrored: true, sub_ranges: vec![0], ..coordinator.lease(2, 30..31) };
    coordinator.change(|script| {
        script.to_grant.push_back(spot);
        script.kept = true;
    });
    let is_spot = |result: &v1::Result| result.attempt == 2;
    coordinator.wait_until("the recount", |script| script.results.iter().any(is_spot)).await;
    let units = coordinator.script().results.iter().filter(|result| !is_spot(result)).count();
    assert!(units < 20, "it did not finish its units first");
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_removed_from_a_lease_are_not_counted_and_the_rest_is() {
    // A hundred thousand units would take minutes.
    let setup = TestSetup::new("shrinks", queens(18, 1), SyncWait::ForWork).await;
    let coordinator = &setup.coordinator;
    coordinator.change(|script| {
        script.next_sync_ms = 50;
        script.to_grant.push_back(coordinator.lease(1, 0..40_000));
    });
    let running = RunningWorker::start((setup.options)());
    coordinator
        .wait_until("the lease is held", |script| {
            script.syncs.iter().any(|sync| !sync.held.is_empty())
        })
        .await;
    let end = coordinator.change(|script| {
        let held = &script.syncs.last().expect("a sync").held[0];
        assert!(held.unstarted <= held.left);
        // A few units that were not started stay with the worker.
        let end = 40_000 - held.unstarted + 500;
        script.ends.insert(1, end);
        end
    });
    coordinator
        .wait_until("it reports fewer units", |script| {
            let held = |sync: &v1::SyncRequest| {
                sync.held.iter().any(|held| held.lease.as_ref().is_some_and(|l| l.units == end))
            };
            script.syncs.iter().any(held)
        })
        .await;
    coordinator.wait_until("it holds no lease", |script| script.waiting == 1).await;
    let summary = running.stop().await;
    let counted: std::collections::BTreeSet<u64> =
        coordinator.script().results.iter().map(|result| result.unit).collect();
    assert!((0..end).all(|unit| counted.contains(&unit)), "all remaining units");
    assert_eq!((summary.dropped, summary.undelivered), (0, 0));
    // It may have started some units between its report and the answer.
    assert!(counted.len() < 40_000, "{}", counted.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_waits_in_its_sync_and_begins_as_soon_as_there_is_work() {
    let setup = TestSetup::new("waits", queens(10, 100), SyncWait::ForWork).await;
    let coordinator = &setup.coordinator;
    let running = RunningWorker::start((setup.options)());
    for attempt in 1..4 {
        coordinator.wait_until("it waits", |script| script.waiting == 1).await;
        coordinator.change(|script| script.to_grant.push_back(coordinator.lease(attempt, 0..2)));
        // The next periodic sync would be in ten minutes.
        coordinator
            .wait_until("results", |script| script.results.len() as u64 >= 2 * attempt)
            .await;
    }
    running.stop().await;
    let script = coordinator.script();
    assert!(script.syncs.iter().all(|sync| sync.wait_ms <= 10_000));
    // A sync with held leases must not wait.
    assert!(script.syncs.iter().all(|sync| sync.wait_ms == 0 || sync.held.is_empty()));
    assert_eq!(script.syncs[0].wait_ms, 0, "the first sync does not wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_a_sync_that_waits() {
    let setup = TestSetup::new("stop", queens(8, 100), SyncWait::ForWork).await;
    let running = RunningWorker::start((setup.options)());
    setup.coordinator.wait_until("it waits", |script| script.waiting == 1).await;
    running.stop().await;
    let script = setup.coordinator.script();
    assert!(
        script.syncs.last().is_some_and(|sync| sync.draining),
        "it reported that it is draining"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_do_not_wait_for_a_sync_that_waits() {
    let setup = TestSetup::new("results", queens(8, 100), SyncWait::ForWork).await;
    let coordinator = &setup.coordinator;
    coordinator.change(|script| {
        script.refuses_results = true;
        script.to_grant.push_back(coordinator.lease(1, 0..1));
    });
    let running = RunningWorker::start((setup.options)());
    let counted = |script: &Script| {
        script
            .syncs
            .iter()
            .flat_map(|sync| &sync.held)
            .any(|held| held.unstarted == 0 && held.left == 1)
    };
    coordinator.wait_until("a unit that is begun", counted).await;
    // A result is on disk when it is sent; an unfinished unit is counted again.
    tokio::time::sleep(Duration::from_millis(500)).await;
    running.kill().await;
    let running = RunningWorker::start((setup.options)());
    coordinator.wait_until("the next worker waits", |script| script.waiting == 1).await;
    coordinator.change(|script| script.refuses_results = false);
    coordinator.wait_until("the result of the first", |script| script.results.len() == 1).await;
    assert_eq!(coordinator.script().waiting, 1);
    running.stop().await;
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
async fn a_rest_does_not_wait_for_a_sync_that_waits() {
    let setup = TestSetup::new("rest", queens(8, 100), SyncWait::ForWork).await;
    let clock = Arc::new(Clock(AtomicU16::new(19 * 60)));
    let running = RunningWorker::start(WorkerOptions {
        rest: Rest { hours: "18:00-08:00".parse().ok(), max_temperature_c: None },
        environment: Arc::<Clock>::clone(&clock),
        ..(setup.options)()
    });
    setup.coordinator.wait_until("it waits", |script| script.waiting == 1).await;
    clock.0.store(9 * 60, Ordering::SeqCst);
    let rests = |sync: &v1::SyncRequest| sync.capacity == 0 && sync.wait_ms == 0 && !sync.draining;
    setup.coordinator.wait_until("it rests", |script| script.syncs.last().is_some_and(rests)).await;
    setup.coordinator.wait_until("nothing waits any more", |script| script.waiting == 0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_coordinator_gets_its_results_and_is_polled_with_backoff() {
    let setup = TestSetup::new("before", queens(10, 100), SyncWait::Never).await;
    let coordinator = &setup.coordinator;
    // It sends no grants, knows no sub-ranges, and forbids a kernel.
    let lease =
        |attempt, units| v1::Lease { grant: Vec::new(), ..coordinator.lease(attempt, units) };
    let leases = vec![
        lease(1, 0..2),
        v1::Lease { mirrored: true, not_kernel: "scalar".into(), ..lease(2, 0..1) },
    ];
    let running = RunningWorker::start((setup.options)());
    coordinator.wait_until("it is idle", |script| script.syncs.len() >= 3).await;
    coordinator.change(|script| script.to_grant.extend(leases.clone()));
    coordinator.wait_until("results", |script| script.results.len() >= 3).await;
    setup.check(&coordinator.script().results, &leases);
    let recount = |result: &v1::Result| result.attempt == 2;
    assert!(
        coordinator.script().results.iter().filter(|r| recount(r)).all(|r| r.kernel == "generic")
    );
    let before = coordinator.script().syncs.len();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // 50, 100, 200, … ms; without a backoff there would be sixty syncs.
    let after = coordinator.script().syncs.len();
    assert!(after - before <= 12, "{} syncs", after - before);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_no_kernel_can_count_is_given_back_with_the_reason() {
    // The reference kernel does not support boards of this size, and the others no superqueens.
    let problem = Problem::empty(Piece::Superqueen, 12);
    let scheme = Scheme::best(&problem);
    let job = Job::new(problem, scheme, None, 100).expect("a board that can be counted");
    let setup = TestSetup::new("unsuited", job, SyncWait::ForWork).await;
    let coordinator = &setup.coordinator;
    let recount =
        v1::Lease { mirrored: true, not_kernel: "generic".into(), ..coordinator.lease(1, 0..1) };
    coordinator.change(|script| script.to_grant.push_back(recount));
    let running = RunningWorker::start((setup.options)());
    coordinator.wait_until("the failure report", |script| !script.failures.is_empty()).await;
    coordinator.wait_until("it is not held", |script| script.waiting == 1).await;
    let summary = running.stop().await;
    let script = coordinator.script();
    let reasons: Vec<v1::FailReason> =
        script.failures.iter().map(v1::FailRequest::reason).collect();
    assert_eq!((reasons, summary.recounts), (vec![v1::FailReason::Unsuited], 0));
}
