//! A worker's data directory: its lock, its name, its certificate and its key for results.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::WorkerError;
use super::backoff::Backoff;
use super::connection::{RpcFailure, classify};
use crate::atomic_file::{self, AtomicFile};
use crate::cluster::auth::{Credentials, CredentialsError, Name, SigningKey, Token};
use crate::cluster::protocol::{
    Address, ConnectError, ConnectErrorKind, EnrolError, Security, enrol, now_ms,
};

/// A worker's data directory, locked against other workers until this value is dropped.
#[derive(Debug)]
pub(super) struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// The parameters with which a worker joins its coordinator.
#[derive(Clone, Debug)]
pub(super) struct JoinParams<'a> {
    pub(super) address: &'a Address,
    pub(super) token: Option<&'a Token>,
    pub(super) name: Option<&'a Name>,
    pub(super) insecure: bool,
    pub(super) deadline: Duration,
}

impl DataDir {
    /// Opens or creates the data directory at `path`.
    ///
    /// # Errors
    /// Another worker uses it, or it cannot be written.
    pub(super) fn open(path: &Path) -> Result<Self, WorkerError> {
        let fail = |error| WorkerError::Folder(path.to_owned(), error);
        fs::create_dir_all(path).map_err(fail)?;
        let lock = path.join("lock");
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock)
            .map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(WorkerError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(fail(error)),
        }
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the outbox file.
    pub(super) fn outbox(&self) -> PathBuf {
        self.path.join("outbox.db")
    }

    /// Returns the key that signs the worker's results, which is created with the directory.
    ///
    /// # Errors
    /// Its file cannot be used.
    pub(super) fn result_key(&self) -> Result<SigningKey, WorkerError> {
        Ok(SigningKey::load_or_create(&self.path.join("result.key"))?)
    }

    /// Returns the worker's name and how its connections are secured. Redeems the token if there is
    /// no certificate, and retries while the coordinator cannot be reached.
    ///
    /// # Errors
    /// The coordinator refuses, there are no credentials to identify the worker, or the directory
    /// cannot be used.
    pub(super) async fn join(
        &self,
        params: &JoinParams<'_>,
    ) -> Result<(Name, Security), WorkerError> {
        let JoinParams { address, token, insecure, .. } = params;
        let kept = match Credentials::load(&self.path) {
            _ if *insecure => None,
            Ok(credentials) => Some(credentials),
            Err(CredentialsError::Missing(_)) => None,
            Err(error) => return Err(error.into()),
        };
        // A token for another coordinator, or one that replaces an expired certificate, is
        // redeemed.
        let good = |credentials: &Credentials| {
            token.is_none_or(|token| {
                token.authority() == credentials.authority()
                    && now_ms() < credentials.not_after_ms()
            })
        };
        if let Some(credentials) = kept.filter(good) {
            let name = credentials.name().clone();
            if let Some(wanted) = params.name
                && *wanted != name
            {
                return Err(WorkerError::AnotherName(self.path.clone(), name));
            }
            return Ok((name, Security::Tls(credentials.authority(), Some(Box::new(credentials)))));
        }
        if let Some(token) = token {
            let name = self.name(params.name)?;
            let credentials = self.enrol(params, token, &name).await?;
            tracing::info!(%name, "enrolled");
            return Ok((name, Security::Tls(credentials.authority(), Some(Box::new(credentials)))));
        }
        if address.is_loopback() || *insecure {
            return Ok((self.name(params.name)?, Security::Plain));
        }
        Err(WorkerError::NoCertificate((*address).clone()))
    }

