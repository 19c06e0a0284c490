//! `nqueens list`.

use std::io::{self, IsTerminal, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;

use super::answer_text::{AnswerText, board_name, is_for_terminal};
use super::args::{DecidedSquares, number};
use super::first::LARGEST;
use super::interrupt::Interrupt;
use super::picture_args::{PictureArgs, PictureFiles};
use super::progress::Ticker;
use super::solution_output::{Format, OutputArgs, draw, from_one, object, refused};
use super::solve::{conflict_reason, fits, fits_cp};
use super::solver::SolverChoice;
use super::stream::Stream;
use super::{Exit, Failure, note, trace};
use crate::board::{Piece, Placement, Problem};
use crate::board_file::MOST_ROWS;
use crate::render::{self, Drawing, MAX_SHEET, Picture};
use crate::report::{counted, duration, grouped};
use crate::solver;
use crate::solver::classical::{self, AnswerSink, Ending};
use crate::solver::cp;
use crate::solver::ilp::Formulation;
use crate::solver::ilp::exclusion::{Exclusion, Next};
use crate::solver::{Unproven, Verdict};
use crate::symmetry::Group;

/// List all solutions, or all completions of a board.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 10 000 000, with at most 1024 rows without a placed piece (1000
    /// for cp); at most 15 for brute-force and 256 for columns. May be omitted with --board.
    #[arg(value_parser = board_size, allow_negative_numbers = true, required_unless_present = "board")]
    n: Option<usize>,
    /// The method: backtracking (in lexicographic order), columns (extends the solutions of k
    /// columns by one column), brute-force (all n^n placements with one piece per row), ilp (0-1
    /// integer programs that exclude the solutions found) or cp (constraint programming).
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "backtracking",
        hide_possible_values = true
    )]
    method: Method,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined). Default: the piece of --board, or queen.
    #[arg(long)]
    piece: Option<Piece>,
    #[command(flatten)]
    squares: DecidedSquares,
    /// List at most K solutions (default: no limit).
    #[arg(long, value_name = "K", value_parser = limit, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// List one solution of each symmetry class, the lexicographically smallest. Only rotations and
    /// reflections that preserve --place and --block count.
    #[arg(long)]
    fundamental: bool,
    /// Show how the method works, for n up to 12. columns: the partial solutions of k columns, all
    /// of them up to n = 6, otherwise their number. backtracking: every step up to n = 8, otherwise
    /// the number of steps in each row.
    #[arg(long, conflicts_with = "fundamental")]
    trace: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    pictures: PictureArgs,
    #[command(flatten)]
    solver: SolverChoice,
    /// Show no progress and no summary.
    #[arg(short, long)]
    quiet: bool,
}

/// The methods that find all solutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    Backtracking,
    Columns,
    BruteForce,
    Ilp,
    Cp,
}

fn board_size(text: &str) -> Result<usize, String> {
    number(text, "board size", 0, MOST_ROWS)
}

fn limit(text: &str) -> Result<usize, String> {
    number(text, "limit", 1, usize::MAX)
}

/// A line of the output of `--json`: a solution.
#[derive(Debug, Serialize)]
struct Line {
    solution: Vec<Option<usize>>,
}

/// The last line of the output of `--json`.
#[derive(Debug, Serialize)]
struct Summary {
    n: usize,
    piece: &'static str,
    method: &'static str,
    /// The number of solutions found. With `--fundamental`, fewer are listed.
    solutions: String,
    listed: String,
    /// True if the list is complete.
    complete: bool,
    tried: String,
    tried_unit: &'static str,
    elapsed_s: f64,
}

