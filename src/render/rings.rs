//! Solutions on rings of equal cost: around the centre of the board, one ring for each cost of a
//! queen, dark outside and bright inside, drawn from the outside so that each covers the inner part
//! of the previous one.

use std::io::{self, Write};

use super::picture::{QUEEN, rasterise};
use crate::board::{Norm, Placement};

/// The side of a square in the units of the picture.
const SIDE: f64 = 40.0;

/// Colours from the outside to the inside; those between are interpolated.
const RAMP: [(f64, [f64; 3]); 5] = [
    (0.0, [26.0, 24.0, 62.0]),
    (0.3, [76.0, 43.0, 112.0]),
    (0.55, [176.0, 63.0, 101.0]),
    (0.8, [240.0, 138.0, 75.0]),
    (1.0, [253.0, 226.0, 150.0]),
];

/// The file format of a picture of rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingsFormat {
    /// SVG on one line.
    Svg,
    /// PNG.
    Png,
}

/// Draws `placement` on the rings of equal cost by `norm`. A PNG is limited to boards that fit
/// [`Drawing::Png`](super::Drawing::Png).
///
/// # Errors
/// The writer fails.
pub fn draw_rings(
    placement: &Placement,
    norm: Norm,
    format: RingsFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        RingsFormat::Svg => svg(placement, norm, out),
        RingsFormat::Png => {
            let mut document = Vec::new();
            svg(placement, norm, &mut document)?;
            rasterise(&document, placement.n(), out)
        }
    }
}

fn svg(placement: &Placement, norm: Norm, out: &mut impl Write) -> io::Result<()> {
    let n = placement.n();
    let board = n as f64 * SIDE;
    let side = board + 2.0;
    let mut costs: Vec<u64> = placement.squares().map(|square| norm.cost(n, square)).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let rings = {
        let mut rings = costs.clone();
        rings.dedup();
        rings
    };
    let words: Vec<String> = rings
        .iter()
        .map(|ring| format!("{} at {ring}", costs.iter().filter(|cost| *cost == ring).count()))
        .collect();
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{side}\" height=\"{side}\" \
         viewBox=\"-1 -1 {side} {side}\" role=\"img\"><title>{n} queens on a board of size {n}, on rings of equal \
         {norm} cost</title><desc>Queens by cost, the largest first: {}.</desc>\
         <defs><clipPath id=\"board\"><path d=\"M0 0H{board}V{board}H0Z\"/></clipPath>\
         <pattern id=\"squares\" width=\"{two}\" height=\"{two}\" patternUnits=\"userSpaceOnUse\">\
         <path fill=\"#ffffff\" fill-opacity=\"0.07\" d=\"M0 0H{SIDE}V{SIDE}H0ZM{SIDE} {SIDE}H{two}V{two}H{SIDE}Z\"/>\
         </pattern><g id=\"queen\"><circle cx=\"20\" cy=\"20\" r=\"19\" fill=\"#fffaf0\"/>\
         <g fill=\"#1a183e\" transform=\"translate(4 4.5) scale(0.8)\">{QUEEN}</g></g></defs>\
         <g clip-path=\"url(#board)\"><path fill=\"#0d0c24\" d=\"M0 0H{board}V{board}H0Z\"/>",
        words.join(", "),
        two = 2.0 * SIDE,
    )?;
    let half = board / 2.0;
    let ends = rings.first().zip(rings.last());
    let (largest, least) =
        ends.map_or((1.0, 0.0), |(&from, &to)| (radius(norm, from), radius(norm, to)));
    for &cost in &rings {
        let inside = (largest - radius(norm, cost)) / (largest - least).max(1.0);
        ring(norm, half, radius(norm, cost) * SIDE / 2.0, &colour(inside), out)?;
    }
    write!(out, "<path fill=\"url(#squares)\" d=\"M0 0H{board}V{board}H0Z\"/></g><g>")?;
    for square in placement.squares() {
        let (x, y) = (square.col as f64 * SIDE, square.row as f64 * SIDE);
        write!(out, "<use href=\"#queen\" x=\"{x}\" y=\"{y}\"/>")?;
    }
    writeln!(out, "</g></svg>")
}

