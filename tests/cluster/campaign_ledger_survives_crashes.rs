//! The ledger of a campaign keeps what it acknowledged, and rejects everything that differs from
//! what was written.
//!
//! A failing test prints its seed; `NQUEENS_TEST_SEED` replays it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use fastrand::Rng;
use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    CampaignEvent, CheckPlan, Depth, JobState, ResultKey, Source, SubRangeSet, UnitId,
};
use nqueens::cluster::ledger::{
    CampaignFile, Entry, InvalidEntry, JobTotals, LedgerCorruption, LedgerError, check, export,
    show,
};
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Residues, Tally};
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A seed that is printed if the test fails.
struct Seed(u64);

impl Seed {
    fn new() -> Self {
        let given = std::env::var("NQUEENS_TEST_SEED").ok();
        Self(
            given.map_or_else(
                || fastrand::u64(..),
                |seed| seed.parse().expect("a seed is a number"),
            ),
        )
    }

    fn rng(&self) -> Rng {
        Rng::with_seed(self.0)
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(io::stderr(), "replay with NQUEENS_TEST_SEED={}", self.0);
        }
    }
}

/// A temporary folder, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("nqueens-ledger-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("campaign")
    }

    fn text(&self) -> String {
        self.file().to_str().expect("a readable path").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

/// The bytes of the files of a ledger.
#[derive(Clone, PartialEq)]
struct Image {
    main: Vec<u8>,
    journal: Option<Vec<u8>>,
    mark: Option<Vec<u8>>,
}

impl Image {
    fn of(path: &Path) -> Self {
        Self {
            main: fs::read(path).expect("there is a ledger"),
            journal: fs::read(with_suffix(path, "-wal")).ok(),
            mark: fs::read(with_suffix(path, ".lock")).ok(),
        }
    }

    fn put(&self, path: &Path) {
        fs::write(path, &self.main).expect("there is room");
        let _ = fs::remove_file(with_suffix(path, "-shm"));
        for (ending, bytes) in [("-wal", &self.journal), (".lock", &self.mark)] {
            match bytes {
                Some(bytes) => fs::write(with_suffix(path, ending), bytes).expect("there is room"),
                None => drop(fs::remove_file(with_suffix(path, ending))),
            }
        }
    }
}

fn job(n: usize) -> Job {
    Job::new(Problem::empty(Piece::Queen, n), Scheme::CentreCross, None, 10).expect("a small board")
}

const UNITS: u64 = 24;

/// The hashes of the jobs that histories are about. The last one is never submitted.
static JOBS: LazyLock<Vec<JobHash>> = LazyLock::new(|| (8..12).map(|n| job(n).hash()).collect());

fn submitted(n: usize) -> Entry {
    let (at_ms, someone) = (1_700_000_000_000, "someone \"with\" quotes, ünïcode and \u{0}");
    Entry::new(CampaignEvent::submission(&job(n), UNITS, -3, someone, at_ms), at_ms)
}

/// A tally in whole solutions.
fn tally(solutions: u128) -> Tally {
    let mut tally = Tally::default();
    tally.add(3, solutions, Residues::of(solutions), 1 << 40).expect("fits");
    tally
}

fn source(worker: &str, owner: &str, kernel: &str, device: &str) -> Source {
    let [worker, owner, kernel, device, build] =
        [worker, owner, kernel, device, "0.1.0"].map(str::to_owned);
    Source { worker, owner, kernel, device, build }
}

fn done_with(job: JobHash, unit: u64, tally: Tally, elapsed_s: f64) -> Entry {
    let owner = if unit.is_multiple_of(2) { "" } else { &format!("owner-{}", unit % 3) };
    let event = CampaignEvent::UnitDone {
        unit: UnitId { job, unit },
        tally,
        source: source(&format!("worker-{}", unit % 5), owner, "avx512", "cpu"),
        attempt: 1,
        elapsed_s,
        checks: match unit % 3 {
            0 => None,
            1 => Some(CheckPlan::default()),
            _ => Some(CheckPlan { peer: Some(Depth::Spot), audit: Some(Depth::Full) }),
        },
        // As thirds, none of which fits in a JSON number.
        sub_sums: if unit % 3 == 2 { vec![tally.thirds(), 0] } else { Vec::new() },
        signature: None,
    };
    Entry::new(event, u64::MAX)
}

fn done(job: JobHash, unit: u64, solutions: u128) -> Entry {
    done_with(job, unit, tally(solutions), 0.1 + unit as f64 / 7.0)
}

fn voided(job: JobHash, unit: u64) -> Entry {
    let (unit, reason) = (UnitId { job, unit }, "quarantined".into());
    Entry::new(CampaignEvent::UnitVoided { unit, reason }, 5)
}

fn poisoned(job: JobHash, unit: u64) -> Entry {
    let (unit, reason) = (UnitId { job, unit }, "failed five times".into());
    Entry::new(CampaignEvent::UnitPoisoned { unit, reason }, 6)
}

fn recount(job: JobHash, unit: u64, solutions: u128, agrees: bool) -> Entry {
    let event = CampaignEvent::Recount {
        unit: UnitId { job, unit },
        tally: tally(solutions),
        source: source("other", "another", "wgsl", "vulkan"),
        mirrored: true,
        agrees,
        elapsed_s: 0.5,
        signature: None,
    };
    Entry::new(event, 9)
}

fn spot_check(job: JobHash, unit: u64, sum: u128, agrees: bool) -> Entry {
    let event = CampaignEvent::SpotCheck {
        unit: UnitId { job, unit },
        sub_ranges: SubRangeSet::from_numbers([0, 31]).expect("two of 32"),
        sums: vec![sum, u128::MAX],
        source: source("other", "another", "wgsl", "vulkan"),
        agrees,
        elapsed_s: 0.25,
        signature: None,
    };
    Entry::new(event, 10)
}

fn state(job: JobHash, state: JobState) -> Entry {
    Entry::new(CampaignEvent::JobState { job, state }, 77)
}

/// The plainest model of a ledger: it goes through the whole history again for each question.
#[derive(Clone, Default)]
struct Model(Vec<Entry>);

impl Model {
    /// Returns the current result of a unit and its position.
    fn result(&self, job: JobHash, unit: u64) -> Option<(usize, &Tally)> {
        let mut found = None;
        for (place, entry) in self.0.iter().enumerate() {
            match &entry.event {
                CampaignEvent::UnitDone { unit: u, tally, .. } if *u == UnitId { job, unit } => {
                    found = Some((place, tally));
                }
                CampaignEvent::UnitVoided { unit: u, .. } if *u == UnitId { job, unit } => {
                    found = None;
                }
                _ => {}
            }
        }
        found
    }

    fn is_submitted(&self, hash: JobHash) -> bool {
        self.0
            .iter()
            .any(|e| matches!(e.event, CampaignEvent::JobSubmitted { job, .. } if job == hash))
    }

    fn accepts(&self, entry: &Entry) -> bool {
        let Some(job) = entry.event.job() else { return true };
        if self.is_submitted(job) == matches!(entry.event, CampaignEvent::JobSubmitted { .. }) {
            return false;
        }
        let result = |unit: &UnitId| self.result(unit.job, unit.unit);
        match &entry.event {
            CampaignEvent::UnitDone { unit, tally, .. } => {
                unit.unit < UNITS && result(unit).is_none() && tally.verify().is_ok()
            }
            CampaignEvent::Recount { unit, tally, agrees, .. } => {
                result(unit).is_some_and(|(_, d)| (d.thirds() == tally.thirds()) == *agrees)
            }
            CampaignEvent::SpotCheck { unit, .. } | CampaignEvent::UnitVoided { unit, .. } => {
                result(unit).is_some()
            }
            CampaignEvent::UnitPoisoned { unit, .. } => unit.unit < UNITS && result(unit).is_none(),
            CampaignEvent::UnitRevived { unit } => unit.unit < UNITS,
            CampaignEvent::JobState { state, .. } => {
                *state != JobState::Finished || (0..UNITS).all(|u| self.result(job, u).is_some())
            }
            _ => true,
        }
    }

    fn is_poisoned(&self, job: JobHash, unit: u64) -> bool {
        let mut poisoned = false;
        for entry in &self.0 {
            match &entry.event {
                CampaignEvent::UnitPoisoned { unit: u, .. } if *u == UnitId { job, unit } => {
                    poisoned = true;
                }
                CampaignEvent::UnitDone { unit: u, .. }
                | CampaignEvent::UnitRevived { unit: u }
                    if *u == UnitId { job, unit } =>
                {
                    poisoned = false;
                }
                _ => {}
            }
        }
        poisoned
    }

    fn totals(&self, job: JobHash) -> JobTotals {
        let mut totals = JobTotals::default();
        for unit in 0..UNITS {
            if let Some((place, tally)) = self.result(job, unit) {
                totals.tally.merge(tally).expect("fits");
                totals.done += 1;
                let agreed = |e: &Entry| matches!(e.event, CampaignEvent::Recount { unit: u, agrees: true, .. } if u == UnitId { job, unit });
                totals.verified += u64::from(self.0[place..].iter().any(agreed));
            }
            totals.poisoned += u64::from(self.is_poisoned(job, unit));
        }
        for entry in self.0.iter().filter(|e| e.event.job() == Some(job)) {
            match entry.event {
                CampaignEvent::Recount { agrees, .. } | CampaignEvent::SpotCheck { agrees, .. } => {
                    totals.recounts += 1;
                    totals.disagreements += u64::from(!agrees);
                }
                CampaignEvent::UnitVoided { .. } => totals.voided += 1,
                _ => {}
            }
        }
        totals
    }

    fn state(&self, job: JobHash) -> JobState {
        let of_job = self.0.iter().filter(|e| e.event.job() == Some(job));
        of_job.fold(JobState::Running, |before, entry| match entry.event {
            CampaignEvent::JobState { state, .. } => state,
            CampaignEvent::UnitVoided { .. } if before == JobState::Finished => JobState::Running,
            _ => before,
        })
    }

    /// Asserts that the file holds exactly the entries and sums of this model.
    fn assert_is(&self, file: &mut CampaignFile) {
        assert_eq!(file.entries(), self.0.len() as u64);
        assert_eq!(contents(file).expect("reads back"), self.0);
        let submissions = self.0.iter().filter_map(|entry| match entry.event {
            CampaignEvent::JobSubmitted { job, .. } => Some((job, entry.at_ms)),
            _ => None,
        });
        let jobs = file.jobs().map(|record| (record.submission.job, record.submission.at_ms));
        assert!(jobs.eq(submissions));
        for record in file.jobs() {
            let hash = record.submission.job;
            assert_eq!(record.totals, self.totals(hash));
            assert_eq!(file.totals(&hash), Some(record.totals));
            assert_eq!(record.state, self.state(hash));
            assert_eq!(file.job(&hash), Some(record));
        }
        let mut owners = BTreeMap::new();
        for entry in &self.0 {
            if let CampaignEvent::WorkerSeen { worker, owner, .. } = &entry.event {
                owners.insert(&worker[..], &owner[..]);
            }
        }
        assert!(file.owners().eq(owners));
    }
}

fn contents(file: &mut CampaignFile) -> Result<Vec<Entry>, LedgerError> {
    let mut all = Vec::new();
    file.visit_entries(&mut |entry| all.push(entry))?;
    Ok(all)
}

/// Returns a random entry. With `wild`, it may also be an invalid one.
fn random_entry(rng: &mut Rng, model: &Model, wild: bool) -> Entry {
    let job = JOBS[rng.usize(..if wild { 4 } else { 3 })];
    let unit = rng.u64(..UNITS + u64::from(wild));
    let bits = rng.u32(1..100);
    let solutions = rng.u128(..1 << bits);
    let worker = format!("worker-{}", rng.u8(..4));
    let at_ms = rng.u64(..);
    let at = |event| Entry::new(event, at_ms);
    match rng.u8(..if wild { 22 } else { 20 }) {
        0..=9 => done(job, unit, solutions),
        10..=12 => {
            let same = model.result(job, unit).map(|(_, tally)| tally.thirds() / 3);
            let agrees = rng.u8(..4) > 0;
            match same {
                Some(same) if agrees => recount(job, unit, same, true),
                _ => recount(job, unit, solutions, wild && rng.bool()),
            }
        }
        13 if rng.bool() => spot_check(job, unit, rng.u128(..), rng.u8(..4) > 0),
        13 => voided(job, unit),
        14 => poisoned(job, unit),
        15 => at(CampaignEvent::UnitRevived { unit: UnitId { job, unit } }),
        16 if rng.bool() => at(CampaignEvent::WorkerDrained { worker, boot: rng.u64(..) }),
        16 => {
            let key = rng.bool().then(|| ResultKey::from_bytes([rng.u8(..); 32]));
            let owner = format!("owner-{}", rng.u8(..3));
            at(CampaignEvent::WorkerSeen { worker, owner, key })
        }
        17 => {
            let (reason, widen) = ("it lied".into(), rng.bool());
            at(CampaignEvent::WorkerQuarantined { worker, reason, widen })
        }
        18 => at(CampaignEvent::WorkerReleased { worker }),
        19 => at(CampaignEvent::Note { text: "x".repeat(rng.usize(..9000) / rng.usize(1..100)) }),
        20 => submitted(8 + rng.usize(..3)),
        _ => {
            let states =
                [JobState::Running, JobState::Paused, JobState::Cancelled, JobState::Finished];
            state(job, states[rng.usize(..4)])
        }
    }
}

/// Returns a random valid history in batches.
fn random_history(seed: u64, batches: usize, most: usize) -> Vec<Vec<Entry>> {
    let mut rng = Rng::with_seed(seed);
    let mut model = Model::default();
    let mut all = vec![vec![submitted(8), submitted(9), submitted(10)]];
    model.0.extend(all[0].clone());
    while all.len() < batches {
        let mut batch = Vec::new();
        for _ in 0..rng.usize(1..=most) {
            let entry = random_entry(&mut rng, &model, false);
            if model.accepts(&entry) {
                model.0.push(entry.clone());
                batch.push(entry);
            }
        }
        if !batch.is_empty() {
            all.push(batch);
        }
    }
    all
}

fn model_of(batches: &[Vec<Entry>]) -> Model {
    Model(batches.concat())
}

/// The number of batches of ledgers without blocks, and of ledgers with one block or two.
const FEW: usize = 12;
const MANY: usize = 90;

/// Creates a ledger with a history of so many batches. Returns its files while it is open, with the
/// journal, and after it was closed, and its contents.
fn images(scratch: &Scratch, seed: u64, batches: usize) -> (Image, Image, Vec<Entry>) {
    let path = scratch.file();
    let mut file = CampaignFile::open(&path).expect("a new file");
    let history = random_history(seed, batches, 12);
    let entries: usize = history.iter().map(Vec::len).sum();
    assert!(batches == FEW && entries < 256 || batches == MANY && entries > 256, "{entries}");
    for batch in &history {
        file.append(batch).expect("valid entries");
    }
    model_of(&history).assert_is(&mut file);
    let contents = contents(&mut file).expect("reads back");
    let open = Image::of(&path);
    assert!(open.journal.as_ref().is_some_and(|journal| journal.len() > 10_000));
    drop(file);
    let closed = Image::of(&path);
    assert_eq!(closed.journal, None);
    (open, closed, contents)
}

/// Asserts that the files yield exactly these contents, or are refused with one line and left
/// unchanged. Returns whether they were refused.
fn is_refused_or_unchanged(image: &Image, path: &Path, expected: &[Entry], case: &str) -> bool {
    image.put(path);
    let read = CampaignFile::open(path).and_then(|mut file| contents(&mut file));
    match read {
        Ok(found) => {
            assert_eq!(found, expected, "{case} was accepted");
            false
        }
        Err(
            error @ (LedgerError::InUse(_)
            | LedgerError::Io { .. }
            | LedgerError::InvalidEntry { .. }),
        ) => {
            panic!("{case}: unexpected error: {error}")
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n'), "{case}: {message}");
            let left = Image::of(path);
            assert!(left.main == image.main, "{case}: the file was changed: {message}");
            assert!(
                left.journal.unwrap_or_default() == image.journal.clone().unwrap_or_default(),
                "{case}: the journal was changed: {message}"
            );
            true
        }
    }
}

// ---------------------------------------------------------------- crashes

/// Returns a command that runs a test of this program in a child process. Such a test does nothing
/// unless it is given a path.
fn child(test: &str, path: &Path, seed: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    // Tests are named by their module below the crate.
    let (_, module) = module_path!().split_once("::").expect("a module of the crate");
    command.args(["--exact", &format!("{module}::{test}"), "--nocapture", "--test-threads=1"]);
    command.env("NQUEENS_LEDGER_CHILD", path).env("NQUEENS_LEDGER_SEED", seed.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// Returns the path and the seed given to a child process; `None` in the parent.
fn child_task() -> Option<(PathBuf, u64)> {
    let path = std::env::var_os("NQUEENS_LEDGER_CHILD")?;
    let seed = std::env::var("NQUEENS_LEDGER_SEED").ok()?.parse().ok()?;
    Some((path.into(), seed))
}

fn print_line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

const BATCHES: usize = 1500;

#[test]
fn child_that_writes_until_it_is_killed() {
    let Some((path, seed)) = child_task() else { return };
    let history = random_history(seed, BATCHES, 9);
    print_line("\nready");
    let mut file = CampaignFile::open(&path).expect("sound after every kill");
    let committed = batches_in(&history, file.entries()).expect("whole batches only");
    for (number, batch) in history.iter().enumerate().skip(committed) {
        file.append(batch).expect("valid entries");
        print_line(&format!("kept {}", number + 1));
    }
}

/// Returns the number of batches with that many entries in all; `None` if they end within a batch.
fn batches_in(history: &[Vec<Entry>], entries: u64) -> Option<usize> {
    let mut sum = 0;
    let mut ends = std::iter::once(0).chain(history.iter().map(|batch| {
        sum += batch.len() as u64;
        sum
    }));
    ends.position(|end| end == entries)
}

/// Kills a writer `delay` after it reported that it is ready. Returns the number of the last batch
/// that it acknowledged.
fn run_and_kill(mut writer: Child, delay: Duration) -> usize {
    let mut lines = BufReader::new(writer.stdout.take().expect("piped")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")), "the writer did not start");
    std::thread::sleep(delay);
    writer.kill().expect("our own child process");
    writer.wait().expect("our own child process");
    let kept =
        lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("kept ")?.parse().ok());
    kept.last().unwrap_or(0)
}

#[test]
fn a_kill_at_any_moment_loses_no_acknowledged_batch_and_splits_none() {
    let seed = Seed::new();
    let mut rng = seed.rng();
    let scratch = Scratch::new("kill");
    let history = random_history(seed.0, BATCHES, 9);
    let mut acknowledged = 0;
    // The last round after which the file was checked. Each kill since then may have come between a
    // commit and its acknowledgement.
    let mut checked_at = 0;
    let mut round = 0;
    // Some batches must be acknowledged, however slow the disk is.
    while round < 40 || acknowledged <= 20 {
        round += 1;
        assert!(round < 1000, "the writers make no progress: {acknowledged}");
        let mut writer = child("child_that_writes_until_it_is_killed", &scratch.file(), seed.0);
        let magnitude = rng.u32(5..18);
        let delay = Duration::from_micros(rng.u64(..1 << magnitude));
        let kept = run_and_kill(writer.spawn().expect("this program starts"), delay);
        acknowledged = acknowledged.max(kept);
        // Sometimes the next writer finds what the kill has left, rather than this process.
        if rng.u8(..3) == 0 {
            continue;
        }
        let mut file = CampaignFile::open(&scratch.file()).expect("sound after every kill");
        let found = batches_in(&history, file.entries()).expect("whole batches only");
        let possible = acknowledged..=acknowledged + (round - checked_at);
        assert!(possible.contains(&found), "round {round}: {found}, not in {possible:?}");
        checked_at = round;
        model_of(&history[..found]).assert_is(&mut file);
        acknowledged = found;
    }
    let report = check(&scratch.file()).expect("readable");
    assert!(report.sound, "{report:?}");
}

#[test]
fn the_lock_of_a_killed_writer_is_free_and_that_of_a_running_one_is_not() {
    let seed = Seed::new();
    let scratch = Scratch::new("lock");
    let mut writer = child("child_that_writes_until_it_is_killed", &scratch.file(), seed.0);
    let mut writer = writer.spawn().expect("this program starts");
    let mut lines = BufReader::new(writer.stdout.take().expect("piped")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "kept 3")), "the writer did not start");
    let refused = CampaignFile::open(&scratch.file()).expect_err("in use");
    assert!(
        matches!(refused, LedgerError::InUse(_)) && refused.to_string().contains("another process")
    );
    // A symbolic link leads to the same ledger.
    #[cfg(unix)]
    {
        let name = scratch.0.join("link");
        std::os::unix::fs::symlink(scratch.file(), &name).expect("a link");
        assert!(matches!(CampaignFile::open(&name), Err(LedgerError::InUse(_))));
    }
    // Readers still work, and see complete batches.
    let history = random_history(seed.0, BATCHES, 9);
    for _ in 0..5 {
        let report = check(&scratch.file()).expect("readable while it is written");
        assert!(report.sound, "{report:?}");
        assert!(batches_in(&history, report.entries).is_some_and(|batches| batches >= 3));
        assert!(show(&scratch.file()).expect("readable").entries >= report.entries);
        let mut out = Vec::new();
        assert!(export(&scratch.file(), None, &mut out).expect("readable") >= report.entries);
    }
    writer.kill().expect("our own child process");
    writer.wait().expect("our own child process");
    CampaignFile::open(&scratch.file()).expect("free again");
}

// ---------------------------------------------------------------- corruption

#[test]
fn a_flipped_bit_anywhere_is_harmless_or_refused() {
    let seed = Seed::new();
    for batches in [FEW, MANY] {
        flip_bits(&seed, batches);
    }
}

fn flip_bits(seed: &Seed, batches: usize) {
    let mut rng = seed.rng();
    let scratch = Scratch::new(&format!("flip-{batches}"));
    let (open, closed, expected) = images(&scratch, seed.0, batches);
    let mut refused = 0;
    // All of SQLite's own header, and a sample of everything else.
    let header = (0..100).map(|byte| (byte, byte as u32 % 8));
    let anywhere = (0..1500).map(|_| (rng.usize(..closed.main.len()), rng.u32(..8)));
    for (position, bit) in header.chain(anywhere).collect::<Vec<_>>() {
        let mut image = closed.clone();
        image.main[position] ^= 1 << bit;
        if rng.bool() {
            image.mark = None;
        }
        let case = format!("byte {position}, bit {bit}");
        refused += usize::from(is_refused_or_unchanged(&image, &scratch.file(), &expected, &case));
    }
    // The pages whose entries were moved to blocks are free.
    let least = if batches == FEW { 500 } else { 250 };
    assert!(refused > least, "only {refused} flips of the file were seen");
    // In the journal of a killed writer: the commit mark has its length.
    let (mut refused, length) = (0, open.journal.as_ref().map_or(0, Vec::len));
    for _ in 0..1000 {
        let (position, bit) = (rng.usize(..length), rng.u32(..8));
        let mut image = open.clone();
        image.journal.as_mut().expect("a journal")[position] ^= 1 << bit;
        let case = format!("byte {position} of the journal, bit {bit}");
        refused += usize::from(is_refused_or_unchanged(&image, &scratch.file(), &expected, &case));
    }
    assert!(refused > 500, "only {refused} flips of the journal were seen");
    // In the commit mark: then it is ignored, and nothing else changes.
    let length = open.mark.as_ref().map_or(0, Vec::len);
    for position in 0..length {
        let mut image = open.clone();
        image.mark.as_mut().expect("a mark")[position] ^= 1 << rng.u32(..8);
        let case = format!("byte {position} of the mark");
        assert!(!is_refused_or_unchanged(&image, &scratch.file(), &expected, &case), "{case}");
    }
}

#[test]
fn a_file_cut_at_any_length_is_refused() {
    let seed = Seed::new();
    for batches in [FEW, MANY] {
        cut(&seed, batches);
    }
}

fn cut(seed: &Seed, batches: usize) {
    let mut rng = seed.rng();
    let scratch = Scratch::new(&format!("cut-{batches}"));
    let (open, closed, expected) = images(&scratch, seed.0, batches);
    let lengths =
        (0..closed.main.len()).step_by(512).flat_map(|length| [length, length + 1, length + 511]);
    for length in lengths.filter(|&length| length < closed.main.len()).collect::<Vec<_>>() {
        // Missing bytes are read as zeros. Where zeros were cut off, nothing is lost, and the file
        // may be accepted.
        let lost = closed.main[length..].iter().any(|&byte| byte != 0);
        for mark in [closed.mark.clone(), None] {
            let image = Image { main: closed.main[..length].to_vec(), mark, journal: None };
            let case =
                format!("{length} of {} bytes, mark {}", closed.main.len(), image.mark.is_some());
            let refused = is_refused_or_unchanged(&image, &scratch.file(), &expected, &case);
            assert!(refused || !lost, "{case}");
        }
    }
    let journal = open.journal.clone().expect("a journal");
    let mut lengths: BTreeSet<usize> = (0..journal.len()).step_by(4120 / 2).collect();
    lengths.extend((0..200).map(|_| rng.usize(..journal.len())));
    for length in lengths {
        let image = Image { journal: Some(journal[..length].to_vec()), ..open.clone() };
        let case = format!("{length} of {} bytes of the journal", journal.len());
        assert!(is_refused_or_unchanged(&image, &scratch.file(), &expected, &case), "{case}");
    }
    for (image, case) in [
        (Image { journal: None, ..open.clone() }, "no journal"),
        (Image { main: Vec::new(), ..closed.clone() }, "nothing left"),
        (Image { main: Vec::new(), mark: None, ..closed.clone() }, "nothing left, no mark"),
        (Image { main: Vec::new(), ..open.clone() }, "only a journal"),
    ] {
        assert!(is_refused_or_unchanged(&image, &scratch.file(), &expected, case), "{case}");
    }
    // A complete ledger that was moved without its commit mark is valid.
    for image in [open, closed] {
        let image = Image { mark: None, ..image };
        assert!(!is_refused_or_unchanged(&image, &scratch.file(), &expected, "no mark"));
    }
}

#[test]
fn a_missing_ledger_is_not_silently_recreated() {
    let scratch = Scratch::new("vanished");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    file.append(&[submitted(8)]).expect("a valid entry");
    drop(file);
    fs::remove_file(scratch.file()).expect("there was one");
    let refused = CampaignFile::open(&scratch.file()).expect_err("something was acknowledged");
    let lost = LedgerCorruption::Lost { acknowledged: 1, found: 0 };
    assert!(
        matches!(&refused, LedgerError::Damaged { damage, .. } if *damage == lost),
        "{refused}"
    );
    fs::remove_file(with_suffix(&scratch.file(), ".lock")).expect("there was one");
    assert_eq!(CampaignFile::open(&scratch.file()).expect("on purpose").entries(), 0);
}

/// Restores the files and changes rows with SQLite.
fn tampered(scratch: &Scratch, image: &Image, sql: &str) {
    image.put(&scratch.file());
    let connection = rusqlite::Connection::open(scratch.file()).expect("SQLite reads it");
    connection.execute_batch(sql).expect("SQLite does it");
}

#[test]
fn changed_removed_or_exchanged_rows_are_detected() {
    let seed = Seed::new();
    let scratch = Scratch::new("tampered");
    let (_, closed, expected) = images(&scratch, seed.0, FEW);
    let older = Scratch::new("tampered-older");
    let mut file = CampaignFile::open(&older.file()).expect("a new file");
    // The state before any unit was counted, so that later sums differ.
    for batch in &random_history(seed.0, 1, 12) {
        file.append(batch).expect("valid entries");
    }
    drop(file);
    let attach = format!("ATTACH '{}' AS older;", older.text());
    let old_totals =
        format!("{attach} REPLACE INTO totals SELECT * FROM older.totals WHERE submitted_by = 1");
    let old_head = format!("{attach} REPLACE INTO head SELECT * FROM older.head");
    let cases = [
        ("DELETE FROM entry WHERE number = 5", 7),
        ("DELETE FROM entry WHERE number = (SELECT max(number) FROM entry)", 7),
        (
            "UPDATE entry SET body = replace(body, 'worker-1', 'worker-2') WHERE number = 5 OR body LIKE '%worker-1%'",
            7,
        ),
        ("UPDATE entry SET number = -1 WHERE number = 4", 7),
        ("INSERT INTO entry SELECT 1000000, body, sum FROM entry WHERE number = 4", 7),
        ("DELETE FROM totals WHERE submitted_by = 2", 7),
        ("UPDATE totals SET done = done + 1 WHERE submitted_by = 2", 7),
        ("DELETE FROM head", 7),
        ("UPDATE head SET entries = entries - 1", 7),
        ("CREATE TABLE more (x)", 7),
        ("DROP TABLE totals", 7),
        ("CREATE INDEX by_body ON entry (body)", 7),
        (old_head.as_str(), 7),
        // Each row is valid by itself, but the sums disagree.
        (old_totals.as_str(), 6),
    ];
    for (sql, code) in cases {
        tampered(&scratch, &closed, sql);
        let image = Image::of(&scratch.file());
        assert!(is_refused_or_unchanged(&image, &scratch.file(), &expected, sql), "{sql}");
        image.put(&scratch.file());
        let report = check(&scratch.file()).expect("readable");
        assert!(!report.sound && report.as_written == (code == 6), "{sql}: {report:?}");
        let output = nqueens(&["ledger", "check", &scratch.text()]);
        assert_eq!(output.status.code(), Some(code), "{sql}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{sql}");
    }
    tampered(&scratch, &closed, "PRAGMA user_version = 3");
    let newer = CampaignFile::open(&scratch.file()).expect_err("of a later version");
    assert!(matches!(newer, LedgerError::Newer { found: 3, known: 2, .. }), "{newer}");
    assert!(matches!(check(&scratch.file()), Err(LedgerError::Newer { .. })));
    // An older copy of the same ledger in its place.
    let older = Image { mark: closed.mark.clone(), ..Image::of(&older.file()) };
    assert!(is_refused_or_unchanged(&older, &scratch.file(), &expected, "an older copy"));
}

#[test]
fn changed_removed_or_exchanged_blocks_are_detected() {
    let seed = Seed::new();
    let scratch = Scratch::new("tampered-blocks");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    let mut expected = vec![submitted(8)];
    expected.extend(
        (0..900).map(|number| {
            Entry::new(CampaignEvent::Note { text: format!("note {number}") }, number)
        }),
    );
    for batch in expected.chunks(50) {
        file.append(batch).expect("valid entries");
    }
    drop(file);
    let closed = Image::of(&scratch.file());
    let connection = rusqlite::Connection::open(scratch.file()).expect("SQLite reads it");
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).expect("a number")
    };
    assert_eq!((count("block"), count("entry")), (3, 901 - 768), "{}", seed.0);
    drop(connection);
    for sql in [
        "DELETE FROM block WHERE number = 0",
        "DELETE FROM block WHERE number = 2",
        "DELETE FROM block",
        "UPDATE block SET content = zeroblob(length(content)) WHERE number = 1",
        "UPDATE block SET content = substr(content, 2) WHERE number = 2",
        "UPDATE block SET number = number + 1 WHERE number = 2",
        "UPDATE block SET number = -1 WHERE number = 2",
        "INSERT INTO block SELECT 3, content, sum FROM block WHERE number = 2",
        "INSERT INTO entry SELECT 5, body, sum FROM entry WHERE number = 800",
        "DELETE FROM entry WHERE number = 769",
        "DROP TABLE block",
        "PRAGMA user_version = 1",
    ] {
        tampered(&scratch, &closed, sql);
        let image = Image::of(&scratch.file());
        assert!(is_refused_or_unchanged(&image, &scratch.file(), &expected, sql), "{sql}");
        image.put(&scratch.file());
        let report = check(&scratch.file()).expect("readable");
        assert!(!report.sound && !report.as_written, "{sql}: {report:?}");
        let output = nqueens(&["ledger", "check", &scratch.text()]);
        assert_eq!(output.status.code(), Some(7), "{sql}: {output:?}");
    }
}

