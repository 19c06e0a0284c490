//! Hostile, slow and lost workers of a campaign without processes: none of them keeps a job from
//! its end, or honest workers from their work.

use std::collections::BTreeSet;

use nqueens::cluster::campaign::{
    ArbiterTask, Assignment, COORDINATOR, Campaign, CampaignEvent, CampaignKey, CheckPlan, Depth,
    HeldLease, Ruling, Settings, Source, SyncRequest, UnitId, UnitResult,
};
use nqueens::decomposition::JobHash;
use nqueens::tally::{Parts, Residues, Tally};

const JOB: JobHash = JobHash::from_bytes([7; 16]);

/// Syncs a worker with an owner of its own, which has started all held units.
fn sync(campaign: &mut Campaign, name: &str, held: &[Assignment], now_ms: u64) -> Vec<Assignment> {
    sync_with_rate(campaign, name, held, None, now_ms)
}

/// Syncs a worker that reports how many units of the job it counts per second.
fn sync_with_rate(
    campaign: &mut Campaign,
    name: &str,
    held: &[Assignment],
    rate: Option<f64>,
    now_ms: u64,
) -> Vec<Assignment> {
    sync_of_owner(campaign, (name, name), held, rate, now_ms)
}

/// Syncs a worker of an owner.
fn sync_of_owner(
    campaign: &mut Campaign,
    (name, owner): (&str, &str),
    held: &[Assignment],
    rate: Option<f64>,
    now_ms: u64,
) -> Vec<Assignment> {
    let held = held.iter().map(|lease| HeldLease { lease: lease.clone(), left: 1, unstarted: 0 });
    let request = SyncRequest {
        worker: name.to_owned(),
        owner: owner.to_owned(),
        address: None,
        boot: 1,
        capacity: 4,
        kernels: vec!["scalar".into()],
        devices: vec!["cpu".into()],
        units_per_s: rate.map(|rate| (JOB, rate)).into_iter().collect(),
        held: held.collect(),
        draining: false,
    };
    campaign.sync(&request, now_ms).desired
}

fn source(name: &str, owner: &str) -> Source {
    let (kernel, device, build) = ("scalar".into(), "cpu".into(), "0".into());
    Source { worker: name.to_owned(), owner: owner.to_owned(), kernel, device, build }
}

/// Returns a result with so many orbits of eight for a unit, by a worker with an owner of its own.
fn result(lease: &Assignment, unit: u64, name: &str, orbits: u64) -> UnitResult {
    let mut parts = Parts::default();
    parts.add(24, orbits, Residues::of(orbits.into()), 0u64).expect("small");
    UnitResult {
        unit: UnitId { job: JOB, unit },
        attempt: lease.attempt,
        grant: lease.grant.clone(),
        tally: parts.total().expect("agrees"),
        parts,
        sub_sums: vec![24 * u128::from(orbits), 0, 0, 0],
        source: source(name, name),
        elapsed_s: 1.0,
        signature: None,
    }
}

/// Submits a result. Returns the verdict.
fn submit_result(
    campaign: &mut Campaign,
    result: &UnitResult,
) -> nqueens::cluster::campaign::ResultVerdict {
    let validation = campaign.validate(result, None);
    validation.events.iter().for_each(|event| campaign.apply(event));
    validation.verdict
}

fn campaign(units: u64, published: Option<u128>, settings: Settings) -> Campaign {
    let mut campaign = Campaign::new(settings, 1, CampaignKey::from_seed(1));
    campaign.tick(0);
    campaign.apply(&CampaignEvent::JobSubmitted {
        job: JOB,
        text: String::new(),
        units,
        priority: 0,
        submitter: String::new(),
        at_ms: 0,
        published,
    });
    campaign
}

