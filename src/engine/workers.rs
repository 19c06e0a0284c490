//! The workers of a count: an executor that takes units from the queue of the count, and sends
//! results to the thread that records them.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use super::count::CountError;
use super::queue::{Holder, Queue};
use super::selected_devices::NO_GPU;
use crate::checkpoint::{FinishedUnit, PartialUnit, PartialUnits};
use crate::decomposition::{Decomposition, JobHash};
use crate::executor::{
    Batch, Counter, CpuKernels, Device, DeviceLabel, Executor, ExecutorEvent, KernelFailure,
    PieceSize, UnitCount, UnitSource, batch_size,
};
use crate::kernel::KernelKind;
use crate::kernel::gpu::Fault;
use crate::tally::{Parts, TallyError};

/// A message from a worker to the thread that records the completed units.
pub(super) enum Message {
    /// Finished units, each once.
    Finished(Vec<FinishedUnit>),
    /// The partial result of a unit that a CPU thread is counting.
    Partial(PartialUnit),
    /// No kernel can count a unit.
    Failed(CountError),
    /// A CPU kernel failed.
    KernelFailed(KernelFailure),
    /// A message for the user.
    Note(String),
    /// A device stopped counting.
    DeviceStopped,
}

/// The messages that have arrived, handled together so that the disk is written once.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) finished: Vec<FinishedUnit>,
    /// Partial results, without those of attempts that have failed.
    pub(super) partial: Vec<PartialUnit>,
    /// Failures whose consequences must be [handled](Workers::end_kernel_test).
    pub(super) failures: Vec<KernelFailure>,
    pub(super) fatal: Option<CountError>,
}

/// The speed of the CPU as it is expected before the count.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedSpeed {
    /// The approximate units per second of all CPU threads; 0 if the CPU does not count.
    pub(super) cpu_units_per_s: f64,
    /// The approximate time in seconds that a CPU thread needs for a unit.
    pub(super) unit_s: f64,
}

/// The units of a count.
struct CountedUnits {
    job: JobHash,
    decomposition: Arc<Decomposition>,
    /// The CPU kernels that may count the units, the preferred one first.
    kernels: Arc<[KernelKind]>,
    queue: Queue,
    /// The partial results of earlier sessions. The first thread that counts such a unit takes its
    /// result.
    partial: Mutex<PartialUnits>,
    speed: ExpectedSpeed,
    /// The next number of a device, and the rate of each that has counted, in units per second.
    devices: Mutex<(usize, HashMap<usize, f64>)>,
    sender: mpsc::Sender<Message>,
}

impl CountedUnits {
    /// Sends a message; does nothing if the receiver is gone.
    fn send(&self, message: Message) {
        self.sender.send(message).unwrap_or(());
    }

    fn devices(&self) -> MutexGuard<'_, (usize, HashMap<usize, f64>)> {
        // No code that holds the lock can panic in the middle of a change.
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self, units: Vec<u64>) -> Batch<u64> {
        let (decomposition, kernels) = (Arc::clone(&self.decomposition), Arc::clone(&self.kernels));
        Batch { job: self.job, decomposition, kernels, units }
    }

    /// Takes the partial result from which `kernel` continues a unit, or else one of no subproblem.
    /// The result of another kernel is never continued.
    fn take_partial(&self, unit: u64, kernel: &str) -> PartialUnit {
        // No code that holds the lock can panic in the middle of a change.
        let earlier = self.partial.lock().unwrap_or_else(PoisonError::into_inner).remove(unit);
        let earlier = earlier.filter(|partial| partial.kernel == kernel);
        earlier.unwrap_or_else(|| PartialUnit::start(unit, kernel))
    }
}

/// The count of a unit so far, and its subproblems that were left when it began.
pub(super) struct CountedUnit {
    so_far: PartialUnit,
    left: Range<u64>,
}

impl UnitCount for CountedUnit {
    type Result = FinishedUnit;

    fn ranges(&self) -> Vec<Range<u64>> {
        vec![self.left.clone()]
    }

