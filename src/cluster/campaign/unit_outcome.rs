//! The result of a unit that is done, and who confirmed it.

use super::assignment::SubRangeSet;
use super::reputation::OwnerId;
use crate::cluster::storage::Record;
use crate::tally::{Residues, Tally};

/// The result of a unit that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitOutcome {
    pub(super) tally: Tally,
    /// Source of the result, by number.
    pub(super) source: u32,
    /// Owner of the source.
    pub(super) owner: OwnerId,
    /// Source of another owner, or the coordinator, that confirmed the whole unit, by number.
    pub(super) checker: Option<u32>,
    /// Sub-ranges that other owners confirmed.
    pub(super) spots: SubRangeSet,
    /// Owner of the last such confirmation.
    pub(super) spot_owner: OwnerId,
    /// Number of sub-ranges with sums in the result; 0 without sums.
    pub(super) sub_ranges: u8,
    /// True if the owner was new when the unit was counted; units of new owners are checked more
    /// often.
    pub(super) owner_was_new: bool,
    /// True if the coordinator confirmed the whole unit.
    pub(super) audited: bool,
    /// True if a worker of the same owner confirmed it.
    pub(super) self_checked: bool,
}

impl UnitOutcome {
    /// Returns the share of the unit that others confirmed, in multiples of 1/[`WHOLE`].
    pub(super) fn credit(&self) -> u64 {
        match self.sub_ranges {
            _ if self.checker.is_some() => WHOLE,
            0 => 0,
            all => (WHOLE * self.spots.len() as u64 / u64::from(all)).min(WHOLE),
        }
    }

    /// Returns whether others confirmed any part of the unit.
    pub(super) fn is_proven(&self) -> bool {
        self.checker.is_some() || !self.spots.is_empty()
    }
}

impl Record for UnitOutcome {
    const BYTES: usize = 62;

    fn encode(&self, bytes: &mut [u8]) {
        let Self { tally, source, owner, checker, spots, spot_owner, sub_ranges, .. } = *self;
        let flags = [self.owner_was_new, self.audited, self.self_checked, checker.is_some()];
        let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        bytes[..16].copy_from_slice(&tally.thirds().to_be_bytes());
        bytes[16..32].copy_from_slice(&tally.nodes().to_be_bytes());
        // Residues are below 2^32.
        let [a, b] = tally.residues().values().map(|residue| residue as u32);
        let words = [a, b, source, owner, checker.unwrap_or(0), spots.bits(), spot_owner];
        for (bytes, word) in bytes[32..60].chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        bytes[60..].copy_from_slice(&[sub_ranges, flags]);
    }

    fn decode(bytes: &[u8]) -> Self {
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte))
        };
        let word = |at: usize| number(32 + 4 * at, 36 + 4 * at) as u32;
        let residues = Residues::from_values([word(0).into(), word(1).into()]);
        let flag = |bit: u8| bytes[61] >> bit & 1 == 1;
        Self {
            tally: Tally::from_parts(number(0, 16), residues, number(16, 32)),
            source: word(2),
            owner: word(3),
            checker: flag(3).then(|| word(4)),
            spots: SubRangeSet::from_bits(word(5)),
            spot_owner: word(6),
            sub_ranges: bytes[60],
            owner_was_new: flag(0),
            audited: flag(1),
            self_checked: flag(2),
        }
    }
}

/// The credit of a fully confirmed unit. A unit has at most 32 sub-ranges.
pub(super) const WHOLE: u64 = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_outcome_is_read_as_it_was_written(
            (thirds, nodes, numbers) in (any::<u128>(), any::<u128>(), any::<[u32; 4]>()),
            checker in prop::option::of(any::<u32>()),
            (sub_ranges, owner_was_new, audited, self_checked) in any::<(u8, bool, bool, bool)>(),
        ) {
            let [source, owner, spots, spot_owner] = numbers;
            let outcome = UnitOutcome {
                tally: Tally::from_parts(thirds, Residues::of(thirds), nodes),
                source,
                owner,
                checker,
                spots: SubRangeSet::from_bits(spots),
                spot_owner,
                sub_ranges,
                owner_was_new,
                audited,
                self_checked,
            };
            let mut bytes = [0xa5; UnitOutcome::BYTES];
            outcome.encode(&mut bytes);
            prop_assert_eq!(UnitOutcome::decode(&bytes), outcome);
        }
    }
}
