//! Simulated campaigns: workers that crash, lie and come back late, a network that drops, delays, doubles and reorders
//! every message, a coordinator that is killed between any two steps, clocks that jump. The total is always right.
//!
//! A failing case prints its seed; `NQUEENS_SEED=n cargo test --test campaigns_never_lose_or_double_count` replays it.

use std::collections::{BTreeMap, HashMap};

use nqueens::board::{Piece, Problem};
use nqueens::campaign::{
    Assignment, Campaign, Completion, Event, Held, JobState, Settings, Source, SyncRequest, SyncResponse,
    UnitId, Verdict,
};
use nqueens::preplacement::{Job, JobHash, Scheme};
use nqueens::tally::{Parts, Residues, Tally};

/// How a worker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Honesty {
    Honest,
    /// Always one too many.
    PlusOne,
    /// One in ten is wrong.
    OneInTen,
    Zeros,
    /// The right count of another unit.
    Replay,
    /// The right count with wrong residues.
    WrongResidues,
    /// A right sum with parts that are not its own.
    WrongParts,
    /// Right for its first 25 units, then one in five is wrong.
    Sleeper,
}

const LIARS: [Honesty; 7] = [
    Honesty::PlusOne,
    Honesty::OneInTen,
    Honesty::Zeros,
    Honesty::Replay,
    Honesty::WrongResidues,
    Honesty::WrongParts,
    Honesty::Sleeper,
];

/// A result with residues that need not be its own.
fn parts_of(solutions: u64, shadow: u64) -> Parts {
    let mut parts = Parts::default();
    parts.add(24, solutions / 2, Residues::of((solutions / 2).into()), solutions + 1).expect("a small sum");
    let (rest, shadow) = (solutions - solutions / 2, shadow - solutions / 2);
    parts.add(12, 2 * rest, Residues::of((2 * shadow).into()), 0u64).expect("a small sum");
    parts
}

/// What parts add up to, whether or not that agrees with their residues.
fn sum(parts: &Parts) -> Tally {
    let mut tally = Tally::default();
    for part in parts.iter() {
        let nodes = u64::try_from(part.nodes).expect("few");
        tally.add(part.weight, part.completions, part.residues, nodes).expect("a small sum");
    }
    tally
}

fn tally_of(solutions: u64) -> Tally {
    parts_of(solutions, solutions).total().expect("agrees with its residues")
}

/// The right count of a unit: all different.
fn truth(unit: u64) -> u64 {
    1000 + unit * unit * 7 + unit
}

struct Worker {
    name: String,
    honesty: Honesty,
    boot: u64,
    /// Leases in hand, with the units of them that are not counted.
    held: BTreeMap<u64, (Assignment, Vec<u64>)>,
    /// Results on the worker's disk, until they are acknowledged.
    outbox: Vec<Completion>,
    crashes: bool,
    /// Units that it counted.
    counted: u32,
}

impl Worker {
    fn count(&mut self, job: JobHash, attempt: u64, unit: u64, random: &mut fastrand::Rng) -> Completion {
        let right = truth(unit);
        self.counted += 1;
        let parts = match self.honesty {
            Honesty::PlusOne => parts_of(right + 1, right + 1),
            Honesty::OneInTen if random.u8(..10) == 0 => parts_of(right - 1, right - 1),
            Honesty::Sleeper if self.counted > 25 && random.u8(..5) == 0 => parts_of(right + 2, right + 2),
            Honesty::Zeros => parts_of(0, 0),
            Honesty::Replay => parts_of(truth(unit + 1), truth(unit + 1)),
            Honesty::WrongResidues => parts_of(right, right + 1),
            Honesty::WrongParts => parts_of(right - 1, right - 1),
            Honesty::Honest | Honesty::OneInTen | Honesty::Sleeper => parts_of(right, right),
        };
        // A sum that its own residues confirm, and that is not the sum of its parts.
        let tally = if self.honesty == Honesty::WrongParts { tally_of(right) } else { sum(&parts) };
        let (unit, source) = (UnitId { job, unit }, source(&self.name));
        Completion { unit, attempt, tally, parts, source, elapsed_s: 1.0 }
    }

