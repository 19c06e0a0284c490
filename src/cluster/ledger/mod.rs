//! The durable record of a campaign: one SQLite file with all events, each row chained to its
//! predecessor, and the running totals of the jobs.

mod campaign_file;
mod check;
mod commit_mark;
mod entry;
mod invalid_entry;
mod job_entries;
mod ledger_error;
mod ledger_state;
mod schema;

pub use campaign_file::{CampaignFile, JobRecord, Loaded};
pub use check::{CheckReport, JobOverview, Overview, check, export, show};
pub use entry::{
    CheckDepth, DrawnChecks, Entry, JobSubmitted, Note, Phase, PhaseChanged, Recount, SpotCheck,
    SubSums, UnitDone, UnitReason, UnitRevived, WorkerDrained, WorkerQuarantined, WorkerReleased,
    WorkerSeen,
};
pub use invalid_entry::InvalidEntry;
pub use ledger_error::{LedgerCorruption, LedgerError};
pub use ledger_state::{JobTotals, WorkerRecord};
