//! The state of a job that follows from the entries of its log, and the rules for the next entry.

use std::collections::HashMap;
use std::sync::Arc;

use crate::audit::log::WrongEntry;
use crate::cluster::campaign::{JobState, ResultKey};
use crate::decomposition::{Decomposition, DecompositionCache, Job, JobHash};
use crate::transparency::entry::{Author, Claim, FORMAT, LogEntry};
use crate::transparency::units::{InForce, UnitResults};

/// The reason why an entry is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongReason {
    /// The bytes are no entry of this version.
    #[error("it is not an entry of a log of this version")]
    Form,
    /// The tree has another hash for the entry.
    #[error("it was changed: the tree that was signed has another hash for it")]
    Hash,
    /// The log does not begin with its job, or has a second one.
    #[error("the job must be the first entry, and only that")]
    Place,
    /// The text is not that of the job, or the log is of another job.
    #[error("its text is not that of the job {0}")]
    JobText(JobHash),
    /// The units cannot be derived from the text of the job.
    #[error("the job cannot be counted: {0}")]
    Job(String),
    /// The job has another number of units.
    #[error("it states {stated} units, but the job has {actual}")]
    Units {
        /// The stated number.
        stated: u64,
        /// The number that follows from the text of the job.
        actual: u64,
    },
    /// The job has no such unit.
    #[error("the job has {0} units only")]
    NoSuchUnit(u64),
    /// The unit already has a result.
    #[error("it is counted twice: it has a result in entry {0}, which was not taken back")]
    Twice(u64),
    /// The unit has no result that could be checked or taken back.
    #[error("it has no result that could be checked or taken back")]
    NoResult,
    /// Another result is in force than the one that is taken back.
    #[error("it takes back entry {stated}, but the result in force is entry {actual}")]
    AnotherResult {
        /// The entry that is taken back.
        stated: u64,
        /// The entry in force.
        actual: u64,
    },
    /// The author is no entry with a key.
    #[error("entry {0} is not the key of its author")]
    Stranger(u64),
    /// The result of a signer is not signed, or that of another author is.
    #[error("a result is signed if and only if its author has a key")]
    Unsigned,
    /// The signature does not match.
    #[error("its signature is not one of its author (entry {0})")]
    Signature(u64),
    /// The sums do not belong together.
    #[error("its sums do not match its sub-ranges")]
    Sums,
    /// The sum of all units is too large.
    #[error("the sum of all units is too large")]
    Overflow,
    /// The job is finished although a unit has no result.
    #[error("the job is finished, but unit {unit} has no result ({open} units have none)")]
    Open {
        /// The first of them.
        unit: u64,
        /// The number of units without a result.
        open: u64,
    },
    /// The total is not the sum of the units.
    #[error("it states {stated} solutions, but the sum of the units is {actual}")]
    Total {
        /// The stated number.
        stated: String,
        /// The sum of the units.
        actual: String,
    },
}

/// Everybody of whom a result counts as one: the coordinator, all guests, or an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Party(u64);

impl Party {
    const COORDINATOR: Self = Self(1);
    const GUESTS: Self = Self(2);

    const fn owner(number: u64) -> Self {
        // No log has that many owners.
        Self(number.saturating_add(3))
    }
}

/// For each unit with a result its party, whether it is signed, and whether another party has
/// confirmed it. Units without a result are zero, and take no memory before they are used.
#[derive(Debug)]
struct Records(Vec<u64>);

impl Records {
    const CONFIRMED: u64 = 1;
    const SIGNED: u64 = 2;

    fn set(&mut self, unit: u64, party: Party, signed: bool) {
        self.0[unit as usize] = party.0 << 2 | if signed { Self::SIGNED } else { 0 };
    }

    fn party(&self, unit: u64) -> Party {
        Party(self.0[unit as usize] >> 2)
    }

    /// Marks a unit as confirmed. Returns false if it was.
    fn confirm(&mut self, unit: u64) -> bool {
        let before = self.0[unit as usize];
        self.0[unit as usize] |= Self::CONFIRMED;
        before & Self::CONFIRMED == 0
    }

