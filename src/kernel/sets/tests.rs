//! Every set is counted like its definition, with every instruction set.

use super::placements::MOST_ROWS;
use super::vector::{
    Choice, Coded, Each, Few, FewCodes, MOST_PLACEMENTS, Plane, Portable, ROOM, SLACK, Vector,
    Words,
};
use super::*;
use crate::board::{Piece, Problem, Square};
use crate::decomposition::testing::{decompose_by, queens};
use crate::decomposition::{Decomposition, Prefix, Scheme, SymmetryCase, solutions};
use crate::kernel::scalar::Scalar;
use crate::kernel::{Kernel, KernelKind, count_parts};
use crate::oeis::{Sequence, lookup};
use crate::symmetry::Group;
use crate::tally::{Parts, TallyError};

/// Returns the instruction sets of this processor.
fn here() -> impl Iterator<Item = Instructions> {
    Instructions::ALL.into_iter().filter(|instructions| instructions.run_here())
}

fn decompose(problem: &Problem) -> Decomposition {
    decompose_to(problem, 0)
}

/// Decomposes into sets (depth 0) or parts of sets (depth 1).
fn decompose_to(problem: &Problem, depth: usize) -> Decomposition {
    decompose_by(Scheme::ColumnSets, problem, Some(depth), 1)
}

/// Compares every set of a problem and of its mirror image with its definition. Lists are cut where
/// they have `states`, and tables have at most `rows` rows.
fn check(problem: &Problem, states: usize, rows: usize) {
    check_all_of(&decompose(problem), states, rows);
}

/// Does the same for the sets or parts of a decomposition.
fn check_all_of(itself: &Decomposition, states: usize, rows: usize) {
    let problem = itself.job().problem();
    let solutions = solutions(problem);
    let mirrored: Vec<Vec<usize>> = solutions
        .iter()
        .map(|solution| solution.iter().map(|col| problem.n() - 1 - col).collect())
        .collect();
    for (decomposition, solutions) in [(itself, &solutions), (&itself.mirrored(), &mirrored)] {
        for instructions in here() {
            let mut thirds = 0;
            let counter = SetCounter::with_limits(instructions, states, rows);
            let mut counter = counter.expect("supported");
            for (family, set) in decomposition.sets(0..decomposition.prefixes()) {
                let (counted, residues) = counter.count(family, &set);
                let expected = solutions.iter().filter(|solution| family.counts(&set, solution));
                assert_eq!(
                    counted,
                    expected.count() as u128,
                    "{instructions:?} {problem:?} {:?} {set:?}",
                    family.rule()
                );
                assert_eq!(residues, Residues::of(counted));
                thirds += counted * u128::from(set.weight);
            }
            assert_eq!(thirds, 3 * solutions.len() as u128, "{instructions:?} {problem:?}");
        }
    }
}

#[test]
fn every_set_of_an_empty_board_is_counted_like_its_definition() {
    for n in 0..=11 {
        check(&Problem::empty(Piece::Queen, n), engine::MOST_STATES, MOST_ROWS);
    }
}

#[test]
fn all_sizes_of_tables_have_the_same_counts() {
    // With tables of one row, four rows of a half are joined; with tables of two, six rows.
    for (n, rows) in [(6, 1), (7, 1), (8, 1), (9, 1), (10, 1), (11, 1), (11, 2), (12, 2), (12, 3)] {
        check(&Problem::empty(Piece::Queen, n), engine::MOST_STATES, rows);
    }
}

#[test]
fn every_part_of_a_set_is_counted_like_its_definition() {
    for n in 0..=9 {
        let parts = decompose_to(&Problem::empty(Piece::Queen, n), 1);
        check_all_of(&parts, engine::MOST_STATES, 1 + n % MOST_ROWS);
    }
    let corner = queens(9, &[], &[(0, 0)]);
    check_all_of(&decompose_to(&corner, 1), engine::MOST_STATES, MOST_ROWS);
}

