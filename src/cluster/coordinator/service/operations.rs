//! The calls of operators.

use std::sync::Arc;
use std::time::Duration;

use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{CertificateStream, Service, StatusStream, malformed, state_error, unavailable};
use crate::cluster::auth::Action;
use crate::cluster::campaign::JobState;
use crate::cluster::coordinator::access::presented_certificate;
use crate::cluster::coordinator::actor::CampaignActor;
use crate::cluster::coordinator::commands::{StateError, SubmitReply};
use crate::cluster::coordinator::plan;
use crate::cluster::coordinator::proofs::{Goal, Proofs};
use crate::cluster::protocol::messages;
use crate::cluster::protocol::v1::{self, operations_server::Operations};
use crate::decomposition::Subproblems;

#[tonic::async_trait]
impl Operations for Service {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let caller = self.shared.access.admit(&request, Action::Submit, "")?;
        let request = request.into_inner();
        let problem = messages::problem(&request).map_err(malformed)?;
        let chosen = messages::subproblems(&request).map_err(malformed)?;
        let asked = problem.clone();
        let context = self.run(move |actor| actor.plan_context(&asked)).await?;
        let _one = self.shared.planning.acquire().await;
        let planned =
            tokio::task::spawn_blocking(move || plan::plan(&problem, chosen, context)).await;
        let planned = planned.map_err(|_| Status::internal("the problem could not be planned"))?;
        let planned = planned.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let job = planned.job();
        let (job, subproblems) = (job.hash(), Subproblems::of(job));
        let (priority, submitter) = (request.priority, caller.name);
        let submitted = self.run(move |actor| actor.submit(&planned, priority, &submitter)).await?;
        let SubmitReply { known, state, priority } = submitted.map_err(unavailable)?;
        let state = v1::JobState::from(state).into();
        let subproblems = v1::Subproblems::from(subproblems).into();
        let job = job.to_bytes().into();
        let response = v1::SubmitResponse { job, known, state, priority, subproblems };
        Ok(Response::new(response))
    }

    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let submitter = self.shared.access.admit(&request, Action::Submit, "")?.name;
        let what = Goal::try_from(request.get_ref()).map_err(malformed)?;
        let asked = (what, request.get_ref().priority);
        let submitted = self.with_proofs(move |proofs| proofs.submit(asked, &submitter)).await?;
        let (job, SubmitReply { known, state, priority }) = submitted.map_err(|error| {
            tracing::error!("a proof cannot be submitted: {error}");
            Status::unavailable(format!(
                "the coordinator cannot write the directory of the proof: {error}"
            ))
        })?;
        let state = v1::JobState::from(state).into();
        let job = job.to_bytes().into();
        let response =
            v1::SubmitResponse { job, known, state, priority, ..v1::SubmitResponse::default() };
        Ok(Response::new(response))
    }

    type CertificateStream = CertificateStream;

    async fn certificate(
        &self,
        request: Request<v1::CertificateRequest>,
    ) -> Result<Response<CertificateStream>, Status> {
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
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn set_job_state(
        &self,
        request: Request<v1::SetJobStateRequest>,
    ) -> Result<Response<v1::SetJobStateResponse>, Status> {
        let by = self.shared.access.admit(&request, Action::Control, "")?.name;
        let request = request.into_inner();
        let state = JobState::try_from(request.state()).map_err(malformed)?;
        let job = request.job;
        let named = self.whole_status(job.clone()).await?;
        let changed = if named.proofs.is_empty() {
            let set_state = move |actor: &mut CampaignActor| actor.set_state(&job, state);
            self.run(|actor| actor.on_behalf_of(by, set_state)).await?
        } else if named.jobs.is_empty() {
            self.with_proofs(move |proofs| proofs.set_state(&job, state, &by)).await?
        } else {
            Err(StateError::Ambiguous(job, named.jobs.len() + named.proofs.len()))
        };
        let (job, before) = changed.map_err(state_error)?;
        Ok(Response::new(v1::SetJobStateResponse {
            job: job.to_bytes().into(),
            before: v1::JobState::from(before).into(),
        }))
    }

    type WatchStream = StatusStream;

    /// Streams the status now and after each change, as long as the caller is authorized.
    async fn watch(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<StatusStream>, Status> {
        const LONGEST_PAUSE: Duration = Duration::from_secs(1);
        self.shared.access.admit(&request, Action::Watch, "")?;
        let open = Arc::clone(&self.shared.watching).try_acquire_owned();
        let open = open.map_err(|_| {
            Status::resource_exhausted("too many clients are watching; try again later")
        })?;
        let certificate = presented_certificate(&request);
        let digits = request.get_ref().job.clone();
        let mut proof_changes = self.shared.proofs.state_changes();
        let first = self.status(request).await?.into_inner();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let service = self.clone();
        let mut stopping = self.shared.stopping.clone();
        tokio::spawn(async move {
            let _open = open;
            let mut last = v1::StatusResponse { now_ms: 0, ..first.clone() };
            let mut next = Some(first);
            // Short at first: a caller that waits for a quick job waits little longer than it
            // takes.
            let mut pause = LONGEST_PAUSE / 32;
            loop {
                if let Some(status) = next.take()
                    && sender.send(Ok(status)).await.is_err()
                {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    // A proof may have ended.
                    changed = proof_changes.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                    _ = stopping.wait_for(|stop| *stop) => return,
                }
                if let Err(status) =
                    service.shared.access.authorize(certificate.as_deref(), Action::Watch)
                {
                    let _ = sender.send(Err(status)).await;
                    return;
                }
                pause = pause.mul_f64(1.25).min(LONGEST_PAUSE);
                let Ok(status) = service.whole_status(digits.clone()).await else { return };
                let timeless = v1::StatusResponse { now_ms: 0, ..status.clone() };
                if timeless != last {
                    last = timeless;
                    next = Some(status);
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        self.shared.access.admit(&request, Action::Status, "")?;
        let job = request.into_inner().job;
        let status = self.whole_status(job.clone()).await?;
        if status.jobs.is_empty() && status.proofs.is_empty() && !job.is_empty() {
            return Err(state_error(StateError::NoSuchJob(job)));
        }
        Ok(Response::new(status))
    }

    async fn unit_map(
        &self,
        request: Request<v1::UnitMapRequest>,
    ) -> Result<Response<v1::UnitMapResponse>, Status> {
        let map = self.query(request, |actor, of| actor.unit_map(&of.job, of.version)).await?;
        map.map(Response::new).map_err(state_error)
    }

    async fn history(
        &self,
        request: Request<v1::HistoryRequest>,
    ) -> Result<Response<v1::HistoryResponse>, Status> {
        let history = self.query(request, |actor, of| actor.history(&of.job, of.after_ms)).await?;
        history.map(Response::new).map_err(state_error)
    }

    async fn events(
        &self,
        request: Request<v1::EventsRequest>,
    ) -> Result<Response<v1::EventsResponse>, Status> {
        self.shared.access.admit(&request, Action::Status, "")?;
        let events = self.shared.event_log.after(request.get_ref().after);
        Ok(Response::new(v1::EventsResponse { events }))
    }

    async fn workers(
        &self,
        request: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.query(request, |actor, _| actor.workers()).await;
        workers.map(Response::new)
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let by = self.shared.access.admit(&request, Action::Control, "")?.name;
        let worker = request.into_inner().worker;
        let name = worker.clone();
        let drain = move |actor: &mut CampaignActor| actor.drain(worker);
        let known = self.run(|actor| actor.on_behalf_of(by, drain)).await?;
        if !known.map_err(unavailable)? {
            return Err(no_such_worker(&name));
        }
        self.draining().insert(name);
        Ok(Response::new(v1::DrainResponse {}))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseResponse>, Status> {
        let by = self.shared.access.admit(&request, Action::Control, "")?.name;
        let worker = request.into_inner().worker;
        let name = worker.clone();
        let release = move |actor: &mut CampaignActor| actor.release(worker);
        let known = self.run(|actor| actor.on_behalf_of(by, release)).await?;
        let proves_again = self.shared.proofs.queue.release(&name);
        match known.map_err(unavailable)? || proves_again {
            true => Ok(Response::new(v1::ReleaseResponse {})),
            false => Err(Status::not_found(format!("{name} is not in quarantine"))),
        }
    }
}

impl Service {
    /// Runs an operation on the proofs on a thread that may block on the disk and on threads of
    /// proofs.
    async fn with_proofs<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Proofs) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let proofs = Arc::clone(&self.shared.proofs);
        let done = tokio::task::spawn_blocking(move || work(&proofs)).await;
        done.map_err(|_| Status::internal("the directory of the proof could not be used"))
    }

    /// Returns the status of the jobs and proofs whose names begin with `digits`.
    async fn whole_status(&self, digits: String) -> Result<v1::StatusResponse, Status> {
        let proofs = self.shared.proofs.status(&digits);
        let status = self.run(move |actor| actor.status(&digits)).await?;
        let trouble = self.shared.write_failures.append_to(status.trouble);
        Ok(v1::StatusResponse { proofs, trouble, ..status })
    }
}

fn no_such_worker(name: &str) -> Status {
    Status::not_found(format!(
        "no worker '{name}' has synced since the coordinator started; \
         nqueens workers lists those that have"
    ))
}
