//! Jobs and workers as lines of a table.

use std::time::Duration;

use crate::cli::job_report::JobReport;
use crate::cli::proof_report::ProofReport;
use crate::cli::report::{counted, grouped, predicted, rounded};
use crate::cluster::protocol::v1;

/// A count or a proof.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobRow {
    /// All of its name.
    pub(super) name: String,
    /// What is to be found.
    pub(super) title: String,
    pub(super) state: &'static str,
    /// Counts, as shares of one: counted, and confirmed by another source.
    pub(super) shares: Option<(f64, f64)>,
    /// How far, how fast, how long yet, or the answer.
    pub(super) progress: String,
    /// Something is wrong with it, and people should look.
    pub(super) ails: bool,
    /// All that is known of it, in lines.
    pub(super) report: String,
}

impl JobRow {
    /// The first digits of its name, which are enough for commands.
    pub(super) fn short(&self) -> &str {
        self.name.get(..8).unwrap_or(&self.name)
    }

    /// "a979411d (count of 19 queens)".
    pub(super) fn called(&self) -> String {
        format!("{} ({})", self.short(), self.title)
    }

    pub(super) fn of_count(status: v1::JobStatus, now_ms: u64) -> Self {
        let share = |part: u64| part as f64 / status.units.max(1) as f64;
        let (done, verified) = (share(status.done), share(status.checked));
        let aside = status.poisoned;
        let rate = status.units_per_s;
        let report = JobReport::new(status, now_ms);
        // What matters most stands first: the end may be cut off.
        let mut progress = Vec::new();
        if report.solutions.is_some() || report.is_disputed() {
            progress.push(report.progress());
        } else {
            progress.push(format!("{:.1} %", 100.0 * done));
            progress.extend((aside > 0).then(|| format!("{} set aside", grouped(aside.into()))));
            let runs = report.state == "running" && rate > 0.0;
            progress.extend(runs.then(|| format!("{} units/s", rounded(rate))));
            progress.extend(report.left());
        }
        Self {
            title: plain(&report.title()),
            state: report.state,
            shares: Some((done, verified)),
            progress: plain(&progress.join(", ")),
            ails: aside > 0 || report.is_disputed() || !report.notes.is_empty(),
            report: plain_lines(&report.text()),
            name: report.job,
        }
    }

    pub(super) fn of_proof(status: v1::ProofStatus, now_ms: u64) -> Self {
        let report = ProofReport::new(status, now_ms);
        Self {
            title: plain(&report.title()),
            state: report.state,
            shares: None,
            progress: plain(&report.progress()),
            ails: !report.notes.is_empty(),
            report: plain_lines(&report.text()),
            name: report.job,
        }
    }
}

/// A worker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkerRow {
    pub(super) name: String,
    /// "avx512 on cpu, wgsl on vulkan-10de-2335".
    pub(super) devices: String,
    pub(super) units_done: u64,
    pub(super) held: u64,
    /// When it was heard of last, in ms since 1970 by the coordinator's clock.
    pub(super) seen_ms: u64,
    /// The hottest of its devices, in degrees Celsius.
    pub(super) temperature_c: Option<f64>,
    pub(super) health: Health,
}

/// How a worker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Well,
    /// It counts nothing for now.
    Resting,
    Draining,
    /// A device is at fault.
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
            Health::Well
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

    /// "35 units in hand", or why there are none.
    pub(super) fn state(&self) -> String {
        match &self.health {
            Health::Well => format!("{} in hand", counted(self.held.into(), "unit")),
            Health::Resting => "resting".to_owned(),
            Health::Draining => format!("draining, {} in hand", counted(self.held.into(), "unit")),
            Health::Faulty(fault) => format!("at fault: {fault}"),
            Health::Quarantined(why) => format!("in quarantine: {why}"),
        }
    }

    /// "3 s ago".
    pub(super) fn heard_of(&self, now_ms: u64) -> String {
        format!("{} ago", predicted(Duration::from_millis(now_ms.saturating_sub(self.seen_ms))))
    }
}

/// Text that others chose, without what would move the cursor or turn the direction of writing.
pub(super) fn plain(text: &str) -> String {
    /// Unicode's marks and overrides of direction, and its invisible separators.
    const fn turns(letter: char) -> bool {
        matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    }
    text.chars()
        .map(|letter| if letter.is_control() || turns(letter) { '\u{fffd}' } else { letter })
        .collect()
}

/// [`plain`], line by line.
fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
