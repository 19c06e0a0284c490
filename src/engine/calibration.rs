//! The time of a count on this machine, from a random sample of its subproblems.
//!
//! The sample is counted by the kernel of the count on as many threads at once, because threads
//! share caches. Column sets are drawn from each family in proportion to its share of the time.
//! Prefixes are drawn in ranges, and the time of a range is compared with its forecast nodes (a
//! ratio estimate). Where too few subproblems fit into the time for the sample, smaller boards of
//! the same parity are sampled instead, and the cost is extrapolated by its usual growth.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::count::CountError;
use super::estimate::Forecast;
use super::growth::{NOISE, PREFIX_GROWTH_ERROR, SET_GROWTH_ERROR, set_growth, sets_that_count};
use super::unit_size::{forecast_of_prefixes, usual_nodes_per_s};
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, SetFamily};
use crate::kernel::{Kernel, KernelKind, count_range};
use crate::tally::Parts;

/// The time that a count will take, with an interval that contains it in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeForecast {
    /// The expected time in seconds.
    pub seconds: f64,
    /// The lower bound of the 90 % interval, in seconds.
    pub least_s: f64,
    /// The upper bound of the 90 % interval, in seconds.
    pub most_s: f64,
    /// The board size of the largest subproblems that were counted. If it is less than that of the
    /// count, the cost was extrapolated.
    pub sampled_at: usize,
    /// The number of samples of that size.
    pub samples: u64,
}

impl TimeForecast {
    /// Returns the forecast for a fraction of the work.
    #[must_use]
    pub fn of_fraction(self, fraction: f64) -> Self {
        let of = |seconds: f64| seconds * fraction.clamp(0.0, 1.0);
        Self {
            seconds: of(self.seconds),
            least_s: of(self.least_s),
            most_s: of(self.most_s),
            ..self
        }
    }
}

/// The standard deviation of the logarithm of the time of a count of one second, beside [`NOISE`];
/// in longer counts it averages out.
const SHORT_NOISE: f64 = 0.15;
/// The time in seconds by which a short count differs from what its subproblems take.
const OVERHEAD_S: f64 = 0.005;
/// The most by which the cost of a column set grows to the next board size of the same parity.
const GROWTH: f64 = 25.0;
/// The share of the time that is left which the least samples of a board may take.
const AFFORDABLE: f64 = 0.7;
/// The size from which smaller boards are sampled first.
const SMALLEST: usize = 16;

/// One sample: the time of some subproblems, and their size: the number of column sets, or the
/// forecast nodes of prefixes.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    size: f64,
}

/// The samples of one family of column sets, or of all prefixes.
#[derive(Clone, Debug, Default)]
struct Stratum {
    /// The size of all subproblems.
    size: f64,
    samples: Vec<Sample>,
}

impl Stratum {
    /// Returns the time of a unit of size, and the square of its standard error.
    fn cost(&self) -> (f64, f64) {
        let count = self.samples.len() as f64;
        let sum = |of: fn(&Sample) -> f64| self.samples.iter().map(of).sum::<f64>();
        let size = sum(|sample| sample.size).max(f64::MIN_POSITIVE);
        let cost = sum(|sample| sample.seconds) / size;
        let squares = self.samples.iter().map(|s| (s.seconds - cost * s.size).powi(2)).sum::<f64>();
        (cost, squares * count / (count - 1.0).max(1.0) / size.powi(2))
    }

    /// Returns the mean time of a sample.
    fn mean_sample_s(&self) -> f64 {
        let all: f64 = self.samples.iter().map(|sample| sample.seconds).sum();
        all / (self.samples.len() as f64).max(1.0)
    }
}

/// A board of which subproblems are counted.
struct Board {
    decomposition: Decomposition,
    kernel: KernelKind,
    threads: NonZeroUsize,
    /// The forecast nodes of the prefixes; `None` for column sets.
    nodes: Option<Forecast>,
    /// The number of prefixes of a sample.
    range: u64,
    /// The families of column sets, one for each stratum; none for prefixes.
    families: Vec<SetFamily>,
    strata: Vec<Stratum>,
    /// The time to create a kernel and its tables.
    setup_s: f64,
}

/// The time of a unit of size on a board.
#[derive(Clone, Copy, Debug)]
struct Cost {
    ln: f64,
    /// The variance of `ln` from the spread of the samples.
    variance: f64,
}

