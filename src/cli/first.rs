//! `nqueens first`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::answer::Shape;
use super::report::counted;
use super::solver::SolverChoice;
use super::terminal::{Terminal, time_limit};
use super::verdict::{Report, placement};
use super::whole_file::WholeFile;
use super::{Exit, Failure, note};
use crate::board::Piece;
use crate::optimise::exact::{self, Found, Options, Refutations, resume};
use crate::optimise::{Answer, BEST_SOLVER, FirstMethod, first};
use crate::proof;

/// Find the lexicographically first solution (OEIS A141843), with a proof in integers that none comes before it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size: up to 128 for exact, up to 250 for the others.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    /// The method: exact, cp, ilp-iter, ilp-trunc, lex-dfs, cutting-plane or ilp-weights.
    #[arg(long, default_value_t = FirstMethod::Exact)]
    method: FirstMethod,
    #[command(flatten)]
    solver: SolverChoice,
    /// Write a certificate, which nqueens check proves again (exact).
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Keep what is refuted in this file, and go on from it if it is there (exact).
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Threads (exact); all cores by default.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Stop after this time with the best that was found: a number and s, m or h.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    shape: Shape,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// The largest board of these methods: its 0-1 programme has 62,500 variables, far more than anybody has time for.
pub(super) const LARGEST: usize = 250;

/// What is refuted is kept at most this often.
const KEEP_EVERY: Duration = Duration::from_secs(2);

/// Reads the size of a board whose 0-1 programme can be written down.
pub(super) fn board_size(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| *n <= LARGEST);
    n.ok_or_else(|| {
        format!("'{text}' is not a board size for this; write a whole number from 0 to {LARGEST}")
    })
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let (n, method) = (args.n, args.method);
    let format = args.shape.format(Piece::Queen, n, false)?;
    if n > method.largest() {
        return Err(Failure::usage(format!(
            "{method} is for boards up to n = {} only, not for n = {n}; take another method",
            method.largest()
        )));
    }
    let solver = if method.needs_solver() { Some(args.solver.solver(args.quiet)?) } else { None };
    let mut terminal = Terminal::new("row", args.time_limit, args.quiet);
    let answer = if method == FirstMethod::Exact {
        by_engine(args, &mut terminal)
    } else {
        refuse_flags_of_exact(args).and_then(|()| {
            first(n, method, solver.unwrap_or(BEST_SOLVER), &mut terminal).map_err(Failure::usage)
        })
    };
    terminal.finish();
    let answer = answer?;
    let found = placement(n, method.name(), &answer)?;
    let solver = solver.map(|solver| solver.name());
    let mut report = Report::new(n, method.name(), solver, &answer, terminal.elapsed());
    let written = args.certificate.as_ref().filter(|_| answer.is_proven());
    report.certificate = written.map(|path| path.display().to_string());
    report.finish(found.as_ref(), format, &terminal)
}

fn refuse_flags_of_exact(args: &Args) -> Result<(), Failure> {
    let given = [
        ("--certificate", args.certificate.is_some()),
        ("--resume", args.resume.is_some()),
        ("--threads", args.threads.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::usage(format!("{flag} is for --method exact, not for {}", args.method)))
        }
        None => Ok(()),
    }
}

/// By the exact engine, with its files.
fn by_engine(args: &Args, terminal: &mut Terminal) -> Result<Answer<Vec<usize>>, Failure> {
    let n = args.n;
    // Whether it can be written is to be known before the search, not after it.
    let certificate = args.certificate.as_deref().map(begin).transpose()?;
    let refuted = match args.resume.as_deref() {
        Some(path) => go_on_from(path, n, args.quiet)?,
        None => Refutations::new(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options { threads: args.threads.map_or(cores, usize::from), refuted };
    let mut book = Book { path: args.resume.as_deref(), n, written: Instant::now(), failure: None };
    let found = exact::first(n, options, terminal, &mut |refuted| book.keep(refuted));
    book.write(&found.refuted);
    if let Some(failure) = book.failure {
        return Err(failure);
    }
    if let Some((path, file)) = certificate.filter(|_| found.finished) {
        write_certificate(n, &found, path, file)?;
    }
    Ok(found.into())
}

fn begin(path: &Path) -> Result<(&Path, WholeFile), Failure> {
    Ok((path, WholeFile::begin(path).map_err(|error| cannot_be_written(path, &error))?))
}

fn write_certificate(n: usize, found: &Found, path: &Path, file: WholeFile) -> Result<(), Failure> {
    let refutations = found.refutations(n);
    let refutations: Vec<_> = refutations.iter().collect();
    let certificate =
        proof::first::certificate(n, found.solution.as_deref(), &refutations).map_err(|error| {
            let message = format!("the certificate would be refused: {error}; please report it");
            Failure { exit: Exit::CheckFailed, message }
        })?;
    let write = |out: &mut io::BufWriter<&fs::File>| io::Write::write_all(out, &certificate);
    file.finish_with(write).map_err(|error| cannot_be_written(path, &error))
}

fn cannot_be_written(path: &Path, error: &io::Error) -> Failure {
    Failure { exit: Exit::File, message: format!("{} cannot be written: {error}", path.display()) }
}

/// What the run that wrote `path` had refuted; nothing if there is no such file.
fn go_on_from(path: &Path, n: usize, quiet: bool) -> Result<Refutations, Failure> {
    let failure = |error: &dyn std::fmt::Display| {
        let message = format!("{} is nothing to go on from: {error}", path.display());
        Failure { exit: Exit::File, message }
    };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Whether it can be written is to be known before the search.
            begin(path)?;
            return Ok(Refutations::new());
        }
        Err(error) => return Err(failure(&error)),
    };
    let refuted = resume::read(n, &bytes).map_err(|error| failure(&error))?;
    if !quiet {
        let kept = counted(refuted.len() as u128, "refutation");
        note(&format!("{}: goes on after {kept}, checked again", path.display()));
    }
    Ok(refuted)
}

/// The file of what is refuted.
struct Book<'a> {
    path: Option<&'a Path>,
    n: usize,
    written: Instant,
    failure: Option<Failure>,
}

impl Book<'_> {
    fn keep(&mut self, refuted: &Refutations) {
        if self.written.elapsed() >= KEEP_EVERY {
            self.write(refuted);
        }
    }

    fn write(&mut self, refuted: &Refutations) {
        let Some(path) = self.path else { return };
        let bytes = resume::write(self.n, refuted);
        let write = |out: &mut io::BufWriter<&fs::File>| io::Write::write_all(out, &bytes);
        let written = WholeFile::begin(path).and_then(|file| file.finish_with(write));
        self.failure = written.err().map(|error| cannot_be_written(path, &error));
        self.written = Instant::now();
    }
}