#[test]
fn every_part_with_two_queens_is_counted_like_its_definition() {
    // Tables of one row leave the second lower row to be filled alone if there are five.
    for (n, placed, blocked) in [
        (9, &[][..], &[][..]),
        (10, &[], &[]),
        (10, &[], &[(6, 2), (5, 5), (0, 1)]),
        (11, &[(6, 3)], &[]),
        (11, &[(5, 5)], &[]),
    ] {
        let itself = decompose(&queens(n, placed, blocked));
        for decomposition in [itself.mirrored(), itself] {
            let problem = decomposition.set_families().first().expect("queens").problem().clone();
            let solutions = solutions(&problem);
            for instructions in here() {
                let mut counted = 0;
                let counter = SetCounter::with_limits(instructions, engine::MOST_STATES, 1);
                let mut counter = counter.expect("supported");
                for (family, set) in decomposition.sets(0..decomposition.prefixes()) {
                    if family.lower().len() < 5 {
                        continue;
                    }
                    let of_set: Vec<&Vec<usize>> =
                        solutions.iter().filter(|solution| family.counts(&set, solution)).collect();
                    for (a, b) in (0..n * n).map(|pair| (pair / n, pair % n)) {
                        let part = ColumnSet { first_rows: [1 << a, 1 << b], ..set };
                        let expected = of_set.iter().filter(|of| family.counts(&part, of)).count();
                        if set.lower >> a & set.lower >> b & 1 == 1 {
                            assert_eq!(
                                counter.count(family, &part).0,
                                expected as u128,
                                "{part:?}"
                            );
                            counted += expected;
                        }
                    }
                }
                assert!(counted > 20, "{problem:?}: {counted} placements");
            }
        }
    }
}

#[test]
fn cut_lists_have_the_same_counts() {
    for (n, states) in [(9, 1), (10, 3), (11, 50), (12, 8)] {
        check(&Problem::empty(Piece::Queen, n), states, 1);
    }
}

