//! Simulated campaigns: time, network, disk and workers are plain data, so that a seed determines
//! everything.
//!
//! Workers count in simulated time. Their [`Strategy`] determines what they do with leases, results
//! and checks. The coordinator is the real [`Campaign`], with a ledger (its events) that survives
//! crashes and an arbiter that takes time.

#![allow(dead_code, unreachable_pub)]

pub use crate::support::seeds;

use std::collections::BTreeMap;
use std::sync::Arc;

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    Assignment, COORDINATOR, Campaign, CampaignEvent, CampaignKey, HeldLease, JobState,
    ResultVerdict, Ruling, Settings, Source, SubRangeSet, SyncRequest, UnitId, UnitMap, UnitResult,
    guest_name,
};
use nqueens::cluster::storage::SnapshotFile;
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Parts, Residues, Tally};

/// The number of sub-ranges of each simulated unit.
pub const SUB_RANGES: u32 = 32;

/// The beginning of the names of the owners of guests.
const GUEST: &str = "guest:";

/// How a worker lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    Honest,
    /// Every result is one too high, in one sub-range.
    Constant,
    /// Exactly one lie, in a random unit.
    Rare,
    /// Honest for its first 20 units, then one lie in ten.
    Late,
    /// Counts nothing: every sub-range is guessed.
    Lazy,
    /// One unit in ten is a lie, and it confirms every liar's result that it is to check.
    Colluding,
    /// Like `Colluding`, but it syncs ten times as often.
    ColludingPolling,
    /// One of the liars lies once; the others confirm it.
    ColludingOnce,
    /// After each restart of the coordinator it submits results for all units at once, under
    /// invented grants, and claims to hold all units; it invents kernels.
    SelfAlone,
    /// Claims leases that it never had, with and without capacity, and an impossible rate.
    ForgedLeases,
    /// Contradicts every result that it can name, as often as possible.
    Disputes,
    /// Honest in first counts; reports honest results as wrong when it is to check them.
    FalseAlarm,
    /// Never makes a check, and lies in one unit in ten.
    Shirker,
    /// Gives back all its leases at each sync, takes new ones, and submits nothing.
    Refresher,
    /// Reports that its first unit took thousands of years, and does nothing more.
    Overstater,
    /// Syncs without asking for work.
    Rester,
    /// Correct sums of units, wrong sums of sub-ranges.
    Shifter,
}

impl Strategy {
    /// All strategies of a single owner.
    pub const LIARS: [Self; 15] = [
        Self::Constant,
        Self::Rare,
        Self::Late,
        Self::Lazy,
        Self::Colluding,
        Self::ColludingPolling,
        Self::SelfAlone,
        Self::ForgedLeases,
        Self::Disputes,
        Self::FalseAlarm,
        Self::Shirker,
        Self::Refresher,
        Self::Overstater,
        Self::Rester,
        Self::Shifter,
    ];
}

/// The description of a worker.
#[derive(Clone, Debug)]
pub struct Spec {
    pub owner: String,
    pub strategy: Strategy,
    /// Units per second of all its threads together.
    pub rate: f64,
    pub capacity: u32,
}

/// The description of a campaign.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub units: u64,
    pub workers: Vec<Spec>,
    pub settings: Settings,
    /// True if the correct total is published.
    pub published: bool,
    /// Units per second of the arbiter.
    pub arbiter_rate: f64,
    /// The number of times the coordinator is killed.
    pub restarts: u32,
    /// The work of each unit, relative to the others. If empty, it is 1 for all units.
    pub weights: Vec<f64>,
    /// The number of seconds after which the simulation ends.
    pub most_s: f64,
}

/// The outcome of a campaign.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub state: JobState,
    pub right: bool,
    pub elapsed_s: f64,
    /// The work in units of first counts, of recounts by workers, and of those by the arbiter.
    pub counted: f64,
    pub recounted: f64,
    pub audited: f64,
    pub quarantined: Vec<String>,
    pub assurance: f64,
    pub checked: u64,
    pub events: usize,
    /// The number of wrong first counts by liars, by owner.
    pub lies: BTreeMap<String, u64>,
}

/// Returns the share of a unit that these sub-ranges are; all of it if there are none.
fn share_of(sub_ranges: SubRangeSet) -> f64 {
    if sub_ranges.is_empty() { 1.0 } else { sub_ranges.len() as f64 / f64::from(SUB_RANGES) }
}

