//! Audits of transparency logs and of unit proofs.

use std::fmt::Display;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::{Args, Wrong, failure, recount_with_progress, wrong_unit};
use crate::audit::confidence::{CONFIDENCE, Sample, is_one_of, wrong_units_at_most};
use crate::audit::log::read::{OpenLog, ReadLog};
use crate::audit::log::recount::{WrongCount, recount_unit};
use crate::audit::log::unit_proof::{MOST_PROOF_BYTES, ProvedResult, UnitProof};
use crate::audit::log::{AuditError, LogState};
use crate::audit::recount::recount_sample;
use crate::cli::interrupt::Interrupt;
use crate::cli::output_file::OutputFile;
use crate::cli::progress::{STEPS, progress_bar};
use crate::cli::{Exit, Failure, atomic_file, json_line, print};
use crate::cluster::campaign::JobState;
use crate::oeis::totals_of;
use crate::report::{Published, count_title, counted, duration, grouped};
use crate::transparency::checkpoint::{Checkpoint, MOST_CHECKPOINT_BYTES};
use crate::transparency::entry::Author;
use crate::transparency::source::LogSource;

/// The output of `--json` for a whole log.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    /// The hash of the job, and the job in words.
    job: String,
    title: String,
    state: JobState,
    /// The key of the log, the number of its entries, and that of earlier checkpoints whose trees
    /// are parts of its tree.
    key: String,
    entries: u64,
    earlier_checkpoints: u64,
    /// The units of the job, those with a result, and those whose result is signed by its author or
    /// confirmed as a whole by another owner or by the coordinator.
    units: u64,
    counted: u64,
    signed: u64,
    confirmed: u64,
    keys: usize,
    owners: usize,
    named_owners: Vec<String>,
    /// Recounts and spot checks; results that were taken back.
    checks: u64,
    voided: u64,
    /// The sum of the results in thirds of a solution; the number of solutions once the job is
    /// finished.
    thirds: String,
    solutions: Option<String>,
    published: Option<Published>,
    seed: u64,
    recounted: u64,
    wrong: Option<Wrong>,
    confidence: f64,
    /// The bounds of the wrong units and of the error of the sum, if no unit is wrong.
    wrong_units_at_most: Option<u64>,
    error_of_total_below: Option<String>,
    elapsed_s: f64,
}

/// The output of `--json` for one unit.
#[derive(Debug, Serialize)]
struct UnitReport {
    format: &'static str,
    job: String,
    title: String,
    key: String,
    entries: u64,
    unit: u64,
    thirds: String,
    signed: bool,
    wrong: Option<Wrong>,
    elapsed_s: f64,
}

/// Returns the failure that ends an audit.
fn ended(args: &Args, error: &AuditError) -> Failure {
    let exit = match error {
        AuditError::Source(_) | AuditError::Form(..) | AuditError::NoResult(_) => Exit::File,
        AuditError::Checkpoint(..)
        | AuditError::AnotherKey(_)
        | AuditError::Wrong(_)
        | AuditError::Root(_)
        | AuditError::Shortened { .. }
        | AuditError::Rewritten(_) => Exit::CheckFailed,
    };
    failure(&args.source, exit, error)
}

/// Audits a log, or a unit of it.
pub(super) fn run(args: &Args, source: &LogSource) -> Result<Exit, Failure> {
    let began = Instant::now();
    let ended = |error| ended(args, &error);
    let log = OpenLog::open(source, args.key.as_ref()).map_err(ended)?;
    if let Some(unit) = args.unit {
        let file = OutputFile::begin_if_given("unit proof", args.save_proof.as_deref())?;
        let proof = UnitProof::from_log(&log, source, unit).map_err(ended)?;
        let outcome = check_unit(args, &proof, began)?;
        if let Some(file) = file {
            file.finish(proof.to_json().as_bytes())?;
        }
        return Ok(outcome);
    }
    let previous = args.previous.as_deref().map(|path| previous(args, &log, path)).transpose()?;
    let file = OutputFile::begin_if_given("checkpoint", args.save_checkpoint.as_deref())?;
    let Some(read) = read(&log, previous).map_err(ended)? else {
        let message = "interrupted while the log was read".to_owned();
        return Err(Failure::new(Exit::Interrupted, message));
    };
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let state = &read.state;
    let units = || 0..state.results().units();
    let in_force = |unit| Some((unit, state.results().get(unit)?.thirds));
    let mut sample = Sample::new(args.sample, seed);
    units()
        .filter(|unit| is_one_of(*unit, args.units.as_ref()))
        .filter_map(in_force)
        .for_each(|(unit, thirds)| sample.offer(unit, thirds));
    let offered = sample.offered();
    let (recounted, wrong) = recount(args, state, &sample.into_chosen())?;
    let report = Report::new(&log, &read, (seed, offered, recounted), wrong.as_ref(), began);
    if args.json {
        print(&json_line(&report))?;
    } else if wrong.is_none() {
        let sequence = totals_of(state.job().problem().piece());
        let published = report.published.map(|published| published.sentence(sequence));
        print(&text(args, &report, published.as_deref()))?;
    }
    if let Some((unit, wrong)) = &wrong {
        return Err(wrong_unit(args, *unit, wrong));
    }
    if report.published == Some(Published::Differs) {
        let reason = "the total differs from the published value";
        return Err(failure(&args.source, Exit::CheckFailed, &reason));
    }
    if let Some(file) = file {
        file.finish(log.note.as_bytes())?;
    }
    Ok(Exit::Done)
}

