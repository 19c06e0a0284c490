//! `list --trace` and `greedy --overlap` show how the classical methods work.

use crate::support::program;

use serde_json::{Value, json};

use program::{assert_refused, run, text};

/// Returns the lines of stdout as JSON.
fn json_lines(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    let lines = text(&output.stdout).lines();
    lines.map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

#[test]
fn the_trace_of_columns_has_the_partial_solutions_of_each_number_of_columns() {
    let levels = json_lines(&["list", "4", "--method", "columns", "--trace", "--json"]);
    let counts: Vec<&str> =
        levels.iter().map(|level| level["partial_solutions"].as_str().expect("text")).collect();
    assert_eq!(counts, ["1", "4", "6", "4", "2"]);
    assert_eq!(levels[4]["rows"], json!([[2, 4, 1, 3], [3, 1, 4, 2]]));
    let levels = json_lines(&["list", "8", "--method", "columns", "--trace", "--json"]);
    assert_eq!(levels[8]["partial_solutions"], "92");
    assert!(levels[8].get("rows").is_none());
    let shown = run(&["list", "4", "--method", "columns", "--trace"]);
    assert!(text(&shown.stdout).contains("after 2 columns: 6 partial solutions\n  1 3\n"));
}

#[test]
fn the_trace_of_backtracking_has_every_step_of_small_boards() {
    let steps = json_lines(&["list", "4", "--trace", "--json", "--limit", "1"]);
    let of = |action: &str| steps.iter().filter(|step| step["action"] == action).count();
    assert_eq!((of("place"), of("solution"), of("backtrack")), (8, 1, 4));
    let expected = json!({"step": 2, "action": "conflict", "row": 2, "column": 1,
                                      "attacked_by": [1, 1], "board": [1]});
    assert_eq!(steps[1], expected);
    let shown = run(&["list", "4", "--trace"]);
    assert!(text(&shown.stdout).ends_with("77 steps, 2 solutions\n"), "{shown:?}");
    // Larger boards have the numbers of each row only.
    let rows = json_lines(&["list", "9", "--trace", "--json"]);
    assert_eq!((rows.len(), &rows[8]["placed"]), (10, &json!(352)));
    for (arguments, words) in [
        (&["list", "13", "--trace"][..], "up to n = 12"),
        (&["list", "4", "--trace", "--method", "cp"], "--method backtracking or columns"),
        (&["list", "4", "--trace", "--format", "csv"], "text or JSON"),
        (&["list", "4", "--trace", "--method", "columns", "--limit", "2"], "omit --limit"),
    ] {
        assert_refused(arguments, 2, &[words]);
    }
}

#[test]
fn the_overlap_is_what_the_first_solution_shares_with_the_greedy_queens() {
    let report = json_lines(&["greedy", "12", "--overlap", "--json"]);
    assert_eq!((&report[0]["overlap"], &report[0]["rows"]), (&3.into(), &[1, 2, 3][..].into()));
    // The published terms: A141843 for n = 12, and A065188.
    assert_eq!(report[0]["first"], json!([1, 3, 5, 8, 10, 12, 6, 11, 2, 7, 9, 4]));
    assert_eq!(report[0]["greedy"], json!([1, 3, 5, 2, 4, 9, 11, 13, 15, 6, 8, 19]));
    assert!(text(&run(&["greedy", "4", "--overlap"]).stdout).ends_with("rows     none\n"));
    assert_refused(&["greedy", "3", "--overlap"], 3, &["no solution exists"]);
    assert_refused(&["greedy", "56", "--overlap"], 2, &["up to n = 55"]);
}
