//! A job as the coordinator sees it, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::count::sequence;
use super::report::{Published, counted, grouped, predicted, rounded, time};
use crate::kernel::KernelKind;
use crate::known::Sequence;
use crate::preplacement::Job;
use crate::tally::Tally;
use crate::wire::v1;

/// What is printed of a job.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JobReport {
    pub(super) job: String,
    n: usize,
    piece: &'static str,
    placed: Vec<[usize; 2]>,
    blocked: Vec<[usize; 2]>,
    pub(super) state: &'static str,
    priority: i32,
    submitter: String,
    units: u64,
    units_done: u64,
    /// Units that another worker, kernel or device confirmed.
    units_verified: u64,
    units_poisoned: u64,
    units_open: u64,
    recounts_due: u64,
    recounts_agreed: u64,
    recounts_differed: u64,
    results_taken_back: u64,
    disputes: u64,
    /// The count, once all units are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) solutions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<Published>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    nodes: Option<String>,
    units_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_s: Option<f64>,
    /// The band of that: two standard errors of the pace to either side.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_least_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_most_s: Option<f64>,
    /// Since the job was submitted, until it was finished or now.
    elapsed_s: f64,
    counting_s: f64,
    recounting_s: f64,
    by: Vec<Share>,
    pub(super) notes: Vec<String>,
    #[serde(skip)]
    sequence: Option<Sequence>,
}

/// Who counted how much.
#[derive(Clone, Debug, Serialize)]
struct Share {
    worker: String,
    kernel: String,
    device: String,
    build: String,
    units: u64,
    units_verified: u64,
    verified_of_others: u64,
}

/// A state in words.
pub(super) const fn state_name(state: v1::JobState) -> &'static str {
    match state {
        v1::JobState::Unspecified => "unknown",
        v1::JobState::Running => "running",
        v1::JobState::Paused => "paused",
        v1::JobState::Cancelled => "cancelled",
        v1::JobState::Finished => "finished",
    }
}

