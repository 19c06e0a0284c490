//! The changes that an entry of the ledger makes, when it was just written and when the ledger is
//! read.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use super::super::event_log::OperatorEvent;
use super::super::job_info;
use super::super::now_ms;
use super::super::snapshot::{self, ShownBefore};
use super::CampaignActor;
use crate::cluster::campaign::{Campaign, CampaignEvent};
use crate::cluster::ledger::{CampaignFile, Entry, JobRecord, LedgerError};
use crate::cluster::storage::SnapshotFile;
use crate::decomposition::JobHash;

impl CampaignActor {
    /// Applies an entry that is in the ledger.
    pub(super) fn apply(&mut self, entry: &Entry) {
        let state = |actor: &Self| Some(actor.campaign.state(&entry.event.job()?));
        let before = state(self);
        self.campaign.apply(&entry.event);
        self.contributions.record(&entry.event, entry.at_ms);
        self.disputes.update(&entry.event);
        let state_changed = state(self) != before;
        job_info::update(&mut self.jobs, entry, state_changed);
        if let CampaignEvent::JobSubmitted { job, .. } = entry.event {
            self.timelines.add_job(job, entry.at_ms);
        }
    }

    /// Opens the ledger at the start and replaces the campaign by the one there: from the snapshot,
    /// if there is one, and the entries after it, or else from all entries.
    pub(super) fn resume(&mut self) -> Result<(), LedgerError> {
        let snapshot = snapshot::open(self.ledger.snapshot_path(), &self.settings);
        // A damaged page may be noticed only when it is read.
        let resumed = match snapshot {
            Ok(Some(snapshot)) => {
                std::panic::catch_unwind(AssertUnwindSafe(|| self.resume_with(&snapshot)))
                    .map_err(|_| "it is damaged".to_owned())
                    .and_then(|resumed| resumed.map_err(|error| error.to_string()))
            }
            Ok(None) => return self.reopen(),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = resumed {
            self.observers.snapshot_refused(&why);
            return self.reopen();
        }
        Ok(())
    }

    /// Opens the ledger and reads all of it, at the start or after an error.
    pub(super) fn reopen(&mut self) -> Result<(), LedgerError> {
        (self.snapshot, self.has_abandoned_snapshots) = (None, false);
        let file = self.ledger.open()?;
        self.load(file)
    }

    fn resume_with(&mut self, snapshot: &Arc<SnapshotFile>) -> Result<(), LedgerError> {
        let file = self.ledger.open_with(snapshot)?;
        let unreadable = |source| self.ledger.unreadable_snapshot(source);
        let opened_ms = now_ms();
        let (settings, key, folder) = (self.settings, self.key.clone(), self.ledger.folder());
        let campaign = Campaign::restore(settings, opened_ms, key, Some(folder), snapshot)
            .map_err(unreadable)?;
        let shown = snapshot::read_shown(snapshot).map_err(unreadable)?;
        self.snapshot_entries = file.entries_before();
        self.opened_ms = opened_ms;
        self.load_after(file, campaign, shown)?;
        self.snapshot = Some(Arc::clone(snapshot));
        Ok(())
    }

    /// Replaces the campaign by the one in a ledger, all of which is read.
    pub(super) fn load(&mut self, file: CampaignFile) -> Result<(), LedgerError> {
        // Lease numbers start above those of all earlier starts, as long as a start grants fewer
        // than 2^20 leases per millisecond.
        self.opened_ms = now_ms();
        self.snapshot_entries = 0;
        let campaign = Campaign::new(self.settings, self.opened_ms, self.key.clone());
        let campaign = campaign.with_folder(self.ledger.folder());
        self.load_after(file, campaign, ShownBefore::default())
    }

    /// Applies the entries that a ledger has after those of a campaign, which replaces the present
    /// one.
    fn load_after(
        &mut self,
        file: CampaignFile,
        campaign: Campaign,
        shown: ShownBefore,
    ) -> Result<(), LedgerError> {
        let ShownBefore { jobs, timelines, contributions, past } = shown;
        (self.campaign, self.jobs, self.contributions) = (campaign, jobs, contributions);
        self.past = past;
        self.timelines.replace_histories(timelines);
        self.disputes.reset();
        for (worker, owner) in file.owners() {
            self.campaign.register_owner(worker, owner);
        }
        file.visit_entries(&mut |entry| {
            self.timelines.advance(&self.campaign, &entry);
            self.apply(&entry);
            if let Some(shown) = OperatorEvent::of(&entry.event, &self.campaign, &self.jobs, "") {
                self.past.add(entry.at_ms, shown);
            }
        })?;
        self.timelines.end_histories(&self.campaign);
        if let Some(record) = file.jobs().find(|record| !agrees(&self.campaign, record)) {
            return Err(self.ledger.unequal_totals(record.submission.job));
        }
        self.ledger.attach(file);
        Ok(())
    }

    /// Checks that a job has the same total in the campaign and in the ledger, which add up the
    /// results independently.
    ///
    /// # Errors
    /// Returns an error if the totals differ.
    pub(super) fn check_totals(&self, job: JobHash) -> Result<(), LedgerError> {
        let record = self.ledger.file().and_then(|file| file.job(&job));
        match record {
            Some(record) if !agrees(&self.campaign, &record) => {
                Err(self.ledger.unequal_totals(job))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a job has the same state and total in the campaign and in the ledger.
pub(super) fn agrees(campaign: &Campaign, record: &JobRecord) -> bool {
    campaign.progress(&record.submission.job).is_some_and(|progress| {
        (progress.state, progress.total, progress.done, progress.poisoned)
            == (record.state, record.totals.tally, record.totals.done, record.totals.poisoned)
    })
}
