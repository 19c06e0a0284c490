//! The ledger of a count on a batch system: the same as a coordinator's, so that the same commands
//! show, check and publish it.

use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use super::merge::{MergedResults, Recounts};
use super::plan_file::PlanFile;
use super::signatures::{PartSignatures, SignatureError};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::cluster::campaign::{COORDINATOR, CampaignEvent, CheckPlan, JobState, Source, UnitId};
use crate::cluster::ledger::{CampaignFile, Entry, LedgerError};
use crate::tally::Tally;

/// The number of entries of a transaction.
const BATCH: usize = 4096;

/// The name of whoever merges results, as a submitter and as a worker.
const MERGE: &str = "merge";

/// The reason that results cannot be written to a ledger.
#[derive(Debug, thiserror::Error)]
pub enum BatchLedgerError {
    /// A part is not signed.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A result of a part cannot be read.
    #[error(transparent)]
    Result(#[from] CheckpointError),
    /// A unit has no signature that verifies.
    #[error("the signature of unit {1} in {path} does not match its result", path = .0.display())]
    Unsigned(PathBuf, u64),
    /// The ledger cannot be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The entries that are not written yet.
struct Writer {
    file: CampaignFile,
    entries: Vec<Entry>,
    now_ms: u64,
}

impl Writer {
    fn add(&mut self, event: CampaignEvent) -> Result<(), LedgerError> {
        self.entries.push(Entry::new(event, self.now_ms));
        if self.entries.len() < BATCH { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), LedgerError> {
        self.file.append(&std::mem::take(&mut self.entries))
    }
}

/// Writes merged results as a new ledger at `path`, with the signatures of their parts and with the
/// recounts that agree. `now_ms` is the time in ms since 1970.
///
/// # Errors
/// A part is not signed, or the ledger cannot be written; it is then not complete and must be
/// removed.
pub fn write_ledger(
    plan: &PlanFile,
    merged: &MergedResults,
    recounts: &Recounts,
    path: &Path,
    now_ms: u64,
) -> Result<(), BatchLedgerError> {
    let job = plan.job().hash();
    let units = plan.decomposition().units();
    let mut writer = Writer { file: CampaignFile::open(path)?, entries: Vec::new(), now_ms };
    writer.add(CampaignEvent::submission(plan.job(), units, 0, MERGE, now_ms))?;
    let build = env!("CARGO_PKG_VERSION").to_owned();
    let mut written = vec![false; usize::try_from(units).unwrap_or(usize::MAX)];
    for result in merged.paths() {
        let signatures = PartSignatures::read(plan, result)?;
        // A key identifies a worker, and nothing else is known of it.
        let worker = format!("key-{}", HEXLOWER.encode(&signatures.key.to_bytes()[..8]));
        let (owner, key) = (worker.clone(), Some(signatures.key));
        writer.add(CampaignEvent::WorkerSeen { worker: worker.clone(), owner, key })?;
        let source = Source {
            owner: worker.clone(),
            worker,
            kernel: signatures.kernel.clone(),
            device: signatures.devices.join(", "),
            build: build.clone(),
        };
        let file = Checkpoint::read(result)?;
        let mut results: Vec<(u64, &Tally)> = file.completed().finished().collect();
        results.sort_unstable_by_key(|(unit, _)| *unit);
        for (unit, tally) in results {
            let signature = signatures.verified(job, unit, tally);
            if signature.is_none() {
                return Err(BatchLedgerError::Unsigned(result.clone(), unit));
            }
            // An earlier file may have it as well.
            let is_written = written.get_mut(unit as usize);
            if is_written.is_none_or(|is_written| std::mem::replace(is_written, true)) {
                continue;
            }
            writer.add(CampaignEvent::UnitDone {
                unit: UnitId { job, unit },
                tally: *tally,
                source: source.clone(),
                attempt: 1,
                elapsed_s: 0.0,
                checks: Some(CheckPlan::default()),
                sub_sums: Vec::new(),
                signature,
            })?;
        }
    }
    for &(unit, tally) in &recounts.agree {
        let (worker, owner) = (format!("({MERGE})"), COORDINATOR.to_owned());
        let (kernel, device) = (recounts.kernel.clone(), "cpu".to_owned());
        writer.add(CampaignEvent::Recount {
            unit: UnitId { job, unit },
            tally,
            source: Source { worker, owner, kernel, device, build: build.clone() },
            mirrored: true,
            agrees: true,
            elapsed_s: 0.0,
            signature: None,
        })?;
    }
    writer.add(CampaignEvent::JobState { job, state: JobState::Finished })?;
    Ok(writer.write()?)
}
