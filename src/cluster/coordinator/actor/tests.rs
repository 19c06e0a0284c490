use std::ops::Deref;
use std::path::PathBuf;

use super::super::commands::StateError;
use super::super::event_log::EventLog;
use super::super::metrics::Metrics;
use super::super::notifier::{Notification, NotificationKind, Notifier};
use super::*;
use crate::board::{Piece, Problem};
use crate::cluster::campaign::{COORDINATOR, JobState, Source};
use crate::cluster::protocol::v1::{self, EventKind, EventLevel};
use crate::decomposition::{Job, Scheme};
use crate::tally::{Residues, Tally};

/// A campaign actor without a thread. Dropping it removes its directory.
pub(in crate::cluster::coordinator) struct TestActor {
    pub(in crate::cluster::coordinator) actor: CampaignActor,
    pub(in crate::cluster::coordinator) notifications: std_mpsc::Receiver<Notification>,
    event_log: EventLog,
    folder: PathBuf,
    _assigned: std_mpsc::Receiver<Assigned>,
}

impl Drop for TestActor {
    fn drop(&mut self) {
        self.actor.ledger.close();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Deref for TestActor {
    type Target = CampaignActor;

    fn deref(&self) -> &CampaignActor {
        &self.actor
    }
}

pub(in crate::cluster::coordinator) fn actor(name: &str) -> TestActor {
    let folder =
        std::env::temp_dir().join(format!("nqueens-campaign-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (notifier, notifications) = Notifier::for_test();
    let (arbiter, assigned) = std_mpsc::channel();
    let event_log = EventLog::start(now_ms());
    let observers = Observers::new(Arc::new(Metrics::new()), notifier, event_log.clone());
    let calls = Arc::default();
    let options = ActorOptions {
        path: folder.join("ledger.db"),
        snapshot_every: 0,
        settings: Settings::default(),
    };
    let actor = CampaignActor::open(options, observers, (arbiter, calls));
    TestActor {
        actor: actor.expect("a new ledger"),
        notifications,
        event_log,
        folder,
        _assigned: assigned,
    }
}

pub(in crate::cluster::coordinator) fn source(worker: &str) -> Source {
    Source {
        worker: worker.into(),
        owner: worker.into(),
        kernel: "scalar".into(),
        device: "cpu".into(),
        build: "0.1.0".into(),
    }
}

pub(in crate::cluster::coordinator) fn done(
    unit: UnitId,
    solutions: u128,
    source: Source,
) -> CampaignEvent {
    let thirds = 3 * solutions;
    let tally = Tally::from_parts(thirds, Residues::of(thirds), 1);
    let (checks, sub_sums) = (Some(Default::default()), Vec::new());
    CampaignEvent::UnitDone {
        unit,
        attempt: 1,
        tally,
        source,
        elapsed_s: 0.5,
        checks,
        sub_sums,
        signature: None,
    }
}

impl TestActor {
    /// Submits the count of 8 queens as a job of `units` units.
    pub(in crate::cluster::coordinator) fn submit(&mut self, units: u64) -> JobHash {
        let job = Job::new(Problem::empty(Piece::Queen, 8), Scheme::CentreCross, None, 64)
            .expect("small");
        let submission = CampaignEvent::submission(&job, units, 0, "anna", now_ms());
        self.actor.record(vec![submission]).expect("the disk has room");
        job.hash()
    }

    /// Submits a job of two units and completes it with 93 solutions: one too many.
    pub(in crate::cluster::coordinator) fn dispute(&mut self) -> JobHash {
        let job = self.submit(2);
        for (unit, solutions) in [(0, 46), (1, 47)] {
            let result = done(UnitId { job, unit }, solutions, source("w1"));
            self.actor.record(vec![result]).expect("the disk has room");
        }
        self.actor.tick();
        assert_eq!(self.campaign.state(&job), Some(JobState::Disputed));
        job
    }

    /// Confirms both units of that job on behalf of the coordinator.
    pub(in crate::cluster::coordinator) fn confirm(&mut self, job: JobHash) {
        for (unit, solutions) in [(0, 46), (1, 47)] {
            let CampaignEvent::UnitDone { unit, tally, elapsed_s, .. } =
                done(UnitId { job, unit }, solutions, source("w1"))
            else {
                unreachable!("it is one");
            };
            let source = source(COORDINATOR);
            let (mirrored, agrees) = (true, true);
            let recount = CampaignEvent::Recount {
                unit,
                tally,
                source,
                mirrored,
                agrees,
                elapsed_s,
                signature: None,
            };
            self.actor.record(vec![recount]).expect("the disk has room");
        }
        (0..3).for_each(|_| self.actor.tick());
    }
}

#[test]
fn operators_are_notified_of_a_dispute_and_once_more_when_no_recount_is_left() {
    let mut test = actor("dispute");
    let job = test.dispute();
    let notifications: Vec<Notification> = test.notifications.try_iter().collect();
    assert_eq!(
        (notifications.len(), notifications[0].kind),
        (1, NotificationKind::Disputed),
        "{notifications:?}"
    );
    assert!(
        notifications[0].text.contains("the total 93 contradicts the published value 92"),
        "{notifications:?}"
    );
    let errors = |test: &TestActor| {
        let disputed = |event: &v1::Event| event.kind() == EventKind::Disputed;
        let events: Vec<_> = test.event_log.after(0).into_iter().filter(disputed).collect();
        assert!(events.iter().all(|event| event.level() == EventLevel::Error), "{events:?}");
        events.len()
    };
    assert_eq!(errors(&test), 1);
    test.confirm(job);
    let notifications: Vec<Notification> = test.notifications.try_iter().collect();
    assert_eq!(
        (notifications.len(), notifications[0].kind),
        (1, NotificationKind::Disputed),
        "{notifications:?}"
    );
    assert!(
        notifications[0].text.contains("stays disputed")
            && notifications[0].text.contains("please report it"),
        "{notifications:?}"
    );
    assert_eq!(errors(&test), 2);
    test.actor.tick();
    assert_eq!(errors(&test), 2);
}

#[test]
fn a_disputed_job_can_be_paused_resumed_and_cancelled_but_not_declared_finished() {
    let mut test = actor("steered");
    let job = test.dispute();
    let name = job.to_string();
    for state in [JobState::Finished, JobState::Disputed] {
        test.actor.set_state(&name, JobState::Paused).expect("it can be paused");
        let refused = test.actor.set_state(&name, state).expect_err("only a count says so");
        assert!(matches!(refused, StateError::Over(..)), "{refused}");
        test.actor.tick();
        assert_eq!(test.campaign.state(&job), Some(JobState::Paused));
        // It continues, and becomes disputed again without further requests.
        test.actor.set_state(&name, JobState::Running).expect("it can be resumed");
        (0..2).for_each(|_| test.actor.tick());
        assert_ne!(test.campaign.state(&job), Some(JobState::Finished));
    }
    let (_, before) =
        test.actor.set_state(&name, JobState::Cancelled).expect("it can be cancelled");
    assert!(matches!(before, JobState::Disputed | JobState::Running), "{before:?}");
    test.actor.tick();
    assert_eq!(test.campaign.state(&job), Some(JobState::Cancelled));
}

#[test]
fn a_ledger_that_is_read_again_gives_the_same_jobs_and_events() {
    let mut test = actor("read-again");
    let job = test.submit(3);
    let unit = |unit| UnitId { job, unit };
    let (worker, reason) = ("w1".to_owned(), "it lied".to_owned());
    let events = vec![
        done(unit(0), 46, source("w1")),
        CampaignEvent::UnitPoisoned { unit: unit(1), reason: "it failed".into() },
        CampaignEvent::UnitPoisoned { unit: unit(2), reason: "it failed".into() },
        CampaignEvent::UnitRevived { unit: unit(2) },
        // The entry that names the owner of a worker comes a moment after its first result.
        CampaignEvent::WorkerQuarantined {
            worker: worker.clone(),
            reason: reason.clone(),
            widen: true,
        },
        CampaignEvent::UnitVoided { unit: unit(0), reason },
        CampaignEvent::WorkerSeen { worker: worker.clone(), owner: worker.clone(), key: None },
        done(unit(0), 40, source(COORDINATOR)),
        CampaignEvent::JobState { job, state: JobState::Paused },
        CampaignEvent::WorkerReleased { worker: "w2".into() },
        CampaignEvent::WorkerDrained { worker: "w3".into(), boot: 7 },
        CampaignEvent::Note { text: "read again".into() },
    ];
    test.actor.record(events).expect("the disk has room");
    let state = |actor: &CampaignActor| {
        let info = actor.jobs.get(&job).expect("it was submitted");
        (
            actor.campaign.progress(&job),
            actor.campaign.quarantined().clone(),
            (info.job.to_string(), info.submitter.clone(), info.state_ms, info.poison.clone()),
        )
    };
    let before = state(&test.actor);
    test.actor.reopen().expect("it is sound");
    assert_eq!(state(&test.actor), before);
    let past: Vec<String> = test.past.iter().map(|(_, event)| event.text.clone()).collect();
    // That of the batch, and that of this start, are not in the ledger.
    let others = [EventKind::Voided, EventKind::Started];
    let shown = test.event_log.after(0).into_iter().filter(|event| !others.contains(&event.kind()));
    assert_eq!(past, shown.map(|event| event.text).collect::<Vec<_>>());
    assert_eq!(past.len(), 7, "{past:?}");
}

#[test]
fn a_job_whose_total_differs_between_campaign_and_ledger_is_not_finished() {
    let mut test = actor("unequal");
    let job = test.submit(2);
    for (unit, solutions) in [(0, 46), (1, 47)] {
        let result = done(UnitId { job, unit }, solutions, source(COORDINATOR));
        test.actor.record(vec![result]).expect("the disk has room");
    }
    // As if the campaign had added wrongly, and so had reached the published value.
    let (unit, reason) = (UnitId { job, unit: 1 }, String::new());
    test.actor.campaign.apply(&CampaignEvent::UnitVoided { unit, reason });
    test.actor.campaign.apply(&done(unit, 46, source(COORDINATOR)));
    test.actor.tick();
    assert_eq!(test.campaign.state(&job), Some(JobState::Running));
    let trouble = test.ledger.trouble().expect("it is reported");
    assert!(trouble.contains("another sum in the campaign than in the ledger"), "{trouble}");
    // The ledger is right, and is read again after a restart.
    test.actor.reopen().expect("it is sound");
    test.actor.tick();
    assert_eq!(test.campaign.state(&job), Some(JobState::Disputed));
}

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
    let recount = |which, solutions, worker: &str, agrees| {
        let CampaignEvent::UnitDone { unit, tally, source, elapsed_s, .. } =
            done(unit(which), solutions, source(worker))
        else {
            unreachable!("it is one")
        };
        let (mirrored, signature) = (true, None);
        CampaignEvent::Recount { unit, tally, source, mirrored, agrees, elapsed_s, signature }
    };
    vec![
        done(unit(0), 46, source("w1")),
        CampaignEvent::WorkerSeen { worker: "w1".into(), owner: "w1".into(), key: None },
        recount(0, 46, "w2", true),
        CampaignEvent::UnitPoisoned { unit: unit(1), reason: "it failed".into() },
        done(unit(2), 40, source("w2")),
        recount(2, 41, "w1", false),
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
    let mut test = actor("damaged-snapshot");
    let job = test.submit(4);
    for event in history(job) {
        test.actor.record(vec![event]).expect("the disk has room");
    }
    test.actor.write_snapshot(1);
    let live = shown(&test.actor);
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
    let mut test = actor("after-an-error");
    let job = test.submit(4);
    test.actor.record(history(job)).expect("the disk has room");
    test.actor.write_snapshot(1);
    let live = shown(&test.actor);
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
    let mut test = actor("other-settings");
    let job = test.submit(4);
    test.actor.record(history(job)).expect("the disk has room");
    test.actor.write_snapshot(1);
    let live = shown(&test.actor);
    test.actor.settings.sync_ms += 1;
    test.actor.resume().expect("the ledger is sound");
    assert_eq!((shown(&test.actor), test.snapshot.is_none()), (live, true));
}