/// A job's name in hexadecimal digits.
pub(super) fn job_name(job: &[u8]) -> String {
    job.iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

impl JobReport {
    pub(super) fn new(status: v1::JobStatus, now_ms: u64) -> Self {
        let state = status.state();
        let job: Option<Job> = status.text.parse().ok();
        let problem = job.as_ref().map(Job::problem);
        let squares =
            |squares: &[crate::board::Square]| squares.iter().map(|s| [s.row + 1, s.col + 1]).collect();
        let sequence = problem.filter(|problem| problem.is_empty()).map(|problem| sequence(problem.piece()));
        let n = problem.map_or(0, |problem| problem.n());
        let total = status.total.as_ref().and_then(|tally| Tally::try_from(tally).ok());
        // The check that the coordinator has made is made here once more.
        let solutions = total.filter(|_| status.done == status.units).map(|total| total.solutions());
        let (solutions, fault) = match solutions {
            None => (None, None),
            Some(Ok(solutions)) => (Some(solutions), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        let published =
            solutions.zip(sequence).map(|(solutions, sequence)| Published::compare(sequence, n, solutions));
        let by = status.sources.into_iter().map(|source| Share {
            worker: source.worker,
            kernel: source.kernel,
            device: source.device,
            build: source.build,
            units: source.units,
            units_verified: source.confirmed,
            verified_of_others: source.confirmations,
        });
        let by: Vec<Share> = by.collect();
        let counts_nodes =
            by.iter().all(|share| share.kernel.parse::<KernelKind>().map_or(true, KernelKind::counts_nodes));
        let running = state == v1::JobState::Running;
        let left = status.left.filter(|_| running);
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
            units_poisoned: status.poisoned,
            units_open: status.open,
            recounts_due: status.checks_due,
            recounts_agreed: status.agreements,
            recounts_differed: status.disagreements,
            results_taken_back: status.voided,
            disputes: status.disputes,
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

    /// "count of 14 queens, 2 placed".
    pub(super) fn title(&self) -> String {
        let mut title = format!("count of {} {}s", self.n, self.piece);
        for (squares, word) in [(&self.placed, "placed"), (&self.blocked, "blocked")] {
            if !squares.is_empty() {
                let _ = write!(title, ", {} {word}", squares.len());
            }
        }
        title
    }

    /// How the solutions compare with what is published, in words; none before they are known.
    pub(super) fn sentence(&self) -> Option<String> {
        self.published.zip(self.sequence).map(|(published, sequence)| published.sentence(sequence))
    }

    /// The first digits of the job's name, which are enough for commands.
    pub(super) fn short(&self) -> &str {
        self.job.get(..8).unwrap_or(&self.job)
    }

    /// How far it is, in a few words.
    pub(super) fn progress(&self) -> String {
        if let Some(solutions) = &self.solutions {
            let due = if self.state == "running" {
                format!(", {} due", counted(self.recounts_due.into(), "recount"))
            } else {
                String::new()
            };
            return format!("{solutions} solutions{due}");
        }
        let percent = 100.0 * self.units_done as f64 / self.units.max(1) as f64;
        let left = self.left().map(|left| format!(", {left}")).unwrap_or_default();
        format!("{percent:.1} % of {}{left}", counted(self.units.into(), "unit"))
    }

    /// "about 3 h left (2 h 40 min to 3 h 30 min)", if anybody can say.
    pub(super) fn left(&self) -> Option<String> {
        let shown = |seconds: Option<f64>| Duration::try_from_secs_f64(seconds?).ok().map(predicted);
        let about = shown(self.left_s)?;
        let band = match (shown(self.left_least_s), shown(self.left_most_s)) {
            (None, _) => String::new(),
            (Some(least), Some(most)) if least == most => String::new(),
            (Some(least), Some(most)) => format!(" ({least} to {most})"),
            (Some(least), None) => format!(" (at least {least}; the pace is too uneven to say more)"),
        };
        Some(format!("about {about} left{band}"))
    }

    /// All that people want to know, on several lines.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!("job {}  {}, {}", self.job, self.title(), self.state)];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:<12}{text}"));
        match (&self.solutions, &self.fault) {
            (Some(solutions), _) => {
                let grouped = solutions.parse().map_or_else(|_| solutions.clone(), grouped);
                let sentence = self.sentence().map(|sentence| format!(", {sentence}"));
                line("solutions", format!("{grouped}{}", sentence.unwrap_or_default()));
            }
            (None, Some(fault)) => line("solutions", format!("none that could be believed: {fault}")),
            (None, None) => line("progress", self.progress()),
        }
        let share = |part: u64| 100.0 * part as f64 / self.units.max(1) as f64;
        line("units", format!("{} of {} done", grouped(self.units_done.into()), grouped(self.units.into())));
        line(
            "verified",
            format!(
                "{} ({:.1} %), each counted again as its mirror image by another worker, kernel or device",
                counted(self.units_verified.into(), "unit"),
                share(self.units_verified),
            ),
        );
        line(
            "recounts",
            format!(
                "{} agreed, {} differed, {} due; {} taken back",
                grouped(self.recounts_agreed.into()),
                grouped(self.recounts_differed.into()),
                grouped(self.recounts_due.into()),
                counted(self.results_taken_back.into(), "result"),
            ),
        );
        if self.units_per_s > 0.0 && self.state == "running" {
            line("rate", format!("{} units/s", rounded(self.units_per_s)));
        }
        line(
            "work",
            format!(
                "{} of counting, {} of recounting, {} since it was submitted",
                time(self.counting_s),
                time(self.recounting_s),
                time(self.elapsed_s)
            ),
        );
        for share in &self.by {
            line(
                "by",
                format!(
                    "{} ({} on {}): {}, {} verified by others, {} of others verified",
                    share.worker,
                    share.kernel,
                    share.device,
                    counted(share.units.into(), "unit"),
                    grouped(share.units_verified.into()),
                    grouped(share.verified_of_others.into()),
                ),
            );
        }
        if self.units_poisoned > 0 {
            let aside = counted(self.units_poisoned.into(), "unit");
            line("set aside", format!("{aside}; nqueens resume {} tries them again", self.short()));
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        lines.join("\n") + "\n"
    }
}
