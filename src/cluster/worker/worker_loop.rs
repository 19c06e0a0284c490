//! The worker loop: a worker joins, syncs and submits results until it is told to stop, and then
//! drains.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::sync::watch;
use tonic::Code;

use super::backoff::Backoff;
use super::connection::Connection;
use super::data_dir::{DataDir, Joining, now_ms};
use super::environment::{Environment, Pause, Rest};
use super::executors::{Executors, ToPlan};
use super::kernels::processor;
use super::outbox::Outbox;
use super::provers::{InHand, Provers};
use super::work_queue::{Failed, Report, SHADERS, WorkQueue};
use super::{Options, Summary, WorkerError};
use crate::cluster::auth::{Name, Renewal};
use crate::cluster::campaign::Assignment;
use crate::cluster::protocol::v1::{self, Verdict};
use crate::cluster::protocol::{
    self, MOST_HELD, MOST_MESSAGE_BYTES, MOST_RESULTS, Malformed, Security, TaskQuery, answered,
    messages, peer, renew,
};
use crate::decomposition::JobHash;
use crate::engine::{
    Device, DeviceChoice, DeviceError, KernelPreference, find_devices, known_answers,
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
pub async fn run(options: Options, stop: impl Future<Output = ()>) -> Result<Summary, WorkerError> {
    let began = Instant::now();
    let ladder = ladder(&options)?;
    if options.rest.max_temperature_c.is_some() && options.environment.temperature_c().is_none() {
        return Err(WorkerError::NoThermometer);
    }
    let home = DataDir::open(&options.data)?;
    let outbox = Arc::new(Outbox::open(&home.outbox())?);
    let Options { join, token, name, insecure, deadline, .. } = &options;
    let joining = Joining {
        address: join,
        token: token.as_ref(),
        name: name.as_ref(),
        insecure: *insecure,
        deadline: *deadline,
    };
    tokio::pin!(stop);
    // Look for devices before the token is redeemed: a mistake in --device must not cost it.
    let mut devices = chosen_devices(options.devices.clone(), ladder.clone()).await?;
    let (name, security) = tokio::select! {
        joined = home.join(&joining) => joined?,
        () = &mut stop => {
            let undelivered = outbox.len();
            return Ok(Summary { units: 0, recounts: 0, proved: 0, elapsed: began.elapsed(), dropped: 0, undelivered });
        }
    };
    let line = Connection::new(join.clone(), security, *deadline)?;

    let threads = options
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let cpu_counts = options.devices.has_cpu();
    let wake =
        options.devices == DeviceChoice::Auto && options.kernel.is_none() && cfg!(feature = "gpu");
    let queue = Arc::new(WorkQueue::new(ladder, threads.get(), cpu_counts));
    devices.extend(options.opened);
    let executors = Executors::start(&queue, &outbox, threads.get(), devices, wake)
        .map_err(WorkerError::Thread)?;
    tracing::info!(worker = %name, address = %line.address(), threads = threads.get(), "working");
    // Without CPU threads the worker proves nothing.
    let provers = Provers::new(if cpu_counts { threads.get() } else { 0 });
    let (rest, around) = (options.rest, Arc::clone(&options.environment));
    let life = WorkerLoop {
        name,
        line,
        queue,
        outbox,
        executors,
        provers,
        proofs: watch::Sender::new(0),
        prove_calls: AtomicU64::new(0),
        rest,
        around,
        boot: getrandom::u64().unwrap_or_else(|_| fastrand::u64(..)),
        home,
    };

    let stopped = tokio::select! {
        ended = life.work(options.exit_when_idle) => ended.map(|()| "there is nothing to count")?,
        () = &mut stop => "told to stop",
    };
    tracing::info!("draining: {stopped}");
    life.drain(options.drain_timeout).await?;
    let counted = life.queue.counted();
    Ok(Summary {
        units: counted.units,
        recounts: counted.recounts,
        proved: life.provers.answered(),
        elapsed: began.elapsed(),
        dropped: life.queue.being_counted(),
        undelivered: life.outbox.len(),
    })
}

fn ladder(options: &Options) -> Result<KernelPreference, WorkerError> {
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
    ladder: KernelPreference,
) -> Result<Vec<Device>, WorkerError> {
    let find = move || {
        for kind in ladder.kinds() {
            known_answers(*kind).map_err(WorkerError::Miscounts)?;
        }
        if choice.has_adapters() { Ok(find_devices(&choice)?) } else { Ok(Vec::new()) }
    };
    let found = tokio::task::spawn_blocking(find).await;
    found.map_err(|error| WorkerError::Thread(error.into()))?
}

/// The outcome of a sync.
#[derive(Clone, Copy, Debug)]
struct Synced {
    /// The number of new leases.
    new: usize,
    running_jobs: u32,
    running_proofs: u32,
    next: Duration,
    /// Whether the coordinator held the answer back for at least half of the requested wait.
    waited: bool,
}

struct WorkerLoop {
    name: Name,
    line: Connection,
    queue: Arc<WorkQueue>,
    outbox: Arc<Outbox>,
    executors: Executors,
    provers: Provers,
    /// The number of running proof searches that the coordinator last reported.
    proofs: watch::Sender<u32>,
    prove_calls: AtomicU64,
    rest: Rest,
    around: Arc<dyn Environment>,
    /// Distinguishes this run from other runs.
    boot: u64,
    home: DataDir,
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
    /// Works until there is nothing to count, if the worker is to end then; otherwise until an
    /// error.
    async fn work(&self, exit_when_idle: bool) -> Result<(), WorkerError> {
        let never: Infallible = tokio::select! {
            // The clock comes first: outside its hours a worker asks for nothing.
            biased;
            never = self.keep_watching_the_clock() => never,
            failed = self.keep_renewing() => failed?,
            failed = self.keep_delivering() => failed?,
            failed = self.keep_proving() => failed?,
            never = self.keep_listening() => never,
            idle = self.keep_syncing(false, exit_when_idle) => return idle,
        };
        match never {}
    }

    /// Finishes the units in progress and submits all results, unless `patience` runs out.
    async fn drain(&self, patience: Duration) -> Result<(), WorkerError> {
        self.queue.rest(true);
        self.stop_proving().await;
        let handed_in = async {
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
                () = handed_in => Ok(()),
                failed = self.keep_delivering() => failed.map(|never| match never {}),
                ended = self.keep_syncing(true, false) => ended,
            }
        };
        match tokio::time::timeout(patience, work).await {
            Ok(outcome) => outcome?,
            Err(_) => tracing::warn!("not everything could be finished and handed in in time"),
        }
        // The last sync hands the remaining units to other workers at once, rather than when the
        // leases expire.
        const LAST_CALL: Duration = Duration::from_secs(2);
        let goodbye = self.goodbye();
        if tokio::time::timeout(LAST_CALL.min(self.line.deadline()), goodbye).await.is_err() {
            tracing::warn!("the coordinator did not hear that this worker ends");
        }
        Ok(())
    }

    /// Makes a last sync that lists no leases.
    async fn goodbye(&self) {
        let report = Report { capacity: 0, held: Vec::new(), ..self.queue.report(0) };
        let request = self.sync_request(report, true);
        let mut once = Backoff::default();
        let outcome =
            self.line.call(&mut once, |link| async move { link.work().sync(request).await }).await;
        if let Err(error) = outcome {
            tracing::warn!("{error}");
        }
    }

    // Sync.

    /// Syncs repeatedly. Returns when there is nothing to do, if the worker is to end then.
    async fn keep_syncing(&self, draining: bool, exit_when_idle: bool) -> Result<(), WorkerError> {
        /// The initial delay between a sync and the next one if nothing happens.
        const EARLY: Duration = Duration::from_millis(50);
        /// The longest wait for the answer to a worker that is to end when idle.
        const SMALL: Duration = Duration::from_millis(500);
        let mut backoff = Backoff::default();
        let mut limit = SyncLimit::default();
        let mut early = EARLY;
        let mut idle = 0;
        let mut changes = self.queue.changes();
        // The first sync is answered at once.
        let mut wait = Duration::ZERO;
        loop {
            if let Some(why) = self.queue.broken() {
                return Err(WorkerError::Miscounts(why));
            }
            let report = self.queue.report(MOST_HELD);
            let idles = report.held.is_empty() && report.capacity > 0;
            let waits = if idles { wait } else { Duration::ZERO };
            limit.synced(tokio::time::Instant::now());
            let synced = tokio::select! {
                biased;
                synced = self.sync(&mut backoff, report, (draining, waits)) => synced?,
                () = self.urgency(), if !waits.is_zero() => None,
            };
            let Some(synced) = synced else { continue };
            let at = tokio::time::Instant::now();
            let proves = synced.running_proofs > 0 && self.provers.capacity() > 0;
            let busy = synced.running_jobs > 0 || proves;
            let nothing = !busy && self.queue.is_empty() && self.outbox.len() == 0;
            idle = if nothing { idle + 1 } else { 0 };
            if exit_when_idle && idle >= 2 {
                return Ok(());
            }
            // Unless the coordinator itself waits for work, ask less and less often while no lease
            // arrives that can be counted here.
            let of_use = synced.new > 0 && !self.queue.take_failed_lately();
            early = if of_use || synced.waited { EARLY } else { (2 * early).min(synced.next) };
            let latest = at + synced.next.mul_f64(0.8 + 0.4 * fastrand::f64());
            let due = || {
                let early = if self.queue.was_acknowledged() { Duration::ZERO } else { early };
                let hungry = self.queue.is_hungry() && !draining;
                let ends = exit_when_idle && nothing;
                let wanted = if self.queue.is_urgent() {
                    at
                } else if hungry || ends {
                    (at + early).min(latest)
                } else {
                    latest
                };
                limit.not_before(wanted)
            };
            until(due, &mut changes).await;
            wait = match (draining, exit_when_idle) {
                (false, false) => self.longest_wait(),
                // A worker that is to end must learn soon that there is nothing to do.
                (false, true) if busy => SMALL.min(self.longest_wait()),
                _ => Duration::ZERO,
            };
        }
    }

    /// Returns how long a sync's answer may wait for units to lease: less than the deadline of a
    /// call.
    fn longest_wait(&self) -> Duration {
        const MOST: Duration = Duration::from_secs(10);
        MOST.min(self.line.deadline() / 2)
    }

    /// Waits until the worker should sync at once.
    async fn urgency(&self) {
        let mut changes = self.queue.changes();
        while !self.queue.is_urgent() && changes.changed().await.is_ok() {}
    }

    /// Listens for recounts that are reserved for this worker while it counts, and triggers a sync
    /// for each.
    async fn keep_listening(&self) -> Infallible {
        /// The shortest delay between two calls.
        const LEAST: Duration = Duration::from_millis(50);
        const MOST: Duration = Duration::from_secs(1);
        let mut backoff = Backoff::default();
        let mut pause = LEAST;
        let mut changes = self.queue.changes();
        loop {
            // A worker without leases learns of recounts from the answer to its waiting sync.
            while self.queue.is_empty() || self.queue.is_resting() || self.queue.is_urgent() {
                if changes.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
            // At most 10 s.
            let wait_ms = self.longest_wait().as_millis() as u32;
            let request =
                v1::ListenRequest { peer: peer(), worker: self.name.to_string(), wait_ms };
            match self.line.try_call(|link| async move { link.work().listen(request).await }).await
            {
                Ok(v1::ListenResponse { kept }) => {
                    backoff.reset();
                    // If no lease is held any more, a waiting sync delivers the recount.
                    if kept && !self.queue.is_empty() {
                        self.queue.request_sync();
                    }
                    // If the last sync did not deliver the recount, the next one will not either.
                    pause = if kept { (2 * pause).min(MOST) } else { LEAST };
                    tokio::time::sleep(pause).await;
                }
                // An older coordinator does not know this call.
                Err(_) => tokio::time::sleep(backoff.next(fastrand::f64())).await,
            }
        }
    }

    /// Syncs once. The answer may be delayed by up to `wait` if there is nothing to lease. Returns
    /// `None` after a transient failure.
    async fn sync(
        &self,
        backoff: &mut Backoff,
        report: Report,
        (draining, wait): (bool, Duration),
    ) -> Result<Option<Synced>, WorkerError> {
        let began = Instant::now();
        let held: HashSet<u64> = report.held.iter().map(|held| held.lease.attempt).collect();
        // At most 10 s.
        let wait_ms = wait.as_millis() as u32;
        let request = v1::SyncRequest { wait_ms, ..self.sync_request(report, draining) };
        let answer =
            self.line.call(backoff, |link| async move { link.work().sync(request).await }).await?;
        let Ok(response) = answer else { return Ok(None) };
        if !response.quarantined.is_empty() {
            return Err(WorkerError::Quarantined(response.quarantined));
        }
        let malformed =
            |error| WorkerError::Refused(self.line.address().clone(), format!("{error}"));
        let desired = messages::desired(response.desired).map_err(malformed)?;
        let kept: HashSet<u64> = desired.iter().map(|lease| lease.attempt).collect();
        self.queue.cancel(
            response.cancel.into_iter().chain(held.iter().copied().filter(|a| !kept.contains(a))),
        );
        // A lease that was held when the request was sent may be finished by now; it must not start
        // again.
        let (known, new): (Vec<Assignment>, Vec<Assignment>) =
            desired.into_iter().partition(|lease| held.contains(&lease.attempt));
        let synced = Synced {
            new: new.len(),
            running_jobs: response.running_jobs,
            running_proofs: response.running_proofs,
            next: Duration::from_millis(response.next_sync_ms.clamp(50, 600_000).into()),
            waited: !wait.is_zero() && began.elapsed() >= wait / 2,
        };
        self.queue.update(known);
        self.take(new, response.jobs);
        self.proofs.send_replace(response.running_proofs);
        Ok(Some(synced))
    }

    fn take(&self, leases: Vec<Assignment>, jobs: Vec<v1::Job>) {
        let texts: HashMap<JobHash, String> = jobs
            .into_iter()
            .filter_map(|job| Some((protocol::job_hash(&job.job).ok()?, job.text)))
            .collect();
        self.queue.assign(leases.iter().cloned());
        for Assignment { attempt, job, mirrored, .. } in leases {
            self.executors.plan(ToPlan { attempt, job, mirrored, text: texts.get(&job).cloned() });
        }
    }

    fn sync_request(&self, report: Report, draining: bool) -> v1::SyncRequest {
        let Report { capacity, kernels, units_per_s, held, devices, cpu_threads } = report;
        let rate = |(job, units_per_s): (JobHash, f64)| v1::Rate {
            job: job.to_bytes().into(),
            units_per_s,
        };
        let cpu = (cpu_threads > 0).then(|| v1::Device {
            id: "cpu".to_owned(),
            name: processor().to_owned(),
            kernel: kernels.iter().find(|kernel| *kernel != SHADERS).cloned().unwrap_or_default(),
            capacity: cpu_threads as u32,
            fault: String::new(),
            temperature_c: self.around.temperature_c(),
        });
        let others = devices.into_iter().map(|device| v1::Device {
            id: device.id,
            name: device.name,
            kernel: SHADERS.to_owned(),
            capacity: 1,
            fault: device.fault.unwrap_or_default(),
            temperature_c: None,
        });
        v1::SyncRequest {
            peer: peer(),
            worker: self.name.to_string(),
            boot: self.boot,
            capacity: if draining { 0 } else { capacity },
            kernels,
            rates: units_per_s.into_iter().map(rate).collect(),
            held: held.iter().map(messages::held).collect(),
            draining,
            devices: cpu.into_iter().chain(others).collect(),
            wait_ms: 0,
        }
    }

    // Complete and Fail.

    /// Submits results and reports units that cannot be counted.
    async fn keep_delivering(&self) -> Result<Infallible, WorkerError> {
        let mut backoff = Backoff::default();
        let mut most = MOST_RESULTS;
        let (mut queue, mut outbox) = (self.queue.changes(), self.outbox.changes());
        loop {
            if let Some(failed) = self.queue.next_failed() {
                self.fail(&failed, &mut backoff).await?;
                continue;
            }
            let batch = self.outbox.batch(most, MOST_MESSAGE_BYTES - (4 << 10));
            if batch.is_empty() {
                tokio::select! { _ = queue.changed() => {}, _ = outbox.changed() => {} }
                continue;
            }
            match self.complete(&batch, &mut backoff).await? {
                Ok(()) => most = MOST_RESULTS,
                // The coordinator does not understand this result. Drop it: no other worker can
                // count the unit while the lease is held.
                Err(Code::InvalidArgument | Code::OutOfRange) if batch.len() == 1 => {
                    tracing::error!(
                        "the coordinator does not take the result of unit {}",
                        batch[0].1.unit
                    );
                    self.deal_with(&batch);
                }
                Err(Code::InvalidArgument | Code::OutOfRange) => most = batch.len() / 2,
                Err(_) => {}
            }
        }
    }

    fn deal_with<'a>(&self, results: impl IntoIterator<Item = &'a (u64, v1::Result)>) {
        let (mut numbers, mut units) = (Vec::new(), Vec::new());
        for (number, result) in results {
            numbers.push(*number);
            units.push((result.attempt, result.unit));
        }
        self.outbox.remove(numbers);
        self.queue.acknowledge(units);
    }

    async fn complete(
        &self,
        batch: &[(u64, v1::Result)],
        backoff: &mut Backoff,
    ) -> Result<Result<(), Code>, WorkerError> {
        let request = v1::CompleteRequest {
            peer: peer(),
            worker: self.name.to_string(),
            results: batch.iter().map(|(_, result)| result.clone()).collect(),
        };
        let answer = self
            .line
            .call(backoff, |link| async move { link.work().complete(request).await })
            .await?;
        let response = match answer {
            Ok(response) => response,
            Err(code) => return Ok(Err(code)),
        };
        let judged = || batch.iter().zip(response.verdicts());
        for ((_, result), verdict) in judged() {
            let unit = result.unit;
            match verdict {
                Verdict::Conflict => {
                    tracing::warn!(
                        unit,
                        "another result is in the books: the coordinator's arbiter will decide"
                    )
                }
                Verdict::Refused | Verdict::Quarantined => {
                    tracing::error!(unit, "the coordinator does not believe this worker any more");
                }
                _ => tracing::debug!(unit, verdict = verdict.as_str_name(), "handed in"),
            }
        }
        self.deal_with(
            judged()
                .filter(|(_, verdict)| *verdict != Verdict::Unspecified)
                .map(|(entry, _)| entry),
        );
        let without_verdict =
            batch.len() - judged().filter(|(_, verdict)| *verdict != Verdict::Unspecified).count();
        if without_verdict > 0 {
            tracing::error!(
                without_verdict,
                "the coordinator gave no verdict on some results; they are sent again"
            );
            tokio::time::sleep(backoff.next(fastrand::f64())).await;
        }
        Ok(Ok(()))
    }

    async fn fail(&self, failed: &Failed, backoff: &mut Backoff) -> Result<(), WorkerError> {
        let Failed { attempt, unit, reason, detail } = failed.clone();
        tracing::warn!(%unit, "cannot be counted here: {detail}");
        let request = v1::FailRequest {
            peer: peer(),
            worker: self.name.to_string(),
            attempt,
            job: unit.job.to_bytes().into(),
            unit: unit.unit,
            reason: reason.into(),
            detail,
        };
        let answer =
            self.line.call(backoff, |link| async move { link.work().fail(request).await }).await?;
        // A request that the coordinator does not understand now will not be understood later.
        if matches!(answer, Ok(_) | Err(Code::InvalidArgument | Code::NotFound)) {
            self.queue.told();
        }
        Ok(())
    }

    // Prove.

    /// Takes tasks of proofs while there are any, and submits the answers.
    async fn keep_proving(&self) -> Result<Infallible, WorkerError> {
        /// The delay between two calls, so that small answers are batched.
        const LEAST: Duration = Duration::from_millis(20);
        let mut backoff = Backoff::default();
        let mut proofs = self.proofs.subscribe();
        let mut rests = self.queue.changes();
        loop {
            if self.provers.capacity() == 0 {
                self.stop_proving().await;
                return std::future::pending().await;
            }
            if self.queue.is_resting() {
                self.stop_proving().await;
            }
            while *proofs.borrow_and_update() == 0 || self.queue.is_resting() {
                tokio::select! { _ = proofs.changed() => {}, _ = rests.changed() => {} }
            }
            let mut news = self.provers.news();
            tokio::select! {
                biased;
                called = self.prove(&mut backoff, self.provers.capacity()) => called?,
                // Cancel the waiting call: there is an answer to submit.
                _ = news.changed() => {}
            }
            tokio::time::sleep(LEAST).await;
        }
    }

    /// Gives back all tasks of proofs at once.
    async fn stop_proving(&self) {
        const LAST_CALL: Duration = Duration::from_secs(2);
        let last_call = async {
            let mut news = self.provers.news();
            self.provers.drop_all();
            while !self.provers.in_hand(0).tasks.is_empty() && news.changed().await.is_ok() {}
            if *self.proofs.borrow() > 0 {
                self.prove(&mut Backoff::default(), 0).await?;
            }
            Ok::<(), WorkerError>(())
        };
        if !matches!(tokio::time::timeout(LAST_CALL, last_call).await, Ok(Ok(()))) {
            tracing::warn!("the coordinator did not hear that this worker proves no more");
        }
    }

    /// Makes one Prove call.
    async fn prove(&self, backoff: &mut Backoff, capacity: usize) -> Result<(), WorkerError> {
        let number = self.prove_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let InHand { tasks: mut holding, answers } = self.provers.in_hand(MOST_RESULTS);
        let mut room = MOST_MESSAGE_BYTES - (64 << 10);
        let mut handed_in = Vec::new();
        let mut sent = Vec::new();
        for (task, answer) in &answers {
            let Some(message) = answered(*task, answer) else { continue };
            let bytes = message.encoded_len();
            if bytes > room {
                // Submit it with the next call.
                holding.push(*task);
                continue;
            }
            room -= bytes;
            handed_in.push(*task);
            sent.push(message);
        }
        let request = v1::ProveRequest {
            peer: peer(),
            worker: self.name.to_string(),
            boot: self.boot,
            call: number,
            capacity: capacity as u32,
            holding,
            answers: sent,
            parts: true,
            heeds_full: true,
        };
        let answer = self
            .line
            .call(backoff, |link| async move { link.proving().prove(request).await })
            .await?;
        let Ok(response) = answer else { return Ok(()) };
        if !response.quarantined.is_empty() {
            return Err(WorkerError::Quarantined(response.quarantined));
        }
        self.provers.hear_unreadable(&response.unreadable);
        self.provers.handed_in(handed_in);
        self.provers.cancel(&response.cancel);
        let malformed =
            |error| WorkerError::Refused(self.line.address().clone(), format!("{error}"));
        let task = |task: v1::Task| Ok((task.task, TaskQuery::try_from(&task)?));
        let tasks: Result<Vec<_>, Malformed> = response.tasks.into_iter().map(task).collect();
        self.provers.take(tasks.map_err(malformed)?).map_err(WorkerError::Thread)?;
        self.proofs.send_replace(response.running_proofs);
        Ok(())
    }

    // Background tasks.

    /// Renews the certificate when half of its lifetime is over, and when it is not valid yet
    /// because a clock was set back, according to the coordinator or to the local clock.
    async fn keep_renewing(&self) -> Result<Infallible, WorkerError> {
        const AT_MOST: Duration = Duration::from_secs(3600);
        let mut is_asked = false;
        let mut is_behind = false;
        loop {
            let Security::Tls(authority, Some(credentials)) = self.line.security() else {
                return std::future::pending().await;
            };
            let renewal = credentials.renewal(now_ms()).filter(|renewal| {
                // Another certificate would not be valid yet either.
                !(is_behind && matches!(renewal, Renewal::ClockSetBack { .. }))
            });
            if is_asked || renewal.is_some() {
                match renew(
                    self.line.address(),
                    &credentials,
                    self.home.path(),
                    self.line.deadline(),
                )
                .await
                {
                    Ok(renewed) => {
                        match renewal {
                            Some(set_back @ Renewal::ClockSetBack { .. }) => {
                                tracing::warn!(
                                    "{set_back}: the certificate was not valid yet and was replaced"
                                );
                            }
                            _ if is_asked => tracing::warn!(
                                "the coordinator's clock was set back: the certificate was not valid yet and was replaced"
                            ),
                            _ => tracing::info!("the certificate was renewed"),
                        }
                        let ahead = renewed.renewal(now_ms());
                        is_behind = matches!(ahead, Some(Renewal::ClockSetBack { .. }));
                        if is_behind {
                            tracing::warn!(
                                "the clock of this machine is behind the coordinator's by minutes: set it"
                            );
                        }
                        self.line.secure(Security::Tls(authority, Some(Box::new(renewed))))?;
                    }
                    Err(error) => {
                        tracing::warn!(
                            "the certificate could not be renewed, trying again: {error}"
                        )
                    }
                }
            }
            // Try several times before the certificate expires, however short its lifetime.
            let left = Duration::from_millis(credentials.not_after_ms().saturating_sub(now_ms()));
            is_asked = tokio::select! {
                () = tokio::time::sleep((left / 8).clamp(Duration::from_secs(1), AT_MOST)) => false,
                () = self.line.not_valid_yet() => true,
            };
        }
    }

    /// Rests outside the configured hours and while the machine is too hot.
    async fn keep_watching_the_clock(&self) -> Infallible {
        const LOOK: Duration = Duration::from_secs(5);
        if self.rest == Rest::default() {
            return std::future::pending().await;
        }
        let mut pause = Pause::default();
        let mut resting = None;
        loop {
            let reason = pause.reason(&self.rest, &*self.around);
            match &reason {
                Some(why) if resting.is_none() => tracing::info!("resting: {why}"),
                None if resting.is_some() => tracing::info!("counting again"),
                _ => {}
            }
            self.queue.rest(reason.is_some());
            resting = reason;
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A rate limit of 20 syncs per second with short bursts.
#[derive(Debug, Default)]
struct SyncLimit {
    /// The time of the next sync if all syncs were evenly spaced.
    even: Option<tokio::time::Instant>,
}

impl SyncLimit {
    const INTERVAL: Duration = Duration::from_millis(50);
    const IN_A_ROW: u32 = 5;

    /// Records a sync.
    fn synced(&mut self, at: tokio::time::Instant) {
        self.even = Some(self.even.map_or(at, |even| even.max(at)) + Self::INTERVAL);
    }

    /// Returns when a sync that is wanted at `wanted` may be made.
    fn not_before(&self, wanted: tokio::time::Instant) -> tokio::time::Instant {
        let lead = Self::INTERVAL * (Self::IN_A_ROW - 1);
        self.even.map_or(wanted, |even| if even > wanted + lead { even - lead } else { wanted })
    }
}

/// Waits until the time returned by `due`, which is called again after each change.
async fn until(due: impl Fn() -> tokio::time::Instant, changes: &mut watch::Receiver<()>) {
    loop {
        changes.mark_unchanged();
        let at = due();
        if at <= tokio::time::Instant::now() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep_until(at) => return,
            _ = changes.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_may_come_in_a_row_but_no_more_than_20_a_second_for_long() {
        let began = tokio::time::Instant::now();
        let (mut limit, mut at, mut syncs) = (SyncLimit::default(), began, 0);
        // This worker wants to sync all the time.
        while at < began + Duration::from_secs(10) {
            at = limit.not_before(at);
            limit.synced(at);
            syncs += 1;
            if at == began {
                assert!(syncs <= SyncLimit::IN_A_ROW, "{syncs} at once");
            }
        }
        assert!((200..210).contains(&syncs), "{syncs}");
        // A worker that syncs rarely is never delayed.
        let later = at + Duration::from_secs(1);
        assert_eq!(limit.not_before(later), later);
    }
}
