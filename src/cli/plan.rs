//! `nqueens plan`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::Serialize;

use super::problem::Board;
use super::report::{counted, grouped};
use super::{Exit, Failure, print};
use crate::batch::{MOST_PARTS, PlanFile};
use crate::engine::plan_for_campaign;

/// Cut a count into parts for an engine that you have: a batch system, a container cluster, or a shell loop.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// Into how many parts; fewer if the job cannot be cut so fine.
    #[arg(long, value_name = "K", default_value = "100", value_parser = parts, allow_negative_numbers = true)]
    units: NonZeroU64,
    /// The plan's file, which run-unit and merge read.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    job: String,
    n: usize,
    piece: &'static str,
    parts: u64,
    units: u64,
    plan: String,
}

/// Reads a number of parts.
pub(super) fn parts(text: &str) -> Result<NonZeroU64, String> {
    let parts = text.parse().ok().filter(|parts: &NonZeroU64| parts.get() <= MOST_PARTS);
    parts.ok_or_else(|| {
        format!("'{text}' is no number of parts; write a whole number from 1 to {MOST_PARTS}")
    })
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let problem = args.board.problem()?;
    let plan = PlanFile::new(plan_for_campaign(&problem).map_err(Failure::usage)?, args.units);
    plan.write(&args.out)?;
    let (units, parts) = (plan.decomposition().units(), plan.parts().get());
    let text = if args.json {
        let report = Report {
            job: plan.job().hash().to_string(),
            n: problem.n(),
            piece: problem.piece().name(),
            parts,
            units,
            plan: args.out.display().to_string(),
        };
        serde_json::to_string(&report).expect("numbers and strings serialise")
    } else {
        let plan = args.out.display();
        format!(
            "{plan}: {} in {}, numbered from 0; nqueens run-unit {plan} --index I --out DIR counts one",
            counted(units.into(), "unit"),
            if parts == 1 {
                "1 part".to_owned()
            } else {
                format!("{} parts", grouped(parts.into()))
            },
        )
    };
    print(&(text + "\n"))?;
    Ok(Exit::Done)
}
