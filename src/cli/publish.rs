//! `nqueens publish`.

use std::path::PathBuf;

use serde::Serialize;

use super::coordinator::Data;
use super::{Exit, Failure, print_report};
use crate::cluster::coordinator::ledger_file;
use crate::cluster::ledger::show;
use crate::cluster::publish::{PublishError, PublishedLog, publish};
use crate::decomposition::JobHash;
use crate::report::{counted, grouped};

/// Publish a job of a campaign as a log that anybody can audit: static files for any web server.
///
/// The log has every result with the signature of the worker that counted it, all checks, and a
/// tree of hashes whose root is signed. Workers and owners are not named. Run the command again,
/// also while the coordinator is running, to add what is new. nqueens audit checks a log.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The hash of the job, or its first digits.
    #[arg(value_name = "JOB", value_parser = super::args::job_prefix)]
    job: String,
    /// The folder of the log, which is created.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name this owner in the log, where owners are numbers otherwise (repeatable).
    #[arg(long, value_name = "OWNER")]
    public_owner: Vec<String>,
    #[command(flatten)]
    data: Data,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    job: String,
    folder: String,
    key: String,
    entries: u64,
    new_entries: u64,
    units: u64,
    counted: u64,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let ledger = ledger_file(args.data.path());
    let jobs = show(&ledger)?.jobs;
    let named = jobs.iter().map(|job| job.job).filter(|job| job.to_string().starts_with(&args.job));
    let job = match named.collect::<Vec<JobHash>>()[..] {
        [job] => job,
        [] => {
            let message = format!(
                "no job begins with '{}' in {}; nqueens ledger show lists all jobs",
                args.job,
                ledger.display()
            );
            return Err(Failure::usage(message));
        }
        ref several => {
            let message =
                format!("{} jobs begin with '{}'; give more digits", several.len(), args.job);
            return Err(Failure::usage(message));
        }
    };
    let PublishedLog { key, checkpoint, new_entries, units, counted: done } =
        publish(&ledger, job, &args.out, &args.public_owner)?;
    let report = Report {
        job: job.to_string(),
        folder: args.out.display().to_string(),
        key: key.to_string(),
        entries: checkpoint.size,
        new_entries,
        units,
        counted: done,
    };
    print_report(args.json, &report, || {
        format!(
            "job {job}: {}, {} of them new\n  units       {} of {} counted\n  folder      {}\n  key         {}\n",
            counted(report.entries.into(), "entry"),
            grouped(new_entries.into()),
            grouped(done.into()),
            grouped(units.into()),
            report.folder,
            report.key,
        )
    })?;
    Ok(Exit::Done)
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        let message = error.to_string();
        let exit = match error {
            PublishError::Ledger(error) => return error.into(),
            PublishError::NoSuchJob(_) | PublishError::NoSuchOwner(_) => Exit::Usage,
            PublishError::Key(_)
            | PublishError::Folder(..)
            | PublishError::InUse(_)
            | PublishError::AnotherLog(..)
            | PublishError::TooManyUnits(..) => Exit::File,
            PublishError::Diverged(..) => Exit::CheckFailed,
        };
        Self { exit, message }
    }
}
