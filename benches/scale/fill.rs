//! A campaign whose units are all counted and confirmed, each by two of many volunteers: its
//! memory, its snapshots and its restart, and the time of a quarantine.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    Campaign, CampaignEvent, CampaignKey, CheckPlan, Depth, Settings, UnitId,
};
use nqueens::cluster::storage::SnapshotFile;
use nqueens::decomposition::{Job, Scheme};

use crate::load::elsewhere;
use crate::measure::memory_mib;
use crate::world::{correct_sums, source, tally_of};

const VOLUNTEERS: u64 = 100_000;

/// The number of units that are counted before a unit is confirmed.
const PENDING: usize = 300_000;

/// The number of the volunteer that counted or confirmed a unit: the first ones have counted most.
fn volunteer(unit: u64, what: u64) -> String {
    let bits = (unit * 2 + what).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    let share = bits as f64 / (1u64 << 53) as f64;
    format!("volunteer-{:07}", (VOLUNTEERS as f64).powf(share) as u64 * 2 + what)
}

/// Returns the event of a unit that the volunteer of unit `of` has counted.
fn counted(unit: UnitId, of: u64) -> CampaignEvent {
    let (tally, _) = tally_of(&correct_sums(unit.unit));
    let worker = volunteer(of, 0);
    CampaignEvent::UnitDone {
        unit,
        tally,
        source: source(&worker, &worker),
        attempt: 1,
        elapsed_s: 1000.0,
        checks: Some(CheckPlan { peer: Some(Depth::Full), audit: None }),
        sub_sums: Vec::new(),
        signature: None,
    }
}

/// Writes two snapshots, the second one after some more events, and restarts from it in another
/// process.
fn restart(campaign: &mut Campaign, path: &Path, job: &Job, units: u64) {
    let snapshot = Arc::new(SnapshotFile::create(path).expect("there is room"));
    for which in ["first", "second"] {
        let began = Instant::now();
        snapshot.replace(|writer| campaign.write(writer)).expect("there is room");
        campaign.continue_with(&snapshot);
        println!(
            "{which} snapshot in {:.1} s, {} MiB, {} MiB at most so far",
            began.elapsed().as_secs_f64(),
            std::fs::metadata(path).map_or(0, |file| file.len() >> 20),
            memory_mib("VmHWM").unwrap_or_default()
        );
        // 100,000 more of the last units.
        let unit = |number| UnitId { job: job.hash(), unit: units - 1 - number };
        for number in 0..units.min(50_000) {
            campaign
                .apply(&CampaignEvent::UnitVoided { unit: unit(number), reason: String::new() });
            campaign.apply(&counted(unit(number), number));
        }
    }
    elsewhere("restore", path);
    SnapshotFile::remove(path).expect("it can be removed");
}

/// Restores the campaign of a snapshot.
pub(crate) fn restore(path: &Path) {
    let began = Instant::now();
    let snapshot = SnapshotFile::open(path).expect("a snapshot").expect("it is there");
    let key = CampaignKey::from_seed(28);
    let folder = path.parent().map(Path::to_owned);
    let campaign = Campaign::restore(Settings::default(), 2, key, folder, &Arc::new(snapshot));
    let campaign = campaign.expect("a campaign");
    let job = campaign.jobs().next().expect("a job");
    let progress = campaign.progress(&job).expect("a job");
    println!(
        "restored in {:.1} s, {} MiB at most: {} units done, {} confirmed",
        began.elapsed().as_secs_f64(),
        memory_mib("VmHWM").unwrap_or_default(),
        progress.done,
        progress.checked
    );
}

/// Applies the events of a job of this many units, with a folder for temporary files or without.
pub(crate) fn fill(units: u64, folder: Option<PathBuf>) {
    let snapshot = folder.as_ref().map(|folder| folder.join("scale.snapshot"));
    let job = Job::new(Problem::empty(Piece::Queen, 28), Scheme::CentreCross, None, 64);
    let job = job.expect("a board");
    let mut campaign = Campaign::new(Settings::default(), 1, CampaignKey::from_seed(28));
    if let Some(folder) = folder {
        campaign = campaign.with_folder(folder);
    }
    campaign.apply(&CampaignEvent::submission(&job, units, 0, "bench", 0));
    let began = Instant::now();
    let mut pending = VecDeque::new();
    for unit in 0..units {
        let id = UnitId { job: job.hash(), unit };
        campaign.apply(&counted(id, unit));
        let (tally, _) = tally_of(&correct_sums(unit));
        pending.push_back((id, tally));
        if (unit + 1).is_multiple_of(units / 10) {
            println!(
                "{:>11} units counted after {:>6.1} s, {} MiB",
                unit + 1,
                began.elapsed().as_secs_f64(),
                memory_mib("VmRSS").unwrap_or_default()
            );
        }
        let is_last = unit + 1 == units;
        while pending.len() > PENDING || is_last {
            let Some((unit, tally)) = pending.pop_front() else { break };
            let worker = volunteer(unit.unit, 1);
            let (mirrored, agrees) = (true, true);
            let source = source(&worker, &worker);
            let elapsed_s = 1000.0;
            campaign.apply(&CampaignEvent::Recount {
                unit,
                tally,
                source,
                mirrored,
                agrees,
                elapsed_s,
                signature: None,
            });
        }
    }
    println!(
        "all confirmed after {:.1} s, {} MiB",
        began.elapsed().as_secs_f64(),
        memory_mib("VmRSS").unwrap_or_default()
    );
    if let Some(path) = snapshot {
        restart(&mut campaign, &path, &job, units);
    }
    // One that has counted few units, and one that has counted many.
    for number in [2 * (VOLUNTEERS - 10), 2] {
        let worker = format!("volunteer-{number:07}");
        let counted = campaign.records().get(&worker).map_or(0, |record| record.units);
        let began = Instant::now();
        let events = campaign.quarantine(&worker, "its result is wrong", true);
        events.iter().for_each(|event| campaign.apply(event));
        println!(
            "quarantine of a volunteer with {counted} units: {:.3} s, {} MiB at most so far",
            began.elapsed().as_secs_f64(),
            memory_mib("VmHWM").unwrap_or_default()
        );
    }
}
