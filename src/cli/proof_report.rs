//! A proof as the coordinator sees it, for people and for programs.

use serde::Serialize;

use super::job_report::{job_name, state_name};
use super::report::{counted, grouped, time};
use crate::wire::v1;

/// What is printed of a proof.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProofReport {
    pub(super) job: String,
    /// What is to be found: "first".
    what: &'static str,
    pub(super) n: u32,
    pub(super) state: &'static str,
    submitter: String,
    /// The row, from 1, that the open queries decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u32>,
    queries_open: u32,
    queries_lent: u32,
    prefixes_refuted: u64,
    /// The column of each row, from 1; once it is finished, null for no solution.
    pub(super) solution: Option<Vec<u32>>,
    pub(super) proven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_sha256: Option<String>,
    /// Since it was submitted, until it was finished or now.
    elapsed_s: f64,
    /// What this coordinator has spent on checking answers since it started.
    checking_s: f64,
    by: Vec<Share>,
    pub(super) notes: Vec<String>,
}

/// Who proved how much since the coordinator started.
#[derive(Clone, Debug, Serialize)]
struct Share {
    worker: String,
    queries: u64,
    given_up: u64,
    nodes: String,
    programmes: u64,
    proving_s: f64,
}

impl ProofReport {
    pub(super) fn new(status: v1::ProofStatus, now_ms: u64) -> Self {
        let state = status.state();
        let proven = state == v1::JobState::Finished;
        let until_ms = if proven { status.state_ms } else { now_ms };
        let (what, n) = match status.what {
            Some(v1::proof_status::What::First(v1::First { n })) => ("first", n),
            None => ("unknown", 0),
        };
        let share = |prover: v1::ProverStatus| Share {
            worker: prover.worker,
            queries: prover.answered,
            given_up: prover.given_up,
            nodes: prover.nodes.to_string(),
            programmes: prover.programmes,
            proving_s: prover.elapsed_s,
        };
        let solution = Some(status.columns).filter(|columns| proven && (n == 0 || !columns.is_empty()));
        Self {
            job: job_name(&status.job),
            what,
            n,
            state: state_name(state),
            submitter: status.submitter,
            row: Some(status.row).filter(|&row| row > 0 && !proven),
            queries_open: status.open,
            queries_lent: status.lent,
            prefixes_refuted: status.refuted,
            solution,
            proven,
            certificate_bytes: proven.then_some(status.certificate_bytes),
            certificate_sha256: proven.then(|| job_name(&status.certificate_sha256)),
            elapsed_s: until_ms.saturating_sub(status.submitted_ms) as f64 / 1000.0,
            checking_s: status.checking_s,
            by: status.provers.into_iter().map(share).collect(),
            notes: status.notes,
        }
    }

    /// "first solution of 62 queens".
    pub(super) fn title(&self) -> String {
        format!("{} solution of {} queens", self.what, self.n)
    }

    /// The first digits of the job's name, which are enough for commands.
    pub(super) fn short(&self) -> &str {
        self.job.get(..8).unwrap_or(&self.job)
    }

    /// How far it is, in a few words.
    pub(super) fn progress(&self) -> String {
        match (&self.solution, self.proven, self.row) {
            (Some(columns), ..) => columns.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            (None, true, _) => "there is none".to_owned(),
            (None, false, Some(row)) => format!(
                "row {row} of {}, {} open, {} refuted",
                self.n,
                counted(self.queries_open.into(), "query"),
                counted(self.prefixes_refuted.into(), "prefix"),
            ),
            (None, false, None) => "not begun".to_owned(),
        }
    }

    /// All that people want to know, on several lines.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!("job {}  {}, {}", self.job, self.title(), self.state)];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:<12}{text}"));
        line(if self.proven { "proved" } else { "progress" }, self.progress());
        if let (Some(bytes), Some(digest)) = (self.certificate_bytes, &self.certificate_sha256) {
            line("certificate", format!("{} bytes, SHA-256 {digest}", grouped(bytes.into())));
        }
        if self.state == "running" {
            line("in hand", counted(self.queries_lent.into(), "query"));
        }
        line(
            "work",
            format!("{} of checking, {} since it was submitted", time(self.checking_s), time(self.elapsed_s)),
        );
        for share in &self.by {
            line(
                "by",
                format!(
                    "{}: {} answered, {} of them given up, {} of proving",
                    share.worker,
                    counted(share.queries.into(), "query"),
                    grouped(share.given_up.into()),
                    time(share.proving_s),
                ),
            );
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        lines.join("\n") + "\n"
    }
}
