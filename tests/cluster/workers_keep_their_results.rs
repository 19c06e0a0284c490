//! Workers against a coordinator that loses replies, restarts, is unreachable, cancels jobs, and
//! sends unknown fields: every total is correct, no result is lost, and uncounted units are given
//! back.
//!
//! The coordinator is a campaign in memory behind a real server on loopback. The tests wait for
//! events, with generous limits, so nothing depends on timing.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nqueens::board::{Piece, Problem, Square};
use nqueens::cluster::campaign::{
    Campaign, CampaignEvent, CampaignKey, JobState, ResultVerdict, Settings,
};
use nqueens::cluster::protocol::v1::work_server::{Work, WorkServer};
use nqueens::cluster::protocol::{check, messages, v1};
use nqueens::cluster::worker::{self, Environment, Rest, Summary, WorkerError, WorkerOptions};
use nqueens::decomposition::{Decomposition, Job, JobHash, Scheme};
use nqueens::engine::{Device, DeviceChoice, DeviceName};
use nqueens::kernel::KernelKind;
use nqueens::kernel::gpu::layout::{Counters, Slot};
use nqueens::kernel::gpu::{
    Backend, Batch, DeviceKernel, Fault, JobMemory, Memory, Mirror, Shape, Submission, self_test,
};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Far longer than any test takes.
const LONG: Duration = Duration::from_secs(120);

/// What the coordinator has received and done.
#[derive(Default)]
struct CallLog {
    syncs: Vec<v1::SyncRequest>,
    granted: HashMap<u64, v1::Lease>,
    results: Vec<v1::Result>,
    failures: Vec<v1::FailRequest>,
    /// Every event, as in a ledger.
    ledger: Vec<CampaignEvent>,
}

struct FakeState {
    campaign: Campaign,
    jobs: HashMap<JobHash, Decomposition>,
    log: CallLog,
}

/// A coordinator in memory.
struct FakeCoordinator {
    state: Mutex<FakeState>,
    began: Instant,
    changes: watch::Sender<()>,
    /// The number of calls whose replies will be lost after the commit.
    lose_replies: AtomicU32,
    /// True if all calls fail.
    away: AtomicBool,
    /// True if all commits fail.
    ledger_full: AtomicBool,
    /// True if it has another version of the protocol.
    other_protocol: AtomicBool,
}

/// Settings without checks: there is one worker and no arbiter.
fn settings() -> Settings {
    Settings {
        sync_ms: 100,
        new_owner_units: 0,
        spot_check: 0.0,
        full_check: 0.0,
        audit: 0.0,
        owner_audits: 0,
        ..Settings::default()
    }
}

/// Creates an empty campaign, as after a restart.
fn campaign(epoch: u64) -> Campaign {
    Campaign::new(settings(), epoch, CampaignKey::from_seed(7))
}

impl FakeCoordinator {
    fn new(jobs: &[Job]) -> Arc<Self> {
        let mut campaign = campaign(1);
        let mut log = CallLog::default();
        let jobs = (1..).zip(jobs).map(|(at_ms, job)| {
            let decomposition = Decomposition::new(job.clone());
            let (text, job, units) = (job.to_string(), job.hash(), decomposition.units());
            let (priority, submitter, published) = (0, String::new(), None);
            let event = CampaignEvent::JobSubmitted {
                job,
                text,
                units,
                priority,
                submitter,
                at_ms,
                published,
            };
            campaign.apply(&event);
            log.ledger.push(event);
            (job, decomposition)
        });
        let jobs = jobs.collect();
        Arc::new(Self {
            state: Mutex::new(FakeState { campaign, jobs, log }),
            began: Instant::now(),
            changes: watch::Sender::new(()),
            lose_replies: AtomicU32::new(0),
            away: AtomicBool::new(false),
            ledger_full: AtomicBool::new(false),
            other_protocol: AtomicBool::new(false),
        })
    }

    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().expect("no test panics while holding the lock")
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Loses leases and workers, and rebuilds the campaign from the ledger.
    fn restart(&self) {
        let mut state = self.state();
        let epoch = 2 + self.now_ms();
        state.campaign = campaign(epoch);
        let FakeState { campaign, log, .. } = &mut *state;
        log.ledger.iter().for_each(|event| campaign.apply(event));
    }

    fn apply(state: &mut FakeState, events: Vec<CampaignEvent>) {
        for event in events {
            state.campaign.apply(&event);
            state.log.ledger.push(event);
        }
    }

