//! A count on a batch system whose parts are signed becomes a ledger, which the same commands
//! check, publish and audit as that of a coordinator.

use std::fs;
#[cfg(unix)]
use std::process::Command;

use crate::support::program::{Scratch, assert_refused, json, printed};

const PARTS: usize = 3;

/// Plans n = 10 in three parts and counts them, each signed with one of two keys.
fn counted(scratch: &Scratch) -> (String, String) {
    let (plan, results) = (scratch.file("plan.json"), scratch.file("results"));
    printed(&["plan", "10", "--units", &PARTS.to_string(), "--out", &plan]);
    for part in 0..PARTS {
        let key = scratch.file(if part == 0 { "one.key" } else { "two.key" });
        let index = part.to_string();
        let report = json(&[
            "run-unit", &plan, "--index", &index, "--out", &results, "--key", &key, "--json",
        ]);
        let signatures = report["signatures"].as_str().expect("a file");
        assert!(fs::exists(signatures).expect("readable"), "{signatures}");
    }
    (plan, results)
}

#[test]
fn a_count_in_signed_parts_is_checked_published_and_audited_like_a_campaign() {
    let scratch = Scratch::new("signed-parts");
    let (plan, results) = counted(&scratch);
    let (data, log) = (scratch.file("data"), scratch.file("log"));
    let merged = json(&["merge", &plan, &results, "--recount", "4", "--data", &data, "--json"]);
    assert_eq!((&merged["solutions"], &merged["recounted"]), (&"724".into(), &4.into()));

    let check = json(&["ledger", "check", &data, "--json"]);
    let job = &check["jobs"][0];
    assert_eq!((&check["sound"], &job["state"]), (&true.into(), &"finished".into()));
    assert_eq!((&job["solutions"], &job["verified"]), (&"724".into(), &4.into()));

    let hash = job["job"].as_str().expect("a hash");
    printed(&["publish", hash, "--data", &data, "--out", &log]);
    let audit = json(&["audit", &log, "--sample", "all", "--json"]);
    assert_eq!(audit["solutions"], "724", "{audit}");
    assert_eq!(audit["signed"], job["units"], "{audit}");
    // The directory already has a ledger.
    assert_refused(&["merge", &plan, &results, "--data", &data], 7, &["exists", "--data"]);
}

#[test]
fn unsigned_and_wrongly_signed_parts_make_no_ledger() {
    let scratch = Scratch::new("wrongly-signed-parts");
    let (plan, results) = counted(&scratch);
    let data = scratch.file("data");
    let merge = ["merge", &plan[..], &results, "--data", &data];
    let has_ledger = || fs::exists(scratch.path("data").join("ledger.db")).expect("readable");
    let signed = scratch.path("results").join("part-1-of-3.signed");
    let right = fs::read_to_string(&signed).expect("signatures");
    let lines: Vec<&str> = right.lines().collect();
    assert!(lines.len() > 3, "a part of several units");

    // The signatures of two units in each other's place, one of them missing, another key.
    let signature = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["signature"].as_str().expect("a signature").to_owned()
    };
    let (first, second) = (signature(lines[1]), signature(lines[2]));
    let swapped = right.replace(&first, "@").replace(&second, &first).replace('@', &second);
    let without_last = lines[..lines.len() - 1].join("\n");
    let other = fs::read_to_string(scratch.path("results").join("part-0-of-3.signed"));
    let other = other.expect("signatures");
    let key = |text: &str| {
        let header: serde_json::Value =
            serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        header["key"].as_str().expect("a key").to_owned()
    };
    let of_another = right.replace(&key(&right), &key(&other));
    let of_another_kernel = right.replacen("\"kernel\":\"", "\"kernel\":\"x", 1);
    for wrong in [swapped, without_last, of_another, of_another_kernel] {
        assert_ne!(wrong, right);
        fs::write(&signed, wrong).expect("written");
        assert_refused(&merge, 6, &["part-1-of-3.run", "unit", "does not match"]);
        assert!(!has_ledger());
    }
    for (wrong, words) in [
        ("", &["part-1-of-3.signed", "line 1"][..]),
        ("{}", &["part-1-of-3.signed", "line 1"]),
        (
            &right.replacen("nqueens-signatures/1", "nqueens-signatures/9", 1),
            &["nqueens-signatures/9"],
        ),
        (&format!("{right}x\n"), &["part-1-of-3.signed", "line"]),
    ] {
        fs::write(&signed, wrong).expect("written");
        assert_refused(&merge, 7, words);
        assert!(!has_ledger());
    }
    fs::remove_file(&signed).expect("removed");
    assert_refused(&merge, 7, &["part-1-of-3.signed", "run-unit --key"]);
    assert!(!has_ledger());
    // Without a ledger, signatures are not needed.
    assert_eq!(json(&["merge", &plan, &results, "--json"])["solutions"], "724");

    // A result without a signature is not signed later.
    let key = scratch.file("one.key");
    let again = ["run-unit", &plan[..], "--index", "1", "--out", &results, "--key", &key];
    assert_refused(&again, 42, &["part-1-of-3.run", "not signed", "--key"]);
    fs::remove_file(scratch.path("results").join("part-1-of-3.run")).expect("removed");
    printed(&again);
    printed(&merge);
    assert!(has_ledger());
}

#[test]
#[cfg(unix)]
fn the_scripts_of_a_batch_system_sign_and_merge_into_a_ledger() {
    let scratch = Scratch::new("signed-scripts");
    let folder = scratch.file("count");
    let program = crate::support::NQUEENS;
    printed(&["slurm", "10", "--units", "3", "--sign", "--out", &folder, "--program", program]);
    let script = |name: &str, index: &str| {
        let script = scratch.path("count").join(name);
        let output = Command::new("bash").arg(script).env("SLURM_ARRAY_TASK_ID", index).output();
        let output = output.expect("bash");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    (0..PARTS).for_each(|index| drop(script("array.sbatch", &index.to_string())));
    assert!(script("merge.sbatch", "").contains("724"));
    let merged = scratch.path("count").join("merged");
    let check = json(&["ledger", "check", merged.to_str().expect("UTF-8"), "--json"]);
    assert_eq!(check["jobs"][0]["solutions"], "724", "{check}");
}
