//! A job in the form that the shaders read: the rows of its symmetry cases, and the memory that its
//! levels need.

use std::collections::HashMap;

use super::layout::{CLASS_ROWS, LAST_LEVEL, LEVELS, LowerRow, LowerState, MOST_ROWS, UpperRow};
use crate::board::Piece;
use crate::decomposition::{CentreRule, Decomposition, Prefix, SymmetryCase, full_row};

/// The constants compiled into the search shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Specialisation {
    /// The number of entries of a lane's stack: every row above the block but the last two may
    /// leave one.
    pub depth: u32,
    /// The variant of the search.
    pub variant: Variant,
    /// True if a child must have an open square in the row after the next as well.
    pub look_ahead: bool,
}

/// The variants of the search, which differ in what the rows above the block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// The rows are adjacent and all of their squares are open.
    Plain,
    /// The rows are adjacent, and the masks of some of them, a *gate*, close the same columns, of
    /// which at most one is free above the block.
    Gated,
    /// The rows may have any masks, and gaps between them.
    General,
}

impl Variant {
    /// All variants, the cheapest first.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Gated, Self::General];
}

/// A symmetry case in the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaseEntry {
    /// The offset of its rows below the block.
    pub(super) rows: u32,
    /// The number of open rows above the block.
    pub(super) upper_rows: u32,
    /// The class of its rows above the block.
    pub(super) class: u16,
    /// The variant of the search that counts it.
    pub(super) variant: Variant,
    /// Columns allowed in the first row above the block.
    pub(super) upper_allowed: u32,
}

/// The rows of all symmetry cases of a job.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// One entry for each symmetry case of the job: `None` if the shaders do not support it.
    pub(super) cases: Vec<Option<CaseEntry>>,
    pub(super) lower_rows: Vec<LowerRow>,
    pub(super) upper_rows: Vec<UpperRow>,
    /// The maximum number of open rows above the block.
    most_upper: usize,
    /// The maximum number of open rows below the block.
    most_lower: usize,
}

impl Tables {
    /// Creates the tables of a job.
    pub fn new(decomposition: &Decomposition) -> Self {
        let mut tables = Self::default();
        let mut classes: HashMap<[UpperRow; CLASS_ROWS], u16> = HashMap::new();
        for case in decomposition.cases() {
            let entry = if suits(case) { tables.enter(case, &mut classes) } else { None };
            tables.cases.push(entry);
        }
        // Empty buffers cannot be bound.
        tables.lower_rows.push(LowerRow::default());
        tables.upper_rows.push(UpperRow::default());
        tables
    }

    fn enter(
        &mut self,
        case: &SymmetryCase,
        classes: &mut HashMap<[UpperRow; CLASS_ROWS], u16>,
    ) -> Option<CaseEntry> {
        let upper = case.rows().len() - case.below();
        let rows = upper_rows(case);
        let class = match classes.get(&rows) {
            Some(&class) => class,
            None => {
                let class = u16::try_from(classes.len()).ok()?;
                classes.insert(rows, class);
                self.upper_rows.extend(rows);
                class
            }
        };
        self.most_upper = self.most_upper.max(upper);
        self.most_lower = self.most_lower.max(case.below());
        // A job has fewer than 2^16 symmetry cases of at most 17 entries each.
        let first = u32::try_from(self.lower_rows.len()).ok()?;
        self.lower_rows.push(LowerRow::default());
        self.lower_rows.extend((1..=case.below()).map(|left| lower_row(case, case.below() - left)));
        let upper_allowed = case.allowed()[case.below()];
        let variant = variant(case, rows[0]);
        Some(CaseEntry { rows: first, upper_rows: upper as u32, class, variant, upper_allowed })
    }

    /// Returns the variant of the search that counts the symmetry case with this index. A case that
    /// the shaders do not support has no states to search, and is in any batch.
    pub(super) fn variant(&self, case: usize) -> Variant {
        self.cases[case].map_or(Variant::Plain, |entry| entry.variant)
    }

    /// Returns whether the shaders support any of the symmetry cases.
    pub(super) fn suits(&self) -> bool {
        self.cases.iter().any(Option::is_some)
    }

