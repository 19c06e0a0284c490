use super::super::{
    Assignment, CampaignEvent, CampaignKey, HeldLease, JobState, ResultVerdict, Settings, Source,
    SubRangeSet, SyncRequest, SyncResponse, UnitId, UnitResult,
};
use super::*;
use crate::decomposition::JobHash;
use crate::tally::{Parts, Residues};

const JOB: JobHash = JobHash::from_bytes([7; 16]);

/// A campaign with one job, and a clock.
struct World {
    campaign: Campaign,
    now_ms: u64,
}

impl World {
    fn new(units: u64, published: Option<u128>, settings: Settings) -> Self {
        let mut campaign = Campaign::new(settings, 1, CampaignKey::from_seed(1));
        let at_ms = 0;
        campaign.apply(&CampaignEvent::JobSubmitted {
            job: JOB,
            units,
            priority: 0,
            at_ms,
            published,
            text: String::new(),
            submitter: String::new(),
        });
        Self { campaign, now_ms: 1 }
    }

    fn sync(&mut self, worker: &str, capacity: u32) -> Vec<Assignment> {
        self.response(worker, capacity, Vec::new()).desired
    }

    fn response(&mut self, worker: &str, capacity: u32, held: Vec<HeldLease>) -> SyncResponse {
        let owner = if is_guest(worker) { guest_owner(worker) } else { worker };
        let request = SyncRequest {
            worker: worker.to_owned(),
            owner: owner.to_owned(),
            boot: 1,
            capacity,
            kernels: vec!["k".into()],
            devices: vec!["d".into()],
            held,
            ..SyncRequest::default()
        };
        self.campaign.sync(&request, self.now_ms)
    }

    /// Reports `each` completions of each of two sub-ranges, and returns the verdict.
    fn report(&mut self, worker: &str, lease: &Assignment, unit: u64, each: u64) -> ResultVerdict {
        let owner = if is_guest(worker) { guest_owner(worker) } else { worker };
        let all = if lease.sub_ranges.is_empty() { 2 } else { lease.sub_ranges.len() as u64 };
        let mut parts = Parts::default();
        let sum = each * all;
        parts.add(24, sum, Residues::of(sum.into()), sum).expect("a small sum");
        let result = UnitResult {
            unit: UnitId { job: JOB, unit },
            attempt: lease.attempt,
            grant: lease.grant.clone(),
            tally: parts.total().expect("agrees"),
            parts,
            sub_sums: vec![24 * u128::from(each); all as usize],
            source: Source {
                worker: worker.to_owned(),
                owner: owner.to_owned(),
                kernel: "k".into(),
                device: "d".into(),
                build: String::new(),
            },
            elapsed_s: 1.0,
            signature: None,
        };
        let validation = self.campaign.validate(&result, None);
        validation.events.iter().for_each(|event| self.campaign.apply(event));
        validation.verdict
    }

    /// Counts all units of new leases of a worker.
    fn count(&mut self, worker: &str, each: u64) -> Vec<u64> {
        let leases = self.sync(worker, 1);
        let mut counted = Vec::new();
        for lease in leases.iter().filter(|lease| !lease.mirrored) {
            for unit in lease.units.clone() {
                assert_eq!(self.report(worker, lease, unit, each), ResultVerdict::Accepted);
                counted.push(unit);
            }
        }
        counted
    }

    fn is_finished(&mut self) -> bool {
        let events = self.campaign.conclude();
        events
            .iter()
            .any(|event| matches!(event, CampaignEvent::JobState { state: JobState::Finished, .. }))
    }
}

#[test]
fn the_owner_of_a_guest_follows_from_its_name() {
    let name = guest_name("k3m9", 12);
    assert_eq!((&name[..], guest_owner(&name)), ("guest:k3m9-12", "guest:k3m9"));
    assert!(is_guest(&name) && is_guest(guest_owner(&name)) && !is_guest("guest-1"));
}