/// The end of a run, and its statistics.
#[derive(Debug)]
struct Run {
    method: &'static str,
    /// True if the search was completed.
    complete: bool,
    /// The reason why it was not, if neither a limit nor the reader nor the user ended it.
    unproven: Option<Unproven>,
    tried: u64,
    unit: &'static str,
    elapsed: Duration,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let problem = args.squares.problem(args.piece, args.n, args.output.file())?;
    let format = args.output.format(problem.piece(), problem.n(), true)?;
    if args.trace {
        if let Some(flag) = args.pictures.given() {
            return Err(Failure::usage(format!("--trace draws no boards; omit {flag}")));
        }
        return trace(args, &problem, format);
    }
    let pictures = args.pictures.begin(problem.n(), problem.n())?;
    let mut listing = Listing::begin(&problem, format, args);
    let run = match args.method {
        Method::Backtracking => classical(classical::Method::Backtracking, &problem, &mut listing),
        Method::Columns => classical(classical::Method::Columns, &problem, &mut listing),
        Method::BruteForce => classical(classical::Method::BruteForce, &problem, &mut listing),
        Method::Ilp => by_exclusion(&problem, args, &mut listing),
        Method::Cp => by_constraints(&problem, &mut listing),
    }?;
    let sheet = args.pictures.given().map(|_| Sheet {
        title: listing.sheet_title(),
        placements: std::mem::take(&mut listing.drawn),
    });
    let exit = listing.end(&run);
    match sheet {
        Some(sheet) if !sheet.placements.is_empty() => {
            exit.and_then(|exit| sheet.write(&problem, pictures).map(|()| exit))
        }
        _ => exit,
    }
}

/// The solutions that are drawn into the files of `--svg` and `--png`.
struct Sheet {
    title: String,
    placements: Vec<Placement>,
}

impl Sheet {
    fn write(&self, problem: &Problem, files: PictureFiles<'_>) -> Result<(), Failure> {
        if let [placement] = &self.placements[..] {
            return files.finish(&Picture::of(placement).deciding(problem));
        }
        let boards = self.placements.iter().zip(1..);
        let pictures = boards
            .map(|(board, i)| Picture::of(board).deciding(problem).titled(format!("Solution {i}")));
        files.finish_sheet(&render::Sheet::new(self.title.as_str(), pictures.collect()))
    }
}

/// Prints how the method works, in place of the list.
fn trace(args: &Args, problem: &Problem, format: Format) -> Result<Exit, Failure> {
    if !matches!(format, Format::Json | Format::Drawn(Drawing::Text)) {
        return Err(Failure::usage("--trace prints text or JSON; omit --format and the drawing"));
    }
    let json = format == Format::Json;
    match args.method {
        Method::Columns if args.limit.is_some() => {
            Err(Failure::usage("--trace of columns prints all partial solutions; omit --limit"))
        }
        Method::Columns => trace::columns(problem, json),
        Method::Backtracking => trace::backtracking(problem, args.limit, json),
        _ => Err(Failure::usage("--trace needs --method backtracking or columns")),
    }
}

/// Runs a method of the classical search.
fn classical(
    method: classical::Method,
    problem: &Problem,
    listing: &mut Listing<'_>,
) -> Result<Run, Failure> {
    method.suits(problem).map_err(Failure::usage)?;
    // A list on the terminal has no progress display.
    let ticker = Ticker::start(method.unit(), listing.quiet || io::stdout().is_terminal());
    let mut sink = ListingSink { method: method.name(), ticker, listing };
    let outcome = method.run(problem, &mut sink).map_err(Failure::usage)?;
    Ok(Run {
        method: method.name(),
        complete: outcome.ending == Ending::Exhausted,
        unproven: None,
        tried: outcome.tried,
        unit: method.unit(),
        elapsed: sink.ticker.elapsed(),
    })
}

fn by_exclusion(problem: &Problem, args: &Args, listing: &mut Listing<'_>) -> Result<Run, Failure> {
    fits("ilp", problem, LARGEST)?;
    let solver = args.solver.solver(args.quiet)?;
    let ticker = Ticker::start("nodes", listing.quiet || io::stdout().is_terminal());
    let mut sink = ListingSink { method: "ilp", ticker, listing };
    let mut exclusion = Exclusion::new(problem, Formulation::default(), solver);
    let (complete, unproven) = loop {
        match exclusion.next(&mut sink) {
            Next::Solution(columns) => {
                if sink.listing.take("ilp", &columns).is_break() {
                    break (false, None);
                }
            }
            Next::End(Verdict::Proven) => break (true, None),
            Next::End(Verdict::NotProven(Unproven::Stopped)) => break (false, None),
            Next::End(Verdict::NotProven(unproven)) => break (false, Some(unproven)),
        }
    };
    let (tried, elapsed) = (exclusion.nodes(), sink.ticker.elapsed());
    Ok(Run { method: "ilp", complete, unproven, tried, unit: "nodes", elapsed })
}

