//! The calls of workers.

use std::time::{Duration, Instant};

use tonic::{Request, Response, Status};

use super::{Service, malformed, unavailable};
use crate::cluster::auth::Action;
use crate::cluster::campaign::{UnitId, UnitResult};
use crate::cluster::coordinator::access::{remote, worker_address};
use crate::cluster::coordinator::actor::CampaignActor;
use crate::cluster::coordinator::commands::{self, SyncReply, WorkerDetails};
use crate::cluster::protocol::v1::{self, proving_server::Proving, work_server::Work};
use crate::cluster::protocol::{self, MOST_RESULTS, Malformed, ProveCall, messages};

/// The longest duration of a long poll, shorter than the timeout of a worker.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

#[tonic::async_trait]
impl Work for Service {
    async fn sync(
        &self,
        request: Request<v1::SyncRequest>,
    ) -> Result<Response<v1::SyncResponse>, Status> {
        /// The pause before the next query for work to lease.
        const PAUSE: Duration = Duration::from_millis(10);
        let began = Instant::now();
        let caller = self.shared.access.admit(&request, Action::Sync, &request.get_ref().worker)?;
        let from = remote(&request).map(|address| address.to_string()).unwrap_or_default();
        let address = worker_address(&request);
        let request = request.into_inner();
        let build = Self::build(request.peer.as_ref())?;
        let devices = messages::devices(request.devices.clone()).map_err(malformed)?;
        let key = messages::result_key(&request, &caller.name).map_err(malformed)?;
        let about = WorkerDetails { build, address: from, devices, key };
        let wait = Duration::from_millis(request.wait_ms.into()).min(LONGEST_WAIT);
        let until = tokio::time::Instant::now() + wait;
        let request = messages::sync_request(request, (caller.name.clone(), caller.owner, address))
            .map_err(malformed)?;
        let (mut work, mut stopping) = (self.shared.calls.work(), self.shared.stopping.clone());
        let mut proof_changes = self.shared.proofs.state_changes();
        let mut proofs = self.shared.proofs.running();
        let answer = loop {
            work.mark_unchanged();
            proof_changes.mark_unchanged();
            let (request, about) = (request.clone(), about.clone());
            let answer = self.run(move |actor| actor.sync(&request, about)).await?;
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
                // The actor does not manage proofs.
                changed = proof_changes.changed() => if changed.is_err() { break answer },
                _ = stopping.wait_for(|stop| *stop) => break answer,
            }
            proofs = proofs.min(self.shared.proofs.running());
            // Limit how often many waiting syncs query the actor while others deliver results.
            tokio::time::sleep(PAUSE).await;
        };
        let SyncReply { response, jobs, running_jobs, quarantined, draining } = answer;
        match draining {
            true => self.draining().insert(caller.name),
            false => self.draining().remove(&caller.name),
        };
        let text = |job: &crate::decomposition::Job| v1::Job {
            job: job.hash().to_bytes().into(),
            text: job.to_string(),
        };
        self.shared.metrics.synced(began.elapsed());
        Ok(Response::new(v1::SyncResponse {
            jobs: jobs.iter().map(text).collect(),
            running_jobs,
            quarantined: quarantined.unwrap_or_default(),
            running_proofs: self.shared.proofs.running(),
            ..messages::sync_response(&response)
        }))
    }

    async fn listen(
        &self,
        request: Request<v1::ListenRequest>,
    ) -> Result<Response<v1::ListenResponse>, Status> {
        let caller = self.shared.access.admit(&request, Action::Sync, &request.get_ref().worker)?;
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let wait = Duration::from_millis(request.wait_ms.into()).min(LONGEST_WAIT);
        let until = tokio::time::Instant::now() + wait;
        let mut stopping = self.shared.stopping.clone();
        // Register first, so that no wake is missed.
        let mut registered = self.shared.calls.register(&caller.name);
        let has_check =
            move |actor: &mut CampaignActor| actor.campaign.has_reserved_spot_check(&caller.name);
        let kept = self.run(has_check).await?;
        let kept = kept
            || tokio::select! {
                () = registered.woken() => true,
                () = tokio::time::sleep_until(until) => false,
                _ = stopping.wait_for(|stop| *stop) => false,
            };
        Ok(Response::new(v1::ListenResponse { kept }))
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
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
        let verdicts = self.send(|reply| commands::Request::Complete(results, reply)).await?;
        let verdicts = verdicts.map_err(unavailable)?;
        Ok(Response::new(v1::CompleteResponse {
            verdicts: verdicts
                .into_iter()
                .map(|verdict| v1::Verdict::from(verdict).into())
                .collect(),
        }))
    }

    async fn fail(
        &self,
        request: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        /// The maximum length of a failure report, in characters.
        const MOST_LETTERS: usize = 500;
        let caller = self.shared.access.admit(&request, Action::Fail, &request.get_ref().worker)?;
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let unit = UnitId {
            job: protocol::job_hash(&request.job).map_err(malformed)?,
            unit: request.unit,
        };
        let (worker, attempt) = (caller.name, request.attempt);
        let class = match request.reason() {
            v1::FailReason::Unspecified => "no reason given",
            v1::FailReason::Device => "a device failed",
            v1::FailReason::Check => "the count is inconsistent",
            v1::FailReason::Unsuited | v1::FailReason::Job => {
                self.run(move |actor| actor.mark_unsuited(unit, attempt, &worker)).await?;
                return Ok(Response::new(v1::FailResponse {}));
            }
        };
        let detail =
            request.detail.chars().filter(|letter| !letter.is_control()).take(MOST_LETTERS);
        let reason = format!("{class}: {}", detail.collect::<String>());
        let kept = self.run(move |actor| actor.fail(unit, attempt, &worker, &reason)).await?;
        kept.map_err(unavailable).map(|()| Response::new(v1::FailResponse {}))
    }
}

#[tonic::async_trait]
impl Proving for Service {
    async fn prove(
        &self,
        request: Request<v1::ProveRequest>,
    ) -> Result<Response<v1::ProveResponse>, Status> {
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
            reply = proofs.queue.call(&caller.name, call, WAIT) => reply,
            _ = stopping.wait_for(|stop| *stop) => {
                return Err(Status::unavailable("the coordinator is stopping; try again later"));
            }
        };
        Ok(Response::new(v1::ProveResponse {
            tasks: reply.tasks.iter().map(|(task, query)| protocol::task(*task, query)).collect(),
            cancel: reply.cancel,
            running_proofs: if is_done { 0 } else { proofs.running() },
            quarantined: reply.quarantined.unwrap_or_default(),
            unreadable: reply.unreadable.unwrap_or_default(),
        }))
    }
}
