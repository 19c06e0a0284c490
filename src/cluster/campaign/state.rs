//! The state of a campaign and the events that change it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use super::cells::UnitMap;
use super::checks::{Check, CheckPlan, Checks, Depth};
use super::finish::DisputeStage;
use super::key::{CampaignKey, Draws};
use super::lease::SubRangeSet;
use super::leases::Lease;
use super::reputation::{OwnerId, Reputation};
use super::settings::Settings;
use super::unit_result::Source;
use super::units::{Outcome, Proof, Units};
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;
use crate::tally::Tally;

/// A permanent change of a campaign. A coordinator writes events to its ledger before it applies
/// them.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A job was submitted.
    JobSubmitted {
        /// The job.
        job: JobHash,
        /// Number of its units.
        units: u64,
        /// Priority; jobs with a higher one come first.
        priority: i32,
        /// Time of submission, in ms.
        at_ms: u64,
        /// The published number of solutions, if any. The ledger does not record it; it is looked
        /// up when a ledger is read.
        published: Option<u128>,
    },
    /// A job's state changed.
    JobState {
        /// The job.
        job: JobHash,
        /// The new state.
        state: JobState,
    },
    /// A unit was counted.
    UnitDone {
        /// The unit.
        unit: UnitId,
        /// Number of the lease; 0 for the arbiter.
        attempt: u64,
        /// The result.
        tally: Tally,
        /// Source of the result.
        source: Source,
        /// Counting time, in seconds.
        elapsed_s: f64,
        /// The checks drawn for it. `None` in ledgers of earlier versions; they are then drawn when
        /// the ledger is read.
        checks: Option<CheckPlan>,
        /// The sums of its sub-ranges, in thirds, if a check needs them.
        sub_sums: Vec<u128>,
    },
    /// Some sub-ranges of a unit that is done were recounted.
    SpotCheck {
        /// The unit.
        unit: UnitId,
        /// The sub-ranges.
        sub_ranges: SubRangeSet,
        /// Their sums, in thirds.
        sums: Vec<u128>,
        /// Source of the recount.
        source: Source,
        /// Whether these are the sums of the result in force.
        agrees: bool,
        /// Counting time, in seconds.
        elapsed_s: f64,
    },
    /// A unit that is done was recounted.
    Recount {
        /// The unit.
        unit: UnitId,
        /// The result of the recount.
        tally: Tally,
        /// Source of the recount.
        source: Source,
        /// Whether its mirror image was counted.
        mirrored: bool,
        /// Whether it equals the result in force.
        agrees: bool,
        /// Counting time, in seconds.
        elapsed_s: f64,
    },
    /// A result was voided; the unit is open again.
    UnitVoided {
        /// The unit.
        unit: UnitId,
        /// The reason.
        reason: String,
    },
    /// A unit failed too often and is poisoned.
    UnitPoisoned {
        /// The unit.
        unit: UnitId,
        /// The reason.
        reason: String,
    },
    /// A poisoned unit is open again.
    UnitRevived {
        /// The unit.
        unit: UnitId,
    },
    /// A worker was quarantined.
    WorkerQuarantined {
        /// The worker.
        worker: WorkerName,
        /// The reason.
        reason: String,
        /// Whether it reported a false result; all unconfirmed units are then recounted.
        widen: bool,
    },
    /// A worker was released from quarantine.
    WorkerReleased {
        /// The worker.
        worker: WorkerName,
    },
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Its units are being counted.
    Running,
    /// It is suspended until it is resumed.
    Paused,
    /// It was given up for good.
    Cancelled,
    /// Every unit is done, all checks are made, and the total does not contradict a published
    /// value.
    Finished,
    /// Every unit is done, but the total is impossible or contradicts the published value; units
    /// are being recounted.
    Disputed,
}

impl JobState {
    /// Returns whether units of the job are leased.
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::Running | Self::Disputed)
    }
}

/// A second result that differs from the first.
#[derive(Clone, Debug)]
pub(super) enum Claim {
    /// The tally of the whole unit.
    Whole(Tally),
    /// The sums of some sub-ranges.
    Spot(SubRangeSet, Vec<u128>),
}