#[test]
fn guests_hold_few_units_each_network_by_itself_and_all_together() {
    let settings = Settings { guest_units: 3, all_guests_units: 7, ..Settings::default() };
    let mut world = World::new(100, None, settings);
    let mut held = Vec::new();
    // Three guests of one network have the limit of one owner.
    for guest in ["guest:a-1", "guest:a-2", "guest:a-3", "guest:b-1", "guest:c-1", "guest:d-1"] {
        let units = world.sync(guest, 64).iter().map(|lease| lease.units.clone().count()).sum();
        held.push(units);
    }
    let of_a: usize = held[..3].iter().sum();
    assert_eq!((of_a, held.iter().sum::<usize>()), (3, 7), "{held:?}");
}

#[test]
fn a_unit_that_a_guest_counted_counts_towards_its_limit_until_somebody_else_confirmed_it() {
    let settings = Settings { guest_units: 2, ..Settings::default() };
    let mut world = World::new(100, Some(1), settings);
    let counted: Vec<u64> = (0..5).flat_map(|_| world.count("guest:a-1", 3)).collect();
    assert_eq!(counted, [0, 1]);
    // Another guest is never asked to confirm them.
    assert!(world.sync("guest:b-1", 4).iter().all(|lease| !lease.mirrored));
    world.sync("w", 1);
    let checks: Vec<Assignment> =
        (0..3).flat_map(|_| world.sync("w", 1)).filter(|lease| lease.mirrored).collect();
    assert!(!checks.is_empty(), "a worker checks the units of guests");
    for check in &checks {
        world.report("w", check, check.units.start, 3);
    }
    assert!(!world.count("guest:a-1", 3).is_empty(), "it may go on");
}

#[test]
fn no_job_is_finished_before_every_unit_of_a_guest_is_confirmed_by_somebody_else() {
    // The published total is what the guest reports: it is believed only after a check all the
    // same.
    for published in [Some(2 * 2 * 3 * 8), None] {
        let settings = Settings { assurance: Some(0.0), ..Settings::default() };
        let mut world = World::new(2, published, settings);
        while !world.count("guest:a-1", 3).is_empty() {}
        assert_eq!(world.campaign.progress(&JOB).map(|progress| progress.done), Some(2));
        assert!(!world.is_finished());
        assert!(world.sync("guest:b-1", 4).is_empty(), "no guest checks another");
        let mut checked = 0;
        for _ in 0..20 {
            world.now_ms += 1;
            let leases = world.sync("w", 4);
            for check in leases.iter().filter(|lease| lease.mirrored) {
                let whole = check.sub_ranges.is_empty() || check.sub_ranges.len() == 2;
                assert!(whole || published.is_some(), "{check:?}");
                let verdict = world.report("w", check, check.units.start, 3);
                checked += u64::from(verdict == ResultVerdict::Accepted);
            }
        }
        let task = world.campaign.next_for_arbiter(world.now_ms, |_| false);
        // Audits of the coordinator may be due as well.
        assert!(
            checked == 2 && (world.is_finished() || task.is_some()),
            "{published:?}: {checked}"
        );
        let share = world.campaign.progress(&JOB).expect("a job").guests;
        assert_eq!(share.units, 2);
        assert!(share.rechecked > 0.0 && share.rechecked <= 2.0, "{share:?}");
    }
}

#[test]
fn one_false_result_shuts_out_the_network_of_a_guest_and_nobody_else_is_checked_again() {
    let mut world = World::new(100, Some(1), Settings::default());
    let first = world.count("guest:a-1", 3);
    let second = world.count("guest:a-2", 3);
    let other = world.count("guest:b-1", 3);
    let workers = world.count("w", 3);
    assert!(![&first, &second, &other, &workers].iter().any(|units| units.is_empty()));
    let due = world.campaign.progress(&JOB).expect("a job").checks_due;
    let events = world.campaign.quarantine("guest:a-1", "it lied", true);
    events.iter().for_each(|event| world.campaign.apply(event));
    let progress = world.campaign.progress(&JOB).expect("a job");
    // Its results are void, and so are those of the other guest of its network.
    assert_eq!(progress.done, (other.len() + workers.len()) as u64);
    assert!(progress.checks_due < due, "no check was added");
    assert!(world.sync("guest:a-2", 1).is_empty() && world.sync("guest:a-3", 1).is_empty());
    assert!(!world.sync("guest:b-1", 1).is_empty(), "another network may go on");

    // After a restart the name alone says which network is meant.
    let mut again = World::new(100, None, Settings::default());
    events
        .iter()
        .filter(|event| matches!(event, CampaignEvent::WorkerQuarantined { .. }))
        .for_each(|event| again.campaign.apply(event));
    assert!(again.sync("guest:a-2", 1).is_empty() && !again.sync("guest:b-1", 1).is_empty());
}

