//! The campaign's state, and the events that change it.

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

/// What happened, for ever. A coordinator writes these to its ledger before it applies them.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A job was submitted.
    JobSubmitted {
        /// The job.
        job: JobHash,
        /// Units that it has.
        units: u64,
        /// Higher goes first.
        priority: i32,
        /// When, in ms.
        at_ms: u64,
        /// The number of solutions, if it is published. It is not kept: who reads a ledger looks it up.
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
        /// Under which lease; 0 for the arbiter.
        attempt: u64,
        /// What was counted.
        tally: Tally,
        /// By whom.
        source: Source,
        /// Seconds that it took.
        elapsed_s: f64,
        /// Which checks were drawn for it; none in ledgers of before, where they are drawn when it is read.
        checks: Option<CheckPlan>,
        /// The sums of its sub-ranges, in thirds, if a check needs them.
        sub_sums: Vec<u128>,
    },
    /// Some sub-ranges of a unit that is done were counted again.
    SpotCheck {
        /// The unit.
        unit: UnitId,
        /// Which sub-ranges.
        sub_ranges: SubRangeSet,
        /// Their sums, in thirds.
        sums: Vec<u128>,
        /// By whom.
        source: Source,
        /// Whether these are the sums that the result came with.
        agrees: bool,
        /// Seconds that it took.
        elapsed_s: f64,
    },
    /// A unit that is done was counted again.
    Recount {
        /// The unit.
        unit: UnitId,
        /// What was counted.
        tally: Tally,
        /// By whom.
        source: Source,
        /// Whether its mirror image was counted.
        mirrored: bool,
        /// Whether that is the result that stands.
        agrees: bool,
        /// Seconds that it took.
        elapsed_s: f64,
    },
    /// A result was taken back; the unit is open again.
    UnitVoided {
        /// The unit.
        unit: UnitId,
        /// Why.
        reason: String,
    },
    /// A unit failed too often and is set aside.
    UnitPoisoned {
        /// The unit.
        unit: UnitId,
        /// Why.
        reason: String,
    },
    /// A unit that was set aside is open again.
    UnitRevived {
        /// The unit.
        unit: UnitId,
    },
    /// A worker is not believed any more.
    WorkerQuarantined {
        /// The worker.
        worker: WorkerName,
        /// Why.
        reason: String,
        /// Whether it lied: then whatever nobody has confirmed is counted again.
        widen: bool,
    },
    /// A worker may begin anew.
    WorkerReleased {
        /// The worker.
        worker: WorkerName,
    },
}

/// What is done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// It is counted.
    Running,
    /// It waits for somebody to let it go on.
    Paused,
    /// It was given up.
    Cancelled,
    /// Every unit is done, every recount that was due agrees, and no published value is contradicted.
    Finished,
    /// Every unit is done, and the total cannot be, or is not the published one: units are counted again.
    Disputed,
}

impl JobState {
    /// Returns whether units of the job are handed out.
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::Running | Self::Disputed)
    }
}

/// A second result that differs from the first.
#[derive(Clone, Debug)]
pub(super) enum Claim {
    /// Of the whole unit.
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
    /// The number of solutions, if it is published.
    pub(super) published: Option<u128>,
    /// Owners of workers that counted units of it, first or again.
    pub(super) owners: BTreeSet<OwnerId>,
    /// Units that are to be counted again.
    pub(super) checks: Checks,
    /// The sums of sub-ranges of units that have a spot check due.
    pub(super) sub_sums: HashMap<u64, Box<[u128]>>,
    /// Units of which two results differ, until the arbiter has spoken: who came second, with what.
    pub(super) disputes: BTreeMap<u64, (Source, Claim)>,
    /// How far a dispute about the total is.
    pub(super) stage: DisputeStage,
    /// Failures of units: on which workers, how often.
    pub(super) failures: HashMap<u64, BTreeMap<WorkerName, u32>>,
    /// Which owners were leased a unit that is not done, since when, in ms.
    pub(super) held_since: HashMap<u64, Vec<(OwnerId, u64)>>,
    /// Units of each owner, in force, of which nobody else has checked anything: those that it counted since it was new.
    pub(super) unproven: HashMap<OwnerId, u64>,
    /// Units that were in leases that expired: they go in leases of at most so many units.
    pub(super) suspects: HashMap<u64, u64>,
    /// Workers that have no kernel for the job at all.
    pub(super) unsuited: HashSet<WorkerName>,
    /// Seconds of counting and of recounting.
    pub(super) counting_s: f64,
    pub(super) checking_s: f64,
    /// Seconds for which the arbiter counted, and how many whole units that would have been.
    pub(super) arbiter: (f64, f64),
}

