//! Counts a job: workers take units from a queue, and the caller's thread records the completed
//! units.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::devices::{Device, find_devices};
use super::devices::{DeviceChoice, DeviceError};
use super::estimate::{Forecast, forecast};
use super::kernels::{CpuKernels, KernelFactory, KernelFailure, KernelPreference};
use super::progress::Progress;
use super::workers::Pace;
use super::workers::{Message, Workers};
use crate::board::{Piece, Problem};
use crate::checkpoint::{
    Checkpoint, CheckpointError, CompletedUnits, Corruption, EnterError, FinishedUnit,
};
use crate::decomposition::{Decomposition, Job, JobError, Scheme};
use crate::kernel::gpu::DeviceKernel;
use crate::kernel::{Kernel, KernelError, KernelKind};
use crate::tally::TallyError;

/// The options of a count.
#[derive(Clone, Debug, Default)]
pub struct CountOptions {
    /// The CPU kernel; `None` for the fastest one on this machine.
    pub kernel: Option<KernelKind>,
    /// The number of threads; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
    /// The devices. If a kernel is chosen, `Auto` uses only the CPU.
    pub devices: DeviceChoice,
}

/// The result of a finished count.
#[derive(Clone, Debug)]
pub struct CountOutcome {
    /// The number of solutions (of completions, if squares were decided).
    pub solutions: u128,
    /// The number of placements that the kernel made; `None` if it does not count them.
    pub nodes: Option<u128>,
    /// The kernels that counted, joined by "+": that of the CPU, `wgsl` for shaders.
    pub kernel: String,
    /// The devices that counted: "cpu", and ids of adapters.
    pub devices: Vec<String>,
    /// The number of CPU threads that counted.
    pub threads: usize,
    /// The number of units of the job.
    pub units: u64,
    /// The number of units that an earlier session had finished.
    pub resumed_units: u64,
    /// The wall-clock time of this session.
    pub elapsed: Duration,
    /// Solutions a second in this session.
    pub rate_per_s: f64,
}

