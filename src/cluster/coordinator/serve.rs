//! The server of a coordinator, and the tasks that run beside it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
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
use tonic_health::pb::health_server::{Health, HealthServer};

use super::access::Access;
use super::actor::{self, CampaignActor, RunningActor};
use super::address::AddressFile;
use super::call_metrics::with_call_metrics;
use super::commands::{ActorHandle, Request};
use super::connection::Connection;
use super::event_log::EventLog;
use super::metrics::Metrics;
use super::notifier::Notifier;
use super::observers::Observers;
use super::operator_credentials::{OPERATOR, renew, renew_operator_and_log};
use super::options::{
    ActorOptions, BoundAddress, CoordinatorOptions, InProcessService, ServeError,
};
use super::proofs::Proofs;
use super::secret::campaign_key;
use super::service::Service;
use super::write_failures::WriteFailures;
use super::{authority_folder, ledger_file, now_ms};
use crate::cluster::auth::{Authority, ServerIdentity};
use crate::cluster::net::{
    ConnectionLimits, Handshake, Identity, PoolLimits, accept, raise_open_files, serve_http1,
};
use crate::cluster::protocol::MOST_MESSAGE_BYTES;
use crate::cluster::protocol::v1::enrolment_server::EnrolmentServer;
use crate::cluster::protocol::v1::operations_client::OperationsClient;
use crate::cluster::protocol::v1::operations_server::OperationsServer;
use crate::cluster::protocol::v1::proving_server::ProvingServer;
use crate::cluster::protocol::v1::work_client::WorkClient;
use crate::cluster::protocol::v1::work_server::WorkServer;

/// The name of the address file in reports that it cannot be written.
const ADDRESS: &str = "address.json";

/// Runs a coordinator until `stop` is ready. Calls `listening` once it listens.
///
/// # Errors
/// Returns an error if the ledger, the authority or the address cannot be used.
pub async fn serve(
    options: CoordinatorOptions,
    stop: impl Future<Output = ()> + Send + 'static,
    listening: impl FnOnce(&BoundAddress),
) -> Result<(), ServeError> {
    let CoordinatorOptions {
        data,
        listen,
        insecure,
        metrics: metrics_at,
        dashboard,
        join_page,
        reflection,
        snapshot_every,
        settings,
        arbiter_threads,
        ..
    } = options;
    let (notify, connections) = (options.notify, options.connections);
    let folder = |error| ServeError::Folder(data.clone(), error);
    std::fs::create_dir_all(&data).map_err(folder)?;
    let credentials = open_authority(&data, insecure, listen)?;
    let (authority, identity) = credentials.clone().unzip();
    let write_failures = WriteFailures::default();
    if let Some(authority) = &authority {
        write_failures.record(OPERATOR, renew_operator_and_log(authority, &data, now_ms()));
    }

    let metrics = Arc::new(Metrics::new());
    let notifier = Notifier::start(notify).map_err(ServeError::Thread)?;
    let event_log = EventLog::start(now_ms());
    let observers = Observers::new(Arc::clone(&metrics), notifier, event_log.clone());
    let opened = {
        let path = ledger_file(&data);
        let options = ActorOptions { path, snapshot_every, settings, arbiter_threads };
        let observers = observers.clone();
        // Reading a ledger of a million units takes seconds.
        tokio::task::spawn_blocking(move || actor::start(options, observers)).await
    };
    let RunningActor { handle: actor, thread, calls, ended } =
        opened.map_err(|error| ServeError::Thread(error.into()))??;

    let proofs = open_proofs(&data, actor.clone(), observers).await?;

    /// The files reserved for the ledger, proofs, metrics and the dashboard, and for the page for
    /// visitors, whose connections have separate limits.
    const OTHER_FILES: usize = 1792;
    const FILES_OF_JOIN_PAGE: usize = 2048;
    let other_files = OTHER_FILES + if join_page.is_some() { FILES_OF_JOIN_PAGE } else { 0 };
    let connections = connections.bounded_by(raise_open_files(), other_files);
    let listener =
        TcpListener::bind(listen).await.map_err(|error| ServeError::Listen(listen, error))?;
    let address = listener.local_addr().map_err(|error| ServeError::Listen(listen, error))?;
    let (stopping, stopped) = watch::channel(false);
    let access = Arc::new(Access::new(authority.clone()));
    let service = Service::new(
        (actor.clone(), event_log),
        Arc::clone(&proofs),
        Arc::clone(&access),
        (Arc::clone(&metrics), write_failures.clone()),
        (calls, stopped.clone()),
    );

    // These tasks end with this function, whatever happens.
    let mut background: JoinSet<()> = JoinSet::new();
    let metrics_address = match metrics_at {
        None => None,
        Some(at) => Some(serve_metrics(&mut background, at, Arc::clone(&metrics)).await?),
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<WorkServer<Service>>().await;
    background.spawn(tick(actor.clone()));
    background.spawn(watch_health(reporter, Arc::clone(&metrics)));
    if let (Some(authority), Some(identity)) = (&authority, &identity) {
        let (authority, identity, access) =
            (Arc::clone(authority), Arc::clone(identity), Arc::clone(&access));
        background.spawn(renew(authority, identity, data.clone(), access, write_failures.clone()));
    }

    let routes = with_call_metrics(routes(service), Arc::clone(&metrics));
    let router = router(routes.clone(), health, reflection);

    let tls = identity.is_some();
    let address_file = AddressFile { address: address.to_string(), tls, dashboard, join_page };
    // Without the file, clients on this machine can still be given the address.
    write_failures.record(ADDRESS, address_file.write(&data));
    background.spawn(retry_writes(address_file, authority.clone(), data.clone(), write_failures));
    let in_process = InProcessService {
        operations: OperationsClient::new(routes.clone()).max_decoding_message_size(usize::MAX),
        work: WorkClient::new(routes),
        key: campaign_key(&ledger_file(&data)).map_err(ServeError::Random)?,
        authority: credentials,
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
            let serving =
                serve_calls(router, &mut background, (listener, connections), handshake, end);
            run_until_stopped(stopped, ended, serving).await
        }
        _ => {
            let mut connections = connections;
            // Workers that share an address cannot be distinguished, so one address may hold a
            // quarter of all connections.
            connections.certified.per_key = connections.certified.total.div_ceil(4);
            let handshake = |stream| Handshake::plain(stream, Identity::Trusted);
            let serving =
                serve_calls(router, &mut background, (listener, connections), handshake, end);
            run_until_stopped(stopped, ended, serving).await
        }
    };
    AddressFile::remove(&data);
    background.shutdown().await;
    let _ = tokio::task::spawn_blocking(move || proofs.stop()).await;
    // Stop the actor, so that connections that do not end by themselves cannot keep the ledger
    // open.
    let _ = actor.send(Request::Stop).await;
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    served
}

