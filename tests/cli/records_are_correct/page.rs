//! The page docs/records.md shows the tables.

use std::fmt::Write as _;
use std::fs;

use nqueens::oeis::Sequence;

use super::{BEAUTIFUL, COUNTS, FIRST, Row, path, read, rows, veripb};

/// Returns a number with its digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut groups = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            groups.push(' ');
        }
        groups.push(digit);
    }
    groups
}

/// A column of a table of the page: its name in the CSV file, its heading, and the format of a
/// cell.
type Column = (&'static str, &'static str, fn(&str) -> String);

const PLAIN: fn(&str) -> String = str::to_string;
const CODE: fn(&str) -> String = |text| format!("`{text}`");
const HASH: fn(&str) -> String = |text| format!("`{}`", &text[..16]);

const COUNT_COLUMNS: [Column; 8] = [
    ("n", "n", PLAIN),
    ("count", "count", grouped),
    ("status", "status", PLAIN),
    ("wall_s", "s", PLAIN),
    ("threads", "threads", PLAIN),
    ("machine", "machine", PLAIN),
    ("commit", "commit", CODE),
    ("date", "date", PLAIN),
];

const PROOF_COLUMNS: [Column; 11] = [
    ("n", "n", PLAIN),
    ("status", "status", PLAIN),
    ("literature", "literature", PLAIN),
    ("user_s", "search, s", PLAIN),
    ("check_s", "check, s", PLAIN),
    ("threads", "threads", PLAIN),
    ("machine", "machine", PLAIN),
    ("commit", "commit", CODE),
    ("date", "date", PLAIN),
    ("certificate_bytes", "certificate, bytes", grouped),
    ("certificate_sha256", "SHA-256 begins with", HASH),
];

const VERIPB_COLUMNS: [Column; 12] = [
    ("kind", "kind", PLAIN),
    ("n", "n", PLAIN),
    ("certificate_sha256", "certificate", HASH),
    ("lines", "lines", grouped),
    ("bytes", "bytes", grouped),
    ("sha256", "SHA-256 begins with", HASH),
    ("translation_s", "translation, s", PLAIN),
    ("veripb_s", "VeriPB, s", PLAIN),
    ("veripb_kib", "VeriPB, KiB", grouped),
    ("elaborated_bytes", "elaborated, bytes", grouped),
    ("commit", "commit", CODE),
    ("date", "date", PLAIN),
];

const INTRODUCTION: &str = "\
<!-- Generated from records/*.csv: UPDATE_EXPECT=1 cargo test-cli records_are_correct -->

# Records

This page shows which sizes the program has counted or proved, with the time, the machine and the
commit of one run each. The tables are files: [counts.csv](../records/counts.csv),
[first.csv](../records/first.csv), [beautiful.csv](../records/beautiful.csv) and
[veripb.csv](../records/veripb.csv), which also have the placements, the fingerprints and the full
hashes. [records/README.md](../records/README.md) defines their columns and the machines. A test
checks every row: placements are solutions, counts are the published ones, kept certificates have
these hashes. [Performance](performance.md) has the current figures of each kind.
";

const ABOUT_COUNTS: &str = "
## Counts

Wall-clock seconds of `nqueens count N`. The status \"published\" means that the program knows the
published value, and that the count is equal to it.
";

const ABOUT_FIRST: &str = "
## First solutions

The lexicographically first solution, proved by a certificate. In the column *literature*, \"open\"
marks the sizes that Fischetti and Salvagnin (arXiv 1907.08246) left open, \"equal\" those whose
published solution is known here and is the same. The status \"open\" means that the seconds given
did not suffice.
";

const ABOUT_BEAUTIFUL: &str = "
## Most beautiful solutions

A solution with the smallest fingerprint by the Euclidean norm, proved by a certificate. \"equal\"
marks the sizes whose published fingerprint is known here and is the same. The status \"open\" means
that the seconds given did not suffice.
";

const ABOUT_VERIPB: &str = "
## Proofs for VeriPB

Certificates translated by `nqueens check FILE --veripb OUT` for the proof checker VeriPB 3.0.2
(see [Proofs](proofs.md#proofs-that-another-checker-verifies)): the size of the proof, CPU seconds
(user) of the check and translation together, those of VeriPB and its largest memory, and the size
of the proof that `veripb -e` elaborates. Where seconds of VeriPB are given, it has verified the
proof; the diary says why some cells are empty.
";

/// Returns a table of the page.
fn shown<'a>(rows: impl Iterator<Item = &'a Row>, columns: &[Column]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut table = line(columns.iter().map(|(_, heading, _)| (*heading).to_string()).collect());
    let _ = writeln!(table, "|{}", "---|".repeat(columns.len()));
    for row in rows {
        let cell = |(name, _, format): &Column| row.cell(name).map_or_else(String::new, format);
        table.push_str(&line(columns.iter().map(cell).collect()));
    }
    table
}

/// Returns the page that shows the tables.
fn page() -> String {
    let table = |name: &str, header| rows(&read(name), header).expect("a table");
    let mut page = [INTRODUCTION, ABOUT_COUNTS].concat();
    let counts = table("records/counts.csv", COUNTS);
    for sequence in Sequence::ALL {
        let of_it = |row: &&Row| row.cell("sequence") == Some(sequence.oeis());
        if counts.iter().any(|row| of_it(&row)) {
            let _ = write!(page, "\n### {}: {}\n\n", sequence.oeis(), sequence.title());
            page.push_str(&shown(counts.iter().filter(of_it), &COUNT_COLUMNS));
        }
    }
    let tables = [
        (ABOUT_FIRST, table("records/first.csv", FIRST)),
        (ABOUT_BEAUTIFUL, table("records/beautiful.csv", BEAUTIFUL)),
    ];
    for (about, rows) in tables {
        let proven = || rows.iter().filter(|row| row.cell("status") == Some("proven"));
        let open = proven().filter(|row| row.cell("literature") == Some("open")).count();
        let _ = write!(page, "{about}\n{} sizes are proved", proven().count());
        if open > 0 {
            let _ = write!(page, ", {open} of them open in the literature");
        }
        page.push_str(".\nTimes are CPU seconds (user); the search includes the check of its own certificate.\n\n");
        page.push_str(&shown(rows.iter(), &PROOF_COLUMNS));
    }
    let table = table(veripb::NAME, veripb::HEADER);
    let verified = table.iter().filter(|row| row.cell("veripb_s").is_some()).count();
    let _ = writeln!(page, "{ABOUT_VERIPB}\nVeriPB has verified {verified} of {}.\n", table.len());
    page.push_str(&shown(table.iter(), &VERIPB_COLUMNS));
    page
}

#[test]
fn the_documentation_page_shows_the_tables() {
    let page = page();
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        fs::write(path("docs/records.md"), &page).expect("the page is written");
    }
    let same = read("docs/records.md") == page;
    assert!(
        same,
        "docs/records.md is not up to date; write it with UPDATE_EXPECT=1 cargo test-cli records_are_correct"
    );
}
