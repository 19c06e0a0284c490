//! A published log is audited by somebody who has nothing but its files. Whatever is wrong in it is
//! found and named, whoever has changed it: a web server, a worker, or the coordinator itself.

use crate::support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nqueens::board::{Piece, Problem};
use nqueens::cluster::auth::SigningKey;
use nqueens::cluster::campaign::{JobState, ResultKey, ResultSignature, SubRangeSet};
use nqueens::decomposition::{Decomposition, Job, Scheme};
use nqueens::kernel::{KernelKind, count_range};
use nqueens::transparency::checkpoint::{Checkpoint, LogKey};
use nqueens::transparency::entry::{Author, FORMAT, LogEntry};
use nqueens::transparency::merkle::{Frontier, leaf_hash};
use nqueens::transparency::tile::entries_of;
use nqueens::transparency::unit_index::Page;
use nqueens::transparency::writer::{LogWriter, write_file};
use support::{Coordinator, NQUEENS, Scratch, Worker, printed, solutions, submit};

fn key() -> SigningKey {
    SigningKey::generate().expect("random bytes")
}

/// A log that its coordinator may have made as it liked: it has the key of the log and that of one
/// worker, but not that of the other.
struct Log {
    log_key: SigningKey,
    /// The keys of two workers of two owners, whose entries are 1 and 2.
    workers: [SigningKey; 2],
    job: Job,
    entries: Vec<LogEntry>,
}

impl Log {
    /// The honest log of a count of 10 queens, the units of which two workers counted in turn. The
    /// second confirmed the first unit, and the last unit was counted again after it was taken
    /// back.
    fn honest() -> Self {
        let problem = Problem::empty(Piece::Queen, 10);
        let job = Job::new(problem.clone(), Scheme::best(&problem), None, 8).expect("small");
        let decomposition = Decomposition::new(job.clone());
        let units = decomposition.units();
        let mut log = Self {
            log_key: key(),
            workers: [key(), key()],
            entries: vec![LogEntry::Job {
                format: FORMAT,
                job: job.hash(),
                text: job.to_string(),
                units,
                at_ms: 1,
            }],
            job,
        };
        for (owner, worker) in (1..).zip(&log.workers) {
            let key = ResultKey::from_bytes(worker.public());
            log.entries.push(LogEntry::Signer { owner, key });
        }
        let mut kernel = KernelKind::Scalar.build(Piece::Queen).expect("runs everywhere");
        for unit in 0..units {
            let sum = count_range(&mut *kernel, &decomposition, decomposition.unit(unit));
            log.add_result(unit, sum.expect("small").thirds(), unit as usize % 2);
        }
        let first = log.thirds_of(0);
        log.add_recount(0, first, 1);
        let last = units - 1;
        let (result, thirds) = (log.entries.len() as u64 - 2, log.thirds_of(last));
        log.entries.push(LogEntry::Void { unit: last, result });
        log.add_result(last, thirds, 0);
        log.finish();
        log
    }

    fn sign(&self, entry: &mut LogEntry, worker: usize) {
        let claim = entry.claim(self.job.hash()).expect("a result");
        let signed = ResultSignature {
            commitment: claim.statement.commitment,
            signature: self.workers[worker].sign(&claim.statement.to_bytes()),
        };
        match entry {
            LogEntry::Result { signature, .. }
            | LogEntry::Recount { signature, .. }
            | LogEntry::SpotCheck { signature, .. } => *signature = Some(signed),
            _ => unreachable!("it is a result"),
        }
    }

    fn result(&self, unit: u64, thirds: u128, worker: usize) -> LogEntry {
        let (kernel, by) = ("scalar".into(), Author::Signer(worker as u64 + 1));
        // The statement has the commitment of the signature, which is not there yet.
        let empty = ResultSignature { commitment: [7; 32], signature: [0; 64] };
        let mut entry = LogEntry::Result { unit, thirds, kernel, by, signature: Some(empty) };
        self.sign(&mut entry, worker);
        entry
    }

    fn add_result(&mut self, unit: u64, thirds: u128, worker: usize) {
        let entry = self.result(unit, thirds, worker);
        self.entries.push(entry);
    }

