//! `nqueens beautiful`.

use std::path::PathBuf;
use std::time::Duration;

use super::answer_text::board_name;
use super::args::{cores, first_given, reject};
use super::first::board_size;
use super::max_work::{MaxWork, RESUME_HELP};
use super::optimum_output::{Report, completion};
use super::output_file::OutputFile;
use super::picture_args::{PictureArgs, draw_answer};
use super::resume_file::ResumeFile;
use super::solution_output::{
    Format, OutputArgs, columns_from_one, draw, invalid_certificate, refused,
};
use super::solver::SolverChoice;
use super::stream::Stream;
use super::terminal::{Terminal, time_limit};
use super::{Exit, Failure, json_line, note, print};
use crate::board::{Norm, Piece, Placement, Problem};
use crate::proof::{self, Meter, ProofError};
use crate::render::{Look, Picture};
use crate::report::counted;
use crate::solver::beautiful::{
    Exact, Query, all_equally_beautiful, resume, resume_most_beautiful,
};
use crate::solver::ilp::most_beautiful;
use crate::solver::{Answer, Unproven, Verdict};

/// Find a most beautiful solution, and prove that it is one.
///
/// The square in row i and column j costs (2i−n−1)² + (2j−n−1)². A solution is most beautiful if
/// the costs of its squares, sorted from the largest, are lexicographically smallest. The proof is
/// in exact integers.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("max_work", |flag| flag.help(RESUME_HELP)),
    mut_arg("svg", |flag| flag.help("Draw the solution on the rings of equal cost, and write the picture to FILE as SVG")),
    mut_arg("png", |flag| flag.help("Draw the solution on the rings of equal cost, and write the picture to FILE as PNG")),
    mut_arg("board", |flag| flag.hide(true)),
)]
pub(super) struct Args {
    /// The board size, from 0 to 250.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    /// The method: exact or ilp.
    #[arg(long, default_value = "exact", value_parser = method)]
    method: Method,
    /// The cost of a square: euclidean (u² + v²), manhattan (u + v) or chebyshev (the larger of u
    /// and v). u and v are its vertical and horizontal distances from the centre of the board, in
    /// half squares. Other norms than euclidean need --method exact.
    #[arg(long, default_value_t = Norm::Euclidean)]
    norm: Norm,
    /// Consider only doubly symmetric solutions, which quarter turns do not change. Needs --method
    /// exact.
    #[arg(long)]
    symmetric: bool,
    /// Print all most beautiful solutions, and their number. Needs --method exact.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    solver: SolverChoice,
    /// Write a certificate to FILE; verify it with nqueens check. Needs --method exact.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Save the progress of the proof to FILE, and resume from it if it exists. Needs --method
    /// exact.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    max_work: MaxWork,
    #[command(flatten)]
    pictures: PictureArgs,
    /// The number of threads (default: one per core). Needs --method exact.
    #[arg(short = 'j', long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Stop after this time and print the best solution found: a number and s, m, h or d. The time
    /// includes the check of the certificate.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
    /// Show no progress bar.
    #[arg(short, long)]
    quiet: bool,
}

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Exact,
    Ilp,
}

impl Method {
    const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Ilp => "ilp",
        }
    }
}