    fn sync(&self) -> SyncRequest {
        let held = self.held.values().map(|(assignment, left)| Held {
            attempt: assignment.attempt,
            job: assignment.job,
            units: assignment.units.clone(),
            left: (left.len() + self.unacknowledged(assignment.attempt)) as u64,
            mirrored: assignment.mirrored,
            not_kernel: assignment.not_kernel.clone(),
        });
        SyncRequest {
            worker: self.name.clone(),
            boot: self.boot,
            capacity: 2,
            kernels: vec!["fast".into(), "slow".into()],
            units_per_s: Vec::new(),
            held: held.collect(),
            draining: false,
        }
    }

    /// Results of a lease that are not acknowledged: until they are, the worker has it in hand.
    fn unacknowledged(&self, attempt: u64) -> usize {
        self.outbox.iter().filter(|completion| completion.attempt == attempt).count()
    }

    fn obey(&mut self, response: &SyncResponse) {
        for attempt in &response.cancel {
            self.held.remove(attempt);
        }
        for assignment in &response.desired {
            let left = assignment.units.clone().collect();
            self.held.entry(assignment.attempt).or_insert_with(|| (assignment.clone(), left));
        }
    }
}

fn source(worker: &str) -> Source {
    Source {
        worker: worker.into(),
        kernel: "fast".into(),
        device: format!("{worker}:cpu"),
        build: "1".into(),
    }
}

#[derive(Clone)]
enum Message {
    Sync(usize, SyncRequest),
    Told(usize, u64, SyncResponse),
    Complete(usize, Completion),
    Answered(usize, UnitId, u64),
}

struct World {
    random: fastrand::Rng,
    settings: Settings,
    campaign: Campaign,
    /// What the ledger holds; the campaign is rebuilt from it after a crash.
    ledger: Vec<Event>,
    workers: Vec<Worker>,
    network: Vec<Message>,
    now_ms: u64,
    epoch: u64,
    job: JobHash,
    units: u64,
    faults: bool,
}

fn job(n: usize) -> JobHash {
    Job::new(Problem::empty(Piece::Queen, n), Scheme::CentreCross, None, 1).expect("a small board").hash()
}

impl World {
    fn new(seed: u64, units: u64, workers: Vec<Honesty>, faults: bool) -> Self {
        // Here leases expire all the time; poison has a test of its own.
        let poison_failures = u32::MAX;
        let settings = Settings {
            lease_ms: 5_000,
            sync_ms: 1_000,
            lease_s: 6.0,
            poison_failures,
            ..Settings::default()
        };
        let names = workers.into_iter().enumerate().map(|(i, honesty)| Worker {
            name: format!("worker-{i}"),
            honesty,
            boot: 1,
            held: BTreeMap::new(),
            outbox: Vec::new(),
            crashes: faults,
            counted: 0,
        });
        let mut world = Self {
            random: fastrand::Rng::with_seed(seed),
            settings,
            campaign: Campaign::new(settings, 1, seed),
            ledger: Vec::new(),
            workers: names.collect(),
            network: Vec::new(),
            now_ms: 1_000_000,
            epoch: 1,
            job: job(8),
            units,
            faults,
        };
        world.record(vec![Event::JobSubmitted { job: world.job, units, priority: 0, at_ms: 0 }]);
        world
    }

    /// Written first, then applied.
    fn record(&mut self, events: Vec<Event>) {
        for event in events {
            self.ledger.push(event.clone());
            self.campaign.apply(&event);
        }
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.faults && self.random.u32(..one_in) == 0
    }