fn previous(args: &Args, log: &OpenLog<'_>, path: &Path) -> Result<Checkpoint, Failure> {
    let note = atomic_file::read_text(path, MOST_CHECKPOINT_BYTES)
        .map_err(|error| failure(path, Exit::File, &error))?;
    Checkpoint::open(&note, &log.key).map_err(|error| {
        let error = AuditError::Checkpoint(path.display().to_string(), error);
        ended(args, &error)
    })
}

/// Reads the whole log; `None` if that was interrupted.
fn read(log: &OpenLog<'_>, previous: Option<Checkpoint>) -> Result<Option<ReadLog>, AuditError> {
    let interrupt = Interrupt::listen();
    let bar = progress_bar();
    bar.set_message("reading the log");
    let all = log.checkpoint.size.max(1);
    let earlier: Vec<Checkpoint> = previous.into_iter().collect();
    let read = log.read(&earlier, |entries| {
        bar.set_position((u128::from(STEPS) * u128::from(entries) / u128::from(all)) as u64);
        !interrupt.is_raised()
    });
    bar.finish_and_clear();
    read
}

/// Recounts units with these sums. Returns the number of recounted ones, and the first wrong one.
fn recount(
    args: &Args,
    state: &LogState,
    sample: &[(u64, u128)],
) -> Result<(u64, Option<(u64, WrongCount)>), Failure> {
    let image = state.decomposition().mirrored();
    recount_with_progress(args, sample.len(), |threads, progress| {
        let check = |unit, stated: &u128| recount_unit(&image, unit, *stated);
        let outcome = recount_sample(sample, threads, check, progress);
        let cannot = |message| Failure::new(Exit::NotAvailable, message);
        let outcome = outcome.map_err(cannot)?;
        Ok::<_, Failure>((outcome.recounted, outcome.wrong))
    })
}

impl Report {
    fn new(
        log: &OpenLog<'_>,
        read: &ReadLog,
        (seed, offered, recounted): (u64, u64, u64),
        wrong: Option<&(u64, WrongCount)>,
        began: Instant,
    ) -> Self {
        let ReadLog { state, earlier, owners } = read;
        let (results, problem) = (state.results(), state.job().problem());
        let finished = state.state() == JobState::Finished;
        let solutions = finished.then(|| results.total() / 3);
        let is_empty = problem.placed().is_empty() && problem.blocked().is_empty();
        let (keys, number_of_owners) = state.signers();
        let (checks, voided) = state.checks();
        let at_most = wrong.is_none().then(|| wrong_units_at_most(offered, recounted));
        let largest = state.largest().div_ceil(3);
        Self {
            format: "log",
            job: state.job().hash().to_string(),
            title: count_title(problem),
            state: state.state(),
            key: log.key.to_string(),
            entries: log.checkpoint.size,
            earlier_checkpoints: *earlier,
            units: results.units(),
            counted: results.counted(),
            signed: state.signed(),
            confirmed: state.confirmed(),
            keys,
            owners: number_of_owners,
            named_owners: owners.iter().map(|(number, name)| format!("{number} {name}")).collect(),
            checks,
            voided,
            thirds: results.total().to_string(),
            solutions: solutions.map(|solutions| solutions.to_string()),
            published: solutions.filter(|_| is_empty).map(|solutions| {
                Published::compare(totals_of(problem.piece()), problem.n(), solutions)
            }),
            seed,
            recounted,
            wrong: wrong.map(|(unit, reason)| Wrong { unit: *unit, reason: reason.to_string() }),
            confidence: CONFIDENCE,
            wrong_units_at_most: at_most,
            error_of_total_below: at_most
                .map(|units| u128::from(units).saturating_mul(largest).to_string()),
            elapsed_s: began.elapsed().as_secs_f64(),
        }
    }
}

/// Returns a line of a report.
fn line(name: &str, value: &dyn Display) -> String {
    format!("  {name:<11} {value}\n")
}

/// Returns a number that JSON has as text, with its digits in groups.
fn number(decimal: &str) -> String {
    decimal.parse().map_or_else(|_| decimal.to_owned(), grouped)
}

