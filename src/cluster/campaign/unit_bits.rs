//! The status of every unit of a job, in a few bits each.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::units::UnitStatus;
use crate::cluster::storage::{deserialize_bytes, serialize_bytes};

/// The status of each unit, in two bits. Leased units are encoded as open ones, since leases are
/// volatile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Statuses {
    /// Four units in each byte, the first one in the lowest bits.
    #[serde(serialize_with = "without_leases", deserialize_with = "deserialize_bytes")]
    bytes: Vec<u8>,
    units: u64,
}

impl Statuses {
    /// Creates the statuses of open units.
    pub(super) fn new(units: u64) -> Self {
        let bytes = usize::try_from(units.div_ceil(4)).unwrap_or(usize::MAX);
        Self { bytes: vec![UnitStatus::Open as u8; bytes], units }
    }

    pub(super) const fn len(&self) -> u64 {
        self.units
    }

    /// Returns the status of a unit, or `None` if there is no such unit.
    pub(super) fn get(&self, unit: u64) -> Option<UnitStatus> {
        let byte = self.bytes.get(usize::try_from(unit / 4).ok()?)?;
        let bits = usize::from(byte >> (unit % 4 * 2) & 3);
        (unit < self.units).then_some(UnitStatus::ALL[bits])
    }

    /// Returns the open units, in order.
    pub(super) fn open(&self) -> impl Iterator<Item = u64> {
        // The two bits of an open unit are 0.
        let is_some_open = |byte: u8| (byte | byte >> 1) & 0x55 != 0x55;
        let bytes = (0u64..).zip(&self.bytes).filter(move |(_, byte)| is_some_open(**byte));
        let units = bytes.flat_map(|(at, _)| at * 4..at * 4 + 4);
        units.filter(|unit| self.get(*unit) == Some(UnitStatus::Open))
    }

    /// Sets the status of a unit. Returns the one before.
    pub(super) fn set(&mut self, unit: u64, status: UnitStatus) -> Option<UnitStatus> {
        let before = self.get(unit)?;
        let shift = unit % 4 * 2;
        let byte = &mut self.bytes[(unit / 4) as usize];
        *byte = *byte & !(3 << shift) | (status as u8) << shift;
        Some(before)
    }
}

fn without_leases<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    const LEASED: u8 = UnitStatus::Leased as u8;
    const { assert!(LEASED == 1 && UnitStatus::Open as u8 == 0, "a leased unit has only the low bit") };
    let without = |byte: &u8| byte & !(byte & !(byte >> 1) & 0x55);
    serialize_bytes(&bytes.iter().map(without).collect::<Vec<u8>>(), to)
}

/// A set of units, at a bit for each unit of the job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UnitSet {
    #[serde(serialize_with = "words_as_bytes", deserialize_with = "words_of_bytes")]
    words: Vec<u64>,
}

fn words_as_bytes<S: Serializer>(words: &[u64], to: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    serialize_bytes(&bytes, to)
}

fn words_of_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let bytes = deserialize_bytes(from)?;
    Ok(bytes.as_chunks().0.iter().copied().map(u64::from_be_bytes).collect())
}

impl UnitSet {
    /// Creates an empty set of some of this many units.
    pub(super) fn new(units: u64) -> Self {
        let words = usize::try_from(units.div_ceil(64)).unwrap_or(usize::MAX);
        Self { words: vec![0; words] }
    }

    /// Adds or removes a unit of the job.
    pub(super) fn set(&mut self, unit: u64, is_in: bool) {
        if let Some(word) = self.words.get_mut((unit / 64) as usize) {
            let bit = 1 << (unit % 64);
            *word = if is_in { *word | bit } else { *word & !bit };
        }
    }

    /// Returns the units in the set, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let words = (0u64..).zip(&self.words).filter(|(_, word)| **word != 0);
        words.flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Encodes a value and decodes it again.
    fn read_back<T: Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
        let mut bytes = Vec::new();
        ciborium::into_writer(value, &mut bytes).expect("it can be encoded");
        ciborium::from_reader(&bytes[..]).expect("it can be decoded")
    }

    proptest! {
        #[test]
        fn bits_of_units_behave_like_collections(
            units in 1u64..300,
            changes in prop::collection::vec((0u64..320, 0usize..4), 0..100),
        ) {
            let (mut statuses, mut all) = (Statuses::new(units), vec![UnitStatus::Open; units as usize]);
            let (mut set, mut leased) = (UnitSet::new(units), BTreeSet::new());
            for (unit, status) in changes {
                let status = UnitStatus::ALL[status];
                let known = all.get_mut(unit as usize);
                let before = known.map(|known| std::mem::replace(known, status));
                prop_assert_eq!(statuses.set(unit, status), before);
                if unit < units {
                    let is_in = status == UnitStatus::Leased;
                    set.set(unit, is_in);
                    if is_in { leased.insert(unit); } else { leased.remove(&unit); }
                }
            }
            let found: Vec<_> = (0..units + 9).filter_map(|unit| statuses.get(unit)).collect();
            prop_assert_eq!((found, statuses.len()), (all, units));
            prop_assert!(set.iter().eq(leased));
            let is_open = |unit: &u64| statuses.get(*unit) == Some(UnitStatus::Open);
            prop_assert!(statuses.open().eq((0..units).filter(is_open)));
            let read: Statuses = read_back(&statuses);
            let without_leases = |unit| statuses.get(unit).map(|status| match status {
                UnitStatus::Leased => UnitStatus::Open,
                other => other,
            });
            prop_assert!((0..units + 9).all(|unit| read.get(unit) == without_leases(unit)));
            prop_assert!(read_back::<UnitSet>(&set).iter().eq(set.iter()));
        }
    }
}
