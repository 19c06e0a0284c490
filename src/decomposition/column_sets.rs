//! Column sets: the columns of the board are divided between its two halves.
//!
//! A solution puts its upper queens into some set of columns and its lower queens into the others.
//! The sets are independent of each other, so they are natural subproblems: a **family** is a
//! symmetry argument together with all sets that it uses, and each set is counted by itself.
//!
//! The families of a board with all eight symmetries count one image of each orbit. Let m = ⌊n/2⌋;
//! the centre rows are m − 1 and m (for odd n: m − 1 and m + 1 around a queen in the centre), the
//! centre columns likewise, and the *distance* of a square in a centre row or column is 1 next to
//! the centre and grows outward.
//!
//! - **Odd n, empty centre** ([`SetRule::NearerColumn`]). The queens of row m and of column m stand
//!   at different distances X and Y, because otherwise they attack each other. The eight images of
//!   a solution are told apart by which of the two is nearer, and on which side of the centre each
//!   of them stands. Counted are those with Y < X, the queen of column m below and the queen of row
//!   m on the right: one image of each orbit, weight 8.
//! - **Both centre columns' queens below** ([`SetRule::BothBelow`]). If the queens of the centre
//!   rows stand on opposite sides, only the mirror image in the columns is left: weight 8, with the
//!   lower of them on the right. If both are on the right, the reflection that exchanges row m
//!   with the right centre column remains. It exchanges the distances (a, a′) of the queens of
//!   rows m and m − 1 with those (c, c′) of the right and the left centre column. Counted are
//!   c < a, and c = a = 1 (one queen, in the corner) with c′ < a′. Other ties do not exist, because
//!   two such queens attack each other: again exactly one image, weight 8.
//! - **One centre column's queen below, the other above** ([`SetRule::Split`]). Solutions whose
//!   centre rows' queens are on the same side are transposes of the family before. With the queens
//!   on opposite sides the mirror image fixes that the right column's queen is below, and the half
//!   turn maps the set U of the upper columns to the mirror image of the lower ones: weight 4 for
//!   the greater of the two, or 2 for a set that is its own image. (A factor of 2 is left unused.)
//!
//! The mirror image in the columns maps U to its mirror image U′. Instead of counting only those
//! with the lower centre row's queen on the right, the families count on both sides and visit only
//! U ≤ U′; where U = U′, the right side alone counts.
//!
//! All other boards have one family ([`SetRule::Any`]) without a condition. The symmetries that map
//! the halves to halves and leave the problem unchanged permute the sets; of each orbit the least
//! set counts, with the size of the orbit as its weight.

mod meaning;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::attack_state::{columns_of, full_row};
use super::combinations::{binomial, combination, deposit};
use super::image::{Image, mirrored_row};
use super::symmetry_case::allowed_columns;
use crate::board::{Piece, Problem, Square};
use crate::symmetry::{Group, Symmetry};
use crate::tally::Thirds;

/// The weight of one solution, in thirds.
const SOLUTION: Thirds = 3;

/// The least board size that has the families of the full symmetry.
pub(super) const SMALLEST: usize = 6;

/// The condition under which a family counts a placement of its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetRule {
    /// Every placement counts.
    Any,
    /// The queen of the centre column is nearer to the centre than that of the centre row.
    NearerColumn,
    /// The queens of both centre columns are in the lower half. Where the queens of the centre rows
    /// are on the same side, the centre column on that side has the nearer queen.
    BothBelow,
    /// The right centre column's queen is in the lower half and the left one's in the upper half.
    /// The queens of the centre rows are on opposite sides.
    Split,
}

/// A row of a half: the columns that the problem and the family's centre queen leave to its queen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfRow {
    /// The row, from 0.
    pub row: usize,
    /// The allowed columns.
    pub allowed: u32,
}

