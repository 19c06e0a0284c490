//! A restart of the coordinator: the ledger is opened, checked and applied.

use std::path::Path;
use std::time::Instant;

use nqueens::cluster::campaign::{Campaign, CampaignKey, Settings};
use nqueens::cluster::ledger::CampaignFile;

use crate::measure::memory_mib;

/// Loads a ledger as a coordinator does.
pub(crate) fn load(path: &Path) {
    let began = Instant::now();
    let file = CampaignFile::open(path).expect("a sound ledger");
    let opened = began.elapsed();
    let mut campaign = Campaign::new(Settings::default(), 1, CampaignKey::from_seed(1));
    for (worker, owner) in file.owners() {
        campaign.register_owner(worker, owner);
    }
    file.visit_entries(&mut |entry| campaign.apply(&entry.event)).expect("a sound ledger");
    println!(
        "restart    {:.1} s ({:.1} s to open the ledger), {} entries, {} MiB at most",
        began.elapsed().as_secs_f64(),
        opened.as_secs_f64(),
        file.entries(),
        memory_mib("VmHWM").unwrap_or_default()
    );
}

/// Loads a ledger in another process, so that its memory is that of loading.
pub(crate) fn load_elsewhere(path: &Path) {
    let program = std::env::current_exe().expect("this program");
    let status = std::process::Command::new(program).arg("load").arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "loading failed");
}
