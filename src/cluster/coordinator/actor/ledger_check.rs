//! The check of the whole ledger that follows a start from a snapshot, which has read only the
//! entries after it.

use std::io;
use std::path::PathBuf;

use super::CampaignActor;
use crate::cluster::ledger::{self, CheckReport, LedgerError};

/// Starts a thread that checks the ledger at `path`, in its state at the start of the check, and
/// reports the outcome. The coordinator writes meanwhile.
///
/// # Errors
/// Returns an error if the thread cannot be spawned.
pub(super) fn start(
    path: PathBuf,
    report: impl FnOnce(Result<CheckReport, LedgerError>) + Send + 'static,
) -> io::Result<()> {
    let check = move || report(ledger::check(&path));
    std::thread::Builder::new().name("ledger-check".into()).spawn(check).map(drop)
}

impl CampaignActor {
    /// Takes note of a check of the whole ledger. Writes nothing more if it is damaged.
    pub(super) fn ledger_checked(&mut self, checked: Result<CheckReport, LedgerError>) {
        match checked {
            Ok(CheckReport { sound: true, entries, .. }) => self.observers.ledger_sound(entries),
            Ok(CheckReport { findings, .. }) => {
                let finding = findings.into_iter().next().unwrap_or_default();
                self.abandon_snapshots();
                self.observers.ledger_failed(self.ledger.refuse(&finding));
            }
            Err(error) => self.observers.ledger_unchecked(&error),
        }
    }
}
