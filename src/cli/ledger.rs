//! `nqueens ledger`.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{Exit, Failure, cannot_print, print_report};
use crate::cluster::coordinator::ledger_file;
use crate::cluster::ledger::{CheckReport, LedgerError, check, export, show};
use crate::decomposition::JobHash;
use crate::report::{counted, grouped};

/// Check, show or export the ledger of a campaign.
///
/// The ledger is only read, and a coordinator may write it at the same time.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Sum all entries again and compare checksums, residues and running totals.
    Check(FileArgs),
    /// Print the jobs and their running totals.
    Show(FileArgs),
    /// Print all entries as JSON lines, in order.
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
struct LedgerArg {
    /// The ledger file, or the data directory of the coordinator.
    file: PathBuf,
}

impl LedgerArg {
    /// Returns the path of the ledger.
    fn path(&self) -> Cow<'_, Path> {
        if self.file.is_dir() {
            Cow::Owned(ledger_file(&self.file))
        } else {
            Cow::Borrowed(&self.file)
        }
    }
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    #[command(flatten)]
    ledger: LedgerArg,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ExportArgs {
    #[command(flatten)]
    ledger: LedgerArg,
    /// Export only the entries of the job with this hash (32 hexadecimal digits).
    #[arg(long, value_name = "HASH", value_parser = job_hash)]
    job: Option<JobHash>,
}

fn job_hash(text: &str) -> Result<JobHash, &'static str> {
    JobHash::try_from(text.to_owned())
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.action {
        Action::Check(args) => run_check(args),
        Action::Show(args) => {
            let overview = show(&args.ledger.path())?;
            print_report(args.json, &overview, || overview.to_string())?;
            Ok(Exit::Done)
        }
        Action::Export(args) => run_export(args),
    }
}

fn run_check(args: &FileArgs) -> Result<Exit, Failure> {
    let path = args.ledger.path();
    let report = check(&path)?;
    print_report(args.json, &report, || text(&report))?;
    let Some(first) = report.findings.first() else { return Ok(Exit::Done) };
    let file = path.display();
    Err(if report.as_written {
        Failure::new(Exit::CheckFailed, format!("ledger {file}: {first}"))
    } else {
        Failure::new(Exit::File, format!("ledger {file} is corrupt: {first}"))
    })
}

fn text(report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text += &format!("WRONG: {finding}\n");
    }
    let more = report.findings_in_all - report.findings.len() as u64;
    if more > 0 {
        text += &format!("WRONG: {} more\n", grouped(more.into()));
    }
    let entries = counted(report.entries.into(), "entry");
    let jobs = counted(report.jobs.len() as u128, "job");
    if report.sound {
        text += &format!("{entries} of {jobs}: checksums, residues and running totals agree\n");
    }
    for job in &report.jobs {
        text += &job.to_string();
    }
    text
}

fn run_export(args: &ExportArgs) -> Result<Exit, Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let path = args.ledger.path();
    let exported = export(&path, args.job.as_ref(), &mut out);
    match exported {
        // A closed pipe is not an error: the reader has what it wanted.
        Err(LedgerError::Output { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            // Nobody reads the rest of the buffer.
            let _ = out.into_parts();
            Ok(Exit::Done)
        }
        Ok(0) if args.job.is_some() => Err(Failure::usage(format!(
            "ledger {}: no entry belongs to that job; nqueens ledger show lists the jobs",
            path.display()
        ))),
        Ok(_) => {
            out.flush().map_err(|error| cannot_print(&error))?;
            Ok(Exit::Done)
        }
        Err(error) => Err(error.into()),
    }
}
