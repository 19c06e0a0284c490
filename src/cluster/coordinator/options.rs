//! The options of a coordinator, and the errors that prevent it from running.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use tonic::service::Routes;

use super::notifier::Notify;
use crate::cluster::auth::{Authority, AuthorityError, CredentialsError, ServerIdentity};
use crate::cluster::campaign::{CampaignKey, Settings};
use crate::cluster::ledger::LedgerError;
use crate::cluster::net::ConnectionLimits;
use crate::cluster::protocol::v1::operations_client::OperationsClient;
use crate::cluster::protocol::v1::work_client::WorkClient;

/// The number of entries after which a snapshot is written, unless told otherwise. Reading them
/// takes about two seconds.
pub const SNAPSHOT_EVERY: u64 = 100_000;

/// The options of a coordinator.
#[derive(Clone, Debug)]
pub struct CoordinatorOptions {
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
    /// The same for the page for visitors.
    pub join_page: Option<String>,
    /// True to serve gRPC reflection.
    pub reflection: bool,
    /// The number of entries after which a snapshot of the ledger is written; 0 for none.
    pub snapshot_every: u64,
    /// The constants of the campaign.
    pub settings: Settings,
    /// The number of threads with which the coordinator counts units itself.
    pub arbiter_threads: NonZeroUsize,
    /// The recipients of notifications.
    pub notify: Notify,
    /// The limits on the number and duration of connections.
    pub connections: ConnectionLimits,
}

/// The files and the constants of a campaign actor.
pub(super) struct ActorOptions {
    /// The ledger.
    pub(super) path: PathBuf,
    /// The number of entries after which a snapshot is written; 0 for none.
    pub(super) snapshot_every: u64,
    pub(super) settings: Settings,
    pub(super) arbiter_threads: NonZeroUsize,
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
    /// The client for workers' calls. The caller attaches the worker that it has authenticated to
    /// each request: see [`crate::cluster::auth::InProcessWorker`].
    pub work: WorkClient<Routes>,
    /// The key of the campaign, which also authenticates guests.
    pub key: CampaignKey,
    /// The authority, and the identity that the server presents over TLS; `None` if callers need no
    /// credentials.
    pub authority: Option<(Arc<Authority>, Arc<ServerIdentity>)>,
}

/// The reason that a coordinator does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines could call without credentials.
    #[error(
        "{0} can be reached from other machines, but there is no authority in {path}: create one \
         with nqueens coordinator init --data {path}, or use --insecure",
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
    #[error("the directory of a proof cannot be used: {0}")]
    Proofs(io::Error),
    /// A thread cannot be spawned.
    #[error("cannot create a thread: {0}")]
    Thread(io::Error),
    /// The system has no random bytes.
    #[error("the system has no random bytes: {0}")]
    Random(io::Error),
    /// The campaign actor failed.
    #[error(
        "the campaign actor failed; nothing that it acknowledged is lost: restart the coordinator"
    )]
    CampaignActor,
    /// The gRPC server failed.
    #[error("the coordinator cannot serve: {0}")]
    Transport(#[from] tonic::transport::Error),
}
