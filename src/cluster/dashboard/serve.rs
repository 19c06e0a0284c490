//! Connections of browsers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::Reports;
use super::authenticator::Authenticator;
use super::routes::{App, router};
use crate::cluster::auth::{Authority, ServerIdentity};
use crate::cluster::net::{ConnectionLimits, PoolLimits, serve_http1};
use crate::cluster::protocol::v1::operations_server::Operations;

/// Connections that may be open.
const CONNECTIONS: PoolLimits = PoolLimits { in_all: 512, per_key: 32, local: 256 };
/// How long a handshake may take, and how long the head of a request; how long an answer may wait for its reader.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// Who may come in.
#[derive(Clone, Debug)]
pub enum AuthMode {
    /// Everybody who reaches it: everybody on this machine.
    Open,
    /// Whoever has a session; over TLS with this identity.
    Locked(Arc<Authority>, Arc<ServerIdentity>),
}

/// An address that is taken, before anything is served there.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Takes an address; port 0 takes one that is free.
    ///
    /// # Errors
    /// The system refuses.
    pub async fn at(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// What a browser is to open.
    pub fn url(&self, tls: bool) -> String {
        format!("{}://{}/", if tls { "https" } else { "http" }, self.address)
    }
}

/// Now, in ms since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Serves the dashboard of whoever answers `operations`, until it is dropped.
///
/// # Errors
/// TLS cannot be set up; or the door is open and others could reach the address.
pub async fn serve<O: Operations>(
    bound: Bound,
    operations: O,
    reports: Reports,
    door: AuthMode,
) -> io::Result<()> {
    let Bound { listener, address } = bound;
    let (authority, acceptor) = match door {
        AuthMode::Open if !address.ip().is_loopback() => {
            return Err(io::Error::other(format!(
                "{address} can be reached by others, and everybody could come in"
            )));
        }
        AuthMode::Open => (None, None),
        AuthMode::Locked(authority, identity) => {
            let config = identity.config_for_browsers().map_err(io::Error::other)?;
            (Some(authority), Some(TlsAcceptor::from(Arc::new(config))))
        }
    };
    let app = Arc::new(App::new(operations, reports, Authenticator::new(authority, address.port())));
    let router = router(Arc::clone(&app));
    let limits = ConnectionLimits::for_http1(CONNECTIONS, TIME_LIMIT);
    tokio::select! {
        () = serve_http1(listener, limits, acceptor, router) => {}
        () = app.live.produce(&*app) => {}
    }
    Ok(())
}
