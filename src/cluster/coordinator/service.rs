//! The RPC handlers.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::access::{Access, address, peer, remote, shown};
use super::calls::WaitingCalls;
use super::commands::{self, About, Handle, StateError, Submitted, Synced, Unavailable};
use super::event_log::EventLog;
use super::metrics::Metrics;
use super::proofs::{Goal, Proofs};
use super::troubles::WriteFailures;
use super::{now_ms, plan};
use crate::cluster::auth::{AccessError, Action, EnrollError, Issued, Name, Token};
use crate::cluster::campaign::{JobState, UnitId, UnitResult};
use crate::cluster::protocol::v1::{
    self, enrolment_server, operations_server, proving_server, work_server,
};
use crate::cluster::protocol::{self, MOST_RESULTS, Malformed, ProveCall, messages};

/// A stream of statuses.
type Stream =
    Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::StatusResponse, Status>> + Send + 'static>>;

/// A stream of the chunks of a certificate.
type Certificate = Pin<
    Box<dyn tokio_stream::Stream<Item = Result<v1::CertificateChunk, Status>> + Send + 'static>,
>;

/// The longest duration of a long poll, shorter than the timeout of a worker.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The RPC handlers of a coordinator; cheap to clone.
#[derive(Clone)]
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

struct Shared {
    actor: Handle,
    event_log: EventLog,
    proofs: Arc<Proofs>,
    /// Workers that are draining, as of their last sync.
    draining: Mutex<HashSet<String>>,
    access: Arc<Access>,
    metrics: Arc<Metrics>,
    /// The pending long-poll calls.
    calls: Arc<WaitingCalls>,
    troubles: WriteFailures,
    /// Permits one planning at a time, since it may take seconds and gigabytes.
    planning: Semaphore,
    /// Limits the number of open status streams.
    watching: Arc<Semaphore>,
    /// True once the coordinator is stopping.
    stopping: watch::Receiver<bool>,
}

fn malformed(error: Malformed) -> Status {
    match error {
        Malformed::TooMany(..) => Status::resource_exhausted(error.to_string()),
        _ => Status::invalid_argument(error.to_string()),
    }
}

fn unavailable(error: Unavailable) -> Status {
    Status::unavailable(error.to_string())
}

impl Service {
    pub(super) fn new(
        (actor, event_log): (Handle, EventLog),
        proofs: Arc<Proofs>,
        access: Arc<Access>,
        (metrics, troubles): (Arc<Metrics>, WriteFailures),
        (calls, stopping): (Arc<WaitingCalls>, watch::Receiver<bool>),
    ) -> Self {
        /// The maximum number of status streams. Each queries the actor once a second.
        const MOST_WATCHING: usize = 256;
        let (planning, watching) = (Semaphore::new(1), Arc::new(Semaphore::new(MOST_WATCHING)));
        Self {
            shared: Arc::new(Shared {
                actor,
                event_log,
                proofs,
                draining: Mutex::default(),
                access,
                metrics,
                calls,
                troubles,
                planning,
                watching,
                stopping,
            }),
        }
    }

