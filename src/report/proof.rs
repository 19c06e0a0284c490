//! The report of a proof, as text and as JSON.

use serde::Serialize;

use super::format::{counted, grouped, time};
use super::job::{job_name, state_name};
use crate::board::Norm;
use crate::cluster::protocol::v1;

/// The report of a proof in a campaign. Serialised, it is what `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct ProofReport {
    /// The job's name in hexadecimal digits.
    pub job: String,
    /// The goal: "first" or "beautiful".
    what: &'static str,
    n: u32,
    /// The state, by its name.
    pub state: &'static str,
    /// The tasks of proofs of higher priority are leased first.
    priority: i32,
    submitter: String,
    /// The row, counted from 1, that the open queries decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u32>,
    queries_open: u32,
    queries_lent: u32,
    prefixes_refuted: u64,
    /// The current level of cost, in a search for a most beautiful solution.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    /// The best solution so far: the column of each row, counted from 1; and its costs, the largest
    /// first.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_fingerprint: Option<Vec<u64>>,
    /// The column of each row, counted from 1. In a finished proof, null means that there is no
    /// solution.
    pub solution: Option<Vec<u32>>,
    /// The costs of a most beautiful solution, the largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Vec<u64>>,
    /// True if the proof is finished.
    pub proven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_sha256: Option<String>,
    /// The time from submission until the proof was finished, or until now.
    elapsed_s: f64,
    /// The time that this coordinator has spent on checking answers since it started.
    checking_s: f64,
    by: Vec<Share>,
    /// Notes for operators.
    pub notes: Vec<String>,
}

/// The squares of the cost that is being decided.
#[derive(Clone, Debug, Serialize)]
struct Level {
    cost: u64,
    /// The least number of queens that a most beautiful solution has there, and the number that the
    /// best solution so far has.
    queens_at_least: u32,
    queens_of_best: u32,
    /// The squares of the board that are not eliminated.
    squares_left: u32,
    /// The queens on the squares of larger costs, which are decided.
    queens_decided: u32,
}

/// The share of one worker since the coordinator started.
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
    /// Returns whether the proof is finished or cancelled.
    pub fn is_over(&self) -> bool {
        matches!(self.state, "finished" | "cancelled")
    }

    /// Creates the report of a proof from the coordinator's answer at `now_ms`, in ms since 1970.
    pub fn new(status: v1::ProofStatus, now_ms: u64) -> Self {
        let state = status.state();
        let proven = state == v1::JobState::Finished;
        let until_ms = if proven { status.state_ms } else { now_ms };
        let (what, n) = match status.what {
            Some(v1::proof_status::What::First(v1::First { n })) => ("first", n),
            Some(v1::proof_status::What::Beautiful(v1::Beautiful { n })) => ("beautiful", n),
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
        let solution =
            Some(status.columns).filter(|columns| proven && (n == 0 || !columns.is_empty()));
        let best = Some(status.best).filter(|best| !best.is_empty());
        let level = |level: v1::CostLevel| Level {
            cost: level.cost,
            queens_at_least: level.least,
            queens_of_best: level.most,
            squares_left: level.squares,
            queens_decided: level.queens,
        };
        Self {
            level: status.level.map(level),
            best_fingerprint: best.as_deref().map(fingerprint),
            best,
            fingerprint: solution.as_deref().filter(|_| what == "beautiful").map(fingerprint),
            job: job_name(&status.job),
            what,
            n,
            state: state_name(state),
            priority: status.priority,
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

    /// Returns the goal in words: "first solution of 62 queens".
    pub fn title(&self) -> String {
        proof_title(self.what, self.n)
    }

    /// Returns the share that is done, from 0 to 1.
    pub fn share(&self) -> f64 {
        let done = self.level.as_ref().map(|level| level.queens_decided).or(self.row).unwrap_or(0);
        f64::from(done) / f64::from(self.n.max(1))
    }

    /// Returns the first digits of the job's name, which commands accept.
    pub fn short(&self) -> &str {
        self.job.get(..8).unwrap_or(&self.job)
    }

    /// Returns the progress in a few words.
    pub fn progress(&self) -> String {
        if let Some(level) = &self.level {
            return format!(
                "cost {}: {} to {} queens, {} decided, {} left, {} open",
                grouped(level.cost.into()),
                level.queens_at_least,
                level.queens_of_best,
                level.queens_decided,
                counted(level.squares_left.into(), "square"),
                counted(self.queries_open.into(), "query"),
            );
        }
        match (&self.solution, self.proven, self.row) {
            (Some(solution), ..) => columns(solution),
            (None, true, _) => "no solution exists".to_owned(),
            (None, false, Some(row)) => format!(
                "row {row} of {}, {} open, {} refuted",
                self.n,
                counted(self.queries_open.into(), "query"),
                counted(self.prefixes_refuted.into(), "prefix"),
            ),
            (None, false, None) => "not started".to_owned(),
        }
    }

    /// Returns the whole report as text, on several lines.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("job {}  {}, {}", self.job, self.title(), self.state)];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:<12}{text}"));
        line(if self.proven { "proved" } else { "progress" }, self.progress());
        if let Some(best) = &self.best {
            line("best so far", columns(best));
        }
        if let Some(fingerprint) = self.fingerprint.as_ref().or(self.best_fingerprint.as_ref()) {
            line("fingerprint", costs(fingerprint));
        }
        if let (Some(bytes), Some(digest)) = (self.certificate_bytes, &self.certificate_sha256) {
            line("certificate", format!("{} bytes, SHA-256 {digest}", grouped(bytes.into())));
        }
        if self.state == "running" {
            line("leased", counted(self.queries_lent.into(), "query"));
        }
        line(
            "work",
            format!(
                "{} checking answers, {} since submission",
                time(self.checking_s),
                time(self.elapsed_s)
            ),
        );
        for share in &self.by {
            line(
                "by",
                format!(
                    "{}: {} answered ({} given up), {} proving",
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

/// Returns a goal, "first" or "beautiful", in words: "first solution of 62 queens".
pub fn proof_title(what: &str, n: u32) -> String {
    let what = if what == "beautiful" { "most beautiful" } else { what };
    format!("{what} solution of {}", counted(n.into(), "queen"))
}

fn columns(columns: &[u32]) -> String {
    columns.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns the costs of a solution's squares, the largest first.
fn fingerprint(columns: &[u32]) -> Vec<u64> {
    let columns: Vec<usize> = columns.iter().map(|&column| column as usize - 1).collect();
    Norm::Euclidean.fingerprint(&columns)
}

/// Returns each cost with its number of squares: "1202 (4 times), 1154 (8 times)".
fn costs(fingerprint: &[u64]) -> String {
    let runs = fingerprint.chunk_by(|a, b| a == b);
    let run = |run: &[u64]| match run.len() {
        1 => run[0].to_string(),
        times => format!("{} ({times} times)", run[0]),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}