#[test]
fn a_ledger_without_blocks_has_them_after_some_batches_and_the_same_entries() {
    let scratch = Scratch::new("blocks-later");
    let notes = |from: u64, to: u64| -> Vec<Entry> {
        let note = |at| Entry::new(CampaignEvent::Note { text: format!("note {at}") }, at);
        (from..to).map(note).collect()
    };
    // In rows, as earlier versions wrote them: more than one batch moves to blocks.
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    file.append(&notes(0, 3000)).expect("valid entries");
    drop(file);
    let blocks = || -> i64 {
        let connection = rusqlite::Connection::open(scratch.file()).expect("SQLite reads it");
        connection.query_row("SELECT count(*) FROM block", [], |row| row.get(0)).expect("a number")
    };
    assert_eq!(blocks(), 3000 / 256);
    let connection = rusqlite::Connection::open(scratch.file()).expect("SQLite reads it");
    let mut insert = connection.prepare("INSERT INTO entry VALUES (?1, ?2, ?3)").expect("a table");
    for (number, entry) in (1u64..).zip(&notes(0, 3000 / 256 * 256)) {
        let json = entry.to_json().expect("it can be encoded");
        let digest = Sha256::new().chain_update(b"entry").chain_update(number.to_be_bytes());
        let digest = digest.chain_update(&json).finalize();
        let row = (number.cast_signed(), json, digest[..8].to_vec());
        insert.execute(row).expect("there is room");
    }
    drop(insert);
    let version_1 = "DROP TABLE block; PRAGMA user_version = 1";
    connection.execute_batch(version_1).expect("SQLite does it");
    drop(connection);
    let mut expected = notes(0, 3000);
    for batch in 0..3u64 {
        assert_eq!(if batch == 0 { 0 } else { blocks() }, 4 * batch.cast_signed());
        let mut file = CampaignFile::open(&scratch.file()).expect("sound");
        assert_eq!(contents(&mut file).expect("reads back"), expected);
        file.append(&notes(3000 + batch, 3001 + batch)).expect("a valid entry");
        expected.extend(notes(3000 + batch, 3001 + batch));
    }
    assert_eq!(blocks(), 3000 / 256);
    assert!(check(&scratch.file()).expect("readable").sound);
    let mut out = Vec::new();
    export(&scratch.file(), None, &mut out).expect("readable");
    let lines = String::from_utf8(out).expect("text");
    for (number, (line, entry)) in (1..).zip(lines.lines().zip(&expected)) {
        let json = entry.to_json().expect("it can be encoded");
        assert_eq!(line, format!(r#"{{"number":{number},"entry":{json}}}"#));
    }
}

#[test]
fn another_ledger_in_its_place_is_detected() {
    let scratch = Scratch::new("exchanged");
    let mut images = Vec::new();
    for n in [8, 9] {
        let path = scratch.0.join(n.to_string());
        let mut file = CampaignFile::open(&path).expect("a new file");
        file.append(&[submitted(n)]).expect("a valid entry");
        drop(file);
        images.push(Image::of(&path));
    }
    let exchanged = Image { mark: images[1].mark.clone(), ..images[0].clone() };
    exchanged.put(&scratch.file());
    let refused = CampaignFile::open(&scratch.file()).expect_err("another history");
    let another = LedgerCorruption::Diverged(1);
    assert!(
        matches!(&refused, LedgerError::Damaged { damage, .. } if *damage == another),
        "{refused}"
    );
}

#[test]
fn a_file_that_is_not_a_ledger_is_refused_and_left_unchanged() {
    let scratch = Scratch::new("foreign");
    let foreign = scratch.0.join("foreign");
    let connection = rusqlite::Connection::open(&foreign).expect("a new file");
    connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").expect("works");
    drop(connection);
    let sqlite = fs::read(&foreign).expect("it exists");
    for bytes in [&b"hello\n"[..], &[0; 5000], &[0xff; 100], b"SQLite format 3\0", &sqlite] {
        let image = Image { main: bytes.to_vec(), journal: None, mark: None };
        assert!(is_refused_or_unchanged(&image, &scratch.file(), &[], "something else"));
        assert!(check(&scratch.file()).is_err() && show(&scratch.file()).is_err());
    }
    for path in [scratch.0.clone(), scratch.0.join("no/such/folder/ledger")] {
        assert!(
            matches!(CampaignFile::open(&path), Err(LedgerError::Io { .. })),
            "{}",
            path.display()
        );
    }
    assert!(check(&scratch.0.join("nothing")).is_err(), "a check makes no file");
    assert!(!scratch.0.join("nothing").exists());
}

// ---------------------------------------------------------------- validation

#[test]
fn an_invalid_entry_is_refused_with_its_whole_batch() {
    let scratch = Scratch::new("refused");
    let path = scratch.file();
    let mut file = CampaignFile::open(&path).expect("a new file");
    let (a, b) = (JOBS[0], JOBS[1]);
    let mut model = Model(vec![submitted(8), done(a, 0, 92), done(a, 1, 7), poisoned(a, 5)]);
    file.append(&model.0).expect("valid entries");
    let mut lying = tally(92);
    lying = Tally::from_parts(lying.thirds() - 3, lying.residues(), 0);
    let CampaignEvent::JobSubmitted { at_ms, .. } = submitted(9).event else { unreachable!() };
    let mut other_text = CampaignEvent::submission(&job(9), UNITS, 0, "someone", at_ms);
    if let CampaignEvent::JobSubmitted { text, .. } = &mut other_text {
        *text = job(10).to_string();
    }
    let other_text = Entry::new(other_text, at_ms);
    let lasting = |elapsed_s| done_with(a, 2, tally(1), elapsed_s);
    let unit = |unit| UnitId { job: a, unit };
    let duplicate = InvalidEntry::DuplicateUnit(unit(0));
    let not_done = |number| InvalidEntry::NotDone(unit(number));
    let no_such_unit = InvalidEntry::NoSuchUnit { unit: unit(UNITS), units: UNITS };
    let cases = [
        (vec![done(a, 0, 92)], duplicate.clone()),
        (vec![done(a, 0, 93)], duplicate.clone()),
        (vec![done(a, 3, 1), done(a, 3, 1)], InvalidEntry::DuplicateUnit(unit(3))),
        (vec![poisoned(a, 0)], duplicate),
        (vec![done(b, 0, 1)], InvalidEntry::NoSuchJob(b)),
        (vec![submitted(8)], InvalidEntry::DuplicateJob(a)),
        (vec![other_text], InvalidEntry::JobText(b)),
        (vec![done(a, UNITS, 1)], no_such_unit.clone()),
        (vec![poisoned(a, UNITS)], no_such_unit.clone()),
        (vec![recount(a, UNITS, 1, true)], no_such_unit),
        (vec![lasting(f64::NAN)], InvalidEntry::Elapsed(unit(2))),
        (vec![lasting(-1.0)], InvalidEntry::Elapsed(unit(2))),
        (vec![recount(a, 2, 1, true)], not_done(2)),
        (vec![voided(a, 2)], not_done(2)),
        (vec![voided(a, 1), voided(a, 1)], not_done(1)),
        (
            vec![recount(a, 0, 93, true)],
            InvalidEntry::Verdict { unit: unit(0), recount: 279, result: 276, agrees: true },
        ),
        (
            vec![recount(a, 0, 92, false)],
            InvalidEntry::Verdict { unit: unit(0), recount: 276, result: 276, agrees: false },
        ),
        (
            vec![state(a, JobState::Finished)],
            InvalidEntry::Unfinished { job: a, missing: UNITS - 2, units: UNITS },
        ),
    ];
    let right =
        [done(a, 9, 1), recount(a, 0, 92, true), voided(a, 1), submitted(10), done(a, 5, 4)];
    let is = |error: LedgerError, place: usize, because: &InvalidEntry| {
        assert!(!error.to_string().contains('\n'));
        matches!(&error, LedgerError::InvalidEntry { place: p, reason, .. } if *p == place && **reason == *because)
    };
    for (batch, because) in cases {
        let place = batch.len();
        let error = file.append(&batch).expect_err("may not follow");
        assert!(is(error, place, &because), "{because}");
        // The rest of the batch is undone as well.
        if place == 1 && !matches!(because, InvalidEntry::Unfinished { .. }) {
            let whole = [&right[..1], &right[1..2], &batch].concat();
            let error = file.append(&whole).expect_err("may not follow");
            assert!(is(error, 3, &because), "{because}");
        }
        model.assert_is(&mut file);
    }
    let error = file.append(&[done_with(a, 2, lying, 1.0)]).expect_err("contradicts itself");
    assert!(error.to_string().contains("disagrees with its residues"), "{error}");
    let huge = Tally::from_parts(u128::MAX, Residues::of(u128::MAX), 0);
    let error = file.append(&[done_with(a, 2, huge, 1.0)]).expect_err("leaves 128 bits");
    assert!(error.to_string().contains("128 bits"), "{error}");
    model.assert_is(&mut file);
    file.append(&right).expect("valid entries");
    model.0.extend(right);
    model.assert_is(&mut file);
    drop(file);
    model.assert_is(&mut CampaignFile::open(&path).expect("sound"));
    assert!(check(&path).expect("readable").sound);
}

#[test]
fn a_job_finishes_only_when_complete_and_reopens_when_a_result_is_voided() {
    let scratch = Scratch::new("finished");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    let a = JOBS[0];
    let mut model = Model(vec![submitted(8)]);
    model.0.extend((0..UNITS).map(|unit| done(a, unit, (1 << 90) + u128::from(unit))));
    model.0.push(state(a, JobState::Finished));
    file.append(&model.0).expect("all of it");
    model.assert_is(&mut file);
    let overview = show(&scratch.file()).expect("readable");
    let solutions =
        ((1 << 90) * u128::from(UNITS) + u128::from(UNITS * (UNITS - 1) / 2)).to_string();
    assert_eq!(overview.jobs[0].solutions.as_ref(), Some(&solutions));
    model.0.push(voided(a, 7));
    file.append(&model.0[model.0.len() - 1..]).expect("taken back");
    model.assert_is(&mut file);
    assert_eq!(show(&scratch.file()).expect("readable").jobs[0].solutions, None);
    model.0.push(done(a, 7, 11));
    file.append(&model.0[model.0.len() - 1..]).expect("another result");
    model.assert_is(&mut file);
}

#[test]
fn a_total_that_is_not_a_whole_number_finishes_no_job() {
    let scratch = Scratch::new("thirds");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    file.append(&[submitted(8)]).expect("a valid entry");
    for unit in 0..UNITS {
        let thirds = 1 + u128::from(unit == 0);
        let broken = Tally::from_parts(thirds, Residues::of(thirds), 1);
        let result = done_with(JOBS[0], unit, broken, 1.0);
        file.append(&[result]).expect("a unit may have broken thirds");
    }
    let error = file.append(&[state(JOBS[0], JobState::Finished)]).expect_err("25 thirds");
    assert!(error.to_string().contains("not a multiple of 3"), "{error}");
}

#[test]
fn a_second_writer_that_bypasses_the_lock_stops_the_first() {
    let scratch = Scratch::new("underneath");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    file.append(&[submitted(8)]).expect("a valid entry");
    fs::remove_file(with_suffix(&scratch.file(), ".lock")).expect("it exists");
    let mut second = CampaignFile::open(&scratch.file()).expect("nothing is left that shows it");
    second.append(&[done(JOBS[0], 1, 1)]).expect("a valid entry");
    let error = file.append(&[done(JOBS[0], 1, 1)]).expect_err("it is done already");
    assert!(matches!(error, LedgerError::ConcurrentWrite(_)), "{error}");
    drop(file);
    drop(second);
    assert!(check(&scratch.file()).expect("readable").sound);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_history_reads_back_as_in_the_model(seed in any::<u64>()) {
        let scratch = Scratch::new(&format!("model-{seed}"));
        let mut rng = Rng::with_seed(seed);
        let mut model = Model(vec![submitted(8)]);
        // So many that some results are in blocks.
        let note = |at| Entry::new(CampaignEvent::Note { text: "before".into() }, at);
        model.0.extend((0..rng.u64(..300)).map(note));
        let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
        file.append(&model.0).expect("valid entries");
        for _ in 0..40 {
            let mut ahead = model.clone();
            let mut accepted = true;
            let mut batch = Vec::new();
            for _ in 0..rng.usize(1..8) {
                let entry = random_entry(&mut rng, &ahead, true);
                if rng.u8(..12) > 0 && !ahead.accepts(&entry) {
                    continue;
                }
                accepted &= ahead.accepts(&entry);
                ahead.0.push(entry.clone());
                batch.push(entry);
            }
            match file.append(&batch) {
                Ok(()) => {
                    prop_assert!(accepted, "{batch:?}");
                    model = ahead;
                }
                Err(LedgerError::InvalidEntry { .. }) => prop_assert!(!accepted, "{batch:?}"),
                Err(other) => panic!("{other}"),
            }
            if rng.u8(..6) == 0 {
                model.assert_is(&mut file);
            }
            if rng.u8(..10) == 0 {
                drop(file);
                file = CampaignFile::open(&scratch.file()).expect("sound");
            }
        }
        drop(file);
        model.assert_is(&mut CampaignFile::open(&scratch.file()).expect("sound"));
        prop_assert!(check(&scratch.file()).expect("readable").sound);
    }
}

// ---------------------------------------------------------------- full and read-only disks

#[cfg(unix)]
#[test]
fn child_whose_disk_is_full() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Some((path, seed)) = child_task() else { return };
    let history = random_history(seed, BATCHES, 9);
    let mut file = CampaignFile::open(&path).expect("a new file");
    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    let mut model = Model::default();
    let mut refusals = 0;
    for (number, batch) in history.iter().enumerate().take(400) {
        if number % 40 == 20 {
            // No file may grow beyond this: such a write is refused, though its first part may be
            // made.
            let longest = fs::metadata(with_suffix(&path, "-wal")).expect("a journal").len();
            let room = seed % 9000 + number as u64 * 7;
            setrlimit(Resource::Fsize, Rlimit { current: Some(longest + room), maximum })
                .expect("a lower limit");
        }
        if let Err(error) = file.append(batch) {
            refusals += 1;
            assert!(matches!(error, LedgerError::Sqlite { action: "written", .. }), "{error}");
            assert!(!error.to_string().contains('\n'));
            file.append(batch).expect_err("there is still no room");
            let read = check(&path).expect("readable");
            assert!(read.sound && read.entries == model.0.len() as u64, "{read:?}");
            setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum })
                .expect("the limit is restored");
            model.assert_is(&mut file);
            file.append(batch).expect("there is room again");
        }
        model.0.extend(batch.clone());
    }
    model.assert_is(&mut file);
    drop(file);
    model.assert_is(&mut CampaignFile::open(&path).expect("sound"));
    print_line(&format!("\nrefused {refusals}"));
}

