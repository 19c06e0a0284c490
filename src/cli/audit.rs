//! `nqueens audit`.

mod log;
mod q27;

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::interrupt::Interrupt;
use super::progress::{STEPS, progress_bar};
use super::{Exit, Failure};
use crate::audit::confidence::SampleSize;
use crate::audit::q27::border;
use crate::report::grouped;
use crate::transparency::checkpoint::LogKey;
use crate::transparency::source::LogSource;

/// Audit a count that others have published: check and add up its units, and recount some of them.
///
/// LOG is the folder or the URL of a log that nqueens publish has written, or a unit proof that was
/// saved from one. Nothing in it is believed: signatures, the tree of hashes, earlier checkpoints,
/// that each unit was counted once, and the total are checked, and random units are counted again
/// as their mirror images. With --format q27 it is the database of the project Q27, which counted
/// n = 27 by the placements of the two outer rows and columns of each side: the binary file, or the
/// text of its command `q27db print`. The exit code is 6 at the first wrong unit, which is named.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder or the URL of a log, a unit proof, or a database.
    #[arg(value_name = "LOG")]
    source: PathBuf,
    /// The format of a database.
    #[arg(long, value_name = "FORMAT", value_parser = ["q27"])]
    format: Option<String>,
    /// The size of the board of a database.
    #[arg(long, value_name = "N", default_value = "27", value_parser = size)]
    size: usize,
    /// The number of random units to recount, or 'all'.
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = sample_size)]
    sample: SampleSize,
    /// The seed of the random choice, to repeat an audit; without it a random one, which is
    /// printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Choose only among these units, A..B, counted from 0 and without B.
    #[arg(long, value_name = "A..B", value_parser = range)]
    units: Option<Range<u64>>,
    /// Audit only this unit of a log, counted from 0, with few files of the log.
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["format", "units", "sample", "seed", "previous", "save_checkpoint"])]
    unit: Option<u64>,
    /// Save the proof that the log has the result of the unit; audit can check it without the log.
    #[arg(long, value_name = "FILE", requires = "unit")]
    save_proof: Option<PathBuf>,
    /// The key that the log must have; without it the key that the log itself states.
    #[arg(long, value_name = "KEY", conflicts_with = "format")]
    key: Option<LogKey>,
    /// The checkpoint of an earlier audit: the log must have grown from it, with the same history.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    previous: Option<PathBuf>,
    /// Save the checkpoint of the log, for --previous of a later audit.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    save_checkpoint: Option<PathBuf>,
    /// The number of threads; by default one for each core.
    #[arg(long, short = 'j')]
    threads: Option<NonZeroUsize>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<usize, String> {
    let sizes = border::SIZES;
    super::args::number(text, "size of a board", *sizes.start(), *sizes.end())
}

fn sample_size(text: &str) -> Result<SampleSize, String> {
    if text == "all" {
        return Ok(SampleSize::All);
    }
    super::args::number(text, "number of units (or 'all')", 1, 100_000_000).map(SampleSize::AtMost)
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let parts = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parts {
        Some((a, b)) if a < b => Ok(a..b),
        _ => Err(format!(
            "invalid range '{text}'; a range of units is A..B with A < B, as in 0..1000"
        )),
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    if args.format.is_some() {
        return q27::run(args);
    }
    let address = args.source.to_str().filter(|address| LogSource::is_url(address));
    match address {
        Some(url) => log::run(args, &LogSource::new(url)),
        None if args.source.is_file() => log::run_unit_proof(args, &args.source),
        None => log::run(args, &LogSource::Folder(args.source.clone())),
    }
}

/// A wrong unit in the output of `--json`.
#[derive(Debug, Serialize)]
struct Wrong {
    unit: u64,
    reason: String,
}

/// Calls `recount` with the number of threads and an observer of the number of recounted units, of
/// which there are `all`. It returns the number of recounted units, and the first wrong one.
fn recount_with_progress<W, E>(
    args: &Args,
    all: usize,
    recount: impl FnOnce(NonZeroUsize, &(dyn Fn(usize) -> bool + Sync)) -> Result<(u64, Option<W>), E>,
) -> Result<(u64, Option<W>), Failure>
where
    Failure: From<E>,
{
    let interrupt = Interrupt::listen();
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let bar = progress_bar();
    bar.set_message("recounting units");
    let all = all.max(1) as u64;
    let outcome = recount(threads, &|done| {
        bar.set_position(STEPS * done as u64 / all);
        !interrupt.is_raised()
    });
    bar.finish_and_clear();
    let (recounted, wrong) = outcome?;
    if wrong.is_none() && interrupt.is_raised() {
        let message =
            format!("interrupted after {} recounts, none of them wrong", grouped(recounted.into()));
        return Err(Failure::new(Exit::Interrupted, message));
    }
    Ok((recounted, wrong))
}

/// Returns the failure of an audit that has found a wrong unit.
fn wrong_unit(args: &Args, unit: u64, reason: &dyn Display) -> Failure {
    failure(&args.source, Exit::CheckFailed, &format!("unit {unit} is wrong: {reason}"))
}

/// Returns the failure of an audit.
fn failure(source: &Path, exit: Exit, reason: &dyn ToString) -> Failure {
    Failure::new(exit, format!("{}: {}", source.display(), reason.to_string()))
}
