//! A count that is killed, interrupted or limited in time continues from its checkpoint, and a
//! checkpoint that is damaged or of another job is refused.

use crate::support::program;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

#[cfg(unix)]
use program::interrupt;
use program::{Scratch, assert_refused, json, nqueens, run, text};

#[test]
fn an_inaccessible_or_damaged_checkpoint_is_exit_code_7() {
    let scratch = Scratch::new("refused");
    assert_refused(
        &["count", "8", "--resume", &scratch.file("no/such/folder")],
        7,
        &["checkpoint"],
    );
    assert_refused(&["count", "8", "--resume", &scratch.file("")], 7, &["checkpoint"]);
    let foreign = scratch.file("foreign");
    fs::write(&foreign, "my diary\n").expect("writable");
    assert_refused(&["count", "8", "--resume", &foreign], 7, &["line 1", "not a checkpoint"]);
    assert_eq!(fs::read(&foreign).expect("still there"), b"my diary\n");

    let file = scratch.file("run");
    assert_eq!(json(&["count", "9", "--resume", &file, "--json"])["solutions"], "352");
    assert_refused(&["count", "10", "--resume", &file], 7, &["another job", "n=9"]);
    let whole = fs::read(&file).expect("written");
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&file, &flipped).expect("writable");
    assert_refused(&["count", "9", "--resume", &file], 7, &["line", "checksum"]);
    assert_eq!(fs::read(&file).expect("still there"), flipped, "a damaged file is left as it is");
    // Cut in the middle of a record, as a kill can leave it: the remaining units are counted again.
    fs::write(&file, &whole[..middle]).expect("writable");
    let resumed = json(&["count", "9", "--resume", &file, "--json"]);
    assert_eq!(resumed["solutions"], "352");
    assert!(resumed["resumed_units"].as_u64() < resumed["units"].as_u64());
}

#[test]
fn a_count_that_is_killed_repeatedly_ends_with_the_correct_total() {
    let scratch = Scratch::new("killed");
    let file = scratch.file("run");
    // The textbook kernel takes about a second per core; each round is killed during the count.
    let arguments = ["count", "15", "--kernel", "textbook", "--resume", &file, "--json", "--quiet"];
    let mut kills = 0;
    let total = loop {
        let mut child =
            nqueens(&arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
        // The delay is not a measurement: the result is the same whenever the kill comes.
        std::thread::sleep(Duration::from_millis(120));
        child.kill().expect("our own child process");
        let output = child.wait_with_output().expect("our own child process");
        if output.status.success() {
            break serde_json::from_slice::<Value>(&output.stdout).expect("one JSON object");
        }
        kills += 1;
        if kills == 100 {
            break json(&arguments);
        }
    };
    assert_eq!(total["solutions"], "2279184", "after {kills} kills");
    let units = fs::read_to_string(&file).expect("written").lines().count() as u64 - 1;
    assert_eq!(total["units"], units, "each unit is in the file once");
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_count_with_a_progress_report_and_exit_code_130() {
    // With --quiet it begins without a sample.
    let child = nqueens(&["count", "22", "--kernel", "scalar", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&child);
    let output = child.wait_with_output().expect("our own child process");
    assert_eq!(output.status.code(), Some(130));
    let message = text(&output.stderr);
    assert!(
        message.starts_with("nqueens: interrupted") && message.lines().count() == 1,
        "{message}"
    );
    assert!(output.stdout.is_empty());
}

#[cfg(unix)]
#[test]
fn a_long_count_says_before_it_begins_how_long_it_will_take() {
    use std::io::{BufRead, BufReader};
    let scratch = Scratch::new("long");
    let file = scratch.file("run");
    // Months on a thousand cores.
    let count = ["count", "28", "--kernel", "scalar", "--device", "cpu"];
    for (arguments, words) in
        [(&[][..], "--resume FILE keeps the finished units"), (&["--resume", &file], &file)]
    {
        let mut child = nqueens(&[&count[..], arguments].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let line = lines.next().expect("a line").expect("UTF-8");
        assert!(line.contains("this will take about") && line.contains(" to "), "{line}");
        assert!(line.contains(words) && line.contains("years"), "{line}");
        interrupt(&child);
        assert_eq!(child.wait().expect("our own child process").code(), Some(130));
    }
}

#[test]
fn a_time_limit_stops_the_count_as_an_interrupt_does_and_says_what_is_kept() {
    let scratch = Scratch::new("limited");
    let file = scratch.file("run");
    let stopped = |arguments: &[&str]| {
        let limited = ["count", "22", "--kernel", "scalar", "--time-limit", "0.001s"];
        let output = run(&[&limited[..], arguments].concat());
        assert_eq!(output.status.code(), Some(130));
        assert!(output.stdout.is_empty());
        text(&output.stderr).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = stopped(&[]);
    assert!(lines[0].contains("without --resume FILE, nothing is kept"), "{lines:?}");
    let last = lines.last().expect("a line");
    assert!(last.starts_with("nqueens: stopped by --time-limit after"), "{lines:?}");
    assert!(last.contains("--resume FILE"), "{lines:?}");
    let lines = stopped(&["--resume", &file]);
    assert!(!lines[0].contains("nothing is kept"), "{lines:?}");
    let last = lines.last().expect("a line");
    assert!(last.contains("run the same command again") && last.contains(&file), "{lines:?}");
    // A limit that is not reached changes nothing but the warning.
    let output = run(&["count", "8", "--time-limit", "365d"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn a_count_that_a_time_limit_stops_repeatedly_ends_with_the_correct_total() {
    let scratch = Scratch::new("slices");
    let file = scratch.file("run");
    let count = ["count", "14", "--kernel", "textbook", "--resume", &file, "--json", "--quiet"];
    let limited = [&count[..], &["--time-limit", "0.02s"]].concat();
    // The total is the same whenever the limit is reached.
    let total = (0..100)
        .find_map(|_| {
            let output = run(&limited);
            if output.status.success() {
                return Some(serde_json::from_slice(&output.stdout).expect("one JSON object"));
            }
            assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
            None
        })
        .unwrap_or_else(|| json(&count));
    assert_eq!(total["solutions"], "365596");
}
