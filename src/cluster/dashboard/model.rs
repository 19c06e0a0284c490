//! The state shown by browsers: items by kind and name. Each status update is reduced to the items
//! that are new, changed or gone since the last one.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cluster::protocol::v1;
use crate::report::{JobReport, ProofReport, job_name};

/// The number of log lines that a newly connected browser gets.
const MOST_LINES: usize = 300;

/// Items by kind ("job", "proof", "worker", "contribution", "coordinator") and name.
type Items = BTreeMap<&'static str, BTreeMap<String, Value>>;

/// A status update from the coordinator.
#[derive(Debug, Default)]
pub(super) struct Update {
    items: Items,
    lines: Vec<v1::Event>,
    now_ms: u64,
}

/// The state shown by browsers.
#[derive(Debug, Default)]
pub(super) struct Model {
    items: Items,
    lines: VecDeque<Value>,
    last_event: u64,
    now_ms: u64,
}

/// Returns the report of a count, as `nqueens status --json` prints it, with its title and
/// sentences.
pub(super) fn job_report(status: v1::JobStatus, now_ms: u64) -> Value {
    let report = JobReport::new(status, now_ms);
    let mut value = titled(&report, report.title(), report.sentence());
    value["assurance_sentence"] = report.assurance_sentence().into();
    value["state_sentence"] = report.state_sentence().into();
    value
}

/// Returns the report of a proof, as `nqueens status --json` prints it, with its title.
pub(super) fn proof_report(status: v1::ProofStatus, now_ms: u64) -> Value {
    let report = ProofReport::new(status, now_ms);
    let mut value = titled(&report, report.title(), None);
    value["state_sentence"] = report.state.into();
    value
}

fn titled(report: &impl Serialize, title: String, sentence: Option<String>) -> Value {
    let mut value = serde_json::to_value(report).expect("numbers and strings serialise");
    value["title"] = title.into();
    value["sentence"] = sentence.into();
    value
}

fn job(mut job: v1::JobStatus, now_ms: u64) -> Value {
    let (submitted_ms, state_ms) = (job.submitted_ms, job.state_ms);
    // The sources are in the report, which is requested separately.
    job.sources.clear();
    if job.state() != v1::JobState::Running {
        job.units_per_s = 0.0;
    }
    with_fixed_times(job_report(job, now_ms), submitted_ms, state_ms)
}

fn proof(proof: v1::ProofStatus, now_ms: u64) -> Value {
    let (submitted_ms, state_ms) = (proof.submitted_ms, proof.state_ms);
    with_fixed_times(proof_report(proof, now_ms), submitted_ms, state_ms)
}

/// Replaces the elapsed time, which changes with every update, by fixed times.
fn with_fixed_times(mut report: Value, submitted_ms: u64, state_ms: u64) -> Value {
    if let Value::Object(report) = &mut report {
        report.remove("elapsed_s");
        report.insert("submitted_ms".into(), submitted_ms.into());
        report.insert("state_ms".into(), state_ms.into());
    }
    report
}

fn worker(worker: v1::WorkerStatus) -> Value {
    let device = |device: v1::Device| {
        json!({
            "id": device.id, "name": device.name, "kernel": device.kernel, "capacity": device.capacity,
            "fault": device.fault, "temperature_c": device.temperature_c,
        })
    };
    json!({
        "build": worker.build,
        "owner": worker.owner,
        "address": worker.address,
        "capacity": worker.capacity,
        "devices": worker.devices.into_iter().map(device).collect::<Vec<_>>(),
        "seen_ms": worker.seen_ms,
        "draining": worker.draining,
        "units_per_s": worker.units_per_s,
        "units_done": worker.units_done,
        "units_held": worker.held,
        "quarantined": worker.quarantined,
        "units": worker.units,
        "units_verified": worker.confirmed,
    })
}

fn contribution(each: &v1::Contribution) -> Value {
    json!({ "workers": each.workers, "units": each.units, "counting_s": each.counting_s })
}

