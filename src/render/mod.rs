//! Drawings of placements: text, diagrams, pictures. Text, diagrams and SVG are streamed, so they
//! need no memory beyond the placement itself. They do not validate placements, since a
//! [`Placement`] is already valid.

mod attacks;
mod diagram;
mod figures;
mod layout;
mod line;
mod picture;
#[cfg(test)]
mod picture_tests;
mod raster;
mod rings;
mod sheet;
mod strokes;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use crate::board::{Piece, Placement};

pub use attacks::{MAX_ATTACKS, attackers, attacking_pairs};
pub use picture::{Look, Picture, PictureFormat};
pub use raster::write_png;
pub use sheet::{MAX_SHEET, Sheet};

/// The format in which a placement is drawn. Rows and columns are 1-based, row 1 is at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Drawing {
    /// The column of the piece in each row: `2 4 1 3`; a row without a piece is `-`.
    Text,
    /// Like `Text` without spaces, with 10 to 35 as letters: `2413`.
    Digits,
    /// A diagram of `♛` and `·`.
    Board,
    /// A diagram of `X` and `0`: `0 X 0 0`.
    Ascii,
    /// Every variable of the 0-1 program: `x1,1=0 x1,2=1 …`.
    Variables,
    /// A list of (row column) lists: `((1 2) (2 4) (3 1) (4 3))`.
    Pairs,
    /// A chess position, with row 1 as rank 8.
    Fen,
    /// Columns separated by commas; see [`Drawing::header`].
    Csv,
    /// A scalable picture, on one line.
    Svg,
    /// A raster image.
    Png,
}

/// The error returned when a name is not that of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a format; choose {all}", all = Drawing::names())]
pub struct UnknownDrawing(String);

/// The error returned when a board cannot be drawn in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawingError {
    /// There are not enough digits: each column needs one character.
    #[error("digits are for boards up to n = {MAX_DIGITS}; choose text")]
    Digits,
    /// A chess board has 8 rows.
    #[error("a FEN is for n = 8; choose another format")]
    Fen,
    /// A chess position has only queens and rooks.
    #[error("a FEN is for queens and rooks; choose another format")]
    FenPiece,
    /// The picture would have too many pixels, or none.
    #[error("a PNG is for boards from n = 1 to {MAX_PNG}; choose svg or text")]
    Png,
    /// The attacked squares of a large board would be too many.
    #[error("attacks are drawn on boards up to n = {MAX_ATTACKS}")]
    Attacks,
}

/// The largest board of [`Drawing::Digits`]: columns 1 to 9 and a to z.
pub const MAX_DIGITS: usize = 35;
/// The largest board of [`Drawing::Png`].
pub const MAX_PNG: usize = 1024;

impl Drawing {
    /// All formats.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Digits,
        Self::Board,
        Self::Ascii,
        Self::Variables,
        Self::Pairs,
        Self::Fen,
        Self::Csv,
        Self::Svg,
        Self::Png,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Digits => "digits",
            Self::Board => "board",
            Self::Ascii => "ascii",
            Self::Variables => "variables",
            Self::Pairs => "pairs",
            Self::Fen => "fen",
            Self::Csv => "csv",
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }

    /// Returns all names, as a list in a sentence.
    pub fn names() -> String {
        let names = Self::ALL.map(Self::name);
        let (last, others) = names.split_last().expect("there are drawings");
        format!("{} or {last}", others.join(", "))
    }

    /// Checks whether boards of size `n` with this piece can be drawn in this format.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub fn fits(self, piece: Piece, n: usize) -> Result<(), DrawingError> {
        match self {
            Self::Digits if n > MAX_DIGITS => Err(DrawingError::Digits),
            Self::Fen if n != 8 => Err(DrawingError::Fen),
            Self::Fen if !matches!(piece, Piece::Queen | Piece::Rook) => {
                Err(DrawingError::FenPiece)
            }
            Self::Png => Picture::fits_png(n, n),
            _ => Ok(()),
        }
    }

    /// Returns whether several drawings can be concatenated: true for all but PNG.
    pub const fn streams(self) -> bool {
        !matches!(self, Self::Png)
    }

    /// Returns the text before the first of several drawings: the column names of a CSV table,
    /// otherwise `None`.
    pub fn header(self, n: usize) -> Option<String> {
        let names = || (1..=n).map(|row| format!("row{row}")).collect::<Vec<_>>().join(",");
        (self == Self::Csv).then(names)
    }

    /// Returns the text between two drawings: an empty line after diagrams, otherwise nothing.
    pub const fn separator(self) -> &'static str {
        match self {
            Self::Board | Self::Ascii => "\n",
            _ => "",
        }
    }

    /// Draws `placement`, with a line feed at the end unless it is a PNG. If `coloured`, diagrams
    /// are chequered by terminal colours.
    ///
    /// # Errors
    /// The writer fails; an error of [`Self::fits`] has kind `Unsupported`.
    pub fn write(
        self,
        placement: &Placement,
        coloured: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.fits(placement.piece(), placement.n())
            .map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
        match self {
            Self::Text => line::text(placement, out),
            Self::Digits => line::digits(placement, out),
            Self::Board => diagram::unicode(placement, coloured, out),
            Self::Ascii => diagram::ascii(placement, out),
            Self::Variables => line::variables(placement, out),
            Self::Pairs => line::pairs(placement, out),
            Self::Fen => line::fen(placement, out),
            Self::Csv => line::csv(placement, out),
            Self::Svg => Picture::of(placement).write(PictureFormat::Svg, out),
            Self::Png => Picture::of(placement).write(PictureFormat::Png, out),
        }
    }
}

impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Drawing {
    type Err = UnknownDrawing;

    fn from_str(text: &str) -> Result<Self, UnknownDrawing> {
        Self::ALL
            .into_iter()
            .find(|d| d.name() == text)
            .ok_or_else(|| UnknownDrawing(text.to_owned()))
    }
}

/// Returns a number of pieces in words: "8 queens".
fn counted(count: usize, piece: Piece) -> String {
    format!("{count} {}{}", piece.noun(), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Problem;

    /// Returns the drawing of these columns, which start at 1.
    pub(super) fn drawn(drawing: Drawing, piece: Piece, columns: &[usize]) -> String {
        let columns: Vec<usize> = columns.iter().map(|col| col - 1).collect();
        let placement = Placement::check_solution(&Problem::empty(piece, columns.len()), &columns);
        let mut out = Vec::new();
        drawing
            .write(&placement.expect("a solution"), false, &mut out)
            .expect("memory can be written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn names_of_drawings_round_trip() {
        for drawing in Drawing::ALL {
            assert_eq!(drawing.name().parse(), Ok(drawing));
        }
        let refused = "gif".parse::<Drawing>().expect_err("not a drawing").to_string();
        assert!(refused.contains("gif") && refused.contains("svg or png"), "{refused}");
    }

    #[test]
    fn boards_that_do_not_fit_are_refused_before_anything_is_written() {
        let columns: Vec<usize> = (0..36).collect();
        let placement =
            Placement::check_solution(&Problem::empty(Piece::Rook, 36), &columns).expect("rooks");
        for drawing in [Drawing::Digits, Drawing::Fen] {
            let mut out = Vec::new();
            let error = drawing.write(&placement, false, &mut out).expect_err("36 rows");
            assert_eq!((error.kind(), out.len()), (io::ErrorKind::Unsupported, 0));
        }
        assert_eq!(Drawing::Png.fits(Piece::Queen, 1025), Err(DrawingError::Png));
        assert_eq!(Drawing::Png.fits(Piece::Queen, 0), Err(DrawingError::Png));
        assert_eq!(Drawing::Fen.fits(Piece::Toroidal, 8), Err(DrawingError::FenPiece));
    }

    #[test]
    fn the_empty_board_is_an_empty_line_or_picture() {
        for drawing in [Drawing::Text, Drawing::Digits, Drawing::Variables, Drawing::Csv] {
            assert_eq!(drawn(drawing, Piece::Queen, &[]), "\n", "{drawing}");
        }
        assert_eq!(drawn(Drawing::Pairs, Piece::Queen, &[]), "()\n");
        assert_eq!(drawn(Drawing::Board, Piece::Queen, &[]), "");
        assert!(drawn(Drawing::Svg, Piece::Queen, &[]).contains("<title>"));
    }
}
