//! `nqueens estimate`.

mod fleet_file;
mod fleet_report;

use std::f64::consts::LN_10;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use fleet_file::{FleetFile, MEASURED_SIZES};
use fleet_report::FleetReport;

use super::args::{CpuArgs, DecidedSquares, from_one, number};
use super::progress::time_with_interval;
use super::{Exit, Failure, json_line, print, print_report};
use crate::board::{Piece, Problem};
use crate::decomposition::MAX_COUNT_SIZE;
use crate::engine::{AnnealingEstimate, MAX_ANNEALING_SIZE, estimate_by_annealing};
use crate::engine::{CountOptions, DeviceChoice, DeviceName, Estimate, Mean, estimate};
use crate::report::{counted, rounded};

/// Estimate the solutions, the nodes and the time of a count on this machine.
///
/// Solutions and nodes are estimated by random dives into the search tree, after symmetry reduction
/// and without look-ahead; kernels visit fewer nodes. The time is estimated by counting a random
/// sample of the subproblems on the CPU, for queens only.
///
/// From n = 33 on, where nothing can be counted, only the solutions of the empty board of queens
/// are estimated, by annealed importance sampling.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 1000. May be omitted with --board.
    #[arg(value_parser = board_size, allow_negative_numbers = true, required_unless_present = "board")]
    n: Option<usize>,
    /// Read the board from FILE, or from stdin if that is -: JSON of count or solve, a FEN, a file
    /// of CSPLib's problems 079 or 080, or lines of Q, . and x (blocked). --place and --block add
    /// to it.
    #[arg(long, value_name = "FILE")]
    board: Option<PathBuf>,
    #[command(flatten)]
    squares: DecidedSquares,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined). Default: the piece of --board, or queen.
    #[arg(long)]
    piece: Option<Piece>,
    #[command(flatten)]
    cpu: CpuArgs,
    /// The time to spend on dives, and again on the sample, in seconds; from n = 33 on, the time
    /// to spend on annealing runs (at least 16 of them, for n = 1000 about five seconds of one
    /// core). Quadrupling it halves the error.
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Duration,
    /// The seed of the random numbers.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Also forecast a campaign on the devices in FILE: its time and date of completion, its units,
    /// checks and energy, for the empty board of 16 to 32 queens. FILE is in TOML, with the time of
    /// a count on each device, as nqueens bench prints it.
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Parses the size of a board that can be estimated.
fn board_size(text: &str) -> Result<usize, String> {
    number(text, "board size", 0, MAX_ANNEALING_SIZE)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration.ok_or_else(|| format!("invalid time '{text}'; use a number of seconds, for example 2"))
}

/// The output of `--json`. Estimates are floating-point numbers.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    piece: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placed: Vec<[usize; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked: Vec<[usize; 2]>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<FleetReport>,
}

/// The output of `--json` for a board that is too large to count.
#[derive(Debug, Serialize)]
struct LargeReport {
    n: usize,
    log10_solutions: f64,
    log10_solutions_error: f64,
    log10_solutions_least: f64,
    log10_solutions_most: f64,
    gamma: f64,
    gamma_error: f64,
    gamma_least: f64,
    gamma_most: f64,
    runs: u64,
    effective_runs: f64,
    sweeps: usize,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    // The sample is counted on the CPU.
    let cpu = DeviceChoice::These(vec![DeviceName::Cpu]);
    let options = args.cpu.options(cpu);
    if let Some(n) = args.n.filter(|n| *n > MAX_COUNT_SIZE && args.board.is_none()) {
        return run_large(args, n, &options);
    }
    let problem = args.squares.problem(args.piece, args.n, args.board.as_deref())?;
    if problem.n() > MAX_COUNT_SIZE {
        return Err(Failure::usage(format!(
            "--board is for n up to {MAX_COUNT_SIZE}, not n = {}",
            problem.n()
        )));
    }
    // An invalid file is an error before the estimate, not after it.
    let fleet = args.fleet.as_deref().map(|path| fleet_for(path, &problem)).transpose()?;
    let found = estimate(&problem, &options, args.seconds, args.seed)?;
    let report_of = |file: &FleetFile| FleetReport::new(file, &problem, found.nodes);
    let campaign = fleet.as_ref().map(report_of).transpose()?;
    if args.json {
        print(&json_line(&Report { fleet: campaign, ..report(&problem, &found) }))?;
        return Ok(Exit::Done);
    }
    print(&text(&problem, &found))?;
    if let (Some(path), Some(campaign)) = (&args.fleet, campaign) {
        print(&campaign.text(path))?;
    }
    Ok(Exit::Done)
}

/// Reads the fleet for a count of a problem.
fn fleet_for(path: &Path, problem: &Problem) -> Result<FleetFile, Failure> {
    let is_empty_of_queens = problem.is_empty() && problem.piece() == Piece::Queen;
    if !is_empty_of_queens {
        return Err(Failure::usage("--fleet is for the empty board of queens"));
    }
    let least = *MEASURED_SIZES.start();
    if problem.n() < least {
        return Err(Failure::usage(format!(
            "--fleet is for n from {least} to {MAX_COUNT_SIZE}, not n = {}",
            problem.n()
        )));
    }
    FleetFile::read(path, problem.n())
}

