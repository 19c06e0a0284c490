//! Placements on one line.

use std::io::{self, Write};

use crate::board::{Piece, Placement};

/// Writes `words`, separated by `between`, and a line feed.
pub(super) fn joined(
    out: &mut impl Write,
    between: &str,
    words: impl Iterator<Item = impl std::fmt::Display>,
) -> io::Result<()> {
    for (i, word) in words.enumerate() {
        out.write_all(if i == 0 { "" } else { between }.as_bytes())?;
        write!(out, "{word}")?;
    }
    writeln!(out)
}

/// Returns the column of a piece, starting at 1, as a word, or `none` for a row without a piece.
fn column(column: Option<usize>, none: &str) -> String {
    column.map_or_else(|| none.to_owned(), |col| (col + 1).to_string())
}

pub(super) fn text(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    joined(out, " ", placement.columns().map(|col| column(col, "-")))
}

pub(super) fn csv(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    joined(out, ",", placement.columns().map(|col| column(col, "")))
}

pub(super) fn digits(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    let digit = |col: Option<usize>| match col {
        None => '-',
        // `Drawing::fits` has ensured that 36 digits suffice.
        Some(col) => {
            u32::try_from(col + 1).ok().and_then(|d| char::from_digit(d, 36)).unwrap_or('?')
        }
    };
    joined(out, "", placement.columns().map(digit))
}

pub(super) fn variables(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    let n = placement.n();
    let in_row = |(row, piece): (usize, Option<usize>)| {
        (0..n).map(move |col| format!("x{},{}={}", row + 1, col + 1, u8::from(piece == Some(col))))
    };
    joined(out, " ", placement.columns().enumerate().flat_map(in_row))
}

pub(super) fn pairs(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"(")?;
    for (i, square) in placement.squares().enumerate() {
        write!(out, "{}({} {})", if i == 0 { "" } else { " " }, square.row + 1, square.col + 1)?;
    }
    writeln!(out, ")")
}

/// White pieces only, white to move.
pub(super) fn fen(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    let n = placement.n();
    let letter = if placement.piece() == Piece::Rook { 'R' } else { 'Q' };
    let empty = |squares: usize| if squares == 0 { String::new() } else { squares.to_string() };
    let rank = |col: Option<usize>| match col {
        None => empty(n),
        Some(col) => format!("{}{letter}{}", empty(col), empty(n - 1 - col)),
    };
    let ranks: Vec<String> = placement.columns().map(rank).collect();
    writeln!(out, "{} w - - 0 1", ranks.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::drawn;
    use crate::board::{Piece, Placement, Problem};
    use crate::render::Drawing;

    #[test]
    fn the_first_solution_of_the_4_board_on_one_line() {
        for (drawing, line) in [
            (Drawing::Text, "2 4 1 3\n"),
            (Drawing::Digits, "2413\n"),
            (Drawing::Csv, "2,4,1,3\n"),
            (Drawing::Pairs, "((1 2) (2 4) (3 1) (4 3))\n"),
            (
                Drawing::Variables,
                "x1,1=0 x1,2=1 x1,3=0 x1,4=0 x2,1=0 x2,2=0 x2,3=0 x2,4=1 \
                 x3,1=1 x3,2=0 x3,3=0 x3,4=0 x4,1=0 x4,2=0 x4,3=1 x4,4=0\n",
            ),
        ] {
            assert_eq!(drawn(drawing, Piece::Queen, &[2, 4, 1, 3]), line, "{drawing}");
        }
        assert_eq!(Drawing::Csv.header(4).as_deref(), Some("row1,row2,row3,row4"));
    }

    #[test]
    fn a_chess_position_has_row_1_as_rank_8() {
        let columns = [1, 5, 8, 6, 3, 7, 2, 4];
        assert_eq!(
            drawn(Drawing::Fen, Piece::Queen, &columns),
            "Q7/4Q3/7Q/5Q2/2Q5/6Q1/1Q6/3Q4 w - - 0 1\n"
        );
        assert!(drawn(Drawing::Fen, Piece::Rook, &[1, 2, 3, 4, 5, 6, 7, 8]).starts_with("R7/1R6/"));
    }

    #[test]
    fn columns_from_10_on_are_letters() {
        let columns: Vec<usize> = (1..=35).collect();
        assert_eq!(
            drawn(Drawing::Digits, Piece::Rook, &columns),
            "123456789abcdefghijklmnopqrstuvwxyz\n"
        );
    }

    #[test]
    fn rows_without_a_piece_are_visible() {
        let placement = Placement::check(
            &Problem::empty(Piece::Queen, 8),
            &[None, Some(2), None, None, None, None, None, None],
        )
        .expect("a placement");
        for (drawing, line) in [
            (Drawing::Text, "- 3 - - - - - -\n"),
            (Drawing::Digits, "-3------\n"),
            (Drawing::Csv, ",3,,,,,,\n"),
            (Drawing::Pairs, "((2 3))\n"),
            (Drawing::Fen, "8/2Q5/8/8/8/8/8/8 w - - 0 1\n"),
        ] {
            let mut out = Vec::new();
            drawing.write(&placement, false, &mut out).expect("memory can be written");
            assert_eq!(String::from_utf8(out).as_deref(), Ok(line), "{drawing}");
        }
    }
}
