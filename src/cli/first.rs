//! `nqueens first`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::answer_text::{AnswerText, board_name, is_for_terminal};
use super::args::{DecidedSquares, Sizes, cores, first_given, from_one, number, reject};
use super::cuts::CutArgs;
use super::max_work::{MaxWork, RESUME_HELP};
use super::optimum_output::{Report, completion};
use super::output_file::OutputFile;
use super::picture_args::{PictureArgs, draw_answer};
use super::resume_file::ResumeFile;
use super::solution_output::{Format, OutputArgs, invalid_certificate, object, spaced};
use super::solver::SolverChoice;
use super::stream::Stream;
use super::terminal::{Terminal, time_limit};
use super::{Exit, Failure, note};
use crate::board::{Piece, Placement, Problem, Square};
use crate::proof::{self, Meter, ProofError};
use crate::render::{Drawing, Picture};
use crate::report::{counted, duration};
use crate::solver::first::{self, Found, Options, resume};
use crate::solver::ilp::{
    BEST_SOLVER, FirstMethod, Solver, lex_dfs_with_cuts, lexicographic_first,
};
use crate::solver::{Answer, Unproven, Verdict};

/// Find the lexicographically first solution (OEIS A141843), and prove it.
///
/// The exact method proves in exact integers that no solution comes before it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size, a range or a list: 8, 4..40 or 6,8,10. At most 128 for exact, and 250 for
    /// the other methods. May be omitted with --board.
    #[arg(
        value_name = "N",
        required_unless_present = "board",
        value_parser = sizes,
        allow_negative_numbers = true
    )]
    sizes: Vec<Sizes>,
    /// The method: exact, cp, ilp-iter, ilp-trunc, lex-dfs, cutting-plane or ilp-weights.
    #[arg(long, default_value_t = FirstMethod::Exact)]
    method: FirstMethod,
    #[command(flatten)]
    solver: SolverChoice,
    #[command(flatten)]
    cuts: CutArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Stop after this time for each board, and print the best solution found: a number and s, m, h
    /// or d. The time includes the check of the certificate.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    pictures: PictureArgs,
    /// Show no progress bar and no summary.
    #[arg(short, long)]
    quiet: bool,
}

/// The help of `--place`.
const PLACE_HELP: &str = "\
A square that holds a queen: 2,4 or d2, with row 1 at the top. Repeat the flag or write '2,4 4,5' for several squares. \
Finds the first completion. Needs --method exact";

/// The help of `--block`.
const BLOCK_HELP: &str = "\
A square that must stay empty. Repeat the flag or write '1,1 8,8' for several squares. Needs \
--method exact";

