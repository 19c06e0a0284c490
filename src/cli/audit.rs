//! `nqueens audit`.

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::interrupt::Interrupt;
use super::progress::{STEPS, progress_bar};
use super::{Exit, Failure, print};
use crate::audit::confidence::{CONFIDENCE, SampleSize, wrong_units_at_most};
use crate::audit::q27::recount::recount;
use crate::audit::q27::{Database, DatabaseError, WrongUnit, border};
use crate::board::Piece;
use crate::oeis::totals_of;
use crate::report::{Published, counted, duration, grouped};

/// Audit a count that others have published: check and add up its units, and recount some of them.
///
/// The exit code is 6 at the first wrong unit, which is named. FORMAT q27 is the database of the
/// project Q27, which counted n = 27 by the placements of the two outer rows and columns of each
/// side: the binary file, or the text of its command `q27db print`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The database.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The format of the database.
    #[arg(long, value_name = "FORMAT", value_parser = ["q27"])]
    format: String,
    /// The size of the board.
    #[arg(long, value_name = "N", default_value = "27", value_parser = size)]
    size: usize,
    /// The number of random units to recount, or 'all'.
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = sample_size)]
    sample: SampleSize,
    /// The seed of the random choice, to repeat an audit; without it a random one, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Choose only among these units, A..B, counted from 0 and without B.
    #[arg(long, value_name = "A..B", value_parser = range)]
    units: Option<Range<u64>>,
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

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    format: String,
    n: usize,
    /// The units of the database, and those with a count among them (within `--units`).
    units: u64,
    counted: u64,
    /// The sum over the counted units, each times its images.
    sum: String,
    /// True if the sum is of all borders, so that it is the number of all solutions.
    complete: bool,
    published: Option<Published>,
    seed: u64,
    recounted: u64,
    wrong: Option<Wrong>,
    confidence: f64,
    /// The bounds of the wrong units and of the error of the sum, if no unit is wrong.
    wrong_units_at_most: Option<u64>,
    error_of_sum_below: Option<String>,
    elapsed_s: f64,
}

/// A wrong unit in the output of `--json`.
#[derive(Debug, Serialize)]
struct Wrong {
    unit: u64,
    reason: String,
}

impl From<&WrongUnit> for Wrong {
    fn from(wrong: &WrongUnit) -> Self {
        Self { unit: wrong.unit, reason: wrong.reason.to_string() }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let began = Instant::now();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let path = args.file.display();
    let file = |error: &dyn ToString| Failure {
        exit: Exit::File,
        message: format!("{path}: {}", error.to_string()),
    };
    let source = File::open(&args.file).map_err(|error| file(&error))?;
    let database = Database::read(
        BufReader::with_capacity(1 << 20, source),
        args.size,
        args.units.as_ref(),
        (args.sample, seed),
    );
    let database = match database {
        Ok(database) => database,
        Err(DatabaseError::Wrong(wrong)) => return Err(failure(args, &wrong)),
        Err(error) => return Err(file(&error)),
    };
    if database.counted == 0 {
        return Err(file(&"none of its units has a count"));
    }
    let (recounted, wrong) = recount_sample(args, &database)?;
    let complete = database.is_complete();
    let report = Report {
        format: args.format.clone(),
        n: database.n,
        units: database.units,
        counted: database.counted,
        sum: database.solutions.to_string(),
        complete,
        published: complete
            .then(|| Published::compare(totals_of(Piece::Queen), database.n, database.solutions)),
        seed,
        recounted,
        wrong: wrong.as_ref().map(Wrong::from),
        confidence: CONFIDENCE,
        wrong_units_at_most: wrong
            .is_none()
            .then(|| wrong_units_at_most(database.counted, recounted)),
        error_of_sum_below: wrong.is_none().then(|| error_of_sum(&database, recounted).to_string()),
        elapsed_s: began.elapsed().as_secs_f64(),
    };
    if args.json {
        print(&(serde_json::to_string(&report).expect("numbers and strings serialise") + "\n"))?;
    } else if wrong.is_none() {
        print(&text(args, &database, &report, began))?;
    }
    if let Some(wrong) = &wrong {
        return Err(failure(args, wrong));
    }
    if report.published == Some(Published::Differs) {
        let message = format!("{path}: the sum differs from the published value");
        return Err(Failure { exit: Exit::CheckFailed, message });
    }
    Ok(Exit::Done)
}

fn failure(args: &Args, wrong: &WrongUnit) -> Failure {
    let (path, WrongUnit { unit, reason }) = (args.file.display(), wrong);
    Failure { exit: Exit::CheckFailed, message: format!("{path}: unit {unit} is wrong: {reason}") }
}

/// Recounts the sample. Returns the number of recounted units, and the first wrong one.
fn recount_sample(args: &Args, database: &Database) -> Result<(u64, Option<WrongUnit>), Failure> {
    let interrupt = Interrupt::listen();
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let bar = progress_bar();
    bar.set_message("recounting units");
    let all = database.sample.len().max(1) as u64;
    let outcome = recount(database.n, &database.sample, threads, |done| {
        bar.set_position(STEPS * done as u64 / all);
        !interrupt.is_raised()
    });
    bar.finish_and_clear();
    let (recounted, wrong) = outcome?;
    if wrong.is_none() && interrupt.is_raised() {
        let message =
            format!("interrupted after {} recounts, none of them wrong", grouped(recounted.into()));
        return Err(Failure { exit: Exit::Interrupted, message });
    }
    Ok((recounted, wrong))
}

/// Returns the bound of the error of the sum, if no unit is wrong by more than the largest one.
fn error_of_sum(database: &Database, recounted: u64) -> u128 {
    u128::from(wrong_units_at_most(database.counted, recounted)).saturating_mul(database.largest)
}

fn text(args: &Args, database: &Database, report: &Report, began: Instant) -> String {
    let path = args.file.display();
    let recounted = report.recounted;
    let mut lines = vec![format!("{path}: no wrong unit among {}", grouped(recounted.into()))];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
    let open = match (database.units - database.counted, &args.units) {
        (0, _) => "all of them counted".to_owned(),
        (_, Some(units)) => {
            format!(
                "{} of {}..{} counted",
                grouped(database.counted.into()),
                units.start,
                units.end
            )
        }
        (open, None) => format!("{} of them not counted", grouped(open.into())),
    };
    line("units", format!("{}, {open}", grouped(database.units.into())));
    line("borders", "valid, canonical, each there once; checksums and remainders agree".into());
    let total = totals_of(Piece::Queen);
    let sum = match report.published {
        Some(published) => format!("all solutions, {}", published.sentence(total)),
        None => "borders are missing, so this is not the number of all solutions".into(),
    };
    line("sum", format!("{}, {sum}", grouped(database.solutions)));
    line(
        "recounted",
        format!("{}, seed {}", counted(recounted.into(), "random unit"), report.seed),
    );
    let at_most = wrong_units_at_most(database.counted, recounted);
    if at_most == 0 {
        line("proved", "each counted unit was recounted, and its count is right".into());
    } else {
        let share = 300.0 / recounted as f64;
        line(
            "proved",
            format!(
                "with 95 % confidence at most {share:.2} % of the units are wrong ({}), and the sum is off by less than {}",
                grouped(at_most.into()),
                grouped(error_of_sum(database, recounted)),
            ),
        );
        line("", "(if no unit is off by more than the largest one)".into());
    }
    line("time", duration(began.elapsed()));
    lines.join("\n") + "\n"
}
