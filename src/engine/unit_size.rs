//! The size of the units of a job: from the forecast work and the usual rate of the kernel.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use super::count::{CountError, CountOptions};
use super::estimate::{Forecast, forecast};
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, Scheme, SetFamily, Subproblems};
use crate::executor::{DeviceChoice, DeviceError, find_devices};
use crate::kernel::KernelKind;

/// Returns the job with units of one prefix, and the kernel to count it.
pub(super) fn job(
    problem: &Problem,
    options: &CountOptions,
) -> Result<(Job, KernelKind), CountError> {
    let fastest = || match options.subproblems {
        None => fastest_kernel(problem, &options.devices),
        Some(Subproblems::Prefixes) => KernelKind::fastest(problem.piece()),
        Some(Subproblems::ColumnSets) => {
            KernelKind::fastest_for(Scheme::ColumnSets, problem.piece())
        }
    };
    let kernel = options.kernel.unwrap_or_else(fastest);
    let scheme = match options.subproblems {
        Some(Subproblems::ColumnSets) => Scheme::ColumnSets,
        Some(Subproblems::Prefixes) if kernel.is_for_sets() => {
            return Err(DeviceError::AnotherPlan(kernel).into());
        }
        _ => kernel.scheme(problem),
    };
    let job = Job::new(problem.clone(), scheme, None, 1)?;
    kernel.build(problem.piece())?;
    Ok((job, kernel))
}

/// Returns the fastest CPU kernel for a problem. Where a GPU takes part it is a kernel for
/// prefixes: how fast GPUs count column sets has not been measured.
fn fastest_kernel(problem: &Problem, devices: &DeviceChoice) -> KernelKind {
    let kernel = KernelKind::fastest_on_cpu(problem);
    if kernel.is_for_sets() && (is_too_small_for_sets(problem) || has_gpu(problem, devices)) {
        return KernelKind::fastest(problem.piece());
    }
    kernel
}

/// Returns whether the decided squares of a problem of queens leave so little to search that the
/// time for all column sets, however little each of them has, would dominate.
pub(super) fn is_too_small_for_sets(problem: &Problem) -> bool {
    /// The empty board of size 18 has 180,000.
    const LEAST_NODES_PER_SET: f64 = 20_000.0;
    if problem.is_empty() {
        return false;
    }
    let decompose = |scheme| {
        let job = Job::new(problem.clone(), scheme, None, 1).ok()?;
        Some(Decomposition::new(job))
    };
    let sets: u64 = decompose(Scheme::ColumnSets)
        .map_or(0, |decomposition| decomposition.set_families().iter().map(SetFamily::sets).sum());
    let nodes = decompose(Scheme::best(problem)).map_or(0.0, |prefixes| {
        forecast(&prefixes, STARTS, DIVES, SEED).nodes(0..prefixes.prefixes())
    });
    nodes < sets as f64 * LEAST_NODES_PER_SET
}

/// Returns whether the CPU alone would need so long, more than ten seconds, that a GPU pays off.
pub(super) const fn is_worth_a_gpu(problem: &Problem) -> bool {
    problem.n() >= 20
}

/// Returns whether a GPU takes part in a count on these devices.
pub(crate) fn has_gpu(problem: &Problem, devices: &DeviceChoice) -> bool {
    match devices {
        DeviceChoice::Auto => {
            cfg!(feature = "gpu")
                && is_worth_a_gpu(problem)
                && find_devices(devices).is_ok_and(|found| !found.is_empty())
        }
        DeviceChoice::These(_) => devices.has_adapters(),
    }
}

/// The prefixes that a forecast samples, and the dives from each.
const STARTS: u64 = 4096;
const DIVES: u32 = 4;
/// The seed of forecasts. Any constant works: the same job gets the same units.
const SEED: u64 = 2026;

