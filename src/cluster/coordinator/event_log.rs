//! The event log for operators: the latest events, each with a number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::job_info::Jobs;
use super::{lock, now_ms};
use crate::cluster::campaign::{Campaign, CampaignEvent, JobState};
use crate::cluster::protocol::v1::{self, EventKind, EventLevel};
use crate::decomposition::JobHash;
use crate::report::{count_title, counted};

/// The maximum number of events. Older ones are dropped.
const MOST_EVENTS: usize = 1024;

/// An event that operators should know of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OperatorEvent {
    #[serde(serialize_with = "as_number", deserialize_with = "of_number")]
    pub(super) kind: EventKind,
    #[serde(serialize_with = "as_number", deserialize_with = "of_number")]
    pub(super) level: EventLevel,
    pub(super) job: Option<JobHash>,
    pub(super) worker: String,
    /// A one-line description.
    pub(super) text: String,
}

fn as_number<S: Serializer>(value: &(impl Copy + Into<i32>), to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i32((*value).into())
}

fn of_number<'de, D: Deserializer<'de>, T: TryFrom<i32>>(from: D) -> Result<T, D::Error> {
    let number = i32::deserialize(from)?;
    T::try_from(number).map_err(|_| D::Error::custom(format!("no value has the number {number}")))
}

impl OperatorEvent {
    /// Creates an event about normal operation.
    pub(super) fn info(kind: EventKind, text: impl Into<String>) -> Self {
        Self { kind, level: EventLevel::Info, job: None, worker: String::new(), text: text.into() }
    }

    pub(super) fn warning(kind: EventKind, text: impl Into<String>) -> Self {
        Self { level: EventLevel::Warning, ..Self::info(kind, text) }
    }

    pub(super) fn error(kind: EventKind, text: impl Into<String>) -> Self {
        Self { level: EventLevel::Error, ..Self::info(kind, text) }
    }

    /// Returns what operators are told about an event that was applied to the campaign, and that
    /// was requested by `who` if that is not empty. Returns `None` for events that are too
    /// frequent.
    pub(super) fn of(
        event: &CampaignEvent,
        campaign: &Campaign,
        jobs: &Jobs,
        who: &str,
    ) -> Option<Self> {
        Some(match event {
            CampaignEvent::JobSubmitted { job, units, submitter, .. } => {
                Self::job_submitted(*job, &job_title(jobs, job), submitter, Some(*units))
            }
            CampaignEvent::JobState { job, state } => {
                let changed = Self::job_state(*job, &job_title(jobs, job), *state, who);
                match outcome(campaign, job, *state) {
                    Some(outcome) => changed.with_outcome(&outcome),
                    None => changed,
                }
            }
            CampaignEvent::UnitPoisoned { unit, reason } => {
                let text = format!("Unit {} set aside: {reason}", unit.unit);
                Self::error(EventKind::Poisoned, text).of_job(unit.job)
            }
            CampaignEvent::WorkerQuarantined { worker, reason, .. } => {
                let text = format!("Worker {worker} put in quarantine: {reason}");
                Self::error(EventKind::Quarantined, text).of_worker(worker)
            }
            CampaignEvent::WorkerReleased { worker } => {
                let text = format!("Worker {worker} released from quarantine{}", by(who));
                Self::info(EventKind::Released, text).of_worker(worker)
            }
            CampaignEvent::WorkerDrained { worker, .. } => {
                let text = format!("Worker {worker} drained{}: it gets no more units", by(who));
                Self::info(EventKind::Draining, text).of_worker(worker)
            }
            _ => return None,
        })
    }

    /// Creates the event of a submission of a job with this title. Only counts have units.
    pub(super) fn job_submitted(
        job: JobHash,
        title: &str,
        submitter: &str,
        units: Option<u64>,
    ) -> Self {
        let units = units.map(|units| format!(", {}", counted(units.into(), "unit")));
        let text = format!(
            "{} submitted{}{}",
            capitalised(title),
            by(submitter),
            units.unwrap_or_default()
        );
        Self::info(EventKind::Submitted, text).of_job(job)
    }

