//! The numbering of the column sets of a problem.

use std::sync::Arc;

use super::column_sets::{ColumnSet, SetFamily, families};
use crate::board::Problem;

/// The families of a problem with a number for each of their sets, or for each part of a set,
/// from 0.
///
/// Consecutive numbers denote sets of all families and of widely different ranks, so that ranges of
/// numbers take about equally long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetNumbers {
    families: Vec<SetFamily>,
    /// The number of queens of the parts that the numbers denote: 0 for whole sets.
    queens: usize,
    /// The numbers of all families before each one, followed by the total.
    first: Vec<u64>,
}

impl SetNumbers {
    /// Numbers the sets of a problem of queens, or their parts with this number of queens, at most
    /// 2; other pieces have none.
    pub(super) fn new(problem: &Arc<Problem>, queens: usize) -> Self {
        let families = families(problem).unwrap_or_default();
        let mut first = vec![0];
        for family in &families {
            // At most 2^32 sets of at most 256 parts.
            first.push(first[first.len() - 1] + family.sets() * family.parts(queens));
        }
        Self { families, queens, first }
    }

    /// Returns the mirror image, whose sets have the same numbers.
    pub(super) fn mirrored(&self, problem: &Arc<Problem>) -> Self {
        let families = self.families.iter().map(|family| family.mirrored(problem)).collect();
        Self { families, first: self.first.clone(), ..*self }
    }

    pub(super) fn families(&self) -> &[SetFamily] {
        &self.families
    }

    /// Returns the number of sets or parts, including those that are images of others.
    pub(super) fn sets(&self) -> u64 {
        self.first[self.families.len()]
    }

    /// Returns the set or part of a number below [`Self::sets`] with its family, or `None` if it is
    /// the image of another one, which counts for it.
    pub(super) fn set(&self, number: u64) -> Option<(&SetFamily, ColumnSet)> {
        let place = scattered(number, self.sets());
        let family = self.first.partition_point(|&first| first <= place).checked_sub(1)?;
        let (family, place) = (self.families.get(family)?, place - self.first[family]);
        let parts = family.parts(self.queens);
        let set = family.part(place / parts, self.queens, place % parts)?;
        Some((family, set))
    }
}

/// Returns the image of `number` under a fixed permutation of 0..count that moves neighbours far
/// apart: multiplication by about the golden ratio of `count`, modulo `count`.
fn scattered(number: u64, count: u64) -> u64 {
    /// 2^64 / φ.
    const GOLDEN: u128 = 0x9e37_79b9_7f4a_7c15;
    let mut factor = ((u128::from(count) * GOLDEN) >> 64) as u64 | 1;
    while greatest_common_divisor(factor, count) != 1 {
        factor += 2;
    }
    // Both are below 2^64.
    (u128::from(number) * u128::from(factor) % u128::from(count)) as u64
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::board::Piece;

    #[test]
    fn the_numbers_are_a_permutation_of_the_places() {
        for count in [1, 2, 3, 10, 924, 48_620, 2_704_156] {
            let images: BTreeSet<u64> =
                (0..count.min(100_000)).map(|number| scattered(number, count)).collect();
            assert_eq!(images.len() as u64, count.min(100_000));
            assert!(images.last() < Some(&count));
        }
    }

    #[test]
    fn the_numbers_denote_every_set_of_every_family_once() {
        for n in 0..=9 {
            let problem = Arc::new(Problem::empty(Piece::Queen, n));
            let numbers = SetNumbers::new(&problem, 0);
            let numbered: Vec<String> = (0..numbers.sets())
                .filter_map(|number| numbers.set(number))
                .map(|(family, set)| format!("{:?} {set:?}", family.rule()))
                .collect();
            let all: BTreeSet<String> = numbers
                .families()
                .iter()
                .flat_map(|family| {
                    let sets = (0..family.sets()).filter_map(|rank| family.set(rank));
                    sets.map(|set| format!("{:?} {set:?}", family.rule())).collect::<Vec<_>>()
                })
                .collect();
            assert_eq!(numbered.len(), all.len(), "n = {n}");
            assert_eq!(numbered.into_iter().collect::<BTreeSet<_>>(), all, "n = {n}");
        }
    }
}
