//! One session of a count: starts the workers and records what they finish.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use super::CountTask;
use crate::checkpoint::{FinishedUnit, PartialUnits};
use crate::engine::count::{CountError, CountEvent};
use crate::engine::progress::ProgressMeter;
use crate::engine::session_results::SessionResults;
use crate::engine::workers::{ExpectedSpeed, Workers};
use crate::executor::{CpuKernels, KernelFailure, KernelPreference, PieceSize};
use crate::kernel::KernelKind;

/// The summary of a counting session.
pub(super) struct Session {
    pub(super) resumed_units: u64,
    pub(super) elapsed: Duration,
    /// The kernels, as finished units name them.
    pub(super) kernels: BTreeSet<String>,
    /// The number of CPU threads that counted.
    pub(super) threads: usize,
}

/// The CPU time in seconds from which looking for a GPU pays off: loading its driver and the
/// self-test take about one second.
const WORTH_DISCOVERY_S: f64 = 3.0;

impl CountTask {
    /// Returns the missing units.
    fn missing(&self) -> impl Iterator<Item = u64> {
        self.completed().missing().filter(|&unit| self.part.has(unit))
    }

    /// Starts the measurement of the progress of a session that continues from `partial` results.
    pub(super) fn meter(&self, partial: &PartialUnits) -> ProgressMeter {
        ProgressMeter::start(
            (&self.decomposition, self.part),
            (self.forecast.as_ref(), self.usual_nodes_per_s(), self.time),
            self.completed(),
            partial,
        )
    }

    pub(super) fn count_units(
        &mut self,
        mut on_event: impl FnMut(CountEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Session, CountError> {
        let mut results = SessionResults::new(self.partial(), self.pieces != PieceSize::Timed);
        let mut meter = self.meter(results.partial());
        let resumed_units = meter.units_done();
        if let Some(note) = self.devices.note {
            // A request to stop is handled at the next progress event.
            let _ = on_event(CountEvent::Note(note));
        }
        let mut workers = self.start();
        while !meter.is_done() || workers.is_testing_kernel() {
            let arrived = workers.wait(|note| {
                // A request to stop is handled at the next progress event.
                let _ = on_event(CountEvent::Note(note));
            });
            if workers.devices == 0 && workers.cpu_threads() == 0 {
                // All devices that were to count without the CPU have failed.
                let _ = on_event(CountEvent::Note("no device is left: counting on the CPU"));
                workers.start_cpu(self.threads);
                if workers.cpu_threads() == 0 {
                    return Err(CountError::WorkerLost);
                }
            }
            for failure in arrived.failures {
                if let Some(note) = &failure.note {
                    let _ = on_event(CountEvent::Note(note));
                }
                let reopened = self.discard_results(&failure, &mut results)?;
                reopened.iter().for_each(|&unit| meter.reopen(unit));
                workers.end_kernel_test(&reopened);
            }
            let (batch, rejected): (Vec<FinishedUnit>, Vec<FinishedUnit>) =
                arrived.finished.into_iter().partition(|finished| results.trusts(&finished.kernel));
            rejected.iter().for_each(|finished| workers.reject(finished.unit));
            // Near the end a unit may be counted twice; the completed units check that both results
            // agree.
            let new: BTreeSet<u64> =
                batch.iter().map(|f| f.unit).filter(|&u| !self.completed().has(u)).collect();
            self.store.record(&batch)?;
            if let Some(error) = arrived.fatal {
                return Err(error);
            }
            for &unit in &new {
                workers.finish(unit);
                meter.finish(unit);
            }
            batch.into_iter().filter(|f| new.contains(&f.unit)).for_each(|f| results.finish(f));
            let partial = arrived.partial.into_iter().filter(|p| !self.completed().has(p.unit));
            partial.for_each(|partial| results.enter(partial));
            let progress = meter.progress(self.completed(), results.partial());
            let stopping = on_event(CountEvent::Progress(&progress)).is_break();
            self.store.record_partial(&results, stopping)?;
            if stopping {
                let (units_done, units) = (meter.units_done(), meter.units());
                return Err(CountError::Stopped { units_done, units });
            }
        }
        Ok(Session {
            resumed_units,
            elapsed: meter.elapsed(),
            kernels: results.kernels(),
            threads: workers.cpu_threads(),
        })
    }

    /// Discards the partial result of the unit that a kernel failed on, and all that the kernel
    /// counted in this session if it is no longer trusted. Returns the finished units among them.
    fn discard_results(
        &mut self,
        failure: &KernelFailure,
        results: &mut SessionResults,
    ) -> Result<Vec<u64>, CountError> {
        let finished: Vec<u64> = results.discard(failure).into_iter().collect();
        let mut void = finished.clone();
        if let Some(recorded) = self.store.partial() {
            // Those of earlier sessions as well.
            let discarded = recorded.iter().filter(|partial| {
                Some(partial.unit) == failure.unit || !results.trusts(&partial.kernel)
            });
            void.extend(discarded.map(|partial| partial.unit));
        }
        if !void.is_empty() {
            self.store.void(&void)?;
        }
        Ok(finished)
    }

    /// Returns the CPU kernels to be used: the chosen one first, then those that take over where it
    /// fails.
    fn kernels(&self) -> Vec<KernelKind> {
        let mut kinds = vec![self.kernel];
        if let (true, Ok(preference)) = (self.fallback, KernelPreference::new(Some(self.kernel))) {
            kinds.extend(
                preference.for_job(self.decomposition.job()).filter(|kind| *kind != self.kernel),
            );
        }
        kinds
    }

    /// Starts the workers.
    fn start(&mut self) -> Workers {
        let nodes = self.forecast.as_ref().map(|f| f.nodes(0..self.decomposition.prefixes()));
        let seconds = nodes.map_or(0.0, |nodes| nodes / self.usual_nodes_per_s());
        let cpu_units_per_s = if self.devices.cpu {
            self.completed().units() as f64 / seconds.max(1e-3)
        } else {
            0.0
        };
        let unit_s = seconds * self.threads.get() as f64 / self.completed().units() as f64;
        let kinds = self.kernels();
        let mut workers = Workers::new(
            &self.decomposition,
            self.missing(),
            (&kinds, CpuKernels::new(kinds.clone(), self.factory.clone(), self.fallback)),
            (self.partial(), self.pieces),
            ExpectedSpeed { cpu_units_per_s, unit_s },
        );
        if self.devices.cpu {
            workers.start_cpu(self.threads);
        }
        workers.start_devices(std::mem::take(&mut self.devices.opened));
        if self.devices.discover && seconds > WORTH_DISCOVERY_S {
            workers.discover_gpus();
        }
        workers
    }

    /// Returns the names of the kernels and devices that counted, derived from those in the
    /// finished units.
    pub(super) fn names(&self, kernels: &BTreeSet<String>) -> (String, Vec<String>) {
        let mut names: Vec<&str> = Vec::new();
        let mut devices: Vec<String> = Vec::new();
        for kernel in kernels {
            let (name, device) = kernel.split_once('@').unwrap_or((kernel, "cpu"));
            if !names.contains(&name) {
                names.push(name);
            }
            if !devices.iter().any(|known| known == device) {
                devices.push(device.to_owned());
            }
        }
        if names.is_empty() {
            // No unit was left to count.
            return (self.kernel.name().to_owned(), vec!["cpu".to_owned()]);
        }
        (names.join("+"), devices)
    }
}
