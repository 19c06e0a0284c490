//! The dashboard of a coordinator in the same process.

use std::net::SocketAddr;

use super::Failure;
use crate::cluster::coordinator::{BoundAddress, InProcessService, ServeError};
use crate::cluster::dashboard::{self, AuthMode, Bound};

/// Checks that a dashboard may be served at this address.
pub(super) fn check(at: SocketAddr, tls: bool) -> Result<(), Failure> {
    if tls || at.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--dashboard {at} is reachable from other machines, which needs TLS and a certificate authority; use a \
         loopback address, for example 127.0.0.1:8080, or create an authority with nqueens coordinator init"
    )))
}

/// Binds the address.
pub(super) async fn bind(at: SocketAddr) -> Result<Bound, Failure> {
    Ok(Bound::at(at).await.map_err(|error| ServeError::Listen(at, error))?)
}

/// Serves the dashboard until this process ends.
pub(super) fn open(bound: Bound, listening: &BoundAddress) {
    let InProcessService { operations, authority } = listening.in_process.clone();
    let auth_mode = match authority {
        None => AuthMode::Open,
        Some((authority, identity)) => AuthMode::Sessions(authority, identity),
    };
    tracing::info!(url = bound.url(listening.tls), "dashboard");
    tokio::spawn(async move {
        if let Err(error) = dashboard::serve(bound, operations, auth_mode).await {
            tracing::error!("cannot serve the dashboard: {error}");
        }
    });
}
