//! How a command reaches a coordinator.

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

/// Which coordinator is asked, and who asks.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Remote {
    /// The folder of a coordinator on this machine: its address and an operator's certificate are in there. The
    /// usual one, if neither this nor --coordinator is given.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["coordinator", "token", "credentials", "insecure"])]
    data: Option<PathBuf>,
    /// The coordinator's address.
    #[arg(long, value_name = "HOST:PORT")]
    coordinator: Option<Address>,
    /// A token for operators or viewers; needed once, the certificate that it buys is kept.
    #[arg(long, requires = "coordinator")]
    token: Option<Token>,
    /// Where the certificate is kept.
    #[arg(long, value_name = "DIR", requires = "coordinator")]
    credentials: Option<PathBuf>,
    /// Without TLS, though the coordinator is on another machine.
    #[arg(long, requires = "coordinator")]
    insecure: bool,
}

/// A coordinator that can be asked.
#[derive(Clone, Debug)]
pub(super) struct Coordinator {
    pub(super) link: Channel,
    address: Address,
    speaks_tls: bool,
    /// Whether a call has come through.
    has_answered: Arc<AtomicBool>,
    /// The certificate that is shown, and where it is kept, if it is for this end to renew.
    renewable: Option<Arc<(Credentials, PathBuf)>>,
}

/// How long a call may take: planning a large board takes seconds.
const DEADLINE: Duration = Duration::from_secs(120);

/// Where a coordinator keeps what it has if nothing else is said.
pub(super) fn usual_data() -> PathBuf {
    let home = etcetera::choose_base_strategy().map(|strategy| strategy.data_dir());
    home.unwrap_or_else(|_| PathBuf::from(".")).join("nqueens").join("coordinator")
}

impl Remote {
    /// Finds the coordinator. Nothing is sent yet, unless a token is to be redeemed.
    pub(super) async fn connect(&self) -> Result<Coordinator, Failure> {
        match (&self.data, &self.coordinator) {
            (Some(data), _) => local(data),
            (None, None) => match local(&usual_data()) {
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

    /// Where the certificate for a coordinator is kept.
    fn folder(&self, address: &Address) -> PathBuf {
        let usual = || {
            usual_data().with_file_name("credentials").join(address.to_string().replace(':', "_"))
        };
        self.credentials.clone().unwrap_or_else(usual)
    }

    async fn security(&self, address: &Address, folder: &Path) -> Result<Security, Failure> {
        match Credentials::load(folder) {
            // A token that is given takes the place of a certificate that is of no use any more.
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
            "no certificate for {address} is known here; give --token (nqueens token create --role operator, on the \
             coordinator's machine, prints one), or say --insecure"
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

    /// Renews a certificate that is half through, if that can be done; it is good for a while otherwise.
    async fn renewed(address: &Address, credentials: Credentials, folder: &Path) -> Credentials {
        // Whether it is not valid yet is for the coordinator's clock to say: this machine's may be anything.
        if credentials.renewal(now_ms()) != Some(Renewal::Due) {
            return credentials;
        }
        renew(address, &credentials, folder, DEADLINE).await.unwrap_or(credentials)
    }
}

/// What is said if there is no certificate.
fn not_enrolled(address: &Address, error: EnrolError) -> Failure {
    match error {
        EnrolError::Channel(error) => error.into(),
        EnrolError::Credentials(error) => error.into(),
        EnrolError::Refused(status) => refused(address, &status),
    }
}

/// The coordinator that runs in a folder on this machine.
fn local(data: &Path) -> Result<Coordinator, Failure> {
    let AddressFile { address, tls, .. } = AddressFile::read(data)?;
    // A coordinator that listens everywhere listens here, too.
    let address = address.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    let address: Address = address.parse().map_err(Failure::usage)?;
    if !tls {
        return Coordinator::to(address, &Security::Plain);
    }
    let credentials = Credentials::load(&operator_folder(data))?;
    Coordinator::to(address, &Security::Tls(credentials.authority(), Some(Box::new(credentials))))
}

impl Coordinator {
    /// The one at an address.
    pub(super) fn to(address: Address, security: &Security) -> Result<Self, Failure> {
        let link = Channel::new(&address, security, DEADLINE)?;
        let speaks_tls = matches!(security, Security::Tls(..));
        Ok(Self { link, address, speaks_tls, has_answered: Arc::default(), renewable: None })
    }

    /// Where it is.
    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// A call's answer, or what is to be said.
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
                "the coordinator's clock was set back, so that the certificate was not valid yet; it was \
                               replaced: give the command again"
                    .to_owned();
        }
        let is_stranger = !self.speaks_tls && !self.has_answered.load(Ordering::Relaxed);
        let is_there = |error: ConnectError| error.kind != ConnectErrorKind::Refused;
        if is_stranger && ConnectError::of(&status).is_some_and(is_there) {
            failure.message += " (it was asked without TLS; if it speaks TLS, give --token, or on its own machine --data)";
        }
        Err(failure)
    }
}

/// Whether the same call may succeed later.
pub(super) fn may_pass(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
    )
}

/// What is said of a call that failed.
fn refused(address: &Address, status: &Status) -> Failure {
    let exit = match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::AlreadyExists => {
            Exit::Usage
        }
        _ => Exit::Coordinator,
    };
    let said = status.message().lines().next().unwrap_or_default();
    let broken = ConnectError::of(status);
    let message = match status.code() {
        _ if may_pass(status) || broken.is_some() => {
            let why = broken.map_or(said.to_owned(), |error| error.message);
            format!("the coordinator at {address} cannot be reached or does not answer: {why}")
        }
        Code::Unauthenticated | Code::PermissionDenied => {
            format!("the coordinator at {address} refuses: {said}")
        }
        _ => said.to_owned(),
    };
    Failure { exit, message }
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        Self { exit: Exit::Coordinator, message: error.to_string() }
    }
}

impl From<CredentialsError> for Failure {
    fn from(error: CredentialsError) -> Self {
        Self { exit: Exit::File, message: error.to_string() }
    }
}

impl From<AddressFileError> for Failure {
    fn from(error: AddressFileError) -> Self {
        let exit = match &error {
            AddressFileError::NotRunning(_) => Exit::Coordinator,
            AddressFileError::Unreadable(..) => Exit::File,
        };
        Self { exit, message: error.to_string() }
    }
}

/// Runs what talks to a network to its end.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let no_runtime = |error: io::Error| Failure {
        exit: Exit::NotAvailable,
        message: format!("cannot create a threads for the network: {error}"),
    };
    let runtime = runtime.map_err(no_runtime)?;
    let outcome = runtime.block_on(work);
    // Nothing that is left may hold up the end.
    runtime.shutdown_background();
    outcome
}

/// Ready once the process is asked to stop. From this call on, not from the first poll, it is not simply ended.
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
                // Where they cannot be waited for, they end the process.
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
