//! Boards and options from plain numbers and texts.

use std::num::NonZeroUsize;

use nqueens::board::{Norm, Piece, Problem, Square, parse_squares};
use nqueens::engine::CountOptions;

use crate::failure::Failure;

/// Squares, as they are given: rows and columns from 1, or a text as on the command line.
#[derive(Clone, Debug)]
pub enum Squares<'a> {
    /// Rows and columns, counted from 1.
    Numbers(&'a [(usize, usize)]),
    /// A text such as `1,1 d2`.
    Text(&'a str),
}

impl Squares<'_> {
    fn read(&self) -> Result<Vec<Square>, Failure> {
        match self {
            Self::Text(text) if text.trim().is_empty() => Ok(Vec::new()),
            Self::Text(text) => parse_squares(text).map_err(Failure::usage),
            Self::Numbers(squares) => squares
                .iter()
                .map(|(row, col)| match (row.checked_sub(1), col.checked_sub(1)) {
                    (Some(row), Some(col)) => Ok(Square::new(row, col)),
                    // The text of the parser: rows and columns are counted from 1.
                    _ => format!("{row},{col}").parse().map_err(Failure::usage),
                })
                .collect(),
        }
    }
}

/// Returns the board of size `n` with the decided squares.
///
/// # Errors
/// A square is off the board, or both placed and blocked.
pub fn board(
    piece: Piece,
    n: usize,
    place: &Squares<'_>,
    block: &Squares<'_>,
) -> Result<Problem, Failure> {
    Problem::new(piece, n, place.read()?, block.read()?).map_err(Failure::usage)
}

/// Returns the piece with a name.
///
/// # Errors
/// No piece has this name.
pub fn piece(name: &str) -> Result<Piece, Failure> {
    name.parse().map_err(Failure::usage)
}

/// Returns the norm with a name.
///
/// # Errors
/// No norm has this name.
pub fn norm(name: &str) -> Result<Norm, Failure> {
    name.parse().map_err(Failure::usage)
}

/// Checks a board size, given as a text, which may be any integer.
///
/// # Errors
/// It is not a whole number from 0 to `largest`.
pub fn size(text: &str, largest: usize) -> Result<usize, Failure> {
    text.parse().ok().filter(|n| *n <= largest).ok_or_else(|| {
        Failure::usage(format!(
            "invalid board size '{text}'; use a whole number from 0 to {largest}"
        ))
    })
}

/// The largest size of the boards of any request: those of `solve`.
pub const LARGEST_SIZE: usize = 10_000_000;

/// Checks a number of threads, given as a text.
///
/// # Errors
/// It is not a whole number from 1 to 1024.
pub fn threads(text: &str) -> Result<NonZeroUsize, Failure> {
    /// More than any machine has cores. Each thread takes about a megabyte.
    const MOST: usize = 1024;
    text.parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= MOST).ok_or_else(|| {
        let message =
            format!("invalid number of threads '{text}'; use a whole number from 1 to {MOST}");
        Failure::usage(message)
    })
}

/// Returns the options of a count.
///
/// # Errors
/// A device has an unknown name.
pub fn count_options(device: &str, threads: Option<NonZeroUsize>) -> Result<CountOptions, Failure> {
    let devices = device.parse().map_err(Failure::usage)?;
    Ok(CountOptions { threads, devices, ..CountOptions::default() })
}
