//! `nqueens count`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use super::args::{Board, CpuArgs, DeviceArgs, OrAuto, from_one, or_auto, square_from_one};
use super::deadline::LimitArgs;
use super::interrupt::on_ctrl_c;
use super::progress::{progress_bar, show, time_with_interval};
use super::{Exit, Failure, note, print_report};
use crate::board::{Piece, Problem, Square};
use crate::decomposition::Subproblems;
use crate::engine::{
    CountError, CountEvent, CountOptions, CountOutcome, CountProgress, CountTask, TimeForecast,
};
use crate::kernel::symmetric::{Classes, classes};
use crate::oeis::{Sequence, totals_of};
use crate::report::{Published, counted, duration, grouped, percent, rounded};

/// The help of `--device`.
const DEVICE_HELP: &str = "\
The devices, separated by commas: auto (the CPU, and all GPUs if the count takes the CPU more than \
about 3 s), cpu, gpu, or ids from nqueens devices";

/// Count all solutions, or all completions of a board.
#[derive(Debug, clap::Args)]
#[command(mut_arg("device", |flag| flag.help(DEVICE_HELP)))]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// Also count the symmetric and the fundamental solutions. Needs an empty board of queens,
    /// superqueens or toroidal queens.
    #[arg(long)]
    classes: bool,
    #[command(flatten)]
    cpu: CpuArgs,
    /// The subproblems: auto (those of the kernel; prefixes if a GPU takes part; otherwise those
    /// that the CPU counts fastest), prefixes, or column-sets (of queens).
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = or_auto::<Subproblems>)]
    subproblems: OrAuto<Subproblems>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Save finished units, and about every ten seconds the counted part of others, to the
    /// checkpoint FILE, and resume from it if it exists.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress bar.
    #[arg(short, long)]
    quiet: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    piece: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placed: Vec<[usize; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked: Vec<[usize; 2]>,
    solutions: String,
    /// Two placed pieces that attack each other, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<[[usize; 2]; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<ClassesReport>,
    kernel: String,
    devices: Vec<String>,
    threads: usize,
    units: u64,
    resumed_units: u64,
    nodes: Option<String>,
    elapsed_s: f64,
    rate_per_s: f64,
    published: Published,
    verified: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct ClassesReport {
    total: String,
    fundamental: String,
    point_symmetric: String,
    rotation_symmetric: String,
    published: Published,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let problem = args.board.problem()?;
    if args.classes && (!problem.is_empty() || problem.piece() == Piece::Rook) {
        return Err(Failure::usage(
            "--classes needs an empty board of queens, superqueens or toroidal queens",
        ));
    }
    let conflict = problem.conflict();
    let outcome = count(args, &problem)?;
    let of_classes = || classes(problem.piece(), problem.n(), outcome.solutions);
    let classes = args.classes.then(of_classes).transpose();
    let classes = classes.map_err(|error| Failure::new(Exit::CheckFailed, error))?;
    let comparison = Comparison::new(&problem, &outcome, classes.as_ref());
    let report = report(&problem, conflict, &outcome, classes.as_ref(), &comparison);
    print_report(args.json, &report, || {
        text(&problem, conflict, &outcome, classes.as_ref(), &comparison)
    })?;
    if comparison.differs() {
        return Err(Failure::new(
            Exit::CheckFailed,
            "a count differs from the published value; please report this with the output above",
        ));
    }
    Ok(Exit::Done)
}

/// Counts with a progress bar. Ctrl-C and the deadline stop the count at once.
fn count(args: &Args, problem: &Problem) -> Result<CountOutcome, Failure> {
    let deadline = args.limits.deadline();
    let interrupted = Arc::new(AtomicBool::new(false));
    let counting = Arc::new(AtomicBool::new(false));
    let (raise, running) = (Arc::clone(&interrupted), Arc::clone(&counting));
    on_ctrl_c(move || {
        raise.store(true, Ordering::Relaxed);
        if !running.load(Ordering::Relaxed) {
            note("interrupted before the count started");
            std::process::exit(Exit::Interrupted as i32);
        }
    });
    let subproblems = args.subproblems.0;
    let options = CountOptions { subproblems, ..args.cpu.options(args.device.choice()) };
    let bar = if args.quiet { ProgressBar::hidden() } else { progress_bar() };
    // Planning takes seconds from n = 26.
    bar.set_message("planning");
    bar.tick();
    let planned = match &args.resume {
        Some(path) => CountTask::resume(problem, &options, path),
        None => CountTask::plan(problem, &options),
    };
    let mut task = planned.inspect_err(|_| bar.finish_and_clear())?;
    bar.suspend(|| {
        note_resumed(args, &task);
        if deadline.is_set() && args.resume.is_none() {
            note("without --resume FILE, nothing is kept if the limit is reached");
        }
    });
    if !args.quiet && !deadline.is_within(LONG) {
        bar.set_message("counting a sample, to forecast the time");
        bar.tick();
        let time = task.forecast_time().inspect_err(|_| bar.finish_and_clear())?;
        if let Some(time) = time.filter(|time| time.most_s >= LONG.as_secs_f64()) {
            bar.suspend(|| note_long(args, &time));
        }
    }
    let mut reached: Option<&str> = None;
    let mut last: Option<CountProgress> = None;
    counting.store(true, Ordering::Relaxed);
    let outcome = task.run(|event| {
        match event {
            CountEvent::Note(text) => bar.suspend(|| note(text)),
            CountEvent::Progress(progress) => {
                last = Some(*progress);
                show(&bar, progress);
            }
        }
        reached = deadline.reached();
        if interrupted.load(Ordering::Relaxed) || reached.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    match (outcome, last) {
        (Err(CountError::Stopped { units_done, units }), Some(progress)) => {
            let stopped = match reached {
                Some(limit) => format!("stopped by {limit}"),
                None => "interrupted".to_owned(),
            };
            let hint = match &args.resume {
                Some(path) => {
                    format!("run the same command again to resume from {}", path.display())
                }
                None => "use --resume FILE to save finished units".into(),
            };
            Err(Failure::new(
                Exit::Interrupted,
                format!(
                    "{stopped} after {}: {units_done} of {units} units done ({} of the work), {} solutions so far; {hint}",
                    duration(progress.elapsed),
                    percent(progress.fraction, progress.left),
                    grouped(progress.solutions),
                ),
            ))
        }
        (outcome, _) => Ok(outcome?),
    }
}

/// The time from which a count says before it begins how long it will take.
const LONG: Duration = Duration::from_secs(600);

fn note_long(args: &Args, time: &TimeForecast) {
    let kept = match &args.resume {
        Some(path) => format!("{} keeps the finished units", path.display()),
        None => "--resume FILE keeps the finished units".to_owned(),
    };
    note(&format!("this will take about {} on this machine; {kept}", time_with_interval(time)));
}

fn note_resumed(args: &Args, task: &CountTask) {
    let (units, torn) = task.resumed();
    if let Some(path) = &args.resume {
        if torn > 0 {
            note(&format!("{}: dropped {torn} bytes of an incomplete record", path.display()));
        }
        let partial = task.resumed_partial() as u64;
        if units + partial > 0 && !args.quiet {
            let all = task.decomposition().units();
            let begun =
                if partial > 0 { format!(", {partial} in progress") } else { String::new() };
            note(&format!("{}: resuming with {units} of {all} units done{begun}", path.display()));
        }
    }
}

/// The comparison of the counts with the published values.
struct Comparison {
    total: Published,
    /// The fundamental, point-symmetric and rotation-symmetric solutions, where there is a
    /// sequence.
    classes: [Option<(Sequence, Published)>; 3],
}

impl Comparison {
    fn new(problem: &Problem, outcome: &CountOutcome, classes: Option<&Classes>) -> Self {
        let (piece, n) = (problem.piece(), problem.n());
        let total = if problem.is_empty() {
            Published::compare(totals_of(piece), n, outcome.solutions)
        } else {
            Published::Unknown
        };
        let compare = |sequence, value: fn(&Classes) -> u128| {
            classes.map(|classes| (sequence, Published::compare(sequence, n, value(classes))))
        };
        let classes = match piece {
            Piece::Queen => [
                compare(Sequence::Fundamental, |c| c.fundamental),
                compare(Sequence::PointSymmetric, |c| c.point_symmetric),
                compare(Sequence::QuarterTurnSymmetric, |c| c.quarter_turn_symmetric),
            ],
            Piece::Superqueen => {
                [compare(Sequence::SuperqueensFundamental, |c| c.fundamental), None, None]
            }
            Piece::Rook | Piece::Toroidal => [None; 3],
        };
        Self { total, classes }
    }

    fn all_classes(&self) -> Published {
        let each: Vec<Published> =
            self.classes.iter().flatten().map(|(_, published)| *published).collect();
        if each.contains(&Published::Differs) {
            Published::Differs
        } else if each.is_empty() || each.contains(&Published::Unknown) {
            Published::Unknown
        } else {
            Published::Agrees
        }
    }

    fn differs(&self) -> bool {
        self.total == Published::Differs || self.all_classes() == Published::Differs
    }
}

fn report(
    problem: &Problem,
    conflict: Option<(Square, Square)>,
    outcome: &CountOutcome,
    classes: Option<&Classes>,
    comparison: &Comparison,
) -> Report {
    Report {
        n: problem.n(),
        piece: problem.piece().name(),
        placed: from_one(problem.placed()),
        blocked: from_one(problem.blocked()),
        solutions: outcome.solutions.to_string(),
        conflict: conflict.map(|(a, b)| [a, b].map(square_from_one)),
        classes: classes.map(|classes| ClassesReport {
            total: classes.total.to_string(),
            fundamental: classes.fundamental.to_string(),
            point_symmetric: classes.point_symmetric.to_string(),
            rotation_symmetric: classes.quarter_turn_symmetric.to_string(),
            published: comparison.all_classes(),
        }),
        kernel: outcome.kernel.clone(),
        devices: outcome.devices.clone(),
        threads: outcome.threads,
        units: outcome.units,
        resumed_units: outcome.resumed_units,
        nodes: outcome.nodes.map(|nodes| nodes.to_string()),
        elapsed_s: outcome.elapsed.as_secs_f64(),
        rate_per_s: outcome.rate_per_s,
        published: comparison.total,
        verified: outcome.checks.iter().map(|check| check.name()).collect(),
    }
}

fn text(
    problem: &Problem,
    conflict: Option<(Square, Square)>,
    outcome: &CountOutcome,
    classes: Option<&Classes>,
    comparison: &Comparison,
) -> String {
    let n = problem.n();
    let solutions = outcome.solutions;
    let what = if problem.is_empty() { "solution" } else { "completion" };
    let mut lines = vec![format!("{n} {}s: {}", problem.piece().noun(), counted(solutions, what))];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
    line("digits", solutions.to_string());
    if let Some((a, b)) = conflict {
        line("conflict", format!("the pieces placed on {a} and {b} attack each other"));
    }
    if problem.is_empty() {
        line("published", comparison.total.sentence(totals_of(problem.piece())));
    }
    if let Some(classes) = classes {
        let values = [classes.fundamental, classes.point_symmetric, classes.quarter_turn_symmetric];
        let names = ["fundamental", "point-symmetric", "rotation-symmetric"];
        for ((name, value), comparison) in names.into_iter().zip(values).zip(comparison.classes) {
            let published = comparison.map_or(String::new(), |(sequence, published)| {
                format!(", {}", published.sentence(sequence))
            });
            line(name, format!("{}{published}", grouped(value)));
        }
    }
    let checks: Vec<String> = outcome.checks.iter().map(ToString::to_string).collect();
    line("checks", checks.join(", "));
    let threads = counted(outcome.threads as u128, "thread");
    let units = counted(outcome.units.into(), "unit");
    let nodes = outcome
        .nodes
        .map_or(String::new(), |nodes| format!(", {} visited", counted(nodes, "node")));
    let on: Vec<&str> = outcome
        .devices
        .iter()
        .map(|device| if device == "cpu" { &threads } else { device.as_str() })
        .collect();
    line("kernel", format!("{} on {}, {units}{nodes}", outcome.kernel, on.join(" and ")));
    line(
        "time",
        format!("{}, {} {what}s/s", duration(outcome.elapsed), rounded(outcome.rate_per_s)),
    );
    lines.join("\n") + "\n"
}
