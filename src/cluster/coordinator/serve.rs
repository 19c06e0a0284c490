//! The server of a coordinator, and the tasks that run beside it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::access::Access;
use super::actor::{self, Running, StartError};
use super::address::AddressFile;
use super::call_metrics::with_call_metrics;
use super::clock::MonotonicClock;
use super::commands::{Handle, Request};
use super::connection::Connection;
use super::event_log::EventLog;
use super::metrics::Metrics;
use super::notifier::{Notifier, Notify};
use super::proofs::Proofs;
use super::service::Service;
use super::troubles::WriteFailures;
use super::{authority_folder, ledger_file, now_ms, operator_folder};
use crate::cluster::auth::{
    Authority, AuthorityError, Credentials, CredentialsError, KeyRequest, Name, Renewal, Role,
    ServerIdentity,
};
use crate::cluster::campaign::Settings;
use crate::cluster::ledger::LedgerError;
use crate::cluster::net::{
    ConnectionLimits, Handshake, Identity, PoolLimits, accept, raise_open_files, serve_http1,
};
use crate::cluster::protocol::MOST_MESSAGE_BYTES;
use crate::cluster::protocol::v1::enrolment_server::EnrolmentServer;
use crate::cluster::protocol::v1::operations_client::OperationsClient;
use crate::cluster::protocol::v1::operations_server::OperationsServer;
use crate::cluster::protocol::v1::proving_server::ProvingServer;
use crate::cluster::protocol::v1::work_server::WorkServer;

/// Names of files in reports that they cannot be written.
const ADDRESS: &str = "address.json";
const OPERATOR: &str = "the operator's certificate";

/// The options of a coordinator.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory.
    pub data: PathBuf,
    /// The address to listen on; port 0 selects a free port.
    pub listen: SocketAddr,
    /// True to serve without TLS, whatever the address.
    pub insecure: bool,
    /// The address at which to serve Prometheus metrics over plain HTTP.
    pub metrics: Option<SocketAddr>,
    /// The address at which browsers will reach the dashboard that is served beside the
    /// coordinator, for the address file.
    pub dashboard: Option<String>,
    /// True to serve gRPC reflection.
    pub reflection: bool,
    /// The constants of the campaign.
    pub settings: Settings,
    /// The recipients of notifications.
    pub notify: Notify,
    /// The limits on the number and duration of connections.
    pub connections: ConnectionLimits,
}

/// The addresses of a coordinator that listens.
#[derive(Clone, Debug)]
pub struct BoundAddress {
    /// The address of the gRPC server.
    pub address: SocketAddr,
    /// True if it uses TLS.
    pub tls: bool,
    /// The address of the Prometheus metrics.
    pub metrics: Option<SocketAddr>,
    /// The access for other servers in this process.
    pub in_process: InProcessService,
}

/// The parts of a coordinator that other servers in its process use.
#[derive(Clone, Debug)]
pub struct InProcessService {
    /// The client for operators' and viewers' calls. The caller attaches the user that it has
    /// authenticated to each request: see [`crate::cluster::auth::InProcessCaller`].
    pub operations: OperationsClient<Routes>,
    /// The authority, and the identity that the server presents over TLS; `None` if callers need no
    /// credentials.
    pub authority: Option<(Arc<Authority>, Arc<ServerIdentity>)>,
}

/// The reason that a coordinator does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines could call without credentials.
    #[error(
        "other machines can reach {0}, and there is no authority in {path}; create one with nqueens coordinator init \
         --data {path}, or give --insecure",
        path = .1.display()
    )]
    NoAuthority(SocketAddr, PathBuf),
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The authority cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The operator's credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The address cannot be bound.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// A directory cannot be written.
    #[error("{path} cannot be written: {1}", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// A directory of a proof cannot be used.
    #[error("a folder of proofs cannot be used: {0}")]
    Proofs(io::Error),
    /// A thread cannot be spawned.
    #[error("cannot create a thread: {0}")]
    Thread(io::Error),
    /// The system has no random bytes.
    #[error("the system has no random bytes: {0}")]
    Random(io::Error),
    /// The campaign actor failed.
    #[error(
        "the campaign actor failed; nothing that it acknowledged is lost: start the coordinator again"
    )]
    CampaignActor,
    /// The gRPC server failed.
    #[error("the coordinator cannot serve: {0}")]
    Transport(#[from] tonic::transport::Error),
}