fn line(event: &v1::Event) -> Value {
    let level = match event.level() {
        v1::EventLevel::Warning => "warning",
        v1::EventLevel::Error => "error",
        _ => "info",
    };
    json!({
        "number": event.number, "at_ms": event.at_ms, "level": level, "job": job_name(&event.job),
        "worker": event.worker, "text": event.text,
    })
}

impl Update {
    /// Creates an update from the coordinator's answers.
    pub(super) fn new(
        status: v1::StatusResponse,
        workers: v1::WorkersResponse,
        lines: Vec<v1::Event>,
    ) -> Self {
        let v1::WorkersResponse { workers, contributions } = workers;
        let now_ms = status.now_ms;
        let coordinator = json!({
            "build": status.build, "trouble": status.trouble, "workers": status.workers, "lease_ms": status.lease_ms,
        });
        let jobs = status.jobs.into_iter().map(|each| (job_name(&each.job), job(each, now_ms)));
        let proofs =
            status.proofs.into_iter().map(|each| (job_name(&each.job), proof(each, now_ms)));
        let workers = workers.into_iter().map(|each| (each.name.clone(), worker(each)));
        let contributions =
            contributions.iter().map(|each| (each.owner.clone(), contribution(each)));
        let items = Items::from([
            ("contribution", contributions.collect()),
            ("coordinator", BTreeMap::from([(String::new(), coordinator)])),
            ("job", jobs.collect()),
            ("proof", proofs.collect()),
            ("worker", workers.collect()),
        ]);
        Self { items, lines, now_ms }
    }
}

/// Returns whether an item is unchanged. The coordinator rounds the time of a worker's last contact
/// again for each update.
fn is_unchanged(before: &Value, now: &Value) -> bool {
    const ROUNDING_MS: u64 = 50;
    let seen = |value: &Value| value.get("seen_ms").and_then(Value::as_u64);
    match (seen(before), seen(now)) {
        (Some(a), Some(b)) if a != b && a.abs_diff(b) <= ROUNDING_MS => {
            let mut now = now.clone();
            now["seen_ms"] = a.into();
            *before == now
        }
        _ => before == now,
    }
}

impl Model {
    /// Returns the number of the last known event.
    pub(super) const fn last_event(&self) -> u64 {
        self.last_event
    }

    /// Applies an update. Returns the changes, or `None` if there are none.
    pub(super) fn apply(&mut self, update: Update) -> Option<Value> {
        let Update { items, lines, now_ms } = update;
        self.now_ms = now_ms;
        let (mut set, mut gone) = (Map::new(), Map::new());
        for (kind, now) in items {
            let before = self.items.entry(kind).or_default();
            let vanished: Vec<String> =
                before.keys().filter(|name| !now.contains_key(*name)).cloned().collect();
            before.retain(|name, _| now.contains_key(name));
            let mut changed = Map::new();
            for (name, value) in now {
                if !before.get(&name).is_some_and(|old| is_unchanged(old, &value)) {
                    changed.insert(name.clone(), value.clone());
                    before.insert(name, value);
                }
            }
            if !changed.is_empty() {
                set.insert(kind.into(), changed.into());
            }
            if !vanished.is_empty() {
                gone.insert(kind.into(), vanished.into());
            }
        }
        let new: Vec<Value> =
            lines.iter().filter(|event| event.number > self.last_event).map(line).collect();
        self.last_event = lines.iter().map(|event| event.number).fold(self.last_event, u64::max);
        self.lines.extend(new.iter().cloned());
        let surplus = self.lines.len().saturating_sub(MOST_LINES);
        self.lines.drain(..surplus);
        let log: Vec<Value> = new.into_iter().rev().take(MOST_LINES).rev().collect();
        if set.is_empty() && gone.is_empty() && log.is_empty() {
            return None;
        }
        Some(json!({ "now_ms": now_ms, "set": set, "gone": gone, "log": log }))
    }

