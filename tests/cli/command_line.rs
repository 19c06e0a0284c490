//! The command line keeps its contract: exit codes, one line for each error, data on stdout only.

use crate::support::program;

use std::fs;

use serde_json::Value;

use program::{Scratch, assert_refused, json, run, text};

/// Returns a command that runs the program without a GPU driver.
#[cfg(all(feature = "gpu", target_os = "linux"))]
fn nqueens_without_adapters(arguments: &[&str]) -> std::process::Command {
    let mut command = program::nqueens(arguments);
    command.env("VK_DRIVER_FILES", "/no/driver.json").env("VK_ICD_FILENAMES", "/no/driver.json");
    command
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
    assert_eq!(report["verified"], Value::from(vec!["residues", "divisible_by_3"]));
}

#[test]
fn a_count_states_only_the_checks_that_were_made() {
    let without_thirds = json(&["count", "8", "--place", "1,1", "--json"]);
    assert_eq!(without_thirds["verified"], Value::from(vec!["residues"]));
    let few_sets = json(&["count", "10", "--kernel", "sets", "--json"]);
    assert_eq!(few_sets["verified"], Value::from(vec!["residues"]));
    let many_sets = json(&["count", "17", "--kernel", "sets", "--json"]);
    assert_eq!(many_sets["solutions"], "95815104");
    assert_eq!(many_sets["verified"], Value::from(vec!["residues", "sampled_sets"]));
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
    let cases: [(&[&str], &[&str]); 27] = [
        (&["count", "33"], &["33", "0 to 32", "32-bit"]),
        (&["count", "-1"], &["-1", "0 to 32"]),
        (&["count", "abc"], &["abc", "0 to 32"]),
        (&["count", "1.5"], &["1.5", "0 to 32"]),
        (&["count", "99999999999999999999999"], &["0 to 32"]),
        (&["count", ""], &["0 to 32"]),
        (&["count"], &["<N>", "--help"]),
        (&["cuont", "8"], &["cuont", "--help"]),
        (&["count", "8", "--fast"], &["--fast", "--help"]),
        (&["count", "8", "--place", "9,1"], &["9,1", "1 to 8"]),
        (&["count", "8", "--place", "0,1"], &["0,1", "from 1"]),
        (&["count", "8", "--place", "a0"], &["a0", "row,col"]),
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
    use std::process::Stdio;
    let mut child = nqueens_without_adapters(&["count", "22", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let first = lines.next().expect("a line").expect("UTF-8");
    assert!(first.contains("no GPU adapter was found"), "{first}");
    program::interrupt(&child);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(rest.len() == 1 && rest[0].contains("interrupted"), "{rest:?}");
    assert_eq!(child.wait().expect("our own child process").code(), Some(130));
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
