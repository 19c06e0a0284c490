//! The coordinator's part of the simulation, and the order of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::time::Instant;

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    ArbiterTask, COORDINATOR, Campaign, CampaignEvent, CampaignKey, JobState, ResultVerdict,
    Ruling, Settings, Source, UnitId, UnitResult,
};
use nqueens::cluster::ledger::{CampaignFile, Entry};
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Parts, Residues, Tally};

use crate::measure::{Calls, memory_mib};
use crate::volunteer::{Counting, DAY_MS, Volunteer};

/// The number of sub-ranges of each unit.
pub(crate) const SUB_RANGES: u32 = 4;

/// The highest rate of a volunteer as a multiple of the lowest.
const HIGHEST_RATE: f64 = 1e4;

/// The time between two ticks. A real coordinator ticks every second.
const TICK_MS: u64 = 3_600_000;

/// The time between two looks for a task of the arbiter.
const ARBITER_MS: u64 = 600_000;

const _: () = assert!(TICK_MS.is_multiple_of(ARBITER_MS));

/// The time after which an idle volunteer syncs again.
const IDLE_MS: u64 = 3_600_000;

/// The entries of a transaction.
const BATCH: usize = 4096;

/// One event in this many is encoded to estimate the size of a ledger that is not written.
const SAMPLED: u64 = 64;

/// The description of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) volunteers: u64,
    pub(crate) units: u64,
    pub(crate) days: u64,
    /// The folder of the ledger, if it is to be written.
    pub(crate) folder: Option<PathBuf>,
}

/// Times as for volunteers who are asked to call every few hours.
fn settings() -> Settings {
    let hour_ms = 3_600_000;
    Settings {
        sync_ms: 4 * hour_ms,
        lease_ms: 36 * hour_ms,
        lease_s: 4.0 * 3600.0,
        first_lease_s: 3600.0,
        patience_ms: 7 * DAY_MS,
        ..Settings::default()
    }
}

