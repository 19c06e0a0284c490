//! `nqueens submit`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;

use super::count;
use super::job_report::{JobReport, job_name, state_name};
use super::problem::DecidedSquares;
use super::remote::{Coordinator, Remote, block_on, may_pass};
use super::report::Published;
use super::{Exit, Failure, note, print};
use crate::board::{Piece, Problem, Square};
use crate::wire::v1;

/// Submit a job to a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Count(CountArgs),
}

/// Count all solutions, or all completions of a board on which some squares are decided, on every worker.
#[derive(Debug, clap::Args)]
struct CountArgs {
    /// The board size: rows, columns and queens, from 0 to 32.
    #[arg(value_parser = count::board_size, allow_negative_numbers = true)]
    n: usize,
    #[command(flatten)]
    squares: DecidedSquares,
    /// The piece: queen, rook, superqueen (queen and knight) or toroidal (opposite edges are joined).
    #[arg(long, default_value = "queen")]
    piece: Piece,
    /// Jobs of higher priority go first; then those that were submitted first.
    #[arg(long, value_name = "P", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Wait until the job is finished, and print its report.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    remote: Remote,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints without `--wait`.
#[derive(Debug, Serialize)]
struct Submitted {
    job: String,
    /// The job was there already.
    known: bool,
    state: &'static str,
    priority: i32,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let What::Count(args) = &args.what;
    let problem = args.squares.problem(args.piece, args.n)?;
    block_on(submit(args, &problem))
}

async fn submit(args: &CountArgs, problem: &Problem) -> Result<Exit, Failure> {
    let coordinator = args.remote.connect().await?;
    let answer =
        coordinator.call(coordinator.link.operations().submit(request(problem, args.priority))).await?;
    let (job, state) = (job_name(&answer.job), state_name(answer.state()));
    if answer.known && answer.priority != args.priority {
        note(&format!("job {job} was submitted before, with priority {}, and keeps that", answer.priority));
    }
    if args.wait {
        let before = if answer.known { "was submitted before and is" } else { "is" };
        note(&format!("job {job} {before} {state}"));
        let report = wait_for(&coordinator, &job).await?;
        return print_final(&report, args.json);
    }
    let text = if args.json {
        serde_json::to_string(&Submitted { job, known: answer.known, state, priority: answer.priority })
            .expect("strings serialise")
    } else if answer.known {
        format!("job {job} was submitted before and is {state}")
    } else {
        format!("job {job} submitted; nqueens status {} tells how it stands", &job[..8])
    };
    print(&(text + "\n"))?;
    Ok(Exit::Done)
}

/// What is sent.
pub(super) fn request(problem: &Problem, priority: i32) -> v1::SubmitRequest {
    // The parser has seen to it that it is small.
    let one_based = |i: usize| u32::try_from(i + 1).unwrap_or(u32::MAX);
    let squares = |squares: &[Square]| {
        let square = |s: &Square| v1::Square { row: one_based(s.row), column: one_based(s.col) };
        squares.iter().map(square).collect()
    };
    v1::SubmitRequest {
        piece: problem.piece().name().to_owned(),
        n: u32::try_from(problem.n()).unwrap_or(u32::MAX),
        placed: squares(problem.placed()),
        blocked: squares(problem.blocked()),
        priority,
    }
}

/// Prints the report of a job that is over, and says by the exit code how it ended.
pub(super) fn print_final(report: &JobReport, json: bool) -> Result<Exit, Failure> {
    let object = || serde_json::to_string(report).expect("numbers and strings serialise") + "\n";
    print(&if json { object() } else { report.text() })?;
    finish(report)
}

/// How the program ends after a job.
pub(super) fn finish(report: &JobReport) -> Result<Exit, Failure> {
    if report.state == "cancelled" {
        let message = format!("job {} was cancelled", report.job);
        return Err(Failure { exit: Exit::Coordinator, message });
    }
    if report.published == Some(Published::Differs) {
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}

/// Waits until a job is finished or cancelled, also while the coordinator is away. Draws its progress on a terminal, and
/// says what people should know of: units that are set aside, results that differ, workers in quarantine.
pub(super) async fn wait_for(coordinator: &Coordinator, job: &str) -> Result<JobReport, Failure> {
    const FIRST_PAUSE: Duration = Duration::from_millis(200);
    const LONGEST_PAUSE: Duration = Duration::from_secs(30);
    let bar = count::progress_bar();
    let mut pause = FIRST_PAUSE;
    let mut said: BTreeSet<String> = BTreeSet::new();
    loop {
        let request = v1::StatusRequest { job: job.to_owned() };
        let mut stream = match coordinator.link.operations().watch(request).await {
            Ok(answer) => answer.into_inner(),
            Err(status) if may_pass(&status) => {
                bar.set_message(format!("waiting for the coordinator: {}", status.message()));
                tokio::time::sleep(pause.mul_f64(fastrand::f64())).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
                continue;
            }
            Err(status) => return coordinator.call(async { Err(status) }).await,
        };
        // Until the stream breaks off, as it does when the coordinator stops.
        while let Ok(Some(status)) = stream.message().await {
            pause = FIRST_PAUSE;
            let now_ms = status.now_ms;
            let Some(job) = status.jobs.into_iter().next() else { continue };
            let (done, units) = (job.done, job.units.max(1));
            let over = matches!(job.state(), v1::JobState::Finished | v1::JobState::Cancelled);
            let report = JobReport::new(job, now_ms);
            if over {
                bar.finish_and_clear();
                return Ok(report);
            }
            for news in &report.notes {
                if said.insert(news.clone()) {
                    bar.suspend(|| note(news));
                }
            }
            bar.set_position(count::STEPS * done / units);
            bar.set_message(format!("{}, {}: {}", report.title(), report.state, report.progress()));
        }
        tokio::time::sleep(pause.mul_f64(fastrand::f64())).await;
    }
}