/// A set of columns for the upper half; the lower half has the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSet {
    /// The columns of the upper half's queens.
    pub upper: u32,
    /// The columns of the lower half's queens.
    pub lower: u32,
    /// The columns of them that the queens of the first and the second lower row may have: all, or
    /// one if the set is counted in parts.
    pub first_rows: [u32; 2],
    /// The weight of each placement, in thirds of a solution.
    pub weight: Thirds,
    /// True if the queen of the first lower row must stand in the right half of its row: the set is
    /// its own mirror image.
    pub right_only: bool,
}

/// All sets that one symmetry argument uses, with their rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFamily {
    /// The problem, or its mirror image.
    problem: Arc<Problem>,
    image: Image,
    rule: SetRule,
    centre_queen: Option<Square>,
    upper: Vec<HalfRow>,
    lower: Vec<HalfRow>,
    /// The columns that every set gives to the upper half, in the problem itself.
    always_upper: u32,
    /// The columns of which each set gives `chosen` to the upper half, likewise.
    divided: u32,
    chosen: u32,
    /// The centre columns, left and right.
    centre: [usize; 2],
    /// The symmetries that permute the sets of [`SetRule::Any`].
    symmetries: Vec<Symmetry>,
}

/// Returns the families of a problem of queens, or `None` for other pieces. A problem in which two
/// placed queens attack each other has no families.
pub(super) fn families(problem: &Arc<Problem>) -> Option<Vec<SetFamily>> {
    if problem.piece() != Piece::Queen {
        return None;
    }
    if problem.conflict().is_some() {
        return Some(Vec::new());
    }
    let n = problem.n();
    let symmetric =
        n >= SMALLEST && problem.placed().is_empty() && Group::of(problem) == Group::FULL;
    if !symmetric {
        return Some(vec![SetFamily::new(problem, SetRule::Any, None)]);
    }
    let m = n / 2;
    let centre = Square::new(m, m);
    let new = |rule, centre_queen| SetFamily::new(problem, rule, centre_queen);
    Some(match n % 2 {
        0 => vec![new(SetRule::BothBelow, None), new(SetRule::Split, None)],
        _ if !problem.allows(centre) => vec![new(SetRule::NearerColumn, None)],
        _ => vec![
            new(SetRule::NearerColumn, None),
            new(SetRule::BothBelow, Some(centre)),
            new(SetRule::Split, Some(centre)),
        ],
    })
}

impl SetFamily {
    fn new(problem: &Arc<Problem>, rule: SetRule, centre_queen: Option<Square>) -> Self {
        let n = problem.n();
        let m = n / 2;
        let half_row =
            |row: usize| HalfRow { row, allowed: open_columns(problem, row, centre_queen) };
        let first_lower = if centre_queen.is_some() { m + 1 } else { m };
        let mut upper: Vec<HalfRow> = (0..m).rev().map(half_row).collect();
        let mut lower: Vec<HalfRow> = (first_lower..n).map(half_row).collect();
        let centre = match (n % 2, rule) {
            (_, SetRule::Any) => [0, 0],
            (0, _) => [m - 1, m],
            _ => [m - 1, m + 1],
        };
        let columns = full_row(n) & !centre_queen.map_or(0, |queen| 1 << queen.col);
        let some = |half: &[HalfRow]| half.iter().fold(0, |all, row| all | row.allowed);
        let (always_upper, always_lower) = match rule {
            SetRule::Any => (columns & !some(&lower), columns & !some(&upper)),
            SetRule::NearerColumn => (0, 1 << m),
            SetRule::BothBelow => (0, 1 << centre[0] | 1 << centre[1]),
            SetRule::Split => (1 << centre[0], 1 << centre[1]),
        };
        if rule == SetRule::NearerColumn {
            // The centre is empty.
            lower[0].allowed &= !always_lower;
        }
        upper.iter_mut().for_each(|row| row.allowed &= !always_lower);
        lower.iter_mut().for_each(|row| row.allowed &= !always_upper);
        Self {
            problem: Arc::clone(problem),
            image: Image::Itself,
            rule,
            centre_queen,
            // A column that neither half can use leaves no set: more columns are required than
            // there are rows, or too few are left.
            chosen: (upper.len() as u32).wrapping_sub(always_upper.count_ones()),
            upper,
            lower,
            always_upper,
            divided: columns & !always_upper & !always_lower,
            centre,
            symmetries: match rule {
                SetRule::Any => half_preserving(problem),
                _ => Vec::new(),
            },
        }
    }