/// A job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) units: Units,
    pub(super) priority: i32,
    pub(super) submitted_ms: u64,
    pub(super) state: JobState,
    /// The published number of solutions, if any.
    pub(super) published: Option<u128>,
    /// Owners of workers that counted or recounted units of it.
    pub(super) owners: BTreeSet<OwnerId>,
    /// Pending checks.
    pub(super) checks: Checks,
    /// Sums of sub-ranges, for units with a pending spot check or a dispute.
    pub(super) sub_sums: HashMap<u64, Box<[u128]>>,
    /// Units with two different results that the arbiter has not decided, with the source and the
    /// claim of the second result.
    pub(super) disputes: BTreeMap<u64, (Source, Claim)>,
    /// The stage of a dispute about the total.
    pub(super) stage: DisputeStage,
    /// Failures of units: the number for each worker.
    pub(super) failures: HashMap<u64, BTreeMap<WorkerName, u32>>,
    /// For each unit that is not done: the owners to which it was leased, each with the time of its
    /// first lease in ms.
    pub(super) held_since: HashMap<u64, Vec<(OwnerId, u64)>>,
    /// For each owner: units in force, counted since its record was last reset, that nobody else
    /// has checked.
    pub(super) unproven: HashMap<OwnerId, u64>,
    /// Units of expired leases, with the maximum number of units of their next lease.
    pub(super) suspects: HashMap<u64, u64>,
    /// Workers that have no kernel for the job.
    pub(super) unsuited: HashSet<WorkerName>,
    /// Total time of counting and of recounting, in seconds.
    pub(super) counting_s: f64,
    pub(super) checking_s: f64,
    /// The arbiter's counting time in seconds, and the equivalent number of whole units.
    pub(super) arbiter: (f64, f64),
}

impl Job {
    fn change_unproven(&mut self, owner: OwnerId, by: i64) {
        let unproven = self.unproven.entry(owner).or_default();
        *unproven = unproven.saturating_add_signed(by);
    }

    /// Returns whether these are the sums of the unit's result, or `None` if its sums are not
    /// stored.
    pub(super) fn agrees_with(
        &self,
        unit: u64,
        sub_ranges: SubRangeSet,
        sums: &[u128],
    ) -> Option<bool> {
        let known = self.sub_sums.get(&unit)?;
        let same = |(number, sum): (u32, &u128)| known.get(number as usize) == Some(sum);
        Some(sub_ranges.len() == sums.len() && sub_ranges.numbers().zip(sums).all(same))
    }
}

/// The coordinator's view of a worker; volatile.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Identifier of the worker's start; changes when it restarts.
    pub boot: u64,
    /// Owner that enrolled it; empty if unknown.
    pub owner: String,
    /// Address from which it calls.
    pub address: Option<IpAddr>,
    /// Units that it counts at the same time.
    pub capacity: u32,
    /// Its kernels.
    pub kernels: Vec<String>,
    /// Kernels and devices that it has named since it was first heard from. Results of any others
    /// are not accepted.
    pub announced: BTreeSet<String>,
    /// Measured rate for each job, in units per second.
    pub units_per_s: HashMap<JobHash, f64>,
    /// Time of its last sync, in ms.
    pub seen_ms: u64,
    /// Whether it takes no more work, by its own request or the coordinator's.
    pub draining: bool,
    /// Units that it has counted since the coordinator started.
    pub units_done: u64,
    /// Maximum number of units of its next lease of each job: twice the number of a lease that it
    /// completed.
    pub lease_units: HashMap<JobHash, u64>,
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// Its state.
    pub state: JobState,
    /// Priority; jobs with a higher one come first.
    pub priority: i32,
    /// Time of submission, in ms.
    pub submitted_ms: u64,
    /// Units of the job.
    pub units: u64,
    /// Units counted.
    pub done: u64,
    /// Units confirmed in full by workers of other owners or by the coordinator.
    pub checked: u64,
    /// Units confirmed in full by the coordinator; part of `checked`.
    pub audited: u64,
    /// Units of which workers of other owners or the coordinator confirmed some sub-ranges.
    pub spot_checked: u64,
    /// Units confirmed only by their own owner.
    pub self_checked: u64,
    /// Poisoned units.
    pub poisoned: u64,
    /// Units that are not leased, done or poisoned.
    pub open: u64,
    /// Pending checks, audits included.
    pub checks_due: u64,
    /// Pending audits.
    pub audits_due: u64,
    /// Units with two different results.
    pub disputes: u64,
    /// The sum of the units that are done.
    pub total: Tally,
    /// Total counting time of all sources, in seconds.
    pub counting_s: f64,
    /// Total time of recounts, in seconds.
    pub checking_s: f64,
}

