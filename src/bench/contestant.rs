//! Ways of counting n queens: a CPU kernel, a device, or a custom function.

use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::energy::EnergyMeter;
use super::gpu_meter::{GpuMeter, GpuReadings};
use crate::board::{Piece, Problem};
use crate::decomposition::Subproblems;
use crate::engine::{
    CountError, CountEvent, CountOptions, CountProgress, CountTask, DeviceChoice, DeviceName,
};
use crate::kernel::KernelKind;
use crate::kernel::gpu::{AdapterInfo, DeviceKernel, Fault};
use crate::tally::Tally;

/// The type of device that a contestant counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestantKind {
    /// The processor.
    Cpu,
    /// An adapter, by shaders.
    Gpu,
}

impl ContestantKind {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

/// The measurement of one count.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The wall-clock time of the whole count, including planning.
    pub elapsed: Duration,
    /// The number of solutions.
    pub solutions: u128,
    /// The number of placements; `None` if they are not counted.
    pub nodes: Option<u128>,
    /// The number of threads that counted.
    pub threads: usize,
    /// The energy in J of the processor's packages, or of the GPU; `None` if it is not known.
    pub energy_j: Option<f64>,
    /// The clock and the power of the GPU; `None` if they are not known.
    pub gpu: Option<GpuReadings>,
}

impl Run {
    /// Returns `count` a second.
    pub(super) fn rate(&self, count: u128) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// A callback that receives the progress of a run, and may stop it.
pub type ProgressFn<'w> = dyn FnMut(&CountProgress) -> ControlFlow<()> + 'w;

/// A function that counts n queens once.
pub(super) type Count<'a> = dyn FnMut(usize, &mut ProgressFn<'_>) -> Result<Run, CountError> + 'a;

/// A way of counting n queens.
pub struct Contestant<'a> {
    pub(super) name: String,
    pub(super) kind: ContestantKind,
    pub(super) n: usize,
    pub(super) count: Box<Count<'a>>,
}

impl fmt::Debug for Contestant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, n = {})", self.name, self.kind.name(), self.n)
    }
}

impl<'a> Contestant<'a> {
    /// Creates a contestant from a function that receives n and a callback, to be called with the
    /// progress at least ten times a second. It measures itself; its setup (a device, a program for
    /// it) is not part of the comparison.
    pub fn new(
        name: impl Into<String>,
        kind: ContestantKind,
        n: usize,
        count: impl FnMut(usize, &mut ProgressFn<'_>) -> Result<Run, CountError> + 'a,
    ) -> Self {
        Self { name: name.into(), kind, n, count: Box::new(count) }
    }

    /// Creates a contestant with a CPU kernel.
    ///
    /// # Errors
    /// The kernel does not run here.
    pub fn cpu(
        kernel: KernelKind,
        n: usize,
        threads: Option<NonZeroUsize>,
    ) -> Result<Self, CountError> {
        kernel.build(Piece::Queen)?;
        let options = CountOptions { kernel: Some(kernel), threads, ..CountOptions::default() };
        Ok(Self::new(kernel.name(), ContestantKind::Cpu, n, move |n, on_progress| {
            let mut energy = EnergyMeter::start();
            let began = Instant::now();
            let mut task = CountTask::plan(&Problem::empty(Piece::Queen, n), &options)?;
            task.without_fallback();
            let outcome = task.run(|event| {
                energy.sample();
                match event {
                    CountEvent::Progress(progress) => on_progress(progress),
                    CountEvent::Note(_) => ControlFlow::Continue(()),
                }
            })?;
            let elapsed = began.elapsed();
            Ok(Run {
                elapsed,
                solutions: outcome.solutions,
                nodes: outcome.nodes,
                threads: outcome.threads,
                energy_j: energy.joules(elapsed),
                gpu: None,
            })
        }))
    }

    /// Creates the contestants of a device that is open and has passed its self-test: one counts
    /// prefixes and, where the shaders count them, one counts column sets. Each counts all units at
    /// once, alone but for the thread that feeds the device.
    ///
    /// # Errors
    /// The board is too large, or the device fails.
    pub fn device(
        info: &AdapterInfo,
        kernel: DeviceKernel,
        n: usize,
    ) -> Result<Vec<Self>, CountError> {
        let id = &info.id;
        let kernel = Rc::new(RefCell::new(kernel));
        let mut contestants = Vec::new();
        for subproblems in [Subproblems::Prefixes, Subproblems::ColumnSets] {
            // Tests the device with these subproblems.
            let task = plan_for_device(n, subproblems)?;
            match kernel.borrow_mut().open(task.decomposition()) {
                Ok(_) => {}
                Err(Fault::Unsuited) => continue,
                Err(fault) => {
                    return Err(CountError::DeviceFault(id.to_owned(), fault.to_string()));
                }
            }
            let name = match subproblems {
                Subproblems::Prefixes => id.to_owned(),
                Subproblems::ColumnSets => format!("{id} sets"),
            };
            let (kernel, info) = (Rc::clone(&kernel), info.clone());
            contestants.push(Self::new(name, ContestantKind::Gpu, n, move |n, on_progress| {
                let meter = GpuMeter::start(&info.pci_bus_id);
                let mut kernel = kernel.borrow_mut();
                let run = count_on_device(&info.id, &mut kernel, (n, subproblems), on_progress)?;
                let gpu = meter.readings();
                let energy_j = gpu.map(|gpu| gpu.power_w * run.elapsed.as_secs_f64());
                Ok(Run { energy_j, gpu, ..run })
            }));
        }
        Ok(contestants)
    }
}

fn plan_for_device(n: usize, subproblems: Subproblems) -> Result<CountTask, CountError> {
    let options = CountOptions {
        subproblems: Some(subproblems),
        devices: DeviceChoice::These(vec![DeviceName::Cpu]),
        ..Default::default()
    };
    CountTask::plan(&Problem::empty(Piece::Queen, n), &options)
}

fn count_on_device(
    id: &str,
    kernel: &mut DeviceKernel,
    (n, subproblems): (usize, Subproblems),
    on_progress: &mut ProgressFn<'_>,
) -> Result<Run, CountError> {
    let began = Instant::now();
    let task = plan_for_device(n, subproblems)?;
    let decomposition = task.decomposition();
    let units: Vec<u64> = (0..decomposition.units()).collect();
    let idle = CountProgress { units: decomposition.units(), ..CountProgress::default() };
    // The device calls this about ten times a second to check whether to continue.
    let on_progress = RefCell::new(on_progress);
    let should_continue = || (*on_progress.borrow_mut())(&idle).is_continue();
    let tallies =
        kernel.open(decomposition).and_then(|mut job| job.count(&units, &should_continue));
    let tallies = tallies.map_err(|fault| match fault {
        Fault::Stopped => CountError::Stopped { units_done: 0, units: decomposition.units() },
        fault => CountError::DeviceFault(id.to_owned(), fault.to_string()),
    })?;
    let mut total = Tally::default();
    tallies.iter().try_for_each(|tally| total.merge(tally))?;
    let solutions = total.solutions()?;
    let (elapsed, nodes) = (began.elapsed(), Some(total.nodes()));
    Ok(Run { elapsed, solutions, nodes, threads: 0, energy_j: None, gpu: None })
}
