//! Snapshots of a coordinator: the state of its ledger, its campaign and what it shows, all after
//! the same entry. With the last snapshot, a start reads only the entries after it.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contributions::Contributions;
use super::event_log::PastEvents;
use super::job_info::Jobs;
use super::timelines::Timelines;
use crate::cluster::campaign::{Campaign, Settings};
use crate::cluster::ledger::CampaignFile;
use crate::cluster::protocol::BUILD;
use crate::cluster::storage::{SnapshotError, SnapshotFile};

/// Must be increased when the states change, or the conclusions that are drawn from entries.
const FORMAT: u32 = 1;

/// The names of states.
const OF_PROGRAM: &str = "program";
const OF_COORDINATOR: &str = "coordinator";

/// Describes the program and the settings with which a snapshot was written. With others, it is not
/// read, because they may lead to other conclusions from the same entries.
fn program(settings: &Settings) -> String {
    let commit = option_env!("NQUEENS_COMMIT").unwrap_or("unknown");
    format!("format {FORMAT}, nqueens {BUILD}, commit {commit}, {settings:?}")
}

/// The state that a coordinator shows to operators.
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

/// Opens the snapshot at a path. Returns `None` if there is none of this program with these
/// settings.
pub(super) fn open(
    path: &Path,
    settings: &Settings,
) -> Result<Option<Arc<SnapshotFile>>, SnapshotError> {
    let Some(file) = SnapshotFile::open(path)? else { return Ok(None) };
    let written_by: String = file.state(OF_PROGRAM)?;
    if written_by != program(settings) {
        tracing::info!("the snapshot was written with another program or other settings");
        return Ok(None);
    }
    Ok(Some(Arc::new(file)))
}

/// Reads the state that the coordinator showed.
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
    (shown, settings): (&Shown<'_>, &Settings),
) -> Result<(), SnapshotError> {
    snapshot.replace(|writer| {
        writer.state(OF_PROGRAM, &program(settings))?;
        ledger.write(writer)?;
        campaign.write(writer)?;
        writer.state(OF_COORDINATOR, shown)
    })?;
    ledger.continue_with(snapshot);
    campaign.continue_with(snapshot);
    Ok(())
}
