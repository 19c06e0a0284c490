//! Simulated campaigns: workers that crash, lie and return late; a network that drops, delays,
//! duplicates and reorders every message; a coordinator that is killed between any two steps;
//! clocks that jump. The total is always correct.
//!
//! A failing case prints its seed; `NQUEENS_SEED=n cargo test --test cluster
//! campaigns_never_lose_or_double_count` replays it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    ArbiterTask, Assignment, COORDINATOR, Campaign, CampaignEvent, CampaignKey, HeldLease,
    JobState, ResultVerdict, Ruling, Settings, Source, SubRangeSet, SyncRequest, SyncResponse,
    UnitId, UnitResult,
};
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Parts, Residues, Tally};

/// The number of sub-ranges of each unit.
const SUB_RANGES: usize = 4;

/// The way in which a worker lies, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Honesty {
    Honest,
    /// Every count is one too high.
    PlusOne,
    /// One count in ten is wrong.
    OneInTen,
    Zeros,
    /// The correct count of another unit.
    Replay,
    /// The correct count with wrong residues.
    WrongResidues,
    /// A correct sum with the parts of another count.
    WrongParts,
    /// A correct sum with sub-range sums that do not add up to it.
    WrongSums,
    /// Correct for its first 25 units, then one count in five is wrong.
    Sleeper,
}

const LIARS: [Honesty; 8] = [
    Honesty::PlusOne,
    Honesty::OneInTen,
    Honesty::Zeros,
    Honesty::Replay,
    Honesty::WrongResidues,
    Honesty::WrongParts,
    Honesty::WrongSums,
    Honesty::Sleeper,
];

/// Returns the parts of a result whose residues are those of `shadow`.
fn parts_of(solutions: u64, shadow: u64) -> Parts {
    let mut parts = Parts::default();
    parts
        .add(24, solutions / 2, Residues::of((solutions / 2).into()), solutions + 1)
        .expect("a small sum");
    let (rest, shadow) = (solutions - solutions / 2, shadow - solutions / 2);
    parts.add(12, 2 * rest, Residues::of((2 * shadow).into()), 0u64).expect("a small sum");
    parts
}

/// Returns the sum of some parts, whether or not it agrees with their residues.
fn sum(parts: &Parts) -> Tally {
    let mut tally = Tally::default();
    for part in parts.iter() {
        tally.add(part.weight, part.completions, part.residues, part.nodes).expect("a small sum");
    }
    tally
}

fn tally_of(solutions: u64) -> Tally {
    parts_of(solutions, solutions).total().expect("agrees with its residues")
}

/// Returns the correct counts of a unit's sub-ranges. All units have different sums.
fn correct_sums(unit: u64) -> Vec<u64> {
    let all = 1000 + unit * unit * 7 + unit;
    let mut sums: Vec<u64> = (1..SUB_RANGES as u64).map(|number| all / (number + 4)).collect();
    sums.push(all - sums.iter().sum::<u64>());
    sums
}

/// Returns the sums of some sub-ranges, or of all if none are named.
fn selected_sums(sums: &[u64], sub_ranges: SubRangeSet) -> Vec<u64> {
    let is_asked = |number: &usize| sub_ranges.is_empty() || sub_ranges.bits() >> number & 1 == 1;
    (0..sums.len()).filter(is_asked).map(|number| sums[number]).collect()
}

fn thirds(sums: &[u64]) -> Vec<u128> {
    sums.iter().map(|&sum| 24 * u128::from(sum)).collect()
}

struct Worker {
    name: String,
    owner: String,
    honesty: Honesty,
    boot: u64,
    /// The held leases, each with its units that are not counted.
    held: BTreeMap<u64, (Assignment, Vec<u64>)>,
    /// Results on the worker's disk that are not acknowledged.
    outbox: Vec<UnitResult>,
    crashes: bool,
    /// True if its results have the sums of their sub-ranges.
    itemises: bool,
    /// The number of units that it has counted.
    counted: u32,
}

impl Worker {
    fn new(name: &str, owner: &str, honesty: Honesty) -> Self {
        Self {
            name: name.to_owned(),
            owner: owner.to_owned(),
            honesty,
            boot: 1,
            held: BTreeMap::new(),
            outbox: Vec::new(),
            crashes: false,
            itemises: true,
            counted: 0,
        }
    }

    fn source(&self) -> Source {
        Source {
            worker: self.name.clone(),
            owner: self.owner.clone(),
            kernel: "fast".into(),
            device: format!("{}:cpu", self.name),
            build: "1".into(),
        }
    }

