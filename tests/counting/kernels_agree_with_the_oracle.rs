//! Every kernel equals the naive oracle, subproblem by subproblem, not only in the total.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::Once;

use nqueens::board::{Piece, Problem, Square};
use nqueens::decomposition::{
    Decomposition, Job, MOST_SUB_RANGES, Scheme, UnitLimits, sub_ranges_of,
};
use nqueens::kernel::reference::completions;
use nqueens::kernel::{KernelKind, count_parts, count_range, count_sub_ranges};
use nqueens::tally::{Parts, Thirds};
use proptest::prelude::*;

/// Returns the kernels for `piece` that run on this machine.
fn kernels(piece: Piece) -> Vec<KernelKind> {
    static NAME_THE_SKIPPED: Once = Once::new();
    NAME_THE_SKIPPED.call_once(|| {
        for kind in KernelKind::ALL.into_iter().filter(|kind| !kind.runs_here()) {
            // Written to stderr directly: the test runner hides the output of passing tests.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: kernel {kind} does not run on this processor"
            );
        }
    });
    KernelKind::ALL.into_iter().filter(|kind| kind.build(piece).is_ok()).collect()
}

fn decompose(problem: &Problem, kind: KernelKind, depth: usize) -> Decomposition {
    let job =
        Job::new(problem.clone(), kind.scheme(problem), Some(depth), 1).expect("a small board");
    Decomposition::new(job)
}

/// Returns the oracle's thirds of each prefix or column set of a range, in order.
fn oracle(decomposition: &Decomposition, range: Range<u64>) -> Vec<u128> {
    let mut expected = Vec::new();
    if decomposition.has_sets() {
        // The oracle counts the symmetry cases of each set.
        let mut oracle = KernelKind::Reference.build(Piece::Queen).expect("runs everywhere");
        let count = |index| count_range(&mut *oracle, decomposition, index..index + 1);
        return range.map(count).map(|tally| tally.expect("a small sum").thirds()).collect();
    }
    decomposition.for_each(range, |plan, prefix| {
        expected.push(u128::from(completions(plan, prefix).0) * u128::from(plan.weight()));
    });
    expected
}

/// Compares each prefix by itself, then all of them in one call, where a batch kernel mixes cases.
fn assert_every_subproblem_agrees(problem: &Problem, kind: KernelKind, depth: usize) {
    let decomposition = decompose(problem, kind, depth);
    let mut kernel = kind.build(problem.piece()).expect("a kernel that runs here");
    let expected = oracle(&decomposition, 0..decomposition.prefixes());
    for (index, &thirds) in (0..).zip(&expected) {
        let tally =
            count_range(&mut *kernel, &decomposition, index..index + 1).expect("a small sum");
        assert_eq!(tally.thirds(), thirds, "{kind}, {problem:?}, depth {depth}, prefix {index}");
    }
    let whole = count_range(&mut *kernel, &decomposition, 0..decomposition.prefixes())
        .expect("a small sum");
    assert_eq!(whole.thirds(), expected.iter().sum(), "{kind}, {problem:?}, depth {depth}");
    assert!(whole.solutions().is_ok(), "{kind}, {problem:?}");
}

#[test]
fn every_subproblem_of_small_boards_agrees() {
    for piece in Piece::ALL {
        for kind in kernels(piece) {
            let largest = if piece == Piece::Rook { 6 } else { 9 };
            for n in 0..=largest {
                for depth in [0, 2, 3] {
                    assert_every_subproblem_agrees(&Problem::empty(piece, n), kind, depth);
                }
            }
        }
    }
}

#[test]
fn a_sample_of_subproblems_of_larger_boards_agrees() {
    for kind in kernels(Piece::Queen) {
        for n in [11, 12] {
            let problem = Problem::empty(Piece::Queen, n);
            let decomposition = decompose(&problem, kind, 4);
            let mut kernel = kind.build(Piece::Queen).expect("a kernel that runs here");
            // Batches of 13 prefixes, one in every 97: lanes are refilled across prefixes and
            // cases.
            for start in (0..decomposition.prefixes()).step_by(13 * 97) {
                let range = start..(start + 13).min(decomposition.prefixes());
                let expected: u128 = oracle(&decomposition, range.clone()).iter().sum();
                let tally =
                    count_range(&mut *kernel, &decomposition, range.clone()).expect("a small sum");
                assert_eq!(tally.thirds(), expected, "{kind}, n = {n}, prefixes {range:?}");
            }
        }
    }
}

