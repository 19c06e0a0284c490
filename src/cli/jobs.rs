//! `nqueens jobs`.

use serde::Serialize;

use super::remote::{Remote, block_on};
use super::{Exit, Failure, json_line, print};
use crate::cluster::protocol::v1;
use crate::report::StatusReport;

/// List the jobs of a coordinator, one per line.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Formats a line of the list.
    fn line(&self, report: &impl Serialize, [name, state, title, progress]: [&str; 4]) -> String {
        if self.json {
            json_line(report)
        } else {
            format!("{name}  {state:<9}  {title}: {progress}\n")
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::StatusRequest::default();
        let status = coordinator.call(coordinator.link.operations().status(request)).await?;
        let StatusReport { jobs, proofs, .. } = StatusReport::new(status);
        let counts = jobs.iter().map(|report| {
            args.line(report, [report.short(), report.state, &report.title(), &report.progress()])
        });
        let proofs = proofs.iter().map(|report| {
            args.line(report, [report.short(), report.state, &report.title(), &report.progress()])
        });
        let mut text: String = counts.chain(proofs).collect();
        if text.is_empty() && !args.json {
            text = "no jobs; submit one with nqueens submit count N, submit first N or submit beautiful N\n"
                .to_owned();
        }
        print(&text)?;
        Ok(Exit::Done)
    })
}
