//! `nqueens submit`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use indicatif::ProgressBar;
use serde::Serialize;

use super::args::{Board, OrAuto, number, or_auto};
use super::max_work::{self, CERTIFICATE_HELP, MaxWork};
use super::output_file::OutputFile;
use super::progress::{STEPS, progress_bar};
use super::remote::{Coordinator, Remote, block_on, may_pass};
use super::{Exit, Failure, note, print_report};
use crate::board::{Problem, Square};
use crate::cluster::protocol::v1::{self, submit_proof_request::What as Asked};
use crate::decomposition::Subproblems;
use crate::engine::usual_campaign_time;
use crate::kernel::KernelKind;
use crate::proof::{self, LARGEST_FILE, Meter};
use crate::report::{JobReport, ProofReport, Published, counted, job_name, state_name, time};
use crate::solver::first;

/// Submit a job to a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Count(CountArgs),
    First(FirstArgs),
    Beautiful(BeautifulArgs),
}

/// Find the lexicographically first solution (OEIS A141843) on the workers, and prove that it is
/// the first.
///
/// The coordinator checks every answer of a worker.
#[derive(Debug, clap::Args)]
struct FirstArgs {
    /// The board size, from 0 to 128.
    #[arg(value_parser = first_size, allow_negative_numbers = true)]
    n: u32,
    #[command(flatten)]
    proof: ProofArgs,
}

/// Find a most beautiful solution on the workers, and prove that it is one.
///
/// The square in row i and column j costs (2i−n−1)² + (2j−n−1)². A solution is most beautiful if
/// the costs of its squares, sorted from the largest, are lexicographically smallest. The
/// coordinator checks every answer of a worker.
#[derive(Debug, clap::Args)]
struct BeautifulArgs {
    /// The board size, from 0 to 250.
    #[arg(value_parser = super::first::board_size, allow_negative_numbers = true)]
    n: usize,
    #[command(flatten)]
    proof: ProofArgs,
}

/// The options of a proof.
#[derive(Debug, clap::Args)]
#[command(mut_arg("max_work", |flag| flag.help(CERTIFICATE_HELP)))]
struct ProofArgs {
    /// The priority. The tasks of proofs of higher priority are leased first; among equals, those
    /// that are older.
    #[arg(long, value_name = "P", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Wait until the proof is finished, and print its report.
    #[arg(long)]
    wait: bool,
    /// Wait until the proof is finished, and write its certificate to FILE.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    max_work: MaxWork,
    #[command(flatten)]
    remote: Remote,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

fn first_size(text: &str) -> Result<u32, String> {
    number(text, "board size", 0, first::LARGEST)
}

/// Count all solutions, or all completions of a board, on the workers.
#[derive(Debug, clap::Args)]
struct CountArgs {
    #[command(flatten)]
    board: Board,
    /// The subproblems of the units: auto (as submitted before, or those that are faster on the
    /// workers that the coordinator knows), prefixes, or column-sets (for large boards of
    /// queens).
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = or_auto::<Subproblems>)]
    subproblems: OrAuto<Subproblems>,
    /// The priority. Jobs of higher priority are counted first; among equals, those submitted
    /// first.
    #[arg(long, value_name = "P", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Wait until the job is finished, and print its report. If the total is disputed, wait for the
    /// recounts; the exit code is 6 if they do not settle it.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    remote: Remote,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json` without `--wait`.
#[derive(Debug, Serialize)]
struct Submitted {
    job: String,
    /// True if the job was submitted before.
    known: bool,
    state: &'static str,
    priority: i32,
    /// Absent for a proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    subproblems: Option<&'static str>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.what {
        What::Count(args) => {
            let problem = args.board.problem()?;
            block_on(submit(args, &problem))
        }
        What::First(args) => {
            block_on(submit_proof(&args.proof, Asked::First(v1::First { n: args.n })))
        }
        What::Beautiful(args) => {
            let n = u32::try_from(args.n).unwrap_or(u32::MAX);
            block_on(submit_proof(&args.proof, Asked::Beautiful(v1::Beautiful { n })))
        }
    }
}

async fn submit_proof(args: &ProofArgs, asked: Asked) -> Result<Exit, Failure> {
    // A file that cannot be written is an error before the search, not after it.
    let file = OutputFile::begin_if_given("certificate", args.certificate.as_deref())?;
    let coordinator = args.remote.connect().await?;
    let request = v1::SubmitProofRequest { what: Some(asked), priority: args.priority };
    let answer = coordinator.call(coordinator.link.operations().submit_proof(request)).await?;
    let (job, state) = (job_name(&answer.job), state_name(answer.state()));
    note_other_priority(&answer, args.priority);
    if !args.wait && file.is_none() {
        return print_submitted(&job, &answer, args.json);
    }
    let verb = if answer.known { "was submitted before and is" } else { "is" };
    note(&format!("job {job} {verb} {state}"));
    let report = wait_for_proof(&coordinator, &job).await?;
    if report.state == "cancelled" {
        let message = format!("job {job} was cancelled");
        return Err(Failure::new(Exit::Coordinator, message));
    }
    if let Some(file) = file {
        let certificate = fetch(&coordinator, &job).await?;
        check(&certificate, asked, &report, &mut args.max_work.meter())?;
        file.finish(&certificate)?;
    }
    print_report(args.json, &report, || report.text())?;
    Ok(if report.solution.is_some() { Exit::Done } else { Exit::NoSolution })
}

