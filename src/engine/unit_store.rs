//! The storage of a count's finished units: in memory, or in a checkpoint.

use super::count::CountError;
use crate::checkpoint::{Checkpoint, CheckpointError, CompletedUnits, EnterError, FinishedUnit};

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
                    checkpoint.dispute(unit)?;
                    return Err(CheckpointError::Disputed { path, unit }.into());
                }
                outcome => outcome?,
            },
        }
        Ok(())
    }

    /// Removes finished units, from the checkpoint as well if there is one.
    pub(super) fn void(&mut self, units: &[u64]) -> Result<(), CountError> {
        match self {
            Self::InMemory(completed) => units.iter().for_each(|&unit| completed.reopen(unit)),
            Self::OnDisk(checkpoint) => checkpoint.void(units)?,
        }
        Ok(())
    }
}
