//! `nqueens-check`: a checker for certificates.

use std::fs::File;
use std::io::{Read as _, Write as _, stderr, stdout};
use std::process::ExitCode;

use nqueens_proof::board::{Piece, Placement, Problem};
use nqueens_proof::{MOST_WORK, Meter, ProofError, check_within};

const USAGE: &str = "\
Checks certificates that `nqueens first` and `nqueens beautiful` wrote: proves their answers again, in integers

Usage: nqueens-check [--max-work <STEPS>|unlimited] <FILE>...

A step takes about a microsecond; 500000000 are allowed for each file if nothing else is said.

Exit codes: 0 all are proved; 2 wrong usage; 4 a check was not carried to its end; 6 a certificate does not prove what
it says; 7 a file cannot be read, or is no certificate that this version knows. Of several, the largest.
";

/// The size in bytes of the largest file that is read.
const LARGEST_FILE: u64 = 1 << 30;

fn main() -> ExitCode {
    let mut files = Vec::new();
    let mut limit = Some(MOST_WORK);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => return finish(&mut stdout(), USAGE, 0),
            Some("--version" | "-V") => {
                let version = format!("nqueens-check {}\n", env!("CARGO_PKG_VERSION"));
                return finish(&mut stdout(), &version, 0);
            }
            Some("--max-work") => {
                let steps = arguments.next();
                limit = match steps.as_deref().and_then(|steps| steps.to_str()) {
                    Some("unlimited") => None,
                    Some(steps) if steps.parse().is_ok_and(|steps: u64| steps > 0) => {
                        steps.parse().ok()
                    }
                    _ => {
                        return usage(
                            "--max-work takes a whole number of steps from 1 on, or unlimited",
                        );
                    }
                };
            }
            Some(flag) if flag.starts_with('-') && flag != "-" => {
                return usage(&format!("unknown flag '{flag}'; --help shows what is possible"));
            }
            _ => files.push(argument),
        }
    }
    if files.is_empty() {
        return usage("no certificate is named; write nqueens-check FILE");
    }
    let mut worst = 0;
    for file in &files {
        let name = file.to_string_lossy();
        let code = match prove(file, limit) {
            Ok(sentence) => {
                let line = if files.len() == 1 {
                    format!("{sentence}\n")
                } else {
                    format!("{name}: {sentence}\n")
                };
                if stdout().write_all(line.as_bytes()).is_err() { 7 } else { 0 }
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

/// Returns the statement that a file proves, or the exit code and the reason why it proves nothing.
fn prove(file: &std::ffi::OsStr, limit: Option<u64>) -> Result<String, (u8, String)> {
    let unreadable = |error| (7, format!("cannot be read: {error}"));
    let certificate = read(file).map_err(unreadable)?;
    let mut meter = Meter::new(limit);
    let proved = check_within(&certificate, &mut meter).map_err(|error| {
        let code = match error {
            ProofError::LimitReached(_) | ProofError::Stopped => 4,
            ProofError::NoCertificate | ProofError::Version(_) | ProofError::UnknownStep(_) => 7,
            ProofError::Damaged(_) | ProofError::Refused(_) | ProofError::TooMuchWork(_) => 6,
        };
        (code, error.to_string())
    })?;
    if let Some(columns) = &proved.solution {
        let problem = Problem::empty(Piece::Queen, proved.n);
        Placement::check_solution(&problem, columns).map_err(|error| (6, error.to_string()))?;
    }
    Ok(format!("{proved} ({} steps, {} bytes)", proved.work, certificate.len()))
}

fn read(file: &std::ffi::OsStr) -> std::io::Result<Vec<u8>> {
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

fn usage(message: &str) -> ExitCode {
    finish(&mut stderr(), &format!("nqueens-check: {message}\n"), 2)
}

fn finish(to: &mut dyn std::io::Write, text: &str, code: u8) -> ExitCode {
    let written = to.write_all(text.as_bytes());
    ExitCode::from(if written.is_err() { 7 } else { code })
}
