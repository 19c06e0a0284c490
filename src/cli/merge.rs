//! `nqueens merge`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::number;
use super::progress::{STEPS, progress_bar};
use super::{Exit, Failure, json_line, note, print};
use crate::batch::{
    BatchLedgerError, MergedResults, PlanFile, Recounts, ResultFiles, ResultFilesError,
    write_ledger,
};
use crate::cluster::coordinator::ledger_file;
use crate::oeis::totals_of;
use crate::report::{Published, counted, grouped};

/// Merge the counted parts of a plan into the total.
///
/// Checks that no part is missing and that no two contradict each other. Changes no file of the
/// results.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan file.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// The directory of the results, or their URL in object storage.
    #[arg(value_name = "DIR|URL")]
    results: PathBuf,
    /// Recount this many random units on this machine as mirror images, and compare. This happens
    /// only if no part is missing or contradictory.
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = recounts, allow_negative_numbers = true)]
    recount: usize,
    /// Also write the results as the ledger of this directory, which nqueens ledger and nqueens
    /// publish read. All parts must be signed: see nqueens run-unit --key.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

fn recounts(text: &str) -> Result<usize, String> {
    number(text, "number of units", 0, 1_000_000)
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    job: String,
    n: usize,
    piece: &'static str,
    parts: u64,
    /// The parts with missing units.
    missing_parts: Vec<u64>,
    units: u64,
    units_done: u64,
    /// The total, if no unit is missing and nothing contradicts.
    solutions: Option<String>,
    published: Option<Published>,
    nodes: Option<String>,
    recounted: usize,
    /// The units that differ from their mirror images.
    differ: Vec<u64>,
    /// The files that contradict another file or belong to another job.
    conflicts: Vec<String>,
    /// The ledger, with `--data`, if there is a total.
    ledger: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let files = ResultFiles::open(&args.results).map_err(unusable)?;
    merge(args, &files).map_err(|failure| failure.map_message(|message| files.with_urls(message)))
}

fn merge(args: &Args, files: &ResultFiles) -> Result<Exit, Failure> {
    // Before hours of reading and recounting.
    args.data.as_deref().map(must_have_no_ledger).transpose()?;
    let plan = PlanFile::read(&args.plan)?;
    get_results(files, args.data.is_some())?;
    let merged = MergedResults::read(&plan, files.folder())?;
    let problem = plan.job().problem();
    let (parts, units) = (plan.parts().get(), plan.decomposition().units());
    for (path, why) in &merged.conflicts {
        note(&format!("{}: {why}", files.shown(path)));
    }
    let whole = merged.gaps.is_empty() && merged.conflicts.is_empty();
    let recounts = match whole && args.recount > 0 {
        true => recount(&plan, &merged, args.recount)?,
        false => Recounts::default(),
    };
    let differ = &recounts.differ;
    for unit in differ {
        note(&format!("unit {unit} and its mirror image differ: one of the two counts is wrong"));
    }
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::CheckFailed, error);
    let sound = whole && differ.is_empty();
    let total = if sound { Some(merged.total().map_err(|error| failed(&error))?) } else { None };
    let solutions =
        total.map(|total| total.solutions().map_err(|error| failed(&error))).transpose()?;
    let published = solutions
        .filter(|_| problem.is_empty())
        .map(|solutions| Published::compare(totals_of(problem.piece()), problem.n(), solutions));
    let recounted = recounts.agree.len() + differ.len();
    let has_ledger = solutions.is_some() && published != Some(Published::Differs);
    let ledger = args.data.as_deref().filter(|_| has_ledger);
    let ledger = ledger.map(|data| write(&plan, &merged, &recounts, data)).transpose()?;
    if args.json {
        let report = Report {
            job: plan.job().hash().to_string(),
            n: problem.n(),
            piece: problem.piece().name(),
            parts,
            missing_parts: merged.gaps.keys().copied().collect(),
            units,
            units_done: merged.done(),
            solutions: solutions.map(|solutions| solutions.to_string()),
            published,
            nodes: total.map(|total| total.nodes().to_string()),
            recounted,
            differ: differ.clone(),
            conflicts: merged.conflicts.iter().map(|(path, _)| files.shown(path)).collect(),
            ledger: ledger.as_ref().map(|path| path.display().to_string()),
        };
        print(&json_line(&report))?;
    } else if let Some(solutions) = solutions {
        let sentence = published.map(|p| format!(", {}", p.sentence(totals_of(problem.piece()))));
        let mut text = format!("{}: {}\n", plan.title(), counted(solutions, "solution"));
        text += &format!("  digits   {solutions}{}\n", sentence.unwrap_or_default());
        text += &format!(
            "  checks   {} in {}, none missing, residues agree{}\n",
            counted(units.into(), "unit"),
            counted(parts.into(), "part"),
            if recounted > 0 {
                format!(", {recounted} recounted as mirror images")
            } else {
                String::new()
            },
        );
        if let Some(path) = &ledger {
            text += &format!("  ledger   {}\n", path.display());
        }
        print(&text)?;
    }
    if !merged.conflicts.is_empty() || !differ.is_empty() {
        return Err(failed(&"no total: counts contradict each other; see the lines above"));
    }
    if published == Some(Published::Differs) {
        return Err(failed(&"the total differs from the published value, so one of them is wrong"));
    }
    if !merged.gaps.is_empty() {
        return Err(Failure::new(Exit::CheckFailed, gaps(&merged, units)));
    }
    Ok(Exit::Done)
}

