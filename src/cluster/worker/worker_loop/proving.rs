//! The call Prove: a worker takes tasks of proofs and submits the answers.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prost::Message as _;

use super::WorkerLoop;
use crate::cluster::protocol::{
    MOST_MESSAGE_BYTES, MOST_RESULTS, Malformed, TaskQuery, answered, peer, v1,
};
use crate::cluster::worker::WorkerError;
use crate::cluster::worker::backoff::Backoff;
use crate::cluster::worker::provers::HeldTasks;

impl WorkerLoop {
    /// Takes tasks of proofs while there are any, and submits the answers.
    pub(super) async fn proving_loop(&self) -> Result<Infallible, WorkerError> {
        /// The shortest time between two calls with answers, so that small answers are batched, and
        /// between two calls without.
        const LEAST: Duration = Duration::from_millis(20);
        let mut backoff = Backoff::default();
        let (mut last_with_answers, mut last_without) = (None, None);
        let mut proofs = self.proofs.subscribe();
        let mut queue = self.queue.changes();
        loop {
            let last = if self.provers.has_answers() { last_with_answers } else { last_without };
            if let Some(last) = last {
                tokio::time::sleep_until(last + LEAST).await;
            }
            if self.provers.capacity() == 0 {
                self.stop_proving().await;
                return std::future::pending().await;
            }
            if self.queue.is_resting() {
                self.stop_proving().await;
            }
            while *proofs.borrow_and_update() == 0 || self.queue.is_resting() {
                tokio::select! { _ = proofs.changed() => {}, _ = queue.changed() => {} }
            }
            let mut changes = self.provers.changes();
            let now = Some(tokio::time::Instant::now());
            if self.provers.has_answers() {
                last_with_answers = now;
            } else {
                last_without = now;
            }
            let capacity = self.provers.give_back_surplus();
            tokio::select! {
                biased;
                called = self.prove(&mut backoff, capacity) => called?,
                // Cancel the waiting call: there is an answer to submit, or it asks for too much.
                _ = changes.changed() => {}
                () = self.provers.capacity_falls_below(capacity) => {}
            }
        }
    }

    /// Gives back all tasks of proofs at once.
    pub(super) async fn stop_proving(&self) {
        const LAST_CALL: Duration = Duration::from_secs(2);
        let last_call = async {
            let mut changes = self.provers.changes();
            self.provers.cancel_all();
            while !self.provers.held(0).tasks.is_empty() && changes.changed().await.is_ok() {}
            if *self.proofs.borrow() > 0 {
                self.prove(&mut Backoff::default(), 0).await?;
            }
            Ok::<(), WorkerError>(())
        };
        if !matches!(tokio::time::timeout(LAST_CALL, last_call).await, Ok(Ok(()))) {
            tracing::warn!(
                "the coordinator could not be notified that this worker has stopped proving"
            );
        }
    }

    /// Makes one Prove call.
    async fn prove(&self, backoff: &mut Backoff, capacity: usize) -> Result<(), WorkerError> {
        let number = self.prove_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let HeldTasks { tasks: mut holding, answers } = self.provers.held(MOST_RESULTS);
        let mut free_bytes = MOST_MESSAGE_BYTES - (64 << 10);
        let mut submitted = Vec::new();
        let mut sent = Vec::new();
        for (task, answer) in &answers {
            let Some(message) = answered(*task, answer) else { continue };
            let bytes = message.encoded_len();
            if bytes > free_bytes {
                // Submit it with the next call.
                holding.push(*task);
                continue;
            }
            free_bytes -= bytes;
            submitted.push(*task);
            sent.push(message);
        }
        let request = v1::ProveRequest {
            peer: peer(),
            worker: self.name.to_string(),
            boot: self.boot,
            call: number,
            capacity: capacity as u32,
            threads: self.provers.threads() as u32,
            holding,
            answers: sent,
            parts: true,
            heeds_full: true,
        };
        let answer = self
            .connection
            .call(backoff, |link| async move { link.proving().prove(request).await })
            .await?;
        let Ok(response) = answer else { return Ok(()) };
        if !response.quarantined.is_empty() {
            return Err(WorkerError::Quarantined(response.quarantined));
        }
        self.provers.log_unreadable(&response.unreadable);
        self.provers.remove_submitted(submitted);
        self.provers.cancel(&response.cancel);
        let malformed =
            |error| WorkerError::Refused(self.connection.address().clone(), format!("{error}"));
        let task = |task: v1::Task| Ok((task.task, TaskQuery::try_from(&task)?));
        let tasks: Result<Vec<_>, Malformed> = response.tasks.into_iter().map(task).collect();
        self.provers.add(tasks.map_err(malformed)?).map_err(WorkerError::Thread)?;
        self.proofs.send_replace(response.running_proofs);
        Ok(())
    }
}
