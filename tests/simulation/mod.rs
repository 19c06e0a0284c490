//! Simulated campaigns: time, network, disk and workers are plain data, so that a seed replays everything.
//!
//! Workers count in simulated time. What they do with leases, results and checks is their [`Strategy`]; the coordinator
//! is the product's own [`Campaign`], with a ledger (events) that survives its crashes and an arbiter that takes time.

#![allow(dead_code, unreachable_pub)]

pub use crate::support::seeds;

use std::collections::BTreeMap;

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    Assignment, COORDINATOR, Campaign, CampaignEvent, CampaignKey, HeldLease, JobState,
    ResultVerdict, Ruling, Settings, Source, SubRangeSet, SyncRequest, UnitId, UnitResult,
};
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Parts, Residues, Tally};

/// Sub-ranges of each simulated unit.
pub const SUB_RANGES: u32 = 32;

/// How a worker of a liar lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    Honest,
    /// Every result has one too many, in one sub-range.
    Constant,
    /// Exactly one lie, in a unit chosen at random.
    Rare,
    /// Honest for its first 20 units, then one lie in ten.
    Late,
    /// Counts nothing: every sub-range is guessed.
    Lazy,
    /// One unit in ten is a lie, and whatever it is asked to check it confirms if a liar counted it.
    Colluding,
    /// As colluding, and it syncs ten times as often.
    ColludingPolling,
    /// Of all liars one lies, once; the others confirm what it said.
    ColludingOnce,
    /// After each restart of the coordinator it hands in results for everything at once, under grants that it invents,
    /// and claims to hold all units; it invents kernels.
    SelfAlone,
    /// Claims leases that it never had, with and without capacity, and a speed beyond all measure.
    ForgedLeases,
    /// Contradicts every result that it can name, as often as it can.
    Disputes,
    /// Honest when it counts; calls honest results wrong when it is asked to check.
    FalseAlarm,
    /// Never makes a check that it is asked for, and lies in one unit of ten.
    Shirker,
    /// Gives back all that it has at each sync, takes it again, and hands nothing in.
    Refresher,
    /// Says that its first unit took it thousands of years, and does nothing more.
    Overstater,
    /// Syncs and asks for nothing.
    Rester,
    /// Right sums of units, wrong ones of sub-ranges.
    Shifter,
}

impl Strategy {
    /// What a single owner can do.
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

/// A worker before it starts.
#[derive(Clone, Debug)]
pub struct Spec {
    pub owner: String,
    pub strategy: Strategy,
    /// Units a second of all its threads together.
    pub rate: f64,
    pub capacity: u32,
}

/// A campaign before it starts.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub units: u64,
    pub workers: Vec<Spec>,
    pub settings: Settings,
    /// Whether the right total is published.
    pub published: bool,
    /// Units a second of the arbiter.
    pub arbiter_rate: f64,
    /// How often the coordinator is killed.
    pub restarts: u32,
    /// The work of each unit, relative to the others; 1 for all if empty.
    pub weights: Vec<f64>,
    /// Seconds after which the simulation gives up.
    pub most_s: f64,
}

/// What became of a campaign.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub state: JobState,
    pub right: bool,
    pub elapsed_s: f64,
    /// Units of work of first counts, and of recounts by workers and by the arbiter.
    pub counted: f64,
    pub recounted: f64,
    pub audited: f64,
    pub quarantined: Vec<String>,
    pub assurance: f64,
    pub checked: u64,
    pub events: usize,
    /// Units that a liar counted first, and wrongly, by owner.
    pub lies: BTreeMap<String, u64>,
}

/// What share of a unit is asked for.
fn share_of(sub_ranges: SubRangeSet) -> f64 {
    if sub_ranges.is_empty() { 1.0 } else { sub_ranges.len() as f64 / f64::from(SUB_RANGES) }
}

/// The right sums of a unit's sub-ranges, in completions of weight 24.
fn truth(unit: u64) -> Vec<u64> {
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
        .map(|unit| truth(unit).iter().map(|&sum| u128::from(sum)).sum::<u128>())
        .sum::<u128>()
        * 8
}

pub fn job() -> JobHash {
    let board = Problem::empty(Piece::Queen, 8);
    Job::new(board, Scheme::CentreCross, None, 1).expect("a small board").hash()
}

#[derive(Clone, Debug)]
struct InHand {
    lease: Assignment,
    waiting: Vec<u64>,
    left: u64,
}