    fn add_recount(&mut self, unit: u64, thirds: u128, worker: usize) {
        let (kernel, by) = ("scalar".into(), Author::Signer(worker as u64 + 1));
        let empty = ResultSignature { commitment: [7; 32], signature: [0; 64] };
        let mut entry =
            LogEntry::Recount { unit, thirds, mirrored: true, kernel, by, signature: Some(empty) };
        self.sign(&mut entry, worker);
        self.entries.push(entry);
    }

    /// Ends the log with the state "finished" and the total of the results.
    fn finish(&mut self) {
        self.entries.retain(|entry| !matches!(entry, LogEntry::State { .. }));
        let mut results = std::collections::BTreeMap::new();
        for entry in &self.entries {
            match entry {
                LogEntry::Result { unit, thirds, .. } => drop(results.insert(*unit, *thirds)),
                LogEntry::Void { unit, .. } => drop(results.remove(unit)),
                _ => {}
            }
        }
        let solutions = Some((results.into_values().sum::<u128>() / 3).to_string());
        self.entries.push(LogEntry::State { state: JobState::Finished, at_ms: 2, solutions });
    }

    /// Returns the place of the first result of a unit.
    fn place(&self, unit: u64) -> usize {
        let of_unit = |entry: &LogEntry| matches!(entry, LogEntry::Result { unit: counted, .. } if *counted == unit);
        self.entries.iter().position(of_unit).expect("it is counted")
    }

    fn thirds_of(&self, unit: u64) -> u128 {
        match &self.entries[self.place(unit)] {
            LogEntry::Result { thirds, .. } => *thirds,
            _ => unreachable!("it is a result"),
        }
    }

    fn units(&self) -> u64 {
        Decomposition::new(self.job.clone()).units()
    }

    fn key(&self) -> LogKey {
        let key = ResultKey::from_bytes(self.log_key.public());
        LogKey::new(format!("nqueens/{}", self.job.hash()), key)
    }

    /// Returns the checkpoint of the first `size` entries.
    fn checkpoint(&self, size: usize) -> String {
        let mut tree = Frontier::default();
        self.entries[..size].iter().for_each(|entry| tree.push(leaf_hash(&entry.to_bytes())));
        let root = tree.root();
        Checkpoint { size: size as u64, root }.sign(&self.key(), &self.log_key)
    }

    /// Writes the log, and returns its folder.
    fn write(&self, scratch: &Scratch) -> PathBuf {
        let folder = scratch.path("log");
        let _ = fs::remove_dir_all(&folder);
        let mut writer = LogWriter::new(&folder, 0);
        let mut index = vec![None; self.units() as usize];
        for entry in &self.entries {
            let number = writer.append(&entry.to_bytes()).expect("written");
            if let LogEntry::Result { unit, .. } = entry
                && let Some(place) = index.get_mut(*unit as usize)
            {
                *place = Some(number);
            }
        }
        writer.finish().expect("written");
        let write = |path: &str, content: &[u8]| write_file(&folder, path, content).expect(path);
        write(&Page::path(0), Page::new(index.into_iter()).as_bytes());
        write("key", format!("{}\n", self.key()).as_bytes());
        let owners = self.key().sign(&format!("{}\nowners\n", self.key().name()), &self.log_key);
        write("owners", owners.as_bytes());
        let note = self.checkpoint(self.entries.len());
        write("checkpoint", note.as_bytes());
        let line = serde_json::to_string(&note).expect("text") + "\n";
        write("checkpoints.jsonl", line.as_bytes());
        folder
    }
}

