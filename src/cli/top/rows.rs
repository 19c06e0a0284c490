//! Jobs and workers as rows of the tables.

use std::time::Duration;

use crate::cluster::protocol::v1;
use crate::report::{JobReport, ProofReport, counted, grouped, percent, predicted, rounded};

/// A row of the table of jobs: a count or a proof.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobRow {
    /// The full name.
    pub(super) name: String,
    /// The goal.
    pub(super) title: String,
    pub(super) state: &'static str,
    /// The percentage that is done: "46.0 %".
    pub(super) percent: String,
    /// The time left, or the state: "about 3 h left", "verifying (9 checks left)", "paused".
    pub(super) left: String,
    /// The shares of counted and of verified units, of a count.
    pub(super) shares: Option<(f64, f64)>,
    /// The rate and the range of the time left, or the result.
    pub(super) progress: String,
    /// True if the job needs the attention of an operator.
    pub(super) needs_attention: bool,
    /// The whole report, in lines.
    pub(super) report: String,
}

impl JobRow {
    /// Returns the first digits of the name, which commands accept.
    pub(super) fn short(&self) -> &str {
        self.name.get(..8).unwrap_or(&self.name)
    }

    /// Returns the job in words: "a979411d (count of 19 queens)".
    pub(super) fn called(&self) -> String {
        format!("{} ({})", self.short(), self.title)
    }

    pub(super) fn of_count(status: v1::JobStatus, now_ms: u64) -> Self {
        let share = |part: u64| part as f64 / status.units.max(1) as f64;
        let (done, verified) = (share(status.done), share(status.checked));
        let aside = status.poisoned;
        let rate = status.units_per_s;
        let report = JobReport::new(status, now_ms);
        // The most important part is first, since the end may be cut off.
        let mut progress = Vec::new();
        let mut left = report.state_sentence();
        if report.is_disputed() {
            progress.push(report.progress());
        } else if let Some(solutions) = &report.solutions {
            let noun = if solutions == "1" { "solution" } else { "solutions" };
            progress.push(format!("{solutions} {noun}"));
        } else {
            left = report.left_about().unwrap_or(left);
            progress.extend((aside > 0).then(|| format!("{} set aside", grouped(aside.into()))));
            let runs = report.state == "running" && rate > 0.0;
            progress.extend(runs.then(|| format!("{} units/s", rounded(rate))));
            progress.extend(report.left_range());
        }
        Self {
            title: plain(&report.title()),
            state: report.state,
            percent: report.percent_done(),
            left,
            shares: Some((done, verified)),
            progress: plain(&progress.join(", ")),
            needs_attention: aside > 0 || report.is_disputed() || !report.notes.is_empty(),
            report: plain_lines(&report.text()),
            name: report.job,
        }
    }

    pub(super) fn of_proof(status: v1::ProofStatus, now_ms: u64) -> Self {
        let report = ProofReport::new(status, now_ms);
        Self {
            title: plain(&report.title()),
            state: report.state,
            percent: if report.proven { percent(1.0, None) } else { percent(report.share(), None) },
            left: report.state.to_owned(),
            shares: None,
            progress: plain(&report.progress()),
            needs_attention: !report.notes.is_empty(),
            report: plain_lines(&report.text()),
            name: report.job,
        }
    }
}

/// A row of the table of workers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkerRow {
    pub(super) name: String,
    /// The kernels and devices: "avx512 on cpu, wgsl on vulkan-10de-2335".
    pub(super) devices: String,
    pub(super) units_done: u64,
    pub(super) held: u64,
    /// The time of the last contact, in ms since 1970 by the coordinator's clock.
    pub(super) seen_ms: u64,
    /// The temperature of the hottest device, in degrees Celsius.
    pub(super) temperature_c: Option<f64>,
    pub(super) health: Health,
}

/// The state of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It counts units, or waits for units.
    Active,
    /// Quiet hours or a processor that is too hot: it counts nothing.
    Resting,
    Draining,
    /// A device has failed.
    Faulty(String),
    Quarantined(String),
}

impl WorkerRow {
    pub(super) fn new(status: v1::WorkerStatus) -> Self {
        let devices =
            status.devices.iter().map(|device| format!("{} on {}", device.kernel, device.id));
        let fault = status.devices.iter().find(|device| !device.fault.is_empty());
        let health = if !status.quarantined.is_empty() {
            Health::Quarantined(plain(&status.quarantined))
        } else if let Some(device) = fault {
            Health::Faulty(plain(&format!("{}: {}", device.id, device.fault)))
        } else if status.draining {
            Health::Draining
        } else if status.capacity == 0 {
            Health::Resting
        } else {
            Health::Active
        };
        Self {
            devices: plain(&devices.collect::<Vec<_>>().join(", ")),
            units_done: status.units_done,
            held: status.held,
            seen_ms: status.seen_ms,
            temperature_c: status
                .devices
                .iter()
                .filter_map(|device| device.temperature_c)
                .reduce(f64::max),
            health,
            name: plain(&status.name),
        }
    }

    /// Returns the state in words: "35 units leased".
    pub(super) fn state(&self) -> String {
        match &self.health {
            Health::Active => format!("{} leased", counted(self.held.into(), "unit")),
            Health::Resting => "resting".to_owned(),
            Health::Draining => format!("draining, {} leased", counted(self.held.into(), "unit")),
            Health::Faulty(fault) => format!("device fault: {fault}"),
            Health::Quarantined(why) => format!("quarantined: {why}"),
        }
    }

    /// Returns the time since the last contact: "3 s ago".
    pub(super) fn last_contact(&self, now_ms: u64) -> String {
        format!("{} ago", predicted(Duration::from_millis(now_ms.saturating_sub(self.seen_ms))))
    }
}

/// Returns what each owner has counted this week: "anna 75.0 % (1 h 30 min), ben 25.0 % (30 min 00
/// s)". Empty if nobody has counted anything.
pub(super) fn week(contributions: &[v1::Contribution]) -> String {
    let total: f64 = contributions.iter().map(|each| each.counting_s).sum();
    let each = |each: &v1::Contribution| {
        let time = Duration::try_from_secs_f64(each.counting_s).map(predicted).unwrap_or_default();
        format!("{} {} ({time})", plain(&each.owner), percent(each.counting_s / total, None))
    };
    if total > 0.0 {
        contributions.iter().map(each).collect::<Vec<_>>().join(", ")
    } else {
        String::new()
    }
}

/// Replaces the characters of untrusted text that would move the cursor or change the direction of
/// writing.
pub(in crate::cli) fn plain(text: &str) -> String {
    /// Returns whether a character is a mark of direction or an invisible separator.
    const fn is_invisible(letter: char) -> bool {
        matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    }
    text.chars()
        .map(|letter| if letter.is_control() || is_invisible(letter) { '\u{fffd}' } else { letter })
        .collect()
}

/// Applies [`plain`] to each line.
fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