/// Returns the correct sums of a unit's sub-ranges, in completions of weight 24.
fn correct_sums(unit: u64) -> Vec<u64> {
    (0..u64::from(SUB_RANGES)).map(|i| 5 + unit % 7 + (unit * 31 + i * 17) % 11).collect()
}

fn tally_of(sums: &[u64]) -> (Tally, Parts) {
    let sum: u64 = sums.iter().sum();
    let mut parts = Parts::default();
    parts.add(24, sum, Residues::of(sum.into()), sum).expect("a small sum");
    (parts.total().expect("agrees"), parts)
}

pub fn right_total(units: u64) -> u128 {
    (0..units)
        .map(|unit| correct_sums(unit).iter().map(|&sum| u128::from(sum)).sum::<u128>())
        .sum::<u128>()
        * 8
}

pub fn job() -> JobHash {
    let board = Problem::empty(Piece::Queen, 8);
    Job::new(board, Scheme::CentreCross, None, 1).expect("a small board").hash()
}

#[derive(Clone, Debug)]
struct LeaseProgress {
    lease: Assignment,
    waiting: Vec<u64>,
    left: u64,
}

#[derive(Debug)]
struct Worker {
    name: String,
    spec: Spec,
    held: BTreeMap<u64, LeaseProgress>,
    /// The unit in progress of each thread: lease, unit, time of completion.
    threads: Vec<Option<(Assignment, u64, f64)>>,
    /// Spot checks that threads make between two sub-ranges of their units: the thread, then lease,
    /// unit and time of completion.
    between: Vec<(usize, (Assignment, u64, f64))>,
    outbox: Vec<(u64, UnitResult)>,
    next_sync_s: f64,
    /// The last time it was notified of reserved checks.
    notified_s: f64,
    counted: u64,
    rare: u64,
    stopped: bool,
    measured: Option<f64>,
    work_s: f64,
    done: f64,
}

/// The last snapshot of the coordinator.
struct Snapshot {
    /// Removed with it.
    _folder: tempfile::TempDir,
    file: Arc<SnapshotFile>,
    /// The number of events before it.
    events: usize,
}

/// A campaign in progress.
pub struct World {
    scenario: Scenario,
    random: fastrand::Rng,
    campaign: Campaign,
    ledger: Vec<CampaignEvent>,
    workers: Vec<Worker>,
    now_s: f64,
    epoch: u64,
    job: JobHash,
    /// The arbiter's task, its duration and its time of completion.
    arbiter: Option<(nqueens::cluster::campaign::ArbiterTask, f64, f64)>,
    counted: f64,
    recounted: f64,
    audited: f64,
    restart_at: Vec<f64>,
    snapshot: Option<Snapshot>,
    /// For draws about snapshots, which must not change any others.
    snapshot_random: fastrand::Rng,
    lies: BTreeMap<String, u64>,
}

impl World {
    pub fn new(scenario: Scenario) -> Self {
        let mut random = fastrand::Rng::with_seed(scenario.seed);
        let ideal_s = scenario.units as f64 / scenario.workers.iter().map(|w| w.rate).sum::<f64>();
        let restart_at = (0..scenario.restarts).map(|_| random.f64() * ideal_s * 1.2).collect();
        let first_liar = scenario.workers.iter().position(|spec| spec.strategy != Strategy::Honest);
        let own_units = (scenario.units / scenario.workers.len() as u64).max(1);
        let workers: Vec<Worker> = scenario
            .workers
            .iter()
            .enumerate()
            .map(|(i, spec)| Worker {
                name: match spec.owner.strip_prefix(GUEST) {
                    Some(network) => guest_name(network, 1),
                    None => format!("worker-{i}"),
                },
                spec: spec.clone(),
                held: BTreeMap::new(),
                threads: vec![None; spec.capacity as usize],
                between: Vec::new(),
                outbox: Vec::new(),
                next_sync_s: random.f64() * 0.05,
                notified_s: 0.0,
                counted: 0,
                rare: match spec.strategy {
                    Strategy::ColludingOnce if Some(i) != first_liar => u64::MAX,
                    _ => random.u64(..own_units),
                },
                stopped: false,
                measured: None,
                work_s: 0.0,
                done: 0.0,
            })
            .collect();
        let key = CampaignKey::from_seed(scenario.seed ^ 0x5eed);
        let snapshot_random = fastrand::Rng::with_seed(scenario.seed ^ 0x5a97);
        let job = job();
        let mut world = Self {
            campaign: Campaign::new(scenario.settings, 1, key),
            random,
            ledger: Vec::new(),
            workers,
            now_s: 0.0,
            epoch: 1,
            job,
            arbiter: None,
            counted: 0.0,
            recounted: 0.0,
            audited: 0.0,
            restart_at,
            snapshot: None,
            snapshot_random,
            lies: BTreeMap::new(),
            scenario,
        };
        world.record(vec![world.submission()]);
        world
    }

