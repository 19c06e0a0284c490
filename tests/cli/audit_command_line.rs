//! `audit` finds the wrong unit of a published count, and says what a sample without one proves.
//! The databases are in the format of the project Q27, with counts of our own.

use std::fs;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use nqueens::audit::confidence::SampleSize;
use nqueens::audit::q27::border::for_each_canonical;
use nqueens::audit::q27::recount::{completions, recount};
use nqueens::audit::q27::{Border, Database, Entry};
use serde_json::Value;

use crate::support::{Scratch, run};

/// The bytes of an entry.
const ENTRY: usize = 16;

/// Returns every border of the board of size `n` whose position is a multiple of `step`.
fn borders(n: usize, step: usize) -> Vec<Border> {
    let mut position = 0;
    let mut chosen = Vec::new();
    for_each_canonical(n, |border| {
        if position % step == 0 {
            chosen.push(border);
        }
        position += 1;
        true
    });
    chosen
}

/// Returns the database of these borders.
fn database(n: usize, borders: &[Border]) -> Vec<u8> {
    let counts = borders.iter().map(|border| {
        let count = completions(n, border).expect("it can be counted");
        u64::try_from(count).expect("a small count")
    });
    borders.iter().zip(counts).flat_map(|(border, count)| Entry::to_bytes(border, count)).collect()
}

/// Returns 10 000 units of n = 18, evenly distributed over the whole database.
fn ten_thousand_units() -> &'static [u8] {
    static UNITS: OnceLock<Vec<u8>> = OnceLock::new();
    UNITS.get_or_init(|| {
        let mut chosen = borders(18, 1_492);
        chosen.truncate(10_000);
        assert_eq!(chosen.len(), 10_000);
        database(18, &chosen)
    })
}

/// Returns a database with another count in one of its units: the checksum and the remainders are
/// right.
fn with_wrong_count(units: &[u8], n: usize, wrong: usize) -> Vec<u8> {
    let mut changed = units.to_vec();
    let place = wrong * ENTRY..(wrong + 1) * ENTRY;
    let entry = Entry::from_bytes(units[place.clone()].try_into().expect("16 bytes"));
    let entry = entry.expect("a valid entry");
    let border = Border::new(n, entry.sides).expect("a border");
    let count = entry.count.expect("it is counted") + 1;
    changed[place].copy_from_slice(&Entry::to_bytes(&border, count));
    changed
}

/// Runs `audit` on a database. Returns the exit code, stdout and stderr.
fn audit(name: &str, database: &[u8], arguments: &[&str]) -> (i32, String, String) {
    let scratch = Scratch::new(name);
    let file = scratch.file("units.db");
    fs::write(&*file, database).expect("a file");
    let output = run(&[&["audit", &file, "--format", "q27"], arguments].concat());
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    let code = output.status.code().expect("no signal ended it");
    (code, text(output.stdout), text(output.stderr).replace(&*file, "units.db"))
}

#[test]
fn a_complete_database_gives_the_published_value() {
    for (n, total) in [(8, "92"), (9, "352")] {
        let database = database(n, &borders(n, 1));
        let size = n.to_string();
        let arguments = ["--size", &size, "--sample", "all", "--json"];
        let (code, out, err) = audit("audit-complete", &database, &arguments);
        assert_eq!((code, err.as_str()), (0, ""));
        let report: Value = serde_json::from_str(&out).expect("JSON");
        for (field, value) in [
            ("sum", Value::from(total)),
            ("complete", true.into()),
            ("published", "agrees".into()),
            ("recounted", (database.len() / ENTRY).into()),
            ("wrong", Value::Null),
            ("wrong_units_at_most", 0.into()),
            ("error_of_sum_below", "0".into()),
        ] {
            assert_eq!(report[field], value, "n = {n}: {field}: {out}");
        }
    }
}

#[test]
fn a_full_audit_names_the_one_wrong_unit_among_10_000() {
    let wrong = with_wrong_count(ten_thousand_units(), 18, 6_789);
    let arguments = ["--size", "18", "--sample", "all"];
    let (code, out, err) = audit("audit-full", &wrong, &arguments);
    assert_eq!((code, out.as_str()), (6, ""), "{err}");
    assert!(err.contains("units.db: unit 6789 is wrong: it states "), "{err}");
}

#[test]
fn samples_find_the_wrong_unit_at_the_stated_rate() {
    const WRONG: u64 = 1_234;
    let database = with_wrong_count(ten_thousand_units(), 18, WRONG as usize);
    let found = (0..200)
        .filter(|&seed| {
            let size = SampleSize::AtMost(1_000);
            let read = Database::read(&*database, 18, None, (size, seed)).expect("it is readable");
            assert_eq!((read.counted, read.sample.len()), (10_000, 1_000));
            // The other units are right, as the full audit shows.
            let suspect: Vec<_> =
                read.sample.into_iter().filter(|(unit, _)| *unit == WRONG).collect();
            let (_, wrong) =
                recount(18, &suspect, NonZeroUsize::MIN, |_| true).expect("it can be counted");
            assert_eq!(wrong.is_some(), !suspect.is_empty());
            wrong.is_some()
        })
        .count();
    // One of ten on average, with a standard deviation of 4.2; the seeds are fixed.
    assert!((8..=33).contains(&found), "{found} of 200");
}

