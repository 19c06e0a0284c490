//! Threads that count units: one per core, and one per device. If a kernel or a device fails,
//! only its attempt is lost, and other workers count its units.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::count::CountError;
use super::cpu_thread::cpu_thread;
use super::devices::{Device, DeviceChoice, find_devices};
use super::kernels::{CpuKernels, KernelFailure};
use super::pieces::PieceSize;
use super::queue::{Holder, Queue};
use super::selected_devices::NO_GPU;
use crate::checkpoint::{FinishedUnit, PartialUnit, PartialUnits};
use crate::decomposition::Decomposition;
use crate::kernel::gpu::{DeviceKernel, Fault, self_test};
use crate::kernel::{KernelKind, count_range};
use crate::tally::Tally;

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

/// The state shared by all workers.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) decomposition: Arc<Decomposition>,
    pub(super) queue: Arc<Queue>,
    pub(super) kernels: Arc<CpuKernels>,
    pub(super) pieces: PieceSize,
    /// The partial results of earlier sessions. The first thread that counts such a unit takes its
    /// result.
    partial: Arc<Mutex<PartialUnits>>,
    sender: mpsc::Sender<Message>,
}

impl Context {
    /// Sends a message; does nothing if the receiver is gone.
    pub(super) fn send(&self, message: Message) {
        self.sender.send(message).unwrap_or(());
    }

    /// Takes the partial result from which `kernel` continues a unit, or else one of no subproblem.
    /// The result of another kernel is never continued.
    pub(super) fn take_partial(&self, unit: u64, kernel: &str) -> PartialUnit {
        // No code that holds the lock can panic in the middle of a change.
        let earlier = self.partial.lock().unwrap_or_else(PoisonError::into_inner).remove(unit);
        let earlier = earlier.filter(|partial| partial.kernel == kernel);
        earlier.unwrap_or_else(|| PartialUnit::start(unit, kernel))
    }
}

/// The workers of a count. They stop when this is dropped: devices as soon as possible, with a
/// short wait, so that no driver is torn down under them; CPU threads after the piece in progress.
pub(super) struct Workers {
    context: Context,
    messages: mpsc::Receiver<Message>,
    /// The number of CPU threads that count.
    pub(super) cpu_threads: usize,
    /// The number of devices that were started and are not gone.
    pub(super) devices: usize,
    device_threads: Vec<JoinHandle<()>>,
}

impl Workers {
    pub(super) fn new(
        decomposition: &Arc<Decomposition>,
        open: impl Iterator<Item = u64>,
        kernels: CpuKernels,
        partial: PartialUnits,
        pieces: PieceSize,
    ) -> Self {
        let (sender, messages) = mpsc::channel();
        let (decomposition, kernels) = (Arc::clone(decomposition), Arc::new(kernels));
        let (queue, partial) = (Arc::new(Queue::new(open)), Arc::new(Mutex::new(partial)));
        let context = Context { decomposition, queue, kernels, pieces, partial, sender };
        Self { context, messages, cpu_threads: 0, devices: 0, device_threads: Vec::new() }
    }

    /// Starts CPU threads; if the system cannot create more, the running ones do the work.
    pub(super) fn start_cpu(&mut self, threads: NonZeroUsize) {
        let wanted = threads.get().min(self.context.queue.open().len().max(1));
        while self.cpu_threads < wanted {
            let context = self.context.clone();
            if std::thread::Builder::new().spawn(move || cpu_thread(&context)).is_err() {
                break;
            }
            self.cpu_threads += 1;
        }
    }

    /// Starts a thread for each device.
    pub(super) fn start_devices(&mut self, devices: Vec<Device>, sizing: BatchSizing) {
        for device in devices {
            let number = self.devices;
            let context = self.context.clone();
            let work = move || device_thread(&context, device, Holder::Device(number), sizing);
            match std::thread::Builder::new().spawn(work) {
                Ok(thread) => {
                    self.devices += 1;
                    self.device_threads.push(thread);
                }
                Err(error) => self
                    .context
                    .send(Message::Note(format!("cannot create a thread for a device: {error}"))),
            }
        }
    }

    /// Looks for GPUs in the background, and lets them join the count.
    pub(super) fn discover_gpus(&mut self, sizing: BatchSizing) {
        let context = self.context.clone();
        let look = move || {
            let devices = find_devices(&DeviceChoice::Auto).unwrap_or_default();
            if devices.is_empty() {
                context.send(Message::Note(NO_GPU.into()));
            }
            std::thread::scope(|scope| {
                // These numbers differ from those of devices that were named.
                for (number, device) in (1 << 16..).zip(devices) {
                    let context = &context;
                    scope.spawn(move || {
                        device_thread(context, device, Holder::Device(number), sizing)
                    });
                }
            });
        };
        // Without this thread the CPU counts alone.
        self.device_threads.extend(std::thread::Builder::new().spawn(look));
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
                    arrived.partial.retain(|partial| partial.unit != failure.unit);
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
        self.context.queue.finish(unit);
    }

    /// Rejects a unit's result: the unit will be counted again.
    pub(super) fn reject(&self, unit: u64) {
        self.context.queue.give_back(Holder::Cpu, &[unit]);
    }