/// Lets an honest worker count a job of five units while another one, which was there first, does
/// what `other` returns, once a second. Returns the second in which the job finishes, and the
/// number of recounts that the other worker received.
fn campaign_with(other: impl Fn(u64) -> bool) -> (u64, usize) {
    let settings = Settings { lease_ms: 5_000, sync_ms: 1_000, ..Settings::default() };
    let mut campaign = Campaign::new(settings, 1, CampaignKey::from_seed(1));
    campaign.tick(0);
    sync(&mut campaign, "other", &[], 1_000);
    campaign.apply(&CampaignEvent::JobSubmitted {
        job: JOB,
        text: String::new(),
        units: 5,
        priority: 0,
        submitter: String::new(),
        at_ms: 0,
        published: Some(0),
    });
    let (mut kept, mut recounts) = (Vec::new(), 0);
    for second in 1..2_000 {
        let now_ms = second * 1_000;
        for lease in sync(&mut campaign, "honest", &[], now_ms) {
            for unit in lease.units.clone() {
                submit_result(&mut campaign, &result(&lease, unit, "honest", 0));
            }
        }
        let all_done = campaign.progress(&JOB).is_some_and(|progress| progress.done == 5);
        if all_done && other(second) {
            kept = sync(&mut campaign, "other", &kept, now_ms);
            recounts = recounts.max(kept.iter().filter(|lease| lease.mirrored).count());
        }
        let events = campaign.tick(now_ms);
        events.iter().for_each(|event| campaign.apply(event));
        if events.iter().any(|event| matches!(event, CampaignEvent::JobState { .. })) {
            return (second, recounts);
        }
        while let Some(task) = campaign.next_for_arbiter(now_ms, |_| false) {
            complete_task(&mut campaign, task, 1.0);
        }
    }
    (u64::MAX, recounts)
}

#[test]
fn a_worker_that_never_finishes_its_recounts_does_not_block_a_job() {
    let (second, recounts) = campaign_with(|_| true);
    assert!(recounts > 0, "it received no recount");
    let patience_s = Settings::default().patience_ms / 1_000;
    assert!(second < patience_s + 30, "{second} s");
}

#[test]
fn a_vanished_worker_delays_a_job_by_its_lease_at_most() {
    let (second, _) = campaign_with(|_| false);
    assert!(second < 20, "{second} s");
}

#[test]
fn a_worker_that_starts_everything_and_finishes_nothing_does_not_block_a_job() {
    let settings = Settings { lease_ms: 5_000, sync_ms: 1_000, ..Settings::default() };
    let mut campaign = campaign(5, Some(0), settings);
    let mut kept = Vec::new();
    for second in 1..2_000 {
        let now_ms = second * 1_000;
        // By its own report it is on time.
        kept = sync_with_rate(&mut campaign, "hog", &kept, Some(1e-300), now_ms);
        if second > 20 {
            for lease in sync(&mut campaign, "honest", &[], now_ms) {
                for unit in lease.units.clone() {
                    submit_result(&mut campaign, &result(&lease, unit, "honest", 0));
                }
            }
        }
        campaign.tick(now_ms);
        if campaign.progress(&JOB).is_some_and(|progress| progress.done == 5) {
            return;
        }
    }
    panic!("no other worker received its units: {:?}", campaign.progress(&JOB));
}

/// Counts a lease's units, with so many orbits of eight each, and submits them.
fn count(campaign: &mut Campaign, lease: &Assignment, name: &str, orbits: u64) {
    for unit in lease.units.clone() {
        let verdict = submit_result(campaign, &result(lease, unit, name, orbits));
        assert_eq!(
            verdict,
            nqueens::cluster::campaign::ResultVerdict::Accepted,
            "{name}: unit {unit}"
        );
    }
}

/// Lets workers count all open units in turn, without making checks.
fn count_all(campaign: &mut Campaign, names: &[&str], units: u64, now_ms: &mut u64) {
    for _ in 0..1_000 {
        for name in names {
            *now_ms += 100;
            for lease in sync(campaign, name, &[], *now_ms).iter().filter(|lease| !lease.mirrored) {
                count(campaign, lease, name, 1);
            }
        }
        let events = campaign.tick(*now_ms);
        events.iter().for_each(|event| campaign.apply(event));
        if campaign.progress(&JOB).is_some_and(|progress| progress.done == units) {
            return;
        }
    }
    panic!("{:?}", campaign.progress(&JOB));
}

