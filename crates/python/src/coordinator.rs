//! A client of a coordinator, which reads its status.

use std::future::Future;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nqueens::cluster::auth::{Credentials, Name, Token};
use nqueens::cluster::coordinator::{AddressFile, AddressFileError, operator_folder};
use nqueens::cluster::protocol::{Address, Channel, ConnectError, EnrolError, Security, enrol, v1};
use nqueens::report::StatusReport;
use nqueens_bindings::{Failure, FailureClass, Observer, Progress};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::errors::raise;
use crate::watcher::Watcher;

/// The deadline of a call. Planning a large board takes the coordinator seconds.
const DEADLINE: Duration = Duration::from_secs(120);
/// The time between two looks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// A connection to a coordinator.
#[pyclass(frozen, module = "nqueens_exact._native")]
pub(crate) struct CoordinatorClient {
    runtime: Runtime,
    channel: Channel,
    address: Address,
}

#[pymethods]
impl CoordinatorClient {
    /// Finds the coordinator of a data directory on this machine, or that at an address. Sends
    /// nothing yet, unless a token must be redeemed.
    #[new]
    fn new(
        py: Python<'_>,
        address: Option<&str>,
        data: Option<PathBuf>,
        token: Option<&str>,
        credentials: Option<PathBuf>,
        insecure: bool,
    ) -> PyResult<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let made = Watcher::new(None).run(py, |observer| {
            let (address, security) = match data {
                Some(data) => local(&data)?,
                None => {
                    let given = address.map(str::parse).transpose().map_err(Failure::usage)?;
                    let address = given.unwrap_or_else(Address::usual);
                    let security = security(&address, token, credentials.as_deref(), insecure);
                    let security = run(&runtime, observer, security)??;
                    (address, security)
                }
            };
            // The channel starts its task in the runtime.
            let _runtime = runtime.enter();
            let channel = Channel::new(&address, &security, DEADLINE);
            let channel = channel.map_err(|e| Failure::new(FailureClass::Coordinator, e))?;
            Ok((channel, address))
        });
        let (channel, address) = made?;
        Ok(Self { runtime, channel, address })
    }

    /// Returns the status of one job, given by the first digits of its hash, or of all jobs, as
    /// the JSON of `nqueens status --json`.
    fn status(&self, py: Python<'_>, job: &str) -> PyResult<String> {
        let request = v1::StatusRequest { job: job.to_owned() };
        let mut operations = self.channel.operations();
        let call = async move { operations.status(request).await };
        let answer = Watcher::new(None).run(py, |observer| run(&self.runtime, observer, call))?;
        let status = answer.map_err(|status| raise(py, refused(&self.address, &status)))?;
        let report = StatusReport::new(status.into_inner());
        Ok(serde_json::to_string(&report).expect("numbers and strings serialise"))
    }
}

/// Runs a future to completion, unless the observer ends the run.
fn run<T>(
    runtime: &Runtime,
    observer: &mut dyn Observer,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    runtime.block_on(async {
        let mut work = std::pin::pin!(work);
        loop {
            if let Ok(result) = tokio::time::timeout(INTERVAL, &mut work).await {
                return Ok(result);
            }
            if let ControlFlow::Break(()) = observer.observe(&Progress::default()) {
                return Err(Failure::new(FailureClass::Interrupted, "interrupted"));
            }
        }
    })
}

/// Returns the address and the operator's credentials of a coordinator on this machine.
fn local(data: &Path) -> Result<(Address, Security), Failure> {
    let file = AddressFile::read(data).map_err(|error| {
        let class = match &error {
            AddressFileError::NotRunning(_) => FailureClass::Coordinator,
            AddressFileError::Unreadable(..) => FailureClass::File,
        };
        Failure::new(class, error)
    })?;
    // A coordinator that listens on all addresses is reached over loopback.
    let address = file.address.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    let address = address.parse().map_err(Failure::usage)?;
    if !file.tls {
        return Ok((address, Security::Plain));
    }
    Ok((address, with_tls(Credentials::load(&operator_folder(data)).map_err(of_file)?)))
}

fn with_tls(credentials: Credentials) -> Security {
    Security::Tls(credentials.authority(), Some(Box::new(credentials)))
}

fn of_file(error: impl ToString) -> Failure {
    Failure::new(FailureClass::File, error)
}

/// Returns the security of a connection: the certificate in a directory, which a token fills if it
/// is empty.
async fn security(
    address: &Address,
    token: Option<&str>,
    folder: Option<&Path>,
    insecure: bool,
) -> Result<Security, Failure> {
    let token: Option<Token> = token.map(str::parse).transpose().map_err(Failure::usage)?;
    match (token, folder) {
        (Some(_), None) => {
            let message = "a token needs a directory for the certificate that it is redeemed for; \
                           give credentials, too";
            Err(Failure::usage(message))
        }
        (Some(token), Some(folder)) if Credentials::load(folder).is_err() => {
            let name: Name =
                format!("python-{}", std::process::id()).parse().map_err(Failure::usage)?;
            let enrolled = enrol(address, &token, &name, folder, DEADLINE).await;
            enrolled.map(with_tls).map_err(|error| match error {
                EnrolError::Channel(error) => Failure::new(FailureClass::Coordinator, error),
                EnrolError::Credentials(error) => of_file(error),
                EnrolError::Refused(status) => refused(address, &status),
            })
        }
        (_, Some(folder)) => Credentials::load(folder).map(with_tls).map_err(of_file),
        (None, None) if address.is_loopback() || insecure => Ok(Security::Plain),
        (None, None) => Err(Failure::usage(format!(
            "no certificate for {address}; give a token (create one on the coordinator's machine \
             with nqueens token create --role viewer) and credentials, or insecure=True"
        ))),
    }
}

/// Returns the failure of a call.
fn refused(address: &Address, status: &tonic::Status) -> Failure {
    use tonic::Code;
    let reason = status.message().lines().next().unwrap_or_default();
    let connect_error = ConnectError::of(status);
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition => Failure::usage(reason),
        Code::Unauthenticated | Code::PermissionDenied if connect_error.is_none() => {
            let message = format!("the coordinator at {address} refuses the call: {reason}");
            Failure::new(FailureClass::Coordinator, message)
        }
        _ => {
            let why = connect_error.map_or(reason.to_owned(), |error| error.message);
            let message = format!("cannot reach the coordinator at {address}: {why}");
            Failure::new(FailureClass::Coordinator, message)
        }
    }
}
