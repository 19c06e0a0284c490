//! The files in `records/exports/` follow from the tables: the b-file of A141843, a text for its
//! entry, and JSON.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::{BEAUTIFUL, FIRST, Row, path, read, rows};

const B_FILE: &str = "records/exports/b141843.txt";
const ENTRY: &str = "records/exports/a141843.txt";
const FIRST_JSON: &str = "records/exports/first.json";
const BEAUTIFUL_JSON: &str = "records/exports/beautiful.json";

/// The last row that the entry of A141843 has now.
const LAST_ROW_OF_ENTRY: usize = 61;

/// Returns the proven rows of a table.
fn proven(name: &str, header: &str) -> Vec<Row> {
    let mut all = rows(&read(name), header).expect("a table");
    all.retain(|row| row.cell("status") == Some("proven"));
    all
}

/// Returns the size of a row, and its 1-based columns, or `None` if there is no solution.
fn placement(row: &Row) -> (usize, Option<Vec<usize>>) {
    let n = row.number("n").expect("a size");
    let is_none = row.cell("placement") == Some("none");
    (n, if is_none { None } else { row.numbers("placement").expect("columns") })
}

/// Returns the rows of A141843 that are proven without a gap: n zeros if there is no solution.
fn triangle() -> Vec<Vec<usize>> {
    let rows = proven("records/first.csv", FIRST);
    let without_gap = (1..).zip(&rows).take_while(|(n, row)| *n == placement(row).0);
    without_gap.map(|(n, row)| placement(row).1.unwrap_or_else(|| vec![0; n])).collect()
}

fn b_file() -> String {
    let terms = triangle().concat();
    (1..).zip(terms).map(|(index, term): (u32, usize)| format!("{index} {term}\n")).collect()
}