impl Board {
    /// Creates the board of a job. `nodes` is the forecast of its prefixes.
    fn new(
        decomposition: &Decomposition,
        nodes: Option<Forecast>,
        kernel: KernelKind,
        threads: NonZeroUsize,
    ) -> Self {
        /// The time that a sample of prefixes should take.
        const SAMPLE_S: f64 = 0.03;
        let prefixes = decomposition.prefixes();
        let mut families = Vec::new();
        let mut strata = Vec::new();
        for family in decomposition.set_families() {
            let size = sets_that_count(family);
            if size > 0.0 {
                families.push(family.clone());
                strata.push(Stratum { size, samples: Vec::new() });
            }
        }
        let all = nodes.as_ref().map_or(0.0, |nodes| nodes.nodes(0..prefixes));
        if all > 0.0 {
            strata.push(Stratum { size: all, samples: Vec::new() });
        }
        // The cast saturates.
        let range = (usual_nodes_per_s(kernel) * SAMPLE_S * prefixes as f64 / all) as u64;
        let range = range.clamp(1, prefixes.max(1));
        let decomposition = decomposition.clone();
        Self { decomposition, kernel, threads, nodes, range, families, strata, setup_s: 0.0 }
    }

    /// Creates the empty board of a size.
    fn empty(n: usize, kernel: KernelKind, threads: NonZeroUsize) -> Result<Self, CountError> {
        let problem = Problem::empty(Piece::Queen, n);
        let scheme = kernel.scheme(&problem);
        let decomposition = Decomposition::new(Job::new(problem, scheme, None, 1)?);
        let nodes = forecast_of_prefixes(&decomposition);
        Ok(Self::new(&decomposition, nodes, kernel, threads))
    }

    fn n(&self) -> usize {
        self.decomposition.job().problem().n()
    }

    /// Returns the size of all subproblems.
    fn size(&self) -> f64 {
        self.strata.iter().map(|stratum| stratum.size).sum()
    }

    fn cost(&self) -> Cost {
        let total: f64 = self.strata.iter().map(|s| s.size * s.cost().0).sum();
        let variance: f64 = self.strata.iter().map(|s| s.size.powi(2) * s.cost().1).sum();
        let total = total.max(f64::MIN_POSITIVE);
        Cost { ln: (total / self.size()).ln(), variance: variance / total.powi(2) }
    }

    fn samples(&self) -> usize {
        self.strata.iter().map(|stratum| stratum.samples.len()).sum()
    }

    /// Returns the least number of samples of each stratum on each thread.
    fn least(&self) -> usize {
        4_usize.div_ceil(self.threads.get()).max(2)
    }

    /// Returns the time that the least samples will take, by those of the next smaller board.
    fn least_s(&self, smaller: &Self) -> f64 {
        let round = match &self.nodes {
            Some(_) => {
                let ranges = self.decomposition.prefixes() as f64 / self.range as f64;
                self.size() / ranges * smaller.cost().ln.exp()
            }
            None => GROWTH * smaller.strata.iter().map(Stratum::mean_sample_s).sum::<f64>(),
        };
        round * self.least() as f64
    }