#[test]
fn a_total_that_was_temporarily_impossible_still_needs_its_checks() {
    // A hundred workers could not be drawn for all checks before the units were done.
    let mut campaign = campaign(6, None, Settings::default());
    let mut now_ms = 1_000;
    count_all(&mut campaign, &["a", "b"], 6, &mut now_ms);
    let due = campaign.progress(&JOB).expect("a job").checks_due;
    assert!(due > 0, "several owners count a total that nobody has published");
    // As if a unit that makes the sum impossible had arrived and was corrected at once.
    campaign.apply(&CampaignEvent::JobState {
        job: JOB,
        state: nqueens::cluster::campaign::JobState::Disputed,
    });
    let events = campaign.conclude();
    assert!(
        !events.iter().any(|event| matches!(event, CampaignEvent::JobState { .. })),
        "{events:?}"
    );
    assert!(campaign.progress(&JOB).expect("a job").checks_due >= due);
}

/// Records the arbiter's result for a task, where every sum is 0, after so many seconds.
fn complete_task(campaign: &mut Campaign, task: ArbiterTask, elapsed_s: f64) {
    let sums = if task.sub_ranges.is_empty() { 4 } else { task.sub_ranges.len() };
    let ruling = Ruling { task, tally: Tally::default(), sub_sums: vec![0; sums], elapsed_s };
    let events = campaign.ruling_events(&ruling, &source("(arbiter)", COORDINATOR));
    assert!(!events.is_empty(), "{task:?}");
    events.iter().for_each(|event| campaign.apply(event));
}

#[test]
fn an_unheld_check_that_a_new_owner_waits_for_goes_to_the_arbiter() {
    let settings = Settings { audit: 0.0, owner_audits: 0, full_check: 0.0, ..Settings::default() };
    let mut campaign = campaign(100, Some(0), settings);
    let lease = sync(&mut campaign, "one", &[], 1_000).remove(0);
    sync(&mut campaign, "two", &[], 1_000);
    assert!(!campaign.has_reserved_spot_check("two") && campaign.take_newly_reserved().is_empty());
    submit_result(&mut campaign, &result(&lease, lease.units.start, "one", 0));
    sync(&mut campaign, "one", &[], 2_000);
    assert!(campaign.has_reserved_spot_check("two"));
    assert!(campaign.take_newly_reserved().into_iter().eq(["two"]));
    let task = campaign.next_for_arbiter(2_000, |_| false).expect("the check is due");
    assert_eq!((task.unit.unit, task.dispute), (lease.units.start, false));
    assert!(!task.sub_ranges.is_empty());
    // No other worker makes it too.
    assert!(!campaign.has_reserved_spot_check("two"));
    let leases = sync(&mut campaign, "two", &[], 2_000);
    assert!(leases.iter().all(|lease| !lease.mirrored), "{leases:?}");
    complete_task(&mut campaign, task, 1.0);
    assert_eq!(campaign.next_for_arbiter(2_000, |_| false), None);
    let progress = campaign.progress(&JOB).expect("a job");
    assert_eq!(
        (progress.done, progress.spot_checked, progress.checks_due),
        (1, 1, 0),
        "{progress:?}"
    );
}

