//! `nqueens status`.

use std::io::IsTerminal;

use serde::Serialize;

use super::job_report::JobReport;
use super::proof_report::ProofReport;
use super::remote::{Coordinator, Remote, block_on};
use super::report::counted;
use super::{Exit, Failure, print};
use crate::cluster::protocol::v1;

/// Tell how the jobs of a coordinator stand: how far, how fast, how verified, by whom.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The first digits of a job's name; all jobs if not given. The exit code is 6 if the total of that one job is disputed.
    #[arg(value_parser = digits)]
    job: Option<String>,
    /// Tell it again whenever it has changed, until the jobs are over.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    remote: Remote,
    /// Print one JSON object; with --watch, one a line.
    #[arg(long)]
    json: bool,
}

/// Reads the first digits of a job's name.
pub(super) fn digits(text: &str) -> Result<String, String> {
    let good = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || {
        format!("'{text}' is not the beginning of a job's name; write 1 to 32 hexadecimal digits")
    };
    if good { Ok(text.to_ascii_lowercase()) } else { Err(wrong()) }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    jobs: Vec<JobReport>,
    proofs: Vec<ProofReport>,
    workers: u32,
    /// What is wrong with the coordinator.
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
            return serde_json::to_string(self).expect("numbers and strings serialise") + "\n";
        }
        let mut text = format!(
            "coordinator (nqueens {}), {}\n",
            self.build,
            counted(self.workers.into(), "worker")
        );
        if !self.trouble.is_empty() {
            text += &format!("  trouble     {}\n", self.trouble);
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

    /// How the program ends: a job that was asked for by name is held to its checks.
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
            return Err(Failure { exit: Exit::Coordinator, message });
        };
        let report = Report::new(status);
        let text = report.text(args.json);
        // The screen is wiped, and drawn from its corner: lines may be longer than it is wide.
        let wipe = if redraws { "\x1b[2J\x1b[H" } else { "" };
        print(&(wipe.to_owned() + &text))?;
        if report.is_over() {
            return Ok(report.exit(args));
        }
    }
}
