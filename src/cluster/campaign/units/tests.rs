use proptest::prelude::*;

use super::*;
use crate::decomposition::JobHash;
use crate::tally::Residues;

const JOB: JobHash = JobHash::from_bytes([7; 16]);

fn tally(solutions: u64) -> Tally {
    let mut tally = Tally::default();
    tally.add(3, solutions, Residues::of(solutions.into()), 1).expect("a small sum");
    tally
}

/// Records a result of a source that is its own owner.
fn finish(units: &mut Units, unit: u64, solutions: u64, source: u32) -> bool {
    units.finish(unit, &tally(solutions), (source, source), (32, unit.is_multiple_of(2)))
}

#[test]
fn a_result_is_recorded_once_and_can_be_voided() {
    let mut units = Units::new(JOB, 3, None);
    assert!(
        finish(&mut units, 1, 7, 0) && !finish(&mut units, 1, 7, 0) && !finish(&mut units, 3, 1, 0)
    );
    assert_eq!((units.done(), units.open(), units.total().thirds()), (1, 2, 21));
    units.confirm(1, (4, 4), false);
    assert_eq!(units.checked(), 1);
    assert_eq!(units.void(1).map(|o| o.tally), Some(tally(7)));
    assert_eq!((units.done(), units.open(), units.total().thirds(), units.checked()), (0, 3, 0, 0));
    assert_eq!(*units.total(), Tally::default());
}

/// Computes the map from the state of each unit.
fn naive_cells(units: &Units) -> Vec<Cell> {
    let mut cells =
        vec![Cell::default(); units.len().div_ceil(units.map.units_per_cell()) as usize];
    for unit in 0..units.len() {
        let cell = &mut cells[(unit / units.map.units_per_cell()) as usize];
        match units.status(unit).expect("there is one") {
            UnitStatus::Open => {}
            UnitStatus::Leased => cell.leased += 1,
            UnitStatus::Done => cell.done += 1,
            UnitStatus::Poisoned => cell.poisoned += 1,
        }
        cell.verified +=
            u32::from(units.outcome(unit).is_some_and(|outcome| outcome.checker.is_some()));
    }
    cells
}

proptest! {
    #[test]
    fn the_map_agrees_with_the_status_of_each_unit(
        (count, steps) in (1u64..10_000).prop_flat_map(|count| {
            (Just(count), proptest::collection::vec((0u8..9, 0..count), 0..80))
        }),
    ) {
        // Of the results, all but two pages are in a file.
        let outcomes = PagedMap::with_few_in_memory(2);
        let mut units = Units { outcomes, ..Units::new(JOB, count, None) };
        let mut last = units.map().clone();
        for (what, unit) in steps {
            match what {
                0 => drop(units.lease(unit, &BTreeSet::new())),
                1 => units.release(unit / 2..unit, |_| false),
                2 | 3 => drop(finish(&mut units, unit, unit, 1)),
                4 => drop(units.void(unit)),
                5 => units.poison(unit),
                6 => drop(units.confirm(unit, (2, 2), unit % 3 == 0)),
                7 => drop(units.unconfirm(unit)),
                _ => units.revive(unit),
            }
            // Maps with the same number of changes are equal.
            let same = units.map().cells() == last.cells();
            prop_assert!(same || units.map().changes() != last.changes());
            last = units.map().clone();
        }
        let map = units.map();
        prop_assert_eq!(map.cells(), naive_cells(&units));
        prop_assert!(map.cells().len() as u64 <= super::super::MOST_CELLS);
        let sizes: u64 = (0..map.cells().len()).map(|cell| map.size(cell)).sum();
        prop_assert_eq!((sizes, map.units()), (count, count));
        let mut total = Tally::default();
        units.outcomes().for_each(|(_, outcome)| total.merge(&outcome.tally).expect("a small sum"));
        prop_assert_eq!(&total, units.total());
    }

    #[test]
    fn ranges_of_open_units_follow_every_change(steps in proptest::collection::vec((0u8..10, 0u64..12), 0..60)) {
        let mut units = Units::new(JOB, 12, None);
        for (what, unit) in steps {
            match what {
                0 => {
                    let avoid = BTreeSet::from([unit / 2, unit / 3]);
                    let range = units.lease(unit, &avoid);
                    prop_assert!(range.is_none_or(|range| avoid.iter().all(|unit| !range.contains(unit))));
                }
                1 => units.release(unit / 2..unit, |_| false),
                2 => drop(finish(&mut units, unit, unit, 1)),
                3 => drop(units.void(unit)),
                4 => units.poison(unit),
                5 => drop(units.confirm(unit, (2, 2), unit % 3 == 0)),
                6 => drop(units.unconfirm(unit)),
                7 => drop(units.confirm_spots(unit, SubRangeSet::from_bits(5 << unit), 2)),
                8 => drop(units.confirm_by_owner(unit)),
                _ => units.revive(unit),
            }
            let open: Vec<u64> = (0..12).filter(|&u| units.status(u) == Some(UnitStatus::Open)).collect();
            let ranges: Vec<u64> = units.open.ranges().flat_map(|(f, l)| f..f + l).collect();
            prop_assert_eq!(&open, &ranges);
            prop_assert_eq!(open.len() as u64, units.open());
            let unconfirmed = || units.outcomes().filter(|(_, o)| o.checker.is_none());
            prop_assert!(units.unconfirmed_outcomes().eq(unconfirmed()));
            for owner in 1..3 {
                let is_its = |o: &UnitOutcome| {
                    o.owner == owner || o.checker == Some(owner) || !o.spots.is_empty() && o.spot_owner == owner
                };
                let of_owner: Vec<_> = units.outcomes_of(&BTreeSet::from([owner]), |_| true).collect();
                prop_assert!(units.outcomes().filter(|(_, o)| is_its(o)).all(|unit| of_owner.contains(&unit)));
            }
            prop_assert!(units.open.ranges().zip(units.open.ranges().skip(1)).all(|((f, l), (g, _))| f + l < g));
            let done = (0..12).filter(|&u| units.status(u) == Some(UnitStatus::Done)).count() as u64;
            prop_assert_eq!(done, units.done());
            let mut total = Tally::default();
            units.outcomes().for_each(|(_, o)| total.merge(&o.tally).expect("a small sum"));
            prop_assert_eq!(&total, units.total());
            let share = |source| units.shares.get(&source).copied().unwrap_or_default();
            let checked = |by: u32| units.outcomes().filter(|(_, o)| o.checker == Some(by)).count() as u64;
            prop_assert_eq!((share(1).units, share(1).confirmed), (done, checked(2)));
            prop_assert_eq!((share(2).confirmations, units.checked()), (checked(2), checked(2)));
            let count = |which: &dyn Fn(&UnitOutcome) -> bool| {
                units.outcomes().filter(|(_, outcome)| which(outcome)).count() as u64
            };
            prop_assert_eq!(units.audited(), count(&|o| o.audited));
            prop_assert_eq!(units.spot_checked(), count(&|o| !o.spots.is_empty()));
            prop_assert_eq!(units.self_checked(), count(&|o| o.self_checked && !o.is_proven()));
            let credit: u64 = units.outcomes().map(|(_, o)| o.credit()).sum();
            prop_assert_eq!(units.strata().map(|(_, s)| s.credit).sum::<u64>(), credit);
            prop_assert_eq!(units.strata().map(|(_, s)| s.units).sum::<u64>(), done);
        }
    }
}
