//! A thread that counts on a device.

use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::{Batch, Counter, DeviceLabel, UnitCount};
use super::cpu_thread::test_kernel;
use super::devices::Device;
use super::kernels::CpuKernels;
use super::source::{ExecutorEvent, ResultOf, UnitSource};
use crate::decomposition::{Decomposition, JobHash};
use crate::kernel::gpu::{DeviceJob, DeviceKernel, Fault, self_test};
use crate::kernel::{KernelKind, count_range};
use crate::tally::Parts;

/// Opens a device, tests it, and counts on it until there is no more work or the device fails.
pub(super) fn device_thread<S: UnitSource>(
    source: &S,
    kernels: &CpuKernels,
    device: Device,
    label: DeviceLabel,
) {
    if !source.wait_for_device_work() {
        return source.observe(ExecutorEvent::DeviceEnded(&label, None));
    }
    let mut thread = DeviceThread::new(source, label.clone());
    let work = || {
        let mut kernel = device.open()?;
        self_test(&mut kernel, false)?;
        source.observe(ExecutorEvent::DeviceReady(&label));
        thread.work(&mut kernel)
    };
    // A panic in a driver's wrapper disables the device, but does not end the count.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let fault = outcome.unwrap_or_else(|_| Err(Fault::Lost("its driver panicked".into()))).err();
    let may_affect_more = fault.as_ref().is_some_and(|fault| *fault != Fault::Unsuited);
    if let Some(batch) = thread.held.take() {
        source.give_back(&batch, Some(label.number));
    }
    source.observe(ExecutorEvent::DeviceEnded(&label, fault));
    if may_affect_more
        && !source.is_stopped()
        && let Some(&kind) = kernels.kinds().first()
    {
        test_kernel(source, kernels, kind, kernels.kinds());
    }
}

/// A thread that counts on a device.
pub(crate) struct DeviceThread<'a, S: UnitSource> {
    source: &'a S,
    by: Counter,
    number: usize,
    /// The batch that was taken and is not finished.
    held: Option<Batch<S::Unit>>,
    /// The jobs of which a unit was compared with the CPU's count.
    checked: HashSet<JobHash>,
}

impl<'a, S: UnitSource> DeviceThread<'a, S> {
    pub(crate) fn new(source: &'a S, label: DeviceLabel) -> Self {
        let number = label.number;
        Self { source, by: Counter::Device(label), number, held: None, checked: HashSet::new() }
    }

    /// Counts until there is no more work.
    ///
    /// # Errors
    /// The device fails.
    pub(crate) fn work(&mut self, kernel: &mut DeviceKernel) -> Result<(), Fault> {
        while let Some(batch) = self.take() {
            let decomposition = Arc::clone(&batch.decomposition);
            match kernel.open(&decomposition) {
                Ok(mut job) if job.suits() => self.count_image(&mut job, &decomposition)?,
                Err(fault) if fault != Fault::Unsuited => return Err(fault),
                _ => {
                    self.held = None;
                    self.source.unsuited(&batch, self.number)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the held batch, or else takes one.
    fn take(&mut self) -> Option<Batch<S::Unit>> {
        if self.held.is_none() {
            self.held = self.source.take_for_device(self.number);
        }
        self.held.clone()
    }

    /// Counts batches as long as they are of this image of this job: the device then keeps its
    /// state.
    fn count_image(
        &mut self,
        job: &mut DeviceJob<'_>,
        decomposition: &Arc<Decomposition>,
    ) -> Result<(), Fault> {
        while let Some(batch) = self.take() {
            if !Arc::ptr_eq(&batch.decomposition, decomposition) {
                return Ok(());
            }
            let began = Instant::now();
            match self.count(job, &batch, began) {
                Ok(results) => {
                    let elapsed_s = began.elapsed().as_secs_f64();
                    self.source.finish(&batch, results, &self.by, elapsed_s);
                }
                // Another thread was faster, or the threads are to end.
                Err(Fault::Stopped) => self.source.give_back(&batch, Some(self.number)),
                Err(fault) => return Err(fault),
            }
            self.held = None;
        }
        Ok(())
    }

    fn count(
        &mut self,
        job: &mut DeviceJob<'_>,
        batch: &Batch<S::Unit>,
        began: Instant,
    ) -> Result<Vec<ResultOf<S>>, Fault> {
        let mut counts: Vec<S::Count> =
            batch.units.iter().map(|unit| self.source.begin(batch, unit, &self.by)).collect();
        let ranges: Vec<Vec<Range<u64>>> = counts.iter().map(UnitCount::ranges).collect();
        let counted = job.count_ranges(ranges.concat(), &|| self.source.is_needed(batch))?;
        let elapsed = began.elapsed();
        let each = elapsed.div_f64(batch.units.len().max(1) as f64);
        let mut counted = &counted[..];
        for ((unit, count), ranges) in batch.units.iter().zip(&mut counts).zip(&ranges) {
            let Some((of_unit, rest)) = counted.split_at_checked(ranges.len()) else {
                return Err(Fault::Lost("it returned too few results".into()));
            };
            counted = rest;
            self.check_first(batch, S::index(unit), (ranges, of_unit), elapsed)?;
            for (number, (range, parts)) in ranges.iter().zip(of_unit).enumerate() {
                // The time of the unit is added once.
                let took = if number == 0 { each } else { Duration::ZERO };
                count.add(number, range.end - range.start, parts, took)?;
            }
        }
        counts.into_iter().map(|count| Ok(count.finish()?)).collect()
    }

    /// Recounts the device's first whole unit of a job on the CPU, unless that would take
    /// unreasonably long: the self-test does not exercise the memory of this job nor, for prefixes,
    /// its variant of the shader.
    ///
    /// # Errors
    /// The two counts differ, or the CPU cannot count the unit.
    fn check_first(
        &mut self,
        batch: &Batch<S::Unit>,
        unit: u64,
        (ranges, found): (&[Range<u64>], &[Parts]),
        elapsed: Duration,
    ) -> Result<(), Fault> {
        /// The longest time that a CPU thread may spend on checking a device.
        const LONGEST_CHECK_S: f64 = 5.0;
        let whole = batch.decomposition.unit(unit);
        let subproblems: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        if subproblems != whole.end - whole.start || !self.checked.insert(batch.job) {
            return Ok(());
        }
        // A unit that takes a device seconds takes a CPU thread longer.
        let unit_s = self.source.cpu_unit_s(batch).unwrap_or(elapsed.as_secs_f64());
        if unit_s > LONGEST_CHECK_S {
            return Ok(());
        }
        let mut parts = Parts::default();
        found.iter().try_for_each(|range| parts.merge(range))?;
        let found = parts.total()?.thirds();
        let piece = batch.decomposition.job().problem().piece();
        let kernel = KernelKind::fastest(piece).build(piece);
        let mut kernel = kernel.map_err(|error| Fault::Refused(error.to_string()))?;
        let expected = count_range(&mut *kernel, &batch.decomposition, whole)?.thirds();
        if found == expected {
            return Ok(());
        }
        Err(Fault::Miscounts(format!("unit {unit}: {found} thirds; the CPU counts {expected}")))
    }
}