/// The error returned when a count fails.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The problem is too large.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The kernel cannot count it here.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The chosen devices cannot count it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device failed that was the only one to count.
    #[error("device {0} is out of use: {1}")]
    DeviceFault(String, String),
    /// The checkpoint cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Every kernel failed on a unit.
    #[error("unit {unit} cannot be counted here: {failures}")]
    Unit {
        /// The index of the unit.
        unit: u64,
        /// The failure of each kernel.
        failures: String,
    },
    /// The results of the units are inconsistent.
    #[error(transparent)]
    Book(#[from] EnterError),
    /// The total failed validation.
    #[error("the total: {0}")]
    Total(#[from] TallyError),
    /// A worker thread ended before its work was done; its own message was printed before.
    #[error("a counting thread failed; nothing it counted was believed")]
    WorkerLost,
    /// The callback requested a stop.
    #[error("stopped after {units_done} of {units} units")]
    Stopped {
        /// The number of units finished by then.
        units_done: u64,
        /// The number of units of the job.
        units: u64,
    },
}

/// Counts `problem`.
///
/// # Errors
/// The board is too large, the kernel cannot count it here, or validation of the result fails.
pub fn count(problem: &Problem, options: &CountOptions) -> Result<CountOutcome, CountError> {
    CountTask::plan(problem, options)?.run(|_| ControlFlow::Continue(()))
}

/// An event that a running count reports to its callback.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The progress of the count.
    Progress(&'a Progress),
    /// A message for the user, in one line.
    Note(&'a str),
}

/// A part of a job: the units whose index has a given remainder modulo the number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    index: u64,
    parts: NonZeroU64,
}

impl Part {
    /// The whole job.
    const WHOLE: Self = Self { index: 0, parts: NonZeroU64::MIN };

    /// Creates the part of the units whose index modulo `parts` is `index`, or returns `None` if
    /// `index` is not below `parts`.
    pub const fn new(index: u64, parts: NonZeroU64) -> Option<Self> {
        if index < parts.get() { Some(Self { index, parts }) } else { None }
    }

    /// Returns whether a unit belongs to the part.
    pub const fn has(self, unit: u64) -> bool {
        unit % self.parts.get() == self.index
    }

    /// Returns the number of units of the part in a job of `of` units.
    pub const fn units(self, of: u64) -> u64 {
        of.saturating_sub(self.index).div_ceil(self.parts.get())
    }
}

/// The result of a counted part. Its units are in its checkpoint.
#[derive(Clone, Debug)]
pub struct PartOutcome {
    /// The kernels that counted, as in [`CountOutcome`].
    pub kernel: String,
    /// The devices that counted.
    pub devices: Vec<String>,
    /// The number of units of the part.
    pub units: u64,
    /// The number of units that an earlier session had finished.
    pub resumed_units: u64,
    /// The wall-clock time of this session.
    pub elapsed: Duration,
}

/// A job that is planned and ready to be counted.
#[derive(Debug)]
pub struct CountTask {
    decomposition: Arc<Decomposition>,
    part: Part,
    kernel: KernelKind,
    /// Whether other kernels take over the units on which this one fails.
    fallback: bool,
    factory: KernelFactory,
    threads: NonZeroUsize,
    devices: Devices,
    forecast: Option<Forecast>,
    books: Books,
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
struct Devices {
    /// Whether the CPU counts.
    cpu: bool,
    /// Whether to look for GPUs if the count is long enough for them to pay off.
    wake: bool,
    these: Vec<Device>,
}

impl Devices {
    /// Returns the devices of the choice in `options`.
    fn choose(problem: &Problem, options: &CountOptions) -> Result<Self, DeviceError> {
        let choice = &options.devices;
        let cpu = choice.has_cpu();
        if !choice.has_adapters() {
            let free_to_choose = *choice == DeviceChoice::Auto && options.kernel.is_none();
            let wake = free_to_choose && problem.piece() == Piece::Queen && cfg!(feature = "gpu");
            return Ok(Self { cpu, wake, these: Vec::new() });
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
        Ok(Self { cpu, wake: false, these: find_devices(choice)? })
    }
}

/// The storage of finished units.
#[derive(Debug)]
enum Books {
    InMemory(CompletedUnits),
    OnDisk(Checkpoint),
}

impl Books {
    fn book(&self) -> &CompletedUnits {
        match self {
            Self::InMemory(book) => book,
            Self::OnDisk(file) => file.book(),
        }
    }

    /// Records finished units. With a checkpoint they are written to disk before they are accepted.
    fn keep(&mut self, units: &[FinishedUnit]) -> Result<(), CountError> {
        match self {
            Self::InMemory(book) => {
                units.iter().try_for_each(|f| book.enter(f.unit, &f.tally).map(drop))?
            }
            Self::OnDisk(file) => match file.append(units) {
                // It is unknown which of the two results is correct. The file marks the unit as
                // disputed, so that neither is accepted when it is used again.
                Err(CheckpointError::Refused { source: EnterError::Conflict(unit), path }) => {
                    file.dispute(unit)?;
                    return Err(CheckpointError::Disputed { path, unit }.into());
                }
                outcome => outcome?,
            },
        }
        Ok(())
    }

    /// Removes finished units, from the checkpoint as well if there is one.
    fn take_back(&mut self, units: &[u64]) -> Result<(), CountError> {
        match self {
            Self::InMemory(book) => units.iter().for_each(|&unit| book.reopen(unit)),
            Self::OnDisk(file) => file.take_back(units)?,
        }
        Ok(())
    }
}

/// The units counted in this session, by the kernel that finished units name.
#[derive(Debug, Default)]
struct Counted {
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
        let books = Books::InMemory(CompletedUnits::new(decomposition.units()));
        let decomposition = Arc::new(decomposition);
        let devices = Devices::choose(problem, options)?;
        let part = Part::WHOLE;
        Ok(Self::new(decomposition, (part, kernel), options, devices, (forecast, books)))
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
        let (job, kernel) = job(problem, options)?;
        let mut run_file = Checkpoint::open(path)?;
        let Some(kept) = run_file.job().cloned() else {
            let mut task = Self::plan(problem, options)?;
            run_file.begin(task.decomposition.job(), task.decomposition.units())?;
            task.books = Books::OnDisk(run_file);
            return Ok(task);
        };
        if kept.problem() != problem || kept.scheme() != job.scheme() {
            let (found, wanted) = (kept.to_string(), job.to_string());
            return Err(CheckpointError::AnotherJob { path: path.to_owned(), found, wanted }.into());
        }
        let decomposition = Arc::new(Decomposition::new(kept));
        let (found, units) = (run_file.book().units(), decomposition.units());
        if found != units {
            let damage = Corruption::Unknown(format!("{found} units, where the job has {units}"));
            return Err(CheckpointError::Damaged { path: path.to_owned(), line: 1, damage }.into());
        }
        let forecast = forecast_if_long(&decomposition, kernel);
        let books = Books::OnDisk(run_file);
        let devices = Devices::choose(problem, options)?;
        let part = Part::WHOLE;
        Ok(Self::new(decomposition, (part, kernel), options, devices, (forecast, books)))
    }

    /// Creates the task for a part of a planned job, with finished units kept in the checkpoint at
    /// `path`; units already in it are not counted again.
    ///
    /// # Errors
    /// The kernel cannot count it here; the file belongs to another job, is damaged or in use, or
    /// cannot be written.
    pub fn part(
        decomposition: &Decomposition,
        part: Part,
        options: &CountOptions,
        path: &Path,
    ) -> Result<Self, CountError> {
        let job = decomposition.job();
        let problem = job.problem();
        let kernel = options.kernel.unwrap_or_else(|| KernelKind::fastest(problem.piece()));
        kernel.build(problem.piece())?;
        if kernel.scheme(problem) != job.scheme() {
            return Err(DeviceError::AnotherScheme(kernel).into());
        }
        let mut run_file = Checkpoint::open(path)?;
        match run_file.job().cloned() {
            None => run_file.begin(job, decomposition.units())?,
            Some(kept) if kept == *job => {}
            Some(kept) => {
                let (found, wanted) = (kept.to_string(), job.to_string());
                return Err(
                    CheckpointError::AnotherJob { path: path.to_owned(), found, wanted }.into()
                );
            }
        }
        let devices = Devices::choose(problem, options)?;
        // A forecast takes seconds for large boards, and only devices need it.
        let forecast = if options.devices.has_adapters() {
            forecast_if_long(decomposition, kernel)
        } else {
            None
        };
        let decomposition = Arc::new(decomposition.clone());
        let books = Books::OnDisk(run_file);
        Ok(Self::new(decomposition, (part, kernel), options, devices, (forecast, books)))
    }

    fn new(
        decomposition: Arc<Decomposition>,
        (part, kernel): (Part, KernelKind),
        options: &CountOptions,
        devices: Devices,
        (forecast, books): (Option<Forecast>, Books),
    ) -> Self {
        let (fallback, factory, threads) = (true, KernelFactory::default(), threads(options));
        Self { decomposition, part, kernel, fallback, factory, threads, devices, forecast, books }
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
        self.devices.these.push(Device::opened(id, kernel));
    }

    /// Excludes the CPU, unless every device fails.
    pub fn without_cpu(&mut self) {
        self.devices.cpu = false;
    }

    /// Returns the number of units already finished, and the number of bytes of a torn last line
    /// that were dropped from the checkpoint.
    pub fn resumed(&self) -> (u64, usize) {
        let torn_bytes = match &self.books {
            Books::InMemory(_) => 0,
            Books::OnDisk(file) => file.torn_bytes(),
        };
        (self.book().done(), torn_bytes)
    }

    fn book(&self) -> &CompletedUnits {
        self.books.book()
    }

    /// Returns the decomposition.
    pub fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Counts the units not finished yet. `watch` receives the progress after finished units and at
    /// least ten times a second; if it returns `Break`, the count stops at once and the work in
    /// progress is lost.
    ///
    /// # Errors
    /// Validation of a result fails, the checkpoint cannot be written, or `watch` returned `Break`.
    pub fn run(
        mut self,
        watch: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<CountOutcome, CountError> {
        let before = *self.book().so_far();
        let Session { resumed_units, elapsed, kernels, threads } = self.count_units(watch)?;
        let total = self.book().total()?;
        let in_session = total.thirds() - before.thirds();
        let (kernel, devices) = self.names(&kernels);
        Ok(CountOutcome {
            solutions: total.solutions()?,
            nodes: self.kernel.counts_nodes().then(|| total.nodes()),
            kernel,
            devices,
            threads,
            units: self.book().units(),
            resumed_units,
            elapsed,
            rate_per_s: in_session as f64 / 3.0 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        })
    }

    /// Like [`Self::run`] for a [part](Self::part), whose units are then in its file.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub fn run_part(
        mut self,
        watch: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<PartOutcome, CountError> {
        let Session { resumed_units, elapsed, kernels, .. } = self.count_units(watch)?;
        let (kernel, devices) = self.names(&kernels);
        Ok(PartOutcome { kernel, devices, units: self.units(), resumed_units, elapsed })
    }

    /// Returns the number of units to be counted, including finished ones.
    fn units(&self) -> u64 {
        self.part.units(self.book().units())
    }

    /// Returns the missing units.
    fn missing(&self) -> impl Iterator<Item = u64> {
        self.book().missing().filter(|&unit| self.part.has(unit))
    }

    fn count_units(
        &mut self,
        mut watch: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Session, CountError> {
        const TICK: Duration = Duration::from_millis(100);
        let began = Instant::now();
        let mut missing = self.missing().count() as u64;
        let resumed_units = self.units() - missing;
        let before = *self.book().so_far();
        let mut finished_nodes = self.finished_nodes();
        let fraction_before = self.fraction(finished_nodes);
        let mut workers = self.start();
        let mut counted = Counted::default();
        while missing > 0 || workers.doubted() {
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
                        let _ = watch(Event::Note(&note));
                    }
                    Message::DeviceGone => workers.devices = workers.devices.saturating_sub(1),
                }
                next = workers.more();
            }
            if workers.devices == 0 && workers.cpu_threads == 0 {
                // All devices that were to count without the CPU have failed.
                let _ = watch(Event::Note("no device is left: counting on the CPU"));
                workers.start_cpu(self.threads);
                if workers.cpu_threads == 0 {
                    return Err(CountError::WorkerLost);
                }
            }
            for failure in failures {
                if let Some(note) = &failure.note {
                    let _ = watch(Event::Note(note));
                }
                let taken_back = self.take_back(&failure, &mut counted)?;
                missing += taken_back.len() as u64;
                finished_nodes -=
                    taken_back.iter().map(|&unit| self.forecast_of(unit)).sum::<f64>();
                workers.settle(&taken_back);
            }
            let (batch, refused): (Vec<FinishedUnit>, Vec<FinishedUnit>) = batch
                .into_iter()
                .partition(|finished| !counted.distrusted.contains(&finished.kernel));
            refused.iter().for_each(|finished| workers.refuse(finished.unit));
            // Near the end a unit may be counted twice; the completed units check that both results
            // agree.
            let new: BTreeSet<u64> =
                batch.iter().map(|f| f.unit).filter(|&u| !self.book().has(u)).collect();
            self.books.keep(&batch)?;
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
            if watch(Event::Progress(&progress)).is_break() {
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
    fn take_back(
        &mut self,
        failure: &KernelFailure,
        counted: &mut Counted,
    ) -> Result<Vec<u64>, CountError> {
        if failure.trusted {
            return Ok(Vec::new());
        }
        let name = failure.kernel.name();
        counted.distrusted.insert(name.to_owned());
        let units: Vec<u64> = counted.by.remove(name).into_iter().flatten().collect();
        if !units.is_empty() {
            self.books.take_back(&units)?;
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
        let cpu_units_per_s =
            if self.devices.cpu { self.book().units() as f64 / seconds.max(1e-3) } else { 0.0 };
        let unit_s = seconds * self.threads.get() as f64 / self.book().units() as f64;
        let pace = Pace { cpu_units_per_s, unit_s };
        workers.start_devices(std::mem::take(&mut self.devices.these), pace);
        if self.devices.wake && seconds > WORTH_WAKING_S {
            workers.wake_hardware(pace);
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
    ) -> Progress {
        let measured = Progress::time_left(fraction_before, fraction, elapsed);
        let predicted = || {
            let nodes = self.forecast.as_ref()?.nodes(0..self.decomposition.prefixes());
            Duration::try_from_secs_f64(nodes * (1.0 - fraction) / self.usual_nodes_per_s()).ok()
        };
        let in_session = self.book().so_far().thirds() - before;
        Progress {
            units_done,
            units: self.units(),
            fraction,
            solutions: self.book().so_far().thirds() / 3,
            elapsed,
            rate_per_s: (in_session > 0).then(|| in_session as f64 / 3.0 / elapsed.as_secs_f64()),
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
        (0..self.book().units())
            .filter(|&unit| self.part.has(unit) && self.book().has(unit))
            .map(|unit| self.forecast_of(unit))
            // The sum of no floats would be −0.
            .fold(0.0, |sum, nodes| sum + nodes)
    }

    fn fraction(&self, finished_nodes: f64) -> f64 {
        let all = match &self.forecast {
            // All parts are about equally large.
            Some(forecast) => {
                forecast.nodes(0..self.decomposition.prefixes()) / self.part.parts.get() as f64
            }
            None => self.units() as f64,
        };
        if all > 0.0 { (finished_nodes / all).min(1.0) } else { 1.0 }
    }
}

/// Returns the job with units of one prefix, and the kernel to count it.
fn job(problem: &Problem, options: &CountOptions) -> Result<(Job, KernelKind), CountError> {
    let kernel = options.kernel.unwrap_or_else(|| KernelKind::fastest(problem.piece()));
    kernel.build(problem.piece())?;
    Ok((Job::new(problem.clone(), kernel.scheme(problem), None, 1)?, kernel))
}

/// The CPU time in seconds from which looking for a GPU pays off: waking its driver and the
/// self-test take about one second.
const WORTH_WAKING_S: f64 = 3.0;

/// The minimum number of units of a job, if it has as many prefixes: enough for some dozens of
/// threads.
const FEWEST_UNITS: u64 = 64;
/// The maximum number of units of a job: a checkpoint of some megabytes.
const MOST_UNITS: u64 = 1 << 16;

/// Returns the approximate number of nodes (placements without look-ahead) that one thread makes a
/// second. It determines the unit size, and predicts the time left until there is a measurement.
/// Measured at n = 16 and 17 on a 3 GHz server core.
const fn usual_nodes_per_s(kernel: KernelKind) -> f64 {
    match kernel {
        KernelKind::Avx512 => 3e9,
        KernelKind::Avx2 => 1.2e9,
        KernelKind::Scalar => 1.5e8,
        KernelKind::Textbook => 1.5e8,
        KernelKind::Generic => 8e7,
        KernelKind::Reference => 3e6,
    }
}

/// Divides `problem` into units for many machines, identically on each: a unit takes about a second
/// of one thread with the fastest kernel, or more in jobs that would otherwise have over a million
/// units.
///
/// # Errors
/// The board is too large.
pub fn plan_for_campaign(problem: &Problem) -> Result<Decomposition, JobError> {
    const UNIT_S: f64 = 1.25;
    const MOST_UNITS: u64 = 1_000_000;
    let job = Job::new(problem.clone(), Scheme::best(problem), None, 1)?;
    let decomposition = Decomposition::new(job);
    // Not the kernel of this machine: the units must not depend on where they were planned.
    let kernel = KernelKind::Avx512;
    let units = forecast_if_long(&decomposition, kernel).map_or(FEWEST_UNITS, |forecast| {
        let nodes = forecast.nodes(0..decomposition.prefixes());
        // The cast saturates.
        ((nodes / usual_nodes_per_s(kernel) / UNIT_S) as u64).clamp(FEWEST_UNITS, MOST_UNITS)
    });
    let size = decomposition.prefixes().div_ceil(units);
    Ok(decomposition.with_unit_prefixes(size))
}

/// Returns the number of units for a job with this many nodes: a unit takes a second, or more in
/// very long jobs, and less where many threads would otherwise wait for the last units.
fn units_for(nodes: f64, kernel: KernelKind, threads: NonZeroUsize) -> u64 {
    const UNITS_PER_THREAD: u64 = 16;
    // The cast saturates.
    let a_second_each = (nodes / usual_nodes_per_s(kernel)) as u64;
    a_second_each.max(threads.get() as u64 * UNITS_PER_THREAD).clamp(FEWEST_UNITS, MOST_UNITS)
}

/// Returns the forecast of a queens job, if the job is long enough that some milliseconds for the
/// forecast do not matter.
fn forecast_if_long(decomposition: &Decomposition, kernel: KernelKind) -> Option<Forecast> {
    const STARTS: u64 = 4096;
    const DIVES: u32 = 4;
    /// Any constant works: the same job gets the same units.
    const SEED: u64 = 2026;
    let problem = decomposition.job().problem();
    let shortest = match kernel {
        KernelKind::Avx512 | KernelKind::Avx2 => 18,
        KernelKind::Scalar | KernelKind::Textbook => 15,
        KernelKind::Generic | KernelKind::Reference => 10,
    };
    (problem.piece() == Piece::Queen && problem.n() >= shortest)
        .then(|| forecast(decomposition, STARTS, DIVES, SEED))
}

/// Returns the number of threads: one a core unless the options specify it.
fn threads(options: &CountOptions) -> NonZeroUsize {
    options
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_counts_the_known_boards_on_any_number_of_threads() {
        let known = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680];
        for kernel in KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()) {
            for threads in [1, 3] {
                let options = CountOptions {
                    kernel: Some(kernel),
                    threads: NonZeroUsize::new(threads),
                    ..CountOptions::default()
                };
                for (n, solutions) in known.into_iter().enumerate() {
                    let outcome =
                        count(&Problem::empty(Piece::Queen, n), &options).expect("counts");
                    assert_eq!(outcome.solutions, solutions, "{kernel}, n = {n}");
                }
            }
        }
    }

    #[test]
    fn a_watcher_that_breaks_off_stops_the_count() {
        let task = CountTask::plan(&Problem::empty(Piece::Queen, 14), &CountOptions::default());
        let outcome = task.expect("plans").run(|_| ControlFlow::Break(()));
        assert!(matches!(outcome, Err(CountError::Stopped { .. })));
    }

    #[test]
    fn progress_goes_from_nothing_to_everything() {
        let options = CountOptions { kernel: Some(KernelKind::Scalar), ..CountOptions::default() };
        let task = CountTask::plan(&Problem::empty(Piece::Queen, 15), &options).expect("plans");
        assert!(task.forecast.is_some());
        let mut fractions = Vec::new();
        let outcome = task.run(|event| {
            if let Event::Progress(progress) = event {
                fractions.push(progress.fraction);
            }
            ControlFlow::Continue(())
        });
        assert_eq!(outcome.expect("counts").solutions, 2_279_184);
        assert!(fractions.is_sorted(), "{fractions:?}");
        assert!(fractions.last().is_some_and(|last| *last > 0.999_999));
    }
}
