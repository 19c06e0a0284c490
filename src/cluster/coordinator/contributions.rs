//! The contribution of each owner this week.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::cluster::campaign::{CampaignEvent, Source, UnitId};
use crate::cluster::protocol::v1;
use crate::decomposition::JobHash;

/// The number of days of a week: today and the six days before, in UTC.
const DAYS: u64 = 7;
/// The maximum number of owners that are listed.
const MOST_OWNERS: usize = 64;
/// The name of the row for all other owners.
const OTHERS: &str = "(others)";

/// A unit that was counted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(from = "(u32, u32, f32)", into = "(u32, u32, f32)")]
struct Counted {
    /// The number of the worker in `Contributions::workers`.
    worker: u32,
    /// The day, since 1970.
    day: u32,
    elapsed_s: f32,
}

impl From<(u32, u32, f32)> for Counted {
    fn from((worker, day, elapsed_s): (u32, u32, f32)) -> Self {
        Self { worker, day, elapsed_s }
    }
}

impl From<Counted> for (u32, u32, f32) {
    fn from(Counted { worker, day, elapsed_s }: Counted) -> Self {
        (worker, day, elapsed_s)
    }
}

/// The units that were counted in the last days, by job and number, with the worker and the day.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Contributions {
    /// The owner and the name of each worker.
    workers: Vec<(String, String)>,
    /// Follows from `workers`.
    #[serde(skip)]
    numbers: HashMap<(String, String), u32>,
    units: HashMap<JobHash, HashMap<u64, Counted>>,
    /// The number of these units, and the seconds that they took, by day and worker.
    sums: BTreeMap<(u32, u32), (u64, f64)>,
    /// The day of the last unit, since 1970.
    today: u64,
}

/// Returns the day of a time in ms since 1970.
const fn day(at_ms: u64) -> u64 {
    at_ms / 86_400_000
}

/// Returns whether a day belongs to the week that ends with `today`.
const fn is_of_week(day: u32, today: u64) -> bool {
    day as u64 + DAYS > today
}

impl Contributions {
    /// Completes what was read from a snapshot.
    pub(super) fn complete(&mut self) {
        self.numbers = self.workers.iter().cloned().zip(0..).collect();
    }