/// Returns numbers as ranges: "1-3, 5".
fn ranges(numbers: &[usize]) -> String {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match groups.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => groups.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    groups.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Returns a text for the entry of A141843, in the internal format of the OEIS.
fn entry() -> String {
    let last = triangle().len();
    let all: Vec<usize> =
        proven("records/first.csv", FIRST).iter().map(|row| placement(row).0).collect();
    let beyond: Vec<usize> = all.into_iter().filter(|&n| n > last).collect();
    let mut text = String::new();
    let _ = write!(
        text,
        "Proposed for https://oeis.org/A141843. Replace NAME, DATE and URL; the b-file is b141843.txt.\n\n\
         %H A141843 NAME, <a href=\"/A141843/b141843.txt\">Rows n = 1..{last} of triangle, flattened</a> \
         (rows 1..{LAST_ROW_OF_ENTRY} from Matthias Engelhardt and others)\n\
         %H A141843 NAME, <a href=\"URL\">nqueens: the program, certificates and an independent checker</a>\n\
         %C A141843 Rows {}..{last} were computed by completion queries that are answered by a placement or refuted \
         by integer multipliers of rows, columns and diagonals, with exhaustive search below. Each row has a \
         certificate that a short program checks in exact integers. Rows that other authors published before agree. \
         Also proved, not contiguous: n = {}. - _NAME_, DATE\n\
         %K A141843 more\n",
        LAST_ROW_OF_ENTRY + 1,
        ranges(&beyond)
    );
    text
}

/// Returns the proven rows of a table as JSON, a row per line.
fn json_of(name: &str, header: &str, describe: &str) -> String {
    let text = |row: &Row, column: &str| row.cell(column).map(str::to_owned);
    let seconds = |row: &Row, column: &str| row.cell(column).and_then(|s| s.parse::<f64>().ok());
    let line = |row: &Row| {
        let (n, columns) = placement(row);
        let mut object = json!({
            "n": n,
            "columns": columns,
            "certificate_bytes": row.number::<u64>("certificate_bytes").ok(),
            "certificate_sha256": text(row, "certificate_sha256"),
            "search_s": seconds(row, "user_s"),
            "check_s": seconds(row, "check_s"),
            "machine": text(row, "machine"),
            "commit": text(row, "commit"),
            "date": text(row, "date"),
        });
        if let Some(costs) = row.numbers::<u64>("fingerprint").expect("numbers") {
            object["fingerprint"] = json!(costs);
        }
        object.to_string()
    };
    let lines: Vec<String> = proven(name, header).iter().map(line).collect();
    format!("{{\"description\":{},\n\"rows\":[\n{}\n]}}\n", json!(describe), lines.join(",\n"))
}

fn files() -> [(&'static str, String); 4] {
    let first = "Lexicographically first solutions of the n-queens problem (OEIS A141843): columns of the queens in rows 1 to n, counted from 1; null where there is no solution";
    let beautiful = "Most beautiful solutions of the n-queens problem: columns of the queens in rows 1 to n, counted from 1, and their costs, the largest first; the columns are not unique";
    [
        (B_FILE, b_file()),
        (ENTRY, entry()),
        (FIRST_JSON, json_of("records/first.csv", FIRST, first)),
        (BEAUTIFUL_JSON, json_of("records/beautiful.csv", BEAUTIFUL, beautiful)),
    ]
}

#[test]
fn the_exports_follow_from_the_tables() {
    for (name, text) in files() {
        if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
            fs::write(path(name), &text).expect("the file is written");
        }
        let same = read(name) == text;
        assert!(
            same,
            "{name} is not up to date; write it with UPDATE_EXPECT=1 cargo test-cli records_are_correct"
        );
    }
}

/// Reads a b-file by its grammar: lines `index term`, the indices consecutive from 1, one space,
/// numbers without leading zeros, only ASCII and line feeds, and a line feed at the end.
fn terms_of(text: &str) -> Result<Vec<u64>, String> {
    if !text.ends_with('\n') {
        return Err("it ends within a line".into());
    }
    let number = |word: &str| {
        let number = word.parse::<u64>().ok().filter(|number| number.to_string() == word);
        number.ok_or_else(|| format!("'{word}' is not a number"))
    };
    let term = |(index, line): (u64, &str)| {
        let (first, second) = line.split_once(' ').ok_or_else(|| format!("'{line}'"))?;
        if number(first)? != index {
            return Err(format!("'{line}' should be term {index}"));
        }
        number(second)
    };
    (1..).zip(text.split_terminator('\n')).map(term).collect()
}

/// Returns whether queens in these 1-based columns attack each other, by the definition.
fn attack(columns: &[u64]) -> bool {
    let pairs = (0..columns.len()).flat_map(|below| (0..below).map(move |above| (above, below)));
    pairs.into_iter().any(|(above, below)| {
        let distance = columns[above].abs_diff(columns[below]);
        distance == 0 || distance == (below - above) as u64
    })
}

fn is_placement(columns: &[u64]) -> bool {
    let n = columns.len() as u64;
    columns.iter().all(|column| (1..=n).contains(column)) && !attack(columns)
}

#[test]
fn the_b_file_keeps_its_grammar_and_its_rows_are_placements() {
    let terms = terms_of(&read(B_FILE)).expect("a b-file");
    let (mut rest, mut n) = (&terms[..], 0);
    while !rest.is_empty() {
        n += 1;
        let (row, further) = rest.split_at_checked(n).expect("whole rows");
        let has_none = [2, 3].contains(&n) && row.iter().all(|&term| term == 0);
        assert!(has_none || is_placement(row), "row {n}: {row:?}");
        rest = further;
    }
    assert!(n >= LAST_ROW_OF_ENTRY, "fewer rows than the entry has: {n}");
}

#[test]
fn the_placements_of_the_json_files_are_placements_with_their_fingerprints() {
    for name in [FIRST_JSON, BEAUTIFUL_JSON] {
        let file: Value = serde_json::from_str(&read(name)).expect("JSON");
        let rows = file["rows"].as_array().expect("rows");
        assert!(rows.len() > 20, "{name}");
        let numbers = |value: &Value| -> Option<Vec<u64>> {
            value.as_array()?.iter().map(Value::as_u64).collect()
        };
        for row in rows {
            let n = row["n"].as_u64().expect("a size");
            let Some(columns) = numbers(&row["columns"]) else {
                assert!([2, 3].contains(&n) || name == BEAUTIFUL_JSON, "{name}: {row}");
                continue;
            };
            assert!(columns.len() as u64 == n && is_placement(&columns), "{name}: {row}");
            let Some(costs) = numbers(&row["fingerprint"]) else { continue };
            let from_centre = |place: u64| (2 * place).abs_diff(n + 1).pow(2);
            let mut own: Vec<u64> =
                (1..).zip(&columns).map(|(row, &c)| from_centre(row) + from_centre(c)).collect();
            own.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(own, costs, "{name}: n = {n}");
        }
    }
}

#[test]
fn a_damaged_b_file_and_a_wrong_placement_are_detected() {
    assert_eq!(terms_of("1 1\n2 0\n"), Ok(vec![1, 0]));
    for damaged in ["1 1", "1 1\n3 0\n", "1  1\n", "1\t1\n", "1 01\n", "1 1 \n", "1 1\n\n", "0 1\n"]
    {
        assert!(terms_of(damaged).is_err(), "{damaged:?}");
    }
    assert!(is_placement(&[2, 4, 1, 3]));
    for wrong in [&[1, 2, 4, 3][..], &[2, 4, 1, 1], &[2, 4, 1, 5], &[0, 2, 4, 1]] {
        assert!(!is_placement(wrong), "{wrong:?}");
    }
}

#[test]
fn numbers_are_written_as_ranges() {
    assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7, 8");
}
