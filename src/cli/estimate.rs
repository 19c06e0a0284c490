//! `nqueens estimate`.

use std::time::Duration;

use serde::Serialize;

use super::args::{CpuArgs, board_size};
use super::{Exit, Failure, print};
use crate::engine::{DeviceChoice, DeviceName, Estimate, Mean, estimate};
use crate::report::{counted, rounded, time};

/// Estimate the solutions, the nodes and the time of a count on this machine.
///
/// The estimate is from random probes of the search tree and assumes counting on the CPU.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 32.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    #[command(flatten)]
    cpu: CpuArgs,
    /// The time to spend on probes, in seconds. Quadrupling it halves the error.
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Duration,
    /// The seed of the random numbers.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration.ok_or_else(|| format!("invalid time '{text}'; use a number of seconds, for example 2"))
}

/// The output of `--json`. Estimates are floating-point numbers.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    solutions: f64,
    solutions_error: f64,
    nodes: f64,
    nodes_error: f64,
    nodes_per_s: f64,
    measured_at_n: usize,
    count_s: f64,
    count_s_error: f64,
    dives: u64,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    // The rate is measured on the CPU.
    let cpu = DeviceChoice::These(vec![DeviceName::Cpu]);
    let found = estimate(args.n, &args.cpu.options(cpu), args.seconds, args.seed)?;
    let Estimate { solutions, nodes, nodes_per_s, measured_at, seconds, dives } = found;
    if args.json {
        let report = Report {
            n: args.n,
            solutions: solutions.mean,
            solutions_error: solutions.error,
            nodes: nodes.mean,
            nodes_error: nodes.error,
            nodes_per_s,
            measured_at_n: measured_at,
            count_s: seconds.mean,
            count_s_error: seconds.error,
            dives,
        };
        print(&(serde_json::to_string(&report).expect("numbers serialise") + "\n"))?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: Mean, unit: &str| {
        let error = 100.0 * value.relative();
        format!("  {name:<19} {}{unit} ± {error:.1} %\n", rounded(value.mean))
    };
    print(&format!(
        "{queens}, estimated from {dives} (± one standard error)\n{}{}  {:<19} {}/s, measured at n = {measured_at}\n  {:<19} {} ± {:.0} %\n",
        line("solutions", solutions, ""),
        line("nodes", nodes, ""),
        "nodes",
        rounded(nodes_per_s),
        "time of the count",
        time(seconds.mean),
        100.0 * seconds.relative(),
        queens = counted(args.n as u128, "queen"),
        dives = counted(dives.into(), "probe"),
    ))?;
    Ok(Exit::Done)
}
