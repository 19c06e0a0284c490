//! `nqueens check` and the library give the same result for every file. The tests of the package
//! `nqueens-proof` compare `nqueens-check` with the library in the same way, so the two programs
//! accept the same files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nqueens::proof::{ErrorClass, StepLimit, check_within};

#[path = "../../crates/proof/tests/proof/mutations.rs"]
pub(crate) mod mutations;

use mutations::{Folder, Mutations, kept};

fn check(path: &Path, limit: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    command.arg("check").arg(path).args(["--max-work", &limit.to_string()]);
    command.stdin(Stdio::null()).output().expect("the program starts")
}

/// Asserts that the program and the library give the same result for a file. Returns whether it is
/// accepted.
fn assert_agrees(name: &str, path: &Path, bytes: &[u8], limit: u64) -> bool {
    let output = check(path, limit);
    let stdout = String::from_utf8(output.stdout).expect("the program writes UTF-8");
    let stderr = String::from_utf8(output.stderr).expect("the program writes UTF-8");
    let (code, expected, out) = match check_within(bytes, &mut StepLimit::AtMost(limit).meter()) {
        Ok(statement) => (0, format!("{statement}\n"), &stdout),
        Err(error) => {
            let code = error.class().exit_code();
            // The program words the advice about `--max-work` differently.
            let is_unfinished = error.class() == ErrorClass::Unfinished;
            let reason =
                if is_unfinished { "raise --max-work".into() } else { format!("{error}\n") };
            (code, reason, &stderr)
        }
    };
    assert_eq!(output.status.code(), Some(code.into()), "{name}: {stderr}");
    assert!(out.contains(&expected), "{name}: '{out}' has no '{expected}'");
    let lines = if code == 0 { 2 } else { 0 };
    assert_eq!(stdout.lines().count(), lines, "{name}: {stdout}");
    assert_eq!(stderr.lines().count(), usize::from(code != 0), "{name}: {stderr}");
    code == 0
}

#[test]
fn stored_and_changed_certificates_are_accepted_as_by_the_library() {
    let folder = Folder::new("cli-check");
    let path = folder.0.join("file.proof");
    let mut accepted = 0;
    for certificate in kept() {
        fs::write(&path, &certificate.bytes).expect("a file");
        accepted += u32::from(assert_agrees(&certificate.name, &path, &certificate.bytes, 40_000));
    }
    assert!(accepted > 3, "only {accepted} are accepted within the limit");
    let mutations = Mutations::new();
    let (mut accepted, mut refused) = (0, 0);
    // Each run starts a process, so there are fewer than in the test of the library.
    let seeds = Mutations::seeds(300);
    for &seed in &seeds {
        let mutation = mutations.get(seed);
        fs::write(&path, &mutation.bytes).expect("a file");
        let name = mutation.to_string();
        if assert_agrees(&name, &path, &mutation.bytes, Mutations::LIMIT) {
            accepted += 1;
        } else {
            refused += 1;
        }
    }
    assert!(seeds.len() < 300 || accepted > 10 && refused > 100, "{accepted} {refused}");
}