#[test]
fn a_slow_full_check_goes_to_another_worker_once_no_unit_is_open() {
    let settings = Settings { audit: 0.0, owner_audits: 0, full_check: 1.0, ..Settings::default() };
    // If all units are to be confirmed, it goes once all of them are done.
    let cases = [
        (None, 2, 2_000, false),
        (None, 2, 3_000, true),
        (None, 100, 60_000, false),
        (Some(1.0), 1, 2_000, false),
        (Some(1.0), 1, 3_000, true),
        (Some(1.0), 2, 3_000, false),
    ];
    for (assurance, units, late_ms, goes) in cases {
        let settings = Settings { assurance, ..settings };
        let mut campaign = campaign(units, Some(0), settings);
        let lease = sync(&mut campaign, "one", &[], 1_000).remove(0);
        let mut held: Vec<Vec<Assignment>> =
            ["two", "three"].iter().map(|name| sync(&mut campaign, name, &[], 1_000)).collect();
        submit_result(&mut campaign, &result(&lease, lease.units.start, "one", 0));
        let mut sync_both = |campaign: &mut Campaign, now_ms| -> Vec<bool> {
            let names = ["two", "three"].iter().zip(&mut held);
            let makes = names.map(|(name, held)| {
                *held = sync(campaign, name, held, now_ms);
                held.iter().any(|lease| lease.mirrored)
            });
            makes.collect()
        };
        campaign.tick(2_000);
        let at_first = sync_both(&mut campaign, 2_000);
        assert_eq!(at_first.iter().filter(|makes| **makes).count(), 1, "{units}");
        let now_ms = 2_000 + late_ms;
        campaign.tick(now_ms);
        let later = sync_both(&mut campaign, now_ms);
        let of_the_other: Vec<bool> = at_first.iter().map(|makes| !makes).collect();
        let expected = if goes { of_the_other } else { at_first };
        assert_eq!(later, expected, "{assurance:?}, {units}, {late_ms} ms");
    }
}

#[test]
fn audits_of_whole_units_wait_for_a_slow_coordinator_no_longer_than_documented() {
    let settings = Settings { audit: 1.0, spot_check: 0.0, full_check: 0.0, ..Settings::default() };
    for (unit_s, most) in [(0.1, 8), (100.0, 1)] {
        let mut campaign = campaign(100_000, Some(0), settings);
        let mut waited = Vec::new();
        for second in 1..30 {
            let now_ms = second * 1_000;
            campaign.tick(now_ms);
            for lease in sync(&mut campaign, "one", &[], now_ms) {
                count(&mut campaign, &lease, "one", 0);
            }
            let mut full = 0;
            while let Some(task) = campaign.next_for_arbiter(now_ms, |_| false) {
                full += u32::from(task.sub_ranges.is_empty());
                let share = if task.sub_ranges.is_empty() {
                    1.0
                } else {
                    task.sub_ranges.len() as f64 / 4.0
                };
                complete_task(&mut campaign, task, share * unit_s);
            }
            waited.push(full);
        }
        // The duration of an audit is not known before the first ones.
        assert_eq!(waited.iter().skip(1).max(), Some(&most), "units of {unit_s} s: {waited:?}");
    }
}

#[test]
fn the_history_of_an_owner_does_not_block_its_new_start() {
    let settings = Settings { spot_check: 0.0, full_check: 0.0, audit: 0.0, ..Settings::default() };
    let mut campaign = campaign(400, Some(0), settings);
    let mut now_ms = 1_000;
    // It has a history: the arbiter confirms its first results.
    for _ in 0..200 {
        now_ms += 20_000;
        for lease in sync(&mut campaign, "a", &[], now_ms) {
            count(&mut campaign, &lease, "a", 0);
        }
        while let Some(task) = campaign.next_for_arbiter(now_ms, |_| false) {
            complete_task(&mut campaign, task, 1.0);
        }
        if campaign.progress(&JOB).is_some_and(|progress| progress.done > 200) {
            break;
        }
    }
    let progress = campaign.progress(&JOB).expect("a job");
    assert!(progress.done > 200 && progress.done - progress.spot_checked > 50, "{progress:?}");
    campaign.apply(&CampaignEvent::WorkerReleased { worker: "a".into() });
    let events = campaign.quarantine("a", "by mistake", false);
    let mistake = events.iter().filter(|event| !matches!(event, CampaignEvent::UnitVoided { .. }));
    mistake.for_each(|event| campaign.apply(event));
    campaign.apply(&CampaignEvent::WorkerReleased { worker: "a".into() });
    now_ms += 1_000;
    let leases = sync(&mut campaign, "a", &[], now_ms);
    assert!(!leases.is_empty(), "none of its results needs a check, so it need not wait");
}

