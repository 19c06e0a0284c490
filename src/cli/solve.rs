//! `nqueens solve`.

mod output;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{DecidedSquares, first_given, number, reject};
use super::first::LARGEST;
use super::ilp;
use super::interrupt::Interrupt;
use super::output_file::OutputFile;
use super::picture_args::PictureArgs;
use super::progress::Ticker;
use super::solution_output::{OutputArgs, refused};
use super::terminal::{Terminal, time_limit};
use super::{Exit, Failure, note};
use crate::board::conflict_graph::{MAX_GRAPH_SIZE, write_dimacs};
use crate::board::{Piece, Placement, Problem};
use crate::report::grouped;
use crate::solver::classical::{self, AnswerSink, Ending};
use crate::solver::cp;
use crate::solver::{DefaultMethods, FirstAttempt, Unproven, Verdict};

/// Find one solution, or one completion of a board.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 10 000 000. May be omitted with --board.
    #[arg(value_parser = board_size, allow_negative_numbers = true, required_unless_present = "board")]
    n: Option<usize>,
    /// The method: formula (empty boards), backtracking (the lexicographically first solution),
    /// local-search (min-conflicts), ilp (a 0-1 integer program) or cp (constraint programming).
    /// Default: ilp if one of its options is given; formula for an empty board; otherwise
    /// backtracking up to 24 rows without a placed queen and local-search above, each for less than
    /// a second, and then cp until it has decided the board. Boards of rooks are solved by cp, and
    /// those of superqueens by backtracking.
    #[arg(long, value_name = "METHOD", hide_possible_values = true)]
    method: Option<Method>,
    #[command(flatten)]
    squares: DecidedSquares,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined). Default: the piece of --board, or queen.
    #[arg(long)]
    piece: Option<Piece>,
    /// The seed of the random numbers of local-search (default: 1).
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// The number of moves after which local-search gives up (default: 1 000 000).
    #[arg(long, value_name = "MOVES")]
    moves: Option<u64>,
    /// Write the conflict graph of the board to FILE (DIMACS), for independent-set solvers.
    #[arg(long, value_name = "FILE")]
    write_graph: Option<PathBuf>,
    /// Stop after this time, with exit code 4: a number and s, m, h or d.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    pictures: PictureArgs,
    /// Show no progress and no summary.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    ilp_options: ilp::Options,
}

/// The methods that find one solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    Formula,
    Backtracking,
    LocalSearch,
    Ilp,
    Cp,
}

fn board_size(text: &str) -> Result<usize, String> {
    number(text, "board size", 0, 10_000_000)
}

/// The result of a method, and its statistics.
#[derive(Debug)]
struct Run {
    method: &'static str,
    found: Found,
    seed: Option<u64>,
    tried: u64,
    unit: &'static str,
    elapsed: Duration,
    /// The result of the 0-1 integer program.
    ilp_outcome: Option<ilp::Outcome>,
}

/// The result to print. All placements have passed the checker.
#[derive(Debug)]
enum Found {
    Solution(Placement),
    /// Proven: no solution exists.
    None,
    /// The method gave up; with the largest placement that it found.
    GaveUp(Option<Placement>),
    /// Not proven, for this reason; with the best placement that was found.
    NotProven(Option<Placement>, Unproven),
    Interrupted(Option<Placement>),
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let problem = args.squares.problem(args.piece, args.n, args.output.file())?;
    let format = args.output.format(problem.piece(), problem.n(), false)?;
    let option = args.ilp_options.given();
    let method = args.method.or(option.map(|_| Method::Ilp));
    if method != Some(Method::Ilp) {
        reject(option, "needs --method ilp")?;
    }
    if method != Some(Method::LocalSearch) {
        let given =
            first_given([("--seed", args.seed.is_some()), ("--moves", args.moves.is_some())]);
        reject(given, "needs --method local-search")?;
    }
    let seed = args.seed.unwrap_or(1);
    let moves = args.moves.unwrap_or(classical::Method::USUAL_MOVES);
    let interrupt = Interrupt::listen();
    let pictures = args.pictures.begin(problem.n(), problem.n())?;
    if let Some(path) = &args.write_graph {
        write_graph(&problem, path)?;
    }
    let limits = Limits { time: args.time_limit, tried: u64::MAX, interrupt, quiet: args.quiet };
    let classical = |method| classical(method, &problem, &limits);
    let run = match method {
        Some(Method::Formula) => classical(classical::Method::Formula),
        Some(Method::Backtracking) => classical(classical::Method::Backtracking),
        Some(Method::LocalSearch) => classical(classical::Method::LocalSearch { seed, moves }),
        Some(Method::Ilp) => by_ilp(args, &problem),
        Some(Method::Cp) => by_cp(&problem, args.time_limit, args.quiet),
        None => by_default(&problem, &limits),
    }?;
    output::show(&run, format, &problem, pictures, args)
}

