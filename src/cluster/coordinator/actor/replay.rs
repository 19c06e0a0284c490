//! The changes that an entry of the ledger makes, when it was just written and when the ledger is
//! read.

use std::collections::VecDeque;

use super::super::contributions::Contributions;
use super::super::event_log::{MOST_EVENTS, OperatorEvent};
use super::super::job_info::{self, Jobs};
use super::super::now_ms;
use super::CampaignActor;
use crate::cluster::campaign::{Campaign, CampaignEvent};
use crate::cluster::ledger::{CampaignFile, Entry, JobRecord, LedgerError};
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

    /// Replaces the campaign by the one in a ledger. Returns the latest operator events with their
    /// times.
    pub(super) fn load(
        &mut self,
        file: CampaignFile,
    ) -> Result<VecDeque<(u64, OperatorEvent)>, LedgerError> {
        // Lease numbers start above those of all earlier starts, as long as a start grants fewer
        // than 2^20 leases per millisecond.
        self.opened_ms = now_ms();
        let folder = self.ledger.folder();
        self.campaign =
            Campaign::new(self.settings, self.opened_ms, self.key.clone()).with_folder(folder);
        self.jobs = Jobs::new();
        self.contributions = Contributions::default();
        self.timelines.clear_histories();
        self.disputes.reset();
        for (worker, owner) in file.owners() {
            self.campaign.register_owner(worker, owner);
        }
        let mut past = VecDeque::new();
        file.visit_entries(&mut |entry| {
            self.timelines.advance(&self.campaign, &entry);
            self.apply(&entry);
            let shown = OperatorEvent::of(&entry.event, &self.campaign, &self.jobs, "");
            past.extend(shown.map(|shown| (entry.at_ms, shown)));
            if past.len() > MOST_EVENTS {
                past.pop_front();
            }
        })?;
        self.timelines.end_histories(&self.campaign);
        let differs = |record: &JobRecord| !agrees(&self.campaign, record);
        if let Some(record) = file.jobs().find(differs) {
            return Err(self.ledger.unequal_totals(record.submission.job));
        }
        self.ledger.attach(file);
        Ok(past)
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
fn agrees(campaign: &Campaign, record: &JobRecord) -> bool {
    campaign.progress(&record.submission.job).is_some_and(|progress| {
        (progress.state, progress.total, progress.done, progress.poisoned)
            == (record.state, record.totals.tally, record.totals.done, record.totals.poisoned)
    })
}
