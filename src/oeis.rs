//! Published values, each with its source. The program compares its counts with them but never
//! returns them as answers.
//!
//! | sequence | OEIS | known here for n |
//! |---|---|---|
//! | solutions | A000170 | 0..=27 |
//! | fundamental solutions | A002562 | 1..=27 |
//! | solutions unchanged by a half turn | A032522 | 1..=32 |
//! | solutions unchanged by a quarter turn | A033148 | 0..=55 |
//! | toroidal queens | A007705 | 1..=35 |
//! | superqueens (queen and knight) | A051223 | 1..=26 |
//! | fundamental superqueens | A051224 | 1..=26 |
//! | completion threshold | A374013 | 4..=20 |
//! | rooks | A000142 | all |
//!
//! Solutions for n up to 16 were recounted by brute force. n = 27 is the record of Preusser and
//! Engelhardt ("Putting Queens in Carry Chains, No. 27", 2017; the program is q27). The values of
//! toroidal queens at n divisible by 2 or 3 are 0 by Pólya's theorem (1918).

use crate::board::{Piece, Problem};

/// The known values: a sequence, the n of its first value, and its values from there on.
const VALUES: &str = include_str!("../records/published/solutions.csv");

/// A sequence of published values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// Placements of n queens.
    Total,
    /// Placements of n queens, with images under the 8 symmetries of the square counted once.
    Fundamental,
    /// Placements of n queens that a half turn leaves unchanged (a quarter turn may, too).
    PointSymmetric,
    /// Placements of n queens that a quarter turn leaves unchanged.
    QuarterTurnSymmetric,
    /// Placements of n queens on a board whose opposite edges are joined.
    Toroidal,
    /// Placements of n superqueens: queens that also move as knights.
    Superqueens,
    /// Placements of n superqueens, with images under the 8 symmetries of the square counted once.
    SuperqueensFundamental,
    /// The largest k such that every placement of k queens on the board can be completed.
    CompletionThreshold,
    /// Placements of n rooks: n!.
    Rooks,
}

impl Sequence {
    /// All sequences.
    pub const ALL: [Self; 9] = [
        Self::Total,
        Self::Fundamental,
        Self::PointSymmetric,
        Self::QuarterTurnSymmetric,
        Self::Toroidal,
        Self::Superqueens,
        Self::SuperqueensFundamental,
        Self::CompletionThreshold,
        Self::Rooks,
    ];

    /// Returns the sequence number in the On-Line Encyclopedia of Integer Sequences.
    pub const fn oeis(self) -> &'static str {
        match self {
            Self::Total => "A000170",
            Self::Fundamental => "A002562",
            Self::PointSymmetric => "A032522",
            Self::QuarterTurnSymmetric => "A033148",
            Self::Toroidal => "A007705",
            Self::Superqueens => "A051223",
            Self::SuperqueensFundamental => "A051224",
            Self::CompletionThreshold => "A374013",
            Self::Rooks => "A000142",
        }
    }

    /// Returns a short description of what the sequence counts.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Total => "solutions of the n-queens problem",
            Self::Fundamental => "fundamental solutions of the n-queens problem",
            Self::PointSymmetric => "solutions unchanged by a half turn",
            Self::QuarterTurnSymmetric => "solutions unchanged by a quarter turn",
            Self::Toroidal => "toroidal queens",
            Self::Superqueens => "superqueens",
            Self::SuperqueensFundamental => "fundamental solutions with superqueens",
            Self::CompletionThreshold => "most queens that can always be completed",
            Self::Rooks => "rooks",
        }
    }
}

/// Returns the sequence of the total counts for a piece.
pub const fn totals_of(piece: Piece) -> Sequence {
    match piece {
        Piece::Queen => Sequence::Total,
        Piece::Rook => Sequence::Rooks,
        Piece::Superqueen => Sequence::Superqueens,
        Piece::Toroidal => Sequence::Toroidal,
    }
}

/// Returns the published number of solutions of a problem, or `None` if squares are decided or no
/// value is known here.
pub fn published(problem: &Problem) -> Option<u128> {
    if problem.is_empty() { lookup(totals_of(problem.piece()), problem.n()) } else { None }
}

