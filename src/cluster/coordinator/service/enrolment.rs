//! The calls that issue certificates.

use tonic::{Request, Response, Status};

use super::Service;
use crate::cluster::auth::{AccessError, Action, EnrollError, Issued, Name, Token};
use crate::cluster::coordinator::access::{address, peer, presented_certificate};
use crate::cluster::coordinator::now_ms;
use crate::cluster::protocol::v1::{self, enrolment_server::Enrolment};

#[tonic::async_trait]
impl Enrolment for Service {
    async fn enroll(
        &self,
        request: Request<v1::EnrollRequest>,
    ) -> Result<Response<v1::EnrollResponse>, Status> {
        self.shared.access.check_anonymous_quota(&request)?;
        let from = address(&request);
        let peer = peer(&request).cloned();
        let request = request.into_inner();
        Self::build(request.peer.as_ref())?;
        let Some(authority) = self.shared.access.authority().cloned() else {
            return Err(Status::failed_precondition(
                "this coordinator has no authority; call it without a token",
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
        tracing::info!(name = %enrolled, %from, "a client has enrolled");
        Ok(Response::new(issued))
    }

    async fn renew(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<Response<v1::EnrollResponse>, Status> {
        let caller = self.shared.access.admit(&request, Action::Renew, "")?;
        Self::build(request.get_ref().peer.as_ref())?;
        let (Some(authority), Some(certificate)) =
            (self.shared.access.authority().cloned(), presented_certificate(&request))
        else {
            return Err(Status::failed_precondition(
                "the call presents no certificate that could be renewed",
            ));
        };
        let request = request.into_inner().request;
        if matches!(authority.identify(&certificate, now_ms()), Err(AccessError::NotYetValid)) {
            tracing::warn!(
                name = caller.name,
                "the clock was set back: a certificate that is not valid yet is replaced"
            );
        }
        let issued = issue(move || authority.renew(&certificate, &request, now_ms())).await?;
        Ok(Response::new(issued))
    }
}

/// Issues a certificate on a thread that may block on the disk.
async fn issue(
    work: impl FnOnce() -> Result<Issued, EnrollError> + Send + 'static,
) -> Result<v1::EnrollResponse, Status> {
    let issued = tokio::task::spawn_blocking(work).await;
    let issued = issued.map_err(|_| Status::internal("the certificate could not be issued"))?;
    let Issued { certificate_pem, authority_pem, .. } = issued.map_err(|error| match error {
        EnrollError::Registry(error) => {
            tracing::error!("enrolment failed: {error}");
            Status::unavailable("try again later")
        }
        EnrollError::NameInUse(_) => Status::already_exists(error.to_string()),
        EnrollError::Certificate(_) => Status::invalid_argument(error.to_string()),
        _ => Status::unauthenticated(error.to_string()),
    })?;
    Ok(v1::EnrollResponse { certificate_pem, authority_pem })
}
