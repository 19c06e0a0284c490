//! The growth of the time of a count with the size of the board.
//!
//! Prefixes take a time in proportion to their nodes. Column sets take a time that grows by a usual
//! factor with each two sizes, which `benches/diary.md` has; the number of the sets is known.

use super::unit_size::forecast_of_prefixes;
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, JobError, Scheme, SetFamily, Subproblems};

/// The standard deviation of the logarithm of the time of the same count within an hour, on a
/// virtual machine that shares caches with others (`benches/diary.md`).
pub(super) const NOISE: f64 = 0.1;
/// The standard error of [`set_growth`]. It adds up over the sizes.
pub(super) const SET_GROWTH_ERROR: f64 = 0.3;
/// The standard error of the logarithm of the time of a node, from one board size to the next of
/// the same parity. It adds up over the sizes.
pub(super) const PREFIX_GROWTH_ERROR: f64 = 0.1;

/// The growth of the time of a count of the empty board of queens from one size to a larger one, on
/// the same device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountGrowth {
    /// The logarithm of the factor by which the time grows.
    pub ln: f64,
    /// The standard error of that logarithm, including the spread of measured times.
    pub error: f64,
}

/// Returns the growth of the time of a count from board size `from` to board size `to`, which is
/// not smaller.
///
/// # Errors
/// A board is too large to count.
pub fn count_growth(
    from: usize,
    to: usize,
    subproblems: Subproblems,
) -> Result<CountGrowth, JobError> {
    if from == to {
        return Ok(CountGrowth { ln: 0.0, error: NOISE });
    }
    let steps = (to - from) as f64 / 2.0;
    let (ln, error) = match subproblems {
        Subproblems::Prefixes => {
            let ([nodes, error], [of_from, error_of_from]) = (nodes(to)?, nodes(from)?);
            let error = error.hypot(error_of_from);
            ((nodes / of_from).ln(), error.hypot(steps * PREFIX_GROWTH_ERROR))
        }
        Subproblems::ColumnSets => {
            let ln = (sets(to)? / sets(from)?).ln() + growth_of_sets(from, to);
            (ln, steps * SET_GROWTH_ERROR)
        }
    };
    Ok(CountGrowth { ln, error: error.hypot(NOISE) })
}

/// Returns the forecast nodes of the empty board of a size, and their relative error.
fn nodes(n: usize) -> Result<[f64; 2], JobError> {
    let problem = Problem::empty(Piece::Queen, n);
    let scheme = Scheme::best(&problem);
    let decomposition = Decomposition::new(Job::new(problem, scheme, None, 1)?);
    let forecast = forecast_of_prefixes(&decomposition).expect("the pieces are queens");
    Ok([forecast.nodes(0..decomposition.prefixes()), forecast.relative_error()])
}

/// Returns the number of column sets of the empty board of a size that are not images of others.
fn sets(n: usize) -> Result<f64, JobError> {
    let job = Job::new(Problem::empty(Piece::Queen, n), Scheme::ColumnSets, None, 1)?;
    Ok(Decomposition::new(job).set_families().iter().map(sets_that_count).sum())
}

/// Returns the number of sets of a family that are not images of others, from about 2^16 of them.
pub(super) fn sets_that_count(family: &SetFamily) -> f64 {
    let stride = family.sets().div_ceil(1 << 16).max(1);
    let ranks = (0..family.sets()).step_by(usize::try_from(stride).unwrap_or(usize::MAX));
    let (looked_at, counting) = ranks.fold((0_u64, 0_u64), |(all, counting), rank| {
        (all + 1, counting + u64::from(family.set(rank).is_some()))
    });
    family.sets() as f64 * counting as f64 / looked_at.max(1) as f64
}

/// Returns the logarithm of the growth of a column set's time from board size `n` to `n + 2`,
/// as `benches/diary.md` has it.
pub(super) const fn set_growth(n: usize) -> f64 {
    match n {
        ..=16 => 1.7,
        17 => 2.2,
        18 => 2.4,
        19 => 2.7,
        _ => 2.8,
    }
}

/// Returns the logarithm of the growth of a column set's time between two sizes: by two sizes each,
/// and half as much for a last single size.
fn growth_of_sets(from: usize, to: usize) -> f64 {
    let pairs = (from..to).step_by(2);
    pairs.map(|n| set_growth(n) * if n + 2 > to { 0.5 } else { 1.0 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_that_count_are_counted() {
        let job = |n| Job::new(Problem::empty(Piece::Queen, n), Scheme::ColumnSets, None, 1);
        for n in [8, 11, 16] {
            let decomposition = Decomposition::new(job(n).expect("a job"));
            let all = decomposition.sets(0..decomposition.prefixes()).count();
            let sum: f64 = decomposition.set_families().iter().map(sets_that_count).sum();
            assert!((sum - all as f64).abs() < 0.5, "n = {n}");
        }
    }

    #[test]
    fn sets_grow_by_two_sizes_and_by_half_of_it_for_one() {
        for (from, to, ln) in
            [(16, 16, 0.0), (16, 18, 1.7), (18, 22, 5.2), (18, 19, 1.2), (18, 21, 3.8)]
        {
            assert!((growth_of_sets(from, to) - ln).abs() < 1e-12, "{from} to {to}");
        }
    }

    #[test]
    fn the_growth_is_that_of_measured_counts_within_its_error() {
        // Seconds of one thread from docs/performance.md.
        for (subproblems, from, from_s, to, to_s) in [
            (Subproblems::ColumnSets, 18, 1.76, 19, 12.8),
            (Subproblems::ColumnSets, 19, 12.8, 20, 82.7),
            (Subproblems::ColumnSets, 18, 1.76, 20, 82.7),
            (Subproblems::ColumnSets, 19, 12.8, 21, 616.0),
            (Subproblems::ColumnSets, 20, 82.7, 22, 4080.0),
            (Subproblems::Prefixes, 18, 2.85, 19, 19.0),
            (Subproblems::Prefixes, 19, 19.0, 20, 181.0),
        ] {
            let growth = count_growth(from, to, subproblems).expect("small boards");
            let measured = f64::ln(to_s / from_s);
            assert!(
                (growth.ln - measured).abs() < 2.0 * growth.error,
                "{subproblems:?} from {from} to {to}: {growth:?} for {measured}"
            );
        }
    }

    #[test]
    fn the_same_size_takes_the_same_time() {
        for subproblems in [Subproblems::Prefixes, Subproblems::ColumnSets] {
            let growth = count_growth(20, 20, subproblems).expect("a small board");
            assert_eq!(growth, CountGrowth { ln: 0.0, error: NOISE });
        }
    }
}
