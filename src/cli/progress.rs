//! Progress on stderr.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::engine::{CountProgress, TimeForecast};
use crate::report::{duration, grouped, percent, predicted, rounded, time};

/// The number of steps of a progress bar.
pub(super) const STEPS: u64 = 1000;

/// Creates a progress bar, which is drawn only if stderr is a terminal.
pub(super) fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:32} {msg}").expect("the template is right");
    ProgressBar::new(STEPS).with_style(style)
}

/// Creates a spinner with a text; nothing is drawn if `quiet`, or if stderr is no terminal.
pub(super) fn spinner(template: &str, quiet: bool) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is right");
    if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner().with_style(style) }
}

/// Shows the progress of a count: its share, its rate and the time left.
pub(super) fn show(bar: &ProgressBar, progress: &CountProgress) {
    let mut message = format!("{:>7}", percent(progress.fraction, progress.left));
    if let Some(rate) = progress.rate_per_s {
        let _ = write!(message, "  {} solutions/s", rounded(rate));
    }
    if let Some(left) = progress.left {
        let _ = write!(message, "  {} left", predicted(left));
    }
    // The fraction is between 0 and 1.
    bar.set_position((progress.fraction * STEPS as f64) as u64);
    bar.set_message(message);
}

/// Formats a forecast time with its interval: "3 d 4 h (2 d 20 h to 3 d 15 h)".
pub(super) fn time_with_interval(forecast: &TimeForecast) -> String {
    let [least, most] = [forecast.least_s, forecast.most_s].map(time);
    format!("{} ({least} to {most})", time(forecast.seconds))
}

/// The progress of a search on stderr, drawn only if that is a terminal: the number of tries.
#[derive(Debug)]
pub(super) struct Ticker {
    bar: ProgressBar,
    unit: &'static str,
    started: Instant,
    shown: Instant,
}

impl Ticker {
    /// Starts the display, which counts tries in `unit`. Nothing is drawn if `quiet`.
    pub(super) fn start(unit: &'static str, quiet: bool) -> Self {
        let bar = spinner("{spinner} {msg}", quiet);
        Self { bar, unit, started: Instant::now(), shown: Instant::now() }
    }

    /// Shows the number of tries, at most ten times a second.
    pub(super) fn show(&mut self, tried: u64, more: impl FnOnce() -> String) {
        if self.shown.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.shown = Instant::now();
        let Self { bar, unit, started, .. } = self;
        bar.set_message(format!(
            "{} {unit} tried{}, {}",
            grouped(tried.into()),
            more(),
            duration(started.elapsed())
        ));
        bar.tick();
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
