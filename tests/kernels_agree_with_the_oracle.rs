//! Every kernel equals the naive oracle, subproblem by subproblem, not only in the total.

use std::io::Write;
use std::sync::Once;

use nqueens::board::{Piece, Problem, Square};
use nqueens::kernel::reference::completions;
use nqueens::kernel::{KernelKind, count_range};
use nqueens::preplacement::{Decomposition, Job};
use proptest::prelude::*;

/// The kernels that count `piece` on this machine.
fn kernels(piece: Piece) -> Vec<KernelKind> {
    static NAME_THE_SKIPPED: Once = Once::new();
    NAME_THE_SKIPPED.call_once(|| {
        for kind in KernelKind::ALL.into_iter().filter(|kind| !kind.runs_here()) {
            // Straight to stderr: the test runner hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "skipped: kernel {kind} does not run on this processor");
        }
    });
    KernelKind::ALL.into_iter().filter(|kind| kind.build(piece).is_ok()).collect()
}

fn decompose(problem: &Problem, kind: KernelKind, depth: usize) -> Decomposition {
    let job = Job::new(problem.clone(), kind.scheme(problem), Some(depth), 1).expect("a small board");
    Decomposition::new(job)
}

/// Each prefix by itself, then all of them in one go (where a batch kernel mixes plans).
fn assert_every_subproblem_agrees(problem: &Problem, kind: KernelKind, depth: usize) {
    let decomposition = decompose(problem, kind, depth);
    let mut kernel = kind.build(problem.piece()).expect("a kernel that runs here");
    let mut expected = Vec::new();
    decomposition.for_each(0..decomposition.prefixes(), |plan, prefix| {
        expected.push(u128::from(completions(plan, prefix).0) * u128::from(plan.weight()));
    });
    for (index, &thirds) in (0..).zip(&expected) {
        let tally = count_range(&mut *kernel, &decomposition, index..index + 1).expect("a small sum");
        assert_eq!(tally.thirds(), thirds, "{kind}, {problem:?}, depth {depth}, prefix {index}");
    }
    let whole = count_range(&mut *kernel, &decomposition, 0..decomposition.prefixes()).expect("a small sum");
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
            // Batches of 13 prefixes, one in every 97: lanes are refilled across prefixes and plans.
            for start in (0..decomposition.prefixes()).step_by(13 * 97) {
                let range = start..(start + 13).min(decomposition.prefixes());
                let mut expected = 0;
                decomposition.for_each(range.clone(), |plan, prefix| {
                    expected += u128::from(completions(plan, prefix).0) * u128::from(plan.weight());
                });
                let tally = count_range(&mut *kernel, &decomposition, range.clone()).expect("a small sum");
                assert_eq!(tally.thirds(), expected, "{kind}, n = {n}, prefixes {range:?}");
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
