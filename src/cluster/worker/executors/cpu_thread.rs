//! A thread that counts on the CPU.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::{Context, result, sub_ranges};
use crate::cluster::protocol::v1::FailReason;
use crate::cluster::worker::kernels::KernelCache;
use crate::cluster::worker::work_queue::Batch;
use crate::engine::known_answers;
use crate::kernel::{KernelKind, count_parts};

/// A CPU thread.
pub(super) struct CpuThread<'a> {
    context: &'a Context,
    /// The processor's name, as reported in the source of a result.
    device: &'a str,
    kernel_cache: KernelCache,
    /// Units since the last known-answer test.
    since_test: u32,
}

impl<'a> CpuThread<'a> {
    pub(super) fn new(context: &'a Context, device: &'a str) -> Self {
        Self { context, device, kernel_cache: KernelCache::default(), since_test: 0 }
    }

    pub(super) fn work(&mut self) {
        while let Some((batch, kind)) = self.context.queue.take_for_cpu() {
            if self.count_or_fail(&batch, kind).is_err() {
                return;
            }
        }
    }

    /// Counts units, or records in the queue that they cannot be counted.
    ///
    /// # Errors
    /// The kernel fails the known-answer test: no result of this machine can be trusted.
    pub(super) fn count_or_fail(
        &mut self,
        batch: &Batch,
        kind: KernelKind,
    ) -> Result<(), KernelMiscounted> {
        /// Units between two known-answer tests.
        const UNITS_BETWEEN_TESTS: u32 = 4096;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.count(batch, kind)));
        let failed = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(CountFailure::KernelMiscounted)) => return Err(KernelMiscounted),
            Ok(Err(CountFailure::Failed(detail))) => Some((FailReason::Check, detail)),
            Err(_) => Some((FailReason::Device, format!("kernel {kind} panicked"))),
        };
        self.since_test += 1;
        if let Some((reason, detail)) = &failed {
            let units: Vec<u64> = batch.units.iter().map(|unit| unit.unit).collect();
            tracing::error!(?units, job = %batch.job, "a unit cannot be counted: {detail}");
            self.context.queue.fail(batch, *reason, detail);
            // The kernel may still have buffered work from that unit.
            self.kernel_cache.clear();
        }
        if failed.is_some() || self.since_test >= UNITS_BETWEEN_TESTS {
            self.since_test = 0;
            if let Err(why) = known_answers(kind) {
                tracing::error!("{why}");
                self.context.queue.mark_broken(why);
                return Err(KernelMiscounted);
            }
        }
        Ok(())
    }

    fn count(&mut self, batch: &Batch, kind: KernelKind) -> Result<(), CountFailure> {
        let decomposition = &batch.decomposition;
        let piece = decomposition.job().problem().piece();
        let began = Instant::now();
        let mut elsewhere = Duration::ZERO;
        let mut results = Vec::new();
        for unit in &batch.units {
            let mut counted = Vec::new();
            for sub_range in sub_ranges(decomposition, unit) {
                let kernel = self.kernel_cache.kernel(kind, piece).map_err(CountFailure::failed)?;
                counted.push(
                    count_parts(kernel, decomposition, sub_range).map_err(CountFailure::failed)?,
                );
                if batch.is_whole() {
                    elsewhere += self.count_pending_spot()?;
                }
            }
            let elapsed_s = began.elapsed().saturating_sub(elsewhere).as_secs_f64();
            let source = (kind.name(), self.device);
            results.push(result(unit, &counted, elapsed_s, source).map_err(CountFailure::failed)?);
        }
        let elapsed_s = began.elapsed().saturating_sub(elsewhere).as_secs_f64();
        self.context.finish(batch, None, elapsed_s, results);
        Ok(())
    }

    /// Runs a pending spot check, if there is one, and returns how long it took.
    fn count_pending_spot(&mut self) -> Result<Duration, KernelMiscounted> {
        let began = Instant::now();
        let Some((batch, kind)) = self.context.queue.take_spot_for_cpu() else {
            return Ok(Duration::ZERO);
        };
        self.count_or_fail(&batch, kind)?;
        Ok(began.elapsed())
    }
}

/// The error returned when a kernel fails the known-answer test.
#[derive(Debug)]
pub(super) struct KernelMiscounted;

/// The reason why units were not counted.
enum CountFailure {
    Failed(String),
    KernelMiscounted,
}

impl CountFailure {
    fn failed(why: impl std::fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }
}

impl From<KernelMiscounted> for CountFailure {
    fn from(_: KernelMiscounted) -> Self {
        Self::KernelMiscounted
    }
}
