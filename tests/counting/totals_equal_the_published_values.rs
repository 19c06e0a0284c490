//! The totals of every kernel equal the published values for n = 1..16.

use std::io::Write;

use nqueens::board::{Piece, Problem};
use nqueens::engine::{CountOptions, count};
use nqueens::kernel::KernelKind;
use nqueens::oeis::{Sequence, lookup};

fn assert_totals(kernel: KernelKind) {
    if !kernel.runs_here() {
        // Written to stderr directly: the test runner hides the output of passing tests.
        let _ =
            writeln!(std::io::stderr(), "skipped: kernel {kernel} does not run on this processor");
        return;
    }
    let options = CountOptions { kernel: Some(kernel), ..CountOptions::default() };
    for n in 0..=16 {
        let outcome = count(&Problem::empty(Piece::Queen, n), &options).expect("counts");
        assert_eq!(Some(outcome.solutions), lookup(Sequence::Total, n), "{kernel}, n = {n}");
    }
}

/// The oracle takes a minute or two on two cores for n = 16; everything else is compared with it.
#[test]
fn reference_totals_up_to_16() {
    assert_totals(KernelKind::Reference);
}

#[test]
fn textbook_totals_up_to_16() {
    assert_totals(KernelKind::Textbook);
}

#[test]
fn generic_totals_up_to_16() {
    assert_totals(KernelKind::Generic);
}

#[test]
fn scalar_totals_up_to_16() {
    assert_totals(KernelKind::Scalar);
}

#[test]
fn avx2_totals_up_to_16() {
    assert_totals(KernelKind::Avx2);
}

#[test]
fn avx512_totals_up_to_16() {
    assert_totals(KernelKind::Avx512);
}