#[test]
fn one_owner_alone_cannot_set_a_unit_aside_by_repeated_failures() {
    let mut campaign = campaign(1, Some(0), Settings::default());
    // Another owner's only lease of the unit expires once.
    let lease = sync(&mut campaign, "honest", &[], 1_000).remove(0);
    let lease_ms = Settings::default().lease_ms;
    let unit = UnitId { job: JOB, unit: 0 };
    assert_eq!(campaign.tick(2_000 + lease_ms), []);
    for round in 0..20 {
        let now_ms = 3_000 + lease_ms + round * 1_000;
        for name in ["liar-1", "liar-2"] {
            let leases = sync_of_owner(&mut campaign, (name, "mallory"), &[], None, now_ms);
            for lease in leases {
                for _ in 0..10 {
                    assert_eq!(campaign.fail(unit, lease.attempt, name, "it says so"), None);
                }
            }
        }
    }
    // The other owner reports a failure too: then it is set aside.
    for _ in 0..2 {
        let reported = campaign.fail(unit, lease.attempt, "honest", "it is so");
        if let Some(event) = reported {
            assert!(matches!(event, CampaignEvent::UnitPoisoned { .. }), "{event:?}");
            return;
        }
    }
    panic!("two owners of two could not count it");
}

#[test]
fn an_owner_with_three_convicted_workers_is_excluded_even_after_a_restart() {
    let convicted = |campaign: &mut Campaign, name: &str| {
        let (worker, reason) = (name.to_owned(), "it lied".to_owned());
        campaign.apply(&CampaignEvent::WorkerQuarantined { worker, reason, widen: true });
    };
    // As read from a ledger: none of its results is valid.
    let mut campaign = campaign(4, None, Settings::default());
    for name in ["liar-1", "liar-2", "liar-3", "liar-4"] {
        campaign.register_owner(name, "mallory");
    }
    for name in ["liar-1", "liar-2", "liar-3"] {
        convicted(&mut campaign, name);
    }
    let leases = sync_of_owner(&mut campaign, ("liar-4", "mallory"), &[], None, 1_000);
    assert!(leases.is_empty(), "three of its workers were convicted: {leases:?}");
    assert!(!sync(&mut campaign, "honest", &[], 1_000).is_empty());
}

#[test]
fn a_finished_job_with_a_published_total_is_not_reopened() {
    let mut campaign = campaign(4, Some(4 * 8), Settings { audit: 0.0, ..Settings::default() });
    let mut now_ms = 1_000;
    let first = sync(&mut campaign, "a", &[], now_ms);
    assert!(!first.is_empty());
    first.iter().for_each(|lease| count(&mut campaign, lease, "a", 1));
    count_all(&mut campaign, &["a", "b"], 4, &mut now_ms);
    campaign.apply(&CampaignEvent::JobState {
        job: JOB,
        state: nqueens::cluster::campaign::JobState::Finished,
    });
    // A contradictory recount of its unit, and a conviction for something else.
    let other = submit_result(&mut campaign, &result(&first[0], first[0].units.start, "a", 2));
    assert!(matches!(
        other,
        nqueens::cluster::campaign::ResultVerdict::Refused
            | nqueens::cluster::campaign::ResultVerdict::Quarantined
    ));
    let events = campaign.quarantine("b", "it lied elsewhere", true);
    events.iter().for_each(|event| campaign.apply(event));
    assert_eq!(campaign.state(&JOB), Some(nqueens::cluster::campaign::JobState::Finished));
}

