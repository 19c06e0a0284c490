//! The mirror of the shader counts every set like the scalar kernel, whatever the room and the work
//! of a submission are; damaged memory never changes a count.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::board::{Piece, Problem, Square};
use crate::decomposition::testing::decompose_by;
use crate::decomposition::{Decomposition, Scheme};
use crate::kernel::count_parts;
use crate::kernel::gpu::Fault;
use crate::kernel::scalar::Scalar;
use crate::oeis::{Sequence, lookup};
use crate::tally::{Parts, Tally};
use layout::{SetItem, SetParams, SetQueue, SetSlot};

const ROOMY: SetShape = SetShape { groups: 1, capacity: 1 << 18, list_iterations: u32::MAX };
const MUCH: u32 = 1 << 26;

fn decompose(problem: &Problem) -> Decomposition {
    decompose_by(Scheme::ColumnSets, problem, None, 1)
}

fn count(
    backend: &mut dyn SetBackend,
    decomposition: &Decomposition,
    shape: SetShape,
    budget: u32,
    ranges: Vec<Range<u64>>,
) -> Result<Vec<Parts>, Fault> {
    let columns = layout::MOST_COLUMNS as u32;
    let mut counts = SetCounts::open(backend, columns, shape, u64::MAX, decomposition)?;
    let mut tuning = SetTuning::fixed(budget);
    counts.count_ranges(backend, &mut tuning, decomposition, ranges, &|| true)
}

fn thirds(parts: &[Parts]) -> Vec<u128> {
    parts.iter().map(|parts| parts.total().expect("a small sum").thirds()).collect()
}

/// Compares each of these sets, numbers from 0, with the scalar kernel.
fn assert_sets_agree(
    decomposition: &Decomposition,
    shape: SetShape,
    budget: u32,
    sets: Range<u64>,
) {
    let each: Vec<Range<u64>> = sets.map(|set| set..set + 1).collect();
    let mut mirror = SetMirror::default();
    let found = count(&mut mirror, decomposition, shape, budget, each.clone());
    let expected: Vec<Parts> = each
        .into_iter()
        .map(|set| count_parts(&mut Scalar, decomposition, set).expect("a small sum"))
        .collect();
    assert_eq!(thirds(&found.expect("a mirror without faults")), thirds(&expected));
}

#[test]
fn every_set_of_n_8_to_11_agrees_with_the_scalar_kernel() {
    for n in 8..=11 {
        let itself = decompose(&Problem::empty(Piece::Queen, n));
        for decomposition in [itself.mirrored(), itself] {
            assert_sets_agree(&decomposition, ROOMY, MUCH, 0..decomposition.prefixes());
        }
    }
}

#[test]
fn totals_of_n_12_and_13_equal_the_published_values() {
    for n in [12, 13] {
        let decomposition = decompose(&Problem::empty(Piece::Queen, n));
        let all = 0..decomposition.prefixes();
        let mut mirror = SetMirror::default();
        let parts = count(&mut mirror, &decomposition, ROOMY, MUCH, vec![all]);
        let total: Tally = parts.expect("a mirror without faults")[0].total().expect("a small sum");
        assert_eq!(total.solutions().ok(), lookup(Sequence::Total, n));
    }
}

#[test]
fn sets_with_rows_that_filter_agree_with_the_scalar_kernel() {
    // One row filters at n = 18, and two do at n = 20.
    for (n, sets) in [(18, 12), (19, 8), (20, 6)] {
        let decomposition = decompose(&Problem::empty(Piece::Queen, n));
        assert_sets_agree(&decomposition, ROOMY, MUCH, 0..sets);
    }
}

#[test]
fn sets_that_do_not_fit_are_divided() {
    for (n, capacity) in [(10, 8), (12, 16), (13, 1)] {
        let decomposition = decompose(&Problem::empty(Piece::Queen, n));
        let shape = SetShape { capacity, ..ROOMY };
        assert_sets_agree(&decomposition, shape, MUCH, 0..decomposition.prefixes().min(300));
    }
    let decomposition = decompose(&Problem::empty(Piece::Queen, 20));
    assert_sets_agree(&decomposition, SetShape { capacity: 1500, ..ROOMY }, MUCH, 0..3);
}

#[test]
fn sets_whose_listing_takes_too_long_are_divided() {
    for (n, list_iterations) in [(10, 10), (12, 100), (13, 1)] {
        let decomposition = decompose(&Problem::empty(Piece::Queen, n));
        let shape = SetShape { list_iterations, ..ROOMY };
        assert_sets_agree(&decomposition, shape, MUCH, 0..decomposition.prefixes().min(300));
    }
    let decomposition = decompose(&Problem::empty(Piece::Queen, 20));
    let shape = SetShape { list_iterations: 20_000, ..ROOMY };
    assert_sets_agree(&decomposition, shape, MUCH, 0..3);
}

