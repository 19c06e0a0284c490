//! Estimates of the number of solutions by annealed importance sampling, for boards that are too
//! large to count.
//!
//! A *run* (Neal, "Annealed importance sampling", 2001) begins with a random permutation of n
//! queens and ends, nearly always, with a solution. Between them it goes up a ladder of inverse
//! temperatures 0 = β₀ < β₁ < … and makes some steps of a [`SwapChain`] on each rung. The product
//! of exp(−(βₖ − βₖ₋₁) · energy) over the rungs is the weight of the run, or 0 if it does not end
//! in a solution. Its expectation is exactly the number of solutions divided by n!, however few the
//! steps are; more steps only reduce its variance. The logarithm of the weight is nearly normal,
//! with a variance of 7 to 12 n / sweeps for n from 27 to 1000, and 22 n / sweeps for n = 12, where
//! a *sweep* is n steps (measured with 8 n sweeps, 40 to 4000 runs).
//!
//! Zhang and Ma ("Counting solutions for the N-queens and Latin-square problems by Monte Carlo
//! simulations", 2009) estimated the numbers of large boards by simulations, too.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::count::CountOptions;
use super::estimate::Mean;
use super::swap_chain::SwapChain;
use super::unit_size::threads;

/// The largest board of [`estimate_by_annealing`].
pub const MAX_ANNEALING_SIZE: usize = 1000;

/// The error returned for a board that is too large for [`estimate_by_annealing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("n = {0} is too large for an estimate; n goes from 0 to {MAX_ANNEALING_SIZE}")]
pub struct TooLarge(pub usize);

/// The result of [`estimate_by_annealing`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnnealingEstimate {
    /// The board size.
    pub n: usize,
    /// The natural logarithm of the number of solutions, and the standard error of this logarithm.
    /// It is −∞ with an infinite error if no run ended in a solution.
    pub ln_solutions: Mean,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs of equal weight that would be as precise: the square of the sum of the
    /// weights, divided by the sum of their squares (Kish's effective sample size).
    pub effective_runs: f64,
    /// The sweeps of a run, each of about n steps.
    pub sweeps: usize,
}

impl AnnealingEstimate {
    /// Returns γₙ = ln n − ln Q(n) / n, where Q(n) is the number of solutions, for n from 1.
    ///
    /// It converges to a constant γ: Q(n) = ((1 + o(1)) n exp(−γ))ⁿ (Simkin, "The number of
    /// n-queens configurations", 2021), which is between 1.944000752 and 1.944001082 (Nobel,
    /// Agrawal and Boyd, "Computing tighter bounds on the n-queens constant via Newton's method",
    /// 2022).
    pub fn gamma(&self) -> Mean {
        let n = self.n as f64;
        let Mean { mean, error, values } = self.ln_solutions;
        Mean { mean: n.ln() - mean / n, error: error / n, values }
    }
}

/// The inverse temperature up to which the ladder rises evenly.
///
/// The dissipation is least if the rate of β is inversely proportional to √(v τ), where v is the
/// variance of the energy and τ its autocorrelation time (Sivak and Crooks, "Thermodynamic metrics
/// and optimal paths", 2012). Measured for n = 50 and 1000, √(v τ / n) is from 0.32 to 0.38 for β
/// from 0.5 to 3.5, and from there it falls by 0.5 to 0.7 per unit of β in the exponent, because v
/// is about 2.6 n exp(−β).
const EVEN: f64 = 4.0;

/// Returns the inverse temperature at a height from 0 to 1 of the ladder: a linear rise to
/// [`EVEN`], and from there one whose rate grows as exp((β − [`EVEN`]) / 2).
fn inverse_temperature(n: usize, height: f64) -> f64 {
    // The mean energy at the top, 2.6 n exp(−β), is 0.0024, so that few runs end without a
    // solution.
    let top = (n as f64).ln() + 7.0;
    let length = EVEN + 2.0 * (1.0 - ((EVEN - top) / 2.0).exp());
    let position = height * length;
    if position <= EVEN { position } else { EVEN - 2.0 * (1.0 - (position - EVEN) / 2.0).ln() }
}

