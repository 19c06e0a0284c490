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

/// Returns the proven rows of the first solutions.
fn proven() -> Vec<Row> {
    let mut all = rows(&read("records/first.csv"), FIRST).expect("a table");
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
    let rows = proven();
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

/// Returns the size of a row of a table of proofs.
fn size(row: &Row) -> usize {
    row.number("n").expect("a size")
}

/// Returns a text for the entry of A141843, in the internal format of the OEIS.
fn entry() -> String {
    let last = triangle().len();
    let all = rows(&read("records/first.csv"), FIRST).expect("a table");
    let is_proven = |row: &&Row| row.cell("status") == Some("proven");
    let sizes = |wanted: &dyn Fn(usize, &Row) -> bool| {
        let rows = all.iter().filter(is_proven).filter(|row| wanted(size(row), row));
        ranges(&rows.map(size).collect::<Vec<_>>())
    };
    let new = sizes(&|n, row| n <= last && row.cell("literature") == Some("open"));
    let beyond = sizes(&|n, _| n > last);
    let terms = |rows: usize| rows * (rows + 1) / 2;
    let mut text = String::new();
    let _ = write!(
        text,
        "Proposed for https://oeis.org/A141843. Replace NAME, DATE and URL; the b-file is b141843.txt.\n\n\
         %H A141843 NAME, <a href=\"/A141843/b141843.txt\">Rows n = 1..{last} of triangle, flattened</a> \
         (rows 1..{LAST_ROW_OF_ENTRY} are those of the b-file by Matthias Engelhardt)\n\
         %H A141843 NAME, <a href=\"URL\">nqueens: the program, certificates and a checker</a>\n\
         %C A141843 Rows {new}, unknown in the comment of Jul 23 2019, are now proved, so the first \
         unknown case is n={}. Rows 1..{last} have certificates that a separate program checks in exact \
         integers; rows 1..{LAST_ROW_OF_ENTRY} are those of the b-file before, which confirms Schubert's \
         n=48. Also proved: n = {beyond}. - _NAME_, DATE\n\
         %K A141843 nonn,tabl,more\n\
         %E A141843 a({})-a({}) from _NAME_, DATE\n",
        last + 1,
        terms(LAST_ROW_OF_ENTRY) + 1,
        terms(last)
    );
    text
}

/// Returns all rows of a table as JSON, a row per line, also those that are not proven.
fn json_of(name: &str, header: &str, describe: &str) -> String {
    let line = |row: &Row| {
        let text = |column: &str| row.cell(column).map(str::to_owned);
        let seconds = |column: &str| row.cell(column).and_then(|s| s.parse::<f64>().ok());
        let integers = |column: &str| row.numbers::<u64>(column).ok().flatten();
        let object = json!({
            "n": size(row),
            "status": text("status"),
            "literature": text("literature"),
            "columns": integers("placement"),
            "fingerprint": integers("fingerprint"),
            "certificate_bytes": row.number::<u64>("certificate_bytes").ok(),
            "certificate_sha256": text("certificate_sha256"),
            "search_s": seconds("user_s"),
            "check_s": seconds("check_s"),
            "threads": row.number::<u64>("threads").ok(),
            "machine": text("machine"),
            "commit": text("commit"),
            "date": text("date"),
        });
        object.to_string()
    };
    let all = rows(&read(name), header).expect("a table");
    let lines: Vec<String> = all.iter().map(line).collect();
    let machines: Value =
        super::machine_table().into_iter().map(|(name, text)| (name, json!(text))).collect();
    let lines = lines.join(",\n");
    format!(
        "{{\"description\":{},\n\"machines\":{machines},\n\"rows\":[\n{lines}\n]}}\n",
        json!(describe)
    )
}

fn files() -> [(&'static str, String); 4] {
    let first = "Lexicographically first solutions of the n-queens problem (OEIS A141843): columns of the queens in rows 1 to n, counted from 1, or null where there is none or none is known. Times are CPU seconds; machines and columns are defined in records/README.md";
    let beautiful = "Most beautiful solutions of the n-queens problem: columns of the queens in rows 1 to n, counted from 1, and their costs, the largest first; the columns are not unique. Times are CPU seconds; machines and columns are defined in records/README.md";
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
            fs::create_dir_all(path("records/exports")).expect("the folder");
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
fn the_first_rows_of_the_b_file_are_those_that_are_published() {
    /// The b-file by Matthias Engelhardt, rows 1 to 61: the SHA-256 and the size of
    /// files/A141/b141843.txt in the repository oeis/oeisdata.
    const PUBLISHED: &str = "883c716b48815b2f8f9edcd10d033d7d4800267083f60bffd3b837be03fe4d2c";
    let terms = LAST_ROW_OF_ENTRY * (LAST_ROW_OF_ENTRY + 1) / 2;
    let published: String = read(B_FILE).split_inclusive('\n').take(terms).collect();
    assert_eq!((published.len(), super::sha256(published.as_bytes())), (13_508, PUBLISHED.into()));
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
                let is_open = row["status"] == "open";
                assert!(is_open || [2, 3].contains(&n) || name == BEAUTIFUL_JSON, "{row}");
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
