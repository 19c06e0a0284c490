//! `nqueens-check`: a checker for certificates.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use nqueens_proof::veripb::{self, TranslationError};
use nqueens_proof::{ErrorClass, LARGEST_FILE, StepLimit, check_with_threads};

const USAGE: &str = "\
Checks certificates of `nqueens first` and `nqueens beautiful`: repeats their proofs in exact integers

Usage: nqueens-check [--max-work <STEPS>|unlimited] [--threads <N>]
                     [--veripb <OUT> [--veripb-limit <LINES>]] <FILE>...

A step takes at most a microsecond. The default limit is 500000000 steps for each file.
Several threads can check one certificate of `nqueens first`; the default is 1.

With --veripb, one certificate that was accepted is translated for the checker VeriPB: OUT.opb says that a better
solution exists, OUT.pbp proves that there is none; OUT.sat.opb and OUT.sat.pbp show that the answer is a solution.
If OUT ends in .gz, the files are compressed, which needs the feature gzip of this program.
A proof has at most 5000000 lines, or as many as --veripb-limit says.

Exit codes: 0 all are proved; 2 wrong usage; 4 a limit was reached; 6 a certificate does not prove what it
says; 7 a file cannot be read, or is not a certificate that this version can read. Of several, the largest.
";

/// The largest number of threads.
const MOST_THREADS: usize = 1024;

/// The exit code for a file that cannot be read or written.
const UNREADABLE: u8 = ErrorClass::Unreadable.exit_code();

fn main() -> ExitCode {
    let mut files = Vec::new();
    let (mut limit, mut threads) = (StepLimit::default(), 1);
    let mut translation = Translation { out: None, most_lines: veripb::MOST_LINES };
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => return finish(&mut stdout(), USAGE, 0),
            Some("--version" | "-V") => {
                let version = format!("nqueens-check {}\n", env!("CARGO_PKG_VERSION"));
                return finish(&mut stdout(), &version, 0);
            }
            Some("--max-work") => {
                let Some(steps) = value(arguments.next()) else {
                    return usage(
                        "--max-work takes a whole number of steps from 1 on, or unlimited",
                    );
                };
                limit = steps;
            }
            Some("--threads") => match value(arguments.next()) {
                Some(number) if (1..=MOST_THREADS).contains(&number) => threads = number,
                _ => return usage("--threads takes a whole number from 1 to 1024"),
            },
            Some("--veripb") => match arguments.next() {
                Some(out) => translation.out = Some(out),
                None => return usage("--veripb takes the name of the files to write"),
            },
            Some("--veripb-limit") => match value(arguments.next()) {
                Some(lines) if lines > 0 => translation.most_lines = lines,
                _ => return usage("--veripb-limit takes a whole number of lines from 1 on"),
            },
            Some(flag) if flag.starts_with('-') && flag != "-" => {
                return usage(&format!("unknown flag '{flag}'; --help shows what is possible"));
            }
            _ => files.push(argument),
        }
    }
    if files.is_empty() {
        return usage("no certificate is named; write nqueens-check FILE");
    }
    if translation.out.is_some() && files.len() > 1 {
        return usage("--veripb translates one certificate; name one FILE");
    }
    let mut worst = 0;
    for file in &files {
        let name = file.to_string_lossy();
        let code = match prove(file, limit, threads, &translation) {
            Ok(sentence) => {
                let line = if files.len() == 1 {
                    format!("{sentence}\n")
                } else {
                    format!("{name}: {sentence}\n")
                };
                if stdout().write_all(line.as_bytes()).is_err() { UNREADABLE } else { 0 }
            }
            Err((code, message)) => {
                let _ = writeln!(stderr(), "nqueens-check: {name}: {message}");
                code
            }
        };
        worst = worst.max(code);
    }
    ExitCode::from(worst)
}

/// Returns the value of a flag, or `None` if it is missing or not readable.
fn value<T: FromStr>(argument: Option<OsString>) -> Option<T> {
    argument?.to_str()?.parse().ok()
}

/// The output for VeriPB that is asked for.
struct Translation {
    out: Option<OsString>,
    most_lines: u64,
}

/// Returns the statement that a file proves, or the exit code and the reason why it proves nothing.
fn prove(
    file: &OsStr,
    limit: StepLimit,
    threads: usize,
    translation: &Translation,
) -> Result<String, (u8, String)> {
    let certificate =
        read(file).map_err(|error| (UNREADABLE, format!("cannot be read: {error}")))?;
    let proved = check_with_threads(&certificate, threads, &mut limit.meter())
        .map_err(|error| (error.class().exit_code(), error.to_string()))?;
    if let Some(out) = &translation.out {
        let (out, most_lines) = (Path::new(out), translation.most_lines);
        veripb::write_files(&certificate, &proved, out, most_lines).map_err(|error| {
            let code = match &error {
                TranslationError::LineLimit(_) => ErrorClass::Unfinished.exit_code(),
                TranslationError::Certificate(error) => error.class().exit_code(),
                TranslationError::Io(_) => UNREADABLE,
            };
            (code, format!("the proof for VeriPB {}: {error}", out.display()))
        })?;
    }
    Ok(format!("{proved} ({} steps, {} bytes)", proved.work, certificate.len()))
}

/// Reads a regular file of at most [`LARGEST_FILE`] bytes.
fn read(file: &OsStr) -> std::io::Result<Vec<u8>> {
    // Opening a named pipe would block until it has a writer.
    if !std::fs::metadata(file)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(std::io::Error::other(format!("it has more than {LARGEST_FILE} bytes")));
    }
    Ok(bytes)
}

/// Reports wrong usage.
fn usage(message: &str) -> ExitCode {
    finish(&mut stderr(), &format!("nqueens-check: {message}\n"), 2)
}

/// Writes `text` and returns the exit code `code`, or that of a failed write.
fn finish(to: &mut dyn std::io::Write, text: &str, code: u8) -> ExitCode {
    let written = to.write_all(text.as_bytes());
    ExitCode::from(if written.is_err() { UNREADABLE } else { code })
}
