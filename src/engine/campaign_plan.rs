//! Planning of jobs for many machines.

use super::unit_size::{
    FEWEST_UNITS, forecast_if_long, forecast_of_prefixes, is_too_small_for_sets, usual_nodes_per_s,
};
use crate::board::Problem;
use crate::decomposition::{Decomposition, Job, JobError, Scheme, Subproblems};
use crate::kernel::KernelKind;

/// Returns the subproblems by which CPUs with vector instructions count a problem fastest.
pub fn fastest_subproblems(problem: &Problem) -> Subproblems {
    // Not the kernels of this machine: a plan must not depend on where it was made.
    let with_sets = KernelKind::SetsAvx512.is_fastest_for(problem);
    if with_sets && !is_too_small_for_sets(problem) {
        Subproblems::ColumnSets
    } else {
        Subproblems::Prefixes
    }
}

/// Divides `problem` into units for many machines, identically on each. A unit takes about a second
/// of one thread with the fastest kernel; in jobs of over a million units it takes up to 6 seconds,
/// so that even a slow core finishes it within half a minute, and more where a job would otherwise
/// have over a hundred million units.
///
/// # Errors
/// The board is too large, or its pieces have no column sets.
pub fn plan_for_campaign(
    problem: &Problem,
    subproblems: Subproblems,
) -> Result<Decomposition, JobError> {
    // The kernel with the usual rate that sizes the units.
    let (scheme, kernel) = match subproblems {
        Subproblems::Prefixes => (Scheme::best(problem), KernelKind::Avx512),
        Subproblems::ColumnSets => (Scheme::ColumnSets, KernelKind::SetsAvx512),
    };
    let decomposition = Decomposition::new(Job::new(problem.clone(), scheme, None, 1)?);
    let units = forecast_if_long(&decomposition, kernel).map_or(FEWEST_UNITS, |forecast| {
        units_for_campaign(forecast.nodes(0..decomposition.prefixes()) / usual_nodes_per_s(kernel))
    });
    let size = decomposition.prefixes().div_ceil(units);
    Ok(decomposition.with_unit_prefixes(size))
}

/// Returns the number of units of a job that takes one thread this many seconds.
fn units_for_campaign(seconds: f64) -> u64 {
    const UNIT_S: f64 = 1.25;
    const LONG_UNIT_S: f64 = 6.0;
    const MANY_UNITS: f64 = 1e6;
    const MOST_UNITS: u64 = 100_000_000;
    let units = (seconds / UNIT_S).min(MANY_UNITS.max(seconds / LONG_UNIT_S));
    // The cast saturates.
    (units as u64).clamp(FEWEST_UNITS, MOST_UNITS)
}

/// Returns the seconds that a campaign needs for a count by the usual rates of its workers' kernels
/// for prefixes (for column sets, those with the same instructions), each with the number of its
/// threads; `None` for other pieces, for boards that are too large, and without a thread.
pub fn usual_campaign_time(
    problem: &Problem,
    subproblems: Subproblems,
    workers: &[(KernelKind, u32)],
) -> Option<f64> {
    let rate = |kernel: KernelKind| match subproblems {
        Subproblems::Prefixes => usual_nodes_per_s(kernel),
        Subproblems::ColumnSets => usual_nodes_per_s(kernel.for_sets()),
    };
    let nodes_per_s: f64 =
        workers.iter().map(|(kernel, threads)| rate(*kernel) * f64::from(*threads)).sum();
    let job = Job::new(problem.clone(), Scheme::best(problem), None, 1).ok()?;
    let decomposition = Decomposition::new(job);
    let nodes = forecast_of_prefixes(&decomposition)?.nodes(0..decomposition.prefixes());
    (nodes_per_s > 0.0).then(|| nodes / nodes_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Square};

    #[test]
    fn units_take_a_second_or_several_in_very_long_jobs() {
        assert_eq!(units_for_campaign(0.0), FEWEST_UNITS);
        assert_eq!(units_for_campaign(1000.0), 800);
        assert_eq!(units_for_campaign(1.25e6), 1_000_000);
        assert_eq!(units_for_campaign(3e6), 1_000_000);
        assert_eq!(units_for_campaign(3e8), 50_000_000);
        assert_eq!(units_for_campaign(1e15), 100_000_000);
    }

    #[test]
    fn large_boards_of_queens_are_counted_by_column_sets() {
        let fastest = |n| fastest_subproblems(&Problem::empty(Piece::Queen, n));
        assert_eq!(fastest(17), Subproblems::Prefixes);
        assert_eq!(fastest(18), Subproblems::ColumnSets);
        assert_eq!(fastest(33), Subproblems::Prefixes);
        let rooks = Problem::empty(Piece::Rook, 20);
        assert_eq!(fastest_subproblems(&rooks), Subproblems::Prefixes);
        assert!(plan_for_campaign(&rooks, Subproblems::ColumnSets).is_err());
        // Little is left to search.
        let queens = [0, 1, 2, 3, 16, 17, 18, 19].map(|row| Square::new(row, 2 * row % 20));
        let decided =
            Problem::new(Piece::Queen, 20, queens.to_vec(), Vec::new()).expect("on the board");
        assert_eq!(fastest_subproblems(&decided), Subproblems::Prefixes);
    }

    #[test]
    fn the_units_of_a_very_large_board_are_numbered_without_being_listed() {
        let problem = Problem::empty(Piece::Queen, 28);
        let planned = plan_for_campaign(&problem, Subproblems::ColumnSets).expect("small enough");
        assert!(planned.units() > 10_000_000, "{}", planned.units());
        assert!(!planned.unit(planned.units() - 1).is_empty());
        assert_eq!(Subproblems::of(planned.job()), Subproblems::ColumnSets);
    }
}
