//! The contract of `estimate`: estimates with their errors, and one line for each mistake.

use crate::support::program;

use program::{assert_refused, json, run, text};

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
fn other_pieces_and_decided_squares_are_estimated_without_the_time_of_other_pieces() {
    let estimate = |arguments: &[&str]| {
        json(&[&["estimate"], arguments, &["--seconds", "0.2", "--json"]].concat())
    };
    let report = estimate(&["8", "--piece", "rook"]);
    let solutions = report["solutions"].as_f64().expect("a number");
    assert!((solutions - 40_320.0).abs() < 4_000.0, "{report}");
    assert_eq!(report["piece"], "rook");
    assert!(report["count_s"].is_null(), "{report}");
    let report = estimate(&["8", "--place", "1,1"]);
    assert_eq!(report["placed"], serde_json::json!([[1, 1]]));
    let solutions = report["solutions"].as_f64().expect("a number");
    assert!((solutions - 4.0).abs() < 1.0, "{report}");
    let output = run(&["estimate", "8", "--piece", "toroidal", "--seconds", "0.1"]);
    assert!(text(&output.stdout).starts_with("8 toroidal queens, estimated from"));
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
    let cases: [(&[&str], &[&str]); 8] = [
        (&["estimate", "1001"], &["1001", "0 to 1000"]),
        (&["estimate", "-1"], &["-1", "0 to 1000"]),
        (&["estimate", "x"], &["'x'", "0 to 1000"]),
        (&["estimate", "1.5"], &["1.5", "0 to 1000"]),
        (&["estimate", "33", "--kernel", "scalar"], &["--kernel", "n up to 32", "33"]),
        (&["estimate", "33", "--piece", "rook"], &["--piece", "n up to 32", "33"]),
        (&["estimate", "33", "--place", "1,1"], &["--place", "n up to 32", "33"]),
        (&["estimate", "33", "--seconds", "-1"], &["-1", "seconds"]),
    ];
    for (arguments, words) in cases {
        assert_refused(arguments, 2, words);
    }
}