#[test]
fn a_sample_without_a_wrong_unit_states_what_it_proves() {
    let arguments = ["--size", "18", "--sample", "300", "--seed", "5"];
    let (code, out, err) = audit("audit-sample", ten_thousand_units(), &arguments);
    assert_eq!((code, err.as_str()), (0, ""));
    for words in [
        "no wrong unit among 300",
        "300 random units, seed 5",
        "borders are missing, so this is not the number of all solutions",
        "with 95 % confidence at most 1.00 % of the units are wrong (100), and the sum is off by less",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (code, again, _) = audit("audit-sample", ten_thousand_units(), &arguments);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (first, again) = (lines(&out), lines(&again));
    assert_eq!(code, 0);
    // All but the path and the time.
    assert_eq!(first[1..first.len() - 1], again[1..again.len() - 1]);
}

#[test]
fn units_that_are_missing_twice_there_or_contradict_themselves_are_found() {
    let complete = database(8, &borders(8, 1));
    let unit = |number: usize| complete[number * ENTRY..][..ENTRY].to_vec();
    let without =
        |number: usize| [&complete[..number * ENTRY], &complete[(number + 1) * ENTRY..]].concat();
    let audit = |database: &[u8]| audit("audit-units", database, &["--size", "8", "--json"]);

    let (code, out, _) = audit(&without(50));
    assert!(code == 0 && out.contains(r#""complete":false"#), "{out}");

    let mut twice = complete.clone();
    twice.splice(51 * ENTRY..51 * ENTRY, unit(50));
    let (code, _, err) = audit(&twice);
    assert!(code == 6 && err.contains("unit 51 is wrong: its border does not come after"), "{err}");

    // 3 bits of the checksum notice each changed bit of the queens.
    let mut changed = complete.clone();
    changed[70 * ENTRY + 2] ^= 0x10;
    let (code, _, err) = audit(&changed);
    assert!(code == 6 && err.contains("unit 70 is wrong: the checksum"), "{err}");

    let mut changed = complete.clone();
    changed[70 * ENTRY + 15] ^= 0x01;
    let (code, _, err) = audit(&changed);
    assert!(code == 6 && err.contains("unit 70 is wrong: its count of"), "{err}");

    // An image of a border in place of the canonical one.
    let [west, north, east, south] =
        Entry::from_bytes(unit(60).try_into().expect("16 bytes")).expect("a valid entry").sides;
    let image = Border::new(8, [south, west, north, east]).expect("an image of a border");
    let mut changed = complete.clone();
    changed[60 * ENTRY..61 * ENTRY].copy_from_slice(&Entry::to_bytes(&image, 0));
    let (code, _, err) = audit(&changed);
    assert!(code == 6 && err.contains("unit 60 is wrong: another border stands for"), "{err}");
}

#[test]
fn the_text_of_the_print_command_is_read_too() {
    let binary = database(8, &borders(8, 1));
    let lines = binary.chunks(ENTRY).enumerate().map(|(number, bytes)| {
        let entry = Entry::from_bytes(bytes.try_into().expect("16 bytes")).expect("a valid entry");
        let pairs = entry.sides.map(|[a, b]| format!("({a:2},{b:2})")).concat();
        let count = entry.count.expect("it is counted");
        format!("@{number:10}: {pairs}\t2016-01-09 04:08\t#   1\t{count:14}\n")
    });
    let text = format!("179 Entries\n{}", lines.collect::<String>());
    let arguments = ["--size", "8", "--sample", "all", "--json"];
    let (code, out, _) = audit("audit-text", text.as_bytes(), &arguments);
    assert!(code == 0 && out.contains(r#""sum":"92","complete":true"#), "{out}");
    let damaged = text.replacen("( 0,", "( 0;", 1);
    let (code, _, err) = audit("audit-text", damaged.as_bytes(), &arguments);
    assert!(code == 6 && err.contains("unit 0 is wrong: it is not a line of q27db print"), "{err}");
}

#[test]
fn files_that_are_no_database_and_wrong_usage_are_one_line() {
    let database = database(8, &borders(8, 1));
    let size = ["--size", "8"];
    for (bytes, arguments, code, words) in [
        (&database[..40], &size[..], 7, "it ends after 8 bytes of a unit, which has 16"),
        (&[], &size, 7, "it has no units"),
        (&database, &["--size", "33"], 2, "use a whole number from 5 to 32"),
        (&database, &["--size", "8", "--units", "9..3"], 2, "a range of units is A..B"),
        (&database, &["--size", "8", "--units", "500..600"], 7, "none of its units has a count"),
        (&database, &["--size", "8", "--sample", "0"], 2, "number of units (or 'all')"),
        (&database, &["--size", "7"], 6, "unit 0 is wrong"),
    ] {
        let (actual, out, err) = audit("audit-usage", bytes, arguments);
        assert_eq!((actual, out.as_str(), err.lines().count()), (code, "", 1), "{err}");
        assert!(err.contains(words), "{err}");
    }
}
