//! The connection of a command to a coordinator.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use etcetera::BaseStrategy;
use tonic::{Code, Status};

use super::{Exit, Failure};
use crate::cluster::auth::{Credentials, CredentialsError, Name, Renewal, Token};
use crate::cluster::coordinator::{AddressFile, AddressFileError, now_ms, operator_folder};
use crate::cluster::protocol::{
    Address, Channel, ChannelError, ConnectError, ConnectErrorKind, EnrolError, Security, enrol,
    is_not_valid_yet, renew,
};

/// The coordinator to call, and the credentials for it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Remote {
    /// The data directory of a coordinator on this machine, which has its address and an operator's
    /// certificate (default: that of nqueens coordinator, unless --coordinator is given).
    #[arg(long, value_name = "DIR", conflicts_with_all = ["coordinator", "token", "credentials", "insecure"])]
    data: Option<PathBuf>,
    /// The address of the coordinator.
    #[arg(long, value_name = "HOST:PORT")]
    coordinator: Option<Address>,
    /// A token for operators or viewers. It is needed once; the certificate is stored.
    #[arg(long, requires = "coordinator")]
    token: Option<Token>,
    /// The directory for the certificate (default: one per coordinator in the user's data
    /// directory).
    #[arg(long, value_name = "DIR", requires = "coordinator")]
    credentials: Option<PathBuf>,
    /// Connect without TLS to a coordinator on another machine.
    #[arg(long, requires = "coordinator")]
    insecure: bool,
}

/// A coordinator that can be called.
#[derive(Clone, Debug)]
pub(super) struct Coordinator {
    pub(super) link: Channel,
    address: Address,
    uses_tls: bool,
    /// True if a call has been answered.
    has_answered: Arc<AtomicBool>,
    /// The client certificate and its directory, if this process renews it.
    renewable: Option<Arc<(Credentials, PathBuf)>>,
}

/// The deadline of a call. Planning a large board takes seconds.
const DEADLINE: Duration = Duration::from_secs(120);

/// Returns the default data directory of a coordinator.
pub(super) fn default_data() -> PathBuf {
    let home = etcetera::choose_base_strategy().map(|strategy| strategy.data_dir());
    home.unwrap_or_else(|_| PathBuf::from(".")).join("nqueens").join("coordinator")
}

impl Remote {
    /// Finds the coordinator. Sends nothing yet, unless a token must be redeemed.
    pub(super) async fn connect(&self) -> Result<Coordinator, Failure> {
        match (&self.data, &self.coordinator) {
            (Some(data), _) => local(data),
            (None, None) => match local(&default_data()) {
                Err(_) => Coordinator::to(Address::usual(), &Security::Plain),
                found => found,
            },
            (None, Some(address)) => {
                let folder = self.folder(address);
                let security = self.security(address, &folder).await?;
                let coordinator = Coordinator::to(address.clone(), &security)?;
                let renewable = match security {
                    Security::Tls(_, Some(credentials)) => Some(Arc::new((*credentials, folder))),
                    _ => None,
                };
                Ok(Coordinator { renewable, ..coordinator })
            }
        }
    }

    /// Returns the directory of the certificate for a coordinator.
    fn folder(&self, address: &Address) -> PathBuf {
        let usual = || {
            default_data().with_file_name("credentials").join(address.to_string().replace(':', "_"))
        };
        self.credentials.clone().unwrap_or_else(usual)
    }

