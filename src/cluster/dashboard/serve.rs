//! The listener of the dashboard.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;

use super::authenticator::Authenticator;
use super::play::PlayFiles;
use super::routes::{App, router};
use crate::cluster::auth::{Authority, ServerIdentity};
use crate::cluster::net::{Bound, ConnectionLimits, PoolLimits, serve_http1};
use crate::cluster::protocol::v1::operations_client::OperationsClient;

/// The limits on open connections.
const CONNECTIONS: PoolLimits = PoolLimits { total: 512, per_key: 32, local: 256 };
/// The time limit of a handshake, of the head of a request, and of each write of an answer.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// The authentication mode of the dashboard.
#[derive(Clone, Debug)]
pub enum AuthMode {
    /// No authentication: every user of this machine has access.
    Open,
    /// A session is required, over TLS with this identity.
    Sessions(Arc<Authority>, Arc<ServerIdentity>),
}

/// Serves the dashboard of the coordinator that `operations` calls, and the page to play with if
/// its files are given, until the future is dropped.
///
/// # Errors
/// TLS cannot be set up, or the dashboard is [`AuthMode::Open`] and the address is not loopback.
pub async fn serve(
    bound: Bound,
    operations: OperationsClient<Routes>,
    auth_mode: AuthMode,
    play: Option<PlayFiles>,
) -> io::Result<()> {
    let Bound { listener, address } = bound;
    let (authority, acceptor) = match auth_mode {
        AuthMode::Open if !address.ip().is_loopback() => {
            return Err(io::Error::other(format!(
                "other machines can reach {address}, and without an authority there is no access control"
            )));
        }
        AuthMode::Open => (None, None),
        AuthMode::Sessions(authority, identity) => {
            let config = identity.config_for_browsers().map_err(io::Error::other)?;
            (Some(authority), Some(TlsAcceptor::from(Arc::new(config))))
        }
    };
    let app = Arc::new(App::new(operations, Authenticator::new(authority, address.port())));
    let router = router(Arc::clone(&app), play);
    let limits = ConnectionLimits::for_http1(CONNECTIONS, TIME_LIMIT);
    tokio::select! {
        () = serve_http1(listener, limits, acceptor, router) => {}
        () = app.live.produce(&*app) => {}
    }
    Ok(())
}