    /// Removes the record of a unit. Returns whether its result was signed, and confirmed.
    fn remove(&mut self, unit: u64) -> (bool, bool) {
        let before = std::mem::take(&mut self.0[unit as usize]);
        (before & Self::SIGNED != 0, before & Self::CONFIRMED != 0)
    }
}

/// The state of a log.
#[derive(Debug)]
pub struct LogState {
    hash: JobHash,
    decomposition: Arc<Decomposition>,
    results: UnitResults,
    records: Records,
    /// The number of units whose result in force another party has confirmed as a whole.
    confirmed: u64,
    /// The keys with the numbers of their owners, by entry.
    signers: HashMap<u64, (ResultKey, u64)>,
    /// The number of units whose result in force is signed.
    signed: u64,
    state: JobState,
    /// The largest result in force so far, in thirds of a solution.
    largest: u128,
    /// The number of recounts and spot checks.
    checks: u64,
    voided: u64,
}

impl LogState {
    /// Creates the state after the first entry of the log of a job.
    ///
    /// # Errors
    /// The entry is wrong.
    pub fn new(job: JobHash, first: &LogEntry) -> Result<Self, WrongReason> {
        let LogEntry::Job { format, job: stated, text, units, .. } = first else {
            return Err(WrongReason::Place);
        };
        if *format != FORMAT {
            return Err(WrongReason::Form);
        }
        let parsed: Result<Job, _> = text.parse();
        if *stated != job || parsed.map(|parsed| parsed.hash()) != Ok(job) {
            return Err(WrongReason::JobText(job));
        }
        let decomposition = DecompositionCache::default().get(job, Some(text), false);
        let decomposition = decomposition.map_err(WrongReason::Job)?;
        let actual = decomposition.units();
        let results = UnitResults::new(*units).filter(|_| actual == *units);
        let results = results.ok_or(WrongReason::Units { stated: *units, actual })?;
        let all = usize::try_from(actual).unwrap_or(usize::MAX);
        Ok(Self {
            hash: job,
            decomposition,
            results,
            records: Records(vec![0; all]),
            confirmed: 0,
            signers: HashMap::new(),
            signed: 0,
            state: JobState::Running,
            largest: 0,
            checks: 0,
            voided: 0,
        })
    }

    /// Applies the next entry.
    ///
    /// # Errors
    /// The entry is wrong. The state must then not be used.
    pub fn apply(&mut self, number: u64, entry: &LogEntry) -> Result<(), WrongEntry> {
        let wrong = |reason| WrongEntry { entry: number, unit: entry.unit(), reason };
        self.try_apply(number, entry).map_err(wrong)
    }

    fn try_apply(&mut self, number: u64, entry: &LogEntry) -> Result<(), WrongReason> {
        if let Some(unit) = entry.unit()
            && unit >= self.results.units()
        {
            return Err(WrongReason::NoSuchUnit(self.results.units()));
        }
        let party = match entry.claim(self.hash) {
            Some(claim) => self.party(&claim)?,
            None => Party(0),
        };
        match entry {
            LogEntry::Job { .. } => return Err(WrongReason::Place),
            LogEntry::Signer { owner, key } => {
                self.signers.insert(number, (*key, *owner));
            }
            LogEntry::Result { unit, thirds, by, .. } => {
                if let Some(result) = self.results.get(*unit) {
                    return Err(WrongReason::Twice(result.entry));
                }
                if !self.results.set(*unit, InForce { entry: number, thirds: *thirds }) {
                    return Err(WrongReason::Overflow);
                }
                let signed = matches!(by, Author::Signer(_));
                self.records.set(*unit, party, signed);
                self.signed += u64::from(signed);
                self.largest = self.largest.max(*thirds);
                // The coordinator counts a unit itself only to decide a dispute, and then twice.
                if party == Party::COORDINATOR {
                    self.confirm(*unit);
                }
            }
            LogEntry::Recount { unit, thirds, .. } => {
                let result = self.results.get(*unit).ok_or(WrongReason::NoResult)?;
                self.checks += 1;
                let is_another = party != self.records.party(*unit) && party != Party::GUESTS;
                if result.thirds == *thirds && is_another {
                    self.confirm(*unit);
                }
            }
            LogEntry::SpotCheck { unit, sub_ranges, sums, .. } => {
                self.results.get(*unit).ok_or(WrongReason::NoResult)?;
                if sub_ranges.len() != sums.len() || sums.is_empty() {
                    return Err(WrongReason::Sums);
                }
                self.checks += 1;
            }
            LogEntry::Void { unit, result: stated } => {
                let result = self.results.remove(*unit).ok_or(WrongReason::NoResult)?;
                if result.entry != *stated {
                    let (stated, actual) = (*stated, result.entry);
                    return Err(WrongReason::AnotherResult { stated, actual });
                }
                let (signed, confirmed) = self.records.remove(*unit);
                self.signed -= u64::from(signed);
                self.confirmed -= u64::from(confirmed);
                self.voided += 1;
                // A job whose results are taken back is counted again.
                self.state = JobState::Running;
            }
            LogEntry::State { state, solutions, .. } => {
                if *state == JobState::Finished {
                    self.check_total(solutions.as_deref())?;
                }
                self.state = *state;
            }
        }
        Ok(())
    }

