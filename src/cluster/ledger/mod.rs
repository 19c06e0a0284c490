//! The durable record of a campaign: one SQLite file with all events, each row chained to its
//! predecessor, and the running totals of the jobs.
//!
//! An [`Entry`] is an event of the campaign with its time. The rules for entries and the sums over
//! them ([`CampaignFile::append`] applies them before it writes, [`check()`] once more) are those
//! of this module alone: of the campaign it knows only the events.

mod campaign_file;
mod check;
mod commit_mark;
mod entry;
mod entry_rows;
mod in_force;
mod invalid_entry;
mod job_entries;
mod ledger_error;
mod ledger_state;
mod opening;
mod schema;

pub use campaign_file::{CampaignFile, JobRecord};
pub use check::{CheckReport, JobOverview, Overview, check, export, show, visit};
pub use entry::Entry;
pub use invalid_entry::InvalidEntry;
pub use ledger_error::{LedgerCorruption, LedgerError};
pub use ledger_state::{JobSubmission, JobTotals};
