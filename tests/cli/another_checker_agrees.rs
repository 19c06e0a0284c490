//! The checker in Python, written from `docs/certificates.md`, gives the same verdicts as the
//! library.
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
