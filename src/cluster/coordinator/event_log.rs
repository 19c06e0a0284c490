//! The running log that people see: the latest events, each with a number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::now_ms;
use crate::cluster::protocol::v1::{self, EventKind, EventLevel};
use crate::decomposition::JobHash;

/// More are forgotten.
const MOST_EVENTS: usize = 1024;

/// What has happened.
#[derive(Clone, Debug)]
pub(super) struct OperatorEvent {
    pub(super) kind: EventKind,
    pub(super) level: EventLevel,
    pub(super) job: Option<JobHash>,
    pub(super) worker: String,
    /// In one line.
    pub(super) text: String,
}

impl OperatorEvent {
    /// Something that is as it should be.
    pub(super) fn info(kind: EventKind, text: impl Into<String>) -> Self {
        Self { kind, level: EventLevel::Info, job: None, worker: String::new(), text: text.into() }
    }

    pub(super) fn warning(kind: EventKind, text: impl Into<String>) -> Self {
        Self { level: EventLevel::Warning, ..Self::info(kind, text) }
    }

    pub(super) fn error(kind: EventKind, text: impl Into<String>) -> Self {
        Self { level: EventLevel::Error, ..Self::info(kind, text) }
    }

    /// The job that it is about.
    pub(super) fn of_job(self, job: JobHash) -> Self {
        Self { job: Some(job), ..self }
    }

    /// The worker that it is about.
    pub(super) fn of_worker(self, worker: &str) -> Self {
        Self { worker: worker.to_owned(), ..self }
    }
}

/// The latest events; cheap to clone, and all clones are one.
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
    /// Without any. The numbers begin above all of an earlier run, as long as no run has more than a thousand a
    /// millisecond and no clock goes back.
    pub(super) fn start(now_ms: u64) -> Self {
        let events = Events { latest: VecDeque::new(), next: now_ms << 10 };
        Self { events: Arc::new(Mutex::new(events)) }
    }

    /// Something has happened now.
    pub(super) fn note(&self, operator_event: OperatorEvent) {
        self.note_at(now_ms(), operator_event);
    }

    /// Something has happened at a time, in ms since 1970.
    pub(super) fn note_at(&self, at_ms: u64, operator_event: OperatorEvent) {
        let OperatorEvent { kind, level, job, worker, text } = operator_event;
        // What workers say of themselves must not become lines of its own.
        let text = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
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

    /// Those with a number above `after`, in their order.
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
            event_log.note(OperatorEvent::info(EventKind::Joined, format!("worker {number}\nis here")));
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