#[test]
fn workers_of_one_owner_that_all_hold_a_unit_do_not_block_other_owners() {
    let settings = Settings { lease_ms: 5_000, sync_ms: 1_000, ..Settings::default() };
    let patience_s = settings.patience_ms / 1_000;
    let mut campaign = campaign(1, Some(0), settings);
    let mut kept = ["hog-1", "hog-2", "hog-3", "hog-4"].map(|name| (name, Vec::new()));
    for second in 1..patience_s {
        let now_ms = second * 1_000;
        for (name, kept) in &mut kept {
            *kept = sync_of_owner(&mut campaign, (name, "hogs"), kept, Some(1.0), now_ms);
        }
        campaign.tick(now_ms);
        if second > patience_s / 2 {
            let holders = kept.iter().filter(|(_, kept)| !kept.is_empty()).count();
            assert_eq!(holders, 3, "as many as may have a unit have it");
            if !sync(&mut campaign, "honest", &[], now_ms).is_empty() {
                return;
            }
        }
    }
    panic!("no other worker received the unit: {:?}", campaign.progress(&JOB));
}

#[test]
fn a_recount_confirms_only_the_result_that_it_was_leased_for() {
    let settings = Settings { full_check: 1.0, ..Settings::default() };
    let mut campaign = campaign(20, None, settings);
    let lease = sync(&mut campaign, "first", &[], 1_000).remove(0);
    let unit = lease.units.start;
    assert_eq!(
        submit_result(&mut campaign, &result(&lease, unit, "first", 1)),
        nqueens::cluster::campaign::ResultVerdict::Accepted
    );
    let held = sync(&mut campaign, "second", &[], 2_000);
    let recount = held
        .iter()
        .find(|lease| lease.mirrored && lease.units.contains(&unit))
        .expect("no other worker may");
    // The first result is voided; a third worker that lies replaces it.
    let events = campaign.quarantine("first", "it was found out", true);
    events.iter().for_each(|event| campaign.apply(event));
    let third = sync(&mut campaign, "third", &[], 3_000);
    let third = third
        .iter()
        .find(|lease| !lease.mirrored && lease.units.contains(&unit))
        .expect("it is open");
    assert_eq!(
        submit_result(&mut campaign, &result(third, unit, "third", 2)),
        nqueens::cluster::campaign::ResultVerdict::Accepted
    );
    assert_eq!(
        submit_result(&mut campaign, &result(recount, unit, "second", 2)),
        nqueens::cluster::campaign::ResultVerdict::StaleJob
    );
    assert_eq!(campaign.progress(&JOB).map(|progress| progress.checked), Some(0));
}

fn tally(orbits: u64) -> Tally {
    let mut parts = Parts::default();
    parts.add(24, orbits, Residues::of(orbits.into()), 0u64).expect("small");
    parts.total().expect("agrees")
}

/// Records that a worker counted a unit, with no orbit in it, and that it is to be spot-checked.
fn record_count(campaign: &mut Campaign, unit: u64, worker: &str) {
    campaign.apply(&CampaignEvent::UnitDone {
        unit: UnitId { job: JOB, unit },
        tally: tally(0),
        source: source(worker, worker),
        attempt: 1,
        elapsed_s: 1.0,
        checks: Some(CheckPlan { peer: Some(Depth::Spot), audit: None }),
        sub_sums: vec![0; 4],
        signature: None,
    });
}

/// Records that a worker recounted a unit and found so many orbits.
fn record_dispute(campaign: &mut Campaign, unit: u64, worker: &str, orbits: u64) {
    campaign.apply(&CampaignEvent::Recount {
        unit: UnitId { job: JOB, unit },
        tally: tally(orbits),
        source: source(worker, worker),
        mirrored: true,
        agrees: false,
        elapsed_s: 1.0,
        signature: None,
    });
}

