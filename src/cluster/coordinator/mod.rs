//! The coordinator: it hands out units to workers over gRPC, judges what comes back, and keeps the ledger.
//!
//! All that changes a campaign goes through one thread, the keeper: it takes what arrived meanwhile, judges
//! it, writes one batch to the ledger, and only then applies it and answers. So an acknowledged result is on disk, and a
//! thousand workers cost one sync of the disk for each batch, not for each result.
//!
//! | file | what it is |
//! |---|---|
//! | `ledger.db` | the ledger (see [`crate::cluster::ledger`]) |
//! | `proofs/` | a folder for each first solution that is searched for |
//! | `authority/` | who may call, if it was made (see [`crate::cluster::auth`]) |
//! | `operator/` | a certificate for whoever works on this machine |
//! | `address.json` | where the coordinator listens while it runs |

mod access;
mod actor;
mod address;
mod arbiter;
mod books;
mod calls;
mod clock;
mod commands;
mod connection;
mod event_log;
mod history;
mod metrics;
mod notifier;
mod pace;
mod plan;
mod proofs;
mod secret;
mod serve;
mod service;
mod status;
mod troubles;

pub use crate::cluster::net::{ConnectionLimits, PoolLimits};
pub use address::{AddressFile, AddressFileError};
pub use notifier::Notify;
pub use serve::{BoundAddress, InProcessService, Options, ServeError, serve};
pub use service::Service;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in ms since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The ledger of the coordinator with this folder.
pub fn ledger_file(data: &Path) -> PathBuf {
    data.join("ledger.db")
}

/// The authority of the coordinator with this folder.
pub fn authority_folder(data: &Path) -> PathBuf {
    data.join("authority")
}

/// The credentials for whoever works on the machine of the coordinator with this folder.
pub fn operator_folder(data: &Path) -> PathBuf {
    data.join("operator")
}
