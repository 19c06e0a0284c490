//! `nqueens check`.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::answer_text::AnswerText;
use super::args::ThreadsArg;
use super::max_work::{self, MaxWork};
use super::picture_args::{PictureArgs, PictureFiles};
use super::solution_output::{columns_from_one, refused};
use super::stream::Stream;
use super::{Exit, Failure, atomic_file, json_line, print};
use crate::board::{Piece, Placement, Problem};
use crate::proof::veripb::{self, MOST_LINES, ProofSize, TranslationError};
use crate::proof::{self, LARGEST_FILE, ProvedStatement};
use crate::render::{Look, Picture};
use crate::report::{counted, duration};

const THREADS_HELP: &str = "The number of threads that check a certificate of nqueens first \
     (default: one per core). Those of nqueens beautiful are checked by one";

/// Check a certificate that nqueens first or beautiful has written.
///
/// The answer is proved again, in exact integers, by code that shares only the definition of the
/// board with the solvers.
#[derive(Debug, clap::Args)]
#[command(mut_arg("threads", |flag| flag.help(THREADS_HELP)))]
pub(super) struct Args {
    /// The certificate file.
    file: PathBuf,
    #[command(flatten)]
    max_work: MaxWork,
    #[command(flatten)]
    threads: ThreadsArg,
    /// Translate the certificate for the checker VeriPB. OUT.opb says that a better solution
    /// exists, and OUT.pbp proves that there is none; OUT.sat.opb and OUT.sat.pbp show that the
    /// answer is a solution. If OUT ends in .gz, the files are compressed (8.gz: 8.opb.gz).
    #[arg(long, value_name = "OUT")]
    veripb: Option<PathBuf>,
    /// The maximum number of lines of the proof for VeriPB. If it needs more, the exit code is 4.
    #[arg(long, value_name = "LINES", default_value_t = MOST_LINES, requires = "veripb",
        value_parser = clap::value_parser!(u64).range(1..))]
    veripb_limit: u64,
    #[command(flatten)]
    pictures: PictureArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    n: usize,
    /// For most beautiful solutions: the cost of a square, and whether only doubly symmetric
    /// solutions were considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    norm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symmetric: Option<bool>,
    /// The column of each row, counted from 1.
    solution: Option<Vec<usize>>,
    proven: bool,
    work: String,
    bytes: usize,
    elapsed_s: f64,
    /// The proof for VeriPB, with `--veripb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    veripb: Option<Translated>,
}

#[derive(Debug, Serialize)]
struct Translated {
    lines: u64,
    bytes: u64,
    elapsed_s: f64,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let file = args.file.display();
    let certificate = atomic_file::read(&args.file, LARGEST_FILE).map_err(|error| {
        Failure::new(Exit::File, format!("{file} cannot be read: {error}{}", hint(&args.file)))
    })?;
    // Certificates are for boards that a PNG has room for.
    let pictures = args.pictures.begin(1, 1)?;
    let began = Instant::now();
    let proved = proof::check_with_threads(
        &certificate,
        args.threads.or_cores(),
        &mut args.max_work.meter(),
    )
    .map_err(|error| max_work::failure(&file, &error, Exit::CheckFailed))?;
    let elapsed = began.elapsed();
    let translated = translate(args, &certificate, &proved)?;
    print(&if args.json {
        let report = Report {
            kind: proved.kind.name(),
            n: proved.n,
            norm: proved.beauty.map(|beauty| beauty.norm.to_string()),
            symmetric: proved.beauty.map(|beauty| beauty.turning),
            solution: proved.solution.as_deref().map(columns_from_one),
            proven: true,
            work: proved.work.to_string(),
            bytes: certificate.len(),
            elapsed_s: elapsed.as_secs_f64(),
            veripb: translated,
        };
        json_line(&report)
    } else {
        let bytes = counted(certificate.len() as u128, "byte");
        let work = counted(proved.work.into(), "step");
        if io::stdout().is_terminal() {
            print_in_full(args, &proved, &format!("{work}, {bytes}"), elapsed, translated)?;
            return draw(&proved, pictures);
        }
        let translated =
            translated.map_or_else(String::new, |Translated { lines, bytes, elapsed_s }| {
                format!(
                    "  translated for VeriPB in {}, {}, {}\n",
                    duration(Duration::from_secs_f64(elapsed_s)),
                    counted(lines.into(), "line"),
                    counted(bytes.into(), "byte"),
                )
            });
        format!("{proved}\n  checked in {}, {work}, {bytes}\n{translated}", duration(elapsed))
    })?;
    draw(&proved, pictures)
}

/// Draws the solution of the certificate, if it has one.
fn draw(proved: &ProvedStatement, pictures: PictureFiles<'_>) -> Result<Exit, Failure> {
    let Some(columns) = &proved.solution else { return Ok(Exit::Done) };
    let placement = Placement::check_solution(&Problem::empty(Piece::Queen, proved.n), columns)
        .map_err(|error| refused("check", &error))?;
    let look = proved.beauty.map_or(Look::Chequered, |beauty| Look::Rings(beauty.norm));
    pictures.finish(&Picture::of(&placement).with_look(look))?;
    Ok(Exit::Done)
}

/// Returns what was probably meant if there is no file of this name.
fn hint(path: &Path) -> &'static str {
    let name = path.to_str().unwrap_or_default();
    match !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ') {
        true => "; nqueens verify checks a solution, nqueens check a certificate",
        false => "",
    }
}

/// Prints the result for a terminal.
fn print_in_full(
    args: &Args,
    proved: &ProvedStatement,
    work: &str,
    elapsed: Duration,
    translated: Option<Translated>,
) -> Result<(), Failure> {
    let statement = proved.to_string();
    let mut text = AnswerText::new(format!("{}: the certificate is valid", args.file.display()))
        .row("proved", statement.trim_start_matches("proved: "))
        .row("method", format!("check in exact integers, {work}"))
        .time(elapsed);
    text = match translated {
        Some(Translated { lines, bytes, elapsed_s }) => text.row(
            "for VeriPB",
            format!(
                "{}, {}, translated in {}",
                counted(lines.into(), "line"),
                counted(bytes.into(), "byte"),
                duration(Duration::from_secs_f64(elapsed_s)),
            ),
        ),
        None => text.row("next", "--veripb OUT translates the proof for the checker VeriPB"),
    };
    let mut stream = Stream::begin();
    let _ = text.write_alone(&mut stream);
    stream.finish().map(|_| ())
}

/// Writes the files of `--veripb`, if the flag was given.
fn translate(
    args: &Args,
    certificate: &[u8],
    proved: &ProvedStatement,
) -> Result<Option<Translated>, Failure> {
    let Some(out) = &args.veripb else { return Ok(None) };
    let began = Instant::now();
    let size = veripb::write_files(certificate, proved, out, args.veripb_limit);
    let ProofSize { lines, bytes } = size.map_err(|error| {
        let exit = match error {
            TranslationError::LineLimit(_) => Exit::Unproven,
            TranslationError::Certificate(_) => Exit::CheckFailed,
            TranslationError::Io(_) => Exit::File,
        };
        Failure::new(exit, format!("the proof for VeriPB {}: {error}", out.display()))
    })?;
    Ok(Some(Translated { lines, bytes, elapsed_s: began.elapsed().as_secs_f64() }))
}