    /// Returns the mirror image, a family of the mirrored `problem`: left and right are exchanged
    /// in every set and every placement. The ranks of the sets are the same.
    #[must_use]
    pub(super) fn mirrored(&self, problem: &Arc<Problem>) -> Self {
        let n = self.n();
        let mirrored = |rows: &[HalfRow]| {
            let mirrored =
                |row: &HalfRow| HalfRow { row: row.row, allowed: mirrored_row(n, row.allowed) };
            rows.iter().map(mirrored).collect()
        };
        let [left, right] = self.centre;
        Self {
            problem: Arc::clone(problem),
            image: self.image.mirrored(),
            upper: mirrored(&self.upper),
            lower: mirrored(&self.lower),
            // They are each other's images.
            centre: [right, left],
            ..self.clone()
        }
    }

    /// Returns the problem that this family belongs to.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the board size.
    #[inline]
    pub fn n(&self) -> usize {
        self.problem.n()
    }

    /// Returns the condition under which a placement counts.
    #[inline]
    pub const fn rule(&self) -> SetRule {
        self.rule
    }

    /// Returns the rows of the upper half, from the centre upward.
    #[inline]
    pub fn upper(&self) -> &[HalfRow] {
        &self.upper
    }

    /// Returns the rows of the lower half, from the centre downward.
    #[inline]
    pub fn lower(&self) -> &[HalfRow] {
        &self.lower
    }

    /// Returns the number of rows from the first upper row to the first lower one: 1, or 2 where a
    /// queen in the centre lies between them.
    #[inline]
    pub const fn gap(&self) -> usize {
        if self.centre_queen.is_some() { 2 } else { 1 }
    }

    /// Returns the centre columns, left and right, which are exchanged in the mirror image;
    /// meaningless for [`SetRule::Any`].
    #[inline]
    pub const fn centre(&self) -> [usize; 2] {
        self.centre
    }

    /// Returns the distance of `column` from the centre of its row, from 1.
    #[inline]
    pub fn distance(&self, column: usize) -> usize {
        let [a, b] = self.centre;
        if column >= a.max(b) { column - a.max(b) + 1 } else { a.min(b) + 1 - column }
    }

    /// Returns whether `column` lies in the right half of the board, or in the left half of its
    /// mirror image.
    #[inline]
    pub const fn is_right(&self, column: usize) -> bool {
        match self.image {
            Image::Itself => column >= self.centre[1],
            Image::Mirrored => column <= self.centre[1],
        }
    }

    /// Returns the number of sets, including those that are images of others.
    pub fn sets(&self) -> u64 {
        let of = self.divided.count_ones();
        let balanced = (self.always_upper.count_ones() + of) as usize >= self.upper.len();
        if balanced && self.chosen <= of { binomial(of, self.chosen) } else { 0 }
    }

