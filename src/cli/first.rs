//! `nqueens first`.

use std::time::Duration;

use super::answer::Shape;
use super::solver::SolverChoice;
use super::terminal::{Terminal, time_limit};
use super::verdict::{Report, placement};
use super::{Exit, Failure};
use crate::board::Piece;
use crate::optimise::{BEST_SOLVER, FirstMethod, first};

/// Find the lexicographically first solution (OEIS A141843), with a proof in integers that none comes before it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board size.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    /// The method: cp, ilp-iter, ilp-trunc, lex-dfs, cutting-plane or ilp-weights.
    #[arg(long, default_value_t = DEFAULT)]
    method: FirstMethod,
    #[command(flatten)]
    solver: SolverChoice,
    /// Stop after this time with the best that was found: a number and s, m or h.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    shape: Shape,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// The fastest of the methods.
const DEFAULT: FirstMethod = FirstMethod::Cp;

/// The largest board of these methods: its 0-1 programme has 62,500 variables, far more than anybody has time for.
pub(super) const LARGEST: usize = 250;

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
    let solver = if method.needs_solver() { Some(args.solver.solver(args.quiet)?) } else { None };
    let mut terminal = Terminal::new("row", args.time_limit, args.quiet);
    let answer = first(n, method, solver.unwrap_or(BEST_SOLVER), &mut terminal);
    terminal.finish();
    let answer = answer.map_err(Failure::usage)?;
    let found = placement(n, method.name(), &answer)?;
    let solver = solver.map(|solver| solver.name());
    Report::new(n, method.name(), solver, &answer, terminal.elapsed()).finish(
        found.as_ref(),
        format,
        &terminal,
    )
}
