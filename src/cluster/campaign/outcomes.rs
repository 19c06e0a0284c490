//! The results of a job's units by their number, in pages that exist only where a unit is done.

use super::units::UnitOutcome;

/// The number of units of a page.
const PAGE: usize = 4096;

type Page = Box<[Option<UnitOutcome>]>;

/// The outcomes of the units of a job. A job may have a hundred million units, of which few are
/// done.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    pages: Vec<Option<Page>>,
}

/// Returns the page of a unit and its place there.
fn place(unit: u64) -> Option<(usize, usize)> {
    let unit = usize::try_from(unit).ok()?;
    Some((unit / PAGE, unit % PAGE))
}

impl Outcomes {
    pub(super) fn get(&self, unit: u64) -> Option<&UnitOutcome> {
        let (page, at) = place(unit)?;
        self.pages.get(page)?.as_ref()?[at].as_ref()
    }

    pub(super) fn get_mut(&mut self, unit: u64) -> Option<&mut UnitOutcome> {
        let (page, at) = place(unit)?;
        self.pages.get_mut(page)?.as_mut()?[at].as_mut()
    }

    /// Sets the outcome of a unit of the job.
    pub(super) fn insert(&mut self, unit: u64, outcome: UnitOutcome) {
        let Some((page, at)) = place(unit) else { return };
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| vec![None; PAGE].into_boxed_slice());
        page[at] = Some(outcome);
    }

    pub(super) fn remove(&mut self, unit: u64) -> Option<UnitOutcome> {
        let (page, at) = place(unit)?;
        self.pages.get_mut(page)?.as_mut()?[at].take()
    }

    /// Returns the units that are done, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &UnitOutcome)> {
        let pages = (0u64..).zip(&self.pages);
        pages.filter_map(|(number, page)| Some((number, page.as_ref()?))).flat_map(
            |(number, page)| {
                let units = number * PAGE as u64..;
                units.zip(page.iter()).filter_map(|(unit, outcome)| Some((unit, outcome.as_ref()?)))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::cluster::campaign::SubRangeSet;
    use crate::tally::Tally;

    fn outcome(source: u32) -> UnitOutcome {
        UnitOutcome {
            tally: Tally::default(),
            source,
            owner: 0,
            checker: None,
            spots: SubRangeSet::default(),
            spot_owner: 0,
            sub_ranges: 0,
            owner_was_new: false,
            audited: false,
            self_checked: false,
        }
    }

    proptest! {
        #[test]
        fn outcomes_behave_like_a_map(
            changes in prop::collection::vec((0u64..20_000, any::<bool>(), 0u32..100), 0..200),
        ) {
            let (mut outcomes, mut map) = (Outcomes::default(), BTreeMap::new());
            for (unit, insert, source) in changes {
                // Units next to each other, too.
                let unit = if unit % 2 == 0 { unit } else { unit % 8 };
                if insert {
                    outcomes.insert(unit, outcome(source));
                    map.insert(unit, outcome(source));
                } else {
                    prop_assert_eq!(outcomes.remove(unit), map.remove(&unit));
                }
                prop_assert_eq!(outcomes.get(unit), map.get(&unit));
                prop_assert_eq!(outcomes.get_mut(unit).copied(), map.get(&unit).copied());
            }
            let all: Vec<_> = outcomes.iter().map(|(unit, of)| (unit, *of)).collect();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(outcomes.get(u64::MAX), None);
        }
    }
}