#[test]
fn every_kernel_counts_column_sets_like_the_oracle() {
    let blocked = vec![Square::new(0, 3), Square::new(6, 6)];
    let decided = Problem::new(Piece::Queen, 9, vec![Square::new(2, 1)], blocked);
    let boards = (4..=9).map(|n| Problem::empty(Piece::Queen, n));
    for problem in boards.chain([decided.expect("on the board")]) {
        let job = Job::new(problem.clone(), Scheme::ColumnSets, None, 1).expect("queens");
        let decomposition = Decomposition::new(job);
        let expected = oracle(&decomposition, 0..decomposition.prefixes());
        // The textbook kernel counts only its own scheme.
        for kind in kernels(Piece::Queen).into_iter().filter(|kind| *kind != KernelKind::Textbook) {
            let mut kernel = kind.build(Piece::Queen).expect("a kernel that runs here");
            for (number, &thirds) in (0..).zip(&expected) {
                let tally = count_range(&mut *kernel, &decomposition, number..number + 1);
                let found = tally.expect("a small sum").thirds();
                assert_eq!(found, thirds, "{kind}, {problem:?}, set {number}");
            }
        }
    }
}

fn problems() -> impl Strategy<Value = Problem> {
    let square = |n: usize| (0..n, 0..n).prop_map(|(row, col)| Square::new(row, col));
    (0..Piece::ALL.len(), 1usize..=8).prop_flat_map(move |(piece, n)| {
        let piece = Piece::ALL[piece];
        let squares = |most| proptest::collection::vec(square(n), 0..=most);
        (squares(3), squares(12))
            .prop_filter_map("a square is placed or blocked, not both", move |(placed, blocked)| {
                Problem::new(piece, n, placed, blocked).ok()
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_subproblem_agrees_on_boards_with_decided_squares(problem in problems(), depth in 0usize..5) {
        for kind in kernels(problem.piece()) {
            assert_every_subproblem_agrees(&problem, kind, depth);
        }
    }
}

/// Returns completions and nodes by weight.
fn by_weight(parts: &Parts) -> BTreeMap<Thirds, (u128, u128)> {
    parts.iter().map(|part| (part.weight, (part.completions, part.nodes))).collect()
}

/// Returns the completions by weight, without weights that have none.
fn completions_by_weight(parts: &Parts) -> BTreeMap<Thirds, u128> {
    let completions = by_weight(parts).into_iter();
    completions
        .map(|(weight, (completions, _))| (weight, completions))
        .filter(|of| of.1 > 0)
        .collect()
}

/// Returns the oracle's completions of a range by weight, without weights that have none.
fn expected(decomposition: &Decomposition, range: Range<u64>) -> BTreeMap<Thirds, u128> {
    if decomposition.has_sets() {
        let mut oracle = KernelKind::Reference.build(Piece::Queen).expect("runs everywhere");
        let parts = count_parts(&mut *oracle, decomposition, range).expect("a small sum");
        return completions_by_weight(&parts);
    }
    let mut sums = BTreeMap::new();
    decomposition.for_each(range, |plan, prefix| {
        *sums.entry(plan.weight()).or_default() += u128::from(completions(plan, prefix).0);
    });
    sums.retain(|_, completions| *completions > 0);
    sums
}

fn assert_within(limits: &UnitLimits, parts: &Parts, what: &str) {
    assert!(
        parts.iter().all(|part| limits.weights.contains(&part.weight)),
        "{what}: a weight of no symmetry case"
    );
    let total = parts.total().expect("agrees with its residues");
    assert!(total.thirds() <= limits.most_thirds, "{what}: {total:?} in {limits:?}");
    let nodes = limits.least_nodes..=limits.most_nodes;
    assert!(nodes.contains(&total.nodes()), "{what}: {total:?} in {limits:?}");
}

/// Compares every unit of both images, in one call and by sub-ranges.
fn assert_sub_ranges_add_up(problem: &Problem, kind: KernelKind, depth: usize, unit_prefixes: u64) {
    let itself = decompose(problem, kind, depth).with_unit_prefixes(unit_prefixes);
    let mut kernel = kind.build(problem.piece()).expect("a kernel that runs here");
    for decomposition in [&itself, &itself.mirrored()] {
        for unit in 0..decomposition.units() {
            let what = format!("{kind}, {problem:?}, {}, unit {unit}", decomposition.job());
            let range = decomposition.unit(unit);
            let whole =
                count_parts(&mut *kernel, decomposition, range.clone()).expect("a small sum");
            assert_within(&decomposition.unit_limits(unit), &whole, &what);
            let ranges: Vec<Range<u64>> = decomposition.sub_ranges(unit).collect();
            let counted =
                count_sub_ranges(&mut *kernel, decomposition, ranges.clone()).expect("a small sum");
            assert_eq!(counted.len(), ranges.len(), "{what}");
            let mut sum = Parts::default();
            for (range, parts) in ranges.into_iter().zip(counted) {
                assert_within(&decomposition.limits(range.clone()), &parts, &what);
                assert_eq!(
                    completions_by_weight(&parts),
                    expected(decomposition, range.clone()),
                    "{what}, prefixes {range:?}"
                );
                sum.merge(&parts).expect("a small sum");
            }
            assert_eq!(by_weight(&sum), by_weight(&whole), "{what}");
        }
    }
}

#[test]
fn sub_ranges_of_empty_boards_add_up_to_their_units() {
    for (piece, n, depth, unit_prefixes) in [
        (Piece::Queen, 8, 3, 61),
        (Piece::Queen, 9, 4, 300),
        (Piece::Toroidal, 7, 3, 500),
        (Piece::Rook, 6, 0, 1),
    ] {
        for kind in kernels(piece) {
            assert_sub_ranges_add_up(&Problem::empty(piece, n), kind, depth, unit_prefixes);
        }
    }
}

#[test]
fn a_unit_may_have_no_nodes() {
    // The top row has no free square, and the rows below the block come first.
    let blocked = (0..8).map(|col| Square::new(0, col)).collect();
    let problem = Problem::new(Piece::Queen, 8, Vec::new(), blocked).expect("squares on the board");
    let decomposition = decompose(&problem, KernelKind::Scalar, 8);
    assert!(decomposition.prefixes() > 0);
    for kind in kernels(Piece::Queen).into_iter().filter(|kind| *kind != KernelKind::Textbook) {
        let mut kernel = kind.build(Piece::Queen).expect("a kernel that runs here");
        let nodes = (0..decomposition.prefixes()).map(|at| {
            let tally = count_range(&mut *kernel, &decomposition, at..at + 1).expect("a small sum");
            assert_eq!(tally.thirds(), 0);
            tally.nodes()
        });
        assert_eq!(nodes.min(), Some(decomposition.unit_limits(0).least_nodes), "{kind}");
    }
}

#[test]
fn sub_ranges_cut_a_unit_into_ranges_as_equal_as_possible() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 11), KernelKind::Scalar, 4);
    for unit_prefixes in [1, 2, 31, 32, 33, 63, 64, 100, decomposition.prefixes()] {
        let decomposition = decomposition.clone().with_unit_prefixes(unit_prefixes);
        for unit in [0, decomposition.units() / 2, decomposition.units() - 1, decomposition.units()]
        {
            let whole = decomposition.unit(unit);
            let ranges: Vec<Range<u64>> = decomposition.sub_ranges(unit).collect();
            let length = |range: &Range<u64>| range.end - range.start;
            assert_eq!(ranges.len() as u64, sub_ranges_of(length(&whole)));
            assert!(ranges.len() as u64 <= MOST_SUB_RANGES);
            assert_eq!(
                ranges.first().map(|first| first.start),
                (!whole.is_empty()).then_some(whole.start)
            );
            assert_eq!(
                ranges.last().map(|last| last.end),
                (!whole.is_empty()).then_some(whole.end)
            );
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
            assert!(ranges.iter().all(|range| !range.is_empty()), "{ranges:?}");
            let lengths = ranges.iter().map(length);
            let (least, most) = (lengths.clone().min(), lengths.max());
            assert!(most.zip(least).is_none_or(|(most, least)| most - least <= 1), "{ranges:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn sub_ranges_add_up_to_their_units_on_boards_with_decided_squares(
        problem in problems(),
        depth in 0usize..5,
        unit_prefixes in 1u64..200,
    ) {
        for kind in kernels(problem.piece()) {
            assert_sub_ranges_add_up(&problem, kind, depth, unit_prefixes);
        }
    }
}
