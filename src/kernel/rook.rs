//! Rooks: the permanent of the board.
//!
//! With one rook in each open row and each free column, on allowed squares only, the number of
//! placements is the permanent
//!
//! ```text
//! per(a) = Σ_σ Π_r a(r, σ(r))
//! ```
//!
//! of the 0/1 matrix a of allowed squares; on the empty board it is n! (OEIS A000142). It is
//! computed by one of two methods.
//!
//! **By layers** ([`by_layers`]). The rows are filled one after another, and all partial placements
//! that leave the same columns unused are counted together. Columns are *interchangeable* from a
//! row on if all remaining rows treat them alike; then only their number matters, and the lowest
//! columns of each such class represent the unused ones. The empty board is one class: one state a
//! layer. Rows with few allowed squares come first, so that the columns that they distinguish merge
//! early. Cost: at most states × classes steps of 50 to 200 ns. Derangements (A000166) take 131
//! million at n = 32, and 26 s.
//!
//! **By inclusion and exclusion** ([`by_inclusion_and_exclusion`]; H. J. Ryser, "Combinatorial
//! Mathematics", 1963), if the layers would take too much time or memory:
//!
//! ```text
//! per(a) = Σ_S (−1)^(n − |S|) Π_r Σ_{c ∈ S} a(r, c),   S over the sets of columns
//! ```
//!
//! in Gray code order, so that one column changes at a time (Nijenhuis and Wilf, "Combinatorial
//! Algorithms", 1975). Cost: 2^n steps of 30 ns, two minutes at n = 32, for any board, in constant
//! memory.

use std::collections::HashMap;

use crate::decomposition::{MAX_COUNT_SIZE, columns_of};
use crate::tally::Residues;

/// The largest number of states in a layer: with the children of one more state they fill a hash
/// table of 2^21 slots, 0.1 GB, and two such tables exist at a time.
const MOST_STATES: usize = (1 << 21) / 8 * 7 - MAX_COUNT_SIZE;

/// The approximate number of steps of Ryser's formula that take as long as one step by layers;
/// measured on an Emerald Rapids Xeon.
const RYSER_STEPS: u64 = 4;

/// A permanent, its independently computed residues, and the number of steps taken to compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permanent {
    pub(super) value: u128,
    pub(super) residues: Residues,
    pub(super) steps: u64,
}

/// Returns the number of ways to put one rook in each row, on the columns that its mask allows,
/// using each of `columns` once. At most 32 rows, as many as columns.
pub(super) fn permanent(rows: &[u32], columns: u32) -> Permanent {
    assert!(
        rows.len() <= MAX_COUNT_SIZE && rows.len() == columns.count_ones() as usize,
        "a square matrix"
    );
    let mut rows: Vec<u32> = rows.iter().map(|row| row & columns).collect();
    rows.sort_unstable_by_key(|row| (row.count_ones(), *row));
    let most_steps = (1 << rows.len()) / RYSER_STEPS;
    by_layers(&rows, columns, MOST_STATES, most_steps)
        .unwrap_or_else(|| by_inclusion_and_exclusion(&rows, columns))
}

/// The number of partial placements that lead to a state.
///
/// All placements of k rooks on n columns together number at most n!/(n − k)! ≤ 32! < 2^118, so
/// nothing here overflows.
#[derive(Clone, Copy, Default)]
struct Ways {
    value: u128,
    residues: Residues,
}

impl Ways {
    fn times(self, factor: u32) -> Self {
        Self { value: self.value * u128::from(factor), residues: self.residues.times(factor) }
    }

    fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, residues: self.residues.plus(other.residues) }
    }
}

/// Returns the permanent by layers, or `None` if a layer has more than `most_states` or all layers
/// together take more than `most_steps`.
fn by_layers(rows: &[u32], columns: u32, most_states: usize, most_steps: u64) -> Option<Permanent> {
    let mut layer = HashMap::from([(columns, Ways { value: 1, residues: Residues::of(1) })]);
    let mut steps = 0;
    let mut classes = interchangeable(rows, columns);
    for (k, &row) in rows.iter().enumerate() {
        let classes_after = interchangeable(&rows[k + 1..], columns);
        let mut next: HashMap<u32, Ways> = HashMap::new();
        for (unused, ways) in layer {
            for class in classes.iter().filter(|&class| class & row != 0) {
                let choices = (unused & class).count_ones();
                if choices == 0 {
                    continue;
                }
                steps += 1;
                let left = unused ^ lowest(unused & class, 1);
                let sum = next.entry(representative(left, &classes_after)).or_default();
                *sum = sum.plus(ways.times(choices));
            }
            if next.len() > most_states || steps > most_steps {
                return None;
            }
        }
        (layer, classes) = (next, classes_after);
    }
    // No columns are left: there is one state, or none.
    let Ways { value, residues } = layer.get(&0).copied().unwrap_or_default();
    Some(Permanent { value, residues, steps })
}