    async fn enrol(
        &self,
        params: &JoinParams<'_>,
        token: &Token,
        name: &Name,
    ) -> Result<Credentials, WorkerError> {
        let mut backoff = Backoff::default();
        loop {
            let status = match enrol(params.address, token, name, &self.path, params.deadline).await
            {
                Ok(credentials) => return Ok(credentials),
                Err(EnrolError::Channel(error)) => return Err(error.into()),
                Err(EnrolError::Credentials(error)) => return Err(error.into()),
                Err(EnrolError::Refused(status)) => status,
            };
            let address = params.address.clone();
            let fault = ConnectError::of(&status).map(|error| error.kind);
            match classify(&status) {
                // A server that is not the token's coordinator will not become it.
                RpcFailure::Transient(why) if fault == Some(ConnectErrorKind::UntrustedServer) => {
                    return Err(WorkerError::Refused(address, why));
                }
                RpcFailure::Transient(_) if fault == Some(ConnectErrorKind::TlsUnsupported) => {
                    return Err(WorkerError::NoTls(address));
                }
                RpcFailure::Transient(why) => {
                    let wait = backoff.next(fastrand::f64());
                    tracing::warn!(%address, "cannot enrol yet, trying again: {why}");
                    tokio::time::sleep(wait).await;
                }
                RpcFailure::Permanent(why) => return Err(WorkerError::Refused(address, why)),
            }
        }
    }

    /// Returns the given name, the stored one, or a new one derived from the host name. A given or
    /// new name is stored.
    fn name(&self, given: Option<&Name>) -> Result<Name, WorkerError> {
        let path = self.path.join("name");
        let fail = |error| WorkerError::Folder(path.clone(), error);
        let name = match given {
            Some(name) => name.clone(),
            None => match atomic_file::read_text(&path, 1024) {
                Ok(text) => return text.trim().parse().map_err(WorkerError::Name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => name_after(&host_name()),
                Err(error) => return Err(fail(error)),
            },
        };
        let written = AtomicFile::begin(&path).and_then(|file| file.finish(&format!("{name}\n")));
        written.map_err(fail)?;
        Ok(name)
    }
}

/// Returns the host name, or an empty string if it is unknown.
fn host_name() -> String {
    let file = || {
        fs::read_to_string("/proc/sys/kernel/hostname")
            .or_else(|_| fs::read_to_string("/etc/hostname"))
    };
    let variable = || std::env::var("COMPUTERNAME").or_else(|_| std::env::var("HOSTNAME"));
    file().ok().or_else(|| variable().ok()).unwrap_or_default()
}

/// Returns a name derived from a host name, with four random letters, since host names need not be
/// unique.
fn name_after(host: &str) -> Name {
    let fits = |letter: &char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.')
    };
    let host: String = host.trim().to_lowercase().chars().filter(fits).take(50).collect();
    let host = host.trim_matches(['-', '.']);
    let host = if host.is_empty() { "worker" } else { host };
    let random: String = std::iter::repeat_with(fastrand::lowercase).take(4).collect();
    format!("{host}-{random}").parse().expect("its letters and its length are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_host_name_gives_a_valid_worker_name() {
        for host in ["", "Lab 3", "-.-", "gpu.lab.example.org\n", "ΑΒΓ", &"x".repeat(300)] {
            let (one, two) = (name_after(host), name_after(host));
            assert!(one.as_str().len() <= 63 && one.as_str().len() > 4, "{host}: {one}");
            assert!(one != two || name_after(host) != one, "{host}");
        }
        assert!(name_after("Lab 3").as_str().starts_with("lab3-"));
    }

    #[test]
    fn a_folder_has_one_worker_at_a_time_and_keeps_its_name() {
        let scratch = tempfile::tempdir().expect("a folder");
        let path = scratch.path().join("data");
        let data_dir = DataDir::open(&path).expect("a folder");
        assert!(matches!(DataDir::open(&path), Err(WorkerError::InUse(_))));
        let name = data_dir.name(None).expect("a name");
        assert_eq!(data_dir.name(None).expect("kept"), name);
        drop(data_dir);
        let data_dir = DataDir::open(&path).expect("free again");
        assert_eq!(data_dir.name(None).expect("kept"), name);
        let given: Name = "other".parse().expect("a name");
        assert_eq!(data_dir.name(Some(&given)).expect("given"), given);
        assert_eq!(data_dir.name(None).expect("kept"), given);
    }
}