/// Runs `audit` with nothing but the folder: in an empty environment, and without a network where
/// the system allows that.
fn audit(folder: &Path, arguments: &[&str]) -> Output {
    let isolated = Command::new("unshare").args(["-rn", "true"]).output();
    let mut command = match isolated.is_ok_and(|output| output.status.success()) {
        true => {
            let mut command = Command::new("unshare");
            command.args(["-rn", NQUEENS]);
            command
        }
        false => Command::new(NQUEENS),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("NODEVICE_SELECT", "1").arg("audit").arg(folder);
    command.args(arguments).output().expect("it runs")
}

/// Asserts that the audit of a log ends with exit code 6 and this reason.
fn assert_found(folder: &Path, arguments: &[&str], expected: &str) {
    let output = audit(folder, arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(6), "{expected}: {error}");
    assert!(error.contains(expected), "not '{expected}' but: {error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}

#[test]
fn an_honest_log_passes_and_its_report_states_what_was_checked() {
    let scratch = Scratch::new("audited-honest");
    let log = Log::honest();
    let folder = log.write(&scratch);
    let key = log.key().to_string();
    let output = audit(&folder, &["--json", "--sample", "5", "--seed", "1", "--key", &key]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (units, number) = (log.units(), |name: &str| report[name].as_u64().expect(name));
    assert_eq!((number("units"), number("counted"), number("signed")), (units, units, units));
    assert_eq!((number("confirmed"), number("voided"), number("checks")), (1, 1, 1));
    assert_eq!((number("keys"), number("owners"), number("recounted")), (2, 2, 5));
    assert_eq!((&report["solutions"], &report["published"]), (&"724".into(), &"agrees".into()));
    assert!(number("wrong_units_at_most") > 0);
    // A single unit needs no other, and its proof needs no log.
    let proof = scratch.file("proof.json");
    assert!(audit(&folder, &["--unit", "3", "--save-proof", &proof]).status.success());
    assert!(audit(Path::new(&*proof), &["--key", &key]).status.success());
    let text = fs::read_to_string(&*proof).expect("saved");
    let place = log.place(3);
    let LogEntry::Result { thirds, .. } = log.entries[place] else { unreachable!() };
    let changed = text.replace(
        &format!("\\\"thirds\\\":\\\"{thirds}\\\""),
        &format!("\\\"thirds\\\":\\\"{}\\\"", thirds + 24),
    );
    assert_ne!(text, changed);
    fs::write(&*proof, changed).expect("written");
    assert_found(Path::new(&*proof), &[], "the tree that was signed has another hash for it");
}

#[test]
fn changes_by_whoever_serves_the_log_are_found() {
    let scratch = Scratch::new("audited-mirror");
    let log = Log::honest();
    let folder = log.write(&scratch);
    let all = log.entries.len();
    let bundle = folder.join(format!("tile/entries/000.p/{all}"));
    let original = fs::read(&bundle).expect("written");
    let place = log.place(4);
    // One flipped digit.
    let entries = entries_of(&original, all as u64).expect("a bundle");
    let before: usize = entries[..place].iter().map(|entry| entry.len() + 2).sum();
    let digit = entries[place].windows(10).position(|text| text == b"\"thirds\":\"");
    let digit = before + 2 + digit.expect("a sum") + 10;
    let mut changed = original.clone();
    changed[digit] ^= 1;
    fs::write(&bundle, &changed).expect("written");
    let hash = "it was changed: the tree that was signed has another hash for it";
    assert_found(&folder, &[], &format!("unit 4 is wrong (entry {place}): {hash}"));
    assert_found(&folder, &["--unit", "4"], hash);
    // A dropped entry.
    let mut dropped = original.clone();
    dropped.drain(before..before + 2 + entries[place].len());
    fs::write(&bundle, &dropped).expect("written");
    let output = audit(&folder, &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("it has not as many entries as the tree"), "{error}");
    assert_eq!(output.status.code(), Some(7));
    fs::write(&bundle, &original).expect("written");
    assert!(audit(&folder, &[]).status.success());

    // A swapped root, signed by somebody else or by nobody.
    let checkpoint = folder.join("checkpoint");
    let note = fs::read_to_string(&checkpoint).expect("written");
    let another = Checkpoint { size: all as u64, root: [9; 32] };
    fs::write(&checkpoint, another.sign(&log.key(), &key())).expect("written");
    assert_found(&folder, &[], "it is not signed by the key of the log");
    let lines: Vec<&str> = note.lines().collect();
    fs::write(&checkpoint, note.replace(lines[1], &(all - 1).to_string())).expect("written");
    assert_found(&folder, &[], "it is not signed by the key of the log");
    // A root that the log's key signed, but not of these entries.
    fs::write(&checkpoint, another.sign(&log.key(), &log.log_key)).expect("written");
    assert_found(
        &folder,
        &[],
        &format!("the root that was signed is not that of the {all} entries"),
    );
    // Another key.
    let stranger = Log { log_key: key(), ..Log::honest() };
    let folder = stranger.write(&scratch);
    let expected = log.key().to_string();
    assert_found(&folder, &["--key", &expected], "not the expected one");
}

#[test]
fn false_histories_of_the_coordinator_are_found() {
    let scratch = Scratch::new("audited-coordinator");
    let found = |change: &dyn Fn(&mut Log), expected: &str| {
        let mut log = Log::honest();
        change(&mut log);
        assert_found(&log.write(&scratch), &["--sample", "1", "--seed", "3"], expected);
    };
    let set = |log: &mut Log, unit: u64, more: u128| {
        let place = log.place(unit);
        if let LogEntry::Result { thirds, .. } = &mut log.entries[place] {
            *thirds += more;
        }
    };
    // A result that its worker has not signed.
    found(
        &|log| {
            set(log, 4, 24);
            log.finish();
        },
        "unit 4 is wrong (entry 7): its signature is not one of its author (entry 1)",
    );
    // A stranger signs for a worker, or a key that was never introduced.
    found(
        &|log| {
            let place = log.place(4);
            let mut entry = log.entries[place].clone();
            log.sign(&mut entry, 1);
            log.entries[place] = entry;
        },
        "its signature is not one of its author (entry 1)",
    );
    found(
        &|log| {
            let place = log.place(4);
            if let LogEntry::Result { by, .. } = &mut log.entries[place] {
                *by = Author::Signer(0);
            }
        },
        "entry 0 is not the key of its author",
    );
    found(
        &|log| {
            let place = log.place(4);
            if let LogEntry::Result { signature, .. } = &mut log.entries[place] {
                *signature = None;
            }
        },
        "a result is signed if and only if its author has a key",
    );
    // A unit that is missing, or counted twice.
    found(
        &|log| {
            let place = log.place(4);
            // The number of the result that is taken back.
            log.entries.remove(place);
            for entry in &mut log.entries {
                if let LogEntry::Void { result, .. } = entry {
                    *result -= 1;
                }
            }
            log.finish();
        },
        "the job is finished, but unit 4 has no result (1 units have none)",
    );
    found(
        &|log| {
            let again = log.result(4, log.thirds_of(4), 1);
            let end = log.entries.len() - 1;
            log.entries.insert(end, again);
        },
        "it is counted twice: it has a result in entry 7",
    );
    // A total that is not the sum.
    found(
        &|log| {
            if let Some(LogEntry::State { solutions, .. }) = log.entries.last_mut() {
                *solutions = Some("725".into());
            }
        },
        "it states 725 solutions, but the sum of the units is 724",
    );
    // Results that never were, of another job, or that are taken back twice.
    found(
        &|log| log.entries.insert(3, LogEntry::Void { unit: 0, result: 3 }),
        "it has no result that could be checked or taken back",
    );
    found(
        &|log| {
            if let LogEntry::Job { text, .. } = &mut log.entries[0] {
                *text = text.replace("n=10", "n=11");
            }
        },
        "its text is not that of the job",
    );
    found(
        &|log| {
            if let LogEntry::Job { units, .. } = &mut log.entries[0] {
                *units -= 1;
            }
        },
        "units, but the job has",
    );
    found(
        &|log| {
            for entry in &mut log.entries {
                if let LogEntry::Void { result, .. } = entry {
                    *result -= 1;
                }
            }
        },
        "but the result in force is entry",
    );
    found(
        &|log| log.entries.insert(2, log.entries[0].clone()),
        "the job must be the first entry, and only that",
    );
    found(
        &|log| {
            let end = log.entries.len() - 1;
            let units = log.units();
            log.entries.insert(end, log.result(units, 3, 0));
        },
        "the job has",
    );
    found(
        &|log| {
            let sums = vec![1, 2, 3];
            let entry = LogEntry::SpotCheck {
                unit: 0,
                sub_ranges: SubRangeSet::from_bits(1),
                sums,
                agrees: true,
                kernel: "scalar".into(),
                by: Author::Coordinator,
                signature: None,
            };
            log.entries.insert(log.place(0) + 1, entry);
        },
        "its sums do not match its sub-ranges",
    );
}

#[test]
fn a_rewritten_history_is_found_by_whoever_kept_a_checkpoint() {
    let scratch = Scratch::new("audited-history");
    let log = Log::honest();
    let half = log.entries.len() / 2;
    let previous = scratch.file("previous");
    fs::write(&*previous, log.checkpoint(half)).expect("written");
    let saved = scratch.file("saved");
    let folder = log.write(&scratch);
    let output = audit(&folder, &["--previous", &previous, "--save-checkpoint", &saved]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(&*saved).expect("saved"), fs::read(folder.join("checkpoint")).expect("it"));

    // The same keys, another order of results: nothing but the history is wrong.
    let mut rewritten = log;
    let (one, two) = (rewritten.place(2), rewritten.place(3));
    rewritten.entries.swap(one, two);
    let folder = rewritten.write(&scratch);
    assert!(audit(&folder, &[]).status.success(), "it is consistent by itself");
    let expected = format!("the first {half} entries are not those of the checkpoint");
    assert_found(&folder, &["--previous", &previous], &expected);
    // The log cannot hide an earlier checkpoint that it lists itself, either.
    let list = folder.join("checkpoints.jsonl");
    let old = serde_json::to_string(&fs::read_to_string(&*previous).expect("it")).expect("text");
    fs::write(&list, old + "\n").expect("written");
    assert_found(&folder, &[], &expected);
    // An end that was removed.
    fs::write(&list, "").expect("written");
    let end = rewritten.entries.len();
    rewritten.entries.truncate(end - 1);
    fs::write(&*previous, fs::read(folder.join("checkpoint")).expect("it")).expect("written");
    let folder = rewritten.write(&scratch);
    assert_found(&folder, &["--previous", &previous], "its end was removed");
}

#[test]
fn a_count_that_its_worker_signed_falsely_is_found_by_a_recount() {
    let scratch = Scratch::new("audited-liar");
    let mut log = Log::honest();
    let (place, thirds) = (log.place(5), log.thirds_of(5));
    log.entries[place] = log.result(5, thirds + 24, 1);
    log.finish();
    let folder = log.write(&scratch);
    let stated = thirds + 24;
    let expected = format!(
        "unit 5 is wrong: it states a sum of {stated} thirds of a solution, but its mirror image has {thirds}"
    );
    assert_found(&folder, &["--sample", "all"], &expected);
    assert_found(&folder, &["--units", "5..6"], &expected);
    assert_found(&folder, &["--unit", "5"], &expected);
    // Another sample does not find it, but the published total does.
    assert_found(&folder, &["--units", "0..5"], "the total differs from the published value");
}

/// Serves a folder on a port of its own. Returns its URL.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/logs/one", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut request = String::new();
            stream.read_line(&mut request).expect("a request");
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).expect("a header");
            }
            let path = request.split(' ').nth(1).expect("a path");
            let path = path.strip_prefix("/logs/one/").expect("of the log");
            let (status, body) = match fs::read(folder.join(path)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let stream = stream.get_mut();
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).expect("sent");
        }
    });
    url
}

