//! `--board FILE`, with boards of CSPLib (see tests/boards/README.md).

use std::fs;
use std::path::PathBuf;

use nqueens::board::{Piece, Problem, is_solution};
use nqueens::board_file;

use crate::support::program::{Scratch, assert_refused, json, run};

fn path(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/boards").join(name);
    path.to_str().expect("UTF-8").to_owned()
}

fn read(name: &str) -> Problem {
    let text = fs::read_to_string(path(name)).expect("it can be read");
    let board = board_file::parse(&text).expect("a board");
    Problem::new(Piece::Queen, board.n, board.placed, board.blocked).expect("its squares fit")
}

/// Returns the number of solutions by the plain definition, row by row.
fn plain_count(problem: &Problem, columns: &mut Vec<usize>) -> u64 {
    let (n, row) = (problem.n(), columns.len());
    if row == n {
        return u64::from(is_solution(Piece::Queen, columns));
    }
    let mut total = 0;
    for col in 0..n {
        let attacked =
            |(above, &other): (usize, &usize)| other == col || other.abs_diff(col) == row - above;
        let square = nqueens::board::Square::new(row, col);
        if problem.blocked().contains(&square) || columns.iter().enumerate().any(attacked) {
            continue;
        }
        columns.push(col);
        total += plain_count(problem, columns);
        columns.pop();
    }
    total
}

#[test]
fn the_default_decides_blocked_boards_as_published() {
    let expected = fs::read_to_string(path("expected.txt")).expect("it can be read");
    let mut decided = 0;
    for line in expected.lines() {
        let (name, answer) = line.split_once(' ').expect("a name and an answer");
        let output = run(&["solve", "--json", "--quiet", "--board", &path(name)]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["proven"], true, "{name}");
        assert_eq!(report["solution"].is_array(), answer == "SATISFIABLE", "{name}");
        let code = if answer == "SATISFIABLE" { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(code), "{name}");
        decided += 1;
    }
    assert_eq!(decided, 40);
}

#[test]
fn counts_of_blocked_boards_agree_with_the_plain_definition() {
    let mut compared = 0;
    for entry in fs::read_dir(path("")).expect("it can be read") {
        let name = entry.expect("it can be read").file_name().into_string().expect("UTF-8");
        if !name.ends_with(".param") || name.starts_with("blockedqueens") {
            continue;
        }
        let expected = plain_count(&read(&name), &mut Vec::new()).to_string();
        let count =
            json(&["count", "--json", "--quiet", "--device", "cpu", "--board", &path(&name)]);
        assert_eq!(count["solutions"], expected, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}

#[test]
fn every_report_of_count_and_solve_is_a_board() {
    let scratch = Scratch::new("reports");
    let file = scratch.file("report.json");
    for arguments in [
        &["count", "8", "--json", "--place", "1,1", "--block", "2,3"][..],
        &["count", "8", "--json", "--classes"],
        &["count", "8", "--json", "--place", "1,1 2,2"],
        &["solve", "8", "--json", "--method", "local-search", "--seed", "1"],
        &["solve", "6", "--json", "--method", "ilp", "--cliques", "--place", "1,3"],
        &["solve", "3", "--json"],
    ] {
        fs::write(&file, run(arguments).stdout).expect("a file");
        let output = run(&["count", "--json", "--board", &file]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
    }
    fs::write(&file, r#"{"n":8,"palced":[[1,1]]}"#).expect("a file");
    assert_refused(&["count", "--board", &file], 2, &["unknown field 'palced'", "placed"]);
}

#[test]
fn a_file_that_is_no_board_is_refused() {
    assert_refused(&["solve", "--board", &path("README.md")], 2, &["README.md"]);
    assert_refused(&["count", "--board", &path("missing")], 7, &["missing"]);
    let eight = path("diag-8-4-1.param");
    assert_refused(&["solve", "9", "--board", &eight], 2, &["n = 8", "n = 9"]);
    assert_refused(&["solve", "--board"], 2, &["N", "--board FILE"]);
    assert_refused(&["first", "--board", &eight, "--method", "cp"], 2, &["--method exact"]);
    assert_refused(&["beautiful", "8", "--board", &eight], 2, &["reads no board"]);
}