    fn submission(&self) -> CampaignEvent {
        CampaignEvent::JobSubmitted {
            job: self.job,
            text: String::new(),
            units: self.scenario.units,
            priority: 0,
            submitter: String::new(),
            at_ms: 1_000_000,
            published: self.scenario.published.then(|| right_total(self.scenario.units)),
        }
    }

    fn now_ms(&self) -> u64 {
        1_000_000 + (self.now_s * 1000.0) as u64
    }

    fn record(&mut self, events: Vec<CampaignEvent>) {
        for event in events {
            self.ledger.push(event.clone());
            self.campaign.apply(&event);
        }
    }

    fn crash(&mut self) {
        self.epoch += 1;
        let key = CampaignKey::from_seed(self.scenario.seed ^ 0x5eed);
        // As from a ledger, which does not return voided results, nor job states before the end.
        self.campaign = Campaign::new(self.scenario.settings, self.epoch, key);
        self.arbiter = None;
        for event in &self.ledger {
            self.campaign.apply(event);
        }
        if let Some(restored) = self.restore() {
            assert_eq!(self.conclusions(&restored), self.conclusions(&self.campaign));
            if self.snapshot_random.bool() {
                self.campaign = restored;
            }
        }
        for worker in &mut self.workers {
            worker.next_sync_s = self.now_s + self.random.f64() * 2.0;
            if worker.spec.strategy == Strategy::SelfAlone {
                worker.next_sync_s = self.now_s;
            }
        }
    }

    /// Writes a snapshot now and then, if the coordinator is going to be killed.
    fn write_snapshot(&mut self) {
        if self.restart_at.is_empty() || self.snapshot_random.u8(..10) > 0 {
            return;
        }
        let (folder, file) = match self.snapshot.take() {
            Some(Snapshot { _folder: folder, file, .. }) => (folder, file),
            None => {
                let folder = tempfile::tempdir().expect("a folder");
                let file = SnapshotFile::create(&folder.path().join("snapshot"));
                (folder, Arc::new(file.expect("a file")))
            }
        };
        file.replace(|writer| self.campaign.write(writer)).expect("there is room");
        self.campaign.continue_with(&file);
        self.snapshot = Some(Snapshot { _folder: folder, file, events: self.ledger.len() });
    }

    /// Returns the campaign of the last snapshot and of the events after it.
    fn restore(&self) -> Option<Campaign> {
        let Snapshot { file, events, .. } = self.snapshot.as_ref()?;
        let key = CampaignKey::from_seed(self.scenario.seed ^ 0x5eed);
        let (settings, epoch) = (self.scenario.settings, self.epoch);
        let restored = Campaign::restore(settings, epoch, key, None, file);
        let mut restored = restored.expect("it can be read");
        for event in &self.ledger[*events..] {
            restored.apply(event);
        }
        Some(restored)
    }

    /// Returns what follows from the events, as text. The times and the checks that are due are not
    /// part of it, since checks are also added without an event.
    fn conclusions(&self, campaign: &Campaign) -> String {
        let job = &self.job;
        let mut progress = campaign.progress(job).expect("a job");
        (progress.checks_due, progress.audits_due) = (0, 0);
        let quarantined: BTreeMap<_, _> = campaign.quarantined().iter().collect();
        let records: BTreeMap<_, _> = campaign.records().into_iter().collect();
        let units = (0..self.scenario.units).map(|unit| UnitId { job: *job, unit });
        let outcomes: Vec<_> = units.map(|unit| campaign.outcome(unit)).collect();
        let cells = campaign.map(job).map(UnitMap::cells);
        let disputes: Vec<UnitId> = campaign.disputes().collect();
        let poisoned = campaign.poisoned(job);
        let shares = campaign.shares(job);
        format!(
            "{progress:?} {quarantined:?} {records:?} {outcomes:?} {cells:?} {disputes:?} \
             {poisoned:?} {shares:?} {}",
            campaign.assurance(job)
        )
    }

