//! A count: its options, events, result and errors.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Duration;

use super::count_task::CountTask;
use super::progress::CountProgress;
use crate::board::Problem;
use crate::checkpoint::{CheckpointError, EnterError};
use crate::decomposition::{Decomposition, JobError, Scheme, Subproblems};
use crate::executor::{DeviceChoice, DeviceError};
use crate::kernel::{KernelError, KernelKind};
use crate::tally::TallyError;

/// The options of a count.
#[derive(Clone, Debug, Default)]
pub struct CountOptions {
    /// The CPU kernel; `None` for the fastest one on this machine.
    pub kernel: Option<KernelKind>,
    /// The subproblems; `None` for those of the kernel or, if that is not chosen either, for
    /// prefixes if a GPU takes part, and otherwise for those that the CPU counts fastest.
    pub subproblems: Option<Subproblems>,
    /// The number of threads; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
    /// The devices. If a kernel is chosen, `Auto` uses only the CPU.
    pub devices: DeviceChoice,
}

/// The result of a finished count.
#[derive(Clone, Debug)]
pub struct CountOutcome {
    /// The number of solutions (of completions, if squares were decided).
    pub solutions: u128,
    /// The number of placements that the kernel made; `None` if it does not count them.
    pub nodes: Option<u128>,
    /// The kernels that counted, joined by "+": that of the CPU, `wgsl` for shaders.
    pub kernel: String,
    /// The devices that counted: "cpu", and ids of adapters.
    pub devices: Vec<String>,
    /// The number of CPU threads that counted.
    pub threads: usize,
    /// The number of units of the job.
    pub units: u64,
    /// The number of units that an earlier session had finished.
    pub resumed_units: u64,
    /// The wall-clock time of this session.
    pub elapsed: Duration,
    /// Solutions a second in this session.
    pub rate_per_s: f64,
    /// The checks that the count has passed.
    pub checks: Vec<CountCheck>,
}

/// A check of a count. A count that fails one has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountCheck {
    /// The sums agree with their residues modulo two primes.
    Residues,
    /// The weighted sum, in which some orbits are found two or three times, is divisible by 3.
    DivisibleBy3,
    /// A sample of the column sets was counted again by a kernel that shares only their definition.
    SampledSets,
}

impl CountCheck {
    /// Returns the checks of a job's count by `kernels`.
    pub(super) fn of(decomposition: &Decomposition, kernels: &BTreeSet<String>) -> Vec<Self> {
        /// The sets of which a CPU kernel counts one again; a GPU does so for an eighth as many.
        const SETS_PER_SAMPLE: u64 = 512;
        /// Of so many times as many sets some are in the sample.
        const SURELY: u64 = 10;
        let by_gpu = |name: &String| name.starts_with("wgsl");
        let sampling = |name: &String| name.starts_with("sets") || by_gpu(name);
        let rate = SETS_PER_SAMPLE * if kernels.iter().any(by_gpu) { 8 } else { 1 };
        let mut checks = vec![Self::Residues];
        match decomposition.job().scheme() {
            Scheme::CentreCross => checks.push(Self::DivisibleBy3),
            Scheme::ColumnSets
                if decomposition.prefixes() >= SURELY * rate && kernels.iter().all(sampling) =>
            {
                checks.push(Self::SampledSets);
            }
            _ => {}
        }
        checks
    }

    /// Returns the name of the check in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Residues => "residues",
            Self::DivisibleBy3 => "divisible_by_3",
            Self::SampledSets => "sampled_sets",
        }
    }
}

impl fmt::Display for CountCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Residues => "residues modulo two primes agree",
            Self::DivisibleBy3 => "the sum of weights is divisible by 3",
            Self::SampledSets => "a sample of the column sets was counted again",
        })
    }
}

