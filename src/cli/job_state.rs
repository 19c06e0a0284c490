//! `nqueens pause`, `nqueens resume`, `nqueens cancel`.

use serde::Serialize;

use super::args::job_prefix;
use super::remote::{Remote, block_on};
use super::{Exit, Failure, print_report};
use crate::cluster::protocol::v1;
use crate::report::{job_name, state_name};

/// The arguments of `pause`, `resume` and `cancel`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The job's hash or its first digits.
    #[arg(value_parser = job_prefix)]
    job: String,
    #[command(flatten)]
    remote: Remote,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    job: String,
    state: &'static str,
    before: &'static str,
}

/// Changes the state of a job.
pub(super) fn run(args: &Args, state: v1::JobState) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::SetJobStateRequest { job: args.job.clone(), state: state.into() };
        let answer = coordinator.call(coordinator.link.operations().set_job_state(request)).await?;
        let (job, before, state) =
            (job_name(&answer.job), state_name(answer.before()), state_name(state));
        let report = Report { job, state, before };
        print_report(args.json, &report, || {
            format!("job {} is {state}; it was {before}\n", report.job)
        })?;
        Ok(Exit::Done)
    })
}
