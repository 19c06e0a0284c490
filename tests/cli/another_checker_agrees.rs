//! The checker in Python, written from `docs/certificates.md`, gives the same verdicts as the
//! library, and the bytes and figures on that page and on others are those of the program.
//!
//! Without python3 the comparisons are skipped, and say so. If one is expected
//! (`NQUEENS_EXPECT_PYTHON`), they fail instead.

use std::fs;
use std::io::{Write as _, stderr};
use std::path::Path;
use std::process::{Command, Stdio};

use nqueens::proof::{ErrorClass, StepLimit, check_within, open};

use crate::both_checkers_agree::mutations::{Folder, Mutations, kept};

/// The operations of the other checker for one file, so that no file takes more than a second or
/// two.
const OPERATIONS: u32 = 400_000;

/// Returns the verdict of the other checker on each certificate, a line each; `None` if there is no
/// Python.
fn verdicts(name: &str, certificates: &[Vec<u8>]) -> Option<Vec<String>> {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        let expected = std::env::var_os("NQUEENS_EXPECT_PYTHON").is_some();
        assert!(!expected, "NQUEENS_EXPECT_PYTHON is set, and there is no python3");
        let _ = writeln!(stderr(), "skipped: there is no python3");
        return None;
    }
    let folder = Folder::new(name);
    let file = folder.0.join("certificates");
    let mut frames = Vec::new();
    for bytes in certificates {
        let length = u32::try_from(bytes.len()).expect("a short file");
        frames.extend(length.to_le_bytes());
        frames.extend(bytes);
    }
    fs::write(&file, frames).expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checker/checker.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).args(["--frames", "--limit", &OPERATIONS.to_string()]);
    let output = command.arg(&file).stdin(Stdio::null()).output().expect("Python starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.is_empty(), "{message}");
    let lines = String::from_utf8(output.stdout).expect("the checker writes UTF-8");
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), certificates.len());
    Some(lines)
}

/// Asserts that both checkers accept a file, with the same statement, or refuse it. Returns whether
/// it is accepted; `None` if one of them reached its limit.
fn assert_agrees(name: &str, bytes: &[u8], limit: u64, verdict: &str) -> Option<bool> {
    if verdict == "undecided" {
        return None;
    }
    match check_within(bytes, &mut StepLimit::AtMost(limit).meter()) {
        Ok(statement) => {
            assert_eq!(verdict, statement.to_string(), "{name}");
            Some(true)
        }
        Err(error) if error.class() == ErrorClass::Unfinished => None,
        Err(error) => {
            assert!(verdict.starts_with("refused: "), "{name}: {verdict}, but {error}");
            Some(false)
        }
    }
}

#[test]
fn kept_certificates_are_accepted_by_the_checker_written_from_the_page() {
    // The others take the other checker longer than a few seconds.
    let mut certificates = kept();
    certificates.retain(|certificate| {
        let (_, n, _) = open(&certificate.bytes).expect("a certificate");
        n <= 40
    });
    let bytes: Vec<_> = certificates.iter().map(|certificate| certificate.bytes.clone()).collect();
    let Some(verdicts) = verdicts("kept", &bytes) else { return };
    let mut accepted = 0;
    for (certificate, verdict) in certificates.iter().zip(verdicts) {
        let agreed = assert_agrees(&certificate.name, &certificate.bytes, 1_000_000, &verdict);
        assert_ne!(agreed, Some(false), "{}: {verdict}", certificate.name);
        accepted += u32::from(agreed == Some(true));
    }
    assert!(accepted >= 18, "only {accepted} were accepted");
}

#[test]
fn changed_certificates_have_the_same_verdict_by_the_checker_written_from_the_page() {
    let mutations = Mutations::new();
    let seeds = Mutations::seeds(1_500);
    let changed: Vec<_> = seeds.iter().map(|&seed| mutations.get(seed)).collect();
    let bytes: Vec<_> = changed.iter().map(|mutation| mutation.bytes.clone()).collect();
    let Some(verdicts) = verdicts("changed", &bytes) else { return };
    let (mut accepted, mut refused, mut undecided) = (0, 0, 0);
    for (mutation, verdict) in changed.iter().zip(verdicts) {
        let name = mutation.to_string();
        match assert_agrees(&name, &mutation.bytes, Mutations::LIMIT, &verdict) {
            Some(true) => accepted += 1,
            Some(false) => refused += 1,
            None => undecided += 1,
        }
    }
    let counts = format!("{accepted} accepted, {refused} refused, {undecided} undecided");
    let _ = writeln!(stderr(), "{counts}");
    if seeds.len() >= 1_500 {
        assert!(accepted > 100 && refused > 1_000 && undecided < 30, "{counts}");
    }
}

/// Returns the text of a page, and the outputs of `console` blocks on it: each command with the
/// lines below it.
fn commands(page: &str) -> Vec<(String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(path).expect("the page");
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if is_inside && let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), Vec::new()));
        } else if is_inside && let Some((_, lines)) = found.last_mut() {
            lines.push(line.to_owned());
        }
    }
    found
}

/// Runs a command of the page in `folder`. Returns the lines of its output.
fn run(command: &str, folder: &Path) -> Vec<String> {
    let arguments = command.strip_prefix("nqueens ").expect("a command of the program");
    let mut program = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    program.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null());
    let output = program.output().expect("the program starts");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("the program writes UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// Replaces the seconds, which differ from run to run.
fn without_seconds(lines: &[String]) -> Vec<String> {
    let without = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        let is_seconds = |i: usize| words.get(i + 1).is_some_and(|next| next.starts_with("s,"));
        let words = words.iter().enumerate();
        let words: Vec<&str> =
            words.map(|(i, &word)| if is_seconds(i) { "…" } else { word }).collect();
        words.join(" ")
    };
    lines.iter().map(without).collect()
}

#[test]
fn certificates_and_figures_in_the_documentation_are_those_of_the_program() {
    let folder = Folder::new("documented");
    let mut compared = 0;
    for page in ["docs/certificates.md", "docs/proofs.md", "docs/tutorial.md"] {
        for (command, lines) in commands(page) {
            let is_written = command.starts_with("nqueens first")
                && command.contains("--threads 1")
                || command.starts_with("nqueens beautiful 4 ");
            let is_checked = command == "nqueens check first-30.proof";
            if is_written || is_checked {
                let output = without_seconds(&run(&command, &folder.0));
                assert_eq!(output, without_seconds(&lines), "{page}: {command}");
                compared += 1;
            } else if let Some(file) = command.strip_prefix("od -An -v -tx1 ") {
                let bytes = fs::read(folder.0.join(file)).expect("the certificate");
                let rows = bytes.chunks(16).map(|row| {
                    row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
                });
                assert_eq!(lines, rows.collect::<Vec<_>>(), "{page}: {command}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 8, "{compared}");
}
