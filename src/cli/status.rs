//! `nqueens status`.

use std::io::IsTerminal;

use super::args::job_prefix;
use super::remote::{Coordinator, Remote, block_on};
use super::{Exit, Failure, print_report};
use crate::cluster::protocol::v1;
use crate::report::StatusReport;

/// Show the progress, rate, checks and workers of the jobs of a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The job's hash or its first digits (default: all jobs). The exit code is 6 if the total of
    /// this job is disputed.
    #[arg(value_parser = job_prefix)]
    job: Option<String>,
    /// Show each change until the jobs are finished or cancelled.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    remote: Remote,
    /// Print the result as one JSON object; with --watch, one per line.
    #[arg(long)]
    json: bool,
}

/// Returns the exit code, which shows whether the named job is disputed.
fn exit(report: &StatusReport, args: &Args) -> Exit {
    match (&args.job, &report.jobs[..], &report.proofs[..]) {
        (Some(_), [job], []) if job.is_disputed() => Exit::CheckFailed,
        _ => Exit::Done,
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::StatusRequest { job: args.job.clone().unwrap_or_default() };
        if args.watch {
            return watch(&coordinator, request, args).await;
        }
        let status = coordinator.call(coordinator.link.operations().status(request)).await?;
        let report = StatusReport::new(status);
        print_report(args.json, &report, || report.text())?;
        Ok(exit(&report, args))
    })
}

async fn watch(
    coordinator: &Coordinator,
    request: v1::StatusRequest,
    args: &Args,
) -> Result<Exit, Failure> {
    let mut stream = coordinator.call(coordinator.link.operations().watch(request)).await?;
    let redraws = !args.json && std::io::stdout().is_terminal();
    loop {
        let next = stream.message().await;
        let Some(status) = coordinator.call(async { next.map(tonic::Response::new) }).await? else {
            let message = "the coordinator has stopped".to_owned();
            return Err(Failure::new(Exit::Coordinator, message));
        };
        let report = StatusReport::new(status);
        // The whole screen is cleared, since lines may wrap.
        let wipe = if redraws { "\x1b[2J\x1b[H" } else { "" };
        print_report(args.json, &report, || wipe.to_owned() + &report.text())?;
        if report.is_over() {
            return Ok(exit(&report, args));
        }
    }
}
