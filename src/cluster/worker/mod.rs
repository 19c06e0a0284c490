//! The worker: it leases units from a coordinator, counts them on every core and device, and
//! submits the results.
//!
//! | module | contents |
//! |---|---|
//! | `worker_loop.rs` | the worker's calls (sync, complete, fail) and draining |
//! | `work_queue.rs` | the leased units and their states; no threads, network or disk |
//! | `executors.rs` | the leases as a source of units for the threads that count |
//! | `provers.rs` | the threads that solve the tasks of proofs |
//! //! | `outbox.rs`, `outbox_file.rs` | unacknowledged results, in memory and on disk |
//! | `data_dir.rs`, `connection.rs`, `backoff.rs` | the data directory and the certificate; calls and the meaning of their failures; delays between retries |
//! | `working_hours.rs`, `environment.rs` | when the worker rests |
//!
//! A worker's data directory holds `lock`, `name`, `credentials.json` (if it enrolled) and
//! `outbox.db`.
//!
//! **No result is lost.** A result is put into the outbox, which is written to disk a moment later,
//! and leaves it once the coordinator has returned its verdict. If the worker is killed in between,
//! the next worker in the same directory sends it.

mod backoff;
mod connection;
mod data_dir;
mod environment;
mod executors;
mod outbox;
mod outbox_file;
mod provers;
mod work_queue;
mod worker_loop;
mod working_hours;

pub use environment::{Environment, Rest, ThisMachine};
pub use outbox_file::OutboxError;
pub use worker_loop::run;
pub use working_hours::{WorkingHours, WorkingHoursError};

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::auth::{CredentialsError, Name, NameError, SigningKeyError, Token};
use crate::cluster::protocol::{Address, ChannelError};
use crate::executor::{Device, DeviceChoice, DeviceError, KernelFactory};
use crate::kernel::{KernelError, KernelKind};

/// The options of a worker.
pub struct WorkerOptions {
    /// The coordinator's address.
    pub join: Address,
    /// The token to redeem for a certificate, on the first start.
    pub token: Option<Token>,
    /// The name by which the coordinator knows the worker. `None` takes the name of the last start
    /// in this data directory, or derives a new one from the host name.
    pub name: Option<Name>,
    /// The data directory.
    pub data: PathBuf,
    /// True to connect without TLS to a coordinator on another machine.
    pub insecure: bool,
    /// The devices that count. `Auto`: the CPU, and GPUs once there is work for them.
    pub devices: DeviceChoice,
    /// Devices that are already open, in addition to the selected ones; for custom backends.
    pub opened: Vec<Device>,
    /// The number of CPU threads; `None` for one per core.
    pub threads: Option<NonZeroUsize>,
    /// The CPU kernel; `None` for the fastest one on this machine. An explicit kernel restricts
    /// `Auto` to the CPU.
    pub kernel: Option<KernelKind>,
    /// The factory of the CPU kernels, for custom kernels.
    pub kernels: KernelFactory,
    /// The hours in which the worker rests.
    pub rest: Rest,
    /// The clock and the thermometer that `rest` refers to.
    pub environment: Arc<dyn Environment>,
    /// True if the worker ends when there is no work.
    pub exit_when_idle: bool,
    /// The time that the worker has to finish and submit its work after it was asked to stop.
    pub drain_timeout: Duration,
    /// The deadline of a call.
    pub deadline: Duration,
}

impl WorkerOptions {
    /// Creates the options of a worker for the coordinator at `join` with the data directory
    /// `data`, and the defaults otherwise.
    pub fn new(join: Address, data: PathBuf) -> Self {
        Self {
            join,
            token: None,
            name: None,
            data,
            insecure: false,
            devices: DeviceChoice::Auto,
            opened: Vec::new(),
            threads: None,
            kernel: None,
            kernels: KernelFactory::default(),
            rest: Rest::default(),
            environment: Arc::new(ThisMachine::default()),
            exit_when_idle: false,
            drain_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(30),
        }
    }
}

/// A summary of a worker's run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Units counted.
    pub units: u64,
    /// Units recounted to check a result, in full or in some sub-ranges.
    pub recounts: u64,
    /// Tasks of proofs answered.
    pub proved: u64,
    /// The time that the worker ran.
    pub elapsed: Duration,
    /// Units that were started and not finished.
    pub dropped: usize,
    /// Results that are still in the outbox.
    pub undelivered: usize,
}

/// The reason why a worker cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The data directory cannot be used.
    #[error("{path} cannot be used: {1}", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// Another worker uses the data directory; the two would send each other's results.
    #[error("another worker uses the directory {path}; give each worker its own --data", path = .0.display())]
    InUse(PathBuf),
    /// The name stored in the data directory is invalid.
    #[error("the name stored in the worker's data directory is damaged: {0}")]
    Name(NameError),
    /// The certificate is for another name.
    #[error("the certificate in {path} belongs to {1}; omit --name, or give another --data", path = .0.display())]
    AnotherName(PathBuf, Name),
    /// There is no certificate by which the coordinator could identify the worker.
    #[error(
        "there is no certificate for {0} in the data directory; give --token (nqueens token create, on the \
         coordinator's machine, prints one) or --insecure"
    )]
    NoCertificate(Address),
    /// The server does not speak HTTP/2 without TLS, and the worker has no certificate.
    #[error(
        "the server at {0} does not speak HTTP/2 without TLS; if it is a coordinator with TLS, give --token (nqueens \
         token create, on the coordinator's machine, prints one)"
    )]
    NotPlain(Address),
    /// The server at which the token was to be redeemed does not speak TLS.
    #[error(
        "the server at {0} does not speak TLS; if it is a coordinator without an authority, omit --token (and give \
         --insecure if it is on another machine)"
    )]
    NoTls(Address),
    /// The certificate cannot be obtained, stored or used.
    #[error(transparent)]
    Holder(#[from] CredentialsError),
    /// The key for results cannot be used.
    #[error(transparent)]
    ResultKey(#[from] SigningKeyError),
    /// The outbox cannot be used.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The connection cannot be set up.
    #[error(transparent)]
    Link(#[from] ChannelError),
    /// The devices cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel cannot be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The textbook kernel counts only its own decomposition, and no units of a campaign.
    #[error(
        "kernel {0} cannot count the units of a campaign; use --kernel auto or any other kernel"
    )]
    NotForCampaigns(KernelKind),
    /// The machine has no readable temperature sensor.
    #[error("this machine has no readable temperature sensor; omit --max-temperature")]
    NoThermometer,
    /// The system cannot create a thread.
    #[error("cannot create a thread: {0}")]
    Thread(io::Error),
    /// The coordinator refused the worker.
    #[error("the coordinator at {0} refused: {1}")]
    Refused(Address, String),
    /// The coordinator no longer trusts this worker's results.
    #[error("the coordinator has quarantined this worker: {0}")]
    Quarantined(String),
    /// A kernel gives wrong results for known answers on this machine.
    #[error("this machine miscounts: {0}")]
    Miscounts(String),
}