#[test]
fn every_set_of_a_decided_board_is_counted_like_its_definition() {
    let mut random = fastrand::Rng::with_seed(22);
    let mut checked = 0;
    for round in 0..60 {
        let n = random.usize(5..=11);
        let square = |random: &mut fastrand::Rng| Square::new(random.usize(..n), random.usize(..n));
        let blocked: Vec<Square> = (0..random.usize(..n)).map(|_| square(&mut random)).collect();
        let placed: Vec<Square> = (0..round % 3).map(|_| square(&mut random)).collect();
        let Ok(problem) = Problem::new(Piece::Queen, n, placed, blocked) else { continue };
        if problem.conflict().is_none() {
            check(&problem, engine::MOST_STATES, 1 + round % MOST_ROWS);
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked} boards");
    let symmetric = queens(10, &[], &[(0, 0), (0, 9), (9, 0), (9, 9)]);
    assert_eq!(Group::of(&symmetric), Group::FULL);
    check(&symmetric, engine::MOST_STATES, 2);
}

#[test]
fn totals_are_published_and_the_work_is_the_same_with_every_instruction_set() {
    for n in 12..=15 {
        let mut work = Vec::new();
        for instructions in here() {
            let (mut thirds, mut counters) = (0, Vec::new());
            for family in decompose(&Problem::empty(Piece::Queen, n)).set_families() {
                let mut counter = SetCounter::new(instructions).expect("supported");
                for set in (0..family.sets()).filter_map(|rank| family.set(rank)) {
                    thirds += counter.count(family, &set).0 * u128::from(set.weight);
                }
                counters.push(counter.counters());
            }
            assert_eq!(Some(thirds), lookup(Sequence::Total, n).map(|q| 3 * q), "{instructions:?}");
            work.push(counters);
        }
        assert!(work.windows(2).all(|pair| pair[0] == pair[1]), "n = {n}: {work:?}");
    }
}

/// Compares the filter with its definition, for lengths around every multiple of a vector and
/// around powers of two, at which a count could wrap.
fn check_filter<V: Vector>(vector: V) {
    let lengths = (0..=40).chain([63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025]);
    let mut random = fastrand::Rng::with_seed(256);
    for length in lengths {
        // Few bits, so that about half of the words do not meet the mask.
        let mut words =
            || (0..length + SLACK).map(|_| 1u64 << random.u32(..64)).collect::<Vec<u64>>();
        let (tests, a) = (words(), words());
        let mask = 0xffff_0f0f_00ff_3333;
        let mut kept = vec![0; length + SLACK];
        let count = vector.join(length, &tests, mask, &a, 5, &mut kept);
        kept.truncate(count);
        let pairs = tests.iter().zip(&a).take(length);
        let expected: Vec<u64> =
            pairs.filter(|(test, _)| *test & mask == 0).map(|(_, word)| word | 5).collect();
        assert_eq!(kept, expected);
    }
}

/// Compares the joins with their definition, up to the order of the results.
fn check_joins<V: Vector>(vector: V) {
    let mut random = fastrand::Rng::with_seed(120);
    for _ in 0..400 {
        let count = random.usize(..=120);
        let mut bits = || 1u64 << random.u32(..16) | 1 << random.u32(..16);
        let [tests, words]: [Vec<u64>; 2] =
            [(); 2].map(|()| (0..count + SLACK).map(|_| bits()).collect());
        let of_each: Few = std::array::from_fn(|_| bits());
        let codes: Vec<u32> = words.iter().map(|&word| word as u32).collect();
        let of_codes: FewCodes = std::array::from_fn(|_| random.u32(..1 << 16));
        let mask = random.u32(..1 << MOST_PLACEMENTS);
        let each = Each { mask, tests: &of_each, test: 1 << random.u32(..16) };
        let mut pairs = Vec::new();
        for i in (0..MOST_PLACEMENTS).filter(|i| mask >> i & 1 == 1) {
            let apart = |j: &usize| tests[*j] & (of_each[i] | each.test) == 0;
            pairs.extend((0..count).filter(apart).map(|j| (i, j)));
        }
        let room = count * mask.count_ones() as usize + SLACK;
        let mut joined = vec![0; room];
        let many = Words { count, tests: &tests, words: &words };
        let kept = vector.join_all(many, each, &of_each, 5, &mut joined);
        joined.truncate(kept);
        joined.sort_unstable();
        let mut expected: Vec<u64> =
            pairs.iter().map(|&(i, j)| words[j] | of_each[i] | 5).collect();
        expected.sort_unstable();
        assert_eq!(joined, expected);
        let mut joined = vec![0; room];
        let many = Coded { count, tests: &tests, codes: &codes };
        let kept = vector.join_codes(many, each, &of_codes, 5, &mut joined);
        joined.truncate(kept);
        joined.sort_unstable();
        let mut expected: Vec<u32> =
            pairs.iter().map(|&(i, j)| codes[j] + of_codes[i] + 5).collect();
        expected.sort_unstable();
        assert_eq!(joined, expected);
        let orders = of_codes.map(|code| code % 24);
        let looked_up = orders.map(|order| of_codes[order as usize]);
        assert_eq!(vector.look_up(&orders, &of_codes), looked_up);
    }
}

/// Compares the selections with their definition.
fn check_selections<V: Vector>(vector: V) {
    let mut random = fastrand::Rng::with_seed(24);
    for count in 0..=MOST_PLACEMENTS {
        // Few bits, so that about half of the words do not meet the mask.
        let mut words = || std::array::from_fn(|_| 1 << random.u32(..64));
        let [tests, a, b]: [Few; 3] = [words(), words(), words()];
        let orders: FewCodes = std::array::from_fn(|_| random.u32(..24));
        let codes: FewCodes = std::array::from_fn(|_| random.u32(..1 << 16));
        let choice = Choice { count, tests: &tests, against: 0xffff_0f0f_00ff_3333 };
        let chosen: Vec<usize> = (0..count).filter(|&i| tests[i] & choice.against == 0).collect();
        assert_eq!(vector.chosen(choice), chosen.iter().map(|i| 1 << i).sum::<u32>());
        let (mut first, mut second) = (vec![0; ROOM], vec![0; ROOM]);
        let kept = vector.select(choice, [&a, &b], [5, 9], [&mut first, &mut second]);
        assert_eq!(first[..kept], chosen.iter().map(|&i| a[i] | 5).collect::<Vec<u64>>());
        assert_eq!(second[..kept], chosen.iter().map(|&i| b[i] | 9).collect::<Vec<u64>>());
        let (mut words, mut coded) = (vec![0; ROOM], vec![0; ROOM]);
        let into = (&mut words[..], &mut coded[..]);
        let kept = vector.select_coded(choice, &a, [&orders, &codes], (5, 1 << 16), into);
        let code_of = |&i: &usize| codes[orders[i] as usize] + (1 << 16);
        assert_eq!(words[..kept], chosen.iter().map(|&i| a[i] | 5).collect::<Vec<u64>>());
        assert_eq!(coded[..kept], chosen.iter().map(code_of).collect::<Vec<u32>>());
    }
}

/// Compares the operations on planes with their definition, word by word.
fn check_planes<V: Vector, const W: usize>(vector: V) {
    let mut random = fastrand::Rng::with_seed(64);
    for shift in [1, 2, 4, 8, 16, 32] {
        let mut plane = || -> Plane<W> { std::array::from_fn(|_| random.u64(..)) };
        let (a, b, c) = (plane(), plane(), plane());
        let (upper, lower) = ([a, b, c], [b, c, a]);
        // The shift drops no bit of the mask.
        let mask = plane()[0] & u64::MAX >> shift;
        let (mut x, mut y) = (upper, lower);
        vector.exchange(&mut x, &mut y, shift, mask);
        for (row, w) in (0..3).flat_map(|row| (0..W).map(move |w| (row, w))) {
            let (of_upper, of_lower) = (upper[row][w], lower[row][w]);
            let shifted = mask << shift;
            assert_eq!(x[row][w], (of_upper & !shifted) | (of_lower & mask) << shift);
            assert_eq!(y[row][w], (of_lower & !mask) | (of_upper & shifted) >> shift);
        }
        let mut both = [0; W];
        vector.and(&a, &b, &mut both);
        let none = vector.none(&a, &b, &c);
        for w in 0..W {
            assert_eq!(both[w], a[w] & b[w]);
            assert_eq!(none[w], a[w] & !b[w] & !c[w]);
        }
    }
}

/// Compares the sum with one of single bits.
fn check_sums<V: Vector, const W: usize>(vector: V) {
    let mut random = fastrand::Rng::with_seed(8);
    let mut pairs = Box::new([[[0u64; W]; 128]; 4]);
    pairs.as_flattened_mut().as_flattened_mut().fill_with(|| random.u64(..) | random.u64(..));
    for length in [0usize, 1, 7, 8, 9, 63, 64, 65, 1000] {
        let completions: Vec<u32> = (0..length).map(|_| random.u32(..) & 0x7f7f_7f7f).collect();
        let of = |completion: u32, w: usize| {
            let plane = |pair: usize| pairs[pair][(completion >> (8 * pair) & 127) as usize][w];
            u64::from((plane(0) & plane(1) & plane(2) & plane(3)).count_ones())
        };
        let expected: u64 =
            completions.iter().flat_map(|&code| (0..W).map(move |w| of(code, w))).sum();
        assert_eq!(vector.sum(&pairs, &completions), expected, "{length} completions");
    }
}

/// Compares all operations with their definition.
fn check_operations<V: Vector, const W: usize>(vector: V) {
    check_filter(vector);
    check_joins(vector);
    check_selections(vector);
    check_planes::<_, W>(vector);
    check_sums::<_, W>(vector);
}

#[test]
fn the_operations_of_every_instruction_set_equal_their_definition() {
    check_operations::<_, 8>(Portable);
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(vector) = avx2::Avx2::detect() {
            check_operations::<_, { avx2::WORDS }>(vector);
        }
        if let Some(vector) = avx512::Avx512::detect() {
            check_operations::<_, { avx512::WORDS }>(vector);
        }
    }
}

/// Counts a placement too many in every case.
struct Miscounts;

impl Kernel for Miscounts {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        KernelKind::Scalar.build(case.piece()).expect("queens").count(case, prefixes, parts)?;
        parts.add(case.weight(), 1u32, Residues::of(1), 0u32)
    }
}

#[test]
fn a_difference_between_the_two_counts_of_a_set_is_an_error() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 14));
    let all = 0..decomposition.prefixes();
    let mut sound = SetKernel::new(Instructions::Portable, Box::new(Scalar)).expect("supported");
    assert!(count_parts(&mut sound, &decomposition, all.clone()).is_ok());
    let mut faulty =
        SetKernel::new(Instructions::Portable, Box::new(Miscounts)).expect("supported");
    let counted = count_parts(&mut faulty, &decomposition, all);
    assert!(matches!(counted, Err(TallyError::CountedTwice { .. })), "{counted:?}");
}
