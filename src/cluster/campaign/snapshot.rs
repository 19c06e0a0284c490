//! Snapshots of a campaign: all that follows from the events that were applied. Leases and what
//! workers reported about themselves are volatile and not part of it.

use std::path::PathBuf;
use std::sync::Arc;

use super::key::CampaignKey;
use super::settings::Settings;
use super::state::Campaign;
use crate::cluster::storage::{SnapshotError, SnapshotFile, SnapshotWriter};

/// The name of the campaign's state in a snapshot.
const NAME: &str = "campaign";

impl Campaign {
    /// Writes the campaign to a snapshot. Once this is durable, [`Self::continue_with`] must be
    /// called.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write(&mut self, snapshot: &mut SnapshotWriter<'_>) -> Result<(), SnapshotError> {
        for job in self.jobs.values_mut() {
            job.units.write_changed(snapshot)?;
        }
        let Self { jobs, reputation, keys, drained, .. } = self;
        snapshot.state(NAME, &(jobs, reputation, keys, drained))
    }

    /// Continues with a snapshot to which the campaign was written and not changed since.
    pub fn continue_with(&mut self, snapshot: &Arc<SnapshotFile>) {
        for job in self.jobs.values_mut() {
            job.units.continue_with(snapshot);
        }
    }

    /// Creates the campaign of a snapshot, to which later events can be applied: as
    /// [`Campaign::new`] with [`Campaign::with_folder`] and the events before the snapshot.
    ///
    /// # Errors
    /// Returns an error if the snapshot cannot be read.
    pub fn restore(
        settings: Settings,
        epoch: u64,
        key: CampaignKey,
        folder: Option<PathBuf>,
        snapshot: &Arc<SnapshotFile>,
    ) -> Result<Self, SnapshotError> {
        let mut campaign = Self::new(settings, epoch, key);
        (campaign.jobs, campaign.reputation, campaign.keys, campaign.drained) =
            snapshot.state(NAME)?;
        for job in campaign.jobs.values_mut() {
            job.units.complete(folder.clone(), snapshot);
        }
        campaign.reputation.complete();
        campaign.folder = folder;
        Ok(campaign)
    }
}
