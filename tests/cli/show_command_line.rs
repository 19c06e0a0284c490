//! `show` draws placements, also partial and wrong ones, and `--svg` and `--png` write pictures on
//! every command that answers with a board.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{self, Scratch};

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = program::run(arguments);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (output.status.code().expect("no signal ended it"), text(output.stdout), text(output.stderr))
}

#[test]
fn a_board_has_coordinates_and_a_verdict() {
    let (code, out, err) = run(&["show", "2", "4", "-", "3"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "1  · ♛ · ·\n2  · · · ♛\n3  · · · ·\n4  · · ♛ ·\n   a b c d\n\
         not valid: 3 of 4 queens; no queen in row 3; no queen in column 1\n"
    );
}

#[test]
fn json_has_the_requested_sections() {
    let sections = ["--attacks", "--costs", "--cliques", "--matrix"];
    let (code, out, _) = run(&[&["show", "1243", "--json"], &sections[..]].concat());
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(report["squares"], json!([[1, 1], [2, 2], [3, 4], [4, 3]]));
    assert_eq!(report["attacks"]["pairs"], json!([[[1, 1], [2, 2]], [[3, 4], [4, 3]]]));
    assert_eq!(report["attacks"]["attackers"][0], json!([1, 3, 3, 2]));
    assert_eq!(report["costs"]["fingerprint"], json!([18, 10, 10, 2]));
    assert_eq!(report["costs"]["rings"][0], json!({"cost": 18, "squares": 4, "pieces": 1}));
    assert_eq!(report["cliques"]["lines"].as_array().map(Vec::len), Some(4 + 4 + 14));
    assert_eq!(report["matrix"]["rows"][0]["coefficients"].as_array().map(Vec::len), Some(16));
    assert_eq!(report["valid"], false);
    let (_, out, _) = run(&["show", "1243", "--json"]);
    let report: Value = serde_json::from_str(&out).expect("one object");
    for section in ["attacks", "costs", "cliques", "matrix"] {
        assert!(report.get(section).is_none(), "{section}");
    }
}

#[test]
fn what_is_too_large_or_off_the_board_is_one_line_with_exit_code_2() {
    let eleven = ["1", "3", "5", "7", "9", "11", "2", "4", "6", "8", "10"];
    for (flags, words) in [
        (&["--matrix"][..], "up to n = 10, not n = 11"),
        (&["--cliques", "--piece", "superqueen"], "queens and rooks"),
        (&["--attacks", "--costs", "--svg", "never.svg"], "give one of them"),
    ] {
        let (code, _, err) = run(&[&["show"], &eleven[..], flags].concat());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(words) && err.lines().count() == 1, "{err}");
    }
    for solution in ["((1 1) (9999999 1))", "1 1 9"] {
        let (code, _, err) = run(&["show", solution, "--attacks"]);
        assert!(code == 2 && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn every_command_that_answers_with_a_board_writes_pictures() {
    let scratch = Scratch::new("pictures");
    let (svg, png) = (scratch.file("a.svg"), scratch.file("a.png"));
    let (board, certificate) = (scratch.file("board.txt"), scratch.file("6.proof"));
    fs::write(&board, ".Q..\n....\n....\nx...\n").expect("a board");
    assert_eq!(run(&["first", "6", "--certificate", &certificate]).0, 0);
    for (command, words) in [
        (&["solve", "8", "--place", "1,1", "--block", "5,5"][..], "placed in advance"),
        (&["first", "8"], "8 queens on a board of size 8"),
        (&["beautiful", "6"], "cost 34: 2"),
        (&["greedy", "5"], "The first 5 greedy queens"),
        (&["verify", "2413"], "4 queens on a board of size 4"),
        (&["show", "2413", "--attacks"], "attacked by 1"),
        (&["show", "2413", "--costs"], "cost 10: 4"),
        (&["show", "--board", &board], "blocked"),
        (&["fingerprint", "2413"], "rings of equal euclidean cost"),
        (&["check", &certificate], "6 queens on a board of size 6"),
        (&["list", "6"], "6 queens: 4 solutions"),
        (&["list", "8", "--fundamental"], "8 queens: 92 solutions, 12 fundamental"),
        (&["list", "6", "--place", "b1"], "placed in advance"),
        (&["list", "8", "--limit", "3"], "Solution 3"),
    ] {
        let files = ["--svg", &svg, "--png", &png];
        let (code, out, err) = run(&[command, &files].concat());
        assert_eq!(code, 0, "{command:?}: {err}");
        assert!(!out.is_empty(), "{command:?}: the answer is printed, too");
        let drawn = fs::read_to_string(&svg).expect("a picture");
        assert!(drawn.starts_with("<svg ") && drawn.contains(words), "{command:?}: {drawn}");
        assert!(fs::read(&png).expect("a picture").starts_with(b"\x89PNG"), "{command:?}");
        fs::remove_file(&svg).and_then(|()| fs::remove_file(&png)).expect("they were written");
    }
}

#[test]
fn a_picture_of_a_list_has_at_most_100_boards() {
    let scratch = Scratch::new("sheet");
    let svg = scratch.file("a.svg");
    let (code, out, _) = run(&["list", "9", "--svg", &svg]);
    assert_eq!((code, out.lines().count()), (0, 352));
    let drawn = fs::read_to_string(&svg).expect("a picture");
    assert!(drawn.contains("9 queens: 352 solutions, the first 100"));
    assert!(drawn.contains(">Solution 100<") && !drawn.contains(">Solution 101<"));
    assert_eq!(drawn.matches("<use ").count(), 900);
}

#[test]
fn a_board_of_a_file_is_shown_with_its_blocked_squares() {
    let scratch = Scratch::new("show-board");
    let board = scratch.file("board.txt");
    fs::write(&board, ".Q..\n....\n....\nx...\n").expect("a board");
    let (code, out, err) = run(&["show", "--board", &board, "--attacks"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("1  · ♛ · ·\n2  · · · ·\n3  · · · ·\n4  x · · ·\n"), "{out}");
    assert!(out.contains("1 of 4 queens"), "{out}");
    let (code, _, err) = run(&["show", "2413", "--board", &board]);
    assert!(code == 2 && err.lines().count() == 1, "{err}");
}

#[test]
fn pictures_that_cannot_be_written_are_an_error_before_the_work() {
    let scratch = Scratch::new("no-pictures");
    let nowhere = scratch.file("no/such/folder.svg");
    for (command, code) in [
        (&["solve", "8", "--svg", &nowhere][..], 7),
        (&["solve", "1025", "--png", &scratch.file("never.png")], 2),
        (&["greedy", "1000", "--png", &scratch.file("never.png")], 2),
        (&["first", "4..6", "--svg", &scratch.file("never.svg")], 2),
        (&["list", "4", "--trace", "--svg", &scratch.file("never.svg")], 2),
        (&["list", "4", "--svg", &nowhere], 7),
        (&["check", "missing", "--svg", &scratch.file("never.svg")], 7),
    ] {
        let (found, out, err) = run(command);
        assert_eq!(found, code, "{command:?}: {err}");
        assert!(out.is_empty() && err.lines().count() == 1, "{command:?}: {out}{err}");
    }
    assert!(!Path::new(&scratch.file("never.svg")).exists());
    // Without a solution there is no picture.
    let never = scratch.file("never.svg");
    assert_eq!(run(&["solve", "3", "--svg", &never]).0, 3);
    assert!(!Path::new(&never).exists());
}