    fn draining(&self) -> MutexGuard<'_, HashSet<String>> {
        self.shared.draining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the campaign actor and waits for its reply.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> commands::Request,
    ) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        let gone = || Status::unavailable("the coordinator stops; try again later");
        self.shared.actor.send(request(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    /// Sends a query to the campaign actor if the caller may read the status.
    async fn look<R, T>(
        &self,
        request: Request<R>,
        question: impl FnOnce(R, oneshot::Sender<T>) -> commands::Request,
    ) -> Result<T, Status> {
        self.shared.access.admit(&request, Action::Status, "")?;
        self.ask(|reply| question(request.into_inner(), reply)).await
    }

    fn build(peer: Option<&v1::Peer>) -> Result<String, Status> {
        protocol::check(peer).map_err(|error| Status::failed_precondition(error.to_string()))
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Result<v1::SyncResponse, Status> {
        const LOOK_AGAIN: Duration = Duration::from_secs(1);
        /// The pause before the next query for work to lease.
        const PAUSE: Duration = Duration::from_millis(10);
        let began = Instant::now();
        let caller = self.shared.access.admit(&request, Action::Sync, &request.get_ref().worker)?;
        let from = remote(&request).map(|address| address.to_string()).unwrap_or_default();
        let address = remote(&request).map(|address| address.ip());
        let request = request.into_inner();
        let build = Self::build(request.peer.as_ref())?;
        let devices = messages::devices(request.devices.clone()).map_err(malformed)?;
        let about = About { build, address: from, devices };
        let wait = Duration::from_millis(request.wait_ms.into()).min(LONGEST_WAIT);
        let until = tokio::time::Instant::now() + wait;
        let request = messages::sync_request(request, (caller.name.clone(), caller.owner, address))
            .map_err(malformed)?;
        let (mut work, mut stopping) = (self.shared.calls.work(), self.shared.stopping.clone());
        let proofs = self.shared.proofs.running();
        let answer = loop {
            work.mark_unchanged();
            let (request, about) = (request.clone(), about.clone());
            let answer = self.ask(|reply| commands::Request::Sync(request, about, reply)).await?;
            let idle = answer.response.desired.is_empty() && answer.response.cancel.is_empty();
            let waits = idle && answer.quarantined.is_none() && !answer.draining;
            if !waits
                || self.shared.proofs.running() > proofs
                || tokio::time::Instant::now() >= until
            {
                break answer;
            }
            tokio::select! {
                changed = work.changed() => if changed.is_err() { break answer },
                () = tokio::time::sleep_until(until) => break answer,
                // The actor does not manage proofs, so poll for them.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                _ = stopping.wait_for(|stop| *stop) => break answer,
            }
            // Limit how often many waiting syncs query the actor while others deliver results.
            tokio::time::sleep(PAUSE).await;
        };
        let Synced { response, jobs, running_jobs, quarantined, draining } = answer;
        match draining {
            true => self.draining().insert(caller.name),
            false => self.draining().remove(&caller.name),
        };
        let text = |job: &crate::decomposition::Job| v1::Job {
            job: job.hash().to_bytes().into(),
            text: job.to_string(),
        };
        self.shared.metrics.synced(began.elapsed());
        Ok(v1::SyncResponse {
            jobs: jobs.iter().map(text).collect(),
            running_jobs,
            quarantined: quarantined.unwrap_or_default(),
            running_proofs: self.shared.proofs.running(),
            ..messages::sync_response(&response)
        })
    }

    async fn listen(
        &self,
        request: Request<v1::ListenRequest>,
    ) -> Result<v1::ListenResponse, Status> {
        let caller = self.shared.access.admit(&request, Action::Sync, &request.get_ref().worker)?;
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let wait = Duration::from_millis(request.wait_ms.into()).min(LONGEST_WAIT);
        let until = tokio::time::Instant::now() + wait;
        let mut stopping = self.shared.stopping.clone();
        // Register first, so that no wake is missed.
        let mut registered = self.shared.calls.register(&caller.name);
        let kept = self.ask(|reply| commands::Request::IsCheckKept(caller.name, reply)).await?;
        let kept = kept
            || tokio::select! {
                () = registered.woken() => true,
                () = tokio::time::sleep_until(until) => false,
                _ = stopping.wait_for(|stop| *stop) => false,
            };
        Ok(v1::ListenResponse { kept })
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<v1::CompleteResponse, Status> {
        let caller =
            self.shared.access.admit(&request, Action::Complete, &request.get_ref().worker)?;
        let request = request.into_inner();
        let build = Self::build(request.peer.as_ref())?;
        if request.results.len() > MOST_RESULTS {
            return Err(malformed(Malformed::TooMany(
                "results",
                request.results.len(),
                MOST_RESULTS,
            )));
        }
        let results = request.results.into_iter();
        let (name, owner) = (caller.name, caller.owner);
        let results: Result<Vec<UnitResult>, Malformed> =
            results.map(|result| messages::unit_result(result, (&name, &owner), &build)).collect();
        let results = results.map_err(malformed)?;
        let verdicts = self.ask(|reply| commands::Request::Complete(results, reply)).await?;
        let verdicts = verdicts.map_err(unavailable)?;
        Ok(v1::CompleteResponse {
            verdicts: verdicts
                .into_iter()
                .map(|verdict| v1::Verdict::from(verdict).into())
                .collect(),
        })
    }

    async fn fail(&self, request: Request<v1::FailRequest>) -> Result<v1::FailResponse, Status> {
        /// The maximum length of a failure report, in characters.
        const MOST_LETTERS: usize = 500;
        let caller = self.shared.access.admit(&request, Action::Fail, &request.get_ref().worker)?;
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let unit = UnitId {
            job: protocol::job_hash(&request.job).map_err(malformed)?,
            unit: request.unit,
        };
        let (attempt, unsuited) = (
            request.attempt,
            matches!(request.reason(), v1::FailReason::Unsuited | v1::FailReason::Job),
        );
        let class = match request.reason() {
            v1::FailReason::Unspecified => "no reason given",
            v1::FailReason::Job => "the job is not understood",
            v1::FailReason::Device => "a device failed",
            v1::FailReason::Check => "the count contradicts itself",
            v1::FailReason::Unsuited => "no kernel there can count it",
        };
        let detail =
            request.detail.chars().filter(|letter| !letter.is_control()).take(MOST_LETTERS);
        let reason = format!("{class}: {}", detail.collect::<String>());
        let worker = caller.name;
        let kept = self
            .ask(|reply| commands::Request::Fail { unit, attempt, worker, reason, unsuited, reply })
            .await?;
        kept.map_err(unavailable).map(|()| v1::FailResponse {})
    }

    async fn prove(&self, request: Request<v1::ProveRequest>) -> Result<v1::ProveResponse, Status> {
        /// Shorter than the timeout of a worker.
        const WAIT: Duration = Duration::from_secs(10);
        let caller =
            self.shared.access.admit(&request, Action::Prove, &request.get_ref().worker)?;
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let mut call = ProveCall::try_from(request).map_err(malformed)?;
        let draining = self.draining().contains(&caller.name);
        if draining {
            call.capacity = call.capacity.min(call.holding.len());
        }
        // A draining worker that holds no task need not call again.
        let is_done = draining && call.holding.is_empty();
        let proofs = &self.shared.proofs;
        let mut stopping = self.shared.stopping.clone();
        let reply = tokio::select! {
            reply = proofs.pool.call(&caller.name, call, WAIT) => reply,
            _ = stopping.wait_for(|stop| *stop) => {
                return Err(Status::unavailable("the coordinator stops; try again later"));
            }
        };
        Ok(v1::ProveResponse {
            tasks: reply.tasks.iter().map(|(task, query)| protocol::task(*task, query)).collect(),
            cancel: reply.cancel,
            running_proofs: if is_done { 0 } else { proofs.running() },
            quarantined: reply.distrusted.unwrap_or_default(),
            unreadable: reply.unreadable.unwrap_or_default(),
        })
    }

    async fn enroll(
        &self,
        request: Request<v1::EnrollRequest>,
    ) -> Result<v1::EnrollResponse, Status> {
        self.shared.access.admit_anonymous(&request)?;
        let from = address(&request);
        let peer = peer(&request).cloned();
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let Some(authority) = self.shared.access.authority().cloned() else {
            return Err(Status::failed_precondition(
                "this coordinator has no authority, so there is nothing to enrol for; call without a token",
            ));
        };
        let token: Token =
            request.token.parse().map_err(|e| Status::unauthenticated(format!("{e}")))?;
        let name: Name =
            request.name.parse().map_err(|e| Status::invalid_argument(format!("{e}")))?;
        let enrolled = name.clone();
        let work = move || authority.enroll(&token, &name, &request.request, now_ms());
        let issued = issue(work).await?;
        if let Some(peer) = peer {
            peer.call_allowed();
        }
        tracing::info!(name = %enrolled, %from, "somebody enrolled");
        Ok(issued)
    }

    async fn renew(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<v1::EnrollResponse, Status> {
        let caller = self.shared.access.admit(&request, Action::Renew, "")?;
        Self::build(request.get_ref().peer.as_ref())?;
        let (Some(authority), Some(shown)) =
            (self.shared.access.authority().cloned(), shown(&request))
        else {
            return Err(Status::failed_precondition(
                "there is no certificate that could be renewed",
            ));
        };
        let request = request.into_inner().request;
        if matches!(authority.identify(&shown, now_ms()), Err(AccessError::NotYetValid)) {
            tracing::warn!(
                name = caller.name,
                "the clock was set back: a certificate that is not valid yet is replaced"
            );
        }
        issue(move || authority.renew(&shown, &request, now_ms())).await
    }

    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<v1::SubmitResponse, Status> {
        let caller = self.shared.access.admit(&request, Action::Submit, "")?;
        let request = request.into_inner();
        let problem = messages::problem(&request).map_err(malformed)?;
        let _one = self.shared.planning.acquire().await;
        let planned = tokio::task::spawn_blocking(move || plan::plan(&problem)).await;
        let planned = planned.map_err(|_| Status::internal("the problem could not be planned"))?;
        let planned = planned.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let (job, priority, submitter) =
            (planned.decomposition.job().hash(), request.priority, caller.name);
        let submitted = self
            .ask(|reply| commands::Request::Submit { planned, priority, submitter, reply })
            .await?;
        let Submitted { known, state, priority } = submitted.map_err(unavailable)?;
        let state = v1::JobState::from(state).into();
        Ok(v1::SubmitResponse { job: job.to_bytes().into(), known, state, priority })
    }

    /// Runs an operation on the proofs on a thread that may block on the disk and on threads of
    /// proofs.
    async fn with_proofs<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Proofs) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let proofs = Arc::clone(&self.shared.proofs);
        let done = tokio::task::spawn_blocking(move || work(&proofs)).await;
        done.map_err(|_| Status::internal("the proof's folder could not be used"))
    }

    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Result<v1::SubmitResponse, Status> {
        let submitter = self.shared.access.admit(&request, Action::Submit, "")?.name;
        let what = Goal::try_from(request.get_ref()).map_err(malformed)?;
        let submitted = self.with_proofs(move |proofs| proofs.submit(what, &submitter)).await?;
        let (job, Submitted { known, state, priority }) = submitted.map_err(|error| {
            tracing::error!("a proof cannot be submitted: {error}");
            Status::unavailable(format!(
                "the coordinator cannot write the folder of the proof: {error}"
            ))
        })?;
        let state = v1::JobState::from(state).into();
        Ok(v1::SubmitResponse { job: job.to_bytes().into(), known, state, priority })
    }

    async fn certificate(
        &self,
        request: Request<v1::CertificateRequest>,
    ) -> Result<Certificate, Status> {
        /// The size of a chunk in bytes, well below the limit of a message.
        const CHUNK: usize = 256 << 10;
        self.shared.access.admit(&request, Action::Status, "")?;
        let job = request.into_inner().job;
        let certificate = self.with_proofs(move |proofs| proofs.certificate(&job)).await?;
        let certificate = certificate.map_err(state_error)?;
        let chunks: Vec<Result<v1::CertificateChunk, Status>> = certificate
            .chunks(CHUNK)
            .map(|bytes| Ok(v1::CertificateChunk { bytes: bytes.to_vec() }))
            .collect();
        Ok(Box::pin(tokio_stream::iter(chunks)))
    }

    async fn set_state(
        &self,
        request: Request<v1::SetJobStateRequest>,
    ) -> Result<v1::SetJobStateResponse, Status> {
        let by = self.shared.access.admit(&request, Action::Control, "")?.name;
        let request = request.into_inner();
        let state = JobState::try_from(request.state()).map_err(malformed)?;
        let job = request.job;
        let named = self.whole_status(job.clone()).await?;
        let changed = if named.proofs.is_empty() {
            self.ask(|reply| commands::Request::SetState { job, state, by, reply }).await?
        } else if named.jobs.is_empty() {
            self.with_proofs(move |proofs| proofs.set_state(&job, state, &by)).await?
        } else {
            Err(StateError::Ambiguous(job, named.jobs.len() + named.proofs.len()))
        };
        let (job, before) = changed.map_err(state_error)?;
        Ok(v1::SetJobStateResponse {
            job: job.to_bytes().into(),
            before: v1::JobState::from(before).into(),
        })
    }

    /// Streams the status now and after each change, as long as the caller is authorized.
    async fn watch(&self, request: Request<v1::StatusRequest>) -> Result<Stream, Status> {
        const EVERY: Duration = Duration::from_secs(1);
        self.shared.access.admit(&request, Action::Watch, "")?;
        let open = Arc::clone(&self.shared.watching).try_acquire_owned();
        let open =
            open.map_err(|_| Status::resource_exhausted("too many are watching; try again later"))?;
        let shown = shown(&request);
        let digits = request.get_ref().job.clone();
        let first = self.status(request).await?;
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let service = self.clone();
        let mut stopping = self.shared.stopping.clone();
        tokio::spawn(async move {
            let _open = open;
            let mut last = v1::StatusResponse { now_ms: 0, ..first.clone() };
            let mut next = Some(first);
            loop {
                if let Some(status) = next.take()
                    && sender.send(Ok(status)).await.is_err()
                {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(EVERY) => {}
                    () = sender.closed() => return,
                    _ = stopping.wait_for(|stop| *stop) => return,
                }
                if let Err(status) =
                    service.shared.access.authorize(shown.as_deref(), Action::Watch)
                {
                    let _ = sender.send(Err(status)).await;
                    return;
                }
                let Ok(status) = service.whole_status(digits.clone()).await else { return };
                let timeless = v1::StatusResponse { now_ms: 0, ..status.clone() };
                if timeless != last {
                    last = timeless;
                    next = Some(status);
                }
            }
        });
        Ok(Box::pin(ReceiverStream::new(receiver)))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<v1::StatusResponse, Status> {
        self.shared.access.admit(&request, Action::Status, "")?;
        let job = request.into_inner().job;
        let status = self.whole_status(job.clone()).await?;
        if status.jobs.is_empty() && status.proofs.is_empty() && !job.is_empty() {
            return Err(state_error(StateError::NoSuchJob(job)));
        }
        Ok(status)
    }

    /// Returns the status of the jobs and proofs whose names begin with `digits`.
    async fn whole_status(&self, digits: String) -> Result<v1::StatusResponse, Status> {
        let proofs = self.shared.proofs.status(&digits);
        let status = self.ask(|reply| commands::Request::Status(digits, reply)).await?;
        let trouble = self.shared.troubles.added_to(status.trouble);
        Ok(v1::StatusResponse { proofs, trouble, ..status })
    }
}

fn state_error(error: StateError) -> Status {
    match error {
        StateError::NoSuchJob(_) => Status::not_found(error.to_string()),
        StateError::Ambiguous(..) => Status::invalid_argument(error.to_string()),
        StateError::Over(..) | StateError::Unproved(..) => {
            Status::failed_precondition(error.to_string())
        }
        StateError::Unwritten(_) => Status::unavailable(error.to_string()),
        StateError::Unavailable(error) => unavailable(error),
    }
}

/// Issues a certificate on a thread that may block on the disk.
async fn issue(
    work: impl FnOnce() -> Result<Issued, EnrollError> + Send + 'static,
) -> Result<v1::EnrollResponse, Status> {
    let issued = tokio::task::spawn_blocking(work).await;
    let issued = issued.map_err(|_| Status::internal("no certificate could be made"))?;
    let Issued { certificate_pem, authority_pem, .. } = issued.map_err(|error| match error {
        EnrollError::Registry(error) => {
            tracing::error!("nobody can enrol: {error}");
            Status::unavailable("try again later")
        }
        EnrollError::NameInUse(_) => Status::already_exists(error.to_string()),
        EnrollError::Certificate(_) => Status::invalid_argument(error.to_string()),
        _ => Status::unauthenticated(error.to_string()),
    })?;
    Ok(v1::EnrollResponse { certificate_pem, authority_pem })
}

#[tonic::async_trait]
impl enrolment_server::Enrolment for Service {
    async fn enroll(
        &self,
        request: Request<v1::EnrollRequest>,
    ) -> Result<Response<v1::EnrollResponse>, Status> {
        Self::enroll(self, request).await.map(Response::new)
    }

    async fn renew(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<Response<v1::EnrollResponse>, Status> {
        Self::renew(self, request).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl work_server::Work for Service {
    async fn sync(
        &self,
        request: Request<v1::SyncRequest>,
    ) -> Result<Response<v1::SyncResponse>, Status> {
        Self::sync(self, request).await.map(Response::new)
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        Self::complete(self, request).await.map(Response::new)
    }

    async fn fail(
        &self,
        request: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        Self::fail(self, request).await.map(Response::new)
    }

    async fn listen(
        &self,
        request: Request<v1::ListenRequest>,
    ) -> Result<Response<v1::ListenResponse>, Status> {
        Self::listen(self, request).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl proving_server::Proving for Service {
    async fn prove(
        &self,
        request: Request<v1::ProveRequest>,
    ) -> Result<Response<v1::ProveResponse>, Status> {
        Self::prove(self, request).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl operations_server::Operations for Service {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        Self::submit(self, request).await.map(Response::new)
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        Self::status(self, request).await.map(Response::new)
    }

    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        Self::submit_proof(self, request).await.map(Response::new)
    }

    type CertificateStream = Certificate;

    async fn certificate(
        &self,
        request: Request<v1::CertificateRequest>,
    ) -> Result<Response<Certificate>, Status> {
        Self::certificate(self, request).await.map(Response::new)
    }

    type WatchStream = Stream;

    async fn watch(&self, request: Request<v1::StatusRequest>) -> Result<Response<Stream>, Status> {
        Self::watch(self, request).await.map(Response::new)
    }

    async fn set_job_state(
        &self,
        request: Request<v1::SetJobStateRequest>,
    ) -> Result<Response<v1::SetJobStateResponse>, Status> {
        self.set_state(request).await.map(Response::new)
    }

    async fn unit_map(
        &self,
        request: Request<v1::UnitMapRequest>,
    ) -> Result<Response<v1::UnitMapResponse>, Status> {
        let ask = |v1::UnitMapRequest { job, version }, reply| commands::Request::UnitMap {
            job,
            version,
            reply,
        };
        let map = self.look(request, ask).await;
        map.and_then(|map| map.map_err(state_error)).map(Response::new)
    }

    async fn history(
        &self,
        request: Request<v1::HistoryRequest>,
    ) -> Result<Response<v1::HistoryResponse>, Status> {
        let ask = |v1::HistoryRequest { job, after_ms }, reply| commands::Request::History {
            job,
            after_ms,
            reply,
        };
        let history = self.look(request, ask).await;
        history.and_then(|history| history.map_err(state_error)).map(Response::new)
    }

    async fn events(
        &self,
        request: Request<v1::EventsRequest>,
    ) -> Result<Response<v1::EventsResponse>, Status> {
        let found = self.shared.access.admit(&request, Action::Status, "");
        let events =
            |_| v1::EventsResponse { events: self.shared.event_log.after(request.get_ref().after) };
        found.map(events).map(Response::new)
    }

    async fn workers(
        &self,
        request: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.look(request, |_, reply| commands::Request::Workers(reply)).await;
        workers.map(Response::new)
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let drained = async {
            let by = self.shared.access.admit(&request, Action::Control, "")?.name;
            let worker = request.into_inner().worker;
            let name = worker.clone();
            let known = self.ask(|reply| commands::Request::Drain { worker, by, reply }).await?;
            if !known.map_err(unavailable)? {
                return Err(no_such_worker(&name));
            }
            self.draining().insert(name);
            Ok(v1::DrainResponse {})
        };
        drained.await.map(Response::new)
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseResponse>, Status> {
        let released = async {
            let by = self.shared.access.admit(&request, Action::Control, "")?.name;
            let worker = request.into_inner().worker;
            let name = worker.clone();
            let known = self.ask(|reply| commands::Request::Release { worker, by, reply }).await?;
            let proves_again = self.shared.proofs.pool.release(&name);
            match known.map_err(unavailable)? || proves_again {
                true => Ok(v1::ReleaseResponse {}),
                false => Err(Status::not_found(format!("{name} is not in quarantine"))),
            }
        };
        released.await.map(Response::new)
    }
}

fn no_such_worker(name: &str) -> Status {
    Status::not_found(format!(
        "no worker '{name}' was heard of; nqueens workers lists those that were"
    ))
}
