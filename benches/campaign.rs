//! The cost of a hostile worker to the coordinator's campaign: it contradicts a million results,
//! and then another worker is quarantined for a lie. `cargo bench --bench campaign [-- RESULTS]`
//! prints the time per result, also for the first and the last tenth of them (which differ if a
//! call does not take constant time), the longest calls, and the events for the ledger, of which
//! there must be only a few.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use nqueens::board::{Piece, Problem};
use nqueens::cluster::campaign::{
    Assignment, Campaign, CampaignEvent, CampaignKey, CheckPlan, HeldLease, ResultVerdict,
    Settings, Source, SyncRequest, UnitId, UnitResult,
};
use nqueens::decomposition::{Job, JobHash, Scheme};
use nqueens::tally::{Parts, Residues};

fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn source(worker: &str) -> Source {
    let [kernel, device, build] = ["avx512", "cpu", "0.1.0"].map(str::to_owned);
    Source { worker: worker.to_owned(), owner: format!("owner of {worker}"), kernel, device, build }
}

fn parts(completions: u64) -> Parts {
    let mut parts = Parts::default();
    parts.add(24, completions, Residues::of(completions.into()), completions).expect("fits");
    parts
}

/// Returns the sync of a worker that has begun all its units.
fn sync(worker: &str, held: &[Assignment]) -> SyncRequest {
    let Source { worker, owner, kernel, device, .. } = source(worker);
    let held = held.iter().map(|lease| HeldLease {
        lease: lease.clone(),
        left: lease.units.end - lease.units.start,
        unstarted: 0,
    });
    SyncRequest {
        worker,
        owner,
        address: None,
        boot: 1,
        capacity: 4096,
        kernels: vec![kernel],
        devices: vec![device],
        units_per_s: Vec::new(),
        held: held.collect(),
        draining: false,
    }
}

struct Timed {
    all: Duration,
    first_tenth: Duration,
    last_tenth: Duration,
    longest: Duration,
}

/// Submits a result for each unit of the leases that contradicts the recorded one.
fn contradict(
    campaign: &mut Campaign,
    leases: &[Assignment],
    results: u64,
) -> (Timed, Vec<CampaignEvent>) {
    let zero = Duration::ZERO;
    let mut timed = Timed { all: zero, first_tenth: zero, last_tenth: zero, longest: zero };
    let (mut written, mut number) = (Vec::new(), 0);
    let lie = parts(7);
    let tally = lie.total().expect("agrees");
    for lease in leases {
        for unit in lease.units.clone() {
            let result = UnitResult {
                unit: UnitId { job: lease.job, unit },
                attempt: lease.attempt,
                grant: lease.grant.clone(),
                tally,
                parts: lie.clone(),
                sub_sums: Vec::new(),
                source: source("liar"),
                elapsed_s: 60.0,
                signature: None,
            };
            let began = Instant::now();
            let validation = campaign.validate(&result, None);
            validation.events.iter().for_each(|event| campaign.apply(event));
            let took = began.elapsed();
            assert_eq!(validation.verdict, ResultVerdict::Conflict, "unit {unit}");
            written.extend(validation.events);
            timed.all += took;
            timed.longest = timed.longest.max(took);
            if number < results / 10 {
                timed.first_tenth += took;
            } else if number >= results - results / 10 {
                timed.last_tenth += took;
            }
            number += 1;
        }
    }
    assert_eq!(number, results);
    (timed, written)
}

fn disputes(results: u64) {
    /// The number of units counted by the worker that is quarantined.
    const OTHERS: u64 = 10;
    let problem = Problem::empty(Piece::Queen, 24);
    let job: JobHash = Job::new(problem, Scheme::CentreCross, None, 64).expect("a board").hash();
    let settings = Settings { new_owner_units: 0, ..Settings::default() };
    let mut campaign = Campaign::new(settings, 1, CampaignKey::from_seed(1));
    campaign.apply(&CampaignEvent::JobSubmitted {
        job,
        text: String::new(),
        units: results,
        priority: 0,
        submitter: String::new(),
        at_ms: 0,
        published: None,
    });

    // The liar leases every unit, and lets all leases expire.
    let mut leases: Vec<Assignment> = Vec::new();
    let mut now_ms = 0;
    loop {
        let told = campaign.sync(&sync("liar", &leases), now_ms);
        let known = leases.len();
        let is_new = |lease: &Assignment| leases.iter().all(|old| old.attempt != lease.attempt);
        let new: Vec<Assignment> = told.desired.into_iter().filter(is_new).collect();
        leases.extend(new);
        if leases.len() == known {
            break;
        }
    }
    now_ms += 2 * settings.lease_ms;
    campaign.tick(now_ms);
    for unit in 0..results {
        let worker = if unit >= results - OTHERS { "other" } else { "honest" };
        campaign.apply(&CampaignEvent::UnitDone {
            unit: UnitId { job, unit },
            attempt: 1,
            tally: parts(5).total().expect("agrees"),
            source: source(worker),
            elapsed_s: 60.0,
            checks: Some(CheckPlan::default()),
            sub_sums: Vec::new(),
            signature: None,
        });
    }
    campaign.sync(&sync("liar", &[]), now_ms);

    let (timed, written) = contradict(&mut campaign, &leases, results);
    let each = |time: Duration, of: u64| time.as_secs_f64() * 1e6 / of.max(1) as f64;
    say(&format!(
        "campaign: {results} disputes: {:.2} us a result ({:.2} in the first tenth, {:.2} in the last), longest {:.2?}, {} events",
        each(timed.all, results),
        each(timed.first_tenth, results / 10),
        each(timed.last_tenth, results / 10),
        timed.longest,
        written.len()
    ));
    assert!(written.len() <= settings.most_disputes, "{} events", written.len());

    let began = Instant::now();
    let events = campaign.quarantine("other", "it lied", true);
    events.iter().for_each(|event| campaign.apply(event));
    say(&format!(
        "campaign: quarantine of another: {:.2?}, {} events",
        began.elapsed(),
        events.len()
    ));
    assert!(events.len() as u64 <= OTHERS + 1, "{} events", events.len());
    for what in ["first", "second"] {
        let began = Instant::now();
        campaign.tick(now_ms);
        let ticked = began.elapsed();
        let began = Instant::now();
        campaign.sync(&sync("checker", &[]), now_ms);
        say(&format!(
            "campaign: {what} tick after it {ticked:.2?}, {what} sync {:.2?}",
            began.elapsed()
        ));
    }
    let began = Instant::now();
    let task = campaign.next_for_arbiter(now_ms, |_| false);
    assert!(task.is_some_and(|task| task.dispute));
    say(&format!("campaign: the arbiter's next task after it {:.2?}", began.elapsed()));
}

fn main() {
    let results = std::env::args().skip(1).find_map(|word| word.parse().ok());
    disputes(results.unwrap_or(1_000_000));
}
