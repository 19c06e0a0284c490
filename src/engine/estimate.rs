//! Estimates from sampled subtrees (Knuth, "Estimating the efficiency of backtrack programs",
//! 1975).
//!
//! A *dive* goes down the search tree, choosing one child at random in each row. Multiplying the
//! numbers of children along the way gives unbiased estimates of the nodes and solutions below the
//! start. Starts are prefixes sampled at equal distances over the whole job, so that each symmetry
//! case is represented proportionally. Dives are made in rounds, and the standard error is derived
//! from the spread between rounds.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::count::{CountError, CountOptions};
use super::count_task::CountTask;
use super::unit_size::{job, with_prefixes};
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Prefix, SymmetryCase};

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard error: in two of three cases the true value is closer to the mean than this.
    pub error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        Self { mean, error: (spread / (count * (count - 1.0).max(1.0))).sqrt() }
    }

    /// Returns the relative error; 0 for a mean of 0.
    pub fn relative(self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { self.error / self.mean }
    }
}

/// The result of [`estimate`].
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Solutions of the problem.
    pub solutions: Mean,
    /// Nodes of the search tree after symmetry reduction: placements without look-ahead.
    pub nodes: Mean,
    /// Nodes a second on this machine, with the kernel and threads of the options; measured by
    /// counting a smaller board, whose size is `measured_at`.
    pub nodes_per_s: f64,
    /// The board size that was counted to measure the rate.
    pub measured_at: usize,
    /// The seconds that the count would take on this machine. The error combines that of the nodes
    /// and 15 % for the rate, which differs between board sizes.
    pub seconds: Mean,
    /// The number of dives made.
    pub dives: u64,
}

/// The distribution of a job's work over its prefixes.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The expected nodes below each sampled prefix, which represents `stride` prefixes.
    samples: Vec<f64>,
    stride: u64,
}

impl Forecast {
    /// Creates the forecast of equal work for all subproblems.
    pub(super) fn even(nodes: f64, subproblems: u64) -> Self {
        let stride = subproblems.max(1);
        Self { samples: vec![nodes / stride as f64], stride }
    }

    /// Returns the expected nodes below a range of prefixes.
    pub fn nodes(&self, range: Range<u64>) -> f64 {
        (range.start / self.stride..range.end.div_ceil(self.stride))
            .zip(self.samples.iter().skip((range.start / self.stride) as usize))
            .map(|(block, nodes)| {
                let first = block * self.stride;
                let inside = range.end.min(first + self.stride) - range.start.max(first);
                nodes * inside as f64
            })
            .sum()
    }
}

/// The sums over some random dives.
struct Dives<'a> {
    rng: &'a mut fastrand::Rng,
    nodes: f64,
    solutions: f64,
}

impl Dives<'_> {
    fn dive(&mut self, case: &SymmetryCase, prefix: &Prefix) {
        let (mut state, mut ways) = (prefix.state(), 1.0);
        for k in prefix.filled()..case.rows().len() {
            let available = case.available(k, state);
            if available == 0 {
                return;
            }
            ways *= f64::from(available.count_ones());
            self.nodes += ways;
            state = case.place(k, state, self.choose(available));
        }
        self.solutions += ways * f64::from(case.weight()) / 3.0;
    }

    /// Returns one of the set bits at random.
    fn choose(&mut self, mut available: u32) -> u32 {
        for _ in 0..self.rng.u32(..available.count_ones()) {
            available &= available - 1;
        }
        available & available.wrapping_neg()
    }
}

/// Returns prefixes at equal distances, about `most` of them, and the distance.
fn starts(decomposition: &Decomposition, most: u64) -> (Vec<(&SymmetryCase, Prefix)>, u64) {
    let stride = decomposition.prefixes().div_ceil(most).max(1);
    let mut starts = Vec::new();
    let mut index = 0;
    decomposition.for_each(0..decomposition.prefixes(), |case, prefix| {
        // The middle of each stride, or the first prefix of a last stride that is too short to have
        // a middle.
        let left = decomposition.prefixes() - index;
        if index % stride == stride / 2 || (index % stride == 0 && left <= stride / 2) {
            starts.push((case, *prefix));
        }
        index += 1;
    });
    (starts, stride)
}

