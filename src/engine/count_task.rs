//! Counts a planned job: workers take units from a queue, and the caller's thread records the
//! completed units.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::count::{CountError, CountEvent, CountOptions, CountOutcome, PartOutcome};
use super::devices::{Device, DeviceChoice, DeviceError, find_devices};
use super::estimate::Forecast;
use super::kernels::{CpuKernels, KernelFactory, KernelFailure, KernelPreference};
use super::part::JobPart;
use super::progress::CountProgress;
use super::unit_size::{
    FEWEST_UNITS, forecast_if_long, has_gpu, is_worth_a_gpu, job, threads, units_for,
    usual_nodes_per_s,
};
use super::unit_store::UnitStore;
use super::workers::{BatchSizing, Message, Workers};
use crate::board::{Piece, Problem};
use crate::checkpoint::{Checkpoint, CheckpointError, CompletedUnits, Corruption, FinishedUnit};
use crate::decomposition::{Decomposition, Scheme};
use crate::kernel::gpu::DeviceKernel;
use crate::kernel::{Kernel, KernelError, KernelKind};

/// A job that is planned and ready to be counted.
#[derive(Debug)]
pub struct CountTask {
    decomposition: Arc<Decomposition>,
    part: JobPart,
    kernel: KernelKind,
    /// Whether other kernels take over the units on which this one fails.
    fallback: bool,
    factory: KernelFactory,
    threads: NonZeroUsize,
    devices: SelectedDevices,
    forecast: Option<Forecast>,
    store: UnitStore,
}

/// The summary of a counting session.
struct Session {
    resumed_units: u64,
    elapsed: Duration,
    /// The kernels, as finished units name them.
    kernels: BTreeSet<String>,
    /// The number of CPU threads that counted.
    threads: usize,
}

/// The devices that count.
#[derive(Debug)]
struct SelectedDevices {
    /// Whether the CPU counts.
    cpu: bool,
    /// Whether to look for GPUs if the count is long enough for them to pay off.
    discover: bool,
    /// The devices to open at the start.
    opened: Vec<Device>,
    /// A message for the user on the GPUs that do not count.
    note: Option<&'static str>,
}

impl SelectedDevices {
    /// Returns the devices of the choice in `options`.
    fn choose(
        problem: &Problem,
        kernel: KernelKind,
        options: &CountOptions,
    ) -> Result<Self, DeviceError> {
        let choice = &options.devices;
        let cpu = choice.has_cpu();
        if !choice.has_adapters() {
            let free_to_choose = *choice == DeviceChoice::Auto && options.kernel.is_none();
            let wanted = free_to_choose && problem.piece() == Piece::Queen && cfg!(feature = "gpu");
            let discover = wanted && !kernel.is_for_sets();
            let note = if discover || !wanted || !is_worth_a_gpu(problem) {
                None
            } else if has_gpu(problem, choice) {
                Some(GPU_LEFT_OUT)
            } else {
                Some(NO_GPU)
            };
            return Ok(Self { cpu, discover, opened: Vec::new(), note });
        }
        if problem.piece() != Piece::Queen {
            return Err(DeviceError::QueensOnly(problem.piece()));
        }
        if options.kernel.is_some() && !cpu {
            return Err(DeviceError::KernelWithoutCpu);
        }
        if let Some(kernel) = options.kernel
            && kernel.scheme(problem) != Scheme::best(problem)
        {
            return Err(DeviceError::AnotherScheme(kernel));
        }
        Ok(Self { cpu, discover: false, opened: find_devices(choice)?, note: None })
    }
}

/// The message if a count that is long enough for a GPU has none.
pub(super) const NO_GPU: &str = "no GPU adapter was found: counting on the CPU alone";
const GPU_LEFT_OUT: &str =
    "the checkpoint has column sets, which GPUs do not count: counting on the CPU alone";

/// The units counted in this session, by the kernel that finished units name.
#[derive(Debug, Default)]
struct UnitsByKernel {
    by: BTreeMap<String, BTreeSet<u64>>,
    /// Kernels that failed a test with known answers.
    distrusted: BTreeSet<String>,
}

