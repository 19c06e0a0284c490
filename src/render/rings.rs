//! Rings of equal cost around the centre of the board, one for each cost of a piece, dark outside
//! and bright inside, drawn from the outside so that each covers the inner part of the previous
//! one.

use std::io::{self, Write};

use super::layout::{Entry, SIDE, Sample};
use crate::board::{Norm, Square};

/// The maximum number of rings in the legend.
const MOST_IN_LEGEND: usize = 12;

/// Colours from the outside to the inside; those between are interpolated.
const RAMP: [(f64, [f64; 3]); 5] = [
    (0.0, [26.0, 24.0, 62.0]),
    (0.3, [76.0, 43.0, 112.0]),
    (0.55, [176.0, 63.0, 101.0]),
    (0.8, [240.0, 138.0, 75.0]),
    (1.0, [253.0, 226.0, 150.0]),
];

/// The costs of pieces, the largest first, each with the number of its pieces.
#[derive(Clone, Debug)]
pub(super) struct Rings {
    norm: Norm,
    n: usize,
    costs: Vec<(u64, usize)>,
}

impl Rings {
    /// Creates the rings of these squares on the board of size `n`.
    pub(super) fn new(norm: Norm, n: usize, squares: impl Iterator<Item = Square>) -> Self {
        let mut all: Vec<u64> = squares.map(|square| norm.cost(n, square)).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let costs = all.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len())).collect();
        Self { norm, n, costs }
    }

    /// Returns the words for the description.
    pub(super) fn description(&self) -> String {
        let words: Vec<String> =
            self.costs.iter().map(|(cost, count)| format!("{count} at {cost}")).collect();
        format!(" Queens by cost, the largest first: {}.", words.join(", "))
    }

    /// Returns a line for each ring, from the outside; only for the outermost if there are many.
    pub(super) fn legend(&self) -> Vec<Entry> {
        let entry = |&(cost, count): &(u64, usize)| Entry {
            sample: Sample::Colour(self.colour_of(cost)),
            words: format!("cost {cost}: {count}"),
        };
        let shown =
            if self.costs.len() > MOST_IN_LEGEND { MOST_IN_LEGEND - 1 } else { MOST_IN_LEGEND };
        let mut entries: Vec<Entry> = self.costs.iter().take(shown).map(entry).collect();
        if let Some(last) = self.costs.last().filter(|_| self.costs.len() > MOST_IN_LEGEND) {
            let mut entry = entry(last);
            entry.words = format!("… {}", entry.words);
            entries.push(entry);
        }
        entries
    }

    /// Draws the rings and the squares.
    pub(super) fn draw(&self, out: &mut impl Write) -> io::Result<()> {
        let (board, two) = (self.n as f64 * SIDE, 2.0 * SIDE);
        write!(
            out,
            "<defs><clipPath id=\"board\"><path d=\"M0 0H{board}V{board}H0Z\"/></clipPath>\
             <pattern id=\"squares\" width=\"{two}\" height=\"{two}\" patternUnits=\"userSpaceOnUse\">\
             <path fill=\"#ffffff\" fill-opacity=\"0.07\" d=\"M0 0H{SIDE}V{SIDE}H0ZM{SIDE} {SIDE}H{two}V{two}H{SIDE}Z\"/>\
             </pattern></defs>\
             <g clip-path=\"url(#board)\"><path fill=\"#0d0c24\" d=\"M0 0H{board}V{board}H0Z\"/>"
        )?;
        for &(cost, _) in &self.costs {
            let radius = radius(self.norm, cost) * SIDE / 2.0;
            ring(self.norm, board / 2.0, radius, &self.colour_of(cost), out)?;
        }
        write!(out, "<path fill=\"url(#squares)\" d=\"M0 0H{board}V{board}H0Z\"/></g>")
    }

    fn colour_of(&self, cost: u64) -> String {
        let ends = self.costs.first().zip(self.costs.last());
        let (largest, least) = ends
            .map_or((1.0, 0.0), |(from, to)| (radius(self.norm, from.0), radius(self.norm, to.0)));
        if self.costs.len() == 1 {
            return colour(1.0);
        }
        colour((largest - radius(self.norm, cost)) / (largest - least).max(1.0))
    }
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
