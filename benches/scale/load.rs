//! A restart of the coordinator: the ledger is opened, checked and applied, from its beginning or
//! from a snapshot.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nqueens::cluster::campaign::{Campaign, CampaignKey, Settings};
use nqueens::cluster::ledger::CampaignFile;
use nqueens::cluster::storage::SnapshotFile;

use crate::measure::memory_mib;

const KEY: u64 = 1;

fn snapshot_path(ledger: &Path) -> PathBuf {
    ledger.with_extension("snapshot")
}

/// Opens a ledger as a coordinator does without a snapshot.
fn open(path: &Path) -> (CampaignFile, Campaign) {
    let file = CampaignFile::open(path).expect("a sound ledger");
    let campaign = Campaign::new(Settings::default(), 1, CampaignKey::from_seed(KEY));
    (file, path.parent().map(Path::to_owned).into_iter().fold(campaign, Campaign::with_folder))
}

fn apply_rest(file: &CampaignFile, campaign: &mut Campaign) {
    for (worker, owner) in file.owners() {
        campaign.register_owner(worker, owner);
    }
    file.visit_entries(&mut |entry| campaign.apply(&entry.event)).expect("a sound ledger");
}

fn report(what: &str, began: Instant, file: &CampaignFile) {
    println!(
        "{what} {:.1} s, {} entries, {} MiB at most",
        began.elapsed().as_secs_f64(),
        file.entries(),
        memory_mib("VmHWM").unwrap_or_default()
    );
}

/// Loads a ledger without a snapshot.
pub(crate) fn load(path: &Path) {
    let began = Instant::now();
    let (file, mut campaign) = open(path);
    apply_rest(&file, &mut campaign);
    report("restart   ", began, &file);
}

/// Writes a snapshot of a ledger.
pub(crate) fn write_snapshot(path: &Path) {
    let (mut file, mut campaign) = open(path);
    apply_rest(&file, &mut campaign);
    let began = Instant::now();
    let snapshot = SnapshotFile::create(&snapshot_path(path)).expect("there is room");
    snapshot
        .replace(|writer| {
            file.write(writer)?;
            campaign.write(writer)
        })
        .expect("there is room");
    let snapshot = Arc::new(snapshot);
    file.continue_with(&snapshot);
    campaign.continue_with(&snapshot);
    let mib = std::fs::metadata(snapshot_path(path)).map_or(0, |file| file.len() >> 20);
    report(&format!("snapshot of {mib} MiB in"), began, &file);
}

/// Loads a ledger from its snapshot.
pub(crate) fn load_after_snapshot(path: &Path) {
    let began = Instant::now();
    let snapshot = SnapshotFile::open(&snapshot_path(path)).expect("a snapshot");
    let snapshot = Arc::new(snapshot.expect("it is there"));
    let file = CampaignFile::open_with(path, &snapshot).expect("a sound ledger");
    let (settings, key) = (Settings::default(), CampaignKey::from_seed(KEY));
    let folder = path.parent().map(Path::to_owned);
    let campaign = Campaign::restore(settings, 2, key, folder, &snapshot);
    let mut campaign = campaign.expect("a campaign");
    apply_rest(&file, &mut campaign);
    report("restart from the snapshot", began, &file);
}

/// Does `what` with a file in another process, so that its memory is that of this alone.
pub(crate) fn elsewhere(what: &str, path: &Path) {
    let program = std::env::current_exe().expect("this program");
    let status = std::process::Command::new(program).arg(what).arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "it failed: {what}");
}