impl CountTask {
    /// Divides `problem` into units for this machine.
    ///
    /// # Errors
    /// The board is too large, or the kernel cannot count it here.
    pub fn plan(problem: &Problem, options: &CountOptions) -> Result<Self, CountError> {
        let (job, kernel) = job(problem, options)?;
        let decomposition = Decomposition::new(job);
        let forecast = forecast_if_long(&decomposition, kernel);
        let units = match &forecast {
            Some(forecast) => {
                units_for(forecast.nodes(0..decomposition.prefixes()), kernel, threads(options))
            }
            None => FEWEST_UNITS,
        };
        let size = decomposition.prefixes().div_ceil(units);
        let decomposition = decomposition.with_unit_prefixes(size);
        let store = UnitStore::InMemory(CompletedUnits::new(decomposition.units()));
        let decomposition = Arc::new(decomposition);
        let devices = SelectedDevices::choose(problem, kernel, options)?;
        let part = JobPart::WHOLE;
        Ok(Self::new(decomposition, (part, kernel), options, devices, (forecast, store)))
    }

    /// Like [`Self::plan`], with finished units kept in the checkpoint at `path`; units already in
    /// it are not counted again. If the file exists, its units are used, so that another machine
    /// can continue it.
    ///
    /// # Errors
    /// As for [`Self::plan`]; the file belongs to another job, is damaged or in use, or cannot be
    /// written.
    pub fn resume(
        problem: &Problem,
        options: &CountOptions,
        path: &Path,
    ) -> Result<Self, CountError> {
        let (job, mut kernel) = job(problem, options)?;
        let mut checkpoint = Checkpoint::open(path)?;
        let Some(found_job) = checkpoint.job().cloned() else {
            let mut task = Self::plan(problem, options)?;
            checkpoint.begin(task.decomposition.job(), task.decomposition.units())?;
            task.store = UnitStore::OnDisk(Box::new(checkpoint));
            return Ok(task);
        };
        if options.kernel.is_none() {
            // Another machine or an older version may have planned it.
            kernel = KernelKind::fastest_for(found_job.scheme(), problem.piece());
        }
        if found_job.problem() != problem || found_job.scheme() != kernel.scheme(problem) {
            let (found, wanted) = (found_job.to_string(), job.to_string());
            return Err(CheckpointError::AnotherJob { path: path.to_owned(), found, wanted }.into());
        }
        let decomposition = Arc::new(Decomposition::new(found_job));
        let (found, units) = (checkpoint.completed().units(), decomposition.units());
        if found != units {
            let damage = Corruption::Unknown(format!("{found} units, where the job has {units}"));
            return Err(CheckpointError::Damaged { path: path.to_owned(), line: 1, damage }.into());
        }
        let forecast = forecast_if_long(&decomposition, kernel);
        let store = UnitStore::OnDisk(Box::new(checkpoint));
        let devices = SelectedDevices::choose(problem, kernel, options)?;
        let part = JobPart::WHOLE;
        Ok(Self::new(decomposition, (part, kernel), options, devices, (forecast, store)))
    }

    /// Creates the task for a part of a planned job, with finished units kept in the checkpoint at
    /// `path`; units already in it are not counted again.
    ///
    /// # Errors
    /// The kernel cannot count it here; the file belongs to another job, is damaged or in use, or
    /// cannot be written.
    pub fn part(
        decomposition: &Decomposition,
        part: JobPart,
        options: &CountOptions,
        path: &Path,
    ) -> Result<Self, CountError> {
        let job = decomposition.job();
        let problem = job.problem();
        let fastest = || KernelKind::fastest_for(job.scheme(), problem.piece());
        let kernel = options.kernel.unwrap_or_else(fastest);
        kernel.build(problem.piece())?;
        if kernel.scheme(problem) != job.scheme() {
            return Err(DeviceError::AnotherScheme(kernel).into());
        }
        let mut checkpoint = Checkpoint::open(path)?;
        match checkpoint.job().cloned() {
            None => checkpoint.begin(job, decomposition.units())?,
            Some(found_job) if found_job == *job => {}
            Some(found_job) => {
                let (found, wanted) = (found_job.to_string(), job.to_string());
                return Err(
                    CheckpointError::AnotherJob { path: path.to_owned(), found, wanted }.into()
                );
            }
        }
        let devices = SelectedDevices::choose(problem, kernel, options)?;
        // A forecast takes seconds for large boards, and only devices need it.
        let forecast = if options.devices.has_adapters() {
            forecast_if_long(decomposition, kernel)
        } else {
            None
        };
        let decomposition = Arc::new(decomposition.clone());
        let store = UnitStore::OnDisk(Box::new(checkpoint));
        Ok(Self::new(decomposition, (part, kernel), options, devices, (forecast, store)))
    }

