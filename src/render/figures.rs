//! The figures of the pieces, and the dots that replace them on large boards.

use crate::board::Piece;

/// The largest board with figures; larger ones have dots.
pub(super) const MOST_FIGURES: usize = 24;

/// A queen on a square of side 40: five points, a body, a foot.
const QUEEN: &str = "<path d=\"M9 14 13 26H27L31 14 25 21 24 10 20 20 16 10 15 21Z\"/>\
    <path d=\"M12 28H28V30H12ZM10 32H30V35H10Z\"/>\
    <circle cx=\"9\" cy=\"12\" r=\"2\"/><circle cx=\"16\" cy=\"8\" r=\"2\"/>\
    <circle cx=\"24\" cy=\"8\" r=\"2\"/><circle cx=\"31\" cy=\"12\" r=\"2\"/>";
/// A rook on a square of side 40: battlements, a tower, a foot.
const ROOK: &str = "<path d=\"M11 8H15V11H18V8H22V11H25V8H29V15H11ZM14 16H26V29H14ZM12 30H28V32H12ZM10 33H30V36H10Z\"/>";
const DOT: &str = "<circle cx=\"20\" cy=\"20\" r=\"15\"/>";

/// Returns the shape of a piece on a square of side 40, on a board with this many rows or columns.
pub(super) fn shape(piece: Piece, side: usize) -> &'static str {
    match piece {
        _ if side > MOST_FIGURES => DOT,
        Piece::Rook => ROOK,
        Piece::Queen | Piece::Superqueen | Piece::Toroidal => QUEEN,
    }
}

/// Returns the shape of a piece on coloured rings: bright, or dark on a bright disc.
pub(super) fn bright(piece: Piece, side: usize) -> String {
    let disc = "<circle cx=\"20\" cy=\"20\" r=\"19\" fill=\"#fffaf0\"/>";
    if side > MOST_FIGURES {
        return "<circle cx=\"20\" cy=\"20\" r=\"16\" fill=\"#fffaf0\" stroke=\"#1a183e\" stroke-width=\"3\"/>".into();
    }
    let shape = shape(piece, side);
    format!("{disc}<g fill=\"#1a183e\" transform=\"translate(4 4.5) scale(0.8)\">{shape}</g>")
}
