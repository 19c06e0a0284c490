//! `solve`, `list`, `placements` and `greedy` write data to stdout and a summary or a one-line
//! error to stderr, and end with the documented exit codes.

use crate::support::program;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};

use nqueens::board::{Piece, Placement, Problem, is_solution};
use serde_json::{Value, json};

use program::{Scratch, nqueens};

/// Runs the program. Returns its exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = program::run(arguments);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (status.code().expect("no signal ended it"), text(stdout), text(stderr))
}

/// Runs the program, which must succeed, and returns what it prints.
fn data(arguments: &[&str]) -> String {
    let (code, out, err) = run(arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    assert!(err.lines().count() <= 1, "{arguments:?}: {err}");
    out
}

/// Asserts that the program ends with this exit code and one line on stderr that contains `words`.
fn assert_exits(arguments: &[&str], code: i32, words: &[&str]) -> String {
    let (found, out, err) = run(arguments);
    assert_eq!(found, code, "{arguments:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    for word in words {
        assert!(err.contains(word), "{arguments:?} does not say '{word}': {err}");
    }
    out
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

#[test]
fn the_formula_solves_a_million_queens() {
    let text = data(&["solve", "1000000"]);
    let columns: Vec<usize> =
        text.split_whitespace().map(|word| word.parse::<usize>().expect("a column") - 1).collect();
    let checked = Placement::check_solution(&Problem::empty(Piece::Queen, 1_000_000), &columns);
    assert!(checked.is_ok(), "{checked:?}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn every_method_of_solve_prints_a_solution_or_the_reason_for_none() {
    for method in ["formula", "backtracking", "local-search"] {
        for n in [1, 4, 5, 8, 13] {
            let text = data(&["solve", &n.to_string(), "--method", method]);
            let columns: Vec<usize> = text
                .split_whitespace()
                .map(|word| word.parse::<usize>().expect("a column") - 1)
                .collect();
            assert!(
                columns.len() == n && is_solution(Piece::Queen, &columns),
                "{method}, {n}: {text}"
            );
        }
    }
    for n in ["2", "3"] {
        for method in ["formula", "backtracking"] {
            let out =
                assert_exits(&["solve", n, "--method", method], 3, &["no solution exists", method]);
            assert!(out.is_empty());
        }
        let words = ["does not prove", "best found", "local-search with seed 1", "moves tried"];
        let out = assert_exits(&["solve", n, "--method", "local-search"], 4, &words);
        assert_eq!(out.split_whitespace().filter(|word| *word == "-").count(), 1, "{out}");
    }
}

#[test]
fn json_of_solve_has_the_documented_fields() {
    let report = |arguments: &[&str]| {
        let (code, out, _) = run(&[&["solve", "--json"], arguments].concat());
        let mut objects = objects(&out);
        assert_eq!(objects.len(), 1, "{out}");
        let mut report = objects.remove(0);
        assert!(report["elapsed_s"].is_number());
        report.as_object_mut().expect("an object").remove("elapsed_s");
        (code, report)
    };
    assert_eq!(
        report(&["8", "--method", "backtracking"]),
        (
            0,
            json!({"n": 8, "piece": "queen", "solution": [1, 5, 8, 6, 3, 7, 2, 4], "proven": true, "method": "backtracking",
                   "tried": "113", "tried_unit": "nodes"})
        )
    );
    assert_eq!(
        report(&["3"]),
        (
            3,
            json!({"n": 3, "piece": "queen", "solution": null, "proven": true, "method": "formula",
                   "tried": "0", "tried_unit": "nodes"})
        )
    );
    let (code, best) = report(&["3", "--method", "local-search", "--seed", "9", "--moves", "50"]);
    assert_eq!((code, &best["solution"], &best["proven"]), (4, &Value::Null, &Value::Bool(false)));
    assert_eq!(
        (&best["seed"], &best["tried"], &best["tried_unit"]),
        (&9.into(), &"50".into(), &"moves".into())
    );
    let best = best["best"].as_array().expect("an array");
    assert_eq!((best.len(), best.iter().filter(|col| col.is_null()).count()), (3, 1));
}

#[test]
fn decided_squares_are_kept_and_impossible_ones_are_reported() {
    for method in ["backtracking", "local-search"] {
        let text = data(&["solve", "8", "--place", "1,4", "--block", "2,2", "--method", method]);
        let columns: Vec<&str> = text.split_whitespace().collect();
        assert!(columns[0] == "4" && columns[1] != "2", "{method}: {text}");
    }
    // The only solutions are 2 4 1 3 and 3 1 4 2.
    assert_exits(&["solve", "4", "--place", "1,1"], 3, &["no solution exists", "backtracking"]);
    for command in ["solve", "list"] {
        assert_exits(
            &[command, "8", "--place", "1,1 2,2"],
            3,
            &["no solution exists", "1,1 and 2,2 attack"],
        );
    }
    let large = data(&["solve", "200", "--place", "1,1 2,9", "--block", "3,3"]);
    assert!(large.starts_with("1 9 "), "{large}");
}

#[test]
fn brute_force_reports_tried_and_valid_configurations() {
    let (code, out, err) = run(&["list", "4", "--method", "brute-force"]);
    assert_eq!((code, out.as_str()), (0, "2 4 1 3\n3 1 4 2\n"));
    assert!(err.contains("256 configurations tried, 2 valid"), "{err}");
    let out = data(&["list", "4", "--method", "brute-force", "--json"]);
    let objects = objects(&out);
    assert_eq!(
        objects[..2],
        [json!({"solution": [2, 4, 1, 3]}), json!({"solution": [3, 1, 4, 2]})]
    );
    let mut summary = objects[2].clone();
    assert!(summary["elapsed_s"].is_number());
    summary.as_object_mut().expect("an object").remove("elapsed_s");
    assert_eq!(
        summary,
        json!({"n": 4, "piece": "queen", "method": "brute-force", "solutions": "2", "listed": "2",
               "complete": true, "tried": "256", "tried_unit": "configurations"})
    );
    assert_eq!(objects.len(), 3);
}

#[test]
fn every_method_lists_the_same_solutions() {
    let list = |method: &str, n: &str, piece: &str| {
        let text = data(&[
            "list", n, "--method", method, "--piece", piece, "--format", "digits", "--quiet",
        ]);
        let lines: BTreeSet<String> = text.lines().map(String::from).collect();
        assert_eq!(lines.len(), text.lines().count(), "{method}: a solution twice");
        lines
    };
    for (n, piece, count) in [
        ("4", "rook", 24),
        ("5", "rook", 120),
        ("6", "queen", 4),
        ("7", "queen", 40),
        ("7", "toroidal", 28),
    ] {
        let first = list("backtracking", n, piece);
        assert_eq!(first.len(), count, "{piece}, {n}");
        for method in ["columns", "brute-force"] {
            assert_eq!(list(method, n, piece), first, "{method}, {piece}, {n}");
        }
    }
    assert_eq!(list("backtracking", "10", "queen").len(), 724);
}

#[test]
fn a_list_can_be_limited_and_reduced_to_one_solution_per_orbit() {
    let (code, out, err) = run(&["list", "8", "--limit", "3", "--format", "digits"]);
    assert_eq!((code, out.as_str()), (0, "15863724\n16837425\n17468253\n"));
    assert!(err.contains("3 valid") && err.contains("there may be more"), "{err}");
    let (code, out, err) = run(&["list", "8", "--fundamental"]);
    assert_eq!((code, out.lines().count()), (0, 12));
    assert!(err.contains("92 valid, 12 fundamental"), "{err}");
    let last =
        objects(&data(&["list", "8", "--fundamental", "--limit", "5", "--format", "json"])).pop();
    let last = last.expect("a summary");
    assert_eq!((&last["listed"], &last["complete"]), (&"5".into(), &false.into()));
    for n in ["2", "3"] {
        assert!(assert_exits(&["list", n], 3, &["no solution exists"]).is_empty());
    }
}

#[test]
fn every_format_is_as_documented() {
    let solve =
        |format: &str| data(&["solve", "4", "--method", "backtracking", "--format", format]);
    for (format, expected) in [
        ("text", "2 4 1 3\n"),
        ("digits", "2413\n"),
        ("board", "· ♛ · ·\n· · · ♛\n♛ · · ·\n· · ♛ ·\n"),
        ("ascii", "0 X 0 0\n0 0 0 X\nX 0 0 0\n0 0 X 0\n"),
        ("pairs", "((1 2) (2 4) (3 1) (4 3))\n"),
        ("csv", "2,4,1,3\n"),
    ] {
        assert_eq!(solve(format), expected, "{format}");
    }
    assert!(solve("variables").starts_with("x1,1=0 x1,2=1 "));
    assert!(solve("json").contains("\"solution\":[2,4,1,3]"));
    assert!(solve("svg").starts_with("<svg "));
    assert_eq!(data(&["solve", "4", "--draw"]), solve("board"));
    assert_eq!(data(&["solve", "--draw", "ascii", "4"]), solve("ascii"));
    assert_eq!(data(&["solve", "4", "--board"]), solve("board"));
    assert_eq!(data(&["solve", "--board", "ascii", "4"]), solve("ascii"));
    let fen = data(&["solve", "8", "--method", "backtracking", "--format", "fen"]);
    assert_eq!(fen, "Q7/4Q3/7Q/5Q2/2Q5/6Q1/1Q6/3Q4 w - - 0 1\n");
    let output = nqueens(&["solve", "8", "--format", "png"]).output().expect("the program starts");
    assert!(output.stdout.starts_with(b"\x89PNG\r\n\x1a\n"));
}

#[test]
fn solutions_of_a_list_are_separated_in_every_format() {
    let list = |format: &str| data(&["list", "4", "--format", format]);
    assert_eq!(list("csv"), "row1,row2,row3,row4\n2,4,1,3\n3,1,4,2\n");
    assert_eq!(
        list("ascii"),
        "0 X 0 0\n0 0 0 X\nX 0 0 0\n0 0 X 0\n\n0 0 X 0\nX 0 0 0\n0 0 0 X\n0 X 0 0\n"
    );
    for format in ["text", "digits", "variables", "pairs", "svg"] {
        assert_eq!(list(format).lines().count(), 2, "{format}");
    }
    assert_eq!(list("json").lines().count(), 3);
}

#[test]
fn placements_are_counted_exactly() {
    assert_eq!(data(&["placements", "8"]), "4426165368\n");
    assert_eq!(data(&["placements", "0"]), "1\n");
    // C(400, 20).
    assert_eq!(
        objects(&data(&["placements", "20", "--json"])),
        [json!({"n": 20, "placements": "2788360983670896737872851072994080"})]
    );
}

#[test]
fn greedy_streams_the_columns_of_the_infinite_board() {
    assert_eq!(data(&["greedy", "12"]), "1\n3\n5\n2\n4\n9\n11\n13\n15\n6\n8\n19\n");
    let lines = objects(&data(&["greedy", "3", "--json"]));
    assert_eq!(lines[2], json!({"row": 3, "column": 5}));
    let mut child = nqueens(&["greedy", "10000000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = child.stdout.take().expect("piped");
    let mut first = [0; 10];
    out.read_exact(&mut first).expect("ten bytes");
    assert_eq!(&first, b"1\n3\n5\n2\n4\n");
    // A reader that closes the pipe early is not an error.
    drop(out);
    assert_eq!(child.wait().expect("our own child process").code(), Some(0));
}

#[test]
fn the_conflict_graph_is_written_completely_or_not_at_all() {
    let scratch = Scratch::new("graph");
    let file = scratch.file("queens.col");
    data(&["solve", "8", "--write-graph", &file]);
    let graph = fs::read_to_string(&file).expect("the graph was written");
    assert!(graph.contains("\np edge 64 728\n"), "{graph}");
    let nowhere = scratch.file("no/folder.col");
    assert_exits(&["solve", "8", "--write-graph", &nowhere], 7, &["graph", "no/folder.col"]);
    assert_exits(&["solve", "201", "--write-graph", &file], 2, &["n = 200"]);
    assert_eq!(fs::read_dir(scratch.path("")).expect("readable").count(), 1);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = nqueens(&["list", "16"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "1 3 5 2 13 9 14 12 15 6 16 7 4 11 8 10\n");
    let output = child.wait_with_output().expect("our own child process");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[cfg(unix)]
#[test]
fn an_interrupted_list_ends_with_a_complete_line_and_exit_code_130() {
    let mut child = nqueens(&["list", "20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut text = String::new();
    out.read_line(&mut text).expect("a line");
    program::interrupt(&child);
    out.read_to_string(&mut text).expect("UTF-8");
    assert!(text.ends_with('\n') && text.lines().all(|line| line.split(' ').count() == 20));
    let output = child.wait_with_output().expect("our own child process");
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted") && message.lines().count() == 1, "{message}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_prints_its_best_placement() {
    let scratch = Scratch::new("interrupted");
    let file = scratch.file("queens.col");
    let moves = u64::MAX.to_string();
    let child = nqueens(&[
        "solve",
        "3",
        "--method",
        "local-search",
        "--moves",
        &moves,
        "--write-graph",
        &file,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the program starts");
    // The handler for Ctrl-C is installed before the graph is written.
    while !fs::exists(&file).expect("readable") {
        std::thread::yield_now();
    }
    program::interrupt(&child);
    let output = child.wait_with_output().expect("our own child process");
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted; local-search with seed 1"), "{message}");
    assert_eq!(String::from_utf8(output.stdout).expect("UTF-8").split_whitespace().count(), 3);
}

#[test]
fn invalid_input_is_reported_in_one_line() {
    let cases: [(&[&str], &[&str]); 23] = [
        (&["solve", "10000001"], &["10000001", "0 to 10 000 000"]),
        (&["solve", "-1"], &["-1", "whole number"]),
        (&["solve", "x"], &["'x'", "board size"]),
        (&["solve"], &["<N>", "--help"]),
        (&["solve", "8", "--method", "magic"], &["magic", "local-search"]),
        (&["solve", "8", "--place", "9,9"], &["9,9", "1 to 8"]),
        (&["solve", "8", "--place", "1,1", "--block", "1,1"], &["both"]),
        (&["solve", "8", "--place", "1,1", "--method", "formula"], &["formula", "empty board"]),
        (&["solve", "2000", "--method", "backtracking"], &["backtracking", "1024"]),
        (&["solve", "8", "--seed", "1"], &["--seed", "local-search"]),
        (&["solve", "8", "--moves", "1"], &["--moves", "local-search"]),
        (&["solve", "8", "--method", "local-search", "--seed", "x"], &["--seed", "x"]),
        (&["solve", "9", "--format", "fen"], &["FEN", "n = 8"]),
        (&["solve", "36", "--format", "digits"], &["35", "text"]),
        (&["solve", "1025", "--format", "png"], &["PNG", "1024"]),
        (&["solve", "8", "--format", "gif"], &["gif", "svg"]),
        (&["solve", "--draw", "pretty", "8"], &["pretty", "ascii"]),
        (&["solve", "8", "--board", "--json"], &["--board", "--json"]),
        (&["list", "8", "--format", "png"], &["png", "one board"]),
        (&["list", "16", "--method", "brute-force"], &["brute-force", "15"]),
        (&["list", "8", "--limit", "0"], &["'0'", "limit"]),
        (&["greedy", "0"], &["'0'", "1 to 10 000 000"]),
        (&["placements", "100001"], &["100001", "0 to 100 000"]),
    ];
    for (arguments, words) in cases {
        assert!(assert_exits(arguments, 2, words).is_empty());
    }
}