fn method(text: &str) -> Result<Method, String> {
    match text {
        "exact" => Ok(Method::Exact),
        "ilp" => Ok(Method::Ilp),
        _ => Err(format!("invalid method '{text}'; choose exact or ilp")),
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    if args.output.file().is_some() {
        return Err(Failure::usage(
            "beautiful reads no board; --draw unicode and --draw ascii draw one",
        ));
    }
    let format = args.output.format(Piece::Queen, args.n, args.all)?;
    if args.method == Method::Ilp {
        reject_flags_of_exact(args)?;
    }
    // Files that cannot be written are an error before the search, not after it.
    let certificate = OutputFile::begin_if_given("certificate", args.certificate.as_deref())?;
    let pictures = args.pictures.begin(args.n, args.n)?;
    let solver = match args.method {
        Method::Exact => None,
        Method::Ilp => Some(args.solver.solver(args.quiet)?),
    };
    let mut terminal = Terminal::new("level", args.time_limit, args.quiet);
    let query = Query {
        n: args.n,
        norm: args.norm,
        turning: args.symmetric,
        threads: args.threads.map_or_else(cores, usize::from),
    };
    // The answer is printed even if a file cannot be written.
    let mut write_failure = None;
    let (mut answer, mut proof) = match solver {
        Some(solver) => (most_beautiful(args.n, solver, &mut terminal), None),
        None => {
            let (exact, failure) = exactly(args, query, &mut terminal)?;
            write_failure = failure;
            (exact.answer, exact.certificate)
        }
    };
    // There is a certificate only if the answer is proven.
    if let Some(certificate) = proof.as_deref().filter(|_| args.certificate.is_some())
        && !check(certificate, &answer, &terminal)?
    {
        proof = None;
        answer.verdict = Verdict::NotProven(Unproven::NotChecked);
    }
    let all = match &answer.found {
        Some(columns) if args.all && answer.is_proven() => {
            all_equally_beautiful(query, columns, &mut terminal).map(Some)
        }
        _ => Ok(None),
    };
    terminal.finish();
    let board = Problem::empty(Piece::Queen, args.n);
    let found = completion(&board, args.method.name(), &answer)?;
    let mut certified = false;
    if let (Some(file), Some(proof)) = (certificate, &proof) {
        let written = file.finish(proof);
        certified = written.is_ok();
        write_failure = written.err().or(write_failure);
    }
    if let Some(placement) = &found {
        let drawn = pictures.finish(&on_rings(args, placement));
        write_failure = drawn.err().or(write_failure);
    }
    let report = report(args, &answer, certified, solver.map(|solver| solver.name()), &terminal);
    let exit = match all {
        Ok(Some(all)) => print_all(args, report, &all, format, &terminal),
        // The optimum is proven; only the list is not complete.
        Err(doubt) => {
            let report = Report { proven: false, doubt: Some(doubt.to_string()), ..report };
            show(args, &report, found.as_ref(), format, &terminal)
        }
        Ok(None) => show(args, &report, found.as_ref(), format, &terminal),
    };
    write_failure.map_or(exit, Err)
}

/// Checks a certificate before it is written. Returns whether there was time to finish the check.
fn check(
    certificate: &[u8],
    answer: &Answer<Vec<usize>>,
    terminal: &Terminal,
) -> Result<bool, Failure> {
    let is_over = || terminal.is_over();
    match proof::check_within(certificate, &mut Meter::new(None).stopped_by(&is_over)) {
        Ok(proved) if proved.solution == answer.found => Ok(true),
        Ok(_) => Err(invalid_certificate(&"it proves a different solution")),
        Err(ProofError::Stopped) => Ok(false),
        Err(error) => Err(invalid_certificate(&error)),
    }
}

/// Runs the exact solver, resuming from the file of `--resume`. Returns its result, and the failure
/// if that file could not be written at the end.
fn exactly(
    args: &Args,
    query: Query,
    terminal: &mut Terminal,
) -> Result<(Exact, Option<Failure>), Failure> {
    let mut resume_file = ResumeFile::new(args.resume.as_deref());
    let read = |bytes: &[u8], meter: &mut Meter<'_>| resume::read_within(&query, bytes, meter);
    let partial = resume_file.read(args.max_work, terminal, read)?;
    if let (Some(partial), false) = (&partial, args.quiet) {
        let levels = counted(partial.level as u128, "level");
        resume_file.note_resumed(&format!("{levels} of cost"));
    }
    let mut exact = resume_most_beautiful(query, partial, terminal, &mut |stage| {
        resume_file.write_if_due(|| stage.checkpoint())
    });
    if let Some(state) = exact.checkpoint.take() {
        resume_file.write(|| state);
    }
    Ok((exact, resume_file.into_failure()))
}

fn reject_flags_of_exact(args: &Args) -> Result<(), Failure> {
    let given = first_given([
        ("--norm", args.norm != Norm::Euclidean),
        ("--symmetric", args.symmetric),
        ("--all", args.all),
        ("--certificate", args.certificate.is_some()),
        ("--resume", args.resume.is_some()),
        ("--max-work", args.max_work.is_given()),
        ("--threads", args.threads.is_some()),
    ]);
    reject(given, format!("needs --method exact, not {}", args.method.name()))
}

fn report(
    args: &Args,
    answer: &Answer<Vec<usize>>,
    certified: bool,
    solver: Option<&'static str>,
    terminal: &Terminal,
) -> Report {
    let mut report = Report::new(args.n, args.method.name(), solver, answer, terminal.elapsed());
    report.fingerprint = answer.found.as_deref().map(|columns| args.norm.fingerprint(columns));
    report.norm = Some(args.norm.to_string());
    report.symmetric = args.symmetric.then_some(true);
    let written = args.certificate.as_ref().filter(|_| certified);
    report.certificate = written.map(|path| path.display().to_string());
    report
}

/// Prints the answer; pictures have rings of equal cost.
fn show(
    args: &Args,
    report: &Report,
    found: Option<&Placement>,
    format: Format,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let symmetric = if args.symmetric { "doubly symmetric " } else { "" };
    let norm = match args.norm {
        Norm::Euclidean => String::new(),
        norm => format!(" by the {norm} norm"),
    };
    let board = board_name(&Problem::empty(Piece::Queen, args.n));
    let title = format!("{board}: a most beautiful {symmetric}solution{norm}");
    let next = match &report.certificate {
        Some(certificate) => format!("nqueens check {certificate} checks the proof"),
        None if args.method == Method::Exact => {
            "--certificate FILE writes the proof, --svg FILE a picture, --all lists all".into()
        }
        None => "--method exact proves it in exact integers".into(),
    };
    let text = report.text(&title, format, args.quiet, next);
    report.finish_by(found, format, terminal, text.as_ref(), |stream, drawing, placement| {
        draw_answer(stream, drawing, placement, &on_rings(args, placement))
    })
}

fn on_rings<'a>(args: &Args, placement: &'a Placement) -> Picture<'a> {
    Picture::of(placement).with_look(Look::Rings(args.norm))
}

/// Prints all solutions with the smallest fingerprint.
fn print_all(
    args: &Args,
    report: Report,
    all: &[Vec<usize>],
    format: Format,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let count = all.len();
    if let Format::Drawn(drawing) = format {
        let problem = Problem::empty(Piece::Queen, args.n);
        let mut stream = Stream::begin();
        for columns in all {
            let checked = Placement::check_solution(&problem, columns)
                .map_err(|error| refused(args.method.name(), &error))?;
            if draw(&mut stream, drawing, &checked).is_break() {
                break;
            }
        }
        stream.finish()?;
        if !args.quiet {
            note(&format!("{} with the smallest fingerprint", counted(count as u128, "solution")));
        }
        return Ok(Exit::Done);
    }
    let solutions = all.iter().map(|columns| columns_from_one(columns)).collect();
    let elapsed_s = terminal.elapsed().as_secs_f64();
    let report = Report {
        optimal_placements: Some(count.to_string()),
        solutions: Some(solutions),
        elapsed_s,
        ..report
    };
    print(&json_line(&report))?;
    Ok(Exit::Done)
}
