//! `nqueens solve`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::atomic_file::AtomicFile;
use super::first::LARGEST;
use super::ilp::{self, CutsReport};
use super::interrupt::Interrupt;
use super::problem::{DecidedSquares, number};
use super::report::{counted, duration, grouped};
use super::solution_output::{Format, Shape, Ticker, draw, from_one, object, refused};
use super::stream::Stream;
use super::terminal::{Terminal, time_limit};
use super::{Exit, Failure, note};
use crate::board::conflict_graph::{MAX_GRAPH_SIZE, write_dimacs};
use crate::board::{Piece, Placement, Problem};
use crate::solver::classical::{self, AnswerSink, Ending};
use crate::solver::cp;
use crate::solver::{Unproven, Verdict};

/// Find one solution, or one completion of a board on which some squares are decided.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, from 0 to 10 000 000.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    /// formula (empty boards), backtracking (the first in lexicographic order), local-search (min-conflicts), ilp (a
    /// 0-1 programme) or cp (constraints); if not given, formula, or for decided squares backtracking up to n = 24 and
    /// local-search above; ilp if an option of it is given.
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    #[command(flatten)]
    squares: DecidedSquares,
    /// The seed of local-search's random numbers; 1 if not given.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// local-search gives up after so many moves; a million if not given.
    #[arg(long, value_name = "MOVES")]
    moves: Option<u64>,
    /// Write the conflict graph of the board (DIMACS) to FILE first, for solvers of independent sets.
    #[arg(long, value_name = "FILE")]
    write_graph: Option<PathBuf>,
    /// ilp and cp stop after this time: a number and s, m or h.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    programme: ilp::Options,
    /// Show no progress and no summary.
    #[arg(long)]
    quiet: bool,
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

/// The largest board of cp: it needs n² bits, and n steps of n² work each at the least.
pub(super) const CP_LARGEST: usize = 1000;

/// Up to here backtracking completes boards in no time whatever is decided; above, random moves usually find what it
/// would take too long to get to.
const BACKTRACKING_PAYS: usize = 24;

impl Method {
    fn usual(problem: &Problem) -> Self {
        match problem.n() {
            _ if problem.is_empty() => Self::Formula,
            ..=BACKTRACKING_PAYS => Self::Backtracking,
            _ => Self::LocalSearch,
        }
    }
}

fn board_size(text: &str) -> Result<usize, String> {
    number(text, "a board size", 0, 10_000_000)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    solution: Option<Vec<Option<usize>>>,
    /// Whether that is certain: the solution is checked, or it is proved that there is none.
    proven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Vec<Option<usize>>>,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    tried: String,
    tried_unit: &'static str,
    elapsed_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    solver: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuts: Option<CutsReport>,
    /// Why it is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
}

/// How a method has ended, and what it tells about itself.
#[derive(Debug)]
struct Run {
    method: &'static str,
    found: Found,
    seed: Option<u64>,
    tried: u64,
    unit: &'static str,
    elapsed: Duration,
    /// What a 0-1 programme tells besides.
    programme: Option<ilp::Outcome>,
}

/// What there is to print. All of it has passed the checker.
#[derive(Debug)]
enum Found {
    Solution(Placement),
    /// It is proved that there is none.
    None,
    /// The method gave up, with the largest placement that it knows.
    GaveUp(Option<Placement>),
    /// The best that was found, if anything was; and why that is not proved.
    Doubtful(Option<Placement>, Unproven),
    Interrupted(Option<Placement>),
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let problem = args.squares.problem(Piece::Queen, args.n)?;
    let format = args.shape.format(problem.piece(), problem.n(), false)?;
    let option = args.programme.given();
    let usual = || if option.is_some() { Method::Ilp } else { Method::usual(&problem) };
    let method = args.method.unwrap_or_else(usual);
    if let (Some(flag), false) = (option, method == Method::Ilp) {
        return Err(Failure::usage(format!("{flag} is for --method ilp; leave it out")));
    }
    if args.time_limit.is_some() && !matches!(method, Method::Ilp | Method::Cp) {
        return Err(Failure::usage("--time-limit is for --method ilp and cp; leave it out"));
    }
    let seeded = method == Method::LocalSearch;
    if let (Some(flag), false) =
        (args.seed.map(|_| "--seed").or(args.moves.map(|_| "--moves")), seeded)
    {
        return Err(Failure::usage(format!("{flag} is for --method local-search; leave it out")));
    }
    let seed = args.seed.unwrap_or(1);
    let moves = args.moves.unwrap_or(classical::Method::USUAL_MOVES);
    let interrupt = Interrupt::listen();
    if let Some(path) = &args.write_graph {
        write_graph(&problem, path)?;
    }
    let classical = |method| classical(method, &problem, interrupt, args.quiet);
    let run = match method {
        Method::Formula => classical(classical::Method::Formula),
        Method::Backtracking => classical(classical::Method::Backtracking),
        Method::LocalSearch => classical(classical::Method::LocalSearch { seed, moves }),
        Method::Ilp => by_programme(args, &problem),
        Method::Cp => by_constraints(args, &problem),
    }?;
    show(&run, format, &problem, args.quiet)
}