    fn unit_work(&self, unit: u64) -> f64 {
        self.scenario.weights.get(unit as usize).copied().unwrap_or(1.0)
    }

    fn is_liar(&self, worker: &str) -> bool {
        self.workers.iter().any(|w| w.name == worker && w.spec.strategy != Strategy::Honest)
    }

    /// Returns the result of worker `which` for a unit.
    fn answer(&mut self, which: usize, lease: &Assignment, unit: u64) -> UnitResult {
        let right = correct_sums(unit);
        let worker = &self.workers[which];
        let strategy = worker.spec.strategy;
        let mut sums = right.clone();
        let lies = |random: &mut fastrand::Rng| match strategy {
            Strategy::Constant => true,
            Strategy::Rare | Strategy::ColludingOnce => worker.counted == worker.rare,
            Strategy::Late => worker.counted >= 20 && random.u8(..10) == 0,
            Strategy::Colluding | Strategy::ColludingPolling | Strategy::Shirker => {
                random.u8(..10) == 0
            }
            _ => false,
        };
        let first = self.campaign.outcome(UnitId { job: self.job, unit });
        let by_liar = first.is_some_and(|(source, _)| self.is_liar(&source.worker));
        if !lease.mirrored {
            if lies(&mut self.random) {
                let at = self.random.usize(..sums.len());
                sums[at] += 1;
            }
            if strategy == Strategy::Shifter {
                sums[0] += 1;
                sums[1] -= 1;
            }
            if strategy == Strategy::Lazy || strategy == Strategy::SelfAlone {
                sums.iter_mut().for_each(|sum| *sum = 1 + self.random.u64(..20));
            }
        } else {
            let colludes = matches!(
                strategy,
                Strategy::Colluding | Strategy::ColludingPolling | Strategy::ColludingOnce
            );
            if colludes && by_liar {
                // It knows what its accomplice reported.
                if let Some(claimed) = self.claimed(unit) {
                    sums = claimed;
                }
            }
            if strategy == Strategy::FalseAlarm || strategy == Strategy::Disputes {
                sums.iter_mut().for_each(|sum| *sum += 1);
            }
        }
        let worker = &mut self.workers[which];
        worker.counted += u64::from(!lease.mirrored);
        let asked: Vec<u64> = if lease.sub_ranges.is_empty() {
            sums
        } else {
            lease.sub_ranges.numbers().map(|number| sums[number as usize]).collect()
        };
        let (tally, parts) = tally_of(&asked);
        let sub_sums = asked.iter().map(|&sum| 24 * u128::from(sum)).collect();
        UnitResult {
            unit: UnitId { job: self.job, unit },
            attempt: lease.attempt,
            grant: lease.grant.clone(),
            tally,
            parts,
            sub_sums,
            source: source(&worker.name, &worker.spec.owner),
            elapsed_s: if strategy == Strategy::Overstater { 1e12 } else { 1.0 },
            signature: None,
        }
    }

    /// Returns the sub-range sums of the unit's first result, as its accomplices know them.
    fn claimed(&self, unit: u64) -> Option<Vec<u64>> {
        let done = self.ledger.iter().rev().find_map(|event| match event {
            CampaignEvent::UnitDone { unit: u, tally, sub_sums, .. } if u.unit == unit => {
                Some((tally, sub_sums))
            }
            _ => None,
        })?;
        let (tally, sums) = done;
        if !sums.is_empty() {
            return Some(sums.iter().map(|sum| (sum / 24) as u64).collect());
        }
        let mut right = correct_sums(unit);
        let whole: u64 = right.iter().sum();
        let claimed = (tally.thirds() / 24) as u64;
        right[0] = (right[0] + claimed).saturating_sub(whole);
        Some(right)
    }

    fn sync_request(&self, which: usize) -> SyncRequest {
        let worker = &self.workers[which];
        let held = worker.held.values().map(|entry| HeldLease {
            lease: entry.lease.clone(),
            left: entry.left,
            unstarted: entry.waiting.len() as u64,
        });
        SyncRequest {
            worker: worker.name.clone(),
            owner: worker.spec.owner.clone(),
            address: None,
            boot: 1,
            capacity: worker.spec.capacity,
            kernels: vec!["fast".into()],
            devices: vec!["cpu".into()],
            units_per_s: worker.measured.map(|rate| (self.job, rate)).into_iter().collect(),
            held: held.collect(),
            draining: false,
        }
    }

