//! The services of the protocol, which pass each call to its handler.

use tonic::{Request, Response, Status};

use super::{CertificateStream, Service, StatusStream, state_error, unavailable};
use crate::cluster::auth::Action;
use crate::cluster::coordinator::commands;
use crate::cluster::protocol::v1::{
    self, enrolment_server, operations_server, proving_server, work_server,
};

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

    type CertificateStream = CertificateStream;

    async fn certificate(
        &self,
        request: Request<v1::CertificateRequest>,
    ) -> Result<Response<CertificateStream>, Status> {
        Self::certificate(self, request).await.map(Response::new)
    }

    type WatchStream = StatusStream;

    async fn watch(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<StatusStream>, Status> {
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
        let map = self.query(request, ask).await;
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
        let history = self.query(request, ask).await;
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
        let workers = self.query(request, |_, reply| commands::Request::Workers(reply)).await;
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
            let proves_again = self.shared.proofs.queue.release(&name);
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
        "no worker '{name}' has synced since the coordinator started; \
         nqueens workers lists those that have"
    ))
}
