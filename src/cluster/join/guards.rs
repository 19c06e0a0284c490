//! The checks that every request passes before it is answered: host and origin, rate limits, and
//! the session.

use std::net::IpAddr;

use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::routes::Shared;
use super::sessions::Refused;
use crate::cluster::net::replies::{ErrorResponse, error_response};
use crate::cluster::net::{PeerAddress, check_change};
use crate::cluster::protocol::now_ms;

/// The address of the visitor: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) IpAddr);

/// Refuses requests for another host, and posts that are not JSON from this origin.
pub(super) async fn check_origin(
    State(app): Shared,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    mut request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    if !app.is_own_host(request.headers()) {
        let why = "the host is not a name of the coordinator; use its address, a name given to \
                   nqueens coordinator init --name, or the host of --join-url";
        return Err(ErrorResponse::new(StatusCode::MISDIRECTED_REQUEST, why));
    }
    check_change(&request, app.scheme())?;
    let address = app.address(request.headers(), peer);
    request.extensions_mut().insert(Address(address));
    Ok(next.run(request).await)
}

/// Limits the requests of a network that need no session.
pub(super) async fn limit_requests(
    State(app): Shared,
    Extension(Address(address)): Extension<Address>,
    request: Request,
    next: Next,
) -> Response {
    match app.limits.may_ask(address) {
        true => next.run(request).await,
        false => too_many(),
    }
}

fn too_many() -> Response {
    error_response(StatusCode::TOO_MANY_REQUESTS, "too many requests; try again later")
}

pub(super) fn refused(error: &Refused) -> ErrorResponse {
    let code = match error {
        Refused::NoSession | Refused::Token(_) | Refused::NoAuthority => StatusCode::UNAUTHORIZED,
        Refused::NoGuests => StatusCode::FORBIDDEN,
        Refused::TooManyGuests | Refused::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    ErrorResponse::new(code, error.to_string())
}

/// Requires the secret of a session.
pub(super) async fn require_session(
    State(app): Shared,
    Extension(Address(address)): Extension<Address>,
    mut request: Request,
    next: Next,
) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let secret = authorization.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let visitor = match secret {
        Some(secret) => app.sessions.visitor(secret, address, now_ms()),
        None => Err(Refused::NoSession),
    };
    match visitor {
        Ok(visitor) if app.limits.may_call(&visitor.worker.name) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Ok(_) => too_many(),
        // Whoever guesses secrets is limited, too.
        Err(_) if !app.limits.may_ask(address) => too_many(),
        Err(error) => refused(&error).into_response(),
    }
}
