//! `nqueens estimate`.

use std::time::Duration;

use serde::Serialize;

use super::args::{CpuArgs, board_size};
use super::progress::time_with_interval;
use super::{Exit, Failure, print};
use crate::engine::{DeviceChoice, DeviceName, Estimate, Mean, estimate};
use crate::report::{counted, rounded};

/// Estimate the solutions, the nodes and the time of a count on this machine.
///
/// Solutions and nodes are estimated by random probes of the search tree, after symmetry reduction
/// and without look-ahead; kernels visit fewer nodes. The time is estimated by counting a random
/// sample of the subproblems on the CPU.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 32.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    #[command(flatten)]
    cpu: CpuArgs,
    /// The time to spend on probes, and again on the sample, in seconds. Quadrupling it halves the
    /// error.
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
    solutions_least: f64,
    solutions_most: f64,
    nodes: f64,
    nodes_error: f64,
    nodes_least: f64,
    nodes_most: f64,
    nodes_per_s: Option<f64>,
    measured_at_n: Option<usize>,
    samples: Option<u64>,
    count_s: Option<f64>,
    count_s_error: Option<f64>,
    count_least_s: Option<f64>,
    count_most_s: Option<f64>,
    dives: u64,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    // The sample is counted on the CPU.
    let cpu = DeviceChoice::These(vec![DeviceName::Cpu]);
    let found = estimate(args.n, &args.cpu.options(cpu), args.seconds, args.seed)?;
    if args.json {
        let object = serde_json::to_string(&report(args.n, &found)).expect("numbers serialise");
        print(&(object + "\n"))?;
    } else {
        print(&text(args.n, &found))?;
    }
    Ok(Exit::Done)
}

fn report(n: usize, found: &Estimate) -> Report {
    /// The half-width of a 90 % interval in standard errors.
    const HALF: f64 = 1.645;
    let Estimate { solutions, nodes, dives, time } = *found;
    let ([solutions_least, solutions_most], [nodes_least, nodes_most]) =
        (solutions.interval(), nodes.interval());
    Report {
        n,
        solutions: solutions.mean,
        solutions_error: solutions.error,
        solutions_least,
        solutions_most,
        nodes: nodes.mean,
        nodes_error: nodes.error,
        nodes_least,
        nodes_most,
        nodes_per_s: time.map(|time| nodes.mean / time.seconds),
        measured_at_n: time.map(|time| time.sampled_at),
        samples: time.map(|time| time.samples),
        count_s: time.map(|time| time.seconds),
        count_s_error: time.map(|time| (time.most_s - time.least_s) / (2.0 * HALF)),
        count_least_s: time.map(|time| time.least_s),
        count_most_s: time.map(|time| time.most_s),
        dives,
    }
}

fn text(n: usize, found: &Estimate) -> String {
    let mut lines = vec![format!(
        "{}, estimated from {} (with 90 % intervals)",
        counted(n as u128, "queen"),
        counted(found.dives.into(), "probe"),
    )];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
    let estimated = |value: Mean| {
        let [least, most] = value.interval();
        format!("{} ({} to {})", rounded(value.mean), rounded(least), rounded(most))
    };
    line("solutions", estimated(found.solutions));
    line("nodes", estimated(found.nodes));
    if let Some(found) = &found.time {
        let from = match found.samples {
            0 => String::new(),
            samples if found.sampled_at == n => {
                format!(", from {}", counted(samples.into(), "sample"))
            }
            samples => format!(
                ", extrapolated from {} at n = {}",
                counted(samples.into(), "sample"),
                found.sampled_at
            ),
        };
        line("time of the count", format!("{}{from}", time_with_interval(found)));
    }
    lines.join("\n") + "\n"
}
