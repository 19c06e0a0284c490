//! Connections of browsers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Reports;
use super::door::{Doorkeeper, network};
use super::patient::Patient;
use super::places::Places;
use super::routes::{App, Peer, router};
use crate::authority::{Authority, ServerIdentity};
use crate::wire::v1::operations_server::Operations;

/// Connections that may be open, those of strangers included.
const MOST_CONNECTIONS: usize = 512;
/// Those of one address, or of one network of IPv6; those of this machine only count among all.
const MOST_OF_AN_ADDRESS: usize = 32;
/// How long a handshake may take, and how long the head of a request; how long an answer may wait for its reader.
const PATIENCE: Duration = Duration::from_secs(15);

/// Who may come in.
#[derive(Clone, Debug)]
pub enum Door {
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
    door: Door,
) -> io::Result<()> {
    let Bound { listener, address } = bound;
    let (authority, acceptor) = match door {
        Door::Open if !address.ip().is_loopback() => {
            return Err(io::Error::other(format!(
                "{address} can be reached by others, and everybody could come in"
            )));
        }
        Door::Open => (None, None),
        Door::Locked(authority, identity) => {
            let config = identity.config_for_browsers().map_err(io::Error::other)?;
            (Some(authority), Some(TlsAcceptor::from(Arc::new(config))))
        }
    };
    let app = Arc::new(App::new(operations, reports, Doorkeeper::new(authority, address.port())));
    let router = router(Arc::clone(&app));
    // They end with this function.
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { app.live.produce(&*app).await });
    let room = Places::new(MOST_CONNECTIONS, MOST_OF_AN_ADDRESS);
    loop {
        while tasks.try_join_next().is_some() {}
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, say: it passes.
                tracing::warn!("a browser's connection could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let address = from.ip().to_canonical();
        let Some(place) = room.take((!address.is_loopback()).then(|| network(address))) else {
            tracing::debug!(%from, "too many connections to the dashboard");
            continue;
        };
        let (router, acceptor) = (router.clone(), acceptor.clone());
        tasks.spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            let stream = Patient::new(stream, PATIENCE);
            let peer = Peer(from.ip());
            match acceptor {
                None => converse(stream, router, peer).await,
                Some(acceptor) => match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => converse(stream, router, peer).await,
                    Ok(Err(error)) => tracing::debug!(%from, "no handshake: {error}"),
                    Err(_) => tracing::debug!(%from, "no handshake in time"),
                },
            }
        });
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router, peer: Peer) {
    let answer = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        hyper::service::Service::call(&answer, request)
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // Browsers go when they like.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
