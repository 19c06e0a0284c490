//! The executors: the threads that count, one per core and one per device, and one that decomposes
//! jobs. They take units from the work queue and put results into the outbox.

mod cpu_thread;
mod device_thread;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use cpu_thread::CpuThread;
use device_thread::{device_thread, discover_gpus};

use super::outbox::Outbox;
use super::work_queue::{Batch, DeviceStatus, LeasedUnit, WorkQueue};
use crate::cluster::campaign::{Source, UnitId, UnitResult};
use crate::cluster::protocol::{device_label, messages, v1};
use crate::decomposition::{Decomposition, DecompositionCache, JobHash};
use crate::engine::processor;
use crate::engine::{Device, wait_for_devices};
use crate::tally::{Parts, TallyError};

/// A lease whose job is to be decomposed, with the job's text if it was sent.
#[derive(Debug)]
pub(super) struct DecompositionRequest {
    pub(super) attempt: u64,
    pub(super) job: JobHash,
    pub(super) mirrored: bool,
    pub(super) text: Option<String>,
}

/// The state shared by all threads.
#[derive(Clone)]
struct Context {
    queue: Arc<WorkQueue>,
    outbox: Arc<Outbox>,
}

impl Context {
    /// Records that units were counted. The queue is updated before the outbox: a result may be
    /// acknowledged a moment after it is put there.
    fn finish(&self, batch: &Batch, by: Option<usize>, elapsed_s: f64, results: Vec<v1::Result>) {
        self.queue.finish(batch, by, elapsed_s);
        results.into_iter().for_each(|result| self.outbox.put(result));
    }
}

/// The threads. They end soon after this is dropped, CPU threads after the unit in progress.
#[derive(Debug)]
pub(super) struct Executors {
    queue: Arc<WorkQueue>,
    requests: mpsc::Sender<DecompositionRequest>,
    device_threads: Vec<JoinHandle<()>>,
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.queue.stop();
        // Wait, so that no driver is torn down while a thread uses it.
        wait_for_devices(&self.device_threads);
    }
}

impl Executors {
    /// Starts `cpu_threads` CPU threads, one thread for each of `devices` and, with `discover`, one
    /// for each GPU of this machine once there is work for it.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(super) fn start(
        queue: &Arc<WorkQueue>,
        outbox: &Arc<Outbox>,
        cpu_threads: usize,
        devices: Vec<Device>,
        discover: bool,
    ) -> std::io::Result<Self> {
        let context = Context { queue: Arc::clone(queue), outbox: Arc::clone(outbox) };
        let (requests, received) = mpsc::channel();
        // If a thread cannot be started, dropping this value ends those that were.
        let mut executors = Self { queue: Arc::clone(queue), requests, device_threads: Vec::new() };
        let spawn = |name: String, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name).spawn(work)
        };
        {
            let queue = Arc::clone(queue);
            spawn("decompose".into(), Box::new(move || decompose_jobs(&queue, &received)))?;
        }
        let device = format!("cpu, {}", processor());
        for number in 0..cpu_threads {
            let (context, device) = (context.clone(), device.clone());
            spawn(
                format!("count-{number}"),
                Box::new(move || CpuThread::new(&context, &device).work()),
            )?;
        }
        if !devices.is_empty() {
            let first = queue.add_devices(devices.iter().map(status_of));
            for (number, device) in (first..).zip(devices) {
                let context = context.clone();
                let work = Box::new(move || device_thread(&context, device, number));
                executors.device_threads.push(spawn(format!("device-{number}"), work)?);
            }
        }
        if discover {
            executors
                .device_threads
                .push(spawn("devices".into(), Box::new(move || discover_gpus(&context)))?);
        }
        Ok(executors)
    }

    /// Has the job of a lease decomposed in the background; the result is set in the queue.
    pub(super) fn decompose(&self, lease: DecompositionRequest) {
        // The receiving thread ends only with the executors.
        let _ = self.requests.send(lease);
    }
}

fn status_of(device: &Device) -> DeviceStatus {
    let described = device.info().map(|info| format!("{}, {}", info.name, info.driver));
    DeviceStatus { id: device.id().to_owned(), name: described.unwrap_or_default(), fault: None }
}

fn decompose_jobs(queue: &WorkQueue, received: &mpsc::Receiver<DecompositionRequest>) {
    let mut cache = DecompositionCache::default();
    while let Ok(DecompositionRequest { attempt, job, mirrored, text }) = received.recv() {
        queue.set_decomposition(attempt, cache.get(job, text.as_deref(), mirrored));
    }
}

/// Returns the sub-ranges of a unit that are to be counted: all, unless the lease names some.
fn sub_ranges(
    decomposition: &Decomposition,
    LeasedUnit { lease, unit }: &LeasedUnit,
) -> Vec<Range<u64>> {
    let ranges = decomposition.sub_ranges(*unit).zip(0u32..);
    let requested =
        |number| lease.sub_ranges.is_empty() || lease.sub_ranges.numbers().any(|n| n == number);
    ranges.filter(|&(_, number)| requested(number)).map(|(range, _)| range).collect()
}

/// Returns the message with a unit's result, from the counts of its sub-ranges.
///
/// # Errors
/// The counts contradict each other or overflow.
fn result(
    LeasedUnit { lease, unit }: &LeasedUnit,
    sub_ranges: &[Parts],
    elapsed_s: f64,
    (kernel, device): (&str, &str),
) -> Result<v1::Result, TallyError> {
    let mut parts = Parts::default();
    let mut sub_sums = Vec::with_capacity(sub_ranges.len());
    for sub_range in sub_ranges {
        sub_sums.push(sub_range.total()?.thirds());
        parts.merge(sub_range)?;
    }
    let source = Source {
        // The coordinator knows the caller and its build.
        worker: String::new(),
        owner: String::new(),
        kernel: kernel.to_owned(),
        device: device_label(device),
        build: String::new(),
    };
    let result = UnitResult {
        unit: UnitId { job: lease.job, unit: *unit },
        attempt: lease.attempt,
        grant: lease.grant.clone(),
        tally: parts.total()?,
        parts,
        sub_sums,
        source,
        elapsed_s,
    };
    Ok(messages::result(&result))
}