fn by_constraints(problem: &Problem, listing: &mut Listing<'_>) -> Result<Run, Failure> {
    fits_cp(problem)?;
    let ticker = Ticker::start("nodes", listing.quiet || io::stdout().is_terminal());
    let mut sink = ListingSink { method: "cp", ticker, listing };
    let mut search = cp::Search::new(problem, cp::Branching::FirstRow);
    let complete = loop {
        match search.next(&mut sink) {
            cp::Event::Solution(columns) => {
                if sink.listing.take("cp", &columns).is_break() {
                    break false;
                }
            }
            cp::Event::Exhausted => break true,
            cp::Event::Stopped => break false,
        }
    };
    let (tried, elapsed) = (search.nodes(), sink.ticker.elapsed());
    Ok(Run { method: "cp", complete, unproven: None, tried, unit: "nodes", elapsed })
}

/// Passes the solutions of a method to the listing.
struct ListingSink<'a, 'b> {
    method: &'static str,
    ticker: Ticker,
    listing: &'a mut Listing<'b>,
}

impl AnswerSink for ListingSink<'_, '_> {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.listing.take(self.method, columns)
    }

    fn report(&mut self, tried: u64) -> ControlFlow<()> {
        let found = self.listing.found;
        self.ticker.show(tried, || format!(", {} valid", grouped(found.into())));
        self.listing.keep_going()
    }
}

impl solver::ProgressSink for ListingSink<'_, '_> {
    fn report(&mut self, progress: &solver::Progress) -> ControlFlow<()> {
        AnswerSink::report(self, progress.nodes)
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}

/// The output: prints each solution when it is found, and stores none.
struct Listing<'a> {
    problem: &'a Problem,
    format: Format,
    /// The symmetries, if only one solution of each orbit is listed.
    orbits: Option<Group>,
    limit: Option<usize>,
    quiet: bool,
    /// The listed solutions that are drawn, if there is a picture.
    drawn: Vec<Placement>,
    draws: bool,
    stream: Stream,
    interrupt: Interrupt,
    found: u64,
    listed: usize,
    refused: Option<Failure>,
}

impl<'a> Listing<'a> {
    fn begin(problem: &'a Problem, format: Format, args: &Args) -> Self {
        Self {
            problem,
            format,
            orbits: args.fundamental.then(|| Group::of(problem)),
            limit: args.limit,
            quiet: args.quiet,
            drawn: Vec::new(),
            draws: args.pictures.given().is_some(),
            stream: Stream::begin(),
            interrupt: Interrupt::listen(),
            found: 0,
            listed: 0,
            refused: None,
        }
    }