#[cfg(unix)]
#[test]
fn a_full_disk_refuses_a_whole_batch_and_accepts_it_once_there_is_space() {
    let seed = Seed::new();
    let scratch = Scratch::new("full");
    let plain = child("child_whose_disk_is_full", &scratch.file(), seed.0);
    // A process that writes beyond its limit is killed unless it ignores the signal; the shell sets
    // that.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().expect("a shell");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let refusals =
        stdout.lines().find_map(|line| line.strip_prefix("refused ")?.parse::<u32>().ok());
    assert!(refusals.is_some_and(|refusals| refusals >= 3), "{stdout}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_ledger_is_refused_with_the_reason() {
    // Not even root can write there.
    let error = CampaignFile::open(Path::new("/proc/self/campaign")).expect_err("no disk");
    assert!(matches!(error, LedgerError::Io { action: "opened for writing", .. }), "{error}");
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("read-only");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    file.append(&[submitted(8)]).expect("a valid entry");
    drop(file);
    let allow = |mode| {
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(mode)).expect("permitted")
    };
    fs::remove_file(with_suffix(&scratch.file(), ".lock")).expect("it exists");
    allow(0o555);
    let is_root = fs::write(scratch.0.join("probe"), "x").is_ok();
    let opened = CampaignFile::open(&scratch.file()).map(drop);
    let read = check(&scratch.file());
    allow(0o755);
    assert!(read.expect("readable").sound);
    assert!(is_root || matches!(opened, Err(LedgerError::Io { .. })), "{opened:?}");
}

