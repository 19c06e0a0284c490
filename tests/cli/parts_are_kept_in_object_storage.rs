//! Parts of a plan whose results are in object storage, here a directory under a `file:` URL.

use std::fs;
use std::path::PathBuf;

use crate::support::program::{Scratch, assert_refused, json, printed};

/// A plan of n = 10 in two parts, and an empty place for the results.
struct Storage {
    scratch: Scratch,
    plan: String,
    url: String,
}

impl Storage {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let plan = scratch.file("plan.json");
        printed(&["plan", "10", "--units", "2", "--out", &plan]);
        let url = format!("file://{}", scratch.file("bucket/counts"));
        Self { scratch, plan, url }
    }

    fn run_unit<'a>(&'a self, index: &'a str) -> [&'a str; 6] {
        ["run-unit", &self.plan, "--index", index, "--out", &self.url]
    }

    fn object(&self, name: &str) -> PathBuf {
        self.scratch.path("bucket").join("counts").join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.object("")).expect("results");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort_unstable();
        names
    }
}

#[test]
fn parts_in_object_storage_add_up_to_the_count_and_to_a_ledger() {
    let storage = Storage::new("object-storage");
    let key = storage.scratch.file("sign.key");
    for index in ["0", "1"] {
        let run = [&storage.run_unit(index)[..], &["--key", &key, "--json"]].concat();
        let report = json(&run);
        let name = format!("{}/part-{index}-of-2", storage.url);
        assert_eq!(report["result"], format!("{name}.run"));
        assert_eq!(report["signatures"], format!("{name}.signed"));
        // The part is not counted again.
        assert_eq!(json(&run)["resumed_units"], report["units"]);
    }
    let names = ["part-0-of-2.run", "part-0-of-2.signed", "part-1-of-2.run", "part-1-of-2.signed"];
    assert_eq!(storage.names(), names);
    let data = storage.scratch.file("data");
    let merge = ["merge", &storage.plan, &storage.url, "--recount", "4", "--data", &data, "--json"];
    let merged = json(&merge);
    assert_eq!((&merged["solutions"], &merged["recounted"]), (&"724".into(), &4.into()));
    assert_eq!(json(&["ledger", "check", &data, "--json"])["sound"], true);
}

#[test]
fn a_part_is_resumed_with_what_is_in_object_storage() {
    let storage = Storage::new("object-storage-resumed");
    printed(&storage.run_unit("0"));
    let result = storage.object("part-0-of-2.run");
    let whole = fs::read_to_string(&result).expect("a result");
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() > 4, "a header and several units");
    fs::write(storage.object("part-0-of-2.unfinished"), lines[..3].join("\n") + "\n")
        .expect("written");
    fs::remove_file(&result).expect("removed");
    let merge = ["merge", &storage.plan, &storage.url];
    assert_refused(&merge, 6, &["units missing", "in 2 parts: 0,1"]);

    let report = json(&[&storage.run_unit("0")[..], &["--json"]].concat());
    assert_eq!(report["resumed_units"], 2);
    assert_eq!(storage.names(), ["part-0-of-2.run"]);
    assert_refused(&merge, 6, &["in 1 part: 1"]);
    printed(&storage.run_unit("1"));
    assert_eq!(json(&[&merge[..], &["--json"]].concat())["solutions"], "724");
}

#[test]
fn damaged_results_and_unusable_urls_are_refused() {
    let storage = Storage::new("object-storage-damaged");
    printed(&storage.run_unit("0"));
    let result = storage.object("part-0-of-2.run");
    let whole = fs::read_to_string(&result).expect("a result");
    fs::write(&result, whole.replacen("\"unit\":", "\"unit\":1", 1)).expect("written");
    let damaged = format!("{}/part-0-of-2.run", storage.url);
    assert_refused(&storage.run_unit("0"), 42, &[&damaged]);
    assert_refused(&["merge", &storage.plan, &storage.url], 7, &[&damaged]);

    // An unsigned result is not signed later, and one of another plan is not used.
    fs::write(&result, &whole).expect("written");
    let key = storage.scratch.file("sign.key");
    let signed = [&storage.run_unit("0")[..], &["--key", &key]].concat();
    assert_refused(&signed, 42, &[&damaged, "is not signed"]);
    let other = storage.scratch.file("other.json");
    printed(&["plan", "9", "--units", "2", "--out", &other]);
    let run = ["run-unit", &other, "--index", "0", "--out", &storage.url];
    assert_refused(&run, 42, &[&damaged, "is the result of another plan"]);

    for (url, words) in [
        ("ftp://host/counts", &["ftp://host/counts cannot be used", "s3://BUCKET/PREFIX"][..]),
        ("memory:///counts", &["not one of object storage", "s3://BUCKET/PREFIX"]),
        ("https://example.org/counts", &["not one of object storage"]),
        ("s3://", &["cannot be used", "s3://BUCKET/PREFIX"]),
    ] {
        let run = ["run-unit", &storage.plan, "--index", "0", "--out", url];
        assert_refused(&run, 42, words);
        assert_refused(&["merge", &storage.plan, url], 7, words);
    }
}

#[test]
fn a_kubernetes_job_may_keep_its_results_in_object_storage() {
    let scratch = Scratch::new("object-storage-kubernetes");
    let folder = scratch.file("job");
    let kubernetes = ["kubernetes", "10", "--out", &folder];
    let store = ["--store", "s3://queens/counts", "--secret", "credentials", "--sign"];
    printed(&[&kubernetes[..], &store].concat());
    let job = fs::read_to_string(format!("{folder}/job.yaml")).expect("it exists");
    for words in [
        r#""--out", "s3://queens/counts/nqueens-10", "--threads", "1", "--key", "/tmp/sign.key""#,
        r#""merge", "/plan/plan.json", "s3://queens/counts/nqueens-10", "--recount", "10"]"#,
        "name: \"credentials\"",
        "mountPath: /tmp",
        "emptyDir: {}",
    ] {
        assert!(job.contains(words), "{words}: {job}");
    }
    assert!(!job.contains("persistentVolumeClaim"), "{job}");

    for (more, words) in [
        (&["--store", "/results"][..], "invalid URL '/results'"),
        (&["--store", "file:///results"], "invalid URL 'file:///results'"),
        (&["--store", "ftp://queens/10"], "invalid URL 'ftp://queens/10'"),
        (&["--store", "s3://queens/10", "--claim", "queens"], "--claim"),
        (&["--secret", "credentials"], "--store"),
    ] {
        assert_refused(&[&kubernetes[..], more].concat(), 2, &[words]);
    }
}
