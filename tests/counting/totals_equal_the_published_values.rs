//! The totals of every kernel equal the published values: for n = 0..14 those of the oracle, for
//! n = 0..17 those of the kernels for column sets, for n = 0..16 the others.

use std::io::Write;

use nqueens::board::{Piece, Problem};
use nqueens::engine::{CountOptions, count};
use nqueens::kernel::KernelKind;
use nqueens::oeis::{Sequence, lookup};

fn assert_totals(kernel: KernelKind, largest: usize) {
    if !kernel.runs_here() {
        // Written to stderr directly: the test runner hides the output of passing tests.
        let _ =
            writeln!(std::io::stderr(), "skipped: kernel {kernel} does not run on this processor");
        return;
    }
    let options = CountOptions { kernel: Some(kernel), ..CountOptions::default() };
    for n in 0..=largest {
        let outcome = count(&Problem::empty(Piece::Queen, n), &options).expect("counts");
        assert_eq!(Some(outcome.solutions), lookup(Sequence::Total, n), "{kernel}, n = {n}");
    }
}

/// The oracle, with which everything else is compared, would take a quarter of a minute for n = 15.
#[test]
fn reference_totals_up_to_14() {
    assert_totals(KernelKind::Reference, 14);
}

#[test]
fn textbook_totals_up_to_16() {
    assert_totals(KernelKind::Textbook, 16);
}

#[test]
fn generic_totals_up_to_16() {
    assert_totals(KernelKind::Generic, 16);
}

#[test]
fn scalar_totals_up_to_16() {
    assert_totals(KernelKind::Scalar, 16);
}

#[test]
fn avx2_totals_up_to_16() {
    assert_totals(KernelKind::Avx2, 16);
}

#[test]
fn avx512_totals_up_to_16() {
    assert_totals(KernelKind::Avx512, 16);
}

#[test]
fn sets_totals_up_to_17() {
    assert_totals(KernelKind::Sets, 17);
}

#[test]
fn sets_avx2_totals_up_to_17() {
    assert_totals(KernelKind::SetsAvx2, 17);
}

#[test]
fn sets_avx512_totals_up_to_17() {
    assert_totals(KernelKind::SetsAvx512, 17);
}
