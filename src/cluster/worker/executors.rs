//! The threads that count for a worker, and one that decomposes jobs. They take units from the work
//! queue and put results into the outbox.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::outbox::Outbox;
use super::work_queue::{Batch, LeasedUnit, WorkQueue};
use crate::cluster::auth::SigningKey;
use crate::cluster::campaign::{ResultSignature, Source, UnitId, UnitResult};
use crate::cluster::protocol::v1::FailReason;
use crate::cluster::protocol::{device_label, messages, v1};
use crate::decomposition::{DecompositionCache, JobHash};
use crate::executor::{
    Counter, CpuKernels, Device, DeviceLabel, Executor, ExecutorEvent, PieceSize, UnitCount,
    UnitSource, batch_size,
};
use crate::kernel::gpu::Fault;
use crate::tally::{Parts, TallyError};

/// A lease whose job is to be decomposed, with the job's text if it was sent.
#[derive(Debug)]
pub(super) struct DecompositionRequest {
    pub(super) attempt: u64,
    pub(super) job: JobHash,
    pub(super) mirrored: bool,
    pub(super) text: Option<String>,
}

/// The units that a worker has leased, and the results that it owes.
#[derive(Debug)]
struct LeasedUnits {
    queue: Arc<WorkQueue>,
    outbox: Arc<Outbox>,
    /// The key that signs the results.
    key: Arc<SigningKey>,
}

/// The threads. They end soon after this is dropped.
#[derive(Debug)]
pub(super) struct Executors {
    _executor: Executor<LeasedUnits>,
    requests: mpsc::Sender<DecompositionRequest>,
}

impl Executors {
    /// Starts `cpu_threads` CPU threads, one thread for each of `devices` and, with `discover`, one
    /// for each GPU of this machine once there is work for it.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(super) fn start(
        (queue, outbox, key): (&Arc<WorkQueue>, &Arc<Outbox>, &Arc<SigningKey>),
        kernels: CpuKernels,
        cpu_threads: usize,
        devices: Vec<Device>,
        discover: bool,
    ) -> std::io::Result<Self> {
        let units = LeasedUnits {
            queue: Arc::clone(queue),
            outbox: Arc::clone(outbox),
            key: Arc::clone(key),
        };
        let (requests, received) = mpsc::channel();
        // If a thread cannot be started, dropping this value ends those that were.
        let mut executor = Executor::new(Arc::new(units), kernels, PieceSize::Timed);
        let queue = Arc::clone(queue);
        std::thread::Builder::new()
            .name("decompose".into())
            .spawn(move || decompose_jobs(&queue, &received))?;
        executor.start_cpu(cpu_threads)?;
        if !devices.is_empty() {
            executor.start_devices(devices);
        }
        if discover {
            executor.discover_gpus()?;
        }
        Ok(Self { _executor: executor, requests })
    }

    /// Has the job of a lease decomposed in the background; the result is set in the queue.
    pub(super) fn decompose(&self, lease: DecompositionRequest) {
        // The receiving thread ends only with the executors.
        let _ = self.requests.send(lease);
    }
}

fn decompose_jobs(queue: &WorkQueue, received: &mpsc::Receiver<DecompositionRequest>) {
    let mut cache = DecompositionCache::default();
    while let Ok(DecompositionRequest { attempt, job, mirrored, text }) = received.recv() {
        queue.set_decomposition(attempt, cache.get(job, text.as_deref(), mirrored));
    }
}

/// The count of a leased unit so far.
struct LeasedCount {
    unit: LeasedUnit,
    /// The sub-ranges to be counted: all, unless the lease names some.
    sub_ranges: Vec<Range<u64>>,
    /// Their counts so far.
    counted: Vec<Parts>,
    elapsed: Duration,
    source: Source,
    key: Arc<SigningKey>,
}

impl UnitCount for LeasedCount {
    type Result = v1::Result;

    fn ranges(&self) -> Vec<Range<u64>> {
        self.sub_ranges.clone()
    }

    fn add(
        &mut self,
        range: usize,
        _: u64,
        parts: &Parts,
        elapsed: Duration,
    ) -> Result<(), TallyError> {
        self.elapsed += elapsed;
        self.counted[range].merge(parts)
    }

    fn finish(self) -> Result<v1::Result, TallyError> {
        let Self { unit: LeasedUnit { lease, unit }, counted, elapsed, source, key, .. } = self;
        let mut parts = Parts::default();
        let mut sub_sums = Vec::with_capacity(counted.len());
        for sub_range in &counted {
            sub_sums.push(sub_range.total()?.thirds());
            parts.merge(sub_range)?;
        }
        let mut result = UnitResult {
            unit: UnitId { job: lease.job, unit },
            attempt: lease.attempt,
            grant: lease.grant.clone(),
            tally: parts.total()?,
            parts,
            sub_sums,
            source,
            elapsed_s: elapsed.as_secs_f64(),
            signature: None,
        };
        let statement = result.statement(lease.mirrored, lease.sub_ranges);
        let signature = key.sign(&statement.to_bytes());
        result.signature = Some(ResultSignature { commitment: statement.commitment, signature });
        Ok(messages::result(&result))
    }
}