    /// Counts a unit of a lease, or the sub-ranges of it that the lease names.
    fn count(&mut self, lease: &Assignment, unit: u64, random: &mut fastrand::Rng) -> UnitResult {
        self.counted += 1;
        let mut sums = correct_sums(unit);
        match self.honesty {
            Honesty::PlusOne => sums.iter_mut().for_each(|sum| *sum += 1),
            Honesty::OneInTen if random.u8(..10) == 0 => sums[random.usize(..SUB_RANGES)] -= 1,
            Honesty::Sleeper if self.counted > 25 && random.u8(..5) == 0 => {
                sums[random.usize(..SUB_RANGES)] += 2;
            }
            Honesty::Zeros => sums = vec![0; SUB_RANGES],
            Honesty::Replay => sums = correct_sums(unit + 1),
            _ => {}
        }
        let mut sums = selected_sums(&sums, lease.sub_ranges);
        let all: u64 = sums.iter().sum();
        let parts = match self.honesty {
            Honesty::WrongResidues => parts_of(all, all + 1),
            Honesty::WrongParts => parts_of(all - 1, all - 1),
            _ => parts_of(all, all),
        };
        // A sum that its own residues confirm, but that is not the sum of its parts.
        let tally = if self.honesty == Honesty::WrongParts { tally_of(all) } else { sum(&parts) };
        if self.honesty == Honesty::WrongSums {
            sums[0] += 1;
        }
        UnitResult {
            unit: UnitId { job: lease.job, unit },
            attempt: lease.attempt,
            grant: lease.grant.clone(),
            tally,
            parts,
            sub_sums: if self.itemises { thirds(&sums) } else { Vec::new() },
            source: self.source(),
            elapsed_s: 1.0,
            signature: None,
        }
    }

    fn sync(&self) -> SyncRequest {
        let held = self.held.values().map(|(lease, waiting)| HeldLease {
            lease: lease.clone(),
            left: (waiting.len() + self.unacknowledged(lease.attempt)) as u64,
            unstarted: waiting.len() as u64,
        });
        SyncRequest {
            worker: self.name.clone(),
            owner: self.owner.clone(),
            address: None,
            boot: self.boot,
            capacity: 2,
            kernels: vec!["fast".into()],
            devices: vec![format!("{}:cpu", self.name)],
            units_per_s: Vec::new(),
            held: held.collect(),
            draining: false,
        }
    }

    /// Returns the number of unacknowledged results of a lease. The worker holds the lease while
    /// there are any.
    fn unacknowledged(&self, attempt: u64) -> usize {
        self.outbox.iter().filter(|result| result.attempt == attempt).count()
    }

    fn apply_response(&mut self, response: &SyncResponse) {
        for attempt in &response.cancel {
            self.held.remove(attempt);
        }
        for lease in &response.desired {
            let all = || (lease.clone(), lease.units.clone().collect());
            let (known, waiting) = self.held.entry(lease.attempt).or_insert_with(all);
            // Another worker may have received the end of the lease.
            known.units = lease.units.clone();
            waiting.retain(|unit| lease.units.contains(unit));
        }
        let done = |attempt: &u64, waiting: &[u64], outbox: &[UnitResult]| {
            waiting.is_empty() && outbox.iter().all(|result| result.attempt != *attempt)
        };
        self.held.retain(|attempt, (_, waiting)| !done(attempt, waiting, &self.outbox));
    }
}

#[derive(Clone)]
enum Message {
    Sync(usize, SyncRequest),
    SyncReply(usize, u64, SyncResponse),
    Complete(usize, Box<UnitResult>),
    CompleteReply(usize, UnitId, u64),
}

struct World {
    seed: u64,
    random: fastrand::Rng,
    settings: Settings,
    campaign: Campaign,
    /// The events in the ledger. The campaign is rebuilt from them after a crash.
    ledger: Vec<CampaignEvent>,
    workers: Vec<Worker>,
    network: Vec<Message>,
    /// The task that the arbiter is working on.
    task: Option<ArbiterTask>,
    now_ms: u64,
    epoch: u64,
    job: JobHash,
    units: u64,
    faults: bool,
}

fn job(n: usize) -> JobHash {
    Job::new(Problem::empty(Piece::Queen, n), Scheme::CentreCross, None, 1)
        .expect("a small board")
        .hash()
}

fn submitted(job: JobHash, units: u64) -> CampaignEvent {
    CampaignEvent::JobSubmitted {
        job,
        text: String::new(),
        units,
        priority: 0,
        submitter: String::new(),
        at_ms: 0,
        published: None,
    }
}

fn arbiter() -> Source {
    let name = |name: &str| name.to_owned();
    Source {
        worker: name("(arbiter)"),
        owner: name(COORDINATOR),
        kernel: name("scalar"),
        device: name("cpu"),
        build: name("1"),
    }
}

impl World {
    /// Creates a world whose workers have different owners.
    fn new(seed: u64, units: u64, workers: Vec<Honesty>, faults: bool) -> Self {
        let owners = workers.len();
        Self::with_owners(seed, units, workers, owners, faults)
    }

