//! `nqueens greedy`.

use std::io::Write as _;

use serde::Serialize;

use super::args::{cores, number};
use super::interrupt::Interrupt;
use super::picture_args::PictureArgs;
use super::solution_output::{columns_from_one, object, refused, spaced};
use super::stream::Stream;
use super::terminal::Terminal;
use super::{Exit, Failure, print_report};
use crate::board::{OccupiedLines, Piece, Placement, Problem, Square};
use crate::render::Picture;
use crate::report::counted;
use crate::solver::classical::greedy::Greedy;
use crate::solver::first::{Options, first_solution};

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
    /// Compare the first solution for n = K (OEIS A141843), with n up to 55, with the first K
    /// greedy queens: print the rows in which both have the same column.
    #[arg(long)]
    overlap: bool,
}

/// The largest board of `--overlap`. The first solutions up to here take some seconds at most, on
/// one core.
const LARGEST_OVERLAP: usize = 55;

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
    if args.overlap {
        return overlap(args.queens, args.json);
    }
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
            return Err(Failure::new(Exit::CheckFailed, message));
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
            return Err(Failure::new(
                Exit::Interrupted,
                format!("interrupted after {}", counted(row as u128, "queen")),
            ));
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

/// The output of `--overlap --json`. Rows and columns are counted from 1.
#[derive(Debug, Serialize)]
struct Overlap {
    n: usize,
    /// The number of rows from the top in which both agree, before the first that differs.
    overlap: usize,
    /// All rows in which both agree.
    rows: Vec<usize>,
    first: Vec<usize>,
    greedy: Vec<usize>,
}

impl Overlap {
    /// Compares the columns of the first solution, from 0, with the greedy queens.
    fn of(first: &[usize]) -> Self {
        let greedy: Vec<usize> = Greedy::default().take(first.len()).map(|q| q.col).collect();
        let agrees = |&row: &usize| first[row] == greedy[row];
        Self {
            n: first.len(),
            overlap: (0..first.len()).take_while(agrees).count(),
            rows: (0..first.len()).filter(agrees).map(|row| row + 1).collect(),
            first: columns_from_one(first),
            greedy: columns_from_one(&greedy),
        }
    }

    fn text(&self) -> String {
        format!(
            "first    {}\ngreedy   {}\noverlap  {} from the top\nrows     {}\n",
            spaced(&self.first),
            spaced(&self.greedy),
            counted(self.overlap as u128, "row"),
            if self.rows.is_empty() { "none".into() } else { spaced(&self.rows) },
        )
    }
}

/// Prints the rows that the first solution for n and the greedy queens share.
fn overlap(n: usize, json: bool) -> Result<Exit, Failure> {
    if n > LARGEST_OVERLAP {
        return Err(Failure::usage(format!(
            "--overlap supports boards up to n = {LARGEST_OVERLAP}, not n = {n}"
        )));
    }
    let options = Options { threads: cores(), ..Options::default() };
    let mut terminal = Terminal::new("row", None, false);
    let found = first_solution(n, options, &mut terminal, &mut |_| {});
    terminal.finish();
    if !found.finished {
        let message = "interrupted before the first solution was found";
        return Err(Failure::new(Exit::Interrupted, message));
    }
    let Some(columns) = found.solution else {
        let message = format!("no solution exists for n = {n}");
        return Err(Failure::new(Exit::NoSolution, message));
    };
    Placement::check_solution(&Problem::empty(Piece::Queen, n), &columns)
        .map_err(|error| refused("exact", &error))?;
    let overlap = Overlap::of(&columns);
    print_report(json, &overlap, || overlap.text())?;
    Ok(Exit::Done)
}
