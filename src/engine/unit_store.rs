//! The storage of a count's finished units: in memory, or in a checkpoint, which has the partial
//! results of others as well.

use super::count::CountError;
use super::session_results::SessionResults;
use crate::checkpoint::{
    Checkpoint, CheckpointError, CompletedUnits, EnterError, FinishedUnit, PartialUnits,
};

/// The storage of finished units.
#[derive(Debug)]
pub(super) enum UnitStore {
    InMemory(CompletedUnits),
    OnDisk(Box<Checkpoint>),
}

impl UnitStore {
    /// Returns the finished units.
    pub(super) fn completed(&self) -> &CompletedUnits {
        match self {
            Self::InMemory(completed) => completed,
            Self::OnDisk(checkpoint) => checkpoint.completed(),
        }
    }

    /// Returns the partial results in the checkpoint, if there is one.
    pub(super) const fn partial(&self) -> Option<&PartialUnits> {
        match self {
            Self::InMemory(_) => None,
            Self::OnDisk(checkpoint) => Some(checkpoint.partial()),
        }
    }

    /// Writes the partial results that are due to the checkpoint, if there is one.
    pub(super) fn record_partial(
        &mut self,
        results: &SessionResults,
        stopping: bool,
    ) -> Result<(), CountError> {
        if let Self::OnDisk(checkpoint) = self {
            checkpoint.append_partial(&results.due(checkpoint.partial(), stopping))?;
        }
        Ok(())
    }

    /// Records finished units. With a checkpoint they are written to disk before they are accepted.
    pub(super) fn record(&mut self, units: &[FinishedUnit]) -> Result<(), CountError> {
        match self {
            Self::InMemory(completed) => {
                units.iter().try_for_each(|f| completed.enter(f.unit, &f.tally).map(drop))?
            }
            Self::OnDisk(checkpoint) => match checkpoint.append(units) {
                // It is unknown which of the two results is correct. The checkpoint marks the unit
                // as disputed, so that neither is accepted when it is used again.
                Err(CheckpointError::Refused { source: EnterError::Conflict(unit), path }) => {
                    checkpoint.void(&[unit])?;
                    return Err(CheckpointError::Disputed { path, unit }.into());
                }
                outcome => outcome?,
            },
        }
        Ok(())
    }

    /// Removes all results of units, from the checkpoint as well if there is one.
    pub(super) fn void(&mut self, units: &[u64]) -> Result<(), CountError> {
        match self {
            Self::InMemory(completed) => units.iter().for_each(|&unit| completed.reopen(unit)),
            Self::OnDisk(checkpoint) => checkpoint.void(units)?,
        }
        Ok(())
    }
}