/// The options of the exact method.
#[derive(Debug, clap::Args)]
#[command(mut_arg("max_work", |flag| flag.help(RESUME_HELP)))]
#[command(mut_arg("place", |flag| flag.help(PLACE_HELP)))]
#[command(mut_arg("block", |flag| flag.help(BLOCK_HELP)))]
struct EngineArgs {
    #[command(flatten)]
    squares: DecidedSquares,
    /// The columns of the queens in the first rows: '1 3 5'. Finds the first solution with this
    /// prefix. Needs --method exact.
    #[arg(long, value_name = "COLUMNS", value_parser = prefix, allow_hyphen_values = true)]
    from: Option<Prefix>,
    /// Write a certificate to FILE; verify it with nqueens check. Needs --method exact.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Save refutations to FILE, and resume from it if it exists. Needs --method exact.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    max_work: MaxWork,
    /// The number of threads (default: one per core). Needs --method exact.
    #[arg(short = 'j', long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

fn sizes(text: &str) -> Result<Sizes, String> {
    Sizes::parse(text, board_size)
}

/// The squares of the queens in the first rows.
#[derive(Clone, Debug)]
struct Prefix(Vec<Square>);

fn prefix(text: &str) -> Result<Prefix, String> {
    let column = |(row, word): (usize, &str)| {
        let column = word.parse::<usize>().ok().and_then(|column| column.checked_sub(1));
        column.map(|column| Square::new(row, column))
    };
    let squares: Option<Vec<Square>> = text.split_whitespace().enumerate().map(column).collect();
    squares.map(Prefix).ok_or_else(|| {
        format!("invalid columns '{text}'; use the columns of rows 1, 2, …, counted from 1, for example '1 3 5'")
    })
}

/// The largest board of these methods: its 0-1 integer program has 62,500 variables, far too many
/// to solve.
pub(super) const LARGEST: usize = 250;

/// Parses the size of a board for the solvers.
pub(super) fn board_size(text: &str) -> Result<usize, String> {
    number(text, "board size", 0, LARGEST)
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    if args.method != FirstMethod::Exact {
        args.engine.reject_all(args.method)?;
    }
    if args.method != FirstMethod::LexDfs {
        reject(args.cuts.given(), format!("needs --method lex-dfs, not {}", args.method))?;
    }
    let solver =
        if args.method.needs_solver() { Some(args.solver.solver(args.quiet)?) } else { None };
    let problems = problems(args)?;
    let (method, largest) = (args.method, args.method.largest());
    if let Some(n) = problems.iter().map(Problem::n).find(|n| *n > largest) {
        let message = format!(
            "{method} supports boards up to n = {largest}, not n = {n}; choose another method"
        );
        return Err(Failure::usage(message));
    }
    let [problem] = &problems[..] else { return table(args, &problems, solver) };
    let format = args.output.format(Piece::Queen, problem.n(), false)?;
    let pictures = args.pictures.begin(problem.n(), problem.n())?;
    let mut terminal = Terminal::new("row", args.time_limit, args.quiet);
    let run = answer(args, problem, solver, &mut terminal);
    terminal.finish();
    let (report, found, unwritten) = run?;
    let title = format!("{}: the lexicographically first solution", board_name(problem));
    let text = report.text(&title, format, args.quiet, next_step(args, problem, &report));
    if args.method != FirstMethod::Exact && !args.quiet && text.is_none() {
        let time = duration(terminal.elapsed());
        note(&format!("{}: {}, {time}", report.method, report.work()));
    }
    let draw = |stream: &mut Stream, drawing, placement: &Placement| {
        draw_answer(stream, drawing, placement, &Picture::of(placement).deciding(problem))
    };
    let exit = report.finish_by(found.as_ref(), format, &terminal, text.as_ref(), draw);
    // The answer is printed even if a file cannot be written.
    let drawn =
        found.as_ref().map(|placement| pictures.finish(&Picture::of(placement).deciding(problem)));
    unwritten.or(drawn.and_then(Result::err)).map_or(exit, Err)
}

/// Returns the boards: that of `--board`, or one for each size.
fn problems(args: &Args) -> Result<Vec<Problem>, Failure> {
    let file = args.output.file();
    if file.is_some() && args.method != FirstMethod::Exact {
        return Err(Failure::usage("--board FILE needs --method exact"));
    }
    if args.sizes.is_empty() {
        return Ok(vec![args.engine.problem(None, file)?]);
    }
    let sizes = args.sizes.iter().flat_map(|sizes| sizes.0.iter().copied());
    sizes.map(|n| args.engine.problem(Some(n), file)).collect()
}

/// Returns what can be done with the first solution.
fn next_step(args: &Args, problem: &Problem, report: &Report) -> String {
    if let Some(certificate) = &report.certificate {
        return format!("nqueens check {certificate} checks the proof");
    }
    match (args.method, problem.is_empty()) {
        (FirstMethod::Exact, true) => {
            "--certificate FILE writes the proof, --svg FILE a picture".into()
        }
        (FirstMethod::Exact, false) => "--svg FILE writes a picture".into(),
        _ => "--method exact proves it in exact integers".into(),
    }
}

/// Returns the answer for one board, and the failure if a file could not be written afterwards.
fn answer(
    args: &Args,
    problem: &Problem,
    solver: Option<&'static dyn Solver>,
    terminal: &mut Terminal,
) -> Result<(Report, Option<Placement>, Option<Failure>), Failure> {
    let (engine, n) = (&args.engine, problem.n());
    let mut cuts = None;
    let (answer, unwritten) = match args.method {
        FirstMethod::Exact => engine.answer(problem, args.quiet, terminal)?,
        FirstMethod::LexDfs if args.cuts.given().is_some() => {
            let solver = solver.unwrap_or(BEST_SOLVER);
            let (answer, found) = lex_dfs_with_cuts(n, args.cuts.families(), solver, terminal);
            cuts = Some(found.into());
            (answer, None)
        }
        method => (
            lexicographic_first(n, method, solver.unwrap_or(BEST_SOLVER), terminal)
                .map_err(Failure::usage)?,
            None,
        ),
    };
    let found = completion(problem, args.method.name(), &answer)?;
    let solver = solver.map(|solver| solver.name());
    let mut report = Report::new(n, args.method.name(), solver, &answer, terminal.elapsed());
    report.cuts = cuts;
    report.placed = from_one(problem.placed());
    report.blocked = from_one(problem.blocked());
    let written = engine.certificate.as_ref().filter(|_| answer.is_proven() && unwritten.is_none());
    report.certificate = written.map(|path| path.display().to_string());
    Ok((report, found, unwritten))
}

/// Prints one line for each board: its size, the time and the columns; or the same as JSON.
fn table(
    args: &Args,
    problems: &[Problem],
    solver: Option<&'static dyn Solver>,
) -> Result<Exit, Failure> {
    let largest = problems.iter().map(Problem::n).max().unwrap_or(0);
    let format = args.output.format(Piece::Queen, largest, true)?;
    if !matches!(format, Format::Json | Format::Drawn(Drawing::Text)) {
        return Err(Failure::usage(
            "several boards are printed as a table or as JSON; omit --format and --draw",
        ));
    }
    args.engine.reject_files()?;
    reject(args.pictures.given(), "needs one board, not several")?;
    let mut stream = Stream::begin();
    let (mut unproven, mut total) = (0, Duration::ZERO);
    for problem in problems {
        let n = problem.n();
        let mut terminal = Terminal::new("row", args.time_limit, args.quiet);
        let run = answer(args, problem, solver, &mut terminal);
        terminal.finish();
        // Files are for one board only.
        let (report, ..) = run?;
        unproven += u32::from(!report.proven);
        let solution = match &report.solution {
            Some(solution) if report.proven => spaced(solution),
            Some(solution) => format!("not proven: {}", spaced(solution)),
            None if report.proven => "no solution".into(),
            None => "not proven".into(),
        };
        let written = if format == Format::Json {
            object(&mut stream, &report)
        } else {
            let time = duration(terminal.elapsed());
            stream.write(|out| writeln!(out, "{n:>3}  {time:>11}  {solution}"))
        };
        total += terminal.elapsed();
        if terminal.is_interrupted() {
            stream.finish()?;
            return Err(Failure::new(Exit::Interrupted, format!("interrupted at n = {n}")));
        }
        if written.is_break() {
            break;
        }
    }
    if unproven == 0 && is_for_terminal(format, args.quiet) {
        let boards = counted(problems.len() as u128, "board");
        let _ = AnswerText::new(format!("{boards}: the lexicographically first solutions"))
            .row("proved", "no solution comes before these")
            .row("method", args.method.name())
            .time(total)
            .row("next", "nqueens first N --certificate FILE writes the proof of one board")
            .write_alone(&mut stream);
    }
    stream.finish()?;
    if unproven == 0 {
        return Ok(Exit::Done);
    }
    let boards = counted(unproven.into(), "board");
    Err(Failure::new(Exit::Unproven, format!("{boards} could not be proven within the time limit")))
}

impl EngineArgs {
    /// Returns the board of size `n` with the decided squares, those of a file among them.
    fn problem(&self, n: Option<usize>, file: Option<&Path>) -> Result<Problem, Failure> {
        let above = self.from.iter().flat_map(|prefix| prefix.0.iter().copied());
        self.squares.problem_with(Some(Piece::Queen), n, file, above)
    }

