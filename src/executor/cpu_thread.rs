//! A CPU thread: it counts units, each in pieces.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::batch::{Batch, Counter, UnitCount};
use super::kernels::CpuKernels;
use super::pieces::{PieceSize, Pieces};
use super::source::{ExecutorEvent, ResultOf, UnitSource};
use crate::board::Piece;
use crate::kernel::{Kernel, KernelKind, count_parts};

/// A CPU thread.
pub(crate) struct CpuThread<'a, S: UnitSource> {
    source: &'a S,
    kernels: &'a CpuKernels,
    piece_size: PieceSize,
    /// The thread's kernels, each with the pieces that it counts.
    own: HashMap<(KernelKind, Piece), (Box<dyn Kernel>, Pieces)>,
    /// Units since the last test with known answers.
    since_test: u32,
    /// True while a unit is counted in the middle of another one.
    is_nested: bool,
}

/// The reason why a unit is not counted.
enum Failed {
    /// The threads are to end.
    Stopped,
    /// The kernel failed.
    Kernel(String),
}

impl Failed {
    fn kernel(error: impl std::fmt::Display) -> Self {
        Self::Kernel(error.to_string())
    }
}

impl<S: UnitSource> Drop for CpuThread<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Otherwise its unit would never be counted.
            self.source.observe(ExecutorEvent::ThreadLost);
        }
    }
}

impl<'a, S: UnitSource> CpuThread<'a, S> {
    pub(crate) fn new(source: &'a S, kernels: &'a CpuKernels, piece_size: PieceSize) -> Self {
        Self { source, kernels, piece_size, own: HashMap::new(), since_test: 0, is_nested: false }
    }

    /// Counts units until none are left or the source is stopped.
    pub(super) fn work(&mut self) {
        while let Some(batch) = self.source.take_for_cpu() {
            self.count(&batch);
        }
    }

    /// Counts a batch of one unit by the first kernel that does not fail, once. If a kernel fails,
    /// gives the unit back.
    pub(crate) fn count(&mut self, batch: &Batch<S::Unit>) {
        let Some(unit) = batch.units.first() else { return };
        let key = (batch.job, S::index(unit));
        let kind = match self.kernels.pick(key, &batch.kernels) {
            Ok(kind) => kind,
            Err(reasons) => {
                self.kernels.forget(key);
                return self.source.cannot_count(batch, reasons);
            }
        };
        let by = Counter::Cpu(kind);
        let counted = catch_unwind(AssertUnwindSafe(|| self.attempt(batch, unit, kind, &by)));
        match counted.unwrap_or_else(|_| Err(Failed::kernel("it panicked"))) {
            Ok((result, elapsed_s)) => {
                self.kernels.forget(key);
                self.source.finish(batch, vec![result], &by, elapsed_s);
                self.test_from_time_to_time(kind, batch);
            }
            Err(Failed::Stopped) => self.source.give_back(batch, None),
            Err(Failed::Kernel(why)) => {
                // It may still buffer work of the unit.
                self.own.retain(|(of, _), _| *of != kind);
                // While the kernel is tested, nobody may conclude that all work is done.
                self.source.observe(ExecutorEvent::KernelTestBegins);
                let failure = self.kernels.fail(key, kind, &why, &batch.kernels);
                self.source.observe(ExecutorEvent::KernelFailed(failure));
                self.source.give_back(batch, None);
            }
        }
    }

    /// Counts a unit. Returns its result, and the time in seconds that it took.
    fn attempt(
        &mut self,
        batch: &Batch<S::Unit>,
        unit: &S::Unit,
        kind: KernelKind,
        by: &Counter,
    ) -> Result<(ResultOf<S>, f64), Failed> {
        let decomposition = &*batch.decomposition;
        let key = (kind, decomposition.job().problem().piece());
        let mut count = self.source.begin(batch, unit, by);
        let mut elapsed_s = 0.0;
        let ranges = count.ranges();
        let end = ranges.last().map_or(0, |range| range.end);
        for (number, range) in ranges.into_iter().enumerate() {
            let mut first = range.start;
            while first < range.end {
                if self.source.is_stopped() {
                    return Err(Failed::Stopped);
                }
                let (kernel, pieces) = self.kernel(key)?;
                let piece = pieces.next(range.end - range.start, range.end - first);
                let began = Instant::now();
                let parts = count_parts(&mut **kernel, decomposition, first..first + piece)
                    .map_err(Failed::kernel)?;
                let elapsed = began.elapsed();
                pieces.record(piece, elapsed);
                count.add(number, piece, &parts, elapsed).map_err(Failed::kernel)?;
                elapsed_s += elapsed.as_secs_f64();
                first += piece;
                if first < end {
                    self.source.progress(&count);
                    self.count_between();
                }
            }
        }
        Ok((count.finish().map_err(Failed::kernel)?, elapsed_s))
    }

    /// Counts a unit that is to be counted in the middle of another one, if there is one.
    fn count_between(&mut self) {
        if !self.is_nested
            && let Some(short) = self.source.take_between()
        {
            self.is_nested = true;
            self.count(&short);
            self.is_nested = false;
        }
    }

    fn kernel(
        &mut self,
        key: (KernelKind, Piece),
    ) -> Result<&mut (Box<dyn Kernel>, Pieces), Failed> {
        use std::collections::hash_map::Entry;
        Ok(match self.own.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let kernel = self.kernels.make(key.0, key.1).map_err(Failed::kernel)?;
                place.insert((kernel, Pieces::new(self.piece_size)))
            }
        })
    }

    fn test_from_time_to_time(&mut self, kind: KernelKind, batch: &Batch<S::Unit>) {
        const UNITS_BETWEEN_TESTS: u32 = 4096;
        self.since_test += 1;
        if self.since_test >= UNITS_BETWEEN_TESTS {
            self.since_test = 0;
            self.test(kind, &batch.kernels);
        }
    }

    /// Tests a kernel with known answers.
    pub(crate) fn test(&self, kind: KernelKind, candidates: &[KernelKind]) {
        test_kernel(self.source, self.kernels, kind, candidates);
    }
}

/// Tests a kernel with known answers.
pub(super) fn test_kernel<S: UnitSource>(
    source: &S,
    kernels: &CpuKernels,
    kind: KernelKind,
    candidates: &[KernelKind],
) {
    source.observe(ExecutorEvent::KernelTestBegins);
    source.observe(
        kernels
            .test(kind, candidates)
            .map_or(ExecutorEvent::KernelPassed, ExecutorEvent::KernelFailed),
    );
}
