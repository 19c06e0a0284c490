use std::num::NonZeroUsize;
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
        arbiter_threads: NonZeroUsize::MIN,
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
    CampaignEvent::UnitDone {
        unit,
        attempt: 1,
        tally: tally(solutions),
        source,
        elapsed_s: 0.5,
        checks: Some(Default::default()),
        sub_sums: Vec::new(),
        signature: None,
    }
}

fn tally(solutions: u128) -> Tally {
    let thirds = 3 * solutions;
    Tally::from_parts(thirds, Residues::of(thirds), 1)
}

/// Returns the recount of a mirror image.
fn recount(unit: UnitId, solutions: u128, worker: &str, agrees: bool) -> CampaignEvent {
    CampaignEvent::Recount {
        unit,
        tally: tally(solutions),
        source: source(worker),
        mirrored: true,
        agrees,
        elapsed_s: 0.5,
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
            let recount = recount(UnitId { job, unit }, solutions, COORDINATOR, true);
            self.actor.record(vec![recount]).expect("the disk has room");
        }
        (0..3).for_each(|_| self.actor.tick());
    }
}

#[test]
fn operators_are_notified_of_a_dispute_and_once_more_when_no_recount_is_left() {
    let mut test = actor("dispute");
    let job = test.dispute();
    let text_of_dispute = |test: &TestActor| {
        let notifications: Vec<Notification> = test.notifications.try_iter().collect();
        let [notification] = &notifications[..] else { panic!("{notifications:?}") };
        assert_eq!(notification.kind, NotificationKind::Disputed);
        notification.text.clone()
    };
    let text = text_of_dispute(&test);
    assert!(text.contains("the total 93 contradicts the published value 92"), "{text}");
    let errors = |test: &TestActor| {
        let disputed = |event: &v1::Event| event.kind() == EventKind::Disputed;
        let events: Vec<_> = test.event_log.after(0).into_iter().filter(disputed).collect();
        assert!(events.iter().all(|event| event.level() == EventLevel::Error), "{events:?}");
        events.len()
    };
    assert_eq!(errors(&test), 1);
    test.confirm(job);
    let text = text_of_dispute(&test);
    assert!(text.contains("stays disputed") && text.contains("please report it"), "{text}");
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

mod snapshots;
