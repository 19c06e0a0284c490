//! Counts in parts, for batch systems: in whatever order parts are counted, killed or repeated, the
//! total is correct, or the command reports what is missing or wrong.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use support::program::{assert_refused, nqueens, text};
use support::{Process, Scratch, eventually, printed, run};

struct Folder {
    scratch: Scratch,
    plan: String,
    results: String,
}

fn planned(name: &str, words: &[&str]) -> Folder {
    let scratch = Scratch::new(name);
    let (plan, results) = (scratch.file("plan.json"), scratch.file("results"));
    let output = printed(&[&["plan"], words, &["--out", &plan]].concat());
    assert!(output.contains("numbered from 0"), "{output}");
    Folder { scratch, plan, results }
}

impl Folder {
    fn run(&self, index: u64) -> Output {
        run(&["run-unit", &self.plan, "--index", &index.to_string(), "--out", &self.results])
    }

    fn count(&self, index: u64) {
        let output = self.run(index);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    fn merge(&self, more: &[&str]) -> Output {
        run(&[&["merge", &self.plan, &self.results, "--json"], more].concat())
    }

    fn result(&self, index: u64, of: u64) -> PathBuf {
        Path::new(&self.results).join(format!("part-{index}-of-{of}.run"))
    }
}

fn object(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).expect("an object")
}

#[test]
fn parts_in_any_order_add_up_to_the_count_of_every_piece() {
    let boards: [(&[&str], &str); 4] = [
        (&["12", "--units", "7"], "14200"),
        (&["8", "--piece", "rook", "--units", "3"], "40320"),
        (&["11", "--piece", "superqueen", "--units", "1"], "44"),
        (&["10", "--place", "1,3", "--block", "10,10", "--units", "5"], ""),
    ];
    for (number, (words, known)) in boards.into_iter().enumerate() {
        let folder = planned(&format!("any-order-{number}"), words);
        let plan: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&folder.plan).expect("it exists"))
                .expect("an object");
        let parts = plan["parts"].as_u64().expect("a number");
        (0..parts).rev().for_each(|index| folder.count(index));
        let merged = folder.merge(&["--recount", "5"]);
        assert_eq!(merged.status.code(), Some(0), "{}", text(&merged.stderr));
        let merged = object(&merged);
        let alone: Vec<&str> = words.iter().copied().take(words.len() - 2).collect();
        let alone = printed(&[&["count"], &alone[..], &["--json", "--quiet"]].concat());
        let alone: serde_json::Value = serde_json::from_str(&alone).expect("an object");
        assert_eq!(merged["solutions"], alone["solutions"]);
        assert!(known.is_empty() || merged["solutions"] == known, "{merged}");
        // Merging again gives the same total, and a finished part is not counted again.
        folder.count(0);
        assert_eq!(object(&folder.merge(&[]))["solutions"], alone["solutions"]);
    }
}

#[test]
fn no_total_is_printed_while_parts_are_missing() {
    let folder = planned("gaps", &["11", "--units", "4"]);
    fs::create_dir(&folder.results).expect("a folder");
    let none = folder.merge(&[]);
    assert_eq!(
        (none.status.code(), &object(&none)["solutions"]),
        (Some(6), &serde_json::Value::Null)
    );
    [0, 2].into_iter().for_each(|index| folder.count(index));
    let some = folder.merge(&["--recount", "3"]);
    assert_eq!(some.status.code(), Some(6));
    assert!(
        text(&some.stderr).contains("in 2 parts: 1,3; run these parts again"),
        "{}",
        text(&some.stderr)
    );
    assert_eq!(object(&some)["missing_parts"], serde_json::json!([1, 3]));
    [3, 1].into_iter().for_each(|index| folder.count(index));
    assert_eq!(object(&folder.merge(&[]))["published"], "agrees");
}

#[test]
fn contradictory_results_and_those_of_another_job_give_no_total() {
    let folder = planned("conflict", &["10", "--units", "2"]);
    (0..2).for_each(|index| folder.count(index));
    // A part of another board.
    let other = planned("another", &["9", "--units", "2"]);
    other.count(1);
    let stray = folder.result(7, 8);
    fs::copy(other.result(1, 2), &stray).expect("copied");
    let merged = folder.merge(&[]);
    assert_eq!(merged.status.code(), Some(6));
    assert!(text(&merged.stderr).contains("belongs to another job"), "{}", text(&merged.stderr));
    assert_eq!(object(&merged)["solutions"], serde_json::Value::Null);
    fs::remove_file(stray).expect("removed");
    // Nor is it accepted as the result of a finished part.
    fs::copy(other.result(1, 2), folder.result(1, 2)).expect("copied");
    let command = ["run-unit", &folder.plan, "--index", "1", "--out", &folder.results];
    assert_refused(&command, 42, &["is the result of another plan"]);
    fs::remove_file(folder.result(1, 2)).expect("removed");
    folder.count(1);
    // A flipped bit.
    let mut bytes = fs::read(folder.result(1, 2)).expect("it exists");
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    fs::write(folder.result(1, 2), &bytes).expect("written");
    let merged = folder.merge(&[]);
    assert_eq!(merged.status.code(), Some(7), "{}", text(&merged.stderr));
    assert!(merged.stdout.is_empty());
}

