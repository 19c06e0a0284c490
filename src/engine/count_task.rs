//! A planned job: its units, kernel and devices. `session` counts it: workers take units from a
//! queue, and the caller's thread records the completed units.

mod session;

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use self::session::Session;
use super::calibration::{TimeForecast, forecast_time};
use super::count::{CountCheck, CountError, CountEvent, CountOptions, CountOutcome, PartOutcome};
use super::estimate::Forecast;
use super::part::JobPart;
use super::selected_devices::SelectedDevices;
use super::unit_size::{
    FEWEST_UNITS, forecast_if_long, job, threads, units_for, usual_nodes_per_s,
};
use super::unit_store::UnitStore;
use crate::board::{Piece, Problem};
use crate::checkpoint::{Checkpoint, CheckpointError, CompletedUnits, PartialUnits};
use crate::decomposition::{Decomposition, Scheme};
use crate::executor::{Device, DeviceError, KernelFactory, PieceSize};
use crate::kernel::gpu::DeviceKernel;
use crate::kernel::{Kernel, KernelError, KernelKind};

/// A job that is planned and ready to be counted.
#[derive(Debug)]
pub struct CountTask {
    decomposition: Arc<Decomposition>,
    part: JobPart,
    kernel: KernelKind,
    /// True if other kernels take over the units on which this one fails.
    fallback: bool,
    factory: KernelFactory,
    threads: NonZeroUsize,
    devices: SelectedDevices,
    forecast: Option<Forecast>,
    /// The time of the whole job, if it was forecast from a sample.
    time: Option<TimeForecast>,
    store: UnitStore,
    pieces: PieceSize,
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
        Self::new(decomposition, (JobPart::WHOLE, kernel), options, (forecast, store))
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
        let mut scheme = job.scheme();
        if options.kernel.is_none() && options.subproblems.is_none() {
            // Another machine or an older version may have planned it.
            kernel = KernelKind::fastest_for(found_job.scheme(), problem.piece());
            scheme = kernel.scheme(problem);
        }
        if found_job.problem() != problem || found_job.scheme() != scheme {
            return Err(CheckpointError::another_job(path, &found_job, &job).into());
        }
        let decomposition = Decomposition::new(found_job);
        checkpoint.check_units(&decomposition)?;
        let forecast = forecast_if_long(&decomposition, kernel);
        let store = UnitStore::OnDisk(Box::new(checkpoint));
        Self::new(decomposition, (JobPart::WHOLE, kernel), options, (forecast, store))
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
        if job.scheme() != Scheme::ColumnSets && kernel.scheme(problem) != job.scheme() {
            return Err(DeviceError::AnotherPlan(kernel).into());
        }
        let mut checkpoint = Checkpoint::open(path)?;
        match checkpoint.job().cloned() {
            None => checkpoint.begin(job, decomposition.units())?,
            Some(found_job) if found_job == *job => checkpoint.check_units(decomposition)?,
            Some(found_job) => {
                return Err(CheckpointError::another_job(path, &found_job, job).into());
            }
        }
        // A forecast takes seconds for large boards, and only devices need it.
        let forecast = if options.devices.has_adapters() {
            forecast_if_long(decomposition, kernel)
        } else {
            None
        };
        let store = UnitStore::OnDisk(Box::new(checkpoint));
        Self::new(decomposition.clone(), (part, kernel), options, (forecast, store))
    }

    fn new(
        decomposition: Decomposition,
        (part, kernel): (JobPart, KernelKind),
        options: &CountOptions,
        (forecast, store): (Option<Forecast>, UnitStore),
    ) -> Result<Self, CountError> {
        let devices = SelectedDevices::choose(decomposition.job().problem(), kernel, options)?;
        Ok(Self {
            decomposition: Arc::new(decomposition),
            part,
            kernel,
            fallback: true,
            factory: KernelFactory::default(),
            threads: threads(options),
            devices,
            forecast,
            time: None,
            store,
            pieces: PieceSize::Timed,
        })
    }

    /// Forecasts the time that is left, if it is at least some minutes, by counting a sample for
    /// some seconds. Until units are finished, the progress has this forecast. Returns `None` for a
    /// shorter count, where a GPU takes part, and where no sample can be counted.
    ///
    /// # Errors
    /// A check of a sample fails.
    pub fn forecast_time(&mut self) -> Result<Option<TimeForecast>, CountError> {
        /// By the usual rate, which may be wrong by a factor.
        const WORTH_A_SAMPLE_S: f64 = 100.0;
        const SAMPLE: Duration = Duration::from_secs(5);
        const SEED: u64 = 2026;
        let partial = self.partial();
        let done = self.meter(&partial).progress(self.completed(), &partial).fraction;
        let Some(nodes) = self.forecast.as_ref() else { return Ok(None) };
        let all = nodes.nodes(0..self.decomposition.prefixes());
        let usual_s = all * (1.0 - done) / self.usual_nodes_per_s();
        if usual_s < WORTH_A_SAMPLE_S || self.devices.may_have_gpu() {
            return Ok(None);
        }
        let nodes = (!self.decomposition.has_sets()).then(|| nodes.clone());
        let cpu = (self.kernel, self.threads);
        self.time = forecast_time(&self.decomposition, nodes, cpu, SAMPLE, SEED)?;
        Ok(self.time.map(|time| time.of_fraction(1.0 - done)))
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

    /// Records the partial result of a unit after each piece of this many subproblems, instead of
    /// about every ten seconds, for tests.
    pub fn record_every(&mut self, subproblems: NonZeroU64) {
        self.pieces = PieceSize::Subproblems(subproblems);
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

    /// Returns the number of units with a partial result from which this count continues: those
    /// that the same kernel began.
    pub fn resumed_partial(&self) -> usize {
        self.partial().iter().filter(|partial| self.part.has(partial.unit)).count()
    }

    fn partial(&self) -> PartialUnits {
        self.store.partial().map_or_else(PartialUnits::default, |p| p.by_kernel(self.kernel.name()))
    }

    fn completed(&self) -> &CompletedUnits {
        self.store.completed()
    }

    /// Returns the decomposition.
    pub fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Counts the units not finished yet. `on_event` receives the progress after finished units and
    /// at least ten times a second; if it returns `Break`, the count stops at once. With a
    /// checkpoint the units in progress can then be continued from the pieces that are counted.
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
        let checks = CountCheck::of(&self.decomposition, &kernels);
        Ok(CountOutcome {
            checks,
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

    /// Returns the approximate nodes a second of all CPU threads together.
    fn usual_nodes_per_s(&self) -> f64 {
        usual_nodes_per_s(self.kernel) * self.threads.get() as f64
    }
}

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
        // Sums of floats depend on their order.
        assert!(fractions.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "{fractions:?}");
        assert!(fractions.last().is_some_and(|last| *last > 0.999_999));
    }
}