    fn sync(&mut self, which: usize) {
        let mut request = self.sync_request(which);
        match self.workers[which].spec.strategy {
            Strategy::ForgedLeases => {
                request.units_per_s = vec![(self.job, 1e18)];
                for attempt in 0..20 {
                    let units = 0..self.scenario.units;
                    let lease = Assignment {
                        attempt: (self.epoch << 20) + attempt,
                        job: self.job,
                        units: units.clone(),
                        mirrored: attempt % 2 == 0,
                        not_kernel: None,
                        sub_ranges: SubRangeSet::default(),
                        grant: vec![7; 37],
                    };
                    if !self.workers[which].held.contains_key(&lease.attempt) {
                        request.held.push(HeldLease {
                            lease,
                            left: units.end,
                            unstarted: units.end,
                        });
                    }
                }
            }
            Strategy::Rester => request.capacity = 0,
            Strategy::Refresher => {
                request.held.clear();
                self.workers[which].held.clear();
            }
            Strategy::SelfAlone => {
                let invented: Vec<UnitResult> = (0..self.scenario.units.min(64))
                    .map(|unit| {
                        let lease = Assignment {
                            attempt: (self.epoch << 20) + 1 + unit,
                            job: self.job,
                            units: 0..self.scenario.units,
                            mirrored: unit % 3 == 0,
                            not_kernel: None,
                            sub_ranges: SubRangeSet::default(),
                            grant: Vec::new(),
                        };
                        let mut result = self.answer(which, &lease, unit);
                        result.source.kernel = format!("kernel-{unit}");
                        result
                    })
                    .collect();
                for result in &invented {
                    let _ = self.submit_result(result);
                }
            }
            Strategy::Disputes => {
                for _ in 0..50 {
                    let unit = self.random.u64(..self.scenario.units);
                    let attempt = self.workers[which].held.keys().next().copied().unwrap_or(1);
                    let (tally, parts) = tally_of(&[self.random.u64(1..1000)]);
                    let (name, owner) =
                        (&self.workers[which].name, &self.workers[which].spec.owner);
                    let result = UnitResult {
                        unit: UnitId { job: self.job, unit },
                        attempt,
                        grant: Vec::new(),
                        tally,
                        parts,
                        sub_sums: Vec::new(),
                        source: source(name, owner),
                        elapsed_s: 1.0,
                        signature: None,
                    };
                    self.submit_result(&result);
                }
            }
            _ => {}
        }
        let response = self.campaign.sync(&request, self.now_ms());
        let worker = &mut self.workers[which];
        for attempt in &response.cancel {
            worker.held.remove(attempt);
        }
        for lease in response.desired {
            let units = lease.units.clone();
            match worker.held.get_mut(&lease.attempt) {
                Some(entry) => {
                    let dropped = entry.waiting.len();
                    entry.waiting.retain(|unit| units.contains(unit));
                    entry.left -= (dropped - entry.waiting.len()) as u64;
                    entry.lease.units = units;
                }
                None => {
                    let waiting: Vec<u64> = units.clone().rev().collect();
                    let left = waiting.len() as u64;
                    worker.held.insert(lease.attempt, LeaseProgress { lease, waiting, left });
                }
            }
        }
        let polls = worker.spec.strategy == Strategy::ColludingPolling;
        let idle = worker.held.is_empty();
        let wait_s = match (polls, idle) {
            (true, _) => 0.05,
            _ if worker.spec.strategy == Strategy::Refresher => 0.3,
            // A long poll, which the simulation polls at intervals.
            (false, true) => 0.2,
            (false, false) => self.scenario.settings.sync_ms as f64 / 1000.0,
        };
        worker.next_sync_s = self.now_s + wait_s * (0.8 + 0.4 * self.random.f64());
    }

    fn submit_result(&mut self, result: &UnitResult) -> Option<ResultVerdict> {
        if !self.campaign.has_synced(&result.source.worker) {
            return None;
        }
        let validation = self.campaign.validate(result, None);
        if self.is_liar(&result.source.worker) {
            let is_lie = |event: &CampaignEvent| match event {
                CampaignEvent::UnitDone { unit, tally, .. } => {
                    *tally != tally_of(&correct_sums(unit.unit)).0
                }
                _ => false,
            };
            let lies = validation.events.iter().filter(|event| is_lie(event)).count() as u64;
            if lies > 0 {
                *self.lies.entry(result.source.owner.clone()).or_default() += lies;
            }
        }
        self.record(validation.events);
        Some(validation.verdict)
    }

