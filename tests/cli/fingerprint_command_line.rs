//! `fingerprint` prints the published fingerprints and counts the images of a solution.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::program;

fn json(arguments: &[&str]) -> Value {
    let output = program::run(&[&["fingerprint", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    serde_json::from_slice(&output.stdout).expect("one object")
}

#[test]
fn the_smallest_fingerprint_of_all_solutions_is_the_published_one() {
    let table = include_str!("../../records/published/beautiful_fingerprints.csv");
    for n in ["4", "5", "6"] {
        let published = table.lines().find_map(|row| row.strip_prefix(&format!("{n},")));
        let published = published.and_then(|row| row.split_once(',')).expect("a row").1;
        let published: Vec<u64> =
            published.split(' ').map(|cost| cost.parse().expect("a cost")).collect();
        let list = program::run(&["list", n, "--quiet"]).stdout;
        let list = String::from_utf8(list).expect("text");
        let fingerprints = list.lines().map(|solution| {
            let report = json(&[solution]);
            assert_eq!(report["fingerprint"], report["canonical_fingerprint"]);
            let costs = report["fingerprint"].as_array().expect("an array").iter();
            costs.map(|cost| cost.as_u64().expect("a number")).collect::<Vec<u64>>()
        });
        assert_eq!(fingerprints.min(), Some(published), "n = {n}");
    }
}

#[test]
fn the_canonical_images_are_the_fundamental_solutions_and_their_classes_add_up() {
    let lines = |arguments: &[&str]| {
        let text = String::from_utf8(program::run(arguments).stdout).expect("text");
        text.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    let fundamental = lines(&["list", "6", "--quiet", "--fundamental"]);
    let all = lines(&["list", "6", "--quiet"]);
    let canonical: BTreeSet<String> = all
        .iter()
        .map(|solution| {
            let report = json(&[solution]);
            let columns = report["canonical"].as_array().expect("an array").iter();
            columns.map(Value::to_string).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(canonical, fundamental.iter().cloned().collect());
    let images =
        fundamental.iter().map(|solution| json(&[solution])["images"].as_u64().expect("a number"));
    assert_eq!(images.sum::<u64>(), all.len() as u64);
}

#[test]
fn what_is_not_a_solution_has_no_fingerprint() {
    for (arguments, code, words) in [
        (&["fingerprint", "1", "2", "3", "4"][..], 6, "attack each other"),
        (&["fingerprint", "2", "-", "1", "3"], 6, "3 of 4"),
        (&["fingerprint", "2413\n3142"], 2, "one solution"),
    ] {
        let output = program::run(arguments);
        let err = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.contains(words) && err.lines().count() == 1, "{err}");
    }
}