/// Returns the distribution of the work of a queens job, from about `most` prefixes with `dives`
/// dives each. The same seed gives the same forecast.
pub fn forecast(decomposition: &Decomposition, most: u64, dives: u32, seed: u64) -> Forecast {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (starts, stride) = starts(decomposition, most);
    let samples = starts
        .iter()
        .map(|(case, prefix)| {
            let mut below = Dives { rng: &mut rng, nodes: 0.0, solutions: 0.0 };
            (0..dives).for_each(|_| below.dive(case, prefix));
            below.nodes / f64::from(dives)
        })
        .collect();
    Forecast { samples, stride }
}

/// Estimates the count of n queens on the empty board by dives for about `time`, and the time that
/// the count would take here.
///
/// # Errors
/// The board is too large to count, or the kernel cannot count it here.
pub fn estimate(
    n: usize,
    options: &CountOptions,
    time: Duration,
    seed: u64,
) -> Result<Estimate, CountError> {
    /// Dives in a round, and the minimum number of rounds.
    const ROUND: usize = 1024;
    const LEAST_ROUNDS: usize = 16;
    /// Prefixes kept in memory as starts of dives.
    const STARTS: u64 = 1 << 16;

    let problem = Problem::empty(Piece::Queen, n);
    let (job, kernel) = job(&problem, options)?;
    let decomposition = Decomposition::new(job);
    let decomposition = &*with_prefixes(&decomposition);
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut starts, _) = starts(decomposition, STARTS);
    let prefixes = decomposition.prefixes() as f64;
    let (mut nodes, mut solutions) = (Vec::new(), Vec::new());
    let began = Instant::now();
    let mut next = starts.len();
    while nodes.len() < LEAST_ROUNDS || began.elapsed() < time {
        let mut round = Dives { rng: &mut rng, nodes: 0.0, solutions: 0.0 };
        for _ in 0..ROUND {
            if starts.is_empty() {
                break;
            }
            if next == starts.len() {
                round.rng.shuffle(&mut starts);
                next = 0;
            }
            let (case, prefix) = starts[next];
            round.dive(case, &prefix);
            next += 1;
        }
        nodes.push(round.nodes / ROUND as f64 * prefixes);
        solutions.push(round.solutions / ROUND as f64 * prefixes);
    }
    let options = CountOptions { kernel: Some(kernel), ..options.clone() };
    let (nodes_per_s, measured_at) = measure_rate(n, &options, seed)?;
    let dives = (nodes.len() * ROUND) as u64;
    let (nodes, solutions) = (Mean::of(&nodes), Mean::of(&solutions));
    let seconds = nodes.mean / nodes_per_s;
    let seconds = Mean { mean: seconds, error: seconds * nodes.relative().hypot(0.15) };
    Ok(Estimate { solutions, nodes, nodes_per_s, measured_at, seconds, dives })
}

/// Returns the nodes a second (placements without look-ahead), measured by counting ever larger
/// boards of the same parity until one takes long enough to be timed, and the size of that board.
fn measure_rate(n: usize, options: &CountOptions, seed: u64) -> Result<(f64, usize), CountError> {
    const LONG_ENOUGH: Duration = Duration::from_millis(250);
    let mut size = 10 + n % 2;
    loop {
        let task = CountTask::plan(&Problem::empty(Piece::Queen, size), options)?;
        let prefixes = with_prefixes(task.decomposition());
        let nodes = forecast(&prefixes, 1 << 14, 8, seed).nodes(0..prefixes.prefixes());
        let elapsed = task.run(|_| std::ops::ControlFlow::Continue(()))?.elapsed;
        if elapsed >= LONG_ENOUGH || size + 2 > n {
            return Ok((nodes / elapsed.as_secs_f64(), size));
        }
        size += 2;
    }
}