/// A source's contribution to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceShare {
    /// The source.
    pub source: Source,
    /// Units in force that it counted first.
    pub units: u64,
    /// Units among them that another source confirmed in full.
    pub confirmed: u64,
    /// Units in force of other sources that it confirmed in full.
    pub confirmations: u64,
}

/// The checker of a unit and the unit's result.
struct Checked {
    /// Number of the source.
    number: u32,
    owner: OwnerId,
    /// Whether the source is the coordinator.
    own: bool,
    outcome: Outcome,
}

/// The jobs of a coordinator and the assignment of their units to workers.
#[derive(Debug)]
pub struct Campaign {
    pub(super) settings: Settings,
    pub(super) jobs: HashMap<JobHash, Job>,
    pub(super) reputation: Reputation,
    pub(super) leases: BTreeMap<u64, Lease>,
    /// The leases that ended last.
    pub(super) ended: HashMap<u64, Lease>,
    /// Their numbers in the order of their end.
    pub(super) ended_order: VecDeque<u64>,
    pub(super) workers: BTreeMap<WorkerName, WorkerState>,
    /// Workers that were drained before the start and have not been heard from since, with the boot
    /// identifier of each.
    pub(super) drained: BTreeMap<WorkerName, u64>,
    /// Number of the last lease; higher than that of any lease of an earlier run.
    attempts: u64,
    /// Upper bound of the lease numbers of earlier runs.
    first_attempt: u64,
    pub(super) key: CampaignKey,
    pub(super) random: Draws,
    /// Checks reserved for each worker.
    pub(super) kept: HashMap<WorkerName, BTreeSet<(JobHash, u64)>>,
    /// End of each reservation in ms, with its check.
    pub(super) kept_until: BTreeSet<(u64, JobHash, u64)>,
    /// Workers for which spot checks were reserved and that may not know of them yet.
    pub(super) newly_kept: BTreeSet<WorkerName>,
    /// Position at which the arbiter's last scan of `kept_until` ended.
    pub(super) looked_at: Option<(u64, JobHash, u64)>,
    /// Unit that the arbiter is counting.
    pub(super) at_arbiter: Option<UnitId>,
    /// Time of the first tick, in ms.
    pub(super) started_ms: Option<u64>,
    /// Time of the last tick, in ms.
    pub(super) ticked_ms: u64,
}

impl Campaign {
    /// Creates a campaign without jobs. `epoch` must be greater than at any earlier start of the
    /// same campaign (the time in ms is suitable), so that leases of earlier runs can be told
    /// apart. `key` must be the same at each start and must not be shared with another campaign.
    pub fn new(settings: Settings, epoch: u64, key: CampaignKey) -> Self {
        Self {
            settings,
            jobs: HashMap::new(),
            reputation: Reputation::default(),
            leases: BTreeMap::new(),
            ended: HashMap::new(),
            ended_order: VecDeque::new(),
            workers: BTreeMap::new(),
            drained: BTreeMap::new(),
            attempts: epoch << 20,
            first_attempt: epoch << 20,
            key,
            random: Draws::new(epoch),
            kept: HashMap::new(),
            kept_until: BTreeSet::new(),
            newly_kept: BTreeSet::new(),
            looked_at: None,
            at_arbiter: None,
            started_ms: None,
            ticked_ms: 0,
        }
    }

    /// Returns the number for a new lease.
    pub(super) fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    /// Returns whether a lease was granted by an earlier run.
    pub(super) const fn is_of_before(&self, attempt: u64) -> bool {
        attempt <= self.first_attempt
    }

    /// Registers the owner of a worker. Called before the events of a ledger are applied, which may
    /// no longer contain a result of the worker.
    pub fn enrolled(&mut self, worker: &str, owner: &str) {
        self.reputation.owner(worker, owner);
    }

