//! The size of the units of a job: from the forecast work and the usual rate of the kernel.

use std::num::NonZeroUsize;

use super::count::{CountError, CountOptions};
use super::estimate::{Forecast, forecast};
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, JobError, Scheme};
use crate::kernel::KernelKind;

/// Returns the job with units of one prefix, and the kernel to count it.
pub(super) fn job(
    problem: &Problem,
    options: &CountOptions,
) -> Result<(Job, KernelKind), CountError> {
    let kernel = options.kernel.unwrap_or_else(|| KernelKind::fastest(problem.piece()));
    kernel.build(problem.piece())?;
    Ok((Job::new(problem.clone(), kernel.scheme(problem), None, 1)?, kernel))
}

/// The minimum number of units of a job, if it has as many prefixes: enough for some dozens of
/// threads.
pub(super) const FEWEST_UNITS: u64 = 64;
/// The maximum number of units of a job: a checkpoint of some megabytes.
const MOST_UNITS: u64 = 1 << 16;

/// Returns the approximate number of nodes (placements without look-ahead) that one thread makes a
/// second. It determines the unit size, and predicts the time left until there is a measurement.
/// Measured at n = 16 and 17 on a 3 GHz server core.
pub(super) const fn usual_nodes_per_s(kernel: KernelKind) -> f64 {
    match kernel {
        KernelKind::Avx512 => 3e9,
        KernelKind::Avx2 => 1.2e9,
        KernelKind::Scalar => 1.5e8,
        KernelKind::Textbook => 1.5e8,
        KernelKind::Generic => 8e7,
        KernelKind::Reference => 3e6,
    }
}

/// Divides `problem` into units for many machines, identically on each: a unit takes about a second
/// of one thread with the fastest kernel, or more in jobs that would otherwise have over a million
/// units.
///
/// # Errors
/// The board is too large.
pub fn plan_for_campaign(problem: &Problem) -> Result<Decomposition, JobError> {
    const UNIT_S: f64 = 1.25;
    const MOST_UNITS: u64 = 1_000_000;
    let job = Job::new(problem.clone(), Scheme::best(problem), None, 1)?;
    let decomposition = Decomposition::new(job);
    // Not the kernel of this machine: the units must not depend on where they were planned.
    let kernel = KernelKind::Avx512;
    let units = forecast_if_long(&decomposition, kernel).map_or(FEWEST_UNITS, |forecast| {
        let nodes = forecast.nodes(0..decomposition.prefixes());
        // The cast saturates.
        ((nodes / usual_nodes_per_s(kernel) / UNIT_S) as u64).clamp(FEWEST_UNITS, MOST_UNITS)
    });
    let size = decomposition.prefixes().div_ceil(units);
    Ok(decomposition.with_unit_prefixes(size))
}

/// Returns the number of units for a job with this many nodes: a unit takes a second, or more in
/// very long jobs, and less where many threads would otherwise wait for the last units.
pub(super) fn units_for(nodes: f64, kernel: KernelKind, threads: NonZeroUsize) -> u64 {
    const UNITS_PER_THREAD: u64 = 16;
    // The cast saturates.
    let a_second_each = (nodes / usual_nodes_per_s(kernel)) as u64;
    a_second_each.max(threads.get() as u64 * UNITS_PER_THREAD).clamp(FEWEST_UNITS, MOST_UNITS)
}

/// Returns the forecast of a queens job, if the job is long enough that some milliseconds for the
/// forecast do not matter.
pub(super) fn forecast_if_long(
    decomposition: &Decomposition,
    kernel: KernelKind,
) -> Option<Forecast> {
    const STARTS: u64 = 4096;
    const DIVES: u32 = 4;
    /// Any constant works: the same job gets the same units.
    const SEED: u64 = 2026;
    let problem = decomposition.job().problem();
    let shortest = match kernel {
        KernelKind::Avx512 | KernelKind::Avx2 => 18,
        KernelKind::Scalar | KernelKind::Textbook => 15,
        KernelKind::Generic | KernelKind::Reference => 10,
    };
    (problem.piece() == Piece::Queen && problem.n() >= shortest)
        .then(|| forecast(decomposition, STARTS, DIVES, SEED))
}

/// Returns the number of threads: one a core unless the options specify it.
pub(super) fn threads(options: &CountOptions) -> NonZeroUsize {
    options
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}