#[test]
fn failures_and_silence_of_guests_set_no_unit_aside() {
    let mut world = World::new(1, None, Settings { poison_failures: 2, ..Settings::default() });
    for network in 0..20 {
        let guest = guest_name(&format!("n{network}"), 1);
        let leases = world.sync(&guest, 1);
        let lease = leases.first().expect("the unit is open");
        let unit = UnitId { job: JOB, unit: 0 };
        assert_eq!(world.campaign.fail(unit, lease.attempt, &guest, "broken"), None);
        world.now_ms += 100_000;
        assert_eq!(world.campaign.tick(world.now_ms), [], "the lease has expired");
    }
    // Guests that are silent for long are forgotten.
    assert!(world.campaign.workers().count() < 20);
    world.now_ms += 1_000_000;
    world.campaign.tick(world.now_ms);
    assert_eq!(world.campaign.workers().count(), 0);
}

#[test]
fn a_guest_gets_no_copy_of_a_unit_that_somebody_else_holds() {
    let mut world = World::new(1, None, Settings::default());
    assert_eq!(world.sync("w", 1).len(), 1);
    world.now_ms += 80_000;
    assert!(world.sync("guest:a-1", 1).is_empty());
    // Others get the unit of a guest once its lease has expired.
    let mut other = World::new(1, None, Settings::default());
    assert_eq!(other.sync("guest:a-1", 1)[0].sub_ranges, SubRangeSet::default());
    other.now_ms += 100_000;
    other.campaign.tick(other.now_ms);
    assert_eq!(other.sync("w", 1).len(), 1);
}

#[test]
fn a_guest_that_does_not_count_its_unit_loses_it_to_others() {
    let mut world = World::new(1, None, Settings { patience_ms: 300_000, ..Settings::default() });
    let lease = world.sync("guest:a-1", 1).remove(0);
    // It keeps reporting the lease.
    let mut cancelled = Vec::new();
    while world.now_ms < 400_000 && cancelled.is_empty() {
        world.now_ms += 10_000;
        let held = vec![HeldLease { lease: lease.clone(), left: 1, unstarted: 0 }];
        cancelled = world.response("guest:a-1", 1, held).cancel;
        world.campaign.tick(world.now_ms);
    }
    assert_eq!(cancelled, [lease.attempt]);
    assert!(world.now_ms > 300_000, "it has some time");
    // Neither this guest nor another of its network gets the unit again, however it asks.
    let held = vec![HeldLease { lease, left: 1, unstarted: 1 }];
    assert!(world.response("guest:a-1", 1, held).desired.is_empty());
    assert!(world.sync("guest:a-2", 1).is_empty());
    assert_eq!(world.sync("guest:b-1", 1).len(), 1);
}

#[test]
fn a_guest_that_fails_on_a_unit_three_times_loses_it_to_others() {
    let mut world = World::new(1, None, Settings::default());
    world.now_ms = 1_000_000;
    for guest in ["guest:a-1", "guest:a-2", "guest:a-1"] {
        let lease = world.sync(guest, 1).remove(0);
        let unit = UnitId { job: JOB, unit: 0 };
        assert_eq!(world.campaign.fail(unit, lease.attempt, guest, "no GPU"), None);
        assert!(world.response(guest, 0, Vec::new()).desired.is_empty(), "it gives the unit back");
    }
    assert!(world.sync("guest:a-1", 1).is_empty() && world.sync("guest:a-3", 1).is_empty());
    assert_eq!(world.sync("guest:b-1", 1).len(), 1);
}