impl From<StartError> for ServeError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Ledger(error) => Self::Ledger(error),
            StartError::Thread(error) => Self::Thread(error),
            StartError::Random(error) => Self::Random(error),
        }
    }
}

/// Runs a coordinator until `stop` is ready. Calls `listening` once it listens.
///
/// # Errors
/// Returns an error if the ledger, the authority or the address cannot be used.
pub async fn serve(
    options: Options,
    stop: impl Future<Output = ()> + Send + 'static,
    listening: impl FnOnce(&BoundAddress),
) -> Result<(), ServeError> {
    let Options {
        data,
        listen,
        insecure,
        metrics: metrics_at,
        dashboard,
        reflection,
        settings,
        ..
    } = options;
    let (notify, connections) = (options.notify, options.connections);
    let folder = |error| ServeError::Folder(data.clone(), error);
    std::fs::create_dir_all(&data).map_err(folder)?;
    let has_authority = authority_folder(&data).exists();
    if !insecure && !has_authority && !listen.ip().is_loopback() {
        return Err(ServeError::NoAuthority(listen, data));
    }
    let authority = if has_authority && !insecure {
        Some(Arc::new(Authority::open(&authority_folder(&data))?))
    } else {
        None
    };
    let identity = match &authority {
        None => None,
        Some(authority) => Some(Arc::new(ServerIdentity::new(authority, now_ms())?)),
    };
    let troubles = WriteFailures::default();
    if let Some(authority) = &authority {
        troubles.note(OPERATOR, keep_operator_and_log(authority, &data, now_ms()));
    }

    let metrics = Arc::new(Metrics::new());
    let notifier = Notifier::start(notify).map_err(ServeError::Thread)?;
    let event_log = EventLog::start(now_ms());
    let opened = {
        let (path, metrics, observers) =
            (ledger_file(&data), Arc::clone(&metrics), (notifier.clone(), event_log.clone()));
        // Reading a ledger of a million units takes seconds.
        tokio::task::spawn_blocking(move || actor::start(path, settings, metrics, observers)).await
    };
    let Running { handle: actor, thread, calls, ended } =
        opened.map_err(|error| ServeError::Thread(error.into()))??;

    let proofs = {
        let (data, actor, observers) = (data.clone(), actor.clone(), (notifier, event_log.clone()));
        let misbehaviour_hook = move |worker: &str, reason: &str| {
            let (worker, reason) = (worker.to_owned(), reason.to_owned());
            let _ = actor.blocking_send(Request::ReportMisbehaviour { worker, reason });
        };
        let opened = tokio::task::spawn_blocking(move || {
            Proofs::open(&data, Box::new(misbehaviour_hook), observers)
        })
        .await;
        Arc::new(
            opened
                .map_err(|error| ServeError::Thread(error.into()))?
                .map_err(ServeError::Proofs)?,
        )
    };

    /// The files reserved for the ledger, proofs, metrics and the dashboard, whose connections have
    /// separate limits.
    const OTHER_FILES: usize = 1792;
    let connections = connections.bounded_by(raise_open_files(), OTHER_FILES);
    let listener =
        TcpListener::bind(listen).await.map_err(|error| ServeError::Listen(listen, error))?;
    let address = listener.local_addr().map_err(|error| ServeError::Listen(listen, error))?;
    let (stopping, stopped) = watch::channel(false);
    let access = Arc::new(Access::new(authority.clone()));
    let service = Service::new(
        (actor.clone(), event_log),
        Arc::clone(&proofs),
        Arc::clone(&access),
        (Arc::clone(&metrics), troubles.clone()),
        (calls, stopped.clone()),
    );

    // These tasks end with this function, whatever happens.
    let mut beside: JoinSet<()> = JoinSet::new();
    let metrics_address = match metrics_at {
        None => None,
        Some(at) => Some(serve_metrics(&mut beside, at, Arc::clone(&metrics)).await?),
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<WorkServer<Service>>().await;
    beside.spawn(tick(actor.clone()));
    beside.spawn(watch_health(reporter, Arc::clone(&metrics)));
    if let (Some(authority), Some(identity)) = (&authority, &identity) {
        let (authority, identity, access) =
            (Arc::clone(authority), Arc::clone(identity), Arc::clone(&access));
        beside.spawn(renew(authority, identity, data.clone(), access, troubles.clone()));
    }

    let reflection = reflection.then(|| {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(crate::cluster::protocol::v1::DESCRIPTORS)
            .build_v1()
    });
    // The descriptors were compiled into the program, so this does not fail.
    let reflection = reflection.and_then(Result::ok);
    let routes = with_call_metrics(routes(service), Arc::clone(&metrics));
    let router = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .max_concurrent_streams(Some(64))
        .add_routes(routes.clone())
        .add_service(health)
        .add_optional_service(reflection);

    let tls = identity.is_some();
    let address_file = AddressFile { address: address.to_string(), tls, dashboard };
    // Without the file, clients on this machine can still be given the address.
    troubles.note(ADDRESS, address_file.write(&data));
    beside.spawn(write_again(address_file, authority.clone(), data.clone(), troubles));
    let in_process = InProcessService {
        operations: OperationsClient::new(routes).max_decoding_message_size(usize::MAX),
        authority: authority.clone().zip(identity.clone()),
    };
    listening(&BoundAddress { address, tls, metrics: metrics_address, in_process });
    let end = async move {
        stop.await;
        let _ = stopping.send(true);
    };
    let served = match (identity, &authority) {
        (Some(identity), Some(authority)) => {
            let acceptor = TlsAcceptor::from(Arc::new(identity.config(authority)?));
            let handshake = move |stream| Handshake::tls(acceptor.clone(), stream);
            let serving = serve_calls(router, &mut beside, (listener, connections), handshake, end);
            within(stopped, ended, serving).await
        }
        _ => {
            let mut connections = connections;
            // Workers that share an address cannot be distinguished, so one address may hold a
            // quarter of all connections.
            connections.certified.per_key = connections.certified.total.div_ceil(4);
            let handshake = |stream| Handshake::plain(stream, Identity::Trusted);
            let serving = serve_calls(router, &mut beside, (listener, connections), handshake, end);
            within(stopped, ended, serving).await
        }
    };
    AddressFile::remove(&data);
    beside.shutdown().await;
    let _ = tokio::task::spawn_blocking(move || proofs.stop()).await;
    // Stop the actor, so that connections that do not end by themselves cannot keep the ledger
    // open.
    let _ = actor.send(Request::Stop).await;
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    served
}

/// Returns the routes of all calls of the protocol.
fn routes(service: Service) -> Routes {
    const MOST: usize = MOST_MESSAGE_BYTES;
    Routes::new(EnrolmentServer::new(service.clone()).max_decoding_message_size(MOST))
        .add_service(WorkServer::new(service.clone()).max_decoding_message_size(MOST))
        .add_service(ProvingServer::new(service.clone()).max_decoding_message_size(MOST))
        .add_service(OperationsServer::new(service).max_decoding_message_size(MOST))
}

/// Serves the calls on connections from `listener` until `end` is ready.
async fn serve_calls<S, H>(
    router: Router,
    beside: &mut JoinSet<()>,
    (listener, limits): (TcpListener, ConnectionLimits),
    handshake: impl Fn(TcpStream) -> H + Clone + Send + 'static,
    end: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Future<Output = io::Result<Handshake<S>>> + Send + 'static,
{
    let (sender, incoming) = mpsc::channel::<io::Result<_>>(64);
    let hand_over = move |accepted| async move {
        let _ = sender.send(Ok(Connection::new(accepted, limits.after_enrolment))).await;
    };
    beside.spawn(accept(listener, limits, handshake, hand_over));
    router.serve_with_incoming_shutdown(ReceiverStream::new(incoming), end).await
}

/// Runs the server until it ends. Calls in progress have a grace period of 2 s after the stop
/// signal. Returns an error if the campaign actor ends.
async fn within(
    mut stopped: watch::Receiver<bool>,
    ended: oneshot::Receiver<()>,
    serving: impl Future<Output = Result<(), tonic::transport::Error>>,
) -> Result<(), ServeError> {
    const GRACE: Duration = Duration::from_secs(2);
    let too_late = async move {
        let _ = stopped.wait_for(|stop| *stop).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = serving => Ok(served?),
        () = too_late => Ok(()),
        _ = ended => Err(ServeError::CampaignActor),
    }
}

/// Sends ticks to the campaign actor.
async fn tick(actor: Handle) {
    let mut every = tokio::time::interval(Duration::from_millis(500));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        if actor.send(Request::Tick).await.is_err() {
            return;
        }
    }
}

/// Reports "not serving" while the ledger cannot be written.
async fn watch_health(reporter: tonic_health::server::HealthReporter, metrics: Arc<Metrics>) {
    let mut well = true;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if metrics.is_well() != well {
            well = !well;
            if well {
                reporter.set_serving::<WorkServer<Service>>().await;
            } else {
                reporter.set_not_serving::<WorkServer<Service>>().await;
            }
        }
    }
}

