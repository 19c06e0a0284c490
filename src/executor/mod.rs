//! The unit executor: threads, one per core and one per device, that take units from a source and
//! give their results to it. A count and a worker of a campaign share it; what differs is the
//! [`UnitSource`]: a queue whose results go to a checkpoint, or leases whose results go to an
//! outbox.
//!
//! | module | contents |
//! |---|---|
//! | `source.rs`, `batch.rs` | the interface to the owner of the units |
//! | `cpu_thread.rs`, `pieces.rs` | a thread that counts on the CPU, in pieces |
//! | `device_thread.rs`, `devices.rs` | a thread that counts on a device; choosing devices |
//! | `kernels.rs`, `preference.rs`, `known_answers.rs` | the CPU kernels, their failures and their tests |
//!
//! **A failure costs one attempt.** If a kernel panics or contradicts itself, its unit is counted
//! again, by another kernel if there is one, and the kernel is tested with boards whose counts are
//! published. If it fails that test, all that it counted is in doubt, and the source decides what
//! becomes of it. If a device fails, its batch is given back and the device is not used again.

mod batch;
mod cpu_thread;
mod device_thread;
mod devices;
mod kernels;
mod known_answers;
mod pieces;
mod preference;
mod processor;
mod source;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[cfg(feature = "cluster")]
pub(crate) use batch::SHADERS;
pub(crate) use batch::{Batch, Counter, DeviceLabel, UnitCount, batch_size};
pub(crate) use cpu_thread::CpuThread;
#[cfg(all(test, feature = "cluster"))]
pub(crate) use device_thread::DeviceThread;
pub use devices::{Device, DeviceChoice, DeviceError, DeviceName, UnknownDevice};
pub use devices::{find_devices, find_every_device};
pub use kernels::KernelFactory;
pub(crate) use kernels::{CpuKernels, KernelFailure};
#[cfg(feature = "cluster")]
pub(crate) use known_answers::known_answers;
pub(crate) use pieces::PieceSize;
pub(crate) use preference::KernelPreference;
pub use processor::processor;
pub(crate) use source::{ExecutorEvent, UnitSource};

use crate::kernel::gpu::Fault;

/// The threads. They end soon after this is dropped: devices as soon as possible, with a short
/// wait, so that no driver is torn down under them; CPU threads after the piece in progress.
#[derive(Debug)]
pub(crate) struct Executor<S: UnitSource> {
    source: Arc<S>,
    kernels: Arc<CpuKernels>,
    piece_size: PieceSize,
    cpu_threads: usize,
    device_threads: Vec<JoinHandle<()>>,
}

impl<S: UnitSource> Executor<S> {
    /// Creates an executor without threads.
    pub(crate) fn new(source: Arc<S>, kernels: CpuKernels, piece_size: PieceSize) -> Self {
        let (cpu_threads, device_threads) = (0, Vec::new());
        Self { source, kernels: Arc::new(kernels), piece_size, cpu_threads, device_threads }
    }

    /// Returns the number of CPU threads.
    pub(crate) const fn cpu_threads(&self) -> usize {
        self.cpu_threads
    }

    /// Starts CPU threads until there are `threads`.
    ///
    /// # Errors
    /// The system cannot create a thread; those before it run.
    pub(crate) fn start_cpu(&mut self, threads: usize) -> io::Result<()> {
        while self.cpu_threads < threads {
            let (source, kernels) = (Arc::clone(&self.source), Arc::clone(&self.kernels));
            let piece_size = self.piece_size;
            std::thread::Builder::new()
                .name(format!("count-{}", self.cpu_threads))
                .spawn(move || CpuThread::new(&*source, &kernels, piece_size).work())?;
            self.cpu_threads += 1;
        }
        Ok(())
    }

    /// Starts a thread for each device. A device whose thread cannot be created has failed.
    pub(crate) fn start_devices(&mut self, devices: Vec<Device>) {
        for (label, device) in labelled(&*self.source, devices) {
            let (source, kernels) = (Arc::clone(&self.source), Arc::clone(&self.kernels));
            let started =
                std::thread::Builder::new().name(format!("device-{}", label.number)).spawn({
                    let label = label.clone();
                    move || device_thread::device_thread(&*source, &kernels, device, label)
                });
            match started {
                Ok(thread) => self.device_threads.push(thread),
                Err(error) => {
                    let fault = Fault::Lost(format!("a thread for it cannot be created: {error}"));
                    self.source.observe(ExecutorEvent::DeviceEnded(&label, Some(fault)));
                }
            }
        }
    }

    /// Looks for GPUs in the background once there is work that they might do, and starts them.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(crate) fn discover_gpus(&mut self) -> io::Result<()> {
        let (source, kernels) = (Arc::clone(&self.source), Arc::clone(&self.kernels));
        let discover = move || {
            if !source.wait_for_device_work() {
                return;
            }
            // `Auto` names no device, so an error only means that no device can be used.
            let devices = find_devices(&DeviceChoice::Auto).unwrap_or_default();
            if devices.is_empty() {
                return source.observe(ExecutorEvent::NoDevice);
            }
            std::thread::scope(|scope| {
                for (label, device) in labelled(&*source, devices) {
                    let (source, kernels) = (&*source, &*kernels);
                    scope.spawn(move || {
                        device_thread::device_thread(source, kernels, device, label)
                    });
                }
            });
        };
        let thread = std::thread::Builder::new().name("devices".into()).spawn(discover)?;
        self.device_threads.push(thread);
        Ok(())
    }
}

impl<S: UnitSource> Drop for Executor<S> {
    fn drop(&mut self) {
        /// A submission to a device takes a tenth of a second.
        const TIMEOUT: Duration = Duration::from_secs(3);
        self.source.stop();
        let began = Instant::now();
        while !self.device_threads.iter().all(JoinHandle::is_finished) && began.elapsed() < TIMEOUT
        {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Labels devices with the numbers that the source gives them.
fn labelled<S: UnitSource>(
    source: &S,
    devices: Vec<Device>,
) -> impl Iterator<Item = (DeviceLabel, Device)> + use<S> {
    let mut labels: Vec<DeviceLabel> = devices.iter().map(DeviceLabel::new).collect();
    source.add_devices(&mut labels);
    labels.into_iter().zip(devices)
}
