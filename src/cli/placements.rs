//! `nqueens placements`.

use serde::Serialize;

use super::args::number;
use super::{Exit, Failure, print_report};
use crate::solver::classical::placements;

/// Count the ways to place n queens on an n × n board, attacking or not: C(n², n).
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 100 000.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: u32,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

fn board_size(text: &str) -> Result<u32, String> {
    number(text, "board size", 0, 100_000)
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    n: u32,
    placements: String,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let report = Report { n: args.n, placements: placements(args.n).to_string() };
    print_report(args.json, &report, || format!("{}\n", report.placements))?;
    Ok(Exit::Done)
}