#[derive(Debug)]
struct Worker {
    name: String,
    spec: Spec,
    held: BTreeMap<u64, InHand>,
    /// What each thread is at: lease, unit, when it will be done.
    threads: Vec<Option<(Assignment, u64, f64)>>,
    /// Spot checks that threads make between two sub-ranges of the unit that they are at: the same of each, after the
    /// thread.
    between: Vec<(usize, (Assignment, u64, f64))>,
    outbox: Vec<(u64, UnitResult)>,
    next_sync_s: f64,
    /// When it was told last of checks that are kept for it.
    told_s: f64,
    counted: u64,
    rare: u64,
    stopped: bool,
    measured: Option<f64>,
    work_s: f64,
    done: f64,
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
    /// What the arbiter is at, for how long, and until when.
    arbiter: Option<(nqueens::cluster::campaign::ArbiterTask, f64, f64)>,
    counted: f64,
    recounted: f64,
    audited: f64,
    restart_at: Vec<f64>,
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
                name: format!("worker-{i}"),
                spec: spec.clone(),
                held: BTreeMap::new(),
                threads: vec![None; spec.capacity as usize],
                between: Vec::new(),
                outbox: Vec::new(),
                next_sync_s: random.f64() * 0.05,
                told_s: 0.0,
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
            lies: BTreeMap::new(),
            scenario,
        };
        world.record(vec![world.submission()]);
        world
    }

    fn submission(&self) -> CampaignEvent {
        CampaignEvent::JobSubmitted {
            job: self.job,
            units: self.scenario.units,
            priority: 0,
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
        // As from a ledger: what was taken back is not read again, nor are job states until the end.
        self.campaign = Campaign::new(self.scenario.settings, self.epoch, key);
        self.arbiter = None;
        for event in &self.ledger {
            self.campaign.apply(event);
        }
        for worker in &mut self.workers {
            worker.next_sync_s = self.now_s + self.random.f64() * 2.0;
            if worker.spec.strategy == Strategy::SelfAlone {
                worker.next_sync_s = self.now_s;
            }
        }
    }

    fn unit_work(&self, unit: u64) -> f64 {
        self.scenario.weights.get(unit as usize).copied().unwrap_or(1.0)
    }

    fn is_liar(&self, worker: &str) -> bool {
        self.workers.iter().any(|w| w.name == worker && w.spec.strategy != Strategy::Honest)
    }

    /// What worker `which` says of a unit.
    fn answer(&mut self, which: usize, lease: &Assignment, unit: u64) -> UnitResult {
        let right = truth(unit);
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
                // It is told by its friend what that has said.
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
        }
    }

    /// The sums that the unit's first result came with, as friends know them.
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
        let mut right = truth(unit);
        let whole: u64 = right.iter().sum();
        let claimed = (tally.thirds() / 24) as u64;
        right[0] = (right[0] + claimed).saturating_sub(whole);
        Some(right)
    }

    fn sync_request(&self, which: usize) -> SyncRequest {
        let worker = &self.workers[which];
        let held = worker.held.values().map(|in_hand| HeldLease {
            lease: in_hand.lease.clone(),
            left: in_hand.left,
            unstarted: in_hand.waiting.len() as u64,
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
                    let _ = self.hand_in(result);
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
                    };
                    self.hand_in(&result);
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
                Some(in_hand) => {
                    let dropped = in_hand.waiting.len();
                    in_hand.waiting.retain(|unit| units.contains(unit));
                    in_hand.left -= (dropped - in_hand.waiting.len()) as u64;
                    in_hand.lease.units = units;
                }
                None => {
                    let waiting: Vec<u64> = units.clone().rev().collect();
                    let left = waiting.len() as u64;
                    worker.held.insert(lease.attempt, InHand { lease, waiting, left });
                }
            }
        }
        let polls = worker.spec.strategy == Strategy::ColludingPolling;
        let idle = worker.held.is_empty();
        let wait_s = match (polls, idle) {
            (true, _) => 0.05,
            _ if worker.spec.strategy == Strategy::Refresher => 0.3,
            // A long poll, looked at now and then.
            (false, true) => 0.2,
            (false, false) => self.scenario.settings.sync_ms as f64 / 1000.0,
        };
        worker.next_sync_s = self.now_s + wait_s * (0.8 + 0.4 * self.random.f64());
    }

    fn hand_in(&mut self, result: &UnitResult) -> Option<ResultVerdict> {
        if !self.campaign.has_synced(&result.source.worker) {
            return None;
        }
        let validation = self.campaign.validate(result, None);
        if self.is_liar(&result.source.worker) {
            let is_lie = |event: &CampaignEvent| match event {
                CampaignEvent::UnitDone { unit, tally, .. } => {
                    *tally != tally_of(&truth(unit.unit)).0
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

    /// Threads begin what waits: checks first.
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
        // No thread is idle: one that is at a unit interrupts it, at the end of a sub-range, for a spot check.
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

    /// Takes the next unit that waits, of a check if there is one, or only of a spot check.
    fn next_waiting(&mut self, which: usize, spot: bool) -> Option<(Assignment, u64)> {
        let worker = &mut self.workers[which];
        let strategy = worker.spec.strategy;
        let next = worker
            .held
            .values_mut()
            .filter(|in_hand| !in_hand.waiting.is_empty())
            .filter(|in_hand| !spot || !in_hand.lease.sub_ranges.is_empty())
            .filter(|in_hand| !(strategy == Strategy::Shirker && in_hand.lease.mirrored))
            .min_by_key(|in_hand| (!in_hand.lease.mirrored, in_hand.lease.attempt))?;
        let unit = next.waiting.pop()?;
        Some((next.lease.clone(), unit))
    }

    /// How long a thread of a worker takes for a unit of a lease.
    fn takes_s(&self, which: usize, lease: &Assignment, unit: u64) -> f64 {
        let spec = &self.workers[which].spec;
        let took = share_of(lease.sub_ranges) * self.unit_work(unit) * f64::from(spec.capacity)
            / spec.rate;
        // Who counts nothing needs no time.
        if spec.strategy == Strategy::Lazy { took / 100.0 } else { took }
    }

    /// What is done by now is handed in.
    fn finish(&mut self, which: usize) {
        let now_s = self.now_s;
        for thread in 0..self.workers[which].threads.len() {
            let is_done = |&(_, _, at_s): &(Assignment, u64, f64)| at_s <= now_s;
            let Some((lease, unit, _)) =
                self.workers[which].threads[thread].take_if(|at| is_done(at))
            else {
                continue;
            };
            // A lease that was cancelled meanwhile does not undo what was counted.
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
            match self.hand_in(&result) {
                None => self.workers[which].outbox.push((attempt, result)),
                Some(verdict) => {
                    let worker = &mut self.workers[which];
                    if verdict == ResultVerdict::Quarantined || verdict == ResultVerdict::Refused {
                        worker.stopped = true;
                    }
                    if let Some(in_hand) = worker.held.get_mut(&attempt) {
                        in_hand.left -= 1;
                        if in_hand.left == 0 {
                            worker.held.remove(&attempt);
                            // It will soon have nothing to do.
                            worker.next_sync_s = worker.next_sync_s.min(now_s);
                        }
                    }
                }
            }
        }
        let worker = &mut self.workers[which];
        let waiting: usize = worker.held.values().map(|in_hand| in_hand.waiting.len()).sum();
        if waiting < worker.spec.capacity as usize && !worker.held.is_empty() {
            worker.next_sync_s = worker.next_sync_s.min(now_s + 0.05);
        }
    }

    fn judge(&mut self) {
        if let Some((task, elapsed_s, at_s)) = self.arbiter
            && at_s <= self.now_s
        {
            self.arbiter = None;
            let sums = truth(task.unit.unit);
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

    /// Runs until the job is finished, or too long.
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
            // Those are told at once.
            let newly_kept = self.campaign.take_newly_reserved();
            let now_s = self.now_s;
            for worker in self.workers.iter_mut().filter(|worker| newly_kept.contains(&worker.name))
            {
                // Once a second at most.
                worker.told_s = (now_s + 0.05).max(worker.told_s + 1.0);
                worker.next_sync_s = worker.next_sync_s.min(worker.told_s);
            }
            self.judge();
            // As the coordinator does after whatever it was told.
            let events = self.campaign.conclude();
            self.record(events);
            if self.now_s >= tick_s {
                tick_s = self.now_s + 0.5;
                let events = self.campaign.tick(self.now_ms());
                self.record(events);
            }
        }
        self.outcome()
    }

    pub fn campaign(&self) -> &Campaign {
        &self.campaign
    }

    /// What a campaign that does not end is at.
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

/// Owners that count together.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Honest owners, each with one worker.
    pub honest: usize,
    /// Owners that lie.
    pub liars: usize,
    /// Workers of each of those.
    pub workers_of_liar: usize,
    /// What share of the capacity all liars have.
    pub share: f64,
}

impl Crowd {
    /// Returns the workers, in random order; honest ones differ in rate by up to four.
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

/// Calls a function with each seed, on all cores; returns what it returned, in the order of the seeds.
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
