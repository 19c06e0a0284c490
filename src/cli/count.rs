//! `nqueens count`.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::problem::Board;
use super::report::{Published, counted, duration, grouped, predicted, rounded};
use super::{Exit, Failure, note, print};
use crate::board::{Piece, Problem, Square};
use crate::decomposition::{Job, MAX_COUNT_SIZE, Scheme};
use crate::engine::{
    CountError, CountEvent, CountOptions, CountOutcome, CountProgress, CountTask, DeviceChoice,
};
use crate::kernel::symmetric::{Classes, classes};
use crate::kernel::{KernelKind, UnknownKernel};
use crate::oeis::{Sequence, totals_of};

/// Count all solutions, or all completions of a board on which some squares are decided.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// Count the symmetric and the fundamental solutions too.
    #[arg(long)]
    classes: bool,
    #[command(flatten)]
    machine: Machine,
    /// The devices: auto (the CPU, and GPUs if that pays), cpu, gpu, or ids from nqueens devices; several by commas.
    #[arg(long, value_name = "DEVICES", default_value = "auto")]
    device: DeviceChoice,
    /// Keep finished units in FILE, and go on from there if it exists.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// What counts on the CPU.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Machine {
    /// The kernel: auto (the fastest here), reference, textbook, scalar, avx2, avx512 or generic.
    #[arg(long, default_value = "auto", value_parser = kernel)]
    kernel: Kernel,
    /// Threads; one a core if not given.
    #[arg(long, value_name = "T", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<NonZeroUsize>,
}

impl Machine {
    /// The same for the engine.
    pub(super) fn options(self, devices: DeviceChoice) -> CountOptions {
        CountOptions { kernel: self.kernel.0, threads: self.threads, devices }
    }
}

/// `None` for auto.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel(pub(super) Option<KernelKind>);

/// Reads a kernel's name, or auto.
pub(super) fn kernel(text: &str) -> Result<Kernel, UnknownKernel> {
    Ok(Kernel(if text == "auto" { None } else { Some(text.parse()?) }))
}

/// Reads a number of threads.
pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    /// More than any machine has cores; each takes about a megabyte.
    const MOST: usize = 1024;
    let threads = text.parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= MOST);
    threads.ok_or_else(|| {
        format!("'{text}' is not a number of threads; write a whole number from 1 to {MOST}")
    })
}

/// Reads a board size that can be counted.
pub(super) fn board_size(text: &str) -> Result<usize, String> {
    let wrong =
        || format!("'{text}' is not a board size; write a whole number from 0 to {MAX_COUNT_SIZE}");
    let n = text.parse().map_err(|_| wrong())?;
    // The job says why a board is too large.
    let job = Job::new(Problem::empty(Piece::Queen, n), Scheme::Whole, None, 1);
    job.map(|_| n).map_err(|error| error.to_string())
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    piece: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placed: Vec<[usize; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked: Vec<[usize; 2]>,
    solutions: String,
    /// Two placed squares that attack each other, if that is why there is no solution.
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
    verified: [&'static str; 2],
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
            "--classes needs an empty board and queens, super-queens or toroidal queens; leave it out, or the squares",
        ));
    }
    let conflict = problem.conflict();
    let outcome = count(args, &problem)?;
    let classes = if args.classes {
        let classes = classes(problem.piece(), problem.n(), outcome.solutions);
        Some(
            classes
                .map_err(|error| Failure { exit: Exit::CheckFailed, message: error.to_string() })?,
        )
    } else {
        None
    };
    let compared = Compared::new(&problem, &outcome, classes.as_ref());
    if args.json {
        let report = report(&problem, conflict, &outcome, classes.as_ref(), &compared);
        print(&(serde_json::to_string(&report).expect("numbers and strings serialise") + "\n"))?;
    } else {
        print(&text(&problem, conflict, &outcome, classes.as_ref(), &compared))?;
    }
    if compared.differs() {
        return Err(Failure {
            exit: Exit::CheckFailed,
            message:
                "a count differs from the published value; please report it with the output above"
                    .into(),
        });
    }
    Ok(Exit::Done)
}

/// Counts, with a progress bar where stderr is a terminal; Ctrl-C stops at once.
fn count(args: &Args, problem: &Problem) -> Result<CountOutcome, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let counting = Arc::new(AtomicBool::new(false));
    let (raise, running) = (Arc::clone(&interrupted), Arc::clone(&counting));
    let handler = ctrlc::set_handler(move || {
        raise.store(true, Ordering::Relaxed);
        if !running.load(Ordering::Relaxed) {
            note("interrupted before the count began");
            std::process::exit(Exit::Interrupted as i32);
        }
    });
    if let Err(error) = handler {
        note(&format!("Ctrl-C will end the program without a word: {error}"));
    }
    let options = args.machine.options(args.device.clone());
    let bar = if args.quiet { ProgressBar::hidden() } else { progress_bar() };
    // Boards from n = 26 on take seconds to plan.
    bar.set_message("planning");
    bar.tick();
    let planned = match &args.resume {
        Some(path) => CountTask::resume(problem, &options, path),
        None => CountTask::plan(problem, &options),
    };
    let task = planned.inspect_err(|_| bar.finish_and_clear())?;
    bar.suspend(|| tell_resumed(args, &task));
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
        if interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    match (outcome, last) {
        (Err(CountError::Stopped { units_done, units }), Some(progress)) => {
            let go_on = match &args.resume {
                Some(path) => format!("the same command goes on from {}", path.display()),
                None => "--resume FILE would have kept them".into(),
            };
            Err(Failure {
                exit: Exit::Interrupted,
                message: format!(
                    "interrupted after {}: {units_done} of {units} units done ({:.1} % of the work), {} solutions so far; {go_on}",
                    duration(progress.elapsed),
                    100.0 * progress.fraction,
                    grouped(progress.solutions),
                ),
            })
        }
        (outcome, _) => Ok(outcome?),
    }
}

