//! The tower layer that counts calls by name and gRPC code.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tonic::service::Routes;
use tonic::{Code, Status};

use super::metrics::Metrics;

/// Returns these routes with a layer that counts each call.
pub(super) fn with_call_metrics(routes: Routes, metrics: Arc<Metrics>) -> Routes {
    routes.into_axum_router().layer(from_fn_with_state(metrics, count_call)).into()
}

/// Answers a call and counts it by its name and the code of the response.
async fn count_call(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    // A response that begins with data has no code in its headers.
    let code = Status::from_header_map(response.headers()).map_or(Code::Ok, |error| error.code());
    let name = path.rsplit('/').next().unwrap_or_default();
    // Only a call that no service has is unimplemented; its name may be any text.
    if code != Code::Unimplemented {
        metrics.called(name, code_name(code));
    }
    response
}

const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::NotFound => "NOT_FOUND",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Unavailable => "UNAVAILABLE",
        Code::Unauthenticated => "UNAUTHENTICATED",
        _ => "OTHER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::protocol::v1;
    use crate::cluster::protocol::v1::enrolment_client::EnrolmentClient;
    use crate::cluster::protocol::v1::enrolment_server::{Enrolment, EnrolmentServer};
    use crate::cluster::protocol::v1::work_client::WorkClient;

    /// An enrolment service that refuses every renewal.
    struct Enroller;

    #[tonic::async_trait]
    impl Enrolment for Enroller {
        async fn enroll(
            &self,
            _: tonic::Request<v1::EnrollRequest>,
        ) -> Result<tonic::Response<v1::EnrollResponse>, Status> {
            Ok(tonic::Response::new(v1::EnrollResponse::default()))
        }

        async fn renew(
            &self,
            _: tonic::Request<v1::RenewRequest>,
        ) -> Result<tonic::Response<v1::EnrollResponse>, Status> {
            Err(Status::permission_denied("no"))
        }
    }

    #[tokio::test]
    async fn calls_are_counted_by_name_and_code_and_unknown_names_are_not() {
        let metrics = Arc::new(Metrics::new());
        let routes =
            with_call_metrics(Routes::new(EnrolmentServer::new(Enroller)), Arc::clone(&metrics));
        let mut enrolment = EnrolmentClient::new(routes.clone());
        for _ in 0..2 {
            enrolment.enroll(v1::EnrollRequest::default()).await.expect("a response");
        }
        let refused = enrolment.renew(v1::RenewRequest::default()).await.expect_err("refused");
        assert_eq!((refused.code(), refused.message()), (Code::PermissionDenied, "no"));
        let unknown = WorkClient::new(routes).sync(v1::SyncRequest::default()).await;
        assert_eq!(unknown.expect_err("no such service").code(), Code::Unimplemented);
        let text = metrics.text();
        let calls: Vec<&str> =
            text.lines().filter(|line| line.starts_with("nqueens_calls_total")).collect();
        assert_eq!(calls.len(), 2, "{text}");
        for line in [
            "nqueens_calls_total{call=\"Enroll\",code=\"OK\"} 2",
            "nqueens_calls_total{call=\"Renew\",code=\"PERMISSION_DENIED\"} 1",
        ] {
            assert!(calls.contains(&line), "{line}\n{text}");
        }
    }
}
