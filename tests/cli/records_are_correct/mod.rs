//! The tables in `records/` are correct as far as a short test can check, and docs/records.md shows
//! them. `UPDATE_EXPECT=1` writes that page again. `records/README.md` defines the columns.

mod exports;
mod page;
mod veripb;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hmac_sha256::Hash;
use nqueens::board::{Norm, Piece, Placement, Problem};
use nqueens::oeis::{Sequence, lookup};
use nqueens::proof::bytes::Reader;
use nqueens::proof::{self, Kind};
use nqueens::solver::{Unobserved, first};
use nqueens::symmetry::Group;

const COUNTS: &str = "sequence,n,count,status,wall_s,threads,machine,commit,date";
const FIRST: &str = "n,placement,status,literature,user_s,check_s,threads,machine,commit,date,\
                     certificate_bytes,certificate_sha256";
const BEAUTIFUL: &str = "n,placement,fingerprint,status,literature,user_s,check_s,threads,machine,commit,date,\
                         certificate_bytes,certificate_sha256";

/// The number of last rows of a first solution that are compared with an exhaustive search.
const LAST_ROWS: usize = 12;
/// The largest n whose first solution is found again by an exhaustive search.
const SEARCHED: usize = 21;
/// The largest n whose first solution is found again by the solver.
const SOLVED_AGAIN: usize = 28;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A row of a table: the cells that are not empty, by column.
#[derive(Debug)]
struct Row(BTreeMap<String, String>);

impl Row {
    fn cell(&self, column: &str) -> Option<&str> {
        self.0.get(column).map(String::as_str)
    }

    fn required(&self, column: &str) -> Result<&str, String> {
        self.cell(column).ok_or_else(|| format!("{column} is missing"))
    }

    fn number<T: FromStr + ToString>(&self, column: &str) -> Result<T, String> {
        parsed(column, self.required(column)?)
    }

    fn numbers<T: FromStr + ToString>(&self, column: &str) -> Result<Option<Vec<T>>, String> {
        let list = |text: &str| text.split(' ').map(|word| parsed(column, word)).collect();
        self.cell(column).map(list).transpose()
    }

    /// Returns what identifies the row and orders the table: what is counted or proved, the size,
    /// and if there may be several proofs of it, the certificate.
    fn key(&self) -> Result<(&str, usize, &str), String> {
        let kind = self.cell("kind");
        let certificate = kind.and_then(|_| self.cell("certificate_sha256"));
        let of = kind.or(self.cell("sequence"));
        Ok((of.unwrap_or(""), self.number("n")?, certificate.unwrap_or("")))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |column| self.cell(column).unwrap_or("");
        write!(f, "{}{} n = {}", cell("sequence"), cell("kind"), cell("n"))
    }
}

/// Parses a number that is written as the program writes it.
fn parsed<T: FromStr + ToString>(column: &str, text: &str) -> Result<T, String> {
    let number = text.parse::<T>().ok().filter(|number| number.to_string() == text);
    number.ok_or_else(|| format!("{column}: '{text}' is not a number as it should be written"))
}

/// Parses a table whose first line must be `header`. No cell has a comma or quotes.
fn rows(text: &str, header: &str) -> Result<Vec<Row>, String> {
    if !text.ends_with('\n') || text.contains(['"', '\r']) {
        return Err("the table has quotes or carriage returns, or ends within a line".into());
    }
    let mut lines = text.lines();
    if lines.next() != Some(header) {
        return Err(format!("the columns are not {header}"));
    }
    let columns: Vec<&str> = header.split(',').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != columns.len() {
            return Err(format!("'{line}' has {} cells, not {}", cells.len(), columns.len()));
        }
        let named = columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        Ok(Row(named.map(|(column, cell)| (column.to_string(), cell.to_string())).collect()))
    };
    lines.map(row).collect()
}

