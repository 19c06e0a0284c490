//! `nqueens list`.

mod listing;

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;

use self::listing::{Listing, Run};
use super::args::{DecidedSquares, number};
use super::first::LARGEST;
use super::picture_args::{PictureArgs, PictureFiles};
use super::progress::Ticker;
use super::solution_output::{Format, OutputArgs};
use super::solve::{fits, fits_cp};
use super::solver::SolverChoice;
use super::{Exit, Failure, trace};
use crate::board::{Piece, Placement, Problem};
use crate::board_file::MOST_ROWS;
use crate::render::{Drawing, Picture, Sheet};
use crate::report::grouped;
use crate::solver;
use crate::solver::classical::{self, AnswerSink, Ending};
use crate::solver::cp;
use crate::solver::ilp::Formulation;
use crate::solver::ilp::exclusion::{Exclusion, Next};
use crate::solver::{Unproven, Verdict};

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
    let (title, drawn) = (listing.sheet_title(), std::mem::take(&mut listing.drawn));
    let exit = listing.end(&run)?;
    draw(&problem, title, &drawn, pictures)?;
    Ok(exit)
}

/// Draws solutions into the files of `--svg` and `--png`. Without any, no file appears.
fn draw(
    problem: &Problem,
    title: String,
    solutions: &[Placement],
    files: PictureFiles<'_>,
) -> Result<(), Failure> {
    let picture = |board| Picture::of(board).deciding(problem);
    match solutions {
        [] => Ok(()),
        [board] => files.finish(&picture(board)),
        boards => {
            let boards = boards.iter().zip(1..);
            let pictures = boards.map(|(board, i)| picture(board).titled(format!("Solution {i}")));
            let sheet = Sheet::new(title, pictures.collect());
            files.finish_with(|format, out| sheet.write(format, out))
        }
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
}
