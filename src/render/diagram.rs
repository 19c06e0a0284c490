//! Placements as diagrams, one text line for each row.

use std::io::{self, Write};

use super::line::joined;
use crate::board::{Piece, Placement};

/// Light and dark squares with dark pieces, in the colour codes of 256-colour terminals.
const LIGHT: &str = "\x1b[38;5;16;48;5;223m";
const DARK: &str = "\x1b[38;5;16;48;5;137m";
const PLAIN: &str = "\x1b[0m";

/// Draws `♛` and `·`, or chequered squares if `coloured`.
pub(super) fn unicode(
    placement: &Placement,
    coloured: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let sign = if placement.piece() == Piece::Rook { '♜' } else { '♛' };
    if !coloured {
        return rows(placement, [sign, '·'], out);
    }
    for (row, piece) in placement.columns().enumerate() {
        for col in 0..placement.n() {
            let colour = if (row + col) % 2 == 0 { LIGHT } else { DARK };
            write!(out, "{colour}{} ", if piece == Some(col) { sign } else { ' ' })?;
        }
        writeln!(out, "{PLAIN}")?;
    }
    Ok(())
}

/// Draws `X` and `0`.
pub(super) fn ascii(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    rows(placement, ['X', '0'], out)
}

/// Draws the signs of pieces and of empty squares.
fn rows(placement: &Placement, [sign, empty]: [char; 2], out: &mut impl Write) -> io::Result<()> {
    for piece in placement.columns() {
        let square = |col| if piece == Some(col) { sign } else { empty };
        joined(out, " ", (0..placement.n()).map(square))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::drawn;
    use super::*;
    use crate::board::Problem;
    use crate::render::Drawing;

    #[test]
    fn the_first_solution_of_the_4_board_as_a_diagram() {
        assert_eq!(
            drawn(Drawing::Board, Piece::Queen, &[2, 4, 1, 3]),
            "· ♛ · ·\n· · · ♛\n♛ · · ·\n· · ♛ ·\n"
        );
        assert_eq!(
            drawn(Drawing::Ascii, Piece::Queen, &[2, 4, 1, 3]),
            "0 X 0 0\n0 0 0 X\nX 0 0 0\n0 0 X 0\n"
        );
        assert_eq!(drawn(Drawing::Board, Piece::Rook, &[2, 1]), "· ♜\n♜ ·\n");
    }

    #[test]
    fn colours_are_chequered_and_end_with_each_line() {
        let placement =
            Placement::check_solution(&Problem::empty(Piece::Rook, 2), &[1, 0]).expect("rooks");
        let mut out = Vec::new();
        unicode(&placement, true, &mut out).expect("memory can be written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, format!("{LIGHT}  {DARK}♜ {PLAIN}\n{DARK}♜ {LIGHT}  {PLAIN}\n"));
    }
}
