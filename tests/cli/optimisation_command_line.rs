//! The commands for integer and constraint programming keep their contract.

use crate::support::program;

use std::fs;

use serde_json::{Value, json};

use program::{Scratch, assert_refused, run, text};

/// Runs a command that must print one JSON object and end with this exit code.
fn object(arguments: &[&str], code: i32) -> Value {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

const FIRST_METHODS: [&str; 7] =
    ["exact", "cp", "ilp-iter", "ilp-trunc", "lex-dfs", "cutting-plane", "ilp-weights"];

#[test]
fn the_first_solution_is_printed_by_every_method() {
    assert_eq!(text(&run(&["first", "8"]).stdout), "1 5 8 6 3 7 2 4\n");
    for method in FIRST_METHODS {
        let report = object(&["first", "8", "--method", method, "--json"], 0);
        assert_eq!(report["solution"], json!([1, 5, 8, 6, 3, 7, 2, 4]), "{method}");
        assert_eq!((&report["proven"], &report["method"]), (&true.into(), &method.into()));
        assert_eq!(report["solver"].is_string(), !matches!(method, "exact" | "cp"));
        assert!(
            report["nodes"].is_string()
                && report["programmes"].is_number()
                && report["elapsed_s"].is_number()
        );
    }
}

#[test]
fn the_first_completion_of_a_board_is_printed() {
    let report = object(&["first", "8", "--place", "3,1", "--json", "--quiet"], 0);
    assert_eq!((&report["solution"][2], &report["placed"]), (&json!(1), &json!([[3, 1]])));
    assert_eq!(text(&run(&["first", "8", "--from", "2 4"]).stdout), "2 4 6 8 3 1 7 5\n");
    assert_refused(&["first", "8", "--from", "1 2", "--quiet"], 3, &["no completion"]);
    assert_refused(&["first", "4", "--place", "1,1", "--quiet"], 3, &["no completion"]);
}

#[test]
fn a_range_of_boards_is_printed_as_a_table_or_as_json_lines() {
    let output = run(&["first", "1..6", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[1].ends_with("no solution") && lines[5].ends_with(" 2 4 6 1 3 5"), "{lines:?}");
    let output = run(&["first", "4..6", "--json", "--quiet", "--method", "cp"]);
    for (n, line) in (4..).zip(text(&output.stdout).lines()) {
        let report: Value = serde_json::from_str(line).expect("one JSON object a line");
        assert_eq!((&report["n"], &report["proven"]), (&json!(n), &json!(true)));
    }
    assert_eq!(
        run(&["first", "56..57", "--time-limit", "0.001s", "--quiet"]).status.code(),
        Some(4)
    );
}

#[test]
fn without_a_solution_the_exit_code_is_3() {
    for n in ["2", "3"] {
        for method in FIRST_METHODS {
            let report = object(&["first", n, "--method", method, "--quiet", "--json"], 3);
            assert_eq!(
                (&report["solution"], &report["proven"]),
                (&Value::Null, &true.into()),
                "{method}"
            );
        }
        assert_refused(&["first", n], 3, &["no solution exists"]);
        assert_refused(&["beautiful", n, "--quiet"], 3, &["no solution exists"]);
        assert_refused(&["solve", n, "--method", "ilp", "--quiet"], 3, &["no solution exists"]);
        assert_refused(&["solve", n, "--method", "cp"], 3, &["no solution exists"]);
        assert_refused(&["list", n, "--method", "ilp", "--quiet"], 3, &["no solution exists"]);
        assert_refused(&["list", n, "--method", "cp"], 3, &["no solution exists"]);
    }
}

#[test]
fn an_interrupted_run_reports_that_nothing_is_proven() {
    for arguments in [
        &["first", "60", "--method", "ilp-iter", "--time-limit", "0.001s", "--quiet", "--json"][..],
        &["first", "60", "--method", "cp", "--time-limit", "0.001s", "--quiet", "--json"],
        &["first", "100", "--time-limit", "0.001s", "--quiet", "--json"],
        &["beautiful", "60", "--time-limit", "0.001s", "--quiet", "--json"],
        &["solve", "200", "--method", "ilp", "--time-limit", "0.001s", "--quiet", "--json"],
    ] {
        let report = object(arguments, 4);
        assert_eq!(report["proven"], false, "{arguments:?}");
        assert!(
            report["doubt"].as_str().is_some_and(|doubt| doubt.contains("stopped")),
            "{arguments:?}"
        );
    }
}

#[test]
fn the_most_beautiful_solution_is_printed_with_its_fingerprint() {
    let report = object(&["beautiful", "8", "--json", "--quiet"], 0);
    assert_eq!(report["fingerprint"], json!([58, 58, 50, 50, 34, 34, 26, 26]));
    assert_eq!(report["proven"], true);
    assert_eq!(text(&run(&["beautiful", "8", "--board", "ascii"]).stdout).lines().count(), 8);
}

#[test]
fn beautiful_supports_norms_symmetry_and_all_optima() {
    let report = object(&["beautiful", "12", "--norm", "manhattan", "--json", "--quiet"], 0);
    assert_eq!((&report["norm"], &report["proven"]), (&"manhattan".into(), &true.into()));
    let symmetric = object(&["beautiful", "16", "--symmetric", "--json", "--quiet"], 0);
    assert_eq!(symmetric["fingerprint"][0], 226);
    assert_refused(
        &["beautiful", "14", "--symmetric", "--quiet"],
        3,
        &["no doubly symmetric solution"],
    );
    let all = object(&["beautiful", "16", "--all", "--json", "--quiet"], 0);
    assert_eq!(all["optimal_placements"], "16");
    assert_eq!(all["solutions"].as_array().map(Vec::len), Some(16));
    let listed = run(&["beautiful", "20", "--all"]);
    assert_eq!(text(&listed.stdout).lines().count(), 128);
    assert!(text(&listed.stderr).contains("128 solutions"), "{}", text(&listed.stderr));
}

#[test]
fn the_most_beautiful_solution_has_a_certificate_and_pictures() {
    let scratch = Scratch::new("beautiful");
    let [certificate, svg, png] = ["b.proof", "b.svg", "b.png"].map(|name| scratch.file(name));
    let files = ["--certificate", &certificate, "--svg", &svg, "--png", &png];
    let report = object(&[&["beautiful", "13", "--json", "--quiet"][..], &files].concat(), 0);
    assert_eq!(report["certificate"], certificate.as_str());
    let checked = object(&["check", &certificate, "--json"], 0);
    assert_eq!(
        (&checked["kind"], &checked["n"], &checked["proven"]),
        (&"beautiful".into(), &13.into(), &true.into())
    );
    assert_eq!(checked["solution"], report["solution"]);
    assert!(
        text(&run(&["check", &certificate]).stdout)
            .starts_with("proved: a most beautiful solution for n = 13")
    );
    assert!(fs::read_to_string(&svg).expect("a picture").contains("rings of equal euclidean cost"));
    assert!(fs::read(&png).expect("a picture").starts_with(b"\x89PNG"));
    let streamed = run(&["beautiful", "8", "--format", "svg"]);
    assert!(text(&streamed.stdout).contains("rings of equal"), "{}", text(&streamed.stdout));
    let refused = ["beautiful", "8", "--certificate", &scratch.file("no/b.proof")];
    assert_refused(&refused, 7, &["cannot be written"]);
    // No file is written if nothing was proved.
    let cut = [
        "beautiful",
        "60",
        "--time-limit",
        "0.001s",
        "--certificate",
        &scratch.file("cut.proof"),
        "--quiet",
    ];
    assert_eq!(run(&cut).status.code(), Some(4));
    assert!(fs::metadata(scratch.file("cut.proof")).is_err());
}

#[test]
fn an_integer_program_has_objective_cuts_and_decided_squares() {
    for formulation in ["borders", "diagonals"] {
        let largest =
            object(&["solve", "3", "--maximize", "--formulation", formulation, "--json"], 0);
        let queens = largest["solution"]
            .as_array()
            .expect("an array")
            .iter()
            .filter(|c| !c.is_null())
            .count();
        assert_eq!(queens, 2, "{formulation}");
    }
    let preferred =
        object(&["solve", "6", "--prefer", "1,3=2.5 2,6=1", "--prefer", "3,2=-1", "--json"], 0);
    assert_eq!(
        (&preferred["weight"], &preferred["solution"]),
        (&"2.5".into(), &json!([3, 6, 2, 5, 1, 4]))
    );
    let cuts = object(&["solve", "8", "--maximize", "--cliques", "--odd-cycles", "--json"], 0);
    for field in ["cliques", "odd_cycles", "rounds", "bound_before", "bound_after"] {
        assert!(cuts["cuts"][field].is_number(), "{field}");
    }
    let placed =
        object(&["solve", "8", "--method", "ilp", "--place", "1,3", "--block", "2,5", "--json"], 0);
    assert_eq!(placed["solution"][0], 3);
    assert_ne!(placed["solution"][1], 5);
}

#[test]
fn weights_are_read_from_files_and_models_are_written_to_files() {
    let scratch = Scratch::new("files");
    let weights = scratch.file("weights.csv");
    fs::write(&weights, "0,0,1,0\n0,0,0,0\n0,0,0,0\n0,0,0,0\n").expect("a file");
    let report = object(&["solve", "4", "--weights", &weights, "--json"], 0);
    assert_eq!((&report["solution"], &report["weight"]), (&json!([3, 1, 4, 2]), &"1".into()));
    for name in ["model.mps", "model.lp", "model.opb"] {
        let path = scratch.file(name);
        assert_eq!(run(&["solve", "4", "--write-model", &path]).status.code(), Some(0));
        assert!(fs::read_to_string(&path).expect("the model").contains("x4_4"), "{name}");
    }
    for (content, words) in [
        ("1,2\n3,4\n", "2 lines"),
        ("0,0,1,0\n0,NaN,0,0\n0,0,0,0\n0,0,0,0\n", "NaN"),
        ("0,0,1,0\n0,0,0\n0,0,0,0\n0,0,0,0\n", "line 2"),
    ] {
        fs::write(&weights, content).expect("a file");
        assert_refused(&["solve", "4", "--weights", &weights], 2, &[words]);
    }
    assert_refused(&["solve", "4", "--weights", &scratch.file("none.csv")], 7, &["cannot be read"]);
    assert_refused(
        &["solve", "4", "--write-model", &scratch.file("no/model.lp")],
        7,
        &["cannot be written"],
    );
    assert_refused(
        &["solve", "4", "--write-model", &scratch.file("model.txt")],
        2,
        &[".mps, .lp or .opb"],
    );
}

#[test]
fn invalid_requests_are_refused_in_one_line() {
    for (arguments, words) in [
        (&["first", "8", "--method", "magic"][..], &["magic", "lex-dfs"][..]),
        (&["first", "14", "--method", "ilp-weights", "--quiet"], &["n = 13", "another method"]),
        (&["first", "251"], &["0 to 250"]),
        (&["first", "129"], &["n = 128", "another method"]),
        (&["first", "8", "--method", "cp", "--certificate", "x"], &["--certificate", "exact"]),
        (&["first", "8", "--method", "cp", "--threads", "2"], &["--threads", "exact"]),
        (&["first", "8", "--threads", "0"], &["1..=1024"]),
        (&["check"], &["FILE"]),
        (&["first", "9..4"], &["9..4", "smaller size first"]),
        (&["first", "8", "--method", "cp", "--place", "1,1"], &["--place", "exact"]),
        (&["first", "8", "--place", "9,1"], &["9,1", "off the board"]),
        (&["first", "8", "--from", "1 x"], &["1 x", "counted from 1"]),
        (&["first", "8", "--from", "1", "--certificate", "x"], &["--certificate", "empty board"]),
        (&["first", "4..8", "--resume", "x"], &["--resume", "one empty board"]),
        (&["first", "4..8", "--board"], &["table"]),
        (&["first", "8", "--time-limit", "soon"], &["soon", "60s"]),
        (&["first", "8", "--solver", "cplex"], &["cplex", "microlp"]),
        (&["beautiful", "8", "--method", "cp"], &["exact", "ilp"]),
        (&["beautiful", "8", "--method", "ilp", "--symmetric"], &["--symmetric", "exact"]),
        (&["beautiful", "8", "--method", "ilp", "--all"], &["--all", "exact"]),
        (&["beautiful", "8", "--norm", "taxicab"], &["taxicab", "chebyshev"]),
        (&["beautiful", "8", "--all", "--format", "png"], &["one board"]),
        (&["solve", "8", "--formulation", "best"], &["borders", "diagonals"]),
        (&["solve", "8", "--method", "cp", "--cliques"], &["--cliques", "ilp"]),
        (&["solve", "8", "--prefer", "9,1=2"], &["9,1", "off the board"]),
        (&["solve", "8", "--prefer", "1,1=x"], &["1,1=x"]),
        (&["list", "8", "--method", "ilp", "--piece", "superqueen"], &["queens and rooks"]),
        (&["list", "251", "--method", "ilp"], &["250"]),
        (&["compare", "8", "--query", "count"], &["beautiful"]),
        (&["compare"], &["needs <N>"]),
    ] {
        assert_refused(arguments, 2, words);
    }
}

#[cfg(not(feature = "highs"))]
#[test]
fn a_solver_that_is_not_built_in_is_refused_with_the_feature_to_build_it() {
    assert_refused(
        &["first", "8", "--method", "ilp-iter", "--solver", "highs"],
        5,
        &["--features highs"],
    );
    let output = run(&["first", "8", "--method", "ilp-iter"]);
    assert!(text(&output.stderr).contains("the small solver"), "{}", text(&output.stderr));
}

#[test]
fn lists_by_integer_and_constraint_programming_equal_those_of_search() {
    let sorted = |method: &str, piece: &str| {
        let output = run(&["list", "5", "--method", method, "--piece", piece, "--quiet"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for piece in ["queen", "rook"] {
        let expected = sorted("backtracking", piece);
        assert_eq!(expected.len(), if piece == "queen" { 10 } else { 120 });
        for method in ["ilp", "cp"] {
            assert_eq!(sorted(method, piece), expected, "{method}, {piece}");
        }
    }
}

#[test]
fn all_methods_of_a_query_are_compared_and_agree() {
    let scratch = Scratch::new("compare");
    let chart = scratch.file("chart.svg");
    for (query, answer, methods) in [
        ("solve", "a solution", 7),
        ("first", "2 4 6 1 3 5", 7),
        ("beautiful", "34 34 26 26 10 10", 2),
        ("list", "4 solutions", 5),
    ] {
        let report =
            object(&["compare", "6", "--query", query, "--json", "--quiet", "--svg", &chart], 0);
        let results = report["results"].as_array().expect("an array");
        assert_eq!(results.len(), methods, "{query}");
        for result in results {
            assert_eq!(
                (&result["answer"], &result["proven"]),
                (&answer.into(), &true.into()),
                "{query}: {result}"
            );
            assert!(result["nodes"].is_string() && result["elapsed_s"].is_number());
        }
        assert!(fs::read_to_string(&chart).expect("a chart").starts_with("<svg"));
    }
    let table = run(&["compare", "3", "--quiet"]);
    assert!(text(&table.stdout).contains("no solution"), "{}", text(&table.stdout));
}

#[test]
fn cuts_reach_the_lexicographic_search_and_are_reported() {
    let plain = object(&["first", "10", "--method", "lex-dfs", "--json", "--quiet"], 0);
    assert!(plain.get("cuts").is_none());
    let flags = ["--cliques", "--odd-cycles", "--json", "--quiet"];
    let cut = object(&[&["first", "10", "--method", "lex-dfs"], &flags[..]].concat(), 0);
    assert_eq!((&cut["solution"], &cut["proven"]), (&plain["solution"], &true.into()));
    let nodes = |report: &Value| report["nodes"].as_str().and_then(|n| n.parse::<u64>().ok());
    assert!(nodes(&cut) <= nodes(&plain), "{cut} {plain}");
    assert!(cut["cuts"]["cliques"].as_u64() > Some(0), "{cut}");
    let exact = ["first", "8", "--method", "lex-dfs", "--exact-cliques", "--json", "--quiet"];
    let exact = object(&exact, 0);
    assert_eq!(exact["cuts"]["cliques"], exact["cuts"]["exact_cliques"]);
    let output = run(&["first", "10", "--method", "lex-dfs", "--cliques"]);
    assert!(text(&output.stderr).contains("cliques and 0 odd cycles in"), "{output:?}");
    assert_refused(&["first", "8", "--odd-cycles"], 2, &["--odd-cycles needs --method lex-dfs"]);
}

#[test]
fn the_log_of_the_solver_has_a_line_for_each_interval_of_nodes() {
    let arguments = ["solve", "6", "--method", "ilp", "--prefer", "1,1=3 2,5=2 6,6=1", "--quiet"];
    let log = |flag: &str| {
        let solver = ["--solver", "microlp", flag];
        let output = run(&[&arguments[..], &solver].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let every = log("--log=1");
    assert!(every[0].contains("0-1 program with 36 columns"), "{every:?}");
    for word in ["Nodes", "Best bound", "Incumbent", "Gap", "LP iter.", "Cuts"] {
        assert!(every[1].contains(word), "{every:?}");
    }
    let nodes = |line: &String| {
        line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).expect("a number")
    };
    let of_all: Vec<u64> = every[2..].iter().map(nodes).collect();
    assert!(of_all.len() > 2 && of_all.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{of_all:?}");
    let last = *of_all.last().expect("a line");
    let of_fifths: Vec<u64> = log("--log=5")[2..].iter().map(nodes).collect();
    assert!(of_fifths.len() < of_all.len() && of_fifths.last() == Some(&last), "{of_fifths:?}");
    assert_refused(&["solve", "6", "--method", "cp", "--log"], 2, &["--log needs --method ilp"]);
    assert_refused(&["solve", "6", "--method", "ilp", "--log=0"], 2, &["from 1 to"]);
}
