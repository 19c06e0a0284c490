//! The command line keeps its contract: exit codes, one line for each error, data on stdout only.

use crate::support::program;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use program::{Scratch, assert_refused, nqueens, run, text};

/// Sends SIGINT, as Ctrl-C does.
#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("our own child process");
}

/// Returns a command that runs the program without a GPU driver.
#[cfg(all(feature = "gpu", target_os = "linux"))]
fn nqueens_without_adapters(arguments: &[&str]) -> std::process::Command {
    let mut command = nqueens(arguments);
    command.env("VK_DRIVER_FILES", "/no/driver.json").env("VK_ICD_FILENAMES", "/no/driver.json");
    command
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 1, "{arguments:?}: one object, one line");
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

#[test]
fn the_first_command_of_the_readme_prints_what_the_readme_shows() {
    let output = run(&["count", "16"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for words in ["14 772 512", "14772512", "agrees with OEIS A000170", "kernel", "solutions/s"] {
        assert!(report.contains(words), "{report}");
    }
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn json_has_the_documented_fields_with_counts_as_strings() {
    let report = json(&["count", "10", "--threads", "2", "--json"]);
    for (field, value) in [
        ("n", Value::from(10)),
        ("piece", "queen".into()),
        ("solutions", "724".into()),
        ("threads", 2.into()),
        ("published", "agrees".into()),
        ("devices", vec!["cpu"].into()),
        ("resumed_units", 0.into()),
    ] {
        assert_eq!(report[field], value, "{field}");
    }
    for field in ["kernel", "nodes"] {
        assert!(report[field].is_string(), "{field}");
    }
    for field in ["units", "elapsed_s", "rate_per_s"] {
        assert!(report[field].is_number(), "{field}");
    }
    assert!(report["verified"].is_array());
}

#[test]
fn classes_equal_the_published_values() {
    let report = json(&["count", "12", "--classes", "--json"]);
    let classes = &report["classes"];
    assert_eq!(classes["total"], "14200");
    assert_eq!(classes["fundamental"], "1787");
    assert_eq!(classes["point_symmetric"], "80");
    assert_eq!(classes["rotation_symmetric"], "8");
    assert_eq!(classes["published"], "agrees");
    let superqueens = json(&["count", "12", "--classes", "--piece", "superqueen", "--json"]);
    assert_eq!(superqueens["classes"]["fundamental"], "22");
    assert_eq!(superqueens["classes"]["published"], "agrees");
    let toroidal = json(&["count", "7", "--classes", "--piece", "toroidal", "--json"]);
    assert_eq!(
        (&toroidal["classes"]["total"], &toroidal["classes"]["published"]),
        (&"28".into(), &"unknown".into())
    );
}

#[test]
fn decided_squares_are_read_from_repeated_flags_and_from_lists() {
    let placed = json(&["count", "8", "--place", "1,1", "--json"]);
    assert_eq!((&placed["solutions"], &placed["published"]), (&"4".into(), &"unknown".into()));
    let list = json(&["count", "8", "--place", "1,1 2,5", "--json"]);
    let repeated = json(&["count", "8", "--place", "2,5", "--place", "1,1", "--json"]);
    assert_eq!(
        (&list["solutions"], &list["placed"]),
        (&repeated["solutions"], &repeated["placed"])
    );
    let blocked = json(&["count", "4", "--block", "1,2", "--json"]);
    assert_eq!((&blocked["solutions"], &blocked["blocked"][0][1]), (&"1".into(), &2.into()));
}

#[test]
fn placed_queens_that_attack_each_other_give_zero_and_the_reason() {
    let report = json(&["count", "8", "--place", "1,1 2,2", "--json"]);
    assert_eq!(report["solutions"], "0");
    assert_eq!(report["conflict"], serde_json::json!([[1, 1], [2, 2]]));
    let output = run(&["count", "8", "--place", "1,1 2,2"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("1,1 and 2,2 attack each other"));
}

#[test]
fn every_piece_and_every_kernel_can_be_selected() {
    for (piece, n, solutions) in
        [("rook", "6", "720"), ("superqueen", "11", "44"), ("toroidal", "7", "28")]
    {
        assert_eq!(
            json(&["count", n, "--piece", piece, "--json"])["solutions"],
            solutions,
            "{piece}"
        );
    }
    for kernel in ["auto", "reference", "textbook", "scalar", "generic"] {
        assert_eq!(
            json(&["count", "9", "--kernel", kernel, "--json"])["solutions"],
            "352",
            "{kernel}"
        );
    }
    // A kernel for another processor has an exit code of its own.
    for kernel in ["avx2", "avx512"] {
        let output = run(&["count", "9", "--kernel", kernel, "--json"]);
        match output.status.code() {
            Some(0) => assert!(text(&output.stdout).contains("\"352\"")),
            code => assert_eq!(code, Some(5), "{}", text(&output.stderr)),
        }
    }
}

#[test]
fn each_kind_of_subproblem_can_be_selected() {
    for (kind, kernel) in [("prefixes", "generic"), ("column-sets", "sets")] {
        let count = ["count", "10", "--subproblems", kind, "--device", "cpu", "--json"];
        let report = json(&count);
        assert_eq!(report["solutions"], "724", "{kind}");
        let found = report["kernel"].as_str().expect("a name");
        assert_eq!(found.contains("sets"), kernel == "sets", "{kind}: {found}");
    }
    // A kernel for prefixes counts column sets, too.
    let count = ["count", "10", "--kernel", "scalar", "--subproblems", "column-sets", "--json"];
    assert_eq!(
        (&json(&count)["solutions"], &json(&count)["kernel"]),
        (&"724".into(), &"scalar".into())
    );
}

#[test]
fn the_empty_board_has_one_solution() {
    assert_eq!(json(&["count", "0", "--json"])["solutions"], "1");
}

#[test]
fn invalid_input_is_reported_in_one_line_with_exit_code_2() {
    let cases: [(&[&str], &[&str]); 28] = [
        (&["count", "33"], &["33", "0 to 32", "32-bit"]),
        (&["count", "-1"], &["-1", "0 to 32"]),
        (&["count", "abc"], &["abc", "0 to 32"]),
        (&["count", "1.5"], &["1.5", "0 to 32"]),
        (&["count", "99999999999999999999999"], &["0 to 32"]),
        (&["count", ""], &["0 to 32"]),
        (&["count"], &["<N>", "--help"]),
        (&[], &["--help"]),
        (&["cuont", "8"], &["cuont", "--help"]),
        (&["count", "8", "--fast"], &["--fast", "--help"]),
        (&["count", "8", "--place", "9,1"], &["9,1", "1 to 8"]),
        (&["count", "8", "--place", "0,1"], &["0,1", "from 1"]),
        (&["count", "8", "--place", "a1"], &["a1", "row,col"]),
        (&["count", "0", "--block", "1,1"], &["1,1", "no squares"]),
        (&["count", "8", "--place", "2,2", "--block", "2,2"], &["2,2", "both"]),
        (&["count", "8", "--kernel", "cuda"], &["cuda", "avx512"]),
        (&["count", "8", "--piece", "king"], &["king", "superqueen"]),
        (&["count", "8", "--piece", "rook", "--kernel", "textbook"], &["textbook", "queens only"]),
        (
            &["count", "12", "--kernel", "sets", "--subproblems", "prefixes"],
            &["sets", "--kernel auto"],
        ),
        (
            &["count", "8", "--piece", "rook", "--subproblems", "column-sets"],
            &["column sets", "rook"],
        ),
        (&["count", "8", "--subproblems", "rows"], &["rows", "column-sets"]),
        (&["count", "8", "--threads", "0"], &["threads", "1 to 1024"]),
        (&["count", "8", "--threads", "65536"], &["threads", "1 to 1024"]),
        (&["count", "8", "--classes", "--place", "1,1"], &["--classes", "empty"]),
        (&["count", "8", "--time-limit", "soon"], &["soon", "60s"]),
        (&["count", "8", "--time-limit", "0s"], &["0s", "60s"]),
        (&["count", "8", "--stop-at", "8"], &["'8'", "HH:MM", "08:00"]),
        (&["count", "8", "--stop-at", "24:00"], &["24:00", "HH:MM"]),
    ];
    for (arguments, words) in cases {
        assert_refused(arguments, 2, words);
    }
}

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

#[test]
fn devices_lists_the_kernels_of_the_cpu_and_each_adapter_with_an_id() {
    let report = json(&["devices", "--no-test", "--json"]);
    let kernels = report["cpu"]["kernels"].as_array().expect("an array");
    assert_eq!(kernels.iter().filter(|kernel| kernel["fastest"] == true).count(), 1);
    assert!(kernels.iter().any(|kernel| kernel["name"] == "scalar" && kernel["runs_here"] == true));
    for adapter in report["adapters"].as_array().expect("an array") {
        assert_eq!(adapter["self_test"], "not_run");
        let id = adapter["id"].as_str().expect("an id");
        assert!(id.starts_with(adapter["backend"].as_str().expect("a backend")), "{id}");
        let text = run(&["devices", "--no-test"]);
        assert!(self::text(&text.stdout).contains(id));
    }
}

#[test]
fn the_self_test_of_the_cpu_passes() {
    let output = run(&["selftest", "--device", "cpu"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).lines().all(|line| line.ends_with("passed")));
}

#[test]
fn devices_that_cannot_count_are_refused_in_one_line() {
    let cases: [(&[&str], i32, &[&str]); 5] = [
        (&["count", "8", "--device", "tpu"], 2, &["tpu", "nqueens devices"]),
        (&["count", "8", "--device", "auto,cpu"], 2, &["auto,cpu"]),
        (&["count", "8", "--piece", "rook", "--device", "gpu"], 2, &["queens only"]),
        (&["count", "8", "--kernel", "scalar", "--device", "gpu"], 2, &["--kernel", "add cpu"]),
        (&["bench", "8", "--device", "vulkan-0-0"], 5, &["vulkan-0-0", "nqueens devices"]),
    ];
    let built_in = cfg!(feature = "gpu");
    for (arguments, code, words) in cases {
        assert_refused(
            arguments,
            code,
            if built_in || code == 2 { words } else { &["built without"] },
        );
    }
}

#[cfg(all(feature = "gpu", target_os = "linux"))]
#[test]
fn without_an_adapter_a_gpu_is_refused_and_the_cpu_counts() {
    let output =
        nqueens_without_adapters(&["count", "8", "--device", "gpu"]).output().expect("starts");
    assert_eq!(output.status.code(), Some(5));
    let message = text(&output.stderr);
    assert!(message.lines().count() == 1 && message.contains("no GPU adapter"), "{message}");
    let output = nqueens_without_adapters(&["count", "10", "--json"]).output().expect("starts");
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!((&report["solutions"], &report["devices"][0]), (&"724".into(), &"cpu".into()));
    assert!(output.stderr.is_empty(), "a short count loads no driver");
}

#[cfg(all(feature = "gpu", target_os = "linux"))]
#[test]
fn a_long_count_without_an_adapter_reports_it_once() {
    use std::io::{BufRead, BufReader};
    let mut child = nqueens_without_adapters(&["count", "22", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let first = lines.next().expect("a line").expect("UTF-8");
    assert!(first.contains("no GPU adapter was found"), "{first}");
    interrupt(&child);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(rest.len() == 1 && rest[0].contains("interrupted"), "{rest:?}");
    assert_eq!(child.wait().expect("our own child process").code(), Some(130));
}

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

#[test]
fn estimates_are_close_to_the_count_and_state_their_error() {
    let report = json(&["estimate", "14", "--seconds", "0.3", "--json"]);
    let number =
        |field: &str| report[field].as_f64().unwrap_or_else(|| panic!("{field} is a number"));
    let off = (number("solutions") - 365_596.0).abs();
    assert!(number("solutions_error") > 0.0 && off < 6.0 * number("solutions_error"), "{report}");
    assert!(number("solutions_error") < 0.2 * number("solutions"), "{report}");
    for (least, value, most) in [
        ("solutions_least", "solutions", "solutions_most"),
        ("nodes_least", "nodes", "nodes_most"),
        ("count_least_s", "count_s", "count_most_s"),
    ] {
        assert!(number(least) < number(value) && number(value) < number(most), "{report}");
    }
    assert_eq!(report["measured_at_n"], 14);
}

#[test]
fn boards_that_are_too_large_to_count_are_estimated_with_their_error() {
    let arguments = ["estimate", "64", "--seconds", "0.05", "--threads", "2"];
    let report = json(&[&arguments[..], &["--json"]].concat());
    let number =
        |field: &str| report[field].as_f64().unwrap_or_else(|| panic!("{field} is a number"));
    // The number is about 6.4 √n exp(n (ln n − γ)) for n from 27 to 1000.
    let expected =
        64.0 * (64.0_f64.log10() - 1.944_001 / std::f64::consts::LN_10) + 51.2_f64.log10();
    let off = (number("log10_solutions") - expected).abs();
    let error = number("log10_solutions_error");
    assert!(error > 0.0 && error < 0.3 && off < 5.0 * error, "{report}");
    for (least, value, most) in [
        ("log10_solutions_least", "log10_solutions", "log10_solutions_most"),
        ("gamma_least", "gamma", "gamma_most"),
    ] {
        assert!(number(least) < number(value) && number(value) < number(most), "{report}");
    }
    assert!(number("gamma") > 1.85 && number("gamma") < 1.91, "{report}");
    let runs = number("runs");
    assert!(runs >= 16.0 && number("effective_runs") <= runs, "{report}");
    assert!(number("sweeps") >= 8.0 * 64.0, "{report}");
    assert_eq!(report["n"], 64);
    assert!(report.get("count_s").is_none() && report.get("dives").is_none(), "{report}");
    let output = run(&arguments);
    for words in ["64 queens, estimated from", "annealing runs", "log10(solutions)", "gamma"] {
        assert!(text(&output.stdout).contains(words), "{}", text(&output.stdout));
    }
}

#[test]
fn an_estimate_that_cannot_be_made_is_reported_in_one_line() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["estimate", "1001"], &["1001", "0 to 1000"]),
        (&["estimate", "-1"], &["-1", "0 to 1000"]),
        (&["estimate", "x"], &["'x'", "0 to 1000"]),
        (&["estimate", "1.5"], &["1.5", "0 to 1000"]),
        (&["estimate", "33", "--kernel", "scalar"], &["--kernel", "n up to 32", "33"]),
        (&["estimate", "33", "--seconds", "-1"], &["-1", "seconds"]),
    ];
    for (arguments, words) in cases {
        assert_refused(arguments, 2, words);
    }
}

#[test]
fn an_authority_is_created_once_and_issues_and_revokes_tokens() {
    let scratch = Scratch::new("authority");
    let data = scratch.file("coordinator");
    assert_refused(
        &["token", "create", "--data", &data],
        7,
        &["there is no authority", "coordinator init"],
    );
    let made =
        json(&["coordinator", "init", "--data", &data, "--name", "queens.example.org", "--json"]);
    assert_eq!(made["names"][0], "queens.example.org");
    assert_refused(&["coordinator", "init", "--data", &data], 7, &["is not empty"]);
    let other = scratch.file("other");
    assert_refused(
        &["coordinator", "init", "--data", &other, "--name", "a b"],
        2,
        &["'a b'", "DNS name"],
    );

    let created = json(&["token", "create", "--data", &data, "--json"]);
    let token = created["token"].as_str().expect("a string");
    assert!(
        token.starts_with(&format!("nqt1.{}.", made["fingerprint"].as_str().expect("a string"))),
        "{token}"
    );
    assert_eq!((&created["role"], &created["uses"]), (&"worker".into(), &1.into()));
    assert_eq!(created["expires_in_s"], 3600);
    assert_eq!(created["owner"], format!("token:{}", created["id"].as_str().expect("a string")));
    let annas = json(&["token", "create", "--data", &data, "--owner", "anna", "--json"]);
    assert_eq!(annas["owner"], "anna");
    let plain = run(&[
        "token",
        "create",
        "--data",
        &data,
        "--role",
        "operator",
        "--uses",
        "3",
        "--expires",
        "7d",
    ]);
    assert!(text(&plain.stdout).starts_with("nqt1.") && plain.stderr.is_empty());

    let listed = json(&["token", "list", "--data", &data, "--json"]);
    let owners: Vec<_> =
        listed["tokens"].as_array().expect("a list").iter().map(|t| &t["owner"]).collect();
    assert_eq!(owners.len(), 3);
    assert!(owners.contains(&&created["owner"]) && owners.contains(&&"anna".into()), "{owners:?}");
    assert!(!listed.to_string().contains(&token[5 + 53..]), "the secret is shown once");
    let list = run(&["token", "list", "--data", &data]);
    for part in ["3 of 3 uses left, expires in 6 d 23 h, owner token:", ", owner anna\n"] {
        assert!(text(&list.stdout).contains(part), "{}", text(&list.stdout));
    }

    let id = created["id"].as_str().expect("a string");
    let revoked = run(&["token", "revoke", "--data", &data, id]);
    assert_eq!(revoked.status.code(), Some(0));
    assert_refused(&["token", "revoke", "--data", &data, id], 2, &["no token", id]);
    assert_refused(&["revoke", "--data", &data, "gpu-1"], 2, &["gpu-1", "token list"]);
    assert_refused(&["revoke", "--data", &data, "GPU"], 2, &["GPU", "a-z"]);
    for (flag, value, word) in [
        ("--role", "admin", "viewer"),
        ("--uses", "0", "1 to"),
        ("--expires", "1w", "1h"),
        ("--owner", "A:b", "a-z"),
    ] {
        assert_refused(&["token", "create", "--data", &data, flag, value], 2, &[value, word]);
    }
    assert_refused(&["token"], 2, &["no command"]);

    let register = std::path::Path::new(&data).join("authority/register");
    let bytes = fs::read(&register).expect("readable");
    fs::write(&register, &bytes[..bytes.len() - 2]).expect("writable");
    assert_refused(&["token", "list", "--data", &data], 7, &["register", "is damaged"]);
}

#[test]
fn help_completions_and_man_pages_are_written_to_stdout() {
    for arguments in [
        &["--help"][..],
        &["count", "--help"],
        &["bench", "--help"],
        &["coordinator", "init", "--help"],
        &["token", "create", "--help"],
        &["revoke", "--help"],
        &["--version"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["completions", "fish"],
        &["man"],
        &["man", "count"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
    assert_refused(&["man", "cuont"], 2, &["cuont", "count"]);
    assert_refused(&["completions", "cmd"], 2, &["cmd", "bash"]);
}