    /// Returns whether the shaders support all of the symmetry cases, of which there is at least
    /// one.
    pub fn suits_all(&self) -> bool {
        self.suits() && self.cases.iter().all(Option::is_some)
    }

    /// Returns the rows below the block.
    pub fn lower_rows(&self) -> &[LowerRow] {
        &self.lower_rows
    }

    /// Returns the rows above the block.
    pub fn upper_rows(&self) -> &[UpperRow] {
        &self.upper_rows
    }

    /// Returns the maximum number of open rows below and above the block.
    pub const fn most_rows(&self) -> [usize; 2] {
        [self.most_lower, self.most_upper]
    }

    /// Returns the number of entries that a lane's stack needs.
    pub fn depth(&self) -> u32 {
        self.most_upper.saturating_sub(2).max(1) as u32
    }

    /// Returns the maximum number of states that one state emits to the ring: on its last two rows
    /// it has as many free columns as rows left.
    pub fn most_emitted(&self) -> u32 {
        let upper = self.most_upper as u32;
        (upper + 2) * (upper + 1)
    }

    /// Returns the start of each level, and the total number of states of all levels, if level 0
    /// holds `prefixes` and an expansion takes up to `chunk`: no level holds more than a chunk and
    /// the children of another.
    pub(super) fn levels(&self, prefixes: u32, chunk: u32) -> ([u32; LEVELS], u64) {
        let mut first = [0; LEVELS];
        let mut end = u64::from(prefixes);
        // Nothing is put on the levels from which an expansion fills all remaining rows.
        for (level, first) in first.iter_mut().enumerate().skip(LAST_LEVEL).take(self.most_lower) {
            // The shape is chosen so that all indices fit.
            *first = u32::try_from(end).unwrap_or(u32::MAX);
            // A state of the level above has as many free columns as rows left.
            let children = (level + 1 + self.most_upper) as u64;
            end += u64::from(chunk) * (1 + children);
        }
        (first, end)
    }
}

/// Returns whether the shaders can count below the prefixes of `case`: queens, at least two rows
/// above the block (the search closes the last one together with the one before), at most 16 on
/// each side.
pub(super) fn suits(case: &SymmetryCase) -> bool {
    let upper = case.rows().len() - case.below();
    case.piece() == Piece::Queen && (2..=MOST_ROWS).contains(&upper) && case.below() <= MOST_ROWS
}

fn lower_row(case: &SymmetryCase, k: usize) -> LowerRow {
    let row = case.rows()[k];
    // Differences of rows are below 32.
    let step = if k + 1 < case.below() { case.rows()[k + 1] - row } else { 0 };
    LowerRow {
        allowed: case.allowed()[k],
        centre: case.centre_columns(),
        rule: match case.rules()[k] {
            CentreRule::None => 0,
            CentreRule::TakeIfAnyFree => 1,
            CentreRule::TakeIfBothFree => 2,
        },
        step: step as u32,
        to_upper: (row - case.rows()[case.below()]) as u32,
        pad: 0,
    }
}

/// Returns the variant of the search that counts `case`, whose class has this gate.
fn variant(case: &SymmetryCase, [rows, columns, ..]: UpperRow) -> Variant {
    let upper = case.rows().len() - case.below();
    let adjacent = case.rows()[case.below()..].windows(2).all(|pair| pair[0] - pair[1] == 1);
    let closed = (1..=upper).map(|left| closed_columns(case, left));
    let masked = closed.clone().any(|closed| closed != 0);
    let by_gate = (1..).zip(closed).all(|(left, closed)| closed == columns * (rows >> left & 1));
    // Queens of the block take one of these columns each, as do rows below it that have no others.
    let lower = &case.allowed()[..case.below()];
    let taken = (columns & case.start().columns).count_ones() as usize
        + lower.iter().filter(|&allowed| allowed & !columns == 0).count();
    let at_most_one_is_free = columns.count_ones() as usize <= taken + 1;
    // The shader shifts the rows by the position of the column.
    let shifts = (columns.max(1).ilog2() as usize) + upper < 32;
    if adjacent && !masked {
        Variant::Plain
    } else if adjacent && by_gate && at_most_one_is_free && shifts {
        Variant::Gated
    } else {
        Variant::General
    }
}

