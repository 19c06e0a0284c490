//! Requests to the campaign actor, and its replies.

use tokio::sync::{mpsc, oneshot};

use super::arbiter;
use super::plan::{PlanContext, Planned};
use crate::board::Problem;
use crate::cluster::campaign::{
    JobState, ResultKey, ResultVerdict, SyncRequest, SyncResponse, UnitId, UnitResult,
};
use crate::cluster::ledger::{CheckReport, LedgerError};
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

/// A request to the campaign actor.
#[derive(Debug)]
pub(super) enum Request {
    Complete(Vec<UnitResult>, ReplySender<Result<Vec<ResultVerdict>, Unavailable>>),
    Sync(SyncRequest, WorkerDetails, ReplySender<SyncReply>),
    Fail {
        unit: UnitId,
        attempt: u64,
        worker: String,
        reason: String,
        unsuited: bool,
        reply: ReplySender<Result<(), Unavailable>>,
    },
    /// Asks whether a check of sub-ranges is reserved for a worker.
    HasReservedCheck(String, ReplySender<bool>),
    /// Asks for the state of the campaign on which the plan of a problem depends.
    PlanContext(Problem, ReplySender<PlanContext>),
    Submit {
        planned: Planned,
        priority: i32,
        submitter: String,
        reply: ReplySender<Result<SubmitReply, Unavailable>>,
    },
    SetState {
        job: String,
        state: JobState,
        /// The name of the person who requested the change.
        by: String,
        reply: ReplySender<Result<(JobHash, JobState), StateError>>,
    },
    Drain {
        worker: String,
        by: String,
        reply: ReplySender<Result<bool, Unavailable>>,
    },
    /// Reports that a worker gave a wrong answer.
    ReportMisbehaviour {
        worker: String,
        reason: String,
    },
    Release {
        worker: String,
        by: String,
        reply: ReplySender<Result<bool, Unavailable>>,
    },
    Status(String, ReplySender<v1::StatusResponse>),
    /// Asks for the map of a job; without cells if the caller has this version.
    UnitMap {
        job: String,
        version: u64,
        reply: ReplySender<Result<v1::UnitMapResponse, StateError>>,
    },
    /// Asks for the progress of a job after a time, in ms since 1970.
    History {
        job: String,
        after_ms: u64,
        reply: ReplySender<Result<v1::HistoryResponse, StateError>>,
    },
    Workers(ReplySender<v1::WorkersResponse>),
    Ruling(arbiter::ArbiterAnswer),
    /// Reports the check of the whole ledger after a start from a snapshot.
    LedgerChecked(Result<CheckReport, LedgerError>),
    Tick,
    /// Asks the actor to process the requests before this one and to end.
    Stop,
}

/// A handle to the campaign actor.
pub(super) type ActorHandle = mpsc::Sender<Request>;