/// Returns what is wrong with the rows of a table and with their order.
fn faults(text: &str, header: &str, check: impl Fn(&Row) -> Result<(), String>) -> Vec<String> {
    let rows = match rows(text, header) {
        Ok(rows) => rows,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    for row in &rows {
        if let Err(fault) = row.key().and_then(|_| check(row)) {
            faults.push(format!("{row}: {fault}"));
        }
    }
    for pair in rows.windows(2) {
        if pair[0].key() >= pair[1].key() {
            faults.push(format!("{} must come after {}", pair[1], pair[0]));
        }
    }
    faults
}

/// Returns the names of the machines that records/README.md defines, with their hardware.
fn machine_table() -> BTreeMap<String, String> {
    let page = read("records/README.md");
    let row = |line: &str| {
        let (name, hardware) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name.to_string(), hardware.strip_suffix(" |")?.to_string()))
    };
    let (_, table) = page.split_once("## Machines").expect("the machines");
    table.lines().filter_map(row).collect()
}

/// Checks the times, threads, machine, commit and date of a run. The commit may be unknown, and for
/// open sizes the threads, too.
fn check_run(row: &Row, times: &[&str]) -> Result<(), String> {
    times.iter().try_for_each(|column| check_seconds(row, column))?;
    let threads = row.required("threads").and_then(|_| row.number::<usize>("threads"));
    if !threads.as_ref().is_ok_and(|&threads| threads > 0) && row.cell("status") != Some("open") {
        return Err(format!("threads: {threads:?}"));
    }
    check_origin(row)
}

fn check_seconds(row: &Row, column: &str) -> Result<(), String> {
    let seconds = row.required(column)?;
    let digits = seconds.split_once('.').map_or(seconds.len(), |(whole, _)| whole.len());
    let plain = seconds.chars().all(|c| c.is_ascii_digit() || c == '.') && digits > 0;
    if !plain || !seconds.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(format!("{column}: '{seconds}' is not a number of seconds"));
    }
    Ok(())
}

/// Checks the machine, the commit, which may be unknown, and the date.
fn check_origin(row: &Row) -> Result<(), String> {
    let machine = row.required("machine")?;
    if !machine_table().contains_key(machine) {
        return Err(format!("records/README.md does not define the machine '{machine}'"));
    }
    let is_commit = |commit: &str| (7..=40).contains(&commit.len()) && is_hex(commit);
    if !row.cell("commit").is_none_or(is_commit) {
        return Err("commit is not 7 to 40 hexadecimal digits".into());
    }
    check_date(row.required("date")?)
}

