//! A campaign: the jobs of a coordinator, and who counts which unit. A pure state machine: no clock, no disk, no
//! network; the time and the seed of the random numbers come in.
//!
//! **At-least-once execution, exactly-once accounting.** Leases are volatile: they may be lost, expire or be granted
//! twice, and cost only time. What counts are [`Event`]s. Whatever a worker reports is first *validated*
//! ([`Campaign::validate`]), which changes nothing and yields events; the coordinator writes these to its ledger, and only
//! then are they *applied* ([`Campaign::apply`]) and the worker told. Replaying the events of a ledger gives the same
//! campaign, whatever crashed in between.
//!
//! **Nobody is believed for ever, and nobody chooses whom it checks.** A share of all units is counted again as a mirror
//! image, some of it or all of it, by a worker of another owner that the campaign draws, and another share by the
//! coordinator's arbiter, which nobody can collude with. Where two results differ the arbiter decides, whoever was wrong
//! is quarantined, and whatever nobody has confirmed is counted again. A job whose total contradicts a published value
//! is not finished but disputed. `docs/trust.md` has the model and the figures.

mod cells;
mod checks;
mod finish;
mod key;
mod lease;
mod leases;
mod reputation;
mod rulings;
mod settings;
mod state;
mod unit_result;
mod units;
mod validate;

pub use cells::{Cell, MOST_CELLS, UnitMap};
pub use checks::{CheckPlan, Depth};
pub use finish::DisputeStage;
pub use key::CampaignKey;
pub use lease::{Assignment, HeldLease, SubRangeSet};
pub use leases::{SyncRequest, SyncResponse};
pub use reputation::COORDINATOR;
pub use rulings::{ArbiterTask, Ruling};
pub use settings::Settings;
pub use state::{Campaign, Event, JobProgress, JobState, SourceShare, WorkerState};
pub use unit_result::{Source, UnitResult};
pub use validate::{Validation, Verdict};

use std::fmt;

/// The name of a worker.
pub type WorkerName = String;

/// A unit of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
