//! `nqueens plan`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::Serialize;

use super::args::{Board, SubproblemsArgs};
use super::{Exit, Failure, print_report};
use crate::batch::{MOST_PARTS, PlanFile};
use crate::report::counted;

/// Split a count into K parts for your own scheduler.
///
/// nqueens run-unit counts a part, and nqueens merge adds up the parts. For Slurm, Kubernetes and
/// HTCondor, the commands of these names write the scripts.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    #[command(flatten)]
    subproblems: SubproblemsArgs,
    /// The number of parts to split the count into; fewer if the count has fewer units.
    #[arg(long, value_name = "K", default_value = "100", value_parser = parts, allow_negative_numbers = true)]
    units: NonZeroU64,
    /// The plan file to write, which run-unit and merge read.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    job: String,
    n: usize,
    piece: &'static str,
    parts: u64,
    units: u64,
    plan: String,
}

/// Parses a number of parts.
pub(super) fn parts(text: &str) -> Result<NonZeroU64, String> {
    let parts = text.parse().ok().filter(|parts: &NonZeroU64| parts.get() <= MOST_PARTS);
    parts.ok_or_else(|| {
        format!("invalid number of parts '{text}'; use a whole number from 1 to {MOST_PARTS}")
    })
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let problem = args.board.problem()?;
    let planned = args.subproblems.plan(&problem)?;
    let plan = PlanFile::new(planned, args.units);
    plan.write(&args.out)?;
    let (units, parts) = (plan.decomposition().units(), plan.parts().get());
    let report = Report {
        job: plan.job().hash().to_string(),
        n: problem.n(),
        piece: problem.piece().name(),
        parts,
        units,
        plan: args.out.display().to_string(),
    };
    print_report(args.json, &report, || {
        let plan = &report.plan;
        format!(
            "{plan}: {} in {}, numbered from 0; count a part with nqueens run-unit {plan} --index I --out DIR\n",
            counted(units.into(), "unit"),
            counted(parts.into(), "part"),
        )
    })?;
    Ok(Exit::Done)
}
