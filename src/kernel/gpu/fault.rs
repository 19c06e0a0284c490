//! The error of a device. No fault results in a wrong count: a batch is accepted only if all its
//! accounting checks pass, and is counted elsewhere otherwise. `executor/device_thread.rs` handles
//! the faults.

use std::time::Duration;

use crate::tally::TallyError;

/// The reason why a device has not counted a batch. All but [`Fault::Unsuited`] and
/// [`Fault::Stopped`] are faults of the device, which is disabled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The driver reports the device as lost.
    #[error("the device was lost: {0}")]
    Lost(String),
    /// The device's memory is too small.
    #[error("the device is out of memory: {0}")]
    OutOfMemory(String),
    /// The device did not finish in time.
    #[error("the device did not answer within {} s", .0.as_secs())]
    Hung(Duration),
    /// The driver or wgpu rejects a request.
    #[error("the driver rejected a request: {0}")]
    Refused(String),
    /// An accounting check failed: work is missing, stale or counted twice.
    #[error("the device miscounts: {0}")]
    Miscounts(String),
    /// Its sums disagree with their residues.
    #[error("the device miscounts: {0}")]
    Tally(#[from] TallyError),
    /// The shaders support no part of this job.
    #[error("the shaders cannot count any part of this board")]
    Unsuited,
    /// The result is no longer needed.
    #[error("stopped")]
    Stopped,
}
