//! The units that the arbiter is to count.

use std::collections::HashMap;
use std::ops::Bound;

use super::assignment::SubRangeSet;
use super::checks::{Check, Depth, MOST_MISSES};
use super::event::JobState;
use super::guests::is_guest;
use super::job::Job;
use super::state::Campaign;
use super::workers::WorkerState;
use super::{UnitId, WorkerName};

/// A unit that the arbiter is to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterTask {
    /// The unit.
    pub unit: UnitId,
    /// The sub-ranges to count; empty for the whole unit.
    pub sub_ranges: SubRangeSet,
    /// True if two results differ; the unit must then be counted twice.
    pub dispute: bool,
}

impl Campaign {
    /// Returns the arbiter's next task: disputes first, then audits, then checks that no worker can
    /// make, then reserved checks that it may make nevertheless. `skip` returns true for units that
    /// the arbiter cannot decide.
    pub fn next_for_arbiter(
        &mut self,
        now_ms: u64,
        skip: impl Fn(UnitId) -> bool,
    ) -> Option<ArbiterTask> {
        let task = self.task_for_arbiter(now_ms, skip);
        self.at_arbiter = task.map(|task| task.unit);
        task
    }

    /// Returns whether the arbiter has a task: one that was returned by
    /// [`Self::next_for_arbiter`] since the last call of [`Self::arbiter_is_done`].
    pub const fn is_arbiter_busy(&self) -> bool {
        self.at_arbiter.is_some()
    }

    /// Records that the arbiter no longer has a task, with or without a ruling.
    pub const fn arbiter_is_done(&mut self) {
        self.at_arbiter = None;
    }

    fn task_for_arbiter(
        &mut self,
        now_ms: u64,
        skip: impl Fn(UnitId) -> bool,
    ) -> Option<ArbiterTask> {
        let mut jobs: Vec<_> = self.jobs.iter().filter(|(_, job)| job.state.is_counted()).collect();
        jobs.sort_by_key(|(_, job)| (std::cmp::Reverse(job.priority), job.submitted_ms));
        let dispute = jobs.iter().find_map(|&(&hash, job)| {
            let unit = self.most_decisive_dispute(job, |u| skip(UnitId { job: hash, unit: u }))?;
            Some(UnitId { job: hash, unit })
        });
        if let Some(unit) = dispute {
            return Some(ArbiterTask { unit, sub_ranges: SubRangeSet::default(), dispute: true });
        }
        let mut cursors = Vec::new();
        let found = jobs.iter().find_map(|&(&hash, job)| {
            let unit = |unit| UnitId { job: hash, unit };
            let audit = job.checks.first_audit(|u| skip(unit(u)));
            let found = audit.or_else(|| {
                let (found, next) = self.check_for_arbiter(job, now_ms, |u| skip(unit(u)));
                cursors.push((hash, next));
                found
            });
            found.map(|(u, depth)| (unit(u), depth))
        });
        for (hash, next) in cursors {
            if let Some(job) = self.jobs.get_mut(&hash) {
                job.checks.arbiter_cursor = next;
            }
        }
        let (unit, depth) = found.or_else(|| self.next_reserved_for_arbiter(&skip))?;
        let outcome = self.jobs.get(&unit.job)?.units.outcome(unit.unit)?;
        let sub_ranges = self.draw_sub_ranges(depth, &outcome);
        Some(ArbiterTask { unit, sub_ranges, dispute: false })
    }

    /// Returns the disputed unit of a job whose decision may settle the most disputes: those about
    /// other results of the worker that counted it, or those raised by the worker with the second
    /// result. If that worker was wrong, they end with its quarantine.
    fn most_decisive_dispute(&self, job: &Job, skip: impl Fn(u64) -> bool) -> Option<u64> {
        /// Scanning more in one call would be slow.
        const MOST_SCANNED: usize = 4096;
        let disputes = job.disputes.iter().filter(|(unit, _)| !skip(**unit));
        let disputes: Vec<(u64, &str, &str)> = disputes
            .take(MOST_SCANNED)
            .map(|(&unit, (second, _))| {
                let first = job.units.outcome(unit).map(|outcome| outcome.source);
                let first = first.map_or("", |first| &self.reputation.source(first).worker);
                (unit, first, &second.worker[..])
            })
            .collect();
        let (mut of_first, mut of_second) = (HashMap::new(), HashMap::new());
        for (_, first, second) in &disputes {
            *of_first.entry(first).or_insert(0_u64) += 1;
            *of_second.entry(second).or_insert(0_u64) += 1;
        }
        let settles =
            |(_, first, second): &&(u64, &str, &str)| of_first[first].max(of_second[second]);
        // Of several, the first unit.
        disputes.iter().rev().max_by_key(settles).map(|(unit, _, _)| *unit)
    }

