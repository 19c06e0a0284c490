//! The calls Sync and Listen: a worker reports what it holds and can do, and receives leases.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::WorkerLoop;
use crate::cluster::campaign::{Assignment, possession_message};
use crate::cluster::protocol::{self, MOST_HELD, messages, peer, v1};
use crate::cluster::worker::WorkerError;
use crate::cluster::worker::backoff::Backoff;
use crate::cluster::worker::executors::DecompositionRequest;
use crate::cluster::worker::work_queue::QueueReport;
use crate::decomposition::JobHash;
use crate::executor::{SHADERS, processor};

/// The outcome of a sync.
#[derive(Clone, Copy, Debug)]
struct SyncOutcome {
    /// The number of new leases.
    new: usize,
    running_jobs: u32,
    running_proofs: u32,
    next: Duration,
    /// True if the coordinator held the answer back for at least half of the requested wait.
    waited: bool,
}

impl WorkerLoop {
    /// Syncs repeatedly. Returns when there is nothing to do, if the worker is to end then.
    pub(super) async fn sync_loop(
        &self,
        draining: bool,
        exit_when_idle: bool,
    ) -> Result<(), WorkerError> {
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
            let is_idle = report.held.is_empty() && report.capacity > 0;
            let waits = if is_idle { wait } else { Duration::ZERO };
            limit.synced(tokio::time::Instant::now());
            let synced = tokio::select! {
                biased;
                synced = self.sync(&mut backoff, report, (draining, waits)) => synced?,
                () = self.until_urgent(), if !waits.is_zero() => None,
            };
            let Some(synced) = synced else { continue };
            let at = tokio::time::Instant::now();
            let can_prove = synced.running_proofs > 0 && self.provers.capacity() > 0;
            let busy = synced.running_jobs > 0 || can_prove;
            let nothing = !busy && self.queue.is_empty() && self.outbox.len() == 0;
            idle = if nothing { idle + 1 } else { 0 };
            if exit_when_idle && idle >= 2 {
                return Ok(());
            }
            // Unless the coordinator itself waits for work, ask less and less often while no lease
            // arrives that can be counted here.
            let useful = synced.new > 0 && !self.queue.take_failed_lately();
            early = if useful || synced.waited { EARLY } else { (2 * early).min(synced.next) };
            let latest = at + synced.next.mul_f64(0.8 + 0.4 * fastrand::f64());
            let due = || {
                let early = if self.queue.was_acknowledged() { Duration::ZERO } else { early };
                let needs_work = self.queue.needs_work() && !draining;
                let ends = exit_when_idle && nothing;
                let wanted = if self.queue.is_urgent() {
                    at
                } else if needs_work || ends {
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
        MOST.min(self.connection.deadline() / 2)
    }

    /// Waits until the worker should sync at once.
    async fn until_urgent(&self) {
        let mut changes = self.queue.changes();
        while !self.queue.is_urgent() && changes.changed().await.is_ok() {}
    }

    /// Listens for recounts that are reserved for this worker while it counts, and triggers a sync
    /// for each.
    pub(super) async fn listen_loop(&self) -> Infallible {
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
            match self
                .connection
                .try_call(|link| async move { link.work().listen(request).await })
                .await
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
        report: QueueReport,
        (draining, wait): (bool, Duration),
    ) -> Result<Option<SyncOutcome>, WorkerError> {
        let began = Instant::now();
        let held: HashSet<u64> = report.held.iter().map(|held| held.lease.attempt).collect();
        // At most 10 s.
        let wait_ms = wait.as_millis() as u32;
        let request = v1::SyncRequest { wait_ms, ..self.sync_request(report, draining) };
        let answer = self
            .connection
            .call(backoff, |link| async move { link.work().sync(request).await })
            .await?;
        let Ok(response) = answer else { return Ok(None) };
        if !response.quarantined.is_empty() {
            return Err(WorkerError::Quarantined(response.quarantined));
        }
        let malformed =
            |error| WorkerError::Refused(self.connection.address().clone(), format!("{error}"));
        let desired = messages::desired(response.desired).map_err(malformed)?;
        let kept: HashSet<u64> = desired.iter().map(|lease| lease.attempt).collect();
        self.queue.cancel(
            response.cancel.into_iter().chain(held.iter().copied().filter(|a| !kept.contains(a))),
        );
        // A lease that was held when the request was sent may be finished by now; it must not start
        // again.
        let (known, new): (Vec<Assignment>, Vec<Assignment>) =
            desired.into_iter().partition(|lease| held.contains(&lease.attempt));
        let synced = SyncOutcome {
            new: new.len(),
            running_jobs: response.running_jobs,
            running_proofs: response.running_proofs,
            next: Duration::from_millis(response.next_sync_ms.clamp(50, 600_000).into()),
            waited: !wait.is_zero() && began.elapsed() >= wait / 2,
        };
        self.queue.update(known);
        self.accept(new, response.jobs);
        self.proofs.send_replace(response.running_proofs);
        Ok(Some(synced))
    }

    fn accept(&self, leases: Vec<Assignment>, jobs: Vec<v1::Job>) {
        let texts: HashMap<JobHash, String> = jobs
            .into_iter()
            .filter_map(|job| Some((protocol::job_hash(&job.job).ok()?, job.text)))
            .collect();
        self.queue.assign(leases.iter().cloned());
        for Assignment { attempt, job, mirrored, .. } in leases {
            self.executors.decompose(DecompositionRequest {
                attempt,
                job,
                mirrored,
                text: texts.get(&job).cloned(),
            });
        }
    }

    pub(super) fn sync_request(&self, report: QueueReport, draining: bool) -> v1::SyncRequest {
        let QueueReport { capacity, kernels, units_per_s, held, devices, cpu_threads } = report;
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
            temperature_c: self.environment.temperature_c(),
        });
        let others = devices.into_iter().map(|device| v1::Device {
            id: device.id,
            name: device.name,
            kernel: SHADERS.to_owned(),
            capacity: 1,
            fault: device.fault.unwrap_or_default(),
            temperature_c: None,
        });
        // Results without a signature, which an earlier version left in the outbox, are accepted
        // only from a worker without a key.
        let (result_key, key_signature) = if self.outbox.has_unsigned() {
            (Vec::new(), Vec::new())
        } else {
            let proof = self.key.sign(&possession_message(self.name.as_str()));
            (self.key.public().into(), proof.into())
        };
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
            result_key,
            key_signature,
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
    fn syncs_may_burst_but_are_limited_to_20_per_second() {
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