    fn send(&mut self, message: Message) {
        if self.chance(10) {
            return;
        }
        if self.chance(10) {
            self.network.push(message.clone());
        }
        self.network.push(message);
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Sync(worker, request) => {
                let response = self.campaign.sync(&request, self.now_ms);
                self.send(Message::Told(worker, request.boot, response));
            }
            Message::Told(worker, boot, response) => {
                if self.workers[worker].boot == boot {
                    self.workers[worker].obey(&response);
                }
            }
            Message::Complete(worker, completion) => {
                let judgement = self.campaign.judge(&completion);
                self.record(judgement.events);
                // The coordinator may die after the disk has it and before the reply.
                if self.chance(40) {
                    return self.crash_coordinator();
                }
                let (unit, attempt) = (completion.unit, completion.attempt);
                self.send(Message::Answered(worker, unit, attempt));
            }
            Message::Answered(worker, unit, attempt) => {
                let worker = &mut self.workers[worker];
                worker.outbox.retain(|c| (c.unit, c.attempt) != (unit, attempt));
                let finished = worker.held.get(&attempt).is_some_and(|(_, left)| left.is_empty());
                if finished && worker.unacknowledged(attempt) == 0 {
                    worker.held.remove(&attempt);
                }
            }
        }
    }

    fn crash_coordinator(&mut self) {
        self.epoch += 1;
        self.campaign = Campaign::new(self.settings, self.epoch, self.random.u64(..));
        for event in &self.ledger {
            self.campaign.apply(event);
        }
    }

    fn step(&mut self) {
        self.now_ms += self.random.u64(..700);
        if self.chance(200) {
            // A clock that jumps.
            self.now_ms += 20_000;
        }
        if self.chance(150) {
            self.crash_coordinator();
        }
        let which = self.random.usize(..self.workers.len());
        if self.workers[which].crashes && self.chance(60) {
            let worker = &mut self.workers[which];
            worker.held.clear();
            worker.boot += 1;
        }
        match self.random.u8(..4) {
            0 => {
                let request = self.workers[which].sync();
                self.send(Message::Sync(which, request));
            }
            1 => {
                // One unit is counted.
                let mut held = self.workers[which].held.values_mut();
                let found = held.find_map(|(assignment, left)| Some((assignment.clone(), left.pop()?)));
                if let Some((assignment, unit)) = found {
                    let mut random = self.random.fork();
                    let Assignment { job, attempt, not_kernel, .. } = assignment;
                    let mut completion = self.workers[which].count(job, attempt, unit, &mut random);
                    if not_kernel.is_some() {
                        completion.source.kernel = "slow".into();
                    }
                    self.workers[which].outbox.push(completion);
                }
            }
            2 => {
                if let Some(completion) = self.workers[which].outbox.first().cloned() {
                    self.workers[which].outbox.rotate_left(1);
                    self.send(Message::Complete(which, completion));
                }
            }
            _ => {}
        }
        if !self.network.is_empty() {
            let index = self.random.usize(..self.network.len());
            let message = self.network.swap_remove(index);
            self.deliver(message);
        }
        let disputes: Vec<UnitId> = self.campaign.disputes().collect();
        for unit in disputes {
            let right = tally_of(truth(unit.unit));
            let events = self.campaign.referee(unit, &right, &source("coordinator"), 1.0);
            self.record(events);
        }
        let events = self.campaign.tick(self.now_ms);
        self.record(events);
    }

    fn finished(&self) -> bool {
        self.campaign.progress(&self.job).is_some_and(|progress| progress.state == JobState::Finished)
    }

    /// Runs until the job is finished; the steps that it took.
    fn run(&mut self) -> usize {
        for step in 0..400_000 {
            if self.finished() {
                return step;
            }
            self.step();
        }
        panic!("not finished: {:?}", self.campaign.progress(&self.job));
    }

    fn total(&self) -> u128 {
        self.campaign.progress(&self.job).expect("a job").total.thirds()
    }

    fn right_total(&self) -> u128 {
        (0..self.units).map(|unit| 24 * u128::from(truth(unit))).sum()
    }

    /// In the ledger, a unit is done at most once more than it was taken back.
    fn assert_counted_once(&self) {
        let mut standing: HashMap<u64, i32> = HashMap::new();
        for event in &self.ledger {
            let (unit, change) = match event {
                Event::UnitDone { unit, .. } => (unit.unit, 1),
                Event::UnitVoided { unit, .. } => (unit.unit, -1),
                _ => continue,
            };
            let count = standing.entry(unit).or_default();
            *count += change;
            assert!((0..=1).contains(count), "unit {unit}: {count}");
        }
        assert!((0..self.units).all(|unit| standing.get(&unit) == Some(&1)));
    }
}

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("NQUEENS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (0..count).collect(),
    }
}

fn each_seed(count: u64, run: impl Fn(u64)) {
    for seed in seeds(count) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        assert!(outcome.is_ok(), "NQUEENS_SEED={seed}");
    }
}

#[test]
fn any_order_of_messages_and_crashes_gives_the_right_total() {
    each_seed(10_000, |seed| {
        let mut world = World::new(seed, 12, vec![Honesty::Honest; 3], true);
        world.run();
        assert_eq!(world.total(), world.right_total());
        world.assert_counted_once();
        assert!(world.campaign.quarantined().is_empty(), "{:?}", world.campaign.quarantined());
    });
}