/// The error returned when a count fails.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The problem is too large.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The kernel cannot count it here.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The chosen devices cannot count it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device failed that was the only one to count.
    #[error("device {0} is disabled: {1}")]
    DeviceFault(String, String),
    /// The checkpoint cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Every kernel failed on a unit.
    #[error("unit {unit} cannot be counted here: {failures}")]
    Unit {
        /// The index of the unit.
        unit: u64,
        /// The failure of each kernel.
        failures: String,
    },
    /// The results of the units are inconsistent.
    #[error(transparent)]
    Units(#[from] EnterError),
    /// The total failed validation.
    #[error("the total: {0}")]
    Total(#[from] TallyError),
    /// A worker thread ended before its work was done; its own message was printed before.
    #[error("a counting thread ended unexpectedly; its unfinished unit was discarded")]
    WorkerLost,
    /// The callback requested a stop.
    #[error("stopped after {units_done} of {units} units")]
    Stopped {
        /// The number of units finished by then.
        units_done: u64,
        /// The number of units of the job.
        units: u64,
    },
}

/// A class of [`CountError`]s, which decides the exit code of a program, or the exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountErrorClass {
    /// The request is wrong.
    Usage,
    /// A kernel or a device is not available on this machine or in this build.
    NotAvailable,
    /// A check failed: do not use the count.
    CheckFailed,
    /// The checkpoint cannot be used.
    File,
    /// The callback requested a stop.
    Stopped,
}

impl CountError {
    /// Returns the class.
    pub const fn class(&self) -> CountErrorClass {
        match self {
            Self::Job(_)
            | Self::Kernel(KernelError::QueensOnly(..))
            | Self::Device(
                DeviceError::QueensOnly(_)
                | DeviceError::KernelWithoutCpu
                | DeviceError::AnotherScheme(_)
                | DeviceError::AnotherPlan(_),
            ) => CountErrorClass::Usage,
            Self::Kernel(KernelError::NotOnThisMachine(_))
            | Self::DeviceFault(..)
            | Self::Device(
                DeviceError::NoAdapter | DeviceError::NoSuchDevice(..) | DeviceError::NotBuilt,
            ) => CountErrorClass::NotAvailable,
            Self::Checkpoint(
                CheckpointError::Io { .. }
                | CheckpointError::InUse(_)
                | CheckpointError::Damaged { .. }
                | CheckpointError::AnotherJob { .. }
                | CheckpointError::FailedBefore(_),
            ) => CountErrorClass::File,
            Self::Checkpoint(
                CheckpointError::Refused { .. } | CheckpointError::Disputed { .. },
            )
            | Self::Unit { .. }
            | Self::Units(_)
            | Self::Total(_)
            | Self::WorkerLost => CountErrorClass::CheckFailed,
            Self::Stopped { .. } => CountErrorClass::Stopped,
        }
    }
}

/// Counts `problem`.
///
/// # Errors
/// The board is too large, the kernel cannot count it here, or validation of the result fails.
pub fn count(problem: &Problem, options: &CountOptions) -> Result<CountOutcome, CountError> {
    CountTask::plan(problem, options)?.run(|_| ControlFlow::Continue(()))
}

/// An event that a running count reports to its callback.
#[derive(Clone, Copy, Debug)]
pub enum CountEvent<'a> {
    /// The progress of the count.
    Progress(&'a CountProgress),
    /// A message for the user, in one line.
    Note(&'a str),
}

/// The result of a counted part. Its units are in its checkpoint.
#[derive(Clone, Debug)]
pub struct PartOutcome {
    /// The kernels that counted, as in [`CountOutcome`].
    pub kernel: String,
    /// The devices that counted.
    pub devices: Vec<String>,
    /// The number of units of the part.
    pub units: u64,
    /// The number of units that an earlier session had finished.
    pub resumed_units: u64,
    /// The wall-clock time of this session.
    pub elapsed: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Piece;

    #[test]
    fn every_kernel_counts_the_known_totals_on_any_number_of_threads() {
        let known = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680];
        for kernel in KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()) {
            for threads in [1, 3] {
                let options = CountOptions {
                    kernel: Some(kernel),
                    threads: NonZeroUsize::new(threads),
                    ..CountOptions::default()
                };
                for (n, solutions) in known.into_iter().enumerate() {
                    let outcome =
                        count(&Problem::empty(Piece::Queen, n), &options).expect("counts");
                    assert_eq!(outcome.solutions, solutions, "{kernel}, n = {n}");
                }
            }
        }
    }
}