fn tell_resumed(args: &Args, task: &CountTask) {
    let (units, torn) = task.resumed();
    if let Some(path) = &args.resume {
        if torn > 0 {
            note(&format!(
                "{}: dropped {torn} bytes of a record that was being written",
                path.display()
            ));
        }
        if units > 0 && !args.quiet {
            let all = task.decomposition().units();
            note(&format!("{}: {units} of {all} units are done already", path.display()));
        }
    }
}

/// Steps of the bar.
pub(super) const STEPS: u64 = 1000;

/// Draws on stderr if that is a terminal, and nothing otherwise.
pub(super) fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:32} {msg}").expect("the template is right");
    ProgressBar::new(STEPS).with_style(style)
}

pub(super) fn show(bar: &ProgressBar, progress: &CountProgress) {
    let mut message = format!("{:5.1} %", 100.0 * progress.fraction);
    if let Some(rate) = progress.rate_per_s {
        let _ = write!(message, "  {} solutions/s", rounded(rate));
    }
    if let Some(left) = progress.left {
        let _ = write!(message, "  {} left", predicted(left));
    }
    // A fraction is between 0 and 1.
    bar.set_position((progress.fraction * STEPS as f64) as u64);
    bar.set_message(message);
}

/// The counts beside the published ones.
struct Compared {
    total: Published,
    /// Fundamental, point-symmetric, rotation-symmetric: those that have a sequence.
    classes: [Option<(Sequence, Published)>; 3],
}

impl Compared {
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
    compared: &Compared,
) -> Report {
    let from_one = |s: &Square| [s.row + 1, s.col + 1];
    Report {
        n: problem.n(),
        piece: problem.piece().name(),
        placed: problem.placed().iter().map(from_one).collect(),
        blocked: problem.blocked().iter().map(from_one).collect(),
        solutions: outcome.solutions.to_string(),
        conflict: conflict.map(|(a, b)| [from_one(&a), from_one(&b)]),
        classes: classes.map(|classes| ClassesReport {
            total: classes.total.to_string(),
            fundamental: classes.fundamental.to_string(),
            point_symmetric: classes.point_symmetric.to_string(),
            rotation_symmetric: classes.quarter_turn_symmetric.to_string(),
            published: compared.all_classes(),
        }),
        kernel: outcome.kernel.clone(),
        devices: outcome.devices.clone(),
        threads: outcome.threads,
        units: outcome.units,
        resumed_units: outcome.resumed_units,
        nodes: outcome.nodes.map(|nodes| nodes.to_string()),
        elapsed_s: outcome.elapsed.as_secs_f64(),
        rate_per_s: outcome.rate_per_s,
        published: compared.total,
        verified: ["residues", "divisible_by_3"],
    }
}

fn text(
    problem: &Problem,
    conflict: Option<(Square, Square)>,
    outcome: &CountOutcome,
    classes: Option<&Classes>,
    compared: &Compared,
) -> String {
    let n = problem.n();
    let what = match problem.piece() {
        Piece::Queen => "queens",
        Piece::Rook => "rooks",
        Piece::Superqueen => "super-queens",
        Piece::Toroidal => "toroidal queens",
    };
    let solutions = outcome.solutions;
    let noun = if problem.is_empty() { "solution" } else { "completion" };
    let mut lines = vec![format!("{n} {what}: {}", counted(solutions, noun))];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
    line("digits", solutions.to_string());
    if let Some((a, b)) = conflict {
        line("why none", format!("the pieces placed on {a} and {b} attack each other"));
    }
    if problem.is_empty() {
        line("published", compared.total.sentence(totals_of(problem.piece())));
    }
    if let Some(classes) = classes {
        let values = [classes.fundamental, classes.point_symmetric, classes.quarter_turn_symmetric];
        let names = ["fundamental", "point-symmetric", "rotation-symmetric"];
        for ((name, value), compared) in names.into_iter().zip(values).zip(compared.classes) {
            let published = compared.map_or(String::new(), |(sequence, published)| {
                format!(", {}", published.sentence(sequence))
            });
            line(name, format!("{}{published}", grouped(value)));
        }
    }
    line("checks", "residues modulo two primes agree, the sum of weights is divisible by 3".into());
    let threads = counted(outcome.threads as u128, "thread");
    let units = counted(outcome.units.into(), "unit");
    let nodes =
        outcome.nodes.map_or(String::new(), |nodes| format!(", {}", counted(nodes, "node")));
    let on: Vec<&str> = outcome
        .devices
        .iter()
        .map(|device| if device == "cpu" { &threads } else { device.as_str() })
        .collect();
    line("kernel", format!("{} on {}, {units}{nodes}", outcome.kernel, on.join(" and ")));
    line(
        "time",
        format!("{}, {} {noun}s/s", duration(outcome.elapsed), rounded(outcome.rate_per_s)),
    );
    lines.join("\n") + "\n"
}