#[test]
fn liars_change_no_total_while_everything_is_counted_again() {
    each_seed(500, |seed| {
        let liar = LIARS[seed as usize % LIARS.len()];
        let mut world = World::new(seed, 30, vec![Honesty::Honest, liar, Honesty::Honest], seed % 2 == 0);
        world.settings = Settings { least_check: 1.0, ..world.settings };
        world.campaign = Campaign::new(world.settings, 1, seed);
        let submitted = world.ledger.clone();
        submitted.iter().for_each(|event| world.campaign.apply(event));
        world.run();
        assert_eq!(world.total(), world.right_total(), "{liar:?}");
        world.assert_counted_once();
        let quarantined: Vec<&String> = world.campaign.quarantined().keys().collect();
        assert!(quarantined.iter().all(|name| **name == "worker-1"), "{quarantined:?}");
    });
}

#[test]
fn a_worker_alone_is_checked_with_another_kernel() {
    let mut world = World::new(7, 20, vec![Honesty::Honest], false);
    world.run();
    assert_eq!(world.total(), world.right_total());
    assert!(world.campaign.progress(&world.job).expect("a job").checked >= 10);
}

#[test]
fn replaying_the_ledger_gives_the_same_campaign() {
    each_seed(50, |seed| {
        let mut world = World::new(seed, 20, vec![Honesty::Honest, Honesty::OneInTen, Honesty::Honest], true);
        world.run();
        let before = world.campaign.progress(&world.job);
        world.crash_coordinator();
        let after = world.campaign.progress(&world.job);
        let essence =
            |p: Option<nqueens::campaign::JobProgress>| p.map(|p| (p.state, p.done, p.checked, p.total));
        assert_eq!(essence(before), essence(after));
    });
}

#[test]
fn an_expired_worker_that_returns_late_is_believed_once() {
    let mut world = World::new(1, 4, vec![Honesty::Honest; 2], false);
    let request = world.workers[0].sync();
    let told = world.campaign.sync(&request, world.now_ms);
    world.workers[0].obey(&told);
    let attempt = told.desired[0].attempt;
    let units = told.desired[0].units.clone();
    // Its lease expires, and the other one counts its units.
    world.now_ms += 60_000;
    let events = world.campaign.tick(world.now_ms);
    world.record(events);
    let mut random = fastrand::Rng::with_seed(1);
    for unit in units.clone() {
        let completion = world.workers[1].count(world.job, 99, unit, &mut random);
        let judgement = world.campaign.judge(&completion);
        assert_eq!(judgement.verdict, Verdict::Accepted);
        world.record(judgement.events);
    }
    for unit in units {
        let completion = world.workers[0].count(world.job, attempt, unit, &mut random);
        let judgement = world.campaign.judge(&completion);
        assert_eq!((judgement.verdict, judgement.events.len()), (Verdict::Duplicate, 0));
    }
}

#[test]
fn a_unit_that_kills_its_workers_is_set_aside_and_the_others_are_counted() {
    let settings = Settings { lease_ms: 1_000, ..Settings::default() };
    let mut campaign = Campaign::new(settings, 1, 5);
    let job = job(8);
    campaign.apply(&Event::JobSubmitted { job, units: 16, priority: 0, at_ms: 0 });
    let mut random = fastrand::Rng::with_seed(5);
    let mut now_ms = 0;
    for round in 0..400u64 {
        let name = format!("worker-{}", round % 3);
        let mut worker = Worker {
            name: name.clone(),
            honesty: Honesty::Honest,
            boot: round,
            held: BTreeMap::new(),
            outbox: Vec::new(),
            crashes: false,
            counted: 0,
        };
        let told = campaign.sync(&SyncRequest { capacity: 8, ..worker.sync() }, now_ms);
        'lease: for assignment in told.desired {
            for unit in assignment.units {
                if unit == 11 {
                    // The worker dies, and comes back as another boot.
                    break 'lease;
                }
                let judgement = campaign.judge(&worker.count(job, assignment.attempt, unit, &mut random));
                judgement.events.iter().for_each(|event| campaign.apply(event));
            }
        }
        now_ms += 2_000;
        campaign.tick(now_ms).iter().for_each(|event| campaign.apply(event));
    }
    let progress = campaign.progress(&job).expect("a job");
    assert_eq!((progress.done, progress.poisoned), (15, 1));
    assert_eq!(progress.state, JobState::Running, "a job with poison is not finished");
}

