//! The event log for operators: the latest events, each with a number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::now_ms;
use crate::cluster::protocol::v1::{self, EventKind, EventLevel};
use crate::decomposition::JobHash;

/// The maximum number of events. Older ones are dropped.
const MOST_EVENTS: usize = 1024;

/// An event that operators should know of.
#[derive(Clone, Debug)]
pub(super) struct OperatorEvent {
    pub(super) kind: EventKind,
    pub(super) level: EventLevel,
    pub(super) job: Option<JobHash>,
    pub(super) worker: String,
    /// A one-line description.
    pub(super) text: String,
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

    /// Sets the job that the event concerns.
    pub(super) fn of_job(self, job: JobHash) -> Self {
        Self { job: Some(job), ..self }
    }

    /// Sets the worker that the event concerns.
    pub(super) fn of_worker(self, worker: &str) -> Self {
        Self { worker: worker.to_owned(), ..self }
    }
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
    pub(super) fn note(&self, operator_event: OperatorEvent) {
        self.note_at(now_ms(), operator_event);
    }

    /// Adds an event that happened at a given time, in ms since 1970.
    pub(super) fn note_at(&self, at_ms: u64, operator_event: OperatorEvent) {
        let OperatorEvent { kind, level, job, worker, text } = operator_event;
        // Text from a worker must not add lines to the log.
        let text =
            text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
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
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let first = events.latest.partition_point(|event| event.number <= after);
        events.latest.range(first..).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_each_is_told_once() {
        let event_log = EventLog::start(1_800_000_000_000);
        let note = |number: usize| {
            event_log
                .note(OperatorEvent::info(EventKind::Joined, format!("worker {number}\nis here")));
        };
        (0..3).for_each(note);
        let first = event_log.after(0);
        assert_eq!(
            first.iter().map(|event| &event.text[..]).collect::<Vec<_>>(),
            ["worker 0 is here", "worker 1 is here", "worker 2 is here"]
        );
        assert!(event_log.after(first[2].number).is_empty());
        (3..MOST_EVENTS + 5).for_each(note);
        let rest = event_log.after(first[2].number);
        assert_eq!((rest.len(), &rest[0].text[..]), (MOST_EVENTS, "worker 5 is here"));
        assert!(rest.windows(2).all(|two| two[0].number + 1 == two[1].number));
        assert!(rest[MOST_EVENTS - 1].number < 1 << 53, "a double holds it");
        // A later run.
        let later = EventLog::start(1_800_000_000_000 + 60_000);
        later.note(OperatorEvent::info(EventKind::Started, "again"));
        assert!(later.after(0)[0].number > rest[MOST_EVENTS - 1].number);
    }
}
