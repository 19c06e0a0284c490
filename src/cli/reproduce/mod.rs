//! `nqueens reproduce`.

mod computation;
mod published;
mod row;
mod source;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use serde::Serialize;

use self::computation::Abort;
use self::row::{Row, Verdict, Widths};
use self::source::{Source, Table};
use super::args::ThreadsArg;
use super::bench::aligned;
use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::{Exit, Failure, note, print, print_report};
use crate::report::{counted, grouped, predicted};
use crate::solver::ProgressSink as _;

/// Compute published values again, and print both, with ✓ or the difference.
///
/// Without SOURCE, lists the sources. The exit code is 6 if a value differs.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The source: fischetti-salvagnin, oeis or textbook.
    #[arg(value_name = "SOURCE")]
    source: Option<Source>,
    /// Compare only what takes less than half a minute on two cores.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    threads: ThreadsArg,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress and no forecast.
    #[arg(short, long)]
    quiet: bool,
}

/// The output of `--json` without a source.
#[derive(Debug, Serialize)]
struct List {
    sources: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    source: &'static str,
    publication: &'static str,
    comparisons: usize,
    quick_comparisons: usize,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    source: &'static str,
    publication: &'static str,
    quick: bool,
    /// True if all comparisons were made.
    complete: bool,
    comparisons: usize,
    equal: usize,
    elapsed_s: f64,
    tables: Vec<ReportTable>,
}

#[derive(Debug, Serialize)]
struct ReportTable {
    title: String,
    rows: Vec<Row>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let Some(source) = args.source else { return list(args.json) };
    let tables = source.tables(args.quick);
    let comparisons = count(&tables);
    if !args.quiet {
        note(&forecast(source, args.quick, comparisons));
    }
    let began = Instant::now();
    let (done, abort) = compare(args, tables)?;
    let (made, outcome) = (count_rows(&done), Outcome::of(&done));
    let report = Report {
        source: source.name(),
        publication: source.publication(),
        quick: args.quick,
        complete: made == comparisons,
        comparisons: made,
        equal: outcome.equal,
        elapsed_s: began.elapsed().as_secs_f64(),
        tables: done,
    };
    print_report(args.json, &report, || {
        format!("{} of {} equal\n", outcome.equal, counted(made as u128, "value"))
    })?;
    outcome.exit(abort, comparisons)
}

/// Prints the sources.
fn list(json: bool) -> Result<Exit, Failure> {
    let listed = |source: Source| Listed {
        source: source.name(),
        publication: source.publication(),
        comparisons: count(&source.tables(false)),
        quick_comparisons: count(&source.tables(true)),
    };
    let list = List { sources: Source::ALL.into_iter().map(listed).collect() };
    print_report(json, &list, || {
        let mut rows = vec![["source", "values", "--quick", "publication"].map(str::to_owned)];
        rows.extend(list.sources.iter().map(|of| {
            let [all, quick] = [of.comparisons, of.quick_comparisons].map(|n| grouped(n as u128));
            [of.source.to_owned(), all, quick, of.publication.to_owned()]
        }));
        aligned(&rows).join("\n") + "\n"
    })?;
    Ok(Exit::Done)
}

fn count(tables: &[Table]) -> usize {
    tables.iter().map(|table| table.comparisons.len()).sum()
}

fn count_rows(tables: &[ReportTable]) -> usize {
    tables.iter().map(|table| table.rows.len()).sum()
}

/// Returns how much there is to compare.
fn forecast(source: Source, quick: bool, comparisons: usize) -> String {
    let took = |quick| predicted(Duration::from_secs_f64(source.measured_s(quick)));
    let values = counted(comparisons as u128, "value");
    let mut text = format!("{source}: {values}, about {} on two cores", took(quick));
    if !quick {
        text += &format!("; --quick takes about {}", took(true));
    }
    text
}

/// Makes the comparisons in order, and prints each row at once unless the output is JSON. Returns
/// the rows, and the reason if it ended early.
fn compare(args: &Args, tables: Vec<Table>) -> Result<(Vec<ReportTable>, Option<Abort>), Failure> {
    let interrupt = Interrupt::listen();
    let mut done = Vec::new();
    for Table { title, comparisons } in tables {
        let widths =
            Widths::of(comparisons.iter().map(|of| (of.n, &of.published, of.computation.method())));
        if !args.json {
            print(&format!("{title}\n{}", widths.head()))?;
        }
        let mut table = ReportTable { title, rows: Vec::new() };
        for of in &comparisons {
            let method = of.computation.method();
            let mut terminal = Terminal::new("level", None, args.quiet);
            terminal.describe(&|| format!("{}, n = {}, {method}", table.title.trim(), of.n));
            let ours = if interrupt.is_raised() {
                Err(Abort::Interrupted)
            } else {
                of.computation.run(of.n, args.threads.given(), &mut terminal)
            };
            terminal.finish();
            match ours {
                Ok(ours) => {
                    let row = Row::new(of.n, &of.published, &ours, method, terminal.elapsed());
                    if !args.json {
                        print(&row.line(widths))?;
                    }
                    table.rows.push(row);
                }
                Err(abort) => {
                    done.push(table);
                    return Ok((done, Some(abort)));
                }
            }
        }
        if !args.json {
            print("\n")?;
        }
        done.push(table);
    }
    Ok((done, None))
}

/// The number of rows by their verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    equal: usize,
    differ: usize,
    unproven: usize,
}

impl Outcome {
    fn of(tables: &[ReportTable]) -> Self {
        let mut outcome = Self::default();
        for row in tables.iter().flat_map(|table| &table.rows) {
            match row.verdict {
                Verdict::Equal => outcome.equal += 1,
                Verdict::Differs(_) => outcome.differ += 1,
                Verdict::Unproven => outcome.unproven += 1,
            }
        }
        outcome
    }

    /// Returns the end of the command. A difference weighs more than an interruption.
    fn exit(self, abort: Option<Abort>, comparisons: usize) -> Result<Exit, Failure> {
        let Self { equal, differ, unproven } = self;
        let made = equal + differ + unproven;
        let fail = |exit, message| Err(Failure::new(exit, message));
        match abort {
            Some(Abort::Failed(failure)) => Err(failure),
            _ if differ > 0 => fail(
                Exit::CheckFailed,
                format!(
                    "{differ} of {} differ from ours",
                    counted(made as u128, "published value")
                ),
            ),
            Some(Abort::Interrupted) => fail(
                Exit::Interrupted,
                format!("interrupted after {made} of {}", counted(comparisons as u128, "value")),
            ),
            None if unproven > 0 => fail(
                Exit::Unproven,
                format!("{unproven} of {} are not proven", counted(made as u128, "value")),
            ),
            None => Ok(Exit::Done),
        }
    }
}