    /// Rejects all these options for another method.
    fn reject_all(&self, method: FirstMethod) -> Result<(), Failure> {
        let other = first_given([
            ("--from", self.from.is_some()),
            ("--certificate", self.certificate.is_some()),
            ("--resume", self.resume.is_some()),
            ("--max-work", self.max_work.is_given()),
            ("--threads", self.threads.is_some()),
        ]);
        let given = self.squares.given().or(other);
        reject(given, format!("needs --method exact, not {method}"))
    }

    /// Rejects files, which are for one empty board only.
    fn reject_files(&self) -> Result<(), Failure> {
        let given = first_given([
            ("--certificate", self.certificate.is_some()),
            ("--resume", self.resume.is_some()),
        ]);
        reject(given, "needs one empty board")
    }

    /// Runs the exact solver with its files. Returns its answer, and the failure if a file could
    /// not be written.
    fn answer(
        &self,
        problem: &Problem,
        quiet: bool,
        terminal: &mut Terminal,
    ) -> Result<(Answer<Vec<usize>>, Option<Failure>), Failure> {
        let n = problem.n();
        if !problem.is_empty() {
            self.reject_files()?;
        }
        if problem.conflict().is_some() {
            return Ok((
                Answer { found: None, verdict: Verdict::Proven, nodes: 0, lps_solved: 0 },
                None,
            ));
        }
        // A file that cannot be written is an error before the search, not after it.
        let certificate = OutputFile::begin_if_given("certificate", self.certificate.as_deref())?;
        let mut resume_file = ResumeFile::new(self.resume.as_deref());
        let read = |bytes: &[u8], meter: &mut Meter<'_>| resume::read_within(n, bytes, meter);
        let saved = resume_file.read(self.max_work, terminal, read)?;
        if let (Some(refuted), false) = (&saved, quiet) {
            resume_file.note_resumed(&counted(refuted.len() as u128, "refutation"));
        }
        let refuted = saved.unwrap_or_default();
        let threads = self.threads.map_or_else(cores, usize::from);
        let (placed, blocked) = (problem.placed().to_vec(), problem.blocked().to_vec());
        let options = Options { threads, refuted, solution: None, placed, blocked };
        let found = first::first_solution(n, options, terminal, &mut |refuted| {
            resume_file.write_if_due(|| resume::write(n, refuted))
        });
        resume_file.write(|| resume::write(n, &found.refuted));
        let unwritten = resume_file.into_failure();
        let Some(file) = certificate.filter(|_| found.finished) else {
            return Ok((found.into(), unwritten));
        };
        match checked_certificate(n, &found, threads, terminal)? {
            Some(certificate) => {
                let written = file.finish(&certificate);
                Ok((found.into(), written.err().or(unwritten)))
            }
            None => {
                let verdict = Verdict::NotProven(Unproven::NotChecked);
                Ok((Answer { verdict, ..Answer::from(found) }, unwritten))
            }
        }
    }
}

/// Returns the certificate after checking it; `None` if there was no time to finish the check.
fn checked_certificate(
    n: usize,
    found: &Found,
    threads: usize,
    terminal: &Terminal,
) -> Result<Option<Vec<u8>>, Failure> {
    let refutations = found.refutations(n);
    let is_over = || terminal.is_over();
    let mut meter = Meter::new(None).stopped_by(&is_over);
    let solution = found.solution.as_deref();
    match proof::first::certificate_within(n, solution, &refutations, threads, &mut meter) {
        Ok(certificate) => Ok(Some(certificate)),
        Err(ProofError::Stopped) => Ok(None),
        Err(error) => Err(invalid_certificate(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::Unobserved;

    #[test]
    fn a_certificate_is_checked_only_within_the_time_limit() {
        let found = first::first_solution(10, Options::default(), &mut Unobserved, &mut |_| {});
        let checked =
            |limit| checked_certificate(10, &found, 2, &Terminal::new("row", limit, true));
        assert_eq!(checked(Some(Duration::ZERO)), Ok(None));
        let certificate = checked(None).expect("it is valid").expect("there is time");
        assert!(proof::check(&certificate).is_ok());
        assert_eq!(checked(Some(Duration::from_secs(3600))), Ok(Some(certificate)));
    }
}
