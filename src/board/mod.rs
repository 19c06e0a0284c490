//! The board: squares, pieces, problems, and the one checker that everything else answers to.
//!
//! Nothing here uses bit masks: these are the plain definitions, for boards of any size.
//! Rows and columns are 0-based in code and 1-based wherever people read or write them; row 1 is on top.

mod checker;
mod piece;
mod problem;
mod square;

pub use checker::{first_attack, is_solution};
pub use piece::{Piece, UnknownPiece};
pub use problem::{Problem, ProblemError};
pub use square::{Square, SquareError, parse_squares};