/// Returns the distance of squares of this cost from the centre, in half squares; for the Manhattan
/// norm, measured along a row.
fn radius(norm: Norm, cost: u64) -> f64 {
    match norm {
        Norm::Euclidean => (cost as f64).sqrt(),
        Norm::Manhattan | Norm::Chebyshev => cost as f64,
    }
}

/// Draws the set of points of at most this radius (in the picture's units): a disc, a diamond or a
/// square.
fn ring(norm: Norm, half: f64, radius: f64, colour: &str, out: &mut impl Write) -> io::Result<()> {
    let style = format!(
        "fill=\"{colour}\" stroke=\"#ffffff\" stroke-opacity=\"0.35\" stroke-width=\"1.5\""
    );
    let (low, high) = (half - radius, half + radius);
    match norm {
        Norm::Euclidean => {
            write!(out, "<circle cx=\"{half}\" cy=\"{half}\" r=\"{radius:.2}\" {style}/>")
        }
        Norm::Manhattan => {
            write!(
                out,
                "<path d=\"M{half} {low}L{high} {half} {half} {high} {low} {half}Z\" {style}/>"
            )
        }
        Norm::Chebyshev => write!(out, "<path d=\"M{low} {low}H{high}V{high}H{low}Z\" {style}/>"),
    }
}

/// Returns the colour of a ring, from 0 (the outermost) to 1 (the innermost).
fn colour(inside: f64) -> String {
    let above = RAMP.iter().position(|stop| stop.0 >= inside).unwrap_or(RAMP.len() - 1).max(1);
    let (from, to) = (RAMP[above - 1], RAMP[above]);
    let share = ((inside - from.0) / (to.0 - from.0)).clamp(0.0, 1.0);
    let mixed = [0, 1, 2].map(|k| (from.1[k] + share * (to.1[k] - from.1[k])).round() as u8);
    format!("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2])
}

#[cfg(test)]
mod tests {
    use resvg::{tiny_skia, usvg};

    use super::*;
    use crate::board::{Piece, Problem};

    fn drawn(norm: Norm, format: RingsFormat, columns: &[usize]) -> Vec<u8> {
        let problem = Problem::empty(Piece::Queen, columns.len());
        let placement = Placement::check_solution(&problem, columns).expect("a solution");
        let mut out = Vec::new();
        draw_rings(&placement, norm, format, &mut out).expect("memory can be written");
        out
    }

    #[test]
    fn there_is_a_ring_for_each_cost_and_a_queen_for_each_row() {
        let columns = [0, 2, 4, 1, 3];
        for (norm, shape) in
            [(Norm::Euclidean, "circle"), (Norm::Manhattan, "path"), (Norm::Chebyshev, "path")]
        {
            let document =
                String::from_utf8(drawn(norm, RingsFormat::Svg, &columns)).expect("text");
            assert_eq!(document.lines().count(), 1);
            let tree = usvg::roxmltree::Document::parse(&document).expect("well-formed XML");
            let mut costs = norm.fingerprint(&columns);
            costs.dedup();
            let rings = tree
                .descendants()
                .filter(|e| e.has_tag_name(shape) && e.has_attribute("stroke-opacity"));
            assert_eq!(rings.count(), costs.len(), "{norm}");
            assert_eq!(tree.descendants().filter(|e| e.has_tag_name("use")).count(), 5);
        }
        let words = String::from_utf8(drawn(Norm::Euclidean, RingsFormat::Svg, &[1, 3, 0, 2]))
            .expect("text");
        assert!(words.contains("4 at 10."), "{words}");
    }

    #[test]
    fn the_png_has_bright_queens_and_a_dark_corner() {
        let bytes = drawn(Norm::Euclidean, RingsFormat::Png, &[1, 3, 0, 2]);
        let picture = tiny_skia::Pixmap::decode_png(&bytes).expect("a PNG");
        let side = picture.width() / 4;
        let at = |row: u32, col: u32| {
            let pixel =
                picture.pixel(col * side + side / 2, row * side + side / 8).expect("inside");
            u32::from(pixel.red()) + u32::from(pixel.green()) + u32::from(pixel.blue())
        };
        assert!(at(0, 1) > 600 && at(1, 3) > 600, "{} {}", at(0, 1), at(1, 3));
        assert!(at(0, 0) < 300, "{}", at(0, 0));
    }
}
