//! Who counted, and how far that is believed.

use std::collections::{HashMap, HashSet};

use super::WorkerName;
use super::settings::Settings;

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The worker.
    pub worker: WorkerName,
    /// The kernel.
    pub kernel: String,
    /// The device: of the worker, with its driver.
    pub device: String,
    /// The program's version.
    pub build: String,
}

/// The record of a source.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Units that it counted first.
    counted: u64,
    /// Units of these that were confirmed.
    confirmed: u64,
}

/// All sources, as numbers, and what is known of them.
#[derive(Debug, Default)]
pub(super) struct Trust {
    sources: Vec<Source>,
    numbers: HashMap<Source, u32>,
    records: Vec<Record>,
    quarantined: HashMap<WorkerName, String>,
}

impl Trust {
    /// The number of a source.
    pub(super) fn number(&mut self, source: &Source) -> u32 {
        if let Some(&number) = self.numbers.get(source) {
            return number;
        }
        // There are far fewer than 2^32 sources.
        let number = self.sources.len() as u32;
        self.sources.push(source.clone());
        self.records.push(Record::default());
        self.numbers.insert(source.clone(), number);
        number
    }

    pub(super) fn source(&self, number: u32) -> &Source {
        &self.sources[number as usize]
    }

    /// The numbers of the sources of a worker.
    pub(super) fn of_worker(&self, worker: &str) -> HashSet<u32> {
        (0..).zip(&self.sources).filter(|(_, source)| source.worker == worker).map(|(n, _)| n).collect()
    }

    /// Notes that a source counted a unit; the probability with which that is to be counted again.
    pub(super) fn counted(&mut self, number: u32, settings: &Settings) -> f64 {
        let record = &mut self.records[number as usize];
        record.counted += 1;
        if record.counted <= settings.full_check || record.confirmed < settings.full_check {
            return 1.0;
        }
        (1.0 / record.confirmed as f64).max(settings.least_check)
    }

    /// Whether enough units of some source of a worker were confirmed that not all of them are counted again.
    pub(super) fn is_proven(&self, worker: &str, settings: &Settings) -> bool {
        let records = self.sources.iter().zip(&self.records);
        records
            .into_iter()
            .any(|(source, record)| source.worker == worker && record.confirmed >= settings.full_check)
    }

    /// Notes that a unit of a source was confirmed.
    pub(super) fn confirmed(&mut self, number: u32) {
        self.records[number as usize].confirmed += 1;
    }

    pub(super) fn quarantine(&mut self, worker: &str, reason: &str) {
        self.quarantined.entry(worker.to_owned()).or_insert_with(|| reason.to_owned());
    }

    pub(super) fn release(&mut self, worker: &str) {
        self.quarantined.remove(worker);
        for (source, record) in self.sources.iter().zip(&mut self.records) {
            if source.worker == worker {
                *record = Record::default();
            }
        }
    }

    pub(super) fn is_quarantined(&self, worker: &str) -> bool {
        self.quarantined.contains_key(worker)
    }

    /// Workers in quarantine, with the reason.
    pub(super) const fn quarantined(&self) -> &HashMap<WorkerName, String> {
        &self.quarantined
    }
}