/// Returns the published value of `sequence` at n, or `None` if no value is known here.
pub fn lookup(sequence: Sequence, n: usize) -> Option<u128> {
    if sequence == Sequence::Rooks {
        return (1..=n as u128).try_fold(1u128, u128::checked_mul);
    }
    let row = |line: &'static str| line.strip_prefix(sequence.oeis())?.strip_prefix(',');
    let (first, values) = VALUES.lines().find_map(row)?.split_once(',').expect("three fields");
    let place = n.checked_sub(first.parse().expect("the n of the first value"))?;
    values.split(' ').nth(place).map(|value| value.parse().expect("a number"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sample_values_equal_those_of_oeis() {
        assert_eq!(lookup(Sequence::Total, 0), Some(1));
        assert_eq!(lookup(Sequence::Total, 8), Some(92));
        assert_eq!(lookup(Sequence::Total, 27), Some(234_907_967_154_122_528));
        assert_eq!(lookup(Sequence::Total, 28), None);
        assert_eq!(lookup(Sequence::Fundamental, 0), None);
        assert_eq!(lookup(Sequence::Fundamental, 8), Some(12));
        assert_eq!(lookup(Sequence::PointSymmetric, 32), Some(181_254_386_312));
        assert_eq!(lookup(Sequence::QuarterTurnSymmetric, 12), Some(8));
        assert_eq!(lookup(Sequence::Toroidal, 13), Some(4_524));
        assert_eq!(lookup(Sequence::Superqueens, 10), Some(4));
        assert_eq!(lookup(Sequence::CompletionThreshold, 4), Some(0));
        assert_eq!(
            lookup(Sequence::Rooks, 32),
            Some(263_130_836_933_693_530_167_218_012_160_000_000)
        );
    }

    #[test]
    fn the_values_are_those_of_a_range_of_n() {
        for (sequence, known) in [
            (Sequence::Total, 0..=27),
            (Sequence::Fundamental, 1..=27),
            (Sequence::PointSymmetric, 1..=32),
            (Sequence::QuarterTurnSymmetric, 0..=55),
            (Sequence::Toroidal, 1..=35),
            (Sequence::Superqueens, 1..=26),
            (Sequence::SuperqueensFundamental, 1..=26),
            (Sequence::CompletionThreshold, 4..=20),
        ] {
            for n in 0..=60 {
                assert_eq!(lookup(sequence, n).is_some(), known.contains(&n), "{sequence:?}, {n}");
            }
        }
    }

    #[test]
    fn totals_and_classes_satisfy_burnsides_lemma() {
        for n in 2..=27 {
            let value = |sequence| lookup(sequence, n).expect("known for all of these n");
            let fixed = value(Sequence::PointSymmetric) + 2 * value(Sequence::QuarterTurnSymmetric);
            assert_eq!(value(Sequence::Total) + fixed, 8 * value(Sequence::Fundamental), "n = {n}");
        }
    }

    #[test]
    fn superqueens_satisfy_burnsides_lemma_with_no_more_symmetric_solutions_than_queens() {
        for n in 2..=26 {
            let value = |sequence| lookup(sequence, n).expect("known for all of these n");
            let images = 8 * value(Sequence::SuperqueensFundamental);
            let fixed = images
                .checked_sub(value(Sequence::Superqueens))
                .expect("a class has at most 8 members");
            let fixed_queens =
                value(Sequence::PointSymmetric) + 2 * value(Sequence::QuarterTurnSymmetric);
            assert!(fixed <= fixed_queens, "n = {n}: {fixed} > {fixed_queens}");
        }
    }

    #[test]
    fn a_subset_of_solutions_is_no_larger() {
        let subsets = [
            (Sequence::Total, Sequence::Rooks),
            (Sequence::Toroidal, Sequence::Total),
            (Sequence::Superqueens, Sequence::Total),
            (Sequence::PointSymmetric, Sequence::Total),
            (Sequence::QuarterTurnSymmetric, Sequence::PointSymmetric),
            (Sequence::SuperqueensFundamental, Sequence::Fundamental),
        ];
        for (part, whole) in subsets {
            for n in 0..=55 {
                if let (Some(part_of_it), Some(all_of_it)) = (lookup(part, n), lookup(whole, n)) {
                    assert!(part_of_it <= all_of_it, "{part:?} exceeds {whole:?} at n = {n}");
                }
            }
        }
    }

    #[test]
    fn quarter_turns_leave_solutions_unchanged_only_for_n_of_the_form_4k_or_4k_plus_1() {
        for n in (0..=55).filter(|n| n % 4 > 1) {
            assert_eq!(lookup(Sequence::QuarterTurnSymmetric, n), Some(0), "n = {n}");
        }
    }

    #[test]
    fn no_two_sequences_share_a_number_or_a_title() {
        let distinct = |of: fn(Sequence) -> &'static str| {
            Sequence::ALL.map(of).into_iter().collect::<BTreeSet<_>>()
        };
        assert_eq!(distinct(Sequence::oeis).len(), Sequence::ALL.len());
        assert_eq!(distinct(Sequence::title).len(), Sequence::ALL.len());
    }

    #[test]
    fn toroidal_queens_exist_only_on_boards_prime_to_6() {
        for n in 1..=35 {
            let prime_to_6 = n % 2 != 0 && n % 3 != 0;
            assert_eq!(lookup(Sequence::Toroidal, n) > Some(0), prime_to_6, "n = {n}");
        }
    }
}
