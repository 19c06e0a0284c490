//! Exit codes.

use crate::batch::{MergeError, PlanFileError};
use crate::bench::BenchError;
use crate::cluster::auth::{AuthorityError, CertificateError};
use crate::cluster::coordinator::ServeError;
use crate::cluster::ledger::LedgerError;
use crate::cluster::worker::{OutboxError, WorkerError};
use crate::engine::{CountError, CountErrorClass};
use crate::kernel::KernelError;

/// The exit codes of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    /// Invalid usage or input.
    Usage = 2,
    /// No solution exists.
    NoSolution = 3,
    /// Not proven: stopped by a limit, or a solver's claim was not confirmed. The best solution
    /// found is printed.
    Unproven = 4,
    /// A kernel, device, feature or solver is not available.
    NotAvailable = 5,
    /// A check failed: counts or answers disagree.
    CheckFailed = 6,
    /// A file cannot be read, written or trusted.
    File = 7,
    /// The coordinator cannot be reached or refuses the call.
    Coordinator = 8,
    /// `run-unit`: a permanent failure; a retry is useless.
    Permanent = 42,
    /// `run-unit`: a temporary failure; retry, possibly on another machine.
    TryAgain = 75,
    /// `run-unit`: stopped by a signal; what was counted is saved.
    Checkpointed = 85,
    /// Interrupted by Ctrl-C, or `count` was stopped by `--time-limit` or `--stop-at`.
    Interrupted = 130,
}

/// The exit codes for `--help`. docs/exit-codes.md describes them in full.
pub(super) const TABLE: &str = "\
Exit codes:
    0  success
    2  invalid usage or input
    3  no solution exists
    4  not proven: stopped by a limit, or a solver's claim was not confirmed
    5  a kernel, device, feature or solver is not available
    6  a check failed: counts or answers disagree
    7  a file cannot be read, written or trusted
    8  the coordinator cannot be reached or refuses the call
   42  run-unit: permanent failure; a retry is useless
   75  run-unit: temporary failure; retry, possibly on another machine
   85  run-unit: stopped; what was counted is saved
  130  interrupted, or a count stopped by --time-limit or --stop-at";

/// An error that ends the program: one line for stderr, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The error message: what is wrong, and what would be right.
    pub message: String,
}

impl Failure {
    /// Creates the failure with an exit code.
    pub(super) fn new(exit: Exit, message: impl ToString) -> Self {
        Self { exit, message: message.to_string() }
    }

    /// Creates the failure of invalid usage or input.
    pub(super) fn usage(message: impl ToString) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Changes the error message.
    pub(super) fn map_message(self, change: impl FnOnce(&str) -> String) -> Self {
        Self { message: change(&self.message), ..self }
    }
}

impl From<PlanFileError> for Failure {
    fn from(error: PlanFileError) -> Self {
        let exit = match error {
            PlanFileError::NoSuchPart { .. } => Exit::Usage,
            _ => Exit::File,
        };
        Self::new(exit, error)
    }
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Checkpoint(error) => Self::from(CountError::from(error)),
            MergeError::Folder(..) => Self::new(Exit::File, error),
        }
    }
}

impl From<CountError> for Failure {
    fn from(error: CountError) -> Self {
        let exit = match error.class() {
            CountErrorClass::Usage => Exit::Usage,
            CountErrorClass::NotAvailable => Exit::NotAvailable,
            CountErrorClass::CheckFailed => Exit::CheckFailed,
            CountErrorClass::File => Exit::File,
            CountErrorClass::Stopped => Exit::Interrupted,
        };
        Self::new(exit, error)
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        let message = error.to_string();
        let exit = match error {
            BenchError::Count { source, .. } => Self::from(*source).exit,
            BenchError::Differs { .. } => Exit::CheckFailed,
            BenchError::Unpublished(_) => Exit::Usage,
            BenchError::Stopped { .. } => Exit::Interrupted,
        };
        Self { exit, message }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let exit = match &error {
            LedgerError::Damaged { damage, .. } if damage.is_inconsistency() => Exit::CheckFailed,
            LedgerError::InvalidEntry { .. } | LedgerError::UnequalTotals { .. } => {
                Exit::CheckFailed
            }
            _ => Exit::File,
        };
        Self::new(exit, error)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let message = error.to_string();
        let exit = match error {
            ServeError::NoAuthority(..) => Exit::Usage,
            ServeError::Ledger(error) => Self::from(error).exit,
            ServeError::Authority(error) => Self::from(error).exit,
            ServeError::Credentials(_) | ServeError::Folder(..) | ServeError::Proofs(_) => {
                Exit::File
            }
            ServeError::CampaignActor => Exit::CheckFailed,
            ServeError::Tls(_)
            | ServeError::Listen(..)
            | ServeError::Thread(_)
            | ServeError::Random(_)
            | ServeError::Transport(_) => Exit::NotAvailable,
        };
        Self { exit, message }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        let message = error.to_string();
        let exit = match error {
            WorkerError::NoCertificate(_)
            | WorkerError::AnotherName(..)
            | WorkerError::NotForCampaigns(_) => Exit::Usage,
            WorkerError::Device(error) => Self::from(CountError::from(error)).exit,
            WorkerError::Kernel(KernelError::QueensOnly(..)) => Exit::Usage,
            WorkerError::Kernel(KernelError::NotOnThisMachine(_))
            | WorkerError::NoThermometer
            | WorkerError::Thread(_)
            | WorkerError::Outbox(OutboxError::Thread(_)) => Exit::NotAvailable,
            WorkerError::Miscounts(_) => Exit::CheckFailed,
            WorkerError::Folder(..)
            | WorkerError::InUse(_)
            | WorkerError::Name(_)
            | WorkerError::Holder(_)
            | WorkerError::ResultKey(_)
            | WorkerError::Outbox(OutboxError::Damaged(_) | OutboxError::File(..)) => Exit::File,
            WorkerError::Link(_)
            | WorkerError::NotPlain(_)
            | WorkerError::NoTls(_)
            | WorkerError::Refused(..)
            | WorkerError::Quarantined(_) => Exit::Coordinator,
        };
        Self { exit, message }
    }
}

impl From<AuthorityError> for Failure {
    fn from(error: AuthorityError) -> Self {
        let exit = match &error {
            AuthorityError::NoSuchName(_)
            | AuthorityError::NoSuchToken(_)
            | AuthorityError::Certificate(CertificateError::ServerName(_)) => Exit::Usage,
            AuthorityError::File(_)
            | AuthorityError::Exists(_)
            | AuthorityError::Missing(_)
            | AuthorityError::Damaged(_)
            | AuthorityError::OpenToOthers { .. }
            | AuthorityError::Registry(_)
            | AuthorityError::Certificate(_) => Exit::File,
        };
        Self::new(exit, error)
    }
}
