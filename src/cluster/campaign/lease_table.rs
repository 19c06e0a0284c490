//! The leases of a campaign with their indexes, so that no call reads all leases of all workers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::WorkerName;
use super::guests::is_guest;
use super::leases::Lease;
use super::reputation::OwnerId;
use crate::decomposition::JobHash;

/// The numbers of some leases by job and first unit.
#[derive(Debug, Default)]
struct LeasesByStart {
    /// Job, first unit and number.
    leases: BTreeSet<(JobHash, u64, u64)>,
    /// By job: the first unit and the number from which on the next sample is taken, if it does not
    /// begin with the first lease.
    next_sampled: HashMap<JobHash, (u64, u64)>,
}

impl LeasesByStart {
    fn insert(&mut self, attempt: u64, lease: &Lease) {
        self.leases.insert((lease.job, lease.units.start, attempt));
    }

    fn remove(&mut self, attempt: u64, lease: &Lease) {
        self.leases.remove(&(lease.job, lease.units.start, attempt));
    }

    /// Returns at most `most` leases of a job. Successive calls return all of them in turn.
    fn sample(&mut self, job: JobHash, most: usize) -> Vec<u64> {
        let (start, attempt) = self.next_sampled.remove(&job).unwrap_or_default();
        let from = (job, start, attempt);
        let in_turn = self.leases.range(from..=(job, u64::MAX, u64::MAX));
        let in_turn = in_turn.chain(self.leases.range((job, 0, 0)..from));
        let sample: Vec<_> = in_turn.take(most).collect();
        if let Some((_, start, attempt)) = sample.last().filter(|_| sample.len() == most) {
            self.next_sampled.insert(job, (*start, attempt + 1));
        }
        sample.into_iter().map(|(_, _, attempt)| *attempt).collect()
    }
}

/// All leases by number, by worker, by owner, and by their units.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    leases: BTreeMap<u64, Lease>,
    of_worker: HashMap<WorkerName, BTreeSet<u64>>,
    /// Leases of first counts.
    by_start: LeasesByStart,
    /// Leases of first counts with units that are not started, without copies.
    with_unstarted: LeasesByStart,
    /// All leases: deadline in ms, and number.
    by_deadline: BTreeSet<(u64, u64)>,
    /// The most units that any lease of a first count has had.
    longest: u64,
    /// Units leased to each owner for first counts.
    units_of: HashMap<OwnerId, u64>,
    units_of_guests: u64,
}

impl LeaseTable {
    pub(super) fn get(&self, attempt: u64) -> Option<&Lease> {
        self.leases.get(&attempt)
    }

