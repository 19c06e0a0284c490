//! `nqueens worker` reports in one line, with a documented exit code, why it cannot run.

use crate::support;

use std::net::TcpListener;
use std::process::Stdio;

use support::Coordinator;
use support::program::{self, Scratch, nqueens};

/// Asserts that `nqueens worker` refuses with this exit code and one line that contains `words`.
fn assert_refused(arguments: &[&str], code: i32, words: &[&str]) {
    let arguments: Vec<&str> = ["worker"].iter().chain(arguments).copied().collect();
    program::assert_refused(&arguments, code, words);
}

#[test]
fn wrong_usage_is_reported_in_one_line() {
    for (arguments, words) in [
        (&[][..], &["--join"][..]),
        (&["--join", "http://x"], &["'http://x' is not an address", "HOST:PORT"]),
        (&["--join", "h:1", "--token", "abc"], &["nqt1."]),
        (&["--join", "h:1", "--name", "My Worker"], &["is not a name"]),
        (&["--join", "h:1", "--device", "tpu"], &["not a choice of devices"]),
        (&["--join", "h:1", "--threads", "0"], &["invalid number of threads"]),
        (&["--join", "h:1", "--kernel", "magic"], &["not a kernel"]),
        (&["--join", "h:1", "--hours", "8-18"], &["HH:MM-HH:MM"]),
        (&["--join", "h:1", "--max-temperature", "-3"], &["20 to 120"]),
        (&["--join", "h:1", "--drain-timeout", "soon"], &["invalid time"]),
        (&["--join", "h:1", "--log-format", "xml"], &["text", "json"]),
    ] {
        assert_refused(arguments, 2, words);
    }
}

#[test]
fn impossible_options_are_refused_before_anything_is_sent() {
    let scratch = Scratch::new("refused");
    let data = scratch.file("worker");
    let quiet = ["--log-level", "error", "--data", &data];
    let with = |arguments: &[&'static str]| -> Vec<String> {
        arguments
            .iter()
            .map(|a| (*a).to_owned())
            .chain(quiet.iter().map(|a| (*a).to_owned()))
            .collect()
    };
    for (arguments, code, words) in [
        (with(&["--join", "192.0.2.1:7878"]), 2, &["--token", "--insecure"][..]),
        (with(&["--join", "127.0.0.1:1", "--kernel", "textbook"]), 2, &["textbook"]),
        (
            with(&["--join", "127.0.0.1:1", "--kernel", "scalar", "--device", "gpu"]),
            2,
            &["--kernel", "--device"],
        ),
        (
            with(&["--join", "127.0.0.1:1", "--device", "vulkan-ffff-ffff"]),
            5,
            &["vulkan-ffff-ffff"],
        ),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_refused(&arguments, code, words);
    }
}

#[test]
fn an_unusable_folder_is_named() {
    let scratch = Scratch::new("folder");
    let file = scratch.file("a-file");
    std::fs::write(&file, "no folder").expect("writable");
    assert_refused(
        &["--join", "127.0.0.1:1", "--log-level", "error", "--data", &file],
        7,
        &["a-file"],
    );
    let data = scratch.file("worker");
    std::fs::create_dir_all(&data).expect("writable");
    std::fs::write(
        scratch.file("worker/outbox.db"),
        "this is no outbox, whatever its name may say",
    )
    .expect("writable");
    assert_refused(
        &["--join", "127.0.0.1:1", "--log-level", "error", "--data", &data],
        7,
        &["outbox.db", "remove it"],
    );
}

#[cfg(unix)]
#[test]
fn a_worker_waits_for_an_absent_coordinator_and_stops_cleanly_on_request() {
    use std::io::{BufRead, BufReader};
    let scratch = Scratch::new("away");
    // Nothing listens at this address after the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a free port")
        .to_string();
    let data = scratch.file("worker");
    let mut child =
        nqueens(&["worker", "--device", "cpu", "--join", &address, "--data", &data, "--json"])
            .args(["--drain-timeout", "1s", "--log-format", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    // It reports that the coordinator is unreachable, and continues.
    let message =
        lines.by_ref().map(|line| line.expect("UTF-8")).find(|line| line.contains("WARN"));
    let message: serde_json::Value =
        serde_json::from_str(&message.expect("a warning")).expect("a line is one JSON object");
    assert_eq!(message["address"], address);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM)
        .expect("our own child process");
    // Read until it closes its stderr.
    lines.for_each(drop);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!((&report["units"], &report["undelivered"]), (&0.into(), &0.into()));
}

/// Runs `nqueens worker` in a folder of its own until it ends. Returns its exit code and its
/// stderr.
fn run_to_end(scratch: &Scratch, arguments: &[&str]) -> (Option<i32>, String) {
    let data = scratch.file("worker");
    let fixed =
        ["worker", "--device", "cpu", "--threads", "1", "--log-level", "error", "--data", &data];
    let output = program::run(&[&fixed[..], arguments].concat());
    (output.status.code(), program::text(&output.stderr).to_owned())
}

#[test]
fn a_mismatch_of_tls_between_worker_and_coordinator_is_reported_with_a_remedy() {
    let scratch = Scratch::new("otherwise");
    let locked = scratch.path("locked");
    support::authority(&locked);
    let locked = Coordinator::start(&locked, &[]);
    let open = Coordinator::start(&scratch.path("open"), &[]);

    let (code, message) = run_to_end(&scratch, &["--join", &locked.address.to_string()]);
    assert_eq!((code, message.lines().count()), (Some(8), 1), "{message}");
    assert!(message.contains("without TLS") && message.contains("--token"), "{message}");

    let token = program::printed(&["token", "create", "--data", locked.data()]);
    let (code, message) =
        run_to_end(&scratch, &["--join", &open.address.to_string(), "--token", token.trim()]);
    assert_eq!((code, message.lines().count()), (Some(8), 1), "{message}");
    assert!(
        message.contains("does not speak TLS") && message.contains("omit --token"),
        "{message}"
    );

    // The refused token is still valid for the coordinator that issued it.
    let (code, message) = run_to_end(
        &scratch,
        &["--join", &locked.address.to_string(), "--token", token.trim(), "--exit-when-idle"],
    );
    assert_eq!((code, &message[..]), (Some(0), ""));
}