/// `published` is the comparison with the published value in words.
fn text(args: &Args, report: &Report, published: Option<&str>) -> String {
    let Report { units, counted: done, recounted, .. } = *report;
    let of_all = |part: u64| format!("{} of {}", grouped(part.into()), grouped(done.into()));
    let source = args.source.display();
    let mut text = format!("{source}: no wrong unit among {}\n", grouped(recounted.into()));
    let mut add = |name, value: &dyn Display| text += &line(name, value);
    add("job", &format!("{}, {}", report.title, report.state.name()));
    let earlier = match report.earlier_checkpoints {
        0 => String::new(),
        1 => ", which has grown from 1 earlier checkpoint".to_owned(),
        count => format!(", which has grown from {} earlier checkpoints", grouped(count.into())),
    };
    let entries = counted(report.entries.into(), "entry");
    add("log", &format!("{entries} with the signed root{earlier}"));
    add("key", &report.key);
    add(
        "units",
        &match units - done {
            0 => format!("{}, each counted once", grouped(units.into())),
            open => format!(
                "{}, of which {} are not counted; no other is counted twice",
                grouped(units.into()),
                grouped(open.into())
            ),
        },
    );
    if let Some(solutions) = &report.solutions {
        let published = published.map_or_else(String::new, |sentence| format!(", {sentence}"));
        add("total", &format!("{} solutions, the sum of the units{published}", number(solutions)));
    } else {
        add("sum", &format!("{} thirds of a solution so far", number(&report.thirds)));
    }
    let (keys, owners) = (report.keys as u128, report.owners as u128);
    let by = format!("{} of {}", counted(keys, "key"), counted(owners, "owner"));
    add("signed", &format!("{} results, by {by}", of_all(report.signed)));
    for owner in &report.named_owners {
        add("", &format!("owner {owner}"));
    }
    add(
        "confirmed",
        &format!(
            "{} units, by another owner or the coordinator; {}, {} taken back",
            of_all(report.confirmed),
            counted(report.checks.into(), "check"),
            counted(report.voided.into(), "result")
        ),
    );
    let sample = counted(recounted.into(), "random unit");
    add("recounted", &format!("{sample} as mirror images, seed {}", report.seed));
    match (report.wrong_units_at_most, &report.error_of_total_below) {
        (Some(0), _) | (None, _) | (_, None) => {
            add("proved", &"each of these units was recounted, and its sum is right");
        }
        (Some(at_most), Some(error)) => {
            let share = 300.0 / recounted.max(1) as f64;
            add(
                "proved",
                &format!(
                    "with 95 % confidence at most {share:.2} % of the units are wrong ({}), and the total is off by \
                 less than {}",
                    grouped(at_most.into()),
                    number(error)
                ),
            );
            add("", &"(if no unit is off by more than the largest one)");
        }
    }
    add("time", &duration(std::time::Duration::from_secs_f64(report.elapsed_s)));
    text
}

/// Audits a unit proof in a file.
pub(super) fn run_unit_proof(args: &Args, path: &Path) -> Result<Exit, Failure> {
    let began = Instant::now();
    let text = atomic_file::read_text(path, MOST_PROOF_BYTES)
        .map_err(|error| failure(path, Exit::File, &error))?;
    let proof: UnitProof = serde_json::from_str(&text).map_err(|_| {
        let reason = "it is neither the folder of a log nor a unit proof; for a database of the project Q27 give \
                      --format q27";
        failure(path, Exit::File, &reason)
    })?;
    check_unit(args, &proof, began)
}

fn check_unit(args: &Args, proof: &UnitProof, began: Instant) -> Result<Exit, Failure> {
    let name = args.source.display().to_string();
    let proved = proof.check(&name, args.key.as_ref()).map_err(|error| ended(args, &error))?;
    let ProvedResult { key, size, state, unit, thirds, by } = &proved;
    let (_, wrong) = recount(args, state, &[(*unit, *thirds)])?;
    let signed = matches!(by, Author::Signer(_));
    let report = UnitReport {
        format: "unit proof",
        job: state.job().hash().to_string(),
        title: count_title(state.job().problem()),
        key: key.to_string(),
        entries: *size,
        unit: *unit,
        thirds: thirds.to_string(),
        signed,
        wrong: wrong.map(|(unit, reason)| Wrong { unit, reason: reason.to_string() }),
        elapsed_s: began.elapsed().as_secs_f64(),
    };
    if args.json {
        print(&json_line(&report))?;
    } else if wrong.is_none() {
        let mut text = format!("{name}: unit {unit} is right\n");
        let mut add = |name, value: &dyn Display| text += &line(name, value);
        add("job", &report.title);
        add(
            "log",
            &format!(
                "{} with the signed root; its entry is there",
                counted((*size).into(), "entry")
            ),
        );
        add("key", &report.key);
        let signed = if signed { "signed by its author" } else { "not signed by its author" };
        add("result", &format!("{} thirds of a solution, {signed}", grouped(*thirds)));
        add("recounted", &"as its mirror image");
        print(&text)?;
    }
    match wrong {
        Some((unit, wrong)) => Err(wrong_unit(args, unit, &wrong)),
        None => Ok(Exit::Done),
    }
}