    /// Waits until a condition holds.
    async fn wait_until(&self, what: &str, holds: impl Fn(&FakeState) -> bool) {
        let mut changes = self.changes.subscribe();
        let wait = async {
            while !holds(&self.state()) {
                // Recounts and leases depend on the clock.
                let _ = tokio::time::timeout(Duration::from_millis(50), changes.changed()).await;
                let mut state = self.state();
                let now_ms = self.now_ms();
                let events = state.campaign.tick(now_ms);
                Self::apply(&mut state, events);
            }
        };
        tokio::time::timeout(LONG, wait)
            .await
            .unwrap_or_else(|_| panic!("timed out waiting for: {what}"));
    }

    fn is_finished(state: &FakeState, job: &Job) -> bool {
        state
            .campaign
            .progress(&job.hash())
            .is_some_and(|progress| progress.state == JobState::Finished)
    }

    async fn wait_until_finished(&self, jobs: &[Job]) {
        self.wait_until("the jobs are finished", |state| {
            jobs.iter().all(|job| Self::is_finished(state, job))
        })
        .await;
    }

    fn solutions(&self, job: &Job) -> u128 {
        let state = self.state();
        let progress = state.campaign.progress(&job.hash()).expect("it was submitted");
        assert_eq!(progress.done, progress.units);
        progress.total.solutions().expect("a whole number")
    }

    /// Returns the received results in order.
    fn results(&self) -> Vec<v1::Result> {
        self.state().log.results.clone()
    }

    fn admit(&self, peer: Option<&v1::Peer>) -> Result<String, Status> {
        if self.away.load(Ordering::SeqCst) {
            return Err(Status::unavailable("away"));
        }
        let peer = peer.cloned().map(|peer| v1::Peer {
            protocol: peer.protocol + u32::from(self.other_protocol.load(Ordering::SeqCst)),
            ..peer
        });
        check(peer.as_ref()).map_err(|error| Status::failed_precondition(error.to_string()))
    }
}

struct Calls(Arc<FakeCoordinator>);

#[tonic::async_trait]
impl Work for Calls {
    async fn listen(
        &self,
        _: Request<v1::ListenRequest>,
    ) -> Result<Response<v1::ListenResponse>, Status> {
        Err(Status::unimplemented("as an older coordinator"))
    }

    async fn sync(
        &self,
        request: Request<v1::SyncRequest>,
    ) -> Result<Response<v1::SyncResponse>, Status> {
        let request = request.into_inner();
        self.0.admit(request.peer.as_ref())?;
        self.0.state().log.syncs.push(request.clone());
        let deadline = Instant::now() + Duration::from_millis(request.wait_ms.into());
        let worker = (request.worker.clone(), "owner".to_owned(), None);
        let sync = messages::sync_request(request, worker).expect("a worker's messages are valid");
        let mut changes = self.0.changes.subscribe();
        let (answer, quarantined) = loop {
            changes.mark_unchanged();
            let (response, quarantined) = {
                let mut state = self.0.state();
                let response = state.campaign.sync(&sync, self.0.now_ms());
                (response, state.campaign.quarantined().get(&sync.worker).cloned())
            };
            let nothing =
                response.desired.is_empty() && response.cancel.is_empty() && quarantined.is_none();
            if !nothing || Instant::now() >= deadline {
                break (messages::sync_response(&response), quarantined.unwrap_or_default());
            }
            // Tests change jobs without a notification.
            let _ = tokio::time::timeout(Duration::from_millis(50), changes.changed()).await;
            if self.0.away.load(Ordering::SeqCst) {
                return Err(Status::unavailable("away"));
            }
        };
        let mut state = self.0.state();
        for lease in &answer.desired {
            state.log.granted.insert(lease.attempt, lease.clone());
        }
        let running = state.campaign.jobs().filter(|job| {
            state.campaign.progress(job).is_some_and(|progress| progress.state == JobState::Running)
        });
        let running_jobs = running.count() as u32;
        let job = |decomposition: &Decomposition| {
            let job = decomposition.job();
            v1::Job { job: job.hash().to_bytes().into(), text: job.to_string() }
        };
        let jobs = state.jobs.values().map(job).collect();
        drop(state);
        self.0.changes.send_replace(());
        Ok(Response::new(v1::SyncResponse { jobs, running_jobs, quarantined, ..answer }))
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        let request = request.into_inner();
        let build = self.0.admit(request.peer.as_ref())?;
        if self.0.ledger_full.load(Ordering::SeqCst) {
            self.0.state().log.results.extend(request.results);
            self.0.changes.send_replace(());
            return Err(Status::unavailable("the ledger cannot be written"));
        }
        let mut state = self.0.state();
        let mut verdicts = Vec::new();
        for result in request.results {
            state.log.results.push(result.clone());
            let result = messages::unit_result(result, (&request.worker, "owner"), &build);
            let result = result.expect("a worker's messages are valid");
            let limits = state.jobs[&result.unit.job].unit_limits(result.unit.unit);
            let validation = state.campaign.validate(&result, Some(&limits));
            assert!(
                !matches!(validation.verdict, ResultVerdict::Conflict | ResultVerdict::Refused),
                "{validation:?}"
            );
            FakeCoordinator::apply(&mut state, validation.events);
            verdicts.push(v1::Verdict::from(validation.verdict).into());
        }
        drop(state);
        self.0.changes.send_replace(());
        let lose = |left: u32| left.checked_sub(1);
        if self.0.lose_replies.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lose).is_ok() {
            return Err(Status::unavailable("the reply was lost"));
        }
        Ok(Response::new(v1::CompleteResponse { verdicts }))
    }

    async fn fail(
        &self,
        request: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        let request = request.into_inner();
        self.0.admit(request.peer.as_ref())?;
        let mut state = self.0.state();
        let job = nqueens::cluster::protocol::job_hash(&request.job).expect("a job's name");
        let unit = nqueens::cluster::campaign::UnitId { job, unit: request.unit };
        if request.reason() == v1::FailReason::Unsuited {
            state.campaign.mark_unsuited(unit, request.attempt, &request.worker);
        } else {
            let event =
                state.campaign.fail(unit, request.attempt, &request.worker, &request.detail);
            FakeCoordinator::apply(&mut state, event.into_iter().collect());
        }
        state.log.failures.push(request);
        drop(state);
        self.0.changes.send_replace(());
        Ok(Response::new(v1::FailResponse {}))
    }
}

