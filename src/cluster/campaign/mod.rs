//! A campaign: the jobs of a coordinator and the assignment of their units to workers. It is a pure
//! state machine without clock, disk or network; the time and the random seed are inputs.
//!
//! **At-least-once execution, exactly-once accounting.** Leases are volatile: they may be lost,
//! expire or be granted twice, which costs only time. Only [`CampaignEvent`]s count. A worker's
//! report is first *validated* ([`Campaign::validate`]), which changes nothing and returns events.
//! The coordinator writes these to its ledger; only then does it *apply* them
//! ([`Campaign::apply`]) and answer the worker. Replaying the events of a ledger yields the same
//! campaign, whatever crashed in between.
//!
//! **No worker is trusted permanently, and none chooses which units it checks.** A share of all
//! units is recounted, in part or in full, as a mirror image by a worker of another owner, which
//! the campaign draws at random; the coordinator's arbiter, with which no worker can collude,
//! recounts another share. Where two results differ, the arbiter decides, the worker that was wrong
//! is quarantined, and every unconfirmed unit is recounted. A job whose total contradicts a
//! published value becomes disputed instead of finished. `docs/trust.md` describes the model and
//! gives the figures. `guests.rs` has the stricter rules for workers without credentials.

mod apply;
mod arbiter_tasks;
mod assignment;
mod cells;
mod check_plan;
mod checks;
mod event;
mod failures;
mod finish;
mod grants;
mod guests;
mod job;
mod key;
mod lease_table;
mod leases;
mod open_units;
mod owner_units;
mod queries;
mod reputation;
mod reservations;
mod rulings;
mod settings;
mod signed_result;
mod snapshot;
mod state;
mod sync;
mod unit_bits;
mod unit_outcome;
mod unit_result;
mod units;
mod validate;
mod workers;

pub use arbiter_tasks::ArbiterTask;
pub use assignment::{Assignment, HeldLease, SubRangeSet};
pub use cells::{Cell, MOST_CELLS, UnitMap};
pub use check_plan::CheckProbabilities;
pub use checks::{CheckPlan, Depth};
pub use event::{CampaignEvent, JobState};
pub use finish::DisputeStage;
pub use guests::{GuestShare, guest_name, guest_owner, is_guest};
pub use key::CampaignKey;
pub use queries::{JobProgress, SourceShare, WorkerRecord};
pub use reputation::COORDINATOR;
pub use rulings::Ruling;
pub use settings::Settings;
pub use signed_result::{
    Commitment, ResultKey, ResultSignature, Statement, commitment, possession_message,
};
pub use state::Campaign;
pub use sync::{SyncRequest, SyncResponse};
pub use unit_result::{Source, UnitResult};
pub use validate::{ResultVerdict, Validation};
pub use workers::WorkerState;

use std::fmt;

/// The name of a worker.
pub type WorkerName = String;

/// A unit of a job.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct UnitId {
    /// The job.
    pub job: crate::decomposition::JobHash,
    /// The index of the unit.
    pub unit: u64,
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unit {} of job {}", self.unit, self.job)
    }
}