    fn new(
        decomposition: Arc<Decomposition>,
        (part, kernel): (JobPart, KernelKind),
        options: &CountOptions,
        devices: SelectedDevices,
        (forecast, store): (Option<Forecast>, UnitStore),
    ) -> Self {
        let (fallback, factory, threads) = (true, KernelFactory::default(), threads(options));
        Self { decomposition, part, kernel, fallback, factory, threads, devices, forecast, store }
    }

    /// Creates the CPU kernels by `make` instead of [`KernelKind::build`], for custom kernels.
    pub fn set_kernels(
        &mut self,
        make: impl Fn(KernelKind, Piece) -> Result<Box<dyn Kernel>, KernelError> + Send + Sync + 'static,
    ) {
        self.factory = KernelFactory::new(make);
    }

    /// Ends the count where the kernel fails, so that all results are its own: for measurements of
    /// a kernel, and tests.
    pub fn without_fallback(&mut self) {
        self.fallback = false;
    }

    /// Adds an open device with a custom backend.
    pub fn add_device(&mut self, id: &str, kernel: DeviceKernel) {
        self.devices.opened.push(Device::opened(id, kernel));
    }

    /// Excludes the CPU, unless every device fails.
    pub fn without_cpu(&mut self) {
        self.devices.cpu = false;
    }

    /// Returns the number of units already finished, and the number of bytes of a torn last line
    /// that were dropped from the checkpoint.
    pub fn resumed(&self) -> (u64, usize) {
        let torn_bytes = match &self.store {
            UnitStore::InMemory(_) => 0,
            UnitStore::OnDisk(file) => file.torn_bytes(),
        };
        (self.completed().done(), torn_bytes)
    }

    fn completed(&self) -> &CompletedUnits {
        self.store.completed()
    }

