//! What keeps finished units. For one machine: the books of a job, and the run file that survives a kill at any
//! moment. For a campaign of many: the ledger of all that happened, with the running totals of its jobs.

mod book;
mod campaign_book;
mod campaign_file;
mod check;
mod entry;
mod ledger_error;
mod mark;
mod run_file;
mod schema;
mod storage;

pub use book::{BookError, FinishedUnit, UnitBook};
pub use campaign_book::{JobTotals, Refusal, WorkerRecord};
pub use campaign_file::{CampaignFile, JobRecord, Loaded};
pub use check::{CheckReport, JobOverview, Overview, check, export, show};
pub use entry::{
    CheckDepth, DrawnChecks, Entry, JobState, JobSubmitted, Note, Phase, Recount, SpotCheck, SubSums,
    UnitDone, UnitReason, UnitRevived, WorkerDrained, WorkerQuarantined, WorkerReleased, WorkerSeen,
};
pub use ledger_error::{Damage as LedgerDamage, LedgerError};
pub use run_file::{Damage, RunFile, RunFileError, Seen};
pub use storage::{DiskFile, Storage};