    /// Applies an event that was just written to the ledger or, at the start, read from it.
    /// Inconsistent events, such as a second result for a unit, change nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::JobSubmitted { job, units, priority, at_ms, published } => {
                self.jobs.entry(*job).or_insert_with(|| Job {
                    units: Units::new(*units),
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
            Event::JobState { job, state } => self.apply_state(job, *state),
            Event::UnitDone { unit, tally, source, elapsed_s, checks, sub_sums, .. } => {
                self.apply_done(*unit, tally, source, *elapsed_s, (*checks, sub_sums));
            }
            Event::SpotCheck { unit, sub_ranges, sums, source, agrees, elapsed_s } => {
                self.apply_spot_check(*unit, (*sub_ranges, sums), source, *agrees, *elapsed_s);
            }
            Event::Recount { unit, tally, source, agrees, elapsed_s, .. } => {
                self.apply_recount(*unit, tally, source, *agrees, *elapsed_s);
            }
            Event::UnitVoided { unit, .. } => self.apply_voided(*unit),
            Event::UnitPoisoned { unit, .. } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.poison(unit.unit);
                }
            }
            Event::UnitRevived { unit } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.revive(unit.unit);
                    job.failures.remove(&unit.unit);
                }
            }
            Event::WorkerQuarantined { worker, reason, widen } => {
                self.apply_quarantine(worker, reason, *widen);
            }
            Event::WorkerReleased { worker } => {
                let owners = self.reputation.release(worker);
                self.begin_anew(&owners);
            }
        }
    }

    fn apply_state(&mut self, hash: &JobHash, state: JobState) {
        let Some(job) = self.jobs.get_mut(hash) else { return };
        job.state = state;
        job.stage = DisputeStage::Unconfirmed;
        match state {
            JobState::Disputed => drop(Self::widen(job)),
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
        let fresh = self.reputation.is_new(owner, self.settings.new_owner_units);
        let own = self.reputation.is_coordinator(number);
        let plan = match checks {
            _ if own => CheckPlan::default(),
            Some(plan) => plan,
            None => self.plan_checks(unit, Some(owner), !sub_sums.is_empty(), &source.worker),
        };
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        // There are at most 32.
        let sub_ranges = sub_sums.len().min(usize::from(u8::MAX)) as u8;
        if !job.units.finish(unit.unit, tally, (number, owner), (sub_ranges, fresh)) {
            return;
        }
        job.counting_s += elapsed_s;
        job.suspects.remove(&unit.unit);
        job.failures.remove(&unit.unit);
        job.held_since.remove(&unit.unit);
        if own {
            let proof = job.units.confirm(unit.unit, number, true);
            self.note_proof(unit.job, proof);
            return;
        }
        job.owners.insert(owner);
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
    fn note_arbiter(&mut self, job: JobHash, share: f64, elapsed_s: f64) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.arbiter = (job.arbiter.0 + elapsed_s, job.arbiter.1 + share);
        }
    }

    /// Updates the record of an owner after a unit of it became confirmed or unconfirmed.
    fn note_proof(&mut self, job: JobHash, proof: Option<Proof>) {
        let Some(Proof { owner, before, after }) = proof else { return };
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
    fn tidy_sums(&mut self, unit: UnitId) {
        if let Some(job) = self.jobs.get_mut(&unit.job)
            && !job.checks.is_due(unit.unit)
            && !job.disputes.contains_key(&unit.unit)
        {
            job.sub_sums.remove(&unit.unit);
        }
    }

    /// Records the checker of a unit that is done, and its time.
    fn note_check(&mut self, unit: UnitId, source: &Source, elapsed_s: f64) -> Option<Checked> {
        let number = self.reputation.number(source);
        let (owner, own) =
            (self.reputation.owner_of(number), self.reputation.is_coordinator(number));
        let job = self.jobs.get_mut(&unit.job)?;
        let outcome = *job.units.outcome(unit.unit)?;
        job.checking_s += elapsed_s;
        if !own {
            job.owners.insert(owner);
        }
        Some(Checked { number, owner, own, outcome })
    }

    fn apply_spot_check(
        &mut self,
        unit: UnitId,
        (sub_ranges, sums): (SubRangeSet, &[u128]),
        source: &Source,
        agrees: bool,
        elapsed_s: f64,
    ) {
        let Some(Checked { owner, own, outcome, .. }) = self.note_check(unit, source, elapsed_s)
        else {
            return;
        };
        if own {
            let share = sub_ranges.len() as f64 / f64::from(outcome.sub_ranges.max(1));
            self.note_arbiter(unit.job, share, elapsed_s);
        }
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if agrees {
            let mut proof = None;
            if owner != outcome.owner {
                proof = job.units.confirm_spots(unit.unit, sub_ranges, owner);
            }
            let depth = job.checks.get(unit.unit).map(|check| check.depth);
            if own {
                job.checks.remove_audit(unit.unit);
            }
            // A check by the coordinator replaces a pending spot check by a worker.
            if depth == Some(Depth::Spot) {
                self.remove_check(unit.job, unit.unit);
            }
            self.note_proof(unit.job, proof);
            self.tidy_sums(unit);
        } else {
            self.dispute(unit, source, Claim::Spot(sub_ranges, sums.to_vec()));
        }
    }

    fn dispute(&mut self, unit: UnitId, source: &Source, claim: Claim) {
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        job.disputes.entry(unit.unit).or_insert_with(|| (source.clone(), claim));
        // The arbiter counts the whole unit.
        job.checks.remove_audit(unit.unit);
        let vouched = job.checks.get(unit.unit).and_then(|check| check.vouched);
        self.remove_check(unit.job, unit.unit);
        if let (Some(_), Some(job)) = (vouched, self.jobs.get_mut(&unit.job)) {
            // Keep the record of the earlier confirmation.
            job.checks.insert(unit.unit, Check::new(Depth::Full, vouched));
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
        let Some(checked) = self.note_check(unit, source, elapsed_s) else { return };
        let Checked { number, owner, own, outcome } = checked;
        let disputed =
            self.jobs.get(&unit.job).is_some_and(|job| job.disputes.contains_key(&unit.unit));
        // In a dispute the arbiter counts twice, so its time is not representative.
        if own && !disputed {
            self.note_arbiter(unit.job, 1.0, elapsed_s);
        }
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if !agrees {
            return self.dispute(unit, source, Claim::Whole(*tally));
        }
        // Not for the coordinator, which may recount its own result after a dispute.
        if owner == outcome.owner && !own {
            // Written by versions without owners, in which a lone worker recounted its own units.
            let _ = job.units.confirm_by_owner(unit.unit);
            return;
        }
        if disputed && !own {
            return;
        }
        job.disputes.remove(&unit.unit);
        let mut proof = None;
        if outcome.checker.is_none() || own {
            proof = job.units.confirm(unit.unit, number, own);
        }
        if own {
            job.checks.remove_audit(unit.unit);
        }
        self.remove_check(unit.job, unit.unit);
        self.note_proof(unit.job, proof);
        self.tidy_sums(unit);
    }

    fn apply_voided(&mut self, unit: UnitId) {
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        let taken = job.units.take_back(unit.unit);
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
    fn begin_anew(&mut self, owners: &BTreeSet<OwnerId>) {
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
            let doubtful: Vec<(u64, Option<u32>)> = job
                .units
                .outcomes()
                .filter(|(_, outcome)| {
                    let by_it = outcome.checker.is_some_and(suspect)
                        || (!outcome.spots.is_empty() && owners.contains(&outcome.spot_owner));
                    let of_it =
                        outcome.checker.is_some() && owners.contains(&outcome.owner) && widen;
                    (by_it || of_it) && !outcome.audited
                })
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
                Self::widen(job);
            }
        }
        proofs.into_iter().for_each(|(job, proof)| self.note_proof(job, proof));
        self.begin_anew(&owners);
        let attempts: Vec<u64> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.worker == worker)
            .map(|(&a, _)| a)
            .collect();
        attempts.into_iter().for_each(|attempt| self.drop_lease(attempt));
        self.put_back_all_of(worker);
    }

    /// Returns a job's state.
    pub fn state(&self, job: &JobHash) -> Option<JobState> {
        Some(self.jobs.get(job)?.state)
    }

    /// Returns a job's progress.
    pub fn progress(&self, job: &JobHash) -> Option<JobProgress> {
        let job = self.jobs.get(job)?;
        Some(JobProgress {
            state: job.state,
            priority: job.priority,
            submitted_ms: job.submitted_ms,
            units: job.units.len(),
            done: job.units.done(),
            checked: job.units.checked(),
            audited: job.units.audited(),
            spot_checked: job.units.spot_checked(),
            self_checked: job.units.self_checked(),
            poisoned: job.units.poisoned(),
            open: job.units.open(),
            checks_due: (job.checks.len() + job.checks.audits()) as u64,
            audits_due: job.checks.audits() as u64,
            disputes: job.disputes.len() as u64,
            total: *job.units.total(),
            counting_s: job.counting_s,
            checking_s: job.checking_s,
        })
    }

    /// Returns the map of a job's units.
    pub fn map(&self, job: &JobHash) -> Option<&UnitMap> {
        Some(self.jobs.get(job)?.units.map())
    }

    /// Returns each source's contribution to a job, sorted by source.
    pub fn shares(&self, job: &JobHash) -> Vec<SourceShare> {
        let Some(job) = self.jobs.get(job) else { return Vec::new() };
        let mut shares: Vec<SourceShare> = job
            .units
            .shares()
            .map(|(&number, share)| SourceShare {
                source: self.reputation.source(number).clone(),
                units: share.units,
                confirmed: share.confirmed,
                confirmations: share.confirmations,
            })
            .collect();
        shares.sort_by(|a, b| a.source.cmp(&b.source));
        shares
    }

    /// Returns for each worker the units in force that it counted first, over all jobs, and how
    /// many of them others confirmed in full.
    pub fn records(&self) -> HashMap<&WorkerName, (u64, u64)> {
        let mut records: HashMap<&WorkerName, (u64, u64)> = HashMap::new();
        for (&number, share) in self.jobs.values().flat_map(|job| job.units.shares()) {
            let (units, confirmed) =
                records.entry(&self.reputation.source(number).worker).or_default();
            *units += share.units;
            *confirmed += share.confirmed;
        }
        records
    }

    /// Returns the poisoned units of a job.
    pub fn poisoned(&self, job: &JobHash) -> Vec<u64> {
        self.jobs.get(job).map(|job| job.units.poisoned_units().collect()).unwrap_or_default()
    }

    /// Returns the jobs, in no particular order.
    pub fn jobs(&self) -> impl Iterator<Item = JobHash> {
        self.jobs.keys().copied()
    }

    /// Returns the workers that were heard from since the start, by name.
    pub fn workers(&self) -> impl Iterator<Item = (&WorkerName, &WorkerState)> {
        self.workers.iter()
    }

    /// Returns the number of leased units of each worker that has any.
    pub fn held(&self) -> HashMap<&WorkerName, u64> {
        let mut held: HashMap<&WorkerName, u64> = HashMap::new();
        for lease in self.leases.values() {
            *held.entry(&lease.worker).or_default() += lease.units.end - lease.units.start;
        }
        held
    }

    /// Returns the quarantined workers, with the reason.
    pub fn quarantined(&self) -> &HashMap<WorkerName, String> {
        self.reputation.quarantined()
    }

    /// Returns the stage of the dispute about a job's total, or `None` without a dispute.
    pub fn dispute_stage(&self, job: &JobHash) -> Option<DisputeStage> {
        let job = self.jobs.get(job).filter(|job| job.state == JobState::Disputed)?;
        Some(job.stage)
    }

    /// Returns whether a worker was heard from since the start. Its kernels and devices are unknown
    /// before that.
    pub fn knows(&self, worker: &str) -> bool {
        self.workers.contains_key(worker)
    }

    /// Returns the units with two different results, which the arbiter is to count.
    pub fn disputes(&self) -> impl Iterator<Item = UnitId> {
        self.jobs
            .iter()
            .flat_map(|(&job, state)| state.disputes.keys().map(move |&unit| UnitId { job, unit }))
    }

    /// Returns the source and the result of a unit that is done.
    pub fn outcome(&self, unit: UnitId) -> Option<(&Source, &Tally)> {
        let outcome = self.jobs.get(&unit.job)?.units.outcome(unit.unit)?;
        Some((self.reputation.source(outcome.source), &outcome.tally))
    }
}