    /// Returns the whole state, for a newly connected browser.
    pub(super) fn all(&self) -> Value {
        json!({ "now_ms": self.now_ms, "set": self.items, "gone": {}, "log": self.lines })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn update(jobs: &[(u8, u64)], workers: &[(&str, u64)], events: std::ops::Range<u64>) -> Update {
        let job = |&(name, done): &(u8, u64)| v1::JobStatus {
            job: vec![name; 2],
            done,
            ..Default::default()
        };
        let status =
            v1::StatusResponse { jobs: jobs.iter().map(job).collect(), ..Default::default() };
        let worker = |&(name, seen_ms): &(&str, u64)| v1::WorkerStatus {
            name: name.to_owned(),
            seen_ms,
            ..Default::default()
        };
        let events = events.map(|number| v1::Event { number, ..Default::default() });
        let contribution = |&(name, _): &(&str, u64)| v1::Contribution {
            owner: name.to_owned(),
            ..Default::default()
        };
        let workers = v1::WorkersResponse {
            workers: workers.iter().map(worker).collect(),
            contributions: workers.iter().map(contribution).collect(),
        };
        Update::new(status, workers, events.collect())
    }

    /// Applies a message as a browser does.
    fn browser(known: &mut Value, message: &Value) {
        for (kind, items) in message["set"].as_object().expect("kinds") {
            for (name, value) in items.as_object().expect("items") {
                known[kind][name] = value.clone();
            }
        }
        for (kind, names) in message["gone"].as_object().expect("kinds") {
            for name in names.as_array().expect("names") {
                known[kind].as_object_mut().expect("a kind").remove(name.as_str().expect("a name"));
            }
        }
    }

    #[test]
    fn unchanged_items_are_not_sent() {
        let mut model = Model::default();
        let first = model.apply(update(&[(1, 0)], &[("w", 10_000)], 1..4)).expect("new items");
        assert_eq!(first["set"]["job"]["0101"]["units_done"], 0);
        assert_eq!(first["log"].as_array().map(Vec::len), Some(3));
        assert!(first["set"]["job"]["0101"].get("elapsed_s").is_none());
        // The last contact differs only by rounding, and no event is sent twice.
        assert_eq!(model.apply(update(&[(1, 0)], &[("w", 10_001)], 1..4)), None);
        let next = model.apply(update(&[(1, 7)], &[], 3..5)).expect("a change");
        assert_eq!(next["set"].as_object().map(Map::len), Some(1));
        assert_eq!(first["set"]["job"]["0101"]["state_sentence"], "unknown");
        let job = &next["set"]["job"]["0101"];
        assert_eq!((&job["units_done"], &job["by"]), (&json!(7), &json!([])));
        assert_eq!((&job["submitted_ms"], &job["state_ms"]), (&json!(0), &json!(0)));
        assert_eq!(
            (&next["gone"], next["log"][0]["number"].as_u64()),
            (&json!({ "contribution": ["w"], "worker": ["w"] }), Some(4))
        );
    }

    proptest! {
        #[test]
        fn the_changes_lead_to_the_whole_state(
            updates in proptest::collection::vec(
                (proptest::collection::btree_map(0u8..4, 0u64..3, 0..4), proptest::collection::btree_set("[ab]", 0..3)),
                1..12,
            ),
        ) {
            let mut model = Model::default();
            let mut known = json!({ "contribution": {}, "coordinator": {}, "job": {}, "proof": {}, "worker": {} });
            for (jobs, workers) in updates {
                let jobs: Vec<(u8, u64)> = jobs.into_iter().collect();
                let workers: Vec<(&str, u64)> = workers.iter().map(|name| (&name[..], 0)).collect();
                if let Some(message) = model.apply(update(&jobs, &workers, 0..0)) {
                    browser(&mut known, &message);
                }
                prop_assert_eq!(&known, &model.all()["set"]);
            }
        }
    }
}
