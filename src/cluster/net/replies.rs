//! Responses to browsers, and the headers that all of them have.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tonic::{Code, Status};

/// The content security policy: only scripts, styles and connections of this origin, nothing
/// inline, and no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Adds the headers that every response has. A response may have its own content security policy.
pub(crate) async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Ends requests that take too long to arrive or to be answered.
pub(crate) async fn with_time_limit(request: Request, next: Next) -> Response {
    const TIME_LIMIT: Duration = Duration::from_secs(10);
    match tokio::time::timeout(TIME_LIMIT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => error_response(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
    }
}

/// Returns a file of the page.
pub(crate) fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Returns a JSON response.
pub(crate) fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Body::from(value.to_string())).into_response()
}

/// An error response: the status code, and one line that says what is wrong.
#[derive(Debug)]
pub(crate) struct ErrorResponse(StatusCode, String);

impl ErrorResponse {
    pub(crate) fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self(code, message.into())
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        (self.0, json_response(&json!({ "error": self.1 }))).into_response()
    }
}

/// Maps an error of the coordinator.
impl From<Status> for ErrorResponse {
    fn from(status: Status) -> Self {
        let code = match status.code() {
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::PermissionDenied | Code::Unauthenticated => StatusCode::FORBIDDEN,
            Code::FailedPrecondition => StatusCode::CONFLICT,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(code, status.message())
    }
}

/// Returns an error response.
pub(crate) fn error_response(code: StatusCode, message: &str) -> Response {
    ErrorResponse::new(code, message).into_response()
}
