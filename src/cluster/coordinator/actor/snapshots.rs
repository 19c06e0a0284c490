//! Writing the snapshots from which the next start continues.

use std::sync::Arc;
use std::time::Instant;

use super::super::snapshot::{self, Shown};
use super::CampaignActor;
use super::replay::agrees;
use crate::cluster::storage::{SnapshotError, SnapshotFile};

impl CampaignActor {
    /// Writes a snapshot if there are this many entries after the last one.
    pub(super) fn write_snapshot(&mut self, after: u64) {
        let Some(file) = self.ledger.file() else { return };
        let entries = file.entries();
        if entries.saturating_sub(self.snapshot_entries) < after.max(1)
            || file.is_read_only()
            || self.ledger.is_refused()
            || self.has_abandoned_snapshots
        {
            return;
        }
        // If it fails, it is tried again after as many entries.
        self.snapshot_entries = entries;
        let unequal = file.jobs().find(|record| !agrees(&self.campaign, record));
        if let Some(record) = unequal {
            self.abandon_snapshots();
            let error = self.ledger.unequal_totals(record.submission.job);
            self.report_failure(&error);
            return;
        }
        let began = Instant::now();
        if let Err(error) = self.replace_snapshot() {
            self.observers.snapshot_failed(&error);
        }
        // The syncs that would have renewed leases are waiting.
        self.clock.leave_out(began.elapsed());
    }

    /// Writes a last snapshot, if that saves time at the next start.
    pub(super) fn stop(&mut self) {
        if self.snapshot_every > 0 {
            self.write_snapshot(self.snapshot_every / 10);
        }
    }

    fn replace_snapshot(&mut self) -> Result<(), SnapshotError> {
        let snapshot = match &self.snapshot {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(SnapshotFile::create(self.ledger.snapshot_path())?),
        };
        let Self { jobs, timelines, contributions, past, .. } = self;
        let Some(file) = self.ledger.file_mut() else { return Ok(()) };
        let shown = Shown { jobs, timelines, contributions, past };
        snapshot::replace(&snapshot, file, &mut self.campaign, (&shown, &self.settings))?;
        self.snapshot = Some(snapshot);
        Ok(())
    }

    /// Removes the snapshot, so that the next start reads all entries, and writes none until then:
    /// the unchanged pages of a snapshot are only in its file.
    pub(super) fn abandon_snapshots(&mut self) {
        self.has_abandoned_snapshots = true;
        if let Err(error) = SnapshotFile::remove(self.ledger.snapshot_path()) {
            self.observers.snapshot_failed(&error);
        }
    }
}