    fn confirm(&mut self, unit: u64) {
        self.confirmed += u64::from(self.records.confirm(unit));
    }

    /// Returns the party of a claim, after checking its signature.
    fn party(&self, claim: &Claim<'_>) -> Result<Party, WrongReason> {
        let Claim { statement, by, signature } = claim;
        let Author::Signer(entry) = *by else {
            return match (by, signature) {
                (_, Some(_)) => Err(WrongReason::Unsigned),
                (Author::Owner(owner), None) => Ok(Party::owner(*owner)),
                (Author::Guest, None) => Ok(Party::GUESTS),
                (Author::Coordinator | Author::Signer(_), None) => Ok(Party::COORDINATOR),
            };
        };
        let (key, owner) = self.signers.get(&entry).ok_or(WrongReason::Stranger(entry))?;
        let signature = signature.ok_or(WrongReason::Unsigned)?;
        match key.has_signed(statement, &signature) {
            true => Ok(Party::owner(*owner)),
            false => Err(WrongReason::Signature(entry)),
        }
    }

    /// Checks the total of a job that is finished.
    fn check_total(&self, stated: Option<&str>) -> Result<(), WrongReason> {
        if let Some(unit) = self.results.first_open() {
            let open = self.results.units() - self.results.counted();
            return Err(WrongReason::Open { unit, open });
        }
        let (thirds, stated) = (self.results.total(), stated.unwrap_or("no"));
        let actual = thirds / 3;
        if thirds % 3 == 0 && actual.to_string() == stated {
            return Ok(());
        }
        let thirds = if thirds % 3 == 0 { String::new() } else { format!(" and {}/3", thirds % 3) };
        Err(WrongReason::Total { stated: stated.to_owned(), actual: format!("{actual}{thirds}") })
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        self.decomposition.job()
    }

    /// Returns the units of the job.
    pub fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Returns the results in force.
    pub const fn results(&self) -> &UnitResults {
        &self.results
    }

    /// Returns the state of the job.
    pub const fn state(&self) -> JobState {
        self.state
    }

    /// Returns the number of units whose result in force is signed by its author.
    pub const fn signed(&self) -> u64 {
        self.signed
    }

    /// Returns the number of units whose result in force was confirmed as a whole by another owner
    /// or by the coordinator.
    pub const fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Returns the numbers of keys and of their owners.
    pub fn signers(&self) -> (usize, usize) {
        let mut owners: Vec<u64> = self.signers.values().map(|(_, owner)| *owner).collect();
        owners.sort_unstable();
        owners.dedup();
        (self.signers.len(), owners.len())
    }

    /// Returns the number of recounts and spot checks, and that of results that were taken back.
    pub const fn checks(&self) -> (u64, u64) {
        (self.checks, self.voided)
    }

    /// Returns the largest result of a unit, in thirds of a solution.
    pub const fn largest(&self) -> u128 {
        self.largest
    }
}