/// Returns the classes of `columns` that none of `rows` distinguishes.
fn interchangeable(rows: &[u32], columns: u32) -> Vec<u32> {
    rows.iter().fold(vec![columns], |classes, row| {
        let parts = classes.iter().flat_map(|class| [class & row, class & !row]);
        parts.filter(|&part| part != 0).collect()
    })
}

/// Returns the representative of all states with the same number of unused columns in each class:
/// the lowest columns.
fn representative(unused: u32, classes: &[u32]) -> u32 {
    classes.iter().fold(0, |state, &class| {
        let left = unused & class;
        let single = class & (class - 1) == 0;
        state | if single { left } else { lowest(class, left.count_ones()) }
    })
}

/// Returns the `count` lowest of `columns`.
fn lowest(columns: u32, count: u32) -> u32 {
    columns ^ (0..count).fold(columns, |rest, _| rest & (rest - 1))
}

/// Returns the permanent by Ryser's formula. The value is summed modulo 2^128, which it cannot
/// reach; the residues of the terms are summed independently.
fn by_inclusion_and_exclusion(rows: &[u32], columns: u32) -> Permanent {
    /// Row sums are at most 32, so a product of 12 of them is at most 2^60.
    const FACTORS: usize = 12;
    let n = rows.len();
    if n == 0 {
        return Permanent { value: 1, residues: Residues::of(1), steps: 0 };
    }
    // Padding rows beyond the n-th always have the sum 1.
    let mut sums = [1u64; 3 * FACTORS];
    sums[..n].fill(0);
    let columns: Vec<[u64; 3 * FACTORS]> = columns_of(columns)
        .map(|col| {
            let mut column = [0; 3 * FACTORS];
            column
                .iter_mut()
                .zip(rows)
                .for_each(|(square, row)| *square = u64::from(row >> col & 1));
            column
        })
        .collect();

    let (mut value, mut residues) = (0u128, Residues::default());
    let mut chosen = 0u32;
    for step in 1..1u64 << n {
        // Gray code: the column of the lowest set bit is added or removed. The empty set has the
        // product 0.
        let col = step.trailing_zeros() as usize;
        chosen ^= 1 << col;
        let comes = chosen >> col & 1 == 1;
        for (sum, square) in sums.iter_mut().zip(&columns[col]) {
            *sum = if comes { *sum + square } else { *sum - square };
        }
        let product = |part: usize| -> u64 { sums[part * FACTORS..][..FACTORS].iter().product() };
        let parts = [0, 1, 2].map(product);
        let term = parts.iter().fold(1u128, |term, &part| term.wrapping_mul(part.into()));
        let shadow = parts.iter().map(|&part| Residues::of(part.into()));
        let shadow = shadow.fold(Residues::of(1), Residues::product);
        if (n - chosen.count_ones() as usize).is_multiple_of(2) {
            (value, residues) = (value.wrapping_add(term), residues.plus(shadow));
        } else {
            (value, residues) = (value.wrapping_sub(term), residues.minus(shadow));
        }
    }
    Permanent { value, residues, steps: (1 << n) - 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::{Piece, Problem, Square};
    use crate::decomposition::full_row;
    use crate::decomposition::testing::decompose_by;
    use crate::kernel::{KernelKind, count_range};

    /// Counts by the definition: every column in every row.
    fn by_definition(rows: &[u32], columns: u32) -> u128 {
        rows.split_first().map_or(1, |(row, rest)| {
            columns_of(row & columns).map(|col| by_definition(rest, columns & !(1 << col))).sum()
        })
    }

    fn value(rows: &[u32]) -> u128 {
        let found = permanent(rows, full_row(rows.len()));
        assert_eq!(found.residues, Residues::of(found.value));
        found.value
    }

    /// Returns the board on which row r blocks the columns r + shift, modulo n, for each of
    /// `shifts`.
    fn blocked(n: usize, shifts: &[usize]) -> Vec<u32> {
        let row = |r: usize| {
            shifts.iter().fold(full_row(n), |row, shift| row & !(1 << ((r + shift) % n)))
        };
        (0..n).map(row).collect()
    }

    /// Counts by the full path: job, symmetry case, kernel, tally.
    fn solutions(problem: &Problem, kind: KernelKind) -> u128 {
        let decomposition = decompose_by(kind.scheme(problem), problem, None, 1);
        let mut kernel = kind.build(Piece::Rook).expect("counts rooks");
        let all = 0..decomposition.prefixes();
        count_range(&mut *kernel, &decomposition, all)
            .expect("fits")
            .solutions()
            .expect("a whole job")
    }

    #[test]
    fn the_empty_board_has_n_factorial_placements() {
        for n in 0..=32 {
            let factorial: u128 = (1..=n as u128).product();
            assert_eq!(
                solutions(&Problem::empty(Piece::Rook, n), KernelKind::Generic),
                factorial,
                "n = {n}"
            );
        }
        assert_eq!(value(&blocked(32, &[])), 263_130_836_933_693_530_167_218_012_160_000_000);
    }

    #[test]
    fn the_empty_board_takes_one_state_a_layer() {
        assert_eq!(permanent(&[u32::MAX; 32], u32::MAX).steps, 32);
    }

    #[test]
    fn a_blocked_diagonal_leaves_the_derangements() {
        assert_eq!(value(&blocked(4, &[0])), 9);
        assert_eq!(value(&blocked(10, &[0])), 1_334_961);
        assert_eq!(value(&blocked(20, &[0])), 895_014_631_192_902_121);
    }

    #[test]
    fn two_blocked_diagonals_leave_the_menages() {
        // OEIS A000179.
        for (n, known) in [(3, 1), (4, 2), (5, 13), (6, 80), (10, 439_792), (16, 2_649_391_469_058)]
        {
            assert_eq!(value(&blocked(n, &[0, 1])), known, "n = {n}");
        }
    }

    #[test]
    fn menages_agree_with_the_oracle() {
        for n in 2..=6 {
            let squares =
                (0..n).flat_map(|r| [Square::new(r, r), Square::new(r, (r + 1) % n)]).collect();
            let problem = Problem::new(Piece::Rook, n, Vec::new(), squares).expect("on the board");
            let oracle = solutions(&problem, KernelKind::Reference);
            assert_eq!(solutions(&problem, KernelKind::Generic), oracle, "n = {n}");
        }
    }

    #[test]
    fn a_row_or_column_without_squares_has_no_placement() {
        assert_eq!(value(&[0b111, 0, 0b111]), 0);
        assert_eq!(value(&[0b101, 0b100, 0b001]), 0);
        assert_eq!(value(&[0b011, 0b011, 0b011]), 0);
    }

    #[test]
    fn too_many_states_or_steps_are_refused() {
        let derangements =
            |states, steps| by_layers(&blocked(12, &[0]), full_row(12), states, steps);
        let found = derangements(MOST_STATES, u64::MAX).expect("few states");
        assert_eq!(
            (found.value, derangements(MOST_STATES, found.steps)),
            (176_214_841, Some(found))
        );
        assert_eq!(derangements(MOST_STATES, found.steps - 1), None);
        assert_eq!(derangements(30, u64::MAX), None);
    }

    #[test]
    fn the_faster_algorithm_is_chosen() {
        let rows = blocked(16, &[0, 1, 3, 7, 12]);
        let found = permanent(&rows, full_row(16));
        assert_eq!(found.steps, (1 << 16) - 1);
        let by_states = by_layers(&rows, full_row(16), MOST_STATES, u64::MAX).expect("few states");
        assert_eq!((found.value, found.residues), (by_states.value, by_states.residues));
    }

    proptest! {
        #[test]
        fn both_algorithms_agree_with_the_definition(
            rows in proptest::collection::vec(any::<u32>(), 0..=7),
            denser in any::<bool>(),
            spread in any::<u32>(),
        ) {
            // As many columns as rows, anywhere in the mask.
            let spread: Vec<usize> = columns_of(spread).chain((0..32).filter(|c| spread >> c & 1 == 0)).collect();
            let columns = spread[..rows.len()].iter().fold(0u32, |mask, col| mask | 1 << col);
            let rows: Vec<u32> = rows.iter().map(|row| row | if denser { row << 3 } else { 0 }).collect();
            let known = by_definition(&rows, columns);
            let by_layers = by_layers(&rows, columns, usize::MAX, u64::MAX).expect("no limits");
            for found in [by_layers, by_inclusion_and_exclusion(&rows, columns), permanent(&rows, columns)] {
                prop_assert_eq!((found.value, found.residues), (known, Residues::of(known)));
            }
        }
    }
}