    /// Creates the event of a job with this title that entered a state, requested by `who` if that
    /// is not empty.
    pub(super) fn job_state(job: JobHash, title: &str, state: JobState, who: &str) -> Self {
        let state_words = if state == JobState::Running { "resumed" } else { state.name() };
        let text = format!("{} {state_words}{}", capitalised(title), by(who));
        let event = match state {
            JobState::Finished => Self::info(EventKind::Finished, text),
            JobState::Disputed => Self::error(EventKind::Disputed, text),
            JobState::Running | JobState::Paused | JobState::Cancelled => {
                Self::info(EventKind::State, text)
            }
        };
        event.of_job(job)
    }

    /// Adds the outcome of a job: "Count of 8 queens finished: 92 solutions".
    pub(super) fn with_outcome(self, outcome: &str) -> Self {
        let text = format!("{}: {outcome}", self.text);
        Self { text, ..self }
    }

    /// Sets the job that the event concerns.
    pub(super) fn of_job(self, job: JobHash) -> Self {
        Self { job: Some(job), ..self }
    }

    /// Sets the worker that the event concerns.
    pub(super) fn of_worker(self, worker: &str) -> Self {
        Self { worker: worker.to_owned(), ..self }
    }
}

/// Returns " by anna", or an empty text if nobody is named.
fn by(who: &str) -> String {
    if who.is_empty() { String::new() } else { format!(" by {who}") }
}

/// Returns a title as the beginning of a sentence: "Count of 8 queens".
fn capitalised(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The latest events. Clones are cheap and share the events.
#[derive(Clone, Debug)]
pub(super) struct EventLog {
    events: Arc<Mutex<Events>>,
}

#[derive(Debug)]
struct Events {
    latest: VecDeque<v1::Event>,
    next: u64,
}

impl EventLog {
    /// Creates an empty log. Its numbers start above those of all earlier runs, as long as no run
    /// logs more than 1024 events per millisecond and the clock is not set back.
    pub(super) fn start(now_ms: u64) -> Self {
        let events = Events { latest: VecDeque::new(), next: now_ms << 10 };
        Self { events: Arc::new(Mutex::new(events)) }
    }

    /// Adds an event that happened now.
    pub(super) fn add(&self, operator_event: OperatorEvent) {
        self.add_at(now_ms(), operator_event);
    }

    /// Adds an event that happened at a given time, in ms since 1970.
    pub(super) fn add_at(&self, at_ms: u64, operator_event: OperatorEvent) {
        let OperatorEvent { kind, level, job, worker, text } = operator_event;
        // Text from a worker must not add lines to the log.
        let text =
            text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let mut events = lock(&self.events);
        let number = events.next;
        events.next += 1;
        if events.latest.len() == MOST_EVENTS {
            events.latest.pop_front();
        }
        events.latest.push_back(v1::Event {
            number,
            at_ms,
            kind: kind.into(),
            level: level.into(),
            job: job.map(|job| job.to_bytes().into()).unwrap_or_default(),
            worker,
            text,
        });
    }

    /// Returns the events with a number above `after`, in order.
    pub(super) fn after(&self, after: u64) -> Vec<v1::Event> {
        let events = lock(&self.events);
        let first = events.latest.partition_point(|event| event.number <= after);
        events.latest.range(first..).cloned().collect()
    }
}

/// The latest operator events that follow from the ledger, each with the time of its entry in ms
/// since 1970.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PastEvents(VecDeque<(u64, OperatorEvent)>);

impl PastEvents {
    /// Adds an event, and drops the oldest if there are too many.
    pub(super) fn add(&mut self, at_ms: u64, operator_event: OperatorEvent) {
        if self.0.len() == MOST_EVENTS {
            self.0.pop_front();
        }
        self.0.push_back((at_ms, operator_event));
    }

    /// Returns the events in the order of their entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(u64, OperatorEvent)> {
        self.0.iter()
    }
}