    /// Starts the next waiting units on idle threads, checks first.
    fn begin(&mut self, which: usize) {
        let now_s = self.now_s;
        let strategy = self.workers[which].spec.strategy;
        let has_counted = self.workers[which].counted > 0;
        if strategy == Strategy::Refresher || strategy == Strategy::Overstater && has_counted {
            return;
        }
        for thread in 0..self.workers[which].threads.len() {
            if self.workers[which].threads[thread].is_some() {
                continue;
            }
            let Some((lease, unit)) = self.next_waiting(which, false) else { break };
            let took = self.takes_s(which, &lease, unit);
            let mirrored = lease.mirrored;
            let share = share_of(lease.sub_ranges);
            self.workers[which].threads[thread] = Some((lease, unit, now_s + took));
            if mirrored {
                self.recounted += share * self.unit_work(unit);
            } else {
                self.counted += self.unit_work(unit);
                let worker = &mut self.workers[which];
                worker.work_s += took;
                worker.done += 1.0;
                let capacity = f64::from(worker.spec.capacity);
                worker.measured = Some(capacity * worker.done / worker.work_s);
            }
        }
        // No thread is idle: a busy one makes a spot check at the end of a sub-range.
        let at_units: Vec<usize> = (0..self.workers[which].threads.len())
            .filter(|&thread| {
                let at = &self.workers[which].threads[thread];
                at.as_ref().is_some_and(|(lease, ..)| lease.sub_ranges.is_empty())
            })
            .collect();
        while !at_units.is_empty()
            && let Some((lease, unit)) = self.next_waiting(which, true)
        {
            let took = self.takes_s(which, &lease, unit);
            self.recounted += share_of(lease.sub_ranges) * self.unit_work(unit);
            let thread = at_units[self.random.usize(..at_units.len())];
            let sub_range_s = took / f64::from(lease.sub_ranges.len() as u32);
            let rest_s = self.random.f64() * sub_range_s;
            let worker = &mut self.workers[which];
            if let Some((_, _, at_s)) = &mut worker.threads[thread] {
                *at_s += took;
            }
            let earlier = worker.between.iter().filter(|(by, _)| *by == thread);
            let begins_s =
                earlier.map(|(_, (_, _, at_s))| *at_s + sub_range_s).fold(now_s + rest_s, f64::max);
            worker.between.push((thread, (lease, unit, begins_s + took)));
        }
    }

    /// Takes the next waiting unit, of a check if there is one. With `spot`, only of a spot check.
    fn next_waiting(&mut self, which: usize, spot: bool) -> Option<(Assignment, u64)> {
        let worker = &mut self.workers[which];
        let strategy = worker.spec.strategy;
        let next = worker
            .held
            .values_mut()
            .filter(|entry| !entry.waiting.is_empty())
            .filter(|entry| !spot || !entry.lease.sub_ranges.is_empty())
            .filter(|entry| !(strategy == Strategy::Shirker && entry.lease.mirrored))
            .min_by_key(|entry| (!entry.lease.mirrored, entry.lease.attempt))?;
        let unit = next.waiting.pop()?;
        Some((next.lease.clone(), unit))
    }

    /// Returns the time that a thread of a worker takes for a unit of a lease.
    fn takes_s(&self, which: usize, lease: &Assignment, unit: u64) -> f64 {
        let spec = &self.workers[which].spec;
        let took = share_of(lease.sub_ranges) * self.unit_work(unit) * f64::from(spec.capacity)
            / spec.rate;
        // A worker that does not count needs hardly any time.
        if spec.strategy == Strategy::Lazy { took / 100.0 } else { took }
    }