/// The authority that admits callers, and the identity that the server presents.
type ServerCredentials = (Arc<Authority>, Arc<ServerIdentity>);

/// Opens the authority in a data directory, with the identity of the server. Returns `None` if
/// callers need no credentials.
fn open_authority(
    data: &Path,
    insecure: bool,
    listen: SocketAddr,
) -> Result<Option<ServerCredentials>, ServeError> {
    let path = authority_folder(data);
    let has_authority = path.exists();
    if !insecure && !has_authority && !listen.ip().is_loopback() {
        return Err(ServeError::NoAuthority(listen, data.to_owned()));
    }
    if insecure || !has_authority {
        return Ok(None);
    }
    let authority = Arc::new(Authority::open(&path)?);
    let identity = Arc::new(ServerIdentity::new(&authority, now_ms())?);
    Ok(Some((authority, identity)))
}

/// Creates the router of the gRPC server.
fn router(routes: Routes, health: HealthServer<impl Health>, reflection: bool) -> Router {
    let reflection = reflection.then(|| {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(crate::cluster::protocol::v1::DESCRIPTORS)
            .build_v1()
    });
    // The descriptors were compiled into the program, so this does not fail.
    let reflection = reflection.and_then(Result::ok);
    Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .max_concurrent_streams(Some(64))
        .add_routes(routes)
        .add_service(health)
        .add_optional_service(reflection)
}

/// Opens the proofs in a data directory. Workers whose answers are wrong are reported to the actor.
async fn open_proofs(
    data: &Path,
    actor: ActorHandle,
    observers: Observers,
) -> Result<Arc<Proofs>, ServeError> {
    let data = data.to_owned();
    let misbehaviour_hook = move |worker: &str, reason: &str| {
        let (worker, reason) = (worker.to_owned(), reason.to_owned());
        let report = move |actor: &mut CampaignActor| actor.report_misbehaviour(&worker, &reason);
        let _ = actor.blocking_send(Request::run(report));
    };
    let open = move || Proofs::open(&data, Arc::new(misbehaviour_hook), observers);
    let opened = tokio::task::spawn_blocking(open).await;
    let opened = opened.map_err(|error| ServeError::Thread(error.into()))?;
    Ok(Arc::new(opened.map_err(ServeError::Proofs)?))
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
    background: &mut JoinSet<()>,
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
    background.spawn(accept(listener, limits, handshake, hand_over));
    router.serve_with_incoming_shutdown(ReceiverStream::new(incoming), end).await
}

/// Runs the server until it ends. Calls in progress have a grace period of 2 s after the stop
/// signal. Returns an error if the campaign actor ends.
async fn run_until_stopped(
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
async fn tick(actor: ActorHandle) {
    let mut every = tokio::time::interval(Duration::from_millis(500));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        if actor.send(Request::run(CampaignActor::tick)).await.is_err() {
            return;
        }
    }
}

/// Reports "not serving" while the ledger cannot be written.
async fn watch_health(reporter: tonic_health::server::HealthReporter, metrics: Arc<Metrics>) {
    let mut is_serving = true;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if metrics.is_ledger_ok() != is_serving {
            is_serving = !is_serving;
            if is_serving {
                reporter.set_serving::<WorkServer<Service>>().await;
            } else {
                reporter.set_not_serving::<WorkServer<Service>>().await;
            }
        }
    }
}

/// Retries until the files that could not be written are written.
async fn retry_writes(
    address: AddressFile,
    authority: Option<Arc<Authority>>,
    data: PathBuf,
    write_failures: WriteFailures,
) {
    const EVERY: Duration = Duration::from_secs(5);
    loop {
        tokio::time::sleep(EVERY).await;
        if !write_failures.has_any() {
            continue;
        }
        let (address, authority) = (address.clone(), authority.clone());
        let (data, write_failures) = (data.clone(), write_failures.clone());
        let write = move || {
            write_failures.record(ADDRESS, address.write(&data));
            if let Some(authority) = &authority {
                write_failures.record(OPERATOR, renew_operator_and_log(authority, &data, now_ms()));
            }
        };
        let _ = tokio::task::spawn_blocking(write).await;
    }
}

/// Serves the metrics over plain HTTP. Returns the bound address.
async fn serve_metrics(
    background: &mut JoinSet<()>,
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
    background.spawn(serve_http1(
        listener,
        ConnectionLimits::for_http1(CONNECTIONS, TIME_LIMIT),
        None,
        router,
    ));
    Ok(address)
}