/// Retries until the files that could not be written are written.
async fn write_again(
    address: AddressFile,
    authority: Option<Arc<Authority>>,
    data: PathBuf,
    troubles: WriteFailures,
) {
    const EVERY: Duration = Duration::from_secs(5);
    loop {
        tokio::time::sleep(EVERY).await;
        if !troubles.is_some() {
            continue;
        }
        let (address, authority) = (address.clone(), authority.clone());
        let (data, troubles) = (data.clone(), troubles.clone());
        let write = move || {
            troubles.note(ADDRESS, address.write(&data));
            if let Some(authority) = &authority {
                troubles.note(OPERATOR, keep_operator_and_log(authority, &data, now_ms()));
            }
        };
        let _ = tokio::task::spawn_blocking(write).await;
    }
}

/// Renews the certificates of the server and the operator before they expire, and soon after the
/// clock was set back.
async fn renew(
    authority: Arc<Authority>,
    identity: Arc<ServerIdentity>,
    data: PathBuf,
    access: Arc<Access>,
    troubles: WriteFailures,
) {
    const EVERY: Duration = Duration::from_secs(60);
    let mut clock = MonotonicClock::start();
    loop {
        tokio::time::sleep(EVERY).await;
        access.remove_idle();
        let (authority, identity, data) =
            (Arc::clone(&authority), Arc::clone(&identity), data.clone());
        let now_ms = now_ms();
        let renewed =
            tokio::task::spawn_blocking(move || renew_if_due(&authority, &identity, &data, now_ms));
        match renewed.await {
            Ok(Ok(renewal)) => {
                troubles.note(OPERATOR, Ok::<(), ServeError>(()));
                log_set_back(renewal, clock.now_ms().saturating_sub(now_ms));
                clock = if renewal.is_some() { MonotonicClock::start() } else { clock };
            }
            Ok(Err(error)) => troubles.note(OPERATOR, Err(error)),
            Err(_) => {}
        }
    }
}

