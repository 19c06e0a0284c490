//! The translation of a ledger into the entries of a log.

use std::collections::{BTreeSet, HashMap};

use crate::cluster::campaign::{
    COORDINATOR, CampaignEvent, JobState, ResultKey, ResultSignature, Source, UnitId, WorkerName,
    is_guest,
};
use crate::cluster::ledger::Entry;
use crate::decomposition::JobHash;
use crate::transparency::entry::{Author, FORMAT, LogEntry};
use crate::transparency::unit_index::UNITS;
use crate::transparency::units::{InForce, UnitResults};

/// The entries of the log of a job, in the order of the ledger.
#[derive(Debug)]
pub struct LogEntries {
    job: JobHash,
    /// The number of entries so far.
    size: u64,
    /// The current key of each worker.
    keys: HashMap<WorkerName, ResultKey>,
    /// The number of each owner, from 1 in the order of their first results.
    owners: HashMap<String, u64>,
    /// The entry of each key with its owner.
    signers: HashMap<(ResultKey, u64), u64>,
    /// `None` before the job was submitted.
    results: Option<UnitResults>,
    excess_units: Option<u64>,
    /// Entries before this one are published.
    published: u64,
    /// The pages of the index that later entries change.
    changed_pages: BTreeSet<u64>,
}

impl LogEntries {
    /// Creates the log of a job, which is still empty. Its first `published` entries were published
    /// before.
    pub fn new(job: JobHash, published: u64) -> Self {
        Self {
            job,
            size: 0,
            keys: HashMap::new(),
            owners: HashMap::new(),
            signers: HashMap::new(),
            results: None,
            excess_units: None,
            published,
            changed_pages: BTreeSet::new(),
        }
    }

    /// Returns the results in force, or `None` if the job was not submitted yet.
    pub const fn results(&self) -> Option<&UnitResults> {
        self.results.as_ref()
    }

    /// Returns the number of units of the job if there are more than a log can have.
    pub const fn excess_units(&self) -> Option<u64> {
        self.excess_units
    }

    /// Returns the number of an owner that has results.
    pub fn owner_number(&self, owner: &str) -> Option<u64> {
        self.owners.get(owner).copied()
    }

    /// Returns the pages of the index that differ from those that were published.
    pub const fn changed_pages(&self) -> &BTreeSet<u64> {
        &self.changed_pages
    }

    fn result_changed(&mut self, unit: u64, entry: u64) {
        if entry >= self.published {
            self.changed_pages.insert(unit / UNITS);
        }
    }

    /// Returns the entries of the log that follow from the next entry of the ledger.
    pub fn translate(&mut self, Entry { event, at_ms }: &Entry) -> Vec<LogEntry> {
        if let CampaignEvent::WorkerSeen { worker, key: Some(key), .. } = event {
            self.keys.insert(worker.clone(), *key);
        }
        if event.job() != Some(self.job) {
            return Vec::new();
        }
        let mut entries = Vec::new();
        match event {
            CampaignEvent::JobSubmitted { job, text, units, at_ms, .. } => {
                self.results = UnitResults::new(*units);
                self.excess_units = self.results.is_none().then_some(*units);
                let (job, text, units, at_ms) = (*job, text.clone(), *units, *at_ms);
                entries.push(LogEntry::Job { format: FORMAT, job, text, units, at_ms });
            }
            CampaignEvent::JobState { state, .. } => {
                let total = self.results.as_ref().map_or(0, UnitResults::total);
                let solutions = (*state == JobState::Finished).then(|| (total / 3).to_string());
                entries.push(LogEntry::State { state: *state, at_ms: *at_ms, solutions });
            }
            CampaignEvent::UnitDone {
                unit: UnitId { unit, .. }, tally, source, signature, ..
            } => {
                let (by, signature) = self.author(source, *signature, &mut entries);
                let (unit, thirds, kernel) = (*unit, tally.thirds(), source.kernel.clone());
                let entry = self.size + entries.len() as u64;
                if let Some(results) = &mut self.results {
                    results.set(unit, InForce { entry, thirds });
                }
                self.result_changed(unit, entry);
                entries.push(LogEntry::Result { unit, thirds, kernel, by, signature });
            }
            CampaignEvent::Recount {
                unit: UnitId { unit, .. },
                tally,
                source,
                mirrored,
                signature,
                ..
            } => {
                let (by, signature) = self.author(source, *signature, &mut entries);
                let (unit, thirds, kernel) = (*unit, tally.thirds(), source.kernel.clone());
                let mirrored = *mirrored;
                entries.push(LogEntry::Recount { unit, thirds, mirrored, kernel, by, signature });
            }
            CampaignEvent::SpotCheck {
                unit: UnitId { unit, .. },
                sub_ranges,
                sums,
                source,
                agrees,
                signature,
                ..
            } => {
                let (by, signature) = self.author(source, *signature, &mut entries);
                entries.push(LogEntry::SpotCheck {
                    unit: *unit,
                    sub_ranges: *sub_ranges,
                    sums: sums.clone(),
                    agrees: *agrees,
                    kernel: source.kernel.clone(),
                    by,
                    signature,
                });
            }
            CampaignEvent::UnitVoided { unit: UnitId { unit, .. }, .. } => {
                let voided = self.results.as_mut().and_then(|results| results.remove(*unit));
                if let Some(InForce { entry: result, .. }) = voided {
                    self.result_changed(*unit, self.size);
                    entries.push(LogEntry::Void { unit: *unit, result });
                }
            }
            // Units that were set aside have no result.
            CampaignEvent::UnitPoisoned { .. } | CampaignEvent::UnitRevived { .. } => {}
            // Not of a job.
            CampaignEvent::WorkerSeen { .. }
            | CampaignEvent::WorkerQuarantined { .. }
            | CampaignEvent::WorkerReleased { .. }
            | CampaignEvent::WorkerDrained { .. }
            | CampaignEvent::Note { .. } => {}
        }
        self.size += entries.len() as u64;
        entries
    }

    /// Returns the author of a result, and the signature if it is published. Adds an entry with the
    /// author's key if that is new.
    fn author(
        &mut self,
        source: &Source,
        signature: Option<ResultSignature>,
        entries: &mut Vec<LogEntry>,
    ) -> (Author, Option<ResultSignature>) {
        if source.owner == COORDINATOR {
            return (Author::Coordinator, None);
        }
        if is_guest(&source.worker) {
            return (Author::Guest, None);
        }
        // In ledgers of earlier versions each worker is its own owner.
        let owner = if source.owner.is_empty() { &source.worker } else { &source.owner };
        let next = self.owners.len() as u64 + 1;
        let owner = *self.owners.entry(owner.clone()).or_insert(next);
        let (Some(key), Some(_)) = (self.keys.get(&source.worker).copied(), signature) else {
            return (Author::Owner(owner), None);
        };
        let new = self.size + entries.len() as u64;
        let signer = *self.signers.entry((key, owner)).or_insert(new);
        if signer == new {
            entries.push(LogEntry::Signer { owner, key });
        }
        (Author::Signer(signer), signature)
    }
}
