//! The progress of the campaign, for the page. The coordinator is asked at most once a second,
//! whatever the number of pages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Mutex;
use tonic::Status;
use tonic::service::Routes;

use crate::cluster::auth::{InProcessCaller, Role};
use crate::cluster::protocol::v1::operations_client::OperationsClient;
use crate::cluster::protocol::{now_ms, v1};
use crate::report::JobReport;

/// The age from which a snapshot is replaced.
const MOST_AGE: Duration = Duration::from_secs(1);
/// The maximum number of jobs that the page shows.
const MOST_JOBS: usize = 8;

/// A worker's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The units in force that it counted.
    pub(super) units: u64,
    /// Those of which others confirmed a part.
    pub(super) proven: u64,
}

/// The state of the campaign at a time.
#[derive(Debug)]
pub(super) struct Snapshot {
    at: Instant,
    /// The running jobs, as the page shows them.
    pub(super) jobs: Value,
    records: HashMap<String, Record>,
}

impl Snapshot {
    /// Returns the record of a worker.
    pub(super) fn record(&self, worker: &str) -> Record {
        self.records.get(worker).cloned().unwrap_or_default()
    }
}

/// The last snapshot, and the client that fetches the next one.
pub(super) struct CampaignView {
    operations: OperationsClient<Routes>,
    last: Mutex<Option<Arc<Snapshot>>>,
}

fn request<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let name = "join-page".parse().expect("a name");
    request.extensions_mut().insert(InProcessCaller { name, role: Role::Viewer });
    request
}

impl CampaignView {
    pub(super) fn new(operations: OperationsClient<Routes>) -> Self {
        Self { operations, last: Mutex::default() }
    }

    /// Returns a snapshot that is at most a second old.
    pub(super) async fn snapshot(&self) -> Result<Arc<Snapshot>, Status> {
        // Callers wait here for the one that asks the coordinator.
        let mut last = self.last.lock().await;
        if let Some(snapshot) = last.as_ref().filter(|snapshot| snapshot.at.elapsed() < MOST_AGE) {
            return Ok(Arc::clone(snapshot));
        }
        let mut operations = self.operations.clone();
        let status = operations.status(request(v1::StatusRequest::default())).await?.into_inner();
        let workers = operations.workers(request(v1::WorkersRequest {})).await?.into_inner();
        let records = workers
            .workers
            .into_iter()
            .map(|worker| (worker.name, Record { units: worker.units, proven: worker.proven }));
        let running = status
            .jobs
            .into_iter()
            .filter(|job| matches!(job.state(), v1::JobState::Running | v1::JobState::Disputed));
        let jobs = running.take(MOST_JOBS).map(job).collect();
        let snapshot = Arc::new(Snapshot { at: Instant::now(), jobs, records: records.collect() });
        *last = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }
}

fn job(status: v1::JobStatus) -> Value {
    let (units, done) = (status.units, status.done);
    let report = JobReport::new(status, now_ms());
    json!({ "title": report.title(), "units": units, "done": done })
}
