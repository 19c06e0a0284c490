use super::super::actor::tests::{actor, done, source};
use super::super::commands::WorkerDetails;
use super::*;
use crate::cluster::campaign::{CampaignEvent, JobState, Source, SyncRequest, UnitId};

/// Returns a name of the maximum length, made of the characters that take the most bytes.
fn long(number: u64) -> String {
    format!("{number:07}") + &"\u{10ffff}".repeat(62)
}

#[test]
fn the_size_of_a_status_is_bounded_whatever_workers_report() {
    const SOURCES: u64 = 5_000;
    let mut test = actor("many-sources");
    let job = test.submit(SOURCES + 1);
    for unit in 0..=SOURCES {
        // One source has counted twice as many units as any other.
        let name = long(unit.min(SOURCES - 1));
        let [worker, owner, kernel, device, build] = std::array::from_fn(|_| name.clone());
        let source = Source { worker, owner, kernel, device, build };
        test.actor.campaign.apply(&done(UnitId { job, unit }, 1, source));
    }
    for number in 0..100 {
        let (worker, reason) = (long(number), "lied ".repeat(2_000));
        test.actor.campaign.apply(&CampaignEvent::WorkerQuarantined {
            worker,
            reason,
            widen: false,
        });
        let info = test.actor.jobs.get_mut(&job).expect("it was submitted");
        info.poison.insert(number, "failed ".repeat(2_000));
    }
    for (digits, most) in [(job.to_string(), 256), (String::new(), 16)] {
        let status = test.status(&digits);
        assert!(status.encoded_len() < 1 << 20, "{} bytes", status.encoded_len());
        let [job] = &status.jobs[..] else { panic!("one job") };
        assert_eq!(job.sources.len(), most);
        // No unit is lost, and the largest source has a separate row.
        assert_eq!(job.sources.iter().map(|source| source.units).sum::<u64>(), SOURCES + 1);
        assert_eq!(job.sources.last().map(|last| &last.worker[..]), Some("(others)"));
        let largest = long(SOURCES - 1);
        assert!(job.sources.iter().any(|s| s.units == 2 && largest.starts_with(&s.worker)));
        assert!((1..=20).contains(&job.notes.len()), "{}", job.notes.len());
        assert!(job.notes.iter().all(|note| note.chars().count() <= 500));
    }
}

#[test]
fn the_size_of_a_list_of_workers_is_bounded_whatever_they_report() {
    let device =
        Device { id: long(0), name: long(1), kernel: long(2), fault: long(3), ..Device::default() };
    let devices = vec![device; 64];
    let mut test = actor("many-workers");
    for number in 0..4_200u64 {
        let request = SyncRequest {
            worker: long(number),
            owner: long(number),
            boot: 1,
            capacity: 1,
            kernels: (0..64).map(long).collect(),
            ..SyncRequest::default()
        };
        test.actor.campaign.sync(&request, number);
    }
    for number in 4_100..4_200 {
        let details =
            WorkerDetails { build: long(9), address: long(9), devices: devices.clone(), key: None };
        test.actor.workers.set_details(long(number), details);
    }
    let workers = test.workers().workers;
    assert_eq!(workers.len(), 4_096);
    assert!(workers.is_sorted_by_key(|worker| &worker.name));
    // The workers that were seen last are among them.
    let last = workers.last().expect("there are many");
    assert!(long(4_199).starts_with(&last.name) && !last.devices.is_empty());
    assert!(workers.iter().all(|worker| worker.encoded_len() <= MOST_WORKER_BYTES));
}

#[test]
fn the_list_of_workers_has_their_confirmed_units() {
    let mut test = actor("records");
    let job = test.dispute();
    test.confirm(job);
    let records = test.campaign.records();
    let record = records.get(&"w1".to_owned()).expect("the worker has counted");
    assert_eq!((record.units, record.confirmed), (2, 2));
}

#[test]
fn a_dispute_describes_the_problem_the_action_and_its_end() {
    let mut test = actor("stages");
    let job = test.dispute();
    let status =
        |test: &super::super::actor::tests::TestActor| test.status(&job.to_string()).jobs.remove(0);
    let begun = status(&test);
    assert_eq!(begun.state(), v1::JobState::Disputed);
    assert!(begun.dispute.contains("93 contradicts the published value 92"), "{}", begun.dispute);
    assert!(
        begun.dispute.contains("being counted again") && !begun.dispute_exhausted,
        "{}",
        begun.dispute
    );
    assert!(begun.notes.contains(&begun.dispute));
    test.confirm(job);
    let over = status(&test);
    assert_eq!((over.state(), over.checked, over.audited), (v1::JobState::Disputed, 2, 2));
    assert!(
        over.dispute.contains("please report it") && over.dispute_exhausted,
        "{}",
        over.dispute
    );
    // A result that is voided and counted again reopens the dispute.
    let reason = "it is wrong".to_owned();
    test.actor.campaign.apply(&CampaignEvent::UnitVoided { unit: UnitId { job, unit: 1 }, reason });
    let again = status(&test);
    assert!(!again.dispute_exhausted && again.dispute.contains("taken back"), "{}", again.dispute);
    test.actor.campaign.apply(&done(UnitId { job, unit: 1 }, 46, source("w2")));
    (0..3).for_each(|_| {
        let events = test.actor.campaign.tick(0);
        events.iter().for_each(|event| test.actor.campaign.apply(event));
    });
    let right = status(&test);
    assert_eq!((right.state(), &right.dispute[..]), (v1::JobState::Finished, ""));
    assert_eq!(test.campaign.state(&job), Some(JobState::Finished));
}

#[test]
fn only_none_and_all_have_the_extreme_shares() {
    for all in [1, 2, 244, 255, 256, 1_000_000] {
        for units in [0, 1, all / 2, all - 1, all] {
            let share = share(units, all);
            assert_eq!((share == 0, share == 255), (units == 0, units == all), "{units} of {all}");
        }
    }
    assert_eq!(share(1, 2), 127);
}