    /// Reopens units after a kernel failed its test, and ends the test.
    pub(super) fn end_kernel_test(&self, reopened: &[u64]) {
        self.context.queue.reopen(reopened);
        self.context.queue.end_kernel_test();
    }

    /// Returns whether a failed kernel is still being tested.
    pub(super) fn is_testing_kernel(&self) -> bool {
        self.context.queue.is_testing_kernel()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.context.queue.stop();
        wait_for_devices(&self.device_threads);
    }
}

/// Waits a short time for device threads that were asked to end.
pub(crate) fn wait_for_devices(threads: &[JoinHandle<()>]) {
    /// A submission takes a tenth of a second.
    const TIMEOUT: Duration = Duration::from_secs(3);
    let began = Instant::now();
    while !threads.iter().all(JoinHandle::is_finished) && began.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The parameters for the number of units that a device takes at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSizing {
    /// The approximate units a second that the CPU counts; 0 if it does not count.
    pub(crate) cpu_units_per_s: f64,
    /// The approximate seconds that a CPU thread needs for a unit.
    pub(crate) unit_s: f64,
}

impl BatchSizing {
    /// Returns the number of units to take of `open` ones, at a rate measured before: enough for
    /// some seconds, and near the end no more than the device's share of the work.
    pub(crate) fn units(self, rate: Option<f64>, open: usize) -> usize {
        /// Filling and draining the device costs some milliseconds.
        const BATCH_S: f64 = 2.0;
        match rate {
            // The first time take one unit: its duration is unknown.
            None => 1,
            Some(rate) => {
                let share = open as f64 * rate / (rate + self.cpu_units_per_s);
                // The cast saturates.
                (rate * BATCH_S).min(share.ceil()) as usize
            }
        }
    }

    /// Returns whether the CPU may recount a unit to check a device.
    pub(crate) fn allows_check(self) -> bool {
        self.unit_s <= LONGEST_CHECK_S
    }
}

fn device_thread(context: &Context, device: Device, holder: Holder, sizing: BatchSizing) {
    let id = device.id().to_owned();
    let work = || {
        let mut kernel = device.open()?;
        self_test(&mut kernel, false)?;
        count_on_device(context, &id, &mut kernel, holder, sizing)
    };
    // A panic in a driver's wrapper disables the device, but does not end the count.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let fault = match outcome {
        Ok(Ok(())) => return context.send(Message::DeviceStopped),
        Ok(Err(fault)) => fault,
        Err(_) => Fault::Lost("its driver panicked".into()),
    };
    context.queue.give_back_all(holder);
    if !context.queue.stopped() {
        let note = format!("device {id} is disabled: {fault}; its units are counted elsewhere");
        context.send(Message::Note(note));
    }
    context.send(Message::DeviceStopped);
}

/// The longest time in seconds that a CPU thread may spend on checking a device.
const LONGEST_CHECK_S: f64 = 5.0;

/// Recounts a device's first unit of a job on the CPU, because the self-test exercises neither the
/// memory nor the shader variant of this job.
///
/// # Errors
/// The counts differ, or the CPU cannot count the unit.
pub(crate) fn check_on_cpu(
    decomposition: &Decomposition,
    unit: u64,
    found: &Tally,
) -> Result<(), Fault> {
    let piece = decomposition.job().problem().piece();
    let kernel = KernelKind::fastest(piece).build(piece);
    let mut kernel = kernel.map_err(|error| Fault::Refused(error.to_string()))?;
    let expected = count_range(&mut *kernel, decomposition, decomposition.unit(unit))?;
    if found.thirds() == expected.thirds() {
        return Ok(());
    }
    let (found, expected) = (found.thirds(), expected.thirds());
    Err(Fault::Miscounts(format!("unit {unit}: {found} thirds; the CPU counts {expected}")))
}

fn count_on_device(
    context: &Context,
    id: &str,
    kernel: &mut DeviceKernel,
    holder: Holder,
    sizing: BatchSizing,
) -> Result<(), Fault> {
    let Context { decomposition, queue, .. } = context;
    let mut job = kernel.open(decomposition)?;
    if !job.suits() {
        return Err(Fault::Unsuited);
    }
    let mut rate = None;
    loop {
        let mut further = sizing.units(rate, queue.open().len()).saturating_sub(1);
        let take_more = |_| {
            let more = further > 0;
            further = further.saturating_sub(1);
            more
        };
        let Some(units) = queue.take(holder, take_more) else { return Ok(()) };
        let began = Instant::now();
        let tallies = match job.count(&units, &|| units.iter().any(|&unit| queue.is_needed(unit))) {
            // Another worker was faster, or the count stops.
            Err(Fault::Stopped) => {
                queue.give_back(holder, &units);
                continue;
            }
            outcome => outcome?,
        };
        let elapsed_s = began.elapsed().as_secs_f64();
        if rate.is_none() && sizing.allows_check() {
            check_on_cpu(decomposition, units[0], &tallies[0])?;
        }
        rate = Some(units.len() as f64 / elapsed_s.max(1e-6));
        let each_s = elapsed_s / units.len() as f64;
        let finished = units.iter().zip(tallies).map(|(&unit, tally)| FinishedUnit {
            unit,
            tally,
            elapsed_s: each_s,
            kernel: format!("wgsl@{id}"),
        });
        context.send(Message::Finished(finished.collect()));
    }
}
