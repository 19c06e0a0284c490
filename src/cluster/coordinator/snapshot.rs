//! Snapshots of a coordinator: the state of its ledger, its campaign and what it shows, all after
//! the same entry. With the last snapshot, a start reads only the entries after it.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contributions::Contributions;
use super::event_log::PastEvents;
use super::job_info::Jobs;
use super::timelines::Timelines;
use crate::cluster::campaign::Campaign;
use crate::cluster::ledger::CampaignFile;
use crate::cluster::protocol::BUILD;
use crate::cluster::storage::{SnapshotError, SnapshotFile};

/// The program that wrote a snapshot. Others do not read it, because they may draw other conclusions
/// from the entries.
const PROGRAM: (&str, Option<&str>) = (BUILD, option_env!("NQUEENS_COMMIT"));

/// The names of states.
const OF_PROGRAM: &str = "program";
const OF_COORDINATOR: &str = "coordinator";

/// What a coordinator shows about its jobs.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    pub(super) jobs: &'a Jobs,
    pub(super) timelines: &'a Timelines,
    pub(super) contributions: &'a Contributions,
    pub(super) past: &'a PastEvents,
}

/// The same, as it is read.
#[derive(Default, Deserialize)]
pub(super) struct ShownBefore {
    pub(super) jobs: Jobs,
    pub(super) timelines: Timelines,
    pub(super) contributions: Contributions,
    pub(super) past: PastEvents,
}

/// Opens the snapshot at a path. Returns `None` if there is none of this program.
pub(super) fn open(path: &Path) -> Result<Option<Arc<SnapshotFile>>, SnapshotError> {
    let Some(file) = SnapshotFile::open(path)? else { return Ok(None) };
    let (build, commit): (String, Option<String>) = file.state(OF_PROGRAM)?;
    Ok(((&build[..], commit.as_deref()) == PROGRAM).then(|| Arc::new(file)))
}

/// Reads what the coordinator showed.
pub(super) fn read_shown(snapshot: &SnapshotFile) -> Result<ShownBefore, SnapshotError> {
    let mut shown: ShownBefore = snapshot.state(OF_COORDINATOR)?;
    shown.contributions.complete();
    Ok(shown)
}

/// Replaces a snapshot, with which ledger and campaign then continue.
pub(super) fn replace(
    snapshot: &Arc<SnapshotFile>,
    ledger: &mut CampaignFile,
    campaign: &mut Campaign,
    shown: &Shown<'_>,
) -> Result<(), SnapshotError> {
    snapshot.replace(|writer| {
        writer.state(OF_PROGRAM, &PROGRAM)?;
        ledger.write(writer)?;
        campaign.write(writer)?;
        writer.state(OF_COORDINATOR, shown)
    })?;
    ledger.continue_with(snapshot);
    campaign.continue_with(snapshot);
    Ok(())
}
