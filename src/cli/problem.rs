//! Board sizes and decided squares, as users write them.

use super::Failure;
use super::count::board_size;
use crate::board::{Piece, Problem, Square, SquareError, parse_squares};

/// Squares that are decided before anything begins.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DecidedSquares {
    /// A square that holds a queen, counted from 1, row 1 on top; several: repeat, or --place '2,4 4,5'.
    #[arg(long, value_name = "ROW,COL", value_parser = squares, allow_hyphen_values = true)]
    place: Vec<Squares>,
    /// A square on which no queen may stand; several: repeat, or --block '1,1 8,8'.
    #[arg(long, value_name = "ROW,COL", value_parser = squares, allow_hyphen_values = true)]
    block: Vec<Squares>,
}

/// A board that is counted.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Board {
    /// The board size: rows, columns and queens, from 0 to 32.
    #[arg(value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    #[command(flatten)]
    squares: DecidedSquares,
    /// The piece: queen, rook, superqueen (queen and knight) or toroidal (opposite edges are joined).
    #[arg(long, default_value = "queen")]
    piece: Piece,
}

impl Board {
    /// What is to be counted.
    pub(super) fn problem(&self) -> Result<Problem, Failure> {
        self.squares.problem(self.piece, self.n)
    }
}

/// The squares of one flag.
#[derive(Clone, Debug)]
struct Squares(Vec<Square>);

fn squares(text: &str) -> Result<Squares, SquareError> {
    parse_squares(text).map(Squares)
}

impl DecidedSquares {
    /// The board of size `n` with these squares.
    pub(super) fn problem(&self, piece: Piece, n: usize) -> Result<Problem, Failure> {
        let list = |flags: &[Squares]| flags.iter().flat_map(|f| f.0.iter().copied()).collect();
        Problem::new(piece, n, list(&self.place), list(&self.block)).map_err(Failure::usage)
    }
}

/// Reads `what`, a whole number between two bounds.
pub(super) fn number(text: &str, what: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        format!("'{text}' is not {what}; write a whole number from {least} to {most}")
    })
}