    fn add(
        &mut self,
        _: usize,
        subproblems: u64,
        parts: &Parts,
        elapsed: Duration,
    ) -> Result<(), TallyError> {
        self.so_far.add(subproblems, &parts.total()?, elapsed)
    }

    fn finish(self) -> Result<FinishedUnit, TallyError> {
        Ok(self.so_far.finished())
    }
}

impl UnitSource for CountedUnits {
    type Unit = u64;
    type Count = CountedUnit;

    fn index(unit: &u64) -> u64 {
        *unit
    }

    fn take_for_cpu(&self) -> Option<Batch<u64>> {
        Some(self.batch(self.queue.take(Holder::Cpu, 1)?))
    }

    fn take_for_device(&self, device: usize) -> Option<Batch<u64>> {
        let rate = self.devices().1.get(&device).copied();
        let most = batch_size(rate, self.speed.cpu_units_per_s, self.queue.open().len());
        Some(self.batch(self.queue.take(Holder::Device(device), most)?))
    }

    fn cpu_unit_s(&self, _: &Batch<u64>) -> Option<f64> {
        Some(self.speed.unit_s)
    }

    fn begin(&self, batch: &Batch<u64>, unit: &u64, by: &Counter) -> CountedUnit {
        let range = batch.decomposition.unit(*unit);
        let so_far = match by {
            Counter::Cpu(_) => self.take_partial(*unit, by.kernel()),
            Counter::Device(device) => {
                PartialUnit::start(*unit, &format!("{}@{}", by.kernel(), device.id))
            }
        };
        CountedUnit { left: range.start + so_far.counted..range.end, so_far }
    }

    fn progress(&self, count: &CountedUnit) {
        self.send(Message::Partial(count.so_far.clone()));
    }

    fn finish(&self, batch: &Batch<u64>, results: Vec<FinishedUnit>, by: &Counter, elapsed_s: f64) {
        if let Some(device) = by.device_number() {
            let rate = batch.units.len() as f64 / elapsed_s.max(1e-6);
            self.devices().1.insert(device, rate);
        }
        self.send(Message::Finished(results));
    }

    fn give_back(&self, batch: &Batch<u64>, device: Option<usize>) {
        let holder = device.map_or(Holder::Cpu, Holder::Device);
        self.queue.give_back(holder, &batch.units);
    }

    fn cannot_count(&self, batch: &Batch<u64>, failures: String) {
        let unit = batch.units.first().copied().unwrap_or_default();
        self.send(Message::Failed(CountError::Unit { unit, failures }));
    }

    fn unsuited(&self, batch: &Batch<u64>, device: usize) -> Result<(), Fault> {
        self.give_back(batch, Some(device));
        // All units are of this job.
        Err(Fault::Unsuited)
    }

    fn is_needed(&self, batch: &Batch<u64>) -> bool {
        batch.units.iter().any(|&unit| self.queue.is_needed(unit))
    }

    fn is_stopped(&self) -> bool {
        self.queue.stopped()
    }

    fn stop(&self) {
        self.queue.stop();
    }

    fn add_devices(&self, devices: &mut [DeviceLabel]) {
        let next = &mut self.devices().0;
        for device in devices {
            device.number = *next;
            *next += 1;
        }
    }

    fn observe(&self, event: ExecutorEvent<'_>) {
        match event {
            ExecutorEvent::DeviceReady(_) => {}
            ExecutorEvent::DeviceEnded(device, fault) => {
                if let Some(fault) = fault.filter(|_| !self.queue.stopped()) {
                    let id = &device.id;
                    self.send(Message::Note(format!(
                        "device {id} is disabled: {fault}; its units are counted elsewhere"
                    )));
                }
                self.send(Message::DeviceStopped);
            }
            ExecutorEvent::NoDevice => self.send(Message::Note(NO_GPU.into())),
            ExecutorEvent::KernelTestBegins => self.queue.begin_kernel_test(),
            ExecutorEvent::KernelPassed => self.queue.end_kernel_test(),
            ExecutorEvent::KernelFailed(failure) => self.send(Message::KernelFailed(failure)),
            ExecutorEvent::ThreadLost => self.send(Message::Failed(CountError::WorkerLost)),
        }
    }
}

