//! The dashboard beside a coordinator: it tells of jobs what the command line tells.

use std::net::SocketAddr;

use serde::Serialize;
use serde_json::Value;

use super::Failure;
use super::job_report::JobReport;
use super::proof_report::ProofReport;
use crate::cluster::coordinator::{BoundAddress, InProcessService, ServeError};
use crate::cluster::dashboard::{self, AuthMode, Bound, Reports};

/// A report with the job's title in words.
fn titled(report: &impl Serialize, title: String, sentence: Option<String>) -> Value {
    let mut value = serde_json::to_value(report).expect("numbers and strings serialise");
    value["title"] = title.into();
    value["sentence"] = sentence.into();
    value
}

const REPORTS: Reports = Reports {
    job: |status, now_ms| {
        let report = JobReport::new(status, now_ms);
        let mut value = titled(&report, report.title(), report.sentence());
        value["assurance_sentence"] = report.assurance_sentence().into();
        value
    },
    proof: |status, now_ms| {
        let report = ProofReport::new(status, now_ms);
        titled(&report, report.title(), None)
    },
};

/// Whether a dashboard may be served at this address.
pub(super) fn check(at: SocketAddr, tls: bool) -> Result<(), Failure> {
    if tls || at.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--dashboard {at} can be reached by others, and without an authority everybody could steer the campaign: choose an \
         address of this machine alone, as 127.0.0.1:8080, or make an authority with nqueens coordinator init"
    )))
}

/// Takes the address.
pub(super) async fn bind(at: SocketAddr) -> Result<Bound, Failure> {
    Ok(Bound::at(at).await.map_err(|error| ServeError::Listen(at, error))?)
}

/// Serves it until this process ends.
pub(super) fn open(bound: Bound, listening: &BoundAddress) {
    let InProcessService { service, authority } = listening.in_process.clone();
    let door = match authority {
        None => AuthMode::Open,
        Some((authority, identity)) => AuthMode::Locked(authority, identity),
    };
    tracing::info!(url = bound.url(listening.tls), "dashboard");
    tokio::spawn(async move {
        if let Err(error) = dashboard::serve(bound, service, REPORTS, door).await {
            tracing::error!("the dashboard is not served: {error}");
        }
    });
}