/// A running server of a fake coordinator.
struct RunningServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl RunningServer {
    async fn start(coordinator: &Arc<FakeCoordinator>, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel();
        let service = WorkServer::new(Calls(Arc::clone(coordinator)));
        let task = tokio::spawn(async move {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let stopped = async { drop(stopped.await) };
            let serving = Server::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(incoming, stopped);
            serving.await.expect("it serves");
        });
        Self { address, stop: Some(stop), task }
    }

    /// Stops it and closes every connection.
    async fn stop(mut self) -> SocketAddr {
        drop(self.stop.take());
        tokio::time::timeout(LONG, self.task).await.expect("it ends").expect("no panic");
        self.address
    }
}

async fn listen(jobs: &[Job]) -> (Arc<FakeCoordinator>, RunningServer) {
    let coordinator = FakeCoordinator::new(jobs);
    let serving = RunningServer::start(&coordinator, ([127, 0, 0, 1], 0).into()).await;
    (coordinator, serving)
}

/// A temporary folder, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("nqueens-worker-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the options of a worker with two CPU threads.
fn options(scratch: &Scratch, serving: &RunningServer) -> WorkerOptions {
    let join = serving.address.to_string().parse().expect("an address");
    WorkerOptions {
        devices: DeviceChoice::These(vec![DeviceName::Cpu]),
        threads: NonZeroUsize::new(2),
        deadline: Duration::from_secs(20),
        ..WorkerOptions::new(join, scratch.0.clone())
    }
}

struct RunningWorker {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Summary, WorkerError>>,
}

fn start(options: WorkerOptions) -> RunningWorker {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    RunningWorker { stop, task: tokio::spawn(worker::run(options, stopped)) }
}

async fn wait_for_end(
    running: impl Future<Output = Result<Result<Summary, WorkerError>, tokio::task::JoinError>>,
) -> Result<Summary, WorkerError> {
    tokio::time::timeout(LONG, running).await.expect("it ends in time").expect("it does not panic")
}

impl RunningWorker {
    /// Stops the worker and waits for its end.
    async fn stop(self) -> Summary {
        drop(self.stop);
        wait_for_end(self.task).await.expect("it ends without an error")
    }

    /// Waits for its end without stopping it.
    async fn end(self) -> Result<Summary, WorkerError> {
        let _stop = self.stop;
        wait_for_end(self.task).await
    }

    /// Aborts the worker, like a kill.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("aborted").is_cancelled());
    }
}

fn job(problem: Problem, unit_prefixes: u64) -> Job {
    let scheme = Scheme::best(&problem);
    Job::new(problem, scheme, None, unit_prefixes).expect("a small board")
}

fn queens(n: usize, unit_prefixes: u64) -> Job {
    job(Problem::empty(Piece::Queen, n), unit_prefixes)
}

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
