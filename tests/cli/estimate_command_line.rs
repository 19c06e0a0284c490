//! The contract of `estimate`: estimates with their errors, and one line for each mistake.

use crate::support::program;

use std::fs;
use std::fs::File;

use serde_json::Value;

use program::{Scratch, assert_refused, json, printed, run, text};

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

/// Returns a table of a fleet file for two devices, each of which counts 18 queens in an hour.
fn two_devices(name: &str, owner: &str) -> String {
    format!("[[device]]\nname = '{name}'\nowner = '{owner}'\ncount = 2\nn = 18\nelapsed_s = 3600\n")
}

/// Returns the forecast of the count of 18 queens on a fleet.
fn fleet_of_18(scratch: &Scratch, fleet: &str) -> Value {
    let file = scratch.file("fleet.toml");
    fs::write(&file, fleet).expect("written");
    let report = json(&["estimate", "18", "--seconds", "0.05", "--json", "--fleet", &file]);
    assert!(report["nodes"].is_number(), "{report}");
    report["fleet"].clone()
}

#[track_caller]
fn assert_close(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    assert!((found - expected).abs() <= 1e-6 * expected, "{found} for {expected}");
}

#[test]
fn a_campaign_on_a_fleet_is_forecast_from_measured_counts() {
    let scratch = Scratch::new("fleet");
    let head = "start = 2027-03-31\nprice_per_kwh = 0.5\ncurrency = 'EUR'\n";
    // The measured board is the one to count, so nothing is extrapolated.
    let one_owner = format!("{head}{}watts = 500\n", two_devices("a", "lab"));
    let fleet = fleet_of_18(&scratch, &one_owner);
    for (field, value) in [
        ("subproblems", Value::from("column-sets")),
        ("published", true.into()),
        ("owners", 1.into()),
        ("device_count", 2.into()),
        ("start", "2027-03-31".into()),
        ("completion", "2027-03-31".into()),
        ("completion_most", "2027-03-31".into()),
        ("without_watts", Value::Array(Vec::new())),
        ("limited_by", Value::Null),
        ("currency", "EUR".into()),
        ("coordinator_hours", Value::Null),
    ] {
        assert_eq!(fleet[field], value, "{field} of {fleet}");
    }
    assert!(fleet["units"].as_u64().is_some_and(|units| units >= 64), "{fleet}");
    assert_close(&fleet["campaign_s"], 1800.0);
    // A measured time has a standard error of 10 %.
    assert_close(&fleet["campaign_least_s"], 1800.0 * (-0.1645_f64).exp());
    assert_close(&fleet["campaign_most_s"], 1800.0 * 0.1645_f64.exp());
    assert_close(&fleet["device_hours"], 1.0);
    assert_close(&fleet["energy_kwh"], 0.5);
    assert_close(&fleet["cost"], 0.25);
    assert_eq!(fleet["checks_by_workers"], 0.0);
    let by_coordinator = fleet["checks_by_coordinator"].as_f64().expect("a number");
    assert!(by_coordinator > 0.02 && by_coordinator < 0.1, "{fleet}");
    // Two owners check each other, and the kinds add up.
    let two_owners = format!("{one_owner}{}hours = '12:00-24:00'\n", two_devices("b", "club"));
    let fleet = fleet_of_18(&scratch, &two_owners);
    assert_eq!((&fleet["owners"], &fleet["without_watts"]), (&2.into(), &Value::from(vec!["b"])));
    let checks = fleet["checks_by_workers"].as_f64().expect("a number");
    assert!(checks > 0.02 && checks < 0.1, "{fleet}");
    assert_close(&fleet["campaign_s"], 1200.0 * (1.0 + checks));
    assert_close(&fleet["devices"][0]["share"], 2.0 / 3.0);
    assert_close(&fleet["devices"][1]["hours_per_day"], 12.0);
    assert_close(&fleet["devices"][1]["device_hours"], (1.0 + checks) / 3.0);
    assert!(fleet["devices"][1]["energy_kwh"].is_null(), "{fleet}");
}

#[test]
fn the_example_of_a_fleet_is_printed_with_its_units_and_its_completion() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/fleet.toml");
    let output = printed(&["estimate", "20", "--seconds", "0.05", "--fleet", example]);
    for words in [
        "20 queens, estimated from",
        "A campaign of this count on 1 740 devices of ",
        "\n  units               ",
        "of column sets\n",
        "\n  completion          2027-01-01 (2027-01-01 to 2027-01-01), from 2027-01-01\n",
        "without volunteers, whose watts are not given\n",
        "\n  device            owner       number  h/day  nodes/s",
        "\n  server, 64 cores  university  40      24.0",
    ] {
        assert!(output.contains(words), "no '{words}' in:\n{output}");
    }
}

#[test]
fn a_fleet_that_cannot_be_read_or_used_is_refused_before_the_estimate() {
    let scratch = Scratch::new("fleets");
    let (valid, invalid, large) =
        (scratch.file("valid.toml"), scratch.file("invalid.toml"), scratch.file("large.toml"));
    fs::write(&valid, two_devices("a", "lab")).expect("written");
    fs::write(&invalid, two_devices("a", "lab") + "rate = 3\n").expect("written");
    File::create(&large).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");
    let none = scratch.file("none.toml");
    let folder = scratch.file("");
    let cases: [(&[&str], i32, &[&str]); 9] = [
        (&["20", "--fleet", &invalid], 7, &["invalid.toml", "line 7", "rate"]),
        (&["20", "--fleet", &large], 7, &["large.toml", "large"]),
        (&["20", "--fleet", &none], 7, &["none.toml"]),
        (&["20", "--fleet", &folder], 7, &["directory"]),
        (&["17", "--fleet", &valid], 7, &["device \"a\"", "n is 18", "16 to 17"]),
        (&["15", "--fleet", &valid], 2, &["--fleet", "16 to 32", "15"]),
        (&["33", "--fleet", &valid], 2, &["--fleet", "n up to 32", "33"]),
        (&["20", "--place", "1,1", "--fleet", &valid], 2, &["--fleet", "empty board"]),
        (&["20", "--piece", "rook", "--fleet", &valid], 2, &["--fleet", "queens"]),
    ];
    for (arguments, code, words) in cases {
        assert_refused(&[&["estimate"], arguments].concat(), code, words);
    }
}
