//! Metrics for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::cluster::campaign::{Campaign, JobState, ResultVerdict};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabel {
    job: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkerLabel {
    worker: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabel {
    /// The name of the variant.
    verdict: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabel {
    call: String,
    code: &'static str,
}

type PerJob = Family<JobLabel, Gauge>;
type PerWorker = Family<WorkerLabel, Gauge>;

/// The metrics of a coordinator.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    results: Family<VerdictLabel, Counter>,
    calls: Family<CallLabel, Counter>,
    entries: Counter,
    append_s: Histogram,
    sync_s: Histogram,
    ledger_ok: Gauge,
    workers: Gauge,
    quarantined: Gauge,
    units: PerJob,
    units_done: PerJob,
    units_verified: PerJob,
    units_poisoned: PerJob,
    units_open: PerJob,
    disputes: PerJob,
    recounts_due: PerJob,
    running: PerJob,
    disputed: PerJob,
    units_audited: PerJob,
    units_spot_checked: PerJob,
    units_per_s: Family<WorkerLabel, Gauge<f64, AtomicU64>>,
    worker_units: PerWorker,
    worker_held: PerWorker,
    worker_seen: PerWorker,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.0001, 2.0, 18));
        let mut metrics = Self {
            registry: Registry::with_prefix("nqueens"),
            results: Family::default(),
            calls: Family::default(),
            entries: Counter::default(),
            append_s: seconds(),
            sync_s: seconds(),
            ledger_ok: Gauge::default(),
            workers: Gauge::default(),
            quarantined: Gauge::default(),
            units: PerJob::default(),
            units_done: PerJob::default(),
            units_verified: PerJob::default(),
            units_poisoned: PerJob::default(),
            units_open: PerJob::default(),
            disputes: PerJob::default(),
            recounts_due: PerJob::default(),
            running: PerJob::default(),
            disputed: PerJob::default(),
            units_audited: PerJob::default(),
            units_spot_checked: PerJob::default(),
            units_per_s: Family::default(),
            worker_units: PerWorker::default(),
            worker_held: PerWorker::default(),
            worker_seen: PerWorker::default(),
        };
        metrics.ledger_ok.set(1);
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("results", "Results reported by workers, by verdict", self.results.clone());
        r.register("calls", "Calls, by name and gRPC code", self.calls.clone());
        r.register("ledger_entries", "Entries written to the ledger", self.entries.clone());
        let (name, help) = ("ledger_append", "Time until a batch was durable");
        r.register_with_unit(name, help, Unit::Seconds, self.append_s.clone());
        let (name, help) = ("sync", "Time until a worker's sync was answered");
        r.register_with_unit(name, help, Unit::Seconds, self.sync_s.clone());
        r.register("ledger_ok", "1 while the ledger can be written", self.ledger_ok.clone());
        r.register(
            "workers",
            "Workers that synced within the lifetime of a lease",
            self.workers.clone(),
        );
        r.register("workers_quarantined", "Workers in quarantine", self.quarantined.clone());
        r.register("job_units", "Units of the job", self.units.clone());
        r.register("job_units_done", "Units counted", self.units_done.clone());
        let help = "Units that another owner or the coordinator recounted in full and confirmed";
        r.register("job_units_verified", help, self.units_verified.clone());
        let help = "Units that the coordinator itself recounted in full and confirmed";
        r.register("job_units_audited", help, self.units_audited.clone());
        let help =
            "Units of which another owner or the coordinator recounted a part and confirmed it";
        r.register("job_units_spot_checked", help, self.units_spot_checked.clone());
        r.register("job_units_poisoned", "Units set aside", self.units_poisoned.clone());
        r.register(
            "job_units_open",
            "Units that are not leased, counted or set aside",
            self.units_open.clone(),
        );
        r.register("job_disputes", "Units with two different results", self.disputes.clone());
        r.register("job_recounts_due", "Recounts that are pending", self.recounts_due.clone());
        r.register("job_running", "1 while the job is being counted", self.running.clone());
        let help = "1 while the total of the job is disputed";
        r.register("job_disputed", help, self.disputed.clone());
        let help = "Units per second as measured by the worker, over all jobs";
        r.register("worker_units_per_second", help, self.units_per_s.clone());
        r.register(
            "worker_units_done",
            "Units counted since the coordinator started",
            self.worker_units.clone(),
        );
        r.register("worker_units_held", "Units in the worker's leases", self.worker_held.clone());
        let help = "Time of the last sync of the worker, in seconds since 1970";
        r.register("worker_seen", help, self.worker_seen.clone());
    }

    /// Counts a validated result, once it is durable.
    pub(super) fn validated(&self, verdict: ResultVerdict) {
        let verdict = format!("{verdict:?}");
        self.results.get_or_create(&VerdictLabel { verdict }).inc();
    }

    /// Records that entries became durable, and the time this took.
    pub(super) fn appended(&self, entries: usize, took: Duration) {
        self.entries.inc_by(entries as u64);
        self.append_s.observe(took.as_secs_f64());
    }

    /// Counts an answered call.
    pub(super) fn called(&self, call: &str, code: &'static str) {
        self.calls.get_or_create(&CallLabel { call: call.to_owned(), code }).inc();
    }

    /// Records the time until a sync was answered.
    pub(super) fn synced(&self, took: Duration) {
        self.sync_s.observe(took.as_secs_f64());
    }

    /// Updates the gauges from the campaign. Workers that have been silent for `lease_ms` are
    /// removed.
    pub(super) fn sample(
        &self,
        campaign: &Campaign,
        has_trouble: bool,
        now_ms: u64,
        lease_ms: u64,
    ) {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.ledger_ok.set(i64::from(!has_trouble));
        self.quarantined.set(whole(campaign.quarantined().len() as u64));
        for hash in campaign.jobs() {
            let Some(progress) = campaign.progress(&hash) else { continue };
            let label = JobLabel { job: hash.to_string() };
            let set = |family: &PerJob, value| {
                family.get_or_create(&label).set(whole(value));
            };
            set(&self.units, progress.units);
            set(&self.units_done, progress.done);
            set(&self.units_verified, progress.checked);
            set(&self.units_poisoned, progress.poisoned);
            set(&self.units_open, progress.open);
            set(&self.disputes, progress.disputes);
            set(&self.recounts_due, progress.checks_due);
            set(&self.units_audited, progress.audited);
            set(&self.units_spot_checked, progress.spot_checked);
            set(&self.running, u64::from(progress.state == JobState::Running));
            set(&self.disputed, u64::from(progress.state == JobState::Disputed));
        }
        let held = campaign.held();
        let mut recent = 0;
        for (name, worker) in campaign.workers() {
            let label = WorkerLabel { worker: name.clone() };
            if worker.seen_ms + lease_ms <= now_ms {
                // Drop the series of silent workers.
                self.units_per_s.remove(&label);
                for family in [&self.worker_units, &self.worker_held, &self.worker_seen] {
                    family.remove(&label);
                }
                continue;
            }
            recent += 1;
            let rate: f64 = worker.units_per_s.values().sum();
            self.units_per_s.get_or_create(&label).set(rate);
            self.worker_units.get_or_create(&label).set(whole(worker.units_done));
            self.worker_held.get_or_create(&label).set(whole(held.get(name).copied().unwrap_or(0)));
            self.worker_seen.get_or_create(&label).set(whole(worker.seen_ms / 1000));
        }
        self.workers.set(recent);
    }

    /// Returns whether the ledger could be written at the last update.
    pub(super) fn is_ledger_ok(&self) -> bool {
        self.ledger_ok.get() != 0
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::campaign::{CampaignKey, Settings};

    #[test]
    fn all_metrics_are_in_the_text() {
        let metrics = Metrics::new();
        metrics.validated(ResultVerdict::Accepted);
        metrics.validated(ResultVerdict::Accepted);
        metrics.appended(2, Duration::from_millis(3));
        metrics.sample(
            &Campaign::new(Settings::default(), 0, CampaignKey::from_seed(0)),
            false,
            0,
            90_000,
        );
        let text = metrics.text();
        for line in [
            "nqueens_results_total{verdict=\"Accepted\"} 2",
            "nqueens_ledger_entries_total 2",
            "nqueens_ledger_append_seconds_count 1",
            "nqueens_ledger_ok 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
