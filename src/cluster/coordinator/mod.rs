//! The coordinator: it leases units to workers over gRPC, validates their results and keeps the
//! ledger.
//!
//! All changes of a campaign go through one thread, the campaign actor. It takes the requests that
//! have arrived, validates them, commits one batch to the ledger, and only then applies it and
//! answers. So an acknowledged result is on disk, and a thousand workers cost one disk sync per
//! batch, not per result.
//!
//! | file | content |
//! |---|---|
//! | `ledger.db` | the ledger (see [`crate::cluster::ledger`]) |
//! | `proofs/` | a directory for each first or most beautiful solution that is searched for |
//! | `authority/` | the authority that admits callers, if any (see [`crate::cluster::auth`]) |
//! | `operator/` | the credentials of the operator on this machine |
//! | `address.json` | the address of the coordinator while it runs |

mod access;
mod actor;
mod address;
mod arbiter;
mod call_metrics;
mod calls;
mod clock;
mod commands;
mod connection;
mod contributions;
mod disputes;
mod event_log;
mod history;
mod job_info;
mod ledger_handle;
mod metrics;
mod notifier;
mod observers;
mod operator_credentials;
mod options;
mod plan;
mod proofs;
mod secret;
mod serve;
mod service;
mod snapshot;
mod status;
mod throughput;
mod timelines;
mod worker_directory;
mod write_failures;

pub use crate::cluster::net::{ConnectionLimits, PoolLimits};
pub use crate::cluster::protocol::now_ms;
pub use address::{AddressFile, AddressFileError};
pub use notifier::Notify;
pub use options::{BoundAddress, CoordinatorOptions, InProcessService, SNAPSHOT_EVERY, ServeError};
pub use serve::serve;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the path of the ledger in the data directory of a coordinator.
pub fn ledger_file(data: &Path) -> PathBuf {
    data.join("ledger.db")
}

/// Returns the path of the authority in the data directory of a coordinator.
pub fn authority_folder(data: &Path) -> PathBuf {
    data.join("authority")
}

/// Returns the path of the operator's credentials in the data directory of a coordinator.
pub fn operator_folder(data: &Path) -> PathBuf {
    data.join("operator")
}

/// Locks a mutex. No code that holds a lock of the coordinator can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