impl Job {
    fn change_unproven(&mut self, owner: OwnerId, by: i64) {
        let unproven = self.unproven.entry(owner).or_default();
        *unproven = unproven.saturating_add_signed(by);
    }

    /// Returns whether sums of sub-ranges are those that a unit's result came with; none if these are not known.
    pub(super) fn agrees_with(&self, unit: u64, sub_ranges: SubRangeSet, sums: &[u128]) -> Option<bool> {
        let known = self.sub_sums.get(&unit)?;
        let same = |(number, sum): (u32, &u128)| known.get(number as usize) == Some(sum);
        Some(sub_ranges.len() == sums.len() && sub_ranges.numbers().zip(sums).all(same))
    }
}

/// A worker as the coordinator knows it; volatile.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Changes when the worker restarts.
    pub boot: u64,
    /// Who enrolled it; empty if nobody knows.
    pub owner: String,
    /// Where it calls from.
    pub address: Option<IpAddr>,
    /// Units that it counts at once.
    pub capacity: u32,
    /// Kernels that it has.
    pub kernels: Vec<String>,
    /// Kernels and devices that it has named since it was heard of first: results of others are not its own.
    pub announced: BTreeSet<String>,
    /// Units a second that it measured, by job.
    pub units_per_s: HashMap<JobHash, f64>,
    /// When it was heard of last, in ms.
    pub seen_ms: u64,
    /// Whether it asked for nothing more, or was told to take nothing more.
    pub draining: bool,
    /// Units that it counted since the coordinator started.
    pub units_done: u64,
    /// How many units of a job its next lease may have: twice as many as one that it has finished.
    pub lease_units: HashMap<JobHash, u64>,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// Its state.
    pub state: JobState,
    /// Higher goes first.
    pub priority: i32,
    /// When it was submitted, in ms.
    pub submitted_ms: u64,
    /// Units of the job.
    pub units: u64,
    /// Units counted.
    pub done: u64,
    /// Units counted again as a whole and confirmed, by workers of other owners or the coordinator.
    pub checked: u64,
    /// Units that the coordinator confirmed as a whole; part of `checked`.
    pub audited: u64,
    /// Units of which workers of other owners or the coordinator confirmed some sub-ranges.
    pub spot_checked: u64,
    /// Units that only their own owner confirmed.
    pub self_checked: u64,
    /// Units set aside.
    pub poisoned: u64,
    /// Units that nobody counts at the moment.
    pub open: u64,
    /// Recounts that are still due, audits included.
    pub checks_due: u64,
    /// Recounts that are still due from the coordinator.
    pub audits_due: u64,
    /// Units of which two results differ.
    pub disputes: u64,
    /// The sum of the units that are done.
    pub total: Tally,
    /// Seconds of counting, summed over all that counted.
    pub counting_s: f64,
    /// The same of recounts.
    pub checking_s: f64,
}

/// What a source has done for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceShare {
    /// Who.
    pub source: Source,
    /// Units in force that it counted first.
    pub units: u64,
    /// Those of them that another source confirmed.
    pub confirmed: u64,
    /// Units in force of others that it confirmed.
    pub confirmations: u64,
}

/// Who checked a unit, and what is known of the unit.
struct Checked {
    /// The number of the source.
    number: u32,
    owner: OwnerId,
    /// Whether the coordinator did.
    own: bool,
    outcome: Outcome,
}

/// The jobs of a coordinator and who counts which unit.
#[derive(Debug)]
pub struct Campaign {
    pub(super) settings: Settings,
    pub(super) jobs: HashMap<JobHash, Job>,
    pub(super) reputation: Reputation,
    pub(super) leases: BTreeMap<u64, Lease>,
    /// The last leases that ended.
    pub(super) ended: HashMap<u64, Lease>,
    /// Their numbers in the order in which they ended.
    pub(super) ended_order: VecDeque<u64>,
    pub(super) workers: BTreeMap<WorkerName, WorkerState>,
    /// Workers that were told before the start to take nothing more, and were not heard of since: which boot of each.
    pub(super) drained: BTreeMap<WorkerName, u64>,
    /// The number of the last lease. Higher than that of any lease of an earlier run.
    attempts: u64,
    /// That of the last lease before the start, at most.
    first_attempt: u64,
    pub(super) key: CampaignKey,
    pub(super) random: Draws,
    /// Checks that are kept for each worker.
    pub(super) kept: HashMap<WorkerName, BTreeSet<(JobHash, u64)>>,
    /// Until when, in ms.
    pub(super) kept_until: BTreeSet<(u64, JobHash, u64)>,
    /// Workers for which checks of sub-ranges are kept, and which may not know of them.
    pub(super) newly_kept: BTreeSet<WorkerName>,
    /// Where the arbiter's last look at checks that are kept ended.
    pub(super) looked_at: Option<(u64, JobHash, u64)>,
    /// The unit that the arbiter has.
    pub(super) at_arbiter: Option<UnitId>,
    /// The time of the first tick, in ms.
    pub(super) started_ms: Option<u64>,
    /// The time of the last tick, in ms.
    pub(super) ticked_ms: u64,
}

