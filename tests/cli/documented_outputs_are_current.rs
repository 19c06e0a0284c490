//! The outputs in `console` blocks of the documentation are those of the program: certificates byte
//! for byte, and on the pages of tutorials what a terminal shows.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::both_checkers_agree::mutations::Folder;
use crate::terminal::Terminal;

/// A command of a page, with the lines below it.
type Example = (String, Vec<String>);

/// Returns the commands in the `console` blocks of a page whose output is shown.
fn examples(page: &str) -> Vec<Example> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(path).expect("the page");
    let mut found: Vec<Example> = Vec::new();
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
    found.retain(|(_, lines)| !lines.is_empty());
    found
}

/// Returns the arguments of an example of the program; `None` if it is one of a shell.
fn arguments(command: &str) -> Option<Vec<&str>> {
    let arguments = command.strip_prefix("nqueens ")?;
    (!arguments.contains('|')).then(|| arguments.split(' ').collect())
}

/// Runs a command in `folder`, without a terminal. Returns the lines of its stdout.
fn run(arguments: &[&str], folder: &Path) -> Vec<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    program.args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = program.output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("the program writes UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// Runs a command in `folder`, on a terminal. Returns the lines on its screen, without the notes of
/// stderr, which name the solvers that are built in.
fn run_on_a_terminal(arguments: &[&str], folder: &Path) -> Vec<String> {
    const END: &str = "$ next command";
    let terminal = Terminal::new();
    assert_eq!(
        terminal.run_in(folder, arguments, &[("NO_COLOR", "1")]).wait("end"),
        0,
        "{arguments:?}"
    );
    terminal.print(END);
    terminal.wait_for_text(END);
    let text = terminal.text();
    let lines = text.lines().filter(|line| *line != END && !line.starts_with("nqueens: "));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// Replaces what differs from run to run: seconds; and, in the rows of `count` and of methods on
/// several threads, each number and the name of the kernel.
fn without_variable_parts(lines: &[String], one_thread: bool) -> Vec<String> {
    let masked = |line: &String| {
        let label = line.trim_start().split("  ").next().unwrap_or_default();
        match label {
            "time" | "kernel" => format!("  {label}"),
            "method" | "for VeriPB" if !one_thread => {
                line.chars().filter(|c| !c.is_ascii_digit() && *c != ' ').collect()
            }
            _ => {
                let words: Vec<&str> = line.split(' ').collect();
                let is_seconds =
                    |i: usize| words.get(i + 1).is_some_and(|next| next.starts_with("s,"));
                let words = words.iter().enumerate();
                let words: Vec<&str> =
                    words.map(|(i, &word)| if is_seconds(i) { "…" } else { word }).collect();
                words.join(" ")
            }
        }
    };
    lines.iter().map(masked).collect()
}

#[test]
fn certificates_and_their_checks_are_byte_for_byte_as_documented() {
    let folder = Folder::new("documented");
    let mut compared = 0;
    for page in ["docs/certificates.md", "docs/proofs.md"] {
        for (command, lines) in examples(page) {
            if let Some(arguments) = arguments(&command) {
                let output = without_variable_parts(&run(&arguments, &folder.0), true);
                assert_eq!(output, without_variable_parts(&lines, true), "{page}: {command}");
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
    assert!(compared >= 6, "only {compared} outputs were compared");
}

#[test]
fn tutorials_show_what_a_terminal_shows() {
    let folder = Folder::new("tutorials");
    let mut compared = 0;
    for page in ["docs/tutorial.md", "docs/tutorial-proofs.md", "docs/tutorial-teaching.md"] {
        for (command, lines) in examples(page) {
            // An estimate is of the machine.
            if command.starts_with("nqueens estimate ") {
                continue;
            }
            if let Some(arguments) = arguments(&command) {
                let output = run_on_a_terminal(&arguments, &folder.0);
                let [output, lines] =
                    [output, lines].map(|lines| without_variable_parts(&lines, false));
                assert_eq!(output, lines, "{page}: {command}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 10, "only {compared} outputs were compared");
}