/// Returns the columns that the mask closes in the row above the block with `left` rows left.
fn closed_columns(case: &SymmetryCase, left: usize) -> u32 {
    full_row(case.n()) & !case.allowed()[case.rows().len() - left]
}

/// Returns the rows above the block, indexed by the rows left; entry 0 has the gate.
fn upper_rows(case: &SymmetryCase) -> [UpperRow; CLASS_ROWS] {
    let (rows, allowed, end) = (case.rows(), case.allowed(), case.rows().len());
    let mut table = [[u32::MAX, u32::MAX, 1, 1]; CLASS_ROWS];
    table[0] = [0, 0, 1, 1];
    for (left, entry) in (1..=end - case.below()).zip(&mut table[1..]) {
        let k = end - left;
        let step_to = if k > case.below() { rows[k - 1] - rows[k] } else { 1 };
        let (next, step_from) =
            if k + 1 < end { (allowed[k + 1], rows[k] - rows[k + 1]) } else { (u32::MAX, 1) };
        *entry = [allowed[k], next, step_to as u32, step_from as u32];
    }
    for left in 1..=end - case.below() {
        let closed = closed_columns(case, left);
        table[0][0] |= u32::from(closed != 0) << left;
        table[0][1] |= closed;
    }
    table
}

/// Converts a prefix to a state of its level.
pub(super) fn lower_state(case: &SymmetryCase, prefix: &Prefix, segment: u32) -> LowerState {
    let (n, k, state) = (case.n(), prefix.filled(), prefix.state());
    let first_upper = case.rows()[case.below()];
    let row = case.rows()[k];
    LowerState {
        free: full_row(n) & !state.columns,
        left: state.diagonal_window(n, row),
        right: state.antidiagonal_window(row),
        upper_left: state.antidiagonal_window(first_upper),
        upper_right: state.diagonal_window(n, first_upper),
        segment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::testing::{decompose, queens};

    /// Returns the variants that count a board with these blocked squares.
    fn variants(n: usize, blocked: &[(usize, usize)]) -> Vec<Variant> {
        let decomposition = decompose(&queens(n, &[], blocked), None, 100);
        let mut variants: Vec<Variant> =
            Tables::new(&decomposition).cases.iter().flatten().map(|entry| entry.variant).collect();
        variants.dedup();
        variants
    }

    #[test]
    fn the_cases_of_an_empty_board_are_sorted_by_variant() {
        for n in [10, 12, 16, 22, 32] {
            assert_eq!(variants(n, &[]), Variant::ALL, "n = {n}");
        }
    }

    #[test]
    fn only_masks_that_close_one_free_column_are_gates() {
        // Without symmetry a board has one case, and all rows but one block are above it.
        assert_eq!(variants(9, &[(8, 0)]), [Variant::Plain]);
        assert_eq!(variants(9, &[(1, 4)]), [Variant::Gated]);
        assert_eq!(variants(9, &[(1, 4), (3, 4)]), [Variant::Gated]);
        assert_eq!(variants(9, &[(1, 4), (3, 5)]), [Variant::General]);
        // Two columns that both may be free.
        assert_eq!(variants(9, &[(1, 4), (1, 5)]), [Variant::General]);
    }

    #[test]
    fn a_gate_closes_the_rows_that_the_masks_close() {
        let decomposition = decompose(&queens(32, &[], &[]), Some(0), 1);
        let tables = Tables::new(&decomposition);
        let mut closed_rows = 0;
        for (case, entry) in decomposition.cases().iter().zip(&tables.cases) {
            let entry = entry.expect("a case that the shaders support");
            if entry.variant != Variant::Gated {
                continue;
            }
            let class = usize::from(entry.class) * CLASS_ROWS;
            let [rows, columns, ..] = tables.upper_rows[class];
            // Each of the columns may be the one that is free.
            for column in (0..32).map(|c| 1 << c).filter(|column| columns & column != 0) {
                let gate = rows << column.trailing_zeros();
                for left in 1..=entry.upper_rows as usize {
                    let allowed = case.allowed()[case.rows().len() - left];
                    let closed = gate >> left & column;
                    assert_eq!(closed, column & !allowed);
                    closed_rows += usize::from(closed != 0);
                }
            }
        }
        assert!(closed_rows > 1000, "{closed_rows}");
    }
}