impl Campaign {
    /// Creates a campaign without jobs. `epoch` must be greater than at any earlier start of the same campaign (the time
    /// in ms will do), so that leases of before are known as such. `key` must be the same at each start, and nobody
    /// else's.
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

    /// Returns the number of a new lease.
    pub(super) fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    /// Returns whether a lease was granted before this start.
    pub(super) const fn is_of_before(&self, attempt: u64) -> bool {
        attempt <= self.first_attempt
    }

    /// Notes whose a worker is, before the events of a ledger are applied in which it may have no result any more.
    pub fn enrolled(&mut self, worker: &str, owner: &str) {
        self.reputation.owner(worker, owner);
    }

    /// Applies an event: one that was just written to the ledger, or, at the start, one that is read from it. Events
    /// that make no sense (a second result for a unit, say) change nothing.
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
            // Nobody is asked to check what is settled.
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

    /// Notes how long the arbiter took for a share of a unit.
    fn note_arbiter(&mut self, job: JobHash, share: f64, elapsed_s: f64) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.arbiter = (job.arbiter.0 + elapsed_s, job.arbiter.1 + share);
        }
    }

    /// Keeps the record of an owner whose unit was confirmed, or is not any more.
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

    /// Forgets sums of sub-ranges of which no check has need.
    fn tidy_sums(&mut self, unit: UnitId) {
        if let Some(job) = self.jobs.get_mut(&unit.job)
            && !job.checks.is_due(unit.unit)
            && !job.disputes.contains_key(&unit.unit)
        {
            job.sub_sums.remove(&unit.unit);
        }
    }

    /// Notes who checked a unit that is done, and for how long.
    fn note_check(&mut self, unit: UnitId, source: &Source, elapsed_s: f64) -> Option<Checked> {
        let number = self.reputation.number(source);
        let (owner, own) = (self.reputation.owner_of(number), self.reputation.is_coordinator(number));
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
        let Some(Checked { owner, own, outcome, .. }) = self.note_check(unit, source, elapsed_s) else {
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
            // What the coordinator checks nobody else needs to check as shallowly.
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
        // The arbiter counts all of it.
        job.checks.remove_audit(unit.unit);
        let vouched = job.checks.get(unit.unit).and_then(|check| check.vouched);
        self.remove_check(unit.job, unit.unit);
        if let (Some(_), Some(job)) = (vouched, self.jobs.get_mut(&unit.job)) {
            // Who confirmed it before must still be known.
            job.checks.insert(unit.unit, Check::new(Depth::Full, vouched));
        }
    }

    fn apply_recount(&mut self, unit: UnitId, tally: &Tally, source: &Source, agrees: bool, elapsed_s: f64) {
        let Some(checked) = self.note_check(unit, source, elapsed_s) else { return };
        let Checked { number, owner, own, outcome } = checked;
        let disputed = self.jobs.get(&unit.job).is_some_and(|job| job.disputes.contains_key(&unit.unit));
        // Where two results differ it counts twice.
        if own && !disputed {
            self.note_arbiter(unit.job, 1.0, elapsed_s);
        }
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if !agrees {
            return self.dispute(unit, source, Claim::Whole(*tally));
        }
        // What the coordinator has counted itself it may be asked to count again, by whoever contradicts it.
        if owner == outcome.owner && !own {
            // Before there were owners, workers that were alone counted their own units again.
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
        // What was finished is not any more.
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

    /// Owners are new again: what they counted before, and nobody may ever check, does not keep them from work.
    fn begin_anew(&mut self, owners: &BTreeSet<OwnerId>) {
        for job in self.jobs.values_mut() {
            job.unproven.retain(|owner, _| !owners.contains(owner));
        }
    }

    /// What the worker's owner confirmed is not confirmed any more, nor is what only workers confirmed of its own; what
    /// the worker disputes is for another to count again. If it lied, everything that nobody confirmed is counted again.
    fn apply_quarantine(&mut self, worker: &str, reason: &str, widen: bool) {
        let owners = self.reputation.quarantine(worker, reason);
        let mut proofs = Vec::new();
        let in_progress = |job: &Job| !matches!(job.state, JobState::Cancelled | JobState::Finished);
        for (&hash, job) in self.jobs.iter_mut().filter(|(_, job)| in_progress(job)) {
            let suspect = |number: u32| owners.contains(&self.reputation.owner_of(number));
            let doubtful: Vec<(u64, Option<u32>)> = job
                .units
                .outcomes()
                .filter(|(_, outcome)| {
                    let by_it = outcome.checker.is_some_and(suspect)
                        || (!outcome.spots.is_empty() && owners.contains(&outcome.spot_owner));
                    let of_it = outcome.checker.is_some() && owners.contains(&outcome.owner) && widen;
                    (by_it || of_it) && !outcome.audited
                })
                .map(|(unit, outcome)| (unit, outcome.checker))
                .collect();
            for (unit, checker) in doubtful {
                proofs.push((hash, job.units.unconfirm(unit)));
                job.checks.insert(unit, Check::new(Depth::Full, checker));
            }
            let by_worker = |(source, _): &(Source, Claim)| source.worker == worker;
            let disputed: Vec<u64> =
                job.disputes.iter().filter(|(_, second)| by_worker(second)).map(|(&unit, _)| unit).collect();
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
        let attempts: Vec<u64> =
            self.leases.iter().filter(|(_, lease)| lease.worker == worker).map(|(&a, _)| a).collect();
        attempts.into_iter().for_each(|attempt| self.drop_lease(attempt));
        self.put_back_all_of(worker);
    }

    /// A job's state.
    pub fn state(&self, job: &JobHash) -> Option<JobState> {
        Some(self.jobs.get(job)?.state)
    }

    /// How far a job is.
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

    /// Where in a job units are what.
    pub fn map(&self, job: &JobHash) -> Option<&UnitMap> {
        Some(self.jobs.get(job)?.units.map())
    }

    /// Who counted how much of a job, by name.
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

    /// Units in force that each worker counted first, over all jobs, and those of them that others confirmed as a whole.
    pub fn records(&self) -> HashMap<&WorkerName, (u64, u64)> {
        let mut records: HashMap<&WorkerName, (u64, u64)> = HashMap::new();
        for (&number, share) in self.jobs.values().flat_map(|job| job.units.shares()) {
            let (units, confirmed) = records.entry(&self.reputation.source(number).worker).or_default();
            *units += share.units;
            *confirmed += share.confirmed;
        }
        records
    }

    /// Units of a job that are set aside.
    pub fn poisoned(&self, job: &JobHash) -> Vec<u64> {
        self.jobs.get(job).map(|job| job.units.poisoned_units().collect()).unwrap_or_default()
    }

    /// The jobs, in no order.
    pub fn jobs(&self) -> impl Iterator<Item = JobHash> {
        self.jobs.keys().copied()
    }

    /// The workers that were heard of since the start, by name.
    pub fn workers(&self) -> impl Iterator<Item = (&WorkerName, &WorkerState)> {
        self.workers.iter()
    }

    /// Units in the leases of each worker that has any.
    pub fn held(&self) -> HashMap<&WorkerName, u64> {
        let mut held: HashMap<&WorkerName, u64> = HashMap::new();
        for lease in self.leases.values() {
            *held.entry(&lease.worker).or_default() += lease.units.end - lease.units.start;
        }
        held
    }

    /// Workers that are not believed, with the reason.
    pub fn quarantined(&self) -> &HashMap<WorkerName, String> {
        self.reputation.quarantined()
    }

    /// How far the dispute about a job's total is; none if there is no dispute.
    pub fn dispute_stage(&self, job: &JobHash) -> Option<DisputeStage> {
        let job = self.jobs.get(job).filter(|job| job.state == JobState::Disputed)?;
        Some(job.stage)
    }

    /// Returns whether a worker was heard of since the start: only then is it known what it counts with.
    pub fn knows(&self, worker: &str) -> bool {
        self.workers.contains_key(worker)
    }

    /// Units of which two results differ: the arbiter is to count them.
    pub fn disputes(&self) -> impl Iterator<Item = UnitId> {
        self.jobs
            .iter()
            .flat_map(|(&job, state)| state.disputes.keys().map(move |&unit| UnitId { job, unit }))
    }

    /// Who counted a unit that is done, with what.
    pub fn outcome(&self, unit: UnitId) -> Option<(&Source, &Tally)> {
        let outcome = self.jobs.get(&unit.job)?.units.outcome(unit.unit)?;
        Some((self.reputation.source(outcome.source), &outcome.tally))
    }
}