/// How often a liar's wrong unit stands in the end. A figure, and a bound far above it.
#[test]
fn the_escape_rate_of_the_adaptive_recount_is_stated() {
    use std::io::Write;
    const CAMPAIGNS: u64 = 1_000;
    let (mut wrong_units, mut wrong_campaigns, mut caught) = (0u64, 0u64, 0u64);
    for seed in 0..CAMPAIGNS {
        // Half of them are of the kind that is hardest to catch.
        let liar = if seed % 2 == 0 { Honesty::Sleeper } else { LIARS[seed as usize / 2 % LIARS.len()] };
        let mut world = World::new(seed, 100, vec![Honesty::Honest, Honesty::Honest, liar], false);
        world.run();
        let wrong = (0..world.units)
            .filter(|&unit| {
                let outcome = world.campaign.outcome(UnitId { job: world.job, unit });
                outcome.is_none_or(|(_, tally)| tally.thirds() != 24 * u128::from(truth(unit)))
            })
            .count() as u64;
        wrong_units += wrong;
        wrong_campaigns += u64::from(wrong > 0);
        caught += u64::from(world.campaign.quarantined().contains_key("worker-2"));
    }
    let _ = writeln!(
        std::io::stderr(),
        "escape rate: {wrong_units} wrong units of {} stood, in {wrong_campaigns} of {CAMPAIGNS} campaigns; {caught} liars caught",
        100 * CAMPAIGNS
    );
    assert!(wrong_campaigns * 10 < CAMPAIGNS, "{wrong_campaigns}");
}

#[test]
fn a_unit_that_fails_on_one_worker_again_and_again_is_left_to_others_and_keeps_nobody_from_the_rest() {
    let mut world = World::new(1, 6, vec![Honesty::Honest; 2], false);
    world.settings = Settings { poison_failures: 5, ..world.settings };
    world.campaign = Campaign::new(world.settings, 1, 1);
    let submitted = world.ledger.clone();
    submitted.iter().for_each(|event| world.campaign.apply(event));
    let mut failures = 0;
    for _ in 0..20 {
        let request = world.workers[0].sync();
        let told = world.campaign.sync(&request, world.now_ms);
        if let Some(lease) = told.desired.iter().find(|lease| lease.units.contains(&0)) {
            failures += 1;
            let unit = UnitId { job: world.job, unit: 0 };
            let event = world.campaign.fail(unit, lease.attempt, &request.worker, "it breaks here");
            assert_eq!(event, None, "one worker alone poisons nothing");
        }
        // Its leases are given back: the worker does not list them.
    }
    assert_eq!(failures, 3);
    let request = world.workers[0].sync();
    let told = world.campaign.sync(&request, world.now_ms);
    assert!(
        !told.desired.is_empty() && told.desired.iter().all(|lease| !lease.units.contains(&0)),
        "{told:?}"
    );
    let other = world.workers[1].sync();
    let told = world.campaign.sync(&other, world.now_ms);
    assert!(told.desired.iter().any(|lease| lease.units.contains(&0)), "{told:?}");
}

#[test]
fn a_worker_without_a_kernel_for_a_job_is_not_asked_again_until_it_restarts() {
    let mut world = World::new(1, 6, vec![Honesty::Honest; 2], false);
    let mut request = world.workers[0].sync();
    let told = world.campaign.sync(&request, world.now_ms);
    let (attempt, unit) = (told.desired[0].attempt, told.desired[0].units.start);
    world.campaign.unsuited(UnitId { job: world.job, unit }, attempt, &request.worker);
    assert_eq!(world.campaign.sync(&request, world.now_ms).desired, []);
    assert_eq!(world.campaign.progress(&world.job).map(|p| (p.open, p.poisoned)), Some((6, 0)));
    request.boot += 1;
    assert_ne!(world.campaign.sync(&request, world.now_ms).desired, []);
}