/// Copies the results from object storage. Does nothing for a directory.
fn get_results(files: &ResultFiles, signed: bool) -> Result<(), Failure> {
    let bar = progress_bar();
    bar.set_message("reading results");
    let step = |done: usize, all: usize| bar.set_position(STEPS * done as u64 / all as u64);
    let got = files.get_results(signed, step);
    bar.finish_and_clear();
    got.map_err(unusable)
}

fn unusable(error: ResultFilesError) -> Failure {
    Failure::new(Exit::File, error)
}

/// Returns the missing parts as array indices.
fn gaps(merged: &MergedResults, units: u64) -> String {
    /// The maximum number of parts that are named.
    const MOST: usize = 12;
    let shown: Vec<String> = merged.gaps.keys().take(MOST).map(u64::to_string).collect();
    let more = if merged.gaps.len() > MOST { ",…" } else { "" };
    format!(
        "{} of {} missing, in {}: {}{more}; run these parts again, then merge again",
        grouped((units - merged.done()).into()),
        counted(units.into(), "unit"),
        counted(merged.gaps.len() as u128, "part"),
        shown.join(","),
    )
}

/// Returns an error if a directory has a ledger already.
fn must_have_no_ledger(data: &Path) -> Result<(), Failure> {
    let path = ledger_file(data);
    if path.exists() {
        let message = format!("{} exists; choose another --data", path.display());
        return Err(Failure::new(Exit::File, message));
    }
    Ok(())
}

/// Writes the ledger of a directory, which must not have one. Returns its path.
fn write(
    plan: &PlanFile,
    merged: &MergedResults,
    recounts: &Recounts,
    data: &Path,
) -> Result<PathBuf, Failure> {
    let failed = |message: String| Failure::new(Exit::File, message);
    must_have_no_ledger(data)?;
    let path = ledger_file(data);
    fs::create_dir_all(data)
        .map_err(|error| failed(format!("{} cannot be created: {error}", data.display())))?;
    let now_ms = jiff::Timestamp::now().as_millisecond().max(0).cast_unsigned();
    if let Err(error) = write_ledger(plan, merged, recounts, &path, now_ms) {
        // Nothing is left half-written.
        for ending in ["", "-wal", "-shm", ".lock"] {
            let _ = fs::remove_file(format!("{}{ending}", path.display()));
        }
        return Err(match error {
            BatchLedgerError::Ledger(error) => error.into(),
            BatchLedgerError::Unsigned(..) => Failure::new(Exit::CheckFailed, error),
            BatchLedgerError::Signature(_) | BatchLedgerError::Result(_) => {
                failed(error.to_string())
            }
        });
    }
    Ok(path)
}

fn recount(plan: &PlanFile, merged: &MergedResults, some: usize) -> Result<Recounts, Failure> {
    let units = plan.decomposition().units();
    let some = some.min(usize::try_from(units).unwrap_or(usize::MAX));
    let mut chosen: Vec<u64> = (0..units).collect();
    fastrand::shuffle(&mut chosen);
    chosen.truncate(some);
    let bar = progress_bar();
    bar.set_message("recounting mirror images");
    let step = |done: usize| bar.set_position(STEPS * done as u64 / some.max(1) as u64);
    let recounts = merged.recount(plan, &chosen, step);
    bar.finish_and_clear();
    recounts.map_err(|error| Failure::new(Exit::CheckFailed, error))
}