/// Solves the board by the methods that are chosen by default: one that is usually fast and, if
/// that does not decide the board, constraint programming.
fn by_default(problem: &Problem, limits: &Limits) -> Result<Run, Failure> {
    let DefaultMethods { first, then_cp } = DefaultMethods::of(problem);
    let run = match first {
        FirstAttempt::Cp => return by_cp(problem, limits.time, limits.quiet),
        FirstAttempt::Classical(method, tried) => {
            classical(method, problem, &Limits { tried, ..limits.clone() })?
        }
    };
    if !matches!(run.found, Found::GaveUp(_)) || !then_cp {
        return Ok(run);
    }
    if !limits.quiet {
        let tried = grouped(run.tried.into());
        note(&format!("{}: undecided after {tried} {}; cp goes on", run.method, run.unit));
    }
    let left = limits.time.map(|limit| limit.saturating_sub(run.elapsed));
    let mut decided = by_cp(problem, left, limits.quiet)?;
    decided.elapsed += run.elapsed;
    if let (Found::NotProven(best, _) | Found::Interrupted(best), Found::GaveUp(earlier)) =
        (&mut decided.found, run.found)
    {
        *best = earlier;
    }
    Ok(decided)
}

/// Limits of a classical method.
#[derive(Clone)]
struct Limits {
    time: Option<Duration>,
    /// The number of nodes, moves or configurations.
    tried: u64,
    interrupt: Interrupt,
    quiet: bool,
}

/// Runs a method of the classical search.
fn classical(
    method: classical::Method,
    problem: &Problem,
    limits: &Limits,
) -> Result<Run, Failure> {
    method.suits(problem).map_err(Failure::usage)?;
    let ticker = Ticker::start(method.unit(), limits.quiet);
    let mut sink = FirstSolution { ticker, limits: limits.clone(), columns: None };
    let outcome = method.run(problem, &mut sink).map_err(Failure::usage)?;
    let elapsed = sink.ticker.elapsed();
    let checked =
        |result: Result<Placement, _>| result.map_err(|error| refused(method.name(), &error));
    let best =
        || outcome.best.as_ref().map(|best| checked(Placement::check(problem, best))).transpose();
    let found = match (sink.columns, outcome.ending) {
        (Some(columns), _) => {
            Found::Solution(checked(Placement::check_solution(problem, &columns))?)
        }
        (None, Ending::Exhausted) => Found::None,
        (None, Ending::GaveUp) => Found::GaveUp(best()?),
        (None, Ending::Stopped) if limits.interrupt.is_raised() => Found::Interrupted(best()?),
        (None, Ending::Stopped) if outcome.tried >= limits.tried => Found::GaveUp(best()?),
        (None, Ending::Stopped) => Found::NotProven(best()?, Unproven::Stopped),
    };
    let seed = match method {
        classical::Method::LocalSearch { seed, .. } => Some(seed),
        _ => None,
    };
    let (method, unit) = (method.name(), method.unit());
    Ok(Run { method, found, seed, tried: outcome.tried, unit, elapsed, ilp_outcome: None })
}

/// Checks that a method supports the board: its size and its piece.
pub(super) fn fits(method: &str, problem: &Problem, largest: usize) -> Result<(), Failure> {
    if problem.n() > largest {
        return Err(Failure::usage(format!(
            "{method} supports boards up to n = {largest}; choose another method"
        )));
    }
    if !matches!(problem.piece(), Piece::Queen | Piece::Rook) {
        return Err(Failure::usage(format!(
            "{method} supports only queens and rooks; choose another method"
        )));
    }
    Ok(())
}

