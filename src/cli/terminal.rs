//! The progress, the interruption and the time limit of a solver run.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::interrupt::Interrupt;
use super::progress::spinner;
use super::solver_log::SolverLog;
use crate::report::{counted, rounded};
use crate::solver::{LogEntry, Progress, ProgressSink};

/// The minimum time between two updates of the display.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// A sink of progress that draws on stderr if that is a terminal, and stops the run at Ctrl-C or at
/// its time limit.
pub(super) struct Terminal {
    bar: ProgressBar,
    /// The noun for [`Progress::level`].
    levels: &'static str,
    /// The current position of the run, in words.
    place: Option<String>,
    started: Instant,
    limit: Option<Duration>,
    drawn: Option<Instant>,
    interrupt: Interrupt,
    /// The log of the solver, if it is wanted.
    log: Option<SolverLog>,
}

impl Terminal {
    /// Starts the clock of a run.
    pub(super) fn new(levels: &'static str, limit: Option<Duration>, quiet: bool) -> Self {
        Self {
            bar: spinner("{spinner} {msg}  {elapsed}", quiet),
            levels,
            place: None,
            interrupt: Interrupt::listen(),
            started: Instant::now(),
            limit,
            drawn: None,
            log: None,
        }
    }

    /// Prints the solver's log in place of the display.
    pub(super) fn with_log(self, log: Option<SolverLog>) -> Self {
        let bar = if log.is_some() { ProgressBar::hidden() } else { self.bar };
        Self { bar, log, ..self }
    }

    /// Returns the time since the run started.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether Ctrl-C was pressed.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }

    /// Returns whether the run must end: Ctrl-C was pressed, or the time limit is reached.
    pub(super) fn is_over(&self) -> bool {
        self.is_interrupted() || self.time_left().is_some_and(|left| left.is_zero())
    }

    /// Clears the display.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn draw(&mut self, progress: &Progress) {
        if self.bar.is_hidden() || self.drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_EVERY) {
            return;
        }
        self.drawn = Some(Instant::now());
        let mut message = match &self.place {
            Some(place) => place.clone(),
            None => format!("{} {}", self.levels, progress.level),
        };
        if let Some(bound) = progress.bound {
            let _ = write!(message, ", bound {}", rounded(bound));
        }
        let _ = write!(message, ", {}", counted(progress.nodes.into(), "node"));
        self.bar.set_message(message);
        self.bar.tick();
    }
}

impl ProgressSink for Terminal {
    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.draw(progress);
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn describe(&mut self, place: &dyn Fn() -> String) {
        if !self.bar.is_hidden() {
            self.place = Some(place());
        }
    }

    fn log_interval(&self) -> Option<u64> {
        self.log.as_ref().map(SolverLog::interval)
    }

    fn log(&mut self, entry: &LogEntry) {
        let elapsed = self.elapsed();
        if let Some(log) = &mut self.log {
            log.write(entry, elapsed);
        }
    }

    fn time_left(&self) -> Option<Duration> {
        self.limit.map(|limit| limit.saturating_sub(self.started.elapsed()))
    }
}

/// Parses a time limit: a number of seconds, or a number and s, m, h or d.
pub(super) fn time_limit(text: &str) -> Result<Duration, String> {
    let unit = text.chars().last().and_then(|last| match last {
        's' => Some(1.0),
        'm' => Some(60.0),
        'h' => Some(3600.0),
        'd' => Some(86_400.0),
        _ => None,
    });
    let number = if unit.is_some() { &text[..text.len() - 1] } else { text };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit.unwrap_or(1.0));
    let limit = seconds.filter(|s| *s > 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok());
    limit.ok_or_else(|| {
        format!("invalid time limit '{text}'; use a number and s, m, h or d, for example 60s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_read_in_seconds_minutes_hours_and_days() {
        for (text, ms) in [
            ("60s", 60_000),
            ("1.5m", 90_000),
            ("2h", 7_200_000),
            ("2d", 172_800_000),
            ("0.25", 250),
        ] {
            assert_eq!(time_limit(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "-1s", "1w", "NaN", "inf", "1e400h", "µ"] {
            assert!(time_limit(text).is_err(), "{text}");
        }
    }
}
