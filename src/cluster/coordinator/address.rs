//! The address file: where a running coordinator listens, for clients on the same machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, AtomicFile};

/// The content of `address.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressFile {
    /// Host and port.
    pub address: String,
    /// True if the coordinator uses TLS.
    pub tls: bool,
    /// The address at which browsers reach the dashboard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard: Option<String>,
    /// The address at which browsers reach the page for visitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_page: Option<String>,
}

/// The reason that the address file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AddressFileError {
    /// There is no address file.
    #[error(
        "no coordinator runs in {path}; start one with nqueens coordinator --data {path}",
        path = .0.display()
    )]
    NotRunning(PathBuf),
    /// The file cannot be read or parsed.
    #[error("{path} cannot be read: {1}", path = .0.display())]
    Unreadable(PathBuf, io::Error),
}

impl AddressFile {
    fn path(data: &Path) -> PathBuf {
        data.join("address.json")
    }

    /// Reads the address file in the data directory of a coordinator.
    ///
    /// # Errors
    /// Returns an error if there is no address file or it cannot be read.
    pub fn read(data: &Path) -> Result<Self, AddressFileError> {
        let path = Self::path(data);
        let text = atomic_file::read(&path, 64 << 10).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AddressFileError::NotRunning(data.to_owned()),
            _ => AddressFileError::Unreadable(path.clone(), error),
        })?;
        serde_json::from_slice(&text)
            .map_err(|error| AddressFileError::Unreadable(path, error.into()))
    }

    pub(super) fn write(&self, data: &Path) -> io::Result<()> {
        AtomicFile::begin(&Self::path(data))?.finish(&serde_json::to_string(self)?)
    }

    pub(super) fn remove(data: &Path) {
        // A stale file does little harm: clients find that nothing listens at the address.
        let _ = fs::remove_file(Self::path(data));
    }
}
