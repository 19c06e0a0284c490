//! The pieces, each with the plain definition of what it attacks.

use std::fmt;
use std::str::FromStr;

use super::Square;

/// A kind of piece. One stands in each row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// Attacks its row, its column and both diagonals (OEIS A000170).
    Queen,
    /// Attacks its row and its column (n! solutions).
    Rook,
    /// A queen that also attacks like a knight (OEIS A051223).
    Superqueen,
    /// A queen on a torus, where opposite edges of the board are joined (OEIS A007705).
    Toroidal,
}

/// The error for a text that names no piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPiece(String);

impl fmt::Display for UnknownPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a piece; choose queen, rook, superqueen or toroidal", self.0)
    }
}

impl std::error::Error for UnknownPiece {}

impl Piece {
    /// All pieces.
    pub const ALL: [Self; 4] = [Self::Queen, Self::Rook, Self::Superqueen, Self::Toroidal];

    /// Returns the name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queen => "queen",
            Self::Rook => "rook",
            Self::Superqueen => "superqueen",
            Self::Toroidal => "toroidal",
        }
    }

    /// Returns the name for a reader, in the singular.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Toroidal => "toroidal queen",
            other => other.name(),
        }
    }

    /// Returns whether a piece on `a` attacks one on the different square `b`, on a board of size
    /// `n`.
    #[inline]
    pub fn attacks(self, n: usize, a: Square, b: Square) -> bool {
        let (rows, cols) = (a.row.abs_diff(b.row), a.col.abs_diff(b.col));
        let rook = rows == 0 || cols == 0;
        let queen = rook || rows == cols;
        match self {
            Self::Queen => queen,
            Self::Rook => rook,
            Self::Superqueen => queen || (rows, cols) == (1, 2) || (rows, cols) == (2, 1),
            Self::Toroidal => {
                let same = |x: usize, y: usize| x % n == y % n;
                rook || same(a.row + a.col, b.row + b.col) || same(a.row + b.col, b.row + a.col)
            }
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Piece {
    type Err = UnknownPiece;

    fn from_str(text: &str) -> Result<Self, UnknownPiece> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == text)
            .ok_or_else(|| UnknownPiece(text.to_owned()))
    }
}
