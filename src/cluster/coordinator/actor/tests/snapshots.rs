use super::*;

/// Returns what a coordinator shows of its jobs and workers, except for times of this run.
fn shown(actor: &CampaignActor) -> String {
    let jobs: Vec<_> = actor
        .jobs
        .iter()
        .map(|(hash, info)| {
            let progress = actor.campaign.progress(hash);
            let of_units: Vec<_> =
                (0..4).map(|unit| actor.campaign.outcome(UnitId { job: *hash, unit })).collect();
            let poison = &info.poison;
            format!("{} {} {poison:?} {progress:?} {of_units:?}", info.job, info.submitter)
        })
        .collect();
    let past: Vec<&str> = actor.past.iter().map(|(_, event)| &event.text[..]).collect();
    let totals: Vec<_> = actor.ledger.file().expect("open").jobs().collect();
    let week = actor.contributions.of_week(now_ms());
    let quarantined = actor.campaign.quarantined();
    format!("{jobs:?} {past:?} {totals:?} {week:?} {quarantined:?}")
}

/// Events of a job of four units that leave nothing out, each to be recorded by itself.
fn history(job: JobHash) -> Vec<CampaignEvent> {
    let unit = |unit| UnitId { job, unit };
    vec![
        done(unit(0), 46, source("w1")),
        CampaignEvent::WorkerSeen { worker: "w1".into(), owner: "w1".into(), key: None },
        recount(unit(0), 46, "w2", true),
        CampaignEvent::UnitPoisoned { unit: unit(1), reason: "it failed".into() },
        done(unit(2), 40, source("w2")),
        recount(unit(2), 41, "w1", false),
        CampaignEvent::WorkerQuarantined {
            worker: "w2".into(),
            reason: "it lied".into(),
            widen: true,
        },
        CampaignEvent::UnitVoided { unit: unit(2), reason: "it is wrong".into() },
        done(unit(2), 41, source(COORDINATOR)),
        CampaignEvent::UnitRevived { unit: unit(1) },
        CampaignEvent::JobState { job, state: JobState::Paused },
        CampaignEvent::WorkerReleased { worker: "w2".into() },
        CampaignEvent::WorkerDrained { worker: "w3".into(), boot: 7 },
        CampaignEvent::JobState { job, state: JobState::Running },
        done(unit(1), 3, source("w1")),
    ]
}

/// Returns an actor with this history and a snapshot of all of it, and what it shows.
fn actor_with_snapshot(name: &str) -> (TestActor, String) {
    let mut test = actor(name);
    let job = test.submit(4);
    test.actor.record(history(job)).expect("the disk has room");
    test.actor.write_snapshot(1);
    let live = shown(&test.actor);
    (test, live)
}

#[test]
fn a_start_from_a_snapshot_after_any_entry_gives_the_same_as_a_start_without() {
    for before in 0..=15 {
        let mut test = actor(&format!("snapshot-{before}"));
        let job = test.submit(4);
        for (number, event) in history(job).into_iter().enumerate() {
            if number == before || number + 3 == before {
                test.actor.write_snapshot(1);
            }
            test.actor.record(vec![event]).expect("the disk has room");
        }
        let live = shown(&test.actor);
        test.actor.resume().expect("it is sound");
        assert!(test.snapshot.is_some() || before == 0, "{before}");
        assert_eq!(shown(&test.actor), live, "{before}");
        test.actor.abandon_snapshots();
        test.actor.resume().expect("it is sound");
        assert!(test.snapshot.is_none());
        assert_eq!(shown(&test.actor), live, "{before}");
    }
}

#[test]
fn a_damaged_or_foreign_snapshot_is_not_used() {
    let (mut test, live) = actor_with_snapshot("damaged-snapshot");
    let path = test.ledger.snapshot_path().to_owned();
    let good = std::fs::read(&path).expect("a snapshot");
    let mut refused = 0;
    for at in (0..good.len()).step_by(331) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(&path, bad).expect("it can be written");
        test.actor.resume().expect("the ledger is sound");
        refused += usize::from(test.snapshot.is_none());
        // A damaged page of units would be found when it is read.
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shown(&test.actor)));
        match read {
            Ok(read) => assert_eq!(read, live, "byte {at}"),
            Err(panic) => {
                let message = panic.downcast_ref::<String>().map_or("", |text| text);
                assert!(message.contains("cannot read a job's units"), "byte {at}: {message}");
            }
        }
    }
    assert!(refused > 10, "{refused}");
    for bad in [&b""[..], b"something else", &good[..good.len() / 2]] {
        std::fs::write(&path, bad).expect("it can be written");
        test.actor.resume().expect("the ledger is sound");
        assert_eq!((shown(&test.actor), test.snapshot.is_none()), (live.clone(), true));
    }

    // The snapshot of another ledger with as many entries, and one of a later state.
    let mut other = actor("foreign-snapshot");
    let job = other.submit(4);
    let events = history(job);
    let count = events.len();
    for event in events {
        other.actor.record(vec![event]).expect("the disk has room");
    }
    for extra in 0..2 {
        other.actor.write_snapshot(1);
        std::fs::copy(other.ledger.snapshot_path(), &path).expect("it can be copied");
        test.actor.resume().expect("the ledger is sound");
        assert_eq!((shown(&test.actor), test.snapshot.is_none()), (live.clone(), true));
        let note = CampaignEvent::Note { text: format!("entry {}", count + extra) };
        other.actor.record(vec![note]).expect("the disk has room");
    }
}

