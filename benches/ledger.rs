//! The speed of the ledger: the units made durable per second for several batch sizes; the time and
//! the memory to open and load a ledger of many units. `cargo bench --bench ledger [UNITS
//! [FOLDER]]`; the folder should be on the disk to be measured.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{CampaignEvent, Source, UnitId};
use nqueens::cluster::ledger::{CampaignFile, Entry, check, show};
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Residues, Tally};

const SECONDS: f64 = 3.0;

fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn submitted(units: u64) -> (JobHash, Entry) {
    let problem = Problem::empty(Piece::Queen, 24);
    let job =
        Job::new(problem, Scheme::CentreCross, None, 64).expect("a board that can be counted");
    let at_ms = 1_790_000_000_000;
    let event = CampaignEvent::submission(&job, units, 0, "bench", at_ms);
    (job.hash(), Entry::new(event, at_ms))
}

fn done(job: JobHash, unit: u64) -> Entry {
    let completions = unit.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let mut tally = Tally::default();
    tally.add(24, completions, Residues::of(completions.into()), completions.into()).expect("fits");
    let worker = format!("worker-{:04}.example.org", unit % 1000);
    let [owner, kernel, device, build] = ["", "avx512", "cpu", "0.1.0"].map(str::to_owned);
    let event = CampaignEvent::UnitDone {
        unit: UnitId { job, unit },
        tally,
        source: Source { worker, owner, kernel, device, build },
        attempt: 1,
        elapsed_s: 60.0 + (unit % 100) as f64 / 7.0,
        checks: None,
        sub_sums: Vec::new(),
        signature: None,
    };
    Entry::new(event, 1_790_000_000_000 + unit)
}

/// Creates a ledger with one job.
fn begin(path: &Path, units: u64) -> (CampaignFile, JobHash) {
    let mut file = CampaignFile::open(path).expect("a new file");
    let (job, entry) = submitted(units);
    file.append(&[entry]).expect("a new job");
    (file, job)
}

/// Returns the peak memory of this process in MiB, on Linux.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? / 1024)
}

fn remove(path: &Path) {
    for ending in ["", "-wal", "-shm", ".lock"] {
        let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
    }
}

fn completions(folder: &Path, batch: u64) {
    let path = folder.join(format!("ledger-bench-{}-{batch}", std::process::id()));
    let (mut file, job) = begin(&path, u64::MAX);
    let start = Instant::now();
    let (mut unit, mut worst) = (0, 0.0f64);
    while start.elapsed().as_secs_f64() < SECONDS {
        let entries: Vec<Entry> = (unit..unit + batch).map(|unit| done(job, unit)).collect();
        let before = Instant::now();
        file.append(&entries).expect("the disk works");
        worst = worst.max(before.elapsed().as_secs_f64());
        unit += batch;
    }
    let elapsed = start.elapsed().as_secs_f64();
    let (rate, commits) = (unit as f64 / elapsed, (unit / batch) as f64 / elapsed);
    say(&format!(
        "batches of {batch:>4}: {rate:>7.0} units/s, {commits:>5.0} commits/s, slowest {:.1} ms",
        1e3 * worst
    ));
    drop(file);
    remove(&path);
}

/// Writes a ledger of this many units, which another process will load.
fn fill(path: &Path, units: u64) {
    let (mut file, job) = begin(path, units);
    for from in (0..units).step_by(10_000) {
        let entries: Vec<Entry> =
            (from..units.min(from + 10_000)).map(|unit| done(job, unit)).collect();
        file.append(&entries).expect("the disk works");
    }
}

/// Loads a ledger, in a process of its own, so that its peak memory is that of loading.
fn load(path: &Path) {
    let start = Instant::now();
    let file = CampaignFile::open(path).expect("sound");
    let opened = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut units = 0u64;
    let mut visit =
        |entry: Entry| units += u64::from(matches!(entry.event, CampaignEvent::UnitDone { .. }));
    file.visit_entries(&mut visit).expect("sound");
    let loaded = start.elapsed().as_secs_f64();
    let peak = peak_mib().map_or("unknown".to_owned(), |mib| format!("{mib} MiB"));
    say(&format!(
        "{units} units: opened in {opened:.2} s, loaded in {loaded:.2} s, peak memory {peak}"
    ));
}

fn main() {
    // Cargo passes --bench to every bench, and --test if it only checks that they run.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if arguments.iter().any(|a| a == "--test") {
        return;
    }
    if let [word, path] = arguments.as_slice()
        && word == "load"
    {
        return load(Path::new(path));
    }
    let units = arguments.first().and_then(|units| units.parse().ok()).unwrap_or(1_000_000);
    let folder = arguments.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for batch in [1, 10, 100, 1000] {
        completions(&folder, batch);
    }
    let path = folder.join(format!("ledger-bench-{}-long", std::process::id()));
    let start = Instant::now();
    fill(&path, units);
    let length = std::fs::metadata(&path).expect("there").len() / (1 << 20);
    say(&format!("{units} units written in {:.1} s, {length} MiB", start.elapsed().as_secs_f64()));
    let program = std::env::current_exe().expect("this program");
    let status = std::process::Command::new(program).arg("load").arg(&path).status();
    assert!(status.is_ok_and(|status| status.success()), "loading failed");
    let start = Instant::now();
    show(&path).expect("sound");
    let shown = start.elapsed().as_secs_f64();
    let start = Instant::now();
    assert!(check(&path).expect("sound").sound);
    say(&format!("shown in {shown:.3} s, checked in {:.2} s", start.elapsed().as_secs_f64()));
    remove(&path);
}
