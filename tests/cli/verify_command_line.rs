//! `verify` accepts every format that the program writes, and says what is wrong with a solution.

use std::fs;

use serde_json::Value;

use crate::support::program::{self, Scratch};

/// Runs the program. Returns its exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = program::run(arguments);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (output.status.code().expect("no signal ended it"), text(output.stdout), text(output.stderr))
}

#[test]
fn lists_in_every_format_are_valid_and_all_different() {
    let scratch = Scratch::new("verify-formats");
    let file = scratch.file("list");
    for format in ["text", "digits", "board", "ascii", "variables", "pairs", "fen", "csv", "json"] {
        let (code, list, _) = run(&["list", "8", "--quiet", "--format", format]);
        assert_eq!(code, 0);
        fs::write(&file, &list).expect("a file");
        let (code, out, err) = run(&["verify", &file]);
        assert_eq!((code, err.as_str()), (0, ""), "{format}");
        assert_eq!(out.lines().count(), 93, "{format}");
        assert_eq!(out.lines().last(), Some("92 solutions: all valid, all different"), "{format}");
        assert_eq!(out.lines().next(), Some("1: valid: 8 queens, no two attack each other"));
        // The list of toroidal queens is empty for n = 8, so none of these is one.
        let (code, out, _) = run(&["verify", &file, "--piece", "toroidal", "--quiet"]);
        assert_eq!((code, out.lines().count()), (6, 93), "{format}");
    }
}

#[test]
fn a_wrong_solution_ends_with_6_and_the_reason() {
    for (arguments, words) in [
        (&["1", "2", "3", "4"][..], &["1,1 and 2,2 attack each other", "4 of 4"][..]),
        (&["2 4 1 1"], &["3,1 and 4,1 attack each other", "no queen in column 3"]),
        (&["2", "4", "-", "3"], &["3 of 4 queens", "row 3", "column 1"]),
        (&["2413", "--block", "1,2"], &["blocked square 1,2"]),
        (&["2413", "--place", "1,1"], &["placed square 1,1"]),
        (&["9"], &["1,9 is off the board"]),
        (&["((1 1) (1 2))"], &["1,1 and 1,2 attack each other", "row 2"]),
        (&["15863724", "--piece", "superqueen"], &["attack each other", "8 of 8 superqueens"]),
    ] {
        let (code, out, err) = run(&[&["verify"], arguments].concat());
        assert_eq!(code, 6, "{arguments:?}: {out}");
        let hint = if arguments[0] == "9" {
            "; '9' is no solution but looks like a size; nqueens solve 9 finds a solution for n = 9"
        } else {
            ""
        };
        assert_eq!(err, format!("nqueens: the solution is not valid{hint}\n"));
        assert!(out.starts_with("not valid: ") && out.lines().count() == 1, "{out}");
        for word in words {
            assert!(out.contains(word), "{arguments:?} does not say '{word}': {out}");
        }
    }
}

#[test]
fn repetitions_are_named_wherever_they_are() {
    let scratch = Scratch::new("verify-repetitions");
    let file = scratch.file("list");
    fs::write(&file, "2 4 1 3\n3 1 4 2\n2413\n").expect("a file");
    let (code, out, err) = run(&["verify", &file, "--quiet"]);
    assert_eq!(code, 6);
    assert!(out.contains("3: valid: ") && out.contains("it repeats solution 1"), "{out}");
    assert!(err.contains("3 solutions: all valid, 1 repeated"), "{err}");
    let (_, json, _) = run(&["verify", &file, "--json"]);
    let objects: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects.len(), 4);
    assert_eq!((&objects[2]["repeats"], &objects[2]["line"]), (&1.into(), &3.into()));
    assert_eq!((&objects[0]["valid"], &objects[0]["repeats"]), (&true.into(), &Value::Null));
    assert_eq!((&objects[3]["solutions"], &objects[3]["repeated"]), (&"3".into(), &"1".into()));
}

#[test]
fn unreadable_input_ends_with_2_and_unreadable_files_with_7() {
    let scratch = Scratch::new("verify-unreadable");
    let file = scratch.file("list");
    let folder = scratch.file("");
    fs::write(&file, "2 4 1 3\nqueens everywhere\n").expect("a file");
    let empty = scratch.file("empty");
    fs::write(&empty, "").expect("a file");
    for (argument, expected, words) in [
        (file.as_str(), 2, "line 2"),
        (empty.as_str(), 2, "no solution in the input"),
        ("no-such-file", 2, "neither a solution nor a file"),
        ("1 0 2", 2, "counted from 1"),
        (folder.as_str(), 7, "directory"),
    ] {
        let (code, _, err) = run(&["verify", argument]);
        assert_eq!(code, expected, "{argument}: {err}");
        assert!(err.lines().count() == 1 && err.contains(words), "{argument}: {err}");
    }
    let (code, _, err) = run(&["verify", "2413", "--place", "9,9"]);
    assert!(code == 2 && err.contains("9,9"), "{err}");
}

#[test]
fn a_picture_of_one_solution_is_written_also_if_it_is_wrong() {
    let scratch = Scratch::new("verify-picture");
    let (svg, png) = (scratch.file("a.svg"), scratch.file("a.png"));
    let (code, ..) = run(&["verify", "1234", "--svg", &svg, "--png", &png]);
    assert_eq!(code, 6);
    let drawn = fs::read_to_string(&svg).expect("a picture");
    assert!(drawn.contains("two pieces attack each other"), "{drawn}");
    assert!(fs::read(&png).expect("a picture").starts_with(b"\x89PNG"));
    let list = scratch.file("list");
    fs::write(&list, "2413\n3142\n").expect("a file");
    let (code, _, err) = run(&["verify", &list, "--svg", &scratch.file("never.svg")]);
    assert!(code == 2 && err.contains("one solution"), "{err}");
    assert!(!std::path::Path::new(&scratch.file("never.svg")).exists());
}
