//! The progress of a count and its remaining time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::calibration::TimeForecast;
use super::estimate::Forecast;
use super::part::JobPart;
use crate::checkpoint::{CompletedUnits, PartialUnit, PartialUnits};
use crate::decomposition::Decomposition;

/// The progress of a running count.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountProgress {
    /// The number of finished units, including those of an earlier session.
    pub units_done: u64,
    /// The number of units of the job.
    pub units: u64,
    /// The fraction of the work that is done, by the forecast: 0 to 1. It includes the counted part
    /// of units that are not finished.
    pub fraction: f64,
    /// The number of solutions in the finished units, rounded down.
    pub solutions: u128,
    /// The time since this session began to count.
    pub elapsed: Duration,
    /// Solutions a second in this session; `None` before its first unit.
    pub rate_per_s: Option<f64>,
    /// The time left: measured once this session has counted something, and until then predicted
    /// from a sample, if one was counted, or from the kernel's usual rate. `None` if there is no
    /// forecast and nothing is counted.
    pub left: Option<Duration>,
}

impl CountProgress {
    /// Returns the time left if the session began at the fraction `before` and reached `done` after
    /// `elapsed`.
    fn time_left(before: f64, done: f64, elapsed: Duration) -> Option<Duration> {
        let in_session = done - before;
        let left = elapsed.as_secs_f64() * (1.0 - done).max(0.0) / in_session;
        (in_session > 0.0).then(|| Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX))
    }
}

/// The measurement of a session's progress: which units of a part of a job are finished, and how
/// much work they are by the forecast.
#[derive(Debug)]
pub(super) struct ProgressMeter {
    decomposition: Arc<Decomposition>,
    part: JobPart,
    forecast: Option<Forecast>,
    /// The usual nodes a second of all CPU threads together.
    usual_nodes_per_s: f64,
    /// The time of the whole job, if it was forecast from a sample.
    time: Option<TimeForecast>,
    began: Instant,
    /// The sum of the units that were finished before, in thirds of a solution.
    thirds_before: u128,
    fraction_before: f64,
    missing: u64,
    finished_nodes: f64,
}

impl ProgressMeter {
    /// Starts the measurement of a session that continues from these results.
    pub(super) fn start(
        (decomposition, part): (&Arc<Decomposition>, JobPart),
        (forecast, usual_nodes_per_s, time): (Option<&Forecast>, f64, Option<TimeForecast>),
        completed: &CompletedUnits,
        partial: &PartialUnits,
    ) -> Self {
        let mut meter = Self {
            decomposition: Arc::clone(decomposition),
            part,
            forecast: forecast.cloned(),
            usual_nodes_per_s,
            time,
            began: Instant::now(),
            thirds_before: completed.so_far().thirds(),
            fraction_before: 0.0,
            missing: part.units(decomposition.units()),
            finished_nodes: 0.0,
        };
        (0..completed.units()).filter(|&unit| completed.has(unit)).for_each(|u| meter.finish(u));
        meter.fraction_before = meter.fraction(partial);
        meter
    }

    /// Enters a finished unit.
    pub(super) fn finish(&mut self, unit: u64) {
        if self.part.has(unit) {
            self.missing = self.missing.saturating_sub(1);
            self.finished_nodes += self.nodes_of(unit);
        }
    }

    /// Removes a finished unit.
    pub(super) fn reopen(&mut self, unit: u64) {
        if self.part.has(unit) {
            self.missing += 1;
            self.finished_nodes -= self.nodes_of(unit);
        }
    }

    /// Returns the number of units of the part.
    pub(super) fn units(&self) -> u64 {
        self.part.units(self.decomposition.units())
    }

    /// Returns the number of finished units of the part.
    pub(super) fn units_done(&self) -> u64 {
        self.units() - self.missing
    }