/// Renews the certificates of the server and the operator if due. Returns the reason if it renewed
/// any.
fn renew_if_due(
    authority: &Authority,
    identity: &ServerIdentity,
    data: &Path,
    now_ms: u64,
) -> Result<Option<Renewal>, ServeError> {
    let of_server = identity.renew_if_due(authority, now_ms)?;
    Ok(of_server.max(keep_operator(authority, data, now_ms)?))
}

/// Renews the operator's certificate if needed, and logs if it was replaced because the clock was
/// set back.
fn keep_operator_and_log(
    authority: &Authority,
    data: &Path,
    now_ms: u64,
) -> Result<(), ServeError> {
    log_set_back(keep_operator(authority, data, now_ms)?, 0);
    Ok(())
}

/// Logs that the clock was set back, if certificates were replaced for that reason. `by_ms` is a
/// second measurement of the shift; the larger one is logged.
fn log_set_back(renewal: Option<Renewal>, by_ms: u64) {
    if let Some(set_back @ Renewal::ClockSetBack { .. }) = renewal {
        let set_back = set_back.max(Renewal::ClockSetBack { by_ms });
        tracing::warn!(
            "{set_back}: the coordinator's own certificates that were not valid yet are replaced"
        );
    }
}

/// Ensures that the operator on this machine has a valid certificate. Returns the reason if it
/// issued one.
fn keep_operator(
    authority: &Authority,
    data: &Path,
    now_ms: u64,
) -> Result<Option<Renewal>, ServeError> {
    const A_MINUTE_MS: u64 = 60_000;
    let folder = operator_folder(data);
    let kept =
        Credentials::load(&folder).ok().filter(|kept| kept.authority() == authority.fingerprint());
    let renewal = kept.as_ref().map_or(Some(Renewal::Due), |kept| kept.renewal(now_ms));
    let is_live = |kept: &Credentials| {
        authority.certificates().is_ok_and(|all| {
            all.iter().any(|one| one.name == *kept.name() && one.revoked_ms.is_none())
        })
    };
    if renewal.is_none() && kept.as_ref().is_some_and(is_live) {
        return Ok(None);
    }
    // The constant is a valid name.
    let Ok(name) = "local-operator".parse::<Name>() else { return Ok(None) };
    match authority.revoke(&name, now_ms) {
        Err(AuthorityError::NoSuchName(_)) => {}
        revoked => drop(revoked?),
    }
    let token = authority.create_token(Role::Operator, NonZeroU32::MIN, A_MINUTE_MS, now_ms)?;
    let key = KeyRequest::new(&name)?;
    let issued = authority.enroll(&token, &name, key.request(), now_ms);
    let issued = issued
        .map_err(|error| ServeError::Folder(folder.clone(), io::Error::other(error.to_string())))?;
    let credentials = key.into_credentials(
        authority.fingerprint(),
        &issued.certificate_pem,
        &issued.authority_pem,
    )?;
    credentials.save(&folder)?;
    Ok(renewal.or(Some(Renewal::Due)))
}