fn is_hex(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

fn check_date(date: &str) -> Result<(), String> {
    let fault = || format!("'{date}' is not a date like 2026-11-23");
    let fields: Vec<&str> = date.split('-').collect();
    let widths: Vec<usize> = fields.iter().map(|field| field.len()).collect();
    let numbers: Option<Vec<u32>> = fields.iter().map(|field| field.parse().ok()).collect();
    let numbers = numbers.filter(|_| widths == [4, 2, 2]).ok_or_else(fault)?;
    let (year, month, day) = (numbers[0], numbers[1], numbers[2]);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if year >= 2026 && (1..=days).contains(&day) { Ok(()) } else { Err(fault()) }
}

fn check_count(row: &Row) -> Result<(), String> {
    let sequence = row.required("sequence")?;
    let sequence = Sequence::ALL.into_iter().find(|known| known.oeis() == sequence);
    let sequence = sequence.ok_or("the sequence is not known")?;
    let (n, count) = (row.number("n")?, row.number::<u128>("count")?);
    match (row.required("status")?, lookup(sequence, n)) {
        ("published", Some(value)) if value == count => {}
        ("published", value) => return Err(format!("{count} is not the published {value:?}")),
        ("new", None) => {}
        (status, _) => return Err(format!("the status '{status}' is wrong")),
    }
    row.required("commit")?;
    check_run(row, &["wall_s"])
}

/// Checks the status, the figures and the certificate of a proof. Returns true if it is proven.
fn check_proof(row: &Row) -> Result<bool, String> {
    match row.required("status")? {
        "open" => {
            let recorded = ["placement", "fingerprint", "certificate_bytes", "certificate_sha256"];
            if let Some(column) = recorded.into_iter().find(|column| row.cell(column).is_some()) {
                return Err(format!("an open size has a {column}"));
            }
            check_run(row, &["user_s"])?;
            Ok(false)
        }
        "proven" => {
            check_run(row, &["user_s", "check_s"])?;
            if row.number::<u64>("certificate_bytes")? == 0 {
                return Err("the certificate is empty".into());
            }
            check_sha256(row, "certificate_sha256", &[16, 64])?;
            Ok(true)
        }
        status => Err(format!("the status '{status}' is wrong")),
    }
}

/// Checks that a hash has one of these numbers of digits.
fn check_sha256(row: &Row, column: &str, digits: &[usize]) -> Result<(), String> {
    let sha256 = row.required(column)?;
    if !digits.contains(&sha256.len()) || !is_hex(sha256) {
        return Err(format!("{column} is not one of {digits:?} hexadecimal digits"));
    }
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    Hash::hash(bytes).map(|byte| format!("{byte:02x}")).concat()
}

/// Returns the placement of a row as 0-based columns, if there is one and the board's checker
/// accepts it.
fn solution(row: &Row) -> Result<Option<Vec<usize>>, String> {
    let Some(columns) = row.numbers::<usize>("placement")? else { return Ok(None) };
    let columns: Option<Vec<usize>> =
        columns.into_iter().map(|column| column.checked_sub(1)).collect();
    let columns = columns.ok_or("placement: columns begin with 1")?;
    Placement::check_solution(&Problem::empty(Piece::Queen, row.number("n")?), &columns)
        .map_err(|error| error.to_string())?;
    Ok(Some(columns))
}

/// Returns the row for n in a table of published values, without the n itself.
fn published(table: &str, n: usize) -> Option<String> {
    let table = read(&format!("records/published/{table}"));
    table.lines().find_map(|line| Some(line.strip_prefix(&format!("{n},"))?.to_string()))
}

/// Checks the column `literature`: it is `equal` if a published value is known, which must be
/// `found`.
fn check_literature(row: &Row, known: Option<String>, found: &str) -> Result<(), String> {
    match (row.cell("literature"), known) {
        (Some("equal"), Some(value)) if value == found => Ok(()),
        (Some("open") | None, None) => Ok(()),
        (recorded, value) => Err(format!("literature is {recorded:?}, published {value:?}")),
    }
}

fn check_first(row: &Row) -> Result<(), String> {
    let proven = check_proof(row)?;
    let n: usize = row.number("n")?;
    let known = published("first_queens.csv", n);
    if row.cell("placement") == Some("none") {
        // The published table has zeros where there is no solution.
        return check_literature(row, known, &vec!["0"; n].join(" "));
    }
    let Some(columns) = solution(row)? else {
        return if proven { Err("placement is missing".into()) } else { Ok(()) };
    };
    if !Group::FULL.is_least(&columns) {
        return Err("a mirror image or a rotation comes before it".into());
    }
    for row in n.saturating_sub(LAST_ROWS)..n {
        let earlier = Board::with(n, &columns[..row]).first_completion(Some(columns[row]));
        if let Some(earlier) = earlier {
            return Err(format!("with the same rows above, {earlier:?} comes before it"));
        }
    }
    check_literature(row, known, row.required("placement")?)
}

fn check_beautiful(row: &Row) -> Result<(), String> {
    if !check_proof(row)? {
        return Ok(());
    }
    let n: u64 = row.number("n")?;
    let costs = row.numbers::<u64>("fingerprint")?.ok_or("fingerprint is missing")?;
    // The sum over all rows of (2i - n - 1)^2 is n (n^2 - 1) / 3, and so it is over all columns.
    let sum: u64 = costs.iter().sum();
    if costs.len() as u64 != n
        || !costs.is_sorted_by(|a, b| a >= b)
        || 3 * sum != 2 * n * (n * n - 1)
    {
        return Err("no placement has this fingerprint".into());
    }
    if let Some(columns) = solution(row)?
        && Norm::Euclidean.fingerprint(&columns) != costs
    {
        return Err("the placement has another fingerprint".into());
    }
    let known = published("beautiful_fingerprints.csv", row.number("n")?);
    let known = known.and_then(|row| Some(row.split_once(',')?.1.to_string()));
    check_literature(row, known, row.required("fingerprint")?)
}

/// A board whose first rows have queens, for an exhaustive search that shares no code with the
/// solver.
struct Board {
    n: usize,
    row: usize,
    columns: u128,
    rising: Vec<bool>,
    falling: Vec<bool>,
}

impl Board {
    /// Creates the board with these queens in its first rows.
    fn with(n: usize, columns: &[usize]) -> Self {
        let diagonals = || vec![false; 2 * n];
        let mut board = Self { n, row: 0, columns: 0, rising: diagonals(), falling: diagonals() };
        columns.iter().for_each(|&column| board.toggle(column, true));
        board
    }

    fn toggle(&mut self, column: usize, place: bool) {
        self.row -= usize::from(!place);
        self.columns ^= 1 << column;
        self.rising[self.row + column] = place;
        self.falling[self.row + self.n - column] = place;
        self.row += usize::from(place);
    }

    fn is_free(&self, column: usize) -> bool {
        let (rising, falling) = (self.row + column, self.row + self.n - column);
        self.columns >> column & 1 == 0 && !self.rising[rising] && !self.falling[falling]
    }

    /// Returns the lexicographically first completion whose next queen is left of `end`.
    fn first_completion(&mut self, end: Option<usize>) -> Option<Vec<usize>> {
        if self.row == self.n {
            return Some(Vec::new());
        }
        for column in 0..end.unwrap_or(self.n) {
            if !self.is_free(column) {
                continue;
            }
            self.toggle(column, true);
            let below = self.first_completion(None);
            self.toggle(column, false);
            if let Some(below) = below {
                return Some([vec![column], below].concat());
            }
        }
        None
    }
}

fn assert_sound(name: &str, header: &str, check: impl Fn(&Row) -> Result<(), String>) {
    let faults = faults(&read(name), header, check);
    assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
}

#[test]
fn every_count_is_the_published_one() {
    assert_sound("records/counts.csv", COUNTS, check_count);
}

#[test]
fn every_first_solution_is_a_solution_and_its_last_rows_are_the_first() {
    assert_sound("records/first.csv", FIRST, check_first);
}

#[test]
fn every_most_beautiful_solution_has_its_fingerprint() {
    assert_sound("records/beautiful.csv", BEAUTIFUL, check_beautiful);
}

#[test]
fn first_solutions_of_small_boards_are_reproduced() {
    let rows = rows(&read("records/first.csv"), FIRST).expect("a table");
    for n in 1..=SOLVED_AGAIN {
        let row = rows.iter().find(|row| row.number("n") == Ok(n)).expect("every small size");
        let recorded = if row.cell("placement") == Some("none") {
            None
        } else {
            solution(row).expect("a solution")
        };
        let found =
            first::first_solution(n, first::Options::default(), &mut Unobserved, &mut |_| {});
        assert!(found.finished && found.solution == recorded, "n = {n}");
        if n <= SEARCHED {
            assert_eq!(Board::with(n, &[]).first_completion(None), recorded, "n = {n}");
        }
    }
}

#[test]
fn stored_certificates_match_the_records() {
    let mut compared = 0;
    for (kind, header) in [(Kind::First, FIRST), (Kind::Beautiful, BEAUTIFUL)] {
        let table = rows(&read(&format!("records/{}.csv", kind.name())), header).expect("a table");
        for row in &table {
            let n: usize = row.number("n").expect("a size");
            let kept = |folder| format!("{folder}/{}-{n}.proof", kind.name());
            let mut names = [kept("records/certificates"), kept("tests/certificates")].into_iter();
            let read = |name: String| Some((fs::read(path(&name)).ok()?, name));
            let Some((certificate, name)) = names.find_map(read) else { continue };
            compared += 1;
            if row.cell("certificate_bytes") == Some(&certificate.len().to_string()) {
                let digits = sha256(&certificate);
                let recorded = row.required("certificate_sha256").expect("a proven size");
                assert!(digits.starts_with(recorded), "{name}: {digits}");
            }
            if kind == Kind::First {
                let claim = claimed(&certificate, n);
                assert_eq!(Some(claim), solution(row).expect("a solution"), "{name}");
            }
        }
    }
    assert!(compared > 10, "only {compared} certificates were compared");
}

/// Returns the 0-based columns that a certificate of a first solution claims. Does not check its
/// proof.
fn claimed(certificate: &[u8], n: usize) -> Vec<usize> {
    let (kind, size, proof) = proof::open(certificate).expect("a certificate");
    assert_eq!((kind, size), (Kind::First, n));
    let mut reader = Reader::new(proof);
    let mut next = || reader.number().expect("a number");
    let _work_limit = next();
    assert_eq!(next(), 1, "it claims that there is a solution");
    (0..n).map(|_| next() as usize).collect()
}

#[test]
fn a_wrong_row_is_detected() {
    let right =
        "8,1 5 8 6 3 7 2 4,proven,equal,0.01,0.00,1,epyc,333e33b,2026-11-23,95,0123456789abcdef\n";
    let faults_of = |rows: &str| faults(&format!("{FIRST}\n{rows}"), FIRST, check_first);
    assert_eq!(faults_of(right), Vec::<String>::new());
    let wrong = [
        // Two queens attack each other; a solution, but not the first; too short; columns from 0.
        ("1 5 8 6 3 7 2 4", "1 2 8 6 3 7 5 4"),
        ("1 5 8 6 3 7 2 4", "1 6 8 3 7 4 2 5"),
        ("1 5 8 6 3 7 2 4", "1 5 8 6 3 7 2"),
        ("1 5 8 6 3 7 2 4", "0 4 7 5 2 6 1 3"),
        ("1 5 8 6 3 7 2 4", ""),
        ("proven", "open"),
        ("proven", "proved"),
        ("equal", "open"),
        ("0.01", ""),
        ("0.01", "-1"),
        ("epyc", "pdp11"),
        ("333e33b", "333e33"),
        ("333e33b", "333E33B"),
        ("2026-11-23", "2026-11-31"),
        ("2026-11-23", "23.11.2026"),
        ("95,", ","),
        ("0123456789abcdef", "0123456789abcde"),
        ("8,1", "08,1"),
        (",1,epyc", ",epyc"),
    ];
    for (from, to) in wrong {
        let row = right.replace(from, to);
        assert!(row != right && !faults_of(&row).is_empty(), "{row}");
    }
    assert!(!faults_of(&format!("{right}{right}")).is_empty(), "a size occurs twice");

    let right = "4,2 4 1 3,10 10 10 10,proven,equal,0.00,0.00,1,epyc,333e33b,2026-11-23,95,0123456789abcdef\n";
    let faults_of = |row: &str| faults(&format!("{BEAUTIFUL}\n{row}"), BEAUTIFUL, check_beautiful);
    assert_eq!(faults_of(right), Vec::<String>::new());
    for wrong in ["10 10 10", "18 10 10 2", "10 10 10 12", ""] {
        assert!(!faults_of(&right.replace("10 10 10 10", wrong)).is_empty(), "{wrong}");
    }

    let right = "A000170,8,92,published,0.01,1,epyc,333e33b,2026-11-23\n";
    let faults_of = |row: &str| faults(&format!("{COUNTS}\n{row}"), COUNTS, check_count);
    assert_eq!(faults_of(right), Vec::<String>::new());
    for (from, to) in
        [(",92,", ",93,"), ("published", "new"), ("A000170", "A002562"), (",8,", ",9,")]
    {
        assert!(!faults_of(&right.replace(from, to)).is_empty(), "{from} replaced by {to}");
    }
}
