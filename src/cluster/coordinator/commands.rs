//! What the keeper is asked to do, and what it answers.

use tokio::sync::{mpsc, oneshot};

use super::actor::name;
use super::arbiter;
use super::plan::Planned;
use crate::cluster::campaign::{JobState, SyncRequest, SyncResponse, UnitId, UnitResult, Verdict};
use crate::cluster::protocol::v1;
use crate::decomposition::{Job, JobHash};

/// Why nothing was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unavailable {
    /// The disk does not take it.
    #[error("the coordinator cannot write its ledger, so nothing is acknowledged; try again later")]
    Ledger,
    /// A worker that was not heard of since the start.
    #[error("this coordinator has just started and does not know the worker yet; sync first")]
    SyncFirst,
}

/// Why a job's state is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StateError {
    #[error("no job begins with '{0}'; nqueens jobs lists those that there are")]
    NoSuchJob(String),
    #[error("{1} jobs begin with '{0}'; write more digits")]
    Ambiguous(String, usize),
    #[error("job {0} is {1}; it cannot be {2} any more")]
    Over(JobHash, &'static str, &'static str),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A file of a proof.
    #[error("the folder of the proof cannot be used: {0}")]
    Unwritten(String),
    #[error("job {0} is {1}; its certificate is there once it is finished")]
    Unproved(JobHash, &'static str),
}

impl StateError {
    /// A job that is in one state cannot be in another any more.
    pub(super) const fn over(job: JobHash, before: JobState, state: JobState) -> Self {
        Self::Over(job, name(before), name(state))
    }
}

/// What a worker says of itself for people to read.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) build: String,
    pub(super) address: String,
    pub(super) devices: Vec<v1::Device>,
}

/// The answer to a sync.
#[derive(Clone, Debug)]
pub(super) struct Synced {
    pub(super) response: SyncResponse,
    /// The jobs of the leases.
    pub(super) jobs: Vec<Job>,
    pub(super) running_jobs: u32,
    pub(super) quarantined: Option<String>,
    pub(super) draining: bool,
}

/// A job that was submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitted {
    pub(super) known: bool,
    pub(super) state: JobState,
    pub(super) priority: i32,
}

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<T>;

/// What the keeper is asked to do.
#[derive(Debug)]
pub(super) enum Request {
    Complete(Vec<UnitResult>, Reply<Result<Vec<Verdict>, Unavailable>>),
    Sync(SyncRequest, About, Reply<Synced>),
    Fail {
        unit: UnitId,
        attempt: u64,
        worker: String,
        reason: String,
        unsuited: bool,
        reply: Reply<Result<(), Unavailable>>,
    },
    /// Whether a check of sub-ranges is kept for a worker.
    IsCheckKept(String, Reply<bool>),
    Submit {
        planned: Planned,
        priority: i32,
        submitter: String,
        reply: Reply<Result<Submitted, Unavailable>>,
    },
    SetState {
        job: String,
        state: JobState,
        /// Who wants it.
        by: String,
        reply: Reply<Result<(JobHash, JobState), StateError>>,
    },
    Drain {
        worker: String,
        by: String,
        reply: Reply<Result<bool, Unavailable>>,
    },
    /// A worker handed in something that is wrong.
    MisbehaviourHook {
        worker: String,
        reason: String,
    },
    Release {
        worker: String,
        by: String,
        reply: Reply<Result<bool, Unavailable>>,
    },
    Status(String, Reply<v1::StatusResponse>),
    /// The map of a job, unless the caller has this version.
    UnitMap {
        job: String,
        version: u64,
        reply: Reply<Result<v1::UnitMapResponse, StateError>>,
    },
    /// How far a job was, after a time.
    History {
        job: String,
        after_ms: u64,
        reply: Reply<Result<v1::HistoryResponse, StateError>>,
    },
    Workers(Reply<v1::WorkersResponse>),
    Ruling(arbiter::Answer),
    Tick,
    /// Deal with what came before, and end.
    Stop,
}

/// A way to the keeper.
pub(super) type Handle = mpsc::Sender<Request>;