/// Makes a run, and returns the logarithm of its weight: −∞ if it does not end in a solution.
fn run(n: usize, sweeps: usize, seed: u64, index: u64) -> f64 {
    /// The rungs of the ladder in a sweep. The energy is correlated over at least a fifth of a
    /// sweep.
    const RUNGS: usize = 4;
    if n < 2 {
        return 0.0;
    }
    // The generator maps similar seeds to similar states, but its outputs are not similar.
    let seed = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut rng = Rng::with_seed(Rng::with_seed(seed).u64(..));
    let mut chain = SwapChain::new(n, &mut rng);
    let (mut beta, mut ln_weight) = (0.0, 0.0);
    let rungs = RUNGS * sweeps;
    for rung in 1..=rungs {
        let next = inverse_temperature(n, rung as f64 / rungs as f64);
        ln_weight -= (next - beta) * chain.energy() as f64;
        beta = next;
        chain.advance(beta, n.div_ceil(RUNGS), &mut rng);
    }
    if chain.energy() == 0 { ln_weight } else { f64::NEG_INFINITY }
}

/// Returns the logarithm of the mean of some weights, of which the logarithms are given, with its
/// standard error, and the effective number of weights.
///
/// The error is the larger one of two. The first is that of the jackknife. It is too small if the
/// logarithms spread widely, because the largest weights are then missing from most samples; the
/// second is that of a log-normal distribution with the variance of the logarithms, together with
/// that of the share of weights that are not 0. With 16 to 64 normal logarithms of a variance from
/// 0.1 to 1.5, [`Mean::interval`] with this error contains the truth in 92 to 94 of 100 cases
/// (simulated).
fn ln_mean(ln_weights: &[f64]) -> (Mean, f64) {
    let count = ln_weights.len() as f64;
    let logarithms = || ln_weights.iter().copied().filter(|ln| ln.is_finite());
    let largest = logarithms().fold(f64::NEG_INFINITY, f64::max);
    let positive = logarithms().count() as f64;
    let values = ln_weights.len();
    if positive < 2.0 {
        let mean = largest - count.ln();
        return (Mean { mean, error: f64::INFINITY, values }, positive);
    }
    // Relative to the largest, so that no exponential overflows.
    let weights: Vec<f64> = ln_weights.iter().map(|ln| (ln - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    // The sums of the other weights, without a subtraction that would cancel their digits.
    let mut others = vec![0.0; values];
    for order in [false, true] {
        let mut so_far = 0.0;
        for index in 0..values {
            let index = if order { values - 1 - index } else { index };
            others[index] += so_far;
            so_far += weights[index];
        }
    }
    let without =
        others.iter().map(|others: &f64| (others.max(f64::MIN_POSITIVE) / (count - 1.0)).ln());
    let jackknife = variance(without) * (count - 1.0).powi(2) / count;
    let spread = variance(logarithms());
    let log_normal = spread / count + spread.powi(2) / (2.0 * (count - 1.0));
    let missing = (count - positive) / (positive * count);
    let error = jackknife.max(log_normal + missing).sqrt();
    (Mean { mean: largest + (sum / count).ln(), error, values }, sum * sum / squares)
}

/// Returns the variance of the distribution of two or more values.
fn variance(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)
}

/// Returns the natural logarithm of n!.
fn ln_factorial(n: usize) -> f64 {
    (1..=n).map(|factor| (factor as f64).ln()).sum()
}

/// Returns the estimate from the logarithms of the weights of some runs.
fn estimate_of(n: usize, sweeps: usize, ln_weights: &[f64]) -> AnnealingEstimate {
    let (mut ln_solutions, effective_runs) = ln_mean(ln_weights);
    ln_solutions.mean += ln_factorial(n);
    AnnealingEstimate { n, ln_solutions, runs: ln_weights.len() as u64, effective_runs, sweeps }
}

/// Returns the sweeps of a run: those with which 32 runs fit into the time on a usual machine, but
/// at least 8 n and at most 64 n. With 8 n the logarithm of the weight has a variance of 1 to 1.5;
/// beyond 64 n, more runs are as good as longer ones. Only if there were more than 4096 runs they
/// are longer, so that the memory for their weights stays small.
fn usual_sweeps(n: usize, threads: NonZeroUsize, time: Duration) -> usize {
    const STEPS_PER_S: f64 = 2.5e7;
    let size = n.max(1);
    let sweeps = STEPS_PER_S * threads.get() as f64 * time.as_secs_f64() / size as f64;
    // The casts saturate.
    let with_runs = |runs: f64| (sweeps / runs) as usize;
    with_runs(32.0).clamp(8 * size, 64 * size).max(with_runs(4096.0))
}

/// Estimates the number of solutions of n queens on the empty board by annealed importance sampling
/// on the threads of the options for about `time`, and for at least 16 runs of 8 n sweeps: for n =
/// 1000 this takes about five seconds of one core.
///
/// The same seed, time and number of threads give the same runs; how many of them fit into the time
/// depends on the machine.
///
/// # Errors
/// The board is larger than [`MAX_ANNEALING_SIZE`].
pub fn estimate_by_annealing(
    n: usize,
    options: &CountOptions,
    time: Duration,
    seed: u64,
) -> Result<AnnealingEstimate, TooLarge> {
    /// The minimum number of runs.
    const LEAST_RUNS: u64 = 16;
    if n > MAX_ANNEALING_SIZE {
        return Err(TooLarge(n));
    }
    let threads = threads(options);
    let sweeps = usual_sweeps(n, threads, time);
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let ln_weights = Mutex::new(Vec::new());
    let make_runs = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        // A run that was begun is always finished, so that the choice of runs does not depend on
        // their weights.
        if index >= LEAST_RUNS && began.elapsed() >= time {
            return;
        }
        let ln_weight = run(n, sweeps, seed, index);
        let mut ln_weights = ln_weights.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ln_weights.push((index, ln_weight));
    };
    std::thread::scope(|scope| {
        // If the system cannot create more threads, the running ones make the runs.
        for _ in 1..threads.get() {
            if std::thread::Builder::new().spawn_scoped(scope, make_runs).is_err() {
                break;
            }
        }
        make_runs();
    });
    let mut ln_weights = ln_weights.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Sums do not depend on the order in which the threads finish.
    ln_weights.sort_unstable_by_key(|(index, _)| *index);
    let ln_weights: Vec<f64> = ln_weights.into_iter().map(|(_, ln_weight)| ln_weight).collect();
    Ok(estimate_of(n, sweeps, &ln_weights))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oeis::{Sequence, lookup};

    /// Returns the estimate from a number of runs.
    fn estimate(n: usize, sweeps: usize, runs: u64, seed: u64) -> AnnealingEstimate {
        let ln_weights: Vec<f64> = (0..runs).map(|index| run(n, sweeps, seed, index)).collect();
        estimate_of(n, sweeps, &ln_weights)
    }

    fn ln_published(n: usize) -> f64 {
        (lookup(Sequence::Total, n).expect("a published value") as f64).ln()
    }

    /// Returns the leading terms of the logarithm of the number of solutions: n (ln n − γ).
    fn leading_terms(n: usize) -> f64 {
        n as f64 * ((n as f64).ln() - 1.944_001)
    }

    #[test]
    fn the_mean_weight_is_the_share_of_solutions_even_in_short_runs() {
        for n in [0, 1, 4, 5, 6, 7, 8] {
            let found = estimate(n, 12, 40_000, 1);
            let Mean { mean, error, .. } = found.ln_solutions;
            assert!(error < 0.05 && (mean - ln_published(n)).abs() <= 4.0 * error, "{found:?}");
        }
    }

    #[test]
    fn a_board_without_solutions_has_no_run_that_ends_in_one() {
        for n in [2, 3] {
            let Mean { mean, error, .. } = estimate(n, 20, 16, 1).ln_solutions;
            assert_eq!((mean, error), (f64::NEG_INFINITY, f64::INFINITY), "n = {n}");
        }
    }

    #[test]
    fn nine_of_ten_intervals_contain_the_number_of_solutions() {
        /// Estimates of each size and length.
        const ESTIMATES: u64 = 60;
        let mut inside = Vec::new();
        // The variance of the logarithm of a weight is 1.5 and 0.4.
        for (sweeps_per_n, runs) in [(8, 16), (30, 20)] {
            for n in 9..=14 {
                for seed in 0..ESTIMATES {
                    let found = estimate(n, sweeps_per_n * n, runs, seed);
                    let [least, most] = found.ln_solutions.interval();
                    inside.push((least..=most).contains(&ln_published(n)));
                }
            }
        }
        let count = inside.iter().filter(|inside| **inside).count();
        assert!(10 * count >= 9 * inside.len(), "{count} of {}", inside.len());
    }

    #[test]
    fn the_number_of_solutions_of_100_queens_has_the_proved_leading_terms() {
        let found = estimate(100, 1600, 32, 1);
        // From n = 27 to 1000 the number of solutions is about 6.4 √n exp(n (ln n − γ)).
        let second_order = (6.4 * 10.0_f64).ln();
        let Mean { mean, error, .. } = found.ln_solutions;
        assert!(error < 0.25, "{found:?}");
        assert!((mean - leading_terms(100) - second_order).abs() < 4.0 * error, "{found:?}");
        let gamma = found.gamma();
        let off = 1.944_001 - gamma.mean - second_order / 100.0;
        assert!(off.abs() < 4.0 * gamma.error, "{gamma:?}");
    }

    #[test]
    fn the_error_of_a_mean_is_at_least_those_of_the_jackknife_and_of_a_log_normal_distribution() {
        let (equal, effective) = ln_mean(&[2000.0; 16]);
        assert_eq!((equal.mean, equal.error, effective), (2000.0, 0.0, 16.0));
        // The mean of 1 and 3 is 2, with a relative standard error of 1/2.
        let (found, effective) = ln_mean(&[0.0, 3.0_f64.ln()]);
        assert!((found.mean - 2.0_f64.ln()).abs() < 1e-12 && (effective - 1.6).abs() < 1e-12);
        assert!(found.error >= 0.5, "{found:?}");
        // One weight that outweighs all others.
        let (found, effective) = ln_mean(&[-2000.0, -2000.0, 0.0]);
        assert!(found.error > 500.0 && (effective - 1.0).abs() < 1e-12, "{found:?}");
        // Half of the weights are 0: the mean has a relative standard error of 1/4 or so.
        let half: Vec<f64> =
            (0..16).map(|i| if i % 2 == 0 { 0.0 } else { f64::NEG_INFINITY }).collect();
        let (found, effective) = ln_mean(&half);
        assert!((found.mean - 0.5_f64.ln()).abs() < 1e-12 && (effective - 8.0).abs() < 1e-12);
        assert!((0.25..0.3).contains(&found.error), "{found:?}");
    }

    #[test]
    fn the_ladder_rises_from_0_to_where_nearly_all_permutations_are_solutions() {
        for n in [2, 33, 1000] {
            let betas: Vec<f64> =
                (0..=400).map(|rung| inverse_temperature(n, f64::from(rung) / 400.0)).collect();
            assert!(betas[0] == 0.0 && betas.is_sorted_by(|a, b| a < b), "n = {n}");
            assert!((betas[400] - (n as f64).ln() - 7.0).abs() < 1e-9, "n = {n}");
        }
    }

    #[test]
    fn every_size_is_estimated_by_16_runs_or_more_up_to_the_largest() {
        let with =
            |threads| CountOptions { threads: NonZeroUsize::new(threads), ..Default::default() };
        let estimate = |n| estimate_by_annealing(n, &with(2), Duration::ZERO, 1);
        for n in [0, 1, 2, 33] {
            let found = estimate(n).expect("an estimate");
            assert!(found.runs >= 16 && found.sweeps == 8 * n.max(1), "{found:?}");
        }
        assert_eq!(estimate(0).expect("an estimate").ln_solutions.mean, 0.0);
        assert_eq!(estimate(1001), Err(TooLarge(1001)));
        // The same runs, whichever threads make them.
        assert_eq!(estimate(40), estimate_by_annealing(40, &with(1), Duration::ZERO, 1));
    }
}
