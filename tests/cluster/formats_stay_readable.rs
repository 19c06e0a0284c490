//! Files written by version 0.1.0 at commit 7285c3b, when it was killed during its work, can still
//! be opened, continued and checked.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use nqueens::cluster::ledger::{CampaignFile, Entry};
use serde_json::Value;
use support::{Coordinator, NQUEENS, Process, Scratch, eventually, printed};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name)
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        return;
    }
    fs::create_dir_all(to).expect("a folder for temporary files");
    for entry in fs::read_dir(from).expect("a stored folder") {
        let entry = entry.expect("a readable folder");
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Copies a stored file or folder to where it may be changed. Returns its path.
fn copied(scratch: &Scratch, name: &str) -> String {
    copy(&stored(name), &scratch.path(name));
    scratch.file(name)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).expect("one JSON object")
}

#[test]
fn checkpoints_are_continued() {
    let scratch = Scratch::new("formats-run");
    let torn = copied(&scratch, "count-17.run");
    let before = fs::read(&torn).expect("the copy");
    let report = json(&["count", "17", "--resume", &torn, "--json", "--quiet"]);
    assert_eq!(report["solutions"], "95815104");
    // Complete lines are kept byte for byte.
    let whole = before.iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
    assert!(fs::read(&torn).expect("the copy").starts_with(&before[..whole]));
    let decided = copied(&scratch, "count-12-decided.run");
    let board = ["count", "12", "--place", "3,5", "--block", "1,1 2,2", "--json", "--quiet"];
    let report = json(&[&board[..], &["--resume", &decided]].concat());
    assert_eq!(report["solutions"], "968");
}

#[test]
fn parts_of_a_plan_are_completed_and_merged() {
    let scratch = Scratch::new("formats-parts");
    let (plan, parts) = (copied(&scratch, "plan-13.json"), copied(&scratch, "parts"));
    let names = [0, 1, 2].map(|index| format!("{parts}/part-{index}-of-6.run"));
    let before = names.each_ref().map(|name| fs::read(name).expect("a part"));
    for index in 0..6 {
        printed(&["run-unit", &plan, "--index", &index.to_string(), "--out", &parts]);
    }
    let after = names.each_ref().map(|name| fs::read(name).expect("a part"));
    assert_eq!(before, after, "parts that were counted are not counted again");
    let report = json(&["merge", &plan, &parts, "--json"]);
    assert_eq!(report["solutions"], "73712");
}

#[test]
fn certificates_are_accepted_and_files_of_refutations_continued() {
    let scratch = Scratch::new("formats-proofs");
    for (name, n) in [("first-40.proof", 40), ("beautiful-20.proof", 20)] {
        let report = json(&["check", stored(name).to_str().expect("a readable path"), "--json"]);
        assert_eq!((&report["proven"], &report["n"]), (&Value::Bool(true), &n.into()), "{name}");
    }
    for (command, n, resume, certificate) in [
        ("first", "40", "first-40.resume", Some("first-40.proof")),
        ("beautiful", "20", "beautiful-20.resume", Some("beautiful-20.proof")),
        ("beautiful", "44", "beautiful-44.resume", None),
        // This run was killed before its end.
        ("first", "62", "first-62.resume", None),
    ] {
        let resume = copied(&scratch, resume);
        let written = scratch.file("written.proof");
        let report = json(&[
            command,
            n,
            "--resume",
            &resume,
            "--certificate",
            &written,
            "--json",
            "--quiet",
        ]);
        assert_eq!(report["proven"], true, "{command} {n}");
        if let Some(certificate) = certificate {
            let (written, known) = (fs::read(&written), fs::read(stored(certificate)));
            assert_eq!(
                written.expect("it was written"),
                known.expect("it is stored"),
                "{certificate}"
            );
        }
    }
}

fn status(coordinator: &Coordinator) -> Value {
    let address = coordinator.address.to_string();
    json(&["status", "--coordinator", &address, "--insecure", "--json"])
}

