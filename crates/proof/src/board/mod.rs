//! The board: squares, pieces, problems, and the reference checkers.
//!
//! Nothing here uses bit masks: these are the plain definitions, for boards of any size. Rows and
//! columns are 0-based in code and 1-based in all input and output; row 1 is on top.

mod checker;
pub mod conflict_graph;
mod norm;
mod occupied_lines;
mod piece;
mod placement;
mod problem;
mod square;

pub use checker::{first_attack, is_solution};
pub use norm::{Norm, UnknownNorm};
pub use occupied_lines::OccupiedLines;
pub use piece::{Piece, UnknownPiece};
pub use placement::{Placement, PlacementError};
pub use problem::{Problem, ProblemError};
pub use square::{Square, SquareError, parse_squares};