    async fn security(&self, address: &Address, folder: &Path) -> Result<Security, Failure> {
        match Credentials::load(folder) {
            // A given token replaces a certificate that is no longer usable.
            Ok(credentials)
                if self.token.as_ref().is_none_or(|token| {
                    token.authority() == credentials.authority()
                        && now_ms() < credentials.not_after_ms()
                }) =>
            {
                let credentials = Self::renewed(address, credentials, folder).await;
                return Ok(Security::Tls(credentials.authority(), Some(Box::new(credentials))));
            }
            Ok(_) | Err(CredentialsError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(token) = &self.token {
            let credentials = self.enrol(address, token, folder).await?;
            return Ok(Security::Tls(token.authority(), Some(Box::new(credentials))));
        }
        if address.is_loopback() || self.insecure {
            return Ok(Security::Plain);
        }
        Err(Failure::usage(format!(
            "no certificate for {address}; give --token (create one on the coordinator's machine with nqueens token \
             create --role operator) or --insecure"
        )))
    }

    async fn enrol(
        &self,
        address: &Address,
        token: &Token,
        folder: &Path,
    ) -> Result<Credentials, Failure> {
        let user = std::env::var("USER").or_else(|_| std::env::var("USERNAME")).unwrap_or_default();
        let plain: String =
            user.to_lowercase().chars().filter(char::is_ascii_alphanumeric).take(30).collect();
        let random: String = std::iter::repeat_with(fastrand::lowercase).take(6).collect();
        let name = if plain.is_empty() {
            format!("operator-{random}")
        } else {
            format!("{plain}-{random}")
        };
        let name: Name = name.parse().map_err(Failure::usage)?;
        enrol(address, token, &name, folder, DEADLINE)
            .await
            .map_err(|error| not_enrolled(address, error))
    }

    /// Renews a certificate in the second half of its validity. If that fails, it is still valid
    /// for a while.
    async fn renewed(address: &Address, credentials: Credentials, folder: &Path) -> Credentials {
        // The coordinator's clock decides whether it is valid yet; the clock here may be wrong.
        if credentials.renewal(now_ms()) != Some(Renewal::Due) {
            return credentials;
        }
        renew(address, &credentials, folder, DEADLINE).await.unwrap_or(credentials)
    }
}

/// Returns the failure of an enrolment.
fn not_enrolled(address: &Address, error: EnrolError) -> Failure {
    match error {
        EnrolError::Channel(error) => error.into(),
        EnrolError::Credentials(error) => error.into(),
        EnrolError::Refused(status) => refused(address, &status),
    }
}

/// Returns the coordinator with this data directory on this machine.
fn local(data: &Path) -> Result<Coordinator, Failure> {
    let AddressFile { address, tls, .. } = AddressFile::read(data)?;
    // A coordinator that listens on all addresses is reached over loopback.
    let address = address.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    let address: Address = address.parse().map_err(Failure::usage)?;
    if !tls {
        return Coordinator::to(address, &Security::Plain);
    }
    let credentials = Credentials::load(&operator_folder(data))?;
    Coordinator::to(address, &Security::Tls(credentials.authority(), Some(Box::new(credentials))))
}

impl Coordinator {
    /// Creates the connection to a coordinator at an address.
    pub(super) fn to(address: Address, security: &Security) -> Result<Self, Failure> {
        let link = Channel::new(&address, security, DEADLINE)?;
        let uses_tls = matches!(security, Security::Tls(..));
        Ok(Self { link, address, uses_tls, has_answered: Arc::default(), renewable: None })
    }

    /// Returns the address.
    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the answer of a call, or the failure to report.
    pub(super) async fn call<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, Failure> {
        let status = match call.await {
            Ok(answer) => {
                self.has_answered.store(true, Ordering::Relaxed);
                return Ok(answer.into_inner());
            }
            Err(status) => status,
        };
        let mut failure = refused(&self.address, &status);
        if is_not_valid_yet(&status)
            && let Some((credentials, folder)) = self.renewable.as_deref()
            && renew(&self.address, credentials, folder, DEADLINE).await.is_ok()
        {
            failure.message =
                "the coordinator's clock was set back and the certificate was not valid yet; it was renewed: run the \
                 command again"
                    .to_owned();
        }
        let may_need_tls = !self.uses_tls && !self.has_answered.load(Ordering::Relaxed);
        let is_listening = |broken: ConnectError| broken.kind != ConnectErrorKind::Refused;
        if may_need_tls && ConnectError::of(&status).is_some_and(is_listening) {
            failure.message += " (called without TLS; if the coordinator uses TLS, give --token, or --data on its own machine)";
        }
        Err(failure)
    }
}

/// Returns whether the same call may succeed later.
pub(super) fn may_pass(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
    )
}

/// Returns the failure to report for a call that failed.
fn refused(address: &Address, status: &Status) -> Failure {
    let exit = match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::AlreadyExists => {
            Exit::Usage
        }
        _ => Exit::Coordinator,
    };
    let reason = status.message().lines().next().unwrap_or_default();
    let broken = ConnectError::of(status);
    let message = match status.code() {
        _ if may_pass(status) || broken.is_some() => {
            let why = broken.map_or(reason.to_owned(), |broken| broken.message);
            format!(
                "cannot reach the coordinator at {address}: {why}; nqueens coordinator starts one \
                 here, and --coordinator HOST:PORT names another"
            )
        }
        Code::Unauthenticated | Code::PermissionDenied => {
            format!("the coordinator at {address} refuses the call: {reason}")
        }
        _ => reason.to_owned(),
    };
    Failure::new(exit, message)
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        Self::new(Exit::Coordinator, error)
    }
}

impl From<CredentialsError> for Failure {
    fn from(error: CredentialsError) -> Self {
        Self::new(Exit::File, error)
    }
}

impl From<AddressFileError> for Failure {
    fn from(error: AddressFileError) -> Self {
        let exit = match &error {
            AddressFileError::NotRunning(_) => Exit::Coordinator,
            AddressFileError::Unreadable(..) => Exit::File,
        };
        Self::new(exit, error)
    }
}

/// Runs a future that uses the network to completion.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let no_runtime = |error: io::Error| {
        Failure::new(
            Exit::NotAvailable,
            format!("cannot start the threads for the network: {error}"),
        )
    };
    let runtime = runtime.map_err(no_runtime)?;
    let outcome = runtime.block_on(work);
    // Remaining tasks must not delay the end.
    runtime.shutdown_background();
    outcome
}

/// Completes when the process receives SIGINT or SIGTERM. The signals are caught from this call on,
/// not from the first poll.
pub(super) fn stop_signal() -> impl Future<Output = ()> + Send {
    #[cfg(unix)]
    let signals = {
        use tokio::signal::unix::{SignalKind, signal};
        [SignalKind::interrupt(), SignalKind::terminate()].map(signal)
    };
    async move {
        #[cfg(unix)]
        {
            let [Ok(mut interrupt), Ok(mut terminate)] = signals else {
                // Signals that cannot be caught end the process.
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
