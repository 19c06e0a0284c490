//! The calls Complete and Fail: a worker submits results and reports units that it cannot count.

use std::convert::Infallible;

use tonic::Code;

use super::WorkerLoop;
use crate::cluster::protocol::v1::{self, Verdict};
use crate::cluster::protocol::{MOST_MESSAGE_BYTES, MOST_RESULTS, peer};
use crate::cluster::worker::WorkerError;
use crate::cluster::worker::backoff::Backoff;
use crate::cluster::worker::work_queue::FailedUnit;

impl WorkerLoop {
    /// Submits results and reports units that cannot be counted.
    pub(super) async fn delivery_loop(&self) -> Result<Infallible, WorkerError> {
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
                        "the coordinator cannot parse the result of unit {}; it is dropped",
                        batch[0].1.unit
                    );
                    self.remove_submitted(&batch);
                }
                Err(Code::InvalidArgument | Code::OutOfRange) => most = batch.len() / 2,
                Err(_) => {}
            }
        }
    }

    fn remove_submitted<'a>(&self, results: impl IntoIterator<Item = &'a (u64, v1::Result)>) {
        let submitted =
            results.into_iter().map(|(number, result)| (*number, (result.attempt, result.unit)));
        let (numbers, units): (Vec<_>, Vec<_>) = submitted.unzip();
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
            .connection
            .call(backoff, |link| async move { link.work().complete(request).await })
            .await?;
        let response = match answer {
            Ok(response) => response,
            Err(code) => return Ok(Err(code)),
        };
        let verdicts = || batch.iter().zip(response.verdicts());
        for ((_, result), verdict) in verdicts() {
            let unit = result.unit;
            match verdict {
                Verdict::Conflict => {
                    tracing::warn!(
                        unit,
                        "another result is recorded: the coordinator's arbiter will decide"
                    )
                }
                Verdict::Refused | Verdict::Quarantined => {
                    tracing::error!(unit, "the coordinator has quarantined this worker");
                }
                _ => tracing::debug!(unit, verdict = verdict.as_str_name(), "submitted"),
            }
        }
        let with_verdict = verdicts().filter(|(_, verdict)| *verdict != Verdict::Unspecified);
        let submitted: Vec<_> = with_verdict.map(|(entry, _)| entry).collect();
        let without_verdict = batch.len() - submitted.len();
        self.remove_submitted(submitted);
        if without_verdict > 0 {
            tracing::error!(
                without_verdict,
                "the coordinator returned no verdict for some results; they are sent again"
            );
            tokio::time::sleep(backoff.next(fastrand::f64())).await;
        }
        Ok(Ok(()))
    }

    async fn fail(&self, failed: &FailedUnit, backoff: &mut Backoff) -> Result<(), WorkerError> {
        let FailedUnit { attempt, unit, reason, detail } = failed.clone();
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
        let answer = self
            .connection
            .call(backoff, |link| async move { link.work().fail(request).await })
            .await?;
        // A request that the coordinator does not understand now will not be understood later.
        if matches!(answer, Ok(_) | Err(Code::InvalidArgument | Code::NotFound)) {
            self.queue.pop_failed();
        }
        Ok(())
    }
}