/// Returns the sums of the sub-ranges of a unit, in completions of weight 24.
pub(crate) fn correct_sums(unit: u64) -> Vec<u64> {
    let sum = |number: u64| (unit * 4 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 26;
    (0..u64::from(SUB_RANGES)).map(sum).collect()
}

pub(crate) fn tally_of(sums: &[u64]) -> (Tally, Parts) {
    let sum: u64 = sums.iter().sum();
    let mut parts = Parts::default();
    parts.add(24, sum, Residues::of(sum.into()), sum).expect("fits");
    (parts.total().expect("agrees"), parts)
}

pub(crate) fn source(worker: &str, owner: &str) -> Source {
    let [kernel, device, build] = ["avx512", "cpu", "0.1.0"].map(str::to_owned);
    Source { worker: worker.to_owned(), owner: owner.to_owned(), kernel, device, build }
}

/// A campaign in progress.
pub(crate) struct World {
    scenario: Scenario,
    campaign: Campaign,
    job: JobHash,
    volunteers: Vec<Volunteer>,
    joined: u64,
    random: fastrand::Rng,
    now_ms: u64,
    events: BinaryHeap<Reverse<(u64, usize)>>,
    /// The arbiter's task, and the time of its completion in ms.
    arbiter: Option<(ArbiterTask, u64)>,
    /// Units per second: those of the fastest volunteers.
    arbiter_rate: f64,
    ledger: Option<(CampaignFile, PathBuf)>,
    unwritten: Vec<Entry>,
    written: Written,
    syncs: Calls,
    results: Calls,
    applied: Calls,
    ticks: Calls,
    rulings: Calls,
    appends: Calls,
    work: Work,
}

/// The events so far.
#[derive(Debug, Default)]
struct Written {
    entries: u64,
    /// Of every [`SAMPLED`]th.
    sampled_bytes: u64,
}

/// The work so far, in units.
#[derive(Debug, Default)]
struct Work {
    counted: u64,
    recounted: f64,
    by_arbiter: f64,
    quarantined: u64,
}

impl World {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let mut random = fastrand::Rng::with_seed(28);
        let mut volunteers: Vec<Volunteer> = (0..scenario.volunteers)
            .map(|number| {
                let rate = HIGHEST_RATE.powf(random.f64());
                Volunteer::join(number, rate, 0, &mut random)
            })
            .collect();
        let average: f64 = volunteers.iter().map(Volunteer::average_rate).sum();
        let wanted = 2.0 * scenario.units as f64 / (scenario.days as f64 * 86_400.0);
        for volunteer in &mut volunteers {
            volunteer.rate *= wanted / average;
            volunteer.next_sync_ms = random.u64(..DAY_MS);
        }
        let problem = Problem::empty(Piece::Queen, 28);
        let job = Job::new(problem, Scheme::CentreCross, None, 64).expect("a board");
        let ledger = scenario.folder.as_ref().map(|folder| {
            let path = folder.join(format!("scale-{}.ledger", std::process::id()));
            (CampaignFile::open(&path).expect("a new ledger"), path)
        });
        let mut campaign = Campaign::new(settings(), 1, CampaignKey::from_seed(28));
        if let Some(folder) = &scenario.folder {
            campaign = campaign.with_folder(folder.clone());
        }
        let mut world = Self {
            campaign,
            job: job.hash(),
            arbiter_rate: HIGHEST_RATE * wanted / average,
            events: (0..volunteers.len()).map(|at| Reverse((0, at))).collect(),
            joined: scenario.volunteers,
            volunteers,
            random,
            now_ms: 0,
            arbiter: None,
            ledger,
            unwritten: Vec::new(),
            written: Written::default(),
            syncs: Calls::default(),
            results: Calls::default(),
            applied: Calls::default(),
            ticks: Calls::default(),
            rulings: Calls::default(),
            appends: Calls::default(),
            work: Work::default(),
            scenario,
        };
        let submission = CampaignEvent::submission(&job, world.scenario.units, 0, "bench", 0);
        world.record(vec![submission]);
        world
    }

    /// Applies events and writes them to the ledger.
    fn record(&mut self, events: Vec<CampaignEvent>) {
        for event in events {
            let campaign = &mut self.campaign;
            self.applied.time(|| campaign.apply(&event));
            self.written.entries += 1;
            if self.ledger.is_some() {
                self.unwritten.push(Entry::new(event, self.now_ms));
            } else if self.written.entries.is_multiple_of(SAMPLED) {
                let text = Entry::new(event, self.now_ms).to_json().expect("an entry");
                self.written.sampled_bytes += text.len() as u64;
            }
        }
        if self.unwritten.len() >= BATCH {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some((file, _)) = &mut self.ledger else { return };
        let entries = std::mem::take(&mut self.unwritten);
        self.appends.time(|| file.append(&entries)).expect("the disk works");
    }

    fn deliver(&mut self, at: usize, counting: Counting) {
        let Counting { lease, unit, .. } = counting;
        let volunteer = &self.volunteers[at];
        let mut sums = correct_sums(unit);
        if volunteer.lies(&mut self.random) {
            sums[0] += 1;
        }
        if !lease.sub_ranges.is_empty() {
            sums = lease.sub_ranges.numbers().map(|number| sums[number as usize]).collect();
        }
        let share = sums.len() as f64 / f64::from(SUB_RANGES);
        let (tally, parts) = tally_of(&sums);
        let result = UnitResult {
            unit: UnitId { job: self.job, unit },
            attempt: lease.attempt,
            grant: lease.grant,
            tally,
            parts,
            sub_sums: sums.iter().map(|sum| 24 * u128::from(*sum)).collect(),
            source: source(&volunteer.name, &volunteer.name),
            elapsed_s: share / volunteer.rate,
            signature: None,
        };
        let campaign = &self.campaign;
        let validation = self.results.time(|| campaign.validate(&result, None));
        if lease.mirrored {
            self.work.recounted += share;
        } else {
            self.work.counted += 1;
        }
        let verdict = validation.verdict;
        self.work.quarantined +=
            validation.events.iter().filter(|e| is_quarantine(e)).count() as u64;
        self.record(validation.events);
        let volunteer = &mut self.volunteers[at];
        volunteer.acknowledged(lease.attempt);
        if matches!(verdict, ResultVerdict::Refused | ResultVerdict::Quarantined) {
            volunteer.is_quarantined = true;
        }
    }

    fn sync(&mut self, at: usize) {
        let request = self.volunteers[at].sync(self.job);
        let (campaign, now_ms) = (&mut self.campaign, self.now_ms);
        let response = self.syncs.time(|| campaign.sync(&request, now_ms));
        let volunteer = &mut self.volunteers[at];
        volunteer.receive(response.desired, &response.cancel);
        let is_idle = volunteer.held.is_empty();
        let pause_ms = if is_idle { IDLE_MS } else { response.next_sync_ms };
        volunteer.next_sync_ms =
            now_ms + (pause_ms as f64 * (0.8 + 0.4 * self.random.f64())) as u64;
    }

    /// Lets a volunteer do what is due.
    fn act(&mut self, at: usize) {
        let now_ms = self.now_ms;
        if self.volunteers[at].is_gone(now_ms) {
            let rate = self.volunteers[at].rate;
            self.volunteers[at] = Volunteer::join(self.joined, rate, now_ms, &mut self.random);
            self.joined += 1;
        }
        // An event is never later than a change between sleep and wakefulness.
        let was_awake = self.volunteers[at].is_awake(now_ms.saturating_sub(1));
        self.volunteers[at].advance(now_ms, was_awake);
        if !self.volunteers[at].is_awake(now_ms) {
            return;
        }
        if let Some(counting) = self.volunteers[at].take_complete() {
            self.deliver(at, counting);
            let volunteer = &mut self.volunteers[at];
            if volunteer.unstarted() == 0 {
                volunteer.next_sync_ms = now_ms;
            }
        }
        if self.volunteers[at].next_sync_ms <= now_ms {
            self.sync(at);
        }
        if self.volunteers[at].counting.is_none() {
            self.volunteers[at].start_next(now_ms);
        }
    }

    fn run_arbiter(&mut self) {
        let now_ms = self.now_ms;
        if let Some((task, at_ms)) = self.arbiter
            && at_ms <= now_ms
        {
            self.arbiter = None;
            self.campaign.arbiter_is_done();
            let sums = correct_sums(task.unit.unit);
            let asked: Vec<u64> = if task.sub_ranges.is_empty() {
                sums
            } else {
                task.sub_ranges.numbers().map(|number| sums[number as usize]).collect()
            };
            let (tally, _) = tally_of(&asked);
            let share = asked.len() as f64 / f64::from(SUB_RANGES);
            let elapsed_s = share / self.arbiter_rate;
            let sub_sums = asked.iter().map(|sum| 24 * u128::from(*sum)).collect();
            let ruling = Ruling { task, tally, sub_sums, elapsed_s };
            let campaign = &self.campaign;
            let arbiter = source("(arbiter)", COORDINATOR);
            let events = self.rulings.time(|| campaign.ruling_events(&ruling, &arbiter));
            self.work.by_arbiter += share;
            self.work.quarantined += events.iter().filter(|e| is_quarantine(e)).count() as u64;
            self.record(events);
        }
        if self.arbiter.is_none() {
            let campaign = &mut self.campaign;
            let task = self.rulings.time(|| campaign.next_for_arbiter(now_ms, |_| false));
            if let Some(task) = task {
                let share = match task.sub_ranges.len() {
                    0 => 1.0,
                    some => some as f64 / f64::from(SUB_RANGES),
                };
                let times = if task.dispute { 2.0 } else { 1.0 };
                let took_ms = (1000.0 * share * times / self.arbiter_rate) as u64;
                self.arbiter = Some((task, now_ms + took_ms));
            }
        }
    }

    fn tick(&mut self) {
        let (campaign, now_ms) = (&mut self.campaign, self.now_ms);
        let events = self.ticks.time(|| campaign.tick(now_ms));
        self.record(events);
    }

    /// Runs until the job is finished, and prints the figures. Returns the path of the ledger, if
    /// there is one.
    pub(crate) fn run(mut self) -> Option<PathBuf> {
        let Scenario { volunteers, units, days, .. } = self.scenario;
        println!(
            "scenario   {volunteers} volunteers, {units} units, {days} days to count all twice"
        );
        let before_mib = memory_mib("VmRSS").unwrap_or_default();
        let began = Instant::now();
        let (mut next_arbiter_ms, mut next_line_ms) = (0, 0);
        while self.campaign.state(&self.job) != Some(JobState::Finished) {
            let Some(Reverse((at_ms, at))) = self.events.pop() else { break };
            while next_arbiter_ms <= at_ms {
                self.now_ms = next_arbiter_ms;
                if next_arbiter_ms.is_multiple_of(TICK_MS) {
                    self.tick();
                }
                self.run_arbiter();
                next_arbiter_ms += ARBITER_MS;
            }
            self.now_ms = at_ms;
            self.act(at);
            self.events.push(Reverse((self.volunteers[at].next_event_ms(at_ms), at)));
            if at_ms >= next_line_ms {
                next_line_ms = at_ms + days * DAY_MS / 10;
                self.print_progress(began, before_mib);
            }
            if at_ms > 20 * days * DAY_MS {
                println!("given up");
                break;
            }
        }
        self.write();
        self.print_progress(began, before_mib);
        self.print_figures();
        self.ledger.take().map(|(_, path)| path)
    }

    fn print_progress(&self, began: Instant, before_mib: u64) {
        let progress = self.campaign.progress(&self.job).expect("a job");
        println!(
            "day {:>6.1}: {:>5.1} % counted, {:>5.1} % confirmed, {} checks due, {} disputes, {} leased, {} MiB more, {:.0} s",
            self.now_ms as f64 / DAY_MS as f64,
            100.0 * progress.done as f64 / progress.units as f64,
            100.0 * progress.checked as f64 / progress.units as f64,
            progress.checks_due,
            progress.disputes,
            progress.units - progress.done - progress.open - progress.poisoned,
            memory_mib("VmRSS").unwrap_or_default().saturating_sub(before_mib),
            began.elapsed().as_secs_f64()
        );
    }

    fn print_figures(&self) {
        let Scenario { units, days, .. } = self.scenario;
        let progress = self.campaign.progress(&self.job).expect("a job");
        let right: u128 = (0..units)
            .map(|unit| correct_sums(unit).iter().map(|&sum| u128::from(sum)).sum::<u128>())
            .sum();
        let is_right = progress.total.thirds() == 24 * right;
        println!("total      {}", if is_right { "right" } else { "WRONG" });
        println!(
            "joined     {} volunteers, {} put in quarantine",
            self.joined, self.work.quarantined
        );
        println!("sync       {}", self.syncs);
        println!("result     {}", self.results);
        println!("event      {}", self.applied);
        println!("tick       {}", self.ticks);
        println!("arbiter    {}", self.rulings);
        if self.appends.count > 0 {
            println!("append     {}", self.appends);
        }
        let of = |work: f64| 100.0 * work / units as f64;
        println!(
            "work       counted {:.2} %, recounted {:.2} %, by the arbiter {:.3} %",
            of(self.work.counted as f64),
            of(self.work.recounted),
            of(self.work.by_arbiter)
        );
        let took_days = self.now_ms as f64 / DAY_MS as f64;
        println!(
            "finished   after {took_days:.1} days, {:.3} of the ideal",
            took_days / days as f64
        );
        let bytes = match &self.ledger {
            Some((_, path)) => std::fs::metadata(path).map_or(0, |file| file.len()),
            None => self.written.sampled_bytes * SAMPLED,
        };
        println!(
            "ledger     {} entries, {:.0} bytes each{}",
            self.written.entries,
            bytes as f64 / self.written.entries as f64,
            if self.ledger.is_some() { "" } else { " (text only, not written)" }
        );
    }
}

fn is_quarantine(event: &CampaignEvent) -> bool {
    matches!(event, CampaignEvent::WorkerQuarantined { .. })
}
