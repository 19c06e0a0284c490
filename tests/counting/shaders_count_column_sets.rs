//! The shader of column sets, on every adapter of this machine, agrees with the CPU set by set.
//!
//! Without an adapter these tests print "skipped: no adapter". If one is expected
//! (`NQUEENS_EXPECT_ADAPTER=1`), they fail instead.

use std::ops::Range;

use nqueens::board::{Piece, Problem, Square};
use nqueens::decomposition::{Decomposition, Job, Scheme};
use nqueens::kernel::gpu::DeviceKernel;
use nqueens::kernel::{KernelKind, count_sub_ranges};
use nqueens::oeis::{Sequence, lookup};
use nqueens::tally::{Parts, Tally};

use crate::shaders_agree_with_the_oracle::kernels;

fn decompose(problem: &Problem, unit: u64) -> Decomposition {
    let job = Job::new(problem.clone(), Scheme::ColumnSets, None, unit);
    Decomposition::new(job.expect("a board with column sets"))
}

fn count(
    kernel: &mut DeviceKernel,
    decomposition: &Decomposition,
    ranges: Vec<Range<u64>>,
) -> Vec<Parts> {
    kernel
        .open(decomposition)
        .and_then(|mut job| job.count_ranges(ranges, &|| true))
        .expect("a device that works")
}

/// Compares each of these sets, numbers from 0, with the CPU.
fn assert_sets_agree(
    (id, kernel): &mut (String, DeviceKernel),
    decomposition: &Decomposition,
    sets: Range<u64>,
    cpu: KernelKind,
) {
    let each: Vec<Range<u64>> = sets.map(|set| set..set + 1).collect();
    let found = count(kernel, decomposition, each.clone());
    let mut cpu = cpu.build(Piece::Queen).expect("a kernel for this machine");
    let expected = count_sub_ranges(&mut *cpu, decomposition, each).expect("small sums");
    for (set, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let thirds = |parts: &Parts| parts.total().map(|total| total.thirds());
        let problem = decomposition.job().problem();
        assert_eq!(thirds(found), thirds(expected), "{id}: {problem:?}, set {set}");
    }
}

#[test]
fn totals_of_n_8_to_16_equal_the_published_values() {
    for (id, mut kernel) in kernels() {
        for n in 8..=16 {
            let decomposition = decompose(&Problem::empty(Piece::Queen, n), 100);
            let units: Vec<u64> = (0..decomposition.units()).collect();
            let tallies = kernel
                .open(&decomposition)
                .and_then(|mut job| job.count(&units, &|| true))
                .expect("a device that works");
            let mut total = Tally::default();
            for tally in tallies {
                total.merge(&tally).expect("a small sum");
            }
            assert_eq!(total.solutions().ok(), lookup(Sequence::Total, n), "{id}, n = {n}");
        }
    }
}

#[test]
fn every_set_of_n_12_and_13_agrees_with_the_cpu_in_both_images() {
    for mut kernel in kernels() {
        for n in [12, 13] {
            let itself = decompose(&Problem::empty(Piece::Queen, n), 1);
            for decomposition in [itself.mirrored(), itself] {
                let sets = 0..decomposition.prefixes();
                assert_sets_agree(&mut kernel, &decomposition, sets, KernelKind::Scalar);
            }
        }
    }
}

#[test]
fn sampled_sets_of_n_18_to_24_agree_with_the_cpu() {
    for mut kernel in kernels() {
        // Software drivers take a minute for a set of the empty board of size 24.
        let queen = Some(Square::new(2, 7));
        let boards = [
            (18, None, 12),
            (19, None, 6),
            (20, None, 4),
            (21, None, 2),
            (22, None, 1),
            (24, queen, 2),
        ];
        for (n, placed, sets) in boards {
            let problem = Problem::new(Piece::Queen, n, placed.into_iter().collect(), vec![]);
            let decomposition = decompose(&problem.expect("a valid board"), 1);
            let cpu = KernelKind::fastest(Piece::Queen);
            assert_sets_agree(&mut kernel, &decomposition, 0..sets, cpu);
        }
    }
}

#[test]
fn sets_of_boards_with_decided_squares_agree_with_the_cpu() {
    let squares =
        |list: &[(usize, usize)]| list.iter().map(|&(row, col)| Square::new(row, col)).collect();
    type Squares = &'static [(usize, usize)];
    let boards: [(usize, Squares, Squares); 5] = [
        (10, &[(0, 3)], &[]),
        (11, &[(5, 5)], &[(0, 0), (10, 3)]),
        (12, &[(2, 7), (9, 1)], &[(4, 4), (5, 9), (6, 2)]),
        (13, &[], &[(6, 6)]),
        (14, &[], &[(0, 0), (3, 8), (13, 5), (7, 7)]),
    ];
    for mut kernel in kernels() {
        for (n, placed, blocked) in boards {
            let problem = Problem::new(Piece::Queen, n, squares(placed), squares(blocked));
            let decomposition = decompose(&problem.expect("a valid board"), 1);
            let sets = 0..decomposition.prefixes().min(500);
            assert_sets_agree(&mut kernel, &decomposition, sets, KernelKind::Scalar);
        }
    }
}

/// Halves of 14 rows are the largest that the shader counts: their placements take the deepest
/// stack.
#[test]
fn the_set_of_a_board_of_28_rows_agrees_with_the_cpu() {
    // The even columns are below and the odd ones above. One solution is certain: the odd columns
    // in turn, then the even ones. The lower half has 1,407 placements, so that lanes find several.
    let is_open = |row: usize, col: usize| {
        let (certain, share) = if row < 14 { (2 * row + 1, 7) } else { (2 * (row - 14), 10) };
        let digit = (7 * row * row + 5 * col * col + 3 * row * col + row + 11 * col) % 23;
        col == certain || (col % 2 == certain % 2 && digit < share)
    };
    let squares = (0..28).flat_map(|row| (0..28).map(move |col| (row, col)));
    let blocked = squares
        .filter(|&(row, col)| !is_open(row, col))
        .map(|(row, col)| Square::new(row, col))
        .collect();
    let problem = Problem::new(Piece::Queen, 28, vec![], blocked).expect("a valid board");
    // The columns of each half are certain, so there is one set; it is divided by its first two
    // queens.
    let decomposition = decompose(&problem, 1);
    assert_eq!(decomposition.prefixes(), 14 * 14);
    for mut kernel in kernels() {
        assert_sets_agree(&mut kernel, &decomposition, 0..14 * 14, KernelKind::Scalar);
    }
}
