//! `nqueens jobs`.

use super::job_report::JobReport;
use super::proof_report::ProofReport;
use super::remote::{Remote, block_on};
use super::{Exit, Failure, print};
use crate::wire::v1;

/// List the jobs of a coordinator, a line each.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::StatusRequest::default();
        let status = coordinator.call(coordinator.link.operations().status(request)).await?;
        let now_ms = status.now_ms;
        let mut text = String::new();
        for job in status.jobs {
            let report = JobReport::new(job, now_ms);
            if args.json {
                text += &serde_json::to_string(&report).expect("numbers and strings serialise");
            } else {
                let (name, state) = (report.short(), report.state);
                text += &format!("{name}  {state:<9}  {}: {}", report.title(), report.progress());
            }
            text.push('\n');
        }
        for proof in status.proofs {
            let report = ProofReport::new(proof, now_ms);
            if args.json {
                text += &serde_json::to_string(&report).expect("numbers and strings serialise");
            } else {
                let (name, state) = (report.short(), report.state);
                text += &format!("{name}  {state:<9}  {}: {}", report.title(), report.progress());
            }
            text.push('\n');
        }
        if text.is_empty() && !args.json {
            text = "no jobs; nqueens submit count N, submit first N or submit beautiful N begins one\n"
                .to_owned();
        }
        print(&text)?;
        Ok(Exit::Done)
    })
}
