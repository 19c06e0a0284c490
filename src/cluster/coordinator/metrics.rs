//! Metrics for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::cluster::campaign::{Campaign, JobProgress, JobState, ResultVerdict};

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

/// A gauge of each job: its name, its description and its value.
type JobGauge = (&'static str, &'static str, fn(&JobProgress) -> u64);

const JOB_GAUGES: [JobGauge; 11] = [
    ("job_units", "Units of the job", |job| job.units),
    ("job_units_done", "Units counted", |job| job.done),
    (
        "job_units_verified",
        "Units that another owner or the coordinator recounted in full and confirmed",
        |job| job.checked,
    ),
    (
        "job_units_audited",
        "Units that the coordinator itself recounted in full and confirmed",
        |job| job.audited,
    ),
    (
        "job_units_spot_checked",
        "Units of which another owner or the coordinator recounted a part and confirmed it",
        |job| job.spot_checked,
    ),
    ("job_units_poisoned", "Units set aside", |job| job.poisoned),
    ("job_units_open", "Units that are not leased, counted or set aside", |job| job.open),
    ("job_disputes", "Units with two different results", |job| job.disputes),
    ("job_recounts_due", "Recounts that are pending", |job| job.checks_due),
    ("job_running", "1 while the job is being counted", |job| {
        u64::from(job.state == JobState::Running)
    }),
    ("job_disputed", "1 while the total of the job is disputed", |job| {
        u64::from(job.state == JobState::Disputed)
    }),
];

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
    /// In the order of [`JOB_GAUGES`].
    jobs: [PerJob; JOB_GAUGES.len()],
    units_per_s: Family<WorkerLabel, Gauge<f64, AtomicU64>>,
    worker_units: PerWorker,
    worker_held: PerWorker,
    worker_seen: PerWorker,
}

/// Creates a metric and registers it.
fn register<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Creates a histogram of times and registers it.
fn register_seconds(registry: &mut Registry, name: &str, help: &str) -> Histogram {
    let seconds = Histogram::new(exponential_buckets(0.0001, 2.0, 18));
    registry.register_with_unit(name, help, Unit::Seconds, seconds.clone());
    seconds
}

/// Returns a number as the value of a gauge; a larger one becomes the largest.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("nqueens");
        let r = &mut registry;
        // The text has the metrics in this order.
        let metrics = Self {
            results: register(r, "results", "Results reported by workers, by verdict"),
            calls: register(r, "calls", "Calls, by name and gRPC code"),
            entries: register(r, "ledger_entries", "Entries written to the ledger"),
            append_s: register_seconds(r, "ledger_append", "Time until a batch was durable"),
            sync_s: register_seconds(r, "sync", "Time until a worker's sync was answered"),
            ledger_ok: register(r, "ledger_ok", "1 while the ledger can be written"),
            workers: register(r, "workers", "Workers that synced within the lifetime of a lease"),
            quarantined: register(r, "workers_quarantined", "Workers in quarantine"),
            jobs: JOB_GAUGES.map(|(name, help, _)| register(r, name, help)),
            units_per_s: register(
                r,
                "worker_units_per_second",
                "Units per second as measured by the worker, over all jobs",
            ),
            worker_units: register(
                r,
                "worker_units_done",
                "Units counted since the coordinator started",
            ),
            worker_held: register(r, "worker_units_held", "Units in the worker's leases"),
            worker_seen: register(
                r,
                "worker_seen",
                "Time of the last sync of the worker, in seconds since 1970",
            ),
            registry,
        };
        metrics.ledger_ok.set(1);
        metrics
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

    /// Updates the gauges of the ledger and of the jobs, and the number of quarantined workers.
    pub(super) fn sample(&self, campaign: &Campaign, has_trouble: bool) {
        self.ledger_ok.set(i64::from(!has_trouble));
        self.quarantined.set(whole(campaign.quarantined().len() as u64));
        for hash in campaign.jobs() {
            let Some(progress) = campaign.progress(&hash) else { continue };
            let label = JobLabel { job: hash.to_string() };
            for (gauges, (_, _, value)) in self.jobs.iter().zip(JOB_GAUGES) {
                gauges.get_or_create(&label).set(whole(value(&progress)));
            }
        }
    }

    /// Updates the gauges of the workers. Those that have been silent for `lease_ms` are removed.
    pub(super) fn sample_workers(&self, campaign: &Campaign, now_ms: u64, lease_ms: u64) {
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
        let campaign = Campaign::new(Settings::default(), 0, CampaignKey::from_seed(0));
        metrics.sample(&campaign, false);
        metrics.sample_workers(&campaign, 0, 90_000);
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
