//! The contract of `bench`: its report, its chart, its errors.

use crate::support::program;

use std::fs;
#[cfg(unix)]
use std::{process::Stdio, time::Duration};

use serde_json::Value;

use program::{Scratch, assert_refused, json, run, text};
#[cfg(unix)]
use program::{interrupt, nqueens};

#[test]
fn a_bench_compares_with_the_textbook_kernel_and_counts_correctly() {
    let output = run(&["bench", "9", "--rounds", "2", "--threads", "1", "--device", "cpu"]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    for words in
        ["9 queens, 2 rounds", "contestant", "textbook", "solutions/s", "agrees with OEIS A000170"]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    let report = json(&[
        "bench", "10", "--rounds", "3", "--kernel", "scalar", "--kernel", "generic", "--device",
        "cpu", "--json",
    ]);
    assert_eq!((&report["n"], &report["rounds"]), (&10.into(), &3.into()));
    let contestants = report["contestants"].as_array().expect("an array");
    let names: Vec<&Value> = contestants.iter().map(|contestant| &contestant["name"]).collect();
    assert_eq!(names, ["textbook", "scalar", "generic"]);
    for contestant in contestants {
        for (field, value) in [("kind", "cpu"), ("solutions", "724"), ("published", "agrees")] {
            assert_eq!(contestant[field], value, "{field}");
        }
        for field in ["n", "threads", "solutions_per_s"] {
            assert!(contestant[field].is_number(), "{field}");
        }
        for spread in ["elapsed_s", "ratio_to_textbook"] {
            for end in ["median", "min", "max"] {
                assert!(contestant[spread][end].is_number(), "{spread}.{end}");
            }
        }
    }
    assert!(contestants[0]["nodes_per_s"].is_null() && contestants[1]["nodes_per_s"].is_number());
}

#[test]
fn a_bench_names_each_kernel_once_and_boards_without_solutions_have_no_ratio() {
    let kernels = ["--kernel", "textbook", "--kernel", "scalar", "--kernel", "scalar"];
    let report = json(
        &[&["bench", "3", "--rounds", "1", "--device", "cpu", "--json"], &kernels[..]].concat(),
    );
    let contestants = report["contestants"].as_array().expect("an array");
    assert_eq!(contestants.len(), 2);
    assert!(contestants.iter().all(|c| c["ratio_to_textbook"].is_null() && c["solutions"] == "0"));
}

#[test]
fn the_chart_of_a_bench_is_written_completely_or_not_at_all() {
    let scratch = Scratch::new("chart");
    let chart = scratch.file("chart.svg");
    fs::write(&chart, "an older one").expect("writable");
    json(&["bench", "8", "--rounds", "1", "--device", "cpu", "--svg", &chart, "--json"]);
    let drawn = fs::read_to_string(&chart).expect("written");
    assert!(
        drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n") && drawn.contains("textbook"),
        "{drawn}"
    );
    let bench = |place: &str, words: &[&str]| {
        assert_refused(
            &["bench", "8", "--rounds", "1", "--device", "cpu", "--svg", place],
            7,
            &[words, &["chart"]].concat(),
        );
    };
    bench(&scratch.file("no/such/folder.svg"), &["folder.svg"]);
    bench(&scratch.file(""), &["not a regular file"]);
    // A bench that is refused for another reason leaves no file behind either.
    assert_refused(&["bench", "28", "--svg", &scratch.file("never.svg")], 2, &["28"]);
    let files = fs::read_dir(scratch.path("")).expect("readable").count();
    assert_eq!(files, 1, "nothing but the chart is left");
}

#[test]
fn a_bench_that_cannot_run_is_reported_in_one_line() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["bench", "28"], &["28", "27", "published"]),
        (&["bench", "-1"], &["-1", "0 to 32"]),
        (&["bench", "8", "--kernel", "cuda"], &["cuda", "avx512"]),
        (&["bench", "8", "--rounds", "0"], &["rounds", "1 to 1000"]),
        (&["bench", "8", "--rounds", "-3"], &["rounds", "1 to 1000"]),
        (&["bench", "8", "--threads", "0"], &["threads", "1 to 1024"]),
    ];
    for (arguments, words) in cases {
        assert_refused(arguments, 2, words);
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_bench_with_exit_code_130_and_no_chart() {
    let scratch = Scratch::new("bench-stopped");
    // A comparison that takes some minutes.
    let child = nqueens(&[
        "bench",
        "16",
        "--rounds",
        "1000",
        "--device",
        "cpu",
        "--svg",
        &scratch.file("chart.svg"),
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the program starts");
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&child);
    let output = child.wait_with_output().expect("our own child process");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted in round") && message.lines().count() == 1, "{message}");
    assert!(output.stdout.is_empty());
    assert_eq!(fs::read_dir(scratch.path("")).expect("readable").count(), 0);
}