/// The workers of a count. They stop when this is dropped.
pub(super) struct Workers {
    units: Arc<CountedUnits>,
    executor: Executor<CountedUnits>,
    messages: mpsc::Receiver<Message>,
    /// The number of devices that were started and have not ended.
    pub(super) devices: usize,
}

impl Workers {
    /// Creates workers without threads for the `open` units of a job, counted by `kinds` of
    /// `kernels`, the preferred kind first.
    pub(super) fn new(
        decomposition: &Arc<Decomposition>,
        open: impl Iterator<Item = u64>,
        (kinds, kernels): (&[KernelKind], CpuKernels),
        (partial, pieces): (PartialUnits, PieceSize),
        speed: ExpectedSpeed,
    ) -> Self {
        let (sender, messages) = mpsc::channel();
        let units = Arc::new(CountedUnits {
            job: decomposition.job().hash(),
            decomposition: Arc::clone(decomposition),
            kernels: kinds.into(),
            queue: Queue::new(open),
            partial: Mutex::new(partial),
            speed,
            devices: Mutex::default(),
            sender,
        });
        let executor = Executor::new(Arc::clone(&units), kernels, pieces);
        Self { units, executor, messages, devices: 0 }
    }

    /// Returns the number of CPU threads that count.
    pub(super) const fn cpu_threads(&self) -> usize {
        self.executor.cpu_threads()
    }

    /// Starts CPU threads; if the system cannot create more, the running ones do the work.
    pub(super) fn start_cpu(&mut self, threads: NonZeroUsize) {
        let wanted = threads.get().min(self.units.queue.open().len().max(1));
        let _ = self.executor.start_cpu(wanted);
    }

    /// Starts a thread for each device.
    pub(super) fn start_devices(&mut self, devices: Vec<Device>) {
        self.devices += devices.len();
        self.executor.start_devices(devices);
    }

    /// Looks for GPUs in the background, and lets them join the count.
    pub(super) fn discover_gpus(&mut self) {
        // Without this thread the CPU counts alone.
        let _ = self.executor.discover_gpus();
    }

    /// Waits a short time for a message, and takes all that are there. Calls a function with those
    /// for the user.
    pub(super) fn wait(&mut self, mut note: impl FnMut(&str)) -> Arrived {
        const TICK: Duration = Duration::from_millis(100);
        let mut arrived = Arrived::default();
        let mut next = self.messages.recv_timeout(TICK).ok();
        while let Some(message) = next {
            match message {
                Message::Finished(units) => arrived.finished.extend(units),
                Message::Partial(partial) => arrived.partial.push(partial),
                Message::Failed(error) => arrived.fatal = arrived.fatal.or(Some(error)),
                Message::KernelFailed(failure) => {
                    arrived.partial.retain(|partial| Some(partial.unit) != failure.unit);
                    arrived.failures.push(failure);
                }
                Message::Note(text) => note(&text),
                Message::DeviceStopped => self.devices = self.devices.saturating_sub(1),
            }
            next = self.messages.try_recv().ok();
        }
        arrived
    }

    /// Marks a unit as finished.
    pub(super) fn finish(&self, unit: u64) {
        self.units.queue.finish(unit);
    }

    /// Rejects a unit's result: the unit will be counted again.
    pub(super) fn reject(&self, unit: u64) {
        self.units.queue.give_back(Holder::Cpu, &[unit]);
    }

    /// Reopens units after a kernel failed its test, and ends the test.
    pub(super) fn end_kernel_test(&self, reopened: &[u64]) {
        self.units.queue.reopen(reopened);
        self.units.queue.end_kernel_test();
    }

    /// Returns whether a failed kernel is still being tested.
    pub(super) fn is_testing_kernel(&self) -> bool {
        self.units.queue.is_testing_kernel()
    }
}
