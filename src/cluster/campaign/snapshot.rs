//! Snapshots of a campaign: all that follows from the events that were applied. Leases and what
//! workers reported about themselves are volatile and not part of it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::WorkerName;
use super::job::Job;
use super::key::CampaignKey;
use super::reputation::Reputation;
use super::settings::Settings;
use super::signed_result::ResultKey;
use super::state::Campaign;
use crate::cluster::storage::{SnapshotError, SnapshotFile, SnapshotWriter};
use crate::decomposition::JobHash;

/// The name of the campaign's state in a snapshot.
const NAME: &str = "campaign";

/// The state of a campaign, as it is written.
#[derive(Serialize)]
struct Written<'a> {
    jobs: &'a HashMap<JobHash, Job>,
    reputation: &'a Reputation,
    keys: &'a HashMap<WorkerName, Vec<ResultKey>>,
    drained: &'a BTreeMap<WorkerName, u64>,
}

/// The same, as it is read.
#[derive(Deserialize)]
struct Read {
    jobs: HashMap<JobHash, Job>,
    reputation: Reputation,
    keys: HashMap<WorkerName, Vec<ResultKey>>,
    drained: BTreeMap<WorkerName, u64>,
}

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
        snapshot.state(NAME, &Written { jobs, reputation, keys, drained })
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
        let Read { mut jobs, mut reputation, keys, drained } = snapshot.state(NAME)?;
        for job in jobs.values_mut() {
            job.units.complete(folder.clone(), snapshot);
        }
        reputation.complete();
        let mut campaign = Self::new(settings, epoch, key);
        (campaign.folder, campaign.jobs, campaign.reputation) = (folder, jobs, reputation);
        (campaign.keys, campaign.drained) = (keys, drained);
        Ok(campaign)
    }
}
