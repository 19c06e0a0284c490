//! The worker loop: a worker joins, syncs and submits results until it is stopped, and then drains.

mod background;
mod delivery;
mod proving;
mod sync;

use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::backoff::Backoff;
use super::connection::Connection;
use super::data_dir::{DataDir, JoinParams};
use super::environment::{Environment, Rest};
use super::executors::Executors;
use super::outbox::Outbox;
use super::provers::Provers;
use super::work_queue::{QueueReport, WorkQueue};
use super::{Summary, WorkerError, WorkerOptions};
use crate::cluster::auth::{Name, SigningKey};
use crate::executor::{
    CpuKernels, Device, DeviceChoice, DeviceError, KernelFactory, KernelPreference, find_devices,
    known_answers,
};
use crate::kernel::KernelKind;

/// Runs a worker until `stop` completes or, if it is to end when idle, until there is nothing to
/// count. Must be called within a tokio runtime with timers and I/O enabled. Dropping the future is
/// like killing the process: the results in the outbox file are sent by the next worker in the same
/// directory.
///
/// # Errors
/// The data directory, the devices or the kernel cannot be used, or the coordinator refuses for
/// good.
pub async fn run(
    options: WorkerOptions,
    stop: impl Future<Output = ()>,
) -> Result<Summary, WorkerError> {
    let began = Instant::now();
    let preference = kernel_preference(&options)?;
    if options.rest.max_temperature_c.is_some() && options.environment.temperature_c().is_none() {
        return Err(WorkerError::NoThermometer);
    }
    let data_dir = DataDir::open(&options.data)?;
    let outbox = Arc::new(Outbox::open(&data_dir.outbox())?);
    let key = Arc::new(data_dir.result_key()?);
    let WorkerOptions { join, token, name, insecure, deadline, .. } = &options;
    let params = JoinParams {
        address: join,
        token: token.as_ref(),
        name: name.as_ref(),
        insecure: *insecure,
        deadline: *deadline,
    };
    tokio::pin!(stop);
    // Look for devices before the token is redeemed: a mistake in --device must not use it up.
    let mut devices =
        chosen_devices(options.devices.clone(), (preference.clone(), options.kernels.clone()))
            .await?;
    let (name, security) = tokio::select! {
        joined = data_dir.join(&params) => joined?,
        () = &mut stop => {
            let (elapsed, undelivered) = (began.elapsed(), outbox.len());
            return Ok(Summary { elapsed, undelivered, ..Summary::default() });
        }
    };
    let connection = Connection::new(join.clone(), security, *deadline)?;

    let threads = options
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let cpu_counts = options.devices.has_cpu();
    let discover_gpus =
        options.devices == DeviceChoice::Auto && options.kernel.is_none() && cfg!(feature = "gpu");
    let kernels = CpuKernels::new(preference.kinds().to_vec(), options.kernels, true);
    let queue = Arc::new(WorkQueue::new(preference, threads.get(), cpu_counts));
    devices.extend(options.opened);
    let executors =
        Executors::start((&queue, &outbox, &key), kernels, threads.get(), devices, discover_gpus)
            .map_err(WorkerError::Thread)?;
    tracing::info!(worker = %name, address = %connection.address(), threads = threads.get(), "working");
    // Without CPU threads the worker proves nothing.
    let provers = Provers::new(if cpu_counts { threads.get() } else { 0 });
    let (rest, environment) = (options.rest, Arc::clone(&options.environment));
    let worker = WorkerLoop {
        name,
        connection,
        queue,
        outbox,
        key,
        executors,
        provers,
        proofs: watch::Sender::new(0),
        prove_calls: AtomicU64::new(0),
        rest,
        environment,
        boot: getrandom::u64().unwrap_or_else(|_| fastrand::u64(..)),
        data_dir,
    };

    let stopped = tokio::select! {
        ended = worker.work(options.exit_when_idle) => ended.map(|()| "there is no work")?,
        () = &mut stop => "stop requested",
    };
    tracing::info!("draining: {stopped}");
    worker.drain(options.drain_timeout).await?;
    let counted = worker.queue.counted();
    Ok(Summary {
        units: counted.units,
        recounts: counted.recounts,
        proved: worker.provers.answered(),
        elapsed: began.elapsed(),
        dropped: worker.queue.being_counted(),
        undelivered: worker.outbox.len(),
    })
}