// ---------------------------------------------------------------- the command

fn nqueens(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nqueens"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn the_command_reads_a_ledger_that_is_being_written() {
    let scratch = Scratch::new("command");
    let mut file = CampaignFile::open(&scratch.file()).expect("a new file");
    let history =
        [submitted(8), submitted(9), done(JOBS[0], 1, 5), done(JOBS[1], 2, 6), voided(JOBS[1], 2)];
    file.append(&history).expect("a valid entry");
    let path = scratch.text();
    let json = |arguments: &[&str]| -> Value {
        let output = nqueens(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let report = json(&["ledger", "check", &path, "--json"]);
    assert_eq!((&report["sound"], &report["entries"]), (&true.into(), &5.into()), "{report}");
    let overview = json(&["ledger", "show", &path, "--json"]);
    assert_eq!(overview["jobs"], report["jobs"]);
    assert_eq!(overview["jobs"][0]["thirds"], "15");
    assert_eq!(overview["jobs"][1]["voided"], 1);
    for (arguments, lines) in [
        (vec!["ledger", "export", &path], 5),
        (vec!["ledger", "export", &path, "--job", &JOBS[1].to_string()], 3),
    ] {
        let output = nqueens(&arguments);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!((output.status.code(), text.lines().count()), (Some(0), lines), "{text}");
        for text in text.lines() {
            let line: Value = serde_json::from_str(text).expect("a JSON line");
            let number = line["number"].as_u64().expect("a number") as usize;
            let (_, entry) = text.split_once("\"entry\":").expect("an entry");
            let entry = entry.strip_suffix('}').expect("an object");
            assert_eq!(Entry::from_json(entry).expect("an entry"), history[number - 1]);
        }
    }
    let text = nqueens(&["ledger", "check", &path]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("5 entries of 2 jobs"), "{text:?}");
    file.append(&[done(JOBS[0], 2, 5)]).expect("the writer continues");
    let nowhere = JOBS[3].to_string();
    for (arguments, code) in [
        (vec!["ledger", "export", &path, "--job", "12"], 2),
        (vec!["ledger", "export", &path, "--job", &nowhere], 2),
        (vec!["ledger", "check", "/no/such/ledger"], 7),
        (vec!["ledger", "show", "Cargo.toml"], 7),
    ] {
        let output = nqueens(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
}