    /// Returns a check to be made by the coordinator, and the unit at which the next scan begins.
    /// This is a check that no worker can make or, once the job waits only for its checks, any
    /// check. The latter applies when no unit of the job is open or, if all units are recounted,
    /// when all are done.
    fn check_for_arbiter(
        &self,
        job: &Job,
        now_ms: u64,
        skip: impl Fn(u64) -> bool,
    ) -> (Option<(u64, Depth)>, u64) {
        /// Scanning more in one call would be slow.
        const MOST_SCANNED: usize = 64;
        let all_done = job.units.done() == job.units.len();
        if all_done && let Some(check) = job.checks.shallowest(&skip) {
            // The job waits only for its checks.
            return (Some(check), job.checks.arbiter_cursor);
        }
        let mut next = 0;
        for (scanned, (unit, check)) in
            job.checks.unreserved_from(job.checks.arbiter_cursor).enumerate()
        {
            if scanned == MOST_SCANNED {
                next = unit;
                break;
            }
            if !skip(unit) && self.needs_arbiter(job, unit, check, now_ms) {
                return (Some((unit, check.depth)), unit);
            }
        }
        // All remaining units are leased, and the workers with the checks may be slow.
        let ends = job.units.open() == 0 && self.target(job) < 1.0;
        (if ends { job.checks.shallowest(&skip) } else { None }, next)
    }

    /// Returns whether the coordinator must make an urgent check, because workers missed it too
    /// often or none can make it.
    fn needs_arbiter(&self, job: &Job, unit: u64, check: &Check, now_ms: u64) -> bool {
        self.is_urgent(job, unit, check)
            && (check.misses >= MOST_MISSES || !self.has_eligible_checker(job, unit, now_ms))
    }

    /// Returns whether a check must be made before the rest of the job is done: a spot check, since
    /// it is cheap, or a check of a unit of a new owner, since the owner gets little more work
    /// until its units are confirmed.
    pub(super) fn is_urgent(&self, job: &Job, unit: u64, check: &Check) -> bool {
        check.depth == Depth::Spot || self.is_of_new_owner(job, unit)
    }

    /// Returns whether the owner of a unit is new and nothing of the unit has been confirmed.
    fn is_of_new_owner(&self, job: &Job, unit: u64) -> bool {
        job.units.outcome(unit).is_some_and(|outcome| {
            let few = self.settings.new_owner_units;
            !outcome.is_proven() && self.reputation.is_new(outcome.owner, few)
        })
    }

    /// Returns whether a worker may still make a check: a suitable one is active, or the
    /// coordinator has just started and the job's earlier workers may return.
    fn has_eligible_checker(&self, job: &Job, unit: u64, now_ms: u64) -> bool {
        let Some(outcome) = job.units.outcome(unit) else { return false };
        let just_started =
            self.started_ms.is_none_or(|started| now_ms.saturating_sub(started) < self.lease_ms());
        let earlier_checker = job.checks.get(unit).and_then(|check| check.earlier_checker);
        let earlier_checker = earlier_checker.map(|number| self.reputation.owner_of(number));
        let can = |(name, worker): (&WorkerName, &WorkerState)| {
            worker.owner_id != outcome.owner
                && Some(worker.owner_id) != earlier_checker
                && !is_guest(name)
                && !job.unsuited.contains(name)
                && self.is_active(name, worker, now_ms)
        };
        (just_started && job.owners.len() > 1 && job.state == JobState::Running)
            || self.workers.iter().any(can)
    }

    /// Returns the next check that is reserved and that the coordinator may nevertheless make:
    /// one that is not leased, if it is a spot check on which a new owner waits for more work or
    /// was missed before; and an urgent check that was missed too often, even if it is leased. In
    /// jobs whose units are all recounted, other full checks are left to the workers.
    fn next_reserved_for_arbiter(
        &mut self,
        skip: impl Fn(UnitId) -> bool,
    ) -> Option<(UnitId, Depth)> {
        /// Scanning more in one call would be slow.
        const MOST_SCANNED: usize = 64;
        let from = self.arbiter_scan.map_or(Bound::Unbounded, Bound::Excluded);
        let window: Vec<_> = self
            .reservation_ends
            .range((from, Bound::Unbounded))
            .take(MOST_SCANNED)
            .copied()
            .collect();
        for &reserved in &window {
            let (_, hash, unit) = reserved;
            let id = UnitId { job: hash, unit };
            let Some(job) = self.jobs.get(&hash).filter(|job| job.state.is_counted()) else {
                continue;
            };
            let Some(check) = job.checks.get(unit) else { continue };
            let spot = check.depth == Depth::Spot;
            let missed = check.misses > 0 && (spot || self.target(job) < 1.0);
            let early = missed || spot && self.is_of_new_owner(job, unit);
            let overdue = check.misses >= MOST_MISSES && self.is_urgent(job, unit, check);
            if !skip(id) && (overdue || early && check.leased.is_none()) {
                self.arbiter_scan = Some(reserved);
                return Some((id, check.depth));
            }
        }
        // After the last reservation, start again at the first.
        self.arbiter_scan = window.last().copied().filter(|_| window.len() == MOST_SCANNED);
        None
    }
}