/// Runs a method of the classical search.
fn classical(
    method: classical::Method,
    problem: &Problem,
    interrupt: Interrupt,
    quiet: bool,
) -> Result<Run, Failure> {
    method.suits(problem).map_err(Failure::usage)?;
    let ticker = Ticker::begin(method.unit(), quiet);
    let mut watch = First { ticker, interrupt, columns: None };
    let outcome = method.run(problem, &mut watch).map_err(Failure::usage)?;
    let elapsed = watch.ticker.elapsed();
    let checked =
        |result: Result<Placement, _>| result.map_err(|error| refused(method.name(), &error));
    let best =
        || outcome.best.as_ref().map(|best| checked(Placement::check(problem, best))).transpose();
    let found = match (watch.columns, outcome.ending) {
        (Some(columns), _) => {
            Found::Solution(checked(Placement::check_solution(problem, &columns))?)
        }
        (None, Ending::Exhausted) => Found::None,
        (None, Ending::GaveUp) => Found::GaveUp(best()?),
        (None, Ending::Stopped) => Found::Interrupted(best()?),
    };
    let seed = match method {
        classical::Method::LocalSearch { seed, .. } => Some(seed),
        _ => None,
    };
    let (method, unit) = (method.name(), method.unit());
    Ok(Run { method, found, seed, tried: outcome.tried, unit, elapsed, programme: None })
}

/// The largest board of the methods whose work and memory grow with the squares, or faster.
pub(super) fn fits(method: &str, problem: &Problem, largest: usize) -> Result<(), Failure> {
    if problem.n() > largest {
        return Err(Failure::usage(format!(
            "{method} goes up to n = {largest}; choose another method"
        )));
    }
    if !matches!(problem.piece(), Piece::Queen | Piece::Rook) {
        return Err(Failure::usage(format!(
            "{method} places queens and rooks only; choose another method"
        )));
    }
    Ok(())
}

fn by_programme(args: &Args, problem: &Problem) -> Result<Run, Failure> {
    fits("ilp", problem, LARGEST)?;
    let mut terminal = Terminal::new("solutions", args.time_limit, args.quiet);
    let outcome = ilp::solve(&args.programme, problem, &mut terminal, args.quiet);
    terminal.finish();
    let outcome = outcome?;
    let check = |columns: &Vec<Option<usize>>| Placement::check(problem, columns);
    let found =
        outcome.found.as_ref().map(check).transpose().map_err(|error| refused("ilp", &error))?;
    let found = match (&outcome.verdict, found) {
        (Verdict::Proven, Some(found)) => Found::Solution(found),
        (Verdict::Proven, None) => Found::None,
        (Verdict::NotProven(_), found) if terminal.is_interrupted() => Found::Interrupted(found),
        (Verdict::NotProven(doubt), found) => Found::Doubtful(found, doubt.clone()),
    };
    let (elapsed, tried) = (terminal.elapsed(), outcome.nodes);
    Ok(Run {
        method: "ilp",
        found,
        seed: None,
        tried,
        unit: "nodes",
        elapsed,
        programme: Some(outcome),
    })
}

fn by_constraints(args: &Args, problem: &Problem) -> Result<Run, Failure> {
    fits("cp", problem, CP_LARGEST)?;
    let mut terminal = Terminal::new("rows", args.time_limit, args.quiet);
    let (event, tried) = cp::find_one(problem, &mut terminal);
    terminal.finish();
    let check = |columns: &[usize]| {
        Placement::check_solution(problem, columns).map_err(|error| refused("cp", &error))
    };
    let found = match event {
        cp::Event::Solution(columns) => Found::Solution(check(&columns)?),
        cp::Event::Exhausted => Found::None,
        cp::Event::Stopped if terminal.is_interrupted() => Found::Interrupted(None),
        cp::Event::Stopped => Found::Doubtful(None, Unproven::Stopped),
    };
    let elapsed = terminal.elapsed();
    Ok(Run { method: "cp", found, seed: None, tried, unit: "nodes", elapsed, programme: None })
}

