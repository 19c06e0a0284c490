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

    /// Returns the first n with a value, and the values from there on.
    const fn values(self) -> (usize, &'static [u128]) {
        match self {
            Self::Total => (0, TOTAL),
            Self::Fundamental => (1, FUNDAMENTAL),
            Self::PointSymmetric => (1, POINT_SYMMETRIC),
            Self::QuarterTurnSymmetric => (0, QUARTER_TURN_SYMMETRIC),
            Self::Toroidal => (1, TOROIDAL),
            Self::Superqueens => (1, SUPERQUEENS),
            Self::SuperqueensFundamental => (1, SUPERQUEENS_FUNDAMENTAL),
            Self::CompletionThreshold => (4, COMPLETION_THRESHOLD),
            Self::Rooks => (0, &[]),
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
    let (first, values) = sequence.values();
    values.get(n.checked_sub(first)?).copied()
}

/// From n = 0.
const TOTAL: &[u128] = &[
    1,
    1,
    0,
    0,
    2,
    10,
    4,
    40,
    92,
    352,
    724,
    2_680,
    14_200,
    73_712,
    365_596,
    2_279_184,
    14_772_512,
    95_815_104,
    666_090_624,
    4_968_057_848,
    39_029_188_884,
    314_666_222_712,
    2_691_008_701_644,
    24_233_937_684_440,
    227_514_171_973_736,
    2_207_893_435_808_352,
    22_317_699_616_364_044,
    234_907_967_154_122_528,
];

/// From n = 1.
const FUNDAMENTAL: &[u128] = &[
    1,
    0,
    0,
    1,
    2,
    1,
    6,
    12,
    46,
    92,
    341,
    1_787,
    9_233,
    45_752,
    285_053,
    1_846_955,
    11_977_939,
    83_263_591,
    621_012_754,
    4_878_666_808,
    39_333_324_973,
    336_376_244_042,
    3_029_242_658_210,
    28_439_272_956_934,
    275_986_683_743_434,
    2_789_712_466_510_289,
    29_363_495_934_315_694,
];

/// From n = 1.
const POINT_SYMMETRIC: &[u128] = &[
    1,
    0,
    0,
    2,
    2,
    4,
    8,
    4,
    16,
    12,
    48,
    80,
    136,
    420,
    1_240,
    3_000,
    8_152,
    18_104,
    44_184,
    144_620,
    375_664,
    1_250_692,
    3_581_240,
    11_675_080,
    34_132_592,
    115_718_268,
    320_403_024,
    1_250_901_440,
    3_600_075_088,
    14_589_438_024,
    43_266_334_696,
    181_254_386_312,
];

/// From n = 0.
const QUARTER_TURN_SYMMETRIC: &[u128] = &[
    1,
    1,
    0,
    0,
    2,
    2,
    0,
    0,
    0,
    0,
    0,
    0,
    8,
    8,
    0,
    0,
    64,
    128,
    0,
    0,
    480,
    704,
    0,
    0,
    3_328,
    3_264,
    0,
    0,
    32_896,
    43_776,
    0,
    0,
    406_784,
    667_904,
    0,
    0,
    5_845_504,
    8_650_752,
    0,
    0,
    77_184_000,
    101_492_736,
    0,
    0,
    1_261_588_480,
    1_795_233_792,
    0,
    0,
    21_517_426_688,
    35_028_172_800,
    0,
    0,
    406_875_119_616,
    652_044_443_648,
    0,
    0,
];

/// From n = 1.
const TOROIDAL: &[u128] = &[
    1,
    0,
    0,
    0,
    10,
    0,
    28,
    0,
    0,
    0,
    88,
    0,
    4_524,
    0,
    0,
    0,
    140_692,
    0,
    820_496,
    0,
    0,
    0,
    128_850_048,
    0,
    1_957_725_000,
    0,
    0,
    0,
    605_917_055_356,
    0,
    13_404_947_681_712,
    0,
    0,
    0,
    53_742_116_622_600,
];

/// From n = 1.
const SUPERQUEENS: &[u128] = &[
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    4,
    44,
    156,
    1_876,
    5_180,
    32_516,
    202_900,
    1_330_622,
    8_924_976,
    64_492_432,
    495_864_256,
    3_977_841_852,
    34_092_182_276,
    306_819_842_212,
    2_883_202_816_808,
    28_144_109_776_812,
    286_022_102_245_804,
];

/// From n = 1.
const SUPERQUEENS_FUNDAMENTAL: &[u128] = &[
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    1,
    6,
    22,
    239,
    653,
    4_089,
    25_411,
    166_463,
    1_115_871,
    8_062_150,
    61_984_976,
    497_236_090,
    4_261_538_564,
    38_352_532_487,
    360_400_504_834,
    3_518_014_210_402,
    35_752_764_285_788,
];

/// From n = 4.
const COMPLETION_THRESHOLD: &[u128] = &[0, 1, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4];

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
