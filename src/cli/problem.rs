//! Board sizes and decided squares, as users write them.

use super::Failure;
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
    number.ok_or_else(|| format!("'{text}' is not {what}; write a whole number from {least} to {most}"))
}