/// Returns a job in words.
fn job_title(jobs: &Jobs, job: &JobHash) -> String {
    jobs.get(job).map_or_else(|| format!("job {job}"), |info| count_title(info.job.problem()))
}

/// Returns the number of solutions of a job that is finished: "92 solutions".
fn outcome(campaign: &Campaign, job: &JobHash, state: JobState) -> Option<String> {
    let progress = campaign.progress(job).filter(|_| state == JobState::Finished)?;
    Some(counted(progress.total.solutions().ok()?, "solution"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::campaign::{CampaignKey, Settings, UnitId};

    #[test]
    fn events_are_plain_sentences() {
        let (job, title) = (JobHash::from_bytes([7; 16]), "count of 19 queens");
        let state = |state, who| OperatorEvent::job_state(job, title, state, who);
        let campaign = Campaign::new(Settings::default(), 0, CampaignKey::from_seed(0));
        let of = |event| {
            OperatorEvent::of(&event, &campaign, &Jobs::new(), "anna").expect("it is shown")
        };
        let worker = "w1".to_owned();
        for (event, text) in [
            (
                OperatorEvent::job_submitted(job, title, "operator", Some(64)),
                "Count of 19 queens submitted by operator, 64 units",
            ),
            (
                OperatorEvent::job_submitted(job, "first solution of 62 queens", "", None),
                "First solution of 62 queens submitted",
            ),
            (state(JobState::Paused, "anna"), "Count of 19 queens paused by anna"),
            (state(JobState::Running, "anna"), "Count of 19 queens resumed by anna"),
            (state(JobState::Cancelled, ""), "Count of 19 queens cancelled"),
            (
                state(JobState::Finished, "").with_outcome("4 968 057 848 solutions"),
                "Count of 19 queens finished: 4 968 057 848 solutions",
            ),
            (
                of(CampaignEvent::UnitPoisoned {
                    unit: UnitId { job, unit: 7 },
                    reason: "out of memory".to_owned(),
                }),
                "Unit 7 set aside: out of memory",
            ),
            (
                of(CampaignEvent::WorkerQuarantined {
                    worker: worker.clone(),
                    reason: "its result for unit 3 is wrong".to_owned(),
                    widen: true,
                }),
                "Worker w1 put in quarantine: its result for unit 3 is wrong",
            ),
            (
                of(CampaignEvent::WorkerReleased { worker: worker.clone() }),
                "Worker w1 released from quarantine by anna",
            ),
            (
                of(CampaignEvent::WorkerDrained { worker, boot: 1 }),
                "Worker w1 drained by anna: it gets no more units",
            ),
        ] {
            assert_eq!(event.text, text);
        }
    }

    #[test]
    fn the_latest_events_are_kept_and_each_is_returned_once() {
        let event_log = EventLog::start(1_800_000_000_000);
        let add = |number: usize| {
            event_log.add(OperatorEvent::info(
                EventKind::Joined,
                format!("worker {number}\nhas joined"),
            ));
        };
        (0..3).for_each(add);
        let first = event_log.after(0);
        assert_eq!(
            first.iter().map(|event| &event.text[..]).collect::<Vec<_>>(),
            ["worker 0 has joined", "worker 1 has joined", "worker 2 has joined"]
        );
        assert!(event_log.after(first[2].number).is_empty());
        (3..MOST_EVENTS + 5).for_each(add);
        let rest = event_log.after(first[2].number);
        assert_eq!((rest.len(), &rest[0].text[..]), (MOST_EVENTS, "worker 5 has joined"));
        assert!(rest.windows(2).all(|two| two[0].number + 1 == two[1].number));
        assert!(rest[MOST_EVENTS - 1].number < 1 << 53, "a double holds it");
        // A later run.
        let later = EventLog::start(1_800_000_000_000 + 60_000);
        later.add(OperatorEvent::info(EventKind::Started, "again"));
        assert!(later.after(0)[0].number > rest[MOST_EVENTS - 1].number);
    }
}
