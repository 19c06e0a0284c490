//! `reproduce` computes published values again and prints both side by side.

use crate::support::program;

use serde_json::Value;

use program::{assert_refused, json, printed, run, text};

#[test]
fn the_values_of_textbooks_are_computed_again() {
    let output = run(&["reproduce", "textbook", "--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // The forecast comes before the table, on stderr.
    assert!(text(&output.stderr).contains("textbook: "), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let has_row = |cells: &str| {
        let row = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        table.lines().any(|line| row(line).starts_with(cells) && line.ends_with('✓'))
    };
    for cells in [
        "4 256 256 brute-force",
        "4 2 2 brute-force",
        "4 24 24 backtracking",
        "5 120 120 backtracking",
        "8 92 92 columns",
        "7 40 40 columns",
        "10 724 724 columns",
        "8 876 876 backtracking --trace",
        "8 1 8 42 140 344 568 550 312 92 1 8 42 140 344 568 550 312 92 columns --trace",
    ] {
        assert!(has_row(cells), "{cells}: {table}");
    }
    assert!(!table.contains('✗'), "{table}");
}

#[test]
fn the_json_has_every_row_with_both_values() {
    let report = json(&["reproduce", "textbook", "--quick", "--json", "--quiet"]);
    assert_eq!((&report["source"], &report["complete"]), (&"textbook".into(), &true.into()));
    assert_eq!(report["comparisons"], report["equal"]);
    let rows = |table: &Value| table["rows"].as_array().expect("rows").clone();
    let rows: Vec<Value> =
        report["tables"].as_array().expect("tables").iter().flat_map(rows).collect();
    assert_eq!(Some(rows.len() as u64), report["comparisons"].as_u64());
    for row in &rows {
        assert_eq!((&row["published"], &row["equal"]), (&row["ours"], &true.into()), "{row}");
        assert!(row["elapsed_s"].is_number() && row.get("difference").is_none(), "{row}");
    }
    // One thread gives the same values.
    let alone = json(&["reproduce", "textbook", "--quick", "--json", "--quiet", "-j", "1"]);
    assert_eq!(alone["equal"], report["equal"]);
}

#[test]
fn without_a_source_the_sources_are_listed() {
    let list = json(&["reproduce", "--json"]);
    let sources = list["sources"].as_array().expect("an array");
    let text = printed(&["reproduce"]);
    for source in sources {
        assert!(source["quick_comparisons"].as_u64() < source["comparisons"].as_u64(), "{source}");
        assert!(text.contains(source["source"].as_str().expect("a name")), "{text}");
    }
    assert_eq!((sources.len(), text.lines().count()), (3, 4));
    assert_refused(&["reproduce", "knuth"], 2, &["knuth", "fischetti-salvagnin, oeis or textbook"]);
    assert_refused(&["reproduce", "oeis", "--threads", "0"], 2, &["threads", "1 to 1024"]);
}
