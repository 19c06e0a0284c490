//! A coordinator for tests of workers: a campaign in memory behind a real server on loopback.

#![allow(unreachable_pub)]

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    Campaign, CampaignEvent, CampaignKey, JobState, ResultVerdict, Settings,
};
use nqueens::cluster::protocol::v1::work_server::{Work, WorkServer};
use nqueens::cluster::protocol::{check, messages, v1};
use nqueens::cluster::worker::{self, Summary, WorkerError, WorkerOptions};
use nqueens::decomposition::{Decomposition, Job, JobHash, Scheme};
use nqueens::engine::{DeviceChoice, DeviceName};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Far longer than any test takes.
pub const LONG: Duration = Duration::from_secs(120);

/// The calls that the coordinator has received, and its events.
#[derive(Default)]
pub struct CallLog {
    pub syncs: Vec<v1::SyncRequest>,
    pub granted: HashMap<u64, v1::Lease>,
    pub results: Vec<v1::Result>,
    pub failures: Vec<v1::FailRequest>,
    /// Every event, as in a ledger.
    pub ledger: Vec<CampaignEvent>,
}

pub struct FakeState {
    pub campaign: Campaign,
    pub jobs: HashMap<JobHash, Decomposition>,
    pub log: CallLog,
}

/// A coordinator in memory.
pub struct FakeCoordinator {
    pub state: Mutex<FakeState>,
    pub began: Instant,
    pub changes: watch::Sender<()>,
    /// The number of calls whose replies will be lost after the commit.
    pub lose_replies: AtomicU32,
    /// True if all calls fail.
    pub away: AtomicBool,
    /// True if all commits fail.
    pub ledger_full: AtomicBool,
    /// True if it has another version of the protocol.
    pub other_protocol: AtomicBool,
}

/// Settings without checks: there is one worker and no arbiter.
pub fn settings() -> Settings {
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
pub fn campaign(epoch: u64) -> Campaign {
    Campaign::new(settings(), epoch, CampaignKey::from_seed(7))
}

impl FakeCoordinator {
    pub fn new(jobs: &[Job]) -> Arc<Self> {
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

    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().expect("no test panics while holding the lock")
    }

    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Loses leases and workers, and rebuilds the campaign from the ledger.
    pub fn restart(&self) {
        let mut state = self.state();
        let epoch = 2 + self.now_ms();
        state.campaign = campaign(epoch);
        let FakeState { campaign, log, .. } = &mut *state;
        log.ledger.iter().for_each(|event| campaign.apply(event));
    }

    pub fn apply(state: &mut FakeState, events: Vec<CampaignEvent>) {
        for event in events {
            state.campaign.apply(&event);
            state.log.ledger.push(event);
        }
    }

    /// Waits until a condition holds.
    pub async fn wait_until(&self, what: &str, holds: impl Fn(&FakeState) -> bool) {
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

    pub fn is_finished(state: &FakeState, job: &Job) -> bool {
        state
            .campaign
            .progress(&job.hash())
            .is_some_and(|progress| progress.state == JobState::Finished)
    }

    pub async fn wait_until_finished(&self, jobs: &[Job]) {
        self.wait_until("the jobs are finished", |state| {
            jobs.iter().all(|job| Self::is_finished(state, job))
        })
        .await;
    }

    pub fn solutions(&self, job: &Job) -> u128 {
        let state = self.state();
        let progress = state.campaign.progress(&job.hash()).expect("it was submitted");
        assert_eq!(progress.done, progress.units);
        progress.total.solutions().expect("a whole number")
    }

    /// Returns the received results in order.
    pub fn results(&self) -> Vec<v1::Result> {
        self.state().log.results.clone()
    }

    pub fn admit(&self, peer: Option<&v1::Peer>) -> Result<String, Status> {
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
pub struct RunningServer {
    pub address: SocketAddr,
    pub stop: Option<oneshot::Sender<()>>,
    pub task: JoinHandle<()>,
}

impl RunningServer {
    pub async fn start(coordinator: &Arc<FakeCoordinator>, address: SocketAddr) -> Self {
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
    pub async fn stop(mut self) -> SocketAddr {
        drop(self.stop.take());
        tokio::time::timeout(LONG, self.task).await.expect("it ends").expect("no panic");
        self.address
    }
}

pub async fn listen(jobs: &[Job]) -> (Arc<FakeCoordinator>, RunningServer) {
    let coordinator = FakeCoordinator::new(jobs);
    let serving = RunningServer::start(&coordinator, ([127, 0, 0, 1], 0).into()).await;
    (coordinator, serving)
}

/// A temporary folder, removed when it is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
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
pub fn options(scratch: &Scratch, serving: &RunningServer) -> WorkerOptions {
    let join = serving.address.to_string().parse().expect("an address");
    WorkerOptions {
        devices: DeviceChoice::These(vec![DeviceName::Cpu]),
        threads: NonZeroUsize::new(2),
        deadline: Duration::from_secs(20),
        ..WorkerOptions::new(join, scratch.0.clone())
    }
}

pub struct RunningWorker {
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<Result<Summary, WorkerError>>,
}

pub fn start(options: WorkerOptions) -> RunningWorker {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    RunningWorker { stop, task: tokio::spawn(worker::run(options, stopped)) }
}

pub async fn wait_for_end(
    running: impl Future<Output = Result<Result<Summary, WorkerError>, tokio::task::JoinError>>,
) -> Result<Summary, WorkerError> {
    tokio::time::timeout(LONG, running).await.expect("it ends in time").expect("it does not panic")
}

impl RunningWorker {
    /// Stops the worker and waits for its end.
    pub async fn stop(self) -> Summary {
        drop(self.stop);
        wait_for_end(self.task).await.expect("it ends without an error")
    }

    /// Waits for its end without stopping it.
    pub async fn end(self) -> Result<Summary, WorkerError> {
        let _stop = self.stop;
        wait_for_end(self.task).await
    }

    /// Aborts the worker, like a kill.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("aborted").is_cancelled());
    }
}

pub fn job(problem: Problem, unit_prefixes: u64) -> Job {
    let scheme = Scheme::best(&problem);
    Job::new(problem, scheme, None, unit_prefixes).expect("a small board")
}

pub fn queens(n: usize, unit_prefixes: u64) -> Job {
    job(Problem::empty(Piece::Queen, n), unit_prefixes)
}
