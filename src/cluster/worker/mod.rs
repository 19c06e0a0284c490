//! The worker: it takes units from a coordinator, counts them on every core and device, and hands the results in.
//!
//! | file | what it is |
//! |---|---|
//! | `life.rs` | the worker's calls: sync, complete, fail; draining |
//! | `queue.rs` | what is in hand, unit by unit; it knows no threads, network or disk |
//! | `executors.rs` | the threads that count |
//! | `provers.rs` | the threads that answer the queries of proofs |
//! | `kernels.rs`, `plans.rs` | the kernels of a thread; jobs become units again |
//! | `outbox.rs`, `outbox_file.rs` | results that were not acknowledged yet, in memory and on disk |
//! | `home.rs`, `line.rs`, `backoff.rs` | the folder and the certificate; calls, and what their failures mean |
//! | `hours.rs`, `environment.rs` | when it is to rest |
//!
//! In a worker's folder are `lock`, `name`, `credentials.json` (if it enrolled) and `outbox.db`.
//!
//! **Nothing is lost.** A result goes into the outbox, which is on disk a moment later, and leaves it when the
//! coordinator has given its verdict. Whatever is killed in between, the next worker in the same folder sends it.

mod backoff;
mod connection;
mod data_dir;
mod environment;
mod executors;
mod kernels;
mod outbox;
mod outbox_file;
mod plans;
mod provers;
mod quiet_hours;
mod work_queue;
mod worker_loop;

pub use environment::{Environment, Rest, ThisMachine};
pub use outbox_file::OutboxError;
pub use quiet_hours::{QuietHours, QuietHoursError};
pub use worker_loop::run;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::auth::{HolderError, Name, NameError, Token};
use crate::cluster::protocol::{Address, LinkError};
use crate::engine::{Device, DeviceChoice, DeviceError};
use crate::kernel::{KernelError, KernelKind};

/// What a worker is told at its start.
pub struct Options {
    /// The coordinator.
    pub join: Address,
    /// For the first start: buys a certificate.
    pub token: Option<Token>,
    /// By which the coordinator knows it; `None` for that of the last start in this folder, or one after this machine.
    pub name: Option<Name>,
    /// Its folder.
    pub data: PathBuf,
    /// Without TLS, though the coordinator is on another machine.
    pub insecure: bool,
    /// What counts. `Auto`: the CPU, and GPUs once there is work for them.
    pub devices: DeviceChoice,
    /// Devices that are open already, besides those chosen: backends of one's own.
    pub opened: Vec<Device>,
    /// Threads of the CPU; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
    /// The kernel of the CPU; `None` for the fastest one here. One that is chosen keeps `Auto` to the CPU.
    pub kernel: Option<KernelKind>,
    /// When it rests.
    pub rest: Rest,
    /// The clock and the thermometer for that.
    pub environment: Arc<dyn Environment>,
    /// It ends when there is nothing to count.
    pub exit_when_idle: bool,
    /// How long it may finish and hand in what it has, once it is told to stop.
    pub drain_timeout: Duration,
    /// How long a call may take.
    pub deadline: Duration,
}

impl Options {
    /// A worker for the coordinator at `join`, with its folder in `data`, and all else as it is by default.
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
            rest: Rest::default(),
            environment: Arc::new(ThisMachine::default()),
            exit_when_idle: false,
            drain_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(30),
        }
    }
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Units that it counted.
    pub units: u64,
    /// Units that it counted again to check them, all or some sub-ranges of each.
    pub recounts: u64,
    /// Queries of proofs that it answered.
    pub proved: u64,
    /// How long it ran.
    pub elapsed: Duration,
    /// Units that it had begun and did not finish.
    pub dropped: usize,
    /// Results that are still in its outbox.
    pub undelivered: usize,
}

/// Why a worker does not run any more.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The folder.
    #[error("{path} cannot be used: {1}", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// Two workers would send each other's results.
    #[error("another worker has the folder {path}; give each worker its own --data", path = .0.display())]
    InUse(PathBuf),
    /// The name that is kept in the folder is none.
    #[error("the name that is kept in the worker's folder is damaged: {0}")]
    Name(NameError),
    /// The certificate says another name.
    #[error("the certificate in {path} is that of {1}; leave --name out, or give another --data", path = .0.display())]
    AnotherName(PathBuf, Name),
    /// The coordinator would not know it.
    #[error(
        "there is no certificate for {0} here; give --token (nqueens token create, on the coordinator's machine, \
         prints one), or say --insecure"
    )]
    NoCertificate(Address),
    /// It was asked without TLS, by a worker that has no certificate.
    #[error(
        "what listens at {0} does not speak HTTP/2 without TLS; if it is a coordinator with TLS, give --token (nqueens \
         token create, on the coordinator's machine, prints one)"
    )]
    NotPlain(Address),
    /// A token was to be redeemed there.
    #[error(
        "what listens at {0} does not speak TLS; if it is a coordinator without an authority, leave --token out (and \
         say --insecure, if it is on another machine)"
    )]
    NoTls(Address),
    /// The certificate.
    #[error(transparent)]
    Holder(#[from] HolderError),
    /// The outbox.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The connection.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The devices.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The yardstick counts no plans but its own.
    #[error("kernel {0} cannot count the units of a campaign; use --kernel auto, or any other")]
    NotForCampaigns(KernelKind),
    /// There is no thermometer.
    #[error("this machine does not tell its temperature; leave --max-temperature out")]
    NoThermometer,
    /// The system gives no threads.
    #[error("the system gives no thread: {0}")]
    Thread(io::Error),
    /// The coordinator refuses.
    #[error("the coordinator at {0} refuses: {1}")]
    Refused(Address, String),
    /// What this worker counts is not believed any more.
    #[error("the coordinator has put this worker in quarantine: {0}")]
    Quarantined(String),
    /// Known answers are counted otherwise here.
    #[error("this machine cannot be trusted to count: {0}")]
    Miscounts(String),
}
