//! `nqueens status`.

use std::io::IsTerminal;

use serde::Serialize;

use super::args::job_prefix;
use super::remote::{Coordinator, Remote, block_on};
use super::{Exit, Failure, json_line, print};
use crate::cluster::protocol::v1;
use crate::report::{JobReport, ProofReport, counted};

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

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    jobs: Vec<JobReport>,
    proofs: Vec<ProofReport>,
    workers: u32,
    /// The problem of the coordinator, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    trouble: String,
    build: String,
}

impl Report {
    fn new(status: v1::StatusResponse) -> Self {
        let now_ms = status.now_ms;
        Self {
            jobs: status.jobs.into_iter().map(|job| JobReport::new(job, now_ms)).collect(),
            proofs: status
                .proofs
                .into_iter()
                .map(|proof| ProofReport::new(proof, now_ms))
                .collect(),
            workers: status.workers,
            trouble: status.trouble,
            build: status.build,
        }
    }

    fn text(&self, json: bool) -> String {
        if json {
            return json_line(self);
        }
        let mut text = format!(
            "coordinator (nqueens {}), {}\n",
            self.build,
            counted(self.workers.into(), "worker")
        );
        if !self.trouble.is_empty() {
            text += &format!("  problem     {}\n", self.trouble);
        }
        self.jobs.iter().for_each(|job| text += &job.text());
        self.proofs.iter().for_each(|proof| text += &proof.text());
        text
    }

    fn is_over(&self) -> bool {
        let mut proofs = self.proofs.iter().map(|proof| proof.state);
        self.jobs.iter().all(JobReport::is_over)
            && proofs.all(|state| matches!(state, "finished" | "cancelled"))
    }

    /// Returns the exit code, which shows whether the named job is disputed.
    fn exit(&self, args: &Args) -> Exit {
        match (&args.job, &self.jobs[..], &self.proofs[..]) {
            (Some(_), [job], []) if job.is_disputed() => Exit::CheckFailed,
            _ => Exit::Done,
        }
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
        let report = Report::new(status);
        print(&report.text(args.json))?;
        Ok(report.exit(args))
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
        let report = Report::new(status);
        let text = report.text(args.json);
        // The whole screen is cleared, since lines may wrap.
        let wipe = if redraws { "\x1b[2J\x1b[H" } else { "" };
        print(&(wipe.to_owned() + &text))?;
        if report.is_over() {
            return Ok(report.exit(args));
        }
    }
}