    /// Returns the set of a rank below [`Self::sets`], or `None` if it is the image of another set,
    /// which counts for it.
    pub fn set(&self, rank: u64) -> Option<ColumnSet> {
        let upper = self.always_upper | deposit(combination(rank, self.chosen), self.divided);
        let columns = full_row(self.n()) & !self.centre_queen.map_or(0, |queen| 1 << queen.col);
        let lower = columns & !upper;
        let mirror = |set: u32| mirrored_row(self.n(), set);
        let image = |set: u32| self.image.row(self.n(), set);
        let set = |weight, right_only| {
            let (upper, lower) = (image(upper), image(lower));
            Some(ColumnSet { upper, lower, first_rows: [lower; 2], weight, right_only })
        };
        match self.rule {
            SetRule::NearerColumn | SetRule::BothBelow if upper <= mirror(upper) => {
                set(8 * SOLUTION, upper == mirror(upper))
            }
            SetRule::Split if upper > mirror(lower) => set(4 * SOLUTION, false),
            SetRule::Split if upper == mirror(lower) => set(2 * SOLUTION, false),
            SetRule::Any => {
                let mut images: Vec<u32> = self
                    .symmetries
                    .iter()
                    .map(|symmetry| match symmetry {
                        Symmetry::MirrorColumns => mirror(upper),
                        Symmetry::MirrorRows => lower,
                        Symmetry::Rotate180 => mirror(lower),
                        _ => upper,
                    })
                    .collect();
                images.sort_unstable();
                images.dedup();
                // At most 4 images.
                (images[0] == upper).then_some(())?;
                set(images.len() as u32 * SOLUTION, false)
            }
            _ => None,
        }
    }

    /// Returns the number of parts of a set with `queens` queens, at most 2, one in each of the
    /// first lower rows: one part for each choice of columns, of which some may be the same.
    pub(super) fn parts(&self, queens: usize) -> u64 {
        (self.lower.len().max(1) as u64).pow(queens as u32)
    }

    /// Returns a part of a set: the placements with each of the first `queens` lower queens in one
    /// column of the set. `part` is below [`Self::parts`]. Returns `None` if the set is the image
    /// of another one.
    pub(super) fn part(&self, rank: u64, queens: usize, mut part: u64) -> Option<ColumnSet> {
        let mut set = self.set(rank)?;
        let image = |mask: u32| self.image.row(self.n(), mask);
        for row in set.first_rows.iter_mut().take(queens) {
            // Parts have the same numbers in the mirror image.
            let column = columns_of(image(set.lower)).nth((part % self.parts(1)) as usize);
            *row = column.map_or(0, |column| image(1 << column));
            part /= self.parts(1);
        }
        Some(set)
    }

    /// Returns the weights that sets of this family can have.
    pub(super) fn weights(&self) -> BTreeSet<Thirds> {
        match self.rule {
            SetRule::NearerColumn | SetRule::BothBelow => [8 * SOLUTION].into(),
            SetRule::Split => [4 * SOLUTION, 2 * SOLUTION].into(),
            // The sizes of the orbits divide the number of the symmetries.
            SetRule::Any => {
                let symmetries = self.symmetries.len() as u32;
                (1..=symmetries)
                    .filter(|size| symmetries.is_multiple_of(*size))
                    .map(|size| size * SOLUTION)
                    .collect()
            }
        }
    }
}

/// Returns the columns of `row` that the problem and a queen in the centre leave open. In the row
/// of a placed piece, that is its column.
fn open_columns(problem: &Problem, row: usize, centre_queen: Option<Square>) -> u32 {
    if let Some(placed) = problem.placed().iter().find(|placed| placed.row == row) {
        return 1 << placed.col;
    }
    let attacked = |col: &usize| {
        centre_queen.is_some_and(|queen| {
            problem.piece().attacks(problem.n(), queen, Square::new(row, *col))
        })
    };
    let open = columns_of(allowed_columns(problem, row)).filter(|col| !attacked(col));
    open.fold(0, |mask, col| mask | 1 << col)
}

/// Returns the symmetries of `problem` that map halves to halves. For odd n the lower half has a
/// row more, so that only the mirror image in the columns does.
fn half_preserving(problem: &Problem) -> Vec<Symmetry> {
    let keeps = |symmetry: &Symmetry| match symmetry {
        Symmetry::Identity | Symmetry::MirrorColumns => true,
        Symmetry::MirrorRows | Symmetry::Rotate180 => problem.n().is_multiple_of(2),
        _ => false,
    };
    Group::of(problem).elements().filter(keeps).collect()
}
