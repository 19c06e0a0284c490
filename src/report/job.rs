//! The report of a count in a campaign: its fields, which are also its JSON. `text` puts it into
//! words.

mod text;

pub use text::count_title;

use data_encoding::HEXLOWER;
use serde::Serialize;

use super::published::Published;
use crate::cluster::protocol::v1;
use crate::decomposition::Job;
use crate::kernel::KernelKind;
use crate::oeis::{Sequence, totals_of};
use crate::tally::Tally;

/// The report of a count in a campaign. Serialised, it is what `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct JobReport {
    /// The job's name in hexadecimal digits.
    pub job: String,
    n: usize,
    piece: &'static str,
    placed: Vec<[usize; 2]>,
    blocked: Vec<[usize; 2]>,
    /// The state, by its name.
    pub state: &'static str,
    priority: i32,
    submitter: String,
    units: u64,
    units_done: u64,
    /// Units that a full recount by another owner or the coordinator confirmed.
    units_verified: u64,
    /// The units among these that the coordinator recounted.
    units_audited: u64,
    /// Units of which a partial recount by another owner or the coordinator confirmed a part.
    units_spot_checked: u64,
    /// Units that only their own owner recounted.
    units_self_checked: u64,
    /// Units that guests counted.
    guest_units: u64,
    /// The part of them that others counted again, in units. The difference is what guests added.
    guest_units_rechecked: f64,
    /// A lower bound of the probability that the checks so far would have detected an owner that
    /// lied about at least one unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    assurance: Option<f64>,
    units_poisoned: u64,
    units_open: u64,
    recounts_due: u64,
    /// The recounts among these that the coordinator will make.
    audits_due: u64,
    recounts_agreed: u64,
    recounts_differed: u64,
    results_taken_back: u64,
    disputes: u64,
    /// The reason why the total is disputed, and the state of the dispute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispute: Option<String>,
    /// True if no recount is left that could settle the dispute.
    #[serde(skip_serializing_if = "Option::is_none")]
    dispute_exhausted: Option<bool>,
    /// The number of solutions, once all units are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solutions: Option<String>,
    /// The comparison with the published value, once all units are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    nodes: Option<String>,
    units_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_s: Option<f64>,
    /// The bounds of `left_s`: two standard errors of the rate to either side.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_least_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_most_s: Option<f64>,
    /// The time from submission until the job was finished, or until now.
    elapsed_s: f64,
    counting_s: f64,
    recounting_s: f64,
    by: Vec<Share>,
    /// Notes for operators: units that are set aside, quarantined workers.
    pub notes: Vec<String>,
    #[serde(skip)]
    sequence: Option<Sequence>,
}

/// The share of one worker, kernel and device.
#[derive(Clone, Debug, Serialize)]
struct Share {
    worker: String,
    owner: String,
    kernel: String,
    device: String,
    build: String,
    units: u64,
    units_verified: u64,
    verified_of_others: u64,
}

/// Returns the name of a job's state.
pub const fn state_name(state: v1::JobState) -> &'static str {
    match state {
        v1::JobState::Unspecified => "unknown",
        v1::JobState::Running => "running",
        v1::JobState::Paused => "paused",
        v1::JobState::Cancelled => "cancelled",
        v1::JobState::Finished => "finished",
        v1::JobState::Disputed => "disputed",
    }
}

/// Returns a job's name in hexadecimal digits.
pub fn job_name(job: &[u8]) -> String {
    HEXLOWER.encode(job)
}

impl JobReport {
    /// Creates the report of a job from the coordinator's answer at `now_ms`, in ms since 1970.
    pub fn new(status: v1::JobStatus, now_ms: u64) -> Self {
        let state = status.state();
        let job: Option<Job> = status.text.parse().ok();
        let problem = job.as_ref().map(Job::problem);
        let squares = |squares: &[crate::board::Square]| {
            squares.iter().map(|s| [s.row + 1, s.col + 1]).collect()
        };
        let sequence =
            problem.filter(|problem| problem.is_empty()).map(|problem| totals_of(problem.piece()));
        let n = problem.map_or(0, |problem| problem.n());
        let total = status.total.as_ref().and_then(|tally| Tally::try_from(tally).ok());
        // The coordinator has checked the total; it is checked here again.
        let solutions =
            total.filter(|_| status.done == status.units).map(|total| total.solutions());
        let (solutions, fault) = match solutions {
            None => (None, None),
            Some(Ok(solutions)) => (Some(solutions), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        let published = solutions
            .zip(sequence)
            .map(|(solutions, sequence)| Published::compare(sequence, n, solutions));
        let by = status.sources.into_iter().map(|source| Share {
            worker: source.worker,
            owner: source.owner,
            kernel: source.kernel,
            device: source.device,
            build: source.build,
            units: source.units,
            units_verified: source.confirmed,
            verified_of_others: source.confirmations,
        });
        let by: Vec<Share> = by.collect();
        let counts_nodes = by
            .iter()
            .all(|share| share.kernel.parse::<KernelKind>().map_or(true, KernelKind::counts_nodes));
        let left = status.left.filter(|_| state == v1::JobState::Running);
        let disputed = state == v1::JobState::Disputed;
        let until_ms = if state == v1::JobState::Finished { status.state_ms } else { now_ms };
        Self {
            job: job_name(&status.job),
            n,
            piece: problem.map_or("unknown", |problem| problem.piece().name()),
            placed: problem.map(|problem| squares(problem.placed())).unwrap_or_default(),
            blocked: problem.map(|problem| squares(problem.blocked())).unwrap_or_default(),
            state: state_name(state),
            priority: status.priority,
            submitter: status.submitter,
            units: status.units,
            units_done: status.done,
            units_verified: status.checked,
            units_audited: status.audited,
            units_spot_checked: status.spot_checked,
            units_self_checked: status.self_checked,
            guest_units: status.guest_units,
            guest_units_rechecked: status.guest_units_rechecked,
            // Without units, there is nothing to be assured of.
            assurance: Some(status.assurance).filter(|_| status.done > 0),
            units_poisoned: status.poisoned,
            units_open: status.open,
            recounts_due: status.checks_due,
            audits_due: status.audits_due,
            recounts_agreed: status.agreements,
            recounts_differed: status.disagreements,
            results_taken_back: status.voided,
            disputes: status.disputes,
            dispute: Some(status.dispute).filter(|_| disputed),
            dispute_exhausted: Some(status.dispute_exhausted).filter(|_| disputed),
            solutions: solutions.map(|solutions| solutions.to_string()),
            published,
            fault,
            nodes: total.filter(|_| counts_nodes).map(|total| total.nodes().to_string()),
            units_per_s: status.units_per_s,
            left_s: left.map(|left| left.s),
            left_least_s: left.and_then(|left| left.least_s),
            left_most_s: left.and_then(|left| left.most_s),
            elapsed_s: until_ms.saturating_sub(status.submitted_ms) as f64 / 1000.0,
            counting_s: status.counting_s,
            recounting_s: status.checking_s,
            by,
            notes: status.notes,
            sequence,
        }
    }

    /// Returns the first digits of the job's name, which commands accept.
    pub fn short(&self) -> &str {
        self.job.get(..8).unwrap_or(&self.job)
    }

    /// Returns whether the total is disputed.
    pub fn is_disputed(&self) -> bool {
        self.state == "disputed"
    }

    /// Returns whether the job changes no more unless an operator acts.
    pub fn is_over(&self) -> bool {
        matches!(self.state, "finished" | "cancelled") || self.dispute_exhausted == Some(true)
    }
}