    /// Returns the decomposition.
    pub fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Counts the units not finished yet. `on_event` receives the progress after finished units and
    /// at least ten times a second; if it returns `Break`, the count stops at once and the work in
    /// progress is lost.
    ///
    /// # Errors
    /// Validation of a result fails, the checkpoint cannot be written, or `on_event` returned
    /// `Break`.
    pub fn run(
        mut self,
        on_event: impl FnMut(CountEvent<'_>) -> ControlFlow<()>,
    ) -> Result<CountOutcome, CountError> {
        let before = *self.completed().so_far();
        let Session { resumed_units, elapsed, kernels, threads } = self.count_units(on_event)?;
        let total = self.completed().total()?;
        let session_thirds = total.thirds() - before.thirds();
        let (kernel, devices) = self.names(&kernels);
        Ok(CountOutcome {
            solutions: total.solutions()?,
            nodes: self.kernel.counts_nodes().then(|| total.nodes()),
            kernel,
            devices,
            threads,
            units: self.completed().units(),
            resumed_units,
            elapsed,
            rate_per_s: session_thirds as f64 / 3.0 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        })
    }

    /// Like [`Self::run`] for a [part](Self::part), whose units are then in its file.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub fn run_part(
        mut self,
        on_event: impl FnMut(CountEvent<'_>) -> ControlFlow<()>,
    ) -> Result<PartOutcome, CountError> {
        let Session { resumed_units, elapsed, kernels, .. } = self.count_units(on_event)?;
        let (kernel, devices) = self.names(&kernels);
        Ok(PartOutcome { kernel, devices, units: self.units(), resumed_units, elapsed })
    }

    /// Returns the number of units to be counted, including finished ones.
    fn units(&self) -> u64 {
        self.part.units(self.completed().units())
    }

    /// Returns the missing units.
    fn missing(&self) -> impl Iterator<Item = u64> {
        self.completed().missing().filter(|&unit| self.part.has(unit))
    }

    fn count_units(
        &mut self,
        mut on_event: impl FnMut(CountEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Session, CountError> {
        const TICK: Duration = Duration::from_millis(100);
        let began = Instant::now();
        let mut missing = self.missing().count() as u64;
        let resumed_units = self.units() - missing;
        let before = *self.completed().so_far();
        let mut finished_nodes = self.finished_nodes();
        let fraction_before = self.fraction(finished_nodes);
        if let Some(note) = self.devices.note {
            // A request to stop is handled at the next progress event.
            let _ = on_event(CountEvent::Note(note));
        }
        let mut workers = self.start();
        let mut counted = UnitsByKernel::default();
        while missing > 0 || workers.is_testing_kernel() {
            let mut failures: Vec<KernelFailure> = Vec::new();
            let mut fatal = None;
            let mut batch: Vec<FinishedUnit> = Vec::new();
            let mut next = workers.next(TICK);
            // Handles all messages that have arrived meanwhile together, so that the disk is
            // written once.
            while let Some(message) = next {
                match message {
                    Message::Finished(units) => batch.extend(units),
                    Message::Failed(error) => fatal = fatal.or(Some(error)),
                    Message::KernelFailed(failure) => failures.push(failure),
                    Message::Note(note) => {
                        // A request to stop is handled at the next progress event.
                        let _ = on_event(CountEvent::Note(&note));
                    }
                    Message::DeviceStopped => workers.devices = workers.devices.saturating_sub(1),
                }
                next = workers.more();
            }
            if workers.devices == 0 && workers.cpu_threads == 0 {
                // All devices that were to count without the CPU have failed.
                let _ = on_event(CountEvent::Note("no device is left: counting on the CPU"));
                workers.start_cpu(self.threads);
                if workers.cpu_threads == 0 {
                    return Err(CountError::WorkerLost);
                }
            }
            for failure in failures {
                if let Some(note) = &failure.note {
                    let _ = on_event(CountEvent::Note(note));
                }
                let discarded = self.discard_results(&failure, &mut counted)?;
                missing += discarded.len() as u64;
                finished_nodes -= discarded.iter().map(|&unit| self.forecast_of(unit)).sum::<f64>();
                workers.end_kernel_test(&discarded);
            }
            let (batch, rejected): (Vec<FinishedUnit>, Vec<FinishedUnit>) = batch
                .into_iter()
                .partition(|finished| !counted.distrusted.contains(&finished.kernel));
            rejected.iter().for_each(|finished| workers.reject(finished.unit));
            // Near the end a unit may be counted twice; the completed units check that both results
            // agree.
            let new: BTreeSet<u64> =
                batch.iter().map(|f| f.unit).filter(|&u| !self.completed().has(u)).collect();
            self.store.record(&batch)?;
            if let Some(error) = fatal {
                return Err(error);
            }
            for &unit in &new {
                workers.finish(unit);
                missing -= u64::from(self.part.has(unit));
                finished_nodes += self.forecast_of(unit);
            }
            for finished in batch.into_iter().filter(|finished| new.contains(&finished.unit)) {
                counted.by.entry(finished.kernel).or_default().insert(finished.unit);
            }
            let fraction = self.fraction(finished_nodes);
            let units_done = self.units() - missing;
            let progress = self.progress(
                units_done,
                began.elapsed(),
                before.thirds(),
                fraction_before,
                fraction,
            );
            if on_event(CountEvent::Progress(&progress)).is_break() {
                return Err(CountError::Stopped { units_done, units: self.units() });
            }
        }
        let kernels = counted.by.into_keys().collect();
        Ok(Session {
            resumed_units,
            elapsed: began.elapsed(),
            kernels,
            threads: workers.cpu_threads,
        })
    }

    /// Discards what a kernel counted in this session if it is no longer trusted. Returns the
    /// units.
    fn discard_results(
        &mut self,
        failure: &KernelFailure,
        counted: &mut UnitsByKernel,
    ) -> Result<Vec<u64>, CountError> {
        if failure.trusted {
            return Ok(Vec::new());
        }
        let name = failure.kernel.name();
        counted.distrusted.insert(name.to_owned());
        let units: Vec<u64> = counted.by.remove(name).into_iter().flatten().collect();
        if !units.is_empty() {
            self.store.void(&units)?;
        }
        Ok(units)
    }

    /// Returns the CPU kernels to be used: the chosen one first, then those that take over where it
    /// fails.
    fn kernels(&self) -> CpuKernels {
        let mut kinds = vec![self.kernel];
        if let (true, Ok(preference)) = (self.fallback, KernelPreference::new(Some(self.kernel))) {
            kinds.extend(
                preference.for_job(self.decomposition.job()).filter(|kind| *kind != self.kernel),
            );
        }
        CpuKernels::new(kinds, self.factory.clone(), self.fallback)
    }

    /// Starts the workers.
    fn start(&mut self) -> Workers {
        let mut workers = Workers::new(&self.decomposition, self.missing(), self.kernels());
        if self.devices.cpu {
            workers.start_cpu(self.threads);
        }
        let nodes = self.forecast.as_ref().map(|f| f.nodes(0..self.decomposition.prefixes()));
        let seconds = nodes.map_or(0.0, |nodes| nodes / self.usual_nodes_per_s());
        let cpu_units_per_s = if self.devices.cpu {
            self.completed().units() as f64 / seconds.max(1e-3)
        } else {
            0.0
        };
        let unit_s = seconds * self.threads.get() as f64 / self.completed().units() as f64;
        let sizing = BatchSizing { cpu_units_per_s, unit_s };
        workers.start_devices(std::mem::take(&mut self.devices.opened), sizing);
        if self.devices.discover && seconds > WORTH_DISCOVERY_S {
            workers.discover_gpus(sizing);
        }
        workers
    }

    /// Returns the names of the kernels and devices that counted, derived from those in the
    /// finished units.
    fn names(&self, kernels: &BTreeSet<String>) -> (String, Vec<String>) {
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

    fn progress(
        &self,
        units_done: u64,
        elapsed: Duration,
        before: u128,
        fraction_before: f64,
        fraction: f64,
    ) -> CountProgress {
        let measured = CountProgress::time_left(fraction_before, fraction, elapsed);
        let predicted = || {
            let nodes = self.forecast.as_ref()?.nodes(0..self.decomposition.prefixes());
            Duration::try_from_secs_f64(nodes * (1.0 - fraction) / self.usual_nodes_per_s()).ok()
        };
        let session_thirds = self.completed().so_far().thirds() - before;
        CountProgress {
            units_done,
            units: self.units(),
            fraction,
            solutions: self.completed().so_far().thirds() / 3,
            elapsed,
            rate_per_s: (session_thirds > 0)
                .then(|| session_thirds as f64 / 3.0 / elapsed.as_secs_f64()),
            left: measured.or_else(predicted),
        }
    }

    /// Returns the approximate nodes a second of all CPU threads together.
    fn usual_nodes_per_s(&self) -> f64 {
        usual_nodes_per_s(self.kernel) * self.threads.get() as f64
    }

    /// Returns the forecast nodes of a unit; 1 for every unit without a forecast.
    fn forecast_of(&self, unit: u64) -> f64 {
        self.forecast.as_ref().map_or(1.0, |f| f.nodes(self.decomposition.unit(unit)))
    }

    fn finished_nodes(&self) -> f64 {
        (0..self.completed().units())
            .filter(|&unit| self.part.has(unit) && self.completed().has(unit))
            .map(|unit| self.forecast_of(unit))
            // The sum of no floats would be −0.
            .fold(0.0, |sum, nodes| sum + nodes)
    }

    fn fraction(&self, finished_nodes: f64) -> f64 {
        let all = match &self.forecast {
            // All parts are about equally large.
            Some(forecast) => {
                forecast.nodes(0..self.decomposition.prefixes()) / self.part.parts().get() as f64
            }
            None => self.units() as f64,
        };
        if all > 0.0 { (finished_nodes / all).min(1.0) } else { 1.0 }
    }
}

/// The CPU time in seconds from which looking for a GPU pays off: loading its driver and the
/// self-test take about one second.
const WORTH_DISCOVERY_S: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_callback_can_stop_the_count() {
        let task = CountTask::plan(&Problem::empty(Piece::Queen, 14), &CountOptions::default());
        let outcome = task.expect("plans").run(|_| ControlFlow::Break(()));
        assert!(matches!(outcome, Err(CountError::Stopped { .. })));
    }

    #[test]
    fn progress_starts_at_nothing_and_ends_at_everything() {
        let options = CountOptions { kernel: Some(KernelKind::Scalar), ..CountOptions::default() };
        let task = CountTask::plan(&Problem::empty(Piece::Queen, 15), &options).expect("plans");
        assert!(task.forecast.is_some());
        let mut fractions = Vec::new();
        let outcome = task.run(|event| {
            if let CountEvent::Progress(progress) = event {
                fractions.push(progress.fraction);
            }
            ControlFlow::Continue(())
        });
        assert_eq!(outcome.expect("counts").solutions, 2_279_184);
        assert!(fractions.is_sorted(), "{fractions:?}");
        assert!(fractions.last().is_some_and(|last| *last > 0.999_999));
    }
}
