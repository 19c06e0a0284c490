//! Merging of the results of parts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::plan_file::PlanFile;
use crate::checkpoint::{Checkpoint, CheckpointError, CompletedUnits, EnterError, ReadOnlyBytes};
use crate::decomposition::JobHash;
use crate::engine::JobPart;
use crate::kernel::{KernelError, KernelKind, count_parts};
use crate::tally::{Tally, TallyError};

/// The file extension of a completely counted part.
pub(super) const DONE: &str = "run";

/// Returns the path of the result of part `index` of a plan, in a folder of results.
pub fn result_file(folder: &Path, plan: &PlanFile, index: u64) -> PathBuf {
    let digits = (plan.parts().get() - 1).to_string().len();
    folder.join(format!("part-{index:0digits$}-of-{}.{DONE}", plan.parts()))
}

/// Returns the path of the same part while it is being counted.
pub fn unfinished_file(folder: &Path, plan: &PlanFile, index: u64) -> PathBuf {
    result_file(folder, plan, index).with_extension("unfinished")
}

/// Returns whether the file at `path` has all units of a part of a plan.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn is_whole(path: &Path, plan: &PlanFile, part: JobPart) -> Result<bool, CheckpointError> {
    let file = Checkpoint::read(path)?;
    let whole = || !file.completed().missing().any(|unit| part.has(unit));
    Ok(file.job().is_some_and(|job| job.hash() == plan.job().hash()) && whole())
}

/// The merged results.
#[derive(Debug)]
pub struct MergedResults {
    /// The number of files read.
    pub files: usize,
    /// The parts with missing units, each with the number of these.
    pub gaps: BTreeMap<u64, u64>,
    /// Files with conflicting content, each with a description.
    pub conflicts: Vec<(PathBuf, String)>,
    completed: CompletedUnits,
    paths: Vec<PathBuf>,
}

/// Units that were counted again as mirror images.
#[derive(Clone, Debug, Default)]
pub struct Recounts {
    /// The kernel.
    pub kernel: String,
    /// Units whose result was confirmed, with the tally of the mirror image.
    pub agree: Vec<(u64, Tally)>,
    /// Units whose results differ.
    pub differ: Vec<u64>,
}

/// The error returned when results cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The folder cannot be read.
    #[error("{path} cannot be read: {1}", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// A file cannot be read or trusted.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl MergedResults {
    /// Adds up all results in `folder`, which is not changed, so the operation is idempotent.
    ///
    /// # Errors
    /// The folder or a file in it cannot be read, or is damaged.
    pub fn read(plan: &PlanFile, folder: &Path) -> Result<Self, MergeError> {
        let unread = |error| MergeError::Folder(folder.to_owned(), error);
        let entries = fs::read_dir(folder).map_err(unread)?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>().map_err(unread)?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == DONE));
        paths.sort();
        let units = plan.decomposition().units();
        let mut merged = Self {
            files: paths.len(),
            gaps: BTreeMap::new(),
            conflicts: Vec::new(),
            completed: CompletedUnits::new(units),
            paths: Vec::new(),
        };
        for path in paths {
            match merged.add(plan.job().hash(), &Checkpoint::read(&path)?) {
                Ok(()) => merged.paths.push(path),
                Err(why) => merged.conflicts.push((path, why)),
            }
        }
        for unit in merged.completed.missing() {
            *merged.gaps.entry(unit % plan.parts()).or_default() += 1;
        }
        Ok(merged)
    }

    fn add(&mut self, wanted: JobHash, file: &Checkpoint<ReadOnlyBytes>) -> Result<(), String> {
        let found = file.job().ok_or("it is empty")?;
        if found.hash() != wanted {
            return Err(format!("it belongs to another job ({found})"));
        }
        for (unit, tally) in file.completed().finished() {
            self.completed.enter(unit, tally).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Returns the files that were merged, sorted.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns the number of counted units.
    pub fn done(&self) -> u64 {
        self.completed.done()
    }

    /// Returns the sum of all units.
    ///
    /// # Errors
    /// Units are missing.
    pub fn total(&self) -> Result<&Tally, EnterError> {
        self.completed.total()
    }

    /// Counts the mirror images of `units` on this machine, and compares.
    ///
    /// # Errors
    /// The kernel cannot count them, or a tally disagrees with its residues.
    pub fn recount(
        &self,
        plan: &PlanFile,
        units: &[u64],
        mut done: impl FnMut(usize),
    ) -> Result<Recounts, RecountError> {
        let image = plan.decomposition().mirrored();
        let piece = plan.job().problem().piece();
        let kind = KernelKind::fastest_for(plan.job().scheme(), piece);
        let mut kernel = kind.build(piece)?;
        let mut recounts = Recounts { kernel: kind.to_string(), ..Recounts::default() };
        for (number, &unit) in units.iter().enumerate() {
            let counted = count_parts(&mut *kernel, &image, image.unit(unit))?.total()?;
            let entered = self.completed.result(unit);
            if entered.is_some_and(|tally| tally.thirds() == counted.thirds()) {
                recounts.agree.push((unit, counted));
            } else {
                recounts.differ.push(unit);
            }
            done(number + 1);
        }
        Ok(recounts)
    }
}

/// The error returned when a recount fails.
#[derive(Debug, thiserror::Error)]
pub enum RecountError {
    /// The kernel cannot count the job.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A sum failed validation.
    #[error(transparent)]
    Tally(#[from] TallyError),
}
