//! Requests to the campaign actor, and its replies.

use tokio::sync::{mpsc, oneshot};

use super::actor::CampaignActor;
use crate::cluster::campaign::{JobState, ResultKey, ResultVerdict, SyncResponse, UnitResult};
use crate::cluster::protocol::v1;
use crate::decomposition::{Job, JobHash};

/// The reason that nothing was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unavailable {
    /// The ledger cannot be written.
    #[error("the coordinator cannot write its ledger, so nothing is acknowledged; try again later")]
    Ledger,
    /// The worker has not synced since the coordinator started.
    #[error(
        "this coordinator has not received a sync from this worker since it started; sync first"
    )]
    SyncFirst,
}

/// The reason that a request about a job failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StateError {
    #[error("no job begins with '{0}'; nqueens jobs lists all jobs")]
    NoSuchJob(String),
    #[error("{1} jobs begin with '{0}'; give more digits")]
    Ambiguous(String, usize),
    #[error("job {0} is {1}; it cannot be {2} now")]
    Over(JobHash, &'static str, &'static str),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A file of a proof cannot be used.
    #[error("the directory of the proof cannot be used: {0}")]
    Unwritten(String),
    #[error("job {0} is {1}; its certificate is available once it is finished")]
    Unproved(JobHash, &'static str),
}

impl StateError {
    /// Creates the error for a job that cannot change from state `before` to `state` now.
    pub(super) const fn over(job: JobHash, before: JobState, state: JobState) -> Self {
        Self::Over(job, before.name(), state.name())
    }
}

/// Information that a worker reports about itself, for display.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerDetails {
    pub(super) build: String,
    pub(super) address: String,
    pub(super) devices: Vec<v1::Device>,
    /// The key with which it signs its results.
    pub(super) key: Option<ResultKey>,
}

/// The answer to a sync.
#[derive(Clone, Debug)]
pub(super) struct SyncReply {
    pub(super) response: SyncResponse,
    /// The jobs of the leases.
    pub(super) jobs: Vec<Job>,
    pub(super) running_jobs: u32,
    pub(super) quarantined: Option<String>,
    pub(super) draining: bool,
}

/// The result of a submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubmitReply {
    pub(super) known: bool,
    pub(super) state: JobState,
    pub(super) priority: i32,
}

/// The channel of a reply.
pub(super) type ReplySender<T> = oneshot::Sender<T>;

/// An operation of the campaign actor, which runs on its thread.
pub(super) type Operation = Box<dyn FnOnce(&mut CampaignActor) + Send>;

/// A request to the campaign actor.
pub(super) enum Request {
    /// Delivers results, which are validated before the operations of the same batch run.
    Complete(Vec<UnitResult>, ReplySender<Result<Vec<ResultVerdict>, Unavailable>>),
    Run(Operation),
    /// Asks the actor to process the requests before this one and to end.
    Stop,
}

impl Request {
    /// Creates the request to run an operation.
    pub(super) fn run(operation: impl FnOnce(&mut CampaignActor) + Send + 'static) -> Self {
        Self::Run(Box::new(operation))
    }
}

/// A handle to the campaign actor.
pub(super) type ActorHandle = mpsc::Sender<Request>;