#[test]
fn a_ruling_that_may_settle_many_disputes_comes_first() {
    let ruled = |campaign: &mut Campaign| -> (u64, usize) {
        let task = campaign.next_for_arbiter(1_000, |_| false).expect("a dispute");
        assert!(task.dispute);
        let ruling = Ruling { task, tally: tally(1), sub_sums: vec![24, 0, 0, 0], elapsed_s: 1.0 };
        let events = campaign.ruling_events(&ruling, &source("(arbiter)", COORDINATOR));
        events.iter().for_each(|event| campaign.apply(event));
        campaign.arbiter_is_done();
        (task.unit.unit, campaign.disputes().count())
    };
    // The arbiter finds one orbit in every unit, so all counts are wrong. "first" counted three of
    // the disputed units, and "second" disputed two with wrong sums.
    let mut campaign = campaign(9, None, Settings::default());
    for (unit, worker) in [(0, "a"), (1, "first"), (2, "b"), (3, "first"), (4, "first"), (5, "c")] {
        record_count(&mut campaign, unit, worker);
    }
    for (unit, worker, orbits) in [(0, "e", 1), (1, "e", 1), (3, "f", 1), (4, "g", 1)] {
        record_dispute(&mut campaign, unit, worker, orbits);
    }
    record_dispute(&mut campaign, 2, "second", 2);
    record_dispute(&mut campaign, 5, "second", 2);
    assert_eq!(campaign.disputes().count(), 6);
    // Those about units 3 and 4 end with the quarantine of "first".
    assert_eq!(ruled(&mut campaign), (1, 3));
    // "e" has raised one that is left, "second" two, of which one remains: "b" is wrong as well.
    assert_eq!(ruled(&mut campaign), (2, 1));
    assert_eq!(ruled(&mut campaign), (0, 0));
}

#[test]
fn spot_checks_that_were_missed_twice_wait_neither_for_workers_nor_for_the_arbiter() {
    for disputed in [false, true] {
        let settings = Settings { audit: 0.0, owner_audits: 0, ..Settings::default() };
        let mut campaign = campaign(60, Some(0), settings);
        (0..40).for_each(|unit| record_count(&mut campaign, unit, "one"));
        if disputed {
            record_count(&mut campaign, 40, "one");
            record_dispute(&mut campaign, 40, "three", 1);
            let task = campaign.next_for_arbiter(0, |_| false).expect("a dispute");
            assert!(task.dispute);
        }
        // A worker that drops its leases of checks misses these.
        let granted: Vec<usize> = (1..=3)
            .map(|second| {
                let leases = sync(&mut campaign, "two", &[], 1_000 * second);
                leases.iter().filter(|lease| lease.mirrored).count()
            })
            .collect();
        assert_eq!(granted, [40, 40, 40], "{disputed}");
        if !disputed {
            // If the worker never makes them, the arbiter does.
            let made: BTreeSet<u64> = (0..40)
                .map(|_| {
                    let task = campaign.next_for_arbiter(3_000, |_| false).expect("a check");
                    complete_task(&mut campaign, task, 1.0);
                    campaign.arbiter_is_done();
                    task.unit.unit
                })
                .collect();
            assert_eq!(made, (0..40).collect());
        }
    }
}

#[test]
fn all_units_that_are_late_are_copied_however_many_leases_there_are() {
    const UNITS: u64 = 400;
    let mut campaign = campaign(UNITS, Some(0), Settings::default());
    let mut leases = 0;
    for number in 0..UNITS {
        leases += sync(&mut campaign, &format!("holder-{number}"), &[], 1_000).len();
    }
    assert_eq!(campaign.progress(&JOB).expect("a job").open, 0);
    assert!(leases > 64, "more than a sample: {leases}");
    let mut copied = BTreeSet::new();
    // A unit has two copies at most, a worker gets one at a time, and none if all leases of its
    // sample have their copies.
    for number in 0..8 * UNITS {
        let leases = sync(&mut campaign, &format!("idle-{number}"), &[], 200_000);
        copied.extend(leases.into_iter().flat_map(|lease| lease.units));
    }
    assert_eq!(copied, (0..UNITS).collect());
}
