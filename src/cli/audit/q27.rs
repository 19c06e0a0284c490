//! Audits of the database of the project Q27.

use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use serde::Serialize;

use super::{Args, Wrong, failure, recount_with_progress, wrong_unit};
use crate::audit::confidence::{CONFIDENCE, wrong_units_at_most};
use crate::audit::q27::recount::recount;
use crate::audit::q27::{Database, DatabaseError, WrongUnit};
use crate::board::Piece;
use crate::cli::{Exit, Failure, json_line, print};
use crate::oeis::totals_of;
use crate::report::{Published, counted, duration, grouped};

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
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

impl From<&WrongUnit> for Wrong {
    fn from(wrong: &WrongUnit) -> Self {
        Self { unit: wrong.unit, reason: wrong.reason.to_string() }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let began = Instant::now();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let file = |error: &dyn ToString| failure(&args.source, Exit::File, error);
    let source = File::open(&args.source).map_err(|error| file(&error))?;
    let database = Database::read(
        BufReader::with_capacity(1 << 20, source),
        args.size,
        args.units.as_ref(),
        (args.sample, seed),
    );
    let database = match database {
        Ok(database) => database,
        Err(DatabaseError::Wrong(wrong)) => {
            return Err(wrong_unit(args, wrong.unit, &wrong.reason));
        }
        Err(error) => return Err(file(&error)),
    };
    if database.counted == 0 {
        return Err(file(&"none of its units has a count"));
    }
    let (recounted, wrong) =
        recount_with_progress(args, database.sample.len(), |threads, progress| {
            recount(database.n, &database.sample, threads, progress)
        })?;
    let complete = database.is_complete();
    let report = Report {
        format: "q27",
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
        print(&json_line(&report))?;
    } else if wrong.is_none() {
        print(&text(args, &database, &report, began))?;
    }
    if let Some(wrong) = &wrong {
        return Err(wrong_unit(args, wrong.unit, &wrong.reason));
    }
    if report.published == Some(Published::Differs) {
        let reason = "the sum differs from the published value";
        return Err(failure(&args.source, Exit::CheckFailed, &reason));
    }
    Ok(Exit::Done)
}

/// Returns the bound of the error of the sum, if no unit is wrong by more than the largest one.
fn error_of_sum(database: &Database, recounted: u64) -> u128 {
    u128::from(wrong_units_at_most(database.counted, recounted)).saturating_mul(database.largest)
}

fn text(args: &Args, database: &Database, report: &Report, began: Instant) -> String {
    let path = args.source.display();
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
