//! `nqueens greedy`.

use std::io::Write as _;

use serde::Serialize;

use super::args::number;
use super::interrupt::Interrupt;
use super::picture_args::PictureArgs;
use super::solution_output::object;
use super::stream::Stream;
use super::{Exit, Failure};
use crate::board::{OccupiedLines, Piece, Square};
use crate::render::Picture;
use crate::report::counted;
use crate::solver::classical::greedy::Greedy;

/// Place queens greedily on an infinite board, and print their columns (OEIS A065188).
///
/// Row by row, each queen is placed in the leftmost column where no queen above attacks it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The number of queens, from 1 to 10 000 000.
    #[arg(value_name = "K", value_parser = queens, allow_negative_numbers = true)]
    queens: usize,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pictures: PictureArgs,
}

fn queens(text: &str) -> Result<usize, String> {
    number(text, "number of queens", 1, 10_000_000)
}

/// A line of the output of `--json`.
#[derive(Debug, Serialize)]
struct Line {
    row: usize,
    column: usize,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen();
    let has_picture = args.pictures.given().is_some();
    let last_column = |queens: Greedy| queens.take(args.queens).map(|queen| queen.col).max();
    let columns = has_picture.then(|| last_column(Greedy::default())).flatten();
    let pictures = args.pictures.begin(args.queens, columns.map_or(0, |col| col + 1))?;
    let mut squares: Vec<Square> = Vec::new();
    let mut stream = Stream::begin();
    // An infinite board has no edges to join.
    let mut lines = OccupiedLines::new(Piece::Queen, usize::MAX);
    for (row, queen) in Greedy::default().take(args.queens).enumerate() {
        if queen.row != row || !lines.add(queen) {
            stream.finish()?;
            let message = format!(
                "internal error: the queen on {queen} is attacked or in a wrong row; please report this"
            );
            return Err(Failure { exit: Exit::CheckFailed, message });
        }
        if has_picture {
            squares.push(queen);
        }
        let (row, column) = (queen.row + 1, queen.col + 1);
        let flow = if args.json {
            object(&mut stream, &Line { row, column })
        } else {
            stream.write(|out| writeln!(out, "{column}"))
        };
        if flow.is_break() {
            break;
        }
        if interrupt.is_raised() {
            stream.finish()?;
            return Err(Failure {
                exit: Exit::Interrupted,
                message: format!("interrupted after {}", counted(row as u128, "queen")),
            });
        }
    }
    stream.finish()?;
    if let Some(columns) = columns.filter(|_| squares.len() == args.queens) {
        let title = format!(
            "The first {} on the infinite board",
            counted(args.queens as u128, "greedy queen")
        );
        let picture = Picture::of_squares(Piece::Queen, args.queens, columns + 1, &squares);
        pictures.finish(&picture.titled(title))?;
    }
    Ok(Exit::Done)
}