    /// Returns whether all units of the part are finished.
    pub(super) const fn is_done(&self) -> bool {
        self.missing == 0
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the progress, given the finished units and the partial results of others.
    pub(super) fn progress(
        &self,
        completed: &CompletedUnits,
        partial: &PartialUnits,
    ) -> CountProgress {
        let (fraction, elapsed) = (self.fraction(partial), self.elapsed());
        let predicted = || {
            if let Some(time) = self.time {
                return Duration::try_from_secs_f64(time.of_fraction(1.0 - fraction).seconds).ok();
            }
            let nodes = self.all_nodes()? * (1.0 - fraction);
            Duration::try_from_secs_f64(nodes / self.usual_nodes_per_s).ok()
        };
        let thirds = completed.so_far().thirds();
        let in_session = thirds - self.thirds_before;
        CountProgress {
            units_done: self.units_done(),
            units: self.units(),
            fraction,
            solutions: thirds / 3,
            elapsed,
            rate_per_s: (in_session > 0).then(|| in_session as f64 / 3.0 / elapsed.as_secs_f64()),
            left: CountProgress::time_left(self.fraction_before, fraction, elapsed)
                .or_else(predicted),
        }
    }

    /// Returns the forecast nodes of the whole job.
    fn all_nodes(&self) -> Option<f64> {
        Some(self.forecast.as_ref()?.nodes(0..self.decomposition.prefixes()))
    }

    /// Returns the forecast nodes of a unit; 1 for every unit without a forecast.
    fn nodes_of(&self, unit: u64) -> f64 {
        self.forecast.as_ref().map_or(1.0, |f| f.nodes(self.decomposition.unit(unit)))
    }

    /// Returns the forecast nodes of the counted part of a unit.
    fn nodes_of_partial(&self, partial: &PartialUnit) -> f64 {
        let range = self.decomposition.unit(partial.unit);
        match &self.forecast {
            Some(forecast) => forecast.nodes(range.start..range.start + partial.counted),
            None => partial.counted as f64 / (range.end - range.start) as f64,
        }
    }

    fn fraction(&self, partial: &PartialUnits) -> f64 {
        // All parts are about equally large.
        let all = self
            .all_nodes()
            .map_or(self.units() as f64, |nodes| nodes / self.part.parts().get() as f64);
        let partial = partial.iter().filter(|partial| self.part.has(partial.unit));
        let done: f64 = partial
            .map(|partial| self.nodes_of_partial(partial))
            .fold(self.finished_nodes, |sum, nodes| sum + nodes);
        if all > 0.0 { (done / all).min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::decomposition::{Job, Scheme};
    use crate::tally::Tally;

    #[test]
    fn the_counted_part_of_a_unit_is_progress() {
        let job = Job::new(Problem::empty(Piece::Queen, 8), Scheme::CentreCross, None, 20);
        let decomposition = Arc::new(Decomposition::new(job.expect("a small board")));
        // The last unit is the smallest one.
        assert_eq!((decomposition.prefixes(), decomposition.units()), (104, 6));
        let even = Forecast::even(1040.0, 104);
        for (forecast, fraction) in [(Some(&even), 25.0 / 104.0), (None, 1.25 / 6.0)] {
            let mut completed = CompletedUnits::new(6);
            let mut partial = PartialUnits::default();
            partial.enter(PartialUnit { counted: 5, ..PartialUnit::start(2, "scalar") });
            let parts = (&decomposition, JobPart::WHOLE);
            let mut meter =
                ProgressMeter::start(parts, (forecast, 1e9, None), &completed, &partial);
            let progress = meter.progress(&completed, &partial);
            assert_eq!((progress.units_done, progress.units), (0, 6));
            assert!((progress.fraction - (fraction - fraction * 0.8)).abs() < 1e-9);
            assert_eq!(progress.left.is_some(), forecast.is_some(), "nothing is measured yet");
            completed.enter(0, &Tally::default()).expect("a unit of the job");
            meter.finish(0);
            let progress = meter.progress(&completed, &partial);
            assert!((progress.fraction - fraction).abs() < 1e-9);
            assert!(progress.left.is_some() && progress.units_done == 1);
            meter.reopen(0);
            assert!(meter.progress(&completed, &partial).fraction < fraction);
            (0..6).for_each(|unit| meter.finish(unit));
            assert!(meter.is_done());
            let progress = meter.progress(&completed, &PartialUnits::default());
            assert!((progress.fraction - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_time_left_counts_only_what_this_session_did() {
        let left =
            |before, done, secs| CountProgress::time_left(before, done, Duration::from_secs(secs));
        assert_eq!(left(0.0, 0.25, 10), Some(Duration::from_secs(30)));
        assert_eq!(left(0.5, 0.75, 10), Some(Duration::from_secs(10)));
        assert_eq!(left(0.5, 0.5, 10), None);
        assert_eq!(left(0.0, 1.0, 10), Some(Duration::ZERO));
    }
}
