//! Application of events that are in the ledger.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::UnitId;
use super::assignment::SubRangeSet;
use super::checks::{Check, CheckPlan, Checks, Depth};
use super::event::{CampaignEvent, JobState};
use super::finish::DisputeStage;
use super::job::{Claim, Job};
use super::reputation::OwnerId;
use super::state::Campaign;
use super::unit_outcome::UnitOutcome;
use super::unit_result::Source;
use super::units::{ConfirmationChange, Units};
use crate::decomposition::JobHash;
use crate::tally::Tally;

/// The checker of a unit and the unit's result.
struct Checked {
    /// Number of the source.
    number: u32,
    owner: OwnerId,
    /// True if the source is the coordinator.
    by_coordinator: bool,
    outcome: UnitOutcome,
}

impl Campaign {
    /// Applies an event that was just written to the ledger or, at the start, read from it.
    /// Inconsistent events, such as a second result for a unit, change nothing.
    pub fn apply(&mut self, event: &CampaignEvent) {
        match event {
            CampaignEvent::JobSubmitted { job, units, priority, at_ms, published, .. } => {
                self.jobs.entry(*job).or_insert_with(|| Job {
                    units: Units::new(*job, *units, self.folder.clone()),
                    priority: *priority,
                    submitted_ms: *at_ms,
                    state: JobState::Running,
                    published: *published,
                    owners: BTreeSet::new(),
                    checks: Checks::default(),
                    sub_sums: HashMap::new(),
                    disputes: BTreeMap::new(),
                    stage: DisputeStage::Unconfirmed,
                    failures: HashMap::new(),
                    held_since: HashMap::new(),
                    unproven: HashMap::new(),
                    suspects: HashMap::new(),
                    unsuited: HashSet::new(),
                    counting_s: 0.0,
                    checking_s: 0.0,
                    arbiter: (0.0, 0.0),
                });
            }
            CampaignEvent::JobState { job, state } => self.apply_state(job, *state),
            CampaignEvent::UnitDone {
                unit, tally, source, elapsed_s, checks, sub_sums, ..
            } => {
                self.apply_done(*unit, tally, source, *elapsed_s, (*checks, sub_sums));
            }
            CampaignEvent::SpotCheck {
                unit, sub_ranges, sums, source, agrees, elapsed_s, ..
            } => {
                self.apply_spot_check(*unit, (*sub_ranges, sums), source, *agrees, *elapsed_s);
            }
            CampaignEvent::Recount { unit, tally, source, agrees, elapsed_s, .. } => {
                self.apply_recount(*unit, tally, source, *agrees, *elapsed_s);
            }
            CampaignEvent::UnitVoided { unit, .. } => self.apply_voided(*unit),
            CampaignEvent::UnitPoisoned { unit, .. } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.poison(unit.unit);
                }
            }
            CampaignEvent::UnitRevived { unit } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.revive(unit.unit);
                    job.failures.remove(&unit.unit);
                }
            }
            CampaignEvent::WorkerQuarantined { worker, reason, widen } => {
                self.apply_quarantine(worker, reason, *widen);
            }
            CampaignEvent::WorkerReleased { worker } => {
                let owners = self.reputation.release(worker);
                self.reset_unproven(&owners);
            }
            CampaignEvent::WorkerSeen { worker, owner, key } => {
                self.register_owner(worker, owner);
                if let Some(key) = key.filter(|key| self.result_key(worker) != Some(*key)) {
                    self.apply_key(worker, key);
                }
            }
            CampaignEvent::WorkerDrained { worker, boot } => self.apply_drained(worker, *boot),
            CampaignEvent::Note { .. } => {}
        }
    }

    fn apply_state(&mut self, hash: &JobHash, state: JobState) {
        let Some(job) = self.jobs.get_mut(hash) else { return };
        job.state = state;
        job.stage = DisputeStage::Unconfirmed;
        match state {
            JobState::Disputed => drop(Self::recheck_guests_first(job, &self.reputation)),
            // A finished job needs no more checks.
            JobState::Finished => {
                job.checks.clear();
                job.sub_sums.clear();
                job.unproven.clear();
                job.held_since.clear();
            }
            JobState::Running | JobState::Paused | JobState::Cancelled => {}
        }
    }

    fn apply_done(
        &mut self,
        unit: UnitId,
        tally: &Tally,
        source: &Source,
        elapsed_s: f64,
        (checks, sub_sums): (Option<CheckPlan>, &[u128]),
    ) {
        let number = self.reputation.number(source);
        let owner = self.reputation.owner_of(number);
        let owner_was_new = self.reputation.is_new(owner, self.settings.new_owner_units);
        let by_coordinator = self.reputation.is_coordinator(number);
        let plan = match checks {
            _ if by_coordinator => CheckPlan::default(),
            Some(plan) => plan,
            None => self.plan_checks(unit, Some(owner), !sub_sums.is_empty(), &source.worker),
        };
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        // There are at most 32.
        let sub_ranges = sub_sums.len().min(usize::from(u8::MAX)) as u8;
        if !job.units.finish(unit.unit, tally, (number, owner), (sub_ranges, owner_was_new)) {
            return;
        }
        job.counting_s += elapsed_s;
        job.suspects.remove(&unit.unit);
        job.failures.remove(&unit.unit);
        job.held_since.remove(&unit.unit);
        if by_coordinator {
            let proof = job.units.confirm(unit.unit, (number, owner), true);
            self.record_confirmation(unit.job, proof);
            return;
        }
        if !self.reputation.is_guest(owner) {
            job.owners.insert(owner);
        }
        *job.unproven.entry(owner).or_default() += 1;
        let depth = |depth: Depth| if sub_sums.is_empty() { Depth::Full } else { depth };
        if let Some(wanted) = plan.peer {
            job.checks.insert(unit.unit, Check::new(depth(wanted), None));
        }
        if let Some(wanted) = plan.audit {
            job.checks.insert_audit(unit.unit, depth(wanted));
        }
        if plan.has_spot() && !sub_sums.is_empty() {
            job.sub_sums.insert(unit.unit, sub_sums.into());
        }
        if let Some(worker) = self.workers.get_mut(&source.worker) {
            worker.units_done += 1;
        }
    }

    /// Adds the arbiter's time for a share of a unit.
    fn record_arbiter_time(&mut self, job: JobHash, share: f64, elapsed_s: f64) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.arbiter = (job.arbiter.0 + elapsed_s, job.arbiter.1 + share);
        }
    }

    /// Updates the record of an owner after a unit of it became confirmed or unconfirmed.
    fn record_confirmation(&mut self, job: JobHash, proof: Option<ConfirmationChange>) {
        let Some(ConfirmationChange { owner, before, after }) = proof else { return };
        if before != after && !self.reputation.is_coordinator_owner(owner) {
            if let Some(job) = self.jobs.get_mut(&job) {
                job.change_unproven(owner, if after { -1 } else { 1 });
            }
            if after {
                self.reputation.confirmed(owner);
            }
        }
    }

    /// Removes a unit's sums of sub-ranges once no check or dispute needs them.
    fn remove_unneeded_sums(&mut self, unit: UnitId) {
        if let Some(job) = self.jobs.get_mut(&unit.job)
            && !job.checks.is_due(unit.unit)
            && !job.disputes.contains_key(&unit.unit)
        {
            job.sub_sums.remove(&unit.unit);
        }
    }

    /// Records the checker of a unit that is done, and its time.
    fn record_checker(&mut self, unit: UnitId, source: &Source, elapsed_s: f64) -> Option<Checked> {
        let number = self.reputation.number(source);
        let (owner, by_coordinator) =
            (self.reputation.owner_of(number), self.reputation.is_coordinator(number));
        let job = self.jobs.get_mut(&unit.job)?;
        let outcome = job.units.outcome(unit.unit)?;
        job.checking_s += elapsed_s;
        if !by_coordinator && !self.reputation.is_guest(owner) {
            job.owners.insert(owner);
        }
        Some(Checked { number, owner, by_coordinator, outcome })
    }

    fn apply_spot_check(
        &mut self,
        unit: UnitId,
        (sub_ranges, sums): (SubRangeSet, &[u128]),
        source: &Source,
        agrees: bool,
        elapsed_s: f64,
    ) {
        let Some(Checked { owner, by_coordinator, outcome, .. }) =
            self.record_checker(unit, source, elapsed_s)
        else {
            return;
        };
        if by_coordinator {
            let share = sub_ranges.len() as f64 / f64::from(outcome.sub_ranges.max(1));
            self.record_arbiter_time(unit.job, share, elapsed_s);
        }
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if agrees {
            let mut proof = None;
            if owner != outcome.owner {
                proof = job.units.confirm_spots(unit.unit, sub_ranges, owner);
            }
            let depth = job.checks.get(unit.unit).map(|check| check.depth);
            if by_coordinator {
                job.checks.remove_audit(unit.unit);
            }
            // A check by the coordinator replaces a pending spot check by a worker.
            if depth == Some(Depth::Spot) {
                self.remove_check(unit.job, unit.unit);
            }
            self.record_confirmation(unit.job, proof);
            self.remove_unneeded_sums(unit);
        } else {
            self.dispute(unit, source, Claim::Spot(sub_ranges, sums.to_vec()));
        }
    }

    fn dispute(&mut self, unit: UnitId, source: &Source, claim: Claim) {
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        job.disputes.entry(unit.unit).or_insert_with(|| (source.clone(), claim));
        // The arbiter counts the whole unit.
        job.checks.remove_audit(unit.unit);
        let earlier_checker = job.checks.get(unit.unit).and_then(|check| check.earlier_checker);
        self.remove_check(unit.job, unit.unit);
        if let (Some(_), Some(job)) = (earlier_checker, self.jobs.get_mut(&unit.job)) {
            // Keep the record of the earlier confirmation.
            job.checks.insert(unit.unit, Check::new(Depth::Full, earlier_checker));
        }
    }

    fn apply_recount(
        &mut self,
        unit: UnitId,
        tally: &Tally,
        source: &Source,
        agrees: bool,
        elapsed_s: f64,
    ) {
        let Some(checked) = self.record_checker(unit, source, elapsed_s) else { return };
        let Checked { number, owner, by_coordinator, outcome } = checked;
        let disputed =
            self.jobs.get(&unit.job).is_some_and(|job| job.disputes.contains_key(&unit.unit));
        // In a dispute the arbiter counts twice, so its time is not representative.
        if by_coordinator && !disputed {
            self.record_arbiter_time(unit.job, 1.0, elapsed_s);
        }
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if !agrees {
            return self.dispute(unit, source, Claim::Whole(*tally));
        }
        // Not for the coordinator, which may recount its own result after a dispute.
        if owner == outcome.owner && !by_coordinator {
            // Written by versions without owners, in which a lone worker recounted its own units.
            let _ = job.units.confirm_by_owner(unit.unit);
            return;
        }
        if disputed && !by_coordinator {
            return;
        }
        job.disputes.remove(&unit.unit);
        let mut proof = None;
        if outcome.checker.is_none() || by_coordinator {
            proof = job.units.confirm(unit.unit, (number, owner), by_coordinator);
        }
        if by_coordinator {
            job.checks.remove_audit(unit.unit);
        }
        self.remove_check(unit.job, unit.unit);
        self.record_confirmation(unit.job, proof);
        self.remove_unneeded_sums(unit);
    }

    fn apply_voided(&mut self, unit: UnitId) {
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        let taken = job.units.void(unit.unit);
        job.stage = DisputeStage::Unconfirmed;
        job.disputes.remove(&unit.unit);
        job.sub_sums.remove(&unit.unit);
        job.checks.remove_audit(unit.unit);
        // The job is no longer finished.
        if job.state == JobState::Finished {
            job.state = JobState::Running;
        }
        self.remove_check(unit.job, unit.unit);
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if let Some(outcome) = taken
            && !outcome.is_proven()
            && !self.reputation.is_coordinator_owner(outcome.owner)
        {
            job.change_unproven(outcome.owner, -1);
        }
    }

    /// Clears the count of unproven units of owners that are new again: units that may never be
    /// checked must not keep them from work.
    fn reset_unproven(&mut self, owners: &BTreeSet<OwnerId>) {
        for job in self.jobs.values_mut() {
            job.unproven.retain(|owner, _| !owners.contains(owner));
        }
    }

    /// Quarantines a worker. Confirmations by the worker's owners are withdrawn, and with `widen`
    /// also confirmations of their results that only workers made; these units, and those that the
    /// worker disputed, are recounted. With `widen`, all other unconfirmed units are recounted
    /// as well.
    fn apply_quarantine(&mut self, worker: &str, reason: &str, widen: bool) {
        let owners = self.reputation.quarantine(worker, reason);
        let mut proofs = Vec::new();
        let in_progress =
            |job: &Job| !matches!(job.state, JobState::Cancelled | JobState::Finished);
        for (&hash, job) in self.jobs.iter_mut().filter(|(_, job)| in_progress(job)) {
            let suspect = |number: u32| owners.contains(&self.reputation.owner_of(number));
            let is_doubtful = |outcome: &UnitOutcome| {
                let by_it = outcome.checker.is_some_and(suspect)
                    || (!outcome.spots.is_empty() && owners.contains(&outcome.spot_owner));
                let of_it = outcome.checker.is_some() && owners.contains(&outcome.owner) && widen;
                (by_it || of_it) && !outcome.audited
            };
            let doubtful: Vec<(u64, Option<u32>)> = job
                .units
                .outcomes_of(&owners, is_doubtful)
                .map(|(unit, outcome)| (unit, outcome.checker))
                .collect();
            for (unit, checker) in doubtful {
                proofs.push((hash, job.units.unconfirm(unit)));
                job.checks.insert(unit, Check::new(Depth::Full, checker));
            }
            let by_worker = |(source, _): &(Source, Claim)| source.worker == worker;
            let disputed: Vec<u64> = job
                .disputes
                .iter()
                .filter(|(_, second)| by_worker(second))
                .map(|(&unit, _)| unit)
                .collect();
            for unit in disputed {
                job.disputes.remove(&unit);
                job.checks.insert(unit, Check::new(Depth::Full, None));
            }
            if widen {
                Self::recheck_unconfirmed(job);
            }
        }
        proofs.into_iter().for_each(|(job, proof)| self.record_confirmation(job, proof));
        self.reset_unproven(&owners);
        for attempt in self.leases.attempts_of(worker) {
            self.drop_lease(attempt);
        }
        self.end_reservations_of(worker);
    }
}