    /// Flushes the output if that is due, and returns whether to search on.
    fn keep_going(&mut self) -> ControlFlow<()> {
        self.stream.flush_if_due()?;
        if self.interrupt.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Checks a solution of `method`, the 0-based column of the piece in each row, and prints it.
    fn take(&mut self, method: &str, columns: &[usize]) -> ControlFlow<()> {
        let placement = match Placement::check_solution(self.problem, columns) {
            Ok(placement) => placement,
            Err(error) => {
                self.refused = Some(refused(method, &error));
                return ControlFlow::Break(());
            }
        };
        self.found += 1;
        if self.orbits.is_none_or(|orbits| orbits.is_least(columns)) {
            self.print(&placement)?;
            self.listed += 1;
            if self.draws && self.drawn.len() < MAX_SHEET {
                self.drawn.push(placement);
            }
            if Some(self.listed) == self.limit {
                return ControlFlow::Break(());
            }
        }
        self.keep_going()
    }

    fn print(&mut self, placement: &Placement) -> ControlFlow<()> {
        let drawing = match self.format {
            Format::Json => {
                return object(&mut self.stream, &Line { solution: from_one(placement) });
            }
            Format::Drawn(drawing) => drawing,
        };
        let before = match drawing.header(placement.n()) {
            Some(header) if self.listed == 0 => header + "\n",
            _ if self.listed > 0 => drawing.separator().into(),
            _ => String::new(),
        };
        self.stream.write(|out| out.write_all(before.as_bytes()))?;
        draw(&mut self.stream, drawing, placement)
    }

    /// Returns the title of the picture: "8 queens: 92 solutions, 12 fundamental".
    fn sheet_title(&self) -> String {
        let mut title =
            format!("{}: {}", board_name(self.problem), counted(self.found.into(), "solution"));
        if self.orbits.is_some() {
            title += &format!(", {} fundamental", grouped(self.listed as u128));
        }
        if self.listed > self.drawn.len() {
            title += &format!(", the first {}", self.drawn.len());
        }
        title
    }

    /// Returns the lines about the list for a terminal.
    fn text(&self, run: &Run) -> AnswerText {
        let found = counted(self.found.into(), "solution");
        let proved = match (&run.unproven, run.complete) {
            (Some(unproven), _) => format!("these are solutions, perhaps not all: {unproven}"),
            (None, true) if self.found == 0 => {
                format!("no solution exists{}", conflict_reason(self.problem))
            }
            (None, true) => "these are all solutions".to_owned(),
            (None, false) => "these are solutions; there may be more".to_owned(),
        };
        let fundamental = match self.orbits {
            Some(_) => format!(", {} fundamental", grouped(self.listed as u128)),
            None => String::new(),
        };
        let tried = grouped(run.tried.into());
        let next = match self.orbits {
            Some(_) => "--draw draws the boards, --svg FILE writes a picture of them",
            None => {
                "--draw draws the boards, --fundamental omits images, --svg FILE writes a picture"
            }
        };
        AnswerText::new(format!("{}: {found}{fundamental}", board_name(self.problem)))
            .row("proved", proved)
            .row("method", format!("{}, {tried} {} tried", run.method, run.unit))
            .time(run.elapsed)
            .row("next", next)
    }

    /// Prints the last line, and returns the exit code.
    fn end(mut self, run: &Run) -> Result<Exit, Failure> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        if self.format == Format::Json {
            let _ = object(
                &mut self.stream,
                &Summary {
                    n: self.problem.n(),
                    piece: self.problem.piece().name(),
                    method: run.method,
                    solutions: self.found.to_string(),
                    listed: self.listed.to_string(),
                    complete: run.complete,
                    tried: run.tried.to_string(),
                    tried_unit: run.unit,
                    elapsed_s: run.elapsed.as_secs_f64(),
                },
            );
        }
        let text = is_for_terminal(self.format, self.quiet) && !self.interrupt.is_raised();
        if text {
            let _ = self.text(run).write_alone(&mut self.stream);
        }
        let read_to_the_end = self.stream.finish()?;
        let listed = if self.orbits.is_some() {
            format!(", {} fundamental", grouped(self.listed as u128))
        } else {
            String::new()
        };
        let summary = format!(
            "{}: {} {} tried, {} valid{listed}, {}",
            run.method,
            grouped(run.tried.into()),
            run.unit,
            grouped(self.found.into()),
            duration(run.elapsed)
        );
        if !run.complete && self.interrupt.is_raised() {
            let message = format!("interrupted; {summary}");
            return Err(Failure { exit: Exit::Interrupted, message });
        }
        if text {
            return Ok(match run.complete {
                _ if run.unproven.is_some() => Exit::Unproven,
                true if self.found == 0 => Exit::NoSolution,
                _ => Exit::Done,
            });
        }
        if let Some(unproven) = &run.unproven {
            let message = format!("the list may not be complete: {unproven}; {summary}");
            return Err(Failure { exit: Exit::Unproven, message });
        }
        if run.complete && self.found == 0 {
            let message = format!("no solution exists{}; {summary}", conflict_reason(self.problem));
            return Err(Failure { exit: Exit::NoSolution, message });
        }
        if !self.quiet && read_to_the_end {
            note(&if run.complete {
                summary
            } else {
                format!("{summary}; there may be more solutions")
            });
        }
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_ends_the_list_with_its_own_exit_code() {
        let problem = Problem::empty(Piece::Queen, 4);
        let mut listing = Listing {
            problem: &problem,
            format: Format::Drawn(Drawing::Text),
            orbits: None,
            limit: None,
            quiet: true,
            drawn: Vec::new(),
            draws: false,
            stream: Stream::begin(),
            interrupt: Interrupt::listen(),
            found: 0,
            listed: 0,
            refused: None,
        };
        assert!(listing.take("faulty", &[0, 1, 2, 3]).is_break());
        assert_eq!((listing.found, listing.listed), (0, 0));
        let run = Run {
            method: "faulty",
            complete: true,
            unproven: None,
            tried: 1,
            unit: "nodes",
            elapsed: Duration::ZERO,
        };
        let failure = listing.end(&run).expect_err("two queens on a diagonal");
        assert_eq!(failure.exit, Exit::CheckFailed);
        assert!(
            failure.message.contains("faulty") && failure.message.contains("1,1 and 2,2"),
            "{failure:?}"
        );
    }
}