/// Checks that the certificate proves what the coordinator reports.
fn check(
    certificate: &[u8],
    asked: Asked,
    report: &ProofReport,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        let message =
            format!("the coordinator's certificate does not prove what it reports: {why}");
        Failure::new(Exit::CheckFailed, message)
    };
    let proved = proof::check_within(certificate, meter).map_err(|error| {
        if error.is_undecided() {
            max_work::failure(
                &"the coordinator's certificate, which was not written",
                &error,
                Exit::CheckFailed,
            )
        } else {
            wrong(&error)
        }
    })?;
    let from_one =
        |columns: Vec<usize>| columns.into_iter().map(|column| column as u32 + 1).collect();
    let solution: Option<Vec<u32>> = proved.solution.map(from_one);
    let (kind, beauty, n) = match asked {
        Asked::First(v1::First { n }) => (proof::Kind::First, None, n),
        Asked::Beautiful(v1::Beautiful { n }) => {
            (proof::Kind::Beautiful, Some(proof::Beauty::default()), n)
        }
    };
    let is_asked = (proved.kind, proved.beauty, proved.n) == (kind, beauty, n as usize);
    if is_asked && solution == report.solution {
        Ok(())
    } else {
        Err(wrong(&"it is for another board or solution"))
    }
}

/// Downloads the certificate of a finished proof.
async fn fetch(coordinator: &Coordinator, job: &str) -> Result<Vec<u8>, Failure> {
    let request = v1::CertificateRequest { job: job.to_owned() };
    let mut stream = coordinator.call(coordinator.link.operations().certificate(request)).await?;
    let mut certificate = Vec::new();
    loop {
        let next = stream.message().await;
        match coordinator.call(async { next.map(tonic::Response::new) }).await? {
            Some(chunk) if (certificate.len() + chunk.bytes.len()) as u64 > LARGEST_FILE => {
                let message =
                    format!("the coordinator's certificate has more than {LARGEST_FILE} bytes");
                return Err(Failure::new(Exit::Coordinator, message));
            }
            Some(chunk) => certificate.extend_from_slice(&chunk.bytes),
            None => return Ok(certificate),
        }
    }
}

async fn submit(args: &CountArgs, problem: &Problem) -> Result<Exit, Failure> {
    let coordinator = args.remote.connect().await?;
    let request = v1::SubmitRequest {
        subproblems: args.subproblems.0.map_or(v1::Subproblems::Unspecified, Into::into).into(),
        ..request(problem, args.priority)
    };
    let answer = coordinator.call(coordinator.link.operations().submit(request)).await?;
    let (job, state) = (job_name(&answer.job), state_name(answer.state()));
    note_other_priority(&answer, args.priority);
    if answer.state() == v1::JobState::Running {
        note_long(&coordinator, problem, answer.subproblems()).await;
    }
    if args.wait {
        let verb = if answer.known { "was submitted before and is" } else { "is" };
        note(&format!("job {job} {verb} {state}"));
        let report = wait_for(&coordinator, &job).await?;
        return print_final(&report, args.json);
    }
    print_submitted(&job, &answer, args.json)
}

/// Prints a note if the job was submitted before with another priority.
fn note_other_priority(answer: &v1::SubmitResponse, priority: i32) {
    if answer.known && answer.priority != priority {
        note(&format!(
            "job {} was submitted before with priority {}, which is unchanged",
            job_name(&answer.job),
            answer.priority
        ));
    }
}

/// Prints a note on the time of a long count, by the workers that the coordinator knows.
async fn note_long(coordinator: &Coordinator, problem: &Problem, units: v1::Subproblems) {
    const LONG_S: f64 = 600.0;
    // Without an answer there is no note; the job is submitted all the same.
    let Ok(answer) = coordinator.link.operations().workers(v1::WorkersRequest {}).await else {
        return;
    };
    let workers = answer.into_inner().workers;
    // A coordinator of an earlier version does not say, and counts prefixes.
    let subproblems = Option::from(units).unwrap_or(Subproblems::Prefixes);
    let counting =
        workers.iter().filter(|worker| worker.quarantined.is_empty() && !worker.draining);
    let devices = counting.flat_map(|worker| &worker.devices);
    let cpus: Vec<(KernelKind, u32)> = devices
        .filter(|device| device.fault.is_empty())
        .filter_map(|device| Some((device.kernel.parse().ok()?, device.capacity)))
        .collect();
    if let Some(seconds) = usual_campaign_time(problem, subproblems, &cpus).filter(|s| *s >= LONG_S)
    {
        let threads: u32 = cpus.iter().map(|(_, threads)| threads).sum();
        note(&format!(
            "this will take roughly {} on {} of the workers now connected, by the usual rate of their kernels; nqueens status shows the time left once units are counted",
            time(seconds),
            counted(threads.into(), "CPU thread"),
        ));
    }
}