fn by_ilp(args: &Args, problem: &Problem) -> Result<Run, Failure> {
    fits("ilp", problem, LARGEST)?;
    let terminal = Terminal::new("solutions", args.time_limit, args.quiet);
    let mut terminal = terminal.with_log(args.ilp_options.log());
    let outcome = ilp::solve(&args.ilp_options, problem, &mut terminal, args.quiet);
    terminal.finish();
    let outcome = outcome?;
    let check = |columns: &Vec<Option<usize>>| Placement::check(problem, columns);
    let found =
        outcome.found.as_ref().map(check).transpose().map_err(|error| refused("ilp", &error))?;
    let found = match (&outcome.verdict, found) {
        (Verdict::Proven, Some(found)) => Found::Solution(found),
        (Verdict::Proven, None) => Found::None,
        (Verdict::NotProven(_), found) if terminal.is_interrupted() => Found::Interrupted(found),
        (Verdict::NotProven(doubt), found) => Found::NotProven(found, doubt.clone()),
    };
    let (elapsed, tried) = (terminal.elapsed(), outcome.nodes);
    Ok(Run {
        method: "ilp",
        found,
        seed: None,
        tried,
        unit: "nodes",
        elapsed,
        ilp_outcome: Some(outcome),
    })
}

/// Checks that cp supports the board: its open rows and its piece.
pub(super) fn fits_cp(problem: &Problem) -> Result<(), Failure> {
    if !cp::suits(problem) {
        return Err(Failure::usage(format!(
            "cp supports up to {} rows without a placed piece; choose another method",
            cp::MOST_OPEN_ROWS
        )));
    }
    fits("cp", problem, usize::MAX)
}

fn by_cp(problem: &Problem, limit: Option<Duration>, quiet: bool) -> Result<Run, Failure> {
    fits_cp(problem)?;
    let mut terminal = Terminal::new("rows", limit, quiet);
    let (event, tried) = cp::find_one(problem, &mut terminal);
    terminal.finish();
    let check = |columns: &[usize]| {
        Placement::check_solution(problem, columns).map_err(|error| refused("cp", &error))
    };
    let found = match event {
        cp::Event::Solution(columns) => Found::Solution(check(&columns)?),
        cp::Event::Exhausted => Found::None,
        cp::Event::Stopped if terminal.is_interrupted() => Found::Interrupted(None),
        cp::Event::Stopped => Found::NotProven(None, Unproven::Stopped),
    };
    let elapsed = terminal.elapsed();
    Ok(Run { method: "cp", found, seed: None, tried, unit: "nodes", elapsed, ilp_outcome: None })
}

/// Receives the first solution.
struct FirstSolution {
    ticker: Ticker,
    limits: Limits,
    columns: Option<Vec<usize>>,
}

impl AnswerSink for FirstSolution {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.columns = Some(columns.to_owned());
        ControlFlow::Break(())
    }

    fn report(&mut self, tried: u64) -> ControlFlow<()> {
        self.ticker.show(tried, String::new);
        let Limits { time, tried: most, interrupt, .. } = &self.limits;
        let is_late = time.is_some_and(|limit| self.ticker.elapsed() >= limit);
        if is_late || tried >= *most || interrupt.is_raised() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Returns the reason why no solution exists, if there is a simple one.
pub(super) fn conflict_reason(problem: &Problem) -> String {
    problem.conflict().map_or(String::new(), |(a, b)| {
        format!(": the pieces placed on {a} and {b} attack each other")
    })
}

fn write_graph(problem: &Problem, path: &Path) -> Result<(), Failure> {
    if problem.n() > MAX_GRAPH_SIZE {
        let message = format!("--write-graph supports boards up to n = {MAX_GRAPH_SIZE}");
        return Err(Failure::usage(message));
    }
    OutputFile::begin("graph", path)?.finish_with(|out| write_dimacs(problem, out))
}