    /// Submits everything that is complete by now.
    fn finish(&mut self, which: usize) {
        let now_s = self.now_s;
        for thread in 0..self.workers[which].threads.len() {
            let is_done = |&(_, _, at_s): &(Assignment, u64, f64)| at_s <= now_s;
            let Some((lease, unit, _)) =
                self.workers[which].threads[thread].take_if(|at| is_done(at))
            else {
                continue;
            };
            // A unit whose lease was cancelled meanwhile is still submitted.
            let result = self.answer(which, &lease, unit);
            self.workers[which].outbox.push((lease.attempt, result));
        }
        let is_done = |(_, (_, _, at_s)): &mut (usize, (Assignment, u64, f64))| *at_s <= now_s;
        let done: Vec<_> = self.workers[which].between.extract_if(.., is_done).collect();
        for (_, (lease, unit, _)) in done {
            let result = self.answer(which, &lease, unit);
            self.workers[which].outbox.push((lease.attempt, result));
        }
        let outbox = std::mem::take(&mut self.workers[which].outbox);
        for (attempt, result) in outbox {
            match self.submit_result(&result) {
                None => self.workers[which].outbox.push((attempt, result)),
                Some(verdict) => {
                    let worker = &mut self.workers[which];
                    if verdict == ResultVerdict::Quarantined || verdict == ResultVerdict::Refused {
                        worker.stopped = true;
                    }
                    if let Some(entry) = worker.held.get_mut(&attempt) {
                        entry.left -= 1;
                        if entry.left == 0 {
                            worker.held.remove(&attempt);
                            // It will soon be idle.
                            worker.next_sync_s = worker.next_sync_s.min(now_s);
                        }
                    }
                }
            }
        }
        let worker = &mut self.workers[which];
        let waiting: usize = worker.held.values().map(|entry| entry.waiting.len()).sum();
        if waiting < worker.spec.capacity as usize && !worker.held.is_empty() {
            worker.next_sync_s = worker.next_sync_s.min(now_s + 0.05);
        }
    }

    fn run_arbiter(&mut self) {
        if let Some((task, elapsed_s, at_s)) = self.arbiter
            && at_s <= self.now_s
        {
            self.arbiter = None;
            let sums = correct_sums(task.unit.unit);
            let asked: Vec<u64> = if task.sub_ranges.is_empty() {
                sums
            } else {
                task.sub_ranges.numbers().map(|number| sums[number as usize]).collect()
            };
            let (tally, _) = tally_of(&asked);
            let sub_sums = asked.iter().map(|&sum| 24 * u128::from(sum)).collect();
            let ruling = Ruling { task, tally, sub_sums, elapsed_s };
            let events = self.campaign.ruling_events(&ruling, &source("(arbiter)", COORDINATOR));
            self.record(events);
        }
        if self.arbiter.is_none()
            && let Some(task) = self.campaign.next_for_arbiter(self.now_ms(), |_| false)
        {
            let share = share_of(task.sub_ranges);
            let work =
                share * self.unit_work(task.unit.unit) * if task.dispute { 2.0 } else { 1.0 };
            self.audited += work;
            let took = work / self.scenario.arbiter_rate;
            self.arbiter = Some((task, took, self.now_s + took));
        }
    }

    fn next_event_s(&self, tick_s: f64) -> f64 {
        let at_work = || self.workers.iter().filter(|w| !w.stopped);
        let threads = at_work().flat_map(|w| {
            let between = w.between.iter().map(|(_, at)| at);
            w.threads.iter().flatten().chain(between).map(|(_, _, at)| *at)
        });
        let syncs = at_work().map(|w| w.next_sync_s);
        let arbiter = self.arbiter.map(|(_, _, at)| at);
        let next = threads.chain(syncs).chain(arbiter).fold(tick_s, f64::min);
        next.max(self.now_s + 1e-4)
    }

    /// Runs until the job is finished or the time limit is reached.
    pub fn run(&mut self) -> Outcome {
        let mut tick_s = 0.5;
        while self.now_s < self.scenario.most_s {
            if self.campaign.state(&self.job) == Some(JobState::Finished) {
                break;
            }
            self.now_s = self.next_event_s(tick_s);
            if let Some(at) = self.restart_at.iter().position(|&at| at <= self.now_s) {
                self.restart_at.swap_remove(at);
                self.crash();
            }
            for which in 0..self.workers.len() {
                if self.workers[which].stopped {
                    continue;
                }
                self.finish(which);
                if self.workers[which].next_sync_s <= self.now_s {
                    self.sync(which);
                }
                self.begin(which);
            }
            // These are notified at once.
            let newly_kept = self.campaign.take_newly_reserved();
            let now_s = self.now_s;
            for worker in self.workers.iter_mut().filter(|worker| newly_kept.contains(&worker.name))
            {
                // At most once a second.
                worker.notified_s = (now_s + 0.05).max(worker.notified_s + 1.0);
                worker.next_sync_s = worker.next_sync_s.min(worker.notified_s);
            }
            self.run_arbiter();
            // The coordinator does the same after every message.
            let events = self.campaign.conclude();
            self.record(events);
            if self.now_s >= tick_s {
                tick_s = self.now_s + 0.5;
                let events = self.campaign.tick(self.now_ms());
                self.record(events);
                self.write_snapshot();
            }
        }
        self.outcome()
    }