    /// Counts random subproblems on all threads for about `time`, and at least a few of each
    /// stratum on each thread.
    fn sample(&mut self, time: Duration, seed: u64) -> Result<(), CountError> {
        let board = &*self;
        let of_thread = |thread: u64| -> Result<(Vec<Stratum>, f64), CountError> {
            let mut rng = fastrand::Rng::with_seed(seed ^ thread.wrapping_mul(0x9e37_79b9));
            let began = Instant::now();
            let mut kernel = board.kernel.build(Piece::Queen)?;
            board.families.iter().for_each(|family| kernel.prepare(family));
            let setup_s = began.elapsed().as_secs_f64();
            Ok((board.sample_on_thread(&mut *kernel, time, &mut rng)?, setup_s))
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let of_thread = &of_thread;
            // If the system cannot create more threads, the running ones make the sample.
            let threads: Vec<_> = (1..self.threads.get() as u64)
                .map_while(|thread| {
                    std::thread::Builder::new().spawn_scoped(scope, move || of_thread(thread)).ok()
                })
                .collect();
            let own = of_thread(0);
            let others = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or(Err(CountError::WorkerLost)));
            std::iter::once(own).chain(others).collect()
        });
        for result in results {
            let (strata, setup_s) = result?;
            self.setup_s = self.setup_s.max(setup_s);
            for (stratum, more) in self.strata.iter_mut().zip(strata) {
                stratum.samples.extend(more.samples);
            }
        }
        Ok(())
    }

    fn sample_on_thread(
        &self,
        kernel: &mut dyn Kernel,
        time: Duration,
        rng: &mut fastrand::Rng,
    ) -> Result<Vec<Stratum>, CountError> {
        let began = Instant::now();
        let mut strata: Vec<Stratum> =
            self.strata.iter().map(|s| Stratum { size: s.size, samples: Vec::new() }).collect();
        for _ in 0..self.least() {
            for (index, stratum) in strata.iter_mut().enumerate() {
                stratum.samples.push(self.count_one(kernel, index, rng)?);
            }
        }
        while began.elapsed() < time {
            // In proportion to the time of all subproblems of a stratum.
            let shares: Vec<f64> = strata.iter().map(|s| s.size * s.cost().0).collect();
            let mut place = rng.f64() * shares.iter().sum::<f64>();
            let index = shares.iter().position(|share| {
                place -= share;
                place <= 0.0
            });
            let index = index.unwrap_or(0);
            let Some(stratum) = strata.get_mut(index) else { break };
            stratum.samples.push(self.count_one(kernel, index, rng)?);
        }
        Ok(strata)
    }

    /// Counts a random subproblem of a stratum.
    fn count_one(
        &self,
        kernel: &mut dyn Kernel,
        stratum: usize,
        rng: &mut fastrand::Rng,
    ) -> Result<Sample, CountError> {
        if let Some(family) = self.families.get(stratum) {
            let set = loop {
                // About half of the sets are images of others.
                if let Some(set) = family.set(rng.u64(..family.sets())) {
                    break set;
                }
            };
            let mut parts = Parts::default();
            let began = Instant::now();
            kernel.count_set(family, &set, &mut parts)?;
            return Ok(Sample { seconds: began.elapsed().as_secs_f64(), size: 1.0 });
        }
        let prefixes = self.decomposition.prefixes();
        let first = rng.u64(..prefixes.div_ceil(self.range)) * self.range;
        let range = first..prefixes.min(first + self.range);
        let size = self.nodes.as_ref().map_or(0.0, |nodes| nodes.nodes(range.clone()));
        let began = Instant::now();
        count_range(kernel, &self.decomposition, range)?;
        Ok(Sample { seconds: began.elapsed().as_secs_f64(), size })
    }
}

/// Returns the time of a count of queens on this machine, from subproblems that are counted for
/// about `time`. `nodes` is the forecast of a job with prefixes. Returns `None` for other pieces,
/// and for a board with decided squares whose subproblems take too long.
///
/// # Errors
/// The kernel cannot count it here, or a check of a sample fails.
pub(super) fn forecast_time(
    decomposition: &Decomposition,
    nodes: Option<Forecast>,
    (kernel, threads): (KernelKind, NonZeroUsize),
    time: Duration,
    seed: u64,
) -> Result<Option<TimeForecast>, CountError> {
    /// The share of the time for each smaller board.
    const SHARE: f64 = 0.06;
    let problem = decomposition.job().problem();
    if problem.piece() != Piece::Queen {
        return Ok(None);
    }
    let began = Instant::now();
    let left = || time.saturating_sub(began.elapsed());
    let is_affordable = |board: &Board, smaller: &[Board]| match smaller {
        [_, .., last] => board.least_s(last) <= AFFORDABLE * left().as_secs_f64(),
        _ => true,
    };
    let nodes = nodes.or_else(|| forecast_of_prefixes(decomposition));
    let mut board = Board::new(decomposition, nodes, kernel, threads);
    if board.strata.is_empty() {
        let (seconds, least_s, most_s) = (0.0, 0.0, OVERHEAD_S);
        let sampled_at = problem.n();
        return Ok(Some(TimeForecast { seconds, least_s, most_s, sampled_at, samples: 0 }));
    }
    let mut smaller: Vec<Board> = Vec::new();
    let smallest = SMALLEST + problem.n() % 2;
    for n in (smallest..problem.n()).step_by(2) {
        let mut next = Board::empty(n, kernel, threads)?;
        if !is_affordable(&next, &smaller) {
            break;
        }
        next.sample(time.mul_f64(SHARE), seed)?;
        smaller.push(next);
    }
    let is_next = smaller.last().is_none_or(|last| last.n() + 2 == problem.n());
    if is_next && is_affordable(&board, &smaller) {
        board.sample(left(), seed)?;
        return Ok(Some(board.forecast(board.cost(), 0.0, &board)));
    }
    let Some(last) = smaller.last_mut().filter(|_| problem.is_empty()) else { return Ok(None) };
    last.sample(left(), seed.wrapping_add(1))?;
    let Cost { mut ln, variance } = last.cost();
    let steps = (problem.n() - last.n()) as f64 / 2.0;
    let error = if let (Some(nodes), Some(of_last)) = (&board.nodes, &last.nodes) {
        (steps * PREFIX_GROWTH_ERROR).hypot(nodes.relative_error()).hypot(of_last.relative_error())
    } else {
        ln += (last.n()..problem.n()).step_by(2).map(set_growth).sum::<f64>();
        steps * SET_GROWTH_ERROR
    };
    Ok(Some(board.forecast(Cost { ln, variance }, error, last)))
}

