//! `nqueens beautiful`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::answer::Shape;
use super::first::board_size;
use super::solver::SolverChoice;
use super::terminal::{Terminal, time_limit};
use super::verdict::{Report, placement};
use super::{Exit, Failure};
use crate::board::{Norm, Piece};
use crate::optimise::beautiful::{Question, fingerprint, most_beautiful, most_beautiful_exactly};

/// Find a most beautiful solution: the costs of its squares, (2i−n−1)² + (2j−n−1)², sorted from the largest, are
/// lexicographically smallest.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    /// The method: exact or ilp.
    #[arg(long, default_value_t = Method::Exact)]
    method: Method,
    #[command(flatten)]
    solver: SolverChoice,
    /// Stop after this time with the best that was found: a number and s, m or h.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    /// Write the certificate.
    #[arg(long, value_name = "FILE")]
    certificate: Option<std::path::PathBuf>,
    #[command(flatten)]
    shape: Shape,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// The methods; the exact engine will join them.
#[derive(Clone, Copy, Debug)]
enum Method {
    Exact,
    Ilp,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Ilp => "ilp",
        })
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "exact" => Ok(Self::Exact),
            "ilp" => Ok(Self::Ilp),
            _ => Err(format!("'{text}' is not a method for the most beautiful solution; choose exact or ilp")),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let format = args.shape.format(Piece::Queen, args.n, false)?;
    let solver = args.solver.solver(args.quiet)?;
    let mut terminal = Terminal::new("level", args.time_limit, args.quiet);
    let (answer, certificate) = match args.method {
        Method::Ilp => (most_beautiful(args.n, solver, &mut terminal), None),
        Method::Exact => {
            let question = Question { n: args.n, norm: Norm::Euclidean, turning: false };
            let exact = most_beautiful_exactly(question, solver, &mut terminal);
            (exact.answer, exact.certificate)
        }
    };
    terminal.finish();
    let method = args.method.to_string();
    let found = placement(args.n, &method, &answer)?;
    if let (Some(path), Some(certificate)) = (&args.certificate, &certificate) {
        std::fs::write(path, certificate).expect("written");
        let t = std::time::Instant::now();
        let proved = crate::proof::check(certificate);
        super::note(&format!("{:?} bytes {} checked in {:?}", proved.map(|p| p.work), certificate.len(), t.elapsed()));
    }
    let mut report = Report::new(args.n, "exact", Some(solver.name()), &answer, terminal.elapsed());
    report.fingerprint = answer.found.as_deref().map(fingerprint);
    report.finish(found.as_ref(), format, &terminal)
}
