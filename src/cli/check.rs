//! `nqueens check`.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::max_work::{self, MaxWork};
use super::{Exit, Failure, atomic_file, print};
use crate::proof::{self, LARGEST_FILE};
use crate::report::{counted, duration};

/// Check a certificate that nqueens first or beautiful has written.
///
/// The answer is proved again, in exact integers, by code that shares only the definition of the
/// board with the solvers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The certificate file.
    file: PathBuf,
    #[command(flatten)]
    max_work: MaxWork,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    n: usize,
    /// For most beautiful solutions: the cost of a square, and whether only doubly symmetric
    /// solutions were considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    norm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symmetric: Option<bool>,
    /// The column of each row, counted from 1.
    solution: Option<Vec<usize>>,
    proven: bool,
    work: String,
    bytes: usize,
    elapsed_s: f64,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let file = args.file.display();
    let certificate = atomic_file::read(&args.file, LARGEST_FILE).map_err(|error| Failure {
        exit: Exit::File,
        message: format!("{file} cannot be read: {error}"),
    })?;
    let began = Instant::now();
    let proved = proof::check_within(&certificate, &mut args.max_work.meter())
        .map_err(|error| max_work::failure(&file, &error, Exit::CheckFailed))?;
    let elapsed = began.elapsed();
    print(&if args.json {
        let report = Report {
            kind: proved.kind.name(),
            n: proved.n,
            norm: proved.beauty.map(|beauty| beauty.norm.to_string()),
            symmetric: proved.beauty.map(|beauty| beauty.turning),
            solution: proved.solution.as_deref().map(from_one),
            proven: true,
            work: proved.work.to_string(),
            bytes: certificate.len(),
            elapsed_s: elapsed.as_secs_f64(),
        };
        serde_json::to_string(&report).expect("numbers and strings serialise") + "\n"
    } else {
        let bytes = counted(certificate.len() as u128, "byte");
        let work = counted(proved.work.into(), "step");
        format!("{proved}\n  checked in {}, {work}, {bytes}\n", duration(elapsed))
    })?;
    Ok(Exit::Done)
}

fn from_one(columns: &[usize]) -> Vec<usize> {
    columns.iter().map(|column| column + 1).collect()
}