#[test]
fn submissions_end_and_continue_between_any_two_steps() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 10));
    assert_sets_agree(&decomposition, ROOMY, 1, 0..decomposition.prefixes());
    let decomposition = decompose(&Problem::empty(Piece::Queen, 20));
    assert_sets_agree(&decomposition, ROOMY, 1 << 16, 0..2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn boards_with_placed_and_blocked_squares_agree_with_the_scalar_kernel(
        n in 6usize..=11,
        placed in prop::collection::vec((0usize..11, 0usize..11), 0..3),
        blocked in prop::collection::vec((0usize..11, 0usize..11), 0..12),
    ) {
        let squares = |list: &[(usize, usize)]| -> Vec<Square> {
            let on_board = list.iter().filter(|(row, col)| *row < n && *col < n);
            on_board.map(|&(row, col)| Square::new(row, col)).collect()
        };
        let problem = Problem::new(Piece::Queen, n, squares(&placed), squares(&blocked));
        let Ok(problem) = problem else { return Ok(()) };
        if problem.conflict().is_some() {
            return Ok(());
        }
        let decomposition = decompose(&problem);
        let sets = decomposition.prefixes().min(200);
        let mut mirror = SetMirror::default();
        let each: Vec<Range<u64>> = (0..sets).map(|set| set..set + 1).collect();
        match count(&mut mirror, &decomposition, ROOMY, MUCH, each.clone()) {
            Err(Fault::Unsuited) => {}
            found => {
                let expected: Vec<Parts> = each
                    .into_iter()
                    .map(|set| count_parts(&mut Scalar, &decomposition, set).expect("a small sum"))
                    .collect();
                prop_assert_eq!(thirds(&found.expect("a mirror without faults")), thirds(&expected));
            }
        }
    }
}

/// A mirror with a word of memory that is damaged behind a certain submission.
struct Damaged {
    mirror: SetMirror,
    /// The submissions until then.
    submissions: usize,
    /// The kind of memory, the word and the bit, modulo their numbers.
    place: (usize, usize, u32),
}

impl Damaged {
    fn damage(&mut self) {
        let (kind, word, bit) = self.place;
        let memory = &mut self.mirror.memory;
        let words: &mut [u32] = match kind % 4 {
            0 => {
                // The lists in use.
                let in_use = memory.frames[4] as usize + memory.frames[5] as usize;
                let in_use = in_use.clamp(1, memory.states.len());
                bytemuck::cast_slice_mut(&mut memory.states[..in_use])
            }
            1 => {
                // The row's frames in use.
                let row = memory.frames[layout::ROW];
                let in_use = if row == layout::NONE { 0 } else { (row as usize + 1) * 8 };
                if in_use == 0 {
                    &mut memory.frames[128..130]
                } else {
                    &mut memory.frames[..in_use]
                }
            }
            2 => bytemuck::cast_slice_mut(&mut memory.slots),
            _ => bytemuck::cast_slice_mut(std::slice::from_mut(&mut memory.queue)),
        };
        let word = word % words.len();
        words[word] ^= 1 << bit;
    }
}

impl SetBackend for Damaged {
    fn open_sets(&mut self, columns: u32, shape: SetShape, families: &[u32]) -> Result<(), Fault> {
        self.mirror.open_sets(columns, shape, families)
    }
    fn load_sets(&mut self, items: &[SetItem]) -> Result<(), Fault> {
        self.mirror.load_sets(items)
    }
    fn submit_sets(&mut self, params: &SetParams) -> Result<(), Fault> {
        self.mirror.submit_sets(params)?;
        self.submissions = self.submissions.wrapping_sub(1);
        if self.submissions == 0 {
            self.damage();
        }
        Ok(())
    }
    fn wait_sets(&mut self) -> Result<SetQueue, Fault> {
        self.mirror.wait_sets()
    }
    fn set_slots(&mut self) -> Result<Vec<SetSlot>, Fault> {
        self.mirror.set_slots()
    }
}

#[test]
fn damaged_memory_never_changes_a_count() {
    let decomposition = decompose(&Problem::empty(Piece::Queen, 12));
    let all = 0..decomposition.prefixes();
    let expected = count_parts(&mut Scalar, &decomposition, all.clone()).expect("a small sum");
    let mut detected = [0; 4];
    for seed in 0..400usize {
        // Digits of a product by the golden ratio.
        let digits = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (seed, (digits >> 40) as usize, (digits >> 8) as u32 % 32);
        let submissions = 1 + (digits >> 16) as usize % 20;
        let mut damaged = Damaged { mirror: SetMirror::default(), submissions, place };
        let found = count(&mut damaged, &decomposition, ROOMY, 1 << 12, vec![all.clone()]);
        match found {
            Ok(found) => {
                assert_eq!(thirds(&found), thirds(std::slice::from_ref(&expected)), "seed {seed}")
            }
            Err(_) => detected[seed % 4] += 1,
        }
    }
    // Every kind of damage is noticed where it matters.
    assert!(detected.iter().all(|&count| count > 0), "{detected:?}");
}