    fn with_owners(
        seed: u64,
        units: u64,
        workers: Vec<Honesty>,
        owners: usize,
        faults: bool,
    ) -> Self {
        // Leases expire all the time here; set-aside units have a test of their own.
        let poison_failures = u32::MAX;
        let settings = Settings {
            lease_ms: 5_000,
            sync_ms: 1_000,
            lease_s: 6.0,
            poison_failures,
            ..Settings::default()
        };
        let named = workers.into_iter().enumerate().map(|(i, honesty)| {
            let worker =
                Worker::new(&format!("worker-{i}"), &format!("owner-{}", i % owners), honesty);
            Worker { crashes: faults, ..worker }
        });
        let mut world = Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
            settings,
            campaign: Campaign::new(settings, 1, CampaignKey::from_seed(seed)),
            ledger: Vec::new(),
            workers: named.collect(),
            network: Vec::new(),
            task: None,
            now_ms: 1_000_000,
            epoch: 1,
            job: job(8),
            units,
            faults,
        };
        world.record(vec![submitted(world.job, units)]);
        world
    }

    /// Restarts the campaign with other settings.
    fn restart_with(&mut self, settings: Settings) {
        self.settings = settings;
        self.campaign = self.replay_ledger();
    }

    /// Writes events to the ledger, then applies them.
    fn record(&mut self, events: Vec<CampaignEvent>) {
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

    /// Makes a worker sync, and asserts that it is not asked to check what its own owner counted.
    fn sync(&mut self, request: &SyncRequest) -> SyncResponse {
        let response = self.campaign.sync(request, self.now_ms);
        let checks = response.desired.iter().filter(|lease| lease.mirrored);
        for unit in checks.flat_map(|lease| lease.units.clone()) {
            let first = self.campaign.outcome(UnitId { job: self.job, unit });
            assert!(
                first.is_none_or(|(source, _)| source.owner != request.owner),
                "{} checks unit {unit} of its own owner",
                request.worker
            );
        }
        response
    }

    /// Makes worker `which` sync without delay and apply the response.
    fn sync_now(&mut self, which: usize) -> SyncResponse {
        let request = self.workers[which].sync();
        let response = self.sync(&request);
        self.workers[which].apply_response(&response);
        response
    }

    /// Counts a unit of a lease without submitting the result.
    fn count(&mut self, which: usize, lease: &Assignment, unit: u64) -> UnitResult {
        let mut random = self.random.fork();
        self.workers[which].count(lease, unit, &mut random)
    }

    fn submit_result(&mut self, result: &UnitResult) -> ResultVerdict {
        let validation = self.campaign.validate(result, None);
        self.record(validation.events);
        validation.verdict
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Sync(worker, request) => {
                let response = self.sync(&request);
                self.send(Message::SyncReply(worker, request.boot, response));
            }
            Message::SyncReply(worker, boot, response) => {
                if self.workers[worker].boot == boot {
                    self.workers[worker].apply_response(&response);
                }
            }
            Message::Complete(worker, result) => {
                // A worker that has not synced keeps its results.
                if !self.campaign.has_synced(&result.source.worker) {
                    return;
                }
                self.submit_result(&result);
                // The coordinator may crash after the commit and before the reply.
                if self.chance(40) {
                    return self.crash_coordinator();
                }
                self.send(Message::CompleteReply(worker, result.unit, result.attempt));
            }
            Message::CompleteReply(worker, unit, attempt) => {
                let worker = &mut self.workers[worker];
                worker.outbox.retain(|result| (result.unit, result.attempt) != (unit, attempt));
                let finished =
                    worker.held.get(&attempt).is_some_and(|(_, waiting)| waiting.is_empty());
                if finished && worker.unacknowledged(attempt) == 0 {
                    worker.held.remove(&attempt);
                }
            }
        }
    }

    /// Rebuilds the campaign from the ledger.
    fn replay_ledger(&self) -> Campaign {
        let mut campaign =
            Campaign::new(self.settings, self.epoch, CampaignKey::from_seed(self.seed));
        self.ledger.iter().for_each(|event| campaign.apply(event));
        campaign
    }

    fn crash_coordinator(&mut self) {
        self.epoch += 1;
        self.campaign = self.replay_ledger();
        self.task = None;
    }

    /// Completes the arbiter's task, if there is one, and assigns the next one.
    fn run_arbiter(&mut self) {
        if let Some(task) = self.task.take() {
            let sums = selected_sums(&correct_sums(task.unit.unit), task.sub_ranges);
            let (tally, sub_sums) = (tally_of(sums.iter().sum()), thirds(&sums));
            let events = self
                .campaign
                .ruling_events(&Ruling { task, tally, sub_sums, elapsed_s: 1.0 }, &arbiter());
            self.record(events);
        }
        self.task = self.campaign.next_for_arbiter(self.now_ms, |_| false);
    }

    fn step(&mut self) {
        self.now_ms += self.random.u64(..700);
        if self.chance(200) {
            // The clock jumps.
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
                // Count one unit.
                let mut held = self.workers[which].held.values_mut();
                let found = held.find_map(|(lease, waiting)| Some((lease.clone(), waiting.pop()?)));
                if let Some((lease, unit)) = found {
                    let result = self.count(which, &lease, unit);
                    self.workers[which].outbox.push(result);
                }
            }
            2 => {
                if let Some(result) = self.workers[which].outbox.first().cloned() {
                    self.workers[which].outbox.rotate_left(1);
                    self.send(Message::Complete(which, Box::new(result)));
                }
            }
            _ => {}
        }
        if !self.network.is_empty() {
            let index = self.random.usize(..self.network.len());
            let message = self.network.swap_remove(index);
            self.deliver(message);
        }
        if self.random.bool() {
            self.run_arbiter();
        }
        let events = self.campaign.tick(self.now_ms);
        self.record(events);
    }

    fn finished(&self) -> bool {
        self.campaign.state(&self.job) == Some(JobState::Finished)
    }

    /// Runs until the job is finished.
    fn run(&mut self) {
        for _ in 0..400_000 {
            if self.finished() {
                return;
            }
            self.step();
        }
        panic!("not finished: {:?}", self.campaign.progress(&self.job));
    }

    fn total(&self) -> u128 {
        self.campaign.progress(&self.job).expect("a job").total.thirds()
    }

    fn right_total(&self) -> u128 {
        (0..self.units).flat_map(|unit| thirds(&correct_sums(unit))).sum()
    }

    /// Asserts that, in the ledger, each unit is completed at most once more often than it was
    /// voided, and that no owner confirms its own results.
    fn assert_counted_once(&self) {
        let mut standing: HashMap<u64, i32> = HashMap::new();
        let mut owner: HashMap<u64, &str> = HashMap::new();
        for event in &self.ledger {
            let (unit, change) = match event {
                CampaignEvent::UnitDone { unit, source, .. } => {
                    owner.insert(unit.unit, &source.owner);
                    (unit.unit, 1)
                }
                CampaignEvent::UnitVoided { unit, .. } => (unit.unit, -1),
                CampaignEvent::Recount { unit, source, .. }
                | CampaignEvent::SpotCheck { unit, source, .. } => {
                    assert_ne!(owner.get(&unit.unit), Some(&&source.owner[..]), "{unit}");
                    continue;
                }
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

fn each_seed(count: u64, run: impl Fn(u64) + Sync) {
    let (seeds, next) = (seeds(count), AtomicUsize::new(0));
    let work = || {
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(*seed)));
            assert!(outcome.is_ok(), "NQUEENS_SEED={seed}");
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

#[test]
fn any_order_of_messages_and_crashes_gives_the_correct_total() {
    each_seed(10_000, |seed| {
        // The three workers have one to three owners.
        let owners = 1 + seed as usize % 3;
        let mut world = World::with_owners(seed, 12, vec![Honesty::Honest; 3], owners, true);
        world.run();
        assert_eq!(world.total(), world.right_total());
        world.assert_counted_once();
        assert!(world.campaign.quarantined().is_empty(), "{:?}", world.campaign.quarantined());
    });
}

/// `liars_cannot_change_a_total.rs` tests liars in simulated time; here messages and memory are
/// lost too.
#[test]
fn liars_whose_messages_are_lost_and_duplicated_change_no_total() {
    each_seed(500, |seed| {
        let liar = LIARS[seed as usize % LIARS.len()];
        let mut world = World::new(seed, 30, vec![Honesty::Honest, liar, Honesty::Honest], true);
        world.run();
        assert_eq!(world.total(), world.right_total(), "{liar:?}");
        world.assert_counted_once();
        let quarantined: Vec<&String> = world.campaign.quarantined().keys().collect();
        assert!(quarantined.iter().all(|name| **name == "worker-1"), "{quarantined:?}");
    });
}

#[test]
fn a_single_worker_is_checked_by_the_coordinator_and_never_by_itself() {
    for (owners, seed) in [(1, 7), (1, 8), (1, 9)] {
        // Another worker of the same owner does not count as independent.
        for workers in [1, 2] {
            let mut world =
                World::with_owners(seed, 60, vec![Honesty::Honest; workers], owners, false);
            world.run();
            assert_eq!(world.total(), world.right_total());
            world.assert_counted_once();
            let progress = world.campaign.progress(&world.job).expect("a job");
            assert_eq!((progress.checked, progress.self_checked), (progress.audited, 0));
            // While an owner is new, the coordinator audits nearly a third of its units; after
            // that, no unit is exempt from audits.
            let checks = |event: &&CampaignEvent| match event {
                CampaignEvent::SpotCheck { source, .. } | CampaignEvent::Recount { source, .. } => {
                    assert_eq!(source.owner, COORDINATOR);
                    true
                }
                _ => false,
            };
            assert!(world.ledger.iter().filter(checks).count() >= 10, "{progress:?}");
        }
    }
}

#[test]
fn a_single_liar_is_caught_by_the_coordinator() {
    each_seed(20, |seed| {
        let mut world = World::new(seed, 60, vec![Honesty::PlusOne], false);
        for _ in 0..5_000 {
            world.step();
        }
        assert!(world.campaign.quarantined().contains_key("worker-0"));
        let progress = world.campaign.progress(&world.job).expect("a job");
        let confirmed = (0..60).filter_map(|unit| {
            Some((unit, world.campaign.outcome(UnitId { job: world.job, unit })?))
        });
        let right = |(unit, (_, tally)): (u64, (&Source, Tally))| {
            tally.thirds() == thirds(&correct_sums(unit)).iter().sum::<u128>()
        };
        assert!(confirmed.into_iter().all(right), "{progress:?}");
    });
}

/// Returns everything about a campaign that its ledger determines.
fn summary(world: &World, campaign: &Campaign) -> String {
    let progress = campaign.progress(&world.job).expect("a job");
    let counts =
        (progress.state, progress.done, progress.checked, progress.audited, progress.spot_checked);
    let more = (progress.self_checked, progress.poisoned, progress.disputes, progress.total);
    let outcomes: Vec<_> =
        (0..world.units).map(|unit| campaign.outcome(UnitId { job: world.job, unit })).collect();
    let quarantined: BTreeMap<_, _> = campaign.quarantined().iter().collect();
    let assurance = campaign.assurance(&world.job);
    format!(
        "{counts:?} {more:?} {:?} {outcomes:?} {quarantined:?} {assurance}",
        campaign.shares(&world.job)
    )
}

#[test]
fn replaying_the_ledger_gives_the_same_campaign() {
    each_seed(50, |seed| {
        let liar = LIARS[seed as usize % LIARS.len()];
        let mut world = World::new(seed, 20, vec![Honesty::Honest, liar, Honesty::Honest], true);
        for step in 0..400_000 {
            if step % 50 == 0 || world.finished() {
                assert_eq!(
                    summary(&world, &world.campaign),
                    summary(&world, &world.replay_ledger()),
                    "step {step}"
                );
            }
            if world.finished() {
                break;
            }
            world.step();
        }
        assert!(world.finished(), "{:?}", world.campaign.progress(&world.job));
    });
}

#[test]
fn a_result_after_the_lease_expired_is_counted_once() {
    let mut world = World::new(1, 4, vec![Honesty::Honest; 2], false);
    let lease = world.sync_now(0).desired[0].clone();
    // Its lease expires, and the other worker counts its units.
    world.now_ms += 60_000;
    let events = world.campaign.tick(world.now_ms);
    world.record(events);
    let response = world.sync_now(1);
    let again = response
        .desired
        .iter()
        .find(|other| other.units.start == lease.units.start)
        .expect("the unit is open again");
    let (again, both) = (again.clone(), lease.units.start..lease.units.end.min(again.units.end));
    assert!(!both.is_empty());
    for unit in both.clone() {
        let result = world.count(1, &again, unit);
        assert_eq!(world.submit_result(&result), ResultVerdict::Accepted);
    }
    let written = world.ledger.len();
    for unit in both {
        let result = world.count(0, &lease, unit);
        assert_eq!(world.submit_result(&result), ResultVerdict::Duplicate);
    }
    assert_eq!(world.ledger.len(), written);
}

#[test]
fn a_late_result_of_an_open_unit_is_accepted_even_after_a_restart() {
    for restarts in [false, true] {
        let mut world = World::new(1, 4, vec![Honesty::Honest; 2], false);
        let lease = world.sync_now(0).desired[0].clone();
        world.workers[0].held.clear();
        world.now_ms += 60_000;
        let events = world.campaign.tick(world.now_ms);
        world.record(events);
        if restarts {
            world.crash_coordinator();
        }
        world.sync_now(0);
        let result = world.count(0, &lease, lease.units.start);
        assert_eq!(world.submit_result(&result), ResultVerdict::Accepted, "restarts: {restarts}");
        assert_eq!(world.submit_result(&result), ResultVerdict::Duplicate, "restarts: {restarts}");
    }
}

#[test]
fn a_result_without_a_lease_of_its_worker_is_refused() {
    for restarts in [false, true] {
        let mut world = World::new(1, 40, vec![Honesty::Honest; 3], false);
        let lease = world.sync_now(0).desired[0].clone();
        let other = world.sync_now(1).desired[0].clone();
        world.sync_now(2);
        let result = world.count(0, &lease, lease.units.start);
        if restarts {
            world.crash_coordinator();
            world.sync_now(2);
            world.sync_now(1);
        }
        let forged = |change: &dyn Fn(&mut UnitResult)| {
            let mut forged = result.clone();
            change(&mut forged);
            forged
        };
        let mut attempts = vec![
            // Under another worker's lease: by its number, and by its grant too.
            forged(&|r| r.source.worker = "worker-2".into()),
            forged(&|r| {
                r.source = Source {
                    worker: "worker-2".into(),
                    device: "worker-2:cpu".into(),
                    ..r.source.clone()
                };
                r.source.owner = "owner-2".into();
            }),
            forged(&|r| (r.attempt, r.grant) = (other.attempt, other.grant.clone())),
            // A unit that is not in its lease.
            forged(&|r| r.unit.unit = lease.units.end),
            forged(&|r| r.unit.unit = 39),
            forged(&|r| r.unit.unit = u64::MAX),
            // Lease numbers that were never granted.
            forged(&|r| r.attempt = u64::MAX),
            forged(&|r| (r.attempt, r.grant) = (0, Vec::new())),
            forged(&|r| (r.attempt, r.grant) = (1 << 20, vec![0; 37])),
            // Another job.
            forged(&|r| r.unit.job = job(9)),
        ];
        if restarts {
            // Only the grant proves the lease.
            for byte in 0..result.grant.len() {
                attempts.push(forged(&|r| r.grant[byte] ^= 1));
            }
            attempts.push(forged(&|r| r.grant.clear()));
            attempts.push(forged(&|r| r.source.owner = "owner-1".into()));
        }
        for attempt in attempts {
            let validation = world.campaign.validate(&attempt, None);
            assert_eq!(
                (validation.verdict, &validation.events[..]),
                (ResultVerdict::StaleJob, &[][..]),
                "{attempt:?}"
            );
        }
        // The result itself is accepted once its worker has synced.
        world.sync_now(0);
        assert_eq!(world.submit_result(&result), ResultVerdict::Accepted);
    }
}

#[test]
fn a_check_that_is_submitted_again_is_recorded_once() {
    each_seed(200, |seed| {
        let mut world = World::new(seed, 12, vec![Honesty::Honest; 2], false);
        let mut written = BTreeSet::new();
        for turn in 0..40 {
            let leases = world.sync_now(turn % 2).desired;
            for lease in leases {
                for unit in lease.units.clone() {
                    let result = world.count(turn % 2, &lease, unit);
                    for _ in 0..5 {
                        world.submit_result(&result);
                    }
                }
                world.workers[turn % 2].held.remove(&lease.attempt);
            }
        }
        for event in &world.ledger {
            if let CampaignEvent::SpotCheck { unit, source, .. }
            | CampaignEvent::Recount { unit, source, .. } = event
            {
                assert!(written.insert((unit.unit, source.clone())), "{event:?}");
            }
        }
        assert!(!written.is_empty());
    });
}

#[test]
fn leases_survive_a_restart_for_the_workers_that_hold_their_grants() {
    let mut world = World::new(1, 40, vec![Honesty::Honest; 2], false);
    let leases = world.sync_now(0).desired;
    assert!(!leases.is_empty());
    let units: BTreeSet<u64> = leases.iter().flat_map(|lease| lease.units.clone()).collect();
    world.crash_coordinator();
    // Another worker cannot claim the leases, and the worker itself cannot claim more than it had.
    let mut claim = world.workers[1].sync();
    let held = |lease: Assignment| HeldLease { left: 40, unstarted: 40, lease };
    claim.held = leases.iter().cloned().map(held).collect();
    claim.capacity = 0;
    let response = world.sync(&claim);
    assert_eq!((response.desired.len(), response.cancel.len()), (0, leases.len()));
    let mut claim = world.workers[0].sync();
    claim.capacity = 0;
    for held in &mut claim.held {
        held.lease.units.end += 10;
    }
    let response = world.sync(&claim);
    let kept: BTreeSet<u64> =
        response.desired.iter().flat_map(|lease| lease.units.clone()).collect();
    assert_eq!((&kept, &response.cancel[..]), (&units, &[][..]));
    // No other worker gets the units meanwhile, and their results are accepted.
    let response = world.sync_now(1);
    assert!(
        response
            .desired
            .iter()
            .flat_map(|lease| lease.units.clone())
            .all(|unit| !units.contains(&unit))
    );
    for lease in leases {
        for unit in lease.units.clone() {
            let result = world.count(0, &lease, unit);
            assert_eq!(world.submit_result(&result), ResultVerdict::Accepted);
        }
    }
}

#[test]
fn a_unit_that_crashes_its_workers_is_set_aside_and_the_others_are_counted() {
    let settings = Settings { lease_ms: 1_000, ..Settings::default() };
    let mut campaign = Campaign::new(settings, 1, CampaignKey::from_seed(5));
    let job = job(8);
    campaign.apply(&submitted(job, 16));
    let mut random = fastrand::Rng::with_seed(5);
    let mut now_ms = 0;
    for round in 0..400u64 {
        let (name, owner) = (format!("worker-{}", round % 3), format!("owner-{}", round % 3));
        let mut worker = Worker { boot: round, ..Worker::new(&name, &owner, Honesty::Honest) };
        let response = campaign.sync(&SyncRequest { capacity: 8, ..worker.sync() }, now_ms);
        'lease: for lease in response.desired {
            for unit in lease.units.clone() {
                if unit == 11 {
                    // The worker crashes and restarts.
                    break 'lease;
                }
                let validation = campaign.validate(&worker.count(&lease, unit, &mut random), None);
                validation.events.iter().for_each(|event| campaign.apply(event));
            }
        }
        now_ms += 2_000;
        campaign.tick(now_ms).iter().for_each(|event| campaign.apply(event));
    }
    let progress = campaign.progress(&job).expect("a job");
    assert_eq!((progress.done, progress.poisoned), (15, 1));
    assert_eq!(progress.state, JobState::Running, "a job with a unit set aside is not finished");
}

#[test]
fn a_unit_that_fails_repeatedly_on_one_worker_is_left_to_others_and_does_not_block_the_rest() {
    let mut world = World::new(1, 6, vec![Honesty::Honest; 2], false);
    world.restart_with(Settings { poison_failures: 5, ..world.settings });
    let mut failures = 0;
    for _ in 0..20 {
        let request = world.workers[0].sync();
        let response = world.campaign.sync(&request, world.now_ms);
        if let Some(lease) = response.desired.iter().find(|lease| lease.units.contains(&0)) {
            failures += 1;
            let unit = UnitId { job: world.job, unit: 0 };
            let event = world.campaign.fail(unit, lease.attempt, &request.worker, "it breaks here");
            assert_eq!(event, None, "one worker alone does not set a unit aside");
        }
        // It gives its leases back by not listing them.
    }
    assert_eq!(failures, 3);
    let request = world.workers[0].sync();
    let response = world.campaign.sync(&request, world.now_ms);
    assert!(
        !response.desired.is_empty()
            && response.desired.iter().all(|lease| !lease.units.contains(&0)),
        "{response:?}"
    );
    let other = world.workers[1].sync();
    let response = world.campaign.sync(&other, world.now_ms);
    assert!(response.desired.iter().any(|lease| lease.units.contains(&0)), "{response:?}");
}

#[test]
fn a_worker_without_a_kernel_for_a_job_gets_no_units_of_it_until_it_restarts() {
    let mut world = World::new(1, 6, vec![Honesty::Honest; 2], false);
    let mut request = world.workers[0].sync();
    let response = world.campaign.sync(&request, world.now_ms);
    let (attempt, unit) = (response.desired[0].attempt, response.desired[0].units.start);
    world.campaign.mark_unsuited(UnitId { job: world.job, unit }, attempt, &request.worker);
    assert_eq!(world.campaign.sync(&request, world.now_ms).desired, []);
    assert_eq!(world.campaign.progress(&world.job).map(|p| (p.open, p.poisoned)), Some((6, 0)));
    request.boot += 1;
    assert_ne!(world.campaign.sync(&request, world.now_ms).desired, []);
}

#[test]
fn a_drained_worker_gets_no_leases_and_its_checks_go_to_others() {
    let mut world = World::new(1, 8, vec![Honesty::Honest; 3], false);
    let lease = world.sync_now(0).desired[0].clone();
    // Only worker 1 can check it, and then it may drain.
    world.workers[1].held.clear();
    let resting = SyncRequest { capacity: 0, ..world.workers[1].sync() };
    world.sync(&resting);
    let result = world.count(0, &lease, lease.units.start);
    assert_eq!(world.submit_result(&result), ResultVerdict::Accepted);
    let due = world.campaign.progress(&world.job).expect("a job").checks_due;
    assert!(due > 0);
    assert!(world.campaign.drain("worker-1"));
    assert_eq!(world.sync_now(1).desired, []);
    let response = world.sync_now(2);
    let check = response.desired.iter().find(|lease| lease.mirrored).cloned().expect("a check");
    assert_eq!(check.units, lease.units.start..lease.units.start + 1);
    // It may still submit results of leases it holds; its restart ends the drain.
    world.workers[1].boot += 1;
    assert_ne!(world.sync_now(1).desired, []);
}

#[test]
fn a_check_reserved_for_a_vanished_worker_goes_to_another_once_its_lease_would_have_expired() {
    let mut world = World::new(1, 8, vec![Honesty::Honest; 3], false);
    world.restart_with(Settings { lease_s: 600.0, ..world.settings });
    let lease = world.sync_now(0).desired[0].clone();
    let resting = SyncRequest { capacity: 2, ..world.workers[1].sync() };
    world.sync(&resting);
    let result = world.count(0, &lease, lease.units.start);
    assert_eq!(world.submit_result(&result), ResultVerdict::Accepted);
    // The check is drawn for worker 1, which never returns.
    let events = world.campaign.tick(world.now_ms);
    world.record(events);
    let is_check = |lease: &Assignment| lease.mirrored;
    assert!(!world.sync_now(2).desired.iter().any(is_check));
    world.now_ms += world.settings.lease_ms;
    world.sync_now(2);
    let events = world.campaign.tick(world.now_ms);
    world.record(events);
    assert!(world.sync_now(2).desired.iter().any(is_check));
}

#[test]
fn results_of_two_liars_that_confirm_each_other_are_voided_with_the_second() {
    for itemises in [false, true] {
        let honesty = [Honesty::PlusOne, Honesty::PlusOne, Honesty::Honest];
        let (mut world, check) = a_unit_and_its_recount(&honesty, itemises);
        assert_eq!(world.submit_result(&check), ResultVerdict::Accepted);
        let confirmed = |world: &World| {
            let progress = world.campaign.progress(&world.job).expect("a job");
            (progress.done, progress.checked + progress.spot_checked)
        };
        assert_eq!(confirmed(&world), (1, 1));
        // The liars are convicted in turn. What only the second confirmed loses its confirmation
        // first, and is then voided.
        for (liar, left) in [("worker-0", if itemises { 0 } else { 1 }), ("worker-1", 0)] {
            let events = world.campaign.quarantine(liar, "caught", true);
            world.record(events);
            assert_eq!(confirmed(&world), (left, 0), "{liar}, itemises: {itemises}");
        }
        assert_eq!(world.total(), 0);
        // Releasing them does not restore what was voided.
        world.record(vec![CampaignEvent::WorkerReleased { worker: "worker-0".into() }]);
        assert_eq!(confirmed(&world), (0, 0));
    }
}

/// Makes the first worker count unit 0 and assigns a full or partial recount to the second.
fn a_unit_and_its_recount(honesty: &[Honesty], itemises: bool) -> (World, UnitResult) {
    let mut world = World::new(1, 2, honesty.into(), false);
    world.workers.iter_mut().for_each(|worker| worker.itemises = itemises);
    let lease = world.sync_now(0).desired[0].clone();
    let first = world.count(0, &lease, 0);
    assert_eq!(world.submit_result(&first), ResultVerdict::Accepted);
    let response = world.sync_now(1);
    let check = response.desired.iter().find(|lease| lease.mirrored).cloned().expect("a recount");
    assert_eq!((&check.units, check.sub_ranges.is_empty()), (&(0..1), !itemises));
    let second = world.count(1, &check, 0);
    (world, second)
}

#[test]
fn a_recount_of_a_voided_result_is_not_a_first_result() {
    for itemises in [false, true] {
        let (mut world, recount) = a_unit_and_its_recount(&[Honesty::Honest; 2], itemises);
        let events = world.campaign.quarantine("worker-0", "caught", true);
        world.record(events);
        let validation = world.campaign.validate(&recount, None);
        assert_eq!((validation.verdict, validation.events), (ResultVerdict::StaleJob, vec![]));
        assert_eq!(
            world.campaign.progress(&world.job).map(|p| (p.done, p.checks_due)),
            Some((0, 0))
        );
    }
}

#[test]
fn disputes_raised_by_a_convicted_liar_need_no_arbiter() {
    for itemises in [false, true] {
        let (mut world, lie) =
            a_unit_and_its_recount(&[Honesty::Honest, Honesty::PlusOne], itemises);
        assert_eq!(world.submit_result(&lie), ResultVerdict::Conflict);
        assert_eq!(world.campaign.disputes().count(), 1);
        let task = world.campaign.next_for_arbiter(world.now_ms, |_| false).expect("a dispute");
        assert!(task.dispute && task.sub_ranges.is_empty(), "{task:?}");
        let events = world.campaign.quarantine("worker-1", "caught elsewhere", true);
        world.record(events);
        // The first result is in force, and another worker will recount it.
        let progress = world.campaign.progress(&world.job).expect("a job");
        assert_eq!(
            (progress.disputes, progress.done, progress.checked, progress.checks_due),
            (0, 1, 0, 1)
        );
    }
}

#[test]
fn unconfirmed_units_of_a_job_with_an_impossible_total_are_recounted() {
    let mut world = World::new(1, 60, vec![Honesty::Honest; 2], false);
    for unit in 0..60 {
        let (unit, tally) =
            (UnitId { job: world.job, unit }, tally_of(correct_sums(unit).iter().sum()));
        let [first, second] = [0, 1].map(|which: usize| world.workers[which].source());
        world.record(vec![CampaignEvent::UnitDone {
            unit,
            attempt: 1,
            tally,
            source: first,
            elapsed_s: 1.0,
            checks: Some(Default::default()),
            sub_sums: Vec::new(),
            signature: None,
        }]);
        if unit.unit < 20 {
            let (source, mirrored, agrees, elapsed_s) = (second, true, true, 1.0);
            world.record(vec![CampaignEvent::Recount {
                unit,
                tally,
                source,
                mirrored,
                agrees,
                elapsed_s,
                signature: None,
            }]);
        }
    }
    let due = |world: &World| world.campaign.progress(&world.job).expect("a job").checks_due;
    assert_eq!(due(&world), 0);
    world.campaign.recount_all(world.job);
    assert_eq!(due(&world), 40);
}