/// Prints that the job is submitted.
fn print_submitted(job: &str, answer: &v1::SubmitResponse, json: bool) -> Result<Exit, Failure> {
    let (known, state, priority) = (answer.known, state_name(answer.state()), answer.priority);
    let subproblems = Option::from(answer.subproblems()).map(Subproblems::name);
    let submitted = Submitted { job: job.to_owned(), known, state, priority, subproblems };
    print_report(json, &submitted, || {
        if known {
            format!("job {job} was submitted before and is {state}\n")
        } else {
            format!("job {job} submitted; nqueens status {} shows its progress\n", &job[..8])
        }
    })?;
    Ok(Exit::Done)
}

/// Returns the request that submits a count.
pub(super) fn request(problem: &Problem, priority: i32) -> v1::SubmitRequest {
    // The parser limits the board size.
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
        ..v1::SubmitRequest::default()
    }
}

/// Prints the report of a job that has ended, and returns the exit code.
pub(super) fn print_final(report: &JobReport, json: bool) -> Result<Exit, Failure> {
    print_report(json, report, || report.text())?;
    finish(report)
}

/// Returns the exit code after a job.
pub(super) fn finish(report: &JobReport) -> Result<Exit, Failure> {
    if report.state == "cancelled" {
        let message = format!("job {} was cancelled", report.job);
        return Err(Failure::new(Exit::Coordinator, message));
    }
    if report.is_disputed() {
        let dispute = report.dispute.as_deref().unwrap_or_default();
        let message = format!("job {} is disputed: {dispute}", report.job);
        return Err(Failure::new(Exit::CheckFailed, message));
    }
    if report.published == Some(Published::Differs) {
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}

/// Waits until a job is finished or cancelled or no recount can settle its dispute, also while the
/// coordinator cannot be reached. Shows the progress, and prints notes for operators: units that
/// are set aside, results that differ, quarantined workers, a disputed total.
pub(super) async fn wait_for(coordinator: &Coordinator, job: &str) -> Result<JobReport, Failure> {
    let bar = progress_bar();
    let mut printed: BTreeSet<String> = BTreeSet::new();
    follow(coordinator, job, &bar, |status| {
        let now_ms = status.now_ms;
        let job = status.jobs.into_iter().next()?;
        let (done, units) = (job.done, job.units.max(1));
        let report = JobReport::new(job, now_ms);
        if report.is_over() {
            return Some(report);
        }
        print_new_notes(&bar, &mut printed, report.dispute.iter().chain(&report.notes));
        bar.set_position(STEPS * done / units);
        bar.set_message(format!("{}, {}: {}", report.title(), report.state, report.progress()));
        None
    })
    .await
}

/// Waits until a proof is finished or cancelled, like [`wait_for`].
async fn wait_for_proof(coordinator: &Coordinator, job: &str) -> Result<ProofReport, Failure> {
    let bar = progress_bar();
    let mut printed: BTreeSet<String> = BTreeSet::new();
    follow(coordinator, job, &bar, |status| {
        let now_ms = status.now_ms;
        let proof = status.proofs.into_iter().next()?;
        let report = ProofReport::new(proof, now_ms);
        if report.is_over() {
            return Some(report);
        }
        print_new_notes(&bar, &mut printed, report.notes.iter());
        bar.set_position((STEPS as f64 * report.share()) as u64);
        bar.set_message(format!("{}, {}: {}", report.title(), report.state, report.progress()));
        None
    })
    .await
}

/// Prints the notes that were not printed before.
fn print_new_notes<'a>(
    bar: &ProgressBar,
    printed: &mut BTreeSet<String>,
    notes: impl Iterator<Item = &'a String>,
) {
    for text in notes {
        if printed.insert(text.clone()) {
            bar.suspend(|| note(text));
        }
    }
}

/// Calls `look` with each status of a job until it returns a value, also while the coordinator
/// cannot be reached.
async fn follow<T>(
    coordinator: &Coordinator,
    job: &str,
    bar: &ProgressBar,
    mut look: impl FnMut(v1::StatusResponse) -> Option<T>,
) -> Result<T, Failure> {
    const FIRST_PAUSE: Duration = Duration::from_millis(200);
    const LONGEST_PAUSE: Duration = Duration::from_secs(30);
    let mut pause = FIRST_PAUSE;
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
        // The stream ends when the coordinator stops.
        while let Ok(Some(status)) = stream.message().await {
            pause = FIRST_PAUSE;
            if let Some(found) = look(status) {
                bar.finish_and_clear();
                return Ok(found);
            }
        }
        tokio::time::sleep(pause.mul_f64(fastrand::f64())).await;
    }
}