/// Takes the first answer.
struct First {
    ticker: Ticker,
    interrupt: Interrupt,
    columns: Option<Vec<usize>>,
}

impl AnswerSink for First {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.columns = Some(columns.to_owned());
        ControlFlow::Break(())
    }

    fn report(&mut self, tried: u64) -> ControlFlow<()> {
        self.ticker.tell(tried, String::new);
        if self.interrupt.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn show(run: &Run, format: Format, problem: &Problem, quiet: bool) -> Result<Exit, Failure> {
    let (solution, best) = match &run.found {
        Found::Solution(solution) => (Some(solution), None),
        Found::None => (None, None),
        Found::GaveUp(best) | Found::Interrupted(best) | Found::Doubtful(best, _) => {
            (None, best.as_ref())
        }
    };
    let mut stream = Stream::begin();
    let _ = match (format, solution.or(best)) {
        (Format::Json, _) => object(&mut stream, &report(run, problem.n(), solution, best)),
        (Format::Drawn(drawing), Some(placement)) => draw(&mut stream, drawing, placement),
        (Format::Drawn(_), None) => ControlFlow::Continue(()),
    };
    stream.finish()?;
    let seed = run.seed.map_or(String::new(), |seed| format!(" with seed {seed}"));
    let tried = match run.tried {
        0 => String::new(),
        tried => format!("{} {} tried, ", grouped(tried.into()), run.unit),
    };
    let told = run.programme.as_ref();
    let solver = told.map_or(String::new(), |told| format!(" with {}", told.solver));
    let weight = told.and_then(|told| told.weight.as_ref());
    let weight = weight.map_or(String::new(), |weight| format!("weight {weight}, "));
    let summary = format!("{}{solver}{seed}: {weight}{tried}{}", run.method, duration(run.elapsed));
    let best = best.map_or(String::new(), |best| {
        format!(
            "; best found: {} of {}",
            grouped(best.pieces() as u128),
            counted(problem.n() as u128, "queen")
        )
    });
    let (exit, message) = match &run.found {
        Found::Solution(_) if quiet => return Ok(Exit::Done),
        Found::Solution(_) => {
            note(&summary);
            return Ok(Exit::Done);
        }
        Found::None => {
            (Exit::NoSolution, format!("no solution exists{}; {summary}", why_none(problem)))
        }
        Found::GaveUp(_) => (
            Exit::Unproven,
            format!(
                "no solution was found, which does not prove that there is none; {summary}{best}"
            ),
        ),
        Found::Doubtful(found, doubt) => {
            let shown = if found.is_some() {
                "best found, not proven"
            } else {
                "nothing found, nothing proven"
            };
            (Exit::Unproven, format!("{shown}: {doubt}; {summary}{best}"))
        }
        Found::Interrupted(_) => (Exit::Interrupted, format!("interrupted; {summary}{best}")),
    };
    Err(Failure { exit, message })
}

/// The reason, where one can be named.
pub(super) fn why_none(problem: &Problem) -> String {
    problem.conflict().map_or(String::new(), |(a, b)| {
        format!(": the pieces placed on {a} and {b} attack each other")
    })
}

fn report(run: &Run, n: usize, solution: Option<&Placement>, best: Option<&Placement>) -> Report {
    Report {
        n,
        solution: solution.map(from_one),
        proven: matches!(run.found, Found::Solution(_) | Found::None),
        best: best.map(from_one),
        method: run.method,
        seed: run.seed,
        tried: run.tried.to_string(),
        tried_unit: run.unit,
        elapsed_s: run.elapsed.as_secs_f64(),
        solver: run.programme.as_ref().map(|told| told.solver),
        weight: run.programme.as_ref().and_then(|told| told.weight.clone()),
        cuts: run.programme.as_ref().and_then(|told| told.cuts.clone()),
        doubt: match &run.found {
            Found::Doubtful(_, doubt) => Some(doubt.to_string()),
            _ => None,
        },
    }
}

fn write_graph(problem: &Problem, path: &Path) -> Result<(), Failure> {
    if problem.n() > MAX_GRAPH_SIZE {
        let message = format!(
            "--write-graph is for boards up to n = {MAX_GRAPH_SIZE}; larger graphs are too large"
        );
        return Err(Failure::usage(message));
    }
    let written =
        AtomicFile::begin(path).and_then(|file| file.finish_with(|out| write_dimacs(problem, out)));
    written.map_err(|error| Failure {
        exit: Exit::File,
        message: format!("the graph cannot be written to {}: {error}", path.display()),
    })
}
