//! The results of a job that are in force, in pages that exist only where there are any.

use std::collections::BTreeMap;

/// The number of the entry with the result in force, and whether a recount confirmed it. Packed
/// into one word, since there are millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InForce(u64);

impl InForce {
    pub(super) const fn new(entry: u64, verified: bool) -> Self {
        Self(entry << 1 | verified as u64)
    }

    pub(super) const fn entry(self) -> u64 {
        self.0 >> 1
    }

    pub(super) const fn verified(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The number of units of a page.
const PAGE: u64 = 256;

/// The results in force by unit. Not an array of all units, whose number comes from a file.
#[derive(Debug, Default)]
pub(super) struct UnitsInForce {
    /// Entries are numbered from 1, so 0 stands for a unit without a result.
    pages: BTreeMap<u64, Box<[u64; PAGE as usize]>>,
}

impl UnitsInForce {
    pub(super) fn get(&self, unit: u64) -> Option<InForce> {
        let word = self.pages.get(&(unit / PAGE))?[(unit % PAGE) as usize];
        (word != 0).then_some(InForce(word))
    }

    /// Sets or removes the result of a unit. Returns the one before.
    pub(super) fn set(&mut self, unit: u64, new: Option<InForce>) -> Option<InForce> {
        let page = self.pages.entry(unit / PAGE).or_insert_with(|| Box::new([0; PAGE as usize]));
        let word = &mut page[(unit % PAGE) as usize];
        let before = std::mem::replace(word, new.map_or(0, |new| new.0));
        (before != 0).then_some(InForce(before))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn units_in_force_behave_like_a_map(
            changes in prop::collection::vec((0u64..2000, any::<bool>(), 1u64..100), 0..200),
        ) {
            let (mut units, mut map) = (UnitsInForce::default(), BTreeMap::new());
            for (unit, insert, entry) in changes {
                // Units next to each other, and far apart.
                let unit = if unit % 2 == 0 { unit / 8 } else { u64::MAX - unit };
                let new = insert.then(|| InForce::new(entry, entry % 2 == 0));
                let before = match new {
                    Some(new) => map.insert(unit, new),
                    None => map.remove(&unit),
                };
                prop_assert_eq!(units.set(unit, new), before);
                prop_assert_eq!(units.get(unit), new);
            }
            for (unit, in_force) in map {
                prop_assert_eq!(units.get(unit), Some(in_force));
            }
        }
    }
}