impl Board {
    /// Returns the forecast from the cost on this board, which comes from the samples of `sampled`.
    /// `error` is a further standard error of the logarithm.
    fn forecast(&self, cost: Cost, error: f64, sampled: &Self) -> TimeForecast {
        let seconds = cost.ln.exp() * self.size() / self.threads.get() as f64;
        let freedom = sampled.samples().saturating_sub(sampled.strata.len()).max(1);
        let spread = student_95(freedom as f64) * cost.variance.sqrt();
        let noise = NOISE.hypot((SHORT_NOISE / seconds.sqrt()).min(0.25));
        let half = spread.hypot(student_95(f64::INFINITY) * noise.hypot(error));
        TimeForecast {
            seconds: self.setup_s + seconds,
            least_s: self.setup_s + seconds * (-half).exp(),
            most_s: self.setup_s + OVERHEAD_S + seconds * half.exp(),
            sampled_at: sampled.n(),
            samples: sampled.samples() as u64,
        }
    }
}

/// Returns the 95 % quantile of Student's distribution, by the first terms of its expansion in the
/// reciprocal of the degrees of freedom (Abramowitz and Stegun 26.7.5).
pub(super) fn student_95(freedom: f64) -> f64 {
    const Z: f64 = 1.644_853_627;
    let terms = [
        (Z.powi(3) + Z) / 4.0,
        (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0,
        (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + Z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in
            [(3.0, 2.353), (5.0, 2.015), (10.0, 1.812), (30.0, 1.697), (f64::INFINITY, 1.645)]
        {
            assert!((student_95(freedom) - quantile).abs() < 0.02, "{freedom}");
        }
    }

    #[test]
    fn the_cost_of_a_stratum_is_a_ratio_with_its_error() {
        let sample = |seconds, size| Sample { seconds, size };
        let exact = Stratum { size: 10.0, samples: vec![sample(2.0, 1.0), sample(6.0, 3.0)] };
        assert_eq!(exact.cost(), (2.0, 0.0));
        let samples = vec![sample(1.0, 1.0), sample(3.0, 1.0)];
        let (cost, variance) = Stratum { size: 10.0, samples }.cost();
        // The standard error of the mean of 1 and 3 is 1.
        assert!((cost - 2.0).abs() < 1e-12 && (variance - 1.0).abs() < 1e-12);
    }

    #[test]
    fn every_kind_of_subproblem_is_forecast_and_other_pieces_are_not() {
        let time = Duration::from_millis(20);
        let with = |kernel: KernelKind, problem: &Problem| {
            let job = Job::new(problem.clone(), kernel.scheme(problem), None, 1).expect("a job");
            let threads = (kernel, NonZeroUsize::MIN);
            forecast_time(&Decomposition::new(job), None, threads, time, 1).expect("forecasts")
        };
        for (kernel, n, sampled_at) in
            [(KernelKind::Scalar, 12, 12), (KernelKind::Sets, 14, 14), (KernelKind::Sets, 26, 18)]
        {
            let found = with(kernel, &Problem::empty(Piece::Queen, n)).expect("a forecast");
            assert!(found.least_s <= found.seconds && found.seconds <= found.most_s, "{found:?}");
            assert!(found.sampled_at <= n && found.sampled_at >= sampled_at, "{found:?}");
        }
        assert!(with(KernelKind::Generic, &Problem::empty(Piece::Rook, 8)).is_none());
        let none = with(KernelKind::Scalar, &Problem::empty(Piece::Queen, 3)).expect("a forecast");
        assert!(none.most_s < 0.1, "{none:?}");
    }
}
