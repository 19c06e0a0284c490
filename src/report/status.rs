//! The report of a coordinator: its jobs, proofs and workers, as text and as JSON.

use serde::Serialize;

use super::format::counted;
use super::job::JobReport;
use super::proof::ProofReport;
use crate::cluster::protocol::v1;

/// The report of a coordinator. Serialised, it is what `nqueens status --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct StatusReport {
    /// The counts.
    pub jobs: Vec<JobReport>,
    /// The proofs.
    pub proofs: Vec<ProofReport>,
    workers: u32,
    /// The problem of the coordinator, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    trouble: String,
    build: String,
}

impl StatusReport {
    /// Creates the report of a status.
    pub fn new(status: v1::StatusResponse) -> Self {
        let now_ms = status.now_ms;
        let jobs = status.jobs.into_iter().map(|job| JobReport::new(job, now_ms));
        let proofs = status.proofs.into_iter().map(|proof| ProofReport::new(proof, now_ms));
        Self {
            jobs: jobs.collect(),
            proofs: proofs.collect(),
            workers: status.workers,
            trouble: status.trouble,
            build: status.build,
        }
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "coordinator (nqueens {}), {}\n",
            self.build,
            counted(self.workers.into(), "worker")
        );
        if !self.trouble.is_empty() {
            text += &format!("  problem     {}\n", self.trouble);
        }
        self.jobs.iter().for_each(|job| text += &job.text());
        self.proofs.iter().for_each(|proof| text += &proof.text());
        text
    }

    /// Returns whether all jobs and proofs are finished or cancelled.
    pub fn is_over(&self) -> bool {
        self.jobs.iter().all(JobReport::is_over) && self.proofs.iter().all(ProofReport::is_over)
    }
}