#[test]
fn damage_before_the_snapshot_is_found_after_the_start_and_nothing_more_is_written() {
    let mut test = actor("damaged-ledger");
    let job = test.submit(4);
    for event in history(job).into_iter().take(5) {
        test.actor.record(vec![event]).expect("the disk has room");
    }
    test.actor.write_snapshot(1);
    test.actor.ledger.close();
    let path = test.folder.join("ledger.db");
    let ledger = rusqlite::Connection::open(&path).expect("a ledger");
    let changed = ledger
        .execute("UPDATE entry SET body = replace(body, '138', '141') WHERE number = 2", [])
        .expect("it can be changed");
    assert_eq!(changed, 1);
    drop(ledger);
    test.actor.resume().expect("the snapshot is sound");
    assert!(test.snapshot.is_some());

    let (sender, checked) = std_mpsc::channel();
    ledger_check::start(path.clone(), move |checked| {
        let _ = sender.send(checked);
    })
    .expect("a thread");
    test.actor.ledger_checked(checked.recv().expect("a report"));
    let trouble = test.ledger.trouble().expect("it is reported").to_owned();
    assert!(trouble.contains("nothing is acknowledged") && trouble.contains('2'), "{trouble}");
    let event = done(UnitId { job, unit: 3 }, 1, source("w1"));
    test.actor.record(vec![event]).expect_err("nothing is written");
    test.actor.tick();
    assert_eq!(test.ledger.trouble(), Some(&trouble[..]));
    test.actor.write_snapshot(0);
    assert!(!test.ledger.snapshot_path().exists());
    // There is no snapshot now, so the next start finds the damage.
    test.actor.resume().expect_err("it is damaged");
}

#[test]
fn a_campaign_that_adds_wrongly_is_not_kept_in_a_snapshot() {
    let mut test = actor("unequal-snapshot");
    let job = test.submit(2);
    let result = done(UnitId { job, unit: 0 }, 46, source(COORDINATOR));
    test.actor.record(vec![result]).expect("the disk has room");
    test.actor.write_snapshot(1);
    let right = shown(&test.actor);
    let (unit, reason) = (UnitId { job, unit: 0 }, String::new());
    test.actor.campaign.apply(&CampaignEvent::UnitVoided { unit, reason });
    test.actor.campaign.apply(&done(unit, 47, source(COORDINATOR)));
    test.actor.record(vec![CampaignEvent::Note { text: String::new() }]).expect("there is room");
    test.actor.write_snapshot(1);
    assert!(!test.ledger.snapshot_path().exists());
    let trouble = test.ledger.trouble().expect("it is reported");
    assert!(trouble.contains("another sum in the campaign than in the ledger"), "{trouble}");
    // The pages of a new file would not be complete.
    test.actor.write_snapshot(0);
    assert!(!test.ledger.snapshot_path().exists());
    test.actor.resume().expect("the ledger is sound");
    assert_eq!(shown(&test.actor), right);
}

#[test]
fn a_damaged_page_that_is_noticed_at_the_start_leads_to_a_start_without_the_snapshot() {
    let mut test = actor("damaged-page");
    let job = test.submit(4);
    let events = history(job);
    test.actor.record(events[..2].to_vec()).expect("the disk has room");
    test.actor.write_snapshot(1);
    // The next entry is a recount of a unit in the snapshot.
    test.actor.record(events[2..3].to_vec()).expect("the disk has room");
    let live = shown(&test.actor);
    let path = test.ledger.snapshot_path().to_owned();
    let snapshot = rusqlite::Connection::open(&path).expect("a snapshot");
    let damage = "UPDATE page SET content = zeroblob(length(content))";
    assert_eq!(snapshot.execute(damage, []).expect("it can be changed"), 2);
    drop(snapshot);
    test.actor.resume().expect("the ledger is sound");
    assert_eq!((shown(&test.actor), test.snapshot.is_none()), (live, true));
}

#[test]
fn after_an_error_the_whole_ledger_is_read_also_if_there_is_a_snapshot() {
    let (mut test, live) = actor_with_snapshot("after-an-error");
    test.actor.ledger.close();
    let note = CampaignEvent::Note { text: "the ledger is closed".into() };
    test.actor.record(vec![note]).expect_err("it is opened again first");
    assert!(test.snapshot.is_none());
    assert_eq!(shown(&test.actor), live);
    // It goes on with new snapshots.
    test.actor.write_snapshot(1);
    test.actor.resume().expect("it is sound");
    assert!(test.snapshot.is_some());
    assert_eq!(shown(&test.actor), live);
}

#[test]
fn a_snapshot_of_other_settings_is_not_used() {
    let (mut test, live) = actor_with_snapshot("other-settings");
    test.actor.settings.sync_ms += 1;
    test.actor.resume().expect("the ledger is sound");
    assert_eq!((shown(&test.actor), test.snapshot.is_none()), (live, true));
}
