//! The interface between the threads that count and the owner of the units.

use super::batch::{Batch, Counter, DeviceLabel, UnitCount};
use super::kernels::KernelFailure;
use crate::kernel::gpu::Fault;

/// An owner of units to be counted: the queue of a count, or the leases of a worker. Its threads
/// take batches, and for each batch call exactly one of [`finish`](Self::finish),
/// [`give_back`](Self::give_back), [`cannot_count`](Self::cannot_count) and
/// [`unsuited`](Self::unsuited).
pub(crate) trait UnitSource: Send + Sync + 'static {
    /// A unit.
    type Unit: Clone + Send + Sync;
    /// The count of a unit so far.
    type Count: UnitCount;

    /// Returns the index of a unit in its job.
    fn index(unit: &Self::Unit) -> u64;

    /// Waits for a unit for a CPU thread. Returns `None` if the thread is to end.
    fn take_for_cpu(&self) -> Option<Batch<Self::Unit>>;

    /// Returns a short unit that a CPU thread is to count in the middle of another one, if there is
    /// one.
    fn take_between(&self) -> Option<Batch<Self::Unit>> {
        None
    }

    /// Waits for units for a device. Returns `None` if its thread is to end.
    fn take_for_device(&self, device: usize) -> Option<Batch<Self::Unit>>;

    /// Waits until there is work that a device might do. Returns `false` if there will be none.
    fn wait_for_device_work(&self) -> bool {
        true
    }

    /// Returns the approximate time in seconds that a CPU thread needs for a unit of the job, if it
    /// is known.
    fn cpu_unit_s(&self, batch: &Batch<Self::Unit>) -> Option<f64>;

    /// Begins the count of a unit.
    fn begin(&self, batch: &Batch<Self::Unit>, unit: &Self::Unit, by: &Counter) -> Self::Count;

    /// Receives the count of a unit that is not finished yet, after each piece.
    fn progress(&self, _: &Self::Count) {}

    /// Receives the results of a batch, which took `elapsed_s` seconds.
    fn finish(
        &self,
        batch: &Batch<Self::Unit>,
        results: Vec<ResultOf<Self>>,
        by: &Counter,
        elapsed_s: f64,
    );

    /// Takes units back that will not be counted, from the CPU or from a device.
    fn give_back(&self, batch: &Batch<Self::Unit>, device: Option<usize>);

    /// Takes a unit back on which every kernel failed, with the reasons.
    fn cannot_count(&self, batch: &Batch<Self::Unit>, reasons: String);

    /// Takes units back that the shaders cannot count.
    ///
    /// # Errors
    /// There will be nothing else for the device.
    fn unsuited(&self, batch: &Batch<Self::Unit>, device: usize) -> Result<(), Fault>;

    /// Returns whether a result of the batch is still needed.
    fn is_needed(&self, batch: &Batch<Self::Unit>) -> bool;

    /// Returns whether the threads are to end.
    fn is_stopped(&self) -> bool;

    /// Asks the threads to end as soon as possible.
    fn stop(&self);

    /// Numbers devices that will count.
    fn add_devices(&self, devices: &mut [DeviceLabel]);

    /// Receives an event.
    fn observe(&self, event: ExecutorEvent<'_>);
}

/// The result of a unit of a source.
pub(crate) type ResultOf<S> = <<S as UnitSource>::Count as UnitCount>::Result;

/// An event that concerns kernels or devices.
#[derive(Debug)]
pub(crate) enum ExecutorEvent<'a> {
    /// A device has passed its self-test.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only a worker logs it"))]
    DeviceReady(&'a DeviceLabel),
    /// A device has no more work, or has failed and is not used again.
    DeviceEnded(&'a DeviceLabel, Option<Fault>),
    /// No GPU was found.
    NoDevice,
    /// A test of a kernel begins, after which finished units may have to be counted again. One of
    /// the next two events follows.
    KernelTestBegins,
    /// The kernel passed the test.
    KernelPassed,
    /// The kernel failed: on a unit, or the test.
    KernelFailed(KernelFailure),
    /// A CPU thread ended in a panic.
    ThreadLost,
}