#[tokio::test]
async fn a_campaign_is_published_in_steps_and_audited_over_the_web() {
    let scratch = Scratch::new("audited-campaign");
    let coordinator = Coordinator::start(&scratch.path("data"), &["--sync", "1s", "--lease", "5s"]);
    let job = submit(&coordinator.channel(), 11, 0).await;
    let folder = scratch.path("log");
    let out = folder.to_str().expect("text");
    let publish = |arguments: &[&str]| {
        let mut all =
            vec!["publish", &job[..8], "--data", coordinator.data(), "--out", out, "--json"];
        all.extend(arguments);
        serde_json::from_str::<serde_json::Value>(&printed(&all)).expect("JSON")
    };
    assert_eq!(publish(&[])["entries"], 1);
    let previous = scratch.file("previous");
    let unfinished = audit(&folder, &["--save-checkpoint", &previous]);
    assert!(unfinished.status.success(), "{}", String::from_utf8_lossy(&unfinished.stderr));

    let mut workers = Vec::new();
    for name in ["one", "two", "three"] {
        let mut worker = Worker::new(name, coordinator.channel());
        // The third is of an earlier version.
        worker.key = (name != "three").then(key);
        workers.push(worker);
    }
    for worker in &mut workers {
        worker.sync().await.expect("answered");
        worker.work(|_| ()).await.expect("answered");
    }
    publish(&[]);
    assert!(audit(&folder, &[]).status.success());
    while coordinator.last_job().await.state() != nqueens::cluster::protocol::v1::JobState::Finished
    {
        for worker in &mut workers {
            worker.sync().await.expect("answered");
            worker.work(|_| ()).await.expect("answered");
        }
    }
    assert_eq!(solutions(&coordinator.last_job().await), 2680);
    let report = publish(&["--public-owner", "two"]);
    assert_eq!(report["units"], report["counted"]);
    assert_eq!(publish(&["--public-owner", "two"])["new_entries"], 0);

    let key = report["key"].as_str().expect("a key");
    let url = serve(folder.clone());
    let audited =
        ["audit", &url, "--key", key, "--previous", &previous, "--sample", "all", "--json"];
    let audited: serde_json::Value = serde_json::from_str(&printed(&audited)).expect("JSON");
    assert_eq!((&audited["solutions"], &audited["published"]), (&"2680".into(), &"agrees".into()));
    assert_eq!(audited["recounted"], report["units"]);
    assert_eq!((&audited["keys"], &audited["state"]), (&2.into(), &"finished".into()));
    let (signed, units) = (audited["signed"].as_u64(), audited["units"].as_u64());
    assert!(signed > Some(0) && signed < units, "{audited}");
    let named = audited["named_owners"][0].as_str().expect("a name");
    assert!(named.ends_with(" two"), "{named}");
    printed(&["audit", &url, "--unit", "0"]);
    // Nothing names the workers or the other owners.
    let one =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("it")).contains("\"one\"");
    let bundles = fs::read_dir(folder.join("tile/entries/000.p")).expect("it");
    assert!(bundles.flatten().all(|bundle| !one(&bundle.path())));

    // A folder with the log of another coordinator is left as it is.
    let before = fs::read(folder.join("checkpoint")).expect("it");
    fs::remove_file(scratch.path("data").join("publish.key")).expect("it");
    let refused = support::run(&["publish", &job, "--data", coordinator.data(), "--out", out]);
    assert_eq!(refused.status.code(), Some(7));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("has a log that this coordinator has not published"), "{error}");
    assert_eq!(fs::read(folder.join("checkpoint")).expect("it"), before);
}