/// Estimates a board that is too large to count.
fn run_large(args: &Args, n: usize, options: &CountOptions) -> Result<Exit, Failure> {
    if args.fleet.is_some() {
        return Err(Failure::usage(format!(
            "--fleet is for n up to {MAX_COUNT_SIZE}; n = {n} is too large to count"
        )));
    }
    let has_piece = args.piece.is_some_and(|piece| piece != Piece::Queen);
    if let Some(flag) = args.squares.given().or(has_piece.then_some("--piece")) {
        return Err(Failure::usage(format!(
            "{flag} is for n up to {MAX_COUNT_SIZE}; the estimate of n = {n} is for the empty board of queens"
        )));
    }
    if options.kernel.is_some() {
        return Err(Failure::usage(format!(
            "--kernel is for n up to {MAX_COUNT_SIZE}; the estimate of n = {n} uses no kernel"
        )));
    }
    let found = estimate_by_annealing(n, options, args.seconds, args.seed);
    let found = found.map_err(Failure::usage)?;
    print_report(args.json, &large_report(&found), || large_text(&found))?;
    Ok(Exit::Done)
}

/// Returns the decimal logarithm of the solutions.
fn log10_solutions(found: &AnnealingEstimate) -> Mean {
    let Mean { mean, error, values } = found.ln_solutions;
    Mean { mean: mean / LN_10, error: error / LN_10, values }
}

fn large_report(found: &AnnealingEstimate) -> LargeReport {
    let (log10, gamma) = (log10_solutions(found), found.gamma());
    let ([log10_solutions_least, log10_solutions_most], [gamma_least, gamma_most]) =
        (log10.interval(), gamma.interval());
    LargeReport {
        n: found.n,
        log10_solutions: log10.mean,
        log10_solutions_error: log10.error,
        log10_solutions_least,
        log10_solutions_most,
        gamma: gamma.mean,
        gamma_error: gamma.error,
        gamma_least,
        gamma_most,
        runs: found.runs,
        effective_runs: found.effective_runs,
        sweeps: found.sweeps,
    }
}

fn large_text(found: &AnnealingEstimate) -> String {
    let mut lines = vec![format!(
        "{}, estimated from {} (with 90 % intervals)",
        counted(found.n as u128, "queen"),
        counted(found.runs.into(), "annealing run"),
    )];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
    let log10 = log10_solutions(found);
    let [least, most] = log10.interval();
    let powers = [log10.mean, least, most].map(power_of_ten);
    line("solutions", format!("{} ({} to {})", powers[0], powers[1], powers[2]));
    line("log10(solutions)", format!("{:.3} ({least:.3} to {most:.3})", log10.mean));
    let gamma = found.gamma();
    let [least, most] = gamma.interval();
    let value = format!("{:.5} ({least:.5} to {most:.5})", gamma.mean);
    line("gamma", value + ", of solutions = (n exp(-gamma))^n; the limit is 1.94400");
    line("effective runs", rounded(found.effective_runs));
    lines.join("\n") + "\n"
}

/// Formats a power of ten that may be beyond the range of floating-point numbers: "7.00e2115".
fn power_of_ten(log10: f64) -> String {
    if log10 == f64::NEG_INFINITY {
        return "0".to_owned();
    }
    let exponent = log10.floor();
    let mantissa = format!("{:.2}", 10.0_f64.powf(log10 - exponent));
    match mantissa.as_str() {
        "10.00" => format!("1.00e{}", exponent + 1.0),
        _ => format!("{mantissa}e{exponent}"),
    }
}

fn report(problem: &Problem, found: &Estimate) -> Report {
    /// The half-width of a 90 % interval in standard errors.
    const HALF: f64 = 1.645;
    let Estimate { solutions, nodes, dives, time } = *found;
    let ([solutions_least, solutions_most], [nodes_least, nodes_most]) =
        (solutions.interval(), nodes.interval());
    Report {
        n: problem.n(),
        piece: problem.piece().name(),
        placed: from_one(problem.placed()),
        blocked: from_one(problem.blocked()),
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
        fleet: None,
    }
}

fn text(problem: &Problem, found: &Estimate) -> String {
    let n = problem.n();
    let mut lines = vec![format!(
        "{}, estimated from {} (with 90 % intervals)",
        counted(n as u128, problem.piece().noun()),
        counted(found.dives.into(), "dive"),
    )];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
    let estimated = |value: Mean| {
        let [least, most] = value.interval();
        format!("{} ({} to {})", rounded(value.mean), rounded(least), rounded(most))
    };
    line(if problem.is_empty() { "solutions" } else { "completions" }, estimated(found.solutions));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_have_a_mantissa_below_ten() {
        for (log10, text) in [
            (2.0, "1.00e2"),
            (2_115.845_3, "7.00e2115"),
            (9.999_9, "1.00e10"),
            (-0.3, "5.01e-1"),
            (f64::NEG_INFINITY, "0"),
        ] {
            assert_eq!(power_of_ten(log10), text);
        }
    }
}
