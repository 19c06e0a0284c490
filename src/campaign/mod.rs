//! A campaign: the jobs of a coordinator, and who counts which unit. A pure state machine: no clock, no disk, no
//! network; the time and the seed of the random numbers come in.
//!
//! **At-least-once execution, exactly-once accounting.** Leases are volatile: they may be lost, expire or be granted
//! twice, and cost only time. What counts are [`Event`]s. Whatever a worker reports is first *judged*
//! ([`Campaign::judge`]), which changes nothing and yields events; the coordinator writes these to its ledger, and only
//! then are they *applied* ([`Campaign::apply`]) and the worker told. Replaying the events of a ledger gives the same
//! campaign, whatever crashed in between.
//!
//! **Nobody is believed for ever.** The first units of each source (worker, kernel, device, build) are counted again by
//! somebody else, as their mirror image; later ones with a probability that falls with its good record. Two results that
//! differ go to a referee, and whoever was wrong is quarantined: what it counted and nobody confirmed is counted again.

mod cells;
mod judge;
mod leases;
mod settings;
mod state;
mod trust;
mod units;

pub use cells::{Cell, MOST_CELLS, UnitMap};
pub use judge::{Completion, Judgement, Verdict};
pub use leases::{Assignment, Held, SyncRequest, SyncResponse};
pub use settings::Settings;
pub use state::{Campaign, Event, JobProgress, JobState, SourceShare, WorkerState};
pub use trust::Source;

use std::fmt;

/// The name of a worker.
pub type WorkerName = String;

/// A unit of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId {
    /// The job.
    pub job: crate::preplacement::JobHash,
    /// The index of the unit.
    pub unit: u64,
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unit {} of job {}", self.unit, self.job)
    }
}