fn worker(coordinator: &Coordinator, data: &str) -> Process {
    let join = coordinator.address.to_string();
    let mut command = std::process::Command::new(NQUEENS);
    command.args(["worker", "--insecure", "--join", &join, "--threads", "1", "--exit-when-idle"]);
    command.args(["--data", data, "--log-level", "error"]);
    Process(command.stdin(std::process::Stdio::null()).spawn().expect("the program starts"))
}

#[test]
fn a_ledger_and_the_outboxes_of_its_workers_are_continued() {
    let scratch = Scratch::new("formats-ledger");
    let data = copied(&scratch, "campaign");
    let ledger = scratch.file("campaign/ledger.db");
    let before = printed(&["ledger", "export", &ledger]);
    assert_eq!(before.lines().count(), 32);
    let coordinator = Coordinator::start(Path::new(&data), &["--insecure"]);
    let mut workers =
        ["worker-one", "worker-two"].map(|name| worker(&coordinator, &copied(&scratch, name)));
    for worker in &mut workers {
        assert_eq!(worker.wait("worker that is done"), 0);
    }
    let status = status(&coordinator);
    let jobs = status["jobs"].as_array().expect("jobs");
    let mut totals: Vec<(u64, &str, &str)> = jobs
        .iter()
        .map(|job| {
            let text = |field: &str| job[field].as_str().unwrap_or_default();
            (job["n"].as_u64().expect("n"), text("state"), text("solutions"))
        })
        .collect();
    totals.sort_unstable();
    let known = [(5, "finished", "10"), (9, "finished", "30"), (18, "finished", "666090624")];
    assert_eq!(totals, known);
    drop(coordinator);
    assert!(printed(&["ledger", "export", &ledger]).starts_with(&before), "an entry was changed");
    printed(&["ledger", "check", &ledger]);
}

/// Every kind of entry, as exported by a program of commit 53eb59a, which wrote this ledger.
#[test]
fn entries_of_every_kind_are_written_as_before_and_a_coordinator_continues_them() {
    let scratch = Scratch::new("formats-entries");
    let known = fs::read_to_string(stored("entries.jsonl")).expect("the stored entries");
    let entry = |line: &str| {
        let (_, entry) = line.split_once("\"entry\":").expect("an entry");
        Entry::from_json(entry.strip_suffix('}').expect("an object")).expect("an entry")
    };
    let entries: Vec<Entry> = known.lines().map(entry).collect();
    let ledger = scratch.file("ledger.db");
    let mut file = CampaignFile::open(ledger.as_ref()).expect("a new file");
    file.append(&entries).expect("valid entries");
    drop(file);
    assert_eq!(printed(&["ledger", "export", &ledger]), known);
    printed(&["ledger", "check", &ledger]);
    let coordinator = Coordinator::start(&scratch.path(""), &["--insecure"]);
    let status = status(&coordinator);
    let job = &status["jobs"][0];
    assert_eq!(job["state"], "finished", "{job}");
    assert_eq!(job["solutions"], "422550200076076467165567735238", "{job}");
    drop(coordinator);
    assert!(printed(&["ledger", "export", &ledger]).starts_with(&known), "an entry was changed");
}

#[test]
fn proofs_of_a_coordinator_are_continued() {
    let scratch = Scratch::new("formats-coordinator");
    let coordinator = Coordinator::start(Path::new(&copied(&scratch, "proofs")), &["--insecure"]);
    let _worker = worker(&coordinator, &scratch.file("worker"));
    eventually("proof that is finished", || {
        let status = status(&coordinator);
        let proofs = status["proofs"].as_array().expect("proofs").clone();
        assert_eq!(proofs.len(), 2);
        proofs.iter().all(|proof| proof["state"] == "finished").then_some(())
    });
}

#[test]
fn a_registry_with_owners_is_read() {
    let scratch = Scratch::new("formats-register");
    let data = copied(&scratch, "authority");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Git does not keep file permissions.
        for name in ["authority.key", "register"] {
            let path = scratch.path("authority/authority").join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("the copy is ours");
        }
    }
    let list = printed(&["token", "list", "--data", &data]);
    assert!(list.contains("owner alice") && list.starts_with("2 tokens"), "{list}");
    printed(&["token", "create", "--data", &data]);
}