#[test]
fn hostile_files_end_an_audit_with_one_line() {
    let scratch = Scratch::new("audited-hostile");
    let log = Log::honest();
    for seed in support::seeds::seeds(60) {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = log.write(&scratch);
        let all = log.entries.len();
        let files = [
            "key".to_owned(),
            "owners".to_owned(),
            "checkpoint".to_owned(),
            "checkpoints.jsonl".to_owned(),
            format!("tile/entries/000.p/{all}"),
        ];
        let file = folder.join(&files[random.usize(..files.len())]);
        let mut bytes = fs::read(&file).expect("it");
        match random.u8(..4) {
            0 => bytes.truncate(random.usize(..bytes.len())),
            1 => bytes = std::iter::repeat_with(|| random.u8(..)).take(500).collect(),
            2 => drop(bytes.drain(..random.usize(1..bytes.len()))),
            _ => {
                let place = random.usize(..bytes.len());
                bytes[place] ^= 1 << random.u8(..8);
            }
        }
        fs::write(&file, bytes).expect("written");
        let output = audit(&folder, &["--sample", "1"]);
        let error = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        let refused = matches!(code, Some(6 | 7)) && error.trim_end().lines().count() == 1;
        // A list of checkpoints may be cut at the end of a line.
        let harmless = code == Some(0) && file.ends_with("checkpoints.jsonl");
        assert!(refused || harmless, "NQUEENS_SEED={seed}: {}: {code:?} {error}", file.display());
    }
}
