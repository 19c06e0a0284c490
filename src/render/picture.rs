//! Placements as pictures. The SVG is one line, its size is proportional to the number of pieces,
//! and its description says in words what it shows; the PNG is rendered from it.

use std::io::{self, Write};

use resvg::{tiny_skia, usvg};

use super::plural;
use crate::board::{Piece, Placement};

/// The side of a square in the units of the picture.
const SIDE: usize = 40;
/// The maximum number of pieces whose squares the description lists.
const MOST_IN_WORDS: usize = 32;
/// The side of a PNG in pixels up to which its squares are enlarged.
const PNG_SIDE: usize = 2048;
/// The minimum and maximum side of a square in a PNG, in pixels.
const PNG_SQUARE: (usize, usize) = (4, 64);

/// A queen on a square of side 40: five points, a body, a foot.
pub(super) const QUEEN: &str = "<path d=\"M9 14 13 26H27L31 14 25 21 24 10 20 20 16 10 15 21Z\"/>\
    <path d=\"M12 28H28V30H12ZM10 32H30V35H10Z\"/>\
    <circle cx=\"9\" cy=\"12\" r=\"2\"/><circle cx=\"16\" cy=\"8\" r=\"2\"/>\
    <circle cx=\"24\" cy=\"8\" r=\"2\"/><circle cx=\"31\" cy=\"12\" r=\"2\"/>";
/// A rook on a square of side 40: battlements, a tower, a foot.
const ROOK: &str = "<path d=\"M11 8H15V11H18V8H22V11H25V8H29V15H11ZM14 16H26V29H14ZM12 30H28V32H12ZM10 33H30V36H10Z\"/>";

/// Writes the board as an SVG document on one line.
pub(super) fn svg(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    let n = placement.n();
    // The shortest visible side: an empty board still has a frame.
    let side = n * SIDE + 2;
    let title =
        format!("{} {} on a board of size {n}", placement.pieces(), plural(placement.piece()));
    let words = if placement.pieces() <= MOST_IN_WORDS {
        let squares: Vec<String> = placement.squares().map(|square| square.to_string()).collect();
        format!("Pieces on row,column: {}.", squares.join(" "))
    } else {
        "One piece in each row.".to_owned()
    };
    let shape = if placement.piece() == Piece::Rook { ROOK } else { QUEEN };
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{side}\" height=\"{side}\" \
         viewBox=\"-1 -1 {side} {side}\" role=\"img\"><title>{title}</title><desc>{words}</desc>\
         <defs><pattern id=\"squares\" width=\"{two}\" height=\"{two}\" patternUnits=\"userSpaceOnUse\">\
         <path fill=\"#f0d9b5\" d=\"M0 0H{two}V{two}H0Z\"/>\
         <path fill=\"#b58863\" d=\"M{SIDE} 0H{two}V{SIDE}H{SIDE}ZM0 {SIDE}H{SIDE}V{two}H0Z\"/></pattern>\
         <g id=\"piece\">{shape}</g></defs>\
         <path fill=\"url(#squares)\" stroke=\"#222222\" stroke-width=\"1\" d=\"M0 0H{board}V{board}H0Z\"/>\
         <g fill=\"#222222\">",
        two = 2 * SIDE,
        board = n * SIDE,
    )?;
    for square in placement.squares() {
        write!(
            out,
            "<use href=\"#piece\" x=\"{}\" y=\"{}\"/>",
            square.col * SIDE,
            square.row * SIDE
        )?;
    }
    writeln!(out, "</g></svg>")
}

/// Writes the same picture as a PNG; [`super::Drawing::fits`] has checked its size.
pub(super) fn png(placement: &Placement, out: &mut impl Write) -> io::Result<()> {
    let mut document = Vec::new();
    svg(placement, &mut document)?;
    rasterise(&document, placement.n(), out)
}

/// Renders an SVG document of a board of size `n` as a PNG.
pub(super) fn rasterise(document: &[u8], n: usize, out: &mut impl Write) -> io::Result<()> {
    let tree =
        usvg::Tree::from_data(document, &usvg::Options::default()).map_err(io::Error::other)?;
    let (least, largest) = PNG_SQUARE;
    let square = (PNG_SIDE / n).clamp(least, largest);
    let scale = square as f32 / SIDE as f32;
    let side = (tree.size().width() * scale).ceil() as u32;
    let mut pixels = tiny_skia::Pixmap::new(side, side)
        .ok_or_else(|| io::Error::other("a picture without pixels"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    out.write_all(&pixels.encode_png().map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::drawn;
    use super::*;
    use crate::board::Problem;
    use crate::render::Drawing;

    fn placement(piece: Piece, columns: &[usize]) -> Placement {
        Placement::check_solution(&Problem::empty(piece, columns.len()), columns)
            .expect("a solution")
    }

    #[test]
    fn the_svg_is_well_formed_and_has_a_title_and_one_piece_per_row() {
        for (piece, columns) in
            [(Piece::Queen, vec![2, 4, 1, 3]), (Piece::Rook, (1..=40).collect())]
        {
            let document = drawn(Drawing::Svg, piece, &columns);
            assert_eq!(document.lines().count(), 1);
            let tree = usvg::roxmltree::Document::parse(&document).expect("well-formed XML");
            let root = tree.root_element();
            let n = columns.len();
            assert_eq!(root.attribute("role"), Some("img"));
            assert_eq!(root.attribute("width"), Some((n * 40 + 2).to_string().as_str()));
            assert_eq!(root.first_element_child().map(|e| e.tag_name().name()), Some("title"));
            assert_eq!(tree.descendants().filter(|e| e.has_tag_name("use")).count(), n);
            let lists_squares = document.contains("row,column: 1,2 2,4 3,1 4,3.");
            assert_eq!(lists_squares, n == 4, "{document}");
        }
    }

    #[test]
    fn the_png_is_dark_exactly_on_the_squares_of_queens() {
        let columns = [1usize, 3, 0, 2];
        let mut bytes = Vec::new();
        png(&placement(Piece::Queen, &columns), &mut bytes).expect("memory can be written");
        let picture = tiny_skia::Pixmap::decode_png(&bytes).expect("a PNG");
        assert_eq!((picture.width(), picture.height()), (260, 260));
        let dark = |row: usize, col: usize| {
            let inside = |at: usize| (at * 64 + 6) as u32..(at * 64 + 58) as u32;
            let pixels = inside(row).flat_map(|y| inside(col).map(move |x| (x, y)));
            pixels.filter(|&(x, y)| picture.pixel(x, y).is_some_and(|p| p.red() < 0x40)).count()
        };
        for (row, &queen) in columns.iter().enumerate() {
            for col in 0..4 {
                assert_eq!(
                    dark(row, col) > 300,
                    col == queen,
                    "row {row}, column {col}: {}",
                    dark(row, col)
                );
                assert!(col == queen || dark(row, col) == 0, "row {row}, column {col}");
            }
        }
    }

    #[test]
    fn the_largest_png_decodes() {
        let columns: Vec<usize> = (0..super::super::MAX_PNG).collect();
        let mut bytes = Vec::new();
        png(&placement(Piece::Rook, &columns), &mut bytes).expect("memory can be written");
        let picture = tiny_skia::Pixmap::decode_png(&bytes).expect("a PNG");
        assert!(picture.width() <= 4100, "{}", picture.width());
    }
}
