use std::ops::Deref;

use super::super::commands::StateError;
use super::super::event_log::EventLog;
use super::super::job_info::JobInfo;
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
    let actor = CampaignActor::open(
        folder.join("ledger.db"),
        Settings::default(),
        observers,
        (arbiter, calls),
    );
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
    CampaignEvent::UnitDone { unit, attempt: 1, tally, source, elapsed_s: 0.5, checks, sub_sums }
}

impl TestActor {
    /// Submits the count of 8 queens as a job of `units` units.
    pub(in crate::cluster::coordinator) fn submit(&mut self, units: u64) -> JobHash {
        let job = Job::new(Problem::empty(Piece::Queen, 8), Scheme::CentreCross, None, 64)
            .expect("small");
        let (entry, event) = ledger_entries::submission(&job, units, 0, "anna", now_ms());
        assert!(
            self.actor.append_and_apply(&[entry], &[event]),
            "{:?}",
            self.actor.ledger.trouble()
        );
        let info = JobInfo::new(job.clone(), "anna".into(), now_ms());
        self.actor.jobs.insert(job.hash(), info);
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
            let recount =
                CampaignEvent::Recount { unit, tally, source, mirrored, agrees, elapsed_s };
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