#[test]
fn results_of_two_liars_who_confirm_each_other_fall_with_the_second() {
    let mut world = World::new(1, 2, vec![Honesty::PlusOne, Honesty::PlusOne, Honesty::Honest], false);
    let mut random = fastrand::Rng::with_seed(1);
    let request = world.workers[0].sync();
    let told = world.campaign.sync(&request, world.now_ms);
    let first = (told.desired[0].attempt, told.desired[0].units.start);
    // The first counts a unit wrongly, and the second is asked to count it again and says the same.
    let completion = world.workers[0].count(world.job, first.0, first.1, &mut random);
    let judgement = world.campaign.judge(&completion);
    world.record(judgement.events);
    let request = world.workers[1].sync();
    let told = world.campaign.sync(&request, world.now_ms);
    let lease = told.desired.iter().find(|lease| lease.mirrored).cloned().expect("a recount");
    let completion = world.workers[1].count(world.job, lease.attempt, first.1, &mut random);
    let judgement = world.campaign.judge(&completion);
    assert_eq!(judgement.verdict, Verdict::Accepted);
    world.record(judgement.events);
    assert_eq!(world.campaign.progress(&world.job).map(|p| (p.done, p.checked)), Some((1, 1)));
    // One after the other is found out.
    for liar in ["worker-0", "worker-1"] {
        let events = world.campaign.quarantine(liar, "caught");
        world.record(events);
    }
    assert_eq!(world.campaign.progress(&world.job).map(|p| (p.done, p.checked)), Some((0, 0)));
    assert_eq!(world.campaign.progress(&world.job).map(|p| p.total.thirds()), Some(0));
}

/// Two workers: the first counts unit 0, and the second is asked to count it again.
fn a_unit_and_its_recount(honesty: [Honesty; 2]) -> (World, Completion) {
    let mut world = World::new(1, 2, honesty.into(), false);
    let mut random = fastrand::Rng::with_seed(1);
    let told = world.campaign.sync(&world.workers[0].sync(), world.now_ms);
    let first = world.workers[0].count(world.job, told.desired[0].attempt, 0, &mut random);
    let judgement = world.campaign.judge(&first);
    world.record(judgement.events);
    let told = world.campaign.sync(&world.workers[1].sync(), world.now_ms);
    let lease = told.desired.iter().find(|lease| lease.mirrored).cloned().expect("a recount");
    assert_eq!(lease.units, 0..1);
    let second = world.workers[1].count(world.job, lease.attempt, 0, &mut random);
    (world, second)
}

#[test]
fn a_recount_of_what_was_taken_back_is_no_first_result() {
    let (mut world, recount) = a_unit_and_its_recount([Honesty::Honest; 2]);
    let events = world.campaign.quarantine("worker-0", "caught");
    world.record(events);
    let judgement = world.campaign.judge(&recount);
    assert_eq!((judgement.verdict, judgement.events), (Verdict::StaleJob, vec![]));
    assert_eq!(world.campaign.progress(&world.job).map(|p| (p.done, p.checks_due)), Some((0, 0)));
}

#[test]
fn what_a_liar_disputes_is_no_work_for_the_referee_once_the_liar_is_caught() {
    let (mut world, lie) = a_unit_and_its_recount([Honesty::Honest, Honesty::PlusOne]);
    let judgement = world.campaign.judge(&lie);
    assert_eq!(judgement.verdict, Verdict::Conflict);
    world.record(judgement.events);
    assert_eq!(world.campaign.disputes().count(), 1);
    let events = world.campaign.quarantine("worker-1", "caught elsewhere");
    world.record(events);
    // The first result stands, and somebody else will count it again.
    let progress = world.campaign.progress(&world.job).expect("a job");
    assert_eq!((progress.disputes, progress.done, progress.checked, progress.checks_due), (0, 1, 0, 1));
}

#[test]
fn a_job_of_which_some_result_must_be_wrong_is_counted_again_where_nobody_confirmed_it() {
    let mut world = World::new(1, 60, vec![Honesty::Honest; 2], false);
    for unit in 0..60 {
        let mut random = fastrand::Rng::with_seed(1);
        let result = world.workers[0].count(world.job, 1, unit, &mut random);
        let judgement = world.campaign.judge(&result);
        world.record(judgement.events);
        if unit < 20 {
            let Completion { unit, tally, elapsed_s, .. } = result;
            let source = source("worker-1");
            let (mirrored, agrees) = (true, true);
            world.record(vec![Event::Recount { unit, tally, source, mirrored, agrees, elapsed_s }]);
        }
    }
    let due = |world: &World| world.campaign.progress(&world.job).expect("a job").checks_due;
    let before = due(&world);
    assert!(before < 40, "{before} of 40 are due anyhow");
    world.campaign.recount_all(world.job);
    assert_eq!(due(&world), 40);
}
