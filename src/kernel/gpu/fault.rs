//! What can go wrong with a device. None of it is ever a wrong count: a batch is believed only if every check of
//! its books holds, and is counted elsewhere otherwise.

use std::time::Duration;

use crate::tally::TallyError;

/// Why a device is taken out of use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The driver has given the device up.
    #[error("the device was lost: {0}")]
    Lost(String),
    /// Its memory does not hold what is needed.
    #[error("the device is out of memory: {0}")]
    OutOfMemory(String),
    /// It did not finish in time.
    #[error("the device did not answer within {} s", .0.as_secs())]
    Hung(Duration),
    /// The driver or wgpu refuses what is asked.
    #[error("the driver refuses: {0}")]
    Refused(String),
    /// Its books do not balance: work is missing, stale or counted twice.
    #[error("the device miscounts: {0}")]
    Miscounts(String),
    /// Its sums disagree with their residues.
    #[error("the device miscounts: {0}")]
    Tally(#[from] TallyError),
    /// The shaders count nothing of this job.
    #[error("this board leaves the shaders nothing to count")]
    Unsuited,
    /// Nobody wants the result any more.
    #[error("stopped")]
    Stopped,
}