/// The minimum number of units of a job, if it has as many prefixes: enough for some dozens of
/// threads.
pub(super) const FEWEST_UNITS: u64 = 64;
/// The number of units beyond which units take longer than a second: a checkpoint of some
/// megabytes.
const MANY_UNITS: u64 = 1 << 16;
/// The maximum number of units of a job. In longer jobs units take longer, but their checkpoints
/// have partial results.
const MOST_UNITS: u64 = 1 << 20;

/// Returns the approximate number of nodes (placements without look-ahead) that one thread makes a
/// second. It determines the unit size, and predicts the time left until there is a measurement.
/// Measured at n = 16 and 17 on a 3 GHz server core.
pub(super) const fn usual_nodes_per_s(kernel: KernelKind) -> f64 {
    match kernel {
        KernelKind::SetsAvx512 => 4e9,
        KernelKind::SetsAvx2 => 3.2e9,
        KernelKind::Sets => 2.1e9,
        KernelKind::Avx512 => 3e9,
        KernelKind::Avx2 => 1.2e9,
        KernelKind::Scalar => 1.5e8,
        KernelKind::Textbook => 1.5e8,
        KernelKind::Generic => 8e7,
        KernelKind::Reference => 3e6,
    }
}

/// Returns the number of units for a job with this many nodes: a unit takes a second, up to ten
/// seconds in jobs of days, more in very long jobs, and less where many threads would otherwise
/// wait for the last units.
pub(super) fn units_for(nodes: f64, kernel: KernelKind, threads: NonZeroUsize) -> u64 {
    const UNITS_PER_THREAD: u64 = 16;
    const LONG_UNIT_S: u64 = 10;
    // The cast saturates.
    let a_second_each = (nodes / usual_nodes_per_s(kernel)) as u64;
    let units = a_second_each.min(MANY_UNITS.max(a_second_each / LONG_UNIT_S));
    units.max(threads.get() as u64 * UNITS_PER_THREAD).clamp(FEWEST_UNITS, MOST_UNITS)
}

/// Returns the forecast of a queens job, if the job is long enough that some milliseconds for the
/// forecast do not matter.
pub(super) fn forecast_if_long(
    decomposition: &Decomposition,
    kernel: KernelKind,
) -> Option<Forecast> {
    let problem = decomposition.job().problem();
    let shortest = match kernel {
        KernelKind::Avx512
        | KernelKind::Avx2
        | KernelKind::Sets
        | KernelKind::SetsAvx2
        | KernelKind::SetsAvx512 => 18,
        KernelKind::Scalar | KernelKind::Textbook => 15,
        KernelKind::Generic | KernelKind::Reference => 10,
    };
    if problem.piece() != Piece::Queen || problem.n() < shortest {
        return None;
    }
    let prefixes = with_prefixes(decomposition);
    let forecast = forecast(&prefixes, STARTS, DIVES, SEED);
    if !decomposition.has_sets() {
        return Some(forecast);
    }
    let nodes = forecast.nodes(0..prefixes.prefixes());
    Some(Forecast::even(nodes, decomposition.prefixes()))
}

/// Returns the forecast of a queens job with prefixes; `None` for column sets and other pieces.
pub(super) fn forecast_of_prefixes(decomposition: &Decomposition) -> Option<Forecast> {
    let is_forecast =
        !decomposition.has_sets() && decomposition.job().problem().piece() == Piece::Queen;
    is_forecast.then(|| forecast(decomposition, STARTS, DIVES, SEED))
}

/// Returns the decomposition itself if it has prefixes; otherwise that of the same problem into the
/// prefixes whose nodes forecasts are made of.
pub(super) fn with_prefixes(decomposition: &Decomposition) -> Cow<'_, Decomposition> {
    if !decomposition.has_sets() {
        return Cow::Borrowed(decomposition);
    }
    let problem = decomposition.job().problem();
    let job = Job::new(problem.clone(), Scheme::best(problem), None, 1);
    Cow::Owned(Decomposition::new(job.expect("the size and the piece are those of a job")))
}

/// Returns the number of threads: one a core unless the options specify it.
pub(super) fn threads(options: &CountOptions) -> NonZeroUsize {
    options
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}