/// Serves the metrics over plain HTTP. Returns the bound address.
async fn serve_metrics(
    beside: &mut JoinSet<()>,
    at: SocketAddr,
    metrics: Arc<Metrics>,
) -> Result<SocketAddr, ServeError> {
    const CONNECTIONS: PoolLimits = PoolLimits { total: 64, per_key: 16, local: 32 };
    const TIME_LIMIT: Duration = Duration::from_secs(10);
    const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let listen = |error| ServeError::Listen(at, error);
    let listener = TcpListener::bind(at).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let text = move || async move { ([("content-type", KIND)], metrics.text()) };
    let router = axum::Router::new().route("/metrics", axum::routing::get(text));
    beside.spawn(serve_http1(
        listener,
        ConnectionLimits::for_http1(CONNECTIONS, TIME_LIMIT),
        None,
        router,
    ));
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;

    #[test]
    fn the_operators_certificate_is_replaced_when_it_is_due_and_when_the_clock_was_set_back() {
        let data = std::env::temp_dir().join(format!("nqueens-operator-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        let authority =
            Authority::init(&authority_folder(&data), &[], NOW_MS).expect("an authority");
        let keep = |now_ms| keep_operator(&authority, &data, now_ms).expect("kept");
        let is_let_in = |now_ms| {
            let kept = Credentials::load(&operator_folder(&data)).expect("there");
            let live = authority
                .certificates()
                .expect("readable")
                .into_iter()
                .filter(|c| c.is_live(now_ms));
            let live: Vec<_> = live.filter(|c| c.not_before_ms <= now_ms).collect();
            live.len() == 1
                && live[0].name == *kept.name()
                && live[0].not_after_ms == kept.not_after_ms()
        };
        assert_eq!(
            (keep(NOW_MS), keep(NOW_MS), keep(NOW_MS + DAY_MS)),
            (Some(Renewal::Due), None, None)
        );
        let back_ms = NOW_MS - DAY_MS;
        assert!(!is_let_in(back_ms));
        assert_eq!(keep(back_ms), Some(Renewal::ClockSetBack { by_ms: DAY_MS }));
        assert!(is_let_in(back_ms));
        assert_eq!(keep(back_ms), None);
        // Once the clock is right again, nothing is replaced.
        assert_eq!(keep(NOW_MS), None);
        assert_eq!(keep(NOW_MS + 4 * DAY_MS), Some(Renewal::Due));
        assert!(is_let_in(NOW_MS + 4 * DAY_MS));
        let _ = std::fs::remove_dir_all(&data);
    }
}
