//! A job opened on a device: its prefixes or its column sets.

use std::ops::Range;

use super::backend::Shape;
use super::device_kernel::{DeviceKernel, PrefixJob};
use super::fault::Fault;
use super::self_test::{MOST_TESTED_COLUMNS, self_test_sets};
use super::sets::{SetCounts, SetShape, SetTuning};
use crate::decomposition::Decomposition;
use crate::tally::{Parts, Tally};

/// A job opened on a device.
#[derive(Debug)]
pub struct DeviceJob<'a>(Work<'a>);

/// The subproblems of a job.
#[derive(Debug)]
pub(super) enum Work<'a> {
    Prefixes(Box<PrefixJob<'a>>),
    Sets(SetJob<'a>),
}

/// The shape and the tuning with which a kernel counts column sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetSettings {
    pub(super) shape: SetShape,
    pub(super) tuning: SetTuning,
    /// The number of columns that the shader is compiled for; 0 if the device has not passed the
    /// self-test with it, except during the test.
    columns: u32,
}

impl SetSettings {
    /// Returns the settings at the start.
    pub(super) const fn new(software: bool) -> Self {
        let shape = if software { SetShape::SOFTWARE } else { SetShape::DEFAULT };
        Self { shape, tuning: SetTuning::first(software), columns: 0 }
    }
}

/// Returns the number of columns to compile the shader for, so that it counts boards of size `n`
/// and those of the self-test. Fewer columns take less time.
fn columns_of_shader(n: usize) -> u32 {
    n.max(MOST_TESTED_COLUMNS).next_multiple_of(4) as u32
}

/// A job of column sets opened on a device.
#[derive(Debug)]
pub(super) struct SetJob<'a> {
    kernel: &'a mut DeviceKernel,
    decomposition: &'a Decomposition,
    counts: SetCounts,
}

impl<'a> SetJob<'a> {
    /// Prepares the device for a job, after a test with known answers if the shader is not compiled
    /// for its columns.
    ///
    /// # Errors
    /// The device fails, its memory is too small, or the shader counts no set of the job.
    pub(super) fn open(
        kernel: &'a mut DeviceKernel,
        decomposition: &'a Decomposition,
    ) -> Result<Self, Fault> {
        if !SetCounts::suits(decomposition) {
            return Err(Fault::Unsuited);
        }
        let columns = columns_of_shader(decomposition.job().problem().n());
        if kernel.sets.columns != columns {
            kernel.sets.columns = columns;
            self_test_sets(kernel).inspect_err(|_| kernel.sets.columns = 0)?;
        }
        Self::open_tested(kernel, decomposition)
    }

    /// Prepares the device for a job with at most as many columns as the shader is compiled for.
    ///
    /// # Errors
    /// As for [`Self::open`].
    fn open_tested(
        kernel: &'a mut DeviceKernel,
        decomposition: &'a Decomposition,
    ) -> Result<Self, Fault> {
        let most_bytes = kernel.backend.most_bytes();
        let SetSettings { shape, columns, .. } = kernel.sets;
        let backend = kernel.backend.sets().ok_or(Fault::Unsuited)?;
        let counts = SetCounts::open(backend, columns, shape, most_bytes, decomposition)?;
        Ok(Self { kernel, decomposition, counts })
    }

    fn count_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        let Self { kernel, decomposition, counts } = self;
        let DeviceKernel { backend, sets, .. } = &mut **kernel;
        let backend = backend.sets().ok_or(Fault::Unsuited)?;
        counts.count_ranges(backend, &mut sets.tuning, decomposition, ranges, should_continue)
    }
}

impl<'a> DeviceJob<'a> {
    pub(super) const fn new(work: Work<'a>) -> Self {
        Self(work)
    }

    /// Opens a job of column sets for the self-test.
    ///
    /// # Errors
    /// As for [`DeviceKernel::open`].
    pub(super) fn of_self_test(
        kernel: &'a mut DeviceKernel,
        decomposition: &'a Decomposition,
    ) -> Result<Self, Fault> {
        Ok(Self(Work::Sets(SetJob::open_tested(kernel, decomposition)?)))
    }

    /// Returns the shape of a job of prefixes: the kernel's shape, or a smaller one that fits.
    pub const fn shape(&self) -> Option<Shape> {
        match &self.0 {
            Work::Prefixes(job) => Some(job.shape()),
            Work::Sets(_) => None,
        }
    }

    /// Returns whether the shaders count any part of this job. The other parts are counted by a CPU
    /// kernel on the calling thread.
    pub fn suits(&self) -> bool {
        match &self.0 {
            Work::Prefixes(job) => job.suits(),
            Work::Sets(_) => true,
        }
    }

    /// Counts units and returns one tally for each, in the order of `units`. Stops with
    /// [`Fault::Stopped`] soon after `should_continue` returns false.
    ///
    /// # Errors
    /// The device fails; nothing that it counted in this call is valid then.
    pub fn count(
        &mut self,
        units: &[u64],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Tally>, Fault> {
        self.count_parts(units, should_continue)?.iter().map(|parts| Ok(parts.total()?)).collect()
    }

    /// Like [`Self::count`], itemised by weight.
    ///
    /// # Errors
    /// As for [`Self::count`].
    pub fn count_parts(
        &mut self,
        units: &[u64],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        let decomposition = self.decomposition();
        let ranges = units.iter().map(|&unit| decomposition.unit(unit)).collect();
        self.count_ranges(ranges, should_continue)
    }

    /// Like [`Self::count_parts`], for each [sub-range](Decomposition::sub_ranges) of each unit.
    ///
    /// # Errors
    /// As for [`Self::count`].
    pub fn count_sub_ranges(
        &mut self,
        units: &[u64],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<Parts>>, Fault> {
        let decomposition = self.decomposition();
        let sub_ranges = || units.iter().map(|&unit| decomposition.sub_ranges(unit));
        let mut parts =
            self.count_ranges(sub_ranges().flatten().collect(), should_continue)?.into_iter();
        Ok(sub_ranges().map(|ranges| parts.by_ref().take(ranges.len()).collect()).collect())
    }

    /// Counts ranges of prefixes or column sets, for example sub-ranges, itemised by weight, in the
    /// order of `ranges`.
    ///
    /// # Errors
    /// As for [`Self::count`].
    pub fn count_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Vec<Parts>, Fault> {
        match &mut self.0 {
            Work::Prefixes(job) => job.count_ranges(ranges, should_continue),
            Work::Sets(job) => job.count_ranges(ranges, should_continue),
        }
    }

    const fn decomposition(&self) -> &'a Decomposition {
        match &self.0 {
            Work::Prefixes(job) => job.decomposition,
            Work::Sets(job) => job.decomposition,
        }
    }
}