fn kernel_preference(options: &WorkerOptions) -> Result<KernelPreference, WorkerError> {
    match options.kernel {
        Some(KernelKind::Textbook) => {
            return Err(WorkerError::NotForCampaigns(KernelKind::Textbook));
        }
        Some(_) if !options.devices.has_cpu() => return Err(DeviceError::KernelWithoutCpu.into()),
        _ => {}
    }
    Ok(KernelPreference::new(options.kernel)?)
}

/// Tests the kernels and finds the selected devices, on a thread that may block for a second.
async fn chosen_devices(
    choice: DeviceChoice,
    (preference, kernels): (KernelPreference, KernelFactory),
) -> Result<Vec<Device>, WorkerError> {
    let find = move || {
        for kind in preference.kinds() {
            known_answers(*kind, &kernels).map_err(WorkerError::Miscounts)?;
        }
        if choice.has_adapters() { Ok(find_devices(&choice)?) } else { Ok(Vec::new()) }
    };
    let found = tokio::task::spawn_blocking(find).await;
    found.map_err(|error| WorkerError::Thread(error.into()))?
}

struct WorkerLoop {
    name: Name,
    connection: Connection,
    queue: Arc<WorkQueue>,
    outbox: Arc<Outbox>,
    key: Arc<SigningKey>,
    executors: Executors,
    provers: Provers,
    /// The number of running proof searches that the coordinator last reported.
    proofs: watch::Sender<u32>,
    prove_calls: AtomicU64,
    rest: Rest,
    environment: Arc<dyn Environment>,
    /// Distinguishes this run from other runs.
    boot: u64,
    data_dir: DataDir,
}

impl Drop for WorkerLoop {
    fn drop(&mut self) {
        self.queue.stop();
        // Close the outbox before the directory's lock is released, so that the next worker there
        // has the file to itself.
        self.outbox.close();
    }
}

impl WorkerLoop {
    /// Works until there is no work, if the worker is to end then; otherwise until an error.
    async fn work(&self, exit_when_idle: bool) -> Result<(), WorkerError> {
        let never: Infallible = tokio::select! {
            // The clock comes first: outside its hours a worker asks for nothing.
            biased;
            never = self.rest_loop() => never,
            failed = self.renewal_loop() => failed?,
            failed = self.delivery_loop() => failed?,
            failed = self.proving_loop() => failed?,
            never = self.listen_loop() => never,
            idle = self.sync_loop(false, exit_when_idle) => return idle,
        };
        match never {}
    }

    /// Finishes the units in progress and submits all results, for at most `timeout`.
    async fn drain(&self, timeout: Duration) -> Result<(), WorkerError> {
        self.queue.rest(true);
        self.stop_proving().await;
        let all_submitted = async {
            let (mut queue, mut outbox) = (self.queue.changes(), self.outbox.changes());
            while !(self.queue.is_empty()
                && self.queue.being_counted() == 0
                && self.outbox.len() == 0)
            {
                tokio::select! { _ = queue.changed() => {}, _ = outbox.changed() => {} }
            }
        };
        let work = async {
            tokio::select! {
                () = all_submitted => Ok(()),
                failed = self.delivery_loop() => failed.map(|never| match never {}),
                ended = self.sync_loop(true, false) => ended,
            }
        };
        match tokio::time::timeout(timeout, work).await {
            Ok(outcome) => outcome?,
            Err(_) => tracing::warn!("the drain timeout expired before all results were submitted"),
        }
        // The last sync hands the remaining units to other workers at once, rather than when the
        // leases expire.
        const LAST_CALL: Duration = Duration::from_secs(2);
        let final_sync = self.final_sync();
        if tokio::time::timeout(LAST_CALL.min(self.connection.deadline()), final_sync)
            .await
            .is_err()
        {
            tracing::warn!("the coordinator could not be notified that this worker stops");
        }
        Ok(())
    }

    /// Makes a last sync that lists no leases.
    async fn final_sync(&self) {
        let report = QueueReport { capacity: 0, held: Vec::new(), ..self.queue.report(0) };
        let request = self.sync_request(report, true);
        let mut once = Backoff::default();
        let outcome = self
            .connection
            .call(&mut once, |link| async move { link.work().sync(request).await })
            .await;
        if let Err(error) = outcome {
            tracing::warn!("{error}");
        }
    }
}