    pub fn campaign(&self) -> &Campaign {
        &self.campaign
    }

    /// Describes the state of a campaign that does not finish.
    pub fn describe(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("{:?}\n", self.campaign.progress(&self.job));
        for worker in &self.workers {
            let held: Vec<_> = worker
                .held
                .values()
                .map(|h| {
                    (
                        h.lease.attempt,
                        h.lease.units.clone(),
                        h.lease.mirrored,
                        h.left,
                        h.waiting.len(),
                    )
                })
                .collect();
            let _ = writeln!(
                text,
                "{} {:?} stopped {} threads {:?} outbox {} held {held:?}",
                worker.name,
                worker.spec.strategy,
                worker.stopped,
                worker
                    .threads
                    .iter()
                    .flatten()
                    .map(|(l, u, s)| (l.attempt, u, s))
                    .collect::<Vec<_>>(),
                worker.outbox.len()
            );
        }
        text
    }

    fn outcome(&self) -> Outcome {
        let progress = self.campaign.progress(&self.job).expect("a job");
        let mut quarantined: Vec<String> = self.campaign.quarantined().keys().cloned().collect();
        quarantined.sort();
        Outcome {
            state: progress.state,
            right: progress.done == self.scenario.units
                && progress.total.solutions() == Ok(right_total(self.scenario.units)),
            elapsed_s: self.now_s,
            counted: self.counted,
            recounted: self.recounted,
            audited: self.audited,
            quarantined,
            assurance: self.campaign.assurance(&self.job),
            checked: progress.checked,
            events: self.ledger.len(),
            lies: self.lies.clone(),
        }
    }

    pub fn worker_strategy(&self, name: &str) -> Strategy {
        self.workers.iter().find(|w| w.name == name).map_or(Strategy::Honest, |w| w.spec.strategy)
    }
}

pub fn source(worker: &str, owner: &str) -> Source {
    Source {
        worker: worker.into(),
        owner: owner.into(),
        kernel: "fast".into(),
        device: "cpu".into(),
        build: "1".into(),
    }
}

/// A group of owners in one campaign.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// The number of honest owners, each with one worker.
    pub honest: usize,
    /// The number of lying owners.
    pub liars: usize,
    /// The number of workers of each lying owner.
    pub workers_of_liar: usize,
    /// The share of the total rate that all liars have.
    pub share: f64,
}

impl Crowd {
    /// Returns the workers in random order. The rates of honest workers differ by up to a factor of
    /// four.
    pub fn workers(self, random: &mut fastrand::Rng, strategy: Strategy) -> Vec<Spec> {
        let mut specs = Vec::new();
        for i in 0..self.honest {
            let rate = 0.5 + 1.5 * random.f64();
            specs.push(Spec {
                owner: format!("honest-{i}"),
                strategy: Strategy::Honest,
                rate,
                capacity: 2,
            });
        }
        let honest: f64 = specs.iter().map(|spec| spec.rate).sum();
        let all = if self.honest == 0 { 2.0 } else { honest * self.share / (1.0 - self.share) };
        let rate = all / (self.liars * self.workers_of_liar).max(1) as f64;
        for i in 0..self.liars {
            let liar = Spec { owner: format!("liar-{i}"), strategy, rate, capacity: 2 };
            specs.extend(std::iter::repeat_n(liar, self.workers_of_liar));
        }
        random.shuffle(&mut specs);
        specs
    }
}

/// Returns guests, each from a network of its own, with this rate in all.
pub fn guests(count: usize, strategy: Strategy, rate: f64) -> impl Iterator<Item = Spec> {
    (0..count).map(move |i| Spec {
        owner: format!("{GUEST}{strategy:?}{i}"),
        strategy,
        rate: rate / count as f64,
        capacity: 1,
    })
}

/// Calls a function with each seed, on all cores. Returns the results in the order of the seeds.
pub fn of_each_seed<T: Send>(seeds: &[u64], f: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (next, f) = (&next, &f);
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(seeds.len()))
            .map(|_| {
                scope.spawn(move || {
                    let mut own = Vec::new();
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(&seed) = seeds.get(at) else { break own };
                        own.push((at, f(seed)));
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a campaign panicked")).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