impl UnitSource for LeasedUnits {
    type Unit = LeasedUnit;
    type Count = LeasedCount;

    fn index(unit: &LeasedUnit) -> u64 {
        unit.unit
    }

    fn take_for_cpu(&self) -> Option<Batch> {
        self.queue.take_for_cpu()
    }

    fn take_between(&self) -> Option<Batch> {
        self.queue.take_spot_for_cpu()
    }

    fn take_for_device(&self, device: usize) -> Option<Batch> {
        self.queue.take_for_device(device, batch_size)
    }

    fn wait_for_device_work(&self) -> bool {
        self.queue.wait_for_device_work()
    }

    fn cpu_unit_s(&self, batch: &Batch) -> Option<f64> {
        self.queue.cpu_unit_s(batch.job)
    }

    fn begin(&self, batch: &Batch, unit: &LeasedUnit, by: &Counter) -> LeasedCount {
        let lease = &unit.lease;
        let requested = |number| {
            lease.sub_ranges.is_empty() || lease.sub_ranges.numbers().any(|known| known == number)
        };
        let all = batch.decomposition.sub_ranges(unit.unit).zip(0u32..);
        let sub_ranges: Vec<Range<u64>> =
            all.filter(|&(_, number)| requested(number)).map(|(range, _)| range).collect();
        let source = Source {
            kernel: by.kernel().to_owned(),
            device: device_label(&by.device()),
            // The coordinator knows the caller and its build.
            ..Source::default()
        };
        let counted = vec![Parts::default(); sub_ranges.len()];
        LeasedCount {
            unit: unit.clone(),
            sub_ranges,
            counted,
            elapsed: Duration::ZERO,
            source,
            key: Arc::clone(&self.key),
        }
    }

    /// The queue is updated before the outbox: a result may be acknowledged a moment after it is
    /// put there.
    fn finish(&self, batch: &Batch, results: Vec<v1::Result>, by: &Counter, elapsed_s: f64) {
        self.queue.finish(batch, by, elapsed_s);
        results.into_iter().for_each(|result| self.outbox.put(result));
    }

    fn give_back(&self, batch: &Batch, _: Option<usize>) {
        self.queue.give_back(batch);
    }

    fn cannot_count(&self, batch: &Batch, reasons: String) {
        let units: Vec<u64> = batch.units.iter().map(|unit| unit.unit).collect();
        tracing::error!(?units, job = %batch.job, "a unit cannot be counted: {reasons}");
        self.queue.fail(batch, FailReason::Check, &reasons);
    }

    fn unsuited(&self, batch: &Batch, _: usize) -> Result<(), Fault> {
        self.queue.give_back(batch);
        self.queue.not_for_shaders(batch.job);
        Ok(())
    }

    fn is_needed(&self, _: &Batch) -> bool {
        !self.queue.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.queue.is_stopped()
    }

    fn stop(&self) {
        self.queue.stop();
    }

    fn add_devices(&self, devices: &mut [DeviceLabel]) {
        self.queue.add_devices(devices);
    }

    fn observe(&self, event: ExecutorEvent<'_>) {
        match event {
            ExecutorEvent::DeviceReady(device) => {
                tracing::info!(device = %device, "the device has passed its self-test");
            }
            ExecutorEvent::DeviceEnded(device, Some(fault)) => {
                if !self.queue.is_stopped() {
                    tracing::error!(device = %device, "the device is disabled, and its units are counted elsewhere: {fault}");
                    self.queue.device_failed(device.number, fault.to_string());
                }
            }
            ExecutorEvent::NoDevice => {
                tracing::info!("no GPU adapter was found: counting on the CPU alone");
            }
            ExecutorEvent::KernelFailed(failure) => match failure.wrong {
                Some(wrong) => {
                    tracing::error!("{wrong}");
                    // Nothing that this machine counted and has not delivered is to be believed.
                    self.queue.mark_broken(wrong);
                    self.outbox.discard();
                }
                None => {
                    if let Some(note) = failure.note {
                        tracing::error!("{note}");
                    }
                }
            },
            ExecutorEvent::ThreadLost => {
                tracing::error!("a counting thread ended in an internal error; please report it");
            }
            // A broken worker ends, so there is nothing to wait for.
            ExecutorEvent::DeviceEnded(_, None)
            | ExecutorEvent::KernelTestBegins
            | ExecutorEvent::KernelPassed => {}
        }
    }
}