#[test]
fn a_killed_or_stopped_part_resumes() {
    let folder = planned("killed", &["16", "--units", "1"]);
    let command = ["run-unit", &folder.plan, "--index", "0", "--out", &folder.results];
    let slow = ["--kernel", "scalar", "--threads", "1", "--json"];
    let start = || Process(nqueens(&[&command[..], &slow].concat()).spawn().expect("starts"));
    let unfinished = Path::new(&folder.results).join("part-0-of-1.unfinished");
    let lines = || fs::read_to_string(&unfinished).map_or(0, |text| text.lines().count());
    let mut one = start();
    eventually("finished unit", || (lines() > 2).then_some(()));
    one.kill();
    let before = lines();
    #[cfg(unix)]
    {
        let mut two = start();
        eventually("further unit", || (lines() > before).then_some(()));
        two.terminate();
        let code = two.wait("end of the part");
        // Unless it finished first.
        assert!(code == 85 || code == 0, "{code}");
    }
    let report = run(&[&command[..], &slow].concat());
    assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
    assert!(object(&report)["resumed_units"].as_u64() >= Some(before as u64 - 1));
    assert_eq!(object(&folder.merge(&[]))["solutions"], "14772512");
}

#[test]
fn the_scheduler_selects_the_part_and_the_exit_code_says_whether_to_retry() {
    let folder = planned("schedulers", &["8", "--units", "3"]);
    let unit = ["run-unit", &folder.plan, "--out", &folder.results];
    let by = |name: &str, index: &str| {
        let mut command = nqueens(&unit);
        let output = command.env(name, index).output().expect("runs");
        (output.status.code(), text(&output.stderr).to_owned())
    };
    for (index, name) in
        ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "NQUEENS_INDEX"].iter().enumerate()
    {
        assert_eq!(by(name, &index.to_string()).0, Some(0), "{name}");
    }
    assert_eq!(object(&folder.merge(&[]))["solutions"], "92");
    assert_refused(&unit, 42, &["no part given", "--index"]);
    assert_refused(
        &[&unit[..], &["--index", "3"]].concat(),
        42,
        &["3 parts, numbered from 0 to 2"],
    );
    assert_refused(&[&unit[..], &["--index", "-1"]].concat(), 42, &["invalid part '-1'"]);
    assert_eq!(by("SLURM_ARRAY_TASK_ID", "x").0, Some(42));
    let nowhere = folder.scratch.file("no-plan");
    assert_refused(
        &["run-unit", &nowhere, "--index", "0", "--out", &folder.results],
        75,
        &["cannot be read"],
    );
    // A folder that cannot be used may be available again on the next try.
    let file = folder.scratch.file("file");
    fs::write(&file, "").expect("written");
    assert_refused(
        &["run-unit", &folder.plan, "--index", "0", "--out", &file],
        75,
        &["cannot be used"],
    );
    // A plan that was changed is invalid.
    let plan = fs::read_to_string(&folder.plan).expect("it exists");
    for (from, to) in [
        ("n=8", "n=9"),
        ("\"units\":", "\"units\":1"),
        ("nqueens-plan/1", "nqueens-plan/2"),
        ("{", "["),
    ] {
        let changed = folder.scratch.file("changed");
        fs::write(&changed, plan.replacen(from, to, 1)).expect("written");
        let command = ["run-unit", &changed, "--index", "0", "--out", &folder.results];
        assert_refused(&command, 42, &["is not a usable plan"]);
        assert_refused(&["merge", &changed, &folder.results], 7, &["is not a usable plan"]);
    }
}

#[test]
fn scripts_for_batch_systems_have_the_requested_settings() {
    let scratch = Scratch::new("scripts");
    let folder = scratch.file("slurm");
    let output = printed(&[
        "slurm",
        "12",
        "--units",
        "7",
        "--cpus",
        "2",
        "--at-once",
        "3",
        "--time",
        "00:10:00",
        "--partition",
        "short",
        "--out",
        &folder,
    ]);
    assert!(output.contains("submit.sh"), "{output}");
    let array = fs::read_to_string(format!("{folder}/array.sbatch")).expect("it exists");
    for line in
        ["--array=0-6%3", "--cpus-per-task=2", "--time=00:10:00", "--partition=short", "--requeue"]
    {
        assert!(array.contains(&format!("#SBATCH {line}\n")), "{line}: {array}");
    }
    let folder = scratch.file("kubernetes");
    printed(&["kubernetes", "12", "--units", "7", "--image", "queens:1", "--out", &folder]);
    let job = fs::read_to_string(format!("{folder}/job.yaml")).expect("it exists");
    for line in ["completions: 7", "completionMode: Indexed", "image: \"queens:1\"", "values: [42]"]
    {
        assert!(job.contains(line), "{line}: {job}");
    }
    let folder = scratch.file("htcondor");
    let report = printed(&["htcondor", "12", "--units", "7", "--out", &folder, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("an object");
    assert_eq!((&report["parts"], report["files"].as_array().map(Vec::len)), (&7.into(), Some(2)));
    let submit = fs::read_to_string(format!("{folder}/nqueens.sub")).expect("it exists");
    assert!(submit.contains("\nqueue 7\n") && submit.contains("--index $(Process)"), "{submit}");

    assert_refused(
        &["htcondor", "12", "--units", "8", "--out", &folder],
        2,
        &["is a different plan"],
    );
    let spaced = scratch.file("with space");
    assert_refused(&["slurm", "8", "--out", &spaced], 2, &["cannot be written into the script"]);
    assert_refused(&["slurm", "8", "--time", "soon", "--out", &folder], 2, &["invalid Slurm time"]);
    assert_refused(
        &["slurm", "8", "--units", "0", "--out", &folder],
        2,
        &["invalid number of parts"],
    );
    assert_refused(
        &["kubernetes", "8", "--claim", "a b", "--out", &folder],
        2,
        &["invalid name 'a b'"],
    );
}