    /// Returns all leases with their numbers, in the order of the numbers.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = (u64, &Lease)> {
        self.leases.iter().map(|(&attempt, lease)| (attempt, lease))
    }

    /// Returns the numbers of the leases whose deadline is at `now_ms` or before, in their order.
    pub(super) fn expired(&self, now_ms: u64) -> Vec<u64> {
        let expired = self.by_deadline.range(..=(now_ms, u64::MAX));
        let mut attempts: Vec<u64> = expired.map(|(_, attempt)| *attempt).collect();
        attempts.sort_unstable();
        attempts
    }

    /// Returns the numbers of at most `most` leases of a job that are first counts. Successive
    /// calls return all of them in turn.
    pub(super) fn sample(&mut self, job: JobHash, most: usize) -> Vec<u64> {
        self.by_start.sample(job, most)
    }

    /// Returns the numbers of at most `most` leases of a job that have units that are not started:
    /// first counts that are not copies. Successive calls return all of them in turn.
    pub(super) fn sample_unstarted(&mut self, job: JobHash, most: usize) -> Vec<u64> {
        self.with_unstarted.sample(job, most)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }

    /// Returns the leases of a worker with their numbers, in the order of the numbers.
    pub(super) fn of_worker(&self, worker: &str) -> impl Iterator<Item = (u64, &Lease)> {
        let attempts = self.of_worker.get(worker).into_iter().flatten();
        attempts.filter_map(|&attempt| Some((attempt, self.leases.get(&attempt)?)))
    }

    /// Returns the numbers of the leases of a worker.
    pub(super) fn attempts_of(&self, worker: &str) -> Vec<u64> {
        self.of_worker.get(worker).into_iter().flatten().copied().collect()
    }

    /// Returns the leases of first counts that contain any of these units of a job.
    pub(super) fn overlapping(
        &self,
        job: JobHash,
        units: Range<u64>,
    ) -> impl Iterator<Item = &Lease> {
        let from = units.start.saturating_sub(self.longest);
        let near = self.by_start.leases.range((job, from, 0)..(job, units.end, 0));
        let near = near.filter_map(|(_, _, attempt)| self.leases.get(attempt));
        near.filter(move |lease| lease.units.end > units.start && !lease.units.is_empty())
    }

    /// Returns the number of units that are leased to an owner for first counts.
    pub(super) fn units_of(&self, owner: OwnerId) -> u64 {
        self.units_of.get(&owner).copied().unwrap_or_default()
    }

    /// Returns the number of units that are leased to guests.
    pub(super) const fn units_of_guests(&self) -> u64 {
        self.units_of_guests
    }

    /// Adds a lease under a number that no other lease has.
    pub(super) fn insert(&mut self, attempt: u64, lease: Lease) {
        self.of_worker.entry(lease.worker.clone()).or_default().insert(attempt);
        if !lease.mirrored {
            self.by_start.insert(attempt, &lease);
            self.longest = self.longest.max(lease.len());
            self.count(&lease, |units| *units += lease.len());
        }
        self.by_deadline.insert((lease.deadline_ms, attempt));
        self.leases.insert(attempt, lease);
        self.index_unstarted(attempt);
    }

    pub(super) fn remove(&mut self, attempt: u64) -> Option<Lease> {
        let lease = self.leases.remove(&attempt)?;
        self.with_unstarted.remove(attempt, &lease);
        self.by_deadline.remove(&(lease.deadline_ms, attempt));
        if let Some(attempts) = self.of_worker.get_mut(&lease.worker) {
            attempts.remove(&attempt);
            if attempts.is_empty() {
                self.of_worker.remove(&lease.worker);
            }
        }
        if !lease.mirrored {
            self.by_start.remove(attempt, &lease);
            self.count(&lease, |units| *units -= lease.len());
        }
        Some(lease)
    }

    /// Records a worker's sync: the new deadline of a lease, and the units of it that the worker
    /// has not started. Returns false if there is no such lease.
    pub(super) fn renew(&mut self, attempt: u64, deadline_ms: u64, unstarted: u64) -> bool {
        let Some(lease) = self.leases.get_mut(&attempt) else { return false };
        self.by_deadline.remove(&(lease.deadline_ms, attempt));
        self.by_deadline.insert((deadline_ms, attempt));
        lease.deadline_ms = deadline_ms;
        lease.unstarted = unstarted.min(lease.len());
        self.index_unstarted(attempt);
        true
    }

    /// Removes all units of a lease from `end` on. The number of its units that are not started
    /// falls by `unstarted`.
    pub(super) fn shorten(&mut self, attempt: u64, end: u64, unstarted: u64) {
        let Some(lease) = self.leases.get_mut(&attempt) else { return };
        let removed = lease.units.end - end;
        lease.units.end = end;
        lease.unstarted = lease.unstarted.saturating_sub(unstarted);
        let lease = lease.clone();
        self.count(&lease, |units| *units -= removed);
        self.index_unstarted(attempt);
    }

    /// Brings the index of leases with units that are not started up to date with one lease.
    fn index_unstarted(&mut self, attempt: u64) {
        let Some(lease) = self.leases.get(&attempt) else { return };
        if !lease.mirrored && !lease.copy && lease.unstarted > 0 {
            self.with_unstarted.insert(attempt, lease);
        } else {
            self.with_unstarted.remove(attempt, lease);
        }
    }

    /// Changes the number of leased units of the owner of a lease.
    fn count(&mut self, lease: &Lease, change: impl Fn(&mut u64)) {
        let units = self.units_of.entry(lease.owner).or_default();
        change(units);
        if *units == 0 {
            self.units_of.remove(&lease.owner);
        }
        if is_guest(&lease.worker) {
            change(&mut self.units_of_guests);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::campaign::SubRangeSet;

    fn lease(worker: u32, job: u8, units: Range<u64>, mirrored: bool) -> Lease {
        Lease {
            worker: if worker == 0 { "guest:a-1".to_owned() } else { format!("w{worker}") },
            owner: worker / 2,
            job: JobHash::from_bytes([job; 16]),
            unstarted: units.end - units.start,
            units,
            mirrored,
            sub_ranges: SubRangeSet::default(),
            thirds: None,
            copy: false,
            granted_ms: 0,
            deadline_ms: 0,
            predicted_s: None,
        }
    }

    /// Takes samples until all leases of a job had a turn, and others of another job between them.
    fn sample_in_turn(leases: &mut LeasesByStart, job: JobHash, other: JobHash) -> BTreeSet<u64> {
        let of_job = leases.leases.iter().filter(|(of, _, _)| *of == job).count();
        let first = leases.sample(job, 1);
        assert_eq!(first.len(), of_job.min(1));
        let samples = (0..of_job.div_ceil(2)).flat_map(|_| {
            leases.sample(other, 1);
            leases.sample(job, 2)
        });
        samples.collect()
    }

    proptest! {
        #[test]
        fn the_indexes_agree_with_a_search_of_all_leases(
            changes in prop::collection::vec(
                (0u64..24, 0u32..6, 0u8..2, (0u64..60, 1u64..20), any::<bool>(), 0u8..4),
                1..80,
            ),
        ) {
            let mut table = LeaseTable::default();
            for (attempt, worker, job, (start, length), mirrored, what) in changes {
                match (table.get(attempt).cloned(), what) {
                    (None, _) => table.insert(attempt, lease(worker, job, start..start + length, mirrored)),
                    (Some(known), 0) if !known.mirrored => {
                        table.shorten(attempt, known.units.start + known.len() / 2, 1);
                    }
                    (Some(_), 1) => prop_assert!(table.renew(attempt, start, length)),
                    (Some(known), _) => {
                        let removed = table.remove(attempt);
                        prop_assert_eq!(removed.map(|lease| lease.units), Some(known.units));
                    }
                }
                for worker in 0..6 {
                    let name = lease(worker, 0, 0..1, false).worker;
                    let found: Vec<u64> = table.of_worker(&name).map(|(at, _)| at).collect();
                    let all = table.iter().filter(|(_, lease)| lease.worker == name);
                    prop_assert_eq!(&found, &all.map(|(at, _)| at).collect::<Vec<_>>());
                    prop_assert_eq!(&found, &table.attempts_of(&name));
                }
                for (job, other) in [(0, 1), (1, 0)] {
                    let [job, other] = [job, other].map(|job| JobHash::from_bytes([job; 16]));
                    let all = |is_sampled: fn(&Lease) -> bool| -> BTreeSet<u64> {
                        let counts = table.iter().filter(|(_, l)| l.job == job && !l.mirrored);
                        counts.filter(|(_, lease)| is_sampled(lease)).map(|(at, _)| at).collect()
                    };
                    let (all, unstarted) = (all(|_| true), all(|lease| lease.unstarted > 0));
                    prop_assert_eq!(sample_in_turn(&mut table.by_start, job, other), all);
                    let sampled = sample_in_turn(&mut table.with_unstarted, job, other);
                    prop_assert_eq!(sampled, unstarted);
                }
                let counted = || table.values().filter(|lease| !lease.mirrored);
                let all = table.iter().filter(|(_, lease)| lease.deadline_ms <= start);
                prop_assert_eq!(table.expired(start), all.map(|(at, _)| at).collect::<Vec<_>>());
                for owner in 0..3 {
                    let all: u64 = counted().filter(|l| l.owner == owner).map(Lease::len).sum();
                    prop_assert_eq!(table.units_of(owner), all);
                }
                let of_guests: u64 =
                    counted().filter(|l| is_guest(&l.worker)).map(Lease::len).sum();
                prop_assert_eq!(table.units_of_guests(), of_guests);
                for (job, units) in [(0, start..start + length), (1, start..start + 1)] {
                    let job = JobHash::from_bytes([job; 16]);
                    let contains = |l: &&Lease| {
                        l.job == job && units.clone().any(|unit| l.units.contains(&unit))
                    };
                    let mut all: Vec<_> = counted().filter(contains).map(|l| l.units.clone()).collect();
                    let mut found: Vec<_> =
                        table.overlapping(job, units.clone()).map(|l| l.units.clone()).collect();
                    all.sort_by_key(|units| (units.start, units.end));
                    found.sort_by_key(|units| (units.start, units.end));
                    prop_assert_eq!(found, all);
                }
            }
        }
    }
}