    /// Records an event that was applied at a time in ms since 1970.
    pub(super) fn record(&mut self, event: &CampaignEvent, at_ms: u64) {
        match event {
            CampaignEvent::UnitDone { unit, source, elapsed_s, .. } => {
                self.add(*unit, source, *elapsed_s, at_ms);
            }
            CampaignEvent::UnitVoided { unit, .. } => {
                let units = self.units.get_mut(&unit.job);
                if let Some(counted) = units.and_then(|units| units.remove(&unit.unit)) {
                    self.subtract(counted);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, unit: UnitId, source: &Source, elapsed_s: f64, at_ms: u64) {
        // Only the arbiter's name begins with a parenthesis. It counts units only in disputes.
        if source.worker.starts_with('(') {
            return;
        }
        if day(at_ms) > self.today {
            self.today = day(at_ms);
            self.forget_old_units();
        }
        let counted = Counted {
            worker: self.number(source),
            // There are fewer than 2^32 days.
            day: day(at_ms) as u32,
            elapsed_s: elapsed_s as f32,
        };
        if is_of_week(counted.day, self.today) {
            let units = self.units.entry(unit.job).or_default();
            if let Some(before) = units.insert(unit.unit, counted) {
                self.subtract(before);
            }
            let (units, seconds) = self.sums.entry((counted.day, counted.worker)).or_default();
            *units += 1;
            *seconds += f64::from(counted.elapsed_s);
        }
    }

    /// Subtracts a unit from the sums.
    fn subtract(&mut self, counted: Counted) {
        if let Some((units, seconds)) = self.sums.get_mut(&(counted.day, counted.worker)) {
            *units -= 1;
            *seconds -= f64::from(counted.elapsed_s);
        }
    }

    fn forget_old_units(&mut self) {
        let today = self.today;
        self.sums.retain(|(day, _), _| is_of_week(*day, today));
        for units in self.units.values_mut() {
            units.retain(|_, counted| is_of_week(counted.day, today));
        }
        self.units.retain(|_, units| !units.is_empty());
    }

    /// Returns the number of a worker, assigning one if it is new.
    fn number(&mut self, source: &Source) -> u32 {
        // A worker without an owner is its own.
        let owner = if source.owner.is_empty() { &source.worker } else { &source.owner };
        let key = (owner.clone(), source.worker.clone());
        let next = self.workers.len() as u32;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.workers.push(key.clone());
            next
        })
    }

    /// Returns the contribution of each owner in the week that ends at a time in ms since 1970, the
    /// largest first. Small ones are added up if there are too many.
    pub(super) fn of_week(&self, now_ms: u64) -> Vec<v1::Contribution> {
        let mut owners: BTreeMap<&str, v1::Contribution> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let of_days = self
            .sums
            .iter()
            .filter(|((day_of, _), (units, _))| *units > 0 && is_of_week(*day_of, day(now_ms)));
        for (&(_, worker), &(units, counting_s)) in of_days {
            let (owner, _) = &self.workers[worker as usize];
            let sum = owners.entry(owner).or_default();
            owner.clone_into(&mut sum.owner);
            sum.workers += u64::from(seen.insert(worker));
            sum.units += units;
            sum.counting_s += counting_s;
        }
        largest(owners.into_values().collect())
    }
}

/// Sorts contributions, and adds up the small ones if there are too many.
fn largest(mut owners: Vec<v1::Contribution>) -> Vec<v1::Contribution> {
    owners
        .sort_by(|a, b| b.counting_s.total_cmp(&a.counting_s).then_with(|| a.owner.cmp(&b.owner)));
    if owners.len() > MOST_OWNERS {
        let mut others = v1::Contribution { owner: OTHERS.to_owned(), ..Default::default() };
        for v1::Contribution { workers, units, counting_s, .. } in owners.split_off(MOST_OWNERS - 1)
        {
            others.workers += workers;
            others.units += units;
            others.counting_s += counting_s;
        }
        owners.push(others);
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::super::actor::tests;
    use super::*;

    const DAY_MS: u64 = 86_400_000;
    const JOB: JobHash = JobHash::from_bytes([7; 16]);

    /// Returns the result of a unit, which took half a second.
    fn done(unit: u64, owner: &str, worker: &str) -> CampaignEvent {
        let source = Source { owner: owner.into(), ..tests::source(worker) };
        tests::done(UnitId { job: JOB, unit }, 1, source)
    }

    fn of_week(contributions: &Contributions, day: u64) -> Vec<(String, u64, u64, f64)> {
        let row = |c: v1::Contribution| (c.owner, c.workers, c.units, c.counting_s);
        contributions.of_week(day * DAY_MS).into_iter().map(row).collect()
    }

    #[test]
    fn units_are_added_up_by_owner_for_a_week() {
        let mut all = Contributions::default();
        for (unit, owner, worker, day) in [
            (0, "anna", "a1", 100),
            (1, "anna", "a2", 103),
            (2, "anna", "a2", 103),
            (3, "ben", "b1", 104),
            (4, "", "lone", 104),
            (5, "", "(arbiter)", 104),
        ] {
            all.record(&done(unit, owner, worker), day * DAY_MS);
        }
        let row = |owner: &str, workers, units: u64| {
            (owner.to_owned(), workers, units, 0.5 * units as f64)
        };
        let rest = [row("ben", 1, 1), row("lone", 1, 1)];
        assert_eq!(of_week(&all, 104), [vec![row("anna", 2, 3)], rest.to_vec()].concat());
        assert_eq!(of_week(&all, 106)[0], row("anna", 2, 3));
        assert_eq!(of_week(&all, 107)[0], row("anna", 1, 2), "day 100 is a week ago");
        assert!(of_week(&all, 111).is_empty());
        // A later unit drops those that no later week has.
        all.record(&done(6, "ben", "b1"), 110 * DAY_MS);
        assert_eq!(all.units[&JOB].len(), 3);
        assert_eq!(of_week(&all, 110), [row("ben", 1, 2), row("lone", 1, 1)]);
    }

    #[test]
    fn units_that_were_taken_back_do_not_count() {
        let mut all = Contributions::default();
        (0..3).for_each(|unit| all.record(&done(unit, "anna", "a1"), 0));
        let unit = UnitId { job: JOB, unit: 1 };
        all.record(&CampaignEvent::UnitVoided { unit, reason: String::new() }, 0);
        assert_eq!(of_week(&all, 0)[0].2, 2);
        all.record(&done(1, "ben", "b1"), 0);
        assert_eq!(of_week(&all, 0).iter().map(|row| row.2).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn small_contributions_are_added_up() {
        let mut all = Contributions::default();
        for unit in 0..100 {
            all.record(&done(unit, &format!("owner-{:02}", unit.min(90)), "w"), 0);
        }
        let rows = of_week(&all, 0);
        assert_eq!((rows.len(), &rows[0].0[..], rows[0].2), (64, "owner-90", 10));
        assert_eq!((&rows[63].0[..], rows[63].2), ("(others)", 28));
        assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), 100);
    }
}
